//! Answers one request: executes the steps of the [`RefineLoop`] (asks the model, inspects and rehearses its
//! commands) within the time limits. The loop that drives it is shared with the agent ([`caro_inference::drive`]).

use super::answer::{Alternative, Answer, CommandError, CommandRequest, FewShot, History, Refine, Timing, Trace, View};
use super::documents::{self, DocumentedCommand};
use super::inspect::{Inspector, Manuals, Subject};
use super::refine_loop::{
    Draft, EXTEND_BUDGET_BELOW, Outcome, RefineLoop, SecondAnswer, Step, is_broken, refine_reason,
};
use super::reply::{self, Reply};
use super::{confidence, explain, file_schema, grounds, library, prompt, revised, spelling};
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

/// Most tokens of a command.
pub(super) const MAX_TOKENS: usize = 192;
/// Most tokens of a request.
const MAX_REQUEST_TOKENS: usize = 1024;
/// Most bytes of a request. No language needs 16 bytes per token, so the tokens of a longer request need not be
/// counted.
pub const MAX_REQUEST: usize = MAX_REQUEST_TOKENS * 16;
/// The time that an answer waits for manuals that are not cached yet.
const MANUAL_WAIT: Duration = Duration::from_millis(600);
/// The share of the budget after which decoding stops if there is already a command.
const DECODE_SHARE: f64 = 0.9;
/// The temperature and nucleus (top-p) with which different answers are sampled.
pub(super) const VARIED_SAMPLING: (f32, f32) = (0.8, 0.95);

/// Returns the error message for a request that is too long; `unit` is that of `size`: bytes or tokens.
pub fn too_long(size: usize, unit: &str) -> String {
    format!(
        "the request has {size} {unit}, and {MAX_REQUEST_TOKENS} tokens (some 4000 letters of English) are the most: \
         a command is asked for in a sentence or two"
    )
}

/// The recipe with the parts that it needs: one loaded model, one machine, one cache of manuals.
#[derive(Clone)]
pub struct Recipe {
    /// The model.
    pub model: Arc<dyn Model>,
    /// The machine.
    pub context: Arc<ExecutionContext>,
    /// The cache of manuals; without one, flags are not checked.
    pub manual: Option<Arc<Manual>>,
    /// The user's own documents, which are searched for commands.
    pub documents: Option<Librarian>,
    /// True if the model is asked with its adapter, if it has one.
    pub adapted: bool,
    /// The ids of findings that are left out, to measure the worth of a check.
    pub without: Arc<[String]>,
}

/// Receives the events on the way to an answer.
pub(super) type Tracer<'a> = &'a mut (dyn FnMut(Trace) + Send);

/// The state of one request while it is answered.
pub(super) struct Run<'a> {
    pub(super) recipe: &'a Recipe,
    inspector: Inspector,
    pub(super) ask: &'a CommandRequest,
    pub(super) cancel: Cancel,
    /// The grammar of the model's replies.
    pub(super) shape: Shape,
    manuals: Manuals,
    pub(super) timing: Timing,
    /// The number of commands that the answer was chosen from.
    pub(super) candidates: u32,
    pub(super) started: Instant,
    /// True if the model's first answer is most likely wrong ([`EXTEND_BUDGET_BELOW`]).
    is_doubtful: bool,
    /// True once the model has answered with its adapter.
    is_adapted: bool,
}

