//! Checks parts that change something against the actual changes on disk.

use super::{Changes, Claim, rest, shown, trim_path, verb, words};
use regex::Regex;
use std::sync::LazyLock;

/// Things that a part may ask to make and that may be shown instead of written into a file.
const SHOWABLE: &[&str] = &["list", "table", "summary", "report", "overview", "up"];
/// Verbs whose object no longer exists afterwards.
const REMOVES: &[&str] = &["delete", "remove", "move", "rename"];
/// Verbs that change the text of a file.
const EDITS: &[&str] = &["change", "correct", "edit", "fix", "replace", "set", "update"];
/// Verbs that put something somewhere, and the prepositions before the target.
const PUTS: &[(&str, &[&str])] = &[
    ("append", &["to"]),
    ("archive", &["into", "as"]),
    ("compress", &["into", "to", "as"]),
    ("copy", &["to", "into"]),
    ("extract", &["to", "into"]),
    ("join", &["into"]),
    ("merge", &["into"]),
    ("move", &["to", "into"]),
    ("pack", &["into", "to", "as"]),
    ("put", &["in", "into", "to"]),
    ("rename", &["to", "as"]),
    ("save", &["in", "to", "as", "into"]),
    ("store", &["in", "into"]),
    ("unpack", &["in", "to", "into"]),
    ("unzip", &["in", "to", "into"]),
    ("write", &["in", "to", "into"]),
    ("zip", &["into", "to", "as"]),
];

/// Prepositions: a word after one of them is not the object.
const PREPOSITIONS: &[&str] = &["from", "in", "to", "into", "of", "with", "that", "as", "below", "under", "at", "for"];

/// Returns the first mismatch between a part and the changes of its call.
pub(super) fn finding(claim: &Claim) -> Option<String> {
    let part_words = words(claim.part);
    let verb = verb(claim.part);
    if claim.effects.is_read_only() {
        let may_show = part_words.iter().skip(1).any(|w| SHOWABLE.contains(&w.to_lowercase().as_str()));
        let made = matches!(verb.as_str(), "add" | "create" | "make") && may_show;
        // `convert 5 miles to km` changes nothing
        let into_file = part_words.last().is_some_and(|w| {
            w.rsplit_once('.').is_some_and(|(stem, end)| !stem.is_empty() && end.starts_with(char::is_alphabetic))
        });
        let is_calculation = matches!(verb.as_str(), "convert" | "translate" | "turn") && !into_file;
        return (!made && !is_calculation).then(|| "It only looked, and changed nothing.".to_owned());
    }
    // changes on other machines are not recorded
    if claim.effects.net {
        return None;
    }
    let changes = claim.changes?;
    if changes.is_empty() {
        let elsewhere =
            claim.effects.opaque && claim.effects.writes.is_empty() || part_words.iter().any(|w| is_outside(w));
        return (!elsewhere).then(|| "It changed nothing in the working folder.".to_owned());
    }
    let objects = objects(claim, &part_words, changes);
    check_objects(&verb, &objects, changes)
        .or_else(|| {
            if claim.names.is_empty() && !claim.limited { rest::finding(&verb, claim.part, changes) } else { None }
        })
        .or_else(|| check_extra_changes(&verb, claim, changes))
        .or_else(|| check_target(&verb, &part_words, changes))
        .or_else(|| check_edit(&verb, claim, &part_words, changes))
        .or_else(|| check_value(&verb, claim.part, changes))
        .or_else(|| check_created(&verb, &part_words, changes))
}

/// True for a path outside of the working folder.
fn is_outside(word: &str) -> bool {
    word.starts_with(['/', '~']) || word.starts_with("..")
}

