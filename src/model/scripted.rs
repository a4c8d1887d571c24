//! A model that takes its replies from a file: `--model script:FILE`. For tests, and for trying the agent without
//! weights.
//!
//! The file is a JSON document. The first rule that matches answers:
//!
//! ```json
//! {
//!   "context": 4096,
//!   "rules": [
//!     { "match": "top processes", "reply": "ps aux --sort=-%cpu | head -n 6", "logprob": -0.2 },
//!     { "regex": "(?i)disk", "system": "fish", "replies": ["df --sort=size", "df -h"], "delay_ms": 5 },
//!     { "reply": "echo nothing" }
//!   ]
//! }
//! ```
//!
//! | key | meaning |
//! | --- | --- |
//! | `context` | tokens of prompt and completion together, 4096 if not given |
//! | `match` | the last user message must contain this; of a raw prompt, its text |
//! | `regex` | the same text must match this |
//! | `system` | the first message must contain this |
//! | `reply` | the answer |
//! | `replies` | the answers of the first, second ... use of this rule; the last one is repeated |
//! | `logprob` | natural logarithm of every token's probability, -0.05 if not given |
//! | `runner_up` | natural logarithm of the probability of the likeliest other token, -4 if not given |
//! | `delay_ms` | pause before every token in milliseconds, 0 if not given |
//! | `error` | instead of an answer: fail with this message |
//!
//! A reply must have the requested shape (see [`Shape`](super::Shape)), or the call fails: a real engine could not have
//! written it. A *token* here is a word with the white space before it, in pieces of at most 12 characters.

use super::{
    Completion, Finish, Flow, Limits, Message, Model, ModelError, Opening, Prompt, Request, Role, Token, Usage, conform,
};
use regex::Regex;
use serde::Deserialize;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// The scripted model.
#[derive(Debug)]
pub struct Scripted {
    id: String,
    context: usize,
    rules: Vec<Rule>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    #[serde(default = "default_context")]
    context: usize,
    rules: Vec<RuleText>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RuleText {
    r#match: Option<String>,
    regex: Option<String>,
    system: Option<String>,
    reply: Option<String>,
    #[serde(default)]
    replies: Vec<String>,
    #[serde(default = "default_logprob")]
    logprob: f32,
    #[serde(default = "default_runner_up")]
    runner_up: f32,
    #[serde(default)]
    delay_ms: u64,
    error: Option<String>,
}

#[derive(Debug)]
struct Rule {
    text: RuleText,
    regex: Option<Regex>,
    used: AtomicUsize,
}

fn default_context() -> usize {
    4096
}

fn default_logprob() -> f32 {
    -0.05
}

fn default_runner_up() -> f32 {
    -4.0
}

/// Most bytes of a script.
const MAX_SCRIPT_BYTES: u64 = 16 << 20;

/// Most characters of a token.
const MAX_TOKEN_CHARS: usize = 12;

impl Scripted {
    /// Reads a script file.
    ///
    /// # Errors
    /// [`ModelError::Script`] if it cannot be read or is not a valid script.
    pub fn open(path: &Path) -> Result<Self, ModelError> {
        let wrong = |e: &dyn std::fmt::Display| ModelError::Script(format!("{}: {e}", path.display()));
        let text = caro_base::files::read_text(path, MAX_SCRIPT_BYTES).map_err(|e| wrong(&e))?;
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        Self::parse(&text, &format!("script:{name}")).map_err(|e| match e {
            ModelError::Script(reason) => wrong(&reason),
            other => other,
        })
    }

    /// Parses a script. `id` becomes the model's id.
    ///
    /// # Errors
    /// [`ModelError::Script`] if it is not a valid script.
    ///
    /// ```
    /// use caro_model::{Cancel, Flow, Model, Prompt, Request, Role, Sampling, Shape, scripted::Scripted};
    /// let model = Scripted::parse(r#"{"rules": [{"match": "files", "reply": "ls"}]}"#, "script")?;
    /// let mut prompt = Prompt::system("You write shell commands.");
    /// prompt.push(Role::User, "list files");
    /// let shape = Shape::Text { stop: vec![] };
    /// let request = Request { prompt, shape, sampling: Sampling::GREEDY, max_tokens: 10, cancel: Cancel::new() };
    /// assert_eq!(model.generate(&request, &mut |_| Flow::Continue)?.text, "ls");
    /// # Ok::<(), caro_model::ModelError>(())
    /// ```
    pub fn parse(text: &str, id: &str) -> Result<Self, ModelError> {
        let wrong = |e: &dyn std::fmt::Display| ModelError::Script(e.to_string());
        let document: Document = serde_json::from_str(text).map_err(|e| wrong(&e))?;
        let rules = document.rules.into_iter().enumerate().map(|(i, text)| {
            let replies = usize::from(text.reply.is_some()) + usize::from(!text.replies.is_empty());
            if replies + usize::from(text.error.is_some()) != 1 {
                return Err(wrong(&format!("rule {i} needs one of reply, replies, error")));
            }
            let regex =
                text.regex.as_deref().map(Regex::new).transpose().map_err(|e| wrong(&format!("rule {i}: {e}")))?;
            Ok(Rule { text, regex, used: AtomicUsize::new(0) })
        });
        Ok(Self { id: id.into(), context: document.context, rules: rules.collect::<Result<_, _>>()? })
    }
}

impl Rule {
    fn matches(&self, prompt: &Prompt) -> bool {
        let last = last_input(prompt);
        let first = prompt.messages.first().map(Message::whole).unwrap_or_default();
        let holds = |text: &str, part: &Option<String>| part.as_ref().is_none_or(|part| text.contains(part));
        holds(&last, &self.text.r#match)
            && self.regex.as_ref().is_none_or(|regex| regex.is_match(&last))
            && holds(&first, &self.text.system)
    }

    fn reply(&self) -> Result<&str, ModelError> {
        if let Some(error) = &self.text.error {
            return Err(ModelError::Script(error.clone()));
        }
        if let Some(reply) = &self.text.reply {
            return Ok(reply);
        }
        let use_number = self.used.fetch_add(1, Ordering::Relaxed);
        let replies = &self.text.replies;
        Ok(replies.get(use_number).or(replies.last()).map_or("", String::as_str))
    }
}

impl Model for Scripted {
    fn id(&self) -> &str {
        &self.id
    }

