//! The executor of the shortest recipe: asks the model, has its commands inspected, keeps the time. The loop itself is the
//! agent's ([`caro_inference::drive`]).

use super::answer::{Alternative, Answer, CommandError, CommandRequest, FewShot, History, Refine, Timing, Trace, View};
use super::documents::{self, DocumentedCommand};
use super::inspect::{Inspector, Manuals, Subject};
use super::refine_loop::{self, Draft, Outcome, RefineLoop, Second, Step};
use super::reply::{self, Reply};
use super::{confidence, explain, file_schema, grounds, library, prompt, spelling};
use caro_documents::Librarian;
use caro_host::ExecutionContext;
use caro_inference::{Executor, Next, StateMachine, drive, generate, generate_until};
use caro_intent::courtesy;
use caro_manual::Manual;
use caro_model::{Cancel, Completion, Finish, Flow, Model, Prompt, Request, Sampling, Shape, Usage};
use caro_shell as shell;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::mpsc;

/// The most tokens of a command.
pub(super) const MAX_TOKENS: usize = 192;
/// The most tokens of a request.
const MAX_REQUEST_TOKENS: usize = 1024;
/// The most bytes of a request: sixteen a token is more than any language needs, so what is beyond it is not even counted.
pub const MAX_REQUEST: usize = MAX_REQUEST_TOKENS * 16;
/// How long an answer waits for manuals that are not cached yet.
const MANUAL_WAIT: Duration = Duration::from_millis(600);
/// The share of the budget after which nothing is written that is only to be better than what there is: it is not waited for,
/// and nothing is begun that would not be done.
const LATEST: f64 = 0.9;
/// Temperature and nucleus of further, different answers.
pub(super) const VARIED: (f32, f32) = (0.8, 0.95);

/// What is told of a request that is too long, in bytes where they alone say so, else in tokens.
pub fn too_long(size: usize, unit: &str) -> String {
    format!(
        "the request has {size} {unit}, and {MAX_REQUEST_TOKENS} tokens (some 4000 letters of English) are the most: \
         a command is asked for in a sentence or two"
    )
}

/// The recipe with all it stands on: one loaded model, one machine, one help cache.
#[derive(Clone)]
pub struct Recipe {
    /// The model.
    pub model: Arc<dyn Model>,
    /// The machine.
    pub context: Arc<ExecutionContext>,
    /// The help cache; without one, flags are not checked.
    pub manual: Option<Arc<Manual>>,
    /// The person's own documents, to be looked into for commands.
    pub documents: Option<Librarian>,
    /// Is the model asked with its adapter, if it has one?
    pub adapted: bool,
    /// The ids of findings that are not told, to measure what a check is worth.
    pub without: Arc<[String]>,
}

/// Told what happens on the way.
pub(super) type Tracer<'a> = &'a mut (dyn FnMut(Trace) + Send);

/// One request on its way.
pub(super) struct Run<'a> {
    pub(super) recipe: &'a Recipe,
    inspector: Inspector,
    pub(super) ask: &'a CommandRequest,
    pub(super) cancel: Cancel,
    /// Of the model's replies.
    pub(super) shape: Shape,
    manuals: Manuals,
    pub(super) timing: Timing,
    /// Commands that the answer was chosen from.
    pub(super) candidates: u32,
    pub(super) started: Instant,
    /// True once the model's own answer is most likely wrong ([`refine_loop::EXTEND_BUDGET_BELOW`]).
    is_doubtful: bool,
    /// True once the model has answered with its adapter.
    is_adapted: bool,
}

