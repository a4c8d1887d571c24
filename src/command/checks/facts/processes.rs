//! Finds text that is mistaken for a process: `ps aux | grep sshd | awk '{print $2}'`, which finds the `grep` too,
//! the heading of `lsof`, and a process id that `taskset` takes for a program.

use super::CheckContext;
use super::edit::{Edits, warning};
use caro_shell::{Finding, Invocation, quote};

pub(super) fn check(cx: &CheckContext) -> Option<Finding> {
    finds_itself(cx).or_else(|| heading(cx)).or_else(|| pinned(cx))
}

/// `ps aux | grep sshd | awk '{print $2}'`: the list of processes contains the search itself.
fn finds_itself(cx: &CheckContext) -> Option<Finding> {
    let commands = &cx.script.commands;
    let at = commands.iter().position(|c| c.name() == Some("ps") && c.inside.is_none())?;
    let [ps, grep, awk] = commands.get(at..at + 3)? else { return None };
    let [pattern] = grep.args() else { return None };
    let [program] = awk.args() else { return None };
    let text = pattern.value.as_deref()?;
    let is_plain = !text.is_empty() && text.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-'));
    let lists_all =
        ps.args().iter().all(|w| matches!(w.text.as_str(), "aux" | "-ef" | "-aux" | "ax" | "-e" | "-A" | "-f"));
    let awk_text: String = program.text.split_whitespace().collect();
    let are_piped = ps.feeds == [at + 1] && grep.feeds == [at + 2];
    let names_match = (ps.name(), grep.name(), awk.name()) == (Some("ps"), Some("grep"), Some("awk"));
    if !names_match || !are_piped || !is_plain || !lists_all || ps.args().is_empty() || awk_text != "{print$2}" {
        return None;
    }
    let (start, end) = (ps.words.first()?.span.start, awk.words.last()?.span.end);
    let (before, after) = (cx.script.text.get(..start)?, cx.script.text.get(end..)?);
    let fix = format!("{before}pgrep -f {}{after}", quote(text, cx.dialect));
    Some(warning(
        "finds-itself",
        pattern,
        "grep itself is a process with that word: pgrep leaves itself out",
        Some(fix),
    ))
}

/// `taskset -c 0,1 1234`: without `-p` the number is a program to start.
fn pinned(cx: &CheckContext) -> Option<Finding> {
    let is_id = |name: &str| name.bytes().all(|b| b.is_ascii_digit());
    let is_started = |c: &&Invocation| c.via.last().is_some_and(|via| via == "taskset") && c.name().is_some_and(is_id);
    let started = cx.script.commands.iter().find(is_started)?;
    let taskset = cx.script.commands.get(started.inside?.command).filter(|c| c.name() == Some("taskset"))?;
    let [program, option, ..] = taskset.words.as_slice() else { return None };
    if option.text != "-c" {
        return None;
    }
    let fix = Edits::new(cx.script).insert_after(program, " -p").apply();
    let why = "without -p this starts a program of that name: -p takes a process that runs";
    Some(warning("process-as-program", started.words.first()?, why, fix))
}

/// `lsof -i :80 | awk '{print $2}' | xargs kill`: the first line is a heading with the word `PID`.
fn heading(cx: &CheckContext) -> Option<Finding> {
    let commands = &cx.script.commands;
    let lsof = commands.iter().find(|c| c.name() == Some("lsof") && !c.has_option(Some('t'), "terse"))?;
    let awk = cx.script.reader(lsof).filter(|c| matches!(c.name(), Some("awk" | "gawk" | "mawk")))?;
    let [program] = awk.args() else { return None };
    let awk_text: String = program.text.split_whitespace().collect();
    let fix = Edits::new(cx.script).replace(program, "'NR>1 {print $2}'").apply();
    let why = "the first line of lsof is a heading, and `PID` is no process";
    (awk_text == "{print$2}").then(|| warning("heading", program, why, fix))
}

#[cfg(test)]
mod tests {
    use super::super::tests::findings;
    use super::*;

    #[test]
    fn taskset_takes_a_process_only_with_p() {
        let fix = |command: &str| findings(check, "pin process 1234", command).into_iter().find_map(|f| f.fix);
        assert_eq!(fix("taskset -c 0,1 1234").as_deref(), Some("taskset -p -c 0,1 1234"));
        for right in ["taskset -cp 0,1 1234", "taskset -p -c 0,1 1234", "taskset -c 0 make", "taskset -c 0 sleep 10"] {
            assert_eq!(fix(right), None, "{right}");
        }
    }

    #[test]
    fn the_heading_of_lsof_is_no_process() {
        let fix = |command: &str| findings(check, "", command).into_iter().find_map(|f| f.fix);
        assert_eq!(
            fix("lsof -i :3000 | awk '{print $2}' | xargs kill -9").as_deref(),
            Some("lsof -i :3000 | awk 'NR>1 {print $2}' | xargs kill -9")
        );
        assert_eq!(
            fix("kill $(lsof -i :80 | awk '{ print $2 }')").as_deref(),
            Some("kill $(lsof -i :80 | awk 'NR>1 {print $2}')")
        );
        for right in ["lsof -t -i :80 | xargs kill", "lsof -i :80 | awk 'NR>1 {print $2}'", "lsof | awk '{print $1}'"] {
            assert_eq!(fix(right), None, "{right}");
        }
    }

    #[test]
    fn a_search_for_processes_does_not_find_itself() {
        let fix = |command: &str| findings(check, "", command).into_iter().next().and_then(|f| f.fix);
        for (wrong, right) in [
            ("ps aux | grep sshd | awk '{print $2}'", "pgrep -f sshd"),
            ("ps -ef | grep my-app | awk '{ print $2 }' | xargs kill", "pgrep -f my-app | xargs kill"),
            ("ps -ef | grep my-app | awk '{print $2}' | wc -l", "pgrep -f my-app | wc -l"),
            (
                "ps aux | grep a-very-long-name | awk '{print $2}' | xargs kill",
                "pgrep -f a-very-long-name | xargs kill",
            ),
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
