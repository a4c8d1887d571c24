//! Finds a `sort` for "sort it and keep the header on top": it sorts the header among the lines.

use super::CheckContext;
use super::edit::warning;
use super::facts::is_csv;
use super::facts::sequence::line_count;
use super::words::{NOT, Words, is_in};
use caro_shell::{Finding, Invocation, Word};

pub(super) fn check(cx: &CheckContext) -> Option<Finding> {
    const HEADER: &str = "header|header line|heading";
    const KEEPS: &str = "keep|keeping|keeps|kept|stay|stays|staying|on top|at the top|in place|still first|remains|\
        preserve|preserving";
    let words = Words::of(cx.request);
    let is_negated = words.list().iter().any(|word| is_in(NOT, word) || word == "headers");
    if !words.contains_phrase(HEADER) || !words.contains_phrase(KEEPS) || is_negated {
        return None;
    }
    // `sort` alone, or with a `head -n 1` that is meant for the header but takes the first of the sorted lines
    let commands = &cx.script.commands;
    let sort =
        commands.first().filter(|c| c.name() == Some("sort") && c.redirects.is_empty() && c.assignments.is_empty())?;
    let takes_one = |head: &Invocation| {
        head.operands().all(|w| w.text.bytes().all(|b| b.is_ascii_digit()))
            && line_count(head).is_some_and(|(_, count)| count == 1)
    };
    let is_plain = match &commands[1..] {
        [] => true,
        [head] => head.name() == Some("head") && takes_one(head) && head.redirects.is_empty(),
        _ => false,
    };
    let [file] = sort.operands().filter(|w| is_table(w)).collect::<Vec<_>>()[..] else { return None };
    // the pipeline is the whole script
    let (program, last) = (sort.words.first()?, commands.last()?.words.last()?);
    let is_whole = is_plain
        && cx.script.text.get(program.span.start..last.span.end)? == cx.script.text.trim()
        && cx.script.redirects.is_empty();
    if !is_whole || sort.has_option(Some('o'), "output") {
        return None;
    }
    let options: String =
        sort.args().iter().filter(|w| !std::ptr::eq(*w, file)).map(|w| format!(" {}", w.raw)).collect();
    let fix = format!("head -n 1 {0} && tail -n +2 {0} | sort{options}", file.raw);
    Some(warning("header-sorted", program, "the header is sorted among the lines: it is to stay on top", Some(fix)))
}

fn is_table(word: &Word) -> bool {
    is_csv(word) || [".tsv", ".txt", ".tab"].iter().any(|ending| word.text.to_lowercase().ends_with(ending))
}
