//! Turns the result of a rehearsal into a finding: an error that is the command's own fault, no output where a number
//! is asked for, or standard input that is not read.

use super::checks::asks_for_number;
use super::trial::{Ending, RehearsalResult};
use caro_shell::{Dialect, Finding, Script, Severity, parse};

/// Most confidence in a command with a finding from its rehearsal.
pub(super) const MAX_CONFIDENCE: f64 = super::refine_loop::EXTEND_BUDGET_BELOW;

/// A rehearsed command with its request.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rehearsed<'a> {
    /// The command.
    pub(super) cmd: &'a str,
    /// Its shell.
    pub(super) dialect: Dialect,
    /// The request that it answers.
    pub(super) request: &'a str,
    /// True if the model runs on this machine. Only then does the finding quote an error, which may contain a file's
    /// text.
    pub(super) is_local: bool,
}

/// Returns the finding of a rehearsal; `None` if nothing is wrong, or the error is due to the state of the machine.
pub(super) fn finding(rehearsed: Rehearsed<'_>, trial: &RehearsalResult) -> Option<Finding> {
    let of = |id: &str, why: String| Finding {
        id: id.into(),
        severity: Severity::Warning,
        token: rehearsed.cmd.to_owned(),
        span: None,
        why,
        evidence: Vec::new(),
        fix: None,
    };
    match trial.ending {
        Ending::Failed => {
            let complaint = trial.complaint.as_deref()?;
            let script = parse(rehearsed.cmd, rehearsed.dialect);
            let is_own = is_own_fault(complaint, &script, rehearsed.request);
            is_own.then(|| of("fails", failure_text(complaint, rehearsed.is_local)))
        }
        Ending::NoEffect if asks_for_number(rehearsed.request) => {
            let why = "a number is asked for, and tried out in a sandbox, it prints nothing".into();
            Some(of("prints-nothing", why))
        }
        _ => None,
    }
}

/// The finding against a command that has the same effect with and without its standard input.
pub(super) fn unread(cmd: &str) -> Finding {
    Finding {
        id: "unread-input".into(),
        severity: Severity::Warning,
        token: cmd.to_owned(),
        span: None,
        why: "it does not read standard input, where the data is".into(),
        evidence: Vec::new(),
        fix: None,
    }
}

/// True for an error that is the command's own: an unknown option, a folder read as a file, a missing file that the
/// request does not name. The state of the machine (no permission) is not the command's fault, nor is a missing file
/// that the request names.
fn is_own_fault(complaint: &str, script: &Script, request: &str) -> bool {
    const STATE: [&str; 7] = [
        "permission denied",
        "not permitted",
        "operation not supported",
        "file exists",
        "not empty",
        "read-only file system",
        "not a git repository",
    ];
    let plain = complaint.to_lowercase();
    if STATE.iter().any(|state| plain.contains(state)) {
        return false;
    }
    if !plain.contains("no such file") {
        return true;
    }
    let words = || script.commands.iter().flat_map(|c| c.args().iter().chain(c.redirects.iter().map(|r| &r.target)));
    let absent = words().filter(|w| w.text.len() > 1 && complaint.contains(&w.text)).max_by_key(|w| w.text.len());
    match absent {
        Some(word) => !is_named(&word.text, &request.to_lowercase()),
        // the value of a variable or a substitution is not known
        None => !words().any(|w| w.expands),
    }
}

/// True if the request names a path: its last component, or, for a pattern, its ending.
fn is_named(path: &str, request: &str) -> bool {
    let last = path.trim_end_matches('/').rsplit('/').next().unwrap_or(path).to_lowercase();
    let fixed = last.rsplit(['*', '?', ']']).next().unwrap_or(&last);
    let is_whole = |at: &usize| {
        let (before, after) = (&request[..*at], &request[*at + fixed.len()..]);
        // an ending may follow a name: `.log` in `app.log`
        (fixed.starts_with('.') || !before.ends_with(char::is_alphanumeric))
            && !after.starts_with(char::is_alphanumeric)
    };
    fixed.len() > 1 && request.match_indices(fixed).any(|(at, _)| is_whole(&at))
}

/// The text of the finding that a command fails, for the user and the model. The error may contain the text of any
/// file on this machine, so it is quoted only for a local model.
fn failure_text(complaint: &str, is_local: bool) -> String {
    let fails = "tried out in a sandbox, it fails";
    if is_local { format!("{fails}: {complaint}") } else { fails.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trial::Sensitivity;

    fn of(request: &str, cmd: &str, ending: Ending, complaint: Option<&str>) -> Option<String> {
        let rehearsed = Rehearsed { cmd, dialect: Dialect::Bash, request, is_local: true };
        let complaint = complaint.map(str::to_owned);
        let sensitivity = Sensitivity::default();
        let trial = RehearsalResult { ending, outcome: 0, order: 0, blanks: 0, sensitivity, complaint };
        finding(rehearsed, &trial).map(|f| f.id)
    }

    #[test]
    fn only_the_commands_own_errors_are_findings() {
        let fails = |request, cmd, complaint| of(request, cmd, Ending::Failed, Some(complaint)).is_some();
        for (request, cmd, complaint) in [
            ("count errors in the logs", "grep -c ERROR *.log", "grep: *.log: No such file or directory"),
            ("users", "cut -d: -f1 /etc/user", "cut: /etc/user: No such file or directory"),
            ("count the lines", "ls | xargs wc -l", "wc: web: No such file or directory"),
            ("sort the logs", "sort -n logs", "sort: read failed: logs: Is a directory"),
            ("list files", "find . -nmae x", "find: unknown predicate `-nmae'"),
        ] {
            assert!(fails(request, cmd, complaint), "{cmd}");
        }
        for (request, cmd, complaint) in [
            ("count lines of app.log", "wc -l app.log", "wc: app.log: No such file or directory"),
            ("errors in all .log files", "grep E *.log", "grep: *.log: No such file or directory"),
            ("errors in a.log", "grep E *.log", "grep: *.log: No such file or directory"),
            ("show it", "cat \"$FILE\"", "cat: notes: No such file or directory"),
            ("list /root", "ls /root", "ls: cannot open directory '/root': Permission denied"),
            ("make a folder a", "mkdir a", "mkdir: cannot create directory 'a': File exists"),
        ] {
            assert!(!fails(request, cmd, complaint), "{cmd}");
        }
    }

    #[test]
    fn no_output_is_a_finding_only_if_a_number_is_asked_for() {
        let silent = |request, cmd| of(request, cmd, Ending::NoEffect, None);
        assert_eq!(silent("how many lines have x", "grep x f").as_deref(), Some("prints-nothing"));
        assert_eq!(silent("show the lines with x", "grep x f"), None);
        assert_eq!(of("how many lines", "wc -l f", Ending::Fine, None), None);
    }

    #[test]
    fn only_a_local_model_gets_the_text_of_an_error() {
        let complaint = "machine h login me password sesame";
        assert!(failure_text(complaint, true).contains(complaint));
        assert!(!failure_text(complaint, false).contains("sesame"));
    }
}
