//! Simplifies a server's argument schema to the subset that the grammar and the prompt support.
//!
//! Servers may use all of JSON Schema; the model is held to types, choices, lists and bounds. The server itself checks
//! the rest. A schema that cannot be followed allows any value.

use serde_json::{Map, Value, json};

/// Most arguments; required ones come first.
const MAX_ARGUMENTS: usize = 24;
/// Most levels of nested objects and arrays.
const MAX_DEPTH: usize = 4;
/// Largest integer that every JSON parser reads exactly: beyond it doubles have gaps.
const MAX_INTEGER: i64 = (1 << 53) - 1;
/// Most choices; a longer list allows any value of the type.
const MAX_CHOICES: usize = 64;

/// Reduces the schema to the subset that the grammar supports.
///
/// # Errors
/// If a required argument has no plain name, or there are too many of them.
pub fn simplify(schema: &Map<String, Value>) -> Result<Value, String> {
    let whole = Value::Object(schema.clone());
    let empty = Map::new();
    let properties = schema.get("properties").and_then(Value::as_object).unwrap_or(&empty);
    let required: Vec<&str> =
        schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect();
    if let Some(odd) = required.iter().find(|name| !is_plain(name)) {
        let odd: String = odd.chars().filter(|c| !c.is_control()).take(40).collect();
        return Err(format!("its argument `{odd}` has no plain name"));
    }
    if required.len() > MAX_ARGUMENTS {
        return Err(format!("it wants {} arguments, and {MAX_ARGUMENTS} are the most", required.len()));
    }
    let mut kept = Map::new();
    let wanted = required.iter().copied();
    let others = properties.keys().map(String::as_str).filter(|name| !required.contains(name) && is_plain(name));
    for name in wanted.chain(others).take(MAX_ARGUMENTS) {
        let of = properties.get(name).map_or_else(|| json!({}), |p| simplify_value(p, &whole, MAX_DEPTH));
        kept.insert(name.to_owned(), of);
    }
    Ok(json!({"type": "object", "properties": kept, "required": required, "additionalProperties": false}))
}

/// True if a name can be used in a prompt and a grammar.
fn is_plain(name: &str) -> bool {
    (1..=64).contains(&name.len()) && name.chars().all(|c| c.is_alphanumeric() || "_-.$@:".contains(c))
}

fn simplify_value(schema: &Value, whole: &Value, depth: usize) -> Value {
    let Some(schema) = schema.as_object() else { return json!({}) };
    if depth == 0 {
        return json!({});
    }
    if let Some(to) = schema.get("$ref").and_then(Value::as_str) {
        let target = to.strip_prefix('#').and_then(|pointer| whole.pointer(pointer));
        return target.map_or_else(|| json!({}), |target| simplify_value(target, whole, depth - 1));
    }
    for several in ["anyOf", "oneOf"] {
        if let Some(options) = schema.get(several).and_then(Value::as_array) {
            // `T or null` is an optional argument
            let mut real = options.iter().filter(|o| o.get("type") != Some(&json!("null")));
            return match (real.next(), real.next()) {
                (Some(only), None) => simplify_value(only, whole, depth - 1),
                _ => json!({}),
            };
        }
    }
    if let Some(constant) = schema.get("const").filter(|c| is_scalar(c)) {
        return json!({ "enum": [constant] });
    }
    let kind = match schema.get("type") {
        Some(Value::String(kind)) => kind.as_str(),
        // `["string", "null"]`
        Some(Value::Array(kinds)) => {
            let mut real = kinds.iter().filter_map(Value::as_str).filter(|k| *k != "null");
            match (real.next(), real.next()) {
                (Some(only), None) => only,
                _ => "",
            }
        }
        _ => "",
    };
    if let Some(options) = schema.get("enum").and_then(Value::as_array)
        && (1..=MAX_CHOICES).contains(&options.len())
        && options.iter().all(is_scalar)
    {
        return match kind {
            "string" | "integer" | "number" | "boolean" => json!({"type": kind, "enum": options}),
            _ => json!({ "enum": options }),
        };
    }
    match kind {
        "string" | "boolean" => json!({ "type": kind }),
        "integer" | "number" => {
            let mut of = json!({ "type": kind });
            // a bound also keeps a small model from writing digits endlessly
            let bound = |name: &str, other: i64| schema.get(name).and_then(Value::as_i64).unwrap_or(other);
            let (least, most) = (bound("minimum", -MAX_INTEGER), bound("maximum", MAX_INTEGER));
            if kind == "integer" && least <= most {
                of["minimum"] = least.into();
                of["maximum"] = most.into();
            }
            of
        }
        "array" => match schema.get("items") {
            Some(items) => json!({"type": "array", "items": simplify_value(items, whole, depth - 1)}),
            None => json!({"type": "array"}),
        },
        "object" => {
            let properties = schema.get("properties").and_then(Value::as_object).filter(|p| !p.is_empty());
            let Some(properties) = properties else { return json!({"type": "object"}) };
            let kept: Map<String, Value> = properties
                .iter()
                .filter(|(name, _)| is_plain(name))
                .take(MAX_ARGUMENTS)
                .map(|(name, of)| (name.clone(), simplify_value(of, whole, depth - 1)))
                .collect();
            let required = schema.get("required").and_then(Value::as_array);
            let required: Vec<&str> = required
                .into_iter()
                .flatten()
                .filter_map(Value::as_str)
                .filter(|name| kept.contains_key(*name))
                .collect();
            json!({"type": "object", "properties": kept, "required": required})
        }
        _ => json!({}),
    }
}

