//! The loop as a pure state machine: no clock, no file, no model, no thread. It is told events with the time at which they
//! happen, and says what it needs. Plain data: stored at every step, it goes on in another process.
//!
//! ```text
//! Waiting --tick--> (idle) Waiting
//!         \-tick--> Asking --answered--> Acting --ended--> ... --> Waiting
//! ```

use super::call::{SkillCall, quote};
use super::history::Entry;
use super::parameters::Parameters;
use super::sexpr::{SINGLE_FAILURE, print, read};
use super::skills::{DoneBy, MOST_CALLS, fault, skill};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Milliseconds since 1970, UTC.
pub type Millis = u64;

/// Precedes the result of a call that the turn before has made already.
pub const REPEATED: &str = "NOT-DONE-AGAIN: it was done in the turn before, with this result:";

/// An event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// A message came in; its number is higher than that of the one before.
    Message(u64, String),
    /// The wait between two turns is over.
    Tick,
    /// The model answered.
    Answered(String),
    /// The model could not answer.
    Failed(String),
    /// A skill began: from here on nobody knows whether it was done until it has ended.
    Began,
    /// A skill ended.
    Ended(Returned),
}

/// The result of a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Returned {
    /// The text for the model.
    pub text: String,
    /// True if it was not done.
    pub failed: bool,
}

impl Returned {
    /// The result of a call that was made.
    pub fn done(text: impl Into<String>) -> Self {
        Self { text: text.into(), failed: false }
    }

    /// The result of a call that was not made.
    pub fn failed(text: impl Into<String>) -> Self {
        Self { text: text.into(), failed: true }
    }
}

/// The next need.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Need {
    /// Messages that have come in meanwhile, and then a tick once this time is over.
    Receive(Duration),
    /// An answer of the model.
    Ask(Question),
    /// This call, which is no pure one.
    Run(Run),
}

/// Why the model is asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Question {
    /// The new message, if there is one.
    pub message: Option<String>,
    /// True if the loop has woken by itself.
    pub woken: bool,
}

/// A call to be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Run {
    /// Stable over a restart.
    pub id: String,
    /// The call.
    pub call: SkillCall,
    /// True if it may have been begun before, by a process that was ended.
    pub begun: bool,
}

/// A tuple on its way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Batch {
    question: Question,
    calls: Vec<SkillCall>,
    returned: Vec<Returned>,
    errors: Vec<String>,
    begun: bool,
}

/// Where the machine stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Phase {
    /// Before a turn; true before the first one of a process, which waits for nothing.
    Waiting(bool),
    Asking(Question),
    Acting(Batch),
}

/// The loop.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Perpetual {
    #[serde(skip)]
    parameters: Parameters,
    turn: u64,
    /// Turns that are left (`&loops`).
    loops: u32,
    /// The latest message (`&prevmsg`).
    previous: String,
    /// The latest message's number.
    seen: u64,
    /// The results of the turn before (`&lastresults`).
    last_results: String,
    /// The calls of the turn before that something came of, as long as no message has come since.
    #[serde(default)]
    made: Vec<(SkillCall, String)>,
    /// Skills that the turn before has called once more with the same texts.
    #[serde(default)]
    repeated: Vec<String>,
    /// True if anything was sent since the latest message.
    #[serde(default)]
    answered: bool,
    pinned: String,
    last_sent: Option<String>,
    /// When it wakes by itself (`&nextWakeAt`).
    next_wake: Millis,
    woken: bool,
    /// Messages that came while a turn ran.
    pending: Vec<String>,
    phase: Phase,
    /// Entries to be kept, and texts to be sent, taken by whoever stores the machine.
    #[serde(skip)]
    finished: Vec<Entry>,
    #[serde(skip)]
    outgoing: Vec<String>,
    /// True if there is anything to store.
    #[serde(skip)]
    changed: bool,
}

impl Perpetual {
    /// A loop at its very beginning: its turns are full.
    pub fn new(parameters: Parameters) -> Self {
        Self {
            turn: 0,
            loops: parameters.max_new_input_loops,
            previous: String::new(),
            seen: 0,
            last_results: String::new(),
            made: Vec::new(),
            repeated: Vec::new(),
            answered: true,
            pinned: String::new(),
            last_sent: None,
            next_wake: 0,
            woken: false,
            pending: Vec::new(),
            phase: Phase::Waiting(true),
            finished: Vec::new(),
            outgoing: Vec::new(),
            changed: true,
            parameters,
        }
    }

    /// A loop as it was stored, under the parameters of this process.
    ///
    /// # Errors
    /// If it was stored by another version.
    pub fn restore(text: &str, parameters: Parameters) -> serde_json::Result<Self> {
        let mut machine: Self = serde_json::from_str(text)?;
        machine.parameters = parameters;
        if let Phase::Waiting(first) = &mut machine.phase {
            *first = true;
        }
        Ok(machine)
    }

