//! The exchanges of a session as a text within a budget of tokens: what a model has summed up first, then older exchanges
//! in a line each, and the newest whole.
//!
//! No model writes the lines: a small one takes seconds for it and invents. What each side began with is what is kept.

use super::Exchange;
use caro_policy::{compress, normalise};

/// The part of the budget that lines of older exchanges may have.
const LINES: usize = 5;
/// The part of the budget that a model's summary may have.
const SUMMARY: usize = 2;
/// Exchanges that are looked at, at most.
const MOST: usize = 200;
/// Characters of a text in the newest exchange, and in those before it.
const NEWEST: usize = 1600;
const BEFORE: usize = 600;
/// Tokens that the summary's heading and the count of the rest take, at most.
const HEADING: usize = 20;
/// Characters of each side in a line of the summary.
const BRIEF: usize = 80;
/// What stands above whatever is no exchange itself.
pub const HEAD: &str = "[CONVERSATION SUMMARY]";

/// What of a conversation fits.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Window {
    /// The text; empty if there is nothing.
    pub text: String,
    /// Exchanges that stand in it.
    pub whole: usize,
    /// Exchanges of which a line stands in it.
    pub brief: usize,
    /// Exchanges that are only counted.
    pub left_out: usize,
}

/// The exchanges, oldest first, within `budget` tokens, behind a summary of what was before them, if there is one.
pub fn window(summary: &str, exchanges: &[Exchange], budget: usize, count: &dyn Fn(&str) -> usize) -> Window {
    let beyond = exchanges.len().saturating_sub(MOST);
    let exchanges = &exchanges[beyond..];
    let mut window = Window::default();
    let mut blocks: Vec<String> = Vec::new();
    let summed_up = summed_up(summary, budget / SUMMARY, count);
    let mut left = budget - summed_up.as_ref().map_or(0, |text| (count(text) + 1).min(budget));
    // a part is held back for the lines, unless everything fits
    let reserve = left / LINES;
    for (back, exchange) in exchanges.iter().rev().enumerate() {
        let block = whole(exchange, most(back));
        let cost = count(&block) + 1;
        let older = exchanges.len() - back - 1;
        if cost + if older > 0 || beyond > 0 { reserve } else { 0 } > left {
            break;
        }
        left -= cost;
        blocks.push(block);
    }
    // the very last one is never silent, if it can be helped
    if blocks.is_empty()
        && let Some(last) = exchanges.last()
    {
        let block = whole(last, BRIEF * 2);
        if count(&block) < left {
            left -= count(&block) + 1;
            blocks.push(block);
        }
    }
    window.whole = blocks.len();
    let mut lines: Vec<String> = Vec::new();
    for exchange in exchanges[..exchanges.len() - window.whole].iter().rev() {
        let line = format!("- {} -> {}", start(&exchange.asked, BRIEF), start(&exchange.answered, BRIEF));
        let cost = count(&line) + 1;
        if cost + HEADING > left {
            break;
        }
        left -= cost;
        lines.push(line);
    }
    window.brief = lines.len();
    window.left_out = exchanges.len() - window.whole - window.brief + beyond;
    if window.whole + window.brief == 0 && summed_up.is_none() {
        return window;
    }
    lines.reverse();
    if window.left_out > 0 && left >= HEADING {
        lines.insert(0, format!("- ({} earlier exchanges)", window.left_out));
    }
    let head = match summed_up {
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

/// What an exchange costs in tokens, the one that is so many before the newest.
pub fn cost(exchange: &Exchange, back: usize, count: &dyn Fn(&str) -> usize) -> usize {
    count(&whole(exchange, most(back))) + 1
}

/// A model's summary under its heading, in at most `budget` tokens; nothing if there is none, or no room.
fn summed_up(summary: &str, budget: usize, count: &dyn Fn(&str) -> usize) -> Option<String> {
    let mut summary = normalise(summary.trim());
    while !summary.is_empty() {
        let text = format!("{HEAD}\n{summary}");
        if count(&text) < budget {
            return Some(text);
        }
        let most = summary.chars().count() * 2 / 3;
        // below that it is the mark of the cut and little else
        summary = if most > BRIEF { compress(&summary, most) } else { String::new() };
    }
    None
}

/// Characters of each side of the exchange that is so many before the newest.
fn most(back: usize) -> usize {
    if back == 0 { NEWEST } else { BEFORE }
}

/// Both sides of an exchange, each in at most so many characters.
pub fn whole(exchange: &Exchange, most: usize) -> String {
    let side = |text: &str| compress(&normalise(text.trim()), most);
    format!("User: {}\ncaro: {}", side(&exchange.asked), side(&exchange.answered))
}

/// The beginning of a text in one line.
fn start(text: &str, most: usize) -> String {
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
    fn what_fits_is_whole_and_in_order() {
        let window = window("", &talk(3, 2), 1000, &words);
        assert_eq!((window.whole, window.brief, window.left_out), (3, 0, 0));
        assert!(window.text.starts_with("User: q0 word word\ncaro: a0 word word\nUser: q1"), "{}", window.text);
    }

    #[test]
    fn older_exchanges_become_lines_and_the_oldest_a_number() {
        let window = window("", &talk(40, 60), 400, &words);
        assert!(window.whole >= 1 && window.brief >= 1 && window.left_out >= 1, "{window:?}");
        assert_eq!(window.whole + window.brief + window.left_out, 40);
        let expected = format!("{HEAD}\n- ({} earlier exchanges)\n- q", window.left_out);
        assert!(window.text.starts_with(&expected), "{}", window.text);
        assert!(window.text.contains("User: q39") && !window.text.contains("User: q0 "), "the newest are whole");
        assert!(words(&window.text) <= 400);
    }

    #[test]
    fn a_line_of_an_older_exchange_is_as_clean_as_a_whole_one() {
        let mut talk = talk(10, 60);
        talk[8].asked = "list\u{1b}[2J the\u{202e} logs".into();
        let window = window("", &talk, 200, &words);
        assert!(window.text.contains("- list the logs -> a8 "), "{:?}", window.text);
    }

    #[test]
    fn what_was_summed_up_stands_before_all_else_under_one_heading() {
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
        fn it_never_costs_more_than_it_may(
            count in 0usize..60, length in 0usize..300, budget in 0usize..3000, summed in 0usize..200
        ) {
            let window = window(&"fact ".repeat(summed), &talk(count, length), budget, &words);
            prop_assert!(words(&window.text) <= budget, "{} of {budget}", words(&window.text));
            prop_assert_eq!(window.whole + window.brief + window.left_out, count);
        }
    }
}
