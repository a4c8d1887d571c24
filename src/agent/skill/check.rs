//! Checks a skill for its author: errors that keep it from being used, and things that are probably a mistake.

use super::script::{interpreters, scripts};
use super::{FILE, Index, Origin, Place, Skill, front, read, render};
use std::path::Path;

/// Most characters of a text before it is reported as too long for a small model's prompt.
const MAX_CHARACTERS: usize = 12_000;
/// The placeholder text of a new skill.
pub const TEMPLATE: [&str; 2] = [
    "Say here, step by step, how a task of this kind is done: which commands, in which order, with what to look out for.",
    "Scripts go into scripts/, longer texts into references/ (name them under `required_refs` if they are always needed).",
];
/// Fields of this or the common format.
const KNOWN_FIELDS: [&str; 8] =
    ["name", "description", "version", "license", "compatibility", "metadata", "allowed-tools", "required_refs"];

/// One thing to fix.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Finding {
    /// True if the skill cannot be used because of it.
    pub fatal: bool,
    /// The description of the problem.
    pub text: String,
}

/// Checks the skill in a folder of that place.
pub fn check(folder: &Path, place: &Place) -> Vec<Finding> {
    let fatal = |text: String| Finding { fatal: true, text };
    let warning = |text: String| Finding { fatal: false, text };
    let file = folder.join(FILE);
    let text = match read(&file) {
        Ok(text) => text,
        Err(error) => return vec![fatal(error.to_string())],
    };
    let skill = match Index::open(None).skill(folder, place) {
        Ok(skill) => skill,
        Err(error) => return vec![fatal(error.to_string())],
    };
    let mut findings = Vec::new();
    match render::render(&skill) {
        Err(error) => findings.push(fatal(format!("{error}: {}", error.hint()))),
        Ok(rendered) => {
            for (name, why) in &rendered.missing_refs {
                findings.push(warning(format!("{name} is left out: {why}")));
            }
            let length = rendered.text.chars().count();
            if length > MAX_CHARACTERS {
                findings.push(warning(format!(
                    "its text has {length} characters: a small model's prompt holds few of them"
                )));
            }
            let project = Skill { origin: Origin::Project, ..skill.clone() };
            if render::render(&project).is_err() {
                findings.push(warning(
                    "it reads like text that overrides instructions: in a project it is kept from the model".into(),
                ));
            }
        }
    }
    if let Ok((_, body)) = front::split(&text) {
        if body.trim().is_empty() {
            findings.push(warning("it has no text under its head".into()));
        }
        if TEMPLATE.iter().any(|step| body.contains(step)) {
            let text = "its text is still what `caro skills new` has put there: write how such a task is done instead";
            findings.push(warning(text.into()));
        }
    }
    for field in skill.front.all.keys() {
        if ["require_refs", "requireRefs", "requiredRefs"].contains(&field.as_str()) {
            findings.push(warning(format!("`{field}` is not read: it is called `required_refs`")));
        } else if !KNOWN_FIELDS.contains(&field.as_str()) {
            findings.push(warning(format!("`{field}` means nothing here; fields of your own belong under `metadata`")));
        }
    }
    if let Some(number) = skill.front.all.get("version").filter(|version| version.is_f64()) {
        let text =
            format!("`version` is a number and is shown as {number}: put it in quotes to keep it as it is written");
        findings.push(warning(text));
    }
    for script in scripts(&skill) {
        let extension = Path::new(&script).extension().map(|e| e.to_string_lossy().to_lowercase()).unwrap_or_default();
        if interpreters(&extension).is_empty() {
            findings.push(warning(format!(
                "scripts/{script} cannot be run: its extension is none of .py .sh .js .ts .rb .pl"
            )));
        }
    }
    findings
}
