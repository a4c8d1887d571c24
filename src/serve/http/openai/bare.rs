//! A function call that is the whole answer of a model, without the marks around calls: a JSON document with the
//! function's `name` and its `arguments`, also in a fence of Markdown.

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Map, Value};

/// The fence of Markdown, and the languages after it.
const FENCE: &str = "```";
const LANGUAGES: [&str; 2] = ["json\n", "\n"];
/// The beginnings of the document: its first field.
const FIRST: [&str; 2] = ["\"name\"", "\"arguments\""];

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Bare {
    name: String,
    arguments: Map<String, Value>,
}

/// Returns name and arguments, if the answer is a call of one of these functions.
pub fn call(answer: &str, names: &[String]) -> Option<(String, String)> {
    let text = answer.trim();
    let fenced = text.strip_prefix(FENCE).and_then(|rest| rest.strip_suffix(FENCE));
    let inner = fenced.map(|rest| LANGUAGES.iter().find_map(|language| rest.strip_prefix(language)));
    let Bare { name, arguments } = serde_json::from_str(inner.unwrap_or(Some(text))?).ok()?;
    names.contains(&name).then(|| (name, Value::Object(arguments).to_string()))
}

/// True while an answer, of which this is the beginning, may still become a call.
pub fn may_become_call(beginning: &str) -> bool {
    let text = beginning.trim_start();
    let (document, end) = match text.strip_prefix(FENCE) {
        _ if FENCE.starts_with(text) => return true,
        None => (text, ""),
        Some(rest) => match LANGUAGES.iter().find_map(|language| rest.strip_prefix(language)) {
            Some(document) => (document, FENCE),
            None => return LANGUAGES.iter().any(|language| language.starts_with(rest)),
        },
    };
    let document = document.trim_start();
    let Some(first) = document.strip_prefix('{').map(str::trim_start) else { return document.is_empty() };
    if !FIRST.iter().any(|field| field.starts_with(first) || first.starts_with(field)) {
        return false;
    }
    let mut documents = serde_json::Deserializer::from_str(document).into_iter::<IgnoredAny>();
    match documents.next() {
        Some(Ok(_)) => {
            let rest = document.get(documents.byte_offset()..).unwrap_or_default().trim();
            rest.is_empty() || end.starts_with(rest)
        }
        Some(Err(error)) => error.is_eof(),
        None => true,
    }
}