impl Recipe {
    /// Answers one request. `trace` is told what happens on the way.
    ///
    /// # Errors
    /// See [`CommandError`]. A request that is no shell task is no error: [`Answer::refusal`].
    pub async fn answer(&self, ask: &CommandRequest, trace: Tracer<'_>) -> Result<Answer, CommandError> {
        let started = Instant::now();
        let mut ask = self.checked(ask)?;
        let mended = spelling::mended(&ask.request, |word| self.knows(word, &ask.cwd));
        let (request, slips) = mended.unwrap_or_else(|| (ask.request.clone(), Vec::new()));
        ask.request = request;
        ask.before.known = self.known(&ask, trace).await;
        // the agent tells of the place itself
        if ask.before.place.is_empty() || ask.before.input.is_some() {
            let has_jq = self.context.available_commands.contains_key("jq");
            ask.before.place.extend(file_schema::told(&ask.request, &ask.cwd, has_jq));
        }
        let ask = &ask;
        if let Some(manual) = &self.manual {
            // a program of the tree that the request is about is not run for its help
            manual.avoid(&ask.cwd);
        }
        let cancel = ask.cancel.with_deadline(started + ask.timeout);
        let inspector =
            Inspector { context: self.context.clone(), manual: self.manual.clone(), without: self.without.clone() };
        let (manuals, timing) = (Manuals::new(), Timing::default());
        let shape = reply::shape(library::has(&ask.request, ask.target));
        let run = Run {
            recipe: self,
            inspector,
            ask,
            cancel,
            shape,
            manuals,
            timing,
            candidates: 1,
            started,
            is_doubtful: false,
            is_adapted: false,
        };
        Ok(Answer { slips, ..run.go(trace).await? })
    }

    /// Has the model read what it is shown in its other way, for the first call of all: what that takes is kept, and would be
    /// missing to the first request that is doubtful.
    pub async fn prepare(&self, target: shell::Target, dialect: shell::Dialect, cancel: &Cancel) {
        if !self.is_adapted() {
            return;
        }
        let few_shot = FewShot::Nearest(0);
        let prompt = prompt::first("list files", target, dialect, View::Examples, few_shot, &History::default());
        let (sampling, cancel) = (Sampling::GREEDY, cancel.clone());
        let request = Request { prompt, shape: reply::shape(false), sampling, max_tokens: 1, cancel };
        // whoever cannot do it now does it when it is needed
        let _ = generate(self.model.clone(), request, |_| Flow::Continue).await;
    }

    /// Is the model asked with its adapter?
    fn is_adapted(&self) -> bool {
        self.adapted && self.model.adapter().is_some()
    }

    /// True for a word that is one to somebody: a common one to the model, a program, a file here.
    fn knows(&self, word: &str, cwd: &Path) -> bool {
        self.context.available_commands.contains_key(word)
            || cwd.join(word).exists()
            || self.model.count(&format!(" {word}")) == 1
    }

    /// What the person's own documents have for it. A library that cannot be read costs its commands, not the answer.
    async fn known(&self, ask: &CommandRequest, trace: Tracer<'_>) -> Vec<DocumentedCommand> {
        let Some(documents) = self.documents.clone() else { return Vec::new() };
        let (request, dialect) = (ask.request.clone(), ask.dialect);
        let looked = tokio::task::spawn_blocking(move || documents::alike(&documents, &request, dialect)).await;
        let known = match looked.map_err(|e| e.to_string()).and_then(|found| found.map_err(|e| e.to_string())) {
            Ok(known) => known,
            Err(error) => {
                trace(Trace::Decision { what: format!("without the documents: {error}") });
                Vec::new()
            }
        };
        for DocumentedCommand { command, path, line, .. } in &known {
            trace(Trace::Decision { what: format!("shown beside the request: `{command}` ({path}:{line})") });
        }
        known
    }

    /// The request without what only asks for it; or why it cannot be one.
    fn checked(&self, ask: &CommandRequest) -> Result<CommandRequest, CommandError> {
        let request = ask.request.trim();
        if request.is_empty() {
            return Err(CommandError::BadRequest("the request is empty".into()));
        }
        if request.len() > MAX_REQUEST {
            return Err(CommandError::BadRequest(too_long(request.len(), "bytes")));
        }
        let tokens = self.model.count(request);
        if tokens > MAX_REQUEST_TOKENS {
            return Err(CommandError::BadRequest(too_long(tokens, "tokens")));
        }
        let view = if self.is_adapted() { View::Adapted } else { View::Examples };
        Ok(CommandRequest { request: courtesy::without(request).to_owned(), view, ..ask.clone() })
    }
}

/// The loop's machine with the step that is due.
struct Pending {
    refining: RefineLoop,
    step: Step,
}

impl StateMachine for Pending {
    type Need = Step;
    type End = Outcome;

    fn next_step(&mut self) -> Next<Step, Outcome> {
        match std::mem::replace(&mut self.step, Step::Done(Outcome::Nothing)) {
            Step::Done(outcome) => Next::End(outcome),
            step => Next::Need(step),
        }
    }
}

