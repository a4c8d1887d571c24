//! What machine this is: operating system, version, distribution, architecture, shell, user, working directory, and
//! every program on PATH. Facts only; what to make of them is the caller's business.
//!
//! - [`ambient`]: the variables and places the facts are read from; a test hands in others.
//! - [`system`]: operating system, version, distribution, user. [`caller`]: the shell that called.
//! - [`programs`]: the index of PATH. [`packages`]: what brings a program that is not there. [`userland`]: whose standard tools these are.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used))]

pub mod ambient;
pub mod caller;
pub mod packages;
pub mod programs;
pub mod system;
pub mod userland;

pub use ambient::Ambient;

use caro_shell::{Dialect, Target};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The machine and the place a command is to run in.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct ExecutionContext {
    /// `Linux`, `Darwin`, `FreeBSD`, `Windows`.
    pub os: String,
    /// `x86_64`, `arm64` ... as the system itself says.
    pub arch: String,
    /// Kernel release on Linux and FreeBSD, product version on macOS; empty on Windows, which tells no file its version.
    pub os_version: String,
    /// `Debian GNU/Linux 12 (bookworm)`, `macOS 14.2.1` ...
    pub distribution: Option<String>,
    /// Working directory; `.` where it has been deleted.
    pub cwd: PathBuf,
    /// The shell that caro was called from (its parent process), else `$SHELL`.
    pub shell: ShellInfo,
    /// Name of the user.
    pub user: String,
    /// Operating system and userland that commands are written for.
    pub target: Target,
    /// Every program on PATH by name; the first on PATH wins, as in the shell.
    pub available_commands: BTreeMap<String, PathBuf>,
}

/// The shell in use.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct ShellInfo {
    /// `bash`, `zsh` ...
    pub name: String,
    /// Its program, where it could be told.
    pub path: Option<PathBuf>,
    /// The language it speaks.
    pub dialect: Dialect,
}

impl ExecutionContext {
    /// Detects everything about this process's machine, taking the program index from `cache_dir` where it still holds.
    /// Never fails: what cannot be told is empty, and a folder that cannot be written only costs time.
    ///
    /// ```no_run
    /// let context = caro_host::ExecutionContext::detect(None);
    /// println!("{} on {}", context.shell.name, context.os);
    /// ```
    pub fn detect(cache_dir: Option<&Path>) -> Self {
        Self::detect_in(&Ambient::of_process(), cache_dir)
    }

    /// The same with the facts of somewhere else.
    pub fn detect_in(ambient: &Ambient, cache_dir: Option<&Path>) -> Self {
        // The index reads many directories, the shell a few files of /proc: side by side.
        let (available_commands, (system, shell)) = std::thread::scope(|scope| {
            let facts = scope.spawn(|| (system::System::detect(ambient), caller::detect(ambient)));
            let programs = programs::index(&ambient.search_path(), cache_dir);
            let facts = facts.join().unwrap_or_else(|_| (system::System::unknown(), caller::fallback(ambient)));
            (programs, facts)
        });
        let target = userland::target(&system.os, &available_commands);
        Self {
            os: system.os,
            arch: system.arch,
            os_version: system.os_version,
            distribution: system.distribution,
            cwd: ambient.cwd.clone().unwrap_or_else(|| PathBuf::from(".")),
            shell: shell.completed(&available_commands),
            user: system.user,
            target,
            available_commands,
        }
    }

    /// The program of a shell of that dialect: the one in use, if it speaks it, else the one on PATH.
    pub fn shell_of(&self, dialect: Dialect) -> Option<&Path> {
        let own = self.shell.path.as_deref().filter(|_| self.shell.dialect == dialect);
        own.or_else(|| self.available_commands.get(dialect.name()).map(PathBuf::as_path))
    }
}

impl ShellInfo {
    /// The same with its program from PATH, if only its name was known.
    fn completed(mut self, programs: &BTreeMap<String, PathBuf>) -> Self {
        self.path = self.path.or_else(|| programs.get(&self.name).cloned());
        self
    }
}
