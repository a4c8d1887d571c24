//! Questions about short texts, and what is right to say to each: what stands there, or that it does not. Told only in words to
//! say so, a small model makes an answer of whatever stands near; having seen it done, it does so a third less often
//! ([measured](../../../benches/records/2026-11-25-honest.md)).

use caro_model::{Prompt, Role};
use caro_policy::fence;

/// The layer with the texts that a task names, where it only wants to be told what stands there.
pub const TEXTS: &str = "texts";
/// The mark that a text in one of the first two begins with, before its name.
pub const HEADING: &str = "### ";
/// The model's words where the texts do not say it.
pub(super) const ABSENT: &str = "NOT FOUND";

/// A text, its name, and questions with the answer that stands in it; none where something like it stands there of another
/// thing.
struct Shown {
    name: &'static str,
    text: &'static str,
    asked: &'static [(&'static str, Option<&'static str>)],
}

const SHOWN: [Shown; 4] = [
    Shown {
        name: "shop.md",
        text: "The shop is open on weekdays from 9 to 18. On Sundays only the café is open, from 10 to 14. Parcels are handed out at \
               the back door by Ines. Returns cost 3 euros. Bikes go behind the blue fence, which is locked at night.",
        asked: &[
            ("How much do I pay to send something back?", Some("Returns cost 3 euros.")),
            ("Who runs the café?", None),
        ],
    },
    Shown {
        name: "minutes.md",
        text: "- Roof: Mara Lind votes against it, 5100 euros being more than the club has; all others are for it.\n\
               - The boat is painted in May, by Ole and Pia. The treasurer has the key.\n\
               - Next meeting: 3 June.",
        asked: &[
            ("Who was against the new roof, and why?", Some("Mara Lind was, for it costs more than the club has.")),
            ("Who pays for the paint?", None),
        ],
    },
    Shown {
        name: "haus.txt",
        text: "Die Heizung wird von der Firma Ehrle gewartet, Telefon 4412. Schlüssel gibt es bei Herrn Wolff im ersten Stock. \
               Bleibt der Aufzug stehen: den gelben Knopf drücken und warten.",
        asked: &[
            ("Was soll ich tun, wenn der Aufzug stehen bleibt?", Some("Den gelben Knopf drücken und warten.")),
            ("Welche Telefonnummer hat Herr Wolff?", None),
        ],
    },
    Shown {
        name: "trip.txt",
        text: "We leave on Friday at 7:15 from the north station. Tomas brings the tents and has paid for the bus, 240 in all. The hut \
               has no electricity. Whoever comes later takes line 12.",
        asked: &[
            ("Why can't I charge my phone in the hut?", Some("The hut has no electricity.")),
            ("What does the hut cost?", None),
        ],
    },
];

/// Adds them to a prompt, as a conversation before the person's own question.
pub(super) fn show(prompt: &mut Prompt) {
    for shown in SHOWN {
        let mut text = fence(TEXTS, &format!("{HEADING}{}\n{}", shown.name, shown.text));
        for (question, answer) in shown.asked {
            prompt.push(Role::User, if text.is_empty() { (*question).into() } else { format!("{text}\n\n{question}") });
            prompt.push(Role::Assistant, answer.unwrap_or(ABSENT));
            text.clear();
        }
    }
    // the same for everyone who asks: an engine may keep it
    prompt.stable_messages = prompt.messages.len();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::facts;

    #[test]
    fn half_of_the_questions_have_no_answer_and_every_number_of_one_stands_in_its_text() {
        let all: Vec<_> =
            SHOWN.iter().flat_map(|shown| shown.asked.iter().map(move |asked| (shown.text, asked))).collect();
        assert_eq!(all.iter().filter(|(_, (_, answer))| answer.is_none()).count() * 2, all.len());
        for (text, (question, answer)) in all {
            let words = |text: &str| text.to_lowercase();
            assert!(facts(answer.unwrap_or_default()).all(|fact| text.contains(&fact)), "{question}");
            assert!(!words(text).contains(&words(question)), "{question}");
        }
    }
}
