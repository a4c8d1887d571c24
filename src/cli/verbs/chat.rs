//! `caro chat`: a conversation. Each message is a run of the agent, which is given what was said before in the
//! session.
//!
//! At a terminal a line editor with a history reads the lines; from a pipe each line is a message. Ctrl-C stops the
//! answer, not the conversation.

use crate::harness::end::{self, exit_of};
use crate::harness::view::{self, Shows};
use crate::harness::{Drive, wire};
use crate::setup::wire::Wants;
use crate::term::edit::{Lines, Typed};
use crate::term::history::History;
use crate::term::interrupt::Phase;
use crate::term::ui::{Role, in_line};
use crate::{Cx, Exit, Failure, Outcome};
use caro_agent::AgentRun;
use caro_agent::chat::Originals;
use caro_agent::harness::{CHATTER, Harness, Options};
use caro_agent::runtime::Driven;
use caro_agent::state::Limits;
use caro_agent::tool::ToolSpec;
use caro_agent::turn::{Report, Task, own_words};
use std::collections::BTreeMap;

/// The text of `/help`.
const HELP: &str = "/tools   the tools of the next message
/clear   forget this conversation, its files and what was typed
/exit    leave (/quit and Ctrl-D too)
Ctrl-C stops an answer. Whatever else is typed is a message.";

/// The commands, without their `/`.
const COMMANDS: [&str; 5] = ["clear", "exit", "help", "quit", "tools"];

/// Talk, with tools and a memory of the session
#[derive(Debug, clap::Args)]
#[command(after_help = "From a pipe each line is a message, and each answer ends with a line end.")]
pub struct Args {
    /// The session to go on with, or to begin; a new one if not given
    #[arg(long, value_name = "NAME")]
    session: Option<String>,
    /// The most steps of one answer; by default the message decides, 5 to 20
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    max_steps: Option<u32>,
    /// How much of the session is remembered: what the model has room for (budget), the last N messages (window:N), or the
    /// newest N tokens (tokens:N). With :summary behind it the model sums up what falls out, in one request more when
    /// something does; with :delete that is removed, and else marked (`caro session show`) [default: budget]
    #[arg(long, value_name = "HOW")]
    history: Option<String>,
    /// How it is driven.
    #[command(flatten)]
    drive: Drive,
}

/// Talks until the user leaves.
///
/// # Errors
/// If the conversation cannot begin or its input and output fail. An answer that fails is reported, and the
/// conversation goes on.
pub fn run(args: &Args, cx: &Cx) -> Outcome {
    cx.with_error_document(args.drive.shows() == Shows::Nothing, converse(args, cx))
}

