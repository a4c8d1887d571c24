//! Fits the exchanges of a session into a budget of tokens: first the model's summary, then older exchanges on one line
//! each, then the newest in full.
//!
//! The lines are not written by a model, as a small one takes seconds and invents: each holds the beginning of both
//! sides.

use super::Exchange;
use caro_policy::{compress, normalise};

/// The lines of older exchanges may have one in this many parts of the budget.
const LINES_SHARE: usize = 5;
/// The model's summary may have one in this many parts of the budget.
const SUMMARY_SHARE: usize = 2;
/// Most exchanges considered, the newest.
const MAX_EXCHANGES: usize = 200;
/// Most characters of each side of the newest exchange, and of the older ones.
const MAX_NEWEST: usize = 1600;
const MAX_OLDER: usize = 600;
/// Most tokens of the heading and the count of exchanges that are left out.
const HEADING_TOKENS: usize = 20;
/// Most characters of each side in a line.
const MAX_BRIEF: usize = 80;
/// The heading of the summary and the lines.
pub const HEAD: &str = "[CONVERSATION SUMMARY]";

/// The part of a conversation that fits into the budget.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Window {
    /// The text; empty if nothing fits.
    pub text: String,
    /// The number of exchanges in full.
    pub whole: usize,
    /// The number of exchanges on one line.
    pub brief: usize,
    /// The number of exchanges that are only counted.
    pub left_out: usize,
}

/// Fits the exchanges, given oldest first, into `budget` tokens, after the summary of earlier ones if there is one.
pub fn window(summary: &str, exchanges: &[Exchange], budget: usize, count: &dyn Fn(&str) -> usize) -> Window {
    let beyond = exchanges.len().saturating_sub(MAX_EXCHANGES);
    let exchanges = &exchanges[beyond..];
    let mut window = Window::default();
    let mut blocks: Vec<String> = Vec::new();
    let summary = render_summary(summary, budget / SUMMARY_SHARE, count);
    let mut left = budget - summary.as_ref().map_or(0, |text| (count(text) + 1).min(budget));
    // a part is reserved for the lines, unless everything fits
    let reserve = left / LINES_SHARE;
    for (back, exchange) in exchanges.iter().rev().enumerate() {
        let block = render(exchange, side_limit(back));
        let cost = count(&block) + 1;
        let older = exchanges.len() - back - 1;
        if cost + if older > 0 || beyond > 0 { reserve } else { 0 } > left {
            break;
        }
        left -= cost;
        blocks.push(block);
    }
    // the last exchange is shown in short form if it does not fit in full
    if blocks.is_empty()
        && let Some(last) = exchanges.last()
    {
        let block = render(last, MAX_BRIEF * 2);
        if count(&block) < left {
            left -= count(&block) + 1;
            blocks.push(block);
        }
    }
    window.whole = blocks.len();
    let mut lines: Vec<String> = Vec::new();
    for exchange in exchanges[..exchanges.len() - window.whole].iter().rev() {
        let (asked, answered) = (beginning(&exchange.asked, MAX_BRIEF), beginning(&exchange.answered, MAX_BRIEF));
        let line = if answered.is_empty() { format!("- {asked}") } else { format!("- {asked} -> {answered}") };
        let cost = count(&line) + 1;
        if cost + HEADING_TOKENS > left {
            break;
        }
        left -= cost;
        lines.push(line);
    }
    window.brief = lines.len();
    window.left_out = exchanges.len() - window.whole - window.brief + beyond;
    if window.whole + window.brief == 0 && summary.is_none() {
        return window;
    }
    lines.reverse();
    if window.left_out > 0 && left >= HEADING_TOKENS {
        lines.insert(0, format!("- ({} earlier exchanges)", window.left_out));
    }
    let head = match summary {
        None if lines.is_empty() => None,
        None => Some(HEAD.to_owned()),
        text => text,
    };
    blocks.extend(lines.into_iter().rev());
    blocks.extend(head);
    blocks.reverse();
    window.text = blocks.join("\n");
    window
}

/// Returns the tokens of the exchange that is `back` before the newest.
pub fn cost(exchange: &Exchange, back: usize, count: &dyn Fn(&str) -> usize) -> usize {
    count(&render(exchange, side_limit(back))) + 1
}

/// Renders a summary under its heading in at most `budget` tokens; `None` if there is no summary or no room.
fn render_summary(summary: &str, budget: usize, count: &dyn Fn(&str) -> usize) -> Option<String> {
    let mut summary = normalise(summary.trim());
    while !summary.is_empty() {
        let text = format!("{HEAD}\n{summary}");
        if count(&text) < budget {
            return Some(text);
        }
        let most = summary.chars().count() * 2 / 3;
        // a shorter one would consist of little more than the mark of the cut
        summary = if most > MAX_BRIEF { compress(&summary, most) } else { String::new() };
    }
    None
}

