//! Puts chosen skills into the prompt: the text of the active ones as a protocol to follow, the others by name and
//! description.

use super::render::{Rendered, render};
use super::{Chosen, Origin, Skill, SkillError};
use crate::assemble::{ContextProvider, Provided, ProviderError, Query};
use crate::blueprint::protocol;
use crate::event::{Draft, Kind};
use caro_policy as policy;
use serde_json::json;
use std::sync::Arc;

/// Most skills listed.
const MAX_LISTED: usize = 15;
/// Most characters of a description.
const MAX_DESCRIPTION: usize = 80;

/// The text of an active skill, or the reason it cannot be used.
pub type Text = Result<Rendered, SkillError>;

/// Reads the texts of the active skills, in their order.
pub fn texts(chosen: &Chosen) -> Vec<Text> {
    chosen.active.iter().map(|(skill, _)| render(skill)).collect()
}

/// The layer of one active skill; a broken skill only costs this layer.
pub struct Active {
    skill: Arc<Skill>,
    why: String,
    text: Text,
}

impl ContextProvider for Active {
    fn name(&self) -> &'static str {
        "skill"
    }

    fn priority(&self) -> u16 {
        10
    }

    fn provide(&self, _: &Query, _: usize) -> Result<Option<Provided>, ProviderError> {
        let name = &self.skill.front.name;
        let rendered = self.text.as_ref().map_err(|e| ProviderError(e.to_string()))?;
        let text = match self.skill.origin {
            Origin::User | Origin::Board => protocol::wrap_user(name, &rendered.text),
            Origin::Project => protocol::wrap_project(name, &rendered.text),
        };
        Ok(Some(Provided { text, trusted: self.skill.origin != Origin::Project }))
    }

    fn record(&self) -> Option<Draft> {
        let rendered = self.text.as_ref().ok()?;
        Some(Draft::new(Kind::SkillLoaded).metadata(json!({
            "skill": self.skill.front.name, "why": self.why, "from": self.skill.origin,
            "chars": rendered.text.chars().count(),
            "missing_refs": rendered.missing_refs.iter().map(|(name, _)| name).collect::<Vec<_>>()
        })))
    }
}

/// The layer of the skills that are only listed.
pub struct Listed {
    lines: String,
    trusted: bool,
}

impl ContextProvider for Listed {
    fn name(&self) -> &'static str {
        "skills"
    }

    fn priority(&self) -> u16 {
        11
    }

    fn provide(&self, _: &Query, _: usize) -> Result<Option<Provided>, ProviderError> {
        let text = format!("<available_skills>\n{}\n</available_skills>", self.lines);
        Ok((!self.lines.is_empty()).then_some(Provided { text, trusted: self.trusted }))
    }
}

/// Returns the layers of the chosen skills, given the [`texts`] of the active ones.
pub fn layers(chosen: &Chosen, texts: &[Text]) -> Vec<Arc<dyn ContextProvider>> {
    let mut all: Vec<Arc<dyn ContextProvider>> = Vec::new();
    for ((skill, why), text) in chosen.active.iter().zip(texts) {
        all.push(Arc::new(Active { skill: skill.clone(), why: why.to_string(), text: text.clone() }));
    }
    for origin in [Origin::User, Origin::Project] {
        let of: Vec<&Arc<Skill>> =
            chosen.listed.iter().map(|(skill, _)| skill).filter(|s| s.origin == origin).take(MAX_LISTED).collect();
        if !of.is_empty() {
            let lines: Vec<String> = of.into_iter().map(line).collect();
            all.push(Arc::new(Listed { lines: lines.join("\n"), trusted: origin == Origin::User }));
        }
    }
    all
}

/// Returns a skill as one line of the list; without its description if that of a project's skill addresses the model.
pub(super) fn line(skill: &Arc<Skill>) -> String {
    let text = policy::normalise(&skill.front.description).split_whitespace().collect::<Vec<_>>().join(" ");
    if skill.origin == Origin::Project && policy::screen(&text).blocks() {
        return format!("- {}", skill.front.name);
    }
    let mut start: String = text.chars().filter(|c| !"<>".contains(*c)).take(MAX_DESCRIPTION).collect();
    if text.chars().count() > MAX_DESCRIPTION {
        start.push('…');
    }
    format!("- {}: {start}", skill.front.name)
}
