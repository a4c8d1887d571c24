//! Arguments, terminal, one file a verb. Nobody imports this module, and no other module prints.
//!
//! - [`args`]: what can be typed. [`config`]: what it is layered over; [`configure`]: changes to its files. [`mod@env`]: every variable that is read.
//! - [`given`]: a command that a verb is to look at. [`edit`], [`piped`], [`history`]: lines that are typed, that come from
//!   a pipe, that were typed before; [`request_log`]: what was asked for, where that is kept. [`repair`]: what was saved of a damaged file.
//! - [`stdin`]: data on standard input, beside a request.
//! - [`ui`]: the only writer to the terminal. [`failure`]: errors and exit codes.
//! - [`doctor`]: what works here, a file a group of checks.
//! - [`download`]: what fetching a model needs from this process. [`recommend`]: which model suits this machine.
//! - [`resident`]: this program as the resident process, and what a call wants of one. [`first`]: why a first call takes
//!   long.
//! - [`help`]: topics out of our papers, and manual pages. [`uninstall`]: everything of ours, taken away.
//! - [`followup`]: the keys after an answer at a terminal. [`asker`]: further answers for who has one.
//! - [`serve`]: the verb of the HTTP server. [`agent`]: the verbs around a run of several steps. [`project`]: where a project keeps what is for agents.
//! - [`policy`]: the files of rules that stand beside the built-in verdict.
//! - [`undo`]: the verb, and what happens around a run of `-x` so that it has something to undo.
//! - [`wire`]: builds the recipe out of model, machine and manual. [`unfetched`]: a model that is not here, and only
//!   measures. [`interrupt`]: Ctrl-C. [`keys`]: what gives up while a shell's line editor waits.
//!
//! **A verb** is a file with `pub struct Args` (clap) and `pub fn run(args: &Args, cx: &Cx) -> Outcome`. It plugs in with
//! its `pub mod`, its variant of [`args::Verb`] and its arm in [`dispatch`]. It prints through `cx.ui`, finds its folders
//! in `cx.dirs`, its settings through `cx.settings(..)`, and an async part runs in `cx.runtime()?.block_on(..)`.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used))]

pub mod adapter;
pub mod agent;
pub mod args;
pub mod artifacts;
pub mod asker;
pub mod batch;
pub mod bench;
pub mod chat;
pub mod check;
pub mod completions;
pub mod config;
pub mod configure;
pub mod context;
pub mod dirs;
pub mod doctor;
pub mod download;
pub mod edit;
pub mod env;
pub mod eval;
pub mod execute;
pub mod explain;
pub mod failure;
pub mod first;
pub mod fix;
pub mod followup;
pub mod forge;
pub mod given;
pub mod help;
pub mod history;
pub mod init;
pub mod interrupt;
pub mod keys;
pub mod knowledge;
pub mod manual;
pub mod mcp;
pub mod memory;
pub mod model;
pub mod perpetual;
pub mod piped;
pub mod policy;
pub mod present;
pub mod project;
pub mod recommend;
pub mod rehearsal;
pub mod repair;
pub mod request;
pub mod request_log;
pub mod resident;
pub mod revise;
pub mod serve;
pub mod settings;
pub mod skills;
pub mod spinner;
pub mod status;
pub mod stdin;
pub mod stop;
pub mod task;
pub mod tldr;
pub mod tools;
pub mod ui;
#[cfg(unix)]
pub mod undo;
#[cfg(not(unix))]
#[path = "undo/elsewhere.rs"]
pub mod undo;
pub mod unfetched;
pub mod uninstall;
pub mod version;
pub mod wire;
pub mod workspace;

pub use config::Config;
pub use dirs::Dirs;
pub use env::Env;
pub use failure::{Exit, Failure, Outcome};
pub use interrupt::Interrupt;
pub use settings::Settings;
pub use ui::Ui;

use args::{Cli, Verb};
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// What every verb is given.
#[derive(Debug)]
pub struct Cx {
    /// The terminal.
    pub ui: Ui,
    /// The variables caro reads.
    pub env: Env,
    /// Where files live.
    pub dirs: Dirs,
    /// The working directory, unless it is gone.
    pub cwd: Option<PathBuf>,
    /// When the program started.
    pub started: Instant,
    interrupt: OnceLock<Interrupt>,
    /// What was told of the files of settings.
    told: OnceLock<()>,
}

