//! Builds the runtime of a run out of model, tools, guards and store.

use super::place::{Beginnings, Folder};
use super::resume::is_alive;
use super::rules::{Office, Rules};
use super::{Advise, Drive};
use crate::agent::advise::Adviser;
use crate::agent::assemble::{ContextProvider, Fixed};
use crate::agent::blueprint::{Blueprint, persona::persona};
use crate::agent::chat::{History, MESSAGES, Past, Remember, is_talk};
use crate::agent::event::{Draft, Emitter, Kind, Redactor, Sink};
use crate::agent::guard::Guards;
use crate::agent::librarian::{Knowledge, Librarian};
use crate::agent::mcp::Hub;
use crate::agent::memory::{Conversation, Memory, NoteTaker, Recall, Whose};
use crate::agent::observe::Artifacts;
use crate::agent::runtime::{Approver, Config, Nobody, Notes};
use crate::agent::skill::{self, Chosen, Reason};
use crate::agent::store::{Store, StoreError};
use crate::agent::subagent;
use crate::agent::tools::{self, ManualSource, Setup, Shell};
use crate::agent::turn::Task;
use crate::agent::workspace::{Place, RETENTION, Workspace, Workspaces};
use crate::agent::{Registry, Runtime};
use crate::cli::{Cx, Failure, Settings, download, env, knowledge, mcp, memory, request, skills, wire};
use crate::command::{CommandAdviser, Recipe};
use crate::host::ExecutionContext;
use crate::manual::{Manual, Program, relevant};
use crate::model::{Cancel, Model};
use crate::shell::Dialect;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// The name of the agent that one talks with.
pub const CHATTER: &str = "chat";
/// Between two looks whether a session is free.
const WAIT: Duration = Duration::from_millis(100);
/// For how many runs of a conversation a skill stays once a message has called for it.
const RECENT: u8 = 3;
/// Tools of servers that are shown beside ours, at most.
const MORE_TOOLS: usize = 4;

/// Everything a runtime is built from.
pub struct Wired {
    model: Arc<dyn Model>,
    /// The tools of this program; those of servers and skills come on top for each run.
    registry: Registry,
    hub: Option<Hub>,
    drive: Drive,
    own: Option<PathBuf>,
    /// Skills of the runs before, and for how many runs more they stay.
    recent: BTreeMap<String, u8>,
    // --- of the run that is taken up
    /// The recipe: `agent`, `chat`.
    recipe: String,
    /// True for a message of a conversation that asks nothing of this computer: it gets no tools.
    talks: bool,
    skills: Chosen,
    /// What was said before in its session, and how much of that is remembered.
    past: Past,
    remember: Remember,
    guards: Guards,
    adviser: Option<Arc<dyn Adviser>>,
    store: Arc<Store>,
    workspace: Option<Arc<Workspace>>,
    artifacts: Option<Arc<dyn Artifacts>>,
    librarian: Option<Arc<Librarian>>,
    memory: Option<Arc<Memory>>,
    conversations: Arc<Memory>,
    root: PathBuf,
    run: String,
    session: String,
    /// What it was asked, without secrets.
    asked: String,
    redactor: Redactor,
    cancel: Cancel,
}

/// The store of this person's runs.
///
/// # Errors
/// If it cannot be opened.
pub fn store(cx: &Cx) -> Result<Store, Failure> {
    match &cx.dirs.data {
        Some(data) => Store::open(&data.join("agent.db")).map_err(failure),
        None => {
            cx.ui.warn("this user has no home folder: the run is not kept");
            Store::in_memory().map_err(failure)
        }
    }
}

/// A store's error for a person.
pub fn failure(error: StoreError) -> Failure {
    let hint = error.hint();
    match error {
        StoreError::Missing { .. }
        | StoreError::Empty
        | StoreError::Ambiguous { .. }
        | StoreError::Busy(_)
        | StoreError::Occupied { .. } => Failure::usage(error).hint(hint),
        StoreError::Open { .. } | StoreError::Damaged { .. } | StoreError::Sql(_) => {
            Failure::internal(error).hint(hint)
        }
    }
}

