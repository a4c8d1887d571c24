//! The context that every verb is given: the terminal, variables, folders, settings, Ctrl-C.

use super::{Dirs, Env, Exit, Failure, Interrupt, Outcome, Settings};
use crate::setup::config::Config;
use crate::term::ui::{Ui, in_line};
use std::path::PathBuf;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// The context of a verb.
#[derive(Debug)]
pub struct Cx {
    /// The terminal.
    pub ui: Ui,
    /// The variables caro reads.
    pub env: Env,
    /// The folders of caro's files.
    pub dirs: Dirs,
    /// The working directory; `None` if it no longer exists.
    pub cwd: Option<PathBuf>,
    /// The time the program started.
    pub started: Instant,
    /// Builds the definition of the command line.
    definition: fn() -> clap::Command,
    interrupt: OnceLock<Interrupt>,
    /// Set once the warnings about settings files are printed.
    warned: OnceLock<()>,
}

impl Cx {
    /// Creates the context of a program that started at `started`; `definition` defines the command line.
    pub fn new(ui: Ui, env: Env, dirs: Dirs, started: Instant, definition: fn() -> clap::Command) -> Self {
        let cwd = std::env::current_dir().ok();
        Self { ui, env, dirs, cwd, started, definition, interrupt: OnceLock::new(), warned: OnceLock::new() }
    }

    /// The definition of the command line: all verbs with their flags.
    pub fn definition(&self) -> clap::Command {
        (self.definition)()
    }

    /// Loads the layers of configuration, `flags` on top. Warnings about their files are printed once.
    ///
    /// # Errors
    /// If a file or a variable cannot be read as settings.
    pub fn config(&self, flags: &[(&'static str, String)]) -> Result<Config, Failure> {
        let config = Config::load(&self.dirs, &self.env, self.cwd.as_deref(), flags)?;
        // a verb may load the configuration several times
        self.warned.get_or_init(|| config.warnings().iter().for_each(|warning| self.ui.warn(&in_line(warning))));
        Ok(config)
    }

    /// The settings in force under these flags.
    ///
    /// # Errors
    /// As [`Cx::config`].
    pub fn settings(&self, flags: &[(&'static str, String)]) -> Result<Settings, Failure> {
        Settings::of(&self.config(flags)?)
    }

    /// The working directory.
    ///
    /// # Errors
    /// If it no longer exists.
    pub fn folder(&self) -> Result<PathBuf, Failure> {
        let gone = || Failure::usage("the working folder no longer exists").hint("change to a folder that does");
        self.cwd.clone().ok_or_else(gone)
    }

    /// Returns the outcome of a verb. With `json`, an error is also printed as a document; so is Ctrl-C, which is
    /// silent otherwise.
    ///
    /// # Errors
    /// The error of the outcome, or of writing the document.
    pub fn with_error_document(&self, json: bool, outcome: Outcome) -> Outcome {
        match &outcome {
            Err(why) if json && why.exit == Exit::Interrupted => {
                let failure = if why.message.is_empty() { &Failure::new(why.exit, "stopped") } else { why };
                // the reader may have been ended by the same Ctrl-C: a failed write does not change the exit code
                let _ = self.ui.document(&serde_json::json!({ "error": failure.error() }));
            }
            Err(why) if json && !why.message.is_empty() => {
                self.ui.document(&serde_json::json!({ "error": why.error() }))?;
            }
            _ => {}
        }
        outcome
    }

    /// Returns the listener for Ctrl-C, started by the first call. Before that, Ctrl-C ends the process as usual.
    pub fn interrupt(&self) -> &Interrupt {
        self.interrupt.get_or_init(|| Interrupt::listen(self.ui.clearer()))
    }

    /// The listener for Ctrl-C, if it has been started.
    pub fn started_interrupt(&self) -> Option<&Interrupt> {
        self.interrupt.get()
    }

    /// Builds the async runtime. Only verbs that need one call this: it takes a millisecond.
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

    /// Runs a future to its end on a runtime of its own. What it leaves behind is not waited for: a tool whose call was
    /// given up may read from what never says anything.
    ///
    /// # Errors
    /// If the system gives no threads.
    pub fn block_on<T>(&self, work: impl Future<Output = T>) -> Result<T, Failure> {
        let runtime = self.runtime()?;
        let done = runtime.block_on(work);
        wind_up(runtime);
        Ok(done)
    }
}

/// Shuts the runtime down, and with it look-ups whose results are no longer needed: their programs are killed and their
/// folders removed.
pub fn wind_up(runtime: tokio::runtime::Runtime) {
    const SHUTDOWN_TIMEOUT: Duration = Duration::from_millis(150);
    runtime.shutdown_timeout(SHUTDOWN_TIMEOUT);
}
