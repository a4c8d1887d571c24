//! The named assemblies: which parts the prompt of each kind of work is put together from, said once.
//!
//! | assembly | persona | skill | routing | tools | for |
//! | --- | --- | --- | --- | --- | --- |
//! | planner | yes | yes | yes | yes | who makes the plan (`--plan model`) |
//! | executor | yes | yes | | | work that a skill says how to do; talk, which takes no tools |
//! | loop | yes | | yes | yes | the steps of `agent` and `chat` |
//!
//! A step of a run that has an active skill is of both the executor and the loop; a text that the skill has rules for is
//! written by the rules alone (`turn::draft`). What a task is about (its folder, notes, documents, what was said before) is
//! no part of this: it is there whenever it has something to say.
//!
//! The planner's tools stand in `<available_tools>`, a line each; in a step they stand as the grammar has them (`action`), which says as
//! much and with which arguments, and only there.
//!
//! [`persona`]: who the model is told to be. [`guidance`]: rules for tools that are shown. [`protocol`]: how the text of a
//! skill stands there.

pub mod guidance;
pub mod persona;
pub mod protocol;

use serde::{Deserialize, Serialize};
use std::fmt;

/// A part of a prompt that not every kind of work needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// Who the model is, and in which role.
    Persona,
    /// How the task at hand is gone about: the text of the active skills.
    Skill,
    /// Which other skills there are.
    Routing,
    /// The tools, with the rules for them.
    Tools,
}

impl Part {
    /// The part that the layer of this name belongs to; none for what a task is about.
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

/// A named assembly.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Blueprint {
    /// Makes a plan.
    Planner,
    /// Does what it is told how to do.
    Executor,
    /// Finds its way step by step.
    Loop,
}

impl Blueprint {
    /// What it is put together from.
    pub const fn parts(self) -> &'static [Part] {
        match self {
            Self::Planner => &[Part::Persona, Part::Skill, Part::Routing, Part::Tools],
            Self::Executor => &[Part::Persona, Part::Skill],
            Self::Loop => &[Part::Persona, Part::Routing, Part::Tools],
        }
    }

    /// The assemblies of a run: one that `talks` has no tools, one with an active `skill` has its text.
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

/// True if a layer of this name belongs into a prompt of these assemblies.
pub fn takes(blueprints: &[Blueprint], layer: &str) -> bool {
    Part::of(layer).is_none_or(|part| blueprints.iter().any(|one| one.parts().contains(&part)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LAYERS: [&str; 7] = ["persona", "role", "skill", "skills", "tools", "memory", "conversation"];

    fn taken(blueprints: &[Blueprint]) -> Vec<&'static str> {
        LAYERS.into_iter().filter(|layer| takes(blueprints, layer)).collect()
    }

    #[test]
    fn each_has_its_parts_and_whatever_the_task_is_about() {
        assert_eq!(taken(&[Blueprint::Planner]), LAYERS);
        assert_eq!(taken(&[Blueprint::Executor]), ["persona", "role", "skill", "memory", "conversation"]);
        assert_eq!(taken(&[Blueprint::Loop]), ["persona", "role", "skills", "tools", "memory", "conversation"]);
    }

    #[test]
    fn a_run_has_tools_unless_it_talks_and_a_skill_where_one_is_active() {
        assert_eq!(taken(&Blueprint::of_run(false, true)), LAYERS);
        assert!(!taken(&Blueprint::of_run(true, true)).contains(&"tools"));
        assert!(!taken(&Blueprint::of_run(false, false)).contains(&"skill"));
    }
}