impl Cx {
    /// The layers of configuration, `flags` on top. What is odd about their files is told once.
    ///
    /// # Errors
    /// If a file or a variable holds what no setting can be.
    pub fn config(&self, flags: &[(&'static str, String)]) -> Result<Config, Failure> {
        let config = Config::load(&self.dirs, &self.env, self.cwd.as_deref(), flags)?;
        // a verb may ask several times
        self.told.get_or_init(|| config.warnings().iter().for_each(|warning| self.ui.warn(&ui::in_line(warning))));
        Ok(config)
    }

    /// The settings in force under these flags.
    ///
    /// # Errors
    /// As [`Cx::config`].
    pub fn settings(&self, flags: &[(&'static str, String)]) -> Result<Settings, Failure> {
        Settings::of(&self.config(flags)?)
    }

    /// The working folder.
    ///
    /// # Errors
    /// If it is gone.
    pub fn folder(&self) -> Result<PathBuf, Failure> {
        let gone = || Failure::usage("the working folder no longer exists").hint("change to a folder that does");
        self.cwd.clone().ok_or_else(gone)
    }

    /// What a verb came to. A program that waits for a document (`json`) is given one of what went wrong, too; of Ctrl-C
    /// as well, which a person need not be told of.
    ///
    /// # Errors
    /// That of the outcome, or of writing about it.
    pub fn documented(&self, json: bool, outcome: Outcome) -> Outcome {
        match &outcome {
            Err(why) if json && why.exit == Exit::Interrupted => {
                let said = if why.message.is_empty() { &Failure::new(why.exit, "stopped") } else { why };
                // whoever reads may have been ended by the same Ctrl-C: that is no other end
                let _ = self.ui.document(&serde_json::json!({ "error": said.error() }));
            }
            Err(why) if json && !why.message.is_empty() => {
                self.ui.document(&serde_json::json!({ "error": why.error() }))?;
            }
            _ => {}
        }
        outcome
    }

    /// What Ctrl-C pulls. The first call starts to listen: until then it ends the process as usual.
    pub fn interrupt(&self) -> &Interrupt {
        self.interrupt.get_or_init(|| Interrupt::listen(self.ui.clearer()))
    }

    /// The async runtime, made by the few verbs that wait for something: it would cost the others a millisecond.
    ///
    /// # Errors
    /// If the system gives no threads.
    pub fn runtime(&self) -> Result<tokio::runtime::Runtime, Failure> {
        tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .map_err(|e| Failure::internal(format!("no async runtime: {e}")))
    }
}

/// Ends what the runtime still has under way: look-ups that nobody waits for any more. Their programs are killed and their
/// folders removed, which takes a moment.
pub fn wind_up(runtime: tokio::runtime::Runtime) {
    const MOMENT: Duration = Duration::from_millis(150);
    runtime.shutdown_timeout(MOMENT);
}

/// Parses the arguments, runs the verb, tells its exit code.
pub fn main() -> ExitCode {
    // Before anything that starts a thread or costs time.
    if let Some(code) = caro_exec::rehearse::helper_main() {
        return ExitCode::from(code);
    }
    let started = Instant::now();
    caro_exec::outlive_large_files();
    // Before there is any second thread.
    caro_model::engine::init();
    let argv: Vec<OsString> = std::env::args_os().collect();
    if let [_, word, orders] = &argv[..]
        && word == resident::WORD
    {
        return ExitCode::from(resident::run(orders).code());
    }
    let env = Env::of_process();
    if caro_exec::output_was_closed() {
        let nowhere = Failure::usage("standard output is closed: there is nowhere to write an answer to")
            .hint("nothing was done; `>/dev/null` throws away what is not wanted");
        Ui::new(&args::Common::default(), &env).failure(&nowhere);
        return ExitCode::from(nowhere.exit.code());
    }
    let cli = match args::parse(argv.clone()) {
        Ok(cli) => cli,
        Err(e) => {
            // `--help` and `--version` come this way too. A closed pipe is no reason to complain.
            let _ = e.print();
            if e.use_stderr()
                && let Some(hint) = args::hint(&argv)
            {
                Ui::new(&args::Common::default(), &env).hint(&hint);
            }
            return ExitCode::from(if e.use_stderr() { 2 } else { 0 });
        }
    };
    let ui = Ui::new(&cli.common, &env);
    let dirs = Dirs::find(&env);
    if let Some(home) = dirs::relative_home() {
        ui.warn(&format!(
            "HOME is `{}`, which is no absolute path: nothing is read from it or kept in it",
            home.display()
        ));
    }
    let cx = Cx {
        ui,
        env,
        dirs,
        cwd: std::env::current_dir().ok(),
        started,
        interrupt: OnceLock::new(),
        told: OnceLock::new(),
    };
    let exit = match dispatch(&cli, &cx) {
        Ok(exit) => exit,
        Err(failure) => {
            cx.ui.failure(&failure);
            failure.exit
        }
    };
    ExitCode::from(ended(exit, cx.interrupt.get()))
}

/// The exit code: who was told to end by a signal says by which, whatever the verb made of it.
fn ended(exit: Exit, interrupt: Option<&Interrupt>) -> u8 {
    match interrupt.and_then(Interrupt::told) {
        Some(code) if exit == Exit::Interrupted => code,
        _ => exit.code(),
    }
}

/// True for verbs that judge commands: no policy is read for the others.
fn judges(verb: Option<&Verb>) -> bool {
    match verb {
        None => true,
        Some(verb) => matches!(
            verb,
            Verb::Agent(_)
                | Verb::Chat(_)
                | Verb::Loop(_)
                | Verb::Resume(_)
                | Verb::Batch(_)
                | Verb::Check(_)
                | Verb::Explain(_)
                | Verb::Fix(_)
                | Verb::Eval(_)
                | Verb::Mcp(_)
                | Verb::Serve(_)
                | Verb::Forge(_)
                | Verb::Task(_)
        ),
    }
}

/// Runs the verb that was asked for; without one, the words are a request.
fn dispatch(cli: &Cli, cx: &Cx) -> Outcome {
    if judges(cli.verb.as_ref()) {
        policy::load(cx)?;
    }
    match &cli.verb {
        None => request::run(&cli.request, cx),
        Some(Verb::Context(args)) => context::run(args, cx),
        Some(Verb::Explain(args)) => explain::run(args, cx),
        Some(Verb::Manual(args)) => manual::run(args, cx),
        Some(Verb::Model(args)) => model::run(args, cx),
        Some(Verb::Batch(args)) => batch::run(args, cx),
        Some(Verb::Bench(args)) => bench::run(args, cx),
        Some(Verb::Agent(args)) => agent::run(args, cx),
        Some(Verb::Chat(args)) => chat::run(args, cx),
        Some(Verb::Loop(args)) => perpetual::run(args, cx),
        Some(Verb::Task(args)) => task::run(args, cx),
        Some(Verb::Resume(args)) => agent::resume::run(args, cx),
        Some(Verb::Events(args)) => agent::events::run(args, cx),
        Some(Verb::Session(args)) => agent::session::run(args, cx),
        Some(Verb::Artifacts(args)) => artifacts::run(args, cx),
        Some(Verb::Workspace(args)) => workspace::run(args, cx),
        Some(Verb::Stats(args)) => agent::stats::run(args, cx),
        Some(Verb::Knowledge(args)) => knowledge::run(args, cx),
        Some(Verb::Memory(args)) => memory::run(args, cx),
        Some(Verb::Forge(args)) => forge::run(args, cx),
        Some(Verb::Skills(args)) => skills::run(args, cx),
        Some(Verb::Mcp(args)) => mcp::run(args, cx),
        Some(Verb::Tools(args)) => tools::run(args, cx),
        Some(Verb::Config(args)) => config::run(args, cx),
        Some(Verb::Doctor(args)) => doctor::run(args, cx),
        Some(Verb::Help(args)) => help::run(args, cx),
        Some(Verb::History(args)) => request_log::run(args, cx),
        Some(Verb::Own(args)) => uninstall::run(args, cx),
        Some(Verb::Completions(args)) => completions::run(args, cx),
        Some(Verb::Check(args)) => check::run(args, cx),
        Some(Verb::Fix(args)) => fix::run(args, cx),
        Some(Verb::Eval(args)) => eval::run(args, cx),
        Some(Verb::Status(args)) => status::run(args, cx),
        Some(Verb::Stop(args)) => stop::run(args, cx),
        Some(Verb::Serve(args)) => serve::run(args, cx),
        Some(Verb::Init(args)) => init::run(args, cx),
        Some(Verb::Undo(args)) => undo::run(args, cx),
        Some(Verb::Version(args)) => version::run(args, cx),
    }
}
