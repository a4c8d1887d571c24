//! `--author="yourname"`: a word that stands for something the person did not say.

use super::CheckContext;
use caro_shell::{Finding, Severity, Word};

/// Words of examples in manuals and answers, never real names; compared without case, quotes and separators.
const STANDINS: &[&str] = &[
    "yourname",
    "yourusername",
    "youruser",
    "yourpassword",
    "youremail",
    "yourfile",
    "yourfilename",
    "yourdirectory",
    "yourhost",
    "yourhostname",
    "yourserver",
    "yourdomain",
    "yourprocess",
    "authorname",
    "filename",
    "foldername",
    "directoryname",
    "dirname",
    "username",
    "hostname",
    "processname",
    "servicename",
    "pathtofile",
    "pathtodirectory",
    "pathtofolder",
    "pathtodir",
    "somefile",
    "somedirectory",
    "placeholder",
];

pub(super) fn check(it: &CheckContext) -> Vec<Finding> {
    let request = plain(it.request);
    // whose operands are names of programs
    let about = |name: &str| matches!(name, "man" | "which" | "type" | "whatis" | "tldr" | "info" | "command");
    let commands = it.script.commands.iter().filter(|c| !c.name().is_some_and(about));
    let searching = |name: &str| matches!(name, "grep" | "egrep" | "fgrep" | "rg" | "sed" | "awk" | "gawk" | "mawk");
    let args = commands.flat_map(|c| c.args().iter().map(move |word| (word, c.name().is_some_and(searching))));
    let found = args.filter(|(w, _)| w.value.is_some()).filter_map(|(word, searches)| {
        // the value of an option, a path, or the word itself; an option's own name is its program's
        let value = match word.text.rsplit_once('=') {
            Some((_, value)) => value,
            None if word.text.starts_with('-') => return None,
            None => word.text.as_str(),
        };
        // what is searched for may well stand in brackets: `<none>`, `<defunct>`, `<tr>`
        let bracketed = !searches && value.len() > 2 && value.starts_with('<') && value.ends_with('>');
        let text = plain(value);
        // `user.name` and `user,name` are keys and columns; "Your Name" is nothing else
        let joined = value.starts_with("Your ")
            || value.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '/' | '<' | '>' | '\'' | '"'));
        let standin = STANDINS.contains(&text.as_str()) && joined;
        // what the person said is meant, whatever it looks like
        ((bracketed || standin) && !request.contains(&text)).then(|| Finding {
            id: "placeholder".into(),
            severity: Severity::Warning,
            token: word.raw.clone(),
            span: Some(word.span.clone()),
            why: "this only stands for a name that nobody gave: leave it out, or print that name instead".into(),
            evidence: Vec::new(),
            fix: without_option(&it.script.text, word),
        })
    });
    found.collect()
}

/// The command without an option whose value is the placeholder (`--author=NAME`): what was not asked for is not missed.
fn without_option(text: &str, word: &Word) -> Option<String> {
    if !word.raw.starts_with("--") || text.get(word.span.clone()) != Some(word.raw.as_str()) {
        return None;
    }
    Some(format!("{}{}", text[..word.span.start].trim_end(), &text[word.span.end..]))
}

/// Letters and digits alone, in lower case.
fn plain(text: &str) -> String {
    text.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::super::tests::findings;
    use super::*;

    #[test]
    fn an_option_for_a_standin_is_left_out() {
        let fix = |command| findings(check, "commits of two weeks", command).remove(0).fix;
        let mended = fix("git log --author=\"yourname\" --since=2.weeks | cat");
        assert_eq!(mended.as_deref(), Some("git log --since=2.weeks | cat"));
        assert_eq!(fix("cat /path/to/file"), None);
    }

    #[test]
    fn standins_are_found_unless_the_person_said_them() {
        let found = |request, command| findings(check, request, command).len();
        for wrong in [
            "git log --author=\"yourname\"",
            "git log --author='Your Name'",
            "cat /path/to/file",
            "scp a your_username@h:/ '<server>'",
            "kill '<pid>'",
        ] {
            assert!(found("do it", wrong) > 0, "{wrong}");
        }
        for right in [
            "git log --author='Ada'",
            "cat notes.txt",
            "hostname",
            "awk '{print $1}' f",
            "echo 'your name'",
            "ls -l /path",
            "docker run --hostname web nginx",
            "psql --username postgres -c 'select 1'",
            "kubectl apply --filename x.yml",
            "git config user.name",
            "ps -eo user,name",
            "man hostname",
            "which hostname",
        ] {
            assert_eq!(found("do it", right), 0, "{right}");
        }
        assert_eq!(found("rename the file filename to b", "mv filename b"), 0);
    }
}
