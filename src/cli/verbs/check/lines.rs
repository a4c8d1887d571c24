//! `caro check --jsonl`: reads a command from each line and prints a verdict for each; with `--summary` only the
//! number of each.

use super::FailOn;
use crate::term::given;
use crate::{Cx, Exit, Failure, Outcome};
use caro_command::risk::assess_text;
use caro_shell::safety::{Level, Reason, Risk};
use caro_shell::{Dialect, Finding};
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Most bytes of a line: those of a command, escaped, and of the other fields.
const MAX_LINE: u64 = 256 << 10;

/// Most reasons of a verdict that are printed.
const MAX_REASONS: usize = 8;

/// A line of the input. Other fields are ignored.
#[derive(Debug, serde::Deserialize)]
struct Line {
    command: String,
    #[serde(default)]
    shell: Option<String>,
    #[serde(default)]
    id: Option<serde_json::Value>,
    /// The absolute path of the folder in which it runs.
    #[serde(default)]
    cwd: Option<PathBuf>,
}

/// A verdict, as it is printed.
#[derive(Debug, serde::Serialize)]
pub struct Verdict {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<serde_json::Value>,
    verdict: Level,
    /// True if a policy forbids it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    refused: bool,
    reasons: Vec<Reason>,
    /// The errors that make the line fail.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    findings: Vec<Finding>,
}

/// The number of verdicts of each level, and the time that one took.
#[derive(Debug, Default, serde::Serialize)]
struct Summary {
    commands: usize,
    safe: usize,
    caution: usize,
    danger: usize,
    /// Cautions whose only reason is an unknown program, or a text that cannot be parsed as a whole.
    caution_unknown: usize,
    errors: usize,
    warned_percent: f64,
    danger_percent: f64,
    p50_microseconds: u64,
    p99_microseconds: u64,
    #[serde(skip)]
    times: Vec<Duration>,
}

impl Summary {
    fn count(&mut self, risk: &Risk, time: Duration) {
        self.commands += 1;
        match risk.level {
            Level::Safe => self.safe += 1,
            Level::Caution => self.caution += 1,
            Level::Danger => self.danger += 1,
        }
        let unknown = risk.level == Level::Caution && risk.reasons.iter().all(|r| r.effect == "unknown");
        self.caution_unknown += usize::from(unknown);
        self.times.push(time);
    }

    fn finish(mut self) -> Self {
        self.times.sort();
        let at = |share: usize| {
            let time = self.times.get(self.times.len() * share / 100).copied().unwrap_or_default();
            u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
        };
        let of = |part: usize| (part as f64 * 1000.0 / self.commands.max(1) as f64).round() / 10.0;
        let (p50, p99) = (at(50), at(99));
        let (warned, danger) = (of(self.caution + self.danger), of(self.danger));
        Self { p50_microseconds: p50, p99_microseconds: p99, warned_percent: warned, danger_percent: danger, ..self }
    }
}

/// Judges the lines of standard input to its end. The exit code is 1 if a command fails the check, 2 if a line is
/// invalid. `errors` finds the errors of a command, if they make it fail.
///
/// # Errors
/// If standard input cannot be read or standard output is closed.
pub(super) fn run(
    summary: bool,
    fail_on: FailOn,
    shell: Dialect,
    mut errors: impl FnMut(&str, Dialect, Option<&Path>) -> Vec<Finding>,
    cx: &Cx,
) -> Outcome {
    let mut input = BufReader::new(std::io::stdin().lock());
    let mut counted = Summary::default();
    let mut exit = Exit::Success;
    for number in 1_u64.. {
        let mut bytes = Vec::new();
        let read = input.by_ref().take(MAX_LINE + 1).read_until(b'\n', &mut bytes);
        let read = read.map_err(|e| Failure::usage(format!("standard input cannot be read: {e}")))?;
        if read == 0 {
            break;
        }
        if bytes.len() as u64 > MAX_LINE && !bytes.ends_with(b"\n") {
            skip_line(&mut input)?;
        }
        if bytes.iter().all(u8::is_ascii_whitespace) {
            continue;
        }
        match parse_line(&bytes, shell) {
            Ok((line, dialect)) => {
                let started = Instant::now();
                let risk = line.assess(dialect);
                counted.count(&risk, started.elapsed());
                let findings = errors(&line.command, dialect, line.cwd.as_deref());
                if fail_on.fails_with(&findings, risk.level) && exit == Exit::Success {
                    exit = Exit::No;
                }
                if !summary {
                    write(Verdict::of(line.id, risk, findings), cx)?;
                }
            }
            Err(why) => {
                counted.errors += 1;
                exit = Exit::Usage;
                match summary {
                    true => cx.ui.warn(&format!("line {number}: {why}")),
                    false => write(serde_json::json!({ "line": number, "error": why }), cx)?,
                }
            }
        }
    }
    if summary {
        cx.ui.document(&counted.finish())?;
    }
    Ok(exit)
}

