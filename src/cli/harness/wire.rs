//! Builds the harness out of what this person has: settings, folders, machine, manual, skills, servers of tools.

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

/// The store of this person's runs.
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

/// The same for who only looks: where nothing was ever kept there is nothing to see, and nothing is made.
///
/// # Errors
/// If it cannot be opened.
pub fn kept(cx: &Cx) -> Result<Store, Failure> {
    match &cx.dirs.data {
        // what cannot even be looked for is told by who opens it
        Some(data) if matches!(data.join(FILE).try_exists(), Ok(false)) => Store::in_memory().map_err(failure),
        _ => store(cx),
    }
}

/// The name of a session, as it was given or a new one; of a run's id it is said which session that run belongs to.
///
/// # Errors
/// If it cannot be one.
pub fn session(given: Option<&str>, cx: &Cx) -> Result<String, Failure> {
    session_name(given).map_err(|error| {
        let name = given.filter(|_| matches!(error, HarnessError::NamedAsRun(_)));
        let run = name.and_then(|name| store(cx).ok()?.run(name).ok());
        let failure = Failure::from(error);
        match run {
            Some(run) => failure.hint(format!("the run {} belongs to the session {}", run.id, run.session)),
            None => failure,
        }
    })
}

/// A store's error for a person.
pub fn failure(error: StoreError) -> Failure {
    let hint = error.hint();
    match error {
        StoreError::Missing { .. }
        | StoreError::Empty
        | StoreError::Ambiguous { .. }
        | StoreError::Busy(_)
        | StoreError::Locked(_)
        | StoreError::Occupied { .. } => Failure::usage(error).hint(hint),
        StoreError::Open { .. }
        | StoreError::Disk { .. }
        | StoreError::Newer(_)
        | StoreError::Damaged { .. }
        | StoreError::Sql(_) => Failure::internal(error).hint(hint),
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
            // a reader that went away ends it silently and well
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
    // what is wrong without a model is told before one is fetched
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

/// The place of an agent's runs, as it is looked at before there is a model.
pub struct Site {
    root: PathBuf,
    /// Folders beside the working one that may be written.
    writable: Vec<PathBuf>,
    store: Arc<Store>,
}

impl Site {
    /// Opens it.
    ///
    /// # Errors
    /// If a folder that is to be written is not there, or there is no store.
    pub fn open(cx: &Cx, drive: &Drive, root: &Path) -> Result<Self, Failure> {
        Ok(Self { root: root.to_owned(), writable: drive.writable(root)?, store: Arc::new(store(cx)?) })
    }
}

/// Puts together what was opened: a recipe, the settings it was opened under, and servers of tools with what they are given in
/// secret.
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
    recipe.documents = recipe.documents.filter(|_| !drive.no_rag);
    let (program, dialect) = shell(&recipe.context)?;
    let keeper = undo::keeper(settings, cx, &program);
    let keys = [env::API_KEY, env::ANTHROPIC_KEY];
    let secrets = keys.into_iter().filter_map(|name| cx.env.get(name)?.to_str().map(str::to_owned));
    let url = settings.memory_url.clone().filter(|url| url.contains('@') || url.contains("pass="));
    let key = workspace_key(cx).and_then(|key| Some(key.split_once(':')?.1.to_owned()));
    let mut harness = Harness::new(harness::Setup {
        agent: agent.to_owned(),
        shell: Some(Shell::new(program, dialect).writable(writable).keeping(keeper)),
        manual: recipe.manual.clone().map(|manual| manuals(manual, &recipe.context)),
        workspaces: workspaces(cx, settings)?,
        // neither is opened before it is asked for
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

/// Begins a run, and tells the person if it has to wait for another one.
///
/// # Errors
/// If it cannot be written down, or Ctrl-C ends the wait.
pub fn begin(run: &Prepared<'_>, turn: &AgentRun, cancel: &Cancel, cx: &Cx) -> Result<(), Failure> {
    let begun = run.begin(turn, |other| cx.ui.note(&format!("waiting for {other} of this session to end")));
    match begun {
        // that the other one is still there is no news
        Err(_) if cancel.is_cancelled() => Err(Failure::new(Exit::Interrupted, "stopped")),
        begun => Ok(begun?),
    }
}

/// Keeps which model a run is driven with: [`resume`](crate::verbs::agent::resume) asks the same one.
///
/// # Errors
/// If it cannot be written down.
pub fn keep_model(harness: &Harness, run: &str, drive: &Drive, cx: &Cx) -> Result<(), Failure> {
    let spec = cx.settings(&drive.flags())?.model;
    let source = fetch::resolve(&spec, &download::settings(cx)?)?;
    let Some(spec) = lasting(spec, &source) else { return Ok(()) };
    harness.events().keep_model(run, &spec).map_err(failure)
}

/// What names a model wherever one stands later; nothing where a secret is in it.
fn lasting(spec: String, source: &ModelSource) -> Option<String> {
    let whole = |path: &Path| std::path::absolute(path).ok()?.to_str().map(str::to_owned);
    let named = match source {
        ModelSource::Card(_) => Some(spec),
        ModelSource::File(path) => whole(path),
        ModelSource::Script(path) => whole(path).map(|path| format!("script:{path}")),
        // `user:password@`, or a key behind a `?`
        ModelSource::Anthropic { url: None, .. } => Some(spec),
        ModelSource::Remote { url, .. } | ModelSource::Anthropic { url: Some(url), .. } => {
            let holds_secret = url.contains(['@', '?']);
            if holds_secret { None } else { Some(spec) }
        }
    };
    named.filter(|spec| Redactor::default().text(spec) == *spec)
}

/// Who gives advice on a part that one command can do, if anybody does.
fn suggester(
    when: Advise,
    agent: &str,
    recipe: &Recipe,
    settings: &Settings,
    root: &Path,
) -> Result<Option<Arc<dyn Suggester>>, Failure> {
    // a server's model is larger, and a script has its replies
    let is_local = fetch::computes_here(&settings.model);
    // in a conversation most words are no commands
    let fits = is_local && agent != CHATTER;
    if when == Advise::Never || when == Advise::Auto && !fits {
        return Ok(None);
    }
    let (shell, dialect) = shell(&recipe.context)?;
    let place = ask::Place { cwd: root.to_owned(), target: recipe.context.target, dialect };
    Ok(Some(Arc::new(CommandSuggester { recipe: recipe.clone(), ask: ask::part(&place, settings), shell })))
}

/// Every tool there is in a folder, for who wants to see them. Asks no model.
///
/// # Errors
/// If there is no shell, or two tools have one name.
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
    })
    .map_err(HarnessError::from)?;
    if let Some(hub) = hub {
        harness::join(&mut registry, hub);
    }
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

fn manuals(manual: Arc<Manual>, context: &Arc<ExecutionContext>) -> Arc<dyn ManualSource> {
    Arc::new(Manuals { manual, context: context.clone() })
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_is_kept_by_a_name_that_lasts_and_holds_no_secret() {
        let here = std::env::current_dir().unwrap();
        let script = lasting("script:a.json".into(), &ModelSource::Script("a.json".into()));
        assert_eq!(script.unwrap(), format!("script:{}", here.join("a.json").display()));
        let file = lasting("m.gguf".into(), &ModelSource::File("m.gguf".into()));
        assert_eq!(file.unwrap(), here.join("m.gguf").display().to_string());
        let remote = |url: &str| {
            let spec = format!("openai:{url}#qwen@3");
            lasting(spec.clone(), &ModelSource::Remote { url: url.into(), name: "qwen@3".into() })
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
