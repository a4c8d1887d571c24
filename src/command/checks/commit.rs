//! `git commit -m text` commits what is staged, where the request says everything.

use super::Inspected;
use super::edit::{Edits, warning};
use super::words::Words;
use crate::shell::Finding;

pub(super) fn check(it: &Inspected) -> Vec<Finding> {
    of_script(it).into_iter().collect()
}

fn of_script(it: &Inspected) -> Option<Finding> {
    let asked = Words::of(it.request);
    let all = ["everything", "all changes", "all my changes", "all the changes", "all files", "all my files"];
    if !asked.say(&["commit"]) || !asked.say(&all) || asked.say(&["staged", "stage", "except", "without", "but"]) {
        return None;
    }
    let git = || it.script.commands.iter().filter(|c| c.name() == Some("git"));
    let adds = git().any(|c| c.operands().next().is_some_and(|verb| matches!(verb.text.as_str(), "add" | "rm" | "mv")));
    let commit = git().find(|c| c.operands().next().is_some_and(|verb| verb.text == "commit"))?;
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
