//! Detects the machine: operating system, version, distribution, architecture, shell, user, working directory, and
//! every program on PATH. Only facts; the caller interprets them.
//!
//! - [`ambient`]: the variables and places from which the facts are read; tests replace them.
//! - [`system`]: operating system, version, distribution, user. [`caller`]: the calling shell.
//! - [`programs`]: the index of PATH. [`packages`]: finds the package of a missing program. [`userland`]: the kind of
//!   the standard tools.
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

/// The machine and the place in which a command will run.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct ExecutionContext {
    /// `Linux`, `Darwin`, `FreeBSD`, `Windows`.
    pub os: String,
    /// `x86_64`, `arm64` ... as reported by the system.
    pub arch: String,
    /// Kernel release on Linux and FreeBSD, product version on macOS; empty on Windows, where no file has the
    /// version.
    pub os_version: String,
    /// `Debian GNU/Linux 12 (bookworm)`, `macOS 14.2.1` ...
    pub distribution: Option<String>,
    /// Working directory; `.` if it has been deleted.
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
    /// The path of its program, if known.
    pub path: Option<PathBuf>,
    /// Its language.
    pub dialect: Dialect,
}

impl ExecutionContext {
    /// Detects the facts about this process's machine; the program index is read from `cache_dir` if it is up to
    /// date. Never fails: unknown facts are empty, and a folder that cannot be written only costs time.
    ///
    /// ```no_run
    /// let context = caro_host::ExecutionContext::detect(None);
    /// println!("{} on {}", context.shell.name, context.os);
    /// ```
    pub fn detect(cache_dir: Option<&Path>) -> Self {
        Self::detect_in(&Ambient::of_process(), cache_dir)
    }

    /// Like [`Self::detect`], with the given surroundings.
    pub fn detect_in(ambient: &Ambient, cache_dir: Option<&Path>) -> Self {
        // the index reads many directories, the shell a few files of /proc: in parallel
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
            shell: shell.with_path(&available_commands),
            user: system.user,
            target,
            available_commands,
        }
    }

    /// Returns the program of a shell of that dialect: the one in use if it has that dialect, else the one on PATH.
    pub fn shell_of(&self, dialect: Dialect) -> Option<&Path> {
        let own = if self.shell.dialect == dialect { self.shell.path.as_deref() } else { None };
        own.or_else(|| self.available_commands.get(dialect.name()).map(PathBuf::as_path))
    }
}

impl ShellInfo {
    /// Fills in the program from PATH, if only the name is known.
    fn with_path(mut self, programs: &BTreeMap<String, PathBuf>) -> Self {
        self.path = self.path.or_else(|| programs.get(&self.name).cloned());
        self
    }
}
