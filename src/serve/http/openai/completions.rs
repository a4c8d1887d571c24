//! `POST /v1/completions`: the model continues texts as they are, without a chat template.

use super::super::commands::CancelOnDrop;
use super::super::{Problem, Server};
use super::answer::{Form, Head, Order, answer, finish_reason, text_tokens};
use super::check_model;
use super::fields::{Body, Fields, invalid, unsupported};
use super::options::Options;
use axum::extract::State;
use axum::response::Response;
use caro_model::{Completion, Prompt, Shape};
use serde_json::{Value, json};
use std::sync::Arc;

/// Most prompts of a request.
const MAX_PROMPTS: usize = 64;
/// Most tokens by default. Source: the protocol's reference.
const DEFAULT_MAX_TOKENS: usize = 16;

/// The fields that are not supported, with the advice for each.
pub(super) const REFUSED: &[(&str, &str)] = &[
    ("echo", "the prompt is not said again: put it in front yourself"),
    ("suffix", "the end of a text is not taken into account: leave it out"),
    ("response_format", "POST /v1/chat/completions takes it"),
    ("tools", "POST /v1/chat/completions takes them"),
    ("logprobs", "0 tells those of the tokens that were chosen"),
];

/// Continues a text.
///
/// # Errors
/// Names the field that is invalid or not supported; also if there is no such model, or it gives no answer.
pub async fn completions(State(server): State<Arc<Server>>, body: Body) -> Result<Response, Problem> {
    let engine = server.engine()?;
    let fields = body.fields();
    check_model(&engine, fields.text("model")?)?;
    fields.refuse(REFUSED)?;
    let options = Options::read(&fields)?.with_default_max_tokens(DEFAULT_MAX_TOKENS);
    let (shape, cancel) = (Shape::Text { stop: options.stop.clone() }, CancelOnDrop::default());
    let context = engine.model.limits().context;
    let requests = prompts(&fields)?
        .into_iter()
        .flat_map(|text| options.requests(&Prompt::raw(text), &shape, context, &cancel.0))
        .collect();
    let form = CompletionForm { head: Head::new("cmpl", &*engine.model), logprobs: tells_logprobs(&fields) };
    let Options { choices, stream, include_usage, .. } = options;
    let order = Order { model: engine.model.clone(), requests, choices, cancel, stream, include_usage, form };
    answer(server, order).await
}

/// Reads the texts to continue.
fn prompts<'a>(fields: &Fields<'a>) -> Result<Vec<&'a str>, Problem> {
    let prompts: Vec<&str> = match fields.get("prompt") {
        None => return Err(fields.missing("prompt")),
        Some(Value::String(one)) => vec![one],
        Some(Value::Array(many)) if many.iter().any(|one| one.is_number() || one.is_array()) => {
            return Err(unsupported(
                "prompt",
                "send texts, not numbers of tokens: they mean another thing to each model",
            ));
        }
        Some(Value::Array(many)) => {
            let texts: Option<Vec<&str>> = many.iter().map(Value::as_str).collect();
            texts.ok_or_else(|| invalid("prompt", "a string or a list of strings"))?
        }
        Some(_) => return Err(invalid("prompt", "a string or a list of strings")),
    };
    if prompts.is_empty() || prompts.len() > MAX_PROMPTS || prompts.iter().any(|text| text.is_empty()) {
        return Err(invalid("prompt", &format!("a text or up to {MAX_PROMPTS} texts, none of them empty")));
    }
    Ok(prompts)
}

/// True if the client wants the log probability of each chosen token: the number of others that it wants is 0.
fn tells_logprobs(fields: &Fields<'_>) -> bool {
    fields.get("logprobs").is_some_and(Value::is_number)
}

/// Returns the log probability of each token of the text, with the place in the text where it begins, in characters.
fn logprobs(completion: &Completion) -> Value {
    let (mut tokens, mut values, mut offsets, mut offset) = (Vec::new(), Vec::new(), Vec::new(), 0);
    for token in text_tokens(completion) {
        tokens.push(String::from_utf8_lossy(&token.bytes));
        values.push(token.logprob.unwrap_or(0.0));
        offsets.push(offset);
        // a token may end inside a character, which counts where it begins
        offset += token.bytes.iter().filter(|byte| **byte & 0xC0 != 0x80).count();
    }
    json!({"tokens": tokens, "token_logprobs": values, "top_logprobs": null, "text_offset": offsets})
}

