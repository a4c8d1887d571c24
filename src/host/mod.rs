//! What machine this is: operating system, version, distribution, architecture, shell, user, working directory, and
//! every program on PATH. Facts only; what to make of them is the caller's business.

use crate::shell::{Dialect, Target};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// The machine and the place a command is to run in.
#[derive(Debug, Clone, serde::Serialize)]
pub struct ExecutionContext {
    /// `Linux`, `Darwin`, `FreeBSD`, `Windows`.
    pub os: String,
    /// `x86_64`, `arm64` ... as the system itself says.
    pub arch: String,
    /// Kernel release on Linux, product version on macOS and Windows.
    pub os_version: String,
    /// `Debian GNU/Linux 12 (bookworm)`, `macOS 14.2.1` ...
    pub distribution: Option<String>,
    /// Working directory.
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
#[derive(Debug, Clone, serde::Serialize)]
pub struct ShellInfo {
    /// `bash`, `zsh` ...
    pub name: String,
    /// Its program, where it could be told.
    pub path: Option<PathBuf>,
    /// The language it speaks.
    pub dialect: Dialect,
}

impl ExecutionContext {
    /// Detects everything, taking the stable facts from `cache_dir` where they still hold.
    pub fn detect(cache_dir: Option<&std::path::Path>) -> Self {
        let _ = cache_dir;
        todo!()
    }
}
