//! How a plan is gone through: which part is under way, what came of those before, and which way the next one is gone
//! about. A small model decides well where there is little to decide, so the harness leaves it as little as it can:
//!
//! - what one command can do, the adviser is asked for;
//! - what was seen is saved as it was seen, and counted, without a model;
//! - a text about it is the model's, but what it may do then is write that file;
//! - a text that a skill has rules for is written with these rules at hand and nothing else;
//! - who names a server of tools, or helpers, wants these: the model decides which, and how;
//! - everything else, and whatever failed, the model decides freely.

use super::{AgentRun, Phase};
use crate::action::{self, ActionSet};
use crate::evidence::{self, Changes, Claim, Entry};
use crate::guard::Guards;
use crate::suggest::{Done, SuggestRequest, Suggestion};
use crate::tool::{Args, Call, Effects, Outcome, ToolResult, is_exit_note};
use caro_intent::{
    Kind, asked_for, asks_what_changed, changes, kind, locate, order, refer, refers, script, stand_in, tallies,
    to_be_made, tries,
};
use caro_policy::compress;
use caro_shell::{Dialect, parse, quote};
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::collections::BTreeSet;
use std::path::Path;

/// Commands that are tried for one part before the model decides.
pub(super) const TRIES: u32 = 3;
/// Texts that the model may try to write for one part before the results are put together without it.
const DRAFTS: u32 = 2;
/// Parts done before that an adviser is told of.
const RECENT: usize = 4;
/// Characters of what each of them printed.
const PRINTED: usize = 700;
/// What a part came to that looked for something in several ways, and found nothing.
const NOTHING: &str = "nothing found";
/// The result of a part that was left undone for that.
const NOT_DONE: &str = "not done";
/// Files that are remembered of one step.
const MADE: usize = 200;

/// The shell tool's name: what advice, saving and references are about.
const SHELL: &str = "shell";

/// Where a run stands in its plan.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct PlanProgress {
    /// True if somebody gives advice.
    pub led: bool,
    /// The part under way, from 0.
    pub part: usize,
    /// Tries of this part that came to nothing.
    pub(super) tries: u32,
    /// True if the call under way is the harness' own choice.
    own: bool,
    /// Commands that were run, oldest first; and, with no command, what servers and helpers showed.
    done: Vec<Done>,
    /// What each part came to, as far as it did.
    results: Vec<Option<String>>,
    /// What `them` and `each` stand for: the files that the latest result names.
    names: Vec<String>,
    /// What speaks against the part under way being done, after its latest try.
    #[serde(default)]
    finding: Option<String>,
    /// What speaks against parts that were left behind all the same, with the number of each.
    #[serde(default)]
    doubts: Vec<(usize, String)>,
    /// Files below the working folder that were made or changed and are still there, from that folder.
    #[serde(default)]
    made: BTreeSet<String>,
    /// True if the latest part was done by a server or by helpers: what they said is shown as they said it.
    #[serde(default)]
    theirs: bool,
    /// Files that the task says are to be there afterwards, and were there at some time.
    #[serde(default)]
    known: BTreeSet<String>,
    /// Parts that were done by commands that may be the wrong ones.
    #[serde(default)]
    unsure: Vec<(usize, String)>,
    /// How sure the adviser is of the call under way, where it doubts that.
    #[serde(default)]
    sure: Option<f64>,
    /// The part that changed something last, and what all its tries did.
    #[serde(default)]
    changes: Option<(usize, Changes)>,
}

/// What the driver saw beside the results.
#[derive(Debug, Clone, Default)]
pub struct StepObservation {
    /// The files that the results name.
    pub names: Vec<String>,
    /// What the calls changed below the working folder; `None` if they were not to change anything, or nobody knows.
    pub changes: Option<Changes>,
    /// Which of the files that the task says are to be there ([`evidence::promised`]) are there now.
    pub there: Vec<String>,
    /// What the part asks for, if it is files, and those below the working folder; `None` if they were not looked at, or
    /// are too many.
    pub files: Option<(evidence::Query, Vec<evidence::Measured>)>,
}

impl PlanProgress {
    /// What was seen, the latest last.
    fn seen(&self) -> impl DoubleEndedIterator<Item = &Done> {
        self.done.iter().filter(|d| d.worked && d.looked)
    }

