//! The parts of a runtime, and its interfaces: approver, checkpoints, notes, usage ledger.

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

/// The user's decision about a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Approval {
    /// Allowed once.
    Yes,
    /// Denied.
    No,
    /// Allowed, with all further calls of its kind in this run.
    Always,
}

/// A question to the user.
#[derive(Debug, Clone)]
pub struct Question {
    /// The call in question.
    pub call: Call,
    /// The reasons why it needs consent.
    pub reasons: Vec<String>,
    /// True if [`Approval::Always`] would allow the next such call; some calls are asked for every time.
    pub lasting: bool,
}

/// Asks the user for consent.
pub trait Approver: Send + Sync {
    /// Asks about one call; may block as long as the user thinks. If the user edited the call, the new arguments are
    /// returned, and the call is checked again.
    fn ask(&self, question: Question) -> (Approval, Option<crate::tool::Args>);
}

/// Denies every call, for use without a user.
#[derive(Debug, Default)]
pub struct DenyAll;

impl Approver for DenyAll {
    fn ask(&self, _: Question) -> (Approval, Option<crate::tool::Args>) {
        (Approval::No, None)
    }
}

/// Stores runs so that another process can resume them.
pub trait Checkpoints: Send + Sync {
    /// Stores the current state of a run. `redacted` is its JSON without secrets.
    ///
    /// # Errors
    /// If it cannot be stored; the run continues, and an event reports it.
    fn keep(&self, run: &str, redacted: &str) -> Result<(), String>;

    /// False if it is known that this call of the run did not begin, because the user was still asked about it. True if
    /// that is not recorded.
    fn may_have_begun(&self, _run: &str, _call: &str) -> bool {
        true
    }
}

/// Stores no checkpoints.
#[derive(Debug, Default)]
pub struct NoCheckpoints;

impl Checkpoints for NoCheckpoints {
    fn keep(&self, _: &str, _: &str) -> Result<(), String> {
        Ok(())
    }
}

/// Takes notes that outlive the run.
pub trait Notes: Send + Sync {
    /// Takes a note of a run that has ended; returns its id, or `None` if there is nothing to note.
    ///
    /// # Errors
    /// A message if it cannot be stored; an event reports it.
    fn take(&self, turn: &AgentRun, reflection: &crate::reflect::Reflection) -> Result<Option<String>, String>;
}

/// The usage of subagents on behalf of a run, charged to it after each batch of calls.
pub trait UsageLedger: Send + Sync {
    /// Returns the usage since the last call.
    fn take(&self) -> Cost;
}

/// The configuration of a runtime.
#[derive(Debug, Clone)]
pub struct Config {
    /// The screening mode.
    pub guardrail: Mode,
    /// Most tokens of a decision.
    pub decision_tokens: usize,
    /// Most tools shown, not counting the two that end a run.
    pub tools: usize,
    /// Names of tools that are always shown, in addition to the core tools.
    pub always: Vec<String>,
    /// Most calls of a batch that run in parallel.
    pub parallel: usize,
    /// Most time any call may take, whatever its tool's timeout.
    pub call_limit: Duration,
    /// The user's working directory.
    pub root: PathBuf,
    /// The method that keeps a growing conversation within the window.
    pub fitting: Fitting,
    /// Names of the skills whose text is in the prompt, for the report.
    pub skills: Vec<String>,
    /// Texts that earlier runs have read and that are in the prompt.
    pub known: Vec<Known>,
    /// The blueprints that the prompts are assembled from.
    pub blueprints: Vec<Blueprint>,
    /// Most time the context providers may take together; the run continues without late ones.
    pub patience: Duration,
}

impl Config {
    /// Returns the defaults, with `root` as the working directory.
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
            patience: assemble::ASSEMBLY_TIMEOUT,
        }
    }
}

/// Runs agents, with everything that a run needs.
#[derive(Clone)]
pub struct Runtime {
    /// The model.
    pub model: Arc<dyn Model>,
    /// All tools, from every provider.
    pub registry: Registry,
    /// The guards, which decide on each call.
    pub guards: Guards,
    /// The context providers.
    pub providers: Vec<Arc<dyn ContextProvider>>,
    /// Asks the user for consent.
    pub approver: Arc<dyn Approver>,
    /// The store for long results; without it they are shortened.
    pub artifacts: Option<Arc<dyn Artifacts>>,
    /// Stores the run.
    pub checkpoints: Arc<dyn Checkpoints>,
    /// Takes notes; without it none are taken.
    pub notes: Option<Arc<dyn Notes>>,
    /// Suggests a command for a part of the plan that needs only one; without it the model decides alone.
    pub suggester: Option<Arc<dyn Suggester>>,
    /// The usage of subagents that is charged to the run.
    pub usage_ledger: Option<Arc<dyn UsageLedger>>,
    /// Records the events.
    pub emitter: Arc<Emitter>,
    /// Stops the run.
    pub cancel: Cancel,
    /// The configuration.
    pub config: Config,
}

/// The end of running an agent.
#[derive(Debug, Clone, PartialEq)]
pub enum Driven {
    /// The run has ended.
    Done(Box<Report>),
    /// The run was stopped and can be resumed.
    Stopped(Box<AgentRun>),
}
