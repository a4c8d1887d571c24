//! Finds programs that are not installed.

use super::edit::Edits;
use super::{CheckContext, renamed, span_of_call};
use crate::fix::near::is_misspelling;
use caro_shell::parse::Invocation;
use caro_shell::{Dialect, Finding, Severity, extract_commands, foreign_keyword};

/// The id of the finding.
pub const ID: &str = "unknown-program";

pub(super) fn check(cx: &CheckContext) -> Vec<Finding> {
    let Some(context) = cx.context else { return Vec::new() };
    extract_commands(cx.script)
        .into_iter()
        .filter(|name| !exists(name, cx))
        .filter(|name| !cx.script.functions.iter().any(|f| f.name == *name))
        // a program on another machine or in a container (`restic` of `ssh box restic snapshots`)
        .filter(|name| !all_calls(name, cx, |c| c.remote))
        // a program called by its path: the user's own, or one that the command itself creates
        .filter(|name| !all_calls(name, cx, |c| c.words.first().is_some_and(|w| w.text.contains('/'))))
        .map(|name| {
            let near = nearest(&name, context.available_commands.keys(), cx.dialect);
            Finding {
                id: ID.into(),
                severity: Severity::Error,
                span: span_of_call(cx.script, &name),
                why: match &near {
                    Some(other) => format!("{name} is not installed here; {other} is"),
                    None if name == "sudo" => "sudo is not installed here".into(),
                    None => not_here(&name, cx.dialect),
                },
                fix: match &near {
                    _ if name == "sudo" => without_sudo(cx),
                    Some(other) if **other == format!("{name}3") => replace_program(cx, &name, other),
                    _ if name.ends_with("rename") => renamed::as_loop(cx),
                    _ => None,
                },
                token: name,
                evidence: Vec::new(),
            }
        })
        .collect()
}

/// Says that a program is not here; of a word of another shell, that it is one.
fn not_here(name: &str, dialect: Dialect) -> String {
    match foreign_keyword(name, dialect) {
        Some(shells) => {
            let (own, others) = (dialect.name(), shells.join(" and "));
            format!("`{name}` is no word of {own} but of {others}: write it as {own} does")
        }
        None => format!("{name} is not installed here; do it with a program that is"),
    }
}

/// Returns the command with `doas` in place of `sudo`, or with neither, as root runs it, mostly in a container.
/// `None` if `sudo` has options.
fn without_sudo(cx: &CheckContext) -> Option<String> {
    let instead = if exists("doas", cx) { "doas" } else { "" };
    let mut edits = Edits::new(cx.script);
    for sudo in cx.script.commands.iter().filter(|c| c.name() == Some("sudo") && !c.remote) {
        let [word] = &sudo.words[..] else { return None };
        edits = edits.replace(word, instead);
    }
    edits
        .apply()
        .map(|fixed| fixed.trim_start().to_owned())
        .filter(|fixed| !fixed.is_empty() && !fixed.starts_with('!'))
}

/// Returns the command with another program, such as `python3` for `python`.
fn replace_program(cx: &CheckContext, name: &str, other: &str) -> Option<String> {
    let calls = cx.script.commands.iter().filter(|c| c.name() == Some(name));
    calls.filter_map(|c| c.words.first()).fold(Edits::new(cx.script), |edits, word| edits.replace(word, other)).apply()
}

fn exists(name: &str, cx: &CheckContext) -> bool {
    let Some(context) = cx.context else { return true };
    context.available_commands.contains_key(name) || caro_shell::is_builtin(name, cx.dialect)
}

/// True if the program is called, and every call meets the condition.
fn all_calls(name: &str, cx: &CheckContext, condition: impl Fn(&Invocation) -> bool) -> bool {
    let mut calls = cx.script.commands.iter().filter(|c| c.name() == Some(name)).peekable();
    calls.peek().is_some() && calls.all(condition)
}

/// Returns a program whose name is one edit away (`phyton`), for names of at least four bytes.
fn nearest<'a>(name: &str, mut all: impl Iterator<Item = &'a String>, dialect: Dialect) -> Option<&'a String> {
    if name.len() < 4 {
        return None;
    }
    all.find(|other| {
        other.len().abs_diff(name.len()) <= 1
            && strsim::osa_distance(name, other) <= 1
            && is_misspelling(name, other, dialect)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_on_another_machine_need_not_be_installed_here() {
        let missing = |line: &str| {
            let found = super::super::tests::findings_among(&["ssh"], check, "", line);
            found.into_iter().map(|f| f.token).collect::<Vec<_>>()
        };
        assert!(missing("ssh box restic snapshots").is_empty());
        assert_eq!(missing("restic snapshots"), ["restic"]);
        assert_eq!(missing("ssh box restic snapshots; restic check"), ["restic"]);
        assert!(missing("./run.sh; bin/tool -x").is_empty());
    }

    #[test]
    fn a_word_of_another_shell_is_told_as_one() {
        let why = |line: &str| super::super::tests::findings_among(&["ls"], check, "", line)[0].why.clone();
        assert_eq!(why("foreach f"), "`foreach` is no word of bash but of zsh and powershell: write it as bash does");
        assert!(why("restic f").contains("do it with a program that is"));
    }

    #[test]
    fn a_missing_sudo_is_removed() {
        let fix = |here: &[&str], line: &str| {
            super::super::tests::findings_among(here, check, "", line).into_iter().find_map(|f| f.fix)
        };
        assert_eq!(fix(&["ss"], "sudo ss -tln").as_deref(), Some("ss -tln"));
        assert_eq!(
            fix(&["cat", "tee"], "cat a | sudo tee /b && sudo cat /b").as_deref(),
            Some("cat a | tee /b && cat /b")
        );
        assert_eq!(fix(&["ss", "doas"], "sudo ss -tln").as_deref(), Some("doas ss -tln"));
        // `!!` is what failed without sudo
        for line in ["sudo -u postgres psql", "sudo -i", "sudo !!"] {
            assert_eq!(fix(&["psql"], line), None, "{line}: as another user");
        }
        assert_eq!(fix(&["sudo", "ss"], "sudo ss -tln"), None);
        assert_eq!(fix(&["ssh"], "ssh box sudo ss"), None, "the other machine may have it");
    }

    #[test]
    fn the_nearest_name_is_at_most_one_edit_away() {
        let all: Vec<String> = ["caro", "free", "python3", "rsync", "netstat", "sync"].map(String::from).into();
        let of = |name: &str| nearest(name, all.iter(), Dialect::Bash).map(String::as_str);
        for (name, near) in [("netsat", "netstat"), ("rsycn", "rsync"), ("python", "python3")] {
            assert_eq!(of(name), Some(near), "{name}");
        }
        for name in ["fd", "ripgrep", "cargo", "tree", "python2"] {
            assert_eq!(of(name), None, "{name}");
        }
        let without_rsync: Vec<String> = vec!["sync".into()];
        assert_eq!(nearest("rsync", without_rsync.iter(), Dialect::Bash), None);
    }
}
