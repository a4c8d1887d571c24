//! A text that a skill has rules for. Among tools and examples of calls a small model forgets the rules, so the text is
//! written in a request of its own: what it is about, the rules, what is known, and nothing else. The call that puts it into
//! its file is the harness' own, and judged like any other; where no text comes of it the model decides.

use super::{AgentRun, PLACE, Phase};
use crate::blueprint::{Part, protocol};
use crate::event::Tokens;
use crate::guard::Guards;
use crate::state::Cost;
use caro_intent::{Kind, asked_for, before_file, order, script};
use caro_model::{Finish, Prompt, Role, Sampling, repetition};
use caro_policy::fence;
use serde_json::json;

/// Who writes it.
const PERSONA: &str = "You write the files that the user asks for. The user says what a file is to say, and what rules it \
has to follow. Follow every rule to the letter. Reply with the content of the file and nothing else: no explanation, no \
code fence.";

/// A text that the model is to write.
#[derive(Debug, Clone, PartialEq)]
pub struct Text {
    /// The file that it is for.
    pub file: String,
    /// The conversation.
    pub prompt: Prompt,
    /// How tokens are chosen.
    pub sampling: Sampling,
}

impl AgentRun {
    /// The file that the part under way writes a text of its own into, if a skill says how and it was not tried before.
    pub(super) fn drafts(&self, part: &str) -> Option<String> {
        if self.progress.tries > 0 || self.is_leaving() || script(part).is_some() || self.rules().next().is_none() {
            return None;
        }
        match self.kind_of(self.progress.part) {
            Kind::Compose(file) => Some(file),
            // of a file that the task names only the beginning is at hand: who wants all of it has to read it
            Kind::Free if self.layers.iter().all(|layer| layer.name != PLACE) => asked_for(part).pop(),
            _ => None,
        }
    }

    /// What the active skills say.
    pub(super) fn rules(&self) -> impl Iterator<Item = &str> {
        let active = self.layers.iter().filter(|layer| Part::of(&layer.name) == Some(Part::Skill));
        active.map(|layer| protocol::words(&layer.text)).filter(|text| !text.is_empty())
    }

    /// The request for the text that goes into `file`.
    pub(super) fn draft(&self, file: &str) -> Text {
        let part = self.part().unwrap_or(&self.task.text);
        let mut said: Vec<String> = Vec::new();
        said.extend(self.about().map(|layer| fence(&layer.name, &layer.text)));
        let known: Vec<String> = self.shown().map(|(part, result)| format!("{part}:\n{result}")).collect();
        if !known.is_empty() {
            said.push(fence("observations", &known.join("\n\n")));
        }
        said.push(before_file(order(part), file).unwrap_or(part).to_owned());
        said.push(format!("Rules:\n{}", self.rules().collect::<Vec<_>>().join("\n\n")));
        let mut prompt = Prompt::system(PERSONA);
        prompt.push(Role::User, said.join("\n\n"));
        Text { file: file.to_owned(), prompt, sampling: self.sampling() }
    }

    /// Takes the text that the model wrote, and what that cost; none, and the model decides about the part.
    pub fn drafted(&mut self, reply: Option<(&str, Finish, Tokens)>, guards: &Guards) {
        let Phase::Draft(file) = &self.phase else { return };
        let file = file.clone();
        if let Some((_, _, tokens)) = reply {
            self.charge(Cost { requests: 1, tokens });
        }
        let whole = reply.filter(|(_, finish, _)| *finish == Finish::Stop);
        match whole.map(|(text, _, _)| unfenced(text.trim())).filter(|text| !text.is_empty()) {
            Some(text) => {
                self.retry = false;
                let thought = self.part().unwrap_or_default().to_owned();
                let args = json!({"path": file, "content": format!("{text}\n")});
                self.own_call(&thought, self.writer().into(), super::progress::object(args));
            }
            // one that was cut off is not what was to be written: once more, with other words
            None if reply.is_some() && !self.retry => self.retry = true,
            None => {
                self.retry = false;
                self.progress.tries += 1;
                self.set_out(guards);
            }
        }
    }
}

/// True if a text ends in the same passage three times over: a small model that has lost the thread finds no end.
pub fn goes_round(text: &str) -> bool {
    text.len() > REPEATED && repetition::goes_round(text, PASSAGE, |length| (ROUNDS * length).max(REPEATED))
}

/// How often a passage stands there then, and bytes of all of them at least; and of one at most.
const ROUNDS: usize = 3;
const REPEATED: usize = 240;
const PASSAGE: usize = 1000;

/// A text without the code fence that is all around it.
fn unfenced(text: &str) -> &str {
    let inside = || {
        let (first, rest) = text.split_once('\n')?;
        let info = first.strip_prefix("```").filter(|info| info.len() < 20 && !info.contains('`'))?;
        let body = rest.strip_suffix("```")?;
        // two blocks with words between them are no fence around a text
        (info.trim() == info && !body.contains("```")).then(|| body.trim_end())
    };
    inside().unwrap_or(text)
}
