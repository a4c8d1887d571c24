//! Describes changes in words, for a prompt and for an answer.

use super::Changes;
use std::collections::BTreeSet;

/// Describes changes briefly, for a command that prints nothing about them; `None` if there are none.
pub fn describe(changes: &Changes) -> Option<String> {
    describe_up_to(changes, MAX_IN_PROMPT)
}

/// Answers a part that asks about the changes, such as `tell me how many were renamed`. `None` if they do not answer
/// it: zipping photos creates one file, which does not say how many photos were zipped.
pub fn answer(part: &str, changes: &Changes) -> Option<String> {
    let words: Vec<String> = super::words(part).iter().map(|word| word.to_lowercase()).collect();
    let says = |list: &[&str]| words.iter().any(|word| list.contains(&word.as_str()));
    // the changes do not tell the content of a file
    if says(&["lines", "line", "words", "word", "rows", "row", "characters", "entries", "times"]) {
        return None;
    }
    let (made, gone) = (!changes.created.is_empty(), !changes.removed.is_empty());
    let other = !changes.changed.is_empty() || !changes.modes.is_empty();
    let fits = if says(&["renamed"]) {
        renamed(changes, MAX_IN_ANSWER).is_some()
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
        // folders are not counted as files, unless only folders were created
        created: changes
            .created
            .iter()
            .filter(|e| !e.folder || changes.created.iter().all(|e| e.folder))
            .cloned()
            .collect(),
        removed: changes.removed.iter().filter(|path| !is_parent(path, &changes.removed)).cloned().collect(),
        ..changes.clone()
    };
    if fits { describe_up_to(&files, MAX_IN_ANSWER) } else { None }
}

/// True for a folder that contains another path of the list.
fn is_parent(path: &str, all: &[String]) -> bool {
    all.iter().any(|other| other.strip_prefix(path).is_some_and(|rest| rest.starts_with('/')))
}

/// Describes changes with at most `most` names of each kind.
fn describe_up_to(changes: &Changes, most: usize) -> Option<String> {
    let list = |what: &str, paths: &mut dyn Iterator<Item = &str>| -> Option<String> {
        let paths: Vec<&str> = paths.collect();
        let more = if paths.len() > most { format!(" and {} more", paths.len() - most) } else { String::new() };
        // the count is given because it is often asked for, and models miscount
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

/// Returns the new names, if the only change is that files were renamed within their folders.
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

/// Returns the folder to which all removed paths were moved, if that is the only change.
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

/// Most paths named in a prompt, and in an answer to the user.
const MAX_IN_PROMPT: usize = 6;
const MAX_IN_ANSWER: usize = 200;

/// Returns a path as it may be shown: names are untrusted, so odd ones are replaced.
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
    fn a_question_about_changes_is_answered_if_they_fit_it() {
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
        assert!(describe(&many).is_some_and(|said| said.ends_with("and 4 more")));
    }

    #[test]
    fn changes_of_several_attempts_are_added() {
        let both = changes(&["x"], &["a", "b", "c"], &[]).then(&changes(&["y"], &["d", "x"], &["e"]));
        assert_eq!(both, changes(&["y"], &["a", "b", "c", "d"], &["e"]));
        assert_eq!(changes(&[], &["a"], &[]).then(&changes(&["a"], &[], &[])), changes(&[], &[], &["a"]));
        let modes = Changes { modes: vec!["a".into()], ..changes(&[], &[], &["a"]) };
        assert_eq!(modes.then(&changes(&[], &["a"], &[])), changes(&[], &["a"], &[]), "what is gone has not changed");
    }
}
