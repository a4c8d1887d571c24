//! Finds `scp site box:/var/www` where `site` is a folder: without `-r` it is left out, with only a warning.

use super::CheckContext;
use super::edit::{Edits, warning};
use caro_shell::{Finding, Invocation, Word};

pub(super) fn check(cx: &CheckContext, command: &Invocation) -> Option<Finding> {
    let operands: Vec<&Word> = command.operands().collect();
    // the sources: all operands but the target or the archive
    let (sources, long) = match (command.name()?, operands.as_slice()) {
        ("scp", [sources @ .., _]) => (sources, "recursive"),
        ("zip", [_, sources @ ..]) => (sources, "recurse-paths"),
        _ => return None,
    };
    let is_recursive = ['r', 'R'].iter().any(|letter| command.has_option(Some(*letter), long));
    // `zip` does not read files to delete, test or show entries
    let adds_nothing = command.has_option(Some('d'), "delete")
        || command.args().iter().any(|w| matches!(w.raw.as_str(), "-T" | "-sf"));
    if is_recursive || command.name() == Some("zip") && adds_nothing {
        return None;
    }
    let folder = sources.iter().find(|w| is_folder(cx, w))?;
    let fix = Edits::new(cx.script).insert_after(command.words.first()?, " -r").apply();
    Some(warning(
        "folder-left-out",
        folder,
        format!("{} is a folder: without -r what is in it stays out", folder.text),
        fix,
    ))
}

/// True for an existing folder.
fn is_folder(cx: &CheckContext, word: &Word) -> bool {
    let Some(name) = word.value.as_deref().map(|name| name.trim_end_matches('/')).filter(|name| !name.is_empty())
    else {
        return false;
    };
    cx.cwd.is_some_and(|cwd| !name.contains(':') && cwd.join(name).is_dir())
}
