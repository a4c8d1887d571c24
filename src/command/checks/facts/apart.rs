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

#[cfg(test)]
mod tests {
    use super::super::tests::findings;
    use super::*;

    #[test]
    fn two_finds_need_a_separator() {
        let fix = |command| findings(check, "", command).into_iter().next().and_then(|f| f.fix);
        let right = "find d -type d -exec chmod 755 {} \\; && find d -type f -exec chmod 644 {} \\;";
        assert_eq!(
            fix("find d -type d -exec chmod 755 {} \\; find d -type f -exec chmod 644 {} \\;").as_deref(),
            Some(right)
        );
        assert_eq!(fix(right), None);
        assert_eq!(fix("find d -type d -exec echo {} + -o -name find"), None);
    }
}
