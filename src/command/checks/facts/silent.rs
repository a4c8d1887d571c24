//! `find . -type l -exec test ! -e {} \;` asks of each link whether it is broken, and tells nobody.

use super::edit::{Edits, warning};
use super::{CheckContext, find};
use caro_shell::Finding;
use caro_shell::parse::How;

/// Tests of `find` that print, or do something with what was found.
const TELLS: [&str; 9] = ["-print", "-print0", "-printf", "-ls", "-fprint", "-delete", "-quit", "-ok", "-execdir"];

pub(super) fn check(it: &CheckContext) -> Vec<Finding> {
    check_script(it).into_iter().collect()
}

fn check_script(it: &CheckContext) -> Option<Finding> {
    let search = find(it.script)?;
    let at = it.script.commands.iter().position(|c| std::ptr::eq(c, search))?;
    let mut inner =
        it.script.commands.iter().filter(|c| c.inside.is_some_and(|i| i.command == at && i.how == How::Wrapped));
    let test = inner.next().filter(|c| matches!(c.name(), Some("test" | "[")) && inner.next().is_none())?;
    let last = search.words.last()?;
    if search.words.iter().any(|w| TELLS.contains(&w.text.as_str())) || last.text != ";" {
        return None;
    }
    let fix = Edits::new(it.script).after(last, " -print").done();
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
