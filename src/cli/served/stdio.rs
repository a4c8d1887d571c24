//! `caro mcp serve`: one client of the Model Context Protocol over standard input and output. The protocol is
//! [`caro_serve::mcp`]; here it is wired, and signals are heard. The model is opened with the first call that needs it:
//! an editor that starts this with every window is not kept waiting, and checks need no model at all.

use super::begin;
use super::commands::{Recipes, Source, problem};
use crate::harness::{Drive, servers, wire as agent};
use crate::setup::config;
use crate::setup::settings::Settings;
use crate::setup::wire::{self, Wants, Wired};
use crate::{Cx, Exit, Failure, Outcome};
use caro_agent::Harness;
use caro_agent::event::Sink;
use caro_agent::harness::Watch;
use caro_agent::turn::Report;
use caro_host::ExecutionContext;
use caro_model::Cancel;
use caro_serve::http::queue::{ANSWERS, Places, RUNS, WAITING};
use caro_serve::http::runs::{RunOrder, conducted};
use caro_serve::http::toolbox::{Means, Tools};
use caro_serve::http::{Commands, Problem, settings};
use caro_serve::mcp::stdio::{self, End, Out, Said};
use caro_serve::mcp::tools::Offer;
use caro_serve::mcp::{Session, Toolbox};
use futures::future::BoxFuture;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::sync::oneshot;

/// The time that is left for what is still to be written, once the process was told to end.
const MOMENT: Duration = Duration::from_secs(1);

/// Be an MCP server on standard input and output
///
/// An MCP client starts this by itself. What it wants in its configuration:
///
///   {"mcpServers": {"caro": {"command": "caro", "args": ["mcp", "serve"]}}}
///
/// Its tools: generate_command, check_command, explain_command, search_manual; with --allow-agent also run_agent, which works
/// in the folder in which the client starts it. The same tools over HTTP: /mcp of `caro serve`.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub struct Args {
    /// Offer runs of the agent too; nobody is there to be asked, so what would be asked for is denied
    #[arg(long)]
    allow_agent: bool,
    /// Model: an id of `caro model list`, a GGUF file, openai:URL#NAME, anthropic:NAME, script:FILE
    #[arg(long, value_name = "SPEC")]
    model: Option<String>,
    /// Start no MCP servers for runs
    #[arg(long, requires = "allow_agent")]
    no_mcp: bool,
}

/// The recipe, and the harness where runs are allowed.
struct Opened {
    wired: Arc<Wired>,
    harness: Option<Arc<Harness>>,
}

/// Takes the answer to who wants what is opened.
type Reply = oneshot::Sender<Result<Arc<Opened>, Problem>>;

/// Has it opened, and waits for it.
#[derive(Clone)]
struct Opener(Sender<Option<Reply>>);

impl Opener {
    async fn opened(&self) -> Result<Arc<Opened>, Problem> {
        let (reply, opened) = oneshot::channel();
        let gone = || Problem::draining();
        self.0.send(Some(reply)).map_err(|_| gone())?;
        opened.await.map_err(|_| gone())?
    }
}

impl Source for Opener {
    fn wired(&self) -> BoxFuture<'_, Result<Arc<Wired>, Problem>> {
        Box::pin(async { Ok(self.opened().await?.wired.clone()) })
    }
}

/// The tools, done in this process.
struct Local {
    commands: Arc<Recipes>,
    opener: Opener,
    limit: Option<Duration>,
    answers: Arc<Places>,
    runs: Arc<Places>,
}

impl Local {
    async fn conducted(&self, order: RunOrder, cancel: Cancel, sink: Arc<dyn Sink>) -> Result<Report, Problem> {
        let opened = self.opener.opened().await?;
        let harness = opened.harness.as_ref().ok_or_else(|| {
            Problem::forbidden("runs of the agent are not allowed").detail("`caro mcp serve --allow-agent` allows them")
        })?;
        let task = order.task(harness)?;
        let cancel = self.limit.map_or(cancel.clone(), |limit| cancel.with_deadline(Instant::now() + limit));
        conducted(harness, task, Watch { cancel, sinks: vec![sink], ..Watch::default() }, self.limit).await
    }
}

impl Means for Local {
    fn commands(&self) -> Result<Arc<dyn Commands>, Problem> {
        Ok(self.commands.clone())
    }

    fn run(&self, order: RunOrder, cancel: Cancel, sink: Arc<dyn Sink>) -> BoxFuture<'_, Result<Report, Problem>> {
        Box::pin(self.conducted(order, cancel, sink))
    }

    fn places(&self) -> (&Arc<Places>, &Arc<Places>) {
        (&self.answers, &self.runs)
    }
}

