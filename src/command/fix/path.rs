//! Repairs paths that do not exist.

use super::complaint::Kind;
use super::{Case, Class, Repair, repair};
use crate::checks::absent;
use caro_shell::{Word, effects};

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

/// Returns the words of files that do not exist. As there is no complaint, only words that look like paths count.
fn missing_inputs<'c>(case: &'c Case) -> Vec<&'c Word> {
    let is_path = |absent: &absent::Absent| {
        absent.word.text.contains(['.', '/']) || absent::changes_folder(&case.script.commands[absent.index])
    };
    let all = absent::inputs(&case.script, &effects(&case.script), case.facts.dialect, |path| case.facts.exists(path));
    all.into_iter().filter(is_path).map(|absent| absent.word).collect()
}
