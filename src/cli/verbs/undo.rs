//! `caro undo`: puts back what a command that caro ran has deleted, moved or changed; lists and clears what is stored
//! for that.

use crate::answer::undo::store;
use crate::term::interrupt::Phase;
use crate::term::ui::{Role, in_line, plural, size};
use crate::{Cx, Exit, Failure, Outcome};
use caro_undo::journal::{Entry, State};
use caro_undo::plan::{Cover, Touch};
use caro_undo::{Store, UndoError, restore};
use std::time::{SystemTime, UNIX_EPOCH};

/// Most files that are named in a message.
const MAX_NAMED: usize = 10;

/// Put back what the last command that caro ran has deleted, moved or changed
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Before `caro -x` and the agent run a command, and before the agent writes a file, what is foreseen to change is \
                  kept. An undo can be undone: it says by which number. What is kept goes after `undo_days`, or when all of it is more than `undo_total`."
)]
pub struct Args {
    /// Number of the command, as `--list` has it; the latest if there is none
    #[arg(value_name = "ID")]
    id: Option<u64>,
    /// List what can be undone, the latest last
    #[arg(long, conflicts_with_all = ["id", "force", "clear"])]
    list: bool,
    /// With --list: print one JSON document
    #[arg(long, requires = "list")]
    json: bool,
    /// Put it back although files have changed since: what is there now is kept
    #[arg(long, conflicts_with = "clear")]
    force: bool,
    /// Forget one, or all: gives the room back
    #[arg(long)]
    clear: bool,
}

/// Undoes a command, or lists or clears what can be undone.
///
/// # Errors
/// If there is nothing to undo, or it would write over what changed since.
pub fn run(args: &Args, cx: &Cx) -> Outcome {
    let store = store(&cx.settings(&[])?, cx)?;
    if args.list {
        return list(&store, args.json, cx);
    }
    if args.clear {
        return clear(&store, args.id, cx);
    }
    let entry = match args.id {
        Some(id) => store.get(id),
        None => store.latest(),
    }
    .map_err(failure)?;
    undo(&store, &entry, args.force, cx)
}

fn undo(store: &Store, entry: &Entry, force: bool, cx: &Cx) -> Outcome {
    let done = {
        // an interrupted undo can be repeated, but a complete one is better
        let _phase = cx.interrupt().during(Phase::Child);
        let _status = cx.ui.status("putting back");
        restore(store, entry.id, force, &mut ()).map_err(failure)?
    };
    let command = in_line(&entry.command);
    let files = usize::try_from(done.put_back).unwrap_or(usize::MAX);
    let mut message = format!("undone: {command}");
    if files > 0 {
        message.push_str(&format!("; {} put back", plural(files, "path")));
    }
    if done.removed > 0 {
        message.push_str(&format!(
            "; {} that it made",
            plural(usize::try_from(done.removed).unwrap_or(usize::MAX), "path")
        ));
        message.push_str(" removed");
    }
    cx.ui.line(&cx.ui.paint(Role::Plain, &message))?;
    entry.plan.gaps.iter().for_each(|gap| cx.ui.warn(&format!("not undone: {}", in_line(gap))));
    for (path, why) in done.problems.iter().take(MAX_NAMED) {
        cx.ui.warn(&format!("{}: {}", in_line(&path.display().to_string()), in_line(why)));
    }
    cx.ui.note(&format!("`caro undo {}` takes that back", done.by));
    if done.problems.is_empty() {
        return Ok(Exit::Success);
    }
    Err(Failure::no(format!("{} could not be put back", plural(done.problems.len(), "file")))
        .hint(format!("what is kept of them stays: `caro undo {}` tries again", entry.id)))
}

fn list(store: &Store, json: bool, cx: &Cx) -> Outcome {
    store.sweep(0);
    let all = store.all().map_err(failure)?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_secs());
    if json {
        let rows: Vec<_> = all.iter().map(document).collect();
        cx.ui.document(&rows)?;
        return Ok(Exit::Success);
    }
    cx.ui.list(false, &all, "nothing is kept: `caro -x` and the agent keep what they would change", |entry| {
        let id = cx.ui.paint(Role::Accent, &format!("{:>4}", entry.id));
        let command = cx.ui.entry(Role::Command, &entry.command);
        let about = cx.ui.paint(Role::Dim, &format!("{}, {}", ago(now.saturating_sub(entry.began)), about(entry)));
        cx.ui.line(&format!("{id}  {command}\n      {about}"))
    })?;
    Ok(Exit::Success)
}

