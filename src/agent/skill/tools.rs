//! The tools `read_skill_file` and `run_skill_script`: access to the files and scripts of the skills of a run, and to
//! nothing outside of their folders.

use super::declared::{self, ScriptTool};
use super::script::{MAX_NAMED, MAX_SECONDS, SCRIPTS, Which, effects_of, interpreters, job_of, run_job, scripts};
use super::{Chosen, Skill, read};
use crate::observe::Raw;
use crate::tool::{Args, Effects, Provider, Tool, ToolCx, ToolError, ToolSpec, shown_part};
use caro_exec::Job;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Returns the tools that the chosen skills need: none if the skills are only text that is already in the prompt.
pub fn tools(chosen: &Chosen, which: &Which) -> Vec<Arc<dyn Tool>> {
    let skills: Vec<Arc<Skill>> = chosen.all().map(|(skill, _)| skill.clone()).collect();
    let mut all: Vec<Arc<dyn Tool>> = Vec::new();
    // the text of a skill that is only listed is read with the tool
    if !chosen.listed.is_empty() || skills.iter().any(|s| !s.files(1).is_empty()) {
        all.push(Arc::new(ReadFile::new(skills.clone())));
    }
    let mut scripted: Vec<Arc<Skill>> = Vec::new();
    for skill in skills {
        let declared = declared::declared(&skill);
        for script in &declared {
            all.push(Arc::new(ScriptTool::new(&skill, script, declared.len() == 1, which)));
        }
        // a script with its own tool does not need `run_skill_script`
        let runnable = |script: &String| !interpreters(script.rsplit('.').next().unwrap_or_default()).is_empty();
        let is_declared = |script: &String| declared.iter().any(|d| d.file == *script);
        if scripts(&skill).iter().any(|script| (declared.is_empty() || runnable(script)) && !is_declared(script)) {
            scripted.push(skill);
        }
    }
    if !scripted.is_empty() {
        all.push(Arc::new(RunScript::new(scripted, which.clone())));
    }
    all
}

/// Returns the schema of the argument that names a skill: an enum of their names.
fn skill_names(skills: &[Arc<Skill>]) -> Value {
    let names: Vec<&str> = skills.iter().map(|s| s.front.name.as_str()).collect();
    json!({"type": "string", "enum": names})
}

/// Returns the provider of such a tool: the names of the skills it serves.
fn provider(skills: &[Arc<Skill>]) -> Provider {
    let names: Vec<&str> = skills.iter().map(|s| s.front.name.as_str()).collect();
    Provider::Skill(names.join(", "))
}

fn skill_of<'a>(skills: &'a [Arc<Skill>], args: &Args) -> Result<&'a Arc<Skill>, ToolError> {
    let name = args.get("skill").and_then(Value::as_str).unwrap_or_default();
    skills
        .iter()
        .find(|s| s.front.name == name)
        .ok_or_else(|| ToolError::Arguments(format!("there is no skill `{name}`")))
}

/// Returns the path of an existing_file file of a skill.
///
/// # Errors
/// If there is no such file; the message lists those that exist.
fn existing_file(skill: &Skill, path: &str) -> Result<PathBuf, ToolError> {
    let name = &skill.front.name;
    let file =
        skill.file(path).ok_or_else(|| ToolError::Failed(format!("`{path}` is outside of the skill `{name}`")))?;
    if file.is_file() {
        return Ok(file);
    }
    let files = skill.files(MAX_NAMED);
    let there =
        if files.is_empty() { "it has no other files".to_owned() } else { format!("it has {}", files.join(", ")) };
    Err(ToolError::Failed(format!("the skill `{name}` has no file `{path}`; {there}")))
}

/// The tool that shows a file of a skill.
struct ReadFile {
    spec: ToolSpec,
    skills: Vec<Arc<Skill>>,
}

