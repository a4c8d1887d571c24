//! How a plan is gone through: which part is under way, what came of those before, and which way the next one is gone
//! about. A small model decides well where there is little to decide, so the harness leaves it as little as it can:
//!
//! - what one command can do, the adviser is asked for;
//! - what was seen is saved as it was seen, without a model;
//! - a text about it is the model's, but what it may do then is write that file;
//! - everything else, and whatever failed, the model decides freely.

use super::{End, Phase, Turn};
use crate::agent::action::{self, ActionSet};
use crate::agent::advise::{Advice, Brief, Done};
use crate::agent::guard::Guards;
use crate::agent::id;
use crate::agent::observe::compress;
use crate::agent::plan::{Kind, changes, kind, locate, refer};
use crate::agent::tool::{Args, Call, Effects, Outcome, Settled};
use crate::shell::{Dialect, parse, quote};
use serde::{Deserialize, Serialize};
use serde_json::json;

/// Commands that are tried for one part before the model decides.
const TRIES: u32 = 3;
/// Texts that the model may try to write for one part before the results are put together without it.
const DRAFTS: u32 = 2;
/// Parts done before that an adviser is told of.
const RECENT: usize = 4;
/// Characters of what each of them printed.
const PRINTED: usize = 700;

/// The shell tool's name: what advice, saving and references are about.
const SHELL: &str = "shell";
/// The tool that writes a whole file.
const WRITE: &str = "write";

/// Where a run stands in its plan.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Course {
    /// True if somebody gives advice.
    pub led: bool,
    /// The part under way, from 0.
    pub part: usize,
    /// Tries of this part that came to nothing.
    tries: u32,
    /// True if the call under way is the harness' own choice.
    own: bool,
    /// Commands that were run, oldest first.
    done: Vec<Done>,
    /// What each part came to, as far as it did.
    results: Vec<Option<String>>,
    /// What `them` and `each` stand for: the files that the latest result names.
    names: Vec<String>,
}

impl Course {
    /// What was seen, the latest last.
    fn seen(&self) -> impl DoubleEndedIterator<Item = &Done> {
        self.done.iter().filter(|d| d.worked && d.looked)
    }

    fn advance(&mut self, result: Option<String>) {
        self.results.resize(self.part, None);
        self.results.push(result);
        self.part += 1;
        self.tries = 0;
    }
}

impl Turn {
    /// Names the files that the latest result names; told before [`Turn::acted`].
    pub fn saw(&mut self, names: Vec<String>) {
        if !names.is_empty() {
            self.course.names = names;
        }
    }

    /// Has advice asked for where a command will do; told before [`Turn::assembled`].
    pub fn lead(&mut self, led: bool) {
        self.course.led = led;
    }

    /// Takes the advice for the part under way; none, and the model decides.
    pub fn advised(&mut self, advice: Option<Advice>, guards: &Guards) {
        if self.phase != Phase::Advise {
            return;
        }
        let Some(advice) = advice else {
            self.course.tries = TRIES;
            return self.set_out(guards);
        };
        let (request, cached, response) = advice.usage;
        self.spend(advice.requests, request, cached, response);
        let thought = self.part().unwrap_or_default().to_owned();
        self.own_call(&thought, advice.tool, advice.args);
    }

    /// The words of the part under way.
    pub(super) fn part(&self) -> Option<&str> {
        self.task.plan.parts.get(self.course.part).map(String::as_str)
    }

