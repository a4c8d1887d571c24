//! Builds the prompt of a run: constant parts come first, changing ones last.

use super::{AgentRun, Entry};
use crate::action::ActionSet;
use caro_intent::files_to_write;
use caro_model::{Prompt, Role};
use caro_policy::fence;

/// Most tokens of a message beyond its text.
const MESSAGE_OVERHEAD: usize = 8;

/// Counts the tokens of a prompt, with a generous overhead per message.
pub fn prompt_tokens(prompt: &Prompt, count: &dyn Fn(&str) -> usize) -> usize {
    let messages = prompt.messages.iter().map(|message| count(&message.text) + MESSAGE_OVERHEAD).sum::<usize>();
    messages + count(&prompt.prefill) + MESSAGE_OVERHEAD
}

/// Returns the name of the fence around a layer of data.
fn tag(layer: &str) -> &str {
    if layer == "memory" { "recalled_memories" } else { layer }
}

impl AgentRun {
    /// Returns the conversation so far.
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
            // revealed tools stay listed even if their entries are folded
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
        // no part is saved as a stable prefix: that would prevent caching the state of a growing prompt
        prompt.stable_messages = 0;
        prompt
    }

    /// Returns the reminder before the model decides: the task, the step, and what is left.
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
                (Some(part), false) if files_to_write(&self.task.text).is_empty() => format!(" Now: {part}."),
                (_, false) => " The file that the task asks for is not written yet: write it now.".to_owned(),
            });
        }
        text
    }
}
