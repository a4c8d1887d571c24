//! What a tool is, and the one registry through which all of them are found, wherever they come from.
//!
//! A tool says what it takes (a JSON schema), what a particular call would do ([`Effects`]) before it is done, and does
//! it. Its output is [`Raw`]: it cannot be read but by [`crate::observe`].

use super::observe::Raw;
use caro_base::id;
use caro_model::Cancel;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// The arguments of a call: one JSON object.
pub type Args = Map<String, Value>;

/// The actions that end a run. They are no tools and cannot be registered as such.
pub const RESERVED: [&str; 2] = ["answer", "cannot"];

/// Where a tool comes from. The model is not told.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Provider {
    /// Part of this program.
    Builtin,
    /// The runtime's own: workspace and artifacts.
    Workspace,
    /// A server of the model context protocol, by name.
    Mcp(String),
    /// One skill or several, by name.
    Skill(String),
    /// A helper agent.
    Subagent,
}

/// What is known about a tool without calling it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolSpec {
    /// Its name: letters, digits, `_`, `-` and `.`.
    pub name: String,
    /// What it does, in a sentence or two.
    pub description: String,
    /// Its arguments: a JSON schema of type `object`.
    pub parameters: Value,
    /// Arguments as they may be written: the worked example that the prompt shows.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub example: Value,
    /// True if calls of it may run beside others of the same batch: it changes nothing.
    pub parallel: bool,
    /// How long a call may take.
    pub timeout: Duration,
    /// Where it comes from.
    pub provider: Provider,
    /// True if it is always shown, and not only when it fits the task.
    pub core: bool,
    /// Names of tools that nobody needs where this one is shown: it does what they do.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub covers: Vec<String>,
    /// What the model has for its name, where that is another: given by [`crate::retrieve::view`], and resolved
    /// before anything else sees a call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alias: Option<String>,
}

impl ToolSpec {
    /// A built-in tool with the default limits. `parameters` lists the arguments' schemas in the order in which the model
    /// writes them; those in `required` must be given.
    pub fn new(name: &str, description: &str, parameters: Value, required: &[&str]) -> Self {
        Self {
            name: name.into(),
            description: description.into(),
            parameters: serde_json::json!({
                "type": "object", "properties": parameters, "required": required, "additionalProperties": false
            }),
            example: Value::Null,
            parallel: true,
            timeout: Duration::from_secs(30),
            provider: Provider::Builtin,
            core: false,
            covers: Vec::new(),
            alias: None,
        }
    }

    /// The name that the model has for it.
    pub fn shown(&self) -> &str {
        self.alias.as_deref().unwrap_or(&self.name)
    }

    /// The text that retrieval looks into.
    pub fn search_text(&self) -> String {
        let properties = self.parameters.get("properties").and_then(Value::as_object);
        let names: Vec<&str> = properties.into_iter().flat_map(|p| p.keys()).map(String::as_str).collect();
        format!("{} {} {}", self.name, self.description, names.join(" "))
    }

    /// Holds arguments against the schema, turning integers that came as text into integers.
    ///
    /// # Errors
    /// What is wrong, in words that name the argument.
    pub fn validate(&self, args: &mut Args) -> Result<(), String> {
        let fail = |what: String| Err(format!("Argument Validation Error: {what} (Check tool schema)"));
        let properties = self.parameters.get("properties").and_then(Value::as_object);
        let required = self.parameters.get("required").and_then(Value::as_array);
        for name in required.into_iter().flatten().filter_map(Value::as_str) {
            if args.get(name).is_none_or(Value::is_null) {
                return fail(format!("`{name}` is required"));
            }
        }
        let closed = self.parameters.get("additionalProperties") == Some(&Value::Bool(false));
        for (name, value) in args.iter_mut() {
            let Some(schema) = properties.and_then(|p| p.get(name)) else {
                if closed {
                    return fail(format!("there is no argument `{name}`"));
                }
                continue;
            };
            if let Err(want) = fits(schema, value) {
                return fail(format!("`{name}` must be {want}"));
            }
        }
        Ok(())
    }
}

