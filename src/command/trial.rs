//! What a command does, seen in a rehearsal that leaves nothing behind ([`caro_exec::rehearse`]); which commands are
//! fit for one is [`super::rehearsal`]'s matter.

use super::pipeline;
use super::rehearsal::{Fit, fit};
use caro_exec::rehearse::{Change, Rehearsal, RehearsalError, RehearsalJob, read_only, rehearse};
use caro_exec::{Limits, Status};
use caro_shell::{Dialect, Invocation, Script, parse, quote};
use std::ffi::OsString;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;
use std::time::Duration;

/// How a rehearsal ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// It did something.
    Fine,
    /// Neither output nor change; or a text that it was given comes out as it went in.
    NoEffect,
    /// With an error.
    Failed,
    /// It took too long, or more than a view has to give, to be seen to its end.
    Stopped,
}

/// A rehearsal in short.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RehearsalResult {
    /// How it ended.
    pub ending: Ending,
    /// Equal where output and changes are, but for the order of lines and blanks.
    pub outcome: u64,
    /// Equal where the output is, order and all, but for blanks.
    pub order: u64,
    /// Equal where the output is, blanks and all, but for the order.
    pub blanks: u64,
    /// What the command is about.
    pub minds: Sensitivity,
    /// The first line that a program complained with, if it ended with an error.
    pub complaint: Option<String>,
}

/// What a command makes, that others leave to chance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Sensitivity {
    /// An order of lines.
    pub order: bool,
    /// Blanks, or their absence.
    pub blanks: bool,
}

impl Sensitivity {
    fn of(script: &Script) -> Self {
        let puts = |c: &Invocation| match c.name() {
            Some("sort" | "tac") => true,
            Some("ls") => c.args().iter().any(|w| {
                let short = w.text.strip_prefix('-').filter(|letters| !letters.starts_with('-'));
                w.text.starts_with("--sort") || w.text == "--reverse" || short.is_some_and(|s| s.contains(ORDERS))
            }),
            _ => false,
        };
        let blank = |c: &Invocation| match c.name() {
            Some("expand" | "unexpand") => true,
            Some("sed" | "tr") => {
                c.args().iter().any(|w| BLANKS.iter().any(|blank| w.text.contains(blank)) || w.text == " ")
            }
            _ => false,
        };
        Self { order: script.commands.iter().any(puts), blanks: script.commands.iter().any(blank) }
    }
}

/// Letters with which `ls` has another order than that of names.
const ORDERS: [char; 6] = ['S', 'U', 'X', 'r', 't', 'v'];

/// What patterns for blanks have.
const BLANKS: [&str; 8] = ["[:space:]", "[:blank:]", "\\s", "\\t", "[ ", "^ ", " *", " $"];

/// Time for one rehearsal of several that are held against each other. What takes longer is not worth the wait.
pub const COMPARED: Duration = Duration::from_millis(800);

/// The same where the budget is spent: nearly all commands that work have done so by then.
pub const SHORTEST: Duration = Duration::from_millis(200);

/// Time for a rehearsal that is only to show whether a command is understood by its programs: that shows at once.
pub const UNDERSTOOD: Duration = Duration::from_millis(120);

/// Bytes of output that are compared.
const OUTPUT: usize = 1 << 20;

/// The most characters of a complaint.
const COMPLAINT: usize = 160;

/// Rehearses a line in `cwd` with this shell, with `input` on its standard input; `None` where it is not fit for that, or this
/// system has no rehearsals.
pub async fn run(
    shell: &Path,
    line: &str,
    dialect: Dialect,
    cwd: &Path,
    wall: Duration,
    input: Option<&str>,
) -> Option<RehearsalResult> {
    let script = parse(line, dialect);
    let fit = fit(&script).ok()?;
    let stage = Theatre { shell, cwd, wall, fit, dialect, input };
    let rehearsal = stage.play(line).await?;
    let mut trial = RehearsalResult { minds: Sensitivity::of(&script), ..RehearsalResult::of(&rehearsal) };
    let out = String::from_utf8_lossy(&rehearsal.stdout);
    if trial.ending == Ending::Fine && rehearsal.changes.is_empty() && given(&script) == Some(out.trim()) {
        trial.ending = Ending::NoEffect;
    }
    if let Some(first) = pipeline::first_stage(&script) {
        stage.look_closer(first, &rehearsal, &mut trial).await;
    }
    Some(trial)
}

