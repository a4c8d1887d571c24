//! Continuous batching: calls that come together are computed together, one step of all of them at a time, so that weights
//! are read once for all. For servers; a call alone is quicker through the [`Engine`] itself, which guesses ahead.
//!
//! - `slots`: which tokens of which sequences come next. A pure state machine.
//! - [`BatchedEngine`]: callers meet there. Each chooses its own tokens in its own thread; whoever finds everybody waiting
//!   computes the next step for all. No thread is kept.
//!
//! How numbers are rounded depends on what is computed together: a greedy answer may differ in its wording from the one
//! that the engine gives alone.

mod slots;
#[cfg(test)]
mod tests;

use super::generate::{Run, Sequence};
use super::{Engine, Language};
use crate::adapter::AdapterInfo;
use crate::{Cancel, Completion, Finish, Flow, Limits, Model, ModelError, Request, Usage};
use slots::{Slots, Step};
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How long a step waits for a caller that is choosing its token.
const GRACE: Duration = Duration::from_millis(3);
/// How often a caller that waits looks at its [`Cancel`].
const LOOK: Duration = Duration::from_millis(50);

/// A model that computes several calls of [`Model::generate`] together.
///
/// Prompts with an adapter or with stable turns, whose state is kept on disk, go through the engine one by one, between two
/// steps of the others.
pub struct BatchedEngine {
    engine: Arc<Engine>,
    /// Tokens of one call's prompt and completion.
    context: usize,
    meeting: Mutex<Meeting>,
    changed: Condvar,
}

/// The state that the callers share.
struct Meeting {
    slots: Slots,
    /// The logits after a slot's last token, once they are computed and until its owner takes them.
    logits: Vec<Option<Vec<f32>>>,
    /// Memory of logits that were used.
    spare: Vec<Vec<f32>>,
    /// True while somebody computes.
    is_computing: bool,
    /// Why the last step of a slot failed.
    failures: Vec<Option<String>>,
    /// Callers without a slot, in the order in which they came.
    queue: VecDeque<u64>,
    tickets: u64,
}

impl BatchedEngine {
    /// Computes at most `count` calls together, each with room for `context` tokens. `None` where the engine's device computes
    /// one at a time, or there is no memory for so many.
    pub fn new(engine: Arc<Engine>, count: usize, context: usize) -> Option<Self> {
        let count = count.max(1);
        let context = context.min(engine.context);
        if !engine.sequence().open_slots(count, context) {
            return None;
        }
        let meeting = Meeting {
            slots: Slots::new(count),
            logits: (0..count).map(|_| None).collect(),
            spare: Vec::new(),
            is_computing: false,
            failures: vec![None; count],
            queue: VecDeque::new(),
            tickets: 0,
        };
        Some(Self { engine, context, meeting: Mutex::new(meeting), changed: Condvar::new() })
    }

    /// The engine with room for as many calls as `count`, each as long as the engine takes; the engine alone where
    /// [`BatchedEngine::new`] gives none.
    pub fn or_alone(engine: Arc<Engine>, count: usize) -> Arc<dyn Model> {
        match Self::new(engine.clone(), count, engine.context) {
            Some(batched) => Arc::new(batched),
            None => engine,
        }
    }

    fn meeting(&self) -> MutexGuard<'_, Meeting> {
        // every change of it is whole when it is unlocked
        self.meeting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(&self, meeting: MutexGuard<'a, Meeting>, at_most: Duration) -> MutexGuard<'a, Meeting> {
        self.changed.wait_timeout(meeting, at_most).unwrap_or_else(PoisonError::into_inner).0
    }

    /// Takes a slot as soon as one is free, in the order of calling. `None` if cancelled.
    fn seat(&self, ids: &[u32], cancel: &Cancel) -> Option<Seat<'_>> {
        let mut meeting = self.meeting();
        meeting.tickets += 1;
        let ticket = meeting.tickets;
        meeting.queue.push_back(ticket);
        let taken = loop {
            if cancel.is_cancelled() {
                break None;
            }
            if meeting.queue.front() == Some(&ticket)
                && let Some(taken) = meeting.slots.take(ids)
            {
                meeting.logits[taken.0] = None;
                meeting.failures[taken.0] = None;
                break Some(taken);
            }
            meeting = self.wait(meeting, LOOK);
        };
        meeting.queue.retain(|&waiting| waiting != ticket);
        drop(meeting);
        self.changed.notify_all();
        taken.map(|(slot, cached)| Seat { batch: self, slot, cached })
    }

    /// Computes the next step of all callers, whose turn it is: the meeting is unlocked meanwhile.
    fn compute<'a>(&'a self, mut meeting: MutexGuard<'a, Meeting>) -> MutexGuard<'a, Meeting> {
        let step = meeting.slots.begin_step();
        let mut rows: Vec<Vec<f32>> = step.scored.iter().map(|_| meeting.spare.pop().unwrap_or_default()).collect();
        meeting.is_computing = true;
        drop(meeting);
        let turn = Turn { batch: self, step: &step };
        let result = run(&mut self.engine.sequence(), &step, &mut rows);
        turn.end(result.map(|()| rows))
    }

