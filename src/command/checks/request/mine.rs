//! `git log --author="$(git config user.name)"` for "commits with author names": only the caller's own are shown, and
//! the request speaks of nobody in the first person.

use super::CheckContext;
use super::edit::{Edits, warning};
use crate::intent::speaks_of_self;
use crate::shell::{Finding, Invocation, Word};

/// Options by which a program keeps what belongs to one person, each written with its value behind `=` or as the next word.
const FILTERS: &[(&str, &[&str])] = &[
    ("git", &["--author", "--committer"]),
    ("find", &["-user", "-uid"]),
    ("ps", &["-u", "-U", "--user", "--User"]),
    ("pgrep", &["-u", "-U", "--euid", "--uid"]),
    ("top", &["-u", "-U"]),
    ("htop", &["-u", "--user"]),
    ("lsof", &["-u"]),
    ("crontab", &["-u"]),
    ("squeue", &["-u", "--user"]),
];

/// What stands for the caller's own name or number, quotes left out.
const CALLER: &[&str] = &[
    "$USER",
    "${USER}",
    "$LOGNAME",
    "${LOGNAME}",
    "$UID",
    "${UID}",
    "$EUID",
    "$(whoami)",
    "`whoami`",
    "$(id -un)",
    "$(id -u)",
    "$(logname)",
    "$(git config user.name)",
    "$(git config user.email)",
    "$(git config --get user.name)",
    "$(git config --get user.email)",
];

pub(super) fn check(it: &CheckContext) -> Vec<Finding> {
    if it.request.is_empty() || speaks_of_self(it.request) {
        return Vec::new();
    }
    it.script.commands.iter().filter_map(|command| narrowed(it, command)).collect()
}

/// The option that narrows a command to what is the caller's own.
fn narrowed(it: &CheckContext, command: &Invocation) -> Option<Finding> {
    let name = command.name()?;
    let (_, options) = FILTERS.iter().find(|(program, _)| *program == name)?;
    let args = command.args();
    let why = "this keeps only what belongs to you, and the request does not say so";
    args.iter().enumerate().find_map(|(i, word)| {
        if let Some((option, value)) = word.raw.split_once('=') {
            let fix = || Edits::new(it.script).replace(word, "").done();
            return (options.contains(&option) && is_caller(value)).then(|| warning("only-own", word, why, fix()));
        }
        let value = args.get(i + 1)?;
        (options.contains(&word.text.as_str()) && is_caller(&value.raw))
            .then(|| warning("only-own", word, why, without(it, word, value)))
    })
}

/// True for a value that stands for the caller.
fn is_caller(value: &str) -> bool {
    CALLER.contains(&value.replace(['"', '\''], "").as_str())
}

/// The script without the option and its value.
fn without(it: &CheckContext, option: &Word, value: &Word) -> Option<String> {
    Edits::new(it.script).replace(option, "").replace(value, "").done()
}

#[cfg(test)]
mod tests {
    use super::super::tests::findings;
    use super::*;

    #[test]
    fn nothing_is_narrowed_to_the_caller_unasked() {
        let fix = |request, command| findings(check, request, command).into_iter().map(|f| f.fix).next();
        for (request, wrong, right) in [
            (
                "commits of two weeks with author names",
                "git log --author=\"$(git config user.name)\" --since=2.weeks",
                "git log --since=2.weeks",
            ),
            ("files over 1 GB", "find / -size +1G -user $(whoami) -ls", "find / -size +1G -ls"),
            ("top processes", "ps -u \"$USER\" -o pid,pcpu", "ps -o pid,pcpu"),
            ("is nginx running", "pgrep -u $USER nginx", "pgrep nginx"),
        ] {
            assert_eq!(fix(request, wrong), Some(Some(right.to_owned())), "{wrong}");
        }
        for (request, right) in [
            ("my commits", "git log --author=\"$(git config user.name)\""),
            ("zeige meine Prozesse", "ps -u $USER"),
            ("commits of Ann", "git log --author=Ann"),
            ("files of root", "find / -user root"),
            ("files here", "ls /home/$USER"),
            ("", "ps -u $USER"),
        ] {
            assert_eq!(fix(request, right), None, "{right}");
        }
    }
}
