//! Finds prose in place of a command: a model that has no command may answer in words, which a shell parses as well.

use super::words::is_in;
use super::{CheckContext, span_of_call};
use crate::library;
use caro_shell::{Finding, Severity, effects, extract_commands, is_builtin};

/// The id of the finding.
pub(crate) const ID: &str = "prose";

/// Returns a finding if the line only talks back, or all its programs are unknown: to this machine, the shell, our
/// tables and examples, and the request, and not called with options as a program is. For another machine, a program
/// counts as unknown only if no program could have its name. A command without a request was not written by a model,
/// and is not checked.
pub(super) fn check(cx: &CheckContext) -> Option<Finding> {
    if cx.request.is_empty() {
        return None;
    }
    let programs = extract_commands(cx.script);
    let is_unknown = |name: &String| {
        !cx.script.text.contains(&format!("/{name}")) // a path names the user's own program
            && cx.context.map_or(!is_name(name), |context| !context.available_commands.contains_key(name))
            && !is_builtin(name, cx.dialect)
            && !effects::is_known(name, cx.dialect)
            && !is_called(cx, name)
            && !library::calls(name)
            && !cx.script.functions.iter().any(|f| f.name == *name)
            && !named(cx, name)
    };
    let why = match programs.first() {
        Some(first) if programs.iter().all(is_unknown) => format!("nobody knows a program {first}"),
        _ if only_talks(cx) => "it does nothing but talk back".to_owned(),
        _ => return None,
    };
    let first = programs.first().map(String::as_str).unwrap_or_default();
    Some(Finding {
        id: ID.into(),
        severity: Severity::Error,
        token: first.to_owned(),
        span: span_of_call(cx.script, first),
        why: format!("these are words and no command: {why}"),
        evidence: Vec::new(),
        fix: None,
    })
}

/// `echo "Hello, how are you?"` for "nice to meet you", `echo lorem ipsum` for "lorem ipsum": a single `echo` of
/// literal words that are exactly those of the request, or none of them, while the request does not ask to print
/// anything.
fn only_talks(cx: &CheckContext) -> bool {
    const ASKED: &str = "print echo show display output write say type put emit repeat line text message string \
        banner greet greeting";
    let [echo] = cx.script.commands.as_slice() else { return false };
    let is_echo = matches!(echo.name(), Some("echo" | "printf")) && echo.redirects.is_empty() && echo.inside.is_none();
    let Some(said) = echo.args().iter().map(|w| w.value.as_deref()).collect::<Option<Vec<_>>>() else { return false };
    let (said, request) = (words(&said.join(" ")), words(cx.request));
    let mut content = said.iter().filter(|w| w.chars().count() > 3 && w.chars().any(char::is_alphabetic)).peekable();
    let is_unrelated = said.len() > 1 && content.peek().is_some() && !content.any(|w| request.contains(w));
    let asks_to_print = request.iter().any(|w| is_in(ASKED, w));
    is_echo && !request.is_empty() && !asks_to_print && (said == request || is_unrelated)
}

/// Returns the words of a text in lower case, without punctuation.
fn words(text: &str) -> Vec<String> {
    let words = text.split(|c: char| !c.is_alphanumeric() && c != '\'').filter(|w| !w.is_empty());
    words.map(str::to_lowercase).collect()
}

/// True if a program could have this name: few begin with a capital letter, and none ends with a comma.
fn is_name(name: &str) -> bool {
    name.chars().all(|c| c.is_ascii_alphanumeric() || "_+.-".contains(c))
        && name.starts_with(|c: char| !c.is_uppercase())
}

/// True for `smartctl -a /dev/sda`: an option or an absolute path, which prose does not have, shows that it is a
/// program, though not installed.
fn is_called(cx: &CheckContext, name: &str) -> bool {
    let is_option = |text: &str| {
        text.strip_prefix('-').is_some_and(|rest| rest.starts_with(|c: char| c.is_alphabetic() || c == '-'))
    };
    let mut calls = cx.script.commands.iter().filter(|c| c.name() == Some(name) && is_name(name));
    calls.any(|c| c.args().iter().any(|w| is_option(&w.text) || w.text.len() > 1 && w.text.starts_with('/')))
}

/// True if the request names the program, and the command is more than that word.
fn named(cx: &CheckContext, name: &str) -> bool {
    let mut words = cx.request.split(|c: char| c.is_whitespace() || ",;:?!\"'`()".contains(c));
    words.any(|word| word == name) && cx.script.commands.iter().any(|c| !c.args().is_empty())
}

#[cfg(test)]
mod tests {
    use super::super::tests::{findings, findings_among};
    use super::*;

    /// Runs the check on a machine where `ls` is the only program.
    fn is_prose(request: &str, line: &str) -> bool {
        !findings_among(&["ls"], check, request, line).is_empty()
    }

    #[test]
    fn prose_is_no_command() {
        for line in ["Plato, Aristotle, Socrates", "Thank you!", "orange", "I am a bird", "你好！", "Sure, here it is"]
        {
            assert!(is_prose("say something", line), "{line}");
        }
        assert!(is_prose("rhyme with orange", "orange"), "to repeat a word is no answer");
        assert_eq!(findings(check, "say something", "Plato, Aristotle")[0].token, "Plato,", "on any machine");
    }

    #[test]
    fn talking_back_with_echo_is_no_command() {
        for (request, line) in [
            ("nice to meet you", "echo \"Hello, how are you?\""),
            ("you are very helpful", "echo \"You are very helpful\""),
            ("lorem ipsum dolor sit amet", "echo 'lorem ipsum dolor sit amet'"),
            ("tell me a joke", "printf 'Why did the chicken cross?\\n'"),
        ] {
            assert!(is_prose(request, line), "{line}");
        }
        for (request, line) in [
            ("print hello world", "echo hello world"),
            ("gib hallo aus", "echo hallo"),
            ("what shell is this", "echo $SHELL"),
            ("how much is 2 + 2", "echo 4"),
            ("add the line x to a.txt", "echo 'x' >> a.txt"),
            ("the numbers from 1 to 5", "echo 1 2 3 4 5"),
            ("", "echo hello there friend"),
        ] {
            assert!(!is_prose(request, line), "{line}");
        }
    }

    #[test]
    fn known_or_named_programs_are_commands() {
        for line in ["ls", "cd /tmp", "docker ps", "jq . a.json", "./configure", "frob() { ls; }; frob", "Foo; ls"] {
            assert!(!is_prose("say something", line), "{line}");
        }
        for line in ["smartctl /dev/sda", "sudo hdparm -t /dev/sda", "modinfo e1000e", "frobnicate --all"] {
            assert!(!is_prose("say something", line), "{line}: it is not installed");
        }
        for words in ["love / hate", "well - yes", "- item"] {
            assert!(is_prose("say something", words), "{words}");
        }
        assert!(!is_prose("run frobnicate on a.txt", "frobnicate a.txt"), "the user knows it");
        assert_eq!(findings(check, "say something", "frobnicate a.txt"), [], "another machine may have it");
    }
}
