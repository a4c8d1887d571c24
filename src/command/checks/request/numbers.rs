//! Finds wrong numbers: of lines, of spaces, of a column, and a limit that the request does not ask for.

use super::edit::{Edits, warning};
use super::facts::sequence::line_count;
use super::words::{Words, number};
use super::{CheckContext, only};
use caro_shell::Finding;

pub(super) fn check(cx: &CheckContext) -> Vec<Finding> {
    let words = Words::of(cx.request);
    if words.has_negation() {
        return Vec::new();
    }
    let found = lines(cx, &words).or_else(|| unasked_limit(cx, &words));
    found.into_iter().chain(column(cx, &words)).chain(blanks(cx, &words)).collect()
}

/// `... | head -n 10` for "all processes, sorted by memory".
fn unasked_limit(cx: &CheckContext, words: &Words) -> Option<Finding> {
    const ALL: [&str; 5] = ["all", "every", "sorted", "sort", "each"];
    const SOME: [&str; 31] = [
        "top",
        "first",
        "last",
        "some",
        "few",
        "most",
        "least",
        "biggest",
        "largest",
        "smallest",
        "newest",
        "oldest",
        "latest",
        "recent",
        "longest",
        "shortest",
        "highest",
        "lowest",
        "heaviest",
        "beginning",
        "start",
        "end",
        "head",
        "tail",
        "up",
        "one",
        "single",
        "sample",
        "example",
        "begin",
        "preview",
    ];
    let list = without_order(words.list());
    let has_any = |of: &[&str]| list.iter().any(|w| of.contains(&w.as_str()));
    let has_number = list.iter().any(|w| w.contains(|c: char| c.is_ascii_digit())) || !words.numbers().is_empty();
    let last = cx.script.commands.last().filter(|c| c.name() == Some("head") && c.inside.is_none())?;
    let is_plain = last.operands().all(|w| w.text.bytes().all(|b| b.is_ascii_digit())) && last.stdin_pipe;
    let takes_one_or_bytes =
        line_count(last).is_some_and(|(_, n)| n == 1) || last.args().iter().any(|w| w.text.contains('c'));
    let has_quotes = cx.request.contains(['"', '\'']);
    if !has_any(&ALL) || has_any(&SOME) || has_number || !is_plain || takes_one_or_bytes || has_quotes {
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

/// `s/\t/  /` for "tabs become four spaces".
fn blanks(cx: &CheckContext, words: &Words) -> Option<Finding> {
    let list = words.list();
    let at = list.iter().position(|w| matches!(w.as_str(), "spaces" | "blanks"))?;
    let asked = usize::try_from(number(list.get(at.checked_sub(1)?)?)?).ok().filter(|n| (1..=16).contains(n))?;
    let [sed] = cx.script.commands.iter().filter(|c| c.name() == Some("sed")).collect::<Vec<_>>()[..] else {
        return None;
    };
    let (word, have) = sed.args().iter().find_map(|w| {
        let parts: Vec<&str> = w.text.split('/').collect();
        let [_, _, new, _] = parts[..] else { return None };
        (!new.is_empty() && new.chars().all(|c| c == ' ')).then(|| (w, new.to_owned()))
    })?;
    let fix = Edits::new(cx.script)
        .replace(word, &word.raw.replacen(&format!("/{have}/"), &format!("/{}/", " ".repeat(asked)), 1));
    let why = format!("{asked} are asked for, and this puts {}", have.len());
    (have.len() != asked && words.numbers().len() == 1).then(|| warning("how-many", word, why, fix.apply()))
}

/// `head -n 5` for "the first ten lines".
fn lines(cx: &CheckContext, words: &Words) -> Option<Finding> {
    // programs that print a header, or several lines per entry
    const HEADED: [&str; 14] = [
        "ps",
        "df",
        "docker",
        "podman",
        "ss",
        "netstat",
        "lsof",
        "top",
        "systemctl",
        "kubectl",
        "free",
        "ip",
        "git",
        "journalctl",
    ];
    let asked = amount(words)?;
    let commands = &cx.script.commands;
    let takers = commands.iter().filter(|c| matches!(c.name(), Some("head" | "tail")));
    let taker = only(takers)?;
    let are_plain = commands.iter().all(|c| {
        c.name().is_some_and(|n| !HEADED.contains(&n))
            && c.inside.is_none()
            && !(c.name() == Some("ls") && c.has_option(Some('l'), ""))
    });
    // a later filter may drop or add lines
    if !are_plain || !taker.feeds.is_empty() {
        return None;
    }
    let program = taker.words.first()?;
    let edits = Edits::new(cx.script);
    let why = |have: u64| format!("{asked} are asked for, and this takes {have}");
    match line_count(taker) {
        // one more line may be for a header
        Some((word, have)) if have != asked && have != asked + 1 => {
            let fix = edits.replace(word, &word.raw.replacen(&have.to_string(), &asked.to_string(), 1)).apply();
            Some(warning("how-many", word, why(have), fix))
        }
        None if taker.args().iter().all(|w| !w.text.starts_with(['-', '+'])) && asked != 10 => {
            Some(warning("how-many", program, why(10), edits.insert_after(program, &format!(" -n {asked}")).apply()))
        }
        _ => None,
    }
}

/// Returns the number of lines or files that the request asks for, if it is the only number in it.
fn amount(words: &Words) -> Option<u64> {
    const AHEAD: [&str; 4] = ["first", "last", "top", "bottom"];
    const BEHIND: [&str; 9] =
        ["largest", "biggest", "smallest", "newest", "oldest", "longest", "shortest", "lines", "heaviest"];
    let list = words.list();
    let digits = list.iter().filter(|w| w.contains(|c: char| c.is_ascii_digit())).count();
    let numbers = words.numbers();
    let [(at, n)] = numbers.as_slice() else { return None };
    if digits > 1 || digits == 1 && number(&list[*at]).is_none() || *n == 0 {
        return None;
    }
    if digits == 1 && !list[*at].bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let (before, after) = (at.checked_sub(1).map(|b| list[b].as_str()), list.get(at + 1).map(String::as_str));
    let is_ranked_before = before.is_some_and(|w| AHEAD.contains(&w))
        && after.is_some_and(|w| {
            matches!(
                w,
                "lines"
                    | "entries"
                    | "files"
                    | "rows"
                    | "largest"
                    | "biggest"
                    | "smallest"
                    | "newest"
                    | "oldest"
                    | "most"
            )
        });
    let is_ranked_after = after.is_some_and(|w| BEHIND.contains(&w) && w != "lines");
    // "lines longer than", "lines after each match": the number means something else
    let is_other = words.contains_phrase(&[
        "each",
        "every",
        "from",
        "starting",
        "start",
        "after",
        "before",
        "per",
        "line number",
        "skip",
        "twice",
        "columns",
        "header",
    ]);
    (!is_other && (is_ranked_before || is_ranked_after)).then_some(*n)
}

/// `cut -f2` for "the third column".
fn column(cx: &CheckContext, words: &Words) -> Option<Finding> {
    const ORDINALS: [&str; 6] = ["first", "second", "third", "fourth", "fifth", "sixth"];
    let list = words.list();
    let mut mentions = list.iter().enumerate().filter(|(_, w)| matches!(w.as_str(), "column" | "field"));
    let (at, _) = mentions.next()?;
    if mentions.next().is_some()
        || words.contains_phrase(&[
            "columns", "fields", "remove", "delete", "drop", "sort", "sorted", "where", "whose", "zero", "swap",
            "replace", "split",
        ])
    {
        return None;
    }
    let place = |w: &str| {
        ORDINALS
            .iter()
            .position(|o| *o == w)
            .map(|i| i + 1)
            .or_else(|| w.strip_suffix(['t', 'd', 'h'])?.trim_end_matches(['s', 'n', 'r', 't']).parse().ok())
    };
    let before = at.checked_sub(1).and_then(|b| place(&list[b]));
    let after = list.get(at + 1).and_then(|w| w.parse::<usize>().ok());
    let asked = before.or(after).filter(|n| *n > 0)?;
    let commands = &cx.script.commands;
    if commands.iter().any(|c| matches!(c.name(), Some("tr" | "sed" | "ls" | "ps"))) {
        return None;
    }
    let cutters = commands.iter().filter(|c| matches!(c.name(), Some("cut" | "awk" | "gawk" | "mawk")));
    let cutter = only(cutters)?;
    let edits = Edits::new(cx.script);
    let (word, have) = if cutter.name() == Some("cut") {
        let args = cutter.args();
        args.iter().enumerate().find_map(|(i, w)| match w.text.as_str() {
            "-f" => args.get(i + 1).and_then(|next| Some((next, next.text.parse::<usize>().ok()?))),
            text => text
                .strip_prefix("-f")
                .or_else(|| text.strip_prefix("--fields="))
                .and_then(|n| Some((w, n.parse().ok()?))),
        })?
    } else {
        cutter.args().iter().find_map(|w| {
            let inner: String = w.value.as_deref()?.split_whitespace().collect();
            Some((w, inner.strip_prefix("{print$")?.strip_suffix('}')?.parse::<usize>().ok()?))
        })?
    };
    if have == asked || have == 0 {
        return None;
    }
    let at = word.raw.rfind(&have.to_string())?;
    let mut fixed = word.raw.clone();
    fixed.replace_range(at..at + have.to_string().len(), &asked.to_string());
    Some(warning(
        "which-column",
        word,
        format!("column {asked} is asked for, and this takes column {have}"),
        edits.replace(word, &fixed).apply(),
    ))
}
