//! One line was asked for and the first so many are taken; a range of lines, and the end of it is counted wrongly.

use super::CheckContext;
use super::edit::{Edits, warning};
use super::order::line_count;
use super::words::{Words, number};
use crate::shell::{Finding, Invocation, Userland, Word};

pub(super) fn check(it: &CheckContext) -> Vec<Finding> {
    let words = Words::of(it.request);
    let found =
        one(it, &words).or_else(|| range(it, &words)).or_else(|| headless(it, &words)).or_else(|| beheaded(it, &words));
    found.or_else(|| unsorted(it, &words)).into_iter().collect()
}

/// `head -n 5 f` for "the fifth line".
fn one(it: &CheckContext, words: &Words) -> Option<Finding> {
    let [head] = it.script.commands.as_slice() else { return None };
    let asked = single(words)?;
    let (word, have) = line_count(head).filter(|_| head.name() == Some("head") && !words.negate())?;
    let [file] = head.operands().filter(|w| *w != word).collect::<Vec<_>>()[..] else { return None };
    let fix = Edits::new(it.script).span(&head.words, &format!("sed -n '{asked}p' {}", file.raw)).done();
    (have == asked && asked > 1).then(|| {
        warning("one-line", word, format!("line {asked} alone is asked for, and this takes all up to it"), fix)
    })
}

/// `tail -n +2 f | head -n 4` for "lines 2 to 4".
fn range(it: &CheckContext, words: &Words) -> Option<Finding> {
    let (from, to) = bounds(words)?;
    let [first, second] = it.script.commands.as_slice() else { return None };
    if first.feeds != [1] || words.negate() {
        return None;
    }
    let count = to - from + 1;
    let (word, have) = line_count(second)?;
    let counted_wrongly = match (first.name()?, second.name()?) {
        ("tail", "head") => start(first)? == from && have != count,
        ("head", "tail") => line_count(first)?.1 == to && have != count,
        _ => false,
    };
    let fix = Edits::new(it.script).replace(word, &word.raw.replacen(&have.to_string(), &count.to_string(), 1)).done();
    counted_wrongly
        .then(|| warning("line-range", word, format!("lines {from} to {to} are {count}, and this takes {have}"), fix))
}

/// `... | head -n -1` for "without the header", which is the first line.
fn headless(it: &CheckContext, words: &Words) -> Option<Finding> {
    const SAID: [&str; 8] = [
        "without the header",
        "without header",
        "without its header",
        "without the first line",
        "without its first line",
        "skip the header",
        "skipping the header",
        "skip the first line",
    ];
    let mut heads = it.script.commands.iter().filter(|c| c.name() == Some("head"));
    let head = heads.next().filter(|_| heads.next().is_none() && words.say(&SAID))?;
    let [program, n, all_but, ..] = head.words.as_slice() else { return None };
    let last = n.text == "-n" && all_but.text == "-1";
    let fix = Edits::new(it.script).replace(program, "tail").replace(all_but, "+2").done();
    last.then(|| warning("wrong-end", all_but, "the header is the first line, and this leaves out the last", fix))
}

/// `tail -n +4 f` for "all but the last 3 lines": that leaves out the first ones.
fn beheaded(it: &CheckContext, words: &Words) -> Option<Finding> {
    const OUT: [&str; 7] = ["but", "except", "without", "out", "drop", "omit", "skip"];
    let list = words.list();
    let at = list.windows(2).position(|two| two[0] == "last" && number(&two[1]).is_some())?;
    let of_lines = list.get(at + 2).is_some_and(|w| w == "lines" || w == "rows");
    let before = list[..at].iter().rev().find(|w| !matches!(w.as_str(), "the" | "its" | "for"))?;
    let left_out = number(&list[at + 1]).filter(|_| of_lines && OUT.contains(&before.as_str()))?;
    let [tail] = it.script.commands.as_slice() else { return None };
    let begins = start(tail).filter(|from| tail.name() == Some("tail") && *from > 1)?;
    let [program, _, from, file] = tail.words.as_slice() else { return None };
    let others = match it.target.userland {
        // no negative counts there
        Userland::Bsd => format!("tail -r {} | sed '1,{left_out}d' | tail -r", file.raw),
        _ => format!("head -n -{left_out} {}", file.raw),
    };
    let fix = Edits::new(it.script).span(&tail.words, &others).done();
    let why = format!("the last {left_out} are to be left out, and this leaves out the first {}", begins - 1);
    Some(warning("wrong-end", from, why, fix.filter(|_| program.raw == "tail")))
}

/// `sort | uniq` for "without duplicates, in the original order".
fn unsorted(it: &CheckContext, words: &Words) -> Option<Finding> {
    const SAID: [&str; 14] = [
        "changing the order",
        "changing their order",
        "change the order",
        "change their order",
        "order unchanged",
        "original order",
        "same order",
        "keep the order",
        "keeping the order",
        "keep order",
        "preserve the order",
        "preserving the order",
        "preserving order",
        "without sorting",
    ];
    let sort = it.script.commands.iter().find(|c| c.name() == Some("sort")).filter(|_| words.say(&SAID))?;
    let program = sort.words.first()?;
    let unique = sort.args().iter().any(|w| w.text == "-u");
    let uniq = sort.feeds.first().and_then(|at| it.script.commands.get(*at)).filter(|c| c.name() == Some("uniq"));
    let files: Vec<&Word> = sort.args().iter().filter(|w| w.text != "-u").collect();
    let plain = files.iter().all(|w| !w.text.starts_with('-')) && uniq.is_none_or(|uniq| uniq.args().is_empty());
    let names: String = files.iter().map(|w| format!(" {}", w.raw)).collect();
    let both: Vec<Word> = sort.words.iter().chain(uniq.iter().flat_map(|uniq| &uniq.words)).cloned().collect();
    let keeps = Edits::new(it.script).span(&both, &format!("awk '!seen[$0]++'{names}"));
    let why = "sort gives the lines another order: awk '!seen[$0]++' keeps the first of each";
    (unique || uniq.is_some()).then(|| warning("order-lost", program, why, keeps.done().filter(|_| plain)))
}

