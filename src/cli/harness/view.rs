//! Shows a run in progress: plan, thoughts, calls, results and times. Events and questions come through one channel
//! to one thread, so that nothing is printed into a question.

use super::approve;
use crate::term::ui::{Role, Ui, plural};
use crate::{Cx, Failure};
use caro_agent::event::{Event, Kind, Sink};
use caro_agent::guard::WARNING;
use caro_agent::runtime::{Approval, Approver, Question};
use caro_agent::tool::{Outcome, is_exit_note};
use caro_agent::{Args, Call, action};
use serde_json::Value;
use std::io;
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError};

/// Most lines of a result shown.
const MAX_LINES: usize = 4;
/// Most characters of a line shown.
const MAX_WIDTH: usize = 110;

/// The part of a run that is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shows {
    /// Nothing but questions.
    Nothing,
    /// Every step, on stderr.
    Steps,
    /// Every event as JSON, on stdout.
    Jsonl,
}

/// A message to the thread that shows the run.
enum Signal {
    Event(Box<Event>),
    Ask { question: Box<Question>, reply: Sender<(Approval, Option<Args>)> },
    End,
}

/// The runtime's end of the channel.
pub struct Signals(Arc<Channel>);

struct Channel(Mutex<Sender<Signal>>);

impl Channel {
    fn send(&self, signal: Signal) {
        // if the thread has ended, the run goes on unseen
        let _ = self.0.lock().unwrap_or_else(PoisonError::into_inner).send(signal);
    }
}

impl Signals {
    /// The sink for events.
    pub fn sink(&self) -> Arc<dyn Sink> {
        self.0.clone()
    }

    /// The approver that asks the user, if that is possible.
    pub fn approver(&self, can_ask: bool) -> Option<Arc<dyn Approver>> {
        can_ask.then(|| self.0.clone() as Arc<dyn Approver>)
    }
}

impl Sink for Channel {
    fn take(&self, event: &Event) {
        self.send(Signal::Event(Box::new(event.clone())));
    }
}

impl Approver for Channel {
    fn ask(&self, question: Question) -> (Approval, Option<Args>) {
        let (reply, answer) = mpsc::channel();
        self.send(Signal::Ask { question: Box::new(question), reply });
        answer.recv().unwrap_or((Approval::No, None))
    }
}

/// Does the work while a thread shows its events; with `verbose` also the layers of the prompt.
///
/// # Errors
/// The error of the work, or of writing its events, which does not stop the work.
pub fn show_during<T>(
    cx: &Cx,
    shows: Shows,
    verbose: bool,
    work: impl FnOnce(Signals) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let (send, receive) = mpsc::channel();
    let channel = Arc::new(Channel(Mutex::new(send)));
    // from here on Ctrl-C stops the run and not the process
    cx.interrupt();
    std::thread::scope(|scope| {
        let thread = scope.spawn(move || show(cx, shows, verbose, &receive));
        let result = {
            // after a panic, too: else the thread would wait for ever, and the scope for it
            let _end = EndOnDrop(&channel);
            work(Signals(channel.clone()))
        };
        let written = thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        let value = result?;
        written?;
        Ok(value)
    })
}

/// Ends the thread that shows the run when it is dropped.
struct EndOnDrop<'a>(&'a Channel);

impl Drop for EndOnDrop<'_> {
    fn drop(&mut self) {
        self.0.send(Signal::End);
    }
}

/// Shows the signals until the end.
///
/// # Errors
/// The first error of writing an event; later events are written all the same.
fn show(cx: &Cx, shows: Shows, verbose: bool, signals: &Receiver<Signal>) -> io::Result<()> {
    let (mut status, mut written) = (None, Ok(()));
    let mut write = |event: &Event| match cx.ui.json(event) {
        // a closed pipe does not stop the run
        Err(gone) if gone.kind() == io::ErrorKind::BrokenPipe => {}
        Err(why) if written.is_ok() => written = Err(why),
        _ => {}
    };
    for signal in signals {
        match signal {
            Signal::End => break,
            Signal::Ask { question, reply } => {
                drop(status.take());
                let _ = reply.send(approve::ask(cx, &question));
            }
            Signal::Event(event) if verbose && event.event_type == Kind::ContextAssembly => {
                drop(status.take());
                layers(cx, &event);
                if shows == Shows::Jsonl {
                    write(&event);
                }
            }
            Signal::Event(event) => match shows {
                Shows::Nothing => {}
                Shows::Jsonl => write(&event),
                Shows::Steps => {
                    match event.event_type {
                        // two status lines at once could not be read
                        Kind::ModelCall => {
                            drop(status.take());
                            status = Some(cx.ui.status("thinking"));
                        }
                        Kind::ToolCall => {}
                        _ => drop(status.take()),
                    }
                    step(cx, &event);
                }
            },
        }
    }
    written
}

