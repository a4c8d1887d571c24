//! The loop as a pure state machine, without clock, files, model or threads. It receives events with their times and
//! returns its next need. It is plain data: stored after every step, it continues in another process.
//!
//! ```text
//! Waiting --tick--> (idle) Waiting
//!         \-tick--> Asking --answered--> Acting --ended--> ... --> Waiting
//! ```

use super::call::{SkillCall, quote};
use super::history::Entry;
use super::parameters::Parameters;
use super::sexpr::{COMMAND_FAILURE, SINGLE_FAILURE, print, read};
use super::skills::{DoneBy, MAX_CALLS, fault, skill};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Milliseconds since 1970, UTC.
pub type Millis = u64;

/// Precedes the result of a call that the previous turn has already made.
pub const REPEATED: &str = "NOT-DONE-AGAIN: it was done in the turn before, with this result:";

/// An event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// A message arrived; its number is higher than those of earlier messages.
    Message(u64, String),
    /// The wait between two turns is over.
    Tick,
    /// The model answered.
    Answered(String),
    /// The model could not answer.
    Failed(String),
    /// A skill began: until it has ended, it is unknown whether it was done.
    Began,
    /// A skill ended.
    Ended(Returned),
}

/// The result of a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Returned {
    /// The text for the model.
    pub text: String,
    /// The end of the call. States of earlier versions lack it.
    #[serde(default)]
    pub end: CallEnd,
}

/// The end of a call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum CallEnd {
    /// It was made.
    #[default]
    Done,
    /// It is not a valid call: nothing was done.
    Invalid,
    /// It is a valid call that failed or was interrupted: something may have been done.
    Broken,
}

impl Returned {
    /// Creates the result of a call that was made.
    pub fn done(text: impl Into<String>) -> Self {
        Self { text: text.into(), end: CallEnd::Done }
    }

    /// Creates the result of a call that is not valid: nothing was done.
    pub fn invalid(text: impl Into<String>) -> Self {
        Self { text: text.into(), end: CallEnd::Invalid }
    }

    /// Creates the result of a valid call that failed, or was interrupted.
    pub fn broken(text: impl Into<String>) -> Self {
        Self { text: text.into(), end: CallEnd::Broken }
    }
}

/// The next need of the machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Need {
    /// New messages, and then a tick after this time.
    Receive(Duration),
    /// An answer of the model.
    Ask(Question),
    /// The result of this call, which has effects outside the machine.
    Run(Run),
}

/// The reason why the model is asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Question {
    /// The new message, if any.
    pub message: Option<String>,
    /// True if the loop woke by itself.
    pub woken: bool,
}

/// A call to execute.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Run {
    /// The call's id, stable across restarts.
    pub id: String,
    /// The call.
    pub call: SkillCall,
    /// True if an earlier process, since killed, may have begun it.
    pub begun: bool,
}

/// A batch of calls in progress.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Batch {
    question: Question,
    calls: Vec<SkillCall>,
    returned: Vec<Returned>,
    errors: Vec<String>,
    begun: bool,
}

/// The state of the machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Phase {
    /// Before a turn; true before the first one of a process, which does not wait.
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
    /// The number of turns left (`&loops`).
    loops: u32,
    /// The latest message (`&prevmsg`).
    previous: String,
    /// The latest message's number.
    seen: u64,
    /// The results of the previous turn (`&lastresults`).
    last_results: String,
    /// The successful calls of the previous turn with their results; cleared by a new message.
    #[serde(default)]
    made: Vec<(SkillCall, String)>,
    /// The skills that the previous turn called again with the same arguments.
    #[serde(default)]
    repeated: Vec<String>,
    /// True if a text was sent since the latest message.
    #[serde(default)]
    answered: bool,
    pinned: String,
    /// The last text sent since the latest message: it is not sent twice in a row.
    last_sent: Option<String>,
    /// The time at which it wakes by itself (`&nextWakeAt`).
    next_wake: Millis,
    woken: bool,
    /// Messages that arrived during a turn.
    pending: Vec<String>,
    phase: Phase,
    /// New entries for the history, until [`Self::take_changes`].
    #[serde(skip)]
    finished: Vec<Entry>,
    #[serde(skip)]
    outgoing: Vec<String>,
    /// True if the machine has changed since [`Self::take_changes`].
    #[serde(skip)]
    changed: bool,
}

