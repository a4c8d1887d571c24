//! The parameters of a command that is to be run, and the shell program for it.

use super::ask::Place;
use super::asker::Asker;
use crate::{Cx, Settings};
use caro_host::ExecutionContext;
use caro_shell::Dialect;
use std::path::PathBuf;

/// Options for running a command.
#[derive(Debug, Clone, Copy, Default)]
pub struct ExecuteOptions {
    /// True to show first what the command would change.
    pub preview: bool,
    /// True to copy deleted files to the trash, too.
    pub trash: bool,
}

/// Everything that running a command needs.
#[derive(Clone, Copy)]
pub struct Run<'a> {
    /// The directory, machine and shell of the command.
    pub place: &'a Place,
    /// The settings in force.
    pub settings: &'a Settings,
    /// The context of the verb.
    pub cx: &'a Cx,
    /// This machine.
    pub context: &'a ExecutionContext,
    /// True to show first what the command would change.
    pub preview: bool,
    /// True to copy deleted files to the trash, too.
    pub trash: bool,
    /// Asks for another command, where that is possible.
    pub asker: Option<&'a Asker<'a>>,
}

/// Finds the shell program of a dialect: the calling one, or the first on PATH.
pub fn program(dialect: Dialect, context: &ExecutionContext) -> Option<PathBuf> {
    if context.shell.dialect == dialect
        && let Some(path) = &context.shell.path
    {
        return Some(path.clone());
    }
    let names: &[&str] = match dialect {
        Dialect::Bash => &["bash"],
        Dialect::Zsh => &["zsh"],
        Dialect::Fish => &["fish"],
        Dialect::Sh => &["sh", "dash", "bash"],
        Dialect::PowerShell => &["pwsh", "powershell"],
    };
    names.iter().find_map(|name| context.available_commands.get(*name)).cloned()
}
