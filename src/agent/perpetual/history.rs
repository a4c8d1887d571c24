//! The history of a loop, one entry per turn: stored, shown in prompts, and searched by time.

use super::call::quote;
use crate::clock::stamp;
use serde::{Deserialize, Serialize};

/// A turn in which something new happened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// The time, milliseconds since 1970, UTC.
    pub time: u64,
    /// The user's message, if the turn had a new one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The model's calls as a tuple; the raw text if it could not be parsed.
    pub response: String,
    /// The errors of this turn.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<String>,
}

impl Entry {
    /// Formats the entry as the specification requires.
    pub fn metta(&self) -> String {
        let mut parts = Vec::new();
        if let Some(message) = &self.message {
            parts.push(format!("(HUMAN_MESSAGE: {})", quote(message)));
        }
        parts.push(match self.response.starts_with('(') {
            true => format!("(RESPONSE: {})", self.response),
            false => format!("(RESPONSE: {})", quote(&self.response)),
        });
        if !self.errors.is_empty() {
            let errors: Vec<String> = self.errors.iter().map(|error| quote(error)).collect();
            parts.push(format!("(ERROR_FEEDBACK: {})", errors.join(" ")));
        }
        format!("({} {})", quote(&stamp(self.time)), parts.join(" "))
    }
}

/// Returns the entry nearest to a time with at most `lines` entries on each side.
pub fn episodes(history: &[Entry], time: u64, lines: usize) -> &[Entry] {
    let nearest = history.iter().enumerate().min_by_key(|(_, entry)| entry.time.abs_diff(time));
    let Some((at, _)) = nearest else { return &[] };
    &history[at.saturating_sub(lines)..(at + lines + 1).min(history.len())]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(time: u64) -> Entry {
        Entry { time, message: None, response: "()".into(), errors: Vec::new() }
    }

    #[test]
    fn episodes_surround_the_nearest_entry() {
        let history: Vec<Entry> = (0..100).map(|n| entry(n * 1000)).collect();
        let times =
            |time, lines| -> Vec<u64> { episodes(&history, time, lines).iter().map(|e| e.time / 1000).collect() };
        assert_eq!(times(50_400, 2), [48, 49, 50, 51, 52]);
        assert_eq!(times(0, 2), [0, 1, 2]);
        assert_eq!(times(u64::MAX, 1), [98, 99]);
        assert_eq!(times(50_000, 20).len(), 41);
        assert!(episodes(&[], 5, 20).is_empty());
    }

    #[test]
    fn entries_have_the_form_of_the_specification() {
        let whole = Entry {
            message: Some("say \"hi\"".into()),
            response: r#"((send "hi"))"#.into(),
            errors: vec!["E".into()],
            ..entry(0)
        };
        let shown = whole.metta();
        assert!(
            shown.ends_with(r#" (HUMAN_MESSAGE: "say \"hi\"") (RESPONSE: ((send "hi"))) (ERROR_FEEDBACK: "E"))"#),
            "{shown}"
        );
        assert!(Entry { response: "prose".into(), ..entry(0) }.metta().ends_with(r#"(RESPONSE: "prose"))"#));
    }
}
