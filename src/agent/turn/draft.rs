//! Writes a text that a skill has rules for. Among tools and examples of calls a small model forgets the rules, so the
//! text is written in a separate request with the subject, the rules, the known results, and nothing else. The harness
//! then calls the tool that writes the file, and the guards judge this call like any other. If no text results, the
//! model decides freely.

use super::{AgentRun, PLACE, Phase};
use crate::blueprint::{Part, protocol};
use crate::event::Tokens;
use crate::guard::Guards;
use crate::state::Cost;
use caro_intent::{Kind, before_file, files_to_write, order, script};
use caro_model::{Finish, Prompt, Role, Sampling, repetition};
use caro_policy::fence;
use serde_json::json;

/// The system prompt.
const PERSONA: &str = "You write the files that the user asks for. The user says what a file is to say, and what rules it \
has to follow. Follow every rule to the letter. Reply with the content of the file and nothing else: no explanation, no \
code fence.";

/// A request for a text.
#[derive(Debug, Clone, PartialEq)]
pub struct Text {
    /// The file that it is for.
    pub file: String,
    /// The conversation.
    pub prompt: Prompt,
    /// The sampling settings.
    pub sampling: Sampling,
}

impl AgentRun {
    /// Returns the file of a text that the current part asks for, if a skill has rules for it and it was not tried
    /// before.
    pub(super) fn file_to_draft(&self, part: &str) -> Option<String> {
        if self.progress.tries > 0 || self.is_output_part() || script(part).is_some() || self.rules().next().is_none() {
            return None;
        }
        match self.kind_of(self.progress.part) {
            Kind::Compose(file) => Some(file),
            // the prompt has only the beginnings of the files that the task names: such a part has to read them first
            Kind::Free if self.layers.iter().all(|layer| layer.name != PLACE) => files_to_write(part).pop(),
            _ => None,
        }
    }

    /// Returns the texts of the active skills.
    pub(super) fn rules(&self) -> impl Iterator<Item = &str> {
        let active = self.layers.iter().filter(|layer| Part::of(&layer.name) == Some(Part::Skill));
        active.map(|layer| protocol::inner_text(&layer.text)).filter(|text| !text.is_empty())
    }

    /// Returns the request for the text of `file`.
    pub(super) fn draft(&self, file: &str) -> Text {
        let part = self.part().unwrap_or(&self.task.text);
        let mut message: Vec<String> = Vec::new();
        message.extend(self.context_layers().map(|layer| fence(&layer.name, &layer.text)));
        let known: Vec<String> = self.part_results().map(|(part, result)| format!("{part}:\n{result}")).collect();
        if !known.is_empty() {
            message.push(fence("observations", &known.join("\n\n")));
        }
        message.push(before_file(order(part), file).unwrap_or(part).to_owned());
        message.push(format!("Rules:\n{}", self.rules().collect::<Vec<_>>().join("\n\n")));
        let mut prompt = Prompt::system(PERSONA);
        prompt.push(Role::User, message.join("\n\n"));
        Text { file: file.to_owned(), prompt, sampling: self.sampling() }
    }

    /// Takes the text that the model wrote, and its cost; without one the model decides about the part.
    pub fn drafted(&mut self, reply: Option<(&str, Finish, Tokens)>, guards: &Guards) {
        let Phase::Draft(file) = &self.phase else { return };
        let file = file.clone();
        if let Some((_, _, tokens)) = reply {
            self.charge(Cost { requests: 1, tokens });
        }
        let complete = reply.filter(|(_, finish, _)| *finish == Finish::Stop);
        match complete.map(|(text, _, _)| without_code_fence(text.trim())).filter(|text| !text.is_empty()) {
            Some(text) => {
                self.retry = false;
                let thought = self.part().unwrap_or_default().to_owned();
                let args = json!({"path": file, "content": format!("{text}\n")});
                self.own_call(&thought, self.write_tool().into(), super::progress::object(args));
            }
            // a text that was cut off is sampled once more
            None if reply.is_some() && !self.retry => self.retry = true,
            None => {
                self.retry = false;
                self.progress.tries += 1;
                self.choose_phase(guards);
            }
        }
    }
}

/// True if a text ends with the same passage several times in a row: a small model that has lost the thread does not
/// stop.
pub fn is_repetitive(text: &str) -> bool {
    text.len() > MIN_REPEATED
        && repetition::ends_in_repetition(text, MAX_PASSAGE, |length| (MIN_ROUNDS * length).max(MIN_REPEATED))
}

/// Least number of repetitions of a passage.
const MIN_ROUNDS: usize = 3;
/// Least bytes of all repetitions together.
const MIN_REPEATED: usize = 240;
/// Most bytes of a passage.
const MAX_PASSAGE: usize = 1000;

/// Removes a code fence that encloses the whole text.
fn without_code_fence(text: &str) -> &str {
    let inside = || {
        let (first, rest) = text.split_once('\n')?;
        let info = first.strip_prefix("```").filter(|info| info.len() < 20 && !info.contains('`'))?;
        let body = rest.strip_suffix("```")?;
        // a fence inside means several blocks, which do not enclose the whole text
        (info.trim() == info && !body.contains("```")).then(|| body.trim_end())
    };
    inside().unwrap_or(text)
}
