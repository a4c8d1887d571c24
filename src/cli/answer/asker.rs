//! Asks for further answers: another command for the same words, or the shown command changed.

use super::{ask, present, revise};
use crate::flags::AnswerArgs;
use crate::setup::wire::{self, Wired};
use crate::term::first;
use crate::{Cx, Failure, Settings};
use ask::Place;
use caro_command::inspect::{Inspector, Manuals, Subject};
use caro_command::{Answer, CommandRequest, History, PastExchange, Refine, checked, input};
use caro_host::ExecutionContext;
use caro_manual::Manual;
use caro_model::Cancel;
use std::cell::{Cell, OnceCell, RefCell};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;

/// Most time to wait for the manuals of a command that the user wrote.
const MANUAL_TIMEOUT: Duration = Duration::from_secs(1);

/// Fewest candidates when another command is asked for: with one there is no other.
const MIN_CANDIDATES: u32 = 4;

/// Asks for further answers under the same arguments and settings as the first one.
pub struct Asker<'a> {
    /// The context of the verb.
    pub cx: &'a Cx,
    /// The flags of the request.
    pub args: &'a AnswerArgs,
    /// The settings in force.
    pub settings: &'a Settings,
    /// The directory, machine and shell of the command.
    pub place: &'a Place,
    /// The runtime that answers are computed in.
    pub runtime: &'a Runtime,
    /// This machine.
    pub context: Arc<ExecutionContext>,
    /// Its manuals.
    manual: Option<Arc<Manual>>,
    /// The recipe with its model, opened by the first further answer if the shown one needed no model.
    wired: OnceCell<Wired>,
    /// True until the common prefix of all prompts is computed.
    is_first: Cell<bool>,
    /// The last request.
    ask: RefCell<CommandRequest>,
    /// The commands that answered it.
    shown: RefCell<Vec<String>>,
}

impl<'a> Asker<'a> {
    /// Creates an asker that continues from a request and its answer, on this machine with its manuals.
    pub fn new(
        cx: &'a Cx,
        args: &'a AnswerArgs,
        settings: &'a Settings,
        place: &'a Place,
        runtime: &'a Runtime,
        (context, manual): (Arc<ExecutionContext>, Option<Arc<Manual>>),
        (ask, answer): (CommandRequest, &Answer),
    ) -> Self {
        let shown = std::iter::once(&answer.cmd).chain(answer.alternatives.iter().map(|other| &other.cmd));
        let (ask, shown) = (RefCell::new(ask), RefCell::new(shown.cloned().collect()));
        let (wired, is_first) = (OnceCell::new(), Cell::new(false));
        Self { cx, args, settings, place, runtime, context, manual, wired, is_first, ask, shown }
    }

    /// Uses a recipe whose model has already answered.
    #[must_use]
    pub fn with(self, wired: Wired) -> Self {
        Self { wired: OnceCell::from(wired), ..self }
    }

    /// Returns the recipe with its model, opened by the first call.
    fn wired(&self) -> Result<&Wired, Failure> {
        if let Some(wired) = self.wired.get() {
            return Ok(wired);
        }
        let wired = wire::open(self.cx, self.settings)?;
        self.is_first.set(wired.is_first);
        Ok(self.wired.get_or_init(|| wired))
    }

    /// Returns the conversation that ends with this command.
    pub fn exchanges(&self, command: &str) -> Vec<PastExchange> {
        revise::exchanges(&self.ask.borrow(), command)
    }

    /// Asks for the command changed as the words say.
    ///
    /// # Errors
    /// If there is no answer, or Ctrl-C was pressed.
    pub fn revise(&self, command: &str, words: &str) -> Result<Answer, Failure> {
        ask::check(words).map_err(Failure::usage)?;
        let said = self.exchanges(revise::check_command(command)?);
        let last = self.ask.borrow().before.clone();
        let before = History { place: last.place, input: last.input, ..revise::history(said) };
        let ask = CommandRequest {
            request: words.to_owned(),
            before,
            alternatives: 1,
            rejected: Vec::new(),
            ..self.ask.borrow().clone()
        };
        let answer = self.answer(&ask)?;
        if answer.cmd.is_empty() {
            return Err(Failure::no(present::refusal(&answer)));
        }
        *self.shown.borrow_mut() = vec![answer.cmd.clone()];
        *self.ask.borrow_mut() = ask;
        Ok(answer)
    }

    /// Asks for another command for the same words.
    ///
    /// # Errors
    /// As [`Asker::revise`].
    pub fn another(&self) -> Result<Answer, Failure> {
        let ask = self.ask.borrow().clone();
        let ask = CommandRequest {
            rejected: [&ask.rejected[..], &self.shown.borrow()].concat(),
            alternatives: 1,
            candidates: ask.candidates.max(MIN_CANDIDATES),
            refine: if ask.refine == Refine::Never { Refine::Evidence } else { ask.refine },
            ..ask
        };
        let answer = self.answer(&ask)?;
        if answer.cmd.is_empty() || self.shown.borrow().contains(&answer.cmd) {
            return Err(Failure::no("no other command came up"));
        }
        self.shown.borrow_mut().push(answer.cmd.clone());
        Ok(answer)
    }

    fn answer(&self, ask: &CommandRequest) -> Result<Answer, Failure> {
        let wired = self.wired()?;
        let start = Instant::now();
        // a fresh one each time: Ctrl-C stops this answer only
        let cancel: Cancel = self.cx.interrupt().fresh();
        let ask = CommandRequest { timeout: self.settings.timeout, cancel, ..ask.clone() };
        let is_first = self.is_first.take();
        let answer = first::with_progress(&self.cx.ui, is_first, || {
            let trace = &mut |event| present::trace(&self.cx.ui, self.args, &event);
            self.runtime.block_on(async {
                if is_first {
                    let until = ask.cancel.with_deadline(start + ask.timeout);
                    wired.recipe.prepare(ask.target, ask.dialect, &until).await;
                }
                wired.recipe.answer(&ask, trace).await
            })
        });
        let mut answer = answer.map_err(|e| ask::failure(e, self.settings))?;
        answer.timing.total = ask::milliseconds(start.elapsed());
        if self.args.timing {
            present::timing(&self.cx.ui, &answer.timing);
        }
        Ok(answer)
    }

    /// Checks a command that the user wrote as every other is checked.
    pub fn check(&self, command: String) -> Answer {
        let inspector = Inspector::new(self.context.clone(), self.manual.clone());
        let place = self.place;
        let subject = Subject::without_request(&place.cwd, place.target, place.dialect);
        let mut manuals = Manuals::new();
        let inspection = inspector.inspect(command, 1.0, subject, &mut manuals, MANUAL_TIMEOUT);
        let mut draft = self.runtime.block_on(inspection);
        if self.ask.borrow().before.input.is_some() {
            input::adapt_findings(&mut draft.findings, &draft.cmd, place.dialect);
        }
        checked::answer(draft, "person", String::new(), subject, &manuals)
    }
}
