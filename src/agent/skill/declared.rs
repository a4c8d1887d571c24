//! Turns scripts of a skill that declare their parameters into tools of their own: the schema is the declaration, and a
//! wrong argument is refused before the script runs.
//!
//! ```yaml
//! metadata:
//!   scripts:
//!     - file: main.py
//!       description: Converts units.
//!       parameters:
//!         - {name: text, type: string, required: true, description: what is converted}
//!     - file: save.sh
//!       tool: save_result
//!       writes: true
//! ```
//!
//! A script that `writes` needs approval like every other change, and may then write below the working folder; like
//! every script it has no network. `tool` overrides the name of its tool.
//!
//! An argument reaches the script as `--NAME VALUE`. A call with no argument is refused if the script declares any.

use super::Skill;
use super::script::{Which, effects_of, job_of, run_job, scripts};
use crate::observe::Raw;
use crate::tool::{Args, Effects, Hazard, Provider, Tool, ToolCx, ToolError, ToolSpec};
use caro_exec::Sandbox;
use serde_json::{Map, Value, json};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Types of a parameter.
const TYPES: [&str; 4] = ["string", "integer", "number", "boolean"];
/// Most parameters of one script.
const MAX_PARAMETERS: usize = 12;

/// A script with its parameters.
#[derive(Debug, Clone, PartialEq)]
pub struct Declared {
    /// Its file, relative to the scripts folder of the skill.
    pub file: String,
    /// The description of its effect.
    pub description: String,
    /// The schemas of its parameters, by name.
    pub parameters: Map<String, Value>,
    /// The names of the required parameters.
    pub required: Vec<String>,
    /// The declared name of its tool, if any.
    pub tool: Option<String>,
    /// True if it may write below the working folder.
    pub writes: bool,
}

/// Returns the scripts of a skill that declare their parameters. Invalid declarations are skipped; such a script is
/// run with `run_skill_script`.
pub fn declared(skill: &Skill) -> Vec<Declared> {
    let metadata = skill.front.all.get("metadata");
    let list = metadata.and_then(|metadata| metadata.get("scripts")).and_then(Value::as_array);
    let existing = scripts(skill);
    let all = list.into_iter().flatten().filter_map(parse);
    all.filter(|script| existing.contains(&script.file)).collect()
}

/// Parses one entry of `metadata.scripts`; `None` if it is not a valid declaration.
fn parse(value: &Value) -> Option<Declared> {
    let word = |value: &Value, name: &str| value.get(name).and_then(Value::as_str).map(str::to_owned);
    let writes = value.get("writes") == Some(&Value::Bool(true));
    let none = Vec::new();
    let given = match value.get("parameters") {
        None if writes => &none,
        given => given?.as_array()?,
    };
    if given.len() > MAX_PARAMETERS {
        return None;
    }
    let tool = word(value, "tool");
    let is_tool = |name: &String| {
        (1..=64).contains(&name.len()) && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
    };
    if tool.as_ref().is_some_and(|name| !is_tool(name)) {
        return None;
    }
    let (mut parameters, mut required) = (Map::new(), Vec::new());
    for parameter in given {
        let name = word(parameter, "name")?;
        let is_name = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || "-_".contains(c));
        let kind = word(parameter, "type").unwrap_or_else(|| "string".into());
        if !is_name || name.starts_with('-') || !TYPES.contains(&kind.as_str()) {
            return None;
        }
        if parameter.get("required") == Some(&Value::Bool(true)) {
            required.push(name.clone());
        }
        let mut schema = json!({"type": kind});
        for field in ["description", "enum", "minimum"] {
            if let Some(value) = parameter.get(field) {
                schema[field] = value.clone();
            }
        }
        parameters.insert(name, schema);
    }
    let description = word(value, "description").unwrap_or_default();
    Some(Declared { file: word(value, "file")?, description, parameters, required, tool, writes })
}

/// The tool that runs one declared script.
pub(super) struct ScriptTool {
    spec: ToolSpec,
    skill: Arc<Skill>,
    file: String,
    writes: bool,
    which: Which,
}

