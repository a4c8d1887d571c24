//! A skill's text as the model reads it: filled in, with the references it needs under it.

use super::{FILE, Origin, Skill, SkillError, front, read};
use crate::agent::observe::{normalise, screen};
use minijinja::value::Serde;
use minijinja::{AutoEscape, Environment, UndefinedBehavior};
use serde_json::json;

/// Instructions of one template: loops without end stop here.
const FUEL: u64 = 200_000;
/// The longest text that a template may make, bytes.
const LARGEST: usize = 64 << 10;

/// A skill ready for a prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rendered {
    /// The whole text.
    pub text: String,
    /// References that are not there.
    pub missing_refs: Vec<String>,
}

/// Reads, fills in and puts together. Each file is read on a thread of its own.
///
/// # Errors
/// If it cannot be read or filled in, or if it is a project's and overrides instructions.
pub fn render(skill: &Skill) -> Result<Rendered, SkillError> {
    let (body, refs) = std::thread::scope(|scope| {
        let refs: Vec<_> = skill
            .front
            .required_refs
            .iter()
            .map(|name| (name, scope.spawn(move || skill.file(name).and_then(|file| read(&file).ok()))))
            .collect();
        let body = read(&skill.folder.join(FILE));
        let refs: Vec<(&String, Option<String>)> =
            refs.into_iter().map(|(name, text)| (name, text.join().ok().flatten())).collect();
        (body, refs)
    });
    let body = body?;
    let template = |reason: String| SkillError::Template { skill: skill.front.name.clone(), reason };
    let (_, text) = front::split(&body).map_err(template)?;
    let mut whole = fill(text, skill)?;
    let mut missing_refs = Vec::new();
    let mut heading = true;
    for (name, text) in refs {
        match text {
            Some(text) => {
                if std::mem::take(&mut heading) {
                    whole.push_str("\n\n# Required References");
                }
                whole.push_str(&format!("\n\n## {name}\n{}", text.trim()));
            }
            None => missing_refs.push(name.clone()),
        }
    }
    let text = normalise(&whole);
    if skill.origin == Origin::Project && screen(&text).blocks() {
        return Err(SkillError::Withheld { skill: skill.front.name.clone() });
    }
    Ok(Rendered { text, missing_refs })
}

/// Fills in a template; what it names and does not exist is an error. It sees its own head as `skill`, and nothing else.
///
/// # Errors
/// What is wrong, with its line.
pub fn fill(text: &str, skill: &Skill) -> Result<String, SkillError> {
    let failed = |e: minijinja::Error| {
        let line = e.line().map(|line| format!(" (line {line} of its text)")).unwrap_or_default();
        let what = e.detail().map_or_else(|| e.kind().to_string(), |detail| format!("{}: {detail}", e.kind()));
        SkillError::Template { skill: skill.front.name.clone(), reason: format!("{what}{line}") }
    };
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_auto_escape_callback(|_| AutoEscape::None);
    environment.set_fuel(Some(FUEL));
    let filled = environment.render_str(text, Serde(json!({"skill": skill.front.all}))).map_err(failed)?;
    if filled.len() > LARGEST {
        let reason = format!("it makes {} bytes, and {LARGEST} are the most", filled.len());
        return Err(SkillError::Template { skill: skill.front.name.clone(), reason });
    }
    Ok(filled.trim().to_owned())
}