fn converse(args: &Args, cx: &Cx) -> Outcome {
    let root = cx.folder()?;
    let root = root.canonicalize().unwrap_or(root);
    let session = wire::session(args.session.as_deref(), cx)?;
    let flags: Vec<(&'static str, String)> = args.history.clone().map(|how| ("history", how)).into_iter().collect();
    let remember = cx.settings(&flags)?.history;
    let options = Options { remember, ..args.drive.options() };
    let harness = wire::open(cx, &args.drive, CHATTER, options, &root, Wants::Answers)?;
    let mut talk = Talk { args, cx, harness, session, typed: Vec::new() };
    let mut lines = Lines::open(cx.ui.can_ask(), History::of(&cx.dirs))?;
    if lines.is_terminal() {
        let past = talk.harness.history(&talk.session)?;
        let more = if past.summary.is_empty() { "" } else { " and a summary of those before" };
        let known = past.exchanges.len();
        let before = if past.is_empty() { String::new() } else { format!(", {known} exchanges remembered{more}") };
        cx.ui.note(&format!("session {}{before}; /help shows what can be typed", talk.session));
    }
    // an editor reads Ctrl-C as a key; reading from a pipe can only be ended by it
    let _phase = (!lines.is_terminal()).then(|| cx.interrupt().during(Phase::Ends));
    let deletes = remember.originals == Originals::Delete;
    let mut last = Exit::Success;
    loop {
        let line = match lines.next("you> ")? {
            Typed::Line(line) => line,
            Typed::Refused(why) => {
                last = talk.refused(&why)?;
                continue;
            }
            // Ctrl-C at an empty prompt is more often a slip than a wish to leave
            Typed::Interrupted => continue,
            Typed::End => return Ok(last),
        };
        let done = match line.trim() {
            "" => Ok(last),
            "/exit" | "/quit" => return Ok(Exit::Success),
            "/help" => talk.help().map(|()| last),
            "/clear" => talk.clear(&mut lines).map(|()| last),
            "/tools" => talk.tools().map(|()| last),
            message => match command_error(message) {
                Some(why) => Err(Failure::usage(why).hint("/help shows what there is")),
                None => {
                    let before = if deletes { talk.stored_tasks() } else { BTreeMap::new() };
                    let outcome = talk.say(message);
                    if deletes && let Err(why) = talk.forget_deleted(before, &mut lines) {
                        cx.ui.warn(&format!("what was typed is still in the history: {}", why.message));
                    }
                    outcome
                }
            },
        };
        last = match done {
            Ok(exit) => exit,
            // a closed output ends the conversation; any other failure is that of this message
            Err(failure) if failure.message.is_empty() && failure.exit == Exit::Success => return Err(failure),
            Err(failure) => talk.refused(&failure)?,
        };
    }
}

/// Returns what is wrong with a line that begins with `/` and is no command; `None` for a message, which may begin
/// with a path (`/etc/hosts has which lines`).
fn command_error(line: &str) -> Option<String> {
    let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let name = word.strip_prefix('/')?;
    if COMMANDS.contains(&name) && !rest.is_empty() {
        return Some(format!("{word} takes nothing after it"));
    }
    let is_path = line != "/" && (name.contains('/') || std::path::Path::new(word).exists());
    (!is_path).then(|| format!("there is no {word}"))
}

/// A conversation.
struct Talk<'a> {
    args: &'a Args,
    cx: &'a Cx,
    harness: Harness,
    session: String,
    /// The lines typed so far, including those that did not become a run.
    typed: Vec<String>,
}

