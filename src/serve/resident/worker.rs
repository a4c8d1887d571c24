//! Runs the requests of a resident on one thread, one after the other in the order in which they came.

use super::wire::{Refusal, Task};
use caro_model::{Completion, Flow, Model, Request};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// A request of a client.
pub(super) struct Job {
    pub request: Request,
    pub task: Task,
    /// Set once the job has begun.
    pub begun: Arc<AtomicBool>,
    pub events: Sender<ClientEvent>,
}

/// An event for the thread that serves one client: from its job, or from its socket.
pub(super) enum ClientEvent {
    /// The next piece of text.
    Text(String),
    /// The whole completion.
    Done(Box<Completion>),
    /// Several completions together.
    Sampled(Vec<Completion>),
    /// The job failed.
    Failed(String),
    /// The request is invalid.
    Refused(Refusal),
    /// The client sent a message.
    Call(super::wire::Call),
    /// The client closed the connection.
    Closed,
}

/// The model, once another thread has opened it.
#[derive(Default)]
pub(super) struct Loaded {
    model: Mutex<Option<Result<Arc<dyn Model>, String>>>,
    changed: Condvar,
}

impl Loaded {
    /// Returns the model, or the reason that it did not open; `None` if it is still being opened after `timeout`.
    pub fn wait(&self, timeout: Duration) -> Option<Result<Arc<dyn Model>, String>> {
        let model = self.model.lock().unwrap_or_else(PoisonError::into_inner);
        let (model, _) =
            self.changed.wait_timeout_while(model, timeout, |m| m.is_none()).unwrap_or_else(PoisonError::into_inner);
        model.clone()
    }

    pub fn set(&self, model: Result<Arc<dyn Model>, String>) {
        *self.model.lock().unwrap_or_else(PoisonError::into_inner) = Some(model);
        self.changed.notify_all();
    }
}

/// Runs the jobs. `on_begin` is called before each with its deadline, unless the job was cancelled before it began;
/// `on_end` after each with true if it succeeded.
pub(super) fn run_jobs(
    model: &dyn Model,
    jobs: &Receiver<Job>,
    on_begin: impl Fn(Option<Instant>),
    on_end: impl Fn(bool),
) {
    for Job { request, task, begun, events } in jobs {
        if request.cancel.is_cancelled() {
            // its caller has gone; computing it would replace the prompt cached for the next request
            let _ = events.send(match task {
                Task::Complete => ClientEvent::Done(Box::new(Completion::cancelled(String::new()))),
                Task::Sample(_) => ClientEvent::Sampled(Vec::new()),
            });
            on_end(false);
            continue;
        }
        begun.store(true, Ordering::Relaxed);
        on_begin(request.cancel.deadline());
        let result = catch_unwind(AssertUnwindSafe(|| {
            match &task {
                Task::Complete => {}
                Task::Sample(count) => return model.sample(&request, *count).map(ClientEvent::Sampled),
            }
            // stop if the client's thread has ended
            let completion =
                model.generate(&request, &mut |text| match events.send(ClientEvent::Text(text.into())) {
                    Ok(()) => Flow::Continue,
                    Err(_) => Flow::Stop,
                })?;
            Ok(ClientEvent::Done(Box::new(completion)))
        }));
        let succeeded = matches!(result, Ok(Ok(_)));
        let _ = events.send(match result {
            Ok(Ok(event)) => event,
            Ok(Err(error)) => {
                Refusal::of(&error).map_or_else(|| ClientEvent::Failed(error.to_string()), ClientEvent::Refused)
            }
            Err(_) => ClientEvent::Failed("it broke off".into()),
        });
        on_end(succeeded);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use caro_model::scripted::Scripted;
    use caro_model::{Cancel, Finish};
    use std::cell::RefCell;
    use std::sync::mpsc;

    /// The model caches the state of one prompt, which a cancelled job would replace.
    #[test]
    fn a_job_cancelled_while_it_waits_is_not_computed() {
        let model: Scripted = r#"{"rules": [{"replies": ["first", "second", "third", "fourth"]}]}"#.parse().unwrap();
        let (jobs, waiting) = mpsc::channel();
        let (events, received) = mpsc::channel();
        let queue = |is_cancelled: bool, task: Task| {
            let cancel = Cancel::new();
            if is_cancelled {
                cancel.cancel();
            }
            let request = Request { max_tokens: 9, ..Request::nothing(&cancel) };
            let begun = Arc::<AtomicBool>::default();
            jobs.send(Job { request, task, begun: begun.clone(), events: events.clone() }).unwrap();
            begun
        };
        let begun = [(false, Task::Complete), (true, Task::Complete), (true, Task::Sample(2)), (false, Task::Complete)]
            .map(|(is_cancelled, task)| queue(is_cancelled, task));
        drop(jobs);
        let log = RefCell::new(Vec::new());
        run_jobs(
            &model,
            &waiting,
            |_| log.borrow_mut().push("begun"),
            |succeeded| {
                log.borrow_mut().push(if succeeded { "answered" } else { "dropped" });
            },
        );
        drop(events);
        let ends: Vec<_> = received
            .iter()
            .filter_map(|event| match event {
                ClientEvent::Done(completion) => Some((completion.text, Some(completion.finish))),
                ClientEvent::Sampled(all) => Some((format!("{} completions", all.len()), None)),
                _ => None,
            })
            .collect();
        let ends: Vec<_> = ends.iter().map(|(text, finish)| (text.as_str(), *finish)).collect();
        let (stop, cancelled) = (Some(Finish::Stop), Some(Finish::Cancelled));
        assert_eq!(ends, [("first", stop), ("", cancelled), ("0 completions", None), ("second", stop)]);
        assert_eq!(*log.borrow(), ["begun", "answered", "dropped", "dropped", "begun", "answered"]);
        assert_eq!(begun.map(|begun| begun.load(Ordering::Relaxed)), [true, false, false, true]);
    }
}
