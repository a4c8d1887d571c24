//! `caro serve`: serves the model, the command recipe and the agent over HTTP. The server itself is
//! [`caro_serve::http`]; here it is assembled, its log is printed, and signals are handled.
//!
//! `service`: files for service managers. The `served` module has what this verb shares with `caro mcp serve`, which
//! answers one client of the Model Context Protocol over standard streams.

mod service;

use crate::harness::{Drive, servers, wire as agent};
use crate::served::begin;
use crate::served::commands::Recipes;
use crate::setup::settings::{self, Settings};
use crate::setup::wire::{self, Wants};
use crate::setup::{config, download, stores};
use crate::term::ui;
use crate::{Cx, Exit, Failure, Outcome};
use caro_inference::generate;
use caro_model::fetch::{self, ModelSource};
use caro_model::{Cancel, Flow, Model, Prompt, Request, Role, Sampling, Shape};
use caro_serve::http::embedding::Embedding;
use caro_serve::http::lifecycle::Event;
use caro_serve::http::listen::{Listener, serve};
use caro_serve::http::queue::MAX_ANSWERS;
use caro_serve::http::token::{FILE, TokenError};
use caro_serve::http::{Engine, Log, Parts, Server, Token};
use caro_serve::mcp::tools::Offer;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

/// Most lines of the log that wait to be printed. If a slow terminal leaves this many waiting, further ones are
/// dropped.
const MAX_WAITING_LINES: usize = 1024;

/// Answer other programs of this machine over HTTP: commands, checks and runs of the agent
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Args {
    #[command(subcommand)]
    what: Option<What>,
    /// Address to listen at [default: 127.0.0.1]
    #[arg(long, value_name = "ADDRESS")]
    host: Option<String>,
    /// Port; 0 for one that is free [default: 8000]
    #[arg(long, value_name = "N")]
    port: Option<String>,
    /// Listen at a socket file of yours instead of a port
    #[arg(long, value_name = "PATH", value_hint = clap::ValueHint::FilePath, conflicts_with_all = ["host", "port"])]
    socket: Option<PathBuf>,
    /// Seconds that an answer may take, 0 or less for any time [default: 300]
    #[arg(long, value_name = "SECONDS", allow_negative_numbers = true)]
    timeout: Option<String>,
    /// Origins of web pages that may ask, between commas [default: none]
    #[arg(long, value_name = "ORIGINS")]
    cors_origins: Option<String>,
    /// How often one client may ask: off, on (100 a minute), N, N/SECONDS [default: off]
    #[arg(long, value_name = "RATE")]
    rate_limit: Option<String>,
    /// Model: an id of `caro model list`, a GGUF file, openai:URL#NAME, anthropic:NAME, script:FILE
    #[arg(long, value_name = "SPEC")]
    model: Option<String>,
    /// Start no MCP servers
    #[arg(long)]
    no_mcp: bool,
    /// Offer runs of the agent to MCP clients (/mcp) too; what would be asked for is denied in them
    #[arg(long)]
    allow_agent: bool,
    /// Print a file for a service manager that starts this, and end
    #[arg(long, value_name = "KIND", value_enum)]
    print_service: Option<service::Kind>,
}

#[derive(Debug, clap::Subcommand)]
enum What {
    /// Print the token that requests need, made if there is none
    Token,
}

impl Args {
    /// The flags that override settings.
    fn flags(&self) -> Vec<(&'static str, String)> {
        config::given(&[
            ("serve.host", &self.host),
            ("serve.port", &self.port),
            ("serve.timeout", &self.timeout),
            ("serve.cors_origins", &self.cors_origins),
            ("serve.rate_limit", &self.rate_limit),
            ("model", &self.model),
        ])
    }
}

impl From<TokenError> for Failure {
    fn from(error: TokenError) -> Self {
        let hint = error.hint();
        Self::internal(error).hint(hint)
    }
}

