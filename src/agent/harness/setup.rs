//! What a harness is built from, and how its runs go.

use crate::agent::advise::Adviser;
use crate::agent::chat::Remember;
use crate::agent::guard::LoopLimits;
use crate::agent::librarian::Librarian;
use crate::agent::memory::Memory;
use crate::agent::observe;
use crate::agent::skill::Shelf;
use crate::agent::state::Limits;
use crate::agent::store::Store;
use crate::agent::tools::{ManualSource, Shell};
use crate::agent::turn::{Fitting, Mode};
use crate::agent::workspace::Workspaces;
use crate::model::{Cancel, Model};
use std::path::PathBuf;
use std::sync::Arc;

/// What a harness is built from.
pub struct Setup {
    /// The model.
    pub model: Arc<dyn Model>,
    /// The folder that runs work in.
    pub root: PathBuf,
    /// The agent's name. What is said to one in a session is not told to another.
    pub agent: String,
    /// The shell that commands run in; without one there is no tool for them.
    pub shell: Option<Shell>,
    /// The installed manuals.
    pub manual: Option<Arc<dyn ManualSource>>,
    /// Where the agent's own files are, a folder a session; without them it has none.
    pub workspaces: Option<Workspaces>,
    /// The person's own documents.
    pub librarian: Option<Arc<Librarian>>,
    /// Notes and conversations.
    pub memory: Memory,
    /// Where skills are found.
    pub skills: Option<Shelf>,
    /// Who is asked for a command where a part of the plan needs but one.
    pub adviser: Option<Arc<dyn Adviser>>,
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
            agent: "agent".into(),
            shell: None,
            manual: None,
            workspaces: None,
            librarian: None,
            memory: Memory::in_memory(),
            skills: None,
            adviser: None,
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
    /// True if the model may have helpers, which needs a workspace.
    pub subagents: bool,
    /// True if notes are recalled and taken.
    pub notes: bool,
    /// How much of a session is remembered.
    pub remember: Remember,
    /// What is screened for text that gives the model orders.
    pub guardrail: observe::Mode,
    /// When a repetition is a loop.
    pub loops: LoopLimits,
    /// Names of guards that are left out.
    pub without: Vec<String>,
    /// True if nobody is asked before changes below the folder and commands that are no danger.
    pub unasked: bool,
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
            subagents: false,
            notes: true,
            remember: Remember::default(),
            guardrail: observe::Mode::Full,
            loops: LoopLimits::STRICT,
            without: Vec::new(),
            unasked: false,
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