/// Returns the most characters of each side of the exchange that is `back` before the newest.
fn side_limit(back: usize) -> usize {
    if back == 0 { MAX_NEWEST } else { MAX_OLDER }
}

/// Renders both sides of an exchange, each in at most `most` characters; the user's alone if there was no answer.
pub fn render(exchange: &Exchange, most: usize) -> String {
    let side = |text: &str| compress(&normalise(text.trim()), most);
    let (asked, answered) = (side(&exchange.asked), side(&exchange.answered));
    if answered.is_empty() { format!("User: {asked}") } else { format!("User: {asked}\ncaro: {answered}") }
}

/// Returns the beginning of a text on one line.
fn beginning(text: &str, most: usize) -> String {
    let line = normalise(text).split_whitespace().collect::<Vec<_>>().join(" ");
    let mut start: String = line.chars().take(most).collect();
    if start.len() < line.len() {
        start.push('…');
    }
    start
}

#[cfg(test)]
mod tests {
    use super::super::history::tests::{talk, words};
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn exchanges_that_fit_are_shown_in_full_and_in_order() {
        let window = window("", &talk(3, 2), 1000, &words);
        assert_eq!((window.whole, window.brief, window.left_out), (3, 0, 0));
        assert!(window.text.starts_with("User: q0 word word\ncaro: a0 word word\nUser: q1"), "{}", window.text);
    }

    #[test]
    fn older_exchanges_become_lines_and_the_oldest_are_counted() {
        let window = window("", &talk(40, 60), 400, &words);
        assert!(window.whole >= 1 && window.brief >= 1 && window.left_out >= 1, "{window:?}");
        assert_eq!(window.whole + window.brief + window.left_out, 40);
        let expected = format!("{HEAD}\n- ({} earlier exchanges)\n- q", window.left_out);
        assert!(window.text.starts_with(&expected), "{}", window.text);
        assert!(window.text.contains("User: q39") && !window.text.contains("User: q0 "), "the newest are whole");
        assert!(words(&window.text) <= 400);
    }

    #[test]
    fn an_exchange_without_an_answer_has_only_the_users_side() {
        let mut talk = talk(12, 60);
        [9, 11].into_iter().for_each(|at| talk[at].answered.clear());
        let text = window("", &talk, 300, &words).text;
        assert!(text.contains("\n- q9 word") && text.contains("\nUser: q11 word"), "{text}");
        let of = |at: usize| text.lines().find(|line| line.contains(&format!("q{at} "))).unwrap();
        assert!(!of(9).contains("->") && of(8).contains("->") && !text.contains("caro: \n"), "{text}");
        assert!(text.lines().last().unwrap().starts_with("User: q11 "), "{text}");
    }

    #[test]
    fn lines_have_no_control_characters() {
        let mut talk = talk(10, 60);
        talk[8].asked = "list\u{1b}[2J the\u{202e} logs".into();
        let window = window("", &talk, 200, &words);
        assert!(window.text.contains("- list the logs -> a8 "), "{:?}", window.text);
    }

    #[test]
    fn the_summary_comes_first_under_one_heading() {
        let short = window("- the dog is Rex", &talk(2, 2), 1000, &words);
        assert!(short.text.starts_with(&format!("{HEAD}\n- the dog is Rex\nUser: q0 ")), "{}", short.text);
        let long = window("- the dog is Rex", &talk(40, 60), 400, &words);
        assert!(long.text.starts_with(&format!("{HEAD}\n- the dog is Rex\n- (")), "{}", long.text);
        assert_eq!(long.text.matches(HEAD).count(), 1);
        assert_eq!(window("- Rex", &[], 100, &words).text, format!("{HEAD}\n- Rex"), "nothing else is left of it");
        let cut = window(&"fact ".repeat(900), &talk(2, 2), 100, &words);
        assert!(words(&cut.text) <= 100 && cut.text.contains("fact") && cut.whole == 2, "{}", cut.text);
    }

    proptest! {
        #[test]
        fn the_window_never_exceeds_its_budget(
            count in 0usize..60, length in 0usize..300, budget in 0usize..3000, summed in 0usize..200
        ) {
            let window = window(&"fact ".repeat(summed), &talk(count, length), budget, &words);
            prop_assert!(words(&window.text) <= budget, "{} of {budget}", words(&window.text));
            prop_assert_eq!(window.whole + window.brief + window.left_out, count);
        }
    }
}
