//! Checks whether a text has the requested shape, for models whose logits cannot be masked: scripted and remote ones.

use super::{ModelError, Shape};
use llguidance::api::TopLevelGrammar;
use llguidance::{Matcher, ParserFactory};
use serde_json::Value;
use toktrie::ApproximateTokEnv;

/// Cuts the text before the first stop string of its shape.
pub(super) fn cut<'a>(shape: &Shape, text: &'a str) -> &'a str {
    let Shape::Text { stop } = shape else { return text };
    let ends = stop.iter().filter(|s| !s.is_empty()).filter_map(|s| text.find(s.as_str()));
    ends.min().map_or(text, |end| &text[..end])
}

/// Checks a whole text against its shape. `Ok(Err(_))` says, in words, what is wrong with the text.
///
/// Of a JSON schema it checks what the schemas of this program use: `type`, `enum`, `const`, `required`, `properties`,
/// `additionalProperties: false` and `items`; other keywords are ignored.
///
/// # Errors
/// [`ModelError::BadShape`] if the shape itself is wrong.
pub(super) fn check(shape: &Shape, text: &str) -> Result<Result<(), String>, ModelError> {
    Ok(match shape {
        Shape::Text { .. } => Ok(()),
        Shape::Choice(options) if options.is_empty() => return Err(ModelError::BadShape("a choice of nothing".into())),
        Shape::Choice(options) if options.iter().any(|o| o == text) => Ok(()),
        Shape::Choice(options) => Err(format!("`{}` is none of: {}", short(text), options.join(", "))),
        Shape::Json(schema) => match serde_json::from_str::<Value>(text) {
            Ok(value) => json(schema, &value, "$"),
            Err(error) => Err(format!("it is not JSON: {error}")),
        },
        Shape::Lark(grammar) => lark(grammar, text)?,
    })
}

/// Checks a text against a Lark grammar; each byte is a token.
fn lark(grammar: &str, text: &str) -> Result<Result<(), String>, ModelError> {
    let bad = |error: String| ModelError::BadShape(error);
    let env = ApproximateTokEnv::single_byte_env();
    let mut factory = ParserFactory::new_simple(&env).map_err(|e| bad(e.to_string()))?;
    factory.quiet();
    let parser = factory.create_parser(TopLevelGrammar::from_lark(grammar.into()));
    let mut matcher = Matcher::new(parser);
    if let Some(error) = matcher.get_error() {
        return Err(bad(error));
    }
    let tokens: Vec<u32> = text.bytes().map(u32::from).collect();
    let taken = matcher.try_consume_tokens(&tokens).map_err(|e| bad(e.to_string()))?;
    if taken < tokens.len() {
        let rest = String::from_utf8_lossy(&text.as_bytes()[taken..]);
        return Ok(Err(format!("the grammar does not allow `{}` at byte {taken}", short(&rest))));
    }
    // a grammar that can take no more has stopped, and accepts the text too
    let is_complete = matcher.is_stopped() || matcher.is_accepting().map_err(|e| bad(e.to_string()))?;
    Ok(if is_complete { Ok(()) } else { Err("the grammar wants more text".into()) })
}

/// Most words that [`expected`] returns: where more are allowed, the text is free.
const MAX_EXPECTED: usize = 40;

/// Returns the words that the grammar allows where a text goes wrong, in place of the word that is there; none for other
/// shapes, and where the text is free.
pub(super) fn allowed_instead(shape: &Shape, text: &str) -> Vec<String> {
    let Shape::Lark(grammar) = shape else { return Vec::new() };
    let env = ApproximateTokEnv::single_byte_env();
    let Ok(mut factory) = ParserFactory::new_simple(&env) else { return Vec::new() };
    factory.quiet();
    let matcher = || Matcher::new(factory.create_parser(TopLevelGrammar::from_lark(grammar.into())));
    let tokens: Vec<u32> = text.bytes().map(u32::from).collect();
    let taken = matcher().try_consume_tokens(&tokens).unwrap_or_default();
    let begin = text.as_bytes()[..taken].iter().rposition(u8::is_ascii_whitespace).map_or(0, |at| at + 1);
    expected(matcher(), &tokens[..begin])
}

