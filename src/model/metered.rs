//! A model whose requests are limited and counted by a meter, for a caller that hands a model on and accounts for its
//! use.

use super::adapter::AdapterInfo;
use super::{Completion, Finish, Flow, Limits, Model, ModelError, Prompt, Request, Usage};
use std::sync::Arc;

/// Limits and counts the requests to a model.
pub trait Meter: Send + Sync {
    /// Decides about a request before it is made, whose prompt may have at most `room` tokens. Returns the number of
    /// completions that may be requested; with 0 the model is not called, as if the caller had cancelled.
    ///
    /// # Errors
    /// [`ModelError::TooLong`] if the prompt has more tokens.
    fn admit(&self, prompt: &Prompt, room: usize) -> Result<usize, ModelError>;

    /// Records that the request admitted last is made. For [`Model::sample`], which may decline, it is called
    /// afterwards, if the model returned completions.
    fn on_request(&self, prompt: &Prompt, room: usize);

    /// Records the number of requests made and what they cost together.
    fn on_completed(&self, requests: u64, usage: Usage);
}

/// A model with a [`Meter`].
pub struct Metered {
    model: Arc<dyn Model>,
    meter: Arc<dyn Meter>,
}

impl Metered {
    /// Puts a model behind a meter.
    pub fn new(model: Arc<dyn Model>, meter: Arc<dyn Meter>) -> Self {
        Self { model, meter }
    }

    fn room(&self, request: &Request) -> usize {
        self.model.limits().context.saturating_sub(request.max_tokens)
    }

    /// Records the cost of several completions. Of completions that were computed together, in one request, only the
    /// first has prompt tokens; so the number of completions with prompt tokens is the number of requests.
    fn record(&self, prompt: &Prompt, room: usize, completions: &[Completion]) {
        if completions.is_empty() {
            return;
        }
        self.meter.on_request(prompt, room);
        let requests = completions.iter().filter(|c| c.usage.prompt_tokens > 0).count().max(1);
        let sum = |part: fn(&Usage) -> usize| completions.iter().map(|c| part(&c.usage)).sum();
        let usage = Usage {
            prompt_tokens: sum(|u| u.prompt_tokens),
            cached_tokens: sum(|u| u.cached_tokens),
            completion_tokens: sum(|u| u.completion_tokens),
            ..Usage::default()
        };
        self.meter.on_completed(requests as u64, usage);
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
        if self.meter.admit(&request.prompt, self.room(request))? == 0 {
            return Ok(Completion {
                text: String::new(),
                tokens: Vec::new(),
                end: None,
                finish: Finish::Cancelled,
                usage: Usage::default(),
            });
        }
        self.meter.on_request(&request.prompt, self.room(request));
        let result = self.model.generate(request, on);
        // a failed request counts too, with an unknown cost
        self.meter.on_completed(1, result.as_ref().map_or_else(|_| Usage::default(), |completion| completion.usage));
        result
    }

    fn sample(&self, request: &Request, count: usize) -> Result<Vec<Completion>, ModelError> {
        let room = self.room(request);
        let count = count.min(self.meter.admit(&request.prompt, room)?);
        if count == 0 {
            return Ok(Vec::new());
        }
        let completions = self.model.sample(request, count)?;
        self.record(&request.prompt, room, &completions);
        Ok(completions)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scripted::Scripted;
    use crate::{Cancel, Role, Sampling, Shape};
    use std::sync::Mutex;

    struct TestMeter {
        allowed: usize,
        requests: Mutex<usize>,
        completed: Mutex<Vec<(u64, usize, usize)>>,
    }

    impl Meter for TestMeter {
        fn admit(&self, prompt: &Prompt, room: usize) -> Result<usize, ModelError> {
            match prompt.messages.len() {
                tokens if tokens > room => Err(ModelError::TooLong { tokens, limit: room }),
                _ => Ok(self.allowed),
            }
        }
        fn on_request(&self, _: &Prompt, _: usize) {
            *self.requests.lock().unwrap() += 1;
        }
        fn on_completed(&self, requests: u64, usage: Usage) {
            self.completed.lock().unwrap().push((requests, usage.prompt_tokens, usage.completion_tokens));
        }
    }

    fn request(max_tokens: usize) -> Request {
        let mut prompt = Prompt::system("one two");
        prompt.push(Role::User, "three");
        let shape = Shape::Text { stop: Vec::new() };
        Request { prompt, shape, sampling: Sampling::GREEDY, max_tokens, cancel: Cancel::new() }
    }

    fn metered(allowed: usize) -> (Metered, Arc<TestMeter>) {
        let script = r#"{"context": 100, "rules": [{"reply": "a b"}]}"#;
        let meter = Arc::new(TestMeter { allowed, requests: Mutex::default(), completed: Mutex::default() });
        (Metered::new(Arc::new(Scripted::parse(script, "script").unwrap()), meter.clone()), meter)
    }

    #[test]
    fn requests_are_counted_and_made_only_if_admitted() {
        let (model, meter) = metered(2);
        assert_eq!(model.generate(&request(9), &mut |_| Flow::Continue).unwrap().text, "a b");
        // a scripted model samples one by one: each completion reads the prompt
        assert_eq!(model.sample(&request(9), 5).unwrap().len(), 2);
        assert_eq!(*meter.completed.lock().unwrap(), [(1, 3, 2), (2, 6, 4)]);
        assert!(matches!(model.sample(&request(99), 5), Err(ModelError::TooLong { tokens: 2, limit: 1 })));
        let (model, meter) = metered(0);
        let nothing = model.generate(&request(9), &mut |_| Flow::Continue).unwrap();
        assert_eq!((nothing.text.as_str(), nothing.finish), ("", Finish::Cancelled));
        assert!(model.sample(&request(9), 5).unwrap().is_empty());
        assert_eq!((*meter.requests.lock().unwrap(), meter.completed.lock().unwrap().len()), (0, 0));
    }

    #[test]
    fn completions_that_were_computed_together_are_one_request() {
        let (model, meter) = metered(9);
        let one = model.generate(&request(9), &mut |_| Flow::Continue).unwrap();
        let other = Completion { usage: Usage { completion_tokens: 4, ..Usage::default() }, ..one.clone() };
        model.record(&request(9).prompt, 9, &[one, other.clone(), other]);
        model.record(&request(9).prompt, 9, &[]);
        assert_eq!(meter.completed.lock().unwrap()[1..], [(1, 3, 10)]);
        assert_eq!(*meter.requests.lock().unwrap(), 2);
    }
}
