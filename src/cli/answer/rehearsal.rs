//! A command is tried out in a view that is thrown away, to see what it would create, change and delete.

use super::ask::Place;
use crate::term::ui::{Role, plural};
use crate::{Cx, Failure};
use caro_command::rehearsal::{Fit, Unfit, fit};
use caro_exec::Status;
use caro_exec::rehearse::{
    Change, ChangeKind, EntryKind, Rehearsal, RehearsalError, RehearsalJob, read_only, rehearse,
};
use caro_host::ExecutionContext;
use caro_shell::parse;
use std::path::Path;

/// Lines of a script's words that are shown.
const MAX_LINES: usize = 20;

/// What a rehearsal showed, or why there was none; as a document.
#[derive(Debug, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Shown {
    /// It is not rehearsed.
    Not(Unfit),
    /// This system cannot.
    Unavailable(String),
    /// It was.
    Done(Done),
}

/// What a rehearsal showed.
#[derive(Debug, serde::Serialize)]
pub struct Done {
    /// `exited 0`, `killed by signal 9`, `stopped after 1 s`, `stopped for writing without end`.
    pub status: String,
    /// True if it ended by itself and well.
    pub success: bool,
    /// The head of what it printed.
    pub stdout: String,
    /// The head of its errors.
    pub stderr: String,
    /// What it would change.
    pub changes: Vec<Change>,
    /// Changes beyond those.
    pub unlisted: u64,
    /// Milliseconds, with all around it.
    pub ms: f64,
}

/// Rehearses a command where the person is.
///
/// # Errors
/// If the system fails.
pub async fn try_out(command: &str, place: &Place, context: &ExecutionContext) -> Result<Shown, Failure> {
    if place.target.os != context.target.os {
        let why = format!("it is for {}, and this is {}", place.target.name(), context.target.name());
        return Ok(Shown::Unavailable(why));
    }
    let fitness = match fit(&parse(command, place.dialect)) {
        Ok(fitness) => fitness,
        Err(unfit) => return Ok(Shown::Not(unfit)),
    };
    let Some(shell) = super::run::program(place.dialect, context) else {
        let why = format!("there is no {} here; --shell names another", place.dialect.name());
        return Ok(Shown::Unavailable(why));
    };
    let play = RehearsalJob::new(&shell, command, &place.cwd);
    let seen = match rehearse(&play).await {
        Err(RehearsalError::Unavailable(_)) if fitness == Fit::Reads => read_only(&play).await,
        other => other,
    };
    match seen {
        Ok(seen) => Ok(Shown::Done(done(seen, play.limits.wall.as_secs_f64()))),
        Err(e @ RehearsalError::Unavailable(_)) => Ok(Shown::Unavailable(format!("{e}; {}", e.hint()))),
        Err(e) => Err(Failure::internal(&e).hint(e.hint())),
    }
}

fn done(seen: Rehearsal, wall: f64) -> Done {
    Done {
        status: match seen.status {
            Status::Exited(code) => format!("exited {code}"),
            Status::Signaled(signal) => format!("killed by signal {signal}"),
            Status::TimedOut => format!("stopped after {wall} s"),
            Status::Flooded => "stopped for writing without end".into(),
        },
        success: seen.status.success(),
        stdout: String::from_utf8_lossy(&seen.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&seen.stderr).into_owned(),
        changes: seen.changes,
        unlisted: seen.unlisted,
        ms: seen.took.as_secs_f64() * 1e3,
    }
}

/// Prints it for a person.
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
        for said in text.lines().take(MAX_LINES) {
            ui.line(&format!("    {}", ui.paint(role, said)))?;
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
        line(Role::Caution, "and", &format!("{} files more", done.unlisted))?;
    }
    if done.changes.iter().all(|c| c.time_only) {
        line(Role::Dim, "would change", "no file")?;
    }
    Ok(())
}
