//! Is every program there?

use super::edit::Edits;
use super::{CheckContext, renamed};
use caro_shell::parse::Invocation;
use caro_shell::{Finding, Severity, extract_commands};

/// Id of its finding.
pub const ID: &str = "unknown-program";

pub(super) fn check(it: &CheckContext) -> Vec<Finding> {
    let Some(context) = it.context else { return Vec::new() };
    extract_commands(it.script)
        .into_iter()
        .filter(|name| !exists(name, it))
        .filter(|name| !it.script.functions.iter().any(|f| f.name == *name))
        // it runs on another machine or in a container (`restic` of `ssh box restic snapshots`), or is called by its path: the
        // user's own, or one that the command itself makes
        .filter(|name| !always(name, it, |c| c.remote))
        .filter(|name| !always(name, it, |c| c.words.first().is_some_and(|w| w.text.contains('/'))))
        .map(|name| {
            let near = nearest(&name, context.available_commands.keys());
            Finding {
                id: ID.into(),
                severity: Severity::Error,
                span: it.script.text.find(&name).map(|at| at..at + name.len()),
                why: match &near {
                    Some(other) => format!("{name} is not installed here; {other} is"),
                    None if name == "sudo" => "sudo is not installed here".into(),
                    None => format!("{name} is not installed here; do it with a program that is"),
                },
                fix: match &near {
                    _ if name == "sudo" => without_sudo(it),
                    Some(other) if **other == format!("{name}3") => called(it, &name, other),
                    _ => renamed::as_loop(it).filter(|_| name.ends_with("rename")),
                },
                token: name,
                evidence: Vec::new(),
            }
        })
        .collect()
}

/// The command with `doas` where it has `sudo`, or as it is run by who needs neither: root, in a container mostly. None if an
/// option of sudo says more than that.
fn without_sudo(it: &CheckContext) -> Option<String> {
    let instead = if exists("doas", it) { "doas" } else { "" };
    let mut edits = Edits::new(it.script);
    for sudo in it.script.commands.iter().filter(|c| c.name() == Some("sudo") && !c.remote) {
        let [word] = &sudo.words[..] else { return None };
        edits = edits.replace(word, instead);
    }
    edits.done().map(|mended| mended.trim_start().to_owned()).filter(|mended| !mended.is_empty())
}

/// The command with `python3` where it calls `python`.
fn called(it: &CheckContext, name: &str, other: &str) -> Option<String> {
    let calls = it.script.commands.iter().filter(|c| c.name() == Some(name));
    calls.filter_map(|c| c.words.first()).fold(Edits::new(it.script), |edits, word| edits.replace(word, other)).done()
}

fn exists(name: &str, it: &CheckContext) -> bool {
    let Some(context) = it.context else { return true };
    context.available_commands.contains_key(name) || caro_shell::is_builtin(name, it.dialect)
}

/// True if each call of that program is one of these.
fn always(name: &str, it: &CheckContext, is: impl Fn(&Invocation) -> bool) -> bool {
    let mut calls = it.script.commands.iter().filter(|c| c.name() == Some(name)).peekable();
    calls.peek().is_some() && calls.all(is)
}

/// A program of almost the same name (`phyton`), at most one edit away, from four letters on.
fn nearest<'a>(name: &str, all: impl Iterator<Item = &'a String>) -> Option<&'a String> {
    (name.len() >= 4)
        .then(|| {
            all.into_iter()
                .find(|other| other.len().abs_diff(name.len()) <= 1 && strsim::osa_distance(name, other) <= 1)
        })
        .flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_runs_elsewhere_need_not_be_installed_here() {
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
    fn sudo_goes_where_there_is_none() {
        let mended = |here: &[&str], line: &str| {
            super::super::tests::findings_among(here, check, "", line).into_iter().find_map(|f| f.fix)
        };
        assert_eq!(mended(&["ss"], "sudo ss -tln").as_deref(), Some("ss -tln"));
        assert_eq!(
            mended(&["cat", "tee"], "cat a | sudo tee /b && sudo cat /b").as_deref(),
            Some("cat a | tee /b && cat /b")
        );
        assert_eq!(mended(&["ss", "doas"], "sudo ss -tln").as_deref(), Some("doas ss -tln"));
        for line in ["sudo -u postgres psql", "sudo -i"] {
            assert_eq!(mended(&["psql"], line), None, "{line}: as somebody else");
        }
        assert_eq!(mended(&["sudo", "ss"], "sudo ss -tln"), None);
        assert_eq!(mended(&["ssh"], "ssh box sudo ss"), None, "there may be one there");
    }

    #[test]
    fn near_names() {
        let all: Vec<String> = ["python3", "rsync", "netstat"].map(String::from).into();
        assert_eq!(nearest("netsat", all.iter()).map(String::as_str), Some("netstat"));
        assert_eq!(nearest("rsycn", all.iter()).map(String::as_str), Some("rsync"));
        assert_eq!(nearest("fd", all.iter()), None);
        assert_eq!(nearest("ripgrep", all.iter()), None);
    }
}
