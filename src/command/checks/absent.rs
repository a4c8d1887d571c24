//! Finds the files that a script reads, deletes or moves, that do not exist, and that it does not create itself.

use caro_shell::effects::Kind;
use caro_shell::{Dialect, Effect, Invocation, Script, Word};

/// A word for a file that does not exist, and the index of the command that has it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Absent<'s> {
    /// The word.
    pub(crate) word: &'s Word,
    /// The index of the command.
    pub(crate) index: usize,
}

/// Returns the absent inputs of a script. Those behind a `cd` are left out, as they are relative to another folder,
/// and so are the arguments of builtins other than `cd`.
pub(crate) fn inputs<'s>(
    script: &'s Script,
    effects: &[Effect],
    dialect: Dialect,
    exists: impl Fn(&str) -> bool,
) -> Vec<Absent<'s>> {
    let is_created = |path: &str| {
        let creates = |kind| matches!(kind, Kind::Create | Kind::Overwrite | Kind::Append);
        effects.iter().any(|effect| creates(effect.kind) && effect.path.as_deref() == Some(path))
    };
    let last = script.commands.iter().position(changes_folder).unwrap_or(usize::MAX);
    let reads = |kind| matches!(kind, Kind::Read | Kind::Delete | Kind::Move);
    let missing = effects.iter().filter(|effect| reads(effect.kind) && !effect.remote).filter_map(|effect| {
        let path = effect.path.as_deref().filter(|path| !is_created(path) && !exists(path))?;
        let index = effect.command.filter(|index| *index <= last)?;
        let command = script.commands.get(index)?;
        if command.is_builtin(dialect) && !changes_folder(command) && command.redirects.is_empty() {
            return None;
        }
        Some(Absent { word: words(script).find(|word| word.text == path)?, index })
    });
    missing.collect()
}

/// True for a command that changes the working directory.
pub(crate) fn changes_folder(command: &Invocation) -> bool {
    matches!(command.name(), Some("cd" | "pushd"))
}

/// Returns the index of the first command that may create a file; `usize::MAX` if there is none.
pub(crate) fn first_maker(effects: &[Effect]) -> usize {
    let makes = |kind| {
        use Kind::{Delete, Mode, Move, None, Owner, Read};
        !matches!(kind, None | Read | Delete | Move | Mode | Owner)
    };
    let makers = effects.iter().filter(|effect| makes(effect.kind));
    // the target of a redirection is written by its own command, and does not exist for its inputs
    makers.map(|effect| effect.command.unwrap_or_default()).min().unwrap_or(usize::MAX)
}

/// Returns every word of the commands that run here, and every file that they are redirected to or from.
pub(crate) fn words(script: &Script) -> impl Iterator<Item = &Word> {
    let own = script.commands.iter().filter(|command| !command.remote).flat_map(|command| {
        let files = command.redirects.iter().filter(|r| !r.duplicates() && !r.operator.contains("<<"));
        command.words.iter().chain(files.map(|redirect| &redirect.target))
    });
    own.chain(script.redirects.iter().map(|redirect| &redirect.target))
}
