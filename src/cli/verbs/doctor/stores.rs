//! Checks the databases of sessions, notes, conversations and documents, and reports what undo stores.

use super::finding::Finding;
use crate::term::ui::{plural, size};
use crate::{Cx, Settings};
use caro_database::repair::{Health, examine};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The time for examining each file.
const EXAMINE_TIMEOUT: Duration = Duration::from_millis(40);

/// The databases: file, contents, and the command that saves what can be read of a damaged file.
const FILES: [(&str, &str, &str); 4] = [
    ("agent.db", "sessions", "`caro session repair`"),
    ("memory.db", "notes", "`caro memory repair`"),
    ("conversations.db", "conversations", "`caro memory repair`"),
    ("knowledge.db", "documents", "`caro knowledge repair`"),
];

/// A database file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Store {
    /// Its contents.
    pub what: &'static str,
    /// Its path.
    pub file: PathBuf,
    /// The command that saves all that can be read of it.
    pub remedy: &'static str,
    /// Its state.
    pub health: Health,
}

/// The facts about stored data.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Facts {
    /// The files that exist.
    pub stores: Vec<Store>,
    /// Damaged files that a repair has left beside the new ones.
    pub damaged: Vec<PathBuf>,
    /// The number of commands that can be undone, and the bytes stored for that.
    pub undo: Option<(usize, u64)>,
}

/// Examines each file for a short time.
pub fn look(cx: &Cx, settings: &Settings) -> Facts {
    let data = cx.dirs.data.as_deref();
    let in_data = FILES.iter().filter_map(|(name, what, remedy)| Some((data?.join(name), *what, *remedy)));
    let index = cx.dirs.cache.as_ref().map(|cache| (cache.join("manual.db"), "manuals", "`caro manual clear`"));
    let stores = in_data.chain(index).filter(|(file, ..)| file.exists()).map(|(file, what, remedy)| Store {
        what,
        health: examine(&file, EXAMINE_TIMEOUT),
        file,
        remedy,
    });
    Facts { stores: stores.collect(), damaged: data.map(damaged).unwrap_or_default(), undo: undo(cx, settings) }
}

/// The damaged files that a repair has left beside the new ones.
fn damaged(data: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(data).into_iter().flatten().flatten().map(|entry| entry.path());
    let is_damaged =
        |path: &PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().contains(".db.damaged"));
    let mut found: Vec<PathBuf> = entries.filter(is_damaged).collect();
    found.sort();
    found
}

#[cfg(unix)]
fn undo(cx: &Cx, settings: &Settings) -> Option<(usize, u64)> {
    let all = crate::answer::undo::store(settings, cx).ok()?.all().ok()?;
    Some((all.len(), all.iter().map(|entry| entry.bytes).sum()))
}

#[cfg(not(unix))]
fn undo(_: &Cx, _: &Settings) -> Option<(usize, u64)> {
    None
}

/// The findings about stored data.
pub fn findings(facts: &Facts) -> Vec<Finding> {
    const CHECK: &str = "stores";
    let mut all: Vec<Finding> = facts
        .stores
        .iter()
        .filter_map(|store| match &store.health {
            Health::Sound | Health::Unfinished => None,
            Health::Damaged(why) => {
                let fact = format!("{} is damaged ({}): {why}", store.file.display(), store.what);
                Some(Finding::fail(CHECK, fact, format!("{} saves what can be read of it", store.remedy)))
            }
            Health::Unreadable(why) => {
                let fact = format!("{} cannot be opened ({}): {why}", store.file.display(), store.what);
                Some(Finding::fail(CHECK, fact, "correct its permissions; its contents stay"))
            }
        })
        .collect();
    if let Some(first) = facts.damaged.first() {
        let more = facts.damaged.len() - 1;
        let more = if more == 0 { String::new() } else { format!(" and {}", plural(more, "more")) };
        let fact = format!("a repair has left the damaged file {}{more}", first.display());
        all.push(Finding::ok(CHECK, fact).with("remove it when nothing in it is missed any more"));
    }
    if facts.stores.is_empty() {
        all.push(Finding::ok(CHECK, "nothing is kept yet"));
    } else if all.iter().all(|finding| finding.state == super::finding::State::Ok) {
        let names: Vec<&str> = facts.stores.iter().map(|store| store.what).collect();
        let part = facts.stores.iter().any(|store| store.health == Health::Unfinished);
        let part = if part { "; large ones were looked at in part" } else { "" };
        all.push(Finding::ok(CHECK, format!("{}: no damage{part}", names.join(", "))));
    }
    if let Some((count, bytes)) = facts.undo.filter(|(count, _)| *count > 0) {
        all.push(Finding::ok("undo", format!("{} can be undone, {} kept", plural(count, "command"), size(bytes))));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::super::finding::State;
    use super::*;

    fn store(health: Health) -> Store {
        Store { what: "notes", file: "/d/memory.db".into(), remedy: "`caro memory repair`", health }
    }

    #[test]
    fn damage_fails_and_names_the_repair() {
        let facts =
            Facts { stores: vec![store(Health::Sound), store(Health::Damaged("page 3".into()))], ..Facts::default() };
        let all = findings(&facts);
        assert_eq!((all.len(), all[0].state), (1, State::Fail));
        assert!(all[0].remedy.as_deref().unwrap().contains("caro memory repair"), "{all:?}");
    }

    #[test]
    fn sound_files_are_one_finding() {
        let facts = Facts {
            stores: vec![store(Health::Sound), store(Health::Unfinished)],
            undo: Some((2, 3_000)),
            ..Facts::default()
        };
        let all = findings(&facts);
        assert_eq!(all[0].fact, "notes, notes: no damage; large ones were looked at in part");
        assert_eq!(all[1].fact, "2 commands can be undone, 3.0 kB kept");
        assert_eq!(findings(&Facts::default())[0].fact, "nothing is kept yet");
        let damaged = findings(&Facts { damaged: vec!["/d/memory.db.damaged".into()], ..Facts::default() });
        assert!(damaged[0].state == State::Ok && damaged[0].remedy.is_some(), "{damaged:?}");
    }
}
