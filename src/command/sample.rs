//! Other commands for a doubtful request: sampled together, checked, rehearsed, and one of them chosen.

use super::answer::{CommandError, Trace};
use super::checks::{NOT_INSTALLED, weight};
use super::choose::{Candidate, agree, choose};
use super::confidence;
use super::faults::{self, Tried};
use super::recipe::{MAX_TOKENS, Run, Tracer, VARIED, ms};
use super::refine_loop::{Chosen, Draft, Second, Written, better, is_broken};
use super::reply::{self, Reply};
use super::trial::{self, Ending, RehearsalResult};
use caro_inference as inference;
use caro_model::{Finish, Prompt, Sampling};
use caro_shell::Severity;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Tokens that a sampled command may have beyond twice the first one's.
const SPARE: usize = 16;

/// Tokens of a command, where none was written.
const TYPICAL: usize = 24;

/// The share of replies that must refuse before the first answer is withdrawn: a task withdrawn is worse than a doubtful
/// command for what was none.
const MOSTLY: (usize, usize) = (3, 4);

/// What a token of one completion costs, and of each that is written beside it, in tokens of the first answer: that one was in
/// doubt, and those that are right are shorter than it more often than longer.
const ALONE: f64 = 0.9;
const BESIDE: f64 = 0.22;

/// What reading the nearest examples costs, in written tokens.
const READING: f64 = 10.0;

/// What was begun is waited for so many times as long as it was hoped to take: cut off, it would be worth nothing.
const PATIENCE: f64 = 1.5;

/// The most mechanical fixes of one sampled command.
const MENDS: usize = 3;

