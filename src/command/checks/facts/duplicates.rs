//! Finds `md5sum * | sort | uniq -d` for files with the same content: it compares whole lines, and each has another
//! file name.

use super::edit::{Edits, warning};
use super::sums::digits_of;
use super::{CheckContext, only};
use caro_shell::{Finding, Invocation, Userland, Word};

pub(super) fn check(cx: &CheckContext) -> Option<Finding> {
    let commands = &cx.script.commands;
    let sums = commands.iter().filter_map(|c| Some((c.name()?, digits_of(c.name()?)?)));
    let (name, length) = only(sums)?;
    let at = commands.iter().position(|c| c.name() == Some("uniq"))?;
    let uniq = &commands[at];
    // `-f` and `-s` skip the beginning of the line, and `-u` asks for unique lines
    let has_other_option = |w: &Word| {
        w.text.starts_with("--") || w.text.strip_prefix('-').is_some_and(|l| l.contains(['w', 'f', 's', 'u']))
    };
    let between = commands[..at]
        .iter()
        .filter(|c| !matches!(c.name(), Some("find" | "xargs" | "sort")) && c.name() != Some(name));
    if uniq.args().iter().any(has_other_option) || between.count() > 0 {
        return None;
    }
    let (program, sort) = (uniq.words.first()?, commands.iter().find(|c| c.name() == Some("sort")));
    let edits = Edits::new(cx.script).insert_after(program, &format!(" -w{length}"));
    // equal checksums have to be adjacent
    let edits = match sort.map(|sort| (sort, by_name(sort))) {
        Some((sort, Some(_))) => edits.replace_span(&sort.words, "sort"),
        _ => edits,
    };
    // only GNU's uniq has `-w`
    let is_fixable = cx.target.userland == Userland::Gnu && sort.is_some();
    let why = format!("every line ends in another name, so no two are the same: compare the first {length} characters");
    Some(warning("never-alike", program, why, if is_fixable { edits.apply() } else { None }))
}

/// Returns the option with which `sort` uses the name after the checksum as its key.
fn by_name(sort: &Invocation) -> Option<&Word> {
    sort.args().iter().find(|w| w.text.starts_with("-k") || w.text.starts_with("--key"))
}