/// Holds one value against its schema; the error says what it should be.
pub(super) fn fits(schema: &Value, value: &mut Value) -> Result<(), String> {
    if let Some(Value::Array(options)) = schema.get("enum")
        && !options.contains(value)
    {
        let options: Vec<String> = options.iter().map(Value::to_string).collect();
        return Err(format!("one of {}", options.join(", ")));
    }
    let Some(kind) = schema.get("type").and_then(Value::as_str) else { return Ok(()) };
    if matches!(kind, "integer" | "number")
        && let Some(number) = value.as_str().and_then(|text| text.trim().parse::<i64>().ok())
    {
        *value = number.into();
    }
    let right = match kind {
        "string" => value.is_string(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        "null" => value.is_null(),
        _ => true,
    };
    if !right {
        let article = if kind.starts_with(['a', 'i', 'o']) { "an" } else { "a" };
        return Err(format!("{article} {kind}"));
    }
    let least = schema.get("minimum").and_then(Value::as_i64);
    if least.is_some_and(|least| value.as_i64().is_some_and(|n| n < least)) {
        return Err(format!("at least {}", least.unwrap_or_default()));
    }
    if let (Value::Array(items), Some(schema)) = (value, schema.get("items")) {
        for item in items {
            fits(schema, item).map_err(|want| format!("a list whose items are each {want}"))?;
        }
    }
    Ok(())
}

/// How much may go wrong with a call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Hazard {
    /// It reads, or writes where only the agent writes.
    #[default]
    None,
    /// It changes something of the person's, reaches the network, or cannot be foreseen.
    Change,
    /// It may destroy, open up or hand over something.
    Danger,
}

/// What one call would do, foreseen without doing it. Paths are absolute and normalised.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Effects {
    /// Files and folders it looks into.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reads: Vec<PathBuf>,
    /// Files whose text would become its result, so that calling it again would show the same again, named by
    /// [`shown_part`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shows: Vec<String>,
    /// Files it writes, changes or deletes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub writes: Vec<PathBuf>,
    /// True if files are gone afterwards.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub removes: bool,
    /// True if it changes the text of a file that is there, where it stands.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub edits: bool,
    /// True if it may write what cannot be foreseen.
    #[serde(default)]
    pub opaque: bool,
    /// True if it reaches the network.
    #[serde(default)]
    pub net: bool,
    /// True if it starts programs.
    #[serde(default)]
    pub exec: bool,
    /// How much may go wrong.
    #[serde(default)]
    pub hazard: Hazard,
    /// Why, for the person who is asked.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reasons: Vec<String>,
}

impl Effects {
    /// True if it changes nothing and sends nothing.
    pub fn is_read_only(&self) -> bool {
        self.writes.is_empty() && !self.opaque && !self.net && self.hazard == Hazard::None
    }
}

/// One call of a tool, as the model wrote it and the tool foresaw it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Call {
    /// `s3c1`: the first call of step 3. Stable over a resume.
    pub id: String,
    /// The tool.
    pub tool: String,
    /// Its arguments.
    pub args: Args,
    /// What it would do.
    #[serde(default)]
    pub effects: Effects,
}

impl Call {
    /// The same tool with the same arguments, in whatever order, has the same signature.
    pub fn signature(&self) -> String {
        let sorted: BTreeMap<&String, &Value> = self.args.iter().collect();
        format!("{}:{}", self.tool, id::hash(serde_json::to_string(&sorted).unwrap_or_default()))
    }

    /// The arguments in one line, for a person.
    pub fn summary(&self) -> String {
        let mut line = match self.args.len() {
            1 => match self.args.values().next() {
                Some(Value::String(text)) => text.clone(),
                Some(other) => other.to_string(),
                None => String::new(),
            },
            _ => {
                let part = |(name, value): (&String, &Value)| match value {
                    Value::String(text) => format!("{name}={text}"),
                    other => format!("{name}={other}"),
                };
                self.args.iter().map(part).collect::<Vec<_>>().join(" ")
            }
        };
        line.truncate(line.trim_end().len());
        if let Some(end) = line.find('\n') {
            line.truncate(end);
            line.push('…');
        }
        line
    }
}

