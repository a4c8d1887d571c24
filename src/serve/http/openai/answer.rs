//! Asks the model, one choice after the other, and tells the answer whole or as it comes.
//!
//! The choices of one request take turns, so that a request has no more than its own place among others; they share the
//! computed prompt. A client that goes away ends it at the next token.

use super::super::commands::CancelOnDrop;
use super::super::{Problem, Server, sse};
use axum::Json;
use axum::response::{IntoResponse, Response};
use caro_base::id;
use caro_inference::generate;
use caro_model::{Completion, Finish, Flow, Model, ModelError, Request, Usage};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};
use tokio::sync::mpsc;

/// How a protocol puts an answer.
pub trait Form: Send + 'static {
    /// The chunks for the next piece of a choice's text.
    fn piece(&mut self, choice: usize, text: &str) -> Vec<Value>;

    /// The chunks for the end of a choice.
    fn end(&mut self, choice: usize, completion: &Completion) -> Vec<Value>;

    /// A chunk without any choice.
    fn empty(&self) -> Value;

    /// The answer of all choices, without its usage.
    fn whole(&mut self, completions: &[Completion]) -> Value;
}

/// An answer that is wanted.
pub struct Order<F> {
    /// The model.
    pub model: Arc<dyn Model>,
    /// The requests to it, one a choice, which end by `cancel`.
    pub requests: Vec<Request>,
    /// Choices that follow one another and have the same prompt.
    pub choices: usize,
    /// Pulls the requests' own switch when nobody wants the answer any more.
    pub cancel: CancelOnDrop,
    /// True to be told it as it comes.
    pub stream: bool,
    /// True for a last chunk with the usage.
    pub include_usage: bool,
    /// How it is put.
    pub form: F,
}

/// The news of an answer.
enum News {
    Text(usize, String),
    End(Box<Completion>),
    Failed(Problem),
}

/// The head that all documents of one answer have.
#[derive(Debug, Clone)]
pub struct Head {
    id: String,
    created: u64,
    model: String,
}

impl Head {
    /// That of a new answer of this model.
    pub fn new(prefix: &str, model: &dyn Model) -> Self {
        let created = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        Self { id: id::fresh(prefix), created, model: model.id().into() }
    }

    /// A document of this kind with these choices.
    pub fn document(&self, object: &str, choices: Vec<Value>) -> Value {
        let Self { id, created, model } = self;
        json!({"id": id, "object": object, "created": created, "model": model, "choices": choices})
    }
}

/// Answers.
///
/// # Errors
/// If the model gives no answer, or cannot begin one that is told as it comes.
pub async fn answer<F: Form>(server: Arc<Server>, order: Order<F>) -> Result<Response, Problem> {
    let Order { model, requests, choices, cancel, stream, include_usage, mut form } = order;
    let (send, mut news) = mpsc::unbounded_channel();
    tokio::spawn(ask(model, requests, send));
    if !stream {
        let mut completions = Vec::new();
        while let Some(told) = news.recv().await {
            match told {
                News::Text(..) => {}
                News::End(completion) => completions.push(*completion),
                News::Failed(problem) => return Err(problem),
            }
        }
        let mut whole = form.whole(&completions);
        whole["usage"] = usage(&completions, choices);
        return Ok(Json(whole).into_response());
    }
    // what cannot begin is no stream yet: its problem has a status
    let first = match news.recv().await {
        Some(News::Failed(problem)) => return Err(problem),
        first => first,
    };
    let (events, response) = sse::stream();
    tokio::spawn(async move {
        let _cancel = cancel;
        let told = async {
            let tell = Tell { events: &events, form: &mut form, include_usage };
            match server.in_time(tell.all(first, news, choices)).await {
                Ok(told) => told,
                Err(problem) => events.data(&problem.openai().to_string()).await,
            }
        };
        tokio::select! {
            // whoever has gone by now misses nothing
            _ = told => {}
            () = events.closed() => {}
        }
    });
    Ok(response)
}

/// Asks for each choice in turn. Ends early where nobody listens any more.
async fn ask(model: Arc<dyn Model>, requests: Vec<Request>, news: mpsc::UnboundedSender<News>) {
    for (choice, request) in requests.into_iter().enumerate() {
        let pieces = news.clone();
        // at most as many pieces wait as the answer has tokens: the model waits for no reader
        let generation =
            generate(model.clone(), request, move |piece| match pieces.send(News::Text(choice, piece.to_owned())) {
                Ok(()) => Flow::Continue,
                Err(_) => Flow::Stop,
            });
        let told = match generation.await {
            Ok(completion) if completion.finish == Finish::Cancelled => {
                News::Failed(Problem::stopped().detail("ask again"))
            }
            Ok(completion) => News::End(Box::new(completion)),
            Err(error) => News::Failed(problem(error)),
        };
        let is_over = matches!(told, News::Failed(_));
        if news.send(told).is_err() || is_over {
            return;
        }
    }
}

/// Tells an answer as it comes.
struct Tell<'a, F> {
    events: &'a sse::Events,
    form: &'a mut F,
    include_usage: bool,
}

impl<F: Form> Tell<'_, F> {
    async fn all(
        mut self,
        first: Option<News>,
        mut news: mpsc::UnboundedReceiver<News>,
        choices: usize,
    ) -> Result<(), sse::Gone> {
        let (mut next, mut completions) = (first, Vec::new());
        while let Some(told) = next {
            match told {
                News::Text(choice, text) => {
                    let chunks = self.form.piece(choice, &text);
                    self.chunks(chunks).await?;
                }
                News::End(completion) => {
                    let chunks = self.form.end(completions.len(), &completion);
                    self.chunks(chunks).await?;
                    completions.push(*completion);
                }
                News::Failed(problem) => return self.events.data(&problem.openai().to_string()).await,
            }
            next = news.recv().await;
        }
        if self.include_usage {
            let mut last = self.form.empty();
            last["usage"] = usage(&completions, choices);
            self.events.data(&last.to_string()).await?;
        }
        self.events.data("[DONE]").await
    }

    async fn chunks(&mut self, chunks: Vec<Value>) -> Result<(), sse::Gone> {
        for mut chunk in chunks {
            if self.include_usage {
                chunk["usage"] = Value::Null;
            }
            self.events.data(&chunk.to_string()).await?;
        }
        Ok(())
    }
}