impl Wired {
    /// Opens everything that the runs of a session need; [`Wired::take_up`] begins one.
    ///
    /// # Errors
    /// If there is no model, no shell or no store.
    pub fn open(cx: &Cx, drive: &Drive, session: &str, root: &Path) -> Result<Self, Failure> {
        let flags: Vec<(&'static str, String)> = drive.model.clone().map(|m| ("model", m)).into_iter().collect();
        let settings = cx.settings(&flags)?;
        let store = Arc::new(store(cx)?);
        // servers start while the model is opened
        let (wired, opened) = std::thread::scope(|scope| {
            let hub = (!drive.no_mcp).then(|| scope.spawn(|| mcp::open(root, cx)));
            (wire::open(cx, &settings), hub.map(|hub| hub.join()))
        });
        let (hub, mcp_secrets) = match opened {
            Some(opened) => opened
                .map_err(|_| Failure::internal("the MCP servers could not be opened"))?
                .map(|(h, s)| (Some(h), s))?,
            None => (None, Vec::new()),
        };
        let spawns = |hub: &Hub| hub.tools(&|_| false).iter().any(|tool| tool.spec().name == subagent::SPAWN);
        if drive.subagents && hub.as_ref().is_some_and(spawns) {
            let name = subagent::SPAWN;
            cx.ui.warn(&format!(
                "`{name}` is this program's own tool: that of an MCP server has its server's name before it"
            ));
        }
        let recipe = wired?.recipe;
        let workspaces = workspaces(cx, &settings)?;
        // what nobody has asked for in a week is not asked for again; a bucket has rules of its own for that, and each
        // look into it is a request
        if let Some(all) = workspaces.as_ref().filter(|all| all.is_local()) {
            all.sweep(RETENTION);
        }
        let own = workspaces.as_ref().map(|all| all.folder(session));
        let workspace = workspaces.map(|all| Arc::new(all.open(session)));
        if drive.subagents && workspace.is_none() {
            return Err(Failure::usage("--subagents needs a workspace, and this user has no home folder for it")
                .hint("set XDG_DATA_HOME to a folder that can be written"));
        }
        let artifacts = workspace.clone().map(|w| w as Arc<dyn Artifacts>);
        // neither is opened before it is asked for
        let librarian = knowledge::librarian(cx).filter(|l| !drive.no_rag && l.exists()).map(Arc::new);
        let conversations = Arc::new(memory::memory(cx, &settings)?);
        let memory = (!drive.no_memory).then(|| conversations.clone());
        let writable = drive.write.iter().map(|dir| dir.canonicalize().unwrap_or_else(|_| root.join(dir))).collect();
        let registry = builtin(&recipe.context, recipe.manual.clone(), workspace.clone(), librarian.clone(), writable)?;
        let secrets = cx.env.get(env::API_KEY).and_then(|key| key.to_str()).map(str::to_owned);
        let url = settings.memory_url.clone().filter(|url| url.contains('@') || url.contains("pass="));
        let key = workspace_key(cx).and_then(|key| Some(key.split_once(':')?.1.to_owned()));
        let secrets = secrets.into_iter().chain(mcp_secrets).chain(url).chain(key);
        let adviser = adviser(drive.advise, &recipe, &settings, root)?;
        Ok(Self {
            model: recipe.model,
            registry,
            hub,
            drive: drive.clone(),
            own,
            recent: BTreeMap::new(),
            recipe: String::new(),
            talks: false,
            skills: Chosen::default(),
            past: Past::default(),
            remember: Remember::default(),
            guards: Guards::default(),
            adviser,
            store,
            workspace,
            artifacts,
            librarian,
            memory,
            conversations,
            root: root.to_owned(),
            run: String::new(),
            session: String::new(),
            asked: String::new(),
            redactor: Redactor::with_secrets(secrets),
            cancel: cx.interrupt().cancel().clone(),
        })
    }

    /// Makes everything ready for a run: its guards, its skills, and what stops it.
    ///
    /// # Errors
    /// If a skill that was asked for is not there.
    pub fn take_up(&mut self, task: &Task, cancel: Cancel, cx: &Cx) -> Result<(), Failure> {
        let recent: Vec<String> = self.recent.keys().cloned().collect();
        self.skills = match self.drive.no_skills {
            true => Chosen::default(),
            false => skills::choose(&task.text, &self.drive.skill, &recent, &self.root, cx)?,
        };
        self.recent.retain(|_, runs| {
            *runs -= 1;
            *runs > 0
        });
        for (skill, _) in self.skills.active.iter().filter(|(_, why)| *why != Reason::Recent) {
            self.recent.insert(skill.front.name.clone(), RECENT);
        }
        self.guards = self.rules().guards(task);
        (self.run, self.recipe) = (task.run.clone(), task.agent.clone());
        (self.session, self.asked) = (task.session.clone(), self.redactor.text(&task.text));
        self.talks = task.agent == "chat" && self.skills.active.is_empty() && is_talk(&task.text);
        (self.cancel, self.past) = (cancel, Past::default());
        Ok(())
    }

    /// Has the run that is taken up told what was said before in its session.
    pub fn recall(&mut self, past: Past, remember: Remember) {
        (self.past, self.remember) = (past, remember);
    }

    /// What the person has allowed, in whatever run.
    fn rules(&self) -> Rules {
        Rules {
            root: self.root.clone(),
            own: self.own.clone(),
            yes: self.drive.yes,
            loops: self.drive.loops(),
            without: self.drive.no_guard.clone(),
        }
    }

    /// What is remembered of a session.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn past(&self, session: &str) -> Result<Past, Failure> {
        Ok(self.conversations.past(Whose { session, agent: CHATTER }, MESSAGES)?)
    }

