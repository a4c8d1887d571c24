//! Finds programs without the operands that they need: `rm -rf`, `mv a`.

use super::CheckContext;
use super::edit::error;
use caro_shell::{Finding, Invocation};

/// Programs with the fewest operands that they accept, as their synopses have it, and the long option and the letter
/// that stand for one of them.
const NEEDS: [(&str, usize, &str, Option<char>); 13] = [
    ("rm", 1, "", None),
    ("rmdir", 1, "", None),
    ("unlink", 1, "", None),
    ("mkdir", 1, "", None),
    ("touch", 1, "", None),
    ("ln", 1, "", None),
    ("shred", 1, "", None),
    ("mv", 2, "target-directory", Some('t')),
    ("cp", 2, "target-directory", Some('t')),
    ("chmod", 2, "reference", None),
    ("chown", 2, "reference", None),
    ("chgrp", 2, "reference", None),
    ("install", 2, "target-directory", Some('t')),
];

pub(super) fn check(cx: &CheckContext, command: &Invocation) -> Option<Finding> {
    let (name, program) = (command.name()?, command.words.first()?);
    // another command may append operands; a function of the same name has its own rules
    let is_whole = command.runner().is_none_or(|by| !matches!(by, "xargs" | "gxargs" | "parallel" | "fd" | "fdfind"));
    if !is_whole || cx.script.functions.iter().any(|f| f.name == name) {
        return None;
    }
    let (_, least, long, letter) = NEEDS.iter().find(|(other, ..)| *other == name)?;
    let least = least - usize::from(!long.is_empty() && command.has_option(*letter, long));
    // a word that the shell expands may be any number of them
    let is_open = command.args().iter().any(|w| w.value.is_none() || w.glob || w.text.contains('{'));
    let shows = command.args().iter().any(|w| matches!(w.text.as_str(), "--help" | "--version" | "-h"));
    let has_list = command.has_option(None, "files0-from");
    let given = command.operands().count();
    if given >= least || is_open || shows || has_list {
        return None;
    }
    let why = match (given, least) {
        (0, _) => format!("{name} is not told what to work on"),
        _ => format!("{name} needs {least} operands, and there is only {given}"),
    };
    Some(error("no-operand", program, why, None))
}