    fn advance(&mut self, result: Option<String>) {
        self.results.resize(self.part, None);
        self.results.push(result);
        self.part += 1;
        self.tries = 0;
        self.finding = None;
    }

    /// Has all parts done by one answer.
    pub(super) fn complete(&mut self, parts: usize, answer: &str) {
        self.results = vec![None; parts.saturating_sub(1)];
        self.results.push(Some(answer.to_owned()));
        self.part = parts;
    }

    /// True if what was looked for last was not there, whatever was left undone for that.
    fn has_found_nothing(&self) -> bool {
        let mut results = self.results.iter().rev().map(Option::as_deref);
        results.find(|result| *result != Some(NOT_DONE)) == Some(Some(NOTHING))
    }

    /// What the part right before this one changed.
    fn change_before(&self) -> Option<&Changes> {
        self.changes.as_ref().filter(|(at, _)| at + 1 == self.part).map(|(_, changes)| changes)
    }

    /// What the part right before this one changed, in words, if this part asks for it.
    fn told_of_change(&self, part: &str) -> Option<String> {
        let part = order(part);
        self.change_before().filter(|_| asks_what_changed(part)).and_then(|changes| evidence::answer(part, changes))
    }

    /// What was changed: where it is, and what `it` stands for from now on.
    fn changed(&mut self, changes: &Changes, is_saved: bool) {
        for path in &changes.removed {
            self.made.remove(path);
        }
        let paths = |entries: &[Entry]| entries.iter().map(|e| e.path.clone()).take(MADE).collect::<Vec<_>>();
        self.made.extend(changes.made().filter(|e| !e.folder).map(|e| e.path.clone()).take(MADE));
        // what was listed is still meant after it was saved
        if is_saved {
            return;
        }
        let files: Vec<Entry> = changes.created.iter().filter(|e| !e.folder).cloned().collect();
        let names = match (files.as_slice(), changes.changed.as_slice(), changes.created.as_slice()) {
            ([], [], []) => return,
            ([], [], folders) => paths(folders),
            ([], changed, _) => paths(changed),
            (files, _, _) => paths(files),
        };
        self.names = names;
    }
}

impl AgentRun {
    /// Has advice asked for where a command will do; told before [`AgentRun::assembled`].
    pub fn lead(&mut self, led: bool) {
        self.progress.led = led;
    }

    /// Takes the advice for the part under way; none, and the model decides.
    pub fn advised(&mut self, advice: Option<Suggestion>, guards: &Guards) {
        if self.phase != Phase::Advise {
            return;
        }
        let Some(advice) = advice else {
            self.progress.tries = TRIES;
            return self.set_out(guards);
        };
        self.progress.sure = Some(advice.confidence).filter(|_| advice.doubt);
        let thought = self.part().unwrap_or_default().to_owned();
        let command = advice.args.get("command").and_then(serde_json::Value::as_str);
        match (script(&thought), command) {
            (Some((file, _)), Some(command)) => {
                let args = json!({"path": file, "content": format!("#!/usr/bin/env bash\n{command}\n")});
                self.own_call(&thought, self.writer().into(), object(args));
            }
            _ => self.own_call(&thought, advice.tool, advice.args),
        }
    }

    /// The words of the part under way.
    pub fn part(&self) -> Option<&str> {
        self.task.plan.parts.get(self.progress.part).map(String::as_str)
    }

