//! Ten were asked for and five are taken; the third column was asked for and the second is cut.

use super::edit::{Edits, warning};
use super::facts::sequence::line_count;
use super::words::{Words, number};
use super::{CheckContext, only};
use caro_shell::Finding;

pub(super) fn check(it: &CheckContext) -> Vec<Finding> {
    let words = Words::of(it.request);
    if words.has_negation() {
        return Vec::new();
    }
    let found = lines(it, &words).or_else(|| unlimited(it, &words));
    found.into_iter().chain(column(it, &words)).chain(blanks(it, &words)).collect()
}

/// `... | head -n 10` for "all processes, sorted by memory".
fn unlimited(it: &CheckContext, words: &Words) -> Option<Finding> {
    const WHOLE: [&str; 5] = ["all", "every", "sorted", "sort", "each"];
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
    let said = |of: &[&str]| list.iter().any(|w| of.contains(&w.as_str()));
    let number = list.iter().any(|w| w.contains(|c: char| c.is_ascii_digit())) || !words.numbers().is_empty();
    let last = it.script.commands.last().filter(|c| c.name() == Some("head") && c.inside.is_none())?;
    let plain = last.operands().all(|w| w.text.bytes().all(|b| b.is_ascii_digit())) && last.stdin_pipe;
    let one = line_count(last).is_some_and(|(_, n)| n == 1) || last.args().iter().any(|w| w.text.contains('c'));
    if !said(&WHOLE) || said(&SOME) || number || !plain || one || it.request.contains(['"', '\'']) {
        return None;
    }
    let program = last.words.first()?;
    let before = it.script.text.get(..program.span.start)?.trim_end().strip_suffix('|')?.trim_end();
    let whole = it.script.text.get(last.words.last()?.span.end..)?.trim().is_empty();
    let fix = Some(before.to_owned()).filter(|_| whole);
    Some(warning("cut-short", program, "nothing says that only some are wanted", fix))
}

/// The words but "largest first", "most frequent first": that is an order, and no number of them.
fn without_order(list: &[String]) -> Vec<String> {
    let is_degree = |w: &String| matches!(w.as_str(), "most" | "least") || w.len() > 4 && w.ends_with("est");
    let mut kept: Vec<String> = Vec::with_capacity(list.len());
    for word in list {
        let degree = kept.len().saturating_sub(2)..kept.len();
        match kept[degree.clone()].iter().position(is_degree).filter(|_| word == "first") {
            Some(at) => kept.truncate(degree.start + at),
            None => kept.push(word.clone()),
        }
    }
    kept
}

/// `s/\t/  /` for "tabs become four spaces".
fn blanks(it: &CheckContext, words: &Words) -> Option<Finding> {
    let list = words.list();
    let at = list.iter().position(|w| matches!(w.as_str(), "spaces" | "blanks"))?;
    let asked = usize::try_from(number(list.get(at.checked_sub(1)?)?)?).ok().filter(|n| (1..=16).contains(n))?;
    let [sed] = it.script.commands.iter().filter(|c| c.name() == Some("sed")).collect::<Vec<_>>()[..] else {
        return None;
    };
    let (word, have) = sed.args().iter().find_map(|w| {
        let parts: Vec<&str> = w.text.split('/').collect();
        let [_, _, new, _] = parts[..] else { return None };
        (!new.is_empty() && new.chars().all(|c| c == ' ')).then(|| (w, new.to_owned()))
    })?;
    let fix = Edits::new(it.script)
        .replace(word, &word.raw.replacen(&format!("/{have}/"), &format!("/{}/", " ".repeat(asked)), 1));
    let why = format!("{asked} are asked for, and this puts {}", have.len());
    (have.len() != asked && words.numbers().len() == 1).then(|| warning("how-many", word, why, fix.done()))
}

fn lines(it: &CheckContext, words: &Words) -> Option<Finding> {
    // programs that print a header, or several lines for each thing
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
    let commands = &it.script.commands;
    let takers = commands.iter().filter(|c| matches!(c.name(), Some("head" | "tail")));
    let taker = only(takers)?;
    let plain = commands.iter().all(|c| {
        c.name().is_some_and(|n| !HEADED.contains(&n))
            && c.inside.is_none()
            && !(c.name() == Some("ls") && c.has_option(Some('l'), ""))
    });
    // a later filter may drop or add lines
    if !plain || !taker.feeds.is_empty() {
        return None;
    }
    let program = taker.words.first()?;
    let edits = Edits::new(it.script);
    let why = |have: u64| format!("{asked} are asked for, and this takes {have}");
    match line_count(taker) {
        // one more is a header's line
        Some((word, have)) if have != asked && have != asked + 1 => {
            let fix = edits.replace(word, &word.raw.replacen(&have.to_string(), &asked.to_string(), 1)).done();
            Some(warning("how-many", word, why(have), fix))
        }
        None if taker.args().iter().all(|w| !w.text.starts_with(['-', '+'])) && asked != 10 => {
            Some(warning("how-many", program, why(10), edits.after(program, &format!(" -n {asked}")).done()))
        }
        _ => None,
    }
}

/// How many lines or files are asked for, if the request has that number and no other.
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
    let ranked = before.is_some_and(|w| AHEAD.contains(&w))
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
    let rank = after.is_some_and(|w| BEHIND.contains(&w) && w != "lines");
    // "lines longer than", "lines after each match" are other questions
    let other = words.contains_phrase(&[
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
    (!other && (ranked || rank)).then_some(*n)
}

fn column(it: &CheckContext, words: &Words) -> Option<Finding> {
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
    let commands = &it.script.commands;
    if commands.iter().any(|c| matches!(c.name(), Some("tr" | "sed" | "ls" | "ps"))) {
        return None;
    }
    let cutters = commands.iter().filter(|c| matches!(c.name(), Some("cut" | "awk" | "gawk" | "mawk")));
    let cutter = only(cutters)?;
    let edits = Edits::new(it.script);
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
    let mut mended = word.raw.clone();
    mended.replace_range(at..at + have.to_string().len(), &asked.to_string());
    Some(warning(
        "which-column",
        word,
        format!("column {asked} is asked for, and this takes column {have}"),
        edits.replace(word, &mended).done(),
    ))
}
