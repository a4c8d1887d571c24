//! Defines tools, and the registry through which all of them are found, whatever their provider.
//!
//! A tool describes its arguments (a JSON schema) and, before a call, what that call would do ([`Effects`]); then it
//! makes the call. Its output is [`Raw`], which only [`crate::observe`] can read.

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

/// The actions that end a run. No tool can have one of these names.
pub const RESERVED: [&str; 2] = ["answer", "cannot"];

/// The origin of a tool. The model does not see it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Provider {
    /// Part of this program.
    Builtin,
    /// The runtime: tools for the workspace and artifacts.
    Workspace,
    /// A server of the Model Context Protocol, by name.
    Mcp(String),
    /// One skill or several, by name.
    Skill(String),
    /// A helper agent.
    Subagent,
}

/// The description of a tool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolSpec {
    /// Its name: letters, digits, `_`, `-` and `.`.
    pub name: String,
    /// Its purpose, in a sentence or two.
    pub description: String,
    /// Its arguments: a JSON schema of type `object`.
    pub parameters: Value,
    /// Example arguments, shown in the prompt.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub example: Value,
    /// True if its calls may run in parallel with others of the same batch, as they change nothing.
    pub parallel: bool,
    /// The timeout of a call.
    pub timeout: Duration,
    /// Its origin.
    pub provider: Provider,
    /// True if it is always shown, and not only when it matches the task.
    pub core: bool,
    /// Names of tools that are hidden where this one is shown, as it does what they do.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub covers: Vec<String>,
    /// The name that the model sees, if it differs. Set by [`crate::retrieve::view`], and resolved before anything else
    /// sees a call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alias: Option<String>,
}

impl ToolSpec {
    /// Creates a built-in tool with the default limits. `parameters` lists the arguments' schemas in the order in
    /// which the model writes them; those in `required` must be given.
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

    /// Returns the name that the model sees.
    pub fn shown(&self) -> &str {
        self.alias.as_deref().unwrap_or(&self.name)
    }

    /// Returns the text that retrieval searches.
    pub fn search_text(&self) -> String {
        let properties = self.parameters.get("properties").and_then(Value::as_object);
        let names: Vec<&str> = properties.into_iter().flat_map(|p| p.keys()).map(String::as_str).collect();
        format!("{} {} {}", self.name, self.description, names.join(" "))
    }

    /// Checks arguments against the schema, and converts integers given as text.
    ///
    /// # Errors
    /// A message that names the argument and what is wrong with it.
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

/// Checks one value against its schema; the error says what it should be.
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

/// The hazard of a call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Hazard {
    /// It only reads, or writes where only the agent writes.
    #[default]
    None,
    /// It changes something of the user's, reaches the network, or cannot be foreseen.
    Change,
    /// It may destroy data, open access or give data away.
    Danger,
}

/// The effects that a call would have, foreseen without making it. Paths are absolute and normalised.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Effects {
    /// Files and folders it reads.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reads: Vec<PathBuf>,
    /// Files whose text is its result, named by [`shown_part`]: a second call would show the same.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shows: Vec<String>,
    /// Files it writes, changes or deletes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub writes: Vec<PathBuf>,
    /// True if it removes files.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub removes: bool,
    /// True if it changes the text of an existing file in place.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub edits: bool,
    /// True if it may write files that cannot be foreseen.
    #[serde(default)]
    pub opaque: bool,
    /// True if it reaches the network.
    #[serde(default)]
    pub net: bool,
    /// True if it starts programs.
    #[serde(default)]
    pub exec: bool,
    /// The hazard.
    #[serde(default)]
    pub hazard: Hazard,
    /// The reasons for the hazard, for the user who is asked.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reasons: Vec<String>,
}

impl Effects {
    /// True if it changes nothing and sends nothing.
    pub fn is_read_only(&self) -> bool {
        self.writes.is_empty() && !self.opaque && !self.net && self.hazard == Hazard::None
    }
}

/// One call of a tool, with the effects that the tool foresees.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Call {
    /// Its id: `s3c1` is the first call of step 3. Stays the same when a run is resumed.
    pub id: String,
    /// The tool.
    pub tool: String,
    /// Its arguments.
    pub args: Args,
    /// The effects it would have.
    #[serde(default)]
    pub effects: Effects,
}

