//! Asks the model, one choice after the other, and sends the answer complete or as a stream.
//!
//! The choices of one request are computed in sequence, so that a request takes only one place; they share the
//! prefill of the prompt. If the client disconnects, the model stops at the next token.

use super::super::commands::CancelOnDrop;
use super::super::{Problem, Server, sse};
use axum::Json;
use axum::response::{IntoResponse, Response};
use caro_base::id;
use caro_inference::generate;
use caro_model::{Completion, Finish, Flow, Model, ModelError, Request, Token, Usage};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};
use tokio::sync::mpsc;

/// The form of an answer in JSON, which differs between routes.
pub trait Form: Send + 'static {
    /// Returns the chunks for the next piece of a choice's text.
    fn piece(&mut self, choice: usize, text: &str) -> Vec<Value>;

    /// Returns the chunks for the end of a choice.
    fn end(&mut self, choice: usize, completion: &Completion) -> Vec<Value>;

    /// Returns a chunk without a choice.
    fn empty(&self) -> Value;

    /// Returns the complete answer with all choices, without the usage.
    fn complete(&mut self, completions: &[Completion]) -> Value;
}

/// An order for an answer.
pub struct Order<F> {
    /// The model.
    pub model: Arc<dyn Model>,
    /// The requests to it, one per choice, which `cancel` stops.
    pub requests: Vec<Request>,
    /// The number of consecutive requests with the same prompt.
    pub choices: usize,
    /// Stops the requests when the answer is no longer wanted.
    pub cancel: CancelOnDrop,
    /// True to stream the answer.
    pub stream: bool,
    /// True to send the usage in a last chunk.
    pub include_usage: bool,
    /// The form of the answer.
    pub form: F,
}

/// An update from the model.
enum Update {
    Text(usize, String),
    End(Box<Completion>),
    Failed(Problem),
}

/// The fields shared by all documents of one answer.
#[derive(Debug, Clone)]
pub struct Head {
    id: String,
    created: u64,
    model: String,
}

impl Head {
    /// Creates the head of a new answer.
    pub fn new(prefix: &str, model: &dyn Model) -> Self {
        let created = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        Self { id: id::fresh(prefix), created, model: model.id().into() }
    }

    /// Returns a document of this kind with these choices.
    pub fn document(&self, object: &str, choices: Vec<Value>) -> Value {
        let Self { id, created, model } = self;
        json!({"id": id, "object": object, "created": created, "model": model, "choices": choices})
    }
}

/// Computes and sends an answer.
///
/// # Errors
/// If the model gives no answer, or a streamed answer cannot start.
pub async fn answer<F: Form>(server: Arc<Server>, order: Order<F>) -> Result<Response, Problem> {
    let Order { model, requests, choices, cancel, stream, include_usage, mut form } = order;
    let (send, mut updates) = mpsc::unbounded_channel();
    tokio::spawn(ask(model, requests, send));
    if !stream {
        let mut completions = Vec::new();
        while let Some(update) = updates.recv().await {
            match update {
                Update::Text(..) => {}
                Update::End(completion) => completions.push(*completion),
                Update::Failed(problem) => return Err(problem),
            }
        }
        let mut complete = form.complete(&completions);
        complete["usage"] = usage(&completions, choices);
        return Ok(Json(complete).into_response());
    }
    // an error before the first text is a response with a status, not yet a stream
    let first = match updates.recv().await {
        Some(Update::Failed(problem)) => return Err(problem),
        first => first,
    };
    let (events, response) = sse::stream();
    tokio::spawn(async move {
        let _cancel = cancel;
        let streaming = async {
            let streamer = Streamer { events: &events, form: &mut form, include_usage };
            match server.within_timeout(streamer.run(first, updates, choices)).await {
                Ok(result) => result,
                Err(problem) => events.send_data(&problem.openai().to_string()).await,
            }
        };
        tokio::select! {
            // fails only if the client has disconnected
            _ = streaming => {}
            () = events.closed() => {}
        }
    });
    Ok(response)
}

