//! All that runs stand on, put together: model, tools, guards, store, memory, workspaces, skills and servers of tools become
//! the [`Runtime`](crate::runtime::Runtime) of a run. Whoever wants an agent (the terminal, a program) asks for it here. A
//! facade: it has no loop and no policy of its own, each of them is a part of [`crate`] and decides for itself.
//!
//! - [`Setup`]: what a harness is built from. [`Options`]: how its runs go.
//! - [`Harness`]: runs, and what concerns more than one of them. [`Watch`]: who sees and stops one. [`Prepared`]: one run before it begins.
//! - `place`: what a model is told about the working folder. `rules`: the guards of a run, and of those that work for it.
//!   `recent`: skills that stay for a while. `standing`: a runtime for what is no run. `queue`: whose turn it is in a session. `clear`: forgetting a session. `error`: why
//!   there is no run.
//!
//! ```
//! use caro_agent::harness::{Harness, Setup};
//! use caro_model::scripted::Scripted;
//! use std::sync::Arc;
//!
//! let model: Scripted = r#"{"rules": [{"reply": "Thought: easy\nAction: answer {\"text\": \"four\"}"}]}"#.parse()?;
//! let harness = Harness::new(Setup::new(Arc::new(model), ".".into()))?;
//! let runtime = tokio::runtime::Runtime::new()?;
//! let report = runtime.block_on(harness.run("what is two and two?", Some("sums")))?;
//! assert_eq!((report.response.as_str(), report.session_id.as_str()), ("four", "sums"));
//! assert_eq!(harness.history("sums")?.exchanges.len(), 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod clear;
mod conduct;
mod error;
mod place;
mod prepared;
mod queue;
mod recent;
mod rules;
mod setup;
mod standing;

pub use clear::empty;
pub use conduct::Watch;
pub use error::HarnessError;
pub use prepared::Prepared;
pub use setup::{Options, RunOptions, Setup};

use super::assemble::ContextProvider;
use super::chat::{MESSAGES, Past, is_talk};
use super::guard::Guard;
use super::mcp::Hub;
use super::memory::{ConversationKey, Memory};
use super::plan::Plan;
use super::runtime::Driven;
use super::skill::Shelf;
use super::store::{Stats, Store, StoreError, is_alive};
use super::tool::{Registry, RegistryError, Tool, ToolSpec};
use super::turn::{Report, Task};
use super::workspace::Workspaces;
use super::{subagent, tools};
use crate::suggest::Suggester;
use caro_base::id;
use caro_documents::Librarian;
use caro_intent::asks_world;
use caro_model::{Cancel, Model};
use caro_policy as policy;
use caro_policy::Redactor;
use queue::Queue;
use recent::Recent;
use rules::Rules;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Between two looks whether a session is free.
const WAIT: Duration = Duration::from_millis(100);
/// The longest name of a session, characters.
const NAME: usize = 200;

/// What runs stand on. One serves any number of sessions, one after the other or side by side.
pub struct Harness {
    model: Arc<dyn Model>,
    root: PathBuf,
    agent: String,
    /// The tools that no session, server or skill brings.
    tools: Registry,
    hub: Option<Hub>,
    workspaces: Option<Workspaces>,
    /// Holds them where nobody named a place; removed with the harness.
    _scratch: Option<tempfile::TempDir>,
    librarian: Option<Arc<Librarian>>,
    memory: Arc<Memory>,
    skills: Option<Shelf>,
    recent: Mutex<Recent>,
    queue: Queue,
    suggester: Option<Arc<dyn Suggester>>,
    store: Arc<Store>,
    instruction: String,
    guards: Vec<Arc<dyn Guard>>,
    providers: Vec<Arc<dyn ContextProvider>>,
    secrets: Vec<String>,
    redactor: Redactor,
    cancel: Cancel,
    options: Options,
}

impl Harness {
    /// Puts it together. Results in the workspaces that nobody has asked for in a week are removed.
    ///
    /// # Errors
    /// If there is no room for a workspace, or nothing can be kept in memory.
    pub fn new(setup: Setup) -> Result<Self, HarnessError> {
        let Setup { model, root, agent, shell, manual, workspaces, librarian, memory, skills, .. } = setup;
        let Setup { suggester, store, secrets, cancel, options, .. } = setup;
        let Setup { instruction, guards, providers, .. } = setup;
        let wanted = workspaces.is_none() && (options.workspace || options.subagents);
        let scratch = wanted.then(tempfile::tempdir).transpose()?;
        let workspaces = workspaces.or_else(|| Some(Workspaces::at(scratch.as_ref()?.path().to_owned())));
        let parts = tools::Setup { shell, manual, knowledge: librarian.clone(), ..tools::Setup::default() };
        let harness = Self {
            model,
            root: root.canonicalize().unwrap_or(root),
            agent,
            tools: tools::builtin(parts)?,
            hub: None,
            workspaces,
            _scratch: scratch,
            instruction,
            guards,
            providers,
            librarian,
            memory: Arc::new(memory),
            skills,
            recent: Mutex::default(),
            queue: Queue::default(),
            suggester,
            store: match store {
                Some(store) => store,
                None => Arc::new(Store::in_memory()?),
            },
            redactor: Redactor::with_secrets(secrets.iter().cloned()),
            secrets,
            cancel,
            options,
        };
        harness.sweep();
        Ok(harness)
    }

