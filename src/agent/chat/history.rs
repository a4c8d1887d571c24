//! The exchanges of a session within a budget of tokens: the newest whole, older ones in a line each, the oldest counted.
//!
//! No model writes the summary: a small one takes seconds for it and invents. What each side began with is what is kept.

use crate::agent::assemble::{ContextProvider, Provided, ProviderError, Query};
use crate::agent::event::{Draft, Kind};
use crate::agent::observe::{compress, normalise, screen};
use crate::model::Model;
use serde_json::json;
use std::sync::{Arc, Mutex, PoisonError};

/// The part of the layers' budget that a conversation may have: the rest is for the task's own.
const SHARE: usize = 2;
/// The part of that which the summary of older exchanges may have.
const SUMMARY: usize = 5;
/// Exchanges that are looked at, at most.
const MOST: usize = 200;
/// Characters of a text in the newest exchange, and in those before it.
const NEWEST: usize = 1600;
const BEFORE: usize = 600;
/// Tokens that the summary's heading and the count of the rest take, at most.
const HEADING: usize = 20;
/// Characters of each side in a line of the summary.
const BRIEF: usize = 80;

/// What was asked and answered.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Exchange {
    /// The person's words.
    pub asked: String,
    /// The answer.
    pub answered: String,
}

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

/// The exchanges, oldest first, within `budget` tokens.
pub fn window(exchanges: &[Exchange], budget: usize, count: &dyn Fn(&str) -> usize) -> Window {
    let beyond = exchanges.len().saturating_sub(MOST);
    let exchanges = &exchanges[beyond..];
    let mut window = Window::default();
    let mut blocks: Vec<String> = Vec::new();
    // a part is held back for the summary, unless everything fits
    let (mut left, reserve) = (budget, budget / SUMMARY);
    for (back, exchange) in exchanges.iter().rev().enumerate() {
        let most = if back == 0 { NEWEST } else { BEFORE };
        let block = whole(exchange, most);
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
    if window.whole + window.brief == 0 {
        return window;
    }
    let mut parts = Vec::new();
    if window.brief > 0 || window.left_out > 0 && left >= HEADING {
        lines.reverse();
        if window.left_out > 0 {
            lines.insert(0, format!("- ({} earlier exchanges)", window.left_out));
        }
        parts.push(format!("[CONVERSATION SUMMARY]\n{}", lines.join("\n")));
    }
    blocks.reverse();
    parts.extend(blocks);
    window.text = parts.join("\n");
    window
}

/// Both sides of an exchange.
fn whole(exchange: &Exchange, most: usize) -> String {
    let side = |text: &str| compress(&normalise(text.trim()), most);
    format!("User: {}\ncaro: {}", side(&exchange.asked), side(&exchange.answered))
}

/// The beginning of a text in one line.
fn start(text: &str, most: usize) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut start: String = line.chars().take(most).collect();
    if start.len() < line.len() {
        start.push('…');
    }
    start
}

/// The layer `conversation`.
pub struct History {
    exchanges: Vec<Exchange>,
    model: Arc<dyn Model>,
    record: Mutex<Option<Draft>>,
}

impl History {
    /// The layer of these exchanges, oldest first; tokens are the model's own. What overrides instructions is left out:
    /// an answer may repeat what a file or page had.
    pub fn new(exchanges: Vec<Exchange>, model: Arc<dyn Model>) -> Self {
        let exchanges = exchanges.into_iter().filter(|e| !screen(&e.answered).blocks()).collect();
        Self { exchanges, model, record: Mutex::default() }
    }
}

impl ContextProvider for History {
    fn name(&self) -> &'static str {
        "conversation"
    }

    fn priority(&self) -> u16 {
        45
    }

    fn provide(&self, _: &Query, budget: usize) -> Result<Option<Provided>, ProviderError> {
        if self.exchanges.is_empty() {
            return Ok(None);
        }
        let Window { text, whole, brief, left_out } =
            window(&self.exchanges, budget / SHARE, &|text| self.model.count(text));
        let record = Draft::new(Kind::MemoryRead)
            .metadata(json!({"conversation": true, "whole": whole, "brief": brief, "left_out": left_out}));
        *self.record.lock().unwrap_or_else(PoisonError::into_inner) = Some(record);
        Ok((!text.is_empty()).then_some(Provided { text, trusted: false }))
    }

    fn record(&self) -> Option<Draft> {
        self.record.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn words(text: &str) -> usize {
        text.split_whitespace().count()
    }

    fn talk(count: usize, length: usize) -> Vec<Exchange> {
        let text = |what: &str, n: usize| format!("{what}{n} {}", "word ".repeat(length));
        (0..count).map(|n| Exchange { asked: text("q", n), answered: text("a", n) }).collect()
    }

    #[test]
    fn what_fits_is_whole_and_in_order() {
        let window = window(&talk(3, 2), 1000, &words);
        assert_eq!((window.whole, window.brief, window.left_out), (3, 0, 0));
        assert!(window.text.starts_with("User: q0 word word\ncaro: a0 word word\nUser: q1"), "{}", window.text);
    }

    #[test]
    fn older_exchanges_become_lines_and_the_oldest_a_number() {
        let window = window(&talk(40, 60), 400, &words);
        assert!(window.whole >= 1 && window.brief >= 1 && window.left_out >= 1, "{window:?}");
        assert_eq!(window.whole + window.brief + window.left_out, 40);
        let expected = format!("[CONVERSATION SUMMARY]\n- ({} earlier exchanges)\n- q", window.left_out);
        assert!(window.text.starts_with(&expected), "{}", window.text);
        assert!(window.text.contains("User: q39") && !window.text.contains("User: q0 "), "the newest are whole");
        assert!(words(&window.text) <= 400);
    }

    proptest! {
        #[test]
        fn it_never_costs_more_than_it_may(count in 0usize..60, length in 0usize..300, budget in 0usize..3000) {
            let window = window(&talk(count, length), budget, &words);
            prop_assert!(words(&window.text) <= budget, "{} of {budget}", words(&window.text));
            prop_assert_eq!(window.whole + window.brief + window.left_out, count);
        }
    }
}
