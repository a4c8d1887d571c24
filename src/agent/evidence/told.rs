//! What changes come to, in words: for a prompt, and as the answer to who asks for it.

use super::Changes;
use std::collections::BTreeSet;

/// What a command changed, in words: for one that says nothing about it.
pub fn told(changes: &Changes) -> Option<String> {
    in_words(changes, LISTED)
}

/// What the changes say to a part that asks for them: `tell me how many were renamed`. `None` if that is not what they
/// are: whoever zips photos has made one file, and how many were zipped is to be seen elsewhere.
pub fn answer(part: &str, changes: &Changes) -> Option<String> {
    let words: Vec<String> = super::words(part).iter().map(|word| word.to_lowercase()).collect();
    let says = |list: &[&str]| words.iter().any(|word| list.contains(&word.as_str()));
    // what is in a file is not told by which files there are
    if says(&["lines", "line", "words", "word", "rows", "row", "characters", "entries", "times"]) {
        return None;
    }
    let (made, gone) = (!changes.created.is_empty(), !changes.removed.is_empty());
    let other = !changes.changed.is_empty() || !changes.modes.is_empty();
    let fits = if says(&["renamed"]) {
        renamed(changes, ALL).is_some()
    } else if says(&["moved"]) {
        made && changes.created.len() >= changes.removed.len() && gone && !other
    } else if says(&["deleted", "removed"]) {
        gone && !made && !other
    } else if says(&["created", "made", "copied", "extracted", "added", "unpacked"]) {
        made && !gone && !other
    } else if says(&["changed", "edited", "updated"]) {
        other && !made && !gone
    } else {
        // `tell me which ones they were`
        !words.last().is_some_and(|word| word.ends_with("ed"))
    };
    let files = Changes {
        // who speaks of files does not count the folders that they are in
        created: changes
            .created
            .iter()
            .filter(|e| !e.folder || changes.created.iter().all(|e| e.folder))
            .cloned()
            .collect(),
        removed: changes.removed.iter().filter(|path| !holds(path, &changes.removed)).cloned().collect(),
        ..changes.clone()
    };
    in_words(&files, ALL).filter(|_| fits)
}

/// True for a folder of which something else in the list was in.
fn holds(path: &str, all: &[String]) -> bool {
    all.iter().any(|other| other.strip_prefix(path).is_some_and(|rest| rest.starts_with('/')))
}

fn in_words(changes: &Changes, most: usize) -> Option<String> {
    let list = |what: &str, paths: &mut dyn Iterator<Item = &str>| -> Option<String> {
        let paths: Vec<&str> = paths.collect();
        let more = if paths.len() > most { format!(" and {} more", paths.len() - most) } else { String::new() };
        // how many there are is asked often, and a model miscounts
        let count = if paths.len() > 1 { format!(" {}:", paths.len()) } else { String::new() };
        let names: Vec<String> = paths.into_iter().take(most).map(shown).collect();
        (!names.is_empty()).then(|| format!("{what}{count} {}{more}", names.join(", ")))
    };
    if let Some(names) = renamed(changes, most) {
        return list("renamed", &mut changes.removed.iter().map(String::as_str)).map(|old| format!("{old} to {names}"));
    }
    if let Some(folder) = moved_to(changes) {
        return list("moved", &mut changes.removed.iter().map(String::as_str))
            .map(|moved| format!("{moved} to {}", shown(folder)));
    }
    let all = [
        list("made", &mut changes.created.iter().map(|e| e.path.as_str())),
        list("changed", &mut changes.changed.iter().map(|e| e.path.as_str())),
        list("removed", &mut changes.removed.iter().map(String::as_str)),
        list("changed the permissions of", &mut changes.modes.iter().map(String::as_str)),
    ];
    let all: Vec<String> = all.into_iter().flatten().collect();
    (!all.is_empty()).then(|| all.join("; "))
}

/// The new names, if all that happened is that files have other names in the folders they were in.
fn renamed(changes: &Changes, most: usize) -> Option<String> {
    fn folders<'a>(paths: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
        let mut all: Vec<&str> = paths.map(|path| path.rsplit_once('/').map_or(".", |(folder, _)| folder)).collect();
        all.sort_unstable();
        all
    }
    let (old, new) = (changes.removed.iter().map(String::as_str), changes.created.iter().map(|e| e.path.as_str()));
    let same = folders(old) == folders(new.clone()) && !changes.removed.is_empty();
    let names: Vec<String> = new.take(most).map(shown).collect();
    (same && changes.changed.is_empty() && changes.modes.is_empty()).then(|| names.join(", "))
}

