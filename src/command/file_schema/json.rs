//! Describes the keys of a JSON document, each with its whole path and the type of its value.

use super::is_name;
use crate::checks::read_text;
use serde_json::Value;
use std::collections::HashSet;
use std::mem::discriminant;
use std::path::Path;

/// Most bytes of a document; larger ones are not read.
const MAX_BYTES: u64 = 256 << 10;
/// Most paths in a description.
const MAX_PATHS: usize = 24;
/// Most keys of one object.
const MAX_KEYS: usize = 12;
/// Most bytes of all paths.
const MAX_WIDTH: usize = 700;
/// Most levels of nesting.
const MAX_DEPTH: usize = 5;

/// Describes the keys of a file, or of the first line of JSON lines; `None` if it is not JSON or has no keys.
pub(super) fn of(name: &str, file: &Path) -> Option<String> {
    of_text(name, &read_text(file, MAX_BYTES)?)
}

/// Describes the keys of a text.
pub(super) fn of_text(name: &str, text: &str) -> Option<String> {
    let (document, of_lines) = match serde_json::from_str::<Value>(text) {
        Ok(document) => (document, false),
        Err(_) => (serde_json::from_str(text.lines().next()?).ok()?, true),
    };
    let (mut paths, mut more) = (Vec::new(), false);
    walk(&document, String::new(), 0, &mut paths, &mut more);
    while paths.iter().map(|path| path.len() + 2).sum::<usize>() > MAX_WIDTH {
        paths.pop();
        more = true;
    }
    if paths.is_empty() {
        return None;
    }
    let list = paths.join(", ");
    let each = if of_lines { "each line of " } else { "" };
    Some(format!("In jq {each}{name} has {list}{}", if more { " and more." } else { "." }))
}

/// Collects the paths of the leaves below a value.
fn walk(value: &Value, path: String, depth: usize, paths: &mut Vec<String>, more: &mut bool) {
    if depth < MAX_DEPTH
        && let Some(inner) = sample_element(value)
    {
        let step = if path.is_empty() { ".[]".to_owned() } else { format!("{path}[]") };
        return walk(inner, step, depth + 1, paths, more);
    }
    let kind = match value {
        Value::Object(keys) if depth < MAX_DEPTH && !keys.is_empty() => {
            *more |= keys.len() > MAX_KEYS;
            for (key, inner) in keys.iter().take(MAX_KEYS) {
                let is_plain = key.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
                    && !key.starts_with(|c: char| c.is_ascii_digit());
                let step = match (is_plain, path.is_empty()) {
                    (true, _) => format!("{path}.{key}"),
                    (false, true) => format!(".[{key:?}]"),
                    (false, false) => format!("{path}[{key:?}]"),
                };
                walk(inner, step, depth + 1, paths, more);
            }
            return;
        }
        Value::Object(_) => "object",
        Value::Array(_) => "array",
        Value::String(_) => "string",
        Value::Number(_) => "number",
        Value::Bool(_) => "boolean",
        Value::Null => "null",
    };
    if path.is_empty() || path == ".[]" {
        return;
    }
    if paths.len() < MAX_PATHS {
        paths.push(format!("{path} ({kind})"));
    } else {
        *more = true;
    }
}

/// Returns the element that stands for all others in a value: the first of an array, or of an object whose keys are
/// data (more than [`MAX_KEYS`] values of one type, or a key that is no name).
fn sample_element(value: &Value) -> Option<&Value> {
    match value {
        Value::Array(all) => all.first(),
        Value::Object(keys) => {
            let kinds: HashSet<_> = keys.values().map(discriminant).collect();
            let is_data = |key: &String| !is_name(key) || key.bytes().filter(u8::is_ascii_digit).count() > 3;
            let is_map = keys.len() > MAX_KEYS && kinds.len() == 1 || keys.keys().any(is_data);
            if is_map { keys.values().next() } else { None }
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_have_paths_and_values_are_left_out() {
        let dir = tempfile::tempdir().unwrap();
        let of = |text: &str| {
            std::fs::write(dir.path().join("a"), text).unwrap();
            of("a.json", &dir.path().join("a"))
        };
        for (text, described) in [
            (
                "{\"debug\": true, \"db\": {\"port\": 1, \"no-x\": null}}",
                "In jq a.json has .debug (boolean), .db.port (number), .db[\"no-x\"] (null).",
            ),
            (
                "[{\"name\": \"Ada\", \"tags\": [\"x\"], \"list\": []}]",
                "In jq a.json has .[].name (string), .[].tags[] (string), .[].list (array).",
            ),
            ("{\"a\": 1}\n{\"a\": 2}\n", "In jq each line of a.json has .a (number)."),
            (
                "{\"ada@example.org\": {\"age\": 3}, \"bob@example.org\": {\"age\": 4}}",
                "In jq a.json has .[].age (number).",
            ),
            ("{\"my key\": 1}", "In jq a.json has .[\"my key\"] (number)."),
        ] {
            assert_eq!(of(text).unwrap(), described);
        }
        for text in ["", "no json", "[1, 2]", "3", "{}", "{\"\\u0007\": 1}", "[]"] {
            assert_eq!(of(text), None, "{text}");
        }
        let kinds = |n| if n == 50 { "1" } else { "{\"a\": 1, \"b\": 2, \"c\": 3}" };
        let wide: Vec<String> = (0..100).map(|n| format!("\"key{n}\": {}", kinds(n))).collect();
        let described = of(&format!("{{{}}}", wide.join(","))).unwrap();
        assert!(described.ends_with(" and more.") && described.len() < 800, "{described}");
        let deep = format!("{}1{}", "{\"a\":".repeat(100), "}".repeat(100));
        assert!(of(&deep).unwrap().ends_with("(object)."));
    }
}
