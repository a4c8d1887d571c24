//! Continuous batching: concurrent calls are computed together, one step of all of them at a time, so that the
//! weights are read once for all. For servers; a single call is faster through the [`Engine`] itself, which decodes
//! speculatively.
//!
//! - `slots`: a pure state machine that selects the tokens of the next step.
//! - [`BatchedEngine`]: each caller chooses its own tokens in its own thread; a caller that finds all others waiting
//!   computes the next step for all. There is no background thread.
//!
//! Rounding depends on what is computed together: a greedy answer may differ in its wording from that of the engine
//! alone.

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

/// The time that a step waits for a caller that is choosing its token.
const STEP_WAIT: Duration = Duration::from_millis(3);
/// The interval at which a waiting caller checks its [`Cancel`].
const CANCEL_INTERVAL: Duration = Duration::from_millis(50);

/// A model that computes several calls of [`Model::generate`] together.
///
/// Prompts with an adapter, and those with stable messages, whose state is cached on disk, go through the engine one
/// by one, between two steps of the others.
pub struct BatchedEngine {
    engine: Arc<Engine>,
    /// Most tokens of one call's prompt and completion together.
    context: usize,
    shared: Mutex<Shared>,
    changed: Condvar,
}

/// The state that the callers share.
struct Shared {
    slots: Slots,
    /// The logits after a slot's last token, from when they are computed until its owner takes them.
    logits: Vec<Option<Vec<f32>>>,
    /// Buffers of used logits, for reuse.
    spare: Vec<Vec<f32>>,
    /// True while a caller computes a step.
    is_computing: bool,
    /// The error of each slot's last step.
    failures: Vec<Option<String>>,
    /// The tickets of callers without a slot, in the order of arrival.
    queue: VecDeque<u64>,
    tickets: u64,
}

impl BatchedEngine {
    /// Returns an engine that computes at most `count` calls together, each with room for `context` tokens. `None` if
    /// the backend computes one at a time, or if there is not enough memory.
    pub fn new(engine: Arc<Engine>, count: usize, context: usize) -> Option<Self> {
        let count = count.max(1);
        let context = context.min(engine.context);
        if !engine.sequence().open_slots(count, context) {
            return None;
        }
        let shared = Shared {
            slots: Slots::new(count),
            logits: (0..count).map(|_| None).collect(),
            spare: Vec::new(),
            is_computing: false,
            failures: vec![None; count],
            queue: VecDeque::new(),
            tickets: 0,
        };
        Some(Self { engine, context, shared: Mutex::new(shared), changed: Condvar::new() })
    }

    /// Returns an engine for `count` calls, each with the engine's whole context; the engine itself if
    /// [`BatchedEngine::new`] returns `None`.
    pub fn or_alone(engine: Arc<Engine>, count: usize) -> Arc<dyn Model> {
        match Self::new(engine.clone(), count, engine.context) {
            Some(batched) => Arc::new(batched),
            None => engine,
        }
    }

    fn shared(&self) -> MutexGuard<'_, Shared> {
        // the state is consistent whenever it is unlocked
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(&self, shared: MutexGuard<'a, Shared>, at_most: Duration) -> MutexGuard<'a, Shared> {
        self.changed.wait_timeout(shared, at_most).unwrap_or_else(PoisonError::into_inner).0
    }

    /// Takes a slot as soon as one is free, in the order of arrival. `None` if cancelled.
    fn take_slot(&self, ids: &[u32], cancel: &Cancel) -> Option<SlotGuard<'_>> {
        let mut shared = self.shared();
        shared.tickets += 1;
        let ticket = shared.tickets;
        shared.queue.push_back(ticket);
        let taken = loop {
            if cancel.is_cancelled() {
                break None;
            }
            if shared.queue.front() == Some(&ticket)
                && let Some(taken) = shared.slots.take(ids)
            {
                shared.logits[taken.0] = None;
                shared.failures[taken.0] = None;
                break Some(taken);
            }
            shared = self.wait(shared, CANCEL_INTERVAL);
        };
        shared.queue.retain(|&waiting| waiting != ticket);
        drop(shared);
        self.changed.notify_all();
        taken.map(|(slot, cached)| SlotGuard { batch: self, slot, cached })
    }

    /// Computes the next step of all callers; the shared state is unlocked meanwhile.
    fn compute<'a>(&'a self, mut shared: MutexGuard<'a, Shared>) -> MutexGuard<'a, Shared> {
        let step = shared.slots.begin_step();
        let mut rows: Vec<Vec<f32>> = step.scored.iter().map(|_| shared.spare.pop().unwrap_or_default()).collect();
        shared.is_computing = true;
        drop(shared);
        let guard = StepGuard { batch: self, step: &step };
        let result = run(&mut self.engine.sequence(), &step, &mut rows);
        guard.end(result.map(|()| rows))
    }

