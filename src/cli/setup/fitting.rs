//! Parses `--context` and the setting `context`: when a long run is shortened, and how.

use caro_agent::turn::{Fitting, Mode, Strategy};

/// The message about the valid forms.
const FORMS: &str = "budget, budget:PERCENT (10 to 100), window:N with a number of steps (1 or more) or off; all but off \
                     with :truncate or :summary and with :last=N (0 to 100) or without";
/// The valid thresholds, percent of the window, and the valid numbers of entries that stay whole.
const PERCENT: std::ops::RangeInclusive<usize> = 10..=100;
const LAST: std::ops::RangeInclusive<usize> = 0..=100;

/// Parses `budget`, `budget:PERCENT`, `window:N` or `off`; all but `off` may be followed by `:truncate` or
/// `:summary`, and by `:last=N`.
///
/// # Errors
/// The valid forms.
pub fn read(text: &str) -> Result<Fitting, String> {
    let parse = || {
        let mut words = text.split(':').peekable();
        let mut fitting = Fitting::default();
        let number = |text: &str, range: std::ops::RangeInclusive<usize>| {
            text.parse::<usize>().ok().filter(|number| range.contains(number))
        };
        match words.next()? {
            "off" => fitting.mode = Mode::Off,
            "window" => fitting.mode = Mode::SlidingWindow(number(words.next()?, 1..=usize::MAX)?),
            "budget" => {
                let percent = words.peek().filter(|word| word.starts_with(|c: char| c.is_ascii_digit())).copied();
                if let Some(percent) = percent {
                    fitting.threshold = number(percent, PERCENT)?;
                    words.next();
                }
            }
            _ => return None,
        }
        let (mut strategy, mut last) = (None, None);
        for word in words.by_ref() {
            match (word, word.strip_prefix("last=")) {
                ("truncate", _) if strategy.is_none() => strategy = Some(Strategy::Truncate),
                ("summary", _) if strategy.is_none() => strategy = Some(Strategy::SummarizeByModel),
                (_, Some(entries)) if last.is_none() => last = Some(number(entries, LAST)?),
                _ => return None,
            }
        }
        if fitting.mode == Mode::Off && (strategy.is_some() || last.is_some()) {
            return None;
        }
        (fitting.strategy, fitting.recent) = (strategy.unwrap_or(fitting.strategy), last.unwrap_or(fitting.recent));
        Some(fitting)
    };
    parse().ok_or_else(|| FORMS.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_message_has_the_valid_numbers() {
        let message = read("budget:1").unwrap_err();
        for (what, range) in [("PERCENT", PERCENT), ("last=N", LAST)] {
            let range = format!("{what} ({} to {})", range.start(), range.end());
            assert!(message.contains(&range), "no {range:?} in {message}");
        }
    }

    #[test]
    fn b5_the_forms_of_context_are_read() {
        let how = |text: &str| read(text).map(|how| (how.mode, how.strategy, how.threshold, how.recent));
        let (lines, gone, model) = (Strategy::SummarizeAndTruncate, Strategy::Truncate, Strategy::SummarizeByModel);
        let (budget, three) = (Mode::TokenBudget, Mode::SlidingWindow(3));
        for (text, expected) in [
            ("budget", (budget, lines, 75, 4)),
            ("budget:truncate", (budget, gone, 75, 4)),
            ("budget:60", (budget, lines, 60, 4)),
            ("budget:60:summary:last=6", (budget, model, 60, 6)),
            ("budget:last=0:summary", (budget, model, 75, 0)),
            ("window:3", (three, lines, 75, 4)),
            ("window:3:truncate", (three, gone, 75, 4)),
            ("window:3:summary", (three, model, 75, 4)),
            ("off", (Mode::Off, lines, 75, 4)),
        ] {
            assert_eq!(how(text), Ok(expected), "{text}");
        }
        for wrong in [
            "",
            "window",
            "window:0",
            "window:x",
            "off:truncate",
            "off:last=3",
            "budget:",
            "budget:9",
            "budget:101",
            "budget:60:70",
            "budget:summary:truncate",
            "budget:last=x",
            "window:3:60",
            "truncate",
            ":truncate",
        ] {
            assert!(how(wrong).unwrap_err().contains("window:N"), "{wrong}");
        }
    }
}
