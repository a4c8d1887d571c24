//! What is asked of processes: `ps aux | grep sshd | awk '{print $2}'` finds the grep, too, and `ss -tln` does not say who listens.

use super::Inspected;
use super::edit::{Edits, cluster_with, is_cluster, warning};
use super::words::Words;
use crate::shell::{Finding, Os, quote};

pub(super) fn check(it: &Inspected) -> Vec<Finding> {
    of_script(it).into_iter().chain(of_sockets(it)).collect()
}

fn of_script(it: &Inspected) -> Option<Finding> {
    let commands = &it.script.commands;
    let at = commands.iter().position(|c| c.name() == Some("ps") && c.inside.is_none())?;
    let [ps, grep, awk] = commands.get(at..at + 3)? else { return None };
    let [pattern] = grep.args() else { return None };
    let [program] = awk.args() else { return None };
    let text = pattern.value.as_deref()?;
    let plain = !text.is_empty() && text.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-'));
    let all = ps.args().iter().all(|w| matches!(w.text.as_str(), "aux" | "-ef" | "-aux" | "ax" | "-e" | "-A" | "-f"));
    let second: String = program.text.split_whitespace().collect();
    let piped = ps.feeds == [at + 1] && grep.feeds == [at + 2];
    let names = (ps.name(), grep.name(), awk.name()) == (Some("ps"), Some("grep"), Some("awk"));
    if !names || !piped || !plain || !all || ps.args().is_empty() || second != "{print$2}" {
        return None;
    }
    let (start, end) = (ps.words.first()?.span.start, awk.words.last()?.span.end);
    let (before, after) = (it.script.text.get(..start)?, it.script.text.get(end..)?);
    // what is done to them is done to those of that name, not to all that have the word in their arguments
    let form = if after.trim().is_empty() { "pgrep -f" } else { "pgrep" };
    let fix = format!("{before}{form} {}{after}", quote(text, it.dialect));
    Some(warning(
        "finds-itself",
        pattern,
        "grep itself is a process with that word: pgrep leaves itself out",
        Some(fix),
    ))
}

/// Sockets without their processes, where the request asks for these: `-p` shows them, on Linux.
fn of_sockets(it: &Inspected) -> Option<Finding> {
    let asked = Words::of(it.request);
    let who = asked.say(&[
        "which process",
        "what process",
        "the process",
        "processes",
        "which program",
        "what program",
        "which service",
        "pid",
        "what is using",
        "what uses",
        "who is using",
        "who listens",
        "what listens",
        "what is listening",
        "who is listening",
    ]);
    let ports = asked.say(&["port", "ports", "socket", "sockets", "listening", "listens"]);
    if it.target.os != Os::Linux || !who || !ports {
        return None;
    }
    let list = it.script.commands.iter().find(|c| matches!(c.name(), Some("ss" | "netstat")) && !c.remote)?;
    let shows = list.args().iter().any(|w| matches!(w.text.as_str(), "--processes" | "--program" | "--programs"));
    if shows || cluster_with(list.args(), 'p').is_some() {
        return None;
    }
    let edits = Edits::new(it.script);
    let edits = match list.args().iter().find(|w| is_cluster(w)) {
        Some(cluster) => edits.replace(cluster, &format!("{}p", cluster.text)),
        None => edits.after(list.words.first()?, " -p"),
    };
    let why = "it lists sockets without their processes: -p shows them (of other users to root only)";
    Some(warning("no-process", list.words.first()?, why, edits.done()))
}

#[cfg(test)]
mod tests {
    use super::super::tests::findings;
    use super::*;

    #[test]
    fn sockets_are_shown_with_who_was_asked_for() {
        let fix =
            |request: &str, command: &str| findings(check, request, command).into_iter().next().and_then(|f| f.fix);
        for (request, wrong, right) in [
            ("which process listens on port 8080", "ss -tln | grep :8080", "ss -tlnp | grep :8080"),
            ("what is using port 80", "netstat -tuln | grep ':80 '", "netstat -tulnp | grep ':80 '"),
            ("processes with open sockets", "ss", "ss -p"),
        ] {
            assert_eq!(fix(request, wrong).as_deref(), Some(right));
        }
        for (request, right) in [
            ("which process listens on port 8080", "ss -tlnp | grep :8080"),
            ("which process listens on port 8080", "lsof -i :8080"),
            ("list open ports", "ss -tln"),
            ("which processes use the most memory", "ss -tln"),
            ("which process listens on port 8080", "ss --processes -tln"),
        ] {
            assert_eq!(fix(request, right), None, "{request}: {right}");
        }
    }

    #[test]
    fn the_search_for_a_process_is_one() {
        let fix = |command: &str| findings(check, "", command).into_iter().next().and_then(|f| f.fix);
        for (wrong, right) in [
            ("ps aux | grep sshd | awk '{print $2}'", "pgrep -f sshd"),
            ("ps -ef | grep my-app | awk '{ print $2 }' | xargs kill", "pgrep my-app | xargs kill"),
        ] {
            assert_eq!(fix(wrong).as_deref(), Some(right));
        }
        for right in [
            "ps aux | grep '[s]shd' | awk '{print $2}'",
            "ps aux | grep sshd | grep -v grep | awk '{print $2}'",
            "ps aux | grep sshd",
            "ps -o pid,cmd | grep sshd | awk '{print $2}'",
        ] {
            assert_eq!(fix(right), None, "{right}");
        }
    }
}
