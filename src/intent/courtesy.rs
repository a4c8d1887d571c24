//! Strips polite phrases from a request: "how do I unzip a.zip?" and "please unzip a.zip" become "unzip a.zip". The
//! worked examples of the prompt are imperatives, and a small model answers an imperative best.

use regex::Regex;
use std::sync::LazyLock;

/// Polite words before an order, in lower case.
const POLITE: [&str; 5] = ["could you", "would you", "can you", "please", "kindly"];
/// Beginnings of questions for a way to do something.
const QUESTIONS: [&str; 25] = [
    "what's the best way to",
    "what is the best way to",
    "what's the command to",
    "what is the command to",
    "what would be the command to",
    "what command do i use to",
    "which command do i use to",
    "what's a command to",
    "is there a command to",
    "is there a way to",
    "is it possible to",
    "give me a command to",
    "give me the command to",
    "tell me how to",
    "show me how to",
    "how would i",
    "how should i",
    "how could i",
    "how can i",
    "how can we",
    "how can you",
    "how do i",
    "how do we",
    "how do you",
    "how to",
];
/// Beginnings of wishes. In a text of several sentences a wish may also be the reason for the order that follows.
const WISHES: [&str; 8] = [
    "i would like you to",
    "i would like to",
    "i'd like you to",
    "i'd like to",
    "i want you to",
    "i want to",
    "i need you to",
    "i need to",
];
/// Polite words after an order.
const CLOSINGS: [&str; 5] = ["please", "thank you", "thanks", "for me", "if possible"];

/// Returns the request without polite phrases, or the trimmed request if less than two words would be left.
pub fn without(request: &str) -> &str {
    let request = ungreeted(request);
    let is_single = ![". ", "; ", "\n"].iter().any(|end| request.trim().contains(end));
    strip(request, &[&POLITE, &QUESTIONS, if is_single { &WISHES } else { &[] }])
}

/// Returns the request or task without a greeting before it, or the trimmed text if less than two words would be
/// left. A greeting is followed by a name or by punctuation: `hi list` may be about a file called `hi`.
pub fn ungreeted(request: &str) -> &str {
    static GREETING: LazyLock<Option<Regex>> = LazyLock::new(|| {
        Regex::new(
            r"(?i)^(?:(?:hi|hello|hey|ok|okay|good (?:morning|afternoon|evening|day))(?:,? (?:there|caro)[,!.:]*\s|[,!.:]+\s)|caro[,!:]+\s)\s*",
        )
        .ok()
    });
    let trimmed = request.trim();
    let left = GREETING.as_ref().and_then(|greeting| greeting.find(trimmed)).map_or(trimmed, |it| &trimmed[it.end()..]);
    if left.split_whitespace().nth(1).is_some() { left } else { trimmed }
}

/// Strips the polite words of a part of a task, but neither questions nor wishes: "how do I delete all logs?" asks
/// for no deletion, and "I want to keep a.txt" may limit the part after it.
pub fn without_politeness(part: &str) -> &str {
    strip(part, &[&POLITE])
}

fn strip<'a>(request: &'a str, openings: &[&[&str]]) -> &'a str {
    let mut rest = request.trim();
    while let Some(order) = openings.concat().iter().find_map(|opening| strip_opening(rest, opening)) {
        rest = order;
    }
    let opened = rest.len() < request.trim().len();
    loop {
        let end = rest.trim_end_matches(|c: char| c.is_whitespace() || matches!(c, ',' | '!' | '?'));
        match CLOSINGS.iter().find_map(|closing| strip_closing(end, closing)) {
            Some(order) => rest = order,
            None => {
                // the question mark belongs to the question that was stripped
                if opened {
                    rest = end;
                }
                break;
            }
        }
    }
    if rest.split_whitespace().nth(1).is_some() { rest } else { request.trim() }
}

/// Returns the text after `opening` if it begins with it as whole words, in any case.
fn strip_opening<'a>(text: &'a str, opening: &str) -> Option<&'a str> {
    let head = text.get(..opening.len())?;
    let rest = &text[opening.len()..];
    let ends = rest.starts_with(|c: char| c.is_whitespace() || c == ',');
    (head.eq_ignore_ascii_case(opening) && ends)
        .then(|| rest.trim_start_matches(|c: char| c.is_whitespace() || c == ','))
}

/// Returns the text before `closing` if it ends with it as whole words, in any case.
fn strip_closing<'a>(text: &'a str, closing: &str) -> Option<&'a str> {
    let at = text.len().checked_sub(closing.len())?;
    let tail = text.get(at..)?;
    let rest = &text[..at];
    (tail.eq_ignore_ascii_case(closing) && rest.ends_with([' ', ','])).then(|| rest.trim_end_matches([' ', ',']))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn courtesy_is_stripped() {
        for asked in [
            "unzip a.zip",
            "How do I unzip a.zip?",
            "please unzip a.zip",
            "Can you please unzip a.zip, thanks!",
            "could you unzip a.zip for me please?",
            "  is there a way to unzip a.zip ?",
            "I'd like to unzip a.zip",
            "Hi, unzip a.zip",
            "hello there! Can you unzip a.zip?",
            "Good morning caro, I want to unzip a.zip",
            "caro, unzip a.zip",
        ] {
            assert_eq!(without(asked), "unzip a.zip", "{asked}");
        }
    }

    #[test]
    fn other_texts_stay() {
        for text in [
            "how many files are here?",
            "what is the command",
            "can you",
            "please",
            "how do I",
            "please help",
            "can you help?",
            "list the files, please.txt too",
            "how to",
            "canyou list files",
            "which files can you read?",
            "delete tmp!",
            "",
            "könntest du die Dateien zeigen",
            "I want to keep a.txt. Delete the others.",
            "hi",
            "hello, world",
            "hello world in python",
            "hi there",
            "hi list",
        ] {
            assert_eq!(without(text), text.trim(), "{text}");
        }
        assert_eq!(without_politeness("can you keep a.txt"), "keep a.txt");
        for text in ["I want to keep a.txt", "how do I delete all logs?"] {
            assert_eq!(without_politeness(text), text);
        }
    }

    proptest! {
        #[test]
        fn the_result_is_a_part_of_the_request(text in "(please |can you |how do i |[a-zé?, ]{0,12}){0,5}(please|thanks|\\?)?") {
            let left = without(&text);
            prop_assert!(text.contains(left));
            prop_assert!(!left.is_empty() || text.trim().is_empty());
        }
    }
}
