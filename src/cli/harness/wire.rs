//! Builds the harness from the user's settings, folders, machine, manuals, skills and MCP servers.

use super::options::{Advise, Drive};
use crate::answer::{ask, undo};
use crate::harness::servers;
use crate::setup::wire::{self, Wants};
use crate::setup::{download, stores};
use crate::{Cx, Exit, Failure, Settings, env};
use caro_agent::harness::{self, CHATTER, Harness, HarnessError, Options, Prepared, session_name};
use caro_agent::mcp::Hub;
use caro_agent::observe::Artifacts;
use caro_agent::store::{FILE, Store, StoreError};
use caro_agent::suggest::{CommandSuggester, Suggester};
use caro_agent::tools::{self, ManualSource, Shell};
use caro_agent::workspace::{Place, Workspace, Workspaces};
use caro_agent::{AgentRun, Registry, subagent};
use caro_command::Recipe;
use caro_documents::Librarian;
use caro_host::ExecutionContext;
use caro_manual::{Manual, Program, relevant};
use caro_model::Cancel;
use caro_model::fetch::{self, ModelSource};
use caro_policy::Redactor;
use caro_shell::Dialect;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Opens the store of this user's runs.
///
/// # Errors
/// If it cannot be opened.
pub fn store(cx: &Cx) -> Result<Store, Failure> {
    match &cx.dirs.data {
        Some(data) => Store::open(&data.join(FILE)).map_err(failure),
        None => {
            cx.ui.warn("this user has no home folder: the run is not kept");
            Store::in_memory().map_err(failure)
        }
    }
}

/// Opens the store for reading: if there is none, an empty one in memory, so that no file is created.
///
/// # Errors
/// If it cannot be opened.
pub fn existing_store(cx: &Cx) -> Result<Store, Failure> {
    match &cx.dirs.data {
        // if the check itself fails, opening reports the reason
        Some(data) if matches!(data.join(FILE).try_exists(), Ok(false)) => Store::in_memory().map_err(failure),
        _ => store(cx),
    }
}

/// Returns the name of a session: the given one, or a new one. For a run's id, the error names the session of that run.
///
/// # Errors
/// If the given name is not valid.
pub fn session(given: Option<&str>, cx: &Cx) -> Result<String, Failure> {
    session_name(given).map_err(|error| {
        let name = if matches!(error, HarnessError::NamedAsRun(_)) { given } else { None };
        let run = name.and_then(|name| store(cx).ok()?.run(name).ok());
        let failure = Failure::from(error);
        match run {
            Some(run) => failure.hint(format!("the run {} belongs to the session {}", run.id, run.session)),
            None => failure,
        }
    })
}

/// Turns an error of the store into a failure for the user.
pub fn failure(error: StoreError) -> Failure {
    let hint = error.hint();
    match error {
        error if error.is_busy() => Failure::usage(error).hint(hint),
        StoreError::Missing { .. } | StoreError::Empty | StoreError::Ambiguous { .. } => {
            Failure::usage(error).hint(hint)
        }
        _ => Failure::internal(error).hint(hint),
    }
}

impl From<HarnessError> for Failure {
    fn from(error: HarnessError) -> Self {
        let hint = error.hint();
        match error {
            HarnessError::Store(error) => failure(error),
            HarnessError::Memory(error) => error.into(),
            HarnessError::Skill(error) => error.into(),
            HarnessError::Workspace(error) => error.into(),
            HarnessError::Tools(error) => Self::internal(error).hint(hint),
            HarnessError::Session | HarnessError::NamedAsRun(_) => {
                Self::usage(error).hint("for example: --session work")
            }
            HarnessError::Unclear(_) | HarnessError::Input(_) => Self::usage(error).hint(hint),
            // a closed pipe ends it silently and with success
            HarnessError::Channel(io) if io.kind() == std::io::ErrorKind::BrokenPipe => Self::from(io),
            HarnessError::Channel(_) | HarnessError::Thread(_) => Self::internal(error).hint(hint),
            HarnessError::Stopped(_) => Self::new(Exit::Interrupted, error).hint(hint),
        }
    }
}

/// Opens everything that the runs of an agent need.
///
/// # Errors
/// If there is no model, no shell or no store.
pub fn open(
    cx: &Cx,
    drive: &Drive,
    agent: &str,
    options: Options,
    root: &Path,
    wants: Wants,
) -> Result<Harness, Failure> {
    // errors that need no model are reported before one is fetched
    let site = Site::open(cx, drive, root)?;
    let settings = cx.settings(&drive.flags())?.for_many();
    // servers start while the model is opened
    let (wired, opened) = std::thread::scope(|scope| {
        let hub = (!drive.no_mcp).then(|| scope.spawn(|| servers::open(root, cx)));
        (wire::open_for(cx, &settings, wants), hub.map(|hub| hub.join()))
    });
    let hub = match opened {
        Some(opened) => Some(opened.map_err(|_| Failure::internal("the MCP servers could not be opened"))??),
        None => None,
    };
    assemble(cx, drive, agent, options, site, (wired?.recipe, &settings, hub))
}