fn is_scalar(value: &Value) -> bool {
    match value {
        Value::String(text) => text.len() <= 200,
        other => !other.is_array() && !other.is_object(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::action::{self, ActionSet};
    use crate::tool::ToolSpec;
    use caro_model::scripted::Scripted;
    use caro_model::{Cancel, Flow, Model, Prompt, Request, Role, Sampling};

    fn of(schema: Value) -> Result<Value, String> {
        simplify(schema.as_object().unwrap())
    }

    #[test]
    fn the_supported_subset_is_kept() {
        let schema = of(json!({
            "$schema": "x", "title": "T", "type": "object", "required": ["path"],
            "$defs": {"mode": {"type": "string", "enum": ["a", "b"], "description": "long"}},
            "properties": {
                "tags": {"type": "array", "items": {"type": "string", "format": "uri"}, "minItems": 2},
                "path": {"type": "string", "pattern": "^(?!x).*$", "minLength": 1},
                "mode": {"$ref": "#/$defs/mode"},
                "n": {"anyOf": [{"type": "integer", "minimum": 1, "maximum": 5}, {"type": "null"}], "default": null},
                "odd": {"oneOf": [{"type": "string"}, {"type": "integer"}]},
                "opt": {"type": ["boolean", "null"]},
                "since": {"type": "integer", "minimum": 0},
                "bad name\nIgnore": {"type": "string"}
            }
        }))
        .unwrap();
        assert_eq!(
            schema,
            json!({"type": "object", "required": ["path"], "additionalProperties": false, "properties": {
                "path": {"type": "string"}, "tags": {"type": "array", "items": {"type": "string"}},
                "mode": {"type": "string", "enum": ["a", "b"]}, "n": {"type": "integer", "minimum": 1, "maximum": 5},
                "odd": {}, "opt": {"type": "boolean"},
                "since": {"type": "integer", "minimum": 0, "maximum": 9_007_199_254_740_991_i64}
            }})
        );
        assert_eq!(of(json!({})).unwrap()["properties"], json!({}));
        assert!(of(json!({"required": ["a b"]})).unwrap_err().contains("no plain name"));
        assert!(of(json!({"required": (0..99).map(|n| format!("a{n}")).collect::<Vec<_>>()})).is_err());
    }

    #[test]
    fn any_schema_becomes_a_valid_grammar() {
        let hostile = [
            json!({"properties": {"a": {"$ref": "#/properties/a"}}}),
            json!({"properties": {"a": {"$ref": "http://elsewhere"}, "b": true, "c": 5, "d": {"type": "none"}}}),
            json!({"properties": {"a": {"type": "object", "properties": {"b": {"type": "array", "items": {}}}}}}),
            json!({"properties": {"a": {"enum": []}, "b": {"enum": [{"x": 1}]}, "c": {"const": "x"}}}),
            json!({"properties": {"a": {"type": "integer", "minimum": 9, "maximum": 1}, "b": {"type": "number"}}}),
            json!({"properties": 5, "required": "x"}),
            json!({"required": ["a"], "properties": {"a": {"type": "integer"}}}),
        ];
        for schema in hostile {
            let parameters = of(schema.clone()).unwrap();
            let spec = ToolSpec { parameters, ..ToolSpec::new("t", "does.", json!({}), &[]) };
            let set = ActionSet { tools: vec!["t".into()], answer: true, cannot: true, batch: 1, path: None };
            let reply = match schema["required"].is_array() {
                true => "Thought: x\nAction: t {\"a\": -1735689600000}",
                false => "Thought: x\nAction: t {}",
            };
            let model: Scripted = json!({"rules": [{"reply": reply}]}).to_string().parse().unwrap();
            let mut prompt = Prompt::default();
            prompt.push(Role::User, "x");
            let shape = action::shape(&set, &[spec]);
            let request = Request { prompt, shape, sampling: Sampling::GREEDY, max_tokens: 99, cancel: Cancel::new() };
            model.generate(&request, &mut |_| Flow::Continue).unwrap_or_else(|e| panic!("{schema}: {e}"));
        }
    }
}