/// The executor of one request.
struct Driver<'r, 'a, 't> {
    run: &'r mut Run<'a>,
    trace: Tracer<'t>,
}

impl Executor<Pending> for Driver<'_, '_, '_> {
    type Error = CommandError;

    /// The model itself ends early when it is stopped, and the machine knows what that leaves.
    fn between(&mut self, _: &mut Pending) -> ControlFlow<Outcome> {
        ControlFlow::Continue(())
    }

    async fn execute(
        &mut self,
        Pending { refining, step: next }: &mut Pending,
        step: Step,
    ) -> Result<(), CommandError> {
        let (run, trace) = (&mut *self.run, &mut *self.trace);
        *next = match step {
            Step::Decide { iteration, prompt } => {
                run.trace_prompt(iteration, &prompt, trace);
                // a further iteration is not waited for longer than for others
                let until = if refining.has_answer() { run.latest() } else { run.ask.timeout };
                let completion = run.decide(prompt, Sampling::GREEDY, until).await?;
                trace(Trace::Raw { iteration, text: completion.text.clone() });
                let confidence = confidence::of(&completion, &run.ask.request);
                run.is_doubtful |= iteration == 1 && confidence < refine_loop::EXTEND_BUDGET_BELOW;
                refining.decided(&completion, confidence, run.has_time())
            }
            Step::Inspect { cmd, confidence } => {
                let draft = run.inspect(cmd, confidence).await;
                let draft = if run.ask.refine == Refine::Never { draft } else { run.tried(draft).await };
                if refining.iterations == 1 {
                    run.timing.iteration1 = ms(run.started.elapsed());
                }
                run.trace_draft(refining.iterations, &draft, trace);
                refining.inspected(draft, run.has_time())
            }
            Step::Other { prompt } => {
                trace(Trace::Decision { what: "asked in the other way too".into() });
                let second = run.second(prompt.clone()).await?;
                if let Second::Command(second) = &second {
                    run.trace_draft(refining.iterations, &second.draft, trace);
                }
                refining.seconded(prompt, second, run.has_time())
            }
            Step::Sample { found, prompt, count } => {
                let chosen = run.choose(found, prompt, count, trace).await?;
                refining.chosen(chosen, run.has_time())
            }
            done @ Step::Done(_) => done,
        };
        Ok(())
    }
}

