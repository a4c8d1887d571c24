//! How many steps a task may take, in which parts, and whether it is a task at all. Without a model, unless the person wants one
//! to be asked ([`model`]). What the words of a task mean is read in [`caro_intent`]. [`who()`]: whose tools a part wants.

pub mod model;
mod who;

pub use who::who;

use caro_intent::parts;
use serde::{Deserialize, Serialize};

/// The most steps of a run that nobody gave a number for.
pub const CAP: u32 = 20;

/// The least: what a run needs to look, act, check and answer.
pub const FLOOR: u32 = 5;

/// Where a plan comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Source {
    /// From the words of the task.
    Heuristic,
    /// From the model.
    Model,
}

/// How a task is to be gone about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// Steps it may take.
    pub steps: u32,
    /// Its parts, in order.
    pub parts: Vec<String>,
    /// Where it comes from.
    pub source: Source,
}

impl Plan {
    /// The most steps of a run that nobody gave a number for.
    pub fn max_steps(&self) -> u32 {
        self.steps.clamp(FLOOR, CAP)
    }
}

/// Verbs and the steps that a task with them takes.
const VERBS: &[(u32, &[&str])] = &[
    (6, &["refactor", "migrate"]),
    (5, &["debug"]),
    (4, &["create", "add", "write"]),
    (3, &["edit", "update", "fix", "check"]),
    (2, &["analyze", "analyse", "list", "find", "show", "get"]),
];

/// Words that make a task one about many things.
const MANY: &[&str] = &["all", "every", "multiple", "across"];

/// Steps for the words of a task: by its weightiest verb, two more for many things, one more in any case; a small task
/// about one thing takes five at most. Words are matched whole.
pub fn estimate(task: &str) -> u32 {
    let lower = task.to_lowercase();
    let words: Vec<&str> = lower.split(|c: char| !c.is_alphanumeric()).collect();
    let has = |list: &[&str]| list.iter().any(|w| words.contains(w));
    let base = VERBS.iter().find(|(_, verbs)| has(verbs)).map_or(2, |(steps, _)| *steps);
    let many = has(MANY);
    let steps = base + if many { 2 } else { 0 } + 1;
    if base <= 4 && !many { steps.min(5) } else { steps }
}

/// What is missing from a task that is none: the person is asked for it before any model is.
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
    /// The plan from the words of the task.
    pub fn heuristic(task: &str) -> Self {
        let parts = parts(task);
        // looking and acting for each part, a look around before, the answer after
        let for_parts = if parts.len() > 1 { 2 * u32::try_from(parts.len()).unwrap_or(CAP) + 2 } else { 0 };
        Self { steps: estimate(task).max(for_parts), parts, source: Source::Heuristic }
    }

    /// The plan as the prompt has it, with how to use it where it is not made of the task's own words; nothing for a task
    /// of one part.
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
    fn steps_follow_the_weightiest_verb() {
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
    fn what_is_no_task_is_asked_back() {
        for vague in ["", "fix", "fix it", "Fix it!", "please do something", "help me"] {
            assert!(unclear(vague).is_some(), "{vague}");
        }
        for task in ["list files", "fix main.rs", "show disk usage", "git status"] {
            assert!(unclear(task).is_none(), "{task}");
        }
    }
}
