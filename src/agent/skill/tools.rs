//! `read_skill_file` and `run_skill_script`: what a skill has beside its text. Only for the skills of the run, and nothing
//! outside of their folders.

use super::declared::{self, ScriptTool};
use super::{Chosen, Origin, Skill, read};
use crate::agent::observe::Raw;
use crate::agent::tool::{Args, Effects, Hazard, Provider, Tool, ToolCx, ToolError, ToolSpec, normal, shown_part};
use crate::agent::tools::child;
use crate::exec::{self, EnvProfile, Job, Limits, Sandbox, Status};
use serde_json::{Value, json};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// How long a script may take if the call says nothing, and at most.
const WALL: Duration = Duration::from_secs(30);
const LONGEST: u64 = 300;
/// Bytes kept of each stream of a script.
const OUTPUT: usize = 256 << 10;
/// The folder of a skill's scripts.
const SCRIPTS: &str = "scripts";
/// Files that are named where one is not there.
const NAMED: usize = 20;

/// A program, and the arguments that come before the file.
type Interpreter = (&'static str, &'static [&'static str]);

/// Who runs a script, by its extension: the first that is on PATH.
const INTERPRETERS: &[(&str, &[Interpreter])] = &[
    ("py", &[("python3", &[]), ("python", &[])]),
    ("sh", &[("bash", &[]), ("sh", &[])]),
    ("js", &[("node", &[]), ("bun", &[]), ("deno", &["run"])]),
    ("ts", &[("deno", &["run"]), ("bun", &[]), ("node", &["--experimental-strip-types"])]),
    ("rb", &[("ruby", &[])]),
    ("pl", &[("perl", &[])]),
];

/// Finds a program on PATH.
pub type Which = Arc<dyn Fn(&str) -> Option<PathBuf> + Send + Sync>;

/// The programs that may run a file of this extension; empty where none is known.
pub fn interpreters(extension: &str) -> Vec<&'static str> {
    let known = INTERPRETERS.iter().find(|(e, _)| *e == extension);
    known.map(|(_, all)| all.iter().map(|(name, _)| *name).collect()).unwrap_or_default()
}

/// The tools that the chosen skills need: none where they have nothing but their text.
pub fn tools(chosen: &Chosen, which: &Which) -> Vec<Arc<dyn Tool>> {
    let skills: Vec<Arc<Skill>> = chosen.all().map(|(skill, _)| skill.clone()).collect();
    let mut all: Vec<Arc<dyn Tool>> = Vec::new();
    // one that is only listed has at least its text to be read
    if !chosen.listed.is_empty() || skills.iter().any(|s| !s.files(1).is_empty()) {
        all.push(Arc::new(ReadFile::new(skills.clone())));
    }
    let mut scripted: Vec<Arc<Skill>> = Vec::new();
    for skill in skills {
        let declared = declared::declared(&skill);
        for script in &declared {
            all.push(Arc::new(ScriptTool::new(&skill, script, declared.len() == 1, which)));
        }
        // what has a tool of its own needs no other one
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

/// The argument that names a skill: one of those there are.
fn skill_names(skills: &[Arc<Skill>]) -> Value {
    let names: Vec<&str> = skills.iter().map(|s| s.front.name.as_str()).collect();
    json!({"type": "string", "enum": names})
}

/// Where such a tool comes from: the skills it serves.
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

/// A file that is there, or what there is instead.
fn existing(skill: &Skill, path: &str) -> Result<PathBuf, ToolError> {
    let name = &skill.front.name;
    let file =
        skill.file(path).ok_or_else(|| ToolError::Failed(format!("`{path}` is outside of the skill `{name}`")))?;
    if file.is_file() {
        return Ok(file);
    }
    let files = skill.files(NAMED);
    let there =
        if files.is_empty() { "it has no other files".to_owned() } else { format!("it has {}", files.join(", ")) };
    Err(ToolError::Failed(format!("the skill `{name}` has no file `{path}`; {there}")))
}

/// Shows a file of a skill.
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
        let file = existing(skill_of(&self.skills, args)?, path)?;
        read(&file).map(Raw::text).map_err(|e| ToolError::Failed(e.to_string()))
    }
}

/// Runs a script of a skill, in the sandbox: no network, no writes but to a folder of its own that goes with it.
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
            "timeout": {"type": "integer", "minimum": 1, "maximum": LONGEST}
        });
        let description = "runs a script of a skill with arguments, and shows what it prints.";
        let mut spec = ToolSpec::new("run_skill_script", description, parameters, &["skill", "script"]);
        let first = skills.first().map(|s| s.front.name.clone()).unwrap_or_default();
        let script = skills.first().and_then(|s| scripts(s).into_iter().next()).unwrap_or_else(|| "run.sh".into());
        spec.example = json!({"skill": first, "script": script, "args": ["notes.txt"]});
        spec.timeout = Duration::from_secs(LONGEST);
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

