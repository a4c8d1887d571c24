//! Finds mistyped subcommands: `git comit`, `cargo biuld`.

use super::CheckContext;
use super::edit::{Edits, warning};
use crate::fix::near::nearest;
use caro_shell::{Finding, Invocation};

/// Fewest subcommands of a list that is taken for a whole one.
const MIN_KNOWN: usize = 3;

/// Finds a subcommand that the manual does not list, and that is near to one which it does. It is only a warning, as
/// an alias of the user's may have that name.
pub(super) fn check(cx: &CheckContext, command: &Invocation) -> Option<Finding> {
    if command.remote {
        return None;
    }
    let program = command.name()?;
    let word = command.args().first().filter(|word| word.value.is_some())?;
    // a list that may lack some is no proof against an answer
    let is_proof = |whole: bool| whole || cx.request.is_empty();
    let entry = cx.manuals.get(program).filter(|entry| entry.delegates && is_proof(entry.complete))?;
    let has_program = |name: &str| cx.context.is_some_and(|context| context.available_commands.contains_key(name));
    // `git-lfs` and `cargo-nextest` are subcommands, too
    if has_program(&format!("{program}-{}", word.text)) || cx.cwd.is_some_and(|cwd| cwd.join(&word.text).exists()) {
        return None;
    }
    let meant = misspelled(&word.text, &entry.subcommands)?;
    let fix = Edits::new(cx.script).replace(word, meant).apply();
    Some(warning("unknown-verb", word, format!("{program} has no subcommand {}, it has {meant}", word.text), fix))
}

/// Returns the subcommand of a list that a word is a misspelling of.
pub(crate) fn misspelled<'l>(word: &str, known: &'l [String]) -> Option<&'l str> {
    let is_plain = word.chars().all(|c| c.is_ascii_lowercase() || c == '-') && !word.starts_with('-');
    if !is_plain || known.len() < MIN_KNOWN || known.iter().any(|other| other == word) {
        return None;
    }
    nearest(word, known.iter().map(String::as_str), |_| false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelled_subcommand_is_found_and_a_foreign_one_is_not() {
        let known = ["commit", "checkout", "log", "status"].map(str::to_owned);
        for (word, meant) in [("comit", Some("commit")), ("stauts", Some("status")), ("commit", None), ("lfs", None)] {
            assert_eq!(misspelled(word, &known), meant, "{word}");
        }
        assert_eq!(misspelled("comit", &known[..2]), None, "a short list may not be whole");
        assert_eq!(misspelled("-commit", &known), None);
    }
}