/// Asks the model for each choice in turn. Ends early if the receiver is dropped.
async fn ask(model: Arc<dyn Model>, requests: Vec<Request>, updates: mpsc::UnboundedSender<Update>) {
    for (choice, request) in requests.into_iter().enumerate() {
        let pieces = updates.clone();
        // unbounded, so that the model never waits for a reader; at most one piece per token waits
        let generation =
            generate(model.clone(), request, move |piece| match pieces.send(Update::Text(choice, piece.to_owned())) {
                Ok(()) => Flow::Continue,
                Err(_) => Flow::Stop,
            });
        let last = match generation.await {
            Ok(completion) if completion.finish == Finish::Cancelled => {
                Update::Failed(Problem::stopped().detail("ask again"))
            }
            Ok(completion) => Update::End(Box::new(completion)),
            Err(error) => Update::Failed(problem(error)),
        };
        let has_failed = matches!(last, Update::Failed(_));
        if updates.send(last).is_err() || has_failed {
            return;
        }
    }
}

/// Streams an answer.
struct Streamer<'a, F> {
    events: &'a sse::Events,
    form: &'a mut F,
    include_usage: bool,
}

impl<F: Form> Streamer<'_, F> {
    async fn run(
        mut self,
        first: Option<Update>,
        mut updates: mpsc::UnboundedReceiver<Update>,
        choices: usize,
    ) -> Result<(), sse::Disconnected> {
        let (mut next, mut completions) = (first, Vec::new());
        while let Some(update) = next {
            match update {
                Update::Text(choice, text) => {
                    let chunks = self.form.piece(choice, &text);
                    self.send(chunks).await?;
                }
                Update::End(completion) => {
                    let chunks = self.form.end(completions.len(), &completion);
                    self.send(chunks).await?;
                    completions.push(*completion);
                }
                Update::Failed(problem) => return self.events.send_data(&problem.openai().to_string()).await,
            }
            next = updates.recv().await;
        }
        if self.include_usage {
            let mut last = self.form.empty();
            last["usage"] = usage(&completions, choices);
            self.events.send_data(&last.to_string()).await?;
        }
        self.events.send_data("[DONE]").await
    }

    async fn send(&mut self, chunks: Vec<Value>) -> Result<(), sse::Disconnected> {
        for mut chunk in chunks {
            if self.include_usage {
                chunk["usage"] = Value::Null;
            }
            self.events.send_data(&chunk.to_string()).await?;
        }
        Ok(())
    }
}

/// The usage of an answer in tokens. The prompt of several choices counts once.
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

/// Returns the reason that a choice ended, in OpenAI's terms.
pub fn finish_reason(completion: &Completion) -> &'static str {
    if completion.finish == Finish::Length { "length" } else { "stop" }
}

/// Returns the tokens of the text, without those of a stop string.
pub fn text_tokens(completion: &Completion) -> impl Iterator<Item = &Token> {
    let mut left = completion.text.len();
    completion.tokens.iter().take_while(move |token| {
        let is_in = left > 0;
        left = left.saturating_sub(token.bytes.len());
        is_in
    })
}

/// Returns the log probability of each token of the text; 0 for a token that the grammar determined.
pub fn logprobs(completion: &Completion) -> Value {
    let tokens = text_tokens(completion).map(|token| {
        let text = String::from_utf8_lossy(&token.bytes);
        json!({"token": text, "logprob": token.logprob.unwrap_or(0.0), "bytes": token.bytes, "top_logprobs": []})
    });
    json!({"content": tokens.collect::<Vec<Value>>(), "refusal": null})
}

