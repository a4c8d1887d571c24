//! Example turns for the prompt, in the form of real ones: query a skill first, send the result, then call nothing.

use super::history::Entry;
use super::machine::Question;
use super::seen::TurnView;

/// An example turn: the new message, the results of the previous turn, and the calls.
struct Example {
    message: Option<&'static str>,
    results: &'static str,
    called: &'static str,
}

const fn example(message: Option<&'static str>, results: &'static str, called: &'static str) -> Example {
    Example { message, results, called }
}

/// The example turns. They contain no question of a real user, and the number in a result is one that no real text has
/// ([`crate::action::EXAMPLE`]).
const EXAMPLES: [Example; 9] = [
    example(None, "", "()"),
    example(
        Some("please note that the printer is in room 12"),
        "(RESULTS: ())",
        r#"((remember "The printer is in room 12.") (send "I have noted that the printer is in room 12."))"#,
    ),
    example(
        None,
        r#"(RESULTS: ((COMMAND_RETURN: ((remember "The printer is in room 12.") "REMEMBER-SUCCESS")) (COMMAND_RETURN: ((send "I have noted that the printer is in room 12.") "SEND-SUCCESS"))))"#,
        "()",
    ),
    example(Some("where is the printer?"), "(RESULTS: ())", r#"((query "printer"))"#),
    example(
        None,
        r#"(RESULTS: ((COMMAND_RETURN: ((query "printer") "- The printer is in room 12."))))"#,
        r#"((send "The printer is in room 12."))"#,
    ),
    example(Some("how many pictures do I have?"), "(RESULTS: ())", r#"((shell "ls *.jpg *.png | wc -l"))"#),
    example(
        None,
        r#"(RESULTS: ((COMMAND_RETURN: ((shell "ls *.jpg *.png | wc -l") "8317"))))"#,
        r#"((send "You have 8317 pictures."))"#,
    ),
    example(
        Some("move the pdf files to a folder named papers"),
        "(RESULTS: ())",
        r#"((shell "mkdir -p papers && mv *.pdf papers/"))"#,
    ),
    example(
        None,
        r#"(RESULTS: ((COMMAND_RETURN: ((shell "mkdir -p papers && mv *.pdf papers/") "(no output)"))))"#,
        r#"((send "The pdf files are in papers now."))"#,
    ),
];

/// The time of the first turn, milliseconds since 1970.
const START_TIME: u64 = 1_700_000_000_000;

/// Returns the example turns as texts, each with its calls.
pub fn examples() -> Vec<(String, String)> {
    let mut history: Vec<Entry> = Vec::new();
    let (mut previous, mut answered) = ("", true);
    let mut turns = Vec::with_capacity(EXAMPLES.len());
    for (at, Example { message, results, called }) in EXAMPLES.iter().enumerate() {
        let now = START_TIME + 60_000 * at as u64;
        let question = Question { message: message.map(str::to_owned), woken: false };
        // one entry is enough to show the form
        let latest = &history[history.len().saturating_sub(1)..];
        if let Some(message) = message {
            (previous, answered) = (message, false);
        }
        let view = TurnView { results, history: latest, pinned: "", previous, answered, question: &question, now };
        turns.push((view.turn(usize::MAX / 2, usize::MAX / 2), (*called).to_owned()));
        answered |= called.contains("(send ");
        if message.is_some() || *called != "()" {
            history.push(Entry {
                time: now,
                message: question.message,
                response: (*called).into(),
                errors: Vec::new(),
            });
        }
    }
    turns
}

#[cfg(test)]
mod tests {
    use super::super::sexpr::read;
    use super::super::skills::fault;
    use super::*;

    #[test]
    fn the_calls_of_the_examples_are_valid() {
        for Example { called, results, message } in EXAMPLES {
            let calls = read(called).unwrap();
            assert!(calls.iter().all(|call| fault(call).is_none()), "{called}");
            // a turn without a new message does not repeat the calls whose results it sees
            assert!(message.is_some() || calls.iter().all(|call| !results.contains(&call.print())), "{called}");
        }
        let turns = examples();
        assert!(turns[4].0.contains("Not answered yet: where is the printer?"), "{}", turns[4].0);
        assert!(
            turns[1].0.contains("HUMAN_MESSAGE: please note") && turns[2].0.contains("Already answered: please note")
        );
    }
}