/// Where and for how long a command is rehearsed.
struct Theatre<'a> {
    shell: &'a Path,
    cwd: &'a Path,
    wall: Duration,
    fit: Fit,
    dialect: Dialect,
    input: Option<&'a str>,
}

impl Theatre<'_> {
    async fn play(&self, line: &str) -> Option<Rehearsal> {
        let fed = self.input.filter(|head| !head.is_empty()).and_then(|head| fed(line, self.dialect, head));
        let mut play = RehearsalJob::new(self.shell, OsString::from(fed.as_deref().unwrap_or(line)), self.cwd);
        play.limits = Limits { wall: self.wall, output: OUTPUT };
        play.digests = true;
        match rehearse(&play).await {
            Err(RehearsalError::Unavailable(_)) if self.fit == Fit::Reads => read_only(&play).await.ok(),
            other => other.ok(),
        }
    }

    /// Looks at what the last stage of a pipeline hides: its exit status and its output are the only ones that are seen.
    /// `first` is the text of the first stage.
    async fn look_closer(&self, first: &str, rehearsal: &Rehearsal, trial: &mut RehearsalResult) {
        let complaint = complaint(rehearsal);
        match trial.ending {
            Ending::Failed => trial.complaint = complaint,
            // `cat missing | wc -l` prints a number, of nothing
            Ending::Fine if complaint.is_some() => {
                let Some(first) = self.play(first).await else { return };
                let first = RehearsalResult::of(&first);
                if first.ending == Ending::Failed {
                    (trial.ending, trial.complaint) = (Ending::Failed, first.complaint);
                }
            }
            _ => {}
        }
    }
}

/// The line with a text on its standard input; `None` in a language that this is not written in.
fn fed(line: &str, dialect: Dialect, input: &str) -> Option<String> {
    let (open, close) = match dialect {
        Dialect::Bash | Dialect::Zsh | Dialect::Sh => ("{", "}"),
        Dialect::Fish => ("begin", "end"),
        Dialect::PowerShell => return None,
    };
    Some(format!("printf '%s' {} | {open}\n{line}\n{close}", quote(input, dialect)))
}

/// The first line of what was complained.
fn complaint(rehearsal: &Rehearsal) -> Option<String> {
    let err = String::from_utf8_lossy(&rehearsal.stderr);
    let line = err.lines().map(str::trim).find(|line| !line.is_empty())?;
    Some(line.chars().take(COMPLAINT).collect())
}

/// The text that only goes through what would change it: `some text` of `echo "some text" | sed ...`.
fn given(script: &Script) -> Option<&str> {
    const CHANGE: [&str; 9] = ["awk", "cut", "fold", "head", "perl", "rev", "sed", "tail", "tr"];
    let (echo, rest) = script.commands.split_first()?;
    let [text] = echo.args() else { return None };
    let filters = rest.iter().all(|c| c.inside.is_none() && c.name().is_some_and(|n| CHANGE.contains(&n)));
    let fed = echo.name() == Some("echo") && !echo.feeds.is_empty();
    text.value.as_deref().map(str::trim).filter(|text| fed && filters && !text.is_empty())
}

impl RehearsalResult {
    /// True if the two do the same. The order of lines that nobody sorted, blanks that nobody looked for, and `./` before
    /// names are no difference.
    pub fn agrees(&self, other: &Self) -> bool {
        let (mine, theirs) = (self.minds, other.minds);
        self.outcome == other.outcome
            && (self.order == other.order || !(mine.order || theirs.order))
            && (self.blanks == other.blanks || !(mine.blanks || theirs.blanks))
    }

