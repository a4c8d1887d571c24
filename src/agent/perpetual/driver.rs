//! Drives the state machine of the loop: does its input and output with channel, model, tools, notes and store. The
//! machine makes the decisions.

use super::call::SkillCall;
use super::channel::Channel;
use super::history::{Entry, episodes};
use super::machine::{Event, Need, Perpetual, Question, Returned, Run};
use super::mailbox::{ChannelApprover, Mailbox};
use super::parameters::{Grammar, Parameters};
use super::prompt::fitted_prompt;
use super::seen::TurnView;
use super::skills::{DoneBy, grammar, skill, tool_call};
use crate::clock::parse_time;
use crate::event::{Actor, Draft, Kind, Sink};
use crate::harness::{Harness, HarnessError};
use crate::plan::Plan;
use crate::runtime::{Approver, Consulted, Runtime};
use crate::tool::Outcome;
use crate::turn::{AgentRun, Task};
use crate::{background, memory};
use caro_base::id;
use caro_inference::{Executor, Next, StateMachine, drive};
use caro_model::{Cancel, Request, Sampling, Shape};
use serde_json::json;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

/// Most time between two checks whether the loop should end.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Most entries of the history read for a prompt.
const HISTORY_ENTRIES: usize = 200;

/// The name of a loop's run in a session's list.
const RUN_NAME: &str = "(perpetual loop)";

/// The parts needed to run a loop.
pub struct Setup {
    /// The session to continue or to begin.
    pub session: String,
    /// The loop's parameters.
    pub parameters: Parameters,
    /// The channel for messages and answers.
    pub channel: Box<dyn Channel>,
    /// True if consent is asked for through the channel; else calls that need it are refused.
    pub asks: bool,
    /// Most turns of this process; `None` for no limit.
    pub max_turns: Option<u64>,
    /// Additional event sinks.
    pub sinks: Vec<Arc<dyn Sink>>,
    /// Stops the loop.
    pub cancel: Cancel,
}

/// The reason why a loop ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// No more messages will arrive, and nothing is left to do.
    Over,
    /// It has reached the most turns.
    Turns,
    /// It was stopped, and continues from there at its next start.
    Stopped,
}

impl StateMachine for Perpetual {
    type Need = Need;
    type End = Ended;

    fn next_step(&mut self) -> Next<Need, Ended> {
        Next::Need(self.need())
    }
}

/// Runs the loop of a session until it ends or is stopped. Needs a Tokio runtime.
///
/// # Errors
/// If another process runs it, or its channel or the store cannot be used.
pub async fn run(harness: &Harness, setup: Setup) -> Result<Ended, HarnessError> {
    let Setup { session, parameters, channel, asks, max_turns, sinks, cancel } = setup;
    let task = Task {
        run: id::fresh("run"),
        session: session.clone(),
        agent: "loop".into(),
        text: RUN_NAME.into(),
        plan: Plan::heuristic(RUN_NAME),
        max_steps: 0,
        batch: 1,
        place: String::new(),
    };
    let store = harness.events().clone();
    let mailbox = Arc::new(Mailbox::new(channel, store.clone(), session.clone()));
    let approver = ChannelApprover { mailbox: mailbox.clone(), cancel: cancel.clone() };
    let approver = asks.then(|| Arc::new(approver) as Arc<dyn Approver>);
    let runtime = harness.standing(&task, parameters.skill_timeout, sinks.clone(), approver, cancel)?;
    let state = store.loop_state(&session)?;
    let mut machine = match state.is_empty() {
        true => Perpetual::new(parameters),
        false => Perpetual::restore(&state, parameters)
            .map_err(|e| crate::store::StoreError::Damaged { id: session.clone(), reason: e.to_string() })?,
    };
    let about = json!({"agent": "loop", "session": session, "model": runtime.model.id(), "turn": machine.turn()});
    runtime.emitter.emit(Draft::new(Kind::AgentStart).metadata(about));
    let started = Instant::now();
    let last_turn = max_turns.map(|most| machine.turn() + most);
    let mut driver = Driver { harness, runtime, mailbox, session, turn: AgentRun::new(task), last_turn, sinks };
    // texts that an earlier process could not send come first
    let ended = match driver.mailbox.deliver(&driver.runtime.emitter) {
        Ok(()) => drive(&mut machine, &mut driver).await,
        Err(error) => Err(error),
    };
    let status = match &ended {
        Ok(Ended::Stopped) => "stopped",
        Ok(Ended::Over | Ended::Turns) => "completed",
        Err(_) => "failed",
    };
    let end = Draft::new(Kind::AgentEnd).took(started.elapsed()).metadata(json!({"status": status}));
    driver.runtime.emitter.emit(end);
    ended
}

