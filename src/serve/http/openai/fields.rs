//! A body of OpenAI's protocol, field by field. Fields that nobody knows are passed over, as new clients send new ones; `null`
//! is a field that is not there; one of another type is refused by its name.

use super::super::Problem;
use super::super::Server;
use super::super::body;
use axum::extract::{FromRequest, Request};
use serde_json::{Map, Value};
use std::ops::RangeInclusive;
use std::sync::Arc;

/// The fields of an object, and where it stands in the body.
#[derive(Debug, Clone)]
pub struct Fields<'a> {
    map: &'a Map<String, Value>,
    place: String,
}

/// The object that a body is.
#[derive(Debug)]
pub struct Body(Map<String, Value>);

impl FromRequest<Arc<Server>> for Body {
    type Rejection = Problem;

    async fn from_request(request: Request, _: &Arc<Server>) -> Result<Self, Problem> {
        let (head, body) = request.into_parts();
        let bytes = body::read(&head.headers, body).await?;
        match serde_json::from_slice(&bytes) {
            Ok(Value::Object(map)) => Ok(Self(map)),
            Ok(_) => Err(Problem::bad_request("the body is no JSON object")),
            Err(error) => Err(Problem::bad_request(format!("the body is no JSON document: {error}"))),
        }
    }
}

impl Body {
    /// Its fields.
    pub fn fields(&self) -> Fields<'_> {
        Fields { map: &self.0, place: String::new() }
    }
}

/// A field is wrong.
pub fn wrong(param: &str, what: &str) -> Problem {
    Problem::bad_request(format!("`{param}` must be {what}")).param(param).code("invalid_value")
}

/// A field is right, and this server has nothing for it.
pub fn unsupported(param: &str, what: &str) -> Problem {
    Problem::bad_request(format!("`{param}` is not supported here"))
        .detail(what)
        .param(param)
        .code("unsupported_parameter")
}

impl<'a> Fields<'a> {
    /// The fields of a value that stands at `place`.
    ///
    /// # Errors
    /// If it is no object.
    pub fn of(value: &'a Value, place: String) -> Result<Self, Problem> {
        match value {
            Value::Object(map) => Ok(Self { map, place }),
            _ => Err(wrong(&place, "an object")),
        }
    }

    /// The name of a field as the client would write it down: `messages[2].content`.
    pub fn name(&self, field: &str) -> String {
        if self.place.is_empty() { field.into() } else { format!("{}.{field}", self.place) }
    }