/// Prints the layers of the prompt: a line for each provider, and the total.
fn layers(cx: &Cx, event: &Event) {
    let number = |value: &Value, name: &str| value.get(name).and_then(Value::as_u64).unwrap_or_default();
    let list = |name: &str| event.metadata.get(name).and_then(Value::as_array).cloned().unwrap_or_default();
    let mut chars = 0;
    for layer in list("layers") {
        let name = layer.get("name").and_then(Value::as_str).unwrap_or("?");
        let (priority, tokens) = (number(&layer, "priority"), number(&layer, "tokens"));
        chars += number(&layer, "chars");
        let size = format!("priority {priority}, {tokens} tokens, {} characters", number(&layer, "chars"));
        cx.ui.fact(name, &size);
    }
    for name in list("dropped").iter().filter_map(Value::as_str) {
        cx.ui.fact(name, "left out, it did not fit");
    }
    for (name, why) in list("failed").iter().filter_map(|pair| Some((pair.get(0)?.as_str()?, pair.get(1)?.as_str()?))) {
        cx.ui.fact(name, &format!("left out, {why}"));
    }
    let (tokens, budget) = (number(&event.metadata, "tokens"), number(&event.metadata, "budget"));
    cx.ui.fact("total", &format!("{tokens} of {budget} tokens, {chars} characters"));
}

/// Shows one event, if it is of interest to the user.
fn step(cx: &Cx, event: &Event) {
    let ui = &cx.ui;
    let meta = |name: &str| event.metadata.get(name).cloned().unwrap_or_default();
    match event.event_type {
        Kind::PlanningStep => {
            let parts = meta("parts");
            let parts: Vec<&str> = parts.as_array().into_iter().flatten().filter_map(Value::as_str).collect();
            if parts.len() > 1 {
                ui.aside(Role::Dim, "plan");
                for (i, part) in parts.iter().enumerate() {
                    ui.aside(Role::Dim, &format!("  {}. {part}", i + 1));
                }
            }
        }
        Kind::ModelResponse => {
            let text = event.output.as_str().unwrap_or_default();
            let time = event.duration_ms.unwrap_or_default() / 1e3;
            if let Ok(decision) = action::read(text) {
                ui.aside_parts(&[(Role::Plain, &decision.thought), (Role::Dim, &format!("  {time:.1} s"))]);
            }
        }
        Kind::ToolCall => {
            let tool = event.input.get("tool").and_then(Value::as_str).unwrap_or_default();
            let args = event.input.get("args").and_then(Value::as_object).cloned().unwrap_or_default();
            let call = Call { id: String::new(), tool: tool.into(), args, effects: Default::default() };
            let line = short(&call.summary());
            ui.aside_parts(&[(Role::Accent, &format!("  {tool} ")), (Role::Command, &line)]);
        }
        Kind::ToolResult | Kind::ToolError => {
            let text = event.output.as_str().unwrap_or_default();
            let outcome = serde_json::from_value(meta("outcome")).unwrap_or(Outcome::Succeeded);
            let (role, shown) = match outcome {
                Outcome::Succeeded => (Role::Dim, MAX_LINES),
                Outcome::FailedLate => (Role::Caution, MAX_LINES),
                _ => (Role::Caution, 1),
            };
            let text = for_user(text);
            let lines: Vec<&str> = text.lines().filter(|l| !l.trim().is_empty()).collect();
            let more = lines.len().saturating_sub(shown);
            // the errors of a failed build are just before the note of its exit
            let exit_note = lines.iter().rposition(|line| is_exit_note(line));
            let from = match exit_note {
                Some(at) if outcome == Outcome::FailedLate => (at + 1).saturating_sub(shown),
                _ => 0,
            };
            for line in lines.iter().skip(from).take(shown) {
                ui.aside(role, &format!("    {}", short(line)));
            }
            let time = event.duration_ms.unwrap_or_default() / 1e3;
            if more > 0 || time >= 1.0 {
                let more = if more > 0 { format!("{}  ", plural(more, "more line")) } else { String::new() };
                ui.aside(Role::Dim, &format!("    {more}{time:.1} s"));
            }
        }
        Kind::SubagentSpawn => {
            let name = meta("name").as_str().unwrap_or_default().to_owned();
            ui.aside(Role::Dim, &format!("    {name}: {}", short(event.input.as_str().unwrap_or_default())));
        }
        Kind::SubagentResult => {
            let (name, path) = (meta("name"), meta("output_path"));
            let (name, path) = (name.as_str().unwrap_or_default(), path.as_str().unwrap_or_default());
            match &event.error {
                Some(error) => ui.aside(Role::Caution, &format!("    {name}: {}", short(error))),
                None => ui.aside(Role::Dim, &format!("    {name}: left {path}")),
            }
        }
        Kind::ForgeTest | Kind::ForgeWrite | Kind::ForgeScan | Kind::ForgeStagnation => forge_step(ui, event),
        Kind::GuardrailViolation => {
            ui.aside(Role::Caution, "    (what of it speaks to an AI and not to you is kept from the model)");
        }
        Kind::ContextCompression => {
            let (before, after) = (meta("before"), meta("after"));
            ui.aside(Role::Dim, &format!("(shortened what was said before: {before} to {after} tokens)"));
        }
        Kind::LoopDetected => ui.aside(Role::Caution, "it goes in circles, and has to answer now"),
        // a limit that ends a run is reported at its end
        Kind::RuntimeError | Kind::ModelError => {
            ui.aside(Role::Caution, event.error.as_deref().unwrap_or("something went wrong"));
        }
        Kind::AgentEnd => {
            let number = |name: &str| {
                event.output.pointer(&format!("/metric/{name}")).and_then(Value::as_u64).unwrap_or_default()
            };
            let steps = event.output.get("steps").and_then(Value::as_u64).unwrap_or_default();
            let time = event.duration_ms.unwrap_or_default() / 1e3;
            if steps > 0 {
                let (total, kept) = (number("total_tokens"), number("cached_tokens"));
                let plural = if steps == 1 { "" } else { "s" };
                ui.aside(Role::Dim, &format!("{steps} step{plural}, {time:.1} s, {total} tokens ({kept} kept)"));
            }
        }
        _ => {}
    }
}

