//! Samples other commands where the model's first answer is doubtful, checks and rehearses them, and chooses one.

use super::answer::{CommandError, Trace};
use super::checks::{NOT_INSTALLED, weight};
use super::choose::{Candidate, agree, choose};
use super::confidence;
use super::faults::{self, Rehearsed};
use super::recipe::{MAX_TOKENS, Run, Tracer, VARIED_SAMPLING, ms};
use super::refine_loop::{Chosen, Draft, ScoredDraft, SecondAnswer, is_better, is_broken};
use super::reply::{self, Reply};
use super::trial::{self, Ending, RehearsalResult};
use caro_inference as inference;
use caro_model::{Finish, Prompt, Sampling};
use caro_shell::Severity;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Tokens that a sampled command may have beyond twice those of the first one.
const EXTRA_TOKENS: usize = 16;

/// The assumed length of a command in tokens, if the model has written none yet.
const TYPICAL_TOKENS: usize = 24;

/// The share of replies, as a fraction, that must refuse before the first answer is withdrawn: to refuse a real task
/// is worse than to give a doubtful command for a request that is no task.
const REFUSAL_SHARE: (usize, usize) = (3, 4);

/// The cost of a token in the first sampled completion and in each completion decoded beside it, in tokens of the
/// first answer. Below 1 because right commands are more often shorter than a doubtful first answer than longer.
const FIRST_COST: f64 = 0.9;
const PARALLEL_COST: f64 = 0.22;

/// The cost of prefilling the nearest examples, in decoded tokens.
const PREFILL_COST: f64 = 10.0;

/// The factor by which sampling may exceed its estimated time: a completion that is cut off is worth nothing.
const WAIT_FACTOR: f64 = 1.5;

/// Most mechanical fixes applied to one sampled command.
const MAX_FIXES: usize = 3;