/// How a call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It did what it was to do.
    #[serde(rename = "done")]
    Succeeded,
    /// It failed, or its arguments were wrong.
    Failed,
    /// It printed what it had to say, and ended with an error all the same: a build that breaks, tests that do not pass.
    FailedLate,
    /// It took too long.
    TimedOut,
    /// A guard did not let it run. Not an error: the text says what to do instead.
    Blocked,
    /// The person, or the policy in the person's place, did not allow it.
    Denied,
    /// The run was stopped meanwhile.
    Cancelled,
}

impl Outcome {
    /// True if the model made a mistake or the tool could not.
    pub fn is_error(self) -> bool {
        matches!(self, Self::Failed | Self::FailedLate | Self::TimedOut)
    }
}

/// A call with what became of it. `text` has been through the observation pipeline.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolResult {
    /// The call.
    pub call: Call,
    /// How it ended.
    pub outcome: Outcome,
    /// What the model is told about it.
    pub text: String,
    /// SHA-256 of the whole output.
    pub hash: String,
    /// Wall time, milliseconds.
    pub ms: u64,
}

/// True for the line that a tool puts behind what a program printed that ended with an error.
pub fn is_exit_note(line: &str) -> bool {
    line.starts_with("(exit code ") && line.ends_with(')')
}

impl ToolResult {
    /// What it came to, in a line: of a failure the complaint that it begins with, or how it ended behind all that it printed.
    pub fn line(&self) -> &str {
        let mut lines = self.text.lines().filter(|line| !line.trim().is_empty());
        let last = lines.clone().rfind(|line| is_exit_note(line)).filter(|_| self.outcome == Outcome::FailedLate);
        last.or_else(|| lines.next()).unwrap_or_default()
    }

    /// True if the text is the whole output: nothing was shortened, or said beside it.
    pub fn is_whole(&self) -> bool {
        self.hash == id::hash(&self.text)
    }
}

/// What a call may use.
#[derive(Clone)]
pub struct ToolCx {
    /// The person's working directory: relative paths start here.
    pub root: PathBuf,
    /// Pulled when the run is stopped or the call's time is up.
    pub cancel: Cancel,
    /// When the call's time is up, counted from its start.
    pub timeout: Duration,
}

/// Why a tool gave no result.
#[derive(Debug, thiserror::Error)]
pub enum ToolError {
    /// There is no tool of that name.
    #[error("there is no tool `{name}`; the tools are: {known}")]
    Unknown {
        /// The name.
        name: String,
        /// The names there are.
        known: String,
    },
    /// The arguments are wrong.
    #[error("{0}")]
    Arguments(String),
    /// A file or program was not to be had.
    #[error("{what}: {source}")]
    Io {
        /// What was tried.
        what: String,
        /// The system's word.
        source: std::io::Error,
    },
    /// It could not be done; the text says why and what to try.
    #[error("{0}")]
    Failed(String),
    /// It took too long.
    #[error("Tool call timed out after {0} s. Please try again or use a different approach.")]
    TimedOut(u64),
    /// It was stopped.
    #[error("aborted by the user after {0:.1} s")]
    Cancelled(f64),
}

impl ToolError {
    /// What to do next.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Unknown { .. } => "use one of the tools that are listed",
            Self::Arguments(_) => "write the arguments as the tool's schema has them",
            Self::Io { .. } => "look at the folder first, and check the path",
            Self::Failed(_) => "change the arguments or take another way",
            Self::TimedOut(_) => "ask for less at once",
            Self::Cancelled(_) => "`caro resume` goes on where it stopped",
        }
    }
}

/// What a call does to a file of the harness' own, as its events say it; by the name that the model has for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Touch {
    /// Reads it.
    Reads(String),
    /// Writes or changes it.
    Writes(String),
    /// Deletes it.
    Deletes(String),
}

/// Something that the model can have done.
pub trait Tool: Send + Sync {
    /// What is known about it without calling it.
    fn spec(&self) -> &ToolSpec;

    /// What this call would do. Must not do any of it; may look at the file system to resolve a path.
    fn effects(&self, args: &Args, cx: &ToolCx) -> Effects;

    /// The files of the harness' own that this call is about; told as events once it is done.
    fn touches(&self, _args: &Args) -> Vec<Touch> {
        Vec::new()
    }

