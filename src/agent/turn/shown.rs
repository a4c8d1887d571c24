//! Examples of questions about short texts, half of them without an answer in the text. If it is only told to admit
//! that, a small model makes up answers from whatever is nearby; with examples it does so a third less often
//! ([measured](../../../benches/records/2026-11-25-honest.md)).

use caro_model::{Prompt, Role};
use caro_policy::fence;

/// The name of the layer with the texts of a task that only asks about their content.
pub const TEXTS: &str = "texts";
/// The marker before the name of a text in that layer and in the layer of knowledge.
pub const HEADING: &str = "### ";
/// The model's reply if the texts do not have the answer.
pub(super) const ABSENT: &str = "NOT FOUND";

/// A text with its name, and questions with the answer in it; `None` if the text has none, only something similar.
struct Example {
    name: &'static str,
    text: &'static str,
    questions: &'static [(&'static str, Option<&'static str>)],
}

const EXAMPLES: [Example; 4] = [
    Example {
        name: "shop.md",
        text: "The shop is open on weekdays from 9 to 18. On Sundays only the café is open, from 10 to 14. Parcels are handed out at \
               the back door by Ines. Returns cost 3 euros. Bikes go behind the blue fence, which is locked at night.",
        questions: &[
            ("How much do I pay to send something back?", Some("Returns cost 3 euros.")),
            ("Who runs the café?", None),
        ],
    },
    Example {
        name: "minutes.md",
        text: "- Roof: Mara Lind votes against it, 5100 euros being more than the club has; all others are for it.\n\
               - The boat is painted in May, by Ole and Pia. The treasurer has the key.\n\
               - Next meeting: 3 June.",
        questions: &[
            ("Who was against the new roof, and why?", Some("Mara Lind was, for it costs more than the club has.")),
            ("Who pays for the paint?", None),
        ],
    },
    Example {
        name: "haus.txt",
        text: "Die Heizung wird von der Firma Ehrle gewartet, Telefon 4412. Schlüssel gibt es bei Herrn Wolff im ersten Stock. \
               Bleibt der Aufzug stehen: den gelben Knopf drücken und warten.",
        questions: &[
            ("Was soll ich tun, wenn der Aufzug stehen bleibt?", Some("Den gelben Knopf drücken und warten.")),
            ("Welche Telefonnummer hat Herr Wolff?", None),
        ],
    },
    Example {
        name: "trip.txt",
        text: "We leave on Friday at 7:15 from the north station. Tomas brings the tents and has paid for the bus, 240 in all. The hut \
               has no electricity. Whoever comes later takes line 12.",
        questions: &[
            ("Why can't I charge my phone in the hut?", Some("The hut has no electricity.")),
            ("What does the hut cost?", None),
        ],
    },
];

/// Adds the examples to a prompt, as a conversation before the user's own question.
pub(super) fn push_examples(prompt: &mut Prompt) {
    for example in EXAMPLES {
        let mut text = fence(TEXTS, &format!("{HEADING}{}\n{}", example.name, example.text));
        for (question, answer) in example.questions {
            prompt.push(Role::User, if text.is_empty() { (*question).into() } else { format!("{text}\n\n{question}") });
            prompt.push(Role::Assistant, answer.unwrap_or(ABSENT));
            text.clear();
        }
    }
    // the same in every request, so an engine may cache it
    prompt.stable_messages = prompt.messages.len();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::facts;

    #[test]
    fn half_of_the_questions_have_no_answer_and_numbers_of_answers_are_in_the_text() {
        let pairs = EXAMPLES.iter().flat_map(|example| example.questions.iter().map(move |pair| (example.text, pair)));
        let all: Vec<_> = pairs.collect();
        assert_eq!(all.iter().filter(|(_, (_, answer))| answer.is_none()).count() * 2, all.len());
        for (text, (question, answer)) in all {
            let words = |text: &str| text.to_lowercase();
            assert!(facts(answer.unwrap_or_default()).all(|fact| text.contains(&fact)), "{question}");
            assert!(!words(text).contains(&words(question)), "{question}");
        }
    }
}
