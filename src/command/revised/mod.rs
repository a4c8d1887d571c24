//! Finds conditions of an earlier command that the command which is to change it leaves out, although the request does
//! not ask for that: after `find . -name '*.log'`, "older than a week" means logs.
//!
//! - [`conditions`]: the tests, filters and folders of a command. [`words`]: decides whether a request asks to leave
//!   one out.

mod conditions;
mod words;

use super::answer::History;
use super::checks::edit::Edits;
use caro_shell::find::starting_points;
use caro_shell::{Dialect, Finding, Invocation, Script, Severity, Word, parse};
use conditions::{Condition, Family, Origin};

/// The id of the finding.
pub(super) const ID: &str = "dropped-condition";

/// Options of `find` behind which its tests are inserted, each with one value.
const FIRST_OPTIONS: [&str; 3] = ["-maxdepth", "-mindepth", "-type"];

/// Programs whose filters may stand directly behind the name.
const LEADING_FILTERS: [&str; 8] = ["grep", "egrep", "fgrep", "zgrep", "rg", "du", "rsync", "tar"];

/// Compares a command with the earlier one that the request is to change, if there is one.
pub(super) fn check(before: &History, request: &str, command: &str, dialect: Dialect) -> Option<Finding> {
    if !before.revises || dialect == Dialect::PowerShell {
        return None;
    }
    let earlier = parse(&before.said.last()?.command, dialect);
    let new = parse(command, dialect);
    if !earlier.errors.is_empty() || !new.errors.is_empty() {
        return None;
    }
    finding(&earlier, request, &new)
}

fn finding(earlier: &Script, request: &str, new: &Script) -> Option<Finding> {
    let (before, now) = (conditions::of(earlier), conditions::of(new));
    if words::is_self_contained(request) && has_new_object(&before, &now) {
        return None;
    }
    let refers = words::refers_back(request);
    let is_dropped = |condition: &&Condition| {
        let same_program = new.commands.iter().any(|c| c.name() == Some(&condition.program));
        let applies = same_program || refers && condition.outlives_program();
        applies && !condition.is_kept(new) && !words::lets_go(request, condition, &now, &before)
    };
    let dropped: Vec<&Condition> = before.iter().filter(is_dropped).collect();
    let program = new.commands.first()?.words.first()?;
    let texts: Vec<String> = dropped.iter().map(|condition| format!("`{}`", condition.text)).collect();
    (!texts.is_empty()).then(|| Finding {
        id: ID.into(),
        severity: Severity::Warning,
        token: program.raw.clone(),
        span: Some(program.span.clone()),
        why: format!("leaves out {} of the earlier command", texts.join(" and ")),
        evidence: Vec::new(),
        fix: fixed(new, &dropped, &now),
    })
}

/// True if the new command searches for other names, or elsewhere.
fn has_new_object(before: &[Condition], now: &[Condition]) -> bool {
    now.iter().any(|new| matches!(new.family, Family::Name | Family::Folder) && !before.iter().any(|old| old.is(new)))
}

/// Returns the command with the conditions put back; `None` if it is not certain where one belongs.
fn fixed(new: &Script, dropped: &[&Condition], now: &[Condition]) -> Option<String> {
    let mut edits = Edits::new(new);
    let mut tests: Vec<&str> = Vec::new();
    let mut depths: Vec<&str> = Vec::new();
    for condition in dropped {
        let mut same = new.commands.iter().filter(|c| c.name() == Some(&condition.program));
        let command = same.next()?;
        // two sizes or two ages would contradict each other
        let has_other = condition.is_single() && now.iter().any(|new| new.family == condition.family);
        if same.next().is_some() || condition.has_branches || has_other {
            return None;
        }
        match condition.origin {
            Origin::Test if condition.family == Family::Depth => depths.push(&condition.text),
            Origin::Test => tests.push(&condition.text),
            Origin::Option => edits = edits.insert_after(filter_place(command)?, &format!(" {}", condition.text)),
            Origin::Start => edits = edits.replace(only_dot(command)?, &condition.text),
            Origin::Operand => edits = edits.insert_after(bare_end(command)?, &format!(" {}", condition.text)),
            Origin::Pattern => return None,
        }
    }
    if !tests.is_empty() || !depths.is_empty() {
        let search = new.commands.iter().find(|c| c.name() == Some("find"))?;
        if conditions::has_branches(search) {
            return None;
        }
        let folder = starting_points(search).last().or(search.words.first())?;
        let behind = last_first_option(search, folder);
        if depths.is_empty() || std::ptr::eq(behind, folder) {
            let all: Vec<&str> = depths.into_iter().chain(tests).collect();
            edits = edits.insert_after(behind, &format!(" {}", all.join(" ")));
        } else {
            edits = edits.insert_after(folder, &format!(" {}", depths.join(" ")));
            if !tests.is_empty() {
                edits = edits.insert_after(behind, &format!(" {}", tests.join(" ")));
            }
        }
    }
    edits.apply()
}

/// Returns the last word of the [`FIRST_OPTIONS`] directly behind the starting points.
fn last_first_option<'a>(search: &'a Invocation, folder: &'a Word) -> &'a Word {
    let begin = search.words.iter().position(|w| std::ptr::eq(w, folder)).map_or(1, |at| at + 1);
    let rest = search.words.get(begin..).unwrap_or_default();
    let pairs = rest.chunks_exact(2).take_while(|pair| FIRST_OPTIONS.contains(&pair[0].text.as_str()));
    pairs.last().map_or(folder, |pair| &pair[1])
}

/// Returns the program word of a command whose filters may stand behind it.
fn filter_place(command: &Invocation) -> Option<&Word> {
    let name = command.name()?;
    let is_old_style = name == "tar" && !command.args().first()?.text.starts_with('-');
    (LEADING_FILTERS.contains(&name) && !is_old_style).then(|| command.words.first()).flatten()
}

/// Returns the starting point of a `find` that searches only the working directory.
fn only_dot(search: &Invocation) -> Option<&Word> {
    let starts: Vec<&Word> = starting_points(search).collect();
    match starts[..] {
        [start] if start.text == "." => Some(start),
        _ => None,
    }
}

/// Returns the last word of a command without operands.
fn bare_end(command: &Invocation) -> Option<&Word> {
    let is_bare = command.args().iter().all(|w| w.text.starts_with('-'));
    is_bare.then(|| command.words.last()).flatten()
}

#[cfg(test)]
mod tests;