    fn end_step(&self, step: &Step, result: Result<Vec<Vec<f32>>, ModelError>) -> MutexGuard<'_, Meeting> {
        let mut meeting = self.meeting();
        meeting.is_computing = false;
        meeting.slots.end_step(result.is_ok());
        match result {
            Ok(rows) => {
                for (&slot, row) in step.scored.iter().zip(rows) {
                    meeting.logits[slot] = Some(row);
                }
            }
            // nothing is left of any sequence
            Err(error) => meeting.failures.fill(Some(error.to_string())),
        }
        self.changed.notify_all();
        meeting
    }

    fn complete(
        &self,
        language: &Language<'_>,
        request: &Request,
        on: &mut dyn FnMut(&str) -> Flow,
    ) -> Result<Completion, ModelError> {
        let began = Instant::now();
        let prompt = language.encode(&request.prompt, self.context)?;
        let len = prompt.ids.len();
        let room = request.max_tokens.min(self.context - len);
        let mut run = Run::new(language, request, on, room);
        let mut usage = Usage { prompt_tokens: len, ..Usage::default() };
        if room == 0 {
            return Ok(run.finish(Finish::Length, usage));
        }
        let Some(seat) = self.seat(&prompt.ids, &request.cancel) else {
            return Ok(run.finish(Finish::Cancelled, usage));
        };
        usage.cached_tokens = seat.cached;
        let mut logits = seat.logits(&request.cancel)?;
        let mut ended = match &logits {
            Some(_) => run.start_shape()?,
            None => Some(Finish::Cancelled),
        };
        usage.prefill = began.elapsed();
        let decoding = Instant::now();
        let mut pending = std::mem::take(&mut run.pending);
        let finish = loop {
            if let Some(finish) = ended {
                break finish;
            }
            if !pending.is_empty() {
                self.meeting().slots.push(seat.slot, &pending);
                logits = seat.logits(&request.cancel)?;
            }
            let Some(row) = logits.take() else { break Finish::Cancelled };
            ended = run.decide(&row)?;
            self.meeting().spare.push(row);
            pending = std::mem::take(&mut run.pending);
        };
        drop(seat);
        Ok(run.finish(finish, Usage { decode: decoding.elapsed(), ..usage }))
    }
}

/// Does what a step says; the logits go into `rows`.
fn run(sequence: &mut Sequence, step: &Step, rows: &mut [Vec<f32>]) -> Result<(), ModelError> {
    for copy in &step.copies {
        sequence.copy_slot(copy.from, copy.to, copy.len);
    }
    sequence.feed_slots(&step.tokens, step.scored.len())?;
    for (index, row) in rows.iter_mut().enumerate() {
        row.clear();
        row.extend_from_slice(sequence.logits_of_slot(index));
    }
    Ok(())
}

/// A step under way. It ends for the other callers even if computing it panics.
struct Turn<'a, 's> {
    batch: &'a BatchedEngine,
    step: &'s Step,
}

impl<'a> Turn<'a, '_> {
    fn end(self, result: Result<Vec<Vec<f32>>, ModelError>) -> MutexGuard<'a, Meeting> {
        let (batch, step) = (self.batch, self.step);
        std::mem::forget(self);
        batch.end_step(step, result)
    }
}

impl Drop for Turn<'_, '_> {
    fn drop(&mut self) {
        drop(self.batch.end_step(self.step, Err(ModelError::Engine("computing broke off".into()))));
    }
}

/// A slot that a caller has; given back when it goes.
struct Seat<'a> {
    batch: &'a BatchedEngine,
    slot: usize,
    /// Tokens of the prompt that need no computing.
    cached: usize,
}

impl Seat<'_> {
    /// The logits after all that is due; `None` if cancelled. Whoever waits here computes, when it is time.
    fn logits(&self, cancel: &Cancel) -> Result<Option<Vec<f32>>, ModelError> {
        let mut meeting = self.batch.meeting();
        let mut due = Instant::now() + GRACE;
        loop {
            if let Some(logits) = meeting.logits[self.slot].take() {
                return Ok(Some(logits));
            }
            if let Some(failure) = meeting.failures[self.slot].take() {
                return Err(ModelError::Engine(failure));
            }
            if cancel.is_cancelled() && !meeting.slots.is_under_way(self.slot) {
                return Ok(None);
            }
            if meeting.is_computing {
                meeting = self.batch.wait(meeting, LOOK);
                due = Instant::now() + GRACE;
                continue;
            }
            let left = due.saturating_duration_since(Instant::now());
            if meeting.slots.is_complete() || left.is_zero() {
                meeting = self.batch.compute(meeting);
                due = Instant::now() + GRACE;
            } else {
                meeting = self.batch.wait(meeting, left);
            }
        }
    }
}

impl Drop for Seat<'_> {
    fn drop(&mut self) {
        let mut meeting = self.batch.meeting();
        meeting.slots.release(self.slot);
        drop(meeting);
        self.batch.changed.notify_all();
    }
}

impl Model for BatchedEngine {
    fn id(&self) -> &str {
        self.engine.id()
    }

    fn limits(&self) -> Limits {
        Limits { context: self.context }
    }

    fn adapter(&self) -> Option<&AdapterInfo> {
        self.engine.adapter()
    }

    fn count(&self, text: &str) -> usize {
        self.engine.count(text)
    }

    fn concurrency(&self) -> usize {
        self.meeting().slots.count()
    }

    fn generate(&self, request: &Request, on: &mut dyn FnMut(&str) -> Flow) -> Result<Completion, ModelError> {
        if request.prompt.adapted || request.prompt.stable_messages > 0 {
            return self.engine.generate(request, on);
        }
        self.complete(&self.engine.language(), request, on)
    }

    fn sample(&self, request: &Request, count: usize) -> Result<Vec<Completion>, ModelError> {
        self.engine.sample(request, count)
    }
}

impl std::fmt::Debug for BatchedEngine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BatchedEngine").field("engine", &self.engine).finish_non_exhaustive()
    }
}
