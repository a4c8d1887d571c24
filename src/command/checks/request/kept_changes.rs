//! `git reset --hard` loses the work that the request says to keep.

use super::CheckContext;
use super::edit::{Edits, warning};
use super::words::Words;
use crate::shell::{Finding, Invocation, Severity};

pub(super) fn check(it: &CheckContext) -> Vec<Finding> {
    loses(it, &Words::of(it.request)).into_iter().collect()
}

/// The call of git that has this verb.
fn git<'a>(it: &CheckContext<'a>, verb: &str) -> Option<&'a Invocation> {
    let mut calls = it.script.commands.iter().filter(|c| c.name() == Some("git"));
    calls.find(|c| c.operands().next().is_some_and(|word| word.text == verb))
}

/// `git reset --hard HEAD~1` for "undo the last commit but keep my changes".
fn loses(it: &CheckContext, asked: &Words) -> Option<Finding> {
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
    let reset = git(it, "reset")?;
    let hard = reset.args().iter().find(|w| w.text == "--hard")?;
    let kept = asked.say(&KEPT) || asked.list().iter().any(|w| w == "don't") && asked.say(&["lose"]);
    let fix = Edits::new(it.script).replace(hard, "--soft").done();
    let why = "--hard throws the changes away that are to be kept: --soft leaves them as they are";
    kept.then(|| Finding { severity: Severity::Error, ..warning("loses-changes", hard, why, fix) })
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
