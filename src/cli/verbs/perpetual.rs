//! `caro loop`: runs the perpetual loop at a terminal, in a pipe or between two files, and shows its history.

use crate::harness::{Drive, LOOP_SESSION, wire};
use crate::setup::wire::Wants;
use crate::term::piped::next_line;
use crate::term::ui::{Role, in_line};
use crate::{Cx, Exit, Failure, Outcome};
use caro_agent::clock::{parse_time, stamp};
use caro_agent::event::{Event, Kind, Sink};
use caro_agent::harness::Harness;
use caro_agent::perpetual::channel::{MAX_MESSAGE_BYTES, too_long};
use caro_agent::perpetual::history::episodes;
use caro_agent::perpetual::{self, Channel, Ended, Entry, Files, Lines, PARAMETERS, Setup};
use std::io::{self, IsTerminal};
use std::path::{Component, Path, PathBuf};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// Run an agent that never finishes: it answers messages and wakes up by itself
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true, after_help = parameters())]
pub struct Args {
    #[command(subcommand)]
    command: Option<Subcommand>,
    /// Parameters, listed below: wakeupInterval=60
    #[arg(value_name = "NAME=VALUE")]
    parameters: Vec<String>,
    /// The same as an option; may be given several times
    #[arg(long = "set", value_name = "NAME=VALUE")]
    set: Vec<String>,
    /// The session to go on with, or to begin
    #[arg(long, value_name = "NAME", default_value = LOOP_SESSION)]
    session: String,
    /// How to talk with it: stdio (each line is a message), or file:IN,OUT (messages are lines appended to IN, answers are
    /// appended to OUT)
    #[arg(long, value_name = "CHANNEL", default_value = "stdio", value_parser = channel)]
    channel: ChannelSpec,
    /// End after so many turns
    #[arg(long, value_name = "N")]
    max_turns: Option<u64>,
    /// Allow changes below the working folder, and commands that are not dangerous
    #[arg(short, long)]
    yes: bool,
    /// Ask through the channel before changes and commands, and wait for `yes`; without this and --yes they are refused
    #[arg(long, conflicts_with = "yes")]
    ask: bool,
    /// A folder below which commands may write, in addition to the working folder; `/` for anywhere
    #[arg(long, value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    write: Vec<PathBuf>,
    /// Print every event as a line of JSON instead of the answers
    #[arg(long, value_name = "FORMAT", value_parser = ["jsonl"])]
    events: Option<String>,
    /// Model: an id of `caro model list`, a GGUF file, openai:URL#NAME, anthropic:NAME, script:FILE
    #[arg(long, value_name = "SPEC")]
    model: Option<String>,
}

#[derive(Debug, clap::Subcommand)]
enum Subcommand {
    /// Show what happened in a loop, oldest first
    History {
        /// The session
        #[arg(long, value_name = "NAME", default_value = LOOP_SESSION)]
        session: String,
        /// In s-expressions, as `memory/history.metta` has it
        #[arg(long, conflicts_with = "json")]
        metta: bool,
        /// Print one JSON document
        #[arg(long)]
        json: bool,
        /// Only what happened around a time: "2026-11-27 08:00"
        #[arg(long, value_name = "TIME", conflicts_with = "limit")]
        around: Option<String>,
        /// The most entries, the latest ones
        #[arg(long, value_name = "N", default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..))]
        limit: u32,
    },
}

/// The channel of a loop.
#[derive(Debug, Clone, PartialEq, Eq)]
enum ChannelSpec {
    Stdio,
    Files(PathBuf, PathBuf),
}

/// Parses `stdio` or `file:IN,OUT`.
fn channel(text: &str) -> Result<ChannelSpec, String> {
    let wanted = || "stdio, or file:IN,OUT with two files".to_owned();
    if text == "stdio" {
        return Ok(ChannelSpec::Stdio);
    }
    let (from, to) = text.strip_prefix("file:").and_then(|files| files.split_once(',')).ok_or_else(wanted)?;
    let (from, to) = (PathBuf::from(from), PathBuf::from(to));
    // an agent that reads its own answers would never be silent
    if from.as_os_str().is_empty() || to.as_os_str().is_empty() || components(&from).eq(components(&to)) {
        return Err(wanted());
    }
    Ok(ChannelSpec::Files(from, to))
}

/// Returns the components of a path without `.`.
fn components(path: &Path) -> impl Iterator<Item = Component<'_>> {
    path.components().filter(|component| *component != Component::CurDir)
}

/// The list of parameters for the help.
fn parameters() -> String {
    let mut text = String::from("Parameters:\n");
    for (name, default, about) in PARAMETERS {
        text.push_str(&format!("  {name}={default}: {about}\n"));
    }
    text + "They can be set for good, too: `loop = \"sleepInterval=5 maxWakeLoops=0\"` in the configuration.\n\
            Ctrl-C or the end of the input ends it; the next `caro loop` of the session goes on from there.\n\
            Exit codes: 0 end of the input or of --max-turns; 2 usage or internal; 130 Ctrl-C."
}