/// The executor of the loop.
struct Driver<'a> {
    harness: &'a Harness,
    runtime: Runtime,
    mailbox: Arc<Mailbox>,
    session: String,
    /// The run that the guards check calls against, and that counts the costs.
    turn: AgentRun,
    last_turn: Option<u64>,
    /// Event sinks, also for the runs of background tasks.
    sinks: Vec<Arc<dyn Sink>>,
}

impl Executor<Perpetual> for Driver<'_> {
    type Error = HarnessError;

    /// Ends the loop if it is cancelled, has reached its last turn, or is over.
    fn between(&mut self, machine: &mut Perpetual) -> ControlFlow<Ended> {
        if self.runtime.cancel.is_cancelled() {
            return ControlFlow::Break(Ended::Stopped);
        }
        let turns = self.last_turn.is_some_and(|last| machine.turn() >= last && machine.is_between_turns());
        if turns {
            return ControlFlow::Break(Ended::Turns);
        }
        let is_over = machine.is_idle() && self.mailbox.is_over() && self.is_empty(machine);
        if is_over { ControlFlow::Break(Ended::Over) } else { ControlFlow::Continue(()) }
    }

    async fn execute(&mut self, machine: &mut Perpetual, need: Need) -> Result<(), HarnessError> {
        match need {
            Need::Receive(wait) => self.receive(machine, wait).await?,
            Need::Ask(question) => self.ask(machine, &question).await?,
            Need::Run(run) => self.run(machine, run).await?,
        }
        self.save(machine)
    }
}

