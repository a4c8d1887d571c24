//! `caro mcp serve`: serves one client of the Model Context Protocol over standard input and output.
//! [`caro_serve::mcp`] implements the protocol; here it is wired, and signals are handled. The model is opened by the
//! first call that needs it: an editor that starts this with every window need not wait, and checks need no model at
//! all.

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
use caro_serve::http::queue::{MAX_ANSWERS, MAX_RUNS, MAX_WAITING, Places};
use caro_serve::http::runs::{RunOrder, conduct};
use caro_serve::http::toolbox::{Means, Tools};
use caro_serve::http::{Commands, Problem, settings};
use caro_serve::mcp::stdio::{self, End, Out, Outgoing};
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

/// Most time to write remaining messages once a signal ends the process.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(1);

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

/// The recipe, and the harness if runs are allowed.
struct Opened {
    wired: Arc<Wired>,
    harness: Option<Arc<Harness>>,
}

/// The sender of the reply to an order to open them.
type Reply = oneshot::Sender<Result<Arc<Opened>, Problem>>;

/// Orders recipe and harness to be opened, and waits for them. The channel ends with `None`.
#[derive(Clone)]
struct Opener(Sender<Option<Reply>>);

impl Opener {
    async fn open(&self) -> Result<Arc<Opened>, Problem> {
        let (reply, opened) = oneshot::channel();
        self.0.send(Some(reply)).map_err(|_| Problem::draining())?;
        opened.await.map_err(|_| Problem::draining())?
    }
}

impl Source for Opener {
    fn wired(&self) -> BoxFuture<'_, Result<Arc<Wired>, Problem>> {
        Box::pin(async { Ok(self.open().await?.wired.clone()) })
    }
}

/// Runs the tools in this process.
struct Local {
    commands: Arc<Recipes>,
    opener: Opener,
    limit: Option<Duration>,
    answers: Arc<Places>,
    runs: Arc<Places>,
}

impl Local {
    async fn conduct(&self, order: RunOrder, cancel: Cancel, sink: Arc<dyn Sink>) -> Result<Report, Problem> {
        let opened = self.opener.open().await?;
        let harness = opened.harness.as_ref().ok_or_else(|| {
            Problem::forbidden("runs of the agent are not allowed").detail("`caro mcp serve --allow-agent` allows them")
        })?;
        let task = order.task(harness)?;
        let cancel = self.limit.map_or(cancel.clone(), |limit| cancel.with_deadline(Instant::now() + limit));
        conduct(harness, task, Watch { cancel, sinks: vec![sink], ..Watch::default() }, self.limit).await
    }
}

impl Means for Local {
    fn commands(&self) -> Result<Arc<dyn Commands>, Problem> {
        Ok(self.commands.clone())
    }

    fn run(&self, order: RunOrder, cancel: Cancel, sink: Arc<dyn Sink>) -> BoxFuture<'_, Result<Report, Problem>> {
        Box::pin(self.conduct(order, cancel, sink))
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
    let (runtime, stop, listener, phase) = begin(cx)?;
    let (send, orders) = channel();
    let opener = Opener(send.clone());
    let context = Arc::new(ExecutionContext::detect(cx.dirs.cache.as_deref()));
    let commands = Recipes::with(context, wire::manual(cx), settings.clone(), Box::new(opener.clone()));
    let means = Local {
        commands: Arc::new(commands),
        opener,
        limit,
        answers: Places::new(MAX_ANSWERS, MAX_WAITING),
        runs: Places::new(MAX_RUNS, MAX_WAITING),
    };
    let toolbox: Arc<dyn Toolbox> = Arc::new(Tools { means, client: String::new() });
    let (incoming, lines) = stdio::lines();
    // this thread may wait for input for ever, and ends with the process
    std::thread::Builder::new()
        .name("input".into())
        .spawn(move || stdio::read(&mut io::stdin().lock(), &incoming))
        .map_err(|e| Failure::internal(format!("no thread: {e}")))?;
    let (out, said) = Out::new();
    std::thread::scope(|scope| {
        scope.spawn(move || write(said, cx));
        scope.spawn(|| open_on_order(orders, || open(args, &settings, &root, cx)));
        let end = runtime.block_on(async {
            let listener = tokio::spawn(listener);
            let session = Session::new(Offer { agent: args.allow_agent });
            let end = stdio::serve(session, toolbox, lines, out, stop).await;
            listener.abort();
            end
        });
        if end == End::Stopped {
            // the phase stays: the Ctrl-C listener may receive that signal only now, and would take it for a second one
            std::mem::forget(phase);
            exit_after_timeout();
        } else {
            drop(phase);
        }
        // stops a download in progress
        cx.interrupt().cancel().cancel();
        let _ = send.send(None);
    });
    crate::wind_up(runtime);
    caro_exec::kill_all();
    Ok(Exit::Success)
}

/// Writes the messages to the client, one a line. Nothing else is written to standard output.
fn write(mut said: UnboundedReceiver<Outgoing>, cx: &Cx) {
    while let Some(message) = said.blocking_recv() {
        if cx.ui.data(&message.text).is_err() {
            // the client has closed the pipe: dropping the channel ends the server
            return;
        }
    }
}

/// Ends the process after a timeout, if it has not ended before: a client that does not read blocks the writer.
fn exit_after_timeout() {
    // without the thread the next signal ends the process
    let _ = std::thread::Builder::new().name("leave".into()).spawn(|| {
        std::thread::sleep(FLUSH_TIMEOUT);
        caro_exec::kill_all();
        std::process::exit(Exit::Success.code().into())
    });
}

/// Opens on the first order, and again on later ones if that failed: the cause may be gone by then.
fn open_on_order(orders: Receiver<Option<Reply>>, open: impl Fn() -> Result<Opened, Failure>) {
    let mut opened: Option<Arc<Opened>> = None;
    for reply in orders.into_iter().map_while(|order| order) {
        let result = match &opened {
            Some(opened) => Ok(opened.clone()),
            None => open().map(Arc::new).map_err(problem),
        };
        opened = result.as_ref().ok().cloned();
        // the caller may have gone
        let _ = reply.send(result);
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