    /// Chooses how the next step is gone about.
    pub(super) fn set_out(&mut self, guards: &Guards) {
        if self.replies() {
            self.phase = Phase::Reply;
            return;
        }
        let mut actions = self.admitted(guards);
        while self.progress.led
            && !actions.tools.is_empty()
            && let Some(part) = self.part().map(str::to_owned)
        {
            if let Some(theirs) = self.for_named(&part, &actions) {
                actions = theirs;
                break;
            }
            let has = |tool: &str| actions.tools.iter().any(|t| t == tool);
            let writer = self.writer();
            if let Some(file) = self.drafts(&part).filter(|_| has(writer)) {
                self.phase = Phase::Draft(file);
                return;
            }
            match self.kind_of(self.progress.part) {
                _ if self.has_left() => self.progress.advance(Some("done".into())),
                // nobody knows better what was changed than who has seen the disk before and after
                Kind::Command | Kind::Tell if self.progress.told_of_change(&part).is_some() => {
                    let told = self.progress.told_of_change(&part);
                    self.progress.advance(told);
                }
                // what nobody has found is not moved, and nothing else in its place
                Kind::Command if changes(&part) && refers(order(&part)) && self.progress.has_found_nothing() => {
                    self.progress
                        .doubts
                        .push((self.progress.part, "Nothing was found that it could be done to.".into()));
                    self.progress.advance(Some(NOT_DONE.into()));
                }
                // what was made is measured, and not guessed
                Kind::Tell if has(SHELL) && self.progress.tries < TRIES && self.measures(&part) => {
                    self.phase = Phase::Advise;
                    return;
                }
                Kind::Free if has(writer) && self.progress.tries < TRIES && script(&part).is_some() => {
                    self.phase = Phase::Advise;
                    return;
                }
                Kind::Command if has(SHELL) && self.progress.tries == 0 && tallies(&part) && self.count(&part) => {
                    return;
                }
                Kind::Command if has(SHELL) && self.progress.tries < TRIES => {
                    self.phase = Phase::Advise;
                    return;
                }
                // some of what was seen: a command picks that out
                Kind::Save(_) if has(SHELL) && self.progress.tries < TRIES && self.picks(&part) => {
                    self.phase = Phase::Advise;
                    return;
                }
                Kind::Save(file) if self.progress.tries == 0 && self.save(&part, &file) => return,
                Kind::Save(file) | Kind::Compose(file) if self.progress.tries < DRAFTS && self.knows(writer) => {
                    actions = ActionSet {
                        tools: vec![writer.into()],
                        answer: false,
                        cannot: true,
                        batch: 1,
                        path: Some(file),
                    };
                    break;
                }
                Kind::Save(file) | Kind::Compose(file) if self.progress.tries == DRAFTS && self.knows(writer) => {
                    let args = json!({"path": file, "content": self.extract()});
                    return self.own_call(&part, writer.into(), object(args));
                }
                // the answer is written when all else is done
                Kind::Tell => self.progress.advance(None),
                _ => break,
            }
        }
        // all was done, by commands that worked or by what was written: what is left is to say so
        if self.progress.led && self.part().is_none() && actions.answer && !self.is_last() {
            if !self.is_asked()
                && let Some(text) = self.results(self.task.plan.parts.len())
            {
                return self.close(text, guards);
            }
            actions.tools.clear();
            actions.cannot = false;
        }
        let reminder = self.reminder(&actions);
        self.phase = Phase::Decide(actions);
        self.remind(&reminder);
    }

    /// What the adviser is told.
    pub(super) fn brief(&self) -> SuggestRequest {
        let words = self.part().unwrap_or(&self.task.text);
        let script = script(words).map(|(_, work)| work);
        let words = script.as_deref().unwrap_or(words);
        let before = self.progress.part.checked_sub(1).and_then(|at| self.task.plan.parts.get(at));
        let mut part = match before {
            Some(before) if self.progress.names.is_empty() => stand_in(words, before),
            // what is said beside the order is about what it says
            _ => format!("{}{}", refer(order(words), &self.progress.names), &words[order(words).len()..]),
        };
        if part == words {
            part = locate(words);
        }
        let place = self.layers.iter().filter(|l| !l.trusted && l.name == PLACE).map(|l| l.text.clone()).collect();
        let commands: Vec<&Done> = self.progress.done.iter().filter(|d| !d.command.is_empty()).collect();
        let short = |d: &&Done| Done { printed: compress(&d.printed, PRINTED), ..(*d).clone() };
        SuggestRequest {
            part,
            place,
            done: commands.iter().skip(commands.len().saturating_sub(RECENT)).map(short).collect(),
        }
    }

