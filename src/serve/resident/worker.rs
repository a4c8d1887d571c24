//! The one thread of a resident that computes: it opens the model, then takes one request after the other, first come, first
//! served.

use super::client::cancelled;
use super::wire::{Refusal, Task};
use crate::model::{Completion, Flow, Model, Request};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// A request of a client.
pub(super) struct Job {
    pub request: Request,
    pub task: Task,
    /// Set when it is begun.
    pub begun: Arc<AtomicBool>,
    pub news: Sender<News>,
}

/// What a conversation is told.
pub(super) enum News {
    /// The next piece of text.
    Text(String),
    /// The whole.
    Done(Box<Completion>),
    /// Several together.
    Sampled(Vec<Completion>),
    /// It went wrong.
    Failed(String),
    /// It is wrong.
    Refused(Refusal),
    /// From the other end of the socket.
    Call(super::wire::Call),
    /// The other end is gone.
    Gone,
}

/// The model, as soon as it is open.
#[derive(Default)]
pub(super) struct Loaded {
    model: Mutex<Option<Result<Arc<dyn Model>, String>>>,
    changed: Condvar,
}

impl Loaded {
    /// The model or why there is none; `None` if it is not known after `wait`.
    pub fn wait(&self, wait: Duration) -> Option<Result<Arc<dyn Model>, String>> {
        let model = self.model.lock().unwrap_or_else(PoisonError::into_inner);
        let (model, _) =
            self.changed.wait_timeout_while(model, wait, |m| m.is_none()).unwrap_or_else(PoisonError::into_inner);
        model.clone()
    }

    pub fn set(&self, model: Result<Arc<dyn Model>, String>) {
        *self.model.lock().unwrap_or_else(PoisonError::into_inner) = Some(model);
        self.changed.notify_all();
    }
}

/// Does the jobs; `begin` is called before each with its deadline, and `done` after it.
pub(super) fn work(model: &dyn Model, jobs: &Receiver<Job>, begin: impl Fn(Option<Instant>), done: impl Fn(bool)) {
    for Job { request, task, begun, news } in jobs {
        begun.store(true, Ordering::Relaxed);
        begin(request.cancel.deadline());
        let result = catch_unwind(AssertUnwindSafe(|| {
            match &task {
                Task::Complete => {}
                Task::Sample(count) => return model.sample(&request, *count).map(News::Sampled),
                Task::Score(replies) => return model.score(replies, &request.cancel).map(News::Sampled),
            }
            // A conversation that is over wants no more text.
            let completion = model.generate(&request, &mut |text| match news.send(News::Text(text.into())) {
                Ok(()) => Flow::Continue,
                Err(_) => Flow::Stop,
            })?;
            Ok(News::Done(Box::new(completion)))
        }));
        let answered = matches!(result, Ok(Ok(_)));
        let _ = news.send(match result {
            Ok(Ok(done)) => done,
            Ok(Err(error)) => Refusal::of(&error).map_or_else(|| News::Failed(error.to_string()), News::Refused),
            Err(_) => News::Failed("it broke off".into()),
        });
        done(answered);
    }
}
