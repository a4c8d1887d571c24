//! Repairs paths that do not exist.

use super::complaint::Kind;
use super::{Case, Class, Repair, repair};
use caro_shell::effects::{self, effects};
use caro_shell::{Invocation, Word};

/// Replaces missing paths by the nearest existing one, else by the same name near by.
pub(super) fn missing(case: &Case) -> Option<Repair> {
    let mut words: Vec<&Word> = case.all(Kind::NoFile).filter_map(|complaint| case.word(&complaint.name)).collect();
    if case.is_silent {
        words.extend(missing_inputs(case));
    }
    words.dedup_by_key(|word| word.span.start);
    let mut edits = case.edits();
    let mut whys = Vec::new();
    for word in words {
        let Some(meant) = meant(case, word) else { continue };
        whys.push(format!("there is no {}, there is {meant}", word.text));
        edits = edits.replace(word, &case.quoted(&meant));
    }
    let why = whys.join("; ");
    if whys.is_empty() { None } else { repair(Class::Path, edits, why) }
}

fn meant(case: &Case, word: &Word) -> Option<String> {
    let typed = word.text.as_str();
    // the value of a glob or a variable is not known
    if word.value.is_none() && !typed.starts_with("~/") || case.facts.exists(typed) {
        return None;
    }
    // a path elsewhere is a guess, which needs a complaint that this one is missing
    let elsewhere = || if case.is_silent { None } else { case.facts.elsewhere(typed) };
    case.facts.nearest_path(typed).or_else(elsewhere)
}

/// Returns the words of files that the command reads, deletes or moves, that do not exist, and that the command does
/// not create itself. As there is no complaint, only words that look like paths count, and no arguments of builtins
/// other than `cd`.
fn missing_inputs<'c>(case: &'c Case) -> Vec<&'c Word> {
    let effects = effects(&case.script);
    let is_created = |path: &str| {
        let creates = |kind| matches!(kind, effects::Kind::Create | effects::Kind::Overwrite | effects::Kind::Append);
        effects.iter().any(|effect| creates(effect.kind) && effect.path.as_deref() == Some(path))
    };
    let changes_folder = |command: &Invocation| matches!(command.name(), Some("cd" | "pushd"));
    // after `cd elsewhere` paths are relative to another folder
    let last = case.script.commands.iter().position(changes_folder).unwrap_or(usize::MAX);
    let reads = |kind| matches!(kind, effects::Kind::Read | effects::Kind::Delete | effects::Kind::Move);
    let missing = effects.iter().filter(|effect| reads(effect.kind) && !effect.remote).filter_map(|effect| {
        let path = effect.path.as_deref().filter(|path| !is_created(path) && !case.facts.exists(path))?;
        let index = effect.command.filter(|index| *index <= last);
        let command = index.and_then(|index| case.script.commands.get(index));
        let is_path = path.contains(['.', '/']) || command.is_some_and(changes_folder);
        let is_builtin =
            command.is_some_and(|c| c.is_builtin(case.facts.dialect) && !changes_folder(c) && c.redirects.is_empty());
        if !is_path || is_builtin || index.is_none() {
            return None;
        }
        case.words().find(|word| word.text == path)
    });
    missing.collect()
}
