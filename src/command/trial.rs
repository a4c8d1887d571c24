//! Rehearses a command in a sandbox that leaves nothing behind ([`caro_exec::rehearse`]) and summarizes what it did.
//! [`super::rehearsal`] decides which commands may be rehearsed.

use super::pipeline;
use super::rehearsal::{RehearsalMode, mode_for_suggestion};
use caro_exec::rehearse::{Change, Rehearsal, RehearsalError, RehearsalJob, read_only, rehearse};
use caro_exec::{Limits, Status};
use caro_shell::{Dialect, Invocation, Script, parse, quote};
use std::ffi::OsString;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;
use std::time::Duration;

/// The end of a rehearsal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// The command printed or changed something.
    Fine,
    /// It printed and changed nothing, or printed its own literal input unchanged.
    NoEffect,
    /// It failed with an error.
    Failed,
    /// It was stopped at a limit of the sandbox: on time, output or another resource.
    Stopped,
}

/// The summary of a rehearsal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RehearsalResult {
    /// The end of the rehearsal.
    pub ending: Ending,
    /// A hash of the output and the changes, regardless of blanks and the order of lines.
    pub outcome: u64,
    /// A hash of the output in its order, regardless of blanks.
    pub order: u64,
    /// A hash of the output with its blanks, regardless of the order of lines.
    pub blanks: u64,
    /// The properties of the output that the command sets on purpose.
    pub sensitivity: Sensitivity,
    /// The first line of standard error, if the command failed.
    pub complaint: Option<String>,
}

/// The properties of its output that a command sets on purpose, while for other commands they are incidental.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Sensitivity {
    /// True if it sorts lines.
    pub order: bool,
    /// True if it adds or removes blanks.
    pub blanks: bool,
}

impl Sensitivity {
    fn of(script: &Script) -> Self {
        let sorts = |c: &Invocation| match c.name() {
            Some("sort" | "tac") => true,
            Some("ls") => c.args().iter().any(|w| {
                let short = w.text.strip_prefix('-').filter(|letters| !letters.starts_with('-'));
                let is_short = short.is_some_and(|letters| letters.contains(LS_SORT_FLAGS));
                w.text.starts_with("--sort") || w.text == "--reverse" || is_short
            }),
            _ => false,
        };
        let changes_blanks = |c: &Invocation| match c.name() {
            Some("expand" | "unexpand") => true,
            Some("sed" | "tr") => {
                c.args().iter().any(|w| BLANK_PATTERNS.iter().any(|blank| w.text.contains(blank)) || w.text == " ")
            }
            _ => false,
        };
        Self { order: script.commands.iter().any(sorts), blanks: script.commands.iter().any(changes_blanks) }
    }
}

/// Flags with which `ls` does not sort by name.
const LS_SORT_FLAGS: [char; 6] = ['S', 'U', 'X', 'r', 't', 'v'];

/// Parts of a pattern that match blanks.
const BLANK_PATTERNS: [&str; 8] = ["[:space:]", "[:blank:]", "\\s", "\\t", "[ ", "^ ", " *", " $"];

/// The timeout of a rehearsal whose result is compared with others.
pub const COMPARE_TIMEOUT: Duration = Duration::from_millis(800);

/// The shortest timeout of such a rehearsal, when the budget is spent: nearly all commands that work end within it.
pub const MIN_TIMEOUT: Duration = Duration::from_millis(200);

/// The timeout of a rehearsal that only shows whether the programs accept their arguments: errors of this kind come
/// at once.
pub const SYNTAX_TIMEOUT: Duration = Duration::from_millis(120);

/// Most bytes of output that are compared.
const MAX_OUTPUT: usize = 1 << 20;

/// Most characters of a complaint.
const MAX_COMPLAINT: usize = 160;

/// Rehearses a line in `cwd` with this shell and with `input` on its standard input. `None` if the line may not
/// be rehearsed, or the rehearsal could not be run on this system.
pub async fn run(
    shell: &Path,
    line: &str,
    dialect: Dialect,
    cwd: &Path,
    wall: Duration,
    input: Option<&str>,
) -> Option<RehearsalResult> {
    let script = parse(line, dialect);
    let mode = mode_for_suggestion(&script).ok()?;
    let setup = RehearsalSetup { shell, cwd, wall, mode, dialect, input };
    let rehearsal = setup.run(line).await?;
    let mut trial = RehearsalResult { sensitivity: Sensitivity::of(&script), ..RehearsalResult::of(&rehearsal) };
    let out = String::from_utf8_lossy(&rehearsal.stdout);
    if trial.ending == Ending::Fine && rehearsal.changes.is_empty() && echoed_text(&script) == Some(out.trim()) {
        trial.ending = Ending::NoEffect;
    }
    if let Some(first) = pipeline::first_stage(&script) {
        setup.check_first_stage(first, &rehearsal, &mut trial).await;
    }
    Some(trial)
}

