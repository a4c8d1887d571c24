//! The functions that the model may call, and the grammar that constrains its output to them.

use super::super::Problem;
use super::fields::{Fields, invalid, unsupported};
use caro_model::tools::{CALL, CALL_END, spaced};
use caro_model::{ModelError, Shape};
use serde_json::{Map, Value, json};
use std::fmt::Write;

/// Most functions of a request.
const MAX_FUNCTIONS: usize = 128;
/// Most characters of a function's name.
const MAX_NAME: usize = 64;

/// The use of functions that the client asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Choice {
    /// Answer in text.
    None,
    /// Answer in text or call functions.
    Auto,
    /// Call at least one function.
    Required,
}

/// A function.
#[derive(Debug, Clone, PartialEq)]
struct Tool {
    name: String,
    /// The schema of its arguments.
    parameters: Value,
    /// Its definition, as the client sent it.
    definition: Value,
}

/// The functions of a request.
#[derive(Debug, Clone, PartialEq)]
pub struct Tools {
    tools: Vec<Tool>,
    choice: Choice,
    /// True if an answer may have several calls.
    parallel: bool,
}

impl Tools {
    /// Reads the functions and the choice.
    ///
    /// # Errors
    /// Names the field that is invalid or not supported.
    pub fn read(fields: &Fields<'_>) -> Result<Self, Problem> {
        fields.refuse(&[("functions", "use `tools`"), ("function_call", "use `tool_choice`")])?;
        let listed = fields.list("tools")?;
        if listed.len() > MAX_FUNCTIONS {
            return Err(invalid("tools", &format!("at most {MAX_FUNCTIONS} functions")));
        }
        let mut tools: Vec<Tool> = Vec::new();
        for (i, definition) in listed.iter().enumerate() {
            let tool = Tool::read(&Fields::of(definition, format!("tools[{i}]"))?, definition)?;
            if tools.iter().any(|other| other.name == tool.name) {
                return Err(invalid(&format!("tools[{i}].function.name"), "another name than those before it"));
            }
            tools.push(tool);
        }
        // parallel calls are allowed unless the client forbids them
        let parallel = fields.get("parallel_tool_calls").is_none() || fields.flag("parallel_tool_calls")?;
        let mut read = Self { choice: if tools.is_empty() { Choice::None } else { Choice::Auto }, tools, parallel };
        let Some(choice) = fields.get("tool_choice") else { return Ok(read) };
        let name = match choice.as_str() {
            Some("none") => {
                read.choice = Choice::None;
                return Ok(read);
            }
            Some("auto") => return Ok(read),
            Some("required") => None,
            Some(_) => return Err(invalid("tool_choice", "none, auto, required or a function")),
            None => {
                let choice = Fields::of(choice, "tool_choice".into())?;
                is_function(&choice)?;
                Some(choice.required_object("function")?.required_text("name")?)
            }
        };
        if let Some(name) = name {
            read.tools.retain(|tool| tool.name == name);
            read.parallel = false;
        }
        if read.tools.is_empty() {
            return Err(invalid("tool_choice", "a function that is in `tools`"));
        }
        read.choice = Choice::Required;
        Ok(read)
    }

    /// The functions that the model may call.
    fn callable(&self) -> &[Tool] {
        if self.choice == Choice::None { &[] } else { &self.tools }
    }

    /// The names of the functions that the model may call.
    pub fn offered(&self) -> Vec<&str> {
        self.callable().iter().map(|tool| tool.name.as_str()).collect()
    }

    /// The definitions of these functions for the prompt.
    pub fn signatures(&self) -> Vec<String> {
        self.callable().iter().map(|tool| spaced(&tool.definition)).collect()
    }

    /// True if the answer has to be a call.
    pub fn must_call(&self) -> bool {
        self.choice == Choice::Required
    }

