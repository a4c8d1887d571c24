//! The fields shared by chat and completions: sampling, the end of an answer, and its delivery.

use super::super::Problem;
use super::fields::{Fields, invalid, unsupported};
use caro_model::{Cancel, Prompt, Request, Sampling, Shape};
use serde_json::Value;

/// The default temperature. Source: the publishers' settings for Qwen2.5, as for [`DEFAULT_TOP_P`].
const DEFAULT_TEMPERATURE: f32 = 0.7;
/// The default share of probability to sample from.
const DEFAULT_TOP_P: f32 = 0.8;
/// Most choices of one prompt.
const MAX_CHOICES: u64 = 16;
/// Most stop strings.
const MAX_STOPS: usize = 4;

/// The fields that are not supported, with the advice for each.
pub(super) const REFUSED: &[(&str, &str)] = &[
    ("logit_bias", "tokens cannot be weighed: leave it out"),
    ("top_logprobs", "other tokens are not told: leave it out"),
    ("frequency_penalty", "leave it out or send 0"),
    ("presence_penalty", "leave it out or send 0"),
    ("store", "nothing is kept: leave it out"),
];

/// The options for an answer.
#[derive(Debug, Clone)]
pub struct Options {
    sampling: Sampling,
    /// Most tokens; by default the context window is the limit.
    max_tokens: Option<usize>,
    /// Strings that end a text.
    pub stop: Vec<String>,
    /// The number of choices for each prompt.
    pub choices: usize,
    /// True to stream the answer.
    pub stream: bool,
    /// True to send the usage in a last chunk.
    pub include_usage: bool,
}

impl Options {
    /// Reads the options.
    ///
    /// # Errors
    /// Names the field that is invalid or not supported.
    pub fn read(fields: &Fields<'_>) -> Result<Self, Problem> {
        fields.refuse(REFUSED)?;
        if fields.get("best_of").is_some_and(|value| *value != 1) {
            return Err(unsupported("best_of", "ask for `n` choices"));
        }
        let most = fields.count("max_completion_tokens", 1..=u64::MAX)?;
        let stream = fields.flag("stream")?;
        let stream_options = fields.object("stream_options")?;
        if stream_options.is_some() && !stream {
            return Err(Problem::bad_request("`stream_options` is for `stream: true`").param("stream_options"));
        }
        let sampling = Sampling {
            temperature: fields.number("temperature", 0.0..=2.0)?.unwrap_or(DEFAULT_TEMPERATURE),
            top_p: fields.number("top_p", 0.0..=1.0)?.unwrap_or(DEFAULT_TOP_P),
            seed: seed(fields)?,
        };
        Ok(Self {
            sampling,
            max_tokens: most.or(fields.count("max_tokens", 1..=u64::MAX)?),
            stop: stop(fields)?,
            choices: fields.count("n", 1..=MAX_CHOICES)?.unwrap_or(1),
            stream,
            include_usage: stream_options.map(|o| o.flag("include_usage")).transpose()?.unwrap_or(false),
        })
    }

    /// Sets the limit of tokens if the client gave none.
    #[must_use]
    pub fn with_default_max_tokens(self, tokens: usize) -> Self {
        Self { max_tokens: self.max_tokens.or(Some(tokens)), ..self }
    }

    /// Returns the requests to the model, one per choice: each choice has the next seed.
    pub fn requests(&self, prompt: &Prompt, shape: &Shape, context: usize, cancel: &Cancel) -> Vec<Request> {
        let request = |choice: usize| Request {
            prompt: prompt.clone(),
            shape: shape.clone(),
            sampling: Sampling { seed: self.sampling.seed.wrapping_add(choice as u64), ..self.sampling },
            max_tokens: self.max_tokens.unwrap_or(context).min(context),
            cancel: cancel.clone(),
        };
        (0..self.choices).map(request).collect()
    }

    /// Refuses stop strings, for an answer whose form determines its end.
    ///
    /// # Errors
    /// If there are any.
    pub fn refuse_stop(&self, why: &str) -> Result<(), Problem> {
        if self.stop.is_empty() { Ok(()) } else { Err(unsupported("stop", why)) }
    }
}