/// Serves until the input ends.
///
/// # Errors
/// If a setting is wrong, or the system gives no threads.
pub fn run(args: &Args, root: &Path, cx: &Cx) -> Outcome {
    let config = cx.config(&config::given(&[("model", &args.model)]))?;
    let (settings, limit) = (Settings::of(&config)?.for_many(), config.parse("serve.timeout", settings::timeout)?);
    let root = root.canonicalize().unwrap_or_else(|_| root.to_owned());
    if cx.ui.can_ask() {
        cx.ui.note("this speaks the Model Context Protocol on standard input and output, for a program that starts it");
        cx.ui.note("`caro mcp serve --help` shows what such a program wants in its configuration; Ctrl-D ends this");
    }
    let (runtime, stop, listens, phase) = begin(cx)?;
    let (send, orders) = channel();
    let (opener, last) = (Opener(send.clone()), send);
    let context = Arc::new(ExecutionContext::detect(cx.dirs.cache.as_deref()));
    let commands = Recipes::with(context, wire::manual(cx), settings.clone(), Box::new(opener.clone()));
    let means = Local {
        commands: Arc::new(commands),
        opener,
        limit,
        answers: Places::new(ANSWERS, WAITING),
        runs: Places::new(RUNS, WAITING),
    };
    let toolbox: Arc<dyn Toolbox> = Arc::new(Tools { means, client: String::new() });
    let (incoming, lines) = stdio::lines();
    // it may wait for input for ever, and ends with the process
    std::thread::Builder::new()
        .name("input".into())
        .spawn(move || stdio::read(&mut io::stdin().lock(), &incoming))
        .map_err(|e| Failure::internal(format!("no thread: {e}")))?;
    let (out, said) = Out::new();
    std::thread::scope(|scope| {
        scope.spawn(move || write(said, cx));
        scope.spawn(|| opens(orders, || open(args, &settings, &root, cx)));
        let end = runtime.block_on(async {
            let listens = tokio::spawn(listens);
            let session = Session::new(Offer { agent: args.allow_agent });
            let end = stdio::serve(session, toolbox, lines, out, stop).await;
            listens.abort();
            end
        });
        if end == End::Told {
            // who listens for Ctrl-C may hear that signal only now, and would take it for another one
            std::mem::forget(phase);
            leave_soon();
        } else {
            drop(phase);
        }
        // a download that is under way
        cx.interrupt().cancel().cancel();
        let _ = last.send(None);
    });
    crate::wind_up(runtime);
    caro_exec::kill_all();
    Ok(Exit::Success)
}

/// Writes what is to be said, a message a line. Standard output is for nothing else.
fn write(mut said: UnboundedReceiver<Said>, cx: &Cx) {
    while let Some(message) = said.blocking_recv() {
        if cx.ui.data(&message.text).is_err() {
            // nobody reads any more: the channel closes, which ends the server
            return;
        }
    }
}

/// Ends the process in a moment, if nothing else does before: a client that does not read holds up who writes.
fn leave_soon() {
    // without a thread the next signal does it
    let _ = std::thread::Builder::new().name("leave".into()).spawn(|| {
        std::thread::sleep(MOMENT);
        caro_exec::kill_all();
        std::process::exit(Exit::Success.code().into())
    });
}

/// Opens with the first order, and again where that failed: what was missing may be there by then.
fn opens(orders: Receiver<Option<Reply>>, open: impl Fn() -> Result<Opened, Failure>) {
    let mut opened: Option<Arc<Opened>> = None;
    for reply in orders.into_iter().map_while(|order| order) {
        let now = match &opened {
            Some(opened) => Ok(opened.clone()),
            None => open().map(Arc::new).map_err(problem),
        };
        opened = now.as_ref().ok().cloned();
        // whoever asked may have gone
        let _ = reply.send(now);
    }
}

fn open(args: &Args, settings: &Settings, root: &Path, cx: &Cx) -> Result<Opened, Failure> {
    let wired = Arc::new(wire::open_for(cx, settings, Wants::Answers)?);
    let harness = args.allow_agent.then(|| {
        let drive = Drive::plain(args.model.clone(), false, Vec::new());
        let site = agent::Site::open(cx, &drive, root)?;
        let hub = if args.no_mcp { None } else { Some(servers::open(root, cx)?) };
        agent::assemble(cx, &drive, "agent", drive.options(), site, (wired.recipe.clone(), settings, hub))
    });
    Ok(Opened { wired, harness: harness.transpose()?.map(Arc::new) })
}