/// Returns the words, up to the next white space, that may follow `before`; none where the grammar allows free text.
fn expected(mut matcher: Matcher, before: &[u32]) -> Vec<String> {
    if matcher.consume_tokens(before).is_err() {
        return Vec::new();
    }
    let mut open: Vec<(Matcher, Vec<u8>)> = vec![(matcher, Vec::new())];
    let mut words = Vec::new();
    while let Some((mut matcher, word)) = open.pop() {
        if matcher.is_stopped() {
            words.push(String::from_utf8_lossy(&word).into_owned());
            continue;
        }
        let Ok(mask) = matcher.compute_mask_or_eos() else { return Vec::new() };
        let next: Vec<u8> = (0..=u8::MAX).filter(|byte| mask.is_allowed(u32::from(*byte))).collect();
        let ends = next.is_empty() || !word.is_empty() && next.iter().any(u8::is_ascii_whitespace);
        if ends {
            words.push(String::from_utf8_lossy(&word).into_owned());
        }
        if words.len() + open.len() + next.len() > MAX_EXPECTED {
            return Vec::new();
        }
        for byte in next.into_iter().rev().filter(|byte| !byte.is_ascii_whitespace()) {
            let mut after = matcher.deep_clone();
            if after.consume_token(u32::from(byte)).is_ok() {
                open.push((after, [word.as_slice(), &[byte]].concat()));
            }
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

/// Checks a JSON value against a schema; `at` is the path of the value in messages.
fn json(schema: &Value, value: &Value, at: &str) -> Result<(), String> {
    if let Some(kind) = schema.get("type") {
        let allowed: Vec<&str> = match kind {
            Value::String(one) => vec![one],
            Value::Array(many) => many.iter().filter_map(Value::as_str).collect(),
            _ => Vec::new(),
        };
        if !allowed.iter().any(|kind| has_type(kind, value)) {
            return Err(format!("{at} is not of type {}", allowed.join(" or ")));
        }
    }
    if let Some(Value::Array(options)) = schema.get("enum")
        && !options.contains(value)
    {
        return Err(format!("{at} is none of the allowed values"));
    }
    if schema.get("const").is_some_and(|only| only != value) {
        return Err(format!("{at} is not the one allowed value"));
    }
    if let Value::Object(fields) = value {
        let properties = schema.get("properties").and_then(Value::as_object);
        let required = schema.get("required").and_then(Value::as_array);
        for key in required.into_iter().flatten().filter_map(Value::as_str) {
            if !fields.contains_key(key) {
                return Err(format!("{at}.{key} is missing"));
            }
        }
        for (key, field) in fields {
            match properties.and_then(|p| p.get(key)) {
                Some(schema) => json(schema, field, &format!("{at}.{key}"))?,
                None if schema.get("additionalProperties") == Some(&Value::Bool(false)) => {
                    return Err(format!("{at}.{key} is not allowed"));
                }
                None => {}
            }
        }
    }
    if let (Value::Array(items), Some(schema)) = (value, schema.get("items")) {
        for (i, item) in items.iter().enumerate() {
            json(schema, item, &format!("{at}[{i}]"))?;
        }
    }
    Ok(())
}

fn has_type(kind: &str, value: &Value) -> bool {
    match kind {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "number" => value.is_number(),
        "integer" => value.is_i64() || value.is_u64() || value.as_f64().is_some_and(|n| n.fract() == 0.0),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        _ => false,
    }
}

/// Returns the first 60 characters of a text, for a message.
fn short(text: &str) -> String {
    let mut start: String = text.chars().take(60).collect();
    if start.len() < text.len() {
        start.push('…');
    }
    start
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn text_is_cut_before_the_first_stop_string() {
        let shape = Shape::Text { stop: vec!["\n\n".into(), "END".into(), String::new()] };
        assert_eq!(cut(&shape, "ls END\n\nx"), "ls ");
        assert_eq!(cut(&shape, "ls"), "ls");
    }

    #[test]
    fn a_choice_must_be_one_of_its_options() {
        let shape = Shape::Choice(vec!["yes".into(), "no".into()]);
        assert_eq!(check(&shape, "no").unwrap(), Ok(()));
        assert!(check(&shape, "nope").unwrap().unwrap_err().contains("yes, no"));
        assert!(matches!(check(&Shape::Choice(vec![]), "x"), Err(ModelError::BadShape(_))));
    }

    #[test]
    fn a_json_document_is_checked_against_its_schema() {
        let shape = Shape::Json(json!({
            "type": "object",
            "properties": {
                "cmd": {"type": "string"},
                "n": {"type": "integer"},
                "all": {"type": "array", "items": {"enum": ["a", "b"]}}
            },
            "required": ["cmd"],
            "additionalProperties": false
        }));
        assert_eq!(check(&shape, r#"{"n": 2, "cmd": "ls", "all": ["a", "b"]}"#).unwrap(), Ok(()));
        for (text, why) in [
            ("ls", "not JSON"),
            ("[]", "$ is not of type object"),
            ("{}", "$.cmd is missing"),
            (r#"{"cmd": 1}"#, "$.cmd is not of type string"),
            (r#"{"cmd": "", "n": 1.5}"#, "$.n is not of type integer"),
            (r#"{"cmd": "", "x": 1}"#, "$.x is not allowed"),
            (r#"{"cmd": "", "all": ["a", "c"]}"#, "$.all[1]"),
        ] {
            let wrong = check(&shape, text).unwrap().unwrap_err();
            assert!(wrong.contains(why), "{text}: {wrong}");
        }
    }

    #[test]
    fn a_grammar_is_checked_byte_by_byte() {
        let shape = Shape::Lark("start: \"ls \" /[a-zé]+/ \"!\"?".into());
        assert_eq!(check(&shape, "ls abc").unwrap(), Ok(()));
        assert_eq!(check(&shape, "ls é!").unwrap(), Ok(()));
        assert!(check(&shape, "rm").unwrap().unwrap_err().contains("at byte 0"));
        assert!(check(&shape, "ls a1").unwrap().unwrap_err().contains("`1` at byte 4"));
        assert!(check(&shape, "ls ").unwrap().unwrap_err().contains("more"));
        assert!(matches!(check(&Shape::Lark("start: nothing".into()), ""), Err(ModelError::BadShape(_))));
    }

    #[test]
    fn the_words_that_are_allowed_in_place_of_a_wrong_one_are_listed() {
        let grammar = "start: \"Action: \" (\"read {}\" | \"replace {}\" | \"list\" | say)\nsay: \"say \" /[a-z ]+/";
        let allowed = |text: &str| allowed_instead(&Shape::Lark(grammar.into()), text).join(" ");
        for text in ["Action: answer {}", "Action: rm"] {
            assert_eq!(allowed(text), "list read replace say", "{text}");
        }
        assert_eq!(allowed("Thought"), "Action:");
        assert_eq!(allowed("Action: say 7"), "", "where text is free no words are listed");
    }
}