    /// Takes note of what came of a step, and returns what speaks against the part being done, for the call it is about.
    pub(super) fn follow(&mut self, batch: &[ToolResult], seen: &StepObservation) -> Option<(usize, String)> {
        let part = self.part().unwrap_or_default().to_owned();
        let own = std::mem::take(&mut self.progress.own);
        let sure = self.progress.sure.take();
        let came: Vec<bool> = batch.iter().map(|one| self.came(&part, one)).collect();
        let at = came.iter().position(|came| *came).unwrap_or(0);
        let one = batch.get(at)?;
        let judged = self.judged(one, seen);
        let wrong = || judged.as_ref().and_then(|j| j.as_ref().err().cloned());
        // the disk knows better than the form of what was printed
        let finding = if judged == Some(Ok(())) { None } else { self.finding(&part, one, seen).or_else(wrong) };
        let sure = sure.filter(|_| judged != Some(Ok(())));
        // of one that was stopped nobody knows what it would have done
        for (i, one) in batch.iter().enumerate().filter(|(_, one)| one.outcome != Outcome::Cancelled) {
            let command = one.call.args.get("command").and_then(serde_json::Value::as_str);
            let theirs = self.is_theirs(&one.call.tool);
            if let Some(command) = command.filter(|_| one.call.tool == SHELL).or(theirs.then_some("")) {
                let looked = theirs || one.call.effects.is_read_only();
                let against = finding.as_deref().filter(|_| i == at);
                self.progress.done.push(Done {
                    goal: refer(&part, &[]),
                    command: command.to_owned(),
                    printed: against.map_or_else(|| one.text.clone(), |why| format!("{}\n{why}", plain(&one.text))),
                    whole: one.is_whole(),
                    looked,
                    worked: came[i] && against.is_none() && !(looked && is_vain(one)),
                });
            }
        }
        let silent = one.call.effects.is_read_only() && is_vain(one) && judged != Some(Ok(()));
        let done = came[at];
        // to look first is the model's right, where that alone cannot do the part
        let looks = !own && one.call.effects.is_read_only() && !self.is_theirs(&one.call.tool);
        let before = looks && (changes(&part) || self.progress.led && self.meant(&part).is_some());
        self.progress.known.extend(seen.there.iter().cloned());
        if let Some(changes) = &seen.changes {
            for name in evidence::promised(&self.task.plan.parts) {
                let end = format!("/{name}");
                let is = |path: &str| path == name || path.ends_with(&end);
                if changes.before.iter().any(|path| is(path)) || changes.made().any(|entry| is(&entry.path)) {
                    self.progress.known.insert(name);
                }
            }
            if !changes.is_empty() {
                let before = self.progress.changes.take().filter(|(at, _)| *at == self.progress.part);
                let all = before.map_or_else(Changes::default, |(_, before)| before).then(changes);
                self.progress.changes = Some((self.progress.part, all));
            }
            self.progress
                .changed(changes, matches!(self.kind_of(self.progress.part), Kind::Save(_) | Kind::Compose(_)));
        }
        if !seen.names.is_empty() && finding.is_none() {
            self.progress.names.clone_from(&seen.names);
        }
        self.progress.finding = match one.outcome {
            _ if finding.is_some() => finding.clone(),
            _ if done && silent => Some("Nothing was found.".into()),
            _ if done => None,
            Outcome::Denied => Some("It was not allowed.".into()),
            _ => Some("The last call for it failed.".into()),
        };
        match one.outcome {
            // who was not allowed to is not asked again
            Outcome::Denied => self.progress.tries = TRIES + DRAFTS,
            Outcome::Cancelled => {}
            _ if finding.is_some() => self.progress.tries += 1,
            _ if done && before => {}
            _ if done && !silent => {
                let changed = || seen.changes.as_ref().and_then(evidence::told);
                let said = match plain(&one.text) {
                    _ if one.outcome.is_error() => one.text.trim().to_owned(),
                    "" => changed().unwrap_or_else(|| "done".into()),
                    text => text.to_owned(),
                };
                if one.outcome.is_error() {
                    self.state.errors_in_a_row = 0;
                    // who asks for what came of it is told
                    if !self.is_told_next() {
                        self.progress.unsure.push((self.progress.part, "It ended with an error.".into()));
                    }
                }
                // the disk was looked at, too
                self.state.learn(&said);
                if let Some(sure) = sure {
                    let why = format!("The command may be a wrong one ({:.0} % sure): look at it.", sure * 100.0);
                    self.progress.unsure.push((self.progress.part, why));
                }
                self.progress.theirs = self.is_theirs(&one.call.tool);
                self.progress.advance(Some(said));
            }
            // looks that find nothing, one after the other: there is nothing
            _ if done && self.progress.tries + 1 >= TRIES => {
                if self.goes_on() {
                    self.progress.doubts.push((self.progress.part, "Nothing was found.".into()));
                }
                // what an earlier part has shown is not what this one was to find
                self.progress.names.clear();
                self.progress.advance(Some(NOTHING.into()));
            }
            _ => self.progress.tries += 1,
        }
        finding.map(|why| (at, why))
    }

