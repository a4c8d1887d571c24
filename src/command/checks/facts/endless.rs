//! Finds `tail -f log | tail -n 20`, where a program waits for the end of a stream that never ends.

use super::CheckContext;
use super::edit::warning;
use caro_shell::{Finding, Invocation};

fn follows(tail: &Invocation) -> bool {
    tail.name() == Some("tail") && (tail.has_option(Some('f'), "follow") || tail.has_option(Some('F'), "follow"))
}

pub(super) fn check(cx: &CheckContext) -> Option<Finding> {
    const WAITS_FOR_END: [&str; 4] = ["tail", "sort", "wc", "tac"];
    let commands = &cx.script.commands;
    let tail = commands.iter().find(|c| follows(c))?;
    let reader = cx.script.reader(tail).filter(|c| c.name().is_some_and(|n| WAITS_FOR_END.contains(&n)))?;
    let program = reader.words.first()?;
    let why = format!("tail -f does not end, and {} says nothing before the end", program.raw);
    // the number of lines to begin with is an option of the first tail
    let (first, last) = (tail.words.first()?, reader.words.last()?);
    let (file, options) = (cx.script.text.get(first.span.end..)?, cx.script.text.get(program.span.end..last.span.end)?);
    let file = file.split('|').next()?.trim();
    let has_only_options =
        reader.args().iter().all(|w| w.text.starts_with('-') || w.text.bytes().all(|b| b.is_ascii_digit()));
    let is_fixable = commands.len() == 2 && reader.name() == Some("tail") && has_only_options && tail.args().len() == 2;
    Some(warning("no-end", program, why, is_fixable.then(|| format!("tail{options} {file}"))))
}
