//! `ps aux | grep sshd | awk '{print $2}'` finds the grep, too.

use super::Inspected;
use super::edit::warning;
use crate::shell::{Finding, quote};

pub(super) fn check(it: &Inspected) -> Vec<Finding> {
    of_script(it).into_iter().collect()
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

#[cfg(test)]
mod tests {
    use super::super::tests::findings;
    use super::*;

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