    /// Removes a session with its runs, if it is there: what was asked for in them.
    ///
    /// # Errors
    /// If it cannot be removed.
    pub fn forget(&self, session: &str) -> Result<Vec<String>, Failure> {
        let found = self.store.session(session).ok().filter(|found| found.id == session);
        match self.store.delete_session(session, is_alive) {
            Ok(()) | Err(StoreError::Missing { .. }) => self.conversations.unsay(session)?,
            Err(error) => return Err(failure(error)),
        }
        Ok(found.map_or_else(Vec::new, |found| found.runs.into_iter().map(|run| run.task).collect()))
    }

    /// Every tool that there is now.
    pub fn registry(&self) -> Registry {
        let mut registry = self.registry.clone();
        add_tools(&mut registry, self.hub.as_ref());
        registry
    }

    /// The skills of the run, and why.
    pub fn skills(&self) -> &Chosen {
        &self.skills
    }

    /// Writes the run down, so that it can be gone on with from here. While another process drives a run of the same
    /// session it waits: the runs of a session come one after the other.
    ///
    /// # Errors
    /// If it cannot be written, or Ctrl-C ends the wait.
    pub fn begin(&self, task: &Task, cx: &Cx) -> Result<(), Failure> {
        let text = self.redactor.text(&task.text);
        let mut told = false;
        loop {
            match self.store.begin(task, &text, &self.root, is_alive) {
                Err(StoreError::Occupied { run, .. }) if !self.cancel.is_cancelled() => {
                    if !std::mem::replace(&mut told, true) {
                        cx.ui.note(&format!("waiting for {run} of this session to end"));
                    }
                    std::thread::sleep(WAIT);
                }
                other => return other.map_err(failure),
            }
        }
    }