    /// True if a call has done the part, or whatever came of it is the answer: tests that fail were run. Not where the next part
    /// changes something: that is to happen where this went well.
    fn came(&self, part: &str, one: &ToolResult) -> bool {
        let next = self.task.plan.parts.get(self.progress.part + 1);
        let goes_on = next.is_some_and(|part| changes(order(part))) && !self.is_told_next();
        let ran = match one.outcome {
            Outcome::FailedLate => true,
            // what is wrong, in a line
            Outcome::Failed => noted(&one.text).1 == Some("(exit code 1)"),
            _ => false,
        };
        one.outcome == Outcome::Succeeded || ran && tries(order(part)) && !goes_on
    }

    /// True if the next part tells or writes down what came of this one.
    fn is_told_next(&self) -> bool {
        matches!(self.kind_of(self.progress.part + 1), Kind::Tell | Kind::Save(_) | Kind::Compose(_))
    }

    /// What the disk says of the files that a part asks for: that these are they, or what is wrong; `None` if that cannot
    /// be seen.
    fn judged(&self, one: &ToolResult, seen: &StepObservation) -> Option<Result<(), String>> {
        let looked = self.progress.led && one.outcome == Outcome::Succeeded && one.call.effects.is_read_only();
        let (query, files) =
            seen.files.as_ref().filter(|_| looked && one.is_whole() && !self.is_theirs(&one.call.tool))?;
        let right = query.judge(files, plain(&one.text), &seen.names)?;
        Some(if right { Ok(()) } else { Err(query.wrong(files, &seen.names)) })
    }

    /// What speaks against a call that ended well having done the part.
    fn finding(&self, part: &str, one: &ToolResult, seen: &StepObservation) -> Option<String> {
        if !self.progress.led || part.is_empty() || one.outcome != Outcome::Succeeded {
            return None;
        }
        let kind = self.kind_of(self.progress.part);
        match kind {
            Kind::Save(_) | Kind::Compose(_) if one.call.tool == self.writer() => {
                let content = one.call.args.get("content").and_then(serde_json::Value::as_str).unwrap_or_default();
                if let Kind::Save(_) = kind {
                    return None;
                }
                return evidence::lacks(part, content, self.shown());
            }
            Kind::Tell => return None,
            // what a server has done only it knows
            _ if self.is_theirs(&one.call.tool) => return None,
            // to look first is the model's right
            Kind::Free if !changes(part) || one.call.effects.is_read_only() => return None,
            _ => {}
        }
        let effects = &one.call.effects;
        if effects.is_read_only() && is_vain(one) {
            return None;
        }
        // of a script only that it is there can be seen, and of what is said beside an order nothing
        let written = script(part).map(|(file, _)| format!("create a script {file}"));
        let limited = order(part) != part;
        let part = written.as_deref().unwrap_or_else(|| order(part));
        let names = if refers(part) { self.progress.names.as_slice() } else { &[] };
        let earlier: Vec<String> = self.progress.results.iter().flatten().cloned().collect();
        evidence::finding(&Claim {
            part,
            limited,
            names,
            command: one.call.args.get("command").and_then(serde_json::Value::as_str),
            effects,
            printed: plain(&one.text),
            whole: one.is_whole(),
            found: Some(seen.names.len()),
            earlier: &earlier,
            goes_on: self.goes_on(),
            changes: seen.changes.as_ref(),
        })
    }

