//! Finds two commands without a separator: `find a -exec x {} \; find b -exec y {} \;`.

use super::CheckContext;
use super::edit::{Edits, warning};
use caro_shell::{Finding, Word};

pub(super) fn check(cx: &CheckContext) -> Vec<Finding> {
    let finds = cx.script.commands.iter().filter(|c| c.name() == Some("find"));
    finds
        .filter_map(|command| {
            let ends = |w: &&[Word]| matches!(w[0].text.as_str(), ";" | "+") && w[1].raw == "find";
            let word = &command.words.windows(2).find(ends)?[1];
            let fix = Edits::new(cx.script).insert_before(word, "&& ").apply();
            let why = "the `;` before it belongs to -exec: nothing ends the first command";
            Some(warning("not-apart", word, why, fix))
        })
        .collect()
}