    /// Does it. Runs on a thread where it may block; looks at `cx.cancel` where it takes long.
    ///
    /// # Errors
    /// If it cannot be done. A panic is caught and becomes an error of the call.
    fn call(&self, args: &Args, cx: &ToolCx) -> Result<Raw, ToolError>;
}

/// Every tool of a run, by name.
#[derive(Clone, Default)]
pub struct Registry {
    tools: BTreeMap<String, Arc<dyn Tool>>,
}

/// Two tools of one name, or a name that cannot be one.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum RegistryError {
    /// The name is taken.
    #[error("there are two tools named `{0}`")]
    Taken(String),
    /// The name is reserved or has other characters than letters, digits, `_`, `-` and `.`.
    #[error("`{0}` cannot be the name of a tool")]
    Name(String),
}

impl RegistryError {
    /// What to do next.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Taken(_) => "rename one of them, or leave out the server or skill it comes from",
            Self::Name(_) => "use letters, digits, _ - and . in a tool's name; `answer` and `cannot` are taken",
        }
    }
}

impl Registry {
    /// Adds a tool.
    ///
    /// # Errors
    /// If its name is taken or cannot be one.
    pub fn add(&mut self, tool: Arc<dyn Tool>) -> Result<(), RegistryError> {
        let name = tool.spec().name.clone();
        let fine = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
        if name.is_empty() || name.len() > 64 || !name.chars().all(fine) || RESERVED.contains(&name.as_str()) {
            return Err(RegistryError::Name(name));
        }
        if self.tools.contains_key(&name) {
            return Err(RegistryError::Taken(name));
        }
        self.tools.insert(name, tool);
        Ok(())
    }

    /// The tool of that name.
    ///
    /// # Errors
    /// [`ToolError::Unknown`], listing the names there are.
    pub fn get(&self, name: &str) -> Result<&Arc<dyn Tool>, ToolError> {
        self.tools.get(name).ok_or_else(|| ToolError::Unknown {
            name: name.into(),
            known: self.tools.keys().cloned().collect::<Vec<_>>().join(", "),
        })
    }

    /// Every tool's spec, by name.
    pub fn specs(&self) -> impl Iterator<Item = &ToolSpec> {
        self.tools.values().map(|tool| tool.spec())
    }
}

/// The name of a text that a call shows, for [`Effects::shows`]: the file, how it is now, and which part of it. A file that
/// anybody has changed meanwhile has another name, and is not taken for what was shown.
pub fn shown_part(path: &Path, part: &str) -> String {
    let now = path.metadata().ok().map(|meta| (meta.len(), meta.modified().ok()));
    let state = id::hash(format!("{now:?}"));
    format!("{}#{}:{part}", path.display(), &state[..8])
}

/// `~` is the person's home.
pub fn home(path: &str) -> String {
    match (path.strip_prefix('~'), std::env::home_dir()) {
        (Some(rest), Some(home)) if rest.is_empty() || rest.starts_with('/') => format!("{}{rest}", home.display()),
        _ => path.to_owned(),
    }
}

/// A path as guards compare it: absolute, without `.` and `..`, with the links of what exists resolved.
pub fn normal(root: &Path, path: &str) -> PathBuf {
    let mut clean = PathBuf::new();
    for part in root.join(path).components() {
        match part {
            Component::CurDir => {}
            // what is above the top is the top
            Component::ParentDir => {
                // a link must be followed before its parent is taken
                clean = clean.canonicalize().unwrap_or(clean);
                clean.pop();
            }
            other => clean.push(other),
        }
    }
    let mut rest = Vec::new();
    let mut existing = clean.as_path();
    loop {
        if let Ok(resolved) = existing.canonicalize() {
            return rest.into_iter().rev().fold(resolved, |path, part: &std::ffi::OsStr| path.join(part));
        }
        match (existing.parent(), existing.file_name()) {
            (Some(parent), Some(name)) => {
                rest.push(name);
                existing = parent;
            }
            _ => return clean,
        }
    }
}