impl Run<'_> {
    async fn go(mut self, trace: Tracer<'_>) -> Result<Answer, CommandError> {
        let mut refining = RefineLoop::new(self.ask);
        let step = refining.begin();
        let mut machine = Pending { refining, step };
        let outcome = drive(&mut machine, &mut Driver { run: &mut self, trace }).await?;
        let refining = machine.refining;
        if refining.iterations > 1 {
            self.timing.iteration2 = ms(self.started.elapsed()) - self.timing.iteration1 - self.timing.choice;
        }
        let (draft, changes, refusal) = match outcome {
            Outcome::Command { .. } if self.ask.cancel.is_cancelled() => return Err(CommandError::Cancelled),
            Outcome::Command { draft, changes } => (draft, changes, None),
            Outcome::Refused => (Draft::none(), String::new(), Some("this is not a task for a shell")),
            Outcome::Nothing => {
                (Draft::none(), String::new(), Some("the model wrote no usable command: say it differently"))
            }
            Outcome::Stopped if self.ask.cancel.is_cancelled() => return Err(CommandError::Cancelled),
            Outcome::Stopped => return Err(CommandError::Timeout(self.ask.timeout)),
        };
        let alternatives = if refusal.is_none() { self.alternatives(&draft.cmd).await? } else { Vec::new() };
        self.timing.total = ms(self.started.elapsed());
        let ask = self.ask;
        let confidence = grounds::capped(draft.confidence, &ask.request, ask.target, ask.dialect, &draft.commands_used);
        Ok(Answer {
            explanation: explain::line(&shell::parse(&draft.cmd, ask.dialect), &self.manuals),
            draft: grounds::is_draft(&draft),
            cmd: draft.cmd,
            confidence,
            commands_used: draft.commands_used,
            changes,
            iterations: refining.iterations,
            candidates: self.candidates,
            findings: draft.findings,
            risk: draft.risk,
            model: self.recipe.model.id().to_owned(),
            adapter: self.adapter(),
            target: self.ask.target.name().to_owned(),
            shell: self.ask.dialect.name().to_owned(),
            timing: self.timing,
            alternatives,
            documents: self.ask.before.known.clone(),
            slips: Vec::new(),
            resident: false,
            refusal: refusal.map(str::to_owned),
        })
    }

    /// The name of the adapter that the model has answered with.
    fn adapter(&self) -> Option<String> {
        let adapter = self.recipe.model.adapter()?;
        self.is_adapted.then(|| adapter.name.clone())
    }

    /// No new iteration begins once half of the budget is spent.
    fn has_time(&self) -> bool {
        self.started.elapsed() < self.budget() / 2 && !self.cancel.is_cancelled()
    }

    /// How long a better answer is looked for, from the request on.
    pub(super) fn budget(&self) -> Duration {
        let budget = if self.is_doubtful { 2 * self.ask.budget } else { self.ask.budget };
        budget.min(self.ask.timeout)
    }

    /// What is left of the budget.
    pub(super) fn left(&self) -> Duration {
        self.budget().saturating_sub(self.started.elapsed())
    }

    /// How long after the request something is written that is only to be better than what there is.
    pub(super) fn latest(&self) -> Duration {
        self.budget().mul_f64(LATEST)
    }

    fn subject(&self) -> Subject<'_> {
        let ask = self.ask;
        Subject { request: &ask.request, cwd: &ask.cwd, target: ask.target, dialect: ask.dialect }
    }

    /// What the model is asked, until so long after the request.
    pub(super) fn model_request(
        &self,
        prompt: Prompt,
        sampling: Sampling,
        max_tokens: usize,
        until: Duration,
    ) -> Request {
        Request {
            prompt,
            shape: self.shape.clone(),
            sampling,
            max_tokens,
            cancel: self.cancel.with_deadline(self.started + until),
        }
    }

    /// Asks the model, until so long after the request. While it still writes, the manuals of the programs it has named so far
    /// are looked up.
    pub(super) async fn decide(
        &mut self,
        prompt: Prompt,
        sampling: Sampling,
        until: Duration,
    ) -> Result<Completion, CommandError> {
        let request = self.model_request(prompt, sampling, MAX_TOKENS, until);
        let (words, mut written) = mpsc::unbounded_channel::<String>();
        let generation = generate_until(self.recipe.model.clone(), request, reply::goes_round, move |text| {
            // a receiver that is gone only means that nobody prefetches any more
            let _ = words.send(text.to_owned());
        });
        let mut text = String::new();
        while let Some(piece) = written.recv().await {
            // a word is whole when the next one begins
            if piece.starts_with([' ', '|']) && !text.is_empty() {
                let so_far = shell::parse(text.trim(), self.ask.dialect);
                let ask = self.ask;
                let subject = Subject { request: "", cwd: &ask.cwd, target: ask.target, dialect: ask.dialect };
                self.inspector.look_up(&so_far, subject, &mut self.manuals, Duration::ZERO).await;
            }
            text.push_str(&piece);
        }
        let completion = generation.await?;
        let Usage {
            load, prefill, decode, shaping, completion_tokens, drafted_tokens, accepted_tokens, adapted, ..
        } = completion.usage;
        self.is_adapted |= adapted;
        self.timing.load += ms(load);
        self.timing.prefill += ms(prefill);
        self.timing.decode += ms(decode);
        self.timing.grammar += ms(shaping);
        self.timing.tokens += completion_tokens;
        self.timing.drafted += drafted_tokens;
        self.timing.accepted += accepted_tokens;
        Ok(completion)
    }

    pub(super) async fn inspect(&mut self, cmd: String, confidence: f64) -> Draft {
        let since = Instant::now();
        let mut manuals = std::mem::take(&mut self.manuals);
        let mut draft = self.inspector.inspect(cmd, confidence, self.subject(), &mut manuals, MANUAL_WAIT).await;
        documents::vouch(&self.ask.before.known, self.ask.dialect, &mut draft.findings);
        if self.ask.before.input.is_some() {
            file_schema::input::is_given(&mut draft.findings);
        }
        self.manuals = manuals;
        self.timing.manual += ms(since.elapsed());
        draft
    }

    /// Further, different commands for the same request, sampled and checked like the first; fewer than asked for if the
    /// model repeats itself or the time is up.
    async fn alternatives(&mut self, first: &str) -> Result<Vec<Alternative>, CommandError> {
        let wanted = self.ask.alternatives.saturating_sub(1);
        let mut others: Vec<Alternative> = Vec::new();
        let (temperature, top_p) = VARIED;
        let ask = self.ask;
        let prompt = prompt::first(&ask.request, ask.target, ask.dialect, ask.view, ask.few_shot, &ask.before);
        for seed in 0..4 * wanted as u64 {
            if others.len() >= wanted || self.cancel.is_cancelled() {
                break;
            }
            let completion =
                self.decide(prompt.clone(), Sampling { temperature, top_p, seed }, self.ask.timeout).await?;
            let Reply::Command(cmd) = reply::read(&completion.text) else { continue };
            if completion.finish != Finish::Stop {
                continue;
            }
            let draft = self.inspect(cmd, confidence::of(&completion, &self.ask.request)).await;
            let Draft { cmd, confidence, findings, risk, .. } = self.mended(draft).await;
            let form = |cmd: &str| shape(cmd, self.ask.dialect);
            let is_known = form(&cmd) == form(first) || others.iter().any(|other| form(&other.cmd) == form(&cmd));
            if !is_known && !refine_loop::is_broken(&findings) {
                others.push(Alternative { cmd, confidence, findings, risk });
            }
        }
        Ok(others)
    }

    fn trace_prompt(&self, iteration: u32, prompt: &Prompt, trace: Tracer<'_>) {
        let (stable, volatile) = prompt.messages.split_at(prompt.stable_messages.min(prompt.messages.len()));
        for (name, turns) in [("persona and examples", stable), ("request", volatile)] {
            let text: String = turns.iter().map(|t| t.text.as_str()).collect::<Vec<_>>().join("\n");
            let (tokens, chars) = (self.recipe.model.count(&text), text.chars().count());
            trace(Trace::Layer { name: name.into(), tokens, chars });
        }
        trace(Trace::Prompt { iteration, text: prompt::render(prompt) });
    }

    fn trace_draft(&self, iteration: u32, draft: &Draft, trace: Tracer<'_>) {
        let (cmd, findings) = (draft.cmd.clone(), draft.findings.clone());
        trace(Trace::Checked { iteration, cmd, confidence: draft.confidence, findings });
        if let Some(why) = refine_loop::reason(self.ask.refine, draft) {
            trace(Trace::Decision { what: format!("worth another iteration: {why}") });
        }
    }
}

