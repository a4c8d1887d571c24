//! A run as a prompt: what never changes first, what changes last.

use super::{AgentRun, Entry};
use crate::action::ActionSet;
use caro_intent::asked_for;
use caro_model::{Prompt, Role};
use caro_policy::fence;

/// Tokens that a turn costs beside its text, at most.
const FRAME: usize = 8;

/// Tokens of a prompt, rounded up: its frame is counted generously.
pub fn prompt_tokens(prompt: &Prompt, count: &dyn Fn(&str) -> usize) -> usize {
    prompt.messages.iter().map(|turn| count(&turn.text) + FRAME).sum::<usize>() + count(&prompt.prefill) + FRAME
}

/// The fence of a layer of data: its name, where that says what it is.
fn tag(layer: &str) -> &str {
    if layer == "memory" { "recalled_memories" } else { layer }
}

impl AgentRun {
    /// The conversation so far.
    pub fn prompt(&self) -> Prompt {
        let trusted: Vec<&str> = self.layers.iter().filter(|l| l.trusted).map(|l| l.text.as_str()).collect();
        let mut prompt = Prompt::system(trusted.join("\n\n"));
        let data = self.layers.iter().filter(|l| !l.trusted);
        let mut opening: Vec<String> = data.map(|l| fence(tag(&l.name), &l.text)).collect();
        opening.push(self.task.place.clone());
        opening.push(format!("Task: {}", self.task.text));
        opening.push(self.task.plan.checklist());
        if self.folded > 0 {
            opening.push(self.summary());
            // what may be used is known, however much is folded away
            opening.extend(self.entries[..self.folded].iter().filter_map(|entry| match entry {
                Entry::Observation { tools, .. } => Some(tools.clone()),
                Entry::Decision { .. } => None,
            }));
        }
        opening.retain(|part| !part.is_empty());
        prompt.push(Role::User, opening.join("\n\n"));
        for entry in &self.entries[self.folded..] {
            match entry {
                Entry::Decision { text } => prompt.push(Role::Assistant, text.clone()),
                Entry::Observation { text, tools, reminder, .. } => {
                    let parts: Vec<&str> = [text, tools, reminder].into_iter().map(String::as_str).collect();
                    prompt.push(
                        Role::User,
                        parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n\n"),
                    )
                }
            };
        }
        // Nothing of it goes to disk as a stable beginning: behind one, the state of a growing prompt would not be kept.
        prompt.stable_messages = 0;
        prompt
    }

    /// The last words before the model decides: what it is about, and what is open.
    pub(super) fn reminder(&self, actions: &ActionSet) -> String {
        let mut goal: String = self.task.text.chars().take(240).collect();
        if goal.len() < self.task.text.len() {
            goal.push('…');
        }
        let max = self.task.max_steps;
        let mut text = format!("Task: {goal}\nStep {} of {max}.", self.step);
        if let Some(why) = &self.state.stuck {
            text.push_str(&format!(" You are repeating yourself ({why}). Answer now with what you know."));
        } else if actions.tools.is_empty() && !self.is_last() {
            text.push_str(
                " Every part is done: answer now. Give the user what was asked for, with the names and numbers above.",
            );
        } else if actions.tools.is_empty() {
            text.push_str(" This is the last step: answer now with what you know.");
        } else {
            let missing: Vec<&str> =
                self.tools.iter().filter(|t| !actions.tools.contains(&t.name)).map(|t| t.shown()).collect();
            if !missing.is_empty() {
                text.push_str(&format!(" Not available now: {}.", missing.join(", ")));
            }
            text.push_str(&match (self.part(), actions.answer) {
                (Some(part), _) if actions.path.is_some() => {
                    format!(
                        " Now: {part}. Use what the results above show, all of it that belongs there, and nothing else."
                    )
                }
                (Some(part), _) if self.task.plan.parts.len() > 1 => format!(" Now: {part}."),
                (_, true) => " If every part is done, answer; else do what is left.".to_owned(),
                (Some(part), false) if asked_for(&self.task.text).is_empty() => format!(" Now: {part}."),
                (_, false) => " The file that the task asks for is not written yet: write it now.".to_owned(),
            });
        }
        text
    }
}
