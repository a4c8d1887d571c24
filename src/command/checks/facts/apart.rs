//! Finds two commands without a separator: `find a -exec x {} \; find b -exec y {} \;`.

use super::CheckContext;
use super::edit::{Edits, warning};
use caro_shell::{Finding, Invocation, Word};

pub(super) fn check(cx: &CheckContext, command: &Invocation) -> Option<Finding> {
    let ends = |w: &&[Word]| matches!(w[0].text.as_str(), ";" | "+") && w[1].raw == "find";
    if command.name() != Some("find") {
        return None;
    }
    let word = &command.words.windows(2).find(ends)?[1];
    let fix = Edits::new(cx.script).insert_before(word, "&& ").apply();
    Some(warning("not-apart", word, "the `;` before it belongs to -exec: nothing ends the first command", fix))
}