    fn end_step(&self, step: &Step, result: Result<Vec<Vec<f32>>, ModelError>) -> MutexGuard<'_, Shared> {
        let mut shared = self.shared();
        shared.is_computing = false;
        shared.slots.end_step(result.is_ok());
        match result {
            Ok(rows) => {
                for (&slot, row) in step.scored.iter().zip(rows) {
                    shared.logits[slot] = Some(row);
                }
            }
            // the state of all sequences is lost
            Err(error) => shared.failures.fill(Some(error.to_string())),
        }
        self.changed.notify_all();
        shared
    }

    fn complete(
        &self,
        language: &Language<'_>,
        request: &Request,
        on: &mut dyn FnMut(&str) -> Flow,
    ) -> Result<Completion, ModelError> {
        let start = Instant::now();
        let prompt = language.encode(&request.prompt, self.context)?;
        let len = prompt.ids.len();
        let room = request.max_tokens.min(self.context - len);
        let mut run = Run::new(language, request, on, room);
        let mut usage = Usage { prompt_tokens: len, ..Usage::default() };
        if room == 0 {
            return Ok(run.finish(Finish::Length, usage));
        }
        let Some(guard) = self.take_slot(&prompt.ids, &request.cancel) else {
            return Ok(run.finish(Finish::Cancelled, usage));
        };
        usage.cached_tokens = guard.cached;
        let mut logits = guard.logits(&request.cancel)?;
        let mut ended = match &logits {
            Some(_) => run.start_shape()?,
            None => Some(Finish::Cancelled),
        };
        usage.prefill = start.elapsed();
        let decode_start = Instant::now();
        let mut pending = std::mem::take(&mut run.pending);
        let finish = loop {
            if let Some(finish) = ended {
                break finish;
            }
            if !pending.is_empty() {
                self.shared().slots.push(guard.slot, &pending);
                logits = guard.logits(&request.cancel)?;
            }
            let Some(row) = logits.take() else { break Finish::Cancelled };
            ended = run.decide(&row)?;
            self.shared().spare.push(row);
            pending = std::mem::take(&mut run.pending);
        };
        drop(guard);
        Ok(run.finish(finish, Usage { decode: decode_start.elapsed(), ..usage }))
    }
}

/// Computes a step, and writes the logits to `rows`.
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

/// A step being computed. It ends for the other callers even if computing it panics.
struct StepGuard<'a, 's> {
    batch: &'a BatchedEngine,
    step: &'s Step,
}

impl<'a> StepGuard<'a, '_> {
    fn end(self, result: Result<Vec<Vec<f32>>, ModelError>) -> MutexGuard<'a, Shared> {
        let (batch, step) = (self.batch, self.step);
        std::mem::forget(self);
        batch.end_step(step, result)
    }
}

impl Drop for StepGuard<'_, '_> {
    fn drop(&mut self) {
        drop(self.batch.end_step(self.step, Err(ModelError::Engine("computing broke off".into()))));
    }
}

/// A slot that a caller owns; released on drop.
struct SlotGuard<'a> {
    batch: &'a BatchedEngine,
    slot: usize,
    /// Tokens of the prompt that need no computing.
    cached: usize,
}

impl SlotGuard<'_> {
    /// Waits for the logits after all pending tokens; `None` if cancelled. Computes the next step itself once all
    /// callers wait, or [`STEP_WAIT`] has passed.
    fn logits(&self, cancel: &Cancel) -> Result<Option<Vec<f32>>, ModelError> {
        let mut shared = self.batch.shared();
        let mut deadline = Instant::now() + STEP_WAIT;
        loop {
            if let Some(logits) = shared.logits[self.slot].take() {
                return Ok(Some(logits));
            }
            if let Some(failure) = shared.failures[self.slot].take() {
                return Err(ModelError::Engine(failure));
            }
            if cancel.is_cancelled() && !shared.slots.is_in_step(self.slot) {
                return Ok(None);
            }
            if shared.is_computing {
                shared = self.batch.wait(shared, CANCEL_INTERVAL);
                deadline = Instant::now() + STEP_WAIT;
                continue;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if shared.slots.is_ready() || left.is_zero() {
                shared = self.batch.compute(shared);
                deadline = Instant::now() + STEP_WAIT;
            } else {
                shared = self.batch.wait(shared, left);
            }
        }
    }
}

impl Drop for SlotGuard<'_> {
    fn drop(&mut self) {
        let mut shared = self.batch.shared();
        shared.slots.release(self.slot);
        drop(shared);
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
        self.shared().slots.count()
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
