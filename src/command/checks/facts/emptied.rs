//! Finds files that are emptied before they are read: `sort a > a`, `sort a | tee a`.

use super::CheckContext;
use super::edit::{Edits, error};
use super::input::files;
use caro_shell::{Finding, Invocation, Word};

/// Finds a file that the command empties, and that it or a command before it in the pipeline reads. The shell empties
/// the target of a redirection before any of them starts, and `tee` empties its own at once.
pub(super) fn check(cx: &CheckContext, writer: &Invocation) -> Option<Finding> {
    let redirected =
        writer.redirects.iter().filter(|r| r.writes() && !r.appends() && !r.duplicates()).map(|r| &r.target);
    let appends = writer.has_option(Some('a'), "append");
    let is_tee = writer.name() == Some("tee") && !appends;
    let teed = writer.operands().take(if is_tee { usize::MAX } else { 0 });
    let targets: Vec<&Word> = redirected.chain(teed).filter(|word| word.value.is_some()).collect();
    let stage = writer.pipe.as_ref();
    let is_before = |c: &&Invocation| {
        std::ptr::eq(*c, writer)
            || c.pipe.as_ref().zip(stage).is_some_and(|(a, b)| a.pipeline == b.pipeline && a.index < b.index)
    };
    let found = cx.script.commands.iter().filter(is_before).find_map(|reader| {
        let inputs = files(reader)?.into_iter().chain(redirected_inputs(reader));
        let same = |word: &Word| targets.iter().copied().find(|target| is_same(target, word));
        inputs.filter(|word| word.value.is_some()).find_map(|word| Some((reader, same(word)?)))
    });
    let (reader, target) = found?;
    let name = &target.raw;
    let why = format!("{name} is emptied before it is read: what is in it is lost");
    Some(error("emptied-input", target, why, fixed(cx, reader, writer, target)))
}

/// Returns the files that standard input comes from.
fn redirected_inputs(command: &Invocation) -> impl Iterator<Item = &Word> {
    command.redirects.iter().filter(|r| r.operator == "<").map(|r| &r.target)
}

/// True for two words for one file; a device or a descriptor holds nothing.
fn is_same(a: &Word, b: &Word) -> bool {
    let path = |word: &Word| word.text.trim_start_matches("./").to_owned();
    path(a) == path(b) && !a.text.starts_with("/dev/") && a.text != "-"
}

/// `sort -o` reads all of its input before it writes.
fn fixed(cx: &CheckContext, reader: &Invocation, writer: &Invocation, target: &Word) -> Option<String> {
    let is_sort = reader.name() == Some("sort") && !reader.has_option(Some('o'), "output");
    let is_last = |word: &Word| cx.script.text.get(word.span.end..).is_some_and(|rest| rest.trim().is_empty());
    let is_simple = std::ptr::eq(reader, writer) && cx.script.commands.len() == 1 && is_last(target);
    let text = cx.script.text.get(..target.span.start)?.trim_end();
    let before = text.strip_suffix('>')?.trim_end();
    if !is_sort || !is_simple || before.ends_with(['>', '&', '|']) || before.ends_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    // the option stands behind the program, so that the file stays the last word
    let program = reader.words.first()?;
    let cut = Edits::new(cx.script).insert_after(program, &format!(" -o {}", target.raw)).apply()?;
    let removed = cx.script.text.len() - before.len();
    cut.get(..cut.len() - removed).map(str::to_owned)
}