    fn limits(&self) -> Limits {
        Limits { context: self.context }
    }

    fn count(&self, text: &str) -> usize {
        pieces(text).count()
    }

    fn generate(&self, request: &Request, on: &mut dyn FnMut(&str) -> Flow) -> Result<Completion, ModelError> {
        let start = Instant::now();
        let prompt = &request.prompt;
        let prompt_tokens = prompt.messages.iter().map(|turn| self.count(&turn.whole())).sum::<usize>()
            + self.count(&prompt.opened_whole());
        if prompt_tokens >= self.context {
            return Err(ModelError::TooLong { tokens: prompt_tokens, limit: self.context });
        }
        let rule = self.rules.iter().find(|rule| rule.matches(prompt));
        let rule = rule.ok_or_else(|| ModelError::Script(format!("no rule for: {}", last_line(prompt))))?;
        let reply = rule.reply()?;
        let reply = conform::cut(&request.shape, reply);
        if let Err(wrong) = conform::check(&request.shape, reply)? {
            return Err(ModelError::Script(format!("the reply breaks the shape: {wrong}")));
        }

        let room = request.max_tokens.min(self.context - prompt_tokens);
        let mut completion = Completion {
            text: String::new(),
            tokens: Vec::new(),
            end: None,
            finish: Finish::Stop,
            usage: Usage { prompt_tokens, prefill: start.elapsed(), ..Usage::default() },
        };
        for piece in pieces(reply) {
            if completion.tokens.len() == room {
                completion.finish = Finish::Length;
                break;
            }
            if !wait(Duration::from_millis(rule.text.delay_ms), request) {
                completion.finish = Finish::Cancelled;
                break;
            }
            let (logprob, runner_up) = (Some(rule.text.logprob), Some(rule.text.runner_up));
            completion.tokens.push(Token { bytes: piece.into(), logprob, runner_up });
            completion.text.push_str(piece);
            if on(piece) == Flow::Stop {
                completion.finish = Finish::Cancelled;
                break;
            }
        }
        completion.usage.completion_tokens = completion.tokens.len();
        completion.usage.decode = start.elapsed().saturating_sub(completion.usage.prefill);
        Ok(completion)
    }
}

/// Pauses for `time`. Returns false if the caller cancelled meanwhile.
fn wait(time: Duration, request: &Request) -> bool {
    let until = Instant::now() + time;
    loop {
        if request.cancel.is_cancelled() {
            return false;
        }
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return true;
        }
        std::thread::sleep(left.min(Duration::from_millis(5)));
    }
}

/// Returns the last user message, or the text of a raw prompt.
fn last_input(prompt: &Prompt) -> String {
    if prompt.opening == Opening::Raw {
        return prompt.prefill.clone();
    }
    prompt.messages.iter().rfind(|turn| turn.role == Role::User).map(Message::whole).unwrap_or_default()
}

fn last_line(prompt: &Prompt) -> String {
    let text = last_input(prompt);
    text.lines().last().unwrap_or("(no user turn)").chars().take(120).collect()
}

/// Splits a text into tokens, which joined are the text.
fn pieces(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let mut in_word = false;
        let ends = |(i, (at, c)): (usize, (usize, char))| {
            let end = i == MAX_TOKEN_CHARS || (in_word && c.is_whitespace());
            in_word |= !c.is_whitespace();
            end.then_some(at)
        };
        let end = rest.char_indices().enumerate().find_map(ends).unwrap_or(rest.len());
        let (piece, after) = rest.split_at(end);
        rest = after;
        Some(piece)
    })
}

/// Parses a script that is not in a file, with the id `script`; for tests.
impl std::str::FromStr for Scripted {
    type Err = ModelError;

    fn from_str(text: &str) -> Result<Self, ModelError> {
        Self::parse(text, "script")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Cancel, Sampling, Shape};