    /// True for a part that wants to be told what has to be looked up: a number of what the one before has made, a property
    /// of what it has found, or which of them it is that the next part is about.
    fn measures(&self, part: &str) -> bool {
        let next = self.task.plan.parts.get(self.progress.part + 1);
        let picks =
            part.split_whitespace().any(|word| word.eq_ignore_ascii_case("who") || word.eq_ignore_ascii_case("which"));
        if picks && next.is_some_and(|next| refers(order(next))) {
            return true;
        }
        self.progress.change_before().is_some() && evidence::counts(part) || refers(part) && evidence::measures(part)
    }

    /// True for a part that saves some of the lines that were seen: `write the three most frequent words to top.txt`.
    fn picks(&self, part: &str) -> bool {
        let seen = self.progress.seen().next_back().filter(|seen| !seen.command.is_empty() && seen.whole);
        // a listing of what differs has names in it, and is none of names
        let names = part.to_lowercase();
        let names = names.contains("names of the files") || names.contains("file names");
        seen.is_some_and(|seen| {
            let lines = plain(&seen.printed).lines().filter(|line| !line.trim().is_empty()).count();
            evidence::chosen(part).is_some_and(|n| lines > n) || names && self.progress.names.len() != lines
        })
    }

    /// True if a later part goes on with what this one shows.
    fn goes_on(&self) -> bool {
        let writes = |at| matches!(self.kind_of(at), Kind::Save(_) | Kind::Compose(_));
        let mut later = self.task.plan.parts.iter().enumerate().skip(self.progress.part + 1);
        later.any(|(at, part)| refers(part) || writes(at))
    }

    /// What the parts before came to.
    pub(super) fn shown(&self) -> impl Iterator<Item = (&str, &str)> {
        self.task
            .plan
            .parts
            .iter()
            .zip(&self.progress.results)
            .filter_map(|(part, result)| Some((part.as_str(), result.as_deref()?)))
    }

