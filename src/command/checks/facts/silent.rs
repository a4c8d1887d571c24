//! Finds `find . -type l -exec test ! -e {} \;`, which tests each link but prints nothing.

use super::edit::{Edits, warning};
use super::{CheckContext, only, single_find};
use caro_shell::parse::How;
use caro_shell::{Finding, Invocation};

/// Actions of `find` that print or change the files found.
const ACTIONS: [&str; 9] = ["-print", "-print0", "-printf", "-ls", "-fprint", "-delete", "-quit", "-ok", "-execdir"];

pub(super) fn check(cx: &CheckContext) -> Option<Finding> {
    let search = single_find(cx.script)?;
    let at = cx.script.commands.iter().position(|c| std::ptr::eq(c, search))?;
    let is_inner = |c: &&Invocation| c.inside.is_some_and(|i| i.command == at && i.how == How::Wrapped);
    let test = only(cx.script.commands.iter().filter(is_inner)).filter(|c| matches!(c.name(), Some("test" | "[")))?;
    let last = search.words.last()?;
    if search.words.iter().any(|w| ACTIONS.contains(&w.text.as_str())) || last.text != ";" {
        return None;
    }
    let fix = Edits::new(cx.script).insert_after(last, " -print").apply();
    const WHY: &str = "the test says nothing by itself: -print behind it names what passes";
    Some(warning("nothing-printed", test.words.first()?, WHY, fix))
}

#[cfg(test)]
mod tests {
    use super::super::tests::findings;
    use super::*;

    #[test]
    fn a_test_alone_prints_nothing() {
        let fix = |command: &str| findings(check, "", command).into_iter().next().and_then(|f| f.fix);
        let broken = "find . -type l -exec test ! -e {} \\;";
        assert_eq!(fix(broken), Some(format!("{broken} -print")));
        assert_eq!(fix("find x -exec [ -s {} ] \\;").as_deref(), Some("find x -exec [ -s {} ] \\; -print"));
        for right in [
            "find . -type l ! -exec test -e {} \\; -print",
            "find . -exec test -s {} \\; -delete",
            "find . -exec test -s {} \\; -exec rm {} \\;",
            "find . -exec grep -q x {} \\; -print",
            "find . -type l",
        ] {
            assert_eq!(fix(right), None, "{right}");
        }
    }
}