impl ScriptTool {
    /// Creates the tool of a script. It is named after the skill, followed by the script unless it `is_only` one.
    pub(super) fn new(skill: &Arc<Skill>, script: &Declared, is_only: bool, which: &Which) -> Self {
        let own = skill.front.name.replace('-', "_");
        let stem = script.file.rsplit_once('.').map_or(script.file.as_str(), |(stem, _)| stem);
        let name = match &script.tool {
            Some(tool) => tool.clone(),
            None if is_only => own,
            None => format!("{own}_{}", stem.replace(['/', ' ', '.'], "_")),
        };
        let required: Vec<&str> = script.required.iter().map(String::as_str).collect();
        let description = if script.description.is_empty() { &skill.front.description } else { &script.description };
        let mut spec = ToolSpec::new(&name, description, Value::Object(script.parameters.clone()), &required);
        spec.timeout = Duration::from_secs(60);
        (spec.core, spec.provider) = (true, Provider::Skill(skill.front.name.clone()));
        Self { spec, skill: skill.clone(), file: script.file.clone(), writes: script.writes, which: which.clone() }
    }

    fn path(&self) -> Result<PathBuf, ToolError> {
        let name = &self.skill.front.name;
        let file = self.skill.file(&format!("scripts/{}", self.file)).filter(|file| file.is_file());
        file.ok_or_else(|| ToolError::Failed(format!("the skill `{name}` has no script `{}` any more", self.file)))
    }
}

/// Returns the command-line arguments of the script.
fn command_line(args: &Args) -> Vec<String> {
    let mut words = Vec::new();
    for (name, value) in args.iter().filter(|(_, value)| !value.is_null()) {
        words.push(format!("--{name}"));
        words.push(value.as_str().map_or_else(|| value.to_string(), str::to_owned));
    }
    words
}

