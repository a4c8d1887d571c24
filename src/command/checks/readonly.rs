//! `chmod a-r notes.txt` for "make it read only": nobody can read it then.

use super::CheckContext;
use super::edit::{Edits, warning};
use super::words::Words;
use crate::shell::{Finding, Severity};

pub(super) fn check(it: &CheckContext) -> Vec<Finding> {
    unreadable(it).into_iter().collect()
}

fn unreadable(it: &CheckContext) -> Option<Finding> {
    let words = Words::of(it.request);
    let asked = words.say(&["read only", "readonly"]) && !words.negate();
    let chmod = it.script.commands.iter().find(|c| c.name() == Some("chmod"))?;
    let mode = chmod
        .args()
        .iter()
        .find(|w| matches!(w.text.split_once('-'), Some((who, "r")) if who.chars().all(|c| "ugoa".contains(c))))?;
    let is_option = mode.text == "-r" && chmod.operands().count() > 1;
    let fix = Edits::new(it.script).replace(mode, &mode.raw.replacen("-r", "-w", 1)).done();
    let why = "this takes away the right to read; what is read only cannot be written: -w";
    (asked && !is_option).then(|| Finding { severity: Severity::Error, ..warning("unreadable", mode, why, fix) })
}

#[cfg(test)]
mod tests {
    use super::super::tests::findings;
    use super::*;

    #[test]
    fn what_is_read_only_can_be_read() {
        let fix =
            |request: &str, command: &str| findings(check, request, command).into_iter().next().and_then(|f| f.fix);
        let only = "make notes.txt read-only for everyone";
        assert_eq!(fix(only, "chmod a-r notes.txt").as_deref(), Some("chmod a-w notes.txt"));
        assert_eq!(fix("make a file readonly", "chmod go-r notes.txt").as_deref(), Some("chmod go-w notes.txt"));
        for (request, right) in [
            (only, "chmod a-w notes.txt"),
            (only, "chmod 444 notes.txt"),
            ("nobody may read notes.txt", "chmod a-r notes.txt"),
            ("notes.txt is not to be read only", "chmod a-r notes.txt"),
        ] {
            assert_eq!(fix(request, right), None, "{request}: {right}");
        }
    }
}
