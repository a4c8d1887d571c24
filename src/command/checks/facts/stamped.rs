//! Finds `touch -m 2024-01-15 08:00 notes.txt`, which creates files of that name: a time has to follow `-d`.

use super::CheckContext;
use super::edit::{Edits, warning};
use super::words::year;
use caro_shell::{Finding, Target, Userland, Word};

pub(super) fn check(cx: &CheckContext) -> Option<Finding> {
    let Target { userland: Userland::Gnu, .. } = cx.target else { return None };
    let touch = cx.script.commands.iter().find(|c| c.name() == Some("touch"))?;
    let is_time_option = |w: &Word| {
        ["--date", "--reference"].iter().any(|o| w.text.starts_with(o))
            || w.text.starts_with('-') && !w.text.starts_with("--") && w.text.contains(['d', 't', 'r'])
    };
    if touch.args().iter().any(is_time_option) {
        return None;
    }
    let operands: Vec<&Word> = touch.operands().collect();
    let (first, rest) = operands.split_first()?;
    let (is_date, clock) = (is_date(&first.text), rest.first().filter(|w| is_time(&w.text)));
    let exists = cx.cwd.is_some_and(|cwd| cwd.join(&first.text).exists());
    // at least one more operand is the file
    if !is_date || exists || rest.len() <= usize::from(clock.is_some()) {
        return None;
    }
    let edits = Edits::new(cx.script);
    let edits = match clock {
        Some(clock) => edits.replace(first, &format!("-d '{} {}'", first.text, clock.text)).replace(clock, ""),
        None => edits.insert_before(first, "-d "),
    };
    let why = format!("this makes a file called {}: a time goes behind -d", first.text);
    Some(warning("time-as-file", first, why, edits.apply()))
}

/// True for `2024-01-15`, with or without a time after it.
fn is_date(text: &str) -> bool {
    let (day, time) = text.split_once([' ', 'T']).unwrap_or((text, ""));
    year(day).is_some() && (time.is_empty() || is_time(time))
}

/// True for `08:00` and `08:00:30`.
fn is_time(text: &str) -> bool {
    let parts: Vec<&str> = text.split(':').collect();
    (2..=3).contains(&parts.len())
        && parts.iter().all(|part| (1..=2).contains(&part.len()) && part.bytes().all(|b| b.is_ascii_digit()))
}