impl Perpetual {
    /// Creates a loop with the turns of a new message.
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

    /// Restores a stored loop, with the parameters of this process.
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

    /// Returns the next need.
    pub fn need(&self) -> Need {
        match &self.phase {
            Phase::Waiting(true) => Need::Receive(Duration::ZERO),
            Phase::Waiting(false) => Need::Receive(self.parameters.sleep_interval),
            Phase::Asking(question) => Need::Ask(question.clone()),
            Phase::Acting(batch) => {
                let at = batch.returned.len();
                let id = format!("t{}c{}", self.turn, at + 1);
                // the default is never used: a batch whose calls have all ended is over
                let call =
                    batch.calls.get(at).cloned().unwrap_or(SkillCall { name: String::new(), arguments: Vec::new() });
                Need::Run(Run { id, call, begun: batch.begun })
            }
        }
    }

    /// Handles an event at its time. An event that does not fit the state is ignored.
    pub fn on(&mut self, event: Event, now: Millis) {
        match (event, &mut self.phase) {
            (Event::Message(number, text), _) => self.accept_message(number, text),
            (Event::Tick, Phase::Waiting(_)) => self.begin_turn(now),
            (Event::Answered(text), Phase::Asking(question)) => {
                let question = question.clone();
                self.handle_answer(question, &text, now);
            }
            (Event::Failed(why), Phase::Asking(question)) => {
                let question = question.clone();
                self.finish_turn(question, String::new(), Vec::new(), vec![format!("MODEL_FAILURE: {why}")], now);
            }
            (Event::Began, Phase::Acting(batch)) => {
                batch.begun = true;
                self.changed = true;
            }
            (Event::Ended(returned), Phase::Acting(batch)) => {
                batch.begun = false;
                batch.returned.push(returned);
                self.run_calls(now);
            }
            _ => {}
        }
    }

    fn accept_message(&mut self, number: u64, text: String) {
        if number <= self.seen {
            return;
        }
        self.seen = number;
        self.changed = true;
        if !text.trim().is_empty() {
            self.pending.push(text.trim().to_owned());
        }
    }

