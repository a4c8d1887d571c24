//! How well each of several commands explains the request: how likely the model finds the request's own words behind the
//! command. A command that does only half of what was asked is likely as a command, but nobody would ask for it in those
//! words. (Reranking by both directions is known as noisy-channel or coder-reviewer reranking: Zhang et al. 2022,
//! arXiv:2211.16490; what it adds here is in `benches/records/`.)

use super::choose::Candidate;
use super::recipe::Run;
use super::{confidence, examples, reply};
use crate::agent::runtime;
use crate::model::{Finish, Prompt, Role};
use crate::shell::Target;
use std::time::Duration;

/// Time for it, as far as that is known before and the budget has so much left: some hundred tokens in one batch. Where that
/// is not enough, commands are chosen without.
const TIME: Duration = Duration::from_millis(1000);

/// Tokens of a prompt around command and request.
const AROUND: usize = 8;

impl Run<'_> {
    /// Gives each candidate the likelihood of the request behind it, where the model can tell it of all of them. The first
    /// time on a machine takes longer: the state of the examples is computed then, and kept.
    pub(super) async fn review(&self, candidates: &mut [Candidate]) {
        let model = &self.recipe.model;
        // counted at once: each count asks the resident
        let commands = candidates.iter().map(|c| c.draft.cmd.as_str()).collect::<Vec<_>>().join("\n");
        let tokens = candidates.len() * (AROUND + model.count(&self.ask.request)) + model.count(&commands);
        if self.reading.mul_f64(tokens as f64) > TIME.min(self.left()) {
            return;
        }
        let asked = |c: &Candidate| (prompt(&c.draft.cmd, self.ask.target), self.ask.request.clone());
        let replies = candidates.iter().map(asked).collect();
        // a model that fails here has answered already: its commands stay
        let cancel = self.cancel.with_deadline(self.started + self.budget());
        let Ok(told) = runtime::score(model.clone(), replies, cancel).await else { return };
        if told.len() == candidates.len() && told.iter().all(|t| t.finish == Finish::Stop) {
            for (candidate, told) in candidates.iter_mut().zip(&told) {
                candidate.explains = confidence::likelihood(told);
            }
        }
    }
}

/// The examples the other way round, and the command.
fn prompt(cmd: &str, target: Target) -> Prompt {
    let mut prompt = Prompt::system("Say what each shell command does, in the words of somebody who asks for it.");
    for example in examples::for_target(target).iter().filter(|e| e.command != reply::REFUSAL) {
        prompt.push(Role::User, &example.command);
        prompt.push(Role::Assistant, &example.request);
    }
    prompt.stable_turns = prompt.turns.len();
    prompt.push(Role::User, cmd);
    prompt
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shell::{Os, Userland};

    #[test]
    fn the_command_comes_last_and_all_before_it_is_stable() {
        let target = Target { os: Os::Linux, userland: Userland::Gnu };
        let (a, b) = (prompt("ls", target), prompt("df -h", target));
        assert_eq!(a.stable_turns + 1, a.turns.len());
        assert_eq!(a.turns[..a.stable_turns], b.turns[..b.stable_turns]);
        assert!(a.turns.iter().all(|turn| turn.text != reply::REFUSAL));
        let examples = examples::for_target(target);
        assert_eq!((&a.turns[1].text, &a.turns[2].text), (&examples[0].command, &examples[0].request));
        assert_eq!(a.turns.last().map(|t| t.text.as_str()), Some("ls"));
    }
}