/// A command's words, with the letters of each cluster of options in order: `sort -rh` and `sort -hr` are one.
fn shape(cmd: &str, dialect: shell::Dialect) -> Vec<String> {
    let word = |word: &shell::Word| {
        let letters = word.raw.strip_prefix('-').filter(|l| l.chars().all(|c| c.is_ascii_alphabetic()));
        letters.map_or_else(
            || word.raw.clone(),
            |letters| {
                let mut letters: Vec<char> = letters.chars().collect();
                letters.sort_unstable();
                std::iter::once('-').chain(letters).collect()
            },
        )
    };
    let script = shell::parse(cmd, dialect);
    // what stands between the words stays: pipes, redirections, brackets
    let mut rest = script.text.clone();
    let mut words: Vec<&shell::Word> = script.commands.iter().flat_map(|c| &c.words).collect();
    words.sort_by_key(|w| std::cmp::Reverse(w.span.start));
    for word in &words {
        if rest.get(word.span.clone()).is_some() {
            rest.replace_range(word.span.clone(), "_");
        }
    }
    std::iter::once(rest).chain(words.into_iter().map(word)).collect()
}

/// Milliseconds, to the microsecond.
pub(super) fn ms(d: Duration) -> f64 {
    d.as_micros() as f64 / 1e3
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_of_letters_makes_no_other_command() {
        let form = |cmd: &str| shape(cmd, shell::Dialect::Bash);
        assert_eq!(form("ls -lh | sort -rh"), form("ls -hl | sort -hr"));
        for (one, other) in [
            ("ls -l", "ls -lh"),
            ("ls | sort", "ls && sort"),
            ("cat a > b", "cat b > a"),
            ("sort -k2n f", "sort -kn2 f"),
        ] {
            assert_ne!(form(one), form(other), "{one}");
        }
    }
}