impl Recipe {
    /// Answers one request. `trace` receives the events on the way.
    ///
    /// # Errors
    /// See [`CommandError`]. A request that is no shell task is no error: [`Answer::refusal`].
    pub async fn answer(&self, ask: &CommandRequest, trace: Tracer<'_>) -> Result<Answer, CommandError> {
        let started = Instant::now();
        let mut ask = self.validate(ask)?;
        let corrected = spelling::correct(&ask.request, |word| self.is_word(word, &ask.cwd));
        let (request, slips) = corrected.unwrap_or_else(|| (ask.request.clone(), Vec::new()));
        ask.request = request;
        ask.before.known = self.documented_commands(&ask, trace).await;
        // the agent describes the folder and its files itself
        if ask.before.place.is_empty() || ask.before.input.is_some() {
            let has_jq = self.context.available_commands.contains_key("jq");
            ask.before.place.extend(file_schema::describe(&ask.request, &ask.cwd, has_jq));
        }
        let ask = &ask;
        if let Some(manual) = &self.manual {
            // a program in the working directory is not run for its help text: the request may be about it
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
        Ok(Answer { slips, ..run.answer(trace).await? })
    }

    /// Has the model prefill the examples of [`View::Examples`], so that its cache has them when the first doubtful
    /// request needs them. Does nothing for a model that always has these examples in its prompt.
    pub async fn prepare(&self, target: shell::Target, dialect: shell::Dialect, cancel: &Cancel) {
        if !self.is_adapted() {
            return;
        }
        let few_shot = FewShot::Nearest(0);
        let prompt = prompt::first("list files", target, dialect, View::Examples, few_shot, &History::default());
        let (sampling, cancel) = (Sampling::GREEDY, cancel.clone());
        let request = Request { prompt, shape: reply::shape(false), sampling, max_tokens: 1, cancel };
        // an error here costs only time: the prefill happens on the first request instead
        let _ = generate(self.model.clone(), request, |_| Flow::Continue).await;
    }

    /// True if the model is asked with its adapter.
    fn is_adapted(&self) -> bool {
        self.adapted && self.model.adapter().is_some()
    }

    /// True for a word that is no typing error: a program, a file in `cwd`, or a single token of the model.
    fn is_word(&self, word: &str, cwd: &Path) -> bool {
        self.context.available_commands.contains_key(word)
            || cwd.join(word).exists()
            || self.model.count(&format!(" {word}")) == 1
    }

    /// Finds the commands in the user's own documents for nearly the same request. If the documents cannot be read,
    /// there are none, and the request is answered without them.
    async fn documented_commands(&self, ask: &CommandRequest, trace: Tracer<'_>) -> Vec<DocumentedCommand> {
        let Some(documents) = self.documents.clone() else { return Vec::new() };
        let (request, dialect) = (ask.request.clone(), ask.dialect);
        let search = tokio::task::spawn_blocking(move || documents::alike(&documents, &request, dialect)).await;
        let known = match search.map_err(|e| e.to_string()).and_then(|found| found.map_err(|e| e.to_string())) {
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

    /// Checks the length of the request, removes polite phrases, and sets the view.
    fn validate(&self, ask: &CommandRequest) -> Result<CommandRequest, CommandError> {
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

/// The loop with its next step.
struct LoopMachine {
    refine_loop: RefineLoop,
    step: Step,
}

impl StateMachine for LoopMachine {
    type Need = Step;
    type End = Outcome;

    fn next_step(&mut self) -> Next<Step, Outcome> {
        match std::mem::replace(&mut self.step, Step::Done(Outcome::Nothing)) {
            Step::Done(outcome) => Next::End(outcome),
            step => Next::Need(step),
        }
    }
}

/// Executes the steps of one request.
struct Driver<'r, 'a, 't> {
    run: &'r mut Run<'a>,
    trace: Tracer<'t>,
}

impl Executor<LoopMachine> for Driver<'_, '_, '_> {
    type Error = CommandError;

    /// Never stops between steps: a cancelled model call returns early, and the loop then ends by itself.
    fn between(&mut self, _: &mut LoopMachine) -> ControlFlow<Outcome> {
        ControlFlow::Continue(())
    }

    async fn execute(
        &mut self,
        LoopMachine { refine_loop, step: next }: &mut LoopMachine,
        step: Step,
    ) -> Result<(), CommandError> {
        let (run, trace) = (&mut *self.run, &mut *self.trace);
        *next = match step {
            Step::AskModel { iteration, prompt } => {
                run.trace_prompt(iteration, &prompt, trace);
                // once there is an answer, a better one may only take the budget
                let until = if refine_loop.has_answer() { run.decode_limit() } else { run.ask.timeout };
                let completion = run.ask_model(prompt, Sampling::GREEDY, until).await?;
                trace(Trace::Raw { iteration, text: completion.text.clone() });
                let confidence = confidence::of(&completion, &run.ask.request);
                run.is_doubtful |= iteration == 1 && confidence < EXTEND_BUDGET_BELOW;
                refine_loop.on_reply(&completion, confidence, run.has_time())
            }
            Step::Inspect { cmd, confidence } => {
                let draft = run.inspect(cmd, confidence).await;
                let draft = if run.ask.refine == Refine::Never { draft } else { run.rehearse_draft(draft).await };
                if refine_loop.iterations == 1 {
                    run.timing.iteration1 = ms(run.started.elapsed());
                }
                run.trace_draft(refine_loop.iterations, &draft, trace);
                refine_loop.on_inspected(draft, run.has_time())
            }
            Step::AskOtherView { prompt } => {
                trace(Trace::Decision { what: "asked in the other way too".into() });
                let second = run.ask_other_view(prompt.clone()).await?;
                if let SecondAnswer::Command(second) = &second {
                    run.trace_draft(refine_loop.iterations, &second.draft, trace);
                }
                refine_loop.on_second_answer(prompt, second, run.has_time())
            }
            Step::Sample { found, prompt, count } => {
                let chosen = run.sample_and_choose(found, prompt, count, trace).await?;
                refine_loop.on_choice(chosen, run.has_time())
            }
            done @ Step::Done(_) => done,
        };
        Ok(())
    }
}

impl Run<'_> {
    async fn answer(mut self, trace: Tracer<'_>) -> Result<Answer, CommandError> {
        let mut refine_loop = RefineLoop::new(self.ask);
        let step = refine_loop.begin();
        let mut machine = LoopMachine { refine_loop, step };
        let outcome = drive(&mut machine, &mut Driver { run: &mut self, trace }).await?;
        let iterations = machine.refine_loop.iterations;
        if iterations > 1 {
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
            iterations,
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

    /// True while another iteration may begin: until half of the budget is spent.
    fn has_time(&self) -> bool {
        self.started.elapsed() < self.budget() / 2 && !self.cancel.is_cancelled()
    }

    /// The time after the request in which to look for a better answer.
    pub(super) fn budget(&self) -> Duration {
        let budget = if self.is_doubtful { 2 * self.ask.budget } else { self.ask.budget };
        budget.min(self.ask.timeout)
    }

    /// The rest of the budget.
    pub(super) fn budget_left(&self) -> Duration {
        self.budget().saturating_sub(self.started.elapsed())
    }

    /// The time after the request at which decoding stops if there is already a command.
    pub(super) fn decode_limit(&self) -> Duration {
        self.budget().mul_f64(DECODE_SHARE)
    }

    fn subject(&self) -> Subject<'_> {
        let ask = self.ask;
        Subject {
            request: &ask.request,
            earlier: &ask.before.said,
            cwd: &ask.cwd,
            target: ask.target,
            dialect: ask.dialect,
        }
    }

    /// Builds a request to the model whose deadline is `until` after the start.
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

    /// Asks the model, stopping at `until` after the start. While it decodes, looks up the manuals of the programs
    /// that it has named so far.
    pub(super) async fn ask_model(
        &mut self,
        prompt: Prompt,
        sampling: Sampling,
        until: Duration,
    ) -> Result<Completion, CommandError> {
        let request = self.model_request(prompt, sampling, MAX_TOKENS, until);
        let (words, mut written) = mpsc::unbounded_channel::<String>();
        let generation = generate_until(self.recipe.model.clone(), request, reply::is_repetitive, move |text| {
            // if the receiver is gone, manuals are only not prefetched
            let _ = words.send(text.to_owned());
        });
        let mut text = String::new();
        while let Some(piece) = written.recv().await {
            // the word before is complete when the next one begins
            if piece.starts_with([' ', '|']) && !text.is_empty() {
                let so_far = shell::parse(text.trim(), self.ask.dialect);
                let ask = self.ask;
                let subject = Subject::without_request(&ask.cwd, ask.target, ask.dialect);
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

    /// Runs the checks on a command, without the findings that the user's documents or the piped input refute.
    pub(super) async fn inspect(&mut self, cmd: String, confidence: f64) -> Draft {
        let since = Instant::now();
        let mut manuals = std::mem::take(&mut self.manuals);
        let mut draft = self.inspector.inspect(cmd, confidence, self.subject(), &mut manuals, MANUAL_WAIT).await;
        documents::vouch(&self.ask.before.known, self.ask.dialect, &mut draft.findings);
        let dropped = revised::check(&self.ask.before, &self.ask.request, &draft.cmd, self.ask.dialect);
        draft.findings.extend(dropped.into_iter().filter(|finding| !self.inspector.without.contains(&finding.id)));
        if self.ask.before.input.is_some() {
            file_schema::input::adapt_findings(&mut draft.findings, &draft.cmd, self.ask.dialect);
        }
        self.manuals = manuals;
        self.timing.manual += ms(since.elapsed());
        draft
    }

    /// Samples further, different commands for the same request and checks them like the first. Returns fewer than
    /// asked for if the model repeats itself or the timeout passes.
    async fn alternatives(&mut self, first: &str) -> Result<Vec<Alternative>, CommandError> {
        let wanted = self.ask.alternatives.saturating_sub(1);
        let mut others: Vec<Alternative> = Vec::new();
        let (temperature, top_p) = VARIED_SAMPLING;
        let ask = self.ask;
        let prompt = prompt::first(&ask.request, ask.target, ask.dialect, ask.view, ask.few_shot, &ask.before);
        for seed in 0..4 * wanted as u64 {
            if others.len() >= wanted || self.cancel.is_cancelled() {
                break;
            }
            let completion =
                self.ask_model(prompt.clone(), Sampling { temperature, top_p, seed }, self.ask.timeout).await?;
            let Reply::Command(cmd) = reply::read(&completion.text) else { continue };
            if completion.finish != Finish::Stop {
                continue;
            }
            let draft = self.inspect(cmd, confidence::of(&completion, &self.ask.request)).await;
            let Draft { cmd, confidence, findings, risk, .. } = self.apply_fixes(draft).await;
            let form = |cmd: &str| normal_form(cmd, self.ask.dialect);
            let is_known = form(&cmd) == form(first) || others.iter().any(|other| form(&other.cmd) == form(&cmd));
            if !is_known && !is_broken(&findings) {
                others.push(Alternative { cmd, confidence, findings, risk });
            }
        }
        Ok(others)
    }

    fn trace_prompt(&self, iteration: u32, prompt: &Prompt, trace: Tracer<'_>) {
        let (stable, volatile) = prompt.messages.split_at(prompt.stable_messages.min(prompt.messages.len()));
        for (name, messages) in [("persona and examples", stable), ("request", volatile)] {
            let text: String = messages.iter().map(|m| m.text.as_str()).collect::<Vec<_>>().join("\n");
            let (tokens, chars) = (self.recipe.model.count(&text), text.chars().count());
            trace(Trace::Layer { name: name.into(), tokens, chars });
        }
        trace(Trace::Prompt { iteration, text: prompt::render(prompt) });
    }

    fn trace_draft(&self, iteration: u32, draft: &Draft, trace: Tracer<'_>) {
        let (cmd, findings) = (draft.cmd.clone(), draft.findings.clone());
        trace(Trace::Checked { iteration, cmd, confidence: draft.confidence, findings });
        if let Some(why) = refine_reason(self.ask.refine, draft) {
            trace(Trace::Decision { what: format!("worth another iteration: {why}") });
        }
    }
}

/// Splits a command into words, with the letters of each cluster of options sorted, so that `sort -rh` equals
/// `sort -hr`. The first entry is the text between the words.
fn normal_form(cmd: &str, dialect: shell::Dialect) -> Vec<String> {
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
    // the text between the words, such as pipes, redirections and brackets, is compared as well
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

/// Converts a duration to milliseconds, rounded down to a microsecond.
pub(super) fn ms(d: Duration) -> f64 {
    d.as_micros() as f64 / 1e3
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_of_option_letters_makes_no_difference() {
        let form = |cmd: &str| normal_form(cmd, shell::Dialect::Bash);
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