/// The folders and the store of an agent's runs, opened before the model.
pub struct Site {
    root: PathBuf,
    /// The folders besides the working directory that may be written.
    writable: Vec<PathBuf>,
    store: Arc<Store>,
}

impl Site {
    /// Opens the store, and checks the folders.
    ///
    /// # Errors
    /// If a folder that is to be written does not exist, or the store cannot be opened.
    pub fn open(cx: &Cx, drive: &Drive, root: &Path) -> Result<Self, Failure> {
        let mut store = store(cx)?;
        if store.is_read_only() {
            cx.ui.warn("the data folder cannot be written: the run is not kept");
            store = Store::in_memory().map_err(failure)?;
        }
        Ok(Self { root: root.to_owned(), writable: drive.writable(root)?, store: Arc::new(store) })
    }
}

/// Builds the harness from its opened parts: a recipe, the settings it was opened with, and MCP servers with the
/// secrets they are given.
///
/// # Errors
/// If there is no shell.
pub fn assemble(
    cx: &Cx,
    drive: &Drive,
    agent: &str,
    options: Options,
    site: Site,
    (mut recipe, settings, hub): (Recipe, &Settings, Option<(Hub, Vec<String>)>),
) -> Result<Harness, Failure> {
    let Site { root, writable, store } = site;
    let options = Options { fitting: settings.context, ..options };
    let root = root.as_path();
    let (hub, mcp_secrets) = hub.map_or((None, Vec::new()), |(hub, secrets)| (Some(hub), secrets));
    let spawns = |hub: &Hub| hub.tools(&|_| false).iter().any(|tool| tool.spec().name == subagent::SPAWN);
    if drive.subagents && hub.as_ref().is_some_and(spawns) {
        let name = subagent::SPAWN;
        cx.ui.warn(&format!(
            "`{name}` is this program's own tool: that of an MCP server has its server's name before it"
        ));
    }
    if drive.no_rag {
        recipe.documents = None;
    }
    let (program, dialect) = shell(&recipe.context)?;
    let keeper = undo::keeper(settings, cx, &program);
    let keys = [env::API_KEY, env::ANTHROPIC_KEY];
    let secrets = keys.into_iter().filter_map(|name| cx.env.get(name)?.to_str().map(str::to_owned));
    let url = settings.memory_url.clone().filter(|url| url.contains('@') || url.contains("pass="));
    let key = workspace_key(cx).and_then(|key| Some(key.split_once(':')?.1.to_owned()));
    let source = fetch::resolve(&settings.model, &download::settings(cx)?)?;
    let mut harness = Harness::new(harness::Setup {
        agent: agent.to_owned(),
        model_name: lasting_name(settings.model.clone(), &source),
        shell: Some(Shell::new(program, dialect).writable(writable)),
        keeper,
        manual: recipe.manual.clone().map(|manual| manuals(manual, &recipe.context)),
        workspaces: workspaces(cx, settings)?,
        // neither is opened before its first use
        librarian: stores::librarian(cx).filter(|l| !drive.no_rag && l.exists()).map(Arc::new),
        memory: stores::notes(cx, settings)?,
        skills: (!drive.no_skills).then(|| stores::searched_skills(root, cx)),
        suggester: suggester(drive.advise, agent, &recipe, settings, root)?,
        store: Some(store),
        secrets: secrets.chain(mcp_secrets).chain(url).chain(key).collect(),
        options,
        ..harness::Setup::new(recipe.model, root.to_owned())
    })?;
    if let Some(hub) = hub {
        harness.connect(hub);
    }
    Ok(harness)
}

/// Begins a run, and prints a note if it has to wait for another one.
///
/// # Errors
/// If it cannot be stored, or Ctrl-C ends the wait.
pub fn begin(run: &Prepared<'_>, turn: &AgentRun, cancel: &Cancel, cx: &Cx) -> Result<(), Failure> {
    let result = run.begin(turn, |other| cx.ui.note(&format!("waiting for {other} of this session to end")));
    match result {
        // the error says that the other run goes on, which the user knows
        Err(_) if cancel.is_cancelled() => Err(Failure::new(Exit::Interrupted, "stopped")),
        result => Ok(result?),
    }
}