    // --- running

    /// Works on a task to its end, as one more of the session; without a name, of a new one. It waits for a run that the
    /// session is busy with. What was said before in the session is told to the model. Nobody is asked: what would be asked
    /// for is refused. Who wants to be asked, or to see events as they happen, takes [`Harness::prepare`]. Needs a Tokio
    /// runtime.
    ///
    /// # Errors
    /// If it is no task, cannot be begun, or is stopped. A run that fails is no error: its report says why.
    pub async fn run(&self, text: &str, session: Option<&str>) -> Result<Report, HarnessError> {
        self.run_with(text, session, RunOptions::default()).await
    }

    /// The same without a runtime of one's own, or within one: it works on a thread of its own and waits for it.
    ///
    /// # Errors
    /// As [`Harness::run`]; or if there can be no thread.
    pub fn run_sync(&self, text: &str, session: Option<&str>) -> Result<Report, HarnessError> {
        let work = || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.map_err(HarnessError::Thread)?.block_on(self.run(text, session))
        };
        std::thread::scope(|scope| {
            let thread = std::thread::Builder::new().spawn_scoped(scope, work).map_err(HarnessError::Thread)?;
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }

    /// The same as [`Harness::run`], with options for this run alone.
    ///
    /// # Errors
    /// As [`Harness::run`].
    pub async fn run_with(
        &self,
        text: &str,
        session: Option<&str>,
        options: RunOptions,
    ) -> Result<Report, HarnessError> {
        let RunOptions { max_steps, batch, limits, cancel } = options;
        let task = self.admit(text, session)?.limited(max_steps, batch);
        let cancel = cancel.unwrap_or_else(|| self.cancel.clone());
        match self.conduct(task, Watch { cancel, limits, ..Watch::default() }).await? {
            Driven::Done(report) => Ok(*report),
            Driven::Stopped(turn) => Err(HarnessError::Stopped(turn.task().run.clone())),
        }
    }

    /// A run that these words ask for, as the plan that is made of them says.
    pub fn task(&self, text: &str, session: &str) -> Task {
        // what was copied from a terminal has its colours in it; they are no words
        let clean = text.contains('\u{1b}').then(|| policy::normalise(text));
        let text = clean.as_deref().unwrap_or(text);
        let plan = Plan::heuristic(text);
        Task {
            run: id::fresh("run"),
            session: session.to_owned(),
            agent: self.agent.clone(),
            text: text.to_owned(),
            max_steps: plan.max_steps(),
            plan,
            batch: self.options.batch.max(1),
            place: if self.talks(&self.agent, text) { String::new() } else { Task::folder(&self.root) },
        }
    }

    /// Makes everything ready for a run, a new one or one that is gone on with: its guards, its skills, its tools. `cancel`
    /// stops it; `warn` is told of skills that are left out.
    ///
    /// # Errors
    /// If a skill that was asked for is not there, or two tools have one name.
    pub fn prepare(
        &self,
        task: &Task,
        cancel: Cancel,
        warn: &mut dyn FnMut(&str),
    ) -> Result<Prepared<'_>, HarnessError> {
        Prepared::new(self, task, cancel, warn)
    }

    /// The model that all of it stands on.
    pub fn model(&self) -> &Arc<dyn Model> {
        &self.model
    }

    // --- tools

    /// Has the tools of these servers beside the others, in the place of servers that were connected before. What the servers
    /// are given in secret does not get into events.
    pub fn connect(&mut self, hub: Hub) {
        self.secrets.extend(hub.secrets());
        self.redactor = Redactor::with_secrets(self.secrets.iter().cloned());
        self.hub = Some(hub);
    }

    /// Adds a tool of one's own.
    ///
    /// # Errors
    /// If its name is taken or cannot be one.
    pub fn add(&mut self, tool: Arc<dyn Tool>) -> Result<(), RegistryError> {
        self.registry("")?.add(tool.clone())?;
        self.tools.add(tool)
    }

