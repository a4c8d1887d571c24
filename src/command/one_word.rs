//! Requests of one word. `dns?` names a thing to look at, but a small model takes it for talk. If it refuses such a
//! word, it is asked to show it: of forty such questions it then answers 37 instead of 30, and it still refuses all of
//! twenty words of small talk (`benches/records/2026-11-29-words.md`).

use caro_shell::{Dialect, parse};

/// Returns a request of one word as an order; `None` if it has more words, or no letter.
pub fn as_order(request: &str) -> Option<String> {
    let mut words = request.split_whitespace();
    let word = words.next()?.trim_matches(['?', '!', '.', ',']);
    (words.next().is_none() && word.chars().any(char::is_alphabetic)).then(|| format!("show {word}"))
}

/// True for a command that shows nothing but words which stand in it, as the answer to "show hello" may.
pub fn prints_only_itself(command: &str, dialect: Dialect) -> bool {
    let script = parse(command, dialect);
    !script.commands.is_empty()
        && script.commands.iter().all(|one| {
            matches!(one.name(), Some("echo" | "printf" | "print" | "Write-Output" | "Write-Host"))
                && one.args().iter().all(|word| word.value.is_some())
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_becomes_an_order() {
        for (request, order) in [
            ("dns?", Some("show dns")),
            (" MAC?? ", Some("show MAC")),
            ("logs", Some("show logs")),
            ("dns server?", None),
        ] {
            assert_eq!(as_order(request).as_deref(), order, "{request}");
        }
        for other in ["", "???", "...", "12345"] {
            assert_eq!(as_order(other), None, "{other}");
        }
    }

    #[test]
    fn what_is_printed_may_be_computed() {
        for (command, expected) in [
            ("echo 'hello'", true),
            (r"printf '%s\n' hello; echo there", true),
            ("echo \"$PATH\"", false),
            ("echo $(hostname)", false),
            ("echo hello; date", false),
            ("cat /etc/resolv.conf", false),
            ("", false),
        ] {
            assert_eq!(prints_only_itself(command, Dialect::Bash), expected, "{command}");
        }
        assert!(prints_only_itself("Write-Output 'hello'", Dialect::PowerShell));
    }
}
