//! The entry point of the crate: combines model, tools, guards, store, memory, workspaces, skills and tool servers
//! into the [`Runtime`](crate::runtime::Runtime) of a run. A facade: the loop and the policies are in other modules
//! of [`crate`].
//!
//! - [`Setup`]: the parts of a harness. [`Options`]: the settings of its runs.
//! - [`Harness`]: starts runs, and manages what they share. [`Watch`]: watches and stops a run. [`Prepared`]: a run
//!   that is ready to start. [`SessionTurn`]: the right to run in a session.
//! - `place`: layers about the working folder. `rules`: the guards of a run and its workers. `recent`: skills that
//!   stay active for some runs. `standing`: the runtime of the perpetual loop. `queue`: makes the runs of a session
//!   take turns. `clear`: deletes a session. `error`: the errors.
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
pub use queue::SessionTurn;
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

/// The time between two checks whether a session is free.
const WAIT: Duration = Duration::from_millis(100);
/// Most characters of the name of a session.
const MAX_NAME: usize = 200;

/// Runs agents. One harness serves any number of sessions, also in parallel.
pub struct Harness {
    model: Arc<dyn Model>,
    /// The name of the model in the store.
    model_name: Option<String>,
    root: PathBuf,
    agent: String,
    /// The tools that do not come from a session, a server or a skill.
    tools: Registry,
    /// Saves what tools change, for undo.
    keeper: Option<Arc<dyn tools::Keeper>>,
    hub: Option<Hub>,
    workspaces: Option<Workspaces>,
    /// The folder of the workspaces if none was given; removed with the harness.
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
    /// Creates a harness. Deletes stored results that were not used for a week from the workspaces.
    ///
    /// # Errors
    /// If no temporary workspace or no store in memory can be created, or two tools have one name.
    pub fn new(setup: Setup) -> Result<Self, HarnessError> {
        let Setup { model, root, agent, shell, manual, workspaces, librarian, memory, skills, .. } = setup;
        let Setup { suggester, store, secrets, cancel, options, .. } = setup;
        let Setup { instruction, guards, providers, keeper, model_name, .. } = setup;
        let wanted = workspaces.is_none() && (options.workspace || options.subagents);
        let scratch = wanted.then(tempfile::tempdir).transpose()?;
        let workspaces = workspaces.or_else(|| Some(Workspaces::at(scratch.as_ref()?.path().to_owned())));
        let knowledge = librarian.clone();
        let parts = tools::Setup { shell, keeper: keeper.clone(), manual, knowledge, ..tools::Setup::default() };
        let harness = Self {
            model,
            model_name,
            root: root.canonicalize().unwrap_or(root),
            agent,
            tools: tools::builtin(parts)?,
            keeper,
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
        harness.delete_old_results();
        Ok(harness)
    }

    // --- running

    /// Works on a task to its end, in the named session or in a new one. Waits while another run of the session is
    /// active. The model is shown the earlier messages of the session. Requests for permission are refused; use
    /// [`Harness::conduct`] to answer them, or to see events as they happen. Needs a Tokio runtime.
    ///
    /// # Errors
    /// If the text is no task, or the run cannot be started or is stopped. A failed run is no error: its report says
    /// why.
    pub async fn run(&self, text: &str, session: Option<&str>) -> Result<Report, HarnessError> {
        self.run_with(text, session, RunOptions::default()).await
    }

    /// Does what [`Harness::run`] does, but blocks. Works on a thread with a runtime of its own, so it may also be
    /// called within a Tokio runtime.
    ///
    /// # Errors
    /// As [`Harness::run`]; or if no thread can be started.
    pub fn run_sync(&self, text: &str, session: Option<&str>) -> Result<Report, HarnessError> {
        let work = || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            let runtime = runtime.map_err(HarnessError::Thread)?;
            let ended = runtime.block_on(self.run(text, session));
            // a call that was given up may never end
            runtime.shutdown_background();
            ended
        };
        std::thread::scope(|scope| {
            let thread = std::thread::Builder::new().spawn_scoped(scope, work).map_err(HarnessError::Thread)?;
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }

    /// Does what [`Harness::run`] does, with options for this run only.
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

    /// Makes a task of a text, with a plan made without a model.
    pub fn task(&self, text: &str, session: &str) -> Task {
        // text copied from a terminal may have escape sequences for colours
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

    /// Prepares a new or resumed run: its guards, skills and tools. `cancel` stops it; `warn` is called for every
    /// skill that is left out.
    ///
    /// # Errors
    /// If a skill that was asked for does not exist or cannot be used, or two tools have one name.
    pub fn prepare(
        &self,
        task: &Task,
        cancel: Cancel,
        warn: &mut dyn FnMut(&str),
    ) -> Result<Prepared<'_>, HarnessError> {
        Prepared::new(self, task, cancel, warn)
    }

    /// Returns the model.
    pub fn model(&self) -> &Arc<dyn Model> {
        &self.model
    }

    /// Stores the name of the model with a run, so that a resumed run uses the same one. A new run needs no call.
    ///
    /// # Errors
    /// If it cannot be stored.
    pub fn keep_model(&self, run: &str) -> Result<(), StoreError> {
        self.model_name.as_ref().map_or(Ok(()), |name| self.store.keep_model(run, name))
    }

    // --- tools

    /// Adds the tools of these servers, and replaces those of servers that were connected before. Secrets given to the
    /// servers are redacted from events.
    pub fn connect(&mut self, hub: Hub) {
        self.secrets.extend(hub.secrets());
        self.redactor = Redactor::with_secrets(self.secrets.iter().cloned());
        self.hub = Some(hub);
    }

    /// Adds a tool.
    ///
    /// # Errors
    /// If its name is taken or invalid.
    pub fn add(&mut self, tool: Arc<dyn Tool>) -> Result<(), RegistryError> {
        self.registry("")?.add(tool.clone())?;
        self.tools.add(tool)
    }

    /// Returns every tool except those of skills, which differ from run to run.
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

    /// Returns the tools of a session, without those of servers and skills.
    fn registry(&self, session: &str) -> Result<Registry, RegistryError> {
        let mut registry = self.tools.clone();
        if let Some(workspace) = self.workspaces.as_ref().map(|all| Arc::new(all.open(session))) {
            let offloads = self.options.offload;
            tools::of_session(workspace, offloads).into_iter().try_for_each(|tool| registry.add(tool))?;
        }
        Ok(registry)
    }

    // --- history, memory, events

    /// Returns the remembered part of a session.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn history(&self, session: &str) -> Result<Past, HarnessError> {
        let past = self.memory.past(ConversationKey { session, agent: &self.agent }, MESSAGES)?;
        Ok(past.behind(self.store.history_of_runs(session, &self.agent, MESSAGES)?))
    }

    /// Deletes a session, if it exists: its conversation, its runs and its files. Returns the tasks of the deleted
    /// runs.
    ///
    /// # Errors
    /// If something cannot be deleted, or another process is running in the session.
    pub fn clear(&self, session: &str) -> Result<Vec<String>, HarnessError> {
        let found = self.store.session(session).ok().filter(|found| found.id == session);
        empty(session, &self.store, &self.memory, self.workspaces.as_ref())?;
        match self.store.delete_session(session, is_alive) {
            Ok(()) | Err(StoreError::Missing { .. }) => {}
            Err(error) => return Err(error.into()),
        }
        Ok(found.map_or_else(Vec::new, |found| found.runs.into_iter().map(|run| run.task).collect()))
    }

    /// Returns the store of runs and their events.
    pub fn events(&self) -> &Arc<Store> {
        &self.store
    }

    /// Returns the statistics of the stored runs.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn metrics(&self) -> Result<Stats, HarnessError> {
        Ok(self.store.stats()?)
    }

