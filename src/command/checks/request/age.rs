//! Finds a wrong unit, sign or amount of a file's age, such as `find -mtime -30` for "in the last 30 minutes".

use super::edit::{Edits, warning};
use super::words::{Words, number};
use super::{CheckContext, single_find};
use caro_shell::{Finding, Word};

const DAYS: [&str; 3] = ["-mtime", "-atime", "-ctime"];
const MINUTES: [&str; 3] = ["-mmin", "-amin", "-cmin"];

/// Words for the most recent period.
const LAST: [&str; 3] = ["last", "past", "previous"];

/// The minutes of a day.
const DAY: u64 = 24 * 60;

/// The age of files in a request.
#[derive(Debug)]
struct Age {
    /// The number as written: 6 for "6 hours".
    count: u64,
    /// The age in minutes.
    minutes: u64,
    /// The sign for `find`, if the request says whether younger or older files are meant.
    sign: Option<char>,
}

pub(super) fn check(cx: &CheckContext) -> Option<Finding> {
    let command = single_find(cx.script)?;
    let mut tests = command.words.windows(3).filter_map(|words| {
        let at = DAYS.iter().chain(&MINUTES).position(|test| words[1].text == *test)?;
        Some((at, &words[0], &words[1], &words[2]))
    });
    let (at, before, test, value) = tests.next()?;
    // two tests make a range, and a negation reverses one or all in its parentheses: these are not checked
    let is_not = |w: &Word| matches!(w.text.as_str(), "!" | "-not");
    let is_negated = is_not(before)
        || command.words.windows(2).any(|pair| is_not(&pair[0]) && pair[1].text == "(")
        || command.args().iter().any(|w| w.text.starts_with("-newer"));
    if tests.next().is_some() || is_negated {
        return None;
    }
    let (sign, n) = match value.value.as_deref()?.split_at_checked(1)? {
        ("+", n) => (Some('+'), n),
        ("-", n) => (Some('-'), n),
        _ => (None, value.text.as_str()),
    };
    let n: u64 = n.parse().ok()?;
    let age = age(&Words::of(cx.request))?;
    let in_days = at < DAYS.len();
    let whole_days = age.minutes % DAY == 0;
    let wrong_unit = if in_days {
        !whole_days || n == age.count && n * DAY != age.minutes || n == age.minutes
    } else {
        n == age.count && n != age.minutes
    };
    // one unit more or less may be meant to include or exclude the bound
    let unit = if in_days { DAY } else { 1 };
    let wrong_amount = n.checked_mul(unit).is_none_or(|n| n.abs_diff(age.minutes) > unit);
    let wrong_sign = age.sign.is_some_and(|right| match sign {
        Some(sign) => sign != right,
        // `-mtime 0` means the last day
        None => n > 0 && (wrong_unit || n * if in_days { DAY } else { 1 } == age.minutes),
    });
    if !wrong_unit && !wrong_sign && !wrong_amount {
        return None;
    }
    let sign = age.sign.or(sign).map(String::from).unwrap_or_default();
    let wrong = wrong_unit || wrong_amount;
    let right_test = if whole_days && (in_days || wrong) { DAYS[at % 3] } else { MINUTES[at % 3] };
    let amount = match (wrong, whole_days) {
        (false, _) => n,
        (true, true) => age.minutes / DAY,
        (true, false) => age.minutes,
    };
    let right = format!("{right_test} {sign}{amount}");
    let fix = Edits::new(cx.script).replace(test, right_test).replace(value, &format!("{sign}{amount}")).apply();
    Some(if wrong_unit {
        let unit = if in_days { "days" } else { "minutes" };
        warning("time-unit", test, format!("find {} counts {unit}: the age asked for is `{right}`", test.text), fix)
    } else if wrong_amount {
        warning("time-amount", value, format!("that is another age than is asked for: `{right}`"), fix)
    } else {
        warning("time-sign", value, format!("-N means younger and +N means older: `{right}` is asked for"), fix)
    })
}

/// Returns the age that a request names; `None` if it names several.
fn age(words: &Words) -> Option<Age> {
    let list = words.list();
    let mut ages = list.iter().enumerate().filter_map(|(i, word)| {
        let minutes = minutes_of(word)?;
        let before = i.checked_sub(1).map(|b| list[b].as_str())?;
        let count = match before {
            "an" | "a" => 1,
            last if LAST.contains(&last) => 1,
            other => number(other)?,
        };
        Some((i, count, minutes))
    });
    let (at, count, unit) = ages.next()?;
    if ages.next().is_some() || words.contains_phrase("half an|half a|every") {
        return None;
    }
    // the words before it, which make it an age
    let lead = list[at.saturating_sub(6)..at].join(" ");
    // "older than the last 7 days" means older than 7 days
    let lead = format!(" {lead} ").replace(" than the ", " than ");
    let lead = LAST.iter().fold(lead, |l, w| l.replace(&format!(" than {w} "), " than "));
    let has_ago = list.get(at + 1).is_some_and(|w| w == "ago");
    let is_old =
        ["older than", "more than", "over", "longer than", "before"].iter().any(|p| lead.contains(&format!(" {p} ")));
    // "the last 7 days" and "the last week", but not "last changed 7 days ago"
    let is_last = lead.split(' ').rev().filter(|w| !w.is_empty()).take(2).any(|w| LAST.contains(&w));
    let is_young = is_last
        || ["newer than", "younger than", "within", "less than"].iter().any(|p| lead.contains(&format!(" {p} ")));
    let is_older = is_old && (has_ago || lead.contains(" older than ") || list[at + 1..].iter().any(|w| w == "old"));
    let is_younger = is_young && (has_ago || !lead.contains(" less than "));
    if !is_older && !is_younger && !has_ago {
        return None;
    }
    let sign = match (is_older, is_younger) {
        // "before the last 7 days" has the words for both
        _ if is_last && is_old || words.contains_phrase("prior to") => None,
        _ if words.has_negation() || words.contains_phrase("untouched|unmodified|unused|unchanged|at least") => None,
        (true, false) => Some('+'),
        (false, true) => Some('-'),
        _ => None,
    };
    Some(Age { count, minutes: count.checked_mul(unit)?, sign })
}

fn minutes_of(unit: &str) -> Option<u64> {
    Some(match unit {
        "minute" | "minutes" | "mins" | "min" => 1,
        "hour" | "hours" | "hrs" => 60,
        "day" | "days" => DAY,
        "week" | "weeks" => 7 * DAY,
        _ => return None,
    })
}