    /// The next need.
    pub fn need(&self) -> Need {
        match &self.phase {
            Phase::Waiting(true) => Need::Receive(Duration::ZERO),
            Phase::Waiting(false) => Need::Receive(self.parameters.sleep_interval),
            Phase::Asking(question) => Need::Ask(question.clone()),
            Phase::Acting(batch) => {
                let at = batch.returned.len();
                let id = format!("t{}c{}", self.turn, at + 1);
                // a batch whose calls have all ended is over
                let call =
                    batch.calls.get(at).cloned().unwrap_or(SkillCall { name: String::new(), arguments: Vec::new() });
                Need::Run(Run { id, call, begun: batch.begun })
            }
        }
    }

    /// Takes an event at its time. One that does not belong to where the machine stands changes nothing.
    pub fn on(&mut self, event: Event, now: Millis) {
        match (event, &mut self.phase) {
            (Event::Message(number, text), _) => self.take(number, text),
            (Event::Tick, Phase::Waiting(_)) => self.begin(now),
            (Event::Answered(text), Phase::Asking(question)) => {
                let question = question.clone();
                self.answered(question, &text, now);
            }
            (Event::Failed(why), Phase::Asking(question)) => {
                let question = question.clone();
                self.finish(question, String::new(), Vec::new(), vec![format!("MODEL_FAILURE: {why}")], now);
            }
            (Event::Began, Phase::Acting(batch)) => {
                batch.begun = true;
                self.changed = true;
            }
            (Event::Ended(returned), Phase::Acting(batch)) => {
                batch.begun = false;
                batch.returned.push(returned);
                self.advance(now);
            }
            _ => {}
        }
    }

    fn take(&mut self, number: u64, text: String) {
        if number <= self.seen {
            return;
        }
        self.seen = number;
        self.changed = true;
        if !text.trim().is_empty() {
            self.pending.push(text.trim().to_owned());
        }
    }

    /// A turn begins.
    fn begin(&mut self, now: Millis) {
        self.turn += 1;
        if self.turn > 1 {
            self.loops = self.loops.saturating_sub(1);
        }
        let message = std::mem::take(&mut self.pending).join(" | ");
        if !message.is_empty() {
            // the same words once more, while it is still at work on them, are no new task
            if message != self.previous || self.loops == 0 {
                self.loops = self.parameters.max_new_input_loops;
                self.woken = false;
            }
            self.previous.clone_from(&message);
            self.answered = false;
            self.made.clear();
            self.repeated.clear();
        }
        if self.loops == 0 {
            self.phase = Phase::Waiting(false);
            self.changed |= !message.is_empty();
            if now > self.next_wake {
                self.loops = self.parameters.max_wake_loops.saturating_add(1);
                self.woken = true;
                self.made.clear();
                self.repeated.clear();
            }
            return;
        }
        self.changed = true;
        self.next_wake = now + u64::try_from(self.parameters.wakeup_interval.as_millis()).unwrap_or(u64::MAX / 2);
        let message = Some(message).filter(|message| !message.is_empty());
        self.phase = Phase::Asking(Question { message, woken: self.woken });
    }

    fn answered(&mut self, question: Question, text: &str, now: Millis) {
        let mut calls = match read(text) {
            Ok(calls) => calls,
            Err(code) => return self.finish(question, text.trim().to_owned(), Vec::new(), vec![code.to_owned()], now),
        };
        let mut errors = Vec::new();
        if calls.len() > MOST_CALLS {
            errors.push(format!("{SINGLE_FAILURE}: only the first {MOST_CALLS} of {} calls were made", calls.len()));
            calls.truncate(MOST_CALLS);
        }
        if calls.is_empty() && self.parameters.rest_on_empty {
            // the next turn counts it down
            self.loops = 1;
        }
        self.phase = Phase::Acting(Batch { question, calls, returned: Vec::new(), errors, begun: false });
        self.advance(now);
    }

    /// Makes the calls that only change what the machine knows, up to one that does not; ends the turn behind the last.
    fn advance(&mut self, now: Millis) {
        self.changed = true;
        while let Phase::Acting(batch) = &self.phase {
            let Some(call) = batch.calls.get(batch.returned.len()).cloned() else {
                let batch = batch.clone();
                let response = print(&batch.calls);
                let pairs = batch.calls.into_iter().zip(batch.returned).collect();
                return self.finish(batch.question, response, pairs, batch.errors, now);
            };
            let returned = match fault(&call) {
                Some(why) => Returned::failed(why),
                None if skill(&call.name).is_some_and(|skill| skill.done_by == DoneBy::Machine) => self.pure(&call),
                None => match self.made.iter().find(|(made, _)| *made == call) {
                    // nothing has changed since: it would come to the same
                    Some((_, result)) => Returned::done(format!("{REPEATED} {result}")),
                    None => return,
                },
            };
            if let Phase::Acting(batch) = &mut self.phase {
                batch.returned.push(returned);
            }
        }
    }

