//! Is it a command at all? A model that has no command to give may answer in words, and a shell parses them.

use super::Inspected;
use crate::shell::{Finding, Severity, effects, extract_commands, is_builtin};

pub(crate) const ID: &str = "prose";

/// One finding where nobody knows any program of the line: not this machine, not the shell, not our own tables, and the
/// person did not name it either. For another machine only a name that no program has counts.
pub(super) fn check(it: &Inspected) -> Vec<Finding> {
    let programs = extract_commands(it.script);
    let foreign = |name: &String| {
        !it.script.text.contains(&format!("/{name}")) // a path is the person's own program
            && it.context.map_or(!is_name(name), |context| !context.available_commands.contains_key(name))
            && !is_builtin(name, it.dialect)
            && !effects::is_known(name, it.dialect)
            && !it.script.functions.iter().any(|f| f.name == *name)
            && !named(it, name)
    };
    let Some(first) = programs.first().filter(|_| programs.iter().all(foreign)) else { return Vec::new() };
    vec![Finding {
        id: ID.into(),
        severity: Severity::Error,
        token: first.clone(),
        span: it.script.text.find(first).map(|at| at..at + first.len()),
        why: format!("these are words and no command: nobody knows a program {first}"),
        evidence: Vec::new(),
        fix: None,
    }]
}

/// True if a program could be called that: programs of one capital word are rare, and words before a comma are no names.
fn is_name(name: &str) -> bool {
    name.chars().all(|c| c.is_ascii_alphanumeric() || "_+.-".contains(c))
        && name.starts_with(|c: char| !c.is_uppercase())
}

/// True if the request names the program, and the command does more than to repeat the word.
fn named(it: &Inspected, name: &str) -> bool {
    let mut words = it.request.split(|c: char| c.is_whitespace() || ",;:?!\"'`()".contains(c));
    words.any(|word| word == name) && it.script.commands.iter().any(|c| !c.args().is_empty())
}

#[cfg(test)]
mod tests {
    use super::super::tests::findings;
    use super::*;
    use crate::host::ExecutionContext;
    use crate::shell::{Dialect, Target};
    use std::collections::BTreeMap;

    /// Here, where `ls` is the one program.
    fn is_prose(request: &str, line: &str) -> bool {
        let mut context = ExecutionContext::detect(None);
        context.available_commands = [("ls".to_owned(), "/bin/ls".into())].into();
        let (script, manuals) = (crate::shell::parse(line, Dialect::Bash), BTreeMap::new());
        let (target, dialect) = (Target::ALL[0].1, Dialect::Bash);
        let it = Inspected {
            request,
            script: &script,
            target,
            dialect,
            context: Some(&context),
            cwd: None,
            manuals: &manuals,
        };
        !check(&it).is_empty()
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
    fn programs_that_somebody_knows_are_commands() {
        for line in ["ls", "cd /tmp", "docker ps", "jq . a.json", "./configure", "frob() { ls; }; frob", "Foo; ls"] {
            assert!(!is_prose("say something", line), "{line}");
        }
        assert!(!is_prose("run frobnicate on a.txt", "frobnicate a.txt"), "the person knows it");
        assert_eq!(findings(check, "say something", "frobnicate a.txt"), [], "another machine may have it");
    }
}