/// The shell, folder, limits and input of a rehearsal.
struct RehearsalSetup<'a> {
    shell: &'a Path,
    cwd: &'a Path,
    wall: Duration,
    mode: RehearsalMode,
    dialect: Dialect,
    input: Option<&'a str>,
}

impl RehearsalSetup<'_> {
    async fn run(&self, line: &str) -> Option<Rehearsal> {
        let with_input = self.input.filter(|head| !head.is_empty()).and_then(|head| feed(line, self.dialect, head));
        let mut job = RehearsalJob::new(self.shell, OsString::from(with_input.as_deref().unwrap_or(line)), self.cwd);
        job.limits = Limits { wall: self.wall, output: MAX_OUTPUT };
        job.digests = true;
        match rehearse(&job).await {
            Err(RehearsalError::Unavailable(_)) if self.mode == RehearsalMode::Reads => read_only(&job).await.ok(),
            other => other.ok(),
        }
    }

    /// Finds a failure of the first stage of a pipeline, which its last stage hides: only that one's exit status and
    /// output are seen. `first` is the text of the first stage.
    async fn check_first_stage(&self, first: &str, rehearsal: &Rehearsal, trial: &mut RehearsalResult) {
        let complaint = complaint(rehearsal);
        match trial.ending {
            Ending::Failed => trial.complaint = complaint,
            // `cat missing | wc -l` prints 0 and succeeds
            Ending::Fine if complaint.is_some() => {
                let Some(first) = self.run(first).await else { return };
                let first = RehearsalResult::of(&first);
                if first.ending == Ending::Failed {
                    (trial.ending, trial.complaint) = (Ending::Failed, first.complaint);
                }
            }
            _ => {}
        }
    }
}

/// Wraps a line so that it reads `input` on standard input; `None` for PowerShell, which is not supported.
fn feed(line: &str, dialect: Dialect, input: &str) -> Option<String> {
    let (open, close) = match dialect {
        Dialect::Bash | Dialect::Zsh | Dialect::Sh => ("{", "}"),
        Dialect::Fish => ("begin", "end"),
        Dialect::PowerShell => return None,
    };
    Some(format!("printf '%s' {} | {open}\n{line}\n{close}", quote(input, dialect)))
}

/// Returns the first line of standard error that is not blank.
fn complaint(rehearsal: &Rehearsal) -> Option<String> {
    let err = String::from_utf8_lossy(&rehearsal.stderr);
    let line = err.lines().map(str::trim).find(|line| !line.is_empty())?;
    Some(line.chars().take(MAX_COMPLAINT).collect())
}

/// Returns the literal that is piped into nothing but filters: `some text` of `echo "some text" | sed ...`.
fn echoed_text(script: &Script) -> Option<&str> {
    const FILTERS: [&str; 9] = ["awk", "cut", "fold", "head", "perl", "rev", "sed", "tail", "tr"];
    let (echo, rest) = script.commands.split_first()?;
    let [text] = echo.args() else { return None };
    let only_filters = rest.iter().all(|c| c.inside.is_none() && c.name().is_some_and(|n| FILTERS.contains(&n)));
    let is_piped = echo.name() == Some("echo") && !echo.feeds.is_empty();
    if !is_piped || !only_filters {
        return None;
    }
    text.value.as_deref().map(str::trim).filter(|text| !text.is_empty())
}

impl RehearsalResult {
    /// True if both commands have the same effect. The order of lines and blanks count only if one of the commands
    /// sets them on purpose; `./` before names never counts.
    pub fn agrees(&self, other: &Self) -> bool {
        let (mine, theirs) = (self.sensitivity, other.sensitivity);
        self.outcome == other.outcome
            && (self.order == other.order || !(mine.order || theirs.order))
            && (self.blanks == other.blanks || !(mine.blanks || theirs.blanks))
    }