    /// A call that only changes what the machine knows.
    fn pure(&mut self, call: &SkillCall) -> Returned {
        let text = call.arguments.first().cloned().unwrap_or_default();
        if call.name == "pin" {
            self.pinned.clone_from(&text);
            return Returned::done("PIN-SUCCESS");
        }
        if text.trim().is_empty() {
            return Returned::failed("there is nothing to send");
        }
        self.answered = true;
        if self.last_sent.as_deref() == Some(text.as_str()) {
            return Returned::done("NOT-SENT: it is what was sent last");
        }
        self.last_sent = Some(text.clone());
        self.outgoing.push(text);
        Returned::done("SEND-SUCCESS")
    }

    /// A turn ends: its results are what the next one is told, and what was new in it goes into the history.
    fn finish(
        &mut self,
        question: Question,
        response: String,
        calls: Vec<(SkillCall, Returned)>,
        mut errors: Vec<String>,
        now: Millis,
    ) {
        let mut results = Vec::new();
        let is_empty = calls.is_empty();
        let is_own = |call: &SkillCall| skill(&call.name).is_none_or(|skill| skill.done_by == DoneBy::Machine);
        let is_repeated = |returned: &Returned| returned.text.starts_with(REPEATED);
        let others = || calls.iter().filter(|(call, _)| !is_own(call));
        self.repeated = others().filter(|(_, r)| is_repeated(r)).map(|(call, _)| call.name.clone()).collect();
        self.made = others()
            .filter(|(_, returned)| !returned.failed)
            .map(|(call, r)| (call.clone(), r.text.strip_prefix(REPEATED).unwrap_or(&r.text).trim().to_owned()))
            .collect();
        for (call, returned) in calls {
            let text = match returned.failed {
                true => format!("{SINGLE_FAILURE}: {}", returned.text),
                false => returned.text,
            };
            results.push(format!("(COMMAND_RETURN: ({} {}))", call.print(), quote(&text)));
            if returned.failed {
                errors.push(format!("{} {text}", call.print()));
            }
        }
        self.last_results = format!("(RESULTS: ({}))", results.join(" "));
        if is_empty && let Some(error) = errors.first() {
            self.last_results = format!("(RESULTS: ({}))", quote(error));
        }
        if question.message.is_some() || !is_empty || !errors.is_empty() {
            self.finished.push(Entry { time: now, message: question.message, response, errors });
        }
        self.phase = Phase::Waiting(false);
        self.changed = true;
    }

    // --- what it knows

    /// True if nothing is under way and no turn is left.
    pub fn is_idle(&self) -> bool {
        // what is left at the beginning of a turn is counted down by one
        matches!(self.phase, Phase::Waiting(_))
            && self.pending.is_empty()
            && (self.turn > 0 && self.loops <= 1 || self.loops == 0)
    }

    /// True between two turns.
    pub fn is_between_turns(&self) -> bool {
        matches!(self.phase, Phase::Waiting(_))
    }

    /// Turns so far.
    pub fn turn(&self) -> u64 {
        self.turn
    }

    /// The number of the latest message.
    pub fn seen(&self) -> u64 {
        self.seen
    }

    /// The latest message.
    pub fn previous(&self) -> &str {
        &self.previous
    }

    /// The message that the turns are for, by whose words guards go; empty once it works on its own account.
    pub fn worked_on(&self) -> &str {
        if self.woken { "" } else { &self.previous }
    }

    /// The results of the turn before.
    pub fn last_results(&self) -> &str {
        &self.last_results
    }

    /// The note of the task under way.
    pub fn pinned(&self) -> &str {
        &self.pinned
    }

    /// True if anything was sent since the latest message.
    pub fn is_answered(&self) -> bool {
        self.answered
    }

    /// Skills that the turn before has called to no avail: they are not admitted in this one.
    pub fn repeated(&self) -> &[String] {
        &self.repeated
    }

    /// How it goes.
    pub fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    /// Takes the changes to be stored with the machine: new entries, and texts to be sent; nothing if it has not changed
    /// since this was last asked for.
    pub fn take_changes(&mut self) -> Option<(Vec<Entry>, Vec<String>)> {
        if !std::mem::take(&mut self.changed) {
            return None;
        }
        Some((std::mem::take(&mut self.finished), std::mem::take(&mut self.outgoing)))
    }
}

#[cfg(test)]
#[path = "machine_tests.rs"]
mod tests;