impl Line {
    fn assess(&self, dialect: Dialect) -> Risk {
        assess_text(&self.command, dialect, self.cwd.as_deref())
    }
}

/// Returns the verdict on one line; the error says why the line is invalid.
///
/// # Errors
/// If it is too long or no JSON of this kind, or has no command or a shell that is not known.
pub fn judge(bytes: &[u8], shell: Dialect) -> Result<Verdict, String> {
    let (line, dialect) = parse_line(bytes, shell)?;
    let risk = line.assess(dialect);
    Ok(Verdict::of(line.id, risk, Vec::new()))
}

impl Verdict {
    fn of(id: Option<serde_json::Value>, risk: Risk, mut findings: Vec<Finding>) -> Self {
        let refused = risk.refused().is_some();
        let mut reasons = risk.reasons;
        reasons.truncate(MAX_REASONS);
        findings.truncate(MAX_REASONS);
        Self { id, verdict: risk.level, refused, reasons, findings }
    }
}

fn write(value: impl serde::Serialize, cx: &Cx) -> Result<(), Failure> {
    let line =
        serde_json::to_string(&value).map_err(|e| Failure::internal(format!("no verdict could be written: {e}")))?;
    Ok(cx.ui.line(&line)?)
}

/// Parses a line; the error says why it is invalid.
fn parse_line(bytes: &[u8], shell: Dialect) -> Result<(Line, Dialect), String> {
    if bytes.len() as u64 > MAX_LINE {
        return Err(format!("the line has more than {MAX_LINE} bytes"));
    }
    let line: Line = serde_json::from_slice(bytes)
        .map_err(|e| format!("not a line as {{\"command\": \"ls -l\", \"shell\": \"bash\", \"id\": 1}}: {e}"))?;
    given::check_command(&line.command, "").map_err(|why| why.message)?;
    let dialect = match &line.shell {
        None => shell,
        Some(name) => Dialect::of_program(name).ok_or_else(|| {
            let names: Vec<&str> = Dialect::ALL.iter().map(|(name, _)| *name).collect();
            format!("`{name}` is not a shell that is known: {}", names.join(", "))
        })?,
    };
    Ok((line, dialect))
}

/// Skips the rest of a line that is too long.
fn skip_line(input: &mut impl BufRead) -> Result<(), Failure> {
    loop {
        let (used, ended) = {
            let buffer = input.fill_buf().map_err(|e| Failure::usage(format!("standard input cannot be read: {e}")))?;
            match buffer.iter().position(|b| *b == b'\n') {
                Some(at) => (at + 1, true),
                None => (buffer.len(), buffer.is_empty()),
            }
        };
        input.consume(used);
        if ended {
            return Ok(());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_names_its_command_and_its_shell() {
        let of = |text: &str| parse_line(text.as_bytes(), Dialect::Bash).map(|(line, dialect)| (line.command, dialect));
        assert_eq!(of(r#"{"command": "ls", "more": 1}"#), Ok(("ls".into(), Dialect::Bash)));
        assert_eq!(of(r#"{"command": "ls", "shell": "fish"}"#), Ok(("ls".into(), Dialect::Fish)));
        for bad in ["ls", "{}", r#"{"command": ""}"#, r#"{"command": "ls", "shell": "tcsh"}"#, "[1]"] {
            assert!(of(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn the_summary_has_counts_and_percentages() {
        let mut counted = Summary::default();
        for text in ["ls", "rm x", "rm -rf /", "frobnicate"] {
            counted.count(&assess_text(text, Dialect::Bash, None), Duration::from_micros(10));
        }
        let done = counted.finish();
        assert_eq!((done.safe, done.caution, done.danger, done.caution_unknown), (1, 2, 1, 1));
        assert_eq!((done.warned_percent, done.danger_percent, done.p99_microseconds), (75.0, 25.0, 10));
    }
}
