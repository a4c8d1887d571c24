//! `git commit -m text` commits what is staged, where the request says everything; `git reset --hard` loses the work that it
//! says to keep; a commit of its own is not the last one.

use super::CheckContext;
use super::edit::{Edits, warning};
use super::words::Words;
use crate::shell::{Finding, Invocation, Severity};

pub(super) fn check(it: &CheckContext) -> Vec<Finding> {
    let asked = Words::of(it.request);
    let of = [staged_only, loses, unstages, committed, another];
    of.iter().filter_map(|check| check(it, &asked)).collect()
}

/// The call of git that has this verb.
fn git<'a>(it: &CheckContext<'a>, verb: &str) -> Option<&'a Invocation> {
    let mut calls = it.script.commands.iter().filter(|c| c.name() == Some("git"));
    calls.find(|c| c.operands().next().is_some_and(|word| word.text == verb))
}

/// `git reset --mixed HEAD~1` for "undo the last commit but leave the changes staged".
fn unstages(it: &CheckContext, asked: &Words) -> Option<Finding> {
    let reset = git(it, "reset")?;
    let mixed = reset.args().iter().find(|w| w.text == "--mixed")?;
    let fix = Edits::new(it.script).replace(mixed, "--soft").done();
    let staged = asked.say(&["staged"]) && !asked.list().iter().any(|w| matches!(w.as_str(), "not" | "unstaged"));
    staged.then(|| {
        warning("unstages", mixed, "--mixed takes the changes out of what is staged: --soft leaves them there", fix)
    })
}

/// `git commit` for "add the staged files to the last commit": that would be one more.
fn another(it: &CheckContext, asked: &Words) -> Option<Finding> {
    const SAID: [&str; 6] = [
        "to the last commit",
        "to my last commit",
        "into the last commit",
        "to the previous commit",
        "to the latest commit",
        "amend",
    ];
    const VERBS: [&str; 5] = ["add", "include", "put", "commit", "amend"];
    let starts = asked.list().first().is_some_and(|w| VERBS.contains(&w.as_str()));
    let commit = git(it, "commit").filter(|c| !c.has_option(None, "amend"))?;
    let plain = commit.args().iter().all(|w| w.text == "commit" || w.text == "-q" || w.text == "--quiet");
    let verb = commit.operands().next()?;
    let fix = Edits::new(it.script).after(verb, " --amend --no-edit").done().filter(|_| plain);
    (starts && asked.say(&SAID))
        .then(|| warning("one-more-commit", verb, "that makes one more commit: --amend changes the last", fix))
}

/// `git diff` for "the diff of the last commit": it shows what is not committed yet.
fn committed(it: &CheckContext, asked: &Words) -> Option<Finding> {
    const SAID: [&str; 6] = [
        "diff of the last commit",
        "diff of the latest commit",
        "changes of the last commit",
        "changes in the last commit",
        "changes of the latest commit",
        "changed in the last commit",
    ];
    let [git] = it.script.commands.as_slice() else { return None };
    let verb = git.operands().next().filter(|verb| git.name() == Some("git") && verb.text == "diff")?;
    let alone = git.operands().count() == 1 && !git.has_option(None, "cached") && !git.has_option(None, "staged");
    let fix = Edits::new(it.script).replace(verb, "show").done();
    (asked.say(&SAID) && alone).then(|| {
        warning("not-committed", verb, "git diff shows what is not committed yet: git show the last commit", fix)
    })
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

fn staged_only(it: &CheckContext, asked: &Words) -> Option<Finding> {
    let all = ["everything", "all changes", "all my changes", "all the changes", "all files", "all my files"];
    if !asked.say(&["commit"]) || !asked.say(&all) || asked.say(&["staged", "stage", "except", "without", "but"]) {
        return None;
    }
    let adds = ["add", "rm", "mv"].iter().any(|verb| git(it, verb).is_some());
    let commit = git(it, "commit")?;
    let stages = |text: &str| text == "--all" || text == "--amend" || is_cluster_with_a(text);
    if adds || commit.args().iter().any(|w| stages(&w.text)) {
        return None;
    }
    let first = commit.words.first()?;
    let fix = Edits::new(it.script).before(first, "git add -A && ").done();
    Some(warning(
        "commits-staged-only",
        first,
        "it commits what is staged, and nothing has been: `git add -A` first",
        fix,
    ))
}

/// `-a`, `-am`: short options with the one that stages.
fn is_cluster_with_a(text: &str) -> bool {
    text.strip_prefix('-').is_some_and(|letters| !letters.starts_with('-') && letters.contains('a'))
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

    #[test]
    fn what_is_staged_stays_and_the_last_commit_is_changed() {
        let fix = |request: &str, command: &str| findings(check, request, command).into_iter().find_map(|f| f.fix);
        let staged = "undo the last commit but leave the changes staged";
        assert_eq!(fix(staged, "git reset --mixed HEAD~1").as_deref(), Some("git reset --soft HEAD~1"));
        assert_eq!(fix("undo the last commit, changes not staged", "git reset --mixed HEAD~1"), None);
        let amend = "add the staged files to the last commit";
        assert_eq!(fix(amend, "git commit -q").as_deref(), Some("git commit --amend --no-edit -q"));
        assert_eq!(findings(check, amend, "git commit -m more").len(), 1);
        for (request, right) in [
            (amend, "git commit --amend --no-edit"),
            ("show what I added to the last commit", "git commit"),
            ("commit it", "git commit -m x"),
        ] {
            assert!(findings(check, request, right).is_empty(), "{request}: {right}");
        }
    }

    #[test]
    fn a_commit_is_shown() {
        let fix = |request: &str, command: &str| findings(check, request, command).into_iter().find_map(|f| f.fix);
        let last = "show the diff of the last commit";
        assert_eq!(fix(last, "git diff").as_deref(), Some("git show"));
        assert_eq!(fix(last, "git diff --stat").as_deref(), Some("git show --stat"));
        for (request, right) in [
            (last, "git show"),
            (last, "git diff HEAD~1 HEAD"),
            ("what has changed since the last commit", "git diff"),
            ("show all changes", "git diff"),
        ] {
            assert_eq!(fix(request, right), None, "{request}: {right}");
        }
    }

    #[test]
    fn everything_is_staged_first() {
        let fix = |request: &str, command: &str| findings(check, request, command).into_iter().find_map(|f| f.fix);
        assert_eq!(
            fix("commit everything with message 'x'", "git commit -m 'x'").as_deref(),
            Some("git add -A && git commit -m 'x'")
        );
        for (request, right) in [
            ("commit everything with message 'x'", "git add . && git commit -m 'x'"),
            ("commit all changes as 'x'", "git commit -am 'x'"),
            ("commit all changes to the last commit", "git commit --amend --no-edit"),
            ("commit all staged files", "git commit -m 'x'"),
            ("commit with message 'x'", "git commit -m 'x'"),
            ("show all files of the last commit", "git show --name-only"),
        ] {
            assert_eq!(fix(request, right), None, "{request}: {right}");
        }
    }
}