    /// The runtime whose events go to the store and to `sinks`, the first with the number `first`. Without an approver
    /// nobody is asked, and what would be asked for is refused.
    pub fn runtime(&self, first: u64, sinks: Vec<Arc<dyn Sink>>, approver: Option<Arc<dyn Approver>>) -> Runtime {
        let conversation = Arc::new(Conversation {
            memory: self.conversations.clone(),
            session: self.session.clone(),
            agent: self.recipe.clone(),
            asked: self.asked.clone(),
            runs: self.store.clone(),
        });
        // before the store, which lets the next run of the session begin
        let mut all: Vec<Arc<dyn Sink>> = vec![conversation.clone(), self.store.clone()];
        all.extend(sinks);
        let mut providers: Vec<Arc<dyn ContextProvider>> =
            vec![Arc::new(Fixed { name: "persona", priority: 0, text: persona(&self.recipe, self.talks).into() })];
        if !self.talks {
            providers.push(Arc::new(Folder(self.root.clone())));
            providers.push(Arc::new(Beginnings(self.root.clone())));
        }
        if let Some(role) = &self.drive.role {
            providers.push(Arc::new(Fixed { name: "role", priority: 0, text: skill::role::persona(role) }));
        }
        providers.extend(skill::layer::layers(&self.skills));
        if let Some(librarian) = &self.librarian {
            providers.push(Arc::new(Knowledge::new(librarian.clone())));
        }
        if let Some(memory) = &self.memory {
            providers.push(Arc::new(Recall::new(memory.clone())));
        }
        if !self.past.is_empty() {
            let (past, model) = (self.past.clone(), self.model.clone());
            providers.push(Arc::new(History::new(past, self.remember, conversation, model)));
        }
        let taker = |memory: &Arc<Memory>| {
            Arc::new(NoteTaker { memory: memory.clone(), redactor: self.redactor.clone() }) as Arc<dyn Notes>
        };
        let mut registry = self.registry.clone();
        let more = add_tools(&mut registry, self.hub.as_ref()).min(MORE_TOOLS);
        let of_skills = skill::tools::tools(&self.skills, &skills::which());
        // tools of skills are there for every step: they take no other's place
        let more = more + of_skills.into_iter().filter(|tool| registry.add(tool.clone()).is_ok()).count();
        let config = Config::new(self.root.clone());
        let names = self.skills.active.iter().map(|(skill, _)| skill.front.name.clone()).collect();
        let config = Config {
            tools: config.tools + more,
            // what is there gets used, also to greet: where nothing is asked of this computer there are no tools
            blueprints: Blueprint::of_run(self.talks, !self.skills.active.is_empty()),
            skills: names,
            fitting: self.drive.context.0,
            guardrail: self.drive.screened(),
            ..config
        };
        let runtime = Runtime {
            model: self.model.clone(),
            registry,
            guards: self.guards.clone(),
            providers,
            notes: self.memory.as_ref().map(taker),
            approver: approver.unwrap_or_else(|| Arc::new(Nobody)),
            artifacts: self.artifacts.clone(),
            checkpoints: self.store.clone(),
            // in a conversation most words are no commands
            adviser: self.adviser.clone().filter(|_| self.recipe != "chat" || self.drive.advise == Advise::Always),
            bill: None,
            emitter: Arc::new(Emitter::new(self.run.clone(), first, self.redactor.clone(), all)),
            cancel: self.cancel.clone(),
            config,
        };
        let Some(workspace) = self.workspace.clone().filter(|_| self.drive.subagents && !self.talks) else {
            return runtime;
        };
        let hire = Office { store: self.store.clone(), rules: self.rules(), redactor: self.redactor.clone() };
        subagent::equip(runtime.clone(), workspace, Arc::new(hire)).unwrap_or_else(|error| {
            // the person has asked for helpers: a run without is told as such
            runtime.emitter.emit(Draft::new(Kind::RuntimeError).error(format!("there are no helpers: {error}")));
            runtime
        })
    }
}

/// Who gives advice on a part that one command can do, if anybody does.
fn adviser(
    when: Advise,
    recipe: &Recipe,
    settings: &Settings,
    root: &Path,
) -> Result<Option<Arc<dyn Adviser>>, Failure> {
    // a server's model is larger, and a script has its replies
    let is_local = !["script:", "openai:"].iter().any(|other| settings.model.starts_with(other));
    if when == Advise::Never || when == Advise::Auto && !is_local {
        return Ok(None);
    }
    let (shell, dialect) = shell(&recipe.context)?;
    let place = request::Place { cwd: root.to_owned(), target: recipe.context.target, dialect };
    Ok(Some(Arc::new(CommandAdviser { recipe: recipe.clone(), ask: request::part(&place, settings), shell })))
}

/// The tools of this program.
fn builtin(
    context: &Arc<ExecutionContext>,
    manual: Option<Arc<Manual>>,
    workspace: Option<Arc<Workspace>>,
    knowledge: Option<Arc<Librarian>>,
    writable: Vec<PathBuf>,
) -> Result<Registry, Failure> {
    let (program, dialect) = shell(context)?;
    let artifacts = workspace.clone().map(|w| w as Arc<dyn Artifacts>);
    let manual = manual.map(|manual| Arc::new(Manuals { manual, context: context.clone() }) as Arc<dyn ManualSource>);
    let shell = Shell::new(program, dialect).writable(writable);
    let setup = Setup { shell, workspace, artifacts, manual, knowledge };
    tools::builtin(setup).map_err(|e| {
        let hint = e.hint();
        Failure::internal(e).hint(hint)
    })
}