/// Returns a name of the model that holds in any working directory; `None` if it would contain a secret.
fn lasting_name(spec: String, source: &ModelSource) -> Option<String> {
    let absolute = |path: &Path| std::path::absolute(path).ok()?.to_str().map(str::to_owned);
    let name = match source {
        ModelSource::Card(_) => Some(spec),
        ModelSource::File(path) => absolute(path),
        ModelSource::Script(path) => absolute(path).map(|path| format!("script:{path}")),
        // a secret is in `user:password@`, or in a key after `?`
        ModelSource::Anthropic { url: None, .. } => Some(spec),
        ModelSource::Remote { url, .. } | ModelSource::Anthropic { url: Some(url), .. } => {
            let holds_secret = url.contains(['@', '?']);
            if holds_secret { None } else { Some(spec) }
        }
    };
    name.filter(|spec| Redactor::default().text(spec) == *spec)
}

/// Returns the suggester of commands for parts that one command can do, if the settings want it.
fn suggester(
    when: Advise,
    agent: &str,
    recipe: &Recipe,
    settings: &Settings,
    root: &Path,
) -> Result<Option<Arc<dyn Suggester>>, Failure> {
    // a model on a server is larger, and a script has fixed replies
    let is_local = fetch::computes_here(&settings.model);
    // in a conversation most messages ask for no command
    let fits = is_local && agent != CHATTER;
    if when == Advise::Never || when == Advise::Auto && !fits {
        return Ok(None);
    }
    let (shell, dialect) = shell(&recipe.context)?;
    let place = ask::Place { cwd: root.to_owned(), target: recipe.context.target, dialect };
    Ok(Some(Arc::new(CommandSuggester { recipe: recipe.clone(), ask: ask::part(&place, settings), shell })))
}

/// Returns every tool of agents in a folder, for listing. Opens no model.
///
/// # Errors
/// If there is no shell, or two tools have the same name.
pub fn all_tools(cx: &Cx, root: &Path, hub: Option<&Hub>) -> Result<Registry, Failure> {
    let context = Arc::new(ExecutionContext::detect(cx.dirs.cache.as_deref()));
    let own = cx.dirs.data.as_ref().map_or_else(|| root.to_owned(), |data| data.join("workspace"));
    let (program, dialect) = shell(&context)?;
    let workspace = Arc::new(Workspace::open(own));
    let mut registry = tools::builtin(tools::Setup {
        shell: Some(Shell::new(program, dialect)),
        artifacts: Some(workspace.clone() as Arc<dyn Artifacts>),
        workspace: Some(workspace),
        manual: Some(manuals(wire::manual(cx), &context)),
        knowledge: stores::librarian(cx).filter(Librarian::exists).map(Arc::new),
        ..tools::Setup::default()
    })
    .map_err(HarnessError::from)?;
    if let Some(hub) = hub {
        harness::join(&mut registry, hub);
    }
    Ok(registry)
}

/// Returns the workspaces of this user's sessions; `None` if there is no folder for them. Connects to nothing.
///
/// # Errors
/// If this program was built without their backend, or its URL is missing.
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

/// The credentials for the bucket that they are in.
fn workspace_key(cx: &Cx) -> Option<String> {
    cx.env.get(env::WORKSPACE_KEY).and_then(|key| key.to_str()).map(str::to_owned)
}

/// Finds the shell that commands run in, starting with the language that models write best.
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

fn manuals(manual: Arc<Manual>, context: &Arc<ExecutionContext>) -> Arc<dyn ManualSource> {
    Arc::new(Manuals { manual, context: context.clone() })
}

/// The installed manuals, as the manual tool searches them.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stored_model_name_is_absolute_and_holds_no_secret() {
        let here = std::env::current_dir().unwrap();
        let script = lasting_name("script:a.json".into(), &ModelSource::Script("a.json".into()));
        assert_eq!(script.unwrap(), format!("script:{}", here.join("a.json").display()));
        let file = lasting_name("m.gguf".into(), &ModelSource::File("m.gguf".into()));
        assert_eq!(file.unwrap(), here.join("m.gguf").display().to_string());
        let remote = |url: &str| {
            let spec = format!("openai:{url}#qwen@3");
            lasting_name(spec.clone(), &ModelSource::Remote { url: url.into(), name: "qwen@3".into() })
                .map(|kept| kept == spec)
        };
        assert_eq!(remote("http://localhost:8080/v1"), Some(true));
        for secret in
            ["http://me:pw@h/v1", "https://token@h", "https://h/v1?key=abc", "https://h/sk-abcdefghijklmnop1234"]
        {
            assert_eq!(remote(secret), None, "{secret}");
        }
    }
}