/// The file that a shown text is of (see [`shown_part`]).
pub fn file_of(shown: &str) -> &str {
    match shown.rsplit_once('#') {
        Some((path, part)) if part.bytes().all(|b| b.is_ascii_hexdigit() || b == b':') => path,
        _ => shown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn paths_are_compared_as_the_system_follows_them() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        std::fs::create_dir(root.join("a")).unwrap();
        assert_eq!(normal(&root, "./a/../b/./c"), root.join("b/c"));
        assert_eq!(normal(&root, "/../../x"), Path::new("/x"));
        #[cfg(unix)]
        {
            std::os::unix::fs::symlink("/usr", root.join("link")).unwrap();
            assert_eq!(normal(&root, "link/new"), Path::new("/usr/new"));
            assert_eq!(normal(&root, "link/../etc"), Path::new("/etc"));
        }
    }

    fn spec() -> ToolSpec {
        let parameters = json!({
            "path": {"type": "string"}, "lines": {"type": "integer", "minimum": 1},
            "mode": {"enum": ["a", "b"]}, "all": {"type": "array", "items": {"type": "string"}}
        });
        ToolSpec::new("read", "reads", parameters, &["path"])
    }

    fn check(args: Value) -> Result<Args, String> {
        let Value::Object(mut args) = args else { unreachable!() };
        spec().validate(&mut args).map(|()| args)
    }

    #[test]
    fn arguments_are_held_against_the_schema() {
        assert_eq!(check(json!({"path": "a", "lines": "5"})).unwrap()["lines"], 5);
        for (args, why) in [
            (json!({}), "`path` is required"),
            (json!({"path": null}), "`path` is required"),
            (json!({"path": 1}), "`path` must be a string"),
            (json!({"path": "a", "lines": "x"}), "`lines` must be an integer"),
            (json!({"path": "a", "lines": 0}), "`lines` must be at least 1"),
            (json!({"path": "a", "mode": "c"}), "`mode` must be one of \"a\", \"b\""),
            (json!({"path": "a", "all": ["x", 1]}), "items are each a string"),
            (json!({"path": "a", "pth": "b"}), "there is no argument `pth`"),
        ] {
            let error = check(args).unwrap_err();
            assert!(error.contains(why) && error.starts_with("Argument Validation Error:"), "{error}");
        }
    }

    struct Named(ToolSpec);

    impl Tool for Named {
        fn spec(&self) -> &ToolSpec {
            &self.0
        }

        fn effects(&self, _: &Args, _: &ToolCx) -> Effects {
            Effects::default()
        }

        fn call(&self, _: &Args, _: &ToolCx) -> Result<Raw, ToolError> {
            Ok(Raw::text(""))
        }
    }

    #[test]
    fn a_name_is_there_once_and_what_ends_a_run_is_no_tool() {
        let named = |name: &str| Arc::new(Named(ToolSpec::new(name, "does it.", json!({}), &[]))) as Arc<dyn Tool>;
        let mut registry = Registry::default();
        for name in ["read", "a.b-c_9", &"x".repeat(64)] {
            assert_eq!(registry.add(named(name)), Ok(()), "{name}");
        }
        let taken = registry.add(named("read")).unwrap_err();
        assert_eq!(taken, RegistryError::Taken("read".into()));
        assert!(taken.to_string().contains("`read`") && taken.hint().contains("rename"), "{taken}");
        for name in [RESERVED[0], RESERVED[1], "", "a b", "a/b", "ä", &"x".repeat(65)] {
            assert_eq!(registry.add(named(name)), Err(RegistryError::Name(name.into())), "{name}");
        }
        assert_eq!(registry.specs().count(), 3);
        let unknown = registry.get("write").err().unwrap();
        let long = "x".repeat(64);
        assert_eq!(unknown.to_string(), format!("there is no tool `write`; the tools are: a.b-c_9, read, {long}"));
    }

    #[test]
    fn the_order_of_arguments_does_not_make_another_call() {
        let call = |args: Value| {
            let Value::Object(args) = args else { unreachable!() };
            Call { id: "s1c1".into(), tool: "t".into(), args, effects: Effects::default() }
        };
        assert_eq!(call(json!({"a": 1, "b": 2})).signature(), call(json!({"b": 2, "a": 1})).signature());
        assert_ne!(call(json!({"a": 1})).signature(), call(json!({"a": "1"})).signature());
        assert_eq!(call(json!({"cmd": "ls\n-l"})).summary(), "ls…");
        assert_eq!(call(json!({"path": "a.txt", "content": "x\n"})).summary(), "path=a.txt content=x");
    }
}