impl Run<'_> {
    /// Samples `count` commands and chooses among them and those `found` so far, the best of which comes first.
    pub(super) async fn sample_and_choose(
        &mut self,
        found: Vec<ScoredDraft>,
        prompt: Prompt,
        count: u32,
        trace: Tracer<'_>,
    ) -> Result<Chosen, CommandError> {
        let since = Instant::now();
        // a completion much longer than twice the first answer is repeating itself, and the others wait for it
        let rejected = &self.ask.rejected;
        let best = found.first();
        let first = best.map(|best| &best.draft.cmd).or(rejected.last()).map_or("", String::as_str);
        let length = if first.is_empty() { TYPICAL_TOKENS } else { self.recipe.model.count(first) };
        let max_tokens = (2 * length + EXTRA_TOKENS).min(MAX_TOKENS);
        // without a usable command, sampling may take until the timeout; else the budget limits the number of samples
        let has_usable = best.is_some_and(|best| !is_broken(&best.draft.findings));
        let left = self.decode_limit().saturating_sub(self.started.elapsed());
        let mut estimates = (1..=count).rev().map(|several| (several, self.decode_time(length, several)));
        let (several, until) = match estimates.find(|(_, estimate)| *estimate <= left) {
            _ if !has_usable => (count, self.ask.timeout),
            Some((several, estimate)) => {
                let latest = self.started.elapsed() + estimate.mul_f64(WAIT_FACTOR);
                (several, self.decode_limit().max(latest))
            }
            None => {
                trace(Trace::Decision { what: "no time to sample others".into() });
                let best = found.into_iter().next();
                return Ok(best.map_or(Chosen::Nothing, |best| Chosen::Draft(best.draft, String::new())));
            }
        };
        let ask = self.ask;
        let candidate = |ScoredDraft { draft, likelihood }| {
            let documented = ask.before.knows(&draft.cmd);
            Candidate { draft, likelihood, documented, trial: None }
        };
        let mut candidates: Vec<Candidate> = found.into_iter().map(candidate).collect();
        self.candidates = candidates.len() as u32;
        let replies = self.sample_replies(prompt, several, max_tokens, until).await?;
        let refusals = replies.iter().filter(|(reply, ..)| *reply == Reply::Refused).count();
        if refusals * REFUSAL_SHARE.1 >= count as usize * REFUSAL_SHARE.0 {
            trace(Trace::Decision { what: format!("{refusals} of {count} samples refuse") });
            self.timing.choice = ms(since.elapsed());
            return Ok(Chosen::Refused);
        }
        for (reply, confidence, likelihood) in replies {
            let Reply::Command(cmd) = reply else { continue };
            let draft = self.inspect(cmd, confidence).await;
            let (cmd, findings) = (draft.cmd.clone(), draft.findings.clone());
            trace(Trace::Checked { iteration: 1, cmd, confidence, findings });
            let draft = self.apply_fixes(draft).await;
            self.candidates += 1;
            match candidates.iter_mut().find(|c| c.draft.cmd == draft.cmd) {
                Some(known) => known.likelihood = known.likelihood.max(likelihood),
                None => candidates.push(candidate(ScoredDraft { draft, likelihood })),
            }
        }
        if self.candidates == 1 && rejected.is_empty() {
            // no sample was completed in time
            self.timing.choice = ms(since.elapsed());
            return Ok(Chosen::Draft(candidates.swap_remove(0).draft, String::new()));
        }
        let others = candidates.len();
        candidates.extend(
            rejected
                .iter()
                .map(|cmd| Draft { cmd: cmd.clone(), ..Draft::none() })
                .map(|draft| candidate(ScoredDraft { draft, likelihood: 0.0 })),
        );
        // a single candidate needs no rehearsal
        if candidates.len() > 1 {
            self.rehearse_candidates(&mut candidates).await;
        }
        // a candidate with the same effect as a rejected command is rejected too
        let rejected = candidates.split_off(others);
        candidates.retain(|c| !rejected.iter().any(|rejected| agree(c, rejected)));
        for c in &candidates {
            let ending = c.trial.as_ref().map_or("not rehearsed", |t| match t.ending {
                Ending::Fine => "works",
                Ending::NoEffect => "does nothing",
                Ending::Failed => "fails",
                Ending::Stopped => "takes too long",
            });
            let (findings, log) = (c.draft.findings.len(), c.likelihood.ln());
            let what = format!("candidate `{}`: log-likelihood {log:.1}, {findings} findings, {ending}", c.draft.cmd);
            trace(Trace::Decision { what });
        }
        self.timing.choice = ms(since.elapsed());
        let Some(choice) = choose(&candidates) else { return Ok(Chosen::Nothing) };
        let chosen = candidates.swap_remove(choice.index);
        let why =
            format!("likeliest by what it does, of {} candidates ({:.0} %)", self.candidates, choice.share * 100.0);
        let confidence = confidence::of_choice(chosen.draft.confidence, choice.share, &self.ask.request);
        let mut draft = Draft { confidence, ..chosen.draft };
        if let Some(trial) = &chosen.trial {
            self.add_rehearsal_finding(&mut draft, trial);
        }
        Ok(Chosen::Draft(draft, why))
    }

    /// Asks the model in its other [`View`](crate::View), and fixes, inspects and rehearses the command.
    pub(super) async fn ask_other_view(&mut self, prompt: Prompt) -> Result<SecondAnswer, CommandError> {
        // the first time, its examples have to be prefilled: cut off by the budget, that would begin anew each time
        let completion = self.ask_model(prompt, Sampling::GREEDY, self.ask.timeout).await?;
        if completion.finish != Finish::Stop {
            return Ok(SecondAnswer::Nothing);
        }
        let confidence = confidence::of(&completion, &self.ask.request);
        Ok(match reply::read(&completion.text) {
            Reply::Command(cmd) if self.ask.rejected.contains(&cmd) => SecondAnswer::Nothing,
            Reply::Command(cmd) => {
                let draft = self.inspect(cmd, confidence).await;
                let draft = self.apply_fixes(draft).await;
                let draft = self.rehearse_draft(draft).await;
                self.candidates += 1;
                SecondAnswer::Command(ScoredDraft { draft, likelihood: confidence::likelihood(&completion) })
            }
            Reply::Refused => SecondAnswer::Refused(confidence),
            Reply::Nothing => SecondAnswer::Nothing,
        })
    }

    /// Estimates the time to decode `several` commands of `tokens` tokens in parallel, from the speed of the first
    /// answer.
    fn decode_time(&self, tokens: usize, several: u32) -> Duration {
        let seconds_per_token = self.timing.decode / 1e3 / self.timing.tokens.max(1) as f64;
        let together = FIRST_COST + PARALLEL_COST * f64::from(several.saturating_sub(1));
        Duration::from_secs_f64((seconds_per_token * (PREFILL_COST + tokens as f64 * together)).max(0.0))
    }

    /// Samples `count` replies of at most `max_tokens` each, stopping at `until` after the request. Returns those
    /// that were completed, in the order in which they were decoded, each with its confidence and its likelihood.
    async fn sample_replies(
        &mut self,
        prompt: Prompt,
        count: u32,
        max_tokens: usize,
        until: Duration,
    ) -> Result<Vec<(Reply, f64, f64)>, CommandError> {
        let (temperature, top_p) = VARIED_SAMPLING;
        let request = self.model_request(prompt, Sampling { temperature, top_p, seed: 1 }, max_tokens, until);
        let completions = inference::sample(self.recipe.model.clone(), request, count as usize).await?;
        for completion in &completions {
            self.timing.prefill += ms(completion.usage.prefill);
            self.timing.decode += ms(completion.usage.decode);
            self.timing.grammar += ms(completion.usage.shaping);
            self.timing.tokens += completion.usage.completion_tokens;
        }
        let whole = completions.iter().filter(|c| c.finish == Finish::Stop);
        let request = &self.ask.request;
        Ok(whole.map(|c| (reply::read(&c.text), confidence::of(c, request), confidence::likelihood(c))).collect())
    }

    /// Applies the fixes that findings carry, as long as they improve the command.
    pub(super) async fn apply_fixes(&mut self, draft: Draft) -> Draft {
        let (mut best, mut last) = (draft.clone(), draft);
        for _ in 0..MAX_FIXES {
            let Some(fix) = last.findings.iter().filter_map(|f| f.fix.clone()).find(|fix| *fix != best.cmd) else {
                break;
            };
            last = self.inspect(fix, last.confidence).await;
            // equal weight goes on: a second fault may only show once the first is fixed
            if weight(&last.findings) > weight(&best.findings) {
                break;
            }
            if is_better(&last, &best, true) {
                best = last.clone();
            }
        }
        best
    }

    /// Rehearses a draft that has no findings, and adds a finding if the rehearsal shows an error. Returns any other
    /// draft, and one that may not be rehearsed, unchanged.
    pub(super) async fn rehearse_draft(&self, mut draft: Draft) -> Draft {
        // a program that is not installed fails in any rehearsal, even if the user's documents name it
        let is_clean = draft.findings.iter().all(|f| f.severity == Severity::Hint && f.id != NOT_INSTALLED);
        if !is_clean {
            return draft;
        }
        let Some(shell) = self.rehearsal_shell() else { return draft };
        let (ask, input) = (self.ask, self.ask.before.input.as_deref().filter(|head| !head.is_empty()));
        let wall = trial::SYNTAX_TIMEOUT;
        let run = async |input| trial::run(&shell, &draft.cmd, ask.dialect, &ask.cwd, wall, input).await;
        let trial = run(input).await;
        // a command with the same effect without the input does not read it
        let without = match &trial {
            Some(trial) if input.is_some() && trial.ending == Ending::Fine => run(None).await,
            _ => None,
        };
        if let Some(trial) = trial {
            if without.is_some_and(|without| without.ending == Ending::Fine && without.agrees(&trial)) {
                draft.findings.push(faults::unread(&draft.cmd));
            }
            self.add_rehearsal_finding(&mut draft, &trial);
        }
        draft
    }

    /// Adds the finding of a rehearsal to the draft, unless it has it already, and lowers its confidence.
    fn add_rehearsal_finding(&self, draft: &mut Draft, trial: &RehearsalResult) {
        let (dialect, request, is_local) = (self.ask.dialect, &self.ask.request, self.recipe.model.is_local());
        let rehearsed = Rehearsed { cmd: &draft.cmd, dialect, request, is_local };
        let Some(found) = faults::finding(rehearsed, trial) else { return };
        draft.confidence = draft.confidence.min(faults::MAX_CONFIDENCE);
        if draft.findings.iter().all(|f| f.id != found.id) {
            draft.findings.push(found);
        }
    }

    /// The shell that commands are rehearsed in; `None` if rehearsals are off or the target is another system.
    fn rehearsal_shell(&self) -> Option<PathBuf> {
        let context = &self.recipe.context;
        if !self.ask.rehearse || self.ask.target != context.target {
            return None;
        }
        context.available_commands.get(self.ask.dialect.name()).cloned()
    }

    /// Rehearses the candidates that may be rehearsed, concurrently.
    async fn rehearse_candidates(&self, candidates: &mut [Candidate]) {
        let Some(shell) = self.rehearsal_shell() else { return };
        let wall = trial::COMPARE_TIMEOUT.min(self.budget_left().max(trial::MIN_TIMEOUT));
        let mut trials = tokio::task::JoinSet::new();
        for (index, candidate) in candidates.iter().enumerate() {
            let (shell, line, cwd) = (shell.clone(), candidate.draft.cmd.clone(), self.ask.cwd.clone());
            let (dialect, input) = (self.ask.dialect, self.ask.before.input.clone());
            trials
                .spawn(async move { (index, trial::run(&shell, &line, dialect, &cwd, wall, input.as_deref()).await) });
        }
        while let Some(done) = trials.join_next().await {
            if let Ok((index, trial)) = done {
                candidates[index].trial = trial;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CommandRequest, FewShot, History, Recipe, Refine, View};
    use caro_host::ExecutionContext;
    use caro_model::scripted::Scripted;
    use caro_model::{Cancel, Completion, Flow, Limits, Model, ModelError, Request};
    use caro_shell::Dialect;
    use std::sync::{Arc, Mutex};

    /// A scripted model that reports a decode time per token, and records the count and deadline of each sampling
    /// request.
    struct TimedModel {
        script: Scripted,
        per_token: Duration,
        sampled: Mutex<Vec<(usize, Instant)>>,
    }

    impl Model for TimedModel {
        fn id(&self) -> &str {
            "writer"
        }

        fn limits(&self) -> Limits {
            self.script.limits()
        }

        fn count(&self, text: &str) -> usize {
            self.script.count(text)
        }

        fn generate(&self, request: &Request, on: &mut dyn FnMut(&str) -> Flow) -> Result<Completion, ModelError> {
            let mut completion = self.script.generate(request, on)?;
            completion.usage.decode = self.per_token * completion.usage.completion_tokens as u32;
            Ok(completion)
        }

        fn sample(&self, request: &Request, count: usize) -> Result<Vec<Completion>, ModelError> {
            self.sampled.lock().unwrap().push((count, request.cancel.deadline().unwrap()));
            self.script.sample(request, count)
        }
    }

    #[tokio::test]
    async fn the_number_of_samples_and_their_deadline_follow_the_budget() {
        // the budget is an hour, so that the speed of the test machine does not matter
        let (budget, timeout) = (Duration::from_secs(3600), Duration::from_secs(36_000));
        // 60 words and the prefill cost 64 token times for one sample, 77.2 for two
        for (logprob, pace, wanted) in [
            (-0.65, 0, Some((2, 3240))),
            (-0.65, 45, Some((1, 4320))),
            (-0.65, 60, None),
            // an answer that is most likely wrong gets twice the budget
            (-1.0, 0, Some((2, 6480))),
            (-1.0, 60, Some((2, 6948))),
            (-1.0, 110, None),
        ] {
            let first = (1..60).fold("ls".to_owned(), |line, i| format!("{line} f{i}"));
            let rule = serde_json::json!({"replies": [first, "ls -a", "ls -l"], "logprob": logprob});
            let script = serde_json::json!({ "rules": [rule] }).to_string().parse().unwrap();
            let per_token = Duration::from_secs(pace);
            let model = Arc::new(TimedModel { script, per_token, sampled: Mutex::default() });
            let context = Arc::new(ExecutionContext::detect(None));
            let ask = CommandRequest {
                request: "list files".into(),
                cwd: "/".into(),
                target: context.target,
                dialect: Dialect::Bash,
                refine: Refine::Evidence,
                max_iterations: 1,
                timeout,
                budget,
                alternatives: 1,
                few_shot: FewShot::Nearest(0),
                candidates: 3,
                rehearse: false,
                view: View::Examples,
                before: History::default(),
                rejected: vec![],
                cancel: Cancel::new(),
            };
            let recipe = Recipe {
                model: model.clone(),
                context,
                manual: None,
                documents: None,
                adapted: false,
                without: [].into(),
            };
            let began = Instant::now();
            recipe.answer(&ask, &mut |_| ()).await.unwrap();
            let ended = Instant::now();
            let sampled = model.sampled.lock().unwrap();
            assert_eq!(sampled.first().map(|(count, _)| *count), wanted.map(|(count, _)| count), "{logprob} {pace}");
            if let (Some((_, until)), Some((_, seconds))) = (sampled.first(), wanted) {
                let wait = Duration::from_secs(seconds);
                assert!(began + wait <= *until && *until <= ended + wait, "{logprob} {pace}: {:?}", *until - began);
            }
        }
    }
}
