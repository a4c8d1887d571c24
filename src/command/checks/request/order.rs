//! Finds a wrong direction of `sort` and `ls -t`.

use super::CheckContext;
use super::edit::{Edits, is_cluster, is_ls_cluster, ls_cluster_with, warning, without_letter};
use super::words::Words;
use caro_shell::{Finding, Invocation};

/// True if the request asks for descending order, false for ascending; `None` if it does not say.
fn wants_descending(words: &Words) -> Option<bool> {
    let down = words.contains_phrase(
        "descending|descending order|largest first|biggest first|highest first|\
            largest to smallest|high to low",
    );
    let up = words.contains_phrase("ascending|smallest first|lowest first|smallest to largest|low to high");
    (down != up && !words.has_negation()).then_some(down)
}

pub(super) fn check(cx: &CheckContext) -> Option<Finding> {
    let words = Words::of(cx.request);
    let commands = &cx.script.commands;
    if commands.iter().any(|c| matches!(c.name(), Some("tac" | "tail" | "head" | "awk" | "join" | "comm"))) {
        return None;
    }
    let edits = Edits::new(cx.script);
    let mut sorts = commands.iter().filter(|c| c.name() == Some("sort"));
    if let Some(sort) = sorts.next() {
        // several sorts or keys may each have their own direction
        let keys = sort.args().iter().filter(|w| w.text.starts_with("-k") || w.text.starts_with("--key")).count();
        if sorts.next().is_some() || keys > 1 || !sort.feeds.is_empty() {
            return None;
        }
        let (down, program) = (wants_descending(&words)?, sort.words.first()?);
        let reversed = sort.args().iter().find(|w| {
            w.text.starts_with("--rev") || w.text.starts_with('-') && !w.text.starts_with("--") && w.text.contains('r')
        });
        let why = if down {
            "the largest are to come first: sort -r"
        } else {
            "the smallest are to come first: sort without -r"
        };
        return match reversed {
            // a key with letters of its own ignores the global ones
            None if down && has_key_letters(sort) => None,
            None if down => Some(warning("sort-order", program, why, edits.insert_after(program, " -r").apply())),
            Some(flag) if !down && is_cluster(flag) => {
                Some(warning("sort-order", flag, why, edits.replace(flag, &without_letter(&flag.raw, 'r')).apply()))
            }
            _ => None,
        };
    }
    // filters do not change the order
    let (ls, filters) = commands.split_first()?;
    if filters.iter().any(|c| !matches!(c.name(), Some("grep" | "egrep"))) {
        return None;
    }
    let (newest, oldest) = (
        words.contains_phrase("newest first|most recent first|latest first|newest to oldest"),
        words.contains_phrase("oldest first|oldest to newest"),
    );
    let time_flag = ls_cluster_with(ls, 't')?;
    let reversed = ls_cluster_with(ls, 'r').or_else(|| ls.args().iter().find(|w| w.text.starts_with("--rev")));
    if ls.name() != Some("ls") || newest == oldest || words.has_negation() {
        return None;
    }
    match reversed {
        None if oldest => {
            let fix = edits.replace(time_flag, &format!("{}r", time_flag.raw)).apply();
            Some(warning("sort-order", time_flag, "ls -t puts the newest first: -tr the oldest", fix))
        }
        Some(flag) if newest && is_ls_cluster(flag) => {
            let fix = edits.replace(flag, &without_letter(&flag.raw, 'r')).apply();
            Some(warning("sort-order", flag, "ls -t puts the newest first, and -r turns that around", fix))
        }
        _ => None,
    }
}

/// True if a key of sort has letters: `-k2n`, `-k 1,1h`.
fn has_key_letters(sort: &Invocation) -> bool {
    let keys = sort.args().iter().enumerate().filter(|(_, w)| w.text.starts_with("-k") || w.text.starts_with("--key"));
    let value = |at: usize| sort.args().get(at + 1).map_or("", |w| w.text.as_str());
    keys.map(|(at, w)| if w.text == "-k" || w.text == "--key" { value(at) } else { &w.text[2..] })
        .any(|key| key.trim_start_matches("key").chars().any(|c| c.is_ascii_alphabetic()))
}