    /// What was done and may be wrong all the same: to be said in the end, and nothing the model could do about.
    pub(super) fn unsure(&self) -> impl Iterator<Item = String> + '_ {
        let of = |(at, why): &(usize, String)| Some(format!("{}: {why}", self.task.plan.parts.get(*at)?));
        self.progress.unsure.iter().filter_map(of)
    }

    /// What is missing for the task to be done, as far as it was seen; in words for the person.
    pub(super) fn missing(&self) -> Vec<String> {
        let mut missing = Vec::new();
        if self.progress.led {
            missing.extend(
                self.progress
                    .doubts
                    .iter()
                    .filter_map(|(at, why)| Some(format!("{}: {why}", self.task.plan.parts.get(*at)?))),
            );
            for (at, part) in self.task.plan.parts.iter().enumerate().skip(self.progress.part) {
                let why = self.progress.finding.as_deref().filter(|_| at == self.progress.part);
                let by_words = match self.kind_of(at) {
                    Kind::Tell => true,
                    Kind::Free => !changes(part),
                    // who has no tools was asked for words
                    _ => self.tools.is_empty() && !changes(part),
                };
                if !by_words || why.is_some() {
                    missing.push(format!("{part}: {}", why.unwrap_or("Nothing was done for it.")));
                }
            }
        } else if self.state.changes == 0
            && let Some(part) = self.task.plan.parts.iter().find(|part| is_deed(part))
        {
            missing.push(format!("{part}: Nothing was changed."));
        }
        let foreseen = |file: &str| self.state.modified.iter().any(|path| Path::new(path).ends_with(file));
        let named = if self.progress.led { asked_for(&self.task.text) } else { to_be_made(&self.task.text) };
        for file in named.into_iter().filter(|f| !f.starts_with(['~', '/'])) {
            let name = file.trim_start_matches("./");
            if !self.progress.made.contains(name) && !foreseen(name) {
                missing.push(format!("{name} was not written."));
            }
        }
        for name in evidence::promised(&self.task.plan.parts) {
            let told = missing.iter().any(|why| why.contains(&name));
            if self.progress.led && !told && !self.progress.known.contains(&name) && !foreseen(&name) {
                missing.push(format!("{name} is not there."));
            }
        }
        missing
    }

    /// True if the run has this tool at all, whatever the guards say of this step.
    fn knows(&self, tool: &str) -> bool {
        self.tools.iter().any(|t| t.name == tool)
    }

    /// Has the latest result saved as it is; false if there is none, or no tool for it.
    fn save(&mut self, part: &str, file: &str) -> bool {
        let Some(last) = self.progress.seen().next_back().cloned() else { return false };
        let all = self.progress.seen().all(|seen| seen.whole).then(|| self.results(self.progress.part)).flatten();
        if self.is_leaving()
            && self.progress.part > 1
            && let Some(content) = all
        {
            let args = json!({"path": file, "content": content});
            self.own_call(part, self.writer().into(), object(args));
        } else if last.whole && !has_complaints(&last.printed) && self.knows(self.writer()) {
            let mut content = plain(&last.printed).to_owned();
            // `write both to word.txt`: what came before the latest, too
            let both = part.split_whitespace().any(|word| word.eq_ignore_ascii_case("both"));
            if let Some(before) = self.progress.seen().rev().nth(1).filter(|before| both && before.whole) {
                content = format!("{}\n{content}", plain(&before.printed));
            }
            let args = json!({"path": file, "content": sorted(part, content)});
            self.own_call(part, self.writer().into(), object(args));
        } else if !self.is_leaving() && self.knows(SHELL) && !last.command.is_empty() {
            // printed before the file is opened: a listing does not list the file it goes into
            let command = format!("printf '%s\\n' \"$({})\" > {}", last.command, quote(file, Dialect::Sh));
            self.own_call(part, SHELL.into(), object(json!({ "command": command })));
        } else {
            return false;
        }
        true
    }

    /// Has what the latest result listed counted; false if that was no list.
    fn count(&mut self, part: &str) -> bool {
        let Some(last) = self.progress.seen().next_back().filter(|_| !self.progress.has_found_nothing()) else {
            return false;
        };
        let lines = plain(&last.printed).lines().count();
        let names = self.progress.names.len();
        // a line that is no item, a heading for example, would be counted
        if !last.whole || last.command.is_empty() || lines == 0 || (names > 0 && names != lines) {
            return false;
        }
        let command = format!("{{ {}; }} | wc -l", last.command);
        self.own_call(part, SHELL.into(), object(json!({ "command": command })));
        true
    }

    /// True if the person wants to be told something in words, and not to be shown what commands print.
    fn is_asked(&self) -> bool {
        let parts = &self.task.plan.parts;
        // what was looked up stands in the results
        let is_known = |at: usize| self.progress.results.get(at).is_some_and(Option::is_some);
        // of who leaves what was found, nobody reads the words
        self.leaves.is_none()
            && (parts.len() < 2 && !self.progress.theirs && self.progress.changes.is_none()
                || parts.iter().enumerate().any(|(at, part)| {
                    kind(part, true) == Kind::Tell && !is_known(at) || self.progress.theirs && is_question(part)
                }))
    }

    /// What each of the first `parts` came to, in the commands' own words: nothing in it is made up. `None` if one of them
    /// came to nothing.
    fn results(&self, parts: usize) -> Option<String> {
        let said = |(part, result): (&String, &Option<String>)| {
            let result = result.as_deref()?;
            if parts == 1 {
                return Some(result.to_owned());
            }
            Some(if result.contains('\n') { format!("{part}:\n{result}") } else { format!("{part}: {result}") })
        };
        let all: Option<Vec<String>> =
            self.task.plan.parts.iter().zip(&self.progress.results).take(parts).map(said).collect();
        all.filter(|all| all.len() == parts).map(|all| all.join("\n"))
    }

    /// The answer as it may be given: where the latest result is one number, an answer without it is not the model's to
    /// give, and the results stand in its place.
    pub(super) fn vouched(&self, text: String) -> String {
        let latest = self.progress.results.iter().flatten().next_back().map(|result| result.trim());
        let number = latest.filter(|r| !r.is_empty() && r.bytes().all(|b| b.is_ascii_digit()));
        let says = |number: &str| text.split(|c: char| !c.is_ascii_digit()).any(|word| word == number);
        match number {
            Some(number) if self.progress.led && !says(number) => {
                let of = |(part, result): (&String, &Option<String>)| Some(format!("{part}: {}", result.as_deref()?));
                let all = self.task.plan.parts.iter().zip(&self.progress.results).filter_map(of);
                all.collect::<Vec<_>>().join("\n")
            }
            _ => text,
        }
    }

    /// What was seen, put together without a model.
    fn extract(&self) -> String {
        let mut text = format!("# {}\n", self.task.text);
        for seen in self.progress.seen() {
            text.push_str(&format!("\n## {}\n\n{}\n", seen.goal, plain(&seen.printed)));
        }
        text
    }

    /// Makes a call of the harness' own choice, in the form of the model's.
    pub(super) fn own_call(&mut self, thought: &str, tool: String, args: Args) {
        let shown = action::one_line(&serde_json::Value::Object(args.clone()));
        let text = format!("Thought: {thought}\nAction: {tool} {shown}");
        self.entries.push(super::Entry::Decision { text });
        self.progress.own = true;
        self.thought = thought.to_owned();
        let id = format!("s{}c1", self.step);
        self.phase = Phase::Act(vec![Call { id, tool, args, effects: Effects::default() }]);
    }
}