/// Serves until it is stopped.
///
/// # Errors
/// If a setting is wrong, the address is taken, or there is no model.
pub fn run(args: &Args, cx: &Cx) -> Outcome {
    if let Some(What::Token) = args.what {
        let data = cx.dirs.data.as_ref().ok_or_else(stores::no_home)?;
        cx.ui.data(Token::of_file(&data.join(FILE))?.text())?;
        return Ok(Exit::Success);
    }
    let config = cx.config(&args.flags())?;
    let (settings, serving) = (Settings::of(&config)?, settings::serve(&config)?);
    if let Some(kind) = args.print_service {
        return service::print(kind, args, &config, cx);
    }
    // before the address is printed, which a supervisor takes for the sign that the server has started
    fetch::resolve(&settings.model, &download::settings(cx)?)?;
    let root = cx.folder()?;
    let root = root.canonicalize().unwrap_or(root);
    let token = match &cx.dirs.data {
        Some(data) => Token::of_file(&data.join(FILE))?,
        None => {
            cx.ui.warn("this user has no home folder: the token holds until the server ends");
            Token::random()?
        }
    };
    let (runtime, stop, listens, _phase) = begin(cx)?;
    let listener = {
        let _entered = runtime.enter();
        match &args.socket {
            Some(path) => listen_at_socket(path)?,
            None => runtime.block_on(Listener::tcp(&serving.host, serving.port)).map_err(|e| {
                Failure::usage(format!("nothing can listen at {} port {}: {e}", serving.host, serving.port)).hint(
                    "--port 0 takes a port that is free; `caro config --origin` shows where the setting comes from",
                )
            })?,
        }
    };
    let (send, lines) = sync_channel(MAX_WAITING_LINES);
    let end_of_log = send.clone();
    let offer = Offer { agent: args.allow_agent };
    let parts = Parts { agent: "agent".into(), settings: serving, token: token.clone(), offer, log: log(cx, send) };
    let server = Server::new(parts, listener.address());
    announce(&listener, args, &token, cx)?;
    let opened = std::thread::scope(|scope| {
        scope.spawn(move || print(lines, cx));
        let opener = scope.spawn(|| {
            let opening = Opening(&server);
            open(&server, args, settings, &root, &runtime, cx).inspect(|()| std::mem::forget(opening))
        });
        runtime.block_on(async {
            let listens = tokio::spawn(listens);
            serve(server.clone(), listener, stop).await;
            listens.abort();
        });
        // stops a download that is under way
        cx.interrupt().cancel().cancel();
        let opened = opener.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        // ends the printing, even if something still holds a sender of the log
        let _ = end_of_log.send(None);
        opened
    });
    crate::wind_up(runtime);
    caro_exec::kill_all();
    match opened {
        // it is no failure to be stopped while starting
        Err(why) if why.exit != Exit::Interrupted => Err(why),
        _ => Ok(Exit::Success),
    }
}

#[cfg(unix)]
fn listen_at_socket(path: &Path) -> Result<Listener, Failure> {
    Listener::local(path).map_err(|e| {
        let hint = match e.kind() {
            std::io::ErrorKind::AddrInUse => "somebody listens there, or it is not a socket: name another file",
            _ => "check that its folder is there and can be written",
        };
        Failure::usage(format!("nothing can listen at {}: {e}", path.display())).hint(hint)
    })
}

#[cfg(not(unix))]
fn listen_at_socket(_: &Path) -> Result<Listener, Failure> {
    Err(Failure::usage("this system has no socket files").hint("leave out --socket"))
}

/// Prints the address to standard output, where programs read it. The token is printed only at a terminal, because
/// others may read the log of a service manager.
fn announce(listener: &Listener, args: &Args, token: &Token, cx: &Cx) -> Result<(), Failure> {
    if let Some(path) = &args.socket {
        cx.ui.data(&path.display().to_string())?;
        return Ok(());
    }
    let Some(address) = listener.address() else { return Ok(()) };
    cx.ui.data(&format!("http://{address}"))?;
    if !address.ip().is_loopback() {
        cx.ui.warn("whoever reaches this machine can ask; what they send, the token too, can be read on the way");
    }
    if cx.ui.can_ask() {
        cx.ui.note(&format!("a page to ask with: http://{address}/#token={}", token.text()));
        cx.ui.note("Ctrl-C ends it, a second one at once");
    } else {
        cx.ui.note("requests need a token: `caro serve token` prints it");
    }
    Ok(())
}

/// The function that logs a request; `None` with `--quiet`.
fn log(cx: &Cx, lines: SyncSender<Option<String>>) -> Option<Log> {
    cx.ui.is_talkative().then(|| -> Log {
        Arc::new(move |line: &str| {
            // a terminal that is too slow must not stop a request
            let _ = lines.try_send(Some(line.to_owned()));
        })
    })
}

