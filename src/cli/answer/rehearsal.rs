//! Rehearses a command in a sandbox, to see what it would create, change and delete.

use super::ask::Place;
use crate::term::ui::{Role, plural};
use crate::{Cx, Failure};
use caro_command::rehearsal::{NotRehearsable, RehearsalMode, mode_for_suggestion};
use caro_exec::Status;
use caro_exec::rehearse::{
    Change, ChangeKind, EntryKind, Rehearsal, RehearsalError, RehearsalJob, read_only, rehearse,
};
use caro_host::ExecutionContext;
use caro_shell::parse;
use std::path::Path;

/// Most lines of output shown.
const MAX_LINES: usize = 20;

/// The result of a rehearsal, or the reason there was none; serialized into JSON documents.
#[derive(Debug, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Shown {
    /// The command may not be rehearsed.
    Not(NotRehearsable),
    /// This system cannot rehearse it, with the reason.
    Unavailable(String),
    /// It was rehearsed.
    Done(Done),
}

/// The result of a rehearsal.
#[derive(Debug, serde::Serialize)]
pub struct Done {
    /// `exited 0`, `killed by signal 9`, `stopped after 1 s`, `stopped for writing without end`.
    pub status: String,
    /// True if it exited with 0.
    pub success: bool,
    /// The beginning of its standard output.
    pub stdout: String,
    /// The beginning of its standard error.
    pub stderr: String,
    /// The changes that it would make.
    pub changes: Vec<Change>,
    /// The number of further changes.
    pub unlisted: u64,
    /// The time of the whole rehearsal, milliseconds.
    pub ms: f64,
}

/// Rehearses a command in its directory.
///
/// # Errors
/// If the system fails.
pub async fn run_rehearsal(command: &str, place: &Place, context: &ExecutionContext) -> Result<Shown, Failure> {
    if place.target.os != context.target.os {
        let why = format!("it is for {}, and this is {}", place.target.name(), context.target.name());
        return Ok(Shown::Unavailable(why));
    }
    let mode = match mode_for_suggestion(&parse(command, place.dialect)) {
        Ok(mode) => mode,
        Err(unfit) => return Ok(Shown::Not(unfit)),
    };
    let Some(shell) = super::run::program(place.dialect, context) else {
        let why = format!("there is no {} here; --shell names another", place.dialect.name());
        return Ok(Shown::Unavailable(why));
    };
    let job = RehearsalJob::new(&shell, command, &place.cwd);
    let result = match rehearse(&job).await {
        Err(RehearsalError::Unavailable(_)) if mode == RehearsalMode::Reads => read_only(&job).await,
        other => other,
    };
    match result {
        Ok(result) => Ok(Shown::Done(done(result, job.limits.wall.as_secs_f64()))),
        Err(e @ RehearsalError::Unavailable(_)) => Ok(Shown::Unavailable(format!("{e}; {}", e.hint()))),
        Err(e) => Err(Failure::internal(&e).hint(e.hint())),
    }
}

fn done(result: Rehearsal, wall: f64) -> Done {
    Done {
        status: match result.status {
            Status::Exited(code) => format!("exited {code}"),
            Status::Signaled(signal) => format!("killed by signal {signal}"),
            Status::TimedOut => format!("stopped after {wall} s"),
            Status::Flooded => "stopped for writing without end".into(),
        },
        success: result.status.success(),
        stdout: String::from_utf8_lossy(&result.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&result.stderr).into_owned(),
        changes: result.changes,
        unlisted: result.unlisted,
        ms: result.took.as_secs_f64() * 1e3,
    }
}

/// Prints the result for the user.
///
/// # Errors
/// If stdout cannot be written.
pub fn print(shown: &Shown, cwd: &Path, cx: &Cx) -> Result<(), Failure> {
    let ui = &cx.ui;
    let line = |role: Role, head: &str, text: &str| {
        ui.line(&format!("{} {}", ui.paint(role, head), ui.paint(Role::Plain, text)))
    };
    let done = match shown {
        Shown::Not(unfit) => {
            return Ok(line(Role::Accent, "not rehearsed:", &format!("{}: {}", unfit.token, unfit.why))?);
        }
        Shown::Unavailable(why) => return Ok(line(Role::Accent, "not rehearsed:", why)?),
        Shown::Done(done) => done,
    };
    line(if done.success { Role::Good } else { Role::Caution }, "rehearsed:", &done.status)?;
    for (text, role) in [(&done.stdout, Role::Plain), (&done.stderr, Role::Caution)] {
        for output in text.lines().take(MAX_LINES) {
            ui.line(&format!("    {}", ui.paint(role, output)))?;
        }
        let more = text.lines().count().saturating_sub(MAX_LINES);
        if more > 0 {
            ui.line(&ui.paint(Role::Dim, &format!("    ... {}", plural(more, "more line"))))?;
        }
    }
    for change in done.changes.iter().filter(|c| !c.time_only) {
        let (role, word) = match change.kind {
            ChangeKind::Created => (Role::Good, "would create"),
            ChangeKind::Changed => (Role::Caution, "would change"),
            ChangeKind::Deleted => (Role::Danger, "would delete"),
        };
        let path = change.path.strip_prefix(cwd).unwrap_or(&change.path).display();
        let slash = if change.now.as_ref().is_some_and(|e| e.kind == EntryKind::Folder) { "/" } else { "" };
        line(role, word, &format!("{path}{slash}"))?;
    }
    if done.unlisted > 0 {
        line(
            Role::Caution,
            "and",
            &format!("{} more", plural(usize::try_from(done.unlisted).unwrap_or(usize::MAX), "file")),
        )?;
    }
    if done.changes.iter().all(|c| c.time_only) {
        line(Role::Dim, "would change", "no file")?;
    }
    Ok(())
}