    /// Summarizes a rehearsal, with the default sensitivity.
    fn of(rehearsal: &Rehearsal) -> Self {
        let (out, err) = (String::from_utf8_lossy(&rehearsal.stdout), String::from_utf8_lossy(&rehearsal.stderr));
        let changes: Vec<&Change> = rehearsal.changes.iter().filter(|c| !c.time_only).collect();
        let quiet = out.trim().is_empty() && changes.is_empty();
        let ending = match rehearsal.status {
            Status::TimedOut | Status::Flooded => Ending::Stopped,
            Status::Signaled(signal) if is_limit(signal) => Ending::Stopped,
            // a shell exits with 128 plus the signal that ended its program
            Status::Exited(code) if is_limit(code - 128) => Ending::Stopped,
            Status::Exited(_) if quiet && names_limit(&err) => Ending::Stopped,
            Status::Signaled(_) => Ending::Failed,
            // 126 and 127 mean that the program cannot be run; else an error counts only if the command had no effect
            Status::Exited(126 | 127) => Ending::Failed,
            Status::Exited(_) if quiet && !err.trim().is_empty() => Ending::Failed,
            Status::Exited(_) if quiet => Ending::NoEffect,
            Status::Exited(_) => Ending::Fine,
        };
        let mut lines: Vec<String> = out.lines().map(normalize).collect();
        let order = hash(&lines);
        lines.sort_unstable();
        let mut exact: Vec<&str> = out.lines().collect();
        exact.sort_unstable();
        let mut hasher = DefaultHasher::new();
        lines.hash(&mut hasher);
        for change in changes {
            let now = change.now.as_ref().map(|e| (e.kind, e.mode, e.user, e.group, &e.target, &e.digest));
            (change.kind, &change.path, now).hash(&mut hasher);
        }
        rehearsal.unlisted.hash(&mut hasher);
        // with exit status 0, standard error holds warnings
        let has_error = ending == Ending::Failed && rehearsal.status != Status::Exited(0);
        Self {
            ending,
            outcome: hasher.finish(),
            order,
            blanks: hash(&exact),
            sensitivity: Sensitivity::default(),
            complaint: if has_error { complaint(rehearsal) } else { None },
        }
    }
}

fn hash(lines: &[impl Hash]) -> u64 {
    let mut hasher = DefaultHasher::new();
    lines.hash(&mut hasher);
    hasher.finish()
}

/// True for the signals that end a process at a resource limit: KILL, XCPU and XFSZ, whose numbers are the same on
/// Linux, macOS and the BSDs. `truncate -s 1G f` is right although it exceeds the sandbox's limit on file sizes.
fn is_limit(signal: i32) -> bool {
    matches!(signal, 9 | 24 | 25)
}

/// True if standard error says that a resource limit was reached.
fn names_limit(complaints: &str) -> bool {
    const LIMITS: [&str; 10] = [
        "file too large",
        "file size limit exceeded",
        "filesize limit exceeded",
        "cpu time limit exceeded",
        "cannot allocate memory",
        "out of memory",
        "resource temporarily unavailable",
        "no space left",
        "disk quota exceeded",
        "too many open files",
    ];
    let plain = complaints.to_lowercase();
    LIMITS.iter().any(|limit| plain.contains(limit))
}