/// Runs the loop, or shows what happened in it.
///
/// # Errors
/// If the loop cannot run, is stopped, or its history cannot be read.
pub fn run(args: &Args, cx: &Cx) -> Outcome {
    match &args.command {
        Some(Subcommand::History { session, metta, json, around, limit }) => {
            let entries = entries(session, around.as_deref(), *limit as usize, cx)?;
            print_history(session, &entries, *metta, *json, cx)
        }
        None => run_loop(args, cx),
    }
}

fn run_loop(args: &Args, cx: &Cx) -> Outcome {
    let flags: Vec<_> = args.model.clone().map(|model| ("model", model)).into_iter().collect();
    let mut parameters = cx.settings(&flags)?.perpetual;
    for assignment in args.set.iter().chain(&args.parameters) {
        parameters.set(assignment).map_err(|error| {
            let hint = error.hint();
            Failure::usage(error).hint(hint)
        })?;
    }
    let session = wire::session(Some(&args.session), cx)?;
    let root = cx.folder()?;
    let root = root.canonicalize().unwrap_or(root);
    let drive = Drive::plain(args.model.clone(), args.yes, args.write.clone());
    let harness = wire::open(cx, &drive, "agent", drive.options(), &root, Wants::Answers)?;
    if args.channel == ChannelSpec::Stdio && io::stdin().is_terminal() {
        cx.ui.note(&format!(
            "at work in {} (session {session}): each line you type is a message, what it has to say comes here; Ctrl-D or \
             Ctrl-C ends it, the next `caro loop` goes on",
            root.display()
        ));
    }
    let cancel = cx.interrupt().cancel().clone();
    let (send, receive) = mpsc::channel();
    let channel = open(&args.channel, &root, &send)?;
    let setup = Setup {
        session,
        parameters,
        channel,
        asks: args.ask,
        max_turns: args.max_turns,
        sinks: vec![Arc::new(EventSender(Mutex::new(send)))],
        cancel,
    };
    match drive_loop(&harness, setup, receive, (args.events.is_some(), refusal(args.ask, args.yes)), cx)? {
        Ended::Stopped => Err(Failure::silent(Exit::Interrupted)),
        Ended::Over | Ended::Turns => Ok(Exit::Success),
    }
}

/// Runs the loop while a thread prints what it says and does.
fn drive_loop(
    harness: &Harness,
    setup: Setup,
    receive: Receiver<PrintJob>,
    (jsonl, refusal): (bool, &str),
    cx: &Cx,
) -> Result<Ended, Failure> {
    let cancel = setup.cancel.clone();
    std::thread::scope(|scope| {
        let printer = scope.spawn(move || {
            let printed = print(receive, jsonl, refusal, cx);
            if printed.is_err() {
                // nobody would see what the agent does
                cancel.cancel();
            }
            printed
        });
        // the future owns the setup and with it the senders: the printer ends when it is dropped
        let ended = cx.block_on(perpetual::run(harness, setup));
        let printed = printer.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        printed?;
        Ok(ended??)
    })
}

/// Something to be printed.
enum PrintJob {
    /// A text of the loop; the result of printing it is sent back.
    Say(String, Sender<io::Result<()>>),
    /// A warning.
    Warning(String),
    /// An event.
    Event(Box<Event>),
}

fn print(receive: Receiver<PrintJob>, jsonl: bool, refusal: &str, cx: &Cx) -> Result<(), Failure> {
    for out in receive {
        match out {
            PrintJob::Say(text, reply) => {
                let result = if jsonl { Ok(()) } else { cx.ui.data(&text) };
                // the loop may have ended
                let _ = reply.send(result);
            }
            PrintJob::Warning(text) => cx.ui.warn(&text),
            PrintJob::Event(event) if jsonl => cx.ui.json(&event)?,
            PrintJob::Event(event) => print_event(&event, refusal, cx),
        }
    }
    Ok(())
}

/// The message for a call that is refused, with what would allow it.
fn refusal(asks: bool, yes: bool) -> &'static str {
    match (asks, yes) {
        (true, _) => "not allowed",
        (false, true) => "not allowed: it is more than --yes allows; --ask asks for it",
        (false, false) => "not allowed: --ask asks for it, --yes allows it",
    }
}

/// Prints for the user what the loop does.
fn print_event(event: &Event, refusal: &str, cx: &Cx) {
    let aside = |text: &str| cx.ui.aside(Role::Dim, &in_line(text));
    match event.event_type {
        Kind::ToolCall => {
            let args = event.input.get("args").and_then(serde_json::Value::as_object);
            let args: Vec<&str> = args.into_iter().flat_map(|args| args.values()).filter_map(|v| v.as_str()).collect();
            let line: String = args.join(" ").chars().take(110).collect();
            aside(&format!(
                "{} {line}",
                event.input.get("tool").and_then(serde_json::Value::as_str).unwrap_or_default()
            ));
        }
        Kind::ApprovalDenied => aside(refusal),
        Kind::ToolError => aside(event.error.as_deref().unwrap_or_default()),
        Kind::ModelError | Kind::RuntimeError => {
            cx.ui.warn(&in_line(event.error.as_deref().unwrap_or_default()));
        }
        _ => {}
    }
}

