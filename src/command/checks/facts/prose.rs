//! Is it a command at all? A model that has no command to give may answer in words, and a shell parses them.

use super::CheckContext;
use crate::library;
use caro_shell::{Finding, Severity, effects, extract_commands, is_builtin};

pub(crate) const ID: &str = "prose";

/// One finding where the line only talks back, or nobody knows any program of the line: not this machine, not the shell, not
/// our own tables and examples, and the person did not name it either, nor is it called as only a program is. For another
/// machine only a name that no program has counts. What nobody asked a model for was written as a command.
pub(super) fn check(it: &CheckContext) -> Vec<Finding> {
    if it.request.is_empty() {
        return Vec::new();
    }
    let programs = extract_commands(it.script);
    let foreign = |name: &String| {
        !it.script.text.contains(&format!("/{name}")) // a path is the person's own program
            && it.context.map_or(!is_name(name), |context| !context.available_commands.contains_key(name))
            && !is_builtin(name, it.dialect)
            && !effects::is_known(name, it.dialect)
            && !is_called(it, name)
            && !library::calls(name)
            && !it.script.functions.iter().any(|f| f.name == *name)
            && !named(it, name)
    };
    let why = match programs.first() {
        Some(first) if programs.iter().all(foreign) => format!("nobody knows a program {first}"),
        _ if only_talks(it) => "it does nothing but talk back".to_owned(),
        _ => return Vec::new(),
    };
    let first = programs.first().map(String::as_str).unwrap_or_default();
    vec![Finding {
        id: ID.into(),
        severity: Severity::Error,
        token: first.to_owned(),
        span: it.script.text.find(first).map(|at| at..at + first.len()),
        why: format!("these are words and no command: {why}"),
        evidence: Vec::new(),
        fix: None,
    }]
}

/// `echo "Hello, how are you?"` for "nice to meet you", `echo lorem ipsum` for "lorem ipsum": one `echo` of fixed words that
/// are the request's own and no others, or none of the request's; and nobody asked for anything to be printed.
fn only_talks(it: &CheckContext) -> bool {
    const ASKED: [&str; 18] = [
        "print", "echo", "show", "display", "output", "write", "say", "type", "put", "emit", "repeat", "line", "text",
        "message", "string", "banner", "greet", "greeting",
    ];
    let [echo] = it.script.commands.as_slice() else { return false };
    let alone = matches!(echo.name(), Some("echo" | "printf")) && echo.redirects.is_empty() && echo.inside.is_none();
    let Some(said) = echo.args().iter().map(|w| w.value.as_deref()).collect::<Option<Vec<_>>>() else { return false };
    let (said, asked) = (words(&said.join(" ")), words(it.request));
    let mut telling = said.iter().filter(|w| w.chars().count() > 3 && w.chars().any(char::is_alphabetic)).peekable();
    let apart = said.len() > 1 && telling.peek().is_some() && !telling.any(|w| asked.contains(w));
    let wanted = asked.iter().any(|w| ASKED.contains(&w.as_str()));
    alone && !asked.is_empty() && !wanted && (said == asked || apart)
}

/// The words of a text, without case and punctuation.
fn words(text: &str) -> Vec<String> {
    let words = text.split(|c: char| !c.is_alphanumeric() && c != '\'').filter(|w| !w.is_empty());
    words.map(str::to_lowercase).collect()
}

/// True if a program could be called that: programs of one capital word are rare, and words before a comma are no names.
fn is_name(name: &str) -> bool {
    name.chars().all(|c| c.is_ascii_alphanumeric() || "_+.-".contains(c))
        && name.starts_with(|c: char| !c.is_uppercase())
}

/// True for `smartctl -a /dev/sda`: with an option or an absolute path, which words do not have, it is a program that is not
/// installed.
fn is_called(it: &CheckContext, name: &str) -> bool {
    let is_option = |text: &str| {
        text.strip_prefix('-').is_some_and(|rest| rest.starts_with(|c: char| c.is_alphabetic() || c == '-'))
    };
    let mut calls = it.script.commands.iter().filter(|c| c.name() == Some(name) && is_name(name));
    calls.any(|c| c.args().iter().any(|w| is_option(&w.text) || w.text.len() > 1 && w.text.starts_with('/')))
}

/// True if the request names the program, and the command does more than to repeat the word.
fn named(it: &CheckContext, name: &str) -> bool {
    let mut words = it.request.split(|c: char| c.is_whitespace() || ",;:?!\"'`()".contains(c));
    words.any(|word| word == name) && it.script.commands.iter().any(|c| !c.args().is_empty())
}

#[cfg(test)]
mod tests {
    use super::super::tests::{findings, findings_among};
    use super::*;

    /// Here, where `ls` is the one program.
    fn is_prose(request: &str, line: &str) -> bool {
        !findings_among(&["ls"], check, request, line).is_empty()
    }

    #[test]
    fn words_are_no_command() {
        for line in ["Plato, Aristotle, Socrates", "Thank you!", "orange", "I am a bird", "你好！", "Sure, here it is"]
        {
            assert!(is_prose("say something", line), "{line}");
        }
        assert!(is_prose("rhyme with orange", "orange"), "to repeat a word is no answer");
        assert_eq!(findings(check, "say something", "Plato, Aristotle")[0].token, "Plato,", "on any machine");
    }

    #[test]
    fn who_only_talks_back_has_no_command() {
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
    fn programs_that_somebody_knows_are_commands() {
        for line in ["ls", "cd /tmp", "docker ps", "jq . a.json", "./configure", "frob() { ls; }; frob", "Foo; ls"] {
            assert!(!is_prose("say something", line), "{line}");
        }
        for line in ["smartctl /dev/sda", "sudo hdparm -t /dev/sda", "modinfo e1000e", "frobnicate --all"] {
            assert!(!is_prose("say something", line), "{line}: it is not installed");
        }
        for words in ["love / hate", "well - yes", "- item"] {
            assert!(is_prose("say something", words), "{words}");
        }
        assert!(!is_prose("run frobnicate on a.txt", "frobnicate a.txt"), "the person knows it");
        assert_eq!(findings(check, "say something", "frobnicate a.txt"), [], "another machine may have it");
    }
}
