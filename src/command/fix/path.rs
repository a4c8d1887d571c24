//! Paths that are not there.

use super::complaint::Kind;
use super::{Case, Class, Repair, repair};
use caro_shell::effects::{self, effects};
use caro_shell::{Invocation, Word};

/// The nearest path that is there; else the same name near by.
pub(super) fn missing(case: &Case) -> Option<Repair> {
    let mut named: Vec<&Word> = case.all(Kind::NoFile).filter_map(|complaint| case.word(&complaint.name)).collect();
    if case.is_silent {
        named.extend(read_and_missing(case));
    }
    named.dedup_by_key(|word| word.span.start);
    let mut edits = case.edits();
    let mut whys = Vec::new();
    for word in named {
        let Some(meant) = meant(case, word) else { continue };
        whys.push(format!("there is no {}, there is {meant}", word.text));
        edits = edits.replace(word, &case.quoted(&meant));
    }
    let why = whys.join("; ");
    if whys.is_empty() { None } else { repair(Class::Path, edits, why) }
}

fn meant(case: &Case, word: &Word) -> Option<String> {
    let typed = word.text.as_str();
    // a glob, a variable: what it stands for is not known
    if word.value.is_none() && !typed.starts_with("~/") || case.facts.exists(typed) {
        return None;
    }
    // that it lies elsewhere is a guess, for which it has to be known that it was looked for
    let elsewhere = || if case.is_silent { None } else { case.facts.elsewhere(typed) };
    case.facts.nearest_path(typed).or_else(elsewhere)
}

/// The words that a command reads as files and that are not there, unless the command itself makes them. Without a complaint only
/// what is written like a path counts, and is no word of the shell's own.
fn read_and_missing<'c>(case: &'c Case) -> Vec<&'c Word> {
    let effects = effects(&case.script);
    let is_made = |path: &str| {
        let makes = |kind| matches!(kind, effects::Kind::Create | effects::Kind::Overwrite | effects::Kind::Append);
        effects.iter().any(|effect| makes(effect.kind) && effect.path.as_deref() == Some(path))
    };
    let goes = |command: &Invocation| matches!(command.name(), Some("cd" | "pushd"));
    // behind `cd elsewhere` paths are those of another folder
    let last = case.script.commands.iter().position(goes).unwrap_or(usize::MAX);
    let reads = |kind| matches!(kind, effects::Kind::Read | effects::Kind::Delete | effects::Kind::Move);
    let missing = effects.iter().filter(|effect| reads(effect.kind) && !effect.remote).filter_map(|effect| {
        let path = effect.path.as_deref().filter(|path| !is_made(path) && !case.facts.exists(path))?;
        let index = effect.command.filter(|index| *index <= last);
        let command = index.and_then(|index| case.script.commands.get(index));
        let is_path = path.contains(['.', '/']) || command.is_some_and(goes);
        let is_own = command.is_some_and(|c| c.is_builtin(case.facts.dialect) && !goes(c) && c.redirects.is_empty());
        if !is_path || is_own || index.is_none() {
            return None;
        }
        case.words().find(|word| word.text == path)
    });
    missing.collect()
}