    fn request(words: &str, shape: Shape) -> Request {
        let mut prompt = Prompt::system("for bash");
        prompt.push(Role::User, words);
        Request { prompt, shape, sampling: Sampling::GREEDY, max_tokens: 100, cancel: Cancel::new() }
    }

    fn text() -> Shape {
        Shape::Text { stop: vec!["\n".into()] }
    }

    fn generate(model: &Scripted, request: &Request) -> Result<Completion, ModelError> {
        model.generate(request, &mut |_| Flow::Continue)
    }

    #[test]
    fn the_first_rule_that_matches_answers_and_replies_come_in_order() {
        let model: Scripted = r#"{"rules": [
            {"match": "a", "system": "fish", "reply": "wrong system"},
            {"match": "a", "replies": ["one", "two"]},
            {"regex": "^b+$", "reply": "bees", "logprob": -2}
        ]}"#
        .parse()
        .unwrap();
        let replies: Vec<_> = (0..3).map(|_| generate(&model, &request("a", text())).unwrap().text).collect();
        assert_eq!(replies, ["one", "two", "two"]);
        let bees = generate(&model, &request("bbb", text())).unwrap();
        assert_eq!((bees.text.as_str(), bees.tokens[0].logprob), ("bees", Some(-2.0)));
        let error = generate(&model, &request("c", text())).unwrap_err();
        assert!(error.to_string().contains("no rule for: c"), "{error}");
    }

    #[test]
    fn it_streams_whole_words_within_the_limits() {
        let reply = "ps aux --sort=-%cpu | head -n 6";
        let model: Scripted = format!(r#"{{"rules": [{{"reply": "{reply}\nmore"}}]}}"#).parse().unwrap();
        let mut streamed = Vec::new();
        let done = model.generate(&request("x", text()), &mut |piece| {
            streamed.push(piece.to_string());
            Flow::Continue
        });
        let done = done.unwrap();
        assert_eq!((streamed.concat().as_str(), done.text.as_str(), done.finish), (reply, reply, Finish::Stop));
        assert_eq!(streamed[..3], ["ps", " aux", " --sort=-%cp"]);
        assert_eq!(done.usage.completion_tokens, model.count(reply));

        let mut short = request("x", text());
        short.max_tokens = 2;
        let done = generate(&model, &short).unwrap();
        assert_eq!((done.text.as_str(), done.finish), ("ps aux", Finish::Length));

        let stopped = model.generate(&request("x", text()), &mut |_| Flow::Stop).unwrap();
        assert_eq!((stopped.text.as_str(), stopped.finish), ("ps", Finish::Cancelled));
    }

    #[test]
    fn a_reply_of_another_shape_is_an_error() {
        let model: Scripted = r#"{"rules": [{"reply": "maybe"}]}"#.parse().unwrap();
        for shape in [
            Shape::Choice(vec!["yes".into(), "no".into()]),
            Shape::Json(serde_json::json!({"type": "object"})),
            Shape::Lark("start: /[0-9]+/".into()),
        ] {
            let error = generate(&model, &request("x", shape)).unwrap_err();
            assert!(matches!(&error, ModelError::Script(why) if why.contains("breaks the shape")), "{error}");
        }
    }

    #[test]
    fn cancelling_ends_a_pause() {
        let model: Scripted = r#"{"rules": [{"reply": "a b c", "delay_ms": 300000}]}"#.parse().unwrap();
        let mut soon = request("x", text());
        soon.cancel = soon.cancel.with_deadline(Instant::now() + Duration::from_millis(30));
        let start = Instant::now();
        let done = generate(&model, &soon).unwrap();
        assert_eq!((done.text.as_str(), done.finish), ("", Finish::Cancelled));
        assert!(start.elapsed() < Duration::from_secs(60));
    }

    #[test]
    fn a_prompt_beyond_the_context_is_refused() {
        let model: Scripted = r#"{"context": 5, "rules": [{"reply": "x"}]}"#.parse().unwrap();
        let error = generate(&model, &request("one two three four", text())).unwrap_err();
        assert!(matches!(error, ModelError::TooLong { tokens: 6, limit: 5 }), "{error}");
    }

    #[test]
    fn an_invalid_script_is_refused_with_the_reason() {
        for (script, why) in [
            ("", "EOF"),
            ("{}", "rules"),
            (r#"{"rules": [{}]}"#, "rule 0 needs one of"),
            (r#"{"rules": [{"reply": "a", "error": "b"}]}"#, "rule 0 needs one of"),
            (r#"{"rules": [{"reply": "a", "regex": "("}]}"#, "rule 0"),
            (r#"{"rules": [{"reply": "a", "mach": "x"}]}"#, "mach"),
        ] {
            let error = script.parse::<Scripted>().unwrap_err().to_string();
            assert!(error.contains(why), "{script}: {error}");
        }
        let missing = Scripted::open(Path::new("nowhere/script.json")).unwrap_err();
        assert!(missing.to_string().contains("nowhere/script.json"), "{missing}");
    }
}