impl ReadFile {
    fn new(skills: Vec<Arc<Skill>>) -> Self {
        let parameters = json!({"skill": skill_names(&skills), "path": {"type": "string"}});
        let description = "shows a file of a skill; SKILL.md says how its tasks are done.";
        let mut spec = ToolSpec::new("read_skill_file", description, parameters, &["skill", "path"]);
        let first = skills.first().map(|s| s.front.name.clone()).unwrap_or_default();
        spec.example = json!({"skill": first, "path": "SKILL.md"});
        (spec.core, spec.provider) = (true, provider(&skills));
        Self { spec, skills }
    }
}

impl Tool for ReadFile {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn effects(&self, args: &Args, _: &ToolCx) -> Effects {
        let path = args.get("path").and_then(Value::as_str).unwrap_or_default();
        let file = skill_of(&self.skills, args).ok().and_then(|skill| skill.file(path));
        let shows = file.iter().map(|f| shown_part(f, "")).collect();
        Effects { shows, reads: file.into_iter().collect(), ..Effects::default() }
    }

    fn call(&self, args: &Args, _: &ToolCx) -> Result<Raw, ToolError> {
        let path = args.get("path").and_then(Value::as_str).unwrap_or_default();
        let file = existing_file(skill_of(&self.skills, args)?, path)?;
        read(&file).map(Raw::text).map_err(|e| ToolError::Failed(e.to_string()))
    }
}

/// The tool that runs a script of a skill in the sandbox: no network, no writes except to a temporary folder of its
/// own.
struct RunScript {
    spec: ToolSpec,
    skills: Vec<Arc<Skill>>,
    which: Which,
}

impl RunScript {
    fn new(skills: Vec<Arc<Skill>>, which: Which) -> Self {
        let parameters = json!({
            "skill": skill_names(&skills), "script": {"type": "string"},
            "args": {"type": "array", "items": {"type": "string"}},
            "timeout": {"type": "integer", "minimum": 1, "maximum": MAX_SECONDS}
        });
        let description = "runs a script of a skill with arguments, and shows what it prints.";
        let mut spec = ToolSpec::new("run_skill_script", description, parameters, &["skill", "script"]);
        let first = skills.first().map(|s| s.front.name.clone()).unwrap_or_default();
        let script = skills.first().and_then(|s| scripts(s).into_iter().next()).unwrap_or_else(|| "run.sh".into());
        spec.example = json!({"skill": first, "script": script, "args": ["notes.txt"]});
        spec.timeout = Duration::from_secs(MAX_SECONDS);
        (spec.core, spec.provider) = (true, provider(&skills));
        Self { spec, skills, which }
    }

    fn script(&self, args: &Args) -> Result<(&Arc<Skill>, PathBuf), ToolError> {
        let skill = skill_of(&self.skills, args)?;
        let name = args.get("script").and_then(Value::as_str).unwrap_or_default();
        let name = name.trim_start_matches("./");
        let name = name.strip_prefix("scripts/").unwrap_or(name);
        let file = skill.file(&format!("{SCRIPTS}/{name}"));
        let file = file.filter(|file| file.starts_with(skill.folder.join(SCRIPTS)) && file.is_file());
        let file = file.ok_or_else(|| {
            let (own, there) = (&skill.front.name, scripts(skill).join(", "));
            ToolError::Failed(format!("the skill `{own}` has no script `{name}`; it has {there}"))
        })?;
        Ok((skill, file))
    }

    fn job(&self, args: &Args, cx: &ToolCx) -> Result<Job, ToolError> {
        let (skill, file) = self.script(args)?;
        let given = args.get("args").and_then(Value::as_array);
        let given = given.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect();
        job_of(skill, &file, given, args.get("timeout").and_then(Value::as_u64), &self.which, cx)
    }
}

impl Tool for RunScript {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn effects(&self, args: &Args, cx: &ToolCx) -> Effects {
        let Ok((skill, file)) = self.script(args) else { return Effects::default() };
        let given = args.get("args").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
        effects_of(skill, file, given, cx)
    }

    fn call(&self, args: &Args, cx: &ToolCx) -> Result<Raw, ToolError> {
        run_job(&self.job(args, cx)?, cx)
    }
}
