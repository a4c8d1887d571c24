//! Questions of one word. `dns?` names a thing to look at, but a small model takes it for talk. If it refuses such a
//! word, it is asked to show it: of forty such questions it then answers 37 instead of 30, and it still refuses all of
//! eighty words of small talk (`benches/records/2026-11-29-words.md`).

/// Returns a question of one word as an order; `None` for any other request.
pub fn as_order(request: &str) -> Option<String> {
    let mut words = request.split_whitespace();
    let word = words.next()?.strip_suffix('?')?.trim_end_matches('?');
    (words.next().is_none() && word.chars().any(char::is_alphabetic)).then(|| format!("show {word}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_of_one_word_becomes_an_order() {
        for (request, order) in [("dns?", "show dns"), (" MAC?? ", "show MAC")] {
            assert_eq!(as_order(request).as_deref(), Some(order), "{request}");
        }
        for other in ["", "???", "...", "12345?", "hello", "logs", "dns server?", "is it?"] {
            assert_eq!(as_order(other), None, "{other}");
        }
    }
}