/// Converts a model's error to a problem.
pub fn problem(error: ModelError) -> Problem {
    match error {
        ModelError::TooLong { tokens, limit } => Problem::bad_request(format!(
            "this model has a window of {limit} tokens for prompt and answer together, and the prompt has {tokens}"
        ))
        .detail("shorten it")
        .code("context_length_exceeded"),
        ModelError::BadShape(why) => {
            Problem::bad_request(format!("the answer cannot be held to the schema: {}", in_one_line(&why)))
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

/// Returns the first line of a message; a line that announces the cause is followed by the last one, which names it:
/// `regex parse error:`, the pattern with a mark below, `error: look-around ... is not supported`.
fn in_one_line(text: &str) -> String {
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let first = lines.next().unwrap_or_default();
    let line = match lines.next_back() {
        Some(cause) if first.ends_with(':') => format!("{first} {}", cause.trim_start_matches("error: ")),
        _ => first.trim_end_matches(':').to_owned(),
    };
    line.chars().take(300).collect()
}

#[cfg(test)]
mod tests {
    use super::super::super::{Parts, Settings, Token};
    use super::*;
    use caro_model::scripted::Scripted;
    use caro_model::{Prompt, Sampling, Shape};
    use std::time::{Duration, Instant};

    struct PlainForm;

    impl Form for PlainForm {
        fn piece(&mut self, _: usize, text: &str) -> Vec<Value> {
            vec![json!({ "text": text })]
        }

        fn end(&mut self, _: usize, _: &Completion) -> Vec<Value> {
            Vec::new()
        }

        fn empty(&self) -> Value {
            json!({})
        }

        fn complete(&mut self, _: &[Completion]) -> Value {
            json!({})
        }
    }

    fn order(model: &Arc<dyn Model>, stream: bool) -> Order<PlainForm> {
        let cancel = CancelOnDrop::default();
        let request = Request {
            prompt: Prompt::raw("x"),
            shape: Shape::Text { stop: Vec::new() },
            sampling: Sampling::GREEDY,
            max_tokens: 10_000,
            cancel: cancel.0.clone(),
        };
        let requests = vec![request.clone(), request];
        Order { model: model.clone(), requests, choices: 2, cancel, stream, include_usage: false, form: PlainForm }
    }

    fn server() -> Arc<Server> {
        let (settings, token) = (Settings::default(), Token::random().unwrap());
        let offer = crate::mcp::tools::Offer { agent: false };
        Server::new(Parts { agent: "a".into(), settings, token, offer, log: None }, None)
    }

    /// Creates a model that generates `words` words, each after `pause`. Together they should take a little longer
    /// than [`wait_until_released`] waits: a test that fails waits for the model's thread.
    fn slow(words: usize, pause: Duration) -> Arc<dyn Model> {
        let rules = json!({"rules": [{"reply": "word ".repeat(words), "delay_ms": pause.as_millis() as u64}]});
        Arc::new(Scripted::parse(&rules.to_string(), "script").unwrap())
    }

    /// Waits until all other references to the model are dropped.
    async fn wait_until_released(model: &Arc<dyn Model>) {
        let start = Instant::now();
        while Arc::strong_count(model) > 1 {
            assert!(start.elapsed() < Duration::from_secs(20), "the model goes on");
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }

    #[tokio::test]
    async fn the_model_stops_at_once_when_the_request_is_dropped() {
        let model = slow(2, Duration::from_secs(25));
        for stream in [false, true] {
            let answering = tokio::spawn(answer(server(), order(&model, stream)));
            while Arc::strong_count(&model) < 3 {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            answering.abort();
            wait_until_released(&model).await;
        }
    }

    #[test]
    fn a_message_names_its_cause() {
        let regex = "regex parse error:\n    (?=x)y\n    ^^^\nerror: look-around is not supported\n";
        for (message, line) in [
            (regex, "regex parse error: look-around is not supported"),
            ("Unknown type: foo\nat 1", "Unknown type: foo"),
            ("nothing follows:", "nothing follows"),
            ("", ""),
        ] {
            assert_eq!(in_one_line(message), line);
        }
    }

    #[tokio::test]
    async fn a_stream_that_the_server_cuts_ends_with_an_error() {
        let model = slow(110, Duration::from_millis(200));
        let server = server();
        let response = answer(server.clone(), order(&model, true)).await.unwrap();
        // a signal, as at the end of the time for requests in progress
        server.apply(super::super::super::lifecycle::Event::Stop);
        let body = axum::body::to_bytes(response.into_body(), 1 << 20).await.unwrap();
        let text = String::from_utf8(body.to_vec()).unwrap();
        let last = text.trim_end().rsplit("data: ").next().unwrap();
        assert!(last.starts_with("{\"error\":") && last.contains("\"stopped\""), "{text}");
        wait_until_released(&model).await;
    }

    #[tokio::test]
    async fn the_model_stops_when_the_stream_is_dropped() {
        let model = slow(110, Duration::from_millis(200));
        let response = answer(server(), order(&model, true)).await.unwrap();
        assert!(Arc::strong_count(&model) > 1, "it has begun");
        drop(response);
        wait_until_released(&model).await;
    }
}