/// The lines of a text in the order that the part wants them in; as they are where it says nothing, or by what.
fn sorted(part: &str, text: String) -> String {
    let words: Vec<String> = part.split_whitespace().map(str::to_lowercase).collect();
    let says = |list: &[&str]| words.iter().any(|w| list.contains(&w.as_str()));
    if !says(&["sorted", "alphabetically", "alphabetical"]) || says(&["by", "reverse", "descending", "numerically"]) {
        return text;
    }
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort_unstable();
    lines.join("\n")
}

/// True for a part that asks for something in words.
fn is_question(part: &str) -> bool {
    const ASKS: [&str; 14] =
        ["are", "can", "did", "do", "does", "has", "how", "is", "what", "when", "where", "which", "who", "why"];
    let first = part.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default().to_lowercase();
    part.trim_end().ends_with('?') || ASKS.contains(&first.as_str())
}

/// True for a part that cannot be done without a change, however it is gone about.
fn is_deed(part: &str) -> bool {
    let words: Vec<String> = part.split_whitespace().map(str::to_lowercase).collect();
    let Some((verb, rest)) = words.split_first() else { return false };
    let is = |list: &[&str]| list.contains(&verb.as_str());
    let things = ["directory", "file", "files", "folder", "folders", "link", "symlink"];
    is(&["append", "chmod", "copy", "delete", "mkdir", "move", "remove", "rename", "touch"])
        || is(&["create", "make"]) && rest.iter().take(4).any(|word| things.contains(&word.as_str()))
}

/// The layer with how the files begin that the task names.
pub const PLACE: &str = "files";
/// What stands behind the name of a file in that layer, if it goes on after what is shown.
pub const BEGINS_WITH: &str = " begins with";
/// What it says at its end of files that it does not have.
pub const NOT_SHOWN: &str = "are not shown here";

pub(super) fn object(value: serde_json::Value) -> Args {
    match value {
        serde_json::Value::Object(args) => args,
        _ => Args::new(),
    }
}

/// True if a look showed nothing: no output, or a search that says so by how it ended (a count of 0 in every file).
fn is_vain(one: &ToolResult) -> bool {
    let command = one.call.args.get("command").and_then(serde_json::Value::as_str).unwrap_or_default();
    let searched = || {
        let script = parse(command, Dialect::Bash);
        script.commands.last().and_then(|c| c.name()).is_some_and(|name| SEARCHES.contains(&name))
    };
    plain(&one.text).is_empty() || one.text.trim_end().ends_with("\n(exit code 1)") && searched()
}

/// Programs whose exit code 1 says that nothing was found.
const SEARCHES: &[&str] = &["grep", "egrep", "fgrep", "zgrep", "rg", "ag", "ack"];

/// What a command printed, and the shell tool's note on how it ended, if there is one.
fn noted(printed: &str) -> (&str, Option<&str>) {
    let text = printed.trim_end();
    let (before, last) = text.rsplit_once('\n').unwrap_or(("", text));
    let is_note = last == "(no output)" || is_exit_note(last);
    if is_note { (before.trim_end(), Some(last)) } else { (text, None) }
}

/// True if a command did not end well: among what it printed are its complaints, which belong into no file.
fn has_complaints(printed: &str) -> bool {
    noted(printed).1.is_some_and(is_exit_note)
}

/// What a command printed, without that note.
fn plain(printed: &str) -> &str {
    noted(printed).0
}
