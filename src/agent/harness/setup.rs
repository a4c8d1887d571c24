//! What a harness is built from, and how its runs go.

use crate::assemble::ContextProvider;
use crate::chat::Remember;
use crate::guard::{Guard, LoopLimits};
use crate::knowledge::{LIMIT, THRESHOLD};
use crate::memory::Memory;
use crate::skill::Shelf;
use crate::state::Limits;
use crate::store::Store;
use crate::suggest::Suggester;
use crate::tools::{ManualSource, Shell};
use crate::turn::{Fitting, Mode};
use crate::workspace::Workspaces;
use caro_documents::Librarian;
use caro_model::{Cancel, Model};
use caro_policy as policy;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// What a harness is built from.
pub struct Setup {
    /// The model.
    pub model: Arc<dyn Model>,
    /// The folder that runs work in.
    pub root: PathBuf,
    /// Words that stand behind the persona in every prompt of a run; none if empty.
    pub instruction: String,
    /// The agent's name. What is said to one in a session is not told to another.
    pub agent: String,
    /// The shell that commands run in; without one there is no tool for them.
    pub shell: Option<Shell>,
    /// The installed manuals.
    pub manual: Option<Arc<dyn ManualSource>>,
    /// Where the agent's own files are, a folder a session. Without it they are in a temporary folder, and go with the harness:
    /// see [`Options::workspace`].
    pub workspaces: Option<Workspaces>,
    /// The person's own documents.
    pub librarian: Option<Arc<Librarian>>,
    /// Notes and conversations.
    pub memory: Memory,
    /// Where skills are found.
    pub skills: Option<Shelf>,
    /// Guards of one's own beside those there are. They can only narrow what may be done.
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
    /// Providers of context of one's own beside those there are.
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
    /// Who is asked for a command where a part of the plan needs but one.
    pub suggester: Option<Arc<dyn Suggester>>,
    /// Where runs and their events are kept; without one, as long as the harness lives.
    pub store: Option<Arc<Store>>,
    /// Values that get into no event, beside what looks like a secret.
    pub secrets: Vec<String>,
    /// What stops [`Harness::run`](super::Harness::run).
    pub cancel: Cancel,
    /// How runs go.
    pub options: Options,
}

impl Setup {
    /// The least: this model in this folder, with the tools for files. Nothing outlives the harness.
    pub fn new(model: Arc<dyn Model>, root: PathBuf) -> Self {
        Self {
            model,
            root,
            instruction: String::new(),
            agent: "agent".into(),
            shell: None,
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

/// How runs go. The defaults are a library's: nothing is left out of a prompt that nobody wants left out. A model with a
/// small window does better with [`Options::local`], which is what `caro agent` and `caro chat` begin with.
#[derive(Debug, Clone)]
pub struct Options {
    /// When a run that has grown long is shortened, and how.
    pub fitting: Fitting,
    /// True if results that are too long for a prompt go to the workspace, where the model may read on.
    pub offload: bool,
    /// True if only the tools are shown that fit the task best.
    pub retrieval: bool,
    /// True if the agent has files of its own also where [`Setup::workspaces`] names no place for them.
    pub workspace: bool,
    /// True if the model may have helpers; they have a workspace whatever [`Options::workspace`] says.
    pub subagents: bool,
    /// True if notes are recalled and taken.
    pub notes: bool,
    /// True if the person's own documents are looked into.
    pub enable_rag: bool,
    /// The most passages of them in a prompt.
    pub knowledge_limit: usize,
    /// The least score of a passage, 0 to 1.
    pub knowledge_threshold: f64,
    /// How much of a session is remembered.
    pub remember: Remember,
    /// What is screened for text that gives the model orders.
    pub guardrail: policy::Mode,
    /// When a repetition is a loop.
    pub loops: LoopLimits,
    /// Names of guards that are left out.
    pub without: Vec<String>,
    /// True if nobody is asked before changes below the folder and commands that are no danger.
    pub unasked: bool,
    /// The most calls in one step.
    pub batch: usize,
    /// Calls of one step that run at once.
    pub parallel: usize,
    /// The most time of one call, whatever its tool says.
    pub tool_timeout: Duration,
    /// What a run of [`Harness::run`](super::Harness::run) may cost.
    pub limits: Limits,
    /// Names of skills that are used whatever the task.
    pub skills: Vec<String>,
    /// Who the model is to be beside what the agent is: a role's name or one's own words.
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
    /// For a model on this machine, whose window is small: long runs are shortened, long results are kept beside the prompt,
    /// only fitting tools are shown, and of a conversation there is told what there is room for.
    pub fn local() -> Self {
        let (fitting, remember) = (Fitting::default(), Remember::ROOM);
        Self { fitting, remember, offload: true, retrieval: true, ..Self::default() }
    }
}

/// How one run differs from what [`Options`] say.
#[derive(Debug, Clone, Default)]
pub struct RunOptions {
    /// The most steps, at least 1; by default the plan decides.
    pub max_steps: Option<u32>,
    /// The most calls in one step.
    pub batch: Option<usize>,
    /// Its limits.
    pub limits: Option<Limits>,
    /// The switch that stops it.
    pub cancel: Option<Cancel>,
}
