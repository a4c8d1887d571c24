//! Finds text that is mistaken for a process: `ps aux | grep sshd | awk '{print $2}'`, which finds the `grep` too,
//! the heading of `lsof`, and a process id that `taskset` takes for a program.

use super::CheckContext;
use super::awk::{is_awk, shown_field};
use super::edit::{Edits, warning};
use super::words::is_in;
use caro_shell::{Finding, Invocation, quote};

pub(super) fn check(cx: &CheckContext) -> Option<Finding> {
    finds_itself(cx).or_else(|| heading(cx)).or_else(|| pinned(cx))
}

/// `ps aux | grep sshd | awk '{print $2}'`: the list of processes contains the search itself.
fn finds_itself(cx: &CheckContext) -> Option<Finding> {
    let ps = cx.script.commands.iter().find(|c| c.name() == Some("ps") && c.inside.is_none())?;
    let grep = cx.script.reader(ps).filter(|c| c.name() == Some("grep"))?;
    let awk = cx.script.reader(grep).filter(|c| is_awk(c))?;
    let ([pattern], [program], [first, ..]) = (grep.args(), awk.args(), ps.words.as_slice()) else { return None };
    let text = pattern.value.as_deref()?;
    let is_plain = !text.is_empty() && text.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-'));
    let lists_all = !ps.args().is_empty() && ps.args().iter().all(|w| is_in("aux -ef -aux ax -e -A -f", &w.text));
    // long lists begin with the user
    let column = if ps.args().iter().any(|w| w.text.contains(['u', 'f'])) { 2 } else { 1 };
    if !is_plain || !lists_all || shown_field(program.value.as_deref()?) != Some((column, true)) {
        return None;
    }
    let pgrep = format!("pgrep -f {}", quote(text, cx.dialect));
    let fix = Edits::new(cx.script).replace_span(&[first.clone(), program.clone()], &pgrep).apply();
    let why = "grep itself is a process with that word: pgrep leaves itself out";
    Some(warning("finds-itself", pattern, why, fix))
}

/// `taskset -c 0,1 1234`: without `-p` the number is a program to start.
fn pinned(cx: &CheckContext) -> Option<Finding> {
    let is_id = |name: &str| name.bytes().all(|b| b.is_ascii_digit());
    let is_started = |c: &&Invocation| c.via.last().is_some_and(|via| via == "taskset") && c.name().is_some_and(is_id);
    let started = cx.script.commands.iter().find(is_started)?;
    let taskset = cx.script.commands.get(started.inside?.command).filter(|c| c.name() == Some("taskset"))?;
    let [program, option, ..] = taskset.words.as_slice() else { return None };
    if option.text != "-c" {
        return None;
    }
    let fix = Edits::new(cx.script).insert_after(program, " -p").apply();
    let why = "without -p this starts a program of that name: -p takes a process that runs";
    Some(warning("process-as-program", started.words.first()?, why, fix))
}

/// `lsof -i :80 | awk '{print $2}' | xargs kill`: the first line is a heading with the word `PID`.
fn heading(cx: &CheckContext) -> Option<Finding> {
    let commands = &cx.script.commands;
    let lsof = commands.iter().find(|c| c.name() == Some("lsof") && !c.has_option(Some('t'), "terse"))?;
    let [program] = cx.script.reader(lsof).filter(|c| is_awk(c))?.args() else { return None };
    let text = program.value.as_deref()?;
    // the second column has the ids
    if !matches!(shown_field(text), Some((2, _))) {
        return None;
    }
    let action = text.trim().trim_start_matches('{').trim_end_matches('}').trim();
    let guarded = quote(&format!("NR>1 {{{action}}}"), cx.dialect);
    let fix = Edits::new(cx.script).replace(program, &guarded).apply();
    Some(warning("heading", program, "the first line of lsof is a heading, and `PID` is no process", fix))
}
