//! Finds `git reset --hard` if the request says to keep the changes.

use super::CheckContext;
use super::edit::{Edits, warning};
use super::words::Words;
use caro_shell::{Finding, Invocation, Severity};

pub(super) fn check(cx: &CheckContext) -> Vec<Finding> {
    check_script(cx).into_iter().collect()
}

/// `git reset --hard HEAD~1` for "undo the last commit but keep my changes".
fn check_script(cx: &CheckContext) -> Option<Finding> {
    const KEEPS: [&str; 12] = [
        "keep",
        "keeping",
        "keeps",
        "kept",
        "retain",
        "retaining",
        "preserve",
        "preserving",
        "leave",
        "leaving",
        "without losing",
        "not lose",
    ];
    let words = Words::of(cx.request);
    if !(words.contains_phrase(&KEEPS) || words.contains_phrase(&["don't"]) && words.contains_phrase(&["lose"])) {
        return None;
    }
    let is_reset = |c: &&Invocation| c.name() == Some("git") && c.operands().next().is_some_and(|w| w.text == "reset");
    let reset = cx.script.commands.iter().find(is_reset)?;
    let hard = reset.args().iter().find(|w| w.text == "--hard")?;
    let fix = Edits::new(cx.script).replace(hard, "--soft").apply();
    let why = "--hard throws the changes away that are to be kept: --soft leaves them as they are";
    Some(Finding { severity: Severity::Error, ..warning("loses-changes", hard, why, fix) })
}

#[cfg(test)]
mod tests {
    use super::super::tests::findings;
    use super::*;

    #[test]
    fn changes_to_keep_are_not_reset() {
        let fix =
            |request: &str, command: &str| findings(check, request, command).into_iter().next().and_then(|f| f.fix);
        let hard = "git reset --hard HEAD~1";
        for keeps in [
            "undo my last commit but keep changes",
            "uncommit without losing my work",
            "take back the last \
        commit, don't lose anything",
        ] {
            assert_eq!(fix(keeps, hard).as_deref(), Some("git reset --soft HEAD~1"), "{keeps}");
            assert_eq!(fix(keeps, "git reset HEAD~1"), None);
        }
        assert_eq!(fix("throw away the last commit and all changes", hard), None);
        assert_eq!(fix("", hard), None);
    }
}
