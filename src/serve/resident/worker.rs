//! The one thread of a resident that computes: it opens the model, then takes one request after the other, first come, first
//! served.

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

/// Does the jobs; `begin` is called before each with its deadline, unless it is not done at all, and `done` after it.
pub(super) fn work(model: &dyn Model, jobs: &Receiver<Job>, begin: impl Fn(Option<Instant>), done: impl Fn(bool)) {
    for Job { request, task, begun, news } in jobs {
        if request.cancel.is_cancelled() {
            // Its caller has gone: it would cost the next one what is kept of a prompt.
            let _ = news.send(match task {
                Task::Complete => News::Done(Box::new(Completion::cancelled(String::new()))),
                Task::Sample(_) => News::Sampled(Vec::new()),
            });
            done(false);
            continue;
        }
        begun.store(true, Ordering::Relaxed);
        begin(request.cancel.deadline());
        let result = catch_unwind(AssertUnwindSafe(|| {
            match &task {
                Task::Complete => {}
                Task::Sample(count) => return model.sample(&request, *count).map(News::Sampled),
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

#[cfg(test)]
mod tests {
    use super::*;
    use caro_model::scripted::Scripted;
    use caro_model::{Cancel, Finish};
    use std::cell::RefCell;
    use std::sync::mpsc;

    /// The model keeps the state of one prompt: whoever left would cost the next caller its own.
    #[test]
    fn a_caller_that_has_gone_is_not_computed_for() {
        let model: Scripted = r#"{"rules": [{"replies": ["first", "second", "third", "fourth"]}]}"#.parse().unwrap();
        let (jobs, waiting) = mpsc::channel();
        let (news, told) = mpsc::channel();
        let queue = |gone: bool, task: Task| {
            let cancel = Cancel::new();
            if gone {
                cancel.cancel();
            }
            let request = Request { max_tokens: 9, ..Request::nothing(&cancel) };
            let begun = Arc::<AtomicBool>::default();
            jobs.send(Job { request, task, begun: begun.clone(), news: news.clone() }).unwrap();
            begun
        };
        let begun = [(false, Task::Complete), (true, Task::Complete), (true, Task::Sample(2)), (false, Task::Complete)]
            .map(|(gone, task)| queue(gone, task));
        drop(jobs);
        let log = RefCell::new(Vec::new());
        work(
            &model,
            &waiting,
            |_| log.borrow_mut().push("begun"),
            |done| {
                log.borrow_mut().push(if done { "answered" } else { "dropped" });
            },
        );
        drop(news);
        let ends: Vec<_> = told
            .iter()
            .filter_map(|news| match news {
                News::Done(done) => Some((done.text, Some(done.finish))),
                News::Sampled(all) => Some((format!("{} completions", all.len()), None)),
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