/// The program that runs files of this extension, and the arguments that come before the file; `None` where none is here.
pub fn program_of(extension: &str, which: &Which) -> Option<Vec<OsString>> {
    let known = INTERPRETERS.iter().find(|(e, _)| *e == extension).map(|(_, all)| *all).unwrap_or_default();
    let (program, before) = known.iter().find_map(|(name, before)| Some((which(name)?, *before)))?;
    Some(std::iter::once(program.into_os_string()).chain(before.iter().map(OsString::from)).collect())
}

/// A script of a skill with these arguments, in the sandbox.
pub(super) fn job_of(
    skill: &Skill,
    file: &Path,
    given: Vec<String>,
    seconds: Option<u64>,
    which: &Which,
    cx: &ToolCx,
) -> Result<Job, ToolError> {
    let extension = file.extension().map(|e| e.to_string_lossy().to_lowercase()).unwrap_or_default();
    let Some(program) = program_of(&extension, which) else {
        let of = interpreters(&extension).join(" or ");
        let what = if of.is_empty() {
            "a known extension (.py .sh .js .ts .rb .pl)".to_owned()
        } else {
            format!("{of} on this machine")
        };
        return Err(ToolError::Failed(format!("{} cannot be run: it needs {what}", file.display())));
    };
    let mut words = program.into_iter();
    let program = words.next().unwrap_or_default();
    let wall = seconds.map_or(WALL, |s| Duration::from_secs(s.clamp(1, LONGEST)));
    let mut job = Job::new(program).args(words).args([file.as_os_str()]).args(given);
    job = job.env("CARO_SKILL_DIR", skill.folder.as_os_str());
    job.cwd = Some(cx.root.clone());
    job.limits = Limits { wall, output: OUTPUT };
    (job.sandbox, job.world) = (Sandbox::ReadOnly, EnvProfile::Script);
    Ok(job)
}

/// The scripts of a skill, by name.
pub fn scripts(skill: &Skill) -> Vec<String> {
    skill.files_of(SCRIPTS, NAMED)
}

impl Tool for RunScript {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn effects(&self, args: &Args, cx: &ToolCx) -> Effects {
        let Ok((skill, file)) = self.script(args) else { return Effects::default() };
        let said = args.get("args").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
        effects_of(skill, file, said, cx)
    }

    fn call(&self, args: &Args, cx: &ToolCx) -> Result<Raw, ToolError> {
        run_job(&self.job(args, cx)?, cx)
    }
}

/// The effects of a script with these arguments.
pub(super) fn effects_of<'a>(
    skill: &Skill,
    file: PathBuf,
    said: impl Iterator<Item = &'a str>,
    cx: &ToolCx,
) -> Effects {
    let support = exec::support();
    // whatever is said to it may be a file that it prints
    let reads = std::iter::once(file).chain(said.map(|word| normal(&cx.root, word))).collect();
    let mut effects = Effects { reads, exec: true, ..Effects::default() };
    let name = &skill.front.name;
    if skill.origin == Origin::Project {
        effects.hazard = Hazard::Change;
        effects.reasons.push(format!("it runs a script that came with the project (skill `{name}`), in the sandbox"));
    } else if !support.holds_to_reading() {
        effects.hazard = Hazard::Change;
        effects.opaque = true;
        effects.reasons.push(format!("it runs a script of the skill `{name}`, and this system has no full sandbox"));
    }
    effects
}

/// Runs a script, and makes what it printed the result.
pub(super) fn run_job(job: &Job, cx: &ToolCx) -> Result<Raw, ToolError> {
    let wall = job.limits.wall.as_secs();
    let Some(output) = child::run(job, &cx.cancel)? else { return Err(ToolError::TimedOut(wall)) };
    let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    let cut = child::left_out(&output);
    match output.status {
        Status::Exited(0) if output.stdout.is_empty() && said.is_empty() => Ok(Raw::text("(no output)")),
        Status::Exited(0) if output.stdout.is_empty() => Ok(Raw::text(said).cut(cut)),
        Status::Exited(0) if said.is_empty() => Ok(Raw::bytes(output.stdout).cut(cut)),
        // a script that was refused a write may end well all the same, and says so there
        Status::Exited(0) => {
            let out = String::from_utf8_lossy(&output.stdout);
            Ok(Raw::text(format!("{}\n(it also said: {said})", out.trim_end())).cut(cut))
        }
        Status::Exited(code) if output.stdout.trim_ascii().is_empty() => {
            Err(ToolError::Failed(format!("{said}\n(exit code {code})").trim().to_owned()))
        }
        Status::Exited(code) => {
            let (out, note) = (output.stdout.trim_ascii_end(), format!("(exit code {code})"));
            Ok(Raw::bytes(child::lines([out.into(), said.into(), note.into()])).cut(cut).failed_late())
        }
        Status::Signaled(signal) => {
            Err(ToolError::Failed(format!("{said}\n(ended by signal {signal})").trim().to_owned()))
        }
        Status::TimedOut => Err(ToolError::TimedOut(wall)),
        Status::Flooded => Err(ToolError::Failed(child::FLOODED.into())),
    }
}