/// The cost of an answer: the prompt of several choices counts once.
fn usage(completions: &[Completion], choices: usize) -> Value {
    let sum = |count: fn(&Usage) -> usize, step: usize| -> usize {
        completions.iter().step_by(step.max(1)).map(|completion| count(&completion.usage)).sum()
    };
    let (prompt, completion) = (sum(|u| u.prompt_tokens, choices), sum(|u| u.completion_tokens, 1));
    json!({
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
        "prompt_tokens_details": {"cached_tokens": sum(|u| u.cached_tokens, choices)},
    })
}

/// Why the choice ended, in OpenAI's words.
pub fn reason(completion: &Completion) -> &'static str {
    if completion.finish == Finish::Length { "length" } else { "stop" }
}

/// How likely the model found each token of the text. One that its form left no choice about is certain.
pub fn logprobs(completion: &Completion) -> Value {
    // the tokens of a stop string are no part of the text
    let mut left = completion.text.len();
    let in_text = completion.tokens.iter().take_while(|token| {
        let is_in = left > 0;
        left = left.saturating_sub(token.bytes.len());
        is_in
    });
    let told = in_text.map(|token| {
        let text = String::from_utf8_lossy(&token.bytes);
        json!({"token": text, "logprob": token.logprob.unwrap_or(0.0), "bytes": token.bytes, "top_logprobs": []})
    });
    json!({"content": told.collect::<Vec<Value>>(), "refusal": null})
}

/// A model's error as a problem.
pub fn problem(error: ModelError) -> Problem {
    match error {
        ModelError::TooLong { tokens, limit } => Problem::bad_request(format!(
            "this model has a window of {limit} tokens for prompt and answer together, and the prompt has {tokens}"
        ))
        .detail("shorten it")
        .code("context_length_exceeded"),
        ModelError::BadShape(why) => {
            Problem::bad_request(format!("the answer cannot be held to the schema: {}", first_line(&why)))
                .detail("send a simpler one in `response_format` or `tools`")
                .code("invalid_schema")
        }
        error @ ModelError::Unsupported { .. } => Problem::bad_request(&error).detail(error.hint()),
        error => {
            let hint = error.hint();
            Problem::internal(error).detail(hint)
        }
    }
}

fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().chars().take(300).collect()
}

#[cfg(test)]
mod tests {
    use super::super::super::{Parts, Settings, Token};
    use super::*;
    use caro_model::scripted::Scripted;
    use caro_model::{Prompt, Sampling, Shape};
    use std::time::{Duration, Instant};

    struct Bare;

    impl Form for Bare {
        fn piece(&mut self, _: usize, text: &str) -> Vec<Value> {
            vec![json!({ "text": text })]
        }

        fn end(&mut self, _: usize, _: &Completion) -> Vec<Value> {
            Vec::new()
        }

        fn empty(&self) -> Value {
            json!({})
        }

        fn whole(&mut self, _: &[Completion]) -> Value {
            json!({})
        }
    }

    fn order(model: &Arc<dyn Model>, stream: bool) -> Order<Bare> {
        let cancel = CancelOnDrop::default();
        let request = Request {
            prompt: Prompt::raw("x"),
            shape: Shape::Text { stop: Vec::new() },
            sampling: Sampling::GREEDY,
            max_tokens: 10_000,
            cancel: cancel.0.clone(),
        };
        let requests = vec![request.clone(), request];
        Order { model: model.clone(), requests, choices: 2, cancel, stream, include_usage: false, form: Bare }
    }

    fn server() -> Arc<Server> {
        let (settings, token) = (Settings::default(), Token::random().unwrap());
        let offer = crate::mcp::tools::Offer { agent: false };
        Server::new(Parts { agent: "a".into(), settings, token, offer, log: None }, None)
    }

    /// A model that says so many words, each after this pause. Together they take longer than [`let_go`] waits, and not much: a
    /// test that fails waits for the model's thread.
    fn slow(words: usize, pause: Duration) -> Arc<dyn Model> {
        let rules = json!({"rules": [{"reply": "word ".repeat(words), "delay_ms": pause.as_millis() as u64}]});
        Arc::new(Scripted::parse(&rules.to_string(), "script").unwrap())
    }

    /// Waits until whoever had the model has let go of it.
    async fn let_go(model: &Arc<dyn Model>) {
        let begun = Instant::now();
        while Arc::strong_count(model) > 1 {
            assert!(begun.elapsed() < Duration::from_secs(20), "the model goes on");
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }

    #[tokio::test]
    async fn the_model_ends_in_the_middle_of_a_word_for_who_does_not_wait() {
        let model = slow(2, Duration::from_secs(25));
        for stream in [false, true] {
            let answering = tokio::spawn(answer(server(), order(&model, stream)));
            while Arc::strong_count(&model) < 3 {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            answering.abort();
            let_go(&model).await;
        }
    }

    #[tokio::test]
    async fn the_model_ends_with_the_reader_of_its_stream() {
        let model = slow(110, Duration::from_millis(200));
        let response = answer(server(), order(&model, true)).await.unwrap();
        assert!(Arc::strong_count(&model) > 1, "it has begun");
        drop(response);
        let_go(&model).await;
    }
}
