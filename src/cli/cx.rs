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
    /// Where files live.
    pub dirs: Dirs,
    /// The working directory, unless it is gone.
    pub cwd: Option<PathBuf>,
    /// When the program started.
    pub started: Instant,
    /// The definition of what can be typed.
    definition: fn() -> clap::Command,
    interrupt: OnceLock<Interrupt>,
    /// Set once the files of settings were told of.
    told: OnceLock<()>,
}

impl Cx {
    /// That of a program that has begun then. `definition` is of all that can be typed.
    pub fn new(ui: Ui, env: Env, dirs: Dirs, started: Instant, definition: fn() -> clap::Command) -> Self {
        let cwd = std::env::current_dir().ok();
        Self { ui, env, dirs, cwd, started, definition, interrupt: OnceLock::new(), told: OnceLock::new() }
    }

    /// The definition of what can be typed: all verbs with their flags.
    pub fn definition(&self) -> clap::Command {
        (self.definition)()
    }

    /// The layers of configuration, `flags` on top. What is odd about their files is told once.
    ///
    /// # Errors
    /// If a file or a variable holds what no setting can be.
    pub fn config(&self, flags: &[(&'static str, String)]) -> Result<Config, Failure> {
        let config = Config::load(&self.dirs, &self.env, self.cwd.as_deref(), flags)?;
        // a verb may ask several times
        self.told.get_or_init(|| config.warnings().iter().for_each(|warning| self.ui.warn(&in_line(warning))));
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

    /// Tells the outcome of a verb. A program that waits for a document (`json`) is given one of what went wrong, too; of Ctrl-C
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

    /// The listener for Ctrl-C. The first call starts to listen: until then it ends the process as usual.
    pub fn interrupt(&self) -> &Interrupt {
        self.interrupt.get_or_init(|| Interrupt::listen(self.ui.clearer()))
    }

    /// The listener for Ctrl-C, if it has begun to listen.
    pub fn listening(&self) -> Option<&Interrupt> {
        self.interrupt.get()
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