    /// The trial in short; of what the command minds nothing is known.
    fn of(rehearsal: &Rehearsal) -> Self {
        let (out, err) = (String::from_utf8_lossy(&rehearsal.stdout), String::from_utf8_lossy(&rehearsal.stderr));
        let changes: Vec<&Change> = rehearsal.changes.iter().filter(|c| !c.time_only).collect();
        let quiet = out.trim().is_empty() && changes.is_empty();
        let ending = match rehearsal.status {
            Status::TimedOut | Status::Flooded => Ending::Stopped,
            Status::Signaled(signal) if is_limit(signal) => Ending::Stopped,
            // a shell's word for a program that a signal ended
            Status::Exited(code) if is_limit(code - 128) => Ending::Stopped,
            Status::Exited(_) if quiet && names_limit(&err) => Ending::Stopped,
            Status::Signaled(_) => Ending::Failed,
            // 126 and 127: no such program; else a complaint counts only where nothing came of the command
            Status::Exited(126 | 127) => Ending::Failed,
            Status::Exited(_) if quiet && !err.trim().is_empty() => Ending::Failed,
            Status::Exited(_) if quiet => Ending::NoEffect,
            Status::Exited(_) => Ending::Fine,
        };
        let mut lines: Vec<String> = out.lines().map(plain).collect();
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
        // what ended well only remarked on something
        let wrong = ending == Ending::Failed && rehearsal.status != Status::Exited(0);
        Self {
            ending,
            outcome: hasher.finish(),
            order,
            blanks: hash(&exact),
            minds: Sensitivity::default(),
            complaint: if wrong { complaint(rehearsal) } else { None },
        }
    }
}

fn hash(lines: &[impl Hash]) -> u64 {
    let mut hasher = DefaultHasher::new();
    lines.hash(&mut hasher);
    hasher.finish()
}

/// True for the signals with which a system ends what uses more than it may: KILL, XCPU and XFSZ, whose numbers are the
/// same on Linux, macOS and the BSDs. `truncate -s 1G f` is no wrong command because a view's files are small.
fn is_limit(signal: i32) -> bool {
    matches!(signal, 9 | 24 | 25)
}

/// True if a program says that it came to the end of what a rehearsal may use, or a shell says it of the program.
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

/// A line without what commands for the same thing spell differently: `./` before a path, blanks around and between.
fn plain(line: &str) -> String {
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
    fn order_and_spelling_of_paths_are_no_difference() {
        let of = |out: &str| RehearsalResult::of(&rehearsal(Status::Exited(0), out, ""));
        assert!(of("./a\n./b\n").agrees(&of("b\na\n")));
        assert!(of("  3 total\n").agrees(&of("3  total")));
        assert!(!of("a\n").agrees(&of("b\n")));
        assert!(!of("a\n").agrees(&of("a\na\n")));
    }

    #[test]
    fn order_and_blanks_count_where_they_are_made() {
        let of = |line: &str, out: &str| RehearsalResult {
            minds: Sensitivity::of(&parse(line, Dialect::Bash)),
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
    fn a_text_that_goes_through_what_would_change_it_is_known() {
        let of = |line: &str| given(&parse(line, Dialect::Bash)).map(str::to_owned);
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
    fn an_ending_is_told_by_what_came_of_it() {
        let of = |code, out, err| RehearsalResult::of(&rehearsal(Status::Exited(code), out, err)).ending;
        assert_eq!(of(0, "x", ""), Ending::Fine);
        assert_eq!(of(1, "x", "one folder could not be read"), Ending::Fine);
        assert_eq!(of(1, "", ""), Ending::NoEffect);
        assert_eq!(of(0, "\n", "complaint"), Ending::Failed);
        assert_eq!(of(127, "x", "not found"), Ending::Failed);
        assert_eq!(RehearsalResult::of(&rehearsal(Status::TimedOut, "x", "")).ending, Ending::Stopped);
    }

    #[test]
    fn the_limits_of_a_rehearsal_are_no_fault_of_the_command() {
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
    fn a_complaint_is_kept_of_what_ended_with_an_error() {
        let of = |code, out, err| RehearsalResult::of(&rehearsal(Status::Exited(code), out, err)).complaint;
        assert_eq!(of(1, "", "find: bad mode\nmore\n").as_deref(), Some("find: bad mode"));
        assert_eq!(of(1, "something", "find: invalid mode"), None, "it did something");
        assert_eq!(of(1, "", ""), None);
        assert_eq!(of(0, "", "tar: Removing leading `/' from member names"), None);
    }
}