    /// Chooses how the next step is gone about.
    pub(super) fn set_out(&mut self, guards: &Guards) {
        let mut actions = self.admitted(guards);
        while self.course.led
            && !actions.tools.is_empty()
            && let Some(part) = self.part().map(str::to_owned)
        {
            let has = |tool: &str| actions.tools.iter().any(|t| t == tool);
            match kind(&part, self.course.part > 0) {
                Kind::Command if has(SHELL) && self.course.tries < TRIES => {
                    self.phase = Phase::Advise;
                    return;
                }
                Kind::Save(file) if self.course.tries == 0 && self.save(&part, &file) => return,
                Kind::Save(file) | Kind::Compose(file) if self.course.tries < DRAFTS && self.knows(WRITE) => {
                    actions = ActionSet {
                        tools: vec![WRITE.into()],
                        answer: false,
                        cannot: true,
                        batch: 1,
                        path: Some(file),
                    };
                    break;
                }
                Kind::Save(file) | Kind::Compose(file) if self.course.tries == DRAFTS && self.knows(WRITE) => {
                    let args = json!({"path": file, "content": self.extract()});
                    return self.own_call(&part, WRITE.into(), object(args));
                }
                // the answer is written when all else is done
                Kind::Tell => self.course.advance(None),
                _ => break,
            }
        }
        // all was done, by commands that worked or by what was written: what is left is to say so
        if self.course.led && self.part().is_none() && actions.answer && !self.is_last() {
            if !self.is_asked()
                && let Some(text) = self.results()
            {
                return self.finish(End::Answered, text);
            }
            actions.tools.clear();
            actions.cannot = false;
        }
        let reminder = self.reminder(&actions);
        self.phase = Phase::Decide(actions);
        self.remind(&reminder);
    }

    /// What the adviser is told.
    pub(super) fn brief(&self) -> Brief {
        let words = self.part().unwrap_or(&self.task.text);
        let mut part = refer(words, &self.course.names);
        if part == words {
            part = locate(words);
        }
        let place = self.layers.iter().filter(|l| !l.trusted && l.name == PLACE).map(|l| l.text.clone()).collect();
        let skip = self.course.done.len().saturating_sub(RECENT);
        let short = |d: &Done| Done { printed: compress(&d.printed, PRINTED), ..d.clone() };
        Brief { part, place, done: self.course.done.iter().skip(skip).map(short).collect() }
    }

    /// Takes note of what came of a step.
    pub(super) fn follow(&mut self, batch: &[Settled]) {
        let part = self.part().unwrap_or_default().to_owned();
        let own = std::mem::take(&mut self.course.own);
        for one in batch {
            let command = one.call.args.get("command").and_then(serde_json::Value::as_str);
            if let Some(command) = command.filter(|_| one.call.tool == SHELL) {
                let looked = one.call.effects.is_read_only();
                self.course.done.push(Done {
                    goal: refer(&part, &[]),
                    command: command.to_owned(),
                    printed: one.text.clone(),
                    whole: one.hash == id::hash(&one.text),
                    looked,
                    worked: one.outcome == Outcome::Done && !(looked && is_vain(one)),
                });
            }
        }
        let Some(one) = batch.iter().find(|s| s.outcome == Outcome::Done).or(batch.first()) else { return };
        let silent = one.call.effects.is_read_only() && is_vain(one);
        let done = one.outcome == Outcome::Done;
        match one.outcome {
            // who was not allowed to is not asked again
            Outcome::Denied => self.course.tries = TRIES + DRAFTS,
            _ if !own && done && changes(&part) && one.call.effects.is_read_only() => {}
            _ if done && !silent => {
                let said = if plain(&one.text).is_empty() { "done" } else { plain(&one.text) };
                self.course.advance(Some(said.to_owned()));
            }
            // looks that find nothing, one after the other: there is nothing
            _ if done && self.course.tries + 1 >= TRIES => self.course.advance(Some("nothing found".into())),
            _ => self.course.tries += 1,
        }
    }

    /// True if the run has this tool at all, whatever the guards say of this step.
    fn knows(&self, tool: &str) -> bool {
        self.tools.iter().any(|t| t.name == tool)
    }

    /// Has the latest result saved as it is; false if there is none, or no tool for it.
    fn save(&mut self, part: &str, file: &str) -> bool {
        let Some(last) = self.course.seen().next_back().cloned() else { return false };
        if last.whole && self.knows(WRITE) {
            let args = json!({"path": file, "content": plain(&last.printed)});
            self.own_call(part, WRITE.into(), object(args));
        } else if self.knows(SHELL) {
            // printed before the file is opened: a listing does not list the file it goes into
            let command = format!("printf '%s\\n' \"$({})\" > {}", last.command, quote(file, Dialect::Sh));
            self.own_call(part, SHELL.into(), object(json!({ "command": command })));
        } else {
            return false;
        }
        true
    }

