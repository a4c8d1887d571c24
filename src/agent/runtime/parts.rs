//! The parts of a runtime, and the interfaces to the rest: the approver, the checkpoints, the notes.

use crate::assemble::{self, ContextProvider};
use crate::blueprint::Blueprint;
use crate::event::Emitter;
use crate::guard::Guards;
use crate::known::Known;
use crate::observe::Artifacts;
use crate::state::Cost;
use crate::suggest::Suggester;
use crate::tool::{Call, Registry};
use crate::turn::{AgentRun, Fitting, Report};
use caro_model::{Cancel, Model};
use caro_policy::Mode;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// The person's answer about a call that is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Approval {
    /// This once.
    Yes,
    /// No.
    No,
    /// This, and every one of its kind in this run.
    Always,
}

/// A question to the person.
#[derive(Debug, Clone)]
pub struct Question {
    /// The call that waits.
    pub call: Call,
    /// Why it is not simply done.
    pub reasons: Vec<String>,
    /// True if [`Approval::Always`] would spare the person the next such question; what is asked for each time does not.
    pub lasting: bool,
}

/// Asks the person.
pub trait Approver: Send + Sync {
    /// Asks about one call; may block as long as the person thinks. An edited call comes back in the place of the asked
    /// one, and is checked again.
    fn ask(&self, question: Question) -> (Approval, Option<crate::tool::Args>);
}

/// Says no, where no person is there.
#[derive(Debug, Default)]
pub struct DenyAll;

impl Approver for DenyAll {
    fn ask(&self, _: Question) -> (Approval, Option<crate::tool::Args>) {
        (Approval::No, None)
    }
}

/// Keeps a run so that another process can go on with it.
pub trait Checkpoints: Send + Sync {
    /// Keeps the turn as it is now. `redacted` is its JSON as it may be stored.
    ///
    /// # Errors
    /// If it cannot be kept; the run goes on, and an event says so.
    fn keep(&self, run: &str, redacted: &str) -> Result<(), String>;

    /// False if it is known that a call of the run, by its id, was not begun: the person was still asked about it. Who
    /// keeps no record of that does not know.
    fn may_have_begun(&self, _run: &str, _call: &str) -> bool {
        true
    }
}

/// Keeps nothing.
#[derive(Debug, Default)]
pub struct NoCheckpoints;

impl Checkpoints for NoCheckpoints {
    fn keep(&self, _: &str, _: &str) -> Result<(), String> {
        Ok(())
    }
}

/// Keeps what is worth knowing beyond the run.
pub trait Notes: Send + Sync {
    /// Takes a note of a run that has ended; returns its id, or nothing where there is nothing to note.
    ///
    /// # Errors
    /// In words, if it cannot be kept; an event says so.
    fn take(&self, turn: &AgentRun, reflection: &crate::reflect::Reflection) -> Result<Option<String>, String>;
}

/// The usage that others have for a run: asked after each batch of calls, and charged to it.
pub trait UsageLedger: Send + Sync {
    /// The usage since it was last taken.
    fn take(&self) -> Cost;
}

/// How a run is driven.
#[derive(Debug, Clone)]
pub struct Config {
    /// The texts that are screened.
    pub guardrail: Mode,
    /// The most tokens of a decision.
    pub decision_tokens: usize,
    /// The most tools shown, the two ends not counted.
    pub tools: usize,
    /// Names of tools that are shown whatever the task, beside those that always are.
    pub always: Vec<String>,
    /// Calls of one batch that run at once.
    pub parallel: usize,
    /// The most that any call may take, whatever its tool says.
    pub call_limit: Duration,
    /// The person's working directory.
    pub root: PathBuf,
    /// How a conversation that grows is kept within the window.
    pub fitting: Fitting,
    /// Names of the skills whose text is in the prompt, for the report.
    pub skills: Vec<String>,
    /// The texts that runs before have read, and the prompt has.
    pub known: Vec<Known>,
    /// The blueprints that its prompts are put together from.
    pub blueprints: Vec<Blueprint>,
    /// How long those who bring context may take, all together; the run goes on without who is later.
    pub patience: Duration,
}

impl Config {
    /// The defaults, for work in `root`.
    pub fn new(root: PathBuf) -> Self {
        Self {
            guardrail: Mode::Full,
            decision_tokens: 700,
            tools: 6,
            always: Vec::new(),
            parallel: 4,
            call_limit: Duration::MAX,
            root,
            fitting: Fitting::default(),
            skills: Vec::new(),
            known: Vec::new(),
            blueprints: Blueprint::of_run(false, true),
            patience: assemble::PATIENCE,
        }
    }
}

/// The engine with all it stands on.
#[derive(Clone)]
pub struct Runtime {
    /// The model.
    pub model: Arc<dyn Model>,
    /// Every tool, wherever it comes from.
    pub registry: Registry,
    /// The guards, which decide on each call.
    pub guards: Guards,
    /// The providers of context.
    pub providers: Vec<Arc<dyn ContextProvider>>,
    /// Asks the person.
    pub approver: Arc<dyn Approver>,
    /// Where long results go.
    pub artifacts: Option<Arc<dyn Artifacts>>,
    /// Where the run is kept.
    pub checkpoints: Arc<dyn Checkpoints>,
    /// Takes notes; none are taken without it.
    pub notes: Option<Arc<dyn Notes>>,
    /// Suggests a command where a part of the plan needs but one; without it the model decides by itself.
    pub suggester: Option<Arc<dyn Suggester>>,
    /// The usage of others that is charged to the run, if there is any.
    pub bill: Option<Arc<dyn UsageLedger>>,
    /// Records the events.
    pub emitter: Arc<Emitter>,
    /// The switch that stops the run.
    pub cancel: Cancel,
    /// How.
    pub config: Config,
}

/// How driving ended.
#[derive(Debug, Clone, PartialEq)]
pub enum Driven {
    /// The run is over.
    Done(Box<Report>),
    /// It was stopped, and can be gone on with.
    Stopped(Box<AgentRun>),
}