fn print(lines: Receiver<Option<String>>, cx: &Cx) {
    for line in lines.into_iter().map_while(|line| line) {
        cx.ui.note(&ui::in_line(&line));
    }
}

/// Guards the opening of the engine. If that ends early, by an error or a panic, the server is stopped instead of
/// waiting for ever to become ready.
struct Opening<'a>(&'a Server);

impl Drop for Opening<'_> {
    fn drop(&mut self) {
        self.0.apply(Event::Stop);
    }
}

/// Opens the agent, the model and the recipe, and reports each stage to the server.
fn open(
    server: &Arc<Server>,
    args: &Args,
    settings: Settings,
    root: &Path,
    runtime: &tokio::runtime::Runtime,
    cx: &Cx,
) -> Result<(), Failure> {
    let drive = Drive::plain(args.model.clone(), false, Vec::new());
    let site = agent::Site::open(cx, &drive, root)?;
    let hub = if args.no_mcp { None } else { Some(servers::open(root, cx)?) };
    server.apply(Event::Done);
    let folders = download::settings(cx)?;
    let names = names(&settings.model, &folders);
    let wired = wire::open_for(cx, &settings, Wants::Many(MAX_ANSWERS))?;
    // this process serves others, and uses a resident only if the settings insist on it
    let settings = settings.for_many();
    load(&wired.recipe.model, &settings, runtime)?;
    let recipe = wired.recipe.clone();
    let harness = agent::assemble(cx, &drive, "agent", drive.options(), site, (recipe, &settings, hub))?;
    let engine = Engine {
        model: wired.recipe.model.clone(),
        names,
        embedding: Embedding::new(Box::new(move || stores::embedder_of(&folders))),
        commands: Arc::new(Recipes::new(wired, settings)),
        harness: Arc::new(harness),
    };
    server.set_engine(engine);
    server.apply(Event::Done);
    // tasks in the background wait for the server to be ready
    server.apply(Event::Done);
    Ok(())
}

/// The names that clients may use for a model: that of the settings, of its card and of its files.
fn names(model: &str, folders: &fetch::Settings) -> Vec<String> {
    let mut names = vec![model.to_owned()];
    let files: Vec<PathBuf> = match fetch::resolve(model, folders) {
        Ok(ModelSource::Card(card)) => {
            names.push(card.name.clone());
            card.files.iter().map(|file| PathBuf::from(&file.name)).collect()
        }
        Ok(ModelSource::File(file) | ModelSource::Script(file)) => vec![file],
        Ok(ModelSource::Remote { name, .. } | ModelSource::Anthropic { name, .. }) => {
            names.push(name);
            Vec::new()
        }
        // opening the model reports what is wrong
        Err(_) => Vec::new(),
    };
    let parts = files.iter().flat_map(|file| [file.file_name(), file.file_stem()]).flatten();
    names.extend(parts.map(|part| part.to_string_lossy().into_owned()));
    names
}

/// Loads the weights by a first call to the engine. A script or a model elsewhere has nothing to load here.
fn load(model: &Arc<dyn Model>, settings: &Settings, runtime: &tokio::runtime::Runtime) -> Result<(), Failure> {
    if !fetch::computes_here(&settings.model) {
        return Ok(());
    }
    let mut prompt = Prompt::default();
    prompt.push(Role::User, "ls");
    let request = Request {
        prompt,
        shape: Shape::Text { stop: Vec::new() },
        sampling: Sampling::GREEDY,
        max_tokens: 1,
        cancel: Cancel::new(),
    };
    // `generate` needs the runtime as soon as it is called, to start a thread
    runtime.block_on(async { generate(model.clone(), request, |_| Flow::Continue).await })?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::parsed;

    /// A value that a setting may have is accepted from its flag, too.
    #[test]
    fn a_flag_takes_what_its_setting_takes() {
        for value in ["0", "-1", "2.5"] {
            let args: Args = parsed(["--timeout", value]).unwrap();
            assert_eq!(args.flags(), [("serve.timeout", value.to_owned())]);
            assert!(caro_serve::http::settings::timeout(value).is_ok(), "{value}");
        }
    }
}