/// Adds the tools of servers as they are now; how many. Whatever has a name that is taken is renamed, so none is refused.
fn add_tools(registry: &mut Registry, hub: Option<&Hub>) -> usize {
    // also where there are no helpers: a name means one thing
    let taken = |name: &str| name == subagent::SPAWN || registry.get(name).is_ok();
    let tools = hub.map(|hub| hub.tools(&taken)).unwrap_or_default();
    tools.into_iter().filter(|tool| registry.add(tool.clone()).is_ok()).count()
}

/// Every tool there is in a folder, for who wants to see them. Asks no model.
///
/// # Errors
/// If there is no shell, or two tools have one name.
pub fn all_tools(cx: &Cx, root: &Path, hub: Option<&Hub>) -> Result<Registry, Failure> {
    let context = Arc::new(ExecutionContext::detect(cx.dirs.cache.as_deref()));
    let own = cx.dirs.data.as_ref().map_or_else(|| root.to_owned(), |data| data.join("workspace"));
    let librarian = knowledge::librarian(cx).filter(Librarian::exists).map(Arc::new);
    let mut registry =
        builtin(&context, Some(wire::manual(cx)), Some(Arc::new(Workspace::open(own))), librarian, Vec::new())?;
    add_tools(&mut registry, hub);
    Ok(registry)
}

/// The workspaces of this person's sessions; nothing where there is no place for them. Connects to nothing.
///
/// # Errors
/// If this program was built without their backend, or it is not said where they are.
pub fn workspaces(cx: &Cx, settings: &Settings) -> Result<Option<Workspaces>, Failure> {
    let place = Place {
        kind: settings.workspace_backend,
        folder: cx.dirs.data.as_ref().map(|data| data.join("workspace")),
        url: settings.workspace_url.clone(),
        key: workspace_key(cx),
        authorities: download::settings(cx)?.hub.and_then(|hub| hub.authorities),
    };
    place.open().map_err(|error| {
        let hint = error.hint();
        Failure::usage(error).hint(hint)
    })
}

/// What opens the bucket that they are in.
fn workspace_key(cx: &Cx) -> Option<String> {
    cx.env.get(env::WORKSPACE_KEY).and_then(|key| key.to_str()).map(str::to_owned)
}

/// The shell that commands run in: one that speaks the language models write best.
fn shell(context: &ExecutionContext) -> Result<(PathBuf, Dialect), Failure> {
    let known = [
        ("bash", Dialect::Bash),
        ("sh", Dialect::Sh),
        ("pwsh", Dialect::PowerShell),
        ("powershell", Dialect::PowerShell),
    ];
    known
        .iter()
        .find_map(|(name, dialect)| Some((context.available_commands.get(*name)?.clone(), *dialect)))
        .ok_or_else(|| Failure::usage("there is no bash, sh or PowerShell on PATH").hint("install bash"))
}

/// The installed manuals as the tool asks for them.
struct Manuals {
    manual: Arc<Manual>,
    context: Arc<ExecutionContext>,
}

impl ManualSource for Manuals {
    fn search(&self, program: &str, words: &str) -> Result<Vec<String>, String> {
        let path =
            self.context.available_commands.get(program).ok_or(format!("there is no program `{program}` here"))?;
        let program = Program::File { name: program.to_owned(), path: path.clone() };
        let runtime = tokio::runtime::Handle::try_current().map_err(|e| e.to_string())?;
        let entry = runtime.block_on(self.manual.get_or_fetch(&program)).map_err(|e| e.to_string())?;
        let words: Vec<&str> = words.split_whitespace().collect();
        let options = relevant(&entry, &words, &[], 8);
        Ok(options.iter().map(|o| format!("{}  {}", o.names().collect::<Vec<_>>().join(", "), o.text)).collect())
    }
}