/// Returns the client's seed, or a random one.
fn seed(fields: &Fields<'_>) -> Result<u64, Problem> {
    match fields.get("seed") {
        Some(value) => {
            // a negative seed is used by its bits
            let seed = value.as_i64().map(i64::cast_unsigned).or_else(|| value.as_u64());
            seed.ok_or_else(|| invalid("seed", "a whole number"))
        }
        None => {
            let mut bytes = [0; 8];
            getrandom::fill(&mut bytes).map_err(|e| Problem::internal(format!("no random numbers: {e}")))?;
            Ok(u64::from_le_bytes(bytes))
        }
    }
}

fn stop(fields: &Fields<'_>) -> Result<Vec<String>, Problem> {
    let refused = || invalid("stop", &format!("a string or a list of up to {MAX_STOPS} strings, none of them empty"));
    let stop: Vec<String> = match fields.get("stop") {
        None => Vec::new(),
        Some(Value::String(one)) => vec![one.clone()],
        Some(Value::Array(many)) => {
            many.iter().map(|one| one.as_str().map(str::to_owned)).collect::<Option<_>>().ok_or_else(refused)?
        }
        Some(_) => return Err(refused()),
    };
    if stop.len() > MAX_STOPS || stop.iter().any(String::is_empty) { Err(refused()) } else { Ok(stop) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(body: Value) -> Result<Options, Value> {
        let fields = Fields::of(&body, String::new()).unwrap();
        Options::read(&fields).map_err(|problem| problem.openai()["error"].clone())
    }

    #[test]
    fn each_choice_has_the_next_seed_and_is_limited_to_the_window() {
        let options = read(json!({"seed": -1, "n": 3, "temperature": 0, "max_tokens": 9_000})).unwrap();
        let shape = Shape::Text { stop: Vec::new() };
        let requests = options.requests(&Prompt::raw("x"), &shape, 500, &Cancel::new());
        let seeds: Vec<u64> = requests.iter().map(|request| request.sampling.seed).collect();
        assert_eq!(seeds, [u64::MAX, 0, 1]);
        assert!(requests.iter().all(|request| request.max_tokens == 500 && request.sampling.temperature == 0.0));
        let newer = read(json!({"max_tokens": 9, "max_completion_tokens": 5})).unwrap();
        assert_eq!(newer.requests(&Prompt::raw("x"), &shape, 500, &Cancel::new())[0].max_tokens, 5);
        assert_ne!(read(json!({})).unwrap().sampling.seed, read(json!({})).unwrap().sampling.seed);
    }

    #[test]
    fn invalid_and_unsupported_fields_are_refused_by_name() {
        for (body, param) in [
            (json!({"temperature": 3}), "temperature"),
            (json!({"top_p": "1"}), "top_p"),
            (json!({"seed": 0.5}), "seed"),
            (json!({"n": 0}), "n"),
            (json!({"n": 17}), "n"),
            (json!({"max_tokens": 0}), "max_tokens"),
            (json!({"max_completion_tokens": -1}), "max_completion_tokens"),
            (json!({"stop": ["a", "b", "c", "d", "e"]}), "stop"),
            (json!({"stop": ""}), "stop"),
            (json!({"stop": 1}), "stop"),
            (json!({"stream": "yes"}), "stream"),
            (json!({"stream_options": {"include_usage": true}}), "stream_options"),
            (json!({"logit_bias": {"50256": -100}}), "logit_bias"),
            (json!({"top_logprobs": 2}), "top_logprobs"),
            (json!({"presence_penalty": 0.5}), "presence_penalty"),
            (json!({"best_of": 2}), "best_of"),
        ] {
            let error = read(body.clone()).unwrap_err();
            assert_eq!(error["param"], param, "{body}: {error}");
        }
        let fine = json!({"logit_bias": {}, "presence_penalty": 0, "logprobs": false, "stop": null, "mood": "good", "best_of": 1});
        assert!(read(fine).is_ok());
        assert_eq!(read(json!({"stop": "END"})).unwrap().stop, ["END"]);
    }
}
