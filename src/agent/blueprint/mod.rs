//! Defines the blueprints: the parts that the prompt of each kind of work consists of.
//!
//! | blueprint | persona | skill | routing | tools | for |
//! | --- | --- | --- | --- | --- | --- |
//! | planner | yes | yes | yes | yes | making the plan (`--plan model`) |
//! | executor | yes | yes | | | work by the instructions of a skill; talk, which needs no tools |
//! | loop | yes | | yes | yes | the steps of `agent` and `chat` |
//!
//! A step of a run with an active skill uses the executor and the loop together; a text for which the skill has rules
//! is written by those rules alone (`turn::draft`). Layers about the task (its folder, notes, documents, earlier
//! messages) belong to no part: they are in every prompt if they are not empty.
//!
//! The planner's tools are listed in `<available_tools>`, one per line. A step lists them as the grammar has them
//! (`action`), with their arguments.
//!
//! [`persona`]: the role of the model. [`guidance`]: rules for tools. [`protocol`]: the text of a skill in a prompt.

pub mod guidance;
pub mod persona;
pub mod protocol;

use serde::{Deserialize, Serialize};
use std::fmt;

/// A part of a prompt that only some kinds of work need.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// The role of the model.
    Persona,
    /// The text of the active skills.
    Skill,
    /// The list of the other skills.
    Routing,
    /// The tools, with the rules for them.
    Tools,
}

impl Part {
    /// Returns the part that a layer belongs to; `None` for a layer about the task.
    pub fn of(layer: &str) -> Option<Self> {
        match layer {
            "persona" | "role" | "worker" => Some(Self::Persona),
            "skill" => Some(Self::Skill),
            "skills" => Some(Self::Routing),
            "tools" => Some(Self::Tools),
            _ => None,
        }
    }
}

/// A kind of prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Blueprint {
    /// Makes a plan.
    Planner,
    /// Follows the instructions of a skill.
    Executor,
    /// Works step by step with tools.
    Loop,
}

impl Blueprint {
    /// Returns the parts of its prompt.
    pub const fn parts(self) -> &'static [Part] {
        match self {
            Self::Planner => &[Part::Persona, Part::Skill, Part::Routing, Part::Tools],
            Self::Executor => &[Part::Persona, Part::Skill],
            Self::Loop => &[Part::Persona, Part::Routing, Part::Tools],
        }
    }

    /// Returns the blueprints of a run: one that `talks` has no tools, one with an active `skill` has its text.
    pub fn of_run(talks: bool, skill: bool) -> Vec<Self> {
        match (talks, skill) {
            (true, _) => vec![Self::Executor],
            (false, true) => vec![Self::Executor, Self::Loop],
            (false, false) => vec![Self::Loop],
        }
    }
}

impl fmt::Display for Blueprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Planner => "planner",
            Self::Executor => "executor",
            Self::Loop => "loop",
        })
    }
}

/// True if a layer of this name is in the prompt of these blueprints.
pub fn takes(blueprints: &[Blueprint], layer: &str) -> bool {
    Part::of(layer).is_none_or(|part| blueprints.iter().any(|one| one.parts().contains(&part)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LAYERS: [&str; 7] = ["persona", "role", "skill", "skills", "tools", "memory", "conversation"];

    fn layers_of(blueprints: &[Blueprint]) -> Vec<&'static str> {
        LAYERS.into_iter().filter(|layer| takes(blueprints, layer)).collect()
    }

    #[test]
    fn each_blueprint_has_its_parts_and_the_layers_about_the_task() {
        assert_eq!(layers_of(&[Blueprint::Planner]), LAYERS);
        assert_eq!(layers_of(&[Blueprint::Executor]), ["persona", "role", "skill", "memory", "conversation"]);
        assert_eq!(layers_of(&[Blueprint::Loop]), ["persona", "role", "skills", "tools", "memory", "conversation"]);
    }

    #[test]
    fn a_run_has_tools_unless_it_talks_and_the_text_of_an_active_skill() {
        assert_eq!(layers_of(&Blueprint::of_run(false, true)), LAYERS);
        assert!(!layers_of(&Blueprint::of_run(true, true)).contains(&"tools"));
        assert!(!layers_of(&Blueprint::of_run(false, false)).contains(&"skill"));
    }
}