/// Sends events to the printer.
struct EventSender(Mutex<Sender<PrintJob>>);

impl Sink for EventSender {
    fn take(&self, event: &Event) {
        // fails if the printer has ended, which also ends the loop
        let _ = self.0.lock().unwrap_or_else(PoisonError::into_inner).send(PrintJob::Event(Box::new(event.clone())));
    }
}

/// Opens the channel.
fn open(spec: &ChannelSpec, root: &Path, out: &Sender<PrintJob>) -> Result<Box<dyn Channel>, Failure> {
    let out = out.clone();
    match spec {
        ChannelSpec::Files(from, to) => {
            // fails if the printer has ended, which also ends the loop
            let warn = move |text: &str| _ = out.send(PrintJob::Warning(text.to_owned()));
            let files = Files::new(root.join(from), root.join(to), warn);
            files.check().map_err(|error| {
                Failure::usage(format!("messages cannot be read: {error}")).hint(
                    "IN of file:IN,OUT is a file that lines are appended to; from a pipe `caro loop < PIPE` reads them",
                )
            })?;
            Ok(Box::new(files))
        }
        ChannelSpec::Stdio => {
            let out = Arc::new(out);
            Ok(Box::new(Lines::new(read_stdin(Arc::downgrade(&out)), move |text: &str| {
                let closed = || io::Error::from(io::ErrorKind::BrokenPipe);
                let (reply, result) = mpsc::channel();
                out.send(PrintJob::Say(text.to_owned(), reply)).map_err(|_| closed())?;
                result.recv().map_err(|_| closed())?
            })))
        }
    }
}

/// Reads the lines of standard input in a thread of its own, which ends with the input or with the process.
///
/// `out` takes warnings. It is weak, as the thread may outlive the loop, and the printer ends with the last sender.
fn read_stdin(out: Weak<Sender<PrintJob>>) -> Receiver<String> {
    let (send, receive) = mpsc::channel();
    std::thread::spawn(move || {
        let mut input = io::stdin().lock();
        while let Ok(Some(line)) = next_line(&mut input, MAX_MESSAGE_BYTES) {
            let Ok(line) = line else {
                let _ = out.upgrade().map(|out| out.send(PrintJob::Warning(too_long())));
                continue;
            };
            let line = String::from_utf8_lossy(&line).trim_end_matches('\r').to_owned();
            if send.send(line).is_err() {
                return;
            }
        }
    });
    receive
}

/// The latest entries of a loop's history, or those around a time.
fn entries(session: &str, around: Option<&str>, limit: usize, cx: &Cx) -> Result<Vec<Entry>, Failure> {
    let limit = if around.is_some() { usize::MAX } else { limit };
    let stored = wire::existing_store(cx)?.loop_history(session, limit).map_err(wire::failure)?;
    let all: Vec<Entry> = stored.iter().filter_map(|entry| serde_json::from_str(entry).ok()).collect();
    let Some(around) = around else { return Ok(all) };
    let time = parse_time(around).ok_or_else(|| {
        Failure::usage(format!("`{around}` is not a time")).hint("for example: --around \"2026-11-27 08:00\"")
    })?;
    let lines = cx.settings(&[])?.perpetual.max_episode_recall_lines;
    Ok(episodes(&all, time, lines).to_vec())
}

fn print_history(session: &str, entries: &[Entry], metta: bool, json: bool, cx: &Cx) -> Outcome {
    cx.ui.list(json, entries, &format!("nothing has happened in the session {session} yet"), |entry| {
        if metta {
            return cx.ui.data(&entry.metta());
        }
        let time = cx.ui.entry(Role::Dim, &stamp(entry.time));
        if let Some(message) = &entry.message {
            cx.ui.line(&format!("{time}  {}", cx.ui.entry(Role::Command, message)))?;
        }
        cx.ui.line(&format!("{time}    {}", cx.ui.entry(Role::Plain, &entry.response)))?;
        entry
            .errors
            .iter()
            .try_for_each(|error| cx.ui.line(&format!("{time}    {}", cx.ui.entry(Role::Caution, error))))
    })?;
    Ok(Exit::Success)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_channel_is_named_by_its_kind() {
        assert_eq!(channel("stdio"), Ok(ChannelSpec::Stdio));
        assert_eq!(channel("file:a,b/c"), Ok(ChannelSpec::Files("a".into(), "b/c".into())));
        for wrong in ["", "irc", "file:", "file:a", "file:a,", "file:a,a", "file:log,./log", "file:a/log,a/./log"] {
            assert!(channel(wrong).unwrap_err().contains("file:IN,OUT"), "{wrong}");
        }
    }

    #[test]
    fn the_help_has_each_parameter_with_its_default() {
        let help = parameters();
        for (name, default, _) in PARAMETERS {
            assert!(help.contains(&format!("  {name}={default}: ")), "{name}");
        }
    }
}