    // --- the end

    /// Stops the servers, and deletes stored results that were not used for a week. Everything else stays stored.
    pub fn cleanup(self) {
        self.delete_old_results();
    }

    fn delete_old_results(&self) {
        if let Some(all) = &self.workspaces {
            all.sweep_old();
        }
    }

    /// Returns the settings of the guards; `own` is the folder of the agent's own files.
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

    /// True if a text asks nothing about this computer: talk in a chat, and questions of general knowledge if there
    /// are no tool servers that might answer them.
    fn talks(&self, agent: &str, text: &str) -> bool {
        let has_server_tools = || self.hub.as_ref().is_some_and(|hub| !hub.tools(&|_| false).is_empty());
        let is_general = asks_world(text) && !place::names_entry(text, &self.root);
        agent == CHATTER && is_talk(text) || is_general && !has_server_tools()
    }

    fn recent(&self) -> MutexGuard<'_, Recent> {
        self.recent.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The name of the agent for conversations. Its messages get no tools if they are just talk.
pub const CHATTER: &str = "chat";

/// Returns the given name of a session if it is valid, or a new name if none is given.
///
/// # Errors
/// If the name is invalid.
pub fn session_name(given: Option<&str>) -> Result<String, HarnessError> {
    let Some(name) = given else { return Ok(id::fresh("session")) };
    if name.trim().is_empty() || name.chars().count() > MAX_NAME || name.contains(char::is_control) {
        return Err(HarnessError::Session);
    }
    if name.starts_with("run_") || name.starts_with("worker_") {
        return Err(HarnessError::NamedAsRun(name.to_owned()));
    }
    Ok(name.to_owned())
}

/// Adds the tools that the servers have at present, and returns their number. A tool whose name is taken gets another
/// name.
pub fn join(registry: &mut Registry, hub: &Hub) -> usize {
    // reserved even if there are no helpers, so that the name has only one meaning
    let taken = |name: &str| name == subagent::SPAWN || registry.get(name).is_ok();
    let tools = hub.tools(&taken);
    tools.into_iter().filter(|tool| registry.add(tool.clone()).is_ok()).count()
}