    /// Begins a turn.
    fn begin_turn(&mut self, now: Millis) {
        self.turn += 1;
        if self.turn > 1 {
            self.loops = self.loops.saturating_sub(1);
        }
        let message = std::mem::take(&mut self.pending).join(" | ");
        if !message.is_empty() {
            // the same message again, while it is still worked on, is not a new task
            if message != self.previous || self.loops == 0 {
                self.loops = self.parameters.max_new_input_loops;
                self.woken = false;
            }
            self.previous.clone_from(&message);
            self.answered = false;
            // the same answer to another message is an answer
            self.last_sent = None;
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
        let message = (!message.is_empty()).then_some(message);
        self.phase = Phase::Asking(Question { message, woken: self.woken });
    }

    fn handle_answer(&mut self, question: Question, text: &str, now: Millis) {
        let mut calls = match read(text) {
            Ok(calls) => calls,
            Err(code) => {
                let errors = vec![code.to_owned()];
                return self.finish_turn(question, text.trim().to_owned(), Vec::new(), errors, now);
            }
        };
        let mut errors = Vec::new();
        if calls.len() > MAX_CALLS {
            errors.push(format!("{SINGLE_FAILURE}: only the first {MAX_CALLS} of {} calls were made", calls.len()));
            calls.truncate(MAX_CALLS);
        }
        if calls.is_empty() && self.parameters.rest_on_empty {
            // the next turn decrements this to 0
            self.loops = 1;
        }
        self.phase = Phase::Acting(Batch { question, calls, returned: Vec::new(), errors, begun: false });
        self.run_calls(now);
    }

    /// Executes pure calls up to the first one that is not; ends the turn after the last call.
    fn run_calls(&mut self, now: Millis) {
        self.changed = true;
        while let Phase::Acting(batch) = &self.phase {
            let Some(call) = batch.calls.get(batch.returned.len()).cloned() else {
                let batch = batch.clone();
                let response = print(&batch.calls);
                let pairs = batch.calls.into_iter().zip(batch.returned).collect();
                return self.finish_turn(batch.question, response, pairs, batch.errors, now);
            };
            let returned = match fault(&call) {
                Some(why) => Returned::invalid(why),
                None if skill(&call.name).is_some_and(|skill| skill.done_by == DoneBy::Machine) => self.run_pure(&call),
                None => match self.made.iter().find(|(made, _)| *made == call) {
                    // nothing has changed since: the result would be the same
                    Some((_, result)) => Returned::done(format!("{REPEATED} {result}")),
                    None => return,
                },
            };
            if let Phase::Acting(batch) = &mut self.phase {
                batch.returned.push(returned);
            }
        }
    }

    /// Executes a call that changes only the machine's own state.
    fn run_pure(&mut self, call: &SkillCall) -> Returned {
        let text = call.arguments.first().cloned().unwrap_or_default();
        if call.name == "pin" {
            self.pinned.clone_from(&text);
            return Returned::done("PIN-SUCCESS");
        }
        if text.trim().is_empty() {
            return Returned::invalid("there is nothing to send");
        }
        self.answered = true;
        if self.last_sent.as_deref() == Some(text.as_str()) {
            return Returned::done("NOT-SENT: it is what was sent last");
        }
        self.last_sent = Some(text.clone());
        self.outgoing.push(text);
        Returned::done("SEND-SUCCESS")
    }

    /// Ends a turn: stores its results for the next one, and adds an entry to the history if something happened.
    fn finish_turn(
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
            .filter(|(_, returned)| returned.end == CallEnd::Done)
            .map(|(call, r)| (call.clone(), r.text.strip_prefix(REPEATED).unwrap_or(&r.text).trim().to_owned()))
            .collect();
        for (call, returned) in calls {
            let text = match returned.end {
                CallEnd::Done => returned.text,
                CallEnd::Invalid => format!("{SINGLE_FAILURE}: {}", returned.text),
                CallEnd::Broken => format!("{COMMAND_FAILURE}: {}", returned.text),
            };
            results.push(format!("(COMMAND_RETURN: ({} {}))", call.print(), quote(&text)));
            if returned.end != CallEnd::Done {
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

    // --- accessors

    /// True if nothing is in progress and no turn is left.
    pub fn is_idle(&self) -> bool {
        // the next turn decrements the count first
        matches!(self.phase, Phase::Waiting(_))
            && self.pending.is_empty()
            && (self.turn > 0 && self.loops <= 1 || self.loops == 0)
    }

    /// True between two turns.
    pub fn is_between_turns(&self) -> bool {
        matches!(self.phase, Phase::Waiting(_))
    }

    /// Returns the number of turns so far.
    pub fn turn(&self) -> u64 {
        self.turn
    }

    /// Returns the number of the latest message.
    pub fn seen(&self) -> u64 {
        self.seen
    }

    /// Returns the latest message.
    pub fn previous(&self) -> &str {
        &self.previous
    }

    /// Returns the message that the turns work on, for the guards; empty after the loop woke by itself.
    pub fn worked_on(&self) -> &str {
        if self.woken { "" } else { &self.previous }
    }

    /// Returns the results of the previous turn.
    pub fn last_results(&self) -> &str {
        &self.last_results
    }

    /// Returns the pinned note of the current task.
    pub fn pinned(&self) -> &str {
        &self.pinned
    }

    /// True if a text was sent since the latest message.
    pub fn is_answered(&self) -> bool {
        self.answered
    }

    /// Returns the skills that the previous turn called again in vain; the grammar excludes them in this turn.
    pub fn repeated(&self) -> &[String] {
        &self.repeated
    }

    /// Returns the loop's parameters.
    pub fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    /// Takes the new entries and the texts to send, to be stored with the machine; `None` if the machine has not
    /// changed since the last call.
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