    /// A field.
    pub fn get(&self, field: &str) -> Option<&'a Value> {
        self.map.get(field).filter(|value| !value.is_null())
    }

    fn read<T>(&self, field: &str, what: &str, read: impl Fn(&'a Value) -> Option<T>) -> Result<Option<T>, Problem> {
        self.get(field).map(|value| read(value).ok_or_else(|| wrong(&self.name(field), what))).transpose()
    }

    /// A text.
    ///
    /// # Errors
    /// If it is something else.
    pub fn text(&self, field: &str) -> Result<Option<&'a str>, Problem> {
        self.read(field, "a string", Value::as_str)
    }

    /// A text that must be there.
    ///
    /// # Errors
    /// If it is not, or is something else.
    pub fn required_text(&self, field: &str) -> Result<&'a str, Problem> {
        self.text(field)?.ok_or_else(|| self.missing(field))
    }

    /// True or false; false where it is not there.
    ///
    /// # Errors
    /// If it is something else.
    pub fn flag(&self, field: &str) -> Result<bool, Problem> {
        Ok(self.read(field, "true or false", Value::as_bool)?.unwrap_or(false))
    }

    /// A number.
    ///
    /// # Errors
    /// If it is something else, or out of range.
    pub fn number(&self, field: &str, range: RangeInclusive<f64>) -> Result<Option<f32>, Problem> {
        let what = format!("a number from {} to {}", range.start(), range.end());
        Ok(self.read(field, &what, |value| value.as_f64().filter(|n| range.contains(n)))?.map(|n| n as f32))
    }

    /// A whole number.
    ///
    /// # Errors
    /// If it is something else, or out of range.
    pub fn count(&self, field: &str, range: RangeInclusive<u64>) -> Result<Option<usize>, Problem> {
        let what = match *range.end() {
            u64::MAX => format!("a whole number from {}", range.start()),
            end => format!("a whole number from {} to {end}", range.start()),
        };
        self.read(field, &what, |value| usize::try_from(value.as_u64().filter(|n| range.contains(n))?).ok())
    }

    /// A list; empty where it is not there.
    ///
    /// # Errors
    /// If it is something else.
    pub fn list(&self, field: &str) -> Result<&'a [Value], Problem> {
        Ok(self.read(field, "a list", Value::as_array)?.map_or(&[], Vec::as_slice))
    }

    /// The fields of an object.
    ///
    /// # Errors
    /// If it is something else.
    pub fn object(&self, field: &str) -> Result<Option<Self>, Problem> {
        self.get(field).map(|value| Self::of(value, self.name(field))).transpose()
    }

    /// The same of an object that must be there.
    ///
    /// # Errors
    /// If it is not, or is something else.
    pub fn required_object(&self, field: &str) -> Result<Self, Problem> {
        self.object(field)?.ok_or_else(|| self.missing(field))
    }

    /// One is missing.
    pub fn missing(&self, field: &str) -> Problem {
        let name = self.name(field);
        Problem::bad_request(format!("`{name}` is missing")).param(name).code("missing_required_parameter")
    }

    /// Refuses fields that would change the answer and that nothing here honours. One that asks for nothing (`false`, 0, an empty list) is fine.
    ///
    /// # Errors
    /// With the first of them that asks for something.
    pub fn refuse(&self, fields: &[(&str, &str)]) -> Result<(), Problem> {
        let asks = |value: &Value| match value {
            Value::Null | Value::Bool(false) => false,
            Value::Number(number) => number.as_f64() != Some(0.0),
            Value::Array(list) => !list.is_empty(),
            Value::Object(map) => !map.is_empty(),
            Value::String(_) | Value::Bool(true) => true,
        };
        match fields.iter().find(|(field, _)| self.get(field).is_some_and(asks)) {
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
    fn a_wrong_field_is_named_with_its_place() {
        let body = json!({"a": 1, "none": null, "o": {"t": 2.5, "n": -1}, "off": false, "zero": 0.0, "on": {"x": 1}});
        let fields = Fields::of(&body, String::new()).unwrap();
        let says = |problem: Problem| problem.openai()["error"].clone();
        assert_eq!(fields.text("none"), Ok(None));
        assert_eq!(fields.text("unheard"), Ok(None));
        assert_eq!(says(fields.text("a").unwrap_err())["message"], "`a` must be a string");
        let inner = fields.required_object("o").unwrap();
        assert_eq!(inner.number("t", 0.0..=3.0), Ok(Some(2.5)));
        assert_eq!(says(inner.number("t", 0.0..=2.0).unwrap_err())["param"], "o.t");
        assert_eq!(says(inner.count("n", 1..=u64::MAX).unwrap_err())["message"], "`o.n` must be a whole number from 1");
        assert_eq!(says(fields.required_text("none").unwrap_err())["code"], "missing_required_parameter");
        assert_eq!(says(fields.object("a").unwrap_err())["message"], "`a` must be an object");
        assert_eq!(fields.refuse(&[("off", ""), ("zero", ""), ("none", ""), ("unheard", "")]), Ok(()));
        let refused = says(fields.refuse(&[("off", ""), ("on", "leave it out")]).unwrap_err());
        assert_eq!((&refused["param"], &refused["code"]), (&json!("on"), &json!("unsupported_parameter")));
    }
}