/// The folder that everything was moved to that was taken away, if that is all that happened.
fn moved_to(changes: &Changes) -> Option<&str> {
    fn split(path: &str) -> (&str, &str) {
        path.rsplit_once('/').unwrap_or((".", path))
    }
    let came: BTreeSet<(&str, &str)> = changes.created.iter().map(|e| split(&e.path)).collect();
    let (folder, _) = *came.first()?;
    let same = changes.removed.len() == came.len()
        && changes.removed.iter().all(|path| came.contains(&(folder, split(path).1)));
    (same && changes.changed.is_empty() && changes.modes.is_empty()).then_some(folder)
}

/// Paths that are named at most, and to the person.
const LISTED: usize = 6;
const ALL: usize = 200;

/// A path as it may be told: others chose it.
pub(super) fn shown(path: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "._-/ +@~()[],&#'=%!".contains(c);
    if path.chars().count() <= 120 && path.chars().all(plain) {
        path.to_owned()
    } else {
        "a file with an odd name".into()
    }
}

#[cfg(test)]
mod tests {
    use super::super::Entry;
    use super::*;

    fn entry(path: &str) -> Entry {
        Entry { path: path.trim_end_matches('/').into(), folder: path.ends_with('/'), text: None }
    }

    fn changes(created: &[&str], removed: &[&str], changed: &[&str]) -> Changes {
        Changes {
            created: created.iter().map(|path| entry(path)).collect(),
            removed: removed.iter().map(|path| path.to_string()).collect(),
            changed: changed.iter().map(|path| entry(path)).collect(),
            ..Changes::default()
        }
    }

    #[test]
    fn who_asks_gets_what_was_asked_for() {
        for (part, changes, said) in [
            ("tell me how many were renamed", changes(&["a.txt"], &["a.md"], &[]), Some("renamed a.md to a.txt")),
            ("tell me how many were zipped", changes(&["p.zip"], &[], &[]), None),
            ("tell me how many lines were removed", changes(&[], &[], &["names.txt"]), None),
            ("tell me how many were removed", changes(&[], &[], &["names.txt"]), None),
            ("tell me how many were replaced", changes(&[], &[], &["a.txt"]), None),
            ("tell me which ones were compressed", changes(&["a.gz"], &["a"], &[]), None),
            (
                "tell me how many were copied",
                changes(&["pics/", "pics/1.jpg", "pics/2.jpg"], &[], &[]),
                Some("made 2: pics/1.jpg, pics/2.jpg"),
            ),
            (
                "tell me how many files were removed",
                changes(&[], &["build", "build/a", "build/b"], &[]),
                Some("removed 2: build/a, build/b"),
            ),
            ("tell me which ones they were", changes(&[], &["IMG (1).jpg"], &[]), Some("removed IMG (1).jpg")),
        ] {
            assert_eq!(answer(part, &changes).as_deref(), said, "{part}");
        }
        let many: Vec<String> = (0..10).map(|i| format!("f{i}")).collect();
        let many = Changes { removed: many, ..Changes::default() };
        assert!(answer("tell me which ones they were", &many).is_some_and(|said| said.ends_with("f9")));
        assert!(told(&many).is_some_and(|said| said.ends_with("and 4 more")));
    }

    #[test]
    fn tries_add_up() {
        let both = changes(&["x"], &["a", "b", "c"], &[]).then(&changes(&["y"], &["d", "x"], &["e"]));
        assert_eq!(both, changes(&["y"], &["a", "b", "c", "d"], &["e"]));
        assert_eq!(changes(&[], &["a"], &[]).then(&changes(&["a"], &[], &[])), changes(&[], &[], &["a"]));
        let modes = Changes { modes: vec!["a".into()], ..changes(&[], &[], &["a"]) };
        assert_eq!(modes.then(&changes(&[], &["a"], &[])), changes(&[], &["a"], &[]), "what is gone has not changed");
    }
}
