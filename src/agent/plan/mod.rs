//! Plans a task: the number of steps, its parts, and whether it is a task at all. This needs no model, unless the user
//! wants one to plan ([`model`]). [`caro_intent`] interprets the words; [`named_provider`]: the tools that a part
//! names.

pub mod model;
mod who;

pub use who::named_provider;

use caro_intent::parts;
use serde::{Deserialize, Serialize};

/// Most steps of a run for which the user gave no number.
pub const CAP: u32 = 20;

/// Fewest steps of such a run: enough to look, act, check and answer.
pub const FLOOR: u32 = 5;

/// The source of a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Source {
    /// The words of the task.
    Heuristic,
    /// A model.
    Model,
}

/// The plan of a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// The estimated number of steps.
    pub steps: u32,
    /// Its parts, in order.
    pub parts: Vec<String>,
    /// The source of the plan.
    pub source: Source,
}

impl Plan {
    /// Returns the most steps of a run for which the user gave no number.
    pub fn max_steps(&self) -> u32 {
        self.steps.clamp(FLOOR, CAP)
    }
}

/// The steps of a task by its verbs.
const VERBS: &[(u32, &[&str])] = &[
    (6, &["refactor", "migrate"]),
    (5, &["debug"]),
    (4, &["create", "add", "write"]),
    (3, &["edit", "update", "fix", "check"]),
    (2, &["analyze", "analyse", "list", "find", "show", "get"]),
];

/// Words that say that a task is about many things.
const MANY: &[&str] = &["all", "every", "multiple", "across"];

/// Estimates the steps of a task: those of its verb with the most steps, plus two for many things, plus one; a small
/// task about one thing takes at most five. Only whole words match.
pub fn estimate(task: &str) -> u32 {
    let lower = task.to_lowercase();
    let words: Vec<&str> = lower.split(|c: char| !c.is_alphanumeric()).collect();
    let has = |list: &[&str]| list.iter().any(|w| words.contains(w));
    let base = VERBS.iter().find(|(_, verbs)| has(verbs)).map_or(2, |(steps, _)| *steps);
    let many = has(MANY);
    let steps = base + if many { 2 } else { 0 } + 1;
    if base <= 4 && !many { steps.min(5) } else { steps }
}

/// Returns what is missing from a text that is no clear task; the user is asked for it before any model is.
pub fn unclear(task: &str) -> Option<&'static str> {
    const VAGUE: &[&str] = &[
        "fix it",
        "fix this",
        "fix that",
        "do it",
        "do this",
        "do that",
        "do something",
        "help",
        "help me",
        "make it work",
        "make it better",
        "improve it",
        "improve this",
        "change it",
        "try again",
        "please",
        "continue",
        "go on",
    ];
    let task = task.trim().trim_end_matches(['.', '!', '?']).to_lowercase();
    let plain = task.strip_prefix("please ").unwrap_or(&task);
    if task.chars().count() < 5 {
        return Some("the task is too short: say what is to be done, and to what");
    }
    if VAGUE.contains(&plain) {
        return Some("the task does not say what is to be done: name the file, the folder or the result");
    }
    None
}

impl Plan {
    /// Makes a plan from the words of the task.
    pub fn heuristic(task: &str) -> Self {
        let parts = parts(task);
        // a look and an act for each part, a look before, and the answer after
        let for_parts = if parts.len() > 1 { 2 * u32::try_from(parts.len()).unwrap_or(CAP) + 2 } else { 0 };
        Self { steps: estimate(task).max(for_parts), parts, source: Source::Heuristic }
    }

    /// Formats the plan for the prompt, with instructions if a model made it; empty for a task of one part.
    pub fn checklist(&self) -> String {
        if self.parts.len() < 2 {
            return String::new();
        }
        let lines: Vec<String> = self.parts.iter().enumerate().map(|(i, part)| format!("{}. {part}", i + 1)).collect();
        let lines = lines.join("\n");
        match self.source {
            Source::Heuristic => format!("Plan:\n{lines}"),
            Source::Model => format!(
                "[ADAPTIVE PLAN]\n{lines}\nFollow it part by part. Do not read a file twice. Act once you know enough."
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_those_of_the_largest_verb() {
        for (task, steps) in [
            ("fix the typo in a.txt", 4),
            ("refactor all modules", 9),
            ("find the target of the link", 3),
            ("hello there", 3),
            ("write a poem", 5),
            ("create every test across the crate", 7),
            ("debug the crash", 6),
            ("forget the widget", 3),
        ] {
            assert_eq!(estimate(task), steps, "{task}");
        }
    }

    #[test]
    fn unclear_tasks_are_rejected() {
        for vague in ["", "fix", "fix it", "Fix it!", "please do something", "help me"] {
            assert!(unclear(vague).is_some(), "{vague}");
        }
        for task in ["list files", "fix main.rs", "show disk usage", "git status"] {
            assert!(unclear(task).is_none(), "{task}");
        }
    }
}