    /// Returns the shape of an answer of calls or of text with the shape `text`. `None` if no function may be called:
    /// then `text` is the shape of the answer.
    ///
    /// # Errors
    /// If a schema is invalid.
    pub fn shape(&self, text: &Shape) -> Result<Option<Shape>, ModelError> {
        if self.callable().is_empty() {
            return Ok(None);
        }
        // the calls, without the opening mark of the first one
        let more = if self.parallel { format!(" ({} call)*", quoted(&format!("\n{CALL}\n"))) } else { String::new() };
        let calls = format!("calls: call{more}\n");
        let mut grammar = match text {
            _ if self.must_call() => format!("start: calls\n{calls}"),
            Shape::Json(schema) => format!(
                "start: words | {} calls\n{calls}words: %json {}\n",
                quoted(&format!("{CALL}\n")),
                Shape::compact(schema)?
            ),
            _ => format!(
                "start: WORDS | first {} calls\n{calls}first[lazy]: WORDS {}\nWORDS: /(.|\\n)*/\n",
                quoted("\n"),
                quoted(CALL)
            ),
        };
        // one alternative per function, each followed by the closing mark
        let names: Vec<String> = (0..self.callable().len()).map(|i| format!("call_{i}")).collect();
        let mut line = |text: String| {
            // writing to a string cannot fail
            let _ = writeln!(grammar, "{text}");
        };
        line(format!("call: ({}) {}", names.join(" | "), quoted(&format!("\n{CALL_END}"))));
        for (name, tool) in names.iter().zip(self.callable()) {
            line(format!("{name}: {} {name}_args \"}}\"", quoted(&head(&tool.name))));
            line(format!("{name}_args: %json {}", Shape::compact(&tool.parameters)?));
        }
        Ok(Some(Shape::Lark(grammar)))
    }
}

impl Tool {
    fn read(fields: &Fields<'_>, definition: &Value) -> Result<Self, Problem> {
        is_function(fields)?;
        let function = fields.required_object("function")?;
        let name = function.required_text("name")?;
        let fits = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        if name.is_empty() || name.len() > MAX_NAME || !name.chars().all(fits) {
            let what = format!("up to {MAX_NAME} letters, digits, `_` and `-`");
            return Err(invalid(&function.name("name"), &what));
        }
        function.text("description")?;
        let mut parameters = match function.get("parameters") {
            // a function without parameters takes no arguments
            None => Map::from_iter([("properties".into(), json!({}))]),
            Some(Value::Object(schema)) => schema.clone(),
            Some(_) => return Err(invalid(&function.name("parameters"), "a JSON schema")),
        };
        // arguments are an object even if the schema does not say so
        let is_open = ["type", "$ref", "anyOf", "oneOf", "allOf"].iter().all(|word| !parameters.contains_key(*word));
        if is_open {
            parameters.insert("type".into(), json!("object"));
        }
        // an empty list of properties says nothing of others, but a model would make some up
        if parameters.get("properties").and_then(Value::as_object).is_some_and(Map::is_empty)
            && !["$ref", "anyOf", "oneOf", "allOf", "patternProperties"]
                .iter()
                .any(|word| parameters.contains_key(*word))
        {
            parameters.entry("additionalProperties").or_insert(Value::Bool(false));
        }
        Ok(Self { name: name.into(), parameters: parameters.into(), definition: definition.clone() })
    }
}

/// Checks that the `type` of an object is `function`.
///
/// # Errors
/// If it is another one.
pub fn is_function(fields: &Fields<'_>) -> Result<(), Problem> {
    match fields.required_text("type")? {
        "function" => Ok(()),
        _ => Err(unsupported(&fields.name("type"), "`function` is the only type there is")),
    }
}

/// Returns the text of a call before its arguments. The name needs no escaping: [`Tools::read`] checks its
/// characters.
pub fn head(name: &str) -> String {
    format!("{{\"name\": \"{name}\", \"arguments\": ")
}