impl Call {
    /// Returns the signature, the same for the same tool with the same arguments in any order.
    pub fn signature(&self) -> String {
        let sorted: BTreeMap<&String, &Value> = self.args.iter().collect();
        format!("{}:{}", self.tool, id::hash(serde_json::to_string(&sorted).unwrap_or_default()))
    }

    /// Returns the arguments on one line, for display.
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

/// The outcome of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It succeeded.
    #[serde(rename = "done")]
    Succeeded,
    /// It failed, or its arguments were wrong.
    Failed,
    /// It printed its output and ended with an error status: a failing build, failing tests.
    FailedLate,
    /// It took too long.
    TimedOut,
    /// A guard blocked it. Not an error: the text says what to do instead.
    Blocked,
    /// The user, or the policy without asking the user, did not allow it.
    Denied,
    /// The run was stopped.
    Cancelled,
}

impl Outcome {
    /// True if the call itself failed.
    pub fn is_error(self) -> bool {
        matches!(self, Self::Failed | Self::FailedLate | Self::TimedOut)
    }
}

/// A call with its result. `text` has been through the observation pipeline.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolResult {
    /// The call.
    pub call: Call,
    /// Its outcome.
    pub outcome: Outcome,
    /// The text that the model sees.
    pub text: String,
    /// SHA-256 of the whole output.
    pub hash: String,
    /// Wall time, milliseconds.
    pub ms: u64,
}

/// True for the line that a tool appends to the output of a program that ended with an error status.
pub fn is_exit_note(line: &str) -> bool {
    line.starts_with("(exit code ") && line.ends_with(')')
}

impl ToolResult {
    /// Returns the line that sums up the result: the note about the exit status after [`Outcome::FailedLate`],
    /// otherwise the first line, which of a failure is the error message.
    pub fn line(&self) -> &str {
        let mut lines = self.text.lines().filter(|line| !line.trim().is_empty());
        let is_late = self.outcome == Outcome::FailedLate;
        let note = if is_late { lines.clone().rfind(|line| is_exit_note(line)) } else { None };
        note.or_else(|| lines.next()).unwrap_or_default()
    }

    /// True if the text is exactly the output: nothing was shortened or added.
    pub fn is_whole(&self) -> bool {
        self.hash == id::hash(&self.text)
    }
}

/// The context of a call.
#[derive(Clone)]
pub struct ToolCx {
    /// The user's working directory, to which paths are relative.
    pub root: PathBuf,
    /// Cancelled when the run is stopped or the call times out.
    pub cancel: Cancel,
    /// The timeout of the call.
    pub timeout: Duration,
}

/// The reason why a tool gave no result.
#[derive(Debug, thiserror::Error)]
pub enum ToolError {
    /// There is no tool of that name.
    #[error("there is no tool `{name}`; the tools are: {known}")]
    Unknown {
        /// The name.
        name: String,
        /// The names of all tools.
        known: String,
    },
    /// The arguments are wrong.
    #[error("{0}")]
    Arguments(String),
    /// A file or program could not be used.
    #[error("{what}: {source}")]
    Io {
        /// The operation that failed.
        what: String,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// It could not be done; the text says why and what to try.
    #[error("{0}")]
    Failed(String),
    /// It took too long.
    #[error("Tool call timed out after {0} s. Please try again or use a different approach.")]
    TimedOut(u64),
    /// It was stopped with its run: by the user, or by a time limit of the run.
    #[error("stopped after {0:.1} s")]
    Cancelled(f64),
}

impl ToolError {
    /// Advice on what to do next.
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

/// An access of a call to a file of the harness, for events. Holds the file's name as the model knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Touch {
    /// Reads it.
    Reads(String),
    /// Writes or changes it.
    Writes(String),
    /// Deletes it.
    Deletes(String),
}

/// A tool that the model can call.
pub trait Tool: Send + Sync {
    /// The description of the tool.
    fn spec(&self) -> &ToolSpec;

    /// Foresees the effects of a call. Must have no effects itself, but may read the file system to resolve a path.
    fn effects(&self, args: &Args, cx: &ToolCx) -> Effects;

    /// The files of the harness that a call accesses; emitted as events once it is done.
    fn touches(&self, _args: &Args) -> Vec<Touch> {
        Vec::new()
    }