/// Shows a step of the forge: tests in red and green, scripts, and what is found in them.
fn forge_step(ui: &Ui, event: &Event) {
    let number = |name: &str| event.metadata.get(name).and_then(Value::as_u64).unwrap_or_default();
    let list = |name: &str| event.metadata.get(name).and_then(Value::as_array).cloned().unwrap_or_default();
    let (failing, tests) = (list("failing").len(), number("tests"));
    match event.event_type {
        Kind::ForgeTest if failing == 0 => {
            ui.aside_parts(&[(Role::Accent, "GREEN "), (Role::Plain, &format!("{tests} of {tests} tests pass"))]);
        }
        Kind::ForgeTest => {
            let word = |name: &str| event.output.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
            let why = format!("{} {}", word("class"), word("error"));
            let line = format!("{failing} of {tests} tests fail  ");
            ui.aside_parts(&[(Role::Caution, "RED   "), (Role::Plain, &line), (Role::Dim, &short(why.trim()))]);
        }
        Kind::ForgeWrite => {
            let time = event.duration_ms.unwrap_or_default() / 1e3;
            let language = event.metadata.get("language").and_then(Value::as_str).unwrap_or_default().to_owned();
            let line =
                format!("script {} in {language}, {}", number("iteration"), plural(lines_of(&event.metadata), "line"));
            ui.aside_parts(&[(Role::Accent, "WRITE "), (Role::Plain, &line), (Role::Dim, &format!("  {time:.1} s"))]);
        }
        Kind::ForgeStagnation => ui.aside(Role::Caution, "the same tests fail in the same way again"),
        _ => {
            for finding in list("findings") {
                let word = |name: &str| finding.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
                ui.aside(Role::Caution, &format!("SCAN  {}: {}", word("rule"), short(&word("why"))));
            }
            if let Ok(scripts @ 1..) = usize::try_from(number("scripts")) {
                let agree = if event.metadata["open"].is_null() { "give the same" } else { "do not give the same" };
                let line = format!("{} that pass {agree} on other inputs", plural(scripts + 1, "script"));
                ui.aside_parts(&[(Role::Accent, "OTHER "), (Role::Plain, &line)]);
            }
        }
    }
}

/// The number of lines of a script.
fn lines_of(metadata: &Value) -> usize {
    metadata.get("lines").and_then(Value::as_u64).and_then(|n| usize::try_from(n).ok()).unwrap_or_default()
}

/// Rewords a result that is meant for the model alone.
fn for_user(text: &str) -> &str {
    if text.starts_with(WARNING) { "not run: this very call was made before" } else { text }
}

/// Truncates a line to the shown width.
fn short(line: &str) -> String {
    let mut start: String = line.chars().take(MAX_WIDTH).collect();
    if start.len() < line.len() {
        start.push_str("...");
    }
    start
}