impl Driver<'_> {
    /// True if no stored message is waiting that the machine has not seen.
    fn is_empty(&self, machine: &Perpetual) -> bool {
        let waiting = self.harness.events().messages(&self.session, machine.seen());
        waiting.is_ok_and(|waiting| waiting.is_empty())
    }

    /// Stores the machine if it has changed, with its new entries and texts, and sends pending texts.
    fn save(&self, machine: &mut Perpetual) -> Result<(), HarnessError> {
        let emitter = &self.runtime.emitter;
        if let Some((entries, outgoing)) = machine.take_changes() {
            let json = |e: serde_json::Error| std::io::Error::other(e);
            let state = emitter.document(machine).map_err(json)?;
            let entries = entries.iter().map(|entry| emitter.document(entry)).collect::<Result<Vec<_>, _>>();
            let entries = entries.map_err(json)?;
            self.harness.events().keep_loop(&self.session, &state, machine.seen(), &entries, &outgoing)?;
        }
        self.mailbox.deliver(emitter)
    }

    /// Waits between two turns, runs background tasks that are due, and passes new messages to the machine.
    async fn receive(&mut self, machine: &mut Perpetual, wait: Duration) -> Result<(), HarnessError> {
        let until = Instant::now() + wait;
        while !self.runtime.cancel.is_cancelled() {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            tokio::time::sleep(left.min(POLL_INTERVAL)).await;
            // no message can arrive: waiting is useless
            if machine.is_idle() && self.mailbox.is_over() {
                break;
            }
        }
        if self.runtime.cancel.is_cancelled() {
            return Ok(());
        }
        // a failure is reported as an event, and the tasks are tried again at the next turn
        if let Err(error) = background::run_due(self.harness, &self.runtime.cancel, self.sinks.clone()).await {
            self.runtime.emitter.emit(Draft::new(Kind::RuntimeError).error(format!("a task was not run: {error}")));
        }
        self.mailbox.collect()?;
        for (number, text) in self.harness.events().messages(&self.session, machine.seen())? {
            self.runtime.emitter.emit(Draft::new(Kind::UserMessage).by(Actor::User).input(text.clone()));
            machine.on(Event::Message(number, text), now());
        }
        machine.on(Event::Tick, now());
        Ok(())
    }

    /// Asks the model. The guards check calls against the message that the turn works on.
    async fn ask(&mut self, machine: &mut Perpetual, question: &Question) -> Result<(), HarnessError> {
        self.runtime.guards = self.harness.policy(machine.worked_on());
        let history = self.history(HISTORY_ENTRIES)?;
        let model = self.runtime.model.clone();
        let root = self.harness.root().file_name().map_or_else(|| "/".into(), |name| name.to_string_lossy());
        let view = TurnView::of(machine, question, &history, now());
        let (prompt, max_tokens) =
            fitted_prompt(&view, &root, model.limits().context, machine.parameters(), &|text| model.count(text));
        let shape = match machine.parameters().grammar {
            Grammar::On => Shape::Lark(grammar(machine.repeated())),
            Grammar::Auto if model.is_local() => Shape::Lark(grammar(machine.repeated())),
            Grammar::Auto | Grammar::Off => Shape::Text { stop: Vec::new() },
        };
        let request =
            Request { prompt, shape, sampling: Sampling::GREEDY, max_tokens, cancel: self.runtime.cancel.clone() };
        let span = format!("t{}", machine.turn());
        match self.runtime.consult(&mut self.turn, &span, "loop", request).await {
            Consulted::Said(text) => machine.on(Event::Answered(text), now()),
            Consulted::Failed(why) => machine.on(Event::Failed(why), now()),
            // the question is repeated at the next start
            Consulted::Stopped => {}
        }
        Ok(())
    }

    /// Executes a call with side effects. Its start is stored first, so that a restart knows that it may have been
    /// done.
    async fn run(&mut self, machine: &mut Perpetual, run: Run) -> Result<(), HarnessError> {
        let Run { id, call, begun } = run;
        let is_repeatable = skill(&call.name).is_some_and(|skill| skill.repeatable);
        if begun && !is_repeatable {
            let text = "it was interrupted, and nobody knows whether it was done: look before you do it again";
            machine.on(Event::Ended(Returned::broken(text)), now());
            return Ok(());
        }
        machine.on(Event::Began, now());
        self.save(machine)?;
        // set here too: after a restart the model may not have been asked in this process
        self.runtime.guards = self.harness.policy(machine.worked_on());
        let returned = match skill(&call.name).map(|skill| skill.done_by) {
            Some(DoneBy::Tool(..)) => self.call_tool(&call, id).await,
            _ => Some(self.query_memory(machine, &call)?),
        };
        if let Some(returned) = returned {
            machine.on(Event::Ended(returned), now());
        }
        Ok(())
    }

    /// Executes a tool of the agent, through its guards; `None` if it was stopped.
    async fn call_tool(&mut self, call: &SkillCall, id: String) -> Option<Returned> {
        let call = tool_call(call, id)?;
        let settled = self.runtime.perform(&mut self.turn, call).await?;
        Some(match settled.outcome {
            Outcome::Succeeded | Outcome::FailedLate => Returned::done(settled.text),
            Outcome::TimedOut => Returned::done(format!("timeout_error: {}", settled.text)),
            Outcome::Failed => Returned::broken(settled.text),
            Outcome::Blocked | Outcome::Denied => Returned::done(format!("NOT-ALLOWED: {}", settled.text)),
            Outcome::Cancelled => return None,
        })
    }

    /// Executes the skills `remember`, `query` and `episodes`.
    fn query_memory(&self, machine: &Perpetual, call: &SkillCall) -> Result<Returned, HarnessError> {
        let parameters = machine.parameters();
        let text = call.arguments.first().map(String::as_str).unwrap_or_default();
        let emitter = &self.runtime.emitter;
        Ok(match call.name.as_str() {
            "remember" => {
                let content = emitter.redacted(text);
                let draft = memory::Draft { content, run: emitter.run().to_owned(), ..memory::Draft::default() };
                match self.harness.memory().remember(draft) {
                    Ok(note) => {
                        emitter.emit(Draft::new(Kind::MemoryWrite).metadata(json!({"note": note.id})));
                        Returned::done("REMEMBER-SUCCESS")
                    }
                    Err(error) => Returned::broken(error.to_string()),
                }
            }
            "query" => match self.harness.memory().query(text, parameters.max_recall_items) {
                Ok(found) => {
                    emitter.emit(Draft::new(Kind::MemoryRead).metadata(json!({"notes": found.len()})));
                    let lines: Vec<String> = found.iter().map(|one| format!("- {}", one.note.draft.content)).collect();
                    Returned::done(if lines.is_empty() {
                        "nothing is remembered of that".into()
                    } else {
                        lines.join("\n")
                    })
                }
                Err(error) => Returned::broken(error.to_string()),
            },
            _ => {
                let Some(time) = parse_time(text) else {
                    return Ok(Returned::invalid("it takes a time, as in 2026-01-31 08:30:00"));
                };
                let history = self.history(usize::MAX)?;
                let lines = episodes(&history, time, parameters.max_episode_recall_lines).iter().map(Entry::metta);
                Returned::done(lines.collect::<Vec<_>>().join("\n"))
            }
        })
    }

    /// Returns the latest entries of the history, oldest first.
    fn history(&self, limit: usize) -> Result<Vec<Entry>, HarnessError> {
        let stored = self.harness.events().loop_history(&self.session, limit)?;
        // entries of another version are skipped
        Ok(stored.iter().filter_map(|entry| serde_json::from_str(entry).ok()).collect())
    }
}

fn now() -> u64 {
    id::millis(SystemTime::now())
}

#[cfg(test)]
#[path = "driver_tests.rs"]
mod tests;