    /// Makes the call. Runs on a thread that may block; a call that takes long checks `cx.cancel`.
    ///
    /// # Errors
    /// If the call fails. A panic is caught and becomes an error of the call.
    fn call(&self, args: &Args, cx: &ToolCx) -> Result<Raw, ToolError>;
}

/// Every tool of a run, by name.
#[derive(Clone, Default)]
pub struct Registry {
    tools: BTreeMap<String, Arc<dyn Tool>>,
}

/// The reason why a tool cannot be registered.
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
    /// Advice to the user.
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
    /// If its name is taken or invalid.
    pub fn add(&mut self, tool: Arc<dyn Tool>) -> Result<(), RegistryError> {
        let name = tool.spec().name.clone();
        let is_allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
        if name.is_empty() || name.len() > 64 || !name.chars().all(is_allowed) || RESERVED.contains(&name.as_str()) {
            return Err(RegistryError::Name(name));
        }
        if self.tools.contains_key(&name) {
            return Err(RegistryError::Taken(name));
        }
        self.tools.insert(name, tool);
        Ok(())
    }

    /// Returns the tool of that name.
    ///
    /// # Errors
    /// [`ToolError::Unknown`], which lists the names of all tools.
    pub fn get(&self, name: &str) -> Result<&Arc<dyn Tool>, ToolError> {
        self.tools.get(name).ok_or_else(|| ToolError::Unknown {
            name: name.into(),
            known: self.tools.keys().cloned().collect::<Vec<_>>().join(", "),
        })
    }

    /// Returns the description of every tool, sorted by name.
    pub fn specs(&self) -> impl Iterator<Item = &ToolSpec> {
        self.tools.values().map(|tool| tool.spec())
    }
}

/// Returns the name of a text that a call shows, for [`Effects::shows`]: the file, a hash of its length and
/// modification time, and the part of it. A changed file gets another name, so that it counts as not shown yet.
pub fn shown_part(path: &Path, part: &str) -> String {
    let now = path.metadata().ok().map(|meta| (meta.len(), meta.modified().ok()));
    let state = id::hash(format!("{now:?}"));
    format!("{}#{}:{part}", path.display(), &state[..8])
}

/// Expands a leading `~` to the user's home directory.
pub fn home(path: &str) -> String {
    match (path.strip_prefix('~'), std::env::home_dir()) {
        (Some(rest), Some(home)) if rest.is_empty() || rest.starts_with('/') => format!("{}{rest}", home.display()),
        _ => path.to_owned(),
    }
}

/// Most links followed from a path whose end does not exist, as a cycle of links has no end.
const MAX_LINKS: usize = 40;

/// Normalises a path so that guards can compare it: absolute, without `.` and `..`, and with symbolic links resolved as
/// far as the path exists; a link to nothing is resolved too, since writing to it creates its target.
pub fn normal(root: &Path, path: &str) -> PathBuf {
    resolved(root, Path::new(path), MAX_LINKS)
}

fn resolved(root: &Path, path: &Path, links: usize) -> PathBuf {
    let mut clean = PathBuf::new();
    for part in root.join(path).components() {
        match part {
            Component::CurDir => {}
            // `..` at the root stays at the root
            Component::ParentDir => {
                // a link is resolved before its parent is taken, as the system does it
                clean = clean.canonicalize().unwrap_or(clean);
                clean.pop();
            }
            other => clean.push(other),
        }
    }
    let mut rest = Vec::new();
    let mut existing = clean.as_path();
    let whole =
        |start: PathBuf, rest: Vec<&std::ffi::OsStr>| rest.into_iter().rev().fold(start, |path, part| path.join(part));
    loop {
        if let Ok(resolved) = existing.canonicalize() {
            return whole(resolved, rest);
        }
        let (Some(parent), Some(name)) = (existing.parent(), existing.file_name()) else { return clean };
        if links > 0
            && let Ok(target) = existing.read_link()
        {
            return whole(resolved(parent, &target, links - 1), rest);
        }
        rest.push(name);
        existing = parent;
    }
}

/// Returns the file of a name made by [`shown_part`].
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
    fn paths_are_normalised_as_the_system_resolves_them() {
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
            let link = |target: &str, name: &str| std::os::unix::fs::symlink(target, root.join(name)).unwrap();
            link("deep/none", "dangling");
            link("dangling", "again");
            link("round", "round");
            assert_eq!(normal(&root, "dangling"), root.join("deep/none"));
            assert_eq!(normal(&root, "again/x"), root.join("deep/none/x"));
            assert_eq!(normal(&root, "round"), root.join("round"));
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
    fn arguments_are_checked_against_the_schema() {
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
    fn duplicate_reserved_and_invalid_names_are_refused() {
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
    fn the_signature_does_not_depend_on_the_order_of_arguments() {
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