/// Returns the objects of a part: the files that its pronoun stands for, else those named before any preposition.
fn objects<'a>(claim: &Claim<'a>, part: &[&'a str], changes: &Changes) -> Vec<&'a str> {
    let from = part.iter().any(|w| w.eq_ignore_ascii_case("from"));
    if !claim.names.is_empty() {
        return if from { Vec::new() } else { claim.names.iter().map(|name| trim_path(name)).collect() };
    }
    let direct = part.iter().skip(1).take_while(|w| !PREPOSITIONS.contains(&w.to_lowercase().as_str()));
    direct.map(|w| trim_path(w)).filter(|w| changes.before.contains(*w)).collect()
}

/// Reports an object that should have been removed and still exists, or should still exist and was removed.
fn check_objects(verb: &str, objects: &[&str], changes: &Changes) -> Option<String> {
    let removed = |name: &&&str| changes.removed.iter().any(|path| path == **name);
    if REMOVES.contains(&verb)
        && let Some(still) = objects.iter().find(|name| changes.before.contains(**name) && !removed(name))
    {
        return Some(format!("{} is still there.", shown(still)));
    }
    let lost = objects.iter().find(|name| verb == "copy" && removed(name))?;
    Some(format!("{} is gone: it was to be copied.", shown(lost)))
}

/// Reports a path that was removed, or got other permissions, although the part does not mean it.
fn check_extra_changes(verb: &str, claim: &Claim, changes: &Changes) -> Option<String> {
    if claim.names.is_empty() || !matches!(verb, "delete" | "remove" | "make") {
        return None;
    }
    let meant = |path: &&String| {
        claim
            .names
            .iter()
            .map(|name| trim_path(name))
            .any(|name| path.as_str() == name || path.strip_prefix(name).is_some_and(|rest| rest.starts_with('/')))
    };
    let more = changes.removed.iter().chain(&changes.modes).find(|path| !meant(path))?;
    Some(format!("It went further than it should: {} was changed too.", shown(more)))
}

/// Reports a target that nothing was put into.
fn check_target(verb: &str, part: &[&str], changes: &Changes) -> Option<String> {
    let (_, before) = PUTS.iter().find(|(v, _)| *v == verb)?;
    let at = part.iter().rposition(|w| before.contains(&w.to_lowercase().as_str()))?;
    let mut rest =
        part.get(at + 1..)?.iter().skip_while(|w| matches!(w.to_lowercase().as_str(), "the" | "a" | "an" | "new"));
    let mut target = *rest.next()?;
    let mut named = false;
    if matches!(target.to_lowercase().as_str(), "folder" | "directory" | "file") {
        (target, named) = (rest.find(|w| !matches!(**w, "named" | "called"))?, true);
    }
    if is_outside(target) {
        return None;
    }
    // `to .md` names an extension
    if verb == "rename" && target.starts_with('.') && !target.contains('/') {
        let none = !changes.made().any(|e| e.path.ends_with(target));
        return none.then(|| format!("No file ends in {target} now that did not before."));
    }
    let name = trim_path(target);
    let path_like = target.contains('/') || name.rsplit_once('.').is_some_and(|(stem, _)| !stem.is_empty());
    if !(named || path_like || changes.before.contains(name)) {
        return None;
    }
    let is_target = |path: &str| path == name || path.strip_prefix(name).is_some_and(|rest| rest.starts_with('/'));
    let arrived = changes.made().any(|e| is_target(&e.path));
    (!arrived).then(|| format!("Nothing was put into {}.", shown(name)))
}

/// Reports a file that should have been edited and has not changed.
fn check_edit(verb: &str, claim: &Claim, part: &[&str], changes: &Changes) -> Option<String> {
    if !EDITS.contains(&verb) {
        return None;
    }
    let named = part.iter().skip(1).map(|w| trim_path(w)).filter(|w| changes.before.contains(*w) && w.contains('.'));
    let meant: Vec<&str> = match claim.names {
        [] => named.take(1).collect(),
        names => names.iter().map(|name| trim_path(name)).collect(),
    };
    let touched = |name: &&str| changes.made().any(|e| e.path == **name) || changes.removed.iter().any(|p| p == *name);
    let same = !meant.is_empty() && !meant.iter().any(touched);
    same.then(|| format!("{} is as it was before.", shown(meant[0])))
}

/// Matches the new value in `... to 9090` or `... with "b = 2"`, up to the words that name the file.
static VALUE: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"(?i)^.*\b(?:to|with)\s+(.+?)(?:\s+(?:in|on|for|everywhere|below|under)\b.*)?$").ok());

/// Reports a value that is in none of the changed files.
fn check_value(verb: &str, part: &str, changes: &Changes) -> Option<String> {
    if !EDITS.contains(&verb) {
        return None;
    }
    let value = VALUE.as_ref()?.captures(part)?.get(1)?.as_str().trim();
    let quoted = value.len() > 2 && value.starts_with(['"', '\'', '`']) && value.ends_with(['"', '\'', '`']);
    let literal = quoted || value.contains(|c: char| c.is_ascii_digit() || c == '=');
    if !literal || value.len() > 60 {
        return None;
    }
    let plain = |text: &str| {
        text.chars().filter(|c| !c.is_whitespace() && !matches!(c, '"' | '\'' | '`')).collect::<String>().to_lowercase()
    };
    let wanted = plain(value);
    let mut texts = changes.made().filter(|e| !e.folder).peekable();
    texts.peek()?;
    // a file whose text is not known may contain it
    let is_present = texts.any(|e| e.text.as_deref().is_none_or(|text| plain(text).contains(&wanted)));
    (!is_present).then(|| format!("{value} is not in what was changed."))
}

/// Reports a file or folder that should have been created and does not exist, and permissions that did not change.
fn check_created(verb: &str, part: &[&str], changes: &Changes) -> Option<String> {
    if verb == "make" && part.iter().any(|w| w.eq_ignore_ascii_case("executable")) {
        let none = changes.modes.is_empty() && changes.made().next().is_none();
        return none.then(|| "No file's permissions changed.".to_owned());
    }
    if !matches!(verb, "create" | "make") {
        return None;
    }
    let kind =
        |w: &&str| matches!(w.to_lowercase().as_str(), "folder" | "directory" | "file" | "script" | "named" | "called");
    let at = part.iter().position(&kind)?;
    let name = part.get(at + 1..)?.iter().find(|w| !kind(w)).map(|w| trim_path(w))?;
    // `a folder for the photos` has no name
    let is_name = !caro_intent::begins_part(name) && !PREPOSITIONS.contains(&name) && !is_outside(name);
    let known = name.contains(['.', '/', '_', '-']) || part.len() == at + 2;
    let exists = changes.before.contains(name)
        || changes.made().any(|e| e.path == name || e.path.ends_with(&format!("/{name}")));
    (is_name && known && !exists).then(|| format!("{} was not made.", shown(name)))
}
