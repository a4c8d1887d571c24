//! Reads a body of OpenAI's protocol field by field. Unknown fields are ignored, since new clients send new ones;
//! `null` counts as absent; a value of another type is an error that names the field.

use super::super::Problem;
use super::super::Server;
use super::super::body;
use axum::extract::{FromRequest, Request};
use serde_json::{Map, Value};
use std::ops::RangeInclusive;
use std::sync::Arc;

/// The fields of an object, with its path in the body.
#[derive(Debug, Clone)]
pub struct Fields<'a> {
    map: &'a Map<String, Value>,
    path: String,
}

/// The JSON object of a body.
#[derive(Debug)]
pub struct Body(Map<String, Value>);

impl FromRequest<Arc<Server>> for Body {
    type Rejection = Problem;

    async fn from_request(request: Request, _: &Arc<Server>) -> Result<Self, Problem> {
        let (head, body) = request.into_parts();
        let bytes = body::read(&head.headers, body).await?;
        match serde_json::from_slice(&bytes) {
            Ok(Value::Object(map)) => Ok(Self(map)),
            Ok(_) => Err(Problem::bad_request("the body is not a JSON object")),
            Err(error) => Err(Problem::bad_request(format!("the body is not a JSON document: {error}"))),
        }
    }
}

impl Body {
    /// Returns the fields of the body.
    pub fn fields(&self) -> Fields<'_> {
        Fields { map: &self.0, path: String::new() }
    }
}

/// The error for an invalid value of a field.
pub fn invalid(param: &str, what: &str) -> Problem {
    Problem::bad_request(format!("`{param}` must be {what}")).param(param).code("invalid_value")
}

/// The error for a field that is valid but not supported.
pub fn unsupported(param: &str, what: &str) -> Problem {
    Problem::bad_request(format!("`{param}` is not supported here"))
        .detail(what)
        .param(param)
        .code("unsupported_parameter")
}

impl<'a> Fields<'a> {
    /// Creates the fields of a value whose path in the body is `path`.
    ///
    /// # Errors
    /// If the value is not an object.
    pub fn of(value: &'a Value, path: String) -> Result<Self, Problem> {
        match value {
            Value::Object(map) => Ok(Self { map, path }),
            _ => Err(invalid(&path, "an object")),
        }
    }

    /// Returns the full name of a field, as in `messages[2].content`.
    pub fn name(&self, field: &str) -> String {
        if self.path.is_empty() { field.into() } else { format!("{}.{field}", self.path) }
    }

