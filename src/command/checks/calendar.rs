//! `cal` for "a calendar of this year": it shows the month.

use super::CheckContext;
use super::edit::{Edits, warning};
use super::words::Words;
use crate::shell::Finding;

pub(super) fn check(it: &CheckContext) -> Vec<Finding> {
    month(it).into_iter().collect()
}

fn month(it: &CheckContext) -> Option<Finding> {
    const YEAR: [&str; 6] = ["this year", "whole year", "entire year", "full year", "current year", "the year"];
    let words = Words::of(it.request);
    let asked = words.say(&YEAR) && !words.say(&["month"]) && words.numbers().is_empty();
    let cal = it.script.commands.iter().find(|c| matches!(c.name(), Some("cal" | "ncal")))?;
    let program = cal.words.first().filter(|_| asked && cal.args().is_empty())?;
    let fix = Edits::new(it.script).after(program, " -y").done();
    Some(warning("one-month", program, "it shows this month: -y shows the year", fix))
}

#[cfg(test)]
mod tests {
    use super::super::tests::findings;
    use super::*;

    #[test]
    fn a_year_is_more_than_a_month() {
        let fix =
            |request: &str, command: &str| findings(check, request, command).into_iter().next().and_then(|f| f.fix);
        assert_eq!(fix("show a calendar for this year", "cal").as_deref(), Some("cal -y"));
        for (request, right) in [
            ("show a calendar for this year", "cal -y"),
            ("show a calendar for this year", "cal 2026"),
            ("show this month of the year", "cal"),
            ("calendar of march this year", "cal 3 2026"),
            ("show a calendar", "cal"),
        ] {
            assert_eq!(fix(request, right), None, "{request}: {right}");
        }
    }
}