impl Run<'_> {
    /// Holds what was `found`, the best first, against `count` sampled commands.
    pub(super) async fn choose(
        &mut self,
        found: Vec<Written>,
        prompt: Prompt,
        count: u32,
        trace: Tracer<'_>,
    ) -> Result<Chosen, CommandError> {
        let since = Instant::now();
        // who writes much more than twice the first answer has lost the thread, and everybody waits for it
        let rejected = &self.ask.rejected;
        let best = found.first();
        let first = best.map(|best| &best.draft.cmd).or(rejected.last()).map_or("", String::as_str);
        let length = if first.is_empty() { TYPICAL } else { self.recipe.model.count(first) };
        let most = (2 * length + SPARE).min(MAX_TOKENS);
        // who has nothing yet, or what no shell can parse, waits for something; else there are as many as there is time for
        let usable = best.is_some_and(|best| !is_broken(&best.draft.findings));
        let left = self.latest().saturating_sub(self.started.elapsed());
        let mut hoped = (1..=count).rev().map(|several| (several, self.writing(length, several)));
        let (several, until) = match hoped.find(|(_, hoped)| *hoped <= left) {
            _ if !usable => (count, self.ask.timeout),
            Some((several, hoped)) => (several, self.latest().max(self.started.elapsed() + hoped.mul_f64(PATIENCE))),
            None => {
                trace(Trace::Decision { what: "no time to sample others".into() });
                let best = found.into_iter().next();
                return Ok(best.map_or(Chosen::Nothing, |best| Chosen::Draft(best.draft, String::new())));
            }
        };
        let ask = self.ask;
        let candidate = |Written { draft, likelihood }| {
            let documented = ask.before.knows(&draft.cmd);
            Candidate { draft, likelihood, documented, trial: None }
        };
        let mut candidates: Vec<Candidate> = found.into_iter().map(candidate).collect();
        self.candidates = candidates.len() as u32;
        let replies = self.others(prompt, several, most, until).await?;
        let refusals = replies.iter().filter(|(reply, ..)| *reply == Reply::Refused).count();
        if refusals * MOSTLY.1 >= count as usize * MOSTLY.0 {
            trace(Trace::Decision { what: format!("{refusals} of {count} samples refuse") });
            self.timing.choice = ms(since.elapsed());
            return Ok(Chosen::Refused);
        }
        for (reply, confidence, likelihood) in replies {
            let Reply::Command(cmd) = reply else { continue };
            let draft = self.inspect(cmd, confidence).await;
            let (cmd, findings) = (draft.cmd.clone(), draft.findings.clone());
            trace(Trace::Checked { iteration: 1, cmd, confidence, findings });
            let draft = self.mended(draft).await;
            self.candidates += 1;
            match candidates.iter_mut().find(|c| c.draft.cmd == draft.cmd) {
                Some(known) => known.likelihood = known.likelihood.max(likelihood),
                None => candidates.push(candidate(Written { draft, likelihood })),
            }
        }
        if self.candidates == 1 && rejected.is_empty() {
            // nobody else came in time: nothing has been learnt
            self.timing.choice = ms(since.elapsed());
            return Ok(Chosen::Draft(candidates.swap_remove(0).draft, String::new()));
        }
        let others = candidates.len();
        candidates.extend(
            rejected
                .iter()
                .map(|cmd| candidate(Written { draft: Draft { cmd: cmd.clone(), ..Draft::none() }, likelihood: 0.0 })),
        );
        // where all are one command there is nothing to choose, and nothing to rehearse
        if candidates.len() > 1 {
            self.rehearse(&mut candidates).await;
        }
        // what does the same as a command that did not do it does not do it either
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
        let confidence = confidence::agreed(chosen.draft.confidence, choice.share, &self.ask.request);
        let mut draft = Draft { confidence, ..chosen.draft };
        if let Some(trial) = &chosen.trial {
            self.hold_against(&mut draft, trial);
        }
        Ok(Chosen::Draft(draft, why))
    }

    /// Asks the model in its other way.
    pub(super) async fn second(&mut self, prompt: Prompt) -> Result<Second, CommandError> {
        // where its examples have to be read for the first time, that is waited for: cut off, it would be begun again each time
        let completion = self.decide(prompt, Sampling::GREEDY, self.ask.timeout).await?;
        if completion.finish != Finish::Stop {
            return Ok(Second::Nothing);
        }
        let confidence = confidence::of(&completion, &self.ask.request);
        Ok(match reply::read(&completion.text) {
            Reply::Command(cmd) if self.ask.rejected.contains(&cmd) => Second::Nothing,
            Reply::Command(cmd) => {
                let draft = self.inspect(cmd, confidence).await;
                let draft = self.mended(draft).await;
                let draft = self.tried(draft).await;
                self.candidates += 1;
                Second::Command(Written { draft, likelihood: confidence::likelihood(&completion) })
            }
            Reply::Refused => Second::Refused(confidence),
            Reply::Nothing => Second::Nothing,
        })
    }

    /// How long several commands of so many tokens take together, by what the first one took.
    fn writing(&self, tokens: usize, several: u32) -> Duration {
        let each = self.timing.decode / 1e3 / self.timing.tokens.max(1) as f64;
        let together = ALONE + BESIDE * f64::from(several.saturating_sub(1));
        Duration::from_secs_f64((each * (READING + tokens as f64 * together)).max(0.0))
    }

    /// Replies of at most `max_tokens`, the likeliest and sampled ones, in the order in which they were written; as many as
    /// there are `until` so long after the request. With each its confidence and its likelihood.
    async fn others(
        &mut self,
        prompt: Prompt,
        count: u32,
        max_tokens: usize,
        until: Duration,
    ) -> Result<Vec<(Reply, f64, f64)>, CommandError> {
        let (temperature, top_p) = VARIED;
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

    /// The command with its known faults mended.
    pub(super) async fn mended(&mut self, draft: Draft) -> Draft {
        let (mut best, mut last) = (draft.clone(), draft);
        for _ in 0..MENDS {
            let Some(fix) = last.findings.iter().filter_map(|f| f.fix.clone()).find(|fix| *fix != best.cmd) else {
                break;
            };
            last = self.inspect(fix, last.confidence).await;
            // one fault may only show once another is mended
            if weight(&last.findings) > weight(&best.findings) {
                break;
            }
            if better(&last, &best, true) {
                best = last.clone();
            }
        }
        best
    }

    /// The draft, with what its own programs say against it in a rehearsal; as it is where a check accuses it already, or
    /// where it may not be rehearsed.
    pub(super) async fn tried(&self, mut draft: Draft) -> Draft {
        // of a program that is not here, though documents vouch for it, nothing can be seen
        let clean = draft.findings.iter().all(|f| f.severity == Severity::Hint && f.id != NOT_INSTALLED);
        let Some(shell) = self.stage().filter(|_| clean) else { return draft };
        let (ask, input) = (self.ask, self.ask.before.input.as_deref().filter(|head| !head.is_empty()));
        let run = async |input| trial::run(&shell, &draft.cmd, ask.dialect, &ask.cwd, trial::UNDERSTOOD, input).await;
        let trial = run(input).await;
        // who does the same without the data does not read it
        let without = match &trial {
            Some(trial) if input.is_some() && trial.ending == Ending::Fine => run(None).await,
            _ => None,
        };
        if let Some(trial) = trial {
            if without.is_some_and(|without| without.ending == Ending::Fine && without.agrees(&trial)) {
                draft.findings.push(faults::unread(&draft.cmd));
            }
            self.hold_against(&mut draft, &trial);
        }
        draft
    }

    /// Adds what the rehearsal has against the command, once.
    fn hold_against(&self, draft: &mut Draft, trial: &RehearsalResult) {
        let (dialect, request, is_local) = (self.ask.dialect, &self.ask.request, self.recipe.model.is_local());
        let Some(found) = faults::finding(Tried { cmd: &draft.cmd, dialect, request, is_local }, trial) else { return };
        draft.confidence = draft.confidence.min(faults::AT_MOST);
        if draft.findings.iter().all(|f| f.id != found.id) {
            draft.findings.push(found);
        }
    }

    /// The shell that commands are rehearsed in; `None` if none may be.
    fn stage(&self) -> Option<PathBuf> {
        let context = &self.recipe.context;
        let here = self.ask.rehearse && self.ask.target == context.target;
        context.available_commands.get(self.ask.dialect.name()).filter(|_| here).cloned()
    }

    /// Rehearses what may be rehearsed, side by side.
    async fn rehearse(&self, candidates: &mut [Candidate]) {
        let Some(shell) = self.stage() else { return };
        let wall = trial::COMPARED.min(self.left().max(trial::SHORTEST));
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

    /// A scripted model that takes so long to write a token, and notes how many others it is asked for until when.
    struct Writer {
        script: Scripted,
        each: Duration,
        asked: Mutex<Vec<(usize, Instant)>>,
    }

    impl Model for Writer {
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
            completion.usage.decode = self.each * completion.usage.completion_tokens as u32;
            Ok(completion)
        }

        fn sample(&self, request: &Request, count: usize) -> Result<Vec<Completion>, ModelError> {
            self.asked.lock().unwrap().push((count, request.cancel.deadline().unwrap()));
            self.script.sample(request, count)
        }
    }

    #[tokio::test]
    async fn as_many_are_sampled_as_there_is_time_for_and_those_are_waited_for() {
        // nothing here takes as long as an hour, however slow the machine
        let (budget, timeout) = (Duration::from_secs(3600), Duration::from_secs(36_000));
        // 60 words and the reading take 64 times the pace for one, 77.2 times for two
        for (logprob, pace, wanted) in [
            (-0.65, 0, Some((2, 3240))),
            (-0.65, 45, Some((1, 4320))),
            (-0.65, 60, None),
            // what is most likely wrong gets twice the time
            (-1.0, 0, Some((2, 6480))),
            (-1.0, 60, Some((2, 6948))),
            (-1.0, 110, None),
        ] {
            let first = (1..60).fold("ls".to_owned(), |line, i| format!("{line} f{i}"));
            let rule = serde_json::json!({"replies": [first, "ls -a", "ls -l"], "logprob": logprob});
            let script = serde_json::json!({ "rules": [rule] }).to_string().parse().unwrap();
            let model = Arc::new(Writer { script, each: Duration::from_secs(pace), asked: Mutex::default() });
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
            let asked = model.asked.lock().unwrap();
            assert_eq!(asked.first().map(|(count, _)| *count), wanted.map(|(count, _)| count), "{logprob} {pace}");
            if let (Some((_, until)), Some((_, seconds))) = (asked.first(), wanted) {
                let wait = Duration::from_secs(seconds);
                assert!(began + wait <= *until && *until <= ended + wait, "{logprob} {pace}: {:?}", *until - began);
            }
        }
    }
}
