//! Runs scripts of skills: finds the interpreter, sets up the sandbox and turns the exit status into a result.

use super::{Origin, Skill};
use crate::observe::Raw;
use crate::tool::{Effects, Hazard, ToolCx, ToolError, normal};
use crate::tools::{child, secrets_in_script};
use caro_exec::{self as exec, EnvProfile, Job, Limits, Sandbox, Status};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Timeout of a script if the call sets none.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);
/// Longest timeout of a script, in seconds.
pub(super) const MAX_SECONDS: u64 = 300;
/// Most bytes captured of each output stream of a script.
const MAX_OUTPUT: usize = 256 << 10;
/// The folder of a skill's scripts.
pub(super) const SCRIPTS: &str = "scripts";
/// Most files listed in messages and most scripts found of a skill.
pub(super) const MAX_NAMED: usize = 20;

/// A program and the arguments that come before the file.
type Interpreter = (&'static str, &'static [&'static str]);

/// The programs that run a script, by its extension; the first one on PATH is used.
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

/// Returns the programs that may run a file of this extension; empty for an unknown extension.
pub fn interpreters(extension: &str) -> Vec<&'static str> {
    let known = INTERPRETERS.iter().find(|(e, _)| *e == extension);
    known.map(|(_, all)| all.iter().map(|(name, _)| *name).collect()).unwrap_or_default()
}

/// Returns the installed program that runs files of this extension, followed by the arguments that come before the
/// file; `None` if none is installed.
pub fn program_of(extension: &str, which: &Which) -> Option<Vec<OsString>> {
    let known = INTERPRETERS.iter().find(|(e, _)| *e == extension).map(|(_, all)| *all).unwrap_or_default();
    let (program, before) = known.iter().find_map(|(name, before)| Some((which(name)?, *before)))?;
    Some(std::iter::once(program.into_os_string()).chain(before.iter().map(OsString::from)).collect())
}

/// Creates the sandboxed job of a script with these arguments.
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
    let wall = seconds.map_or(DEFAULT_TIMEOUT, |s| Duration::from_secs(s.clamp(1, MAX_SECONDS)));
    let mut job = Job::new(program).args(words).args([file.as_os_str()]).args(given);
    job = job.env("CARO_SKILL_DIR", skill.folder.as_os_str());
    job.cwd = Some(cx.root.clone());
    job.limits = Limits { wall, output: MAX_OUTPUT };
    (job.sandbox, job.profile) = (Sandbox::ReadOnly, EnvProfile::Script);
    Ok(job)
}

/// Returns the scripts of a skill, by name, at most 20.
pub fn scripts(skill: &Skill) -> Vec<String> {
    skill.files_of(SCRIPTS, MAX_NAMED)
}

/// Returns the effects of a script with these arguments.
pub(super) fn effects_of<'a>(
    skill: &Skill,
    file: PathBuf,
    arguments: impl Iterator<Item = &'a str>,
    cx: &ToolCx,
) -> Effects {
    let support = exec::support();
    let is_shell = file.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("sh"));
    let secrets = super::read(&file).map_or_else(|_| Vec::new(), |text| secrets_in_script(&text, is_shell, &cx.root));
    // any argument may be a file that the script prints
    let reads = std::iter::once(file).chain(secrets).chain(arguments.map(|word| normal(&cx.root, word))).collect();
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

/// Runs a script and returns its output as the result.
pub(super) fn run_job(job: &Job, cx: &ToolCx) -> Result<Raw, ToolError> {
    let wall = job.limits.wall.as_secs();
    let Some(output) = child::run(job, &cx.cancel)? else { return Err(ToolError::TimedOut(wall)) };
    let stderr = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    let cut = child::left_out(&output);
    match output.status {
        Status::Exited(0) if output.stdout.is_empty() && stderr.is_empty() => Ok(Raw::text("(no output)")),
        Status::Exited(0) if output.stdout.is_empty() => Ok(Raw::text(stderr).cut(cut)),
        Status::Exited(0) if stderr.is_empty() => Ok(Raw::bytes(output.stdout).cut(cut)),
        // a script that was denied a write may still exit with 0, and only stderr shows it
        Status::Exited(0) => {
            let out = String::from_utf8_lossy(&output.stdout);
            Ok(Raw::text(format!("{}\n(it also said: {stderr})", out.trim_end())).cut(cut))
        }
        Status::Exited(code) if output.stdout.trim_ascii().is_empty() => {
            Err(ToolError::Failed(format!("{stderr}\n(exit code {code})").trim().to_owned()))
        }
        Status::Exited(code) => {
            let (out, note) = (output.stdout.trim_ascii_end(), format!("(exit code {code})"));
            Ok(Raw::bytes(child::lines([out.into(), stderr.into(), note.into()])).cut(cut).failed_late())
        }
        Status::Signaled(signal) => {
            Err(ToolError::Failed(format!("{stderr}\n(ended by signal {signal})").trim().to_owned()))
        }
        Status::TimedOut => Err(ToolError::TimedOut(wall)),
        Status::Flooded => Err(ToolError::Failed(child::FLOODED.into())),
    }
}
