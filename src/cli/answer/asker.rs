//! Further answers for the person who has one before them: another command for the same words, or the same command changed.

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

/// How long the manuals may take for a command that the person has written.
const MANUAL_WAIT: Duration = Duration::from_secs(1);

/// The fewest commands to choose from where another one is wanted: with one there is no other.
const CANDIDATES: u32 = 4;

/// Asks once more, as the first time.
pub struct Asker<'a> {
    /// The terminal and the rest.
    pub cx: &'a Cx,
    /// How it was asked for.
    pub args: &'a AnswerArgs,
    /// The settings in force.
    pub settings: &'a Settings,
    /// Where, and for what.
    pub place: &'a Place,
    /// The runtime that answers are computed in.
    pub runtime: &'a Runtime,
    /// The machine.
    pub context: Arc<ExecutionContext>,
    /// Its manuals.
    manual: Option<Arc<Manual>>,
    /// The model and what goes with it, opened by the first further answer where the one before needed none.
    wired: OnceCell<Wired>,
    /// True while what every prompt begins with is still to be computed.
    is_first: Cell<bool>,
    /// The last question.
    ask: RefCell<CommandRequest>,
    /// The commands that were given to it.
    given: RefCell<Vec<String>>,
}

impl<'a> Asker<'a> {
    /// One that goes on from this question and its answer, on this machine with its manuals.
    pub fn new(
        cx: &'a Cx,
        args: &'a AnswerArgs,
        settings: &'a Settings,
        place: &'a Place,
        runtime: &'a Runtime,
        (context, manual): (Arc<ExecutionContext>, Option<Arc<Manual>>),
        (ask, answer): (CommandRequest, &Answer),
    ) -> Self {
        let given = std::iter::once(&answer.cmd).chain(answer.alternatives.iter().map(|other| &other.cmd));
        let (ask, given) = (RefCell::new(ask), RefCell::new(given.cloned().collect()));
        let (wired, is_first) = (OnceCell::new(), Cell::new(false));
        Self { cx, args, settings, place, runtime, context, manual, wired, is_first, ask, given }
    }

    /// The same with a model that has answered already.
    #[must_use]
    pub fn with(self, wired: Wired) -> Self {
        Self { wired: OnceCell::from(wired), ..self }
    }

    /// The model and what goes with it.
    fn wired(&self) -> Result<&Wired, Failure> {
        if let Some(wired) = self.wired.get() {
            return Ok(wired);
        }
        let wired = wire::open(self.cx, self.settings)?;
        self.is_first.set(wired.is_first);
        Ok(self.wired.get_or_init(|| wired))
    }

    /// The conversation that ends with this command.
    pub fn exchanges(&self, command: &str) -> Vec<PastExchange> {
        revise::exchanges(&self.ask.borrow(), command)
    }

    /// The command as the words say it is to be.
    ///
    /// # Errors
    /// If nothing comes of it, or Ctrl-C was typed meanwhile.
    pub fn revise(&self, command: &str, words: &str) -> Result<Answer, Failure> {
        ask::check(words).map_err(Failure::usage)?;
        let said = self.exchanges(revise::checked(command)?);
        let asked = self.ask.borrow().before.clone();
        let before = History { place: asked.place, input: asked.input, ..revise::before(said) };
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
        *self.given.borrow_mut() = vec![answer.cmd.clone()];
        *self.ask.borrow_mut() = ask;
        Ok(answer)
    }

    /// A command for the same words that was not given yet.
    ///
    /// # Errors
    /// As [`Asker::revise`].
    pub fn another(&self) -> Result<Answer, Failure> {
        let ask = self.ask.borrow().clone();
        let ask = CommandRequest {
            rejected: [&ask.rejected[..], &self.given.borrow()].concat(),
            alternatives: 1,
            candidates: ask.candidates.max(CANDIDATES),
            refine: if ask.refine == Refine::Never { Refine::Evidence } else { ask.refine },
            ..ask
        };
        let answer = self.answer(&ask)?;
        if answer.cmd.is_empty() || self.given.borrow().contains(&answer.cmd) {
            return Err(Failure::no("no other command came up"));
        }
        self.given.borrow_mut().push(answer.cmd.clone());
        Ok(answer)
    }

    fn answer(&self, ask: &CommandRequest) -> Result<Answer, Failure> {
        let wired = self.wired()?;
        let begun = Instant::now();
        // Ctrl-C stops this answer, and the next one can be stopped again
        let cancel: Cancel = self.cx.interrupt().fresh();
        let ask = CommandRequest { timeout: self.settings.timeout, cancel, ..ask.clone() };
        let is_first = self.is_first.take();
        let answer = first::while_told(&self.cx.ui, is_first, || {
            let trace = &mut |event| present::trace(&self.cx.ui, self.args, &event);
            self.runtime.block_on(async {
                if is_first {
                    let until = ask.cancel.with_deadline(begun + ask.timeout);
                    wired.recipe.prepare(ask.target, ask.dialect, &until).await;
                }
                wired.recipe.answer(&ask, trace).await
            })
        });
        let mut answer = answer.map_err(|e| ask::failure(e, self.settings))?;
        answer.timing.total = ask::milliseconds(begun.elapsed());
        if self.args.timing {
            present::timing(&self.cx.ui, &answer.timing);
        }
        Ok(answer)
    }

    /// A command that the person has written, looked at as every other is.
    pub fn checked(&self, command: String) -> Answer {
        let inspector = Inspector::new(self.context.clone(), self.manual.clone());
        let place = self.place;
        let subject = Subject { request: "", cwd: &place.cwd, target: place.target, dialect: place.dialect };
        let mut manuals = Manuals::new();
        let looked = inspector.inspect(command, 1.0, subject, &mut manuals, MANUAL_WAIT);
        let mut draft = self.runtime.block_on(looked);
        if self.ask.borrow().before.input.is_some() {
            input::is_given(&mut draft.findings);
        }
        checked::answer(draft, "person", String::new(), subject, &manuals)
    }
}
