//! The parts of a harness, and the settings of its runs.

use crate::assemble::ContextProvider;
use crate::chat::Remember;
use crate::guard::{Guard, LoopLimits};
use crate::knowledge::{LIMIT, THRESHOLD};
use crate::memory::Memory;
use crate::skill::Shelf;
use crate::state::Limits;
use crate::store::Store;
use crate::suggest::Suggester;
use crate::tools::{Keeper, ManualSource, Shell};
use crate::turn::{Fitting, Mode};
use crate::workspace::Workspaces;
use caro_documents::Librarian;
use caro_model::{Cancel, Model};
use caro_policy as policy;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// The parts of a harness.
pub struct Setup {
    /// The model.
    pub model: Arc<dyn Model>,
    /// The name of the model that is stored with each run, so that a resumed run uses the same one; it holds in any
    /// folder and contains no secret. `None` stores no name.
    pub model_name: Option<String>,
    /// The folder in which runs work.
    pub root: PathBuf,
    /// Text that follows the persona in every prompt of a run; none if empty.
    pub instruction: String,
    /// The agent's name. Agents with different names do not see each other's messages in a session.
    pub agent: String,
    /// The shell that runs commands; without one there is no tool for commands.
    pub shell: Option<Shell>,
    /// Saves what commands and the file tools change, for undo; without it nothing can be undone.
    pub keeper: Option<Arc<dyn Keeper>>,
    /// The installed manuals.
    pub manual: Option<Arc<dyn ManualSource>>,
    /// The store of the agent's own files, one folder per session. Without it they are in a temporary folder that is
    /// removed with the harness, see [`Options::workspace`].
    pub workspaces: Option<Workspaces>,
    /// The user's own documents.
    pub librarian: Option<Arc<Librarian>>,
    /// The store of notes and conversations.
    pub memory: Memory,
    /// The shelf of skills.
    pub skills: Option<Shelf>,
    /// Additional guards. They can only narrow what is allowed.
    ///
    /// ```
    /// use caro_agent::guard::{Finding, Guard, GuardError, Verdict};
    /// use caro_agent::harness::{Harness, Setup};
    /// use caro_agent::{Call, RunState};
    /// use caro_model::scripted::Scripted;
    /// use std::sync::Arc;
    ///
    /// struct NoDrafts;
    ///
    /// impl Guard for NoDrafts {
    ///     fn name(&self) -> &'static str {
    ///         "no-drafts"
    ///     }
    ///     fn check(&self, call: &Call, _: &RunState) -> Result<Verdict, GuardError> {
    ///         let draft = call.effects.writes.iter().any(|path| path.ends_with("draft.txt"));
    ///         Ok(if draft { Verdict::Deny(Finding { id: "no-drafts".into(), text: "drafts are not written".into() }) } else { Verdict::Allow })
    ///     }
    /// }
    ///
    /// let model: Scripted = r#"{"rules": [{"reply": "Thought: easy\nAction: answer {\"text\": \"four\"}"}]}"#.parse()?;
    /// let setup = Setup { guards: vec![Arc::new(NoDrafts)], ..Setup::new(Arc::new(model), ".".into()) };
    /// assert_eq!(Harness::new(setup)?.run_sync("what is two and two?", None)?.response, "four");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub guards: Vec<Arc<dyn Guard>>,
    /// Additional providers of context.
    ///
    /// ```
    /// use caro_agent::assemble::Fixed;
    /// use caro_agent::harness::{Harness, Setup};
    /// use caro_model::scripted::Scripted;
    /// use std::sync::Arc;
    ///
    /// let model: Scripted = r#"{"rules": [{"system": "Prices are in euros.", "reply": "Thought: euros\nAction: answer {\"text\": \"4 euros\"}"}]}"#.parse()?;
    /// let prices = Fixed { name: "prices", priority: 30, text: "Prices are in euros.".into() };
    /// let setup = Setup { providers: vec![Arc::new(prices)], ..Setup::new(Arc::new(model), ".".into()) };
    /// assert_eq!(Harness::new(setup)?.run_sync("what is two and two?", None)?.response, "4 euros");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub providers: Vec<Arc<dyn ContextProvider>>,
    /// Suggests the command for a part of the plan that needs a single one.
    pub suggester: Option<Arc<dyn Suggester>>,
    /// The store of runs and their events; without one they are lost with the harness.
    pub store: Option<Arc<Store>>,
    /// Values to redact from events, in addition to whatever looks like a secret.
    pub secrets: Vec<String>,
    /// Stops [`Harness::run`](super::Harness::run).
    pub cancel: Cancel,
    /// The settings of runs.
    pub options: Options,
}