    /// Returns a field; `None` if it is absent or `null`.
    pub fn get(&self, field: &str) -> Option<&'a Value> {
        self.map.get(field).filter(|value| !value.is_null())
    }

    fn read<T>(&self, field: &str, what: &str, read: impl Fn(&'a Value) -> Option<T>) -> Result<Option<T>, Problem> {
        self.get(field).map(|value| read(value).ok_or_else(|| invalid(&self.name(field), what))).transpose()
    }

    /// Reads an optional string.
    ///
    /// # Errors
    /// If it has another type.
    pub fn text(&self, field: &str) -> Result<Option<&'a str>, Problem> {
        self.read(field, "a string", Value::as_str)
    }

    /// Reads a required string.
    ///
    /// # Errors
    /// If it is absent or has another type.
    pub fn required_text(&self, field: &str) -> Result<&'a str, Problem> {
        self.text(field)?.ok_or_else(|| self.missing(field))
    }

    /// Reads a boolean; false if it is absent.
    ///
    /// # Errors
    /// If it has another type.
    pub fn flag(&self, field: &str) -> Result<bool, Problem> {
        Ok(self.read(field, "true or false", Value::as_bool)?.unwrap_or(false))
    }

    /// Reads an optional number.
    ///
    /// # Errors
    /// If it has another type, or is out of range.
    pub fn number(&self, field: &str, range: RangeInclusive<f64>) -> Result<Option<f32>, Problem> {
        let what = format!("a number from {} to {}", range.start(), range.end());
        Ok(self.read(field, &what, |value| value.as_f64().filter(|n| range.contains(n)))?.map(|n| n as f32))
    }

    /// Reads an optional integer.
    ///
    /// # Errors
    /// If it has another type, or is out of range.
    pub fn count(&self, field: &str, range: RangeInclusive<u64>) -> Result<Option<usize>, Problem> {
        let what = match *range.end() {
            u64::MAX => format!("a whole number from {}", range.start()),
            end => format!("a whole number from {} to {end}", range.start()),
        };
        self.read(field, &what, |value| usize::try_from(value.as_u64().filter(|n| range.contains(n))?).ok())
    }

    /// Reads a list; empty if it is absent.
    ///
    /// # Errors
    /// If it has another type.
    pub fn list(&self, field: &str) -> Result<&'a [Value], Problem> {
        Ok(self.read(field, "a list", Value::as_array)?.map_or(&[], Vec::as_slice))
    }

    /// Reads the fields of an optional object.
    ///
    /// # Errors
    /// If it has another type.
    pub fn object(&self, field: &str) -> Result<Option<Self>, Problem> {
        self.get(field).map(|value| Self::of(value, self.name(field))).transpose()
    }

    /// Reads the fields of a required object.
    ///
    /// # Errors
    /// If it is absent or has another type.
    pub fn required_object(&self, field: &str) -> Result<Self, Problem> {
        self.object(field)?.ok_or_else(|| self.missing(field))
    }

    /// The error for a missing field.
    pub fn missing(&self, field: &str) -> Problem {
        let name = self.name(field);
        Problem::bad_request(format!("`{name}` is missing")).param(name).code("missing_required_parameter")
    }

    /// Refuses unsupported fields that would change the answer. A value without effect (`false`, 0, an empty list) is
    /// accepted.
    ///
    /// # Errors
    /// Names the first of these fields whose value has an effect.
    pub fn refuse(&self, fields: &[(&str, &str)]) -> Result<(), Problem> {
        let has_effect = |value: &Value| match value {
            Value::Null | Value::Bool(false) => false,
            Value::Number(number) => number.as_f64() != Some(0.0),
            Value::Array(list) => !list.is_empty(),
            Value::Object(map) => !map.is_empty(),
            Value::String(_) | Value::Bool(true) => true,
        };
        match fields.iter().find(|(field, _)| self.get(field).is_some_and(has_effect)) {
            Some((field, what)) => Err(unsupported(&self.name(field), what)),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_invalid_field_is_named_with_its_path() {
        let body = json!({"a": 1, "none": null, "o": {"t": 2.5, "n": -1}, "off": false, "zero": 0.0, "on": {"x": 1}});
        let fields = Fields::of(&body, String::new()).unwrap();
        let error = |problem: Problem| problem.openai()["error"].clone();
        assert_eq!(fields.text("none"), Ok(None));
        assert_eq!(fields.text("unheard"), Ok(None));
        assert_eq!(error(fields.text("a").unwrap_err())["message"], "`a` must be a string");
        let inner = fields.required_object("o").unwrap();
        assert_eq!(inner.number("t", 0.0..=3.0), Ok(Some(2.5)));
        assert_eq!(error(inner.number("t", 0.0..=2.0).unwrap_err())["param"], "o.t");
        let message = &error(inner.count("n", 1..=u64::MAX).unwrap_err())["message"];
        assert_eq!(message, "`o.n` must be a whole number from 1");
        assert_eq!(error(fields.required_text("none").unwrap_err())["code"], "missing_required_parameter");
        assert_eq!(error(fields.object("a").unwrap_err())["message"], "`a` must be an object");
        assert_eq!(fields.refuse(&[("off", ""), ("zero", ""), ("none", ""), ("unheard", "")]), Ok(()));
        let refused = error(fields.refuse(&[("off", ""), ("on", "leave it out")]).unwrap_err());
        assert_eq!((&refused["param"], &refused["code"]), (&json!("on"), &json!("unsupported_parameter")));
    }
}
