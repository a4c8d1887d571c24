//! Finds a `head` at the end of a pipeline where the request asks for all.

use super::CheckContext;
use super::edit::warning;
use super::facts::sequence::line_count;
use super::words::{Words, is_in};
use caro_shell::Finding;

/// `... | head -n 10` for "all processes, sorted by memory".
pub(super) fn check(cx: &CheckContext) -> Option<Finding> {
    const ALL: &str = "all every sorted sort each";
    const SOME: &str = "top first last some few most least biggest largest smallest newest oldest latest recent \
        longest shortest highest lowest heaviest beginning start end head tail up one single sample example begin \
        preview";
    let words = Words::of(cx.request);
    if words.has_negation() {
        return None;
    }
    let list = without_order(words.list());
    let has_any = |of: &str| list.iter().any(|w| is_in(of, w));
    let has_number = list.iter().any(|w| w.contains(|c: char| c.is_ascii_digit())) || !words.numbers().is_empty();
    let last = cx.script.commands.last().filter(|c| c.name() == Some("head") && c.inside.is_none())?;
    let is_plain = last.operands().all(|w| w.text.bytes().all(|b| b.is_ascii_digit())) && last.stdin_pipe;
    let takes_one_or_bytes =
        line_count(last).is_some_and(|(_, n)| n == 1) || last.args().iter().any(|w| w.text.contains('c'));
    let has_quotes = cx.request.contains(['"', '\'']);
    if !has_any(ALL) || has_any(SOME) || has_number || !is_plain || takes_one_or_bytes || has_quotes {
        return None;
    }
    let program = last.words.first()?;
    let before = cx.script.text.get(..program.span.start)?.trim_end().strip_suffix('|')?.trim_end();
    let is_end = cx.script.text.get(last.words.last()?.span.end..)?.trim().is_empty();
    let fix = is_end.then(|| before.to_owned());
    Some(warning("cut-short", program, "nothing says that only some are wanted", fix))
}

/// Returns the words without "largest first" and "most frequent first", which mean an order and not a selection.
fn without_order(list: &[String]) -> Vec<String> {
    let is_degree = |w: &String| matches!(w.as_str(), "most" | "least") || w.len() > 4 && w.ends_with("est");
    let mut rest: Vec<String> = Vec::with_capacity(list.len());
    for word in list {
        let start = rest.len().saturating_sub(2);
        let degree = if word == "first" { rest[start..].iter().position(is_degree) } else { None };
        match degree {
            Some(at) => rest.truncate(start + at),
            None => rest.push(word.clone()),
        }
    }
    rest
}
