//! A command that is to be run: where, with what, in which shell.

use super::ask::Place;
use super::asker::Asker;
use crate::{Cx, Settings};
use caro_host::ExecutionContext;
use caro_shell::Dialect;
use std::path::PathBuf;

/// How a command is run, beside that it is asked for.
#[derive(Debug, Clone, Copy, Default)]
pub struct With {
    /// It is shown first what the command changes.
    pub preview: bool,
    /// The deleted files are laid into the trash, too.
    pub trash: bool,
}

/// Everything that running a command needs.
#[derive(Clone, Copy)]
pub struct Run<'a> {
    /// Where, and in which shell's language.
    pub place: &'a Place,
    /// The settings in force.
    pub settings: &'a Settings,
    /// The terminal and the rest.
    pub cx: &'a Cx,
    /// The machine.
    pub context: &'a ExecutionContext,
    /// True if it is to be shown first what the command changes.
    pub preview: bool,
    /// True if what it deletes is laid into the trash, too.
    pub trash: bool,
    /// For another command, where one can be asked for.
    pub asker: Option<&'a Asker<'a>>,
}

/// The shell program that speaks the dialect: the calling one, or the first on PATH.
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