impl Setup {
    /// Creates the minimal setup: a model, a folder and the tools for files. Nothing outlives the harness.
    pub fn new(model: Arc<dyn Model>, root: PathBuf) -> Self {
        Self {
            model,
            model_name: None,
            root,
            instruction: String::new(),
            agent: "agent".into(),
            shell: None,
            keeper: None,
            manual: None,
            workspaces: None,
            librarian: None,
            memory: Memory::in_memory(),
            skills: None,
            guards: Vec::new(),
            providers: Vec::new(),
            suggester: None,
            store: None,
            secrets: Vec::new(),
            cancel: Cancel::new(),
            options: Options::default(),
        }
    }
}

/// The settings of runs. The defaults are for use as a library: prompts are not shortened. A model with a small context
/// window does better with [`Options::local`], the defaults of `caro agent` and `caro chat`.
#[derive(Debug, Clone)]
pub struct Options {
    /// Controls when and how a long prompt is shortened.
    pub fitting: Fitting,
    /// True if results that are too long for a prompt are moved to the workspace, where the model can read them.
    pub offload: bool,
    /// True if only the tools that match the task best are shown.
    pub retrieval: bool,
    /// True if the agent has files of its own even without [`Setup::workspaces`].
    pub workspace: bool,
    /// True if the model may start helpers; they have a workspace whatever [`Options::workspace`] says.
    pub subagents: bool,
    /// True if notes are recalled and taken.
    pub notes: bool,
    /// True if the user's own documents are searched.
    pub enable_rag: bool,
    /// Most passages of documents in a prompt.
    pub knowledge_limit: usize,
    /// Least score of a passage, 0 to 1.
    pub knowledge_threshold: f64,
    /// The remembered part of a session.
    pub remember: Remember,
    /// The extent of screening for text that gives orders to the model.
    pub guardrail: policy::Mode,
    /// The limits at which a repetition counts as a loop.
    pub loops: LoopLimits,
    /// Names of guards that are left out.
    pub without: Vec<String>,
    /// True if changes below the folder, and harmless commands, need no permission.
    pub unasked: bool,
    /// Most calls in one step.
    pub batch: usize,
    /// Most calls of one step that run in parallel.
    pub parallel: usize,
    /// Longest timeout of a call, whatever its tool sets.
    pub tool_timeout: Duration,
    /// The limits of a run.
    pub limits: Limits,
    /// Names of skills that are always active.
    pub skills: Vec<String>,
    /// An additional role of the model: the name of a role, or a description.
    pub role: Option<String>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            fitting: Fitting { mode: Mode::Off, ..Fitting::default() },
            offload: false,
            retrieval: false,
            workspace: true,
            subagents: false,
            notes: true,
            enable_rag: true,
            knowledge_limit: LIMIT,
            knowledge_threshold: THRESHOLD,
            remember: Remember::default(),
            guardrail: policy::Mode::Full,
            loops: LoopLimits::STRICT,
            without: Vec::new(),
            unasked: false,
            batch: 1,
            parallel: 4,
            tool_timeout: Duration::MAX,
            limits: Limits::default(),
            skills: Vec::new(),
            role: None,
        }
    }
}

impl Options {
    /// Returns the settings for a local model with a small context window: long prompts are shortened, long results
    /// are moved to the workspace, only matching tools are shown, and of a conversation only what fits.
    pub fn local() -> Self {
        let (fitting, remember) = (Fitting::default(), Remember::ROOM);
        Self { fitting, remember, offload: true, retrieval: true, ..Self::default() }
    }
}

/// The settings of one run that differ from [`Options`].
#[derive(Debug, Clone, Default)]
pub struct RunOptions {
    /// Most steps, at least 1; by default the plan decides.
    pub max_steps: Option<u32>,
    /// Most calls in one step.
    pub batch: Option<usize>,
    /// Its limits.
    pub limits: Option<Limits>,
    /// Stops the run.
    pub cancel: Option<Cancel>,
}