/// Describes what an undo of an entry brings back, or else removes.
fn kept(entry: &Entry) -> String {
    let made = entry.plan.targets.iter().filter(|target| target.touch == Touch::Make).count();
    match (entry.count, made) {
        (0, 1..) => format!("{} created", plural(made, "path")),
        (count, _) => {
            let paths = plural(usize::try_from(count).unwrap_or(usize::MAX), "path");
            format!("{paths}, {}", size(entry.bytes))
        }
    }
}

/// The details of an entry, besides its command.
fn about(entry: &Entry) -> String {
    let kept = kept(entry);
    let state = match (entry.state, entry.undoes) {
        (State::Undone(by), _) => format!("undone by {by}"),
        (State::Ran(_), Some(of)) => format!("this is the undo of {of}; {kept}"),
        (State::Ran(0), None) => kept,
        (State::Ran(code), None) => format!("{kept}; it ended with {code}"),
        (State::Ready | State::Planned, _) => format!("{kept}; it was cut off"),
    };
    let cover = match entry.plan.cover {
        Cover::Whole => "",
        Cover::Rehearsed => "; as a rehearsal showed it",
        Cover::Partly => "; not all of it",
    };
    format!("in {}, {state}{cover}", in_line(&entry.cwd.display().to_string()))
}

fn document(entry: &Entry) -> serde_json::Value {
    let paths: Vec<String> = entry.plan.targets.iter().map(|t| t.path.display().to_string()).collect();
    serde_json::json!({
        "id": entry.id, "command": entry.command, "cwd": entry.cwd.display().to_string(), "began": entry.began,
        "state": entry.state, "undoes": entry.undoes, "files": entry.count, "bytes": entry.bytes,
        "cover": entry.plan.cover, "gaps": entry.plan.gaps, "paths": paths,
    })
}

/// Formats an age: `5 s ago`, `3 h ago`.
fn ago(seconds: u64) -> String {
    match seconds {
        0..60 => format!("{seconds} s ago"),
        60..3600 => format!("{} min ago", seconds / 60),
        3600..86_400 => format!("{} h ago", seconds / 3600),
        _ => format!("{} ago", plural(usize::try_from(seconds / 86_400).unwrap_or(usize::MAX), "day")),
    }
}

fn clear(store: &Store, id: Option<u64>, cx: &Cx) -> Outcome {
    let ids: Vec<u64> = match id {
        Some(id) => vec![id],
        None => store.all().map_err(failure)?.iter().map(|entry| entry.id).collect(),
    };
    for id in &ids {
        store.remove(*id).map_err(failure)?;
    }
    cx.ui.note(&format!("{} forgotten", plural(ids.len(), "command")));
    Ok(Exit::Success)
}

/// The failure of an undo, with the files that prevent it.
fn failure(error: UndoError) -> Failure {
    let mut message = error.to_string();
    if let UndoError::Changed(paths) = &error {
        for path in paths.iter().take(MAX_NAMED) {
            message.push_str(&format!("\n  {}", in_line(&path.display().to_string())));
        }
        if paths.len() > MAX_NAMED {
            message.push_str(&format!("\n  ... {} more", paths.len() - MAX_NAMED));
        }
    }
    let exit = if matches!(error, UndoError::Unknown(_)) { Exit::Usage } else { Exit::No };
    Failure::new(exit, message).hint(error.hint())
}

#[cfg(test)]
mod tests {
    use super::*;
    use caro_undo::plan::{Plan, Target};

    #[test]
    fn an_entry_says_what_is_kept_or_what_was_made() {
        let entry = |touch, count| {
            let plan = Plan { targets: vec![Target::new("/w/s.sh", touch)], ..Plan::default() };
            let mut entry = Entry::new(1, "x", "/w".as_ref(), plan);
            entry.count = count;
            entry
        };
        assert_eq!(kept(&entry(Touch::Make, 0)), "1 path created");
        assert!(kept(&entry(Touch::Delete, 2)).starts_with("2 paths, "), "{}", kept(&entry(Touch::Delete, 2)));
    }

    #[test]
    fn ages_are_shown_in_the_unit_that_fits() {
        for (seconds, shown) in
            [(0, "0 s ago"), (61, "1 min ago"), (7200, "2 h ago"), (86_400, "1 day ago"), (200_000, "2 days ago")]
        {
            assert_eq!(ago(seconds), shown);
        }
    }
}