    /// Every tool that there is now, those of skills not counted: a run has those of its own.
    ///
    /// # Errors
    /// If two tools have one name.
    pub fn tools(&self) -> Result<Vec<ToolSpec>, HarnessError> {
        let mut registry = self.registry("")?;
        if let Some(hub) = &self.hub {
            join(&mut registry, hub);
        }
        Ok(registry.specs().cloned().collect())
    }

    /// The tools of a session, without those of servers and skills.
    fn registry(&self, session: &str) -> Result<Registry, RegistryError> {
        let mut registry = self.tools.clone();
        if let Some(workspace) = self.workspaces.as_ref().map(|all| Arc::new(all.open(session))) {
            let offloads = self.options.offload;
            tools::of_session(workspace, offloads).into_iter().try_for_each(|tool| registry.add(tool))?;
        }
        Ok(registry)
    }

    // --- history, memory, events

    /// What is remembered of a session.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn history(&self, session: &str) -> Result<Past, HarnessError> {
        let past = self.memory.past(ConversationKey { session, agent: &self.agent }, MESSAGES)?;
        Ok(past.behind(self.store.said_before(session, &self.agent, MESSAGES)?))
    }

    /// Forgets a session, if it is there: what was said, its runs and its files. Returns what was asked for in them.
    ///
    /// # Errors
    /// If it cannot be removed, or another process works in it.
    pub fn clear(&self, session: &str) -> Result<Vec<String>, HarnessError> {
        let found = self.store.session(session).ok().filter(|found| found.id == session);
        empty(session, &self.store, &self.memory, self.workspaces.as_ref())?;
        match self.store.delete_session(session, is_alive) {
            Ok(()) | Err(StoreError::Missing { .. }) => {}
            Err(error) => return Err(error.into()),
        }
        Ok(found.map_or_else(Vec::new, |found| found.runs.into_iter().map(|run| run.task).collect()))
    }

    /// Keeps notes and conversations there from now on. Nothing is copied.
    pub fn switch_memory(&mut self, memory: Memory) {
        self.memory = Arc::new(memory);
    }

    /// Keeps runs, their events and where they stand there from now on. Nothing is copied.
    pub fn switch_events(&mut self, store: Arc<Store>) {
        self.store = store;
    }

    /// Where runs and their events are kept.
    pub fn events(&self) -> &Arc<Store> {
        &self.store
    }

    /// What the kept runs have cost.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn metrics(&self) -> Result<Stats, HarnessError> {
        Ok(self.store.stats()?)
    }

    // --- the end

    /// Ends the servers, and removes results that nobody has asked for in a week. What else is kept stays.
    pub fn cleanup(self) {
        self.sweep();
    }

    fn sweep(&self) {
        if let Some(all) = &self.workspaces {
            all.sweep_old();
        }
    }

    /// What the person has allowed, in whatever run; the agent's own files in `own`.
    fn rules(&self, own: Option<PathBuf>) -> Rules {
        let Options { unasked, loops, without, .. } = &self.options;
        Rules {
            root: self.root.clone(),
            own,
            yes: *unasked,
            loops: *loops,
            without: without.clone(),
            more: self.guards.clone(),
        }
    }

    /// True for words that ask nothing of this computer: talk, and questions that servers of tools are not there for.
    fn talks(&self, agent: &str, text: &str) -> bool {
        let servers = || self.hub.as_ref().is_some_and(|hub| !hub.tools(&|_| false).is_empty());
        let world = asks_world(text) && !place::mentioned(text, &self.root);
        agent == CHATTER && is_talk(text) || world && !servers()
    }

    fn recent(&self) -> MutexGuard<'_, Recent> {
        self.recent.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The name of the agent that one talks with: a message that asks nothing of this computer gets no tools.
pub const CHATTER: &str = "chat";

/// The name of a session: the one that is given, or a new one.
///
/// # Errors
/// If it cannot be one.
pub fn session_name(given: Option<&str>) -> Result<String, HarnessError> {
    let Some(name) = given else { return Ok(id::fresh("session")) };
    if name.trim().is_empty() || name.chars().count() > NAME || name.contains(char::is_control) {
        return Err(HarnessError::Session);
    }
    if name.starts_with("run_") || name.starts_with("worker_") {
        return Err(HarnessError::NamedAsRun(name.to_owned()));
    }
    Ok(name.to_owned())
}

/// Adds the tools of servers as they are now; how many. Whatever has a name that is taken is renamed, so none is refused.
pub fn join(registry: &mut Registry, hub: &Hub) -> usize {
    // also where there are no helpers: a name means one thing
    let taken = |name: &str| name == subagent::SPAWN || registry.get(name).is_ok();
    let tools = hub.tools(&taken);
    tools.into_iter().filter(|tool| registry.add(tool.clone()).is_ok()).count()
}
