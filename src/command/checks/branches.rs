//! "On all branches", and `git log` begins at the one that is checked out.

use super::edit::{Edits, warning};
use super::words::Words;
use super::{CheckContext, only};
use crate::shell::Finding;

pub(super) fn check(it: &CheckContext) -> Vec<Finding> {
    of_script(it).into_iter().collect()
}

fn of_script(it: &CheckContext) -> Option<Finding> {
    const ALL: [&str; 7] = [
        "all branches",
        "every branch",
        "each branch",
        "any branch",
        "all the branches",
        "whole repository",
        "all refs",
    ];
    let words = Words::of(it.request);
    if !words.say(&ALL) || words.negate() {
        return None;
    }
    let walks = |verb: &str| matches!(verb, "log" | "shortlog" | "rev-list");
    let logs = it.script.commands.iter().filter(|c| {
        c.name() == Some("git") && c.operands().next().is_some_and(|verb| walks(&verb.text)) && c.inside.is_none()
    });
    let log = only(logs)?;
    let verb = log.operands().next()?;
    // a branch, a range or a set of them is named
    let chosen = |text: &str| {
        ["--all", "--branches", "--remotes", "--glob", "--tags", "--reflog"].iter().any(|o| text.starts_with(o))
    };
    let paths = log.args().iter().position(|w| w.text == "--").unwrap_or(log.args().len());
    let names = log.operands().skip(1).any(|w| !log.args()[paths..].iter().any(|path| std::ptr::eq(path, w)));
    if names || log.args().iter().any(|w| chosen(&w.text)) {
        return None;
    }
    let fix = Edits::new(it.script).after(verb, " --branches --remotes").done();
    Some(warning("one-branch", verb, "it begins at the branch that is checked out: --branches takes every one", fix))
}

#[cfg(test)]
mod tests {
    use super::super::tests::findings;
    use super::*;

    #[test]
    fn all_branches_are_looked_at() {
        let fix = |request: &str, command: &str| findings(check, request, command).into_iter().find_map(|f| f.fix);
        assert_eq!(
            fix("history as a graph, all branches", "git log --oneline --graph").as_deref(),
            Some("git log --branches --remotes --oneline --graph")
        );
        assert_eq!(
            fix("commits per author on every branch", "git shortlog -sn | head").as_deref(),
            Some("git shortlog --branches --remotes -sn | head")
        );
        for (request, right) in [
            ("history as a graph, all branches", "git log --graph --all"),
            ("commits on any branch that are not in main", "git log --branches --not main"),
            ("history of main", "git log main"),
            ("list all branches", "git branch -a"),
            ("last commit of all branches", "for b in $(git branch); do git log -1 $b; done"),
        ] {
            assert_eq!(fix(request, right), None, "{right}");
        }
    }
}
