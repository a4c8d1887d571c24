//! `git reset --hard` loses the work that the request says to keep.

use super::CheckContext;
use super::edit::{Edits, warning};
use super::words::Words;
use caro_shell::{Finding, Invocation, Severity};

pub(super) fn check(it: &CheckContext) -> Vec<Finding> {
    check_script(it).into_iter().collect()
}

/// `git reset --hard HEAD~1` for "undo the last commit but keep my changes".
fn check_script(it: &CheckContext) -> Option<Finding> {
    const KEPT: [&str; 12] = [
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
    let asked = Words::of(it.request);
    if !(asked.contains_phrase(&KEPT) || asked.contains_phrase(&["don't"]) && asked.contains_phrase(&["lose"])) {
        return None;
    }
    let is_reset = |c: &&Invocation| c.name() == Some("git") && c.operands().next().is_some_and(|w| w.text == "reset");
    let reset = it.script.commands.iter().find(is_reset)?;
    let hard = reset.args().iter().find(|w| w.text == "--hard")?;
    let fix = Edits::new(it.script).replace(hard, "--soft").done();
    let why = "--hard throws the changes away that are to be kept: --soft leaves them as they are";
    Some(Finding { severity: Severity::Error, ..warning("loses-changes", hard, why, fix) })
}

#[cfg(test)]
mod tests {
    use super::super::tests::findings;
    use super::*;

    #[test]
    fn what_is_to_be_kept_is_not_thrown_away() {
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
