//! Something is removed, and the request only wants to see it.

use super::Inspected;
use super::edit::{Edits, warning};
use crate::shell::asked::only_looks;
use crate::shell::{Finding, Invocation, Word};

pub(super) fn check(it: &Inspected) -> Vec<Finding> {
    // a copy, and then the original goes: that moves it
    let copies = |c: &Invocation| matches!(c.name(), Some("cp" | "rsync" | "tar" | "zip" | "install"));
    if !only_looks(it.request) || it.script.commands.iter().any(copies) {
        return Vec::new();
    }
    it.script.commands.iter().filter_map(|c| removal(it, c)).take(1).collect()
}

/// What a command takes away that was there before.
fn removal(it: &Inspected, command: &Invocation) -> Option<Finding> {
    let why = "the request only wants to see it, and this removes it";
    let program = command.words.first()?;
    match command.name()? {
        "rm" | "rmdir" | "unlink" | "shred" => {
            let own = |w: &&Word| w.expands || made(it, &w.text);
            let mut operands = command.operands().peekable();
            let all_own = operands.peek().is_some() && operands.all(|w| own(&w));
            (!all_own).then(|| warning("unasked-removal", program, why, None))
        }
        "find" => {
            let delete = command.args().iter().find(|w| w.text == "-delete")?;
            let fix = Edits::new(it.script).replace(delete, "").done();
            Some(warning("unasked-removal", delete, why, fix))
        }
        _ => None,
    }
}

/// True for a file that the command itself has written.
fn made(it: &Inspected, name: &str) -> bool {
    let commands = &it.script.commands;
    let by = |c: &Invocation| {
        c.redirects.iter().any(|r| r.target.text == name)
            || c.name() != Some("rm") && c.args().iter().any(|w| w.text == name)
    };
    commands.iter().any(by)
}

#[cfg(test)]
mod tests {
    use super::super::tests::findings;
    use super::*;

    #[test]
    fn who_only_looks_loses_nothing() {
        let found = |request, command| findings(check, request, command).into_iter().map(|f| f.fix).next();
        let old = "find the two oldest files in archive";
        assert_eq!(found(old, "ls -tr archive | head -n 2 | xargs rm"), Some(None));
        assert_eq!(found(old, "find archive -type f -exec rm {} +"), Some(None));
        assert_eq!(
            found("list the tmp files", "find . -name '*.tmp' -delete"),
            Some(Some("find . -name '*.tmp'".into()))
        );
        assert_eq!(found("can you show me empty folders", "rmdir *"), None, "`empty` may be meant as an order");
        for (request, right) in [
            ("find the two oldest files and delete them", "ls -tr | head -n 2 | xargs rm"),
            ("find and remove tmp files", "find . -name '*.tmp' -delete"),
            ("lösche alle tmp-Dateien", "rm *.tmp"),
            ("get rid of the tmp files", "rm *.tmp"),
            ("compare the sorted lists a and b", "sort a > a.s; sort b > b.s; diff a.s b.s; rm a.s b.s"),
            ("show the difference", "t=$(mktemp); sort a > \"$t\"; diff \"$t\" b; rm \"$t\""),
            (old, "ls -tr archive | head -n 2"),
            ("find the pdf files and put them into docs", "cp *.pdf docs && rm *.pdf"),
        ] {
            assert_eq!(found(request, right), None, "{right}");
        }
    }
}