    /// True if the person wants to be told something in words, and not to be shown what commands print.
    fn is_asked(&self) -> bool {
        self.task.plan.parts.len() < 2 || self.task.plan.parts.iter().any(|part| kind(part, true) == Kind::Tell)
    }

    /// What each part came to, in the commands' own words: nothing in it is made up. `None` if a part came to nothing.
    fn results(&self) -> Option<String> {
        let said = |(part, result): (&String, &Option<String>)| {
            let result = result.as_deref()?;
            Some(if result.contains('\n') { format!("{part}:\n{result}") } else { format!("{part}: {result}") })
        };
        let all: Option<Vec<String>> = self.task.plan.parts.iter().zip(&self.course.results).map(said).collect();
        all.filter(|all| all.len() == self.task.plan.parts.len()).map(|all| all.join("\n"))
    }

    /// The answer as it may be given: where the latest result is one number, an answer without it is not the model's to
    /// give, and the results stand in its place.
    pub(super) fn vouched(&self, text: String) -> String {
        let latest = self.course.results.iter().flatten().next_back().map(|result| result.trim());
        let number = latest.filter(|r| !r.is_empty() && r.bytes().all(|b| b.is_ascii_digit()));
        let says = |number: &str| text.split(|c: char| !c.is_ascii_digit()).any(|word| word == number);
        match number {
            Some(number) if self.course.led && !says(number) => {
                let of = |(part, result): (&String, &Option<String>)| Some(format!("{part}: {}", result.as_deref()?));
                let all = self.task.plan.parts.iter().zip(&self.course.results).filter_map(of);
                all.collect::<Vec<_>>().join("\n")
            }
            _ => text,
        }
    }

    /// What was seen, put together without a model.
    fn extract(&self) -> String {
        let mut text = format!("# {}\n", self.task.text);
        for seen in self.course.seen() {
            text.push_str(&format!("\n## {}\n\n{}\n", seen.goal, plain(&seen.printed)));
        }
        text
    }

    /// Makes a call of the harness' own choice, in the form of the model's.
    fn own_call(&mut self, thought: &str, tool: String, args: Args) {
        let shown = action::one_line(&serde_json::Value::Object(args.clone()));
        let text = format!("Thought: {thought}\nAction: {tool} {shown}");
        self.entries.push(super::Entry::Decision { text });
        self.course.own = true;
        self.thought = thought.to_owned();
        let id = format!("s{}c1", self.step);
        self.phase = Phase::Act(vec![Call { id, tool, args, effects: Effects::default() }]);
    }
}

/// The layer with how the files begin that the task names.
pub const PLACE: &str = "files";

fn object(value: serde_json::Value) -> Args {
    match value {
        serde_json::Value::Object(args) => args,
        _ => Args::new(),
    }
}

/// True if a look showed nothing: no output, or a search that says so by how it ended (a count of 0 in every file).
fn is_vain(one: &Settled) -> bool {
    let command = one.call.args.get("command").and_then(serde_json::Value::as_str).unwrap_or_default();
    let searched = || {
        let script = parse(command, Dialect::Bash);
        script.commands.last().and_then(|c| c.name()).is_some_and(|name| SEARCHES.contains(&name))
    };
    plain(&one.text).is_empty() || one.text.trim_end().ends_with("\n(exit code 1)") && searched()
}

/// Programs whose exit code 1 says that nothing was found.
const SEARCHES: &[&str] = &["grep", "egrep", "fgrep", "zgrep", "rg", "ag", "ack"];

/// What a command printed, without the shell tool's notes on how it ended.
fn plain(printed: &str) -> &str {
    let text = printed.trim_end();
    let (before, last) = text.rsplit_once('\n').unwrap_or(("", text));
    let note = last == "(no output)" || last.starts_with("(exit code ") && last.ends_with(')');
    if note { before.trim_end() } else { text }
}
