//! `caro undo`: puts back what a command that caro ran has deleted, moved or changed; lists and clears what is stored
//! for that.

use crate::answer::log::now;
use crate::answer::undo::store;
use crate::dirs;
use crate::term::interrupt::Phase;
use crate::term::typed::agreed;
use crate::term::ui::{Role, in_line, plural, size};
use crate::{Cx, Exit, Failure, Outcome};
use caro_undo::journal::{Entry, State};
use caro_undo::plan::{Cover, Touch};
use caro_undo::{Store, UndoError, restore};
use std::path::Path;

/// Most files that are named in a message.
const MAX_NAMED: usize = 10;

/// Put back what the last command that caro ran here has deleted, moved or changed
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Before `caro -x` and the agent run a command, and before the agent writes a file, what is foreseen to change is \
                  kept. A command belongs to the folder it ran in and to those whose files it changed; what ran elsewhere later is not \
                  undone without being asked about. An undo can be undone: it says by which number. What is kept goes after `undo_days`, or when all of it is more than `undo_total`."
)]
pub struct Args {
    /// Number of the command, as `--list` has it; the latest of this folder if there is none
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
        Some(id) => Some(store.get(id).map_err(failure)?),
        None => choose(store.undoable().map_err(failure)?, cx)?,
    };
    let Some(entry) = entry else {
        cx.ui.note("nothing undone");
        return Ok(Exit::No);
    };
    undo(&store, &entry, args.force, cx)
}

/// The command to undo if none is named.
#[derive(Debug, PartialEq, Eq)]
enum Choice {
    /// The latest of all belongs to this folder.
    Here(Entry),
    /// The latest of all belongs to another folder; with the latest of this one, if there is any.
    Elsewhere(Entry, Option<Entry>),
}

/// Finds the command to undo in a folder, `None` if that is gone; `undoable` are those of all folders, latest first.
fn choice(undoable: Vec<Entry>, folder: Option<&Path>, home: Option<&Path>) -> Option<Choice> {
    let is_here = |entry: &Entry| folder.is_some_and(|folder| entry.belongs_to(folder, home));
    let mut entries = undoable.into_iter();
    let latest = entries.next()?;
    if is_here(&latest) {
        return Some(Choice::Here(latest));
    }
    Some(Choice::Elsewhere(latest, entries.find(is_here)))
}

/// Returns the latest command of the working folder. If a later one belongs to another folder, the user is asked;
/// `None` if they decline.
fn choose(undoable: Vec<Entry>, cx: &Cx) -> Result<Option<Entry>, Failure> {
    let folder = cx.folder().ok();
    let (latest, here) = match choice(undoable, folder.as_deref(), dirs::home().as_deref()) {
        None => return Err(failure(UndoError::Nothing)),
        Some(Choice::Here(entry)) => return Ok(Some(entry)),
        Some(Choice::Elsewhere(latest, here)) => (latest, here),
    };
    let named = |entry: &Entry| format!("{}, {}: {}", entry.id, placed(entry), in_line(&entry.command));
    let message = format!("the latest command is of another folder: {}", named(&latest));
    if !cx.ui.can_ask() {
        let of_here =
            here.map_or_else(String::new, |entry| format!("; `caro undo {}`, the latest of this one", entry.id));
        return Err(Failure::no(message).hint(format!("`caro undo {}` undoes that one{of_here}", latest.id)));
    }
    cx.ui.note(&message);
    let Some(here) = here else {
        return Ok(if agreed("undo it? [y/N]", cx)? { Some(latest) } else { None });
    };
    cx.ui.note(&format!("the latest of this folder: {}", named(&here)));
    let question = format!("undo {}, of this folder? [y/N] (`caro undo {}` undoes the other)", here.id, latest.id);
    Ok(if agreed(&question, cx)? { Some(here) } else { None })
}

/// The folder and the age of a command: `in /home/me/a, 3 min ago`.
fn placed(entry: &Entry) -> String {
    let folder = in_line(&entry.cwd.display().to_string());
    format!("in {folder}, {}", ago(now().saturating_sub(entry.began)))
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
    let mut message = match cx.folder() {
        Ok(folder) if folder == entry.cwd => format!("undone: {command}"),
        _ => format!("undone, {}: {command}", placed(entry)),
    };
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
    if json {
        let rows: Vec<_> = all.iter().map(document).collect();
        cx.ui.document(&rows)?;
        return Ok(Exit::Success);
    }
    let folder = cx.folder();
    cx.ui.list(false, &all, "nothing is kept: `caro -x` and the agent keep what they would change", |entry| {
        let id = cx.ui.paint(Role::Accent, &format!("{:>4}", entry.id));
        let command = cx.ui.entry(Role::Command, &entry.command);
        let is_here = folder.as_ref().is_ok_and(|folder| *folder == entry.cwd);
        let placed = if is_here { ago(now().saturating_sub(entry.began)) } else { placed(entry) };
        let about = cx.ui.paint(Role::Dim, &format!("{placed}; {}", about(entry)));
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

/// The details of an entry, besides its command and its folder.
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
    format!("{state}{cover}")
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
    fn without_a_number_the_latest_of_this_folder_is_chosen_and_a_later_one_of_another_is_told() {
        let entry = |id, cwd: &str| Entry::new(id, "x", cwd.as_ref(), Plan::default());
        let (a, b) = (|id| entry(id, "/w/a"), |id| entry(id, "/w/b"));
        let chosen = |undoable, folder: &str| choice(undoable, Some(folder.as_ref()), None);
        assert_eq!(chosen(vec![a(3), b(2), a(1)], "/w/a"), Some(Choice::Here(a(3))));
        assert_eq!(chosen(vec![a(3), b(2), b(1)], "/w/b"), Some(Choice::Elsewhere(a(3), Some(b(2)))));
        assert_eq!(chosen(vec![a(3), b(2), a(1)], "/w/c"), Some(Choice::Elsewhere(a(3), None)));
        assert_eq!(choice(vec![a(3)], None, None), Some(Choice::Elsewhere(a(3), None)), "the folder is gone");
        assert_eq!(chosen(Vec::new(), "/w/a"), None);
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