impl Tool for ScriptTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn effects(&self, args: &Args, cx: &ToolCx) -> Effects {
        let Ok(file) = self.path() else { return Effects::default() };
        let mut effects = effects_of(&self.skill, file, args.values().filter_map(Value::as_str), cx);
        if self.writes {
            let (name, root) = (&self.skill.front.name, cx.root.display());
            effects.hazard = effects.hazard.max(Hazard::Change);
            effects.opaque = true;
            effects.reasons.push(format!("it runs {} of the skill `{name}`, which may write below {root}", self.file));
        }
        effects
    }

    fn call(&self, args: &Args, cx: &ToolCx) -> Result<Raw, ToolError> {
        let given = command_line(args);
        if given.is_empty() && self.spec.parameters["properties"].as_object().is_some_and(|all| !all.is_empty()) {
            let names: Vec<&str> = self.spec.parameters["properties"]
                .as_object()
                .into_iter()
                .flat_map(|all| all.keys())
                .map(String::as_str)
                .collect();
            return Err(ToolError::Arguments(format!("it needs one of {}", names.join(", "))));
        }
        let mut job = job_of(&self.skill, &self.path()?, given, None, &self.which, cx)?;
        // this runs after the approval that the effects asked for
        if self.writes {
            job.sandbox = Sandbox::Offline(vec![cx.root.clone()]);
        }
        run_job(&job, cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::skill::{Index, Origin, Place};

    /// Creates a skill with a script `go.sh` and these declarations in its front matter.
    fn skill(metadata: &str) -> (tempfile::TempDir, Arc<Skill>) {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("units");
        std::fs::create_dir_all(folder.join("scripts")).unwrap();
        std::fs::write(folder.join("scripts/go.sh"), "exit 0\n").unwrap();
        let text = format!("---\nname: units\ndescription: Converts.\nmetadata:\n  scripts:\n{metadata}\n---\nText.\n");
        std::fs::write(folder.join("SKILL.md"), text).unwrap();
        let place = Place { folder: dir.path().to_owned(), origin: Origin::User };
        let skill = Index::open(None).skill(&folder, &place).unwrap();
        (dir, Arc::new(skill))
    }

    fn args(value: Value) -> Args {
        value.as_object().cloned().unwrap_or_default()
    }

    #[test]
    fn a40_a_wrong_argument_is_refused_before_the_script_runs() {
        let (_dir, skill) = skill(
            "    - file: go.sh\n      description: Converts.\n      parameters:\n        - {name: text, required: true}\n        - \
             {name: places, type: integer, minimum: 0}\n        - {name: to, enum: [m, g]}",
        );
        let all = declared(&skill);
        let which: Which = Arc::new(|_| None);
        let tool = ScriptTool::new(&skill, &all[0], true, &which);
        assert_eq!(tool.spec().name, "units");
        let checked = |value: Value| {
            let mut args = args(value);
            tool.spec().validate(&mut args).map(|()| command_line(&args))
        };
        let fine = checked(json!({"text": "5 km", "places": "2", "to": "m"})).unwrap();
        assert_eq!(fine, ["--text", "5 km", "--places", "2", "--to", "m"]);
        for (wrong, why) in [
            (json!({}), "`text` is required"),
            (json!({"text": 5}), "`text` must be a string"),
            (json!({"text": "5", "places": -1}), "at least 0"),
            (json!({"text": "5", "to": "x"}), "one of"),
            (json!({"text": "5", "nope": "x"}), "no argument `nope`"),
        ] {
            let error = checked(wrong.clone()).unwrap_err();
            assert!(error.contains(why), "{wrong}: {error}");
        }
    }

    #[test]
    fn an_invalid_declaration_is_skipped() {
        for metadata in [
            "    - file: gone.sh\n      parameters: [{name: a}]",
            "    - file: go.sh\n      parameters: [{name: --a}]",
            "    - file: go.sh\n      parameters: [{name: a, type: list}]",
            "    - file: go.sh\n      parameters: text",
            "    - parameters: [{name: a}]",
            "    - go.sh",
        ] {
            assert_eq!(declared(&skill(metadata).1), [], "{metadata}");
        }
        for metadata in ["    - file: go.sh", "    - file: go.sh\n      writes: true\n      tool: Go-now"] {
            assert_eq!(declared(&skill(metadata).1), [], "{metadata}");
        }
        let (_dir, skill) = skill("    - file: go.sh\n      parameters: [{name: a}]");
        assert_eq!((declared(&skill).len(), declared(&skill)[0].writes), (1, false));
    }

    #[cfg(unix)]
    #[test]
    fn a37_a_script_that_writes_needs_approval_and_writes_only_below_the_working_folder() {
        let (_dir, skill) = skill("    - file: go.sh\n      writes: true\n      tool: keep");
        let (work, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let root = work.path().canonicalize().unwrap();
        let outside = other.path().canonicalize().unwrap();
        let text = format!("echo kept > kept.txt\necho out > {}/out.txt\n", outside.display());
        std::fs::write(skill.folder.join("scripts/go.sh"), text).unwrap();
        let which: Which = Arc::new(|name| which::which(name).ok());
        let tool = |writes: bool| {
            let script = Declared { writes, ..declared(&skill)[0].clone() };
            ScriptTool::new(&skill, &script, true, &which)
        };
        let cx = ToolCx { root: root.clone(), cancel: caro_model::Cancel::new(), timeout: Duration::from_secs(60) };
        let (reads, writes) = (tool(false), tool(true));
        assert_eq!(writes.spec().name, "keep");
        let effects = writes.effects(&Args::new(), &cx);
        assert!(!effects.is_read_only() && effects.hazard == Hazard::Change, "{effects:?}");
        assert!(effects.reasons[0].contains("may write below"), "{effects:?}");
        if !caro_exec::support().writes {
            return;
        }
        assert!(reads.effects(&Args::new(), &cx).is_read_only());
        // only the files count here: the script may fail or not
        let _ = reads.call(&Args::new(), &cx);
        assert!(!root.join("kept.txt").exists() && !outside.join("out.txt").exists());
        let _ = writes.call(&Args::new(), &cx);
        assert_eq!(std::fs::read_to_string(root.join("kept.txt")).unwrap(), "kept\n");
        assert!(!outside.join("out.txt").exists(), "nowhere else");
    }
}
