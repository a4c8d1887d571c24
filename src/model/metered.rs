//! A model under watch: before each request somebody says whether it may be made, and behind it is told what it cost. For
//! whoever hands a model on to others and answers for what they spend.

use super::adapter::AdapterInfo;
use super::{Completion, Finish, Flow, Limits, Model, ModelError, Prompt, Request, Usage};
use std::sync::Arc;

/// Whoever watches.
pub trait Meter: Send + Sync {
    /// A request is due, whose prompt may have `room` tokens; returns how many completions may be asked for. With none the
    /// model is not asked, as if the caller had pulled its [`Cancel`](super::Cancel).
    ///
    /// # Errors
    /// [`ModelError::TooLong`] if the prompt has more.
    fn due(&self, prompt: &Prompt, room: usize) -> Result<usize, ModelError>;

    /// The request that was last due is made. Where a model may decline, this is told when it has not.
    fn asked(&self, prompt: &Prompt, room: usize);

    /// So many requests were made, and cost this together.
    fn made(&self, requests: u64, usage: Usage);
}

/// The model.
pub struct Metered {
    model: Arc<dyn Model>,
    meter: Arc<dyn Meter>,
}

impl Metered {
    /// The model with somebody who watches it.
    pub fn new(model: Arc<dyn Model>, meter: Arc<dyn Meter>) -> Self {
        Self { model, meter }
    }

    fn room(&self, request: &Request) -> usize {
        self.model.limits().context.saturating_sub(request.max_tokens)
    }

    /// Tells what several completions cost. Those that were computed together say it once, with the first of them, and are
    /// one request; so each one that says that it had a prompt was asked for by itself.
    fn tell(&self, prompt: &Prompt, room: usize, completions: &[Completion]) {
        if completions.is_empty() {
            return;
        }
        self.meter.asked(prompt, room);
        let requests = completions.iter().filter(|c| c.usage.prompt_tokens > 0).count().max(1);
        let sum = |part: fn(&Usage) -> usize| completions.iter().map(|c| part(&c.usage)).sum();
        let usage = Usage {
            prompt_tokens: sum(|u| u.prompt_tokens),
            cached_tokens: sum(|u| u.cached_tokens),
            completion_tokens: sum(|u| u.completion_tokens),
            ..Usage::default()
        };
        self.meter.made(requests as u64, usage);
    }
}

impl Model for Metered {
    fn id(&self) -> &str {
        self.model.id()
    }

    fn limits(&self) -> Limits {
        self.model.limits()
    }

    fn is_local(&self) -> bool {
        self.model.is_local()
    }

    fn adapter(&self) -> Option<&AdapterInfo> {
        self.model.adapter()
    }

    fn count(&self, text: &str) -> usize {
        self.model.count(text)
    }

    fn generate(&self, request: &Request, on: &mut dyn FnMut(&str) -> Flow) -> Result<Completion, ModelError> {
        if self.meter.due(&request.prompt, self.room(request))? == 0 {
            return Ok(Completion {
                text: String::new(),
                tokens: Vec::new(),
                end: None,
                finish: Finish::Cancelled,
                usage: Usage::default(),
            });
        }
        self.meter.asked(&request.prompt, self.room(request));
        let made = self.model.generate(request, on);
        // one that failed was made all the same; what it cost nobody says
        self.meter.made(1, made.as_ref().map_or_else(|_| Usage::default(), |completion| completion.usage));
        made
    }

    fn sample(&self, request: &Request, count: usize) -> Result<Vec<Completion>, ModelError> {
        let room = self.room(request);
        let count = count.min(self.meter.due(&request.prompt, room)?);
        if count == 0 {
            return Ok(Vec::new());
        }
        let made = self.model.sample(request, count)?;
        self.tell(&request.prompt, room, &made);
        Ok(made)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scripted::Scripted;
    use crate::{Cancel, Role, Sampling, Shape};
    use std::sync::Mutex;

    struct Watch {
        left: usize,
        asked: Mutex<usize>,
        made: Mutex<Vec<(u64, usize, usize)>>,
    }

    impl Meter for Watch {
        fn due(&self, prompt: &Prompt, room: usize) -> Result<usize, ModelError> {
            match prompt.messages.len() {
                tokens if tokens > room => Err(ModelError::TooLong { tokens, limit: room }),
                _ => Ok(self.left),
            }
        }
        fn asked(&self, _: &Prompt, _: usize) {
            *self.asked.lock().unwrap() += 1;
        }
        fn made(&self, requests: u64, usage: Usage) {
            self.made.lock().unwrap().push((requests, usage.prompt_tokens, usage.completion_tokens));
        }
    }

    fn request(max_tokens: usize) -> Request {
        let mut prompt = Prompt::system("one two");
        prompt.push(Role::User, "three");
        let shape = Shape::Text { stop: Vec::new() };
        Request { prompt, shape, sampling: Sampling::GREEDY, max_tokens, cancel: Cancel::new() }
    }

    fn watched(left: usize) -> (Metered, Arc<Watch>) {
        let script = r#"{"context": 100, "rules": [{"reply": "a b"}]}"#;
        let watch = Arc::new(Watch { left, asked: Mutex::default(), made: Mutex::default() });
        (Metered::new(Arc::new(Scripted::parse(script, "script").unwrap()), watch.clone()), watch)
    }

    #[test]
    fn what_is_asked_is_told_and_what_is_not_allowed_is_not_asked() {
        let (model, watch) = watched(2);
        assert_eq!(model.generate(&request(9), &mut |_| Flow::Continue).unwrap().text, "a b");
        // a script asks one after the other: each reads the prompt
        assert_eq!(model.sample(&request(9), 5).unwrap().len(), 2);
        assert_eq!(*watch.made.lock().unwrap(), [(1, 3, 2), (2, 6, 4)]);
        assert!(matches!(model.sample(&request(99), 5), Err(ModelError::TooLong { tokens: 2, limit: 1 })));
        let (model, watch) = watched(0);
        let nothing = model.generate(&request(9), &mut |_| Flow::Continue).unwrap();
        assert_eq!((nothing.text.as_str(), nothing.finish), ("", Finish::Cancelled));
        assert!(model.sample(&request(9), 5).unwrap().is_empty());
        assert_eq!((*watch.asked.lock().unwrap(), watch.made.lock().unwrap().len()), (0, 0));
    }

    #[test]
    fn completions_that_were_computed_together_are_one_request() {
        let (model, watch) = watched(9);
        let one = model.generate(&request(9), &mut |_| Flow::Continue).unwrap();
        let lane = Completion { usage: Usage { completion_tokens: 4, ..Usage::default() }, ..one.clone() };
        model.tell(&request(9).prompt, 9, &[one, lane.clone(), lane]);
        model.tell(&request(9).prompt, 9, &[]);
        assert_eq!(watch.made.lock().unwrap()[1..], [(1, 3, 10)]);
        assert_eq!(*watch.asked.lock().unwrap(), 2);
    }
}
