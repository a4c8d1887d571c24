//! The view of a turn that the model gets: the parts of its prompt that change.

use super::history::Entry;
use super::machine::{Millis, Perpetual, Question};
use crate::clock::stamp;
use caro_policy::fence;

/// The last line of a prompt without a new message.
pub const NO_SPAM: &str = "DO NOT RE-SEND OR SPAM!";

/// Formats a named part, with its text fenced as data.
fn part(name: &str, tag: &str, text: &str) -> String {
    format!("{name}:\n{}\n", fence(tag, text))
}

/// Returns the last `most` characters of a text, without a first partial line if more lines follow.
pub(super) fn tail(text: &str, most: usize) -> &str {
    let count = text.chars().count();
    if count <= most {
        return text;
    }
    let start = text.char_indices().nth(count - most).map_or(0, |(at, _)| at);
    let rest = &text[start..];
    rest.split_once('\n').map_or(rest, |(_, lines)| lines)
}

/// Returns the text, or its first `most` characters (at least 80) with a note that it is cut.
fn head(text: &str, most: usize) -> String {
    match text.char_indices().nth(most.max(80)) {
        Some((end, _)) => format!("{} ... (cut: it is too long)", &text[..end]),
        None => text.to_owned(),
    }
}

/// The parts of a turn's prompt that change.
#[derive(Debug, Clone)]
pub struct TurnView<'a> {
    /// The results of the previous turn.
    pub results: &'a str,
    /// The history, oldest first.
    pub history: &'a [Entry],
    /// The pinned note of the current task.
    pub pinned: &'a str,
    /// The latest message.
    pub previous: &'a str,
    /// True if a text was sent since.
    pub answered: bool,
    /// The reason why the model is asked.
    pub question: &'a Question,
    /// The current time.
    pub now: Millis,
}

impl<'a> TurnView<'a> {
    /// Collects the parts for a turn of `machine`.
    pub fn of(machine: &'a Perpetual, question: &'a Question, history: &'a [Entry], now: Millis) -> Self {
        let (results, pinned, previous) = (machine.last_results(), machine.pinned(), machine.previous());
        Self { results, history, pinned, previous, answered: machine.is_answered(), question, now }
    }

    /// Formats the turn, with at most `results` characters of the results and `history` characters of the history.
    pub fn turn(&self, results: usize, history: usize) -> String {
        let Self { question, previous, .. } = self;
        let latest = tail(self.results, results);
        let mut text = part("LAST_SKILL_USE_RESULTS", "results", if latest.is_empty() { "()" } else { latest });
        let lines: Vec<String> = self.history.iter().map(Entry::metta).collect();
        text.push_str(&part("HISTORY", "history", tail(&lines.join("\n"), history)));
        if !self.pinned.is_empty() {
            text.push_str(&format!("PINNED: {}\n", self.pinned));
        }
        match (&question.message, question.woken) {
            (Some(message), _) => text.push_str(&format!("HUMAN_MESSAGE: {}\n", head(message, results + history))),
            (None, true) => text.push_str(
                "There is no new message: you have woken by yourself, for work of your own, such as to clean up or to sum up \
                 what you know.\n",
            ),
            (None, false) if previous.is_empty() => text.push_str("There is no message yet.\n"),
            (None, false) => {
                let state = if self.answered { "Already answered" } else { "Not answered yet" };
                text.push_str(&format!("No new message. {state}: {}\n", head(previous, results + history)));
            }
        }
        text.push_str(&format!("TIME: {}\nOUTPUT: one list of calls, ((skill \"text\") ...), or ().", stamp(self.now)));
        if question.message.is_none() {
            text.push_str(&format!(" {NO_SPAM}"));
        }
        text
    }
}