impl Talk<'_> {
    fn task(&self, message: &str) -> Task {
        let task = self.harness.task(message, &self.session);
        Task { max_steps: self.args.max_steps.unwrap_or(task.max_steps), ..task }
    }

    /// Answers one message.
    fn say(&mut self, message: &str) -> Outcome {
        self.typed.push(message.to_owned());
        self.args.drive.admit(message, "message")?;
        let task = self.task(message);
        // from here on Ctrl-C stops this answer
        let _phase = self.cx.interrupt().during(Phase::Cancels);
        let cancel = self.cx.interrupt().fresh();
        let mut run = self.harness.prepare(&task, cancel.clone(), &mut |warning| self.cx.ui.warn(&in_line(warning)))?;
        let drive = &self.args.drive;
        let mut turn = AgentRun::new(task);
        turn.limit(drive.limits(Limits::default()));
        wire::begin(&run, &turn, &cancel, self.cx)?;
        // only now is it sure that no other process adds to this session
        run.recall()?;
        let shows = drive.shows();
        let driven = view::show_during(self.cx, shows, drive.verbose(), |signals| {
            let runtime = run.runtime(1, vec![signals.sink()], signals.approver(self.cx.ui.can_ask()));
            self.cx.block_on(runtime.run(turn))
        })?;
        match driven {
            Driven::Stopped(_) if shows == Shows::Nothing => self.refused(&Failure::new(Exit::Interrupted, "stopped")),
            Driven::Stopped(_) => {
                self.cx.ui.note("stopped");
                Ok(Exit::Interrupted)
            }
            Driven::Done(report) => self.print_report(&report, shows),
        }
    }

    fn print_report(&self, report: &Report, shows: Shows) -> Outcome {
        match shows {
            Shows::Nothing => self.cx.ui.json(report)?,
            Shows::Jsonl => {}
            Shows::Steps => {
                if let Some(why) = end::failure_of(report) {
                    return Err(why);
                }
                let answer = own_words(&report.response);
                self.cx.ui.data(if answer.trim().is_empty() { "(no answer)" } else { answer })?;
                end::warn_out_of_steps(report, self.cx);
                end::warn_unverified(report, self.cx);
            }
        }
        Ok(exit_of(report))
    }

    /// Reports why a message has no answer; with `--json` in a document, since a program waits for one. Returns the
    /// exit code.
    fn refused(&self, why: &Failure) -> Outcome {
        match self.args.drive.shows() {
            Shows::Nothing => self.cx.ui.json(&serde_json::json!({ "error": why.error() }))?,
            _ => self.cx.ui.failure(why),
        }
        Ok(why.exit)
    }

    /// Forgets the conversation: its runs, its files, and what was typed.
    fn clear(&mut self, lines: &mut Lines) -> Result<(), Failure> {
        let count = self.harness.history(&self.session)?.exchanges.len();
        self.typed.extend(self.harness.clear(&self.session)?);
        lines.forget(&std::mem::take(&mut self.typed))?;
        match self.args.drive.shows() {
            Shows::Nothing => self.cx.ui.json(&serde_json::json!({ "forgotten": count }))?,
            _ => self.cx.ui.note(&format!("forgotten: {count} exchanges")),
        }
        Ok(())
    }

    /// The tasks of the stored runs of the session, by the ids of the runs.
    fn stored_tasks(&self) -> BTreeMap<String, String> {
        let found = self.harness.events().session(&self.session).ok().filter(|found| found.id == self.session);
        found.map_or_else(BTreeMap::new, |found| found.runs.into_iter().map(|run| (run.id, run.task)).collect())
    }

    /// Removes from the line history the tasks of runs that were stored before and were deleted meanwhile: later their
    /// text is not known any more.
    fn forget_deleted(&self, mut before: BTreeMap<String, String>, lines: &mut Lines) -> Result<(), Failure> {
        let left = self.stored_tasks();
        before.retain(|run, _| !left.contains_key(run));
        let deleted: Vec<String> = before.into_values().collect();
        if deleted.is_empty() { Ok(()) } else { lines.forget(&deleted) }
    }

    fn help(&self) -> Result<(), Failure> {
        match self.args.drive.shows() {
            Shows::Nothing => self.cx.ui.json(&serde_json::json!({ "help": HELP }))?,
            _ if self.cx.ui.out_is_terminal() => {
                let lines: Vec<String> = HELP.lines().map(|line| self.cx.ui.fold(line, "         ")).collect();
                self.cx.ui.data(&lines.join("\n"))?;
            }
            _ => self.cx.ui.data(HELP)?,
        }
        Ok(())
    }

    fn tools(&self) -> Result<(), Failure> {
        let tools = self.harness.tools()?;
        if self.args.drive.shows() == Shows::Nothing {
            let of = |spec: &ToolSpec| serde_json::json!({ "name": spec.name, "description": spec.description });
            return Ok(self.cx.ui.json(&serde_json::json!({ "tools": Vec::from_iter(tools.iter().map(of)) }))?);
        }
        for spec in tools {
            let head = self.cx.ui.entry(Role::Accent, &spec.name);
            self.cx.ui.line(&format!("{head}  {}", self.cx.ui.entry(Role::Plain, &spec.description)))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_begins_with_a_slash_is_a_command_unless_it_is_a_path() {
        assert_eq!(command_error("/clear foo").unwrap(), "/clear takes nothing after it");
        assert_eq!(command_error("/tools count files").unwrap(), "/tools takes nothing after it");
        for unknown in ["/", "/foo", "/foo bar", "/Clear", "/clear, please"] {
            assert!(command_error(unknown).unwrap().starts_with("there is no /"), "{unknown}");
        }
        for message in ["/etc/hosts has which lines", "/ is how full?", "/usr/nothing here", "what is in /etc?"] {
            assert_eq!(command_error(message), None, "{message}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_folder_of_the_root_begins_a_message() {
        assert_eq!(command_error("/dev holds what?"), None);
    }
}
