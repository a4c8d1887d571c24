//! The keys of a JSON document, each with its whole path and the kind of its value.

use super::is_name;
use crate::checks::read;
use serde_json::Value;
use std::collections::HashSet;
use std::mem::discriminant;
use std::path::Path;

/// Bytes of a document that is looked at.
const LOOK: u64 = 256 << 10;
/// Paths that are told, keys of one object, and bytes of all.
const PATHS: usize = 24;
const KEYS: usize = 12;
const WIDTH: usize = 700;
/// Levels that are gone into.
const DEPTH: usize = 5;

/// The keys of a file; of lines of JSON those of the first one. Nothing of what is no JSON, or has no keys.
pub(super) fn of(name: &str, file: &Path) -> Option<String> {
    of_text(name, &read(file, LOOK)?)
}

/// The same of a text.
pub(super) fn of_text(name: &str, text: &str) -> Option<String> {
    let (document, of_lines) = match serde_json::from_str::<Value>(text) {
        Ok(document) => (document, false),
        Err(_) => (serde_json::from_str(text.lines().next()?).ok()?, true),
    };
    let (mut paths, mut more) = (Vec::new(), false);
    walk(&document, String::new(), 0, &mut paths, &mut more);
    while paths.iter().map(|path| path.len() + 2).sum::<usize>() > WIDTH {
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

/// Notes the leaves below a value.
fn walk(value: &Value, path: String, depth: usize, paths: &mut Vec<String>, more: &mut bool) {
    if let Some(inner) = like(value).filter(|_| depth < DEPTH) {
        let step = if path.is_empty() { ".[]".to_owned() } else { format!("{path}[]") };
        return walk(inner, step, depth + 1, paths, more);
    }
    let kind = match value {
        Value::Object(keys) if depth < DEPTH && !keys.is_empty() => {
            *more |= keys.len() > KEYS;
            for (key, inner) in keys.iter().take(KEYS) {
                let plain = key.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
                    && !key.starts_with(|c: char| c.is_ascii_digit());
                let step = match (plain, path.is_empty()) {
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
    if paths.len() < PATHS {
        paths.push(format!("{path} ({kind})"));
    } else {
        *more = true;
    }
}

/// What all inside of a value are taken to be like: the first element of an array, and of an object the first value where
/// the keys are values themselves (many of one kind, or no words).
fn like(value: &Value) -> Option<&Value> {
    match value {
        Value::Array(all) => all.first(),
        Value::Object(keys) => {
            let kinds: HashSet<_> = keys.values().map(discriminant).collect();
            let is_value = |key: &String| !is_name(key) || key.bytes().filter(u8::is_ascii_digit).count() > 3;
            let is_map = keys.len() > KEYS && kinds.len() == 1 || keys.keys().any(is_value);
            keys.values().next().filter(|_| is_map)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_have_their_paths_and_no_value_is_told() {
        let dir = tempfile::tempdir().unwrap();
        let of = |text: &str| {
            std::fs::write(dir.path().join("a"), text).unwrap();
            of("a.json", &dir.path().join("a"))
        };
        for (text, told) in [
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
            assert_eq!(of(text).unwrap(), told);
        }
        for text in ["", "no json", "[1, 2]", "3", "{}", "{\"\\u0007\": 1}", "[]"] {
            assert_eq!(of(text), None, "{text}");
        }
        let kinds = |n| if n == 50 { "1" } else { "{\"a\": 1, \"b\": 2, \"c\": 3}" };
        let wide: Vec<String> = (0..100).map(|n| format!("\"key{n}\": {}", kinds(n))).collect();
        let told = of(&format!("{{{}}}", wide.join(","))).unwrap();
        assert!(told.ends_with(" and more.") && told.len() < 800, "{told}");
        let deep = format!("{}1{}", "{\"a\":".repeat(100), "}".repeat(100));
        assert!(of(&deep).unwrap().ends_with("(object)."));
    }
}
