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
