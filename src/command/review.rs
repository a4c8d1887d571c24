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
    use crate::command::{Ask, Before, FewShot, Recipe, Refine};
    use crate::host::ExecutionContext;
    use crate::model::scripted::Scripted;
    use crate::model::{Cancel, Completion, Flow, Limits, Model, ModelError, Request};
    use crate::shell::{Dialect, Os, Userland};
    use std::sync::{Arc, Mutex};
    use std::time::Instant;

    /// A scripted model that takes so long to read a token, and notes the deadline of each review.
    struct Reader {
        script: Scripted,
        reading: Duration,
        deadlines: Mutex<Vec<Instant>>,
    }

    impl Model for Reader {
        fn id(&self) -> &str {
            "reader"
        }

        fn limits(&self) -> Limits {
            self.script.limits()
        }

        fn count(&self, text: &str) -> usize {
            self.script.count(text)
        }

        fn generate(&self, request: &Request, on: &mut dyn FnMut(&str) -> Flow) -> Result<Completion, ModelError> {
            let mut completion = self.script.generate(request, on)?;
            completion.usage.prefill = self.reading * completion.usage.prompt_tokens as u32;
            Ok(completion)
        }

        fn score(&self, _: &[(Prompt, String)], cancel: &Cancel) -> Result<Vec<Completion>, ModelError> {
            self.deadlines.lock().unwrap().extend(cancel.deadline());
            Ok(Vec::new())
        }
    }

    #[tokio::test]
    async fn a_review_ends_with_the_budget_and_is_not_begun_where_it_would_not_be_done() {
        // nothing here takes as long as an hour, however slow the machine
        let (budget, timeout) = (Duration::from_secs(3600), Duration::from_secs(36_000));
        let slow = Duration::from_secs(1);
        // what is most likely wrong gets twice the time
        for (logprob, reading, reviews, times) in
            [(-0.3, Duration::ZERO, 1, 1), (-1.0, Duration::ZERO, 1, 2), (-0.3, slow, 0, 1), (-1.0, slow, 0, 2)]
        {
            let rule = serde_json::json!({"replies": ["ls", "ls -a", "ls -l"], "logprob": logprob});
            let script = serde_json::json!({ "rules": [rule] }).to_string().parse().unwrap();
            let model = Arc::new(Reader { script, reading, deadlines: Mutex::default() });
            let context = Arc::new(ExecutionContext::detect(None));
            let ask = Ask {
                request: "list files".into(),
                cwd: "/".into(),
                target: context.target,
                dialect: Dialect::Bash,
                refine: Refine::Evidence,
                max_iterations: 2,
                timeout,
                budget,
                alternatives: 1,
                few_shot: FewShot::Nearest(0),
                candidates: 3,
                rehearse: false,
                before: Before::default(),
                spent: vec![],
                cancel: Cancel::new(),
            };
            let recipe = Recipe { model: model.clone(), context, manual: None, documents: None };
            let began = Instant::now();
            let answer = recipe.answer(&ask, &mut |_| ()).await.unwrap();
            let ended = Instant::now();
            assert_eq!(answer.candidates, 3);
            let deadlines = model.deadlines.lock().unwrap();
            assert_eq!(deadlines.len(), reviews);
            let budget = budget * times;
            assert!(deadlines.iter().all(|&end| began + budget <= end && end <= ended + budget), "{deadlines:?}");
        }
    }

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