/// Where `tail -n +5` begins.
fn start(tail: &Invocation) -> Option<u64> {
    let at = |w: &Word| w.text.strip_prefix("-n").unwrap_or(&w.text).strip_prefix('+')?.parse().ok();
    tail.args().iter().find_map(at)
}

/// N of "the Nth line", "line N"; not of "the first N lines", nor where more than one line is meant.
fn single(words: &Words) -> Option<u64> {
    const ORDINALS: [&str; 9] = ["second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth"];
    let list = words.list();
    let ordinal = |w: &str| match ORDINALS.iter().position(|o| *o == w) {
        Some(at) => u64::try_from(at + 2).ok(),
        None => ["st", "nd", "rd", "th"].iter().find_map(|end| w.strip_suffix(end)?.parse().ok()),
    };
    let at = list.iter().position(|w| w == "line")?;
    let after = list.get(at + 1).map(String::as_str);
    let after = if matches!(after, Some("number" | "no")) { list.get(at + 2).map(String::as_str) } else { after };
    let before = at.checked_sub(1).and_then(|before| ordinal(&list[before]));
    let several = words.say(&["up to", "until", "to line", "through", "lines", "first", "and"]);
    before.or_else(|| after.filter(|w| w.bytes().all(|b| b.is_ascii_digit())).and_then(number)).filter(|_| !several)
}

/// A and B of "lines A to B", "from line A to line B", "lines A-B".
fn bounds(words: &Words) -> Option<(u64, u64)> {
    let list = words.list();
    let at = list.iter().position(|w| matches!(w.as_str(), "line" | "lines"))?;
    let mut rest = list[at + 1..].iter().map(String::as_str).filter(|w| !matches!(*w, "line" | "number" | "lines"));
    let first = rest.next()?;
    let (from, to) = match first.split_once('-') {
        Some((from, to)) => (number(from)?, number(to)?),
        None => {
            let from = number(first)?;
            matches!(rest.next()?, "to" | "through" | "until" | "and" | "till").then_some(())?;
            (from, number(rest.next()?)?)
        }
    };
    // two lines "and" are not all between them
    let apart = words.say(&["and"]) && !words.say(&["between"]);
    (from < to && !apart).then_some((from, to))
}

#[cfg(test)]
mod tests {
    use super::super::tests::findings;
    use super::check;

    fn fixed(request: &str, command: &str) -> Option<String> {
        findings(check, request, command).first().and_then(|f| f.fix.clone())
    }

    #[test]
    fn the_last_lines_are_left_out_at_the_end() {
        let asked = "all but the last 3 lines of notes.txt";
        assert_eq!(fixed(asked, "tail -n +4 notes.txt").as_deref(), Some("head -n -3 notes.txt"));
        for (request, right) in [
            (asked, "head -n -3 notes.txt"),
            ("all but the first 3 lines of notes.txt", "tail -n +4 notes.txt"),
            ("the last 3 lines without the header", "tail -n +2 a.csv"),
            ("all but the newest 3 files", "ls -t | tail -n +4"),
        ] {
            assert!(findings(check, request, right).is_empty(), "{request}");
        }
    }

    #[test]
    fn one_line_is_one_line() {
        for request in ["print just the 5th line of a.txt", "show line 5 of a.txt", "the fifth line of a.txt"] {
            assert_eq!(fixed(request, "head -n 5 a.txt").as_deref(), Some("sed -n '5p' a.txt"), "{request}");
            assert_eq!(fixed(request, "head -n 5 a.txt | tail -n 1"), None);
        }
        for request in ["first 5 lines of a.txt", "everything up to line 5 of a.txt", "the first line of a.txt"] {
            assert_eq!(fixed(request, "head -n 5 a.txt"), None, "{request}");
        }
    }

    #[test]
    fn both_ends_of_a_range_belong_to_it() {
        for request in ["print lines 2 to 4 of a.txt", "lines 2-4 of a.txt", "from line 2 through line 4 of a.txt"] {
            let fix = fixed(request, "tail -n +2 a.txt | head -n 4");
            assert_eq!(fix.as_deref(), Some("tail -n +2 a.txt | head -n 3"), "{request}");
            let fix = fixed(request, "head -n 4 a.txt | tail -n 2");
            assert_eq!(fix.as_deref(), Some("head -n 4 a.txt | tail -n 3"), "{request}");
            assert_eq!(fixed(request, "head -n 4 a.txt | tail -n 3"), None);
        }
        assert_eq!(fixed("lines 2 and 4 of a.txt", "head -n 4 a.txt | tail -n 2"), None);
    }

    #[test]
    fn a_header_is_at_the_top() {
        let fix = fixed("second column of a.csv without the header", "cut -d, -f2 a.csv | head -n -1");
        assert_eq!(fix.as_deref(), Some("cut -d, -f2 a.csv | tail -n +2"));
        assert_eq!(
            fixed("print a.csv without its first line", "head -n -1 a.csv").as_deref(),
            Some("tail -n +2 a.csv")
        );
        assert_eq!(fixed("a.csv without its last line", "head -n -1 a.csv"), None);
    }
}
