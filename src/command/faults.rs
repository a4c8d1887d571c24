//! The finding of a rehearsal: an error that is the command's own fault, or nothing printed where
//! something must be.

use super::checks::asks_for_number;
use super::trial::{Ending, RehearsalResult};
use caro_shell::{Dialect, Finding, Script, Severity, parse};

/// The most confidence that is left to a command that was seen to fail by its own fault.
pub(super) const AT_MOST: f64 = super::refine_loop::EXTEND_BUDGET_BELOW;

/// The command that was rehearsed and what it is for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Tried<'a> {
    /// The command.
    pub(super) cmd: &'a str,
    /// Its shell.
    pub(super) dialect: Dialect,
    /// The request that it answers.
    pub(super) request: &'a str,
    /// True if the model that is told of it runs on this machine. A complaint may have the text of any file in it.
    pub(super) is_local: bool,
}

/// The finding of the rehearsal; `None` where nothing is wrong, or where only the state of things is complained of.
pub(super) fn finding(tried: Tried<'_>, trial: &RehearsalResult) -> Option<Finding> {
    let of = |id: &str, why: String| Finding {
        id: id.into(),
        severity: Severity::Warning,
        token: tried.cmd.to_owned(),
        span: None,
        why,
        evidence: Vec::new(),
        fix: None,
    };
    match trial.ending {
        Ending::Failed => {
            let complaint = trial.complaint.as_deref()?;
            let is_own = is_own_fault(complaint, &parse(tried.cmd, tried.dialect), tried.request);
            is_own.then(|| of("fails", failing(complaint, tried.is_local)))
        }
        Ending::NoEffect if asks_for_number(tried.request) => {
            let why = "a number is asked for, and tried out in a sandbox, it prints nothing".into();
            Some(of("prints-nothing", why))
        }
        _ => None,
    }
}

/// The finding of a command that does the same whether there is something on standard input or not.
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

/// True for an error that is the command's own: an option that is not known, a folder read as a file, a file that nobody named.
/// The state of things is not (no permission), nor that what the request names is not there.
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
        // what a variable or a substitution came to is not known
        None => !words().any(|w| w.expands),
    }
}

/// True if the request speaks of that path: of its last part, or, for a pattern, of its ending.
fn is_named(path: &str, request: &str) -> bool {
    let last = path.trim_end_matches('/').rsplit('/').next().unwrap_or(path).to_lowercase();
    let fixed = last.rsplit(['*', '?', ']']).next().unwrap_or(&last);
    let is_whole = |at: &usize| {
        let (before, after) = (&request[..*at], &request[*at + fixed.len()..]);
        // an ending belongs to the name before it
        (fixed.starts_with('.') || !before.ends_with(char::is_alphanumeric))
            && !after.starts_with(char::is_alphanumeric)
    };
    fixed.len() > 1 && request.match_indices(fixed).any(|(at, _)| is_whole(&at))
}

/// That a command fails, as the person and the model are told. What it complains with may be the text of any file here, and
/// a model that is elsewhere would hear it.
fn failing(complaint: &str, is_local: bool) -> String {
    let fails = "tried out in a sandbox, it fails";
    if is_local { format!("{fails}: {complaint}") } else { fails.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trial::Sensitivity;

    fn of(request: &str, cmd: &str, ending: Ending, complaint: Option<&str>) -> Option<String> {
        let tried = Tried { cmd, dialect: Dialect::Bash, request, is_local: true };
        let complaint = complaint.map(str::to_owned);
        let minds = Sensitivity::default();
        let trial = RehearsalResult { ending, outcome: 0, order: 0, blanks: 0, minds, complaint };
        finding(tried, &trial).map(|f| f.id)
    }

    #[test]
    fn an_error_is_held_against_the_command_if_it_is_its_own() {
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
    fn silence_is_held_against_a_number_only() {
        let silent = |request, cmd| of(request, cmd, Ending::NoEffect, None);
        assert_eq!(silent("how many lines have x", "grep x f").as_deref(), Some("prints-nothing"));
        assert_eq!(silent("show the lines with x", "grep x f"), None);
        assert_eq!(of("how many lines", "wc -l f", Ending::Fine, None), None);
    }

    #[test]
    fn only_a_model_of_this_machine_hears_what_a_command_complains_with() {
        let complaint = "machine h login me password sesame";
        assert!(failing(complaint, true).contains(complaint));
        assert!(!failing(complaint, false).contains("sesame"));
    }
}