/// The form of completions.
struct CompletionForm {
    head: Head,
    /// True to include the log probability of each token.
    logprobs: bool,
}

impl CompletionForm {
    fn document(&self, choices: Vec<Value>) -> Value {
        self.head.document("text_completion", choices)
    }

    /// Returns the end of a choice: the rest of its text, the reason, and what is told of its tokens.
    fn last(&self, index: usize, text: &str, completion: &Completion) -> Value {
        let mut last = choice(index, text, Some(finish_reason(completion)));
        if self.logprobs {
            last["logprobs"] = logprobs(completion);
        }
        last
    }
}

fn choice(index: usize, text: &str, finish: Option<&str>) -> Value {
    json!({"index": index, "text": text, "logprobs": null, "finish_reason": finish})
}

impl Form for CompletionForm {
    fn piece(&mut self, index: usize, text: &str) -> Vec<Value> {
        vec![self.document(vec![choice(index, text, None)])]
    }

    fn end(&mut self, index: usize, completion: &Completion) -> Vec<Value> {
        vec![self.document(vec![self.last(index, "", completion)])]
    }

    fn empty(&self) -> Value {
        self.document(Vec::new())
    }

    fn complete(&mut self, completions: &[Completion]) -> Value {
        let all = completions.iter().enumerate();
        self.document(all.map(|(index, done)| self.last(index, &done.text, done)).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use caro_model::{Finish, Token, Usage};

    #[test]
    fn zero_other_tokens_tells_the_chosen_ones() {
        let of = |body: Value| {
            let fields = Fields::of(&body, String::new()).unwrap();
            fields.refuse(REFUSED).map(|()| tells_logprobs(&fields)).map_err(|_| ())
        };
        assert_eq!(
            [of(json!({})), of(json!({"logprobs": null})), of(json!({"logprobs": 0}))],
            [Ok(false), Ok(false), Ok(true)]
        );
        assert_eq!([of(json!({"logprobs": 2})), of(json!({"logprobs": true}))], [Err(()), Err(())]);
        let token = |bytes: &[u8], logprob| Token { bytes: bytes.to_vec(), logprob, runner_up: None };
        let completion = Completion {
            text: "aé b".into(),
            tokens: vec![
                token(b"a\xc3", Some(-0.5)),
                token(b"\xa9", None),
                token(b" b", Some(-1.0)),
                token(b"END", None),
            ],
            end: None,
            finish: Finish::Stop,
            usage: Usage::default(),
        };
        let told = logprobs(&completion);
        assert_eq!((&told["token_logprobs"], &told["text_offset"]), (&json!([-0.5, 0.0, -1.0]), &json!([0, 2, 2])));
        assert_eq!(told["tokens"][2], " b");
    }

    #[test]
    fn a_prompt_is_one_text_or_several() {
        let read = |body: Value| {
            let fields = Fields::of(&body, String::new()).unwrap();
            let read = prompts(&fields).map(|texts| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>());
            read.map_err(|problem| problem.openai()["error"]["code"].clone())
        };
        assert_eq!(read(json!({"prompt": "a"})), Ok(vec!["a".into()]));
        assert_eq!(read(json!({"prompt": ["a", "b"]})), Ok(vec!["a".into(), "b".into()]));
        for (body, code) in [
            (json!({}), "missing_required_parameter"),
            (json!({"prompt": [1, 2]}), "unsupported_parameter"),
            (json!({"prompt": [[1, 2]]}), "unsupported_parameter"),
            (json!({"prompt": 1}), "invalid_value"),
            (json!({"prompt": ["a", true]}), "invalid_value"),
            (json!({"prompt": []}), "invalid_value"),
            (json!({"prompt": ["a", ""]}), "invalid_value"),
            (json!({"prompt": vec!["a"; 65]}), "invalid_value"),
        ] {
            assert_eq!(read(body.clone()), Err(code.into()), "{body}");
        }
    }
}
