//! Checks parts about all files of a kind: none of them may be left.

use super::{Changes, shown, trim_path, words};

/// Words that do not restrict the files. Any other word may, so that the files that are left may not be meant.
const NEUTRAL: &[&str] = &[
    "a",
    "all",
    "below",
    "change",
    "current",
    "delete",
    "directory",
    "each",
    "every",
    "everything",
    "file",
    "files",
    "folder",
    "from",
    "here",
    "in",
    "inside",
    "into",
    "its",
    "line",
    "mode",
    "move",
    "new",
    "of",
    "permission",
    "permissions",
    "recursively",
    "remove",
    "rename",
    "set",
    "the",
    "there",
    "this",
    "to",
    "under",
];

/// Words that restrict the files of a part with the verb `set`.
const RESTRICTS: &[&str] =
    &["and", "but", "except", "not", "older", "or", "than", "that", "which", "whose", "with", "without"];

/// Reports a file that is left after `delete all .tmp files below build` or `rename every .jpeg file in pics to .jpg`.
pub(super) fn finding(verb: &str, part: &str, changes: &Changes) -> Option<String> {
    if !matches!(verb, "delete" | "remove" | "move" | "rename" | "set") {
        return None;
    }
    let words: Vec<String> = words(part).iter().map(|word| word.to_lowercase()).collect();
    let says = |list: &[&str]| words.iter().any(|word| list.contains(&word.as_str()));
    if !says(&["all", "every", "each"]) {
        return None;
    }
    let extension = words.iter().map(|word| word.trim_start_matches('*')).find(|word| {
        word.strip_prefix('.').is_some_and(|e| (1..=6).contains(&e.len()) && e.chars().all(char::is_alphanumeric))
    })?;
    let word_after = |before: &[&str]| {
        let at = words.iter().position(|word| before.contains(&word.as_str()))?;
        words.get(at + 1..)?.iter().find(|word| !matches!(word.as_str(), "the" | "folder" | "directory"))
    };
    let folder = |before: &[&str]| {
        word_after(before)
            .map(|word| trim_path(word))
            .filter(|name| changes.before.iter().any(|path| path.to_lowercase() == *name))
    };
    let below =
        |path: &str, folder: &str| path.strip_prefix(folder).and_then(|rest| rest.strip_prefix('/')).map(str::to_owned);
    let named = |word: &str| changes.before.iter().any(|path| path.to_lowercase() == trim_path(word));
    let made = |word: &str| changes.created.iter().any(|entry| entry.path.to_lowercase() == trim_path(word));
    let of_kind = |word: &str| word.trim_start_matches('*').starts_with('.') && !word.contains('/');
    let follows_to = |at: usize| at > 0 && matches!(words[at - 1].as_str(), "to" | "into");
    let called = |at: usize, word: &str| {
        matches!(word, "called" | "named") && at > 0 && matches!(words[at - 1].as_str(), "folder" | "directory")
    };
    let is_plain = |(at, word): (usize, &String)| {
        NEUTRAL.contains(&word.as_str())
            || of_kind(word)
            || named(word)
            || made(word)
            || follows_to(at)
            || called(at, word)
            || verb == "set" && !RESTRICTS.contains(&word.as_str())
    };
    if !words.iter().enumerate().all(is_plain) {
        return None;
    }
    // `in this folder` excludes the folders below it
    let flat = says(&["here", "this", "current"]) && !says(&["recursively", "below", "under"]);
    let (inside, deep, target) = (folder(&["in", "from"]), folder(&["below", "under"]), word_after(&["to", "into"]));
    let meant = |path: &&String| {
        let lower = path.to_lowercase();
        let here = match (inside, deep) {
            (Some(folder), _) => below(&lower, folder).is_some_and(|rest| !rest.contains('/')),
            (None, Some(folder)) => below(&lower, folder).is_some(),
            (None, None) => !flat || !lower.contains('/'),
        };
        let arrived = target.is_some_and(|folder| below(&lower, trim_path(folder)).is_some());
        let hidden = lower.split('/').any(|name| name.starts_with('.'));
        here && !arrived && !hidden && lower.ends_with(extension)
    };
    // with `set` every file must have changed
    if verb == "set" {
        let touched =
            |path: &&String| changes.changed.iter().any(|e| e.path == **path) || changes.modes.contains(*path);
        let same = changes.before.iter().filter(meant).find(|path| !touched(path))?;
        return Some(format!("{} is as it was before.", shown(same)));
    }
    let left = changes.before.iter().filter(meant).find(|path| !changes.removed.contains(path))?;
    Some(format!("{} is still there.", shown(left)))
}