/// Quotes a text for the grammar.
fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::super::calls::{Calls, Part};
    use super::*;
    use caro_model::engine::{BatchedEngine, Device, Engine, Options};
    use caro_model::scripted::Scripted;
    use caro_model::{Cancel, Finish, Flow, Model, Opening, Prompt, Request, Role, Sampling};
    use std::sync::Arc;

    fn read(body: Value) -> Result<Tools, Value> {
        Tools::read(&Fields::of(&body, String::new()).unwrap()).map_err(|problem| problem.openai()["error"].clone())
    }

    fn two() -> Value {
        json!([
            {"type": "function", "function": {"name": "weather", "description": "Tells it.", "parameters": {
                "type": "object", "required": ["city"], "additionalProperties": false,
                "properties": {"city": {"$ref": "#/$defs/City"}},
                "$defs": {"City": {"enum": ["Oslo", "Rome"]}}}}},
            {"type": "function", "function": {"name": "now"}},
        ])
    }

    /// True if the shape allows this answer.
    fn allows(tools: &Tools, text: &Shape, reply: &str) -> bool {
        let script = json!({"rules": [{"reply": reply}]}).to_string();
        let model = Scripted::parse(&script, "script").unwrap();
        let mut prompt = Prompt::default();
        prompt.push(Role::User, "x");
        let shape = tools.shape(text).unwrap().unwrap();
        let request = Request { prompt, shape, sampling: Sampling::GREEDY, max_tokens: 999, cancel: Cancel::new() };
        match model.generate(&request, &mut |_| Flow::Continue) {
            Ok(_) => true,
            Err(ModelError::Script(why)) if why.contains("breaks the shape") => false,
            Err(other) => panic!("{other}"),
        }
    }

    #[test]
    fn calls_are_constrained_and_text_is_free() {
        let tools = read(json!({"tools": two()})).unwrap();
        let (free, call) =
            (Shape::Text { stop: Vec::new() }, "{\"name\": \"weather\", \"arguments\": {\"city\": \"Oslo\"}}");
        for good in [
            String::new(),
            "It is { fine } </tool_call> <tool_call".to_owned(),
            format!("<tool_call>\n{call}\n</tool_call>"),
            format!(
                "I look.\n<tool_call>\n{call}\n</tool_call>\n<tool_call>\n{{\"name\": \"now\", \"arguments\": {{}}}}\n</tool_call>"
            ),
        ] {
            assert!(allows(&tools, &free, &good), "{good}");
        }
        for bad in [
            "<tool_call>".to_owned(),
            "<tool_call>\nno document".to_owned(),
            format!("<tool_call>\n{call}"),
            format!("<tool_call>\n{}\n</tool_call>", call.replace("Oslo", "Bonn")),
            format!("<tool_call>\n{}\n</tool_call>", call.replace("weather", "whether")),
            format!("<tool_call>\n{call}\n</tool_call> and so on"),
        ] {
            assert!(!allows(&tools, &free, &bad), "{bad}");
        }
        let single = read(json!({"tools": two(), "parallel_tool_calls": false})).unwrap();
        assert!(!allows(
            &single,
            &free,
            &format!("<tool_call>\n{call}\n</tool_call>\n<tool_call>\n{call}\n</tool_call>")
        ));
        let document =
            Shape::Json(json!({"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}));
        assert!(allows(&tools, &document, "{\"a\": 1}") && !allows(&tools, &document, "words"));
        assert!(allows(&tools, &document, &format!("<tool_call>\n{call}\n</tool_call>")));
    }

    #[test]
    fn a_required_call_is_the_whole_answer() {
        let free = Shape::Text { stop: Vec::new() };
        let call = "{\"name\": \"now\", \"arguments\": {}}\n</tool_call>";
        let required = read(json!({"tools": two(), "tool_choice": "required"})).unwrap();
        assert!(required.must_call() && allows(&required, &free, call) && !allows(&required, &free, "words"));
        let named = json!({"tools": two(), "tool_choice": {"type": "function", "function": {"name": "weather"}}});
        let named = read(named).unwrap();
        assert!(!allows(&named, &free, call));
        assert_eq!(named.offered(), ["weather"]);
        let none = read(json!({"tools": two(), "tool_choice": "none"})).unwrap();
        assert_eq!((none.shape(&free).unwrap(), none.signatures().len()), (None, 0));
        assert_eq!(read(json!({})).unwrap().shape(&free).unwrap(), None);
    }

    #[test]
    fn a_function_without_parameters_takes_no_arguments() {
        let free = Shape::Text { stop: Vec::new() };
        let call = |arguments: &str| format!("{{\"name\": \"f\", \"arguments\": {arguments}}}\n</tool_call>");
        let of = |function: Value| {
            let tools = json!([{"type": "function", "function": function}]);
            read(json!({"tools": tools, "tool_choice": "required"})).unwrap()
        };
        for none in [
            json!({"name": "f"}),
            json!({"name": "f", "parameters": null}),
            json!({"name": "f", "parameters": {"type": "object", "properties": {}}}),
        ] {
            let tools = of(none.clone());
            assert!(allows(&tools, &free, &call("{}")) && !allows(&tools, &free, &call("{\"a\": 1}")), "{none}");
        }
        for any in [
            json!({"name": "f", "parameters": {"type": "object"}}),
            json!({"name": "f", "parameters": {"type": "object", "properties": {}, "additionalProperties": true}}),
        ] {
            assert!(allows(&of(any.clone()), &free, &call("{\"a\": 1}")), "{any}");
        }
    }

    /// Uses a model with random weights and its own vocabulary.
    #[test]
    fn the_engine_generates_only_valid_calls() {
        let file = caro_model::engine::testing::tiny_file();
        let options = Options { device: Device::Cpu, ..Options::default() };
        let engine = Engine::open(file.path(), "tiny", &options).unwrap();
        let model = BatchedEngine::or_alone(Arc::new(engine), 4);
        let tools = read(json!({"tools": two(), "tool_choice": {"type": "function", "function": {"name": "weather"}}}));
        let shape = tools.unwrap().shape(&Shape::Text { stop: Vec::new() }).unwrap().unwrap();
        let ask = |seed: u64| {
            let mut prompt = Prompt { opening: Opening::Call, ..Prompt::default() };
            prompt.push(Role::User, "hello");
            let sampling = Sampling { temperature: 1.0, top_p: 1.0, seed };
            let request = Request { prompt, shape: shape.clone(), sampling, max_tokens: 300, cancel: Cancel::new() };
            model.generate(&request, &mut |_| Flow::Continue).unwrap()
        };
        let answers = std::thread::scope(|scope| {
            let callers: Vec<_> = (0..6)
                .map(|seed| {
                    scope.spawn({
                        let ask = &ask;
                        move || ask(seed)
                    })
                })
                .collect();
            callers.into_iter().map(|caller| caller.join().unwrap()).collect::<Vec<_>>()
        });
        for answer in answers {
            let mut calls = Calls::new(true);
            let mut parts = calls.push(&answer.text);
            parts.extend(calls.finish(true));
            let [Part::Call(name), Part::Arguments(arguments)] = &parts[..] else { panic!("{answer:?}") };
            let arguments: Value = serde_json::from_str(arguments).unwrap();
            assert!(name == "weather" && ["Oslo", "Rome"].iter().any(|city| arguments == json!({"city": city})));
            assert_eq!(answer.finish, Finish::Stop);
        }
    }

    #[test]
    fn an_invalid_field_is_named_with_its_path() {
        let function = |function: Value| json!([{"type": "function", "function": function}]);
        for (body, param) in [
            (json!({"tools": [{"type": "web_search"}]}), "tools[0].type"),
            (json!({"tools": ["x"]}), "tools[0]"),
            (json!({"tools": function(json!({}))}), "tools[0].function.name"),
            (json!({"tools": function(json!({"name": "a b"}))}), "tools[0].function.name"),
            (json!({"tools": function(json!({"name": "a\"}"}))}), "tools[0].function.name"),
            (json!({"tools": function(json!({"name": "x".repeat(65)}))}), "tools[0].function.name"),
            (json!({"tools": function(json!({"name": "a", "parameters": 1}))}), "tools[0].function.parameters"),
            (json!({"tools": [two()[1], two()[1]]}), "tools[1].function.name"),
            (json!({"tools": two(), "tool_choice": "always"}), "tool_choice"),
            (json!({"tools": two(), "tool_choice": {"type": "function", "function": {"name": "x"}}}), "tool_choice"),
            (json!({"tools": two(), "tool_choice": {"type": "allowed_tools"}}), "tool_choice.type"),
            (json!({"tool_choice": "required"}), "tool_choice"),
            (json!({"functions": [{"name": "a"}]}), "functions"),
        ] {
            let error = read(body.clone()).unwrap_err();
            assert_eq!(error["param"], param, "{body}: {error}");
        }
    }
}