/// Normalizes a line for comparison: removes `./` before paths, and reduces blanks to single spaces.
fn normalize(line: &str) -> String {
    let words = line.split_whitespace().map(|word| word.strip_prefix("./").unwrap_or(word));
    words.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rehearsal(status: Status, out: &str, err: &str) -> Rehearsal {
        Rehearsal {
            status,
            stdout: out.into(),
            stderr: err.into(),
            changes: Vec::new(),
            unlisted: 0,
            took: Duration::ZERO,
            script_took: Duration::ZERO,
        }
    }

    #[test]
    fn line_order_and_spelling_of_paths_make_no_difference() {
        let of = |out: &str| RehearsalResult::of(&rehearsal(Status::Exited(0), out, ""));
        assert!(of("./a\n./b\n").agrees(&of("b\na\n")));
        assert!(of("  3 total\n").agrees(&of("3  total")));
        assert!(!of("a\n").agrees(&of("b\n")));
        assert!(!of("a\n").agrees(&of("a\na\n")));
    }

    #[test]
    fn order_and_blanks_count_if_a_command_sets_them() {
        let of = |line: &str, out: &str| RehearsalResult {
            sensitivity: Sensitivity::of(&parse(line, Dialect::Bash)),
            ..RehearsalResult::of(&rehearsal(Status::Exited(0), out, ""))
        };
        let agree = |(a, out_a): (&str, &str), (b, out_b): (&str, &str)| {
            let (a, b) = (of(a, out_a), of(b, out_b));
            assert_eq!(a.agrees(&b), b.agrees(&a));
            a.agrees(&b)
        };
        assert!(!agree(("sort f", "a\nb"), ("sort -r f", "b\na")));
        assert!(!agree(("cat f", "a\nb"), ("tac f", "b\na")));
        assert!(!agree(("ls", "a\nb"), ("ls -t", "b\na")));
        assert!(agree(("sort f | uniq", "a\nb"), ("sort -u f", "a\nb")));
        assert!(agree(("ls", "a\nb"), ("find . -type f", "./b\n./a")));
        assert!(!agree(("sed 's/^ *//' f", "a\n"), ("cat f", "  a\n")));
        assert!(!agree(("tr -d ' '", "a\n"), ("tr -s ' '", "a \n")));
        assert!(agree(("wc -l f", "  3 f"), ("grep -c '' f | sed 's/$/ f/'", "3 f")));
    }

    #[test]
    fn a_literal_piped_into_filters_only_is_recognized() {
        let of = |line: &str| echoed_text(&parse(line, Dialect::Bash)).map(str::to_owned);
        assert_eq!(of("echo \"a b\" | cut -c1-9").as_deref(), Some("a b"));
        assert_eq!(of("echo 'a b ' | sed 's/x//' | rev").as_deref(), Some("a b"));
        for other in [
            "echo a | grep a",
            "echo a | tee b",
            "echo a",
            "echo \"$HOME\" | tr a b",
            "cat a | tr a b",
            "echo a b | rev",
        ] {
            assert_eq!(of(other), None, "{other}");
        }
    }

    #[test]
    fn the_ending_follows_from_status_and_output() {
        let of = |code, out, err| RehearsalResult::of(&rehearsal(Status::Exited(code), out, err)).ending;
        assert_eq!(of(0, "x", ""), Ending::Fine);
        assert_eq!(of(1, "x", "one folder could not be read"), Ending::Fine);
        assert_eq!(of(1, "", ""), Ending::NoEffect);
        assert_eq!(of(0, "\n", "complaint"), Ending::Failed);
        assert_eq!(of(127, "x", "not found"), Ending::Failed);
        assert_eq!(RehearsalResult::of(&rehearsal(Status::TimedOut, "x", "")).ending, Ending::Stopped);
    }

    #[test]
    fn reaching_a_limit_of_the_rehearsal_is_no_failure() {
        let of = |status, err| RehearsalResult::of(&rehearsal(status, "", err));
        for (status, err) in [
            (Status::Signaled(25), ""),
            (Status::Signaled(24), ""),
            (Status::Signaled(9), ""),
            (Status::Exited(153), ""),
            (Status::Exited(137), "bash: line 1: 7 Killed"),
            (Status::Exited(1), "truncate: failed to truncate 'f' at 1073741824 bytes: File too large"),
            (Status::Exited(1), "fallocate: fallocate failed: File too large"),
            (Status::Exited(2), "bash: fork: retry: Resource temporarily unavailable"),
            (Status::Exited(1), "sort: memory exhausted: Cannot allocate memory"),
        ] {
            let trial = of(status, err);
            assert_eq!((trial.ending, trial.complaint), (Ending::Stopped, None), "{status:?} {err}");
        }
        for (status, err) in
            [(Status::Signaled(11), ""), (Status::Exited(1), "find: bad mode"), (Status::Exited(139), "segfault")]
        {
            assert_eq!(of(status, err).ending, Ending::Failed, "{status:?} {err}");
        }
    }

    #[test]
    fn only_a_failed_command_has_a_complaint() {
        let of = |code, out, err| RehearsalResult::of(&rehearsal(Status::Exited(code), out, err)).complaint;
        assert_eq!(of(1, "", "find: bad mode\nmore\n").as_deref(), Some("find: bad mode"));
        assert_eq!(of(1, "something", "find: invalid mode"), None, "it did something");
        assert_eq!(of(1, "", ""), None);
        assert_eq!(of(0, "", "tar: Removing leading `/' from member names"), None);
    }
}
