//! Finds names that a small model copied from the worked examples, though the request does not contain them:
//! `people.csv` for "csv to tsv", and `/srv/www` for "every html file".

use super::edit::{Edits, warning, warning_about};
use super::words::without_punctuation;
use super::{CheckContext, starting_points};
use crate::examples::Example;
use crate::library;
use caro_shell::effects::{Kind, effects};
use caro_shell::{Finding, Invocation, Word, quote};

/// Most pairs of the library that the model may have been shown.
const MAX_SHOWN: usize = 3;

pub(super) fn check(cx: &CheckContext) -> Option<Finding> {
    let shown = library::nearest(cx.request, cx.target, MAX_SHOWN);
    file(cx, &shown).or_else(|| place(cx, &shown))
}

/// `tr ',' '\t' < people.csv` for "csv to tsv".
fn file(cx: &CheckContext, shown: &[Example]) -> Option<Finding> {
    let (request, text) = (cx.request.to_lowercase(), &cx.script.text);
    let words = shown.iter().flat_map(|e| e.request.split_whitespace().map(move |word| (word, &e.command)));
    let name = words
        .map(|(word, command)| (word.trim_end_matches([',', ';', ':', '?']), command))
        .filter(|(name, command)| {
            name.len() > 1 && [command, text].iter().all(|of| positions(of, name).next().is_some())
        })
        .map(|(name, _)| name)
        .filter(|name| !request.contains(&name.to_lowercase()))
        // an existing file may be meant, and if the request names a file, another name may be that of the result
        .find(|name| {
            let exists = cx.cwd.map(|cwd| cwd.join(name).exists());
            let names_no_file = || !request.split_whitespace().any(is_file);
            exists != Some(true) && has_folder(text, name) || exists == Some(false) && names_no_file()
        })?;
    let at = positions(text, name).next()?;
    let why = format!("the request does not speak of {name}");
    let fix = has_folder(text, name).then(|| without_folder(text, name));
    Some(warning_about("borrowed-name", name, Some(at..at + name.len()), why, fix))
}

/// True if a text contains the name as that of a folder before a slash.
fn has_folder(text: &str, name: &str) -> bool {
    positions(text, name).any(|at| text[at + name.len()..].starts_with('/'))
}

/// Returns a text without a folder before its files.
fn without_folder(text: &str, name: &str) -> String {
    let mut left = text.to_owned();
    for at in positions(text, name).collect::<Vec<_>>().into_iter().rev() {
        let end = at + name.len();
        if text[end..].starts_with('/') {
            left.replace_range(at..=end, "");
        }
    }
    left
}

/// `find /srv/www ...` after an example about /srv/www, which does not exist and is not in the request: the working
/// directory is meant.
fn place(cx: &CheckContext, shown: &[Example]) -> Option<Finding> {
    let cwd = cx.cwd?;
    let request = cx.request.to_lowercase();
    let path_of = |word: &str| without_punctuation(word).trim_end_matches('/').to_owned();
    let examples = shown.iter().flat_map(|e| e.request.split_whitespace().map(move |word| (path_of(word), &e.command)));
    let is_borrowed = |name: &str, command: &str| {
        command.split_whitespace().any(|word| below(&path_of(word), name).is_some())
            && !request.contains(&name.to_lowercase())
            && [name, name.trim_start_matches('/')].iter().all(|name| cwd.join(name).symlink_metadata().is_err())
    };
    let names: Vec<String> =
        examples.filter(|(name, command)| name.len() > 1 && is_borrowed(name, command)).map(|(name, _)| name).collect();
    let commands = cx.script.commands.iter().filter(|c| !c.remote);
    // a word without a slash counts only as an argument for a folder
    let found: Vec<(&Word, bool, &str)> = commands
        .flat_map(|c| {
            let folders = folders(c);
            c.args().iter().map(move |word| (word, folders.iter().any(|folder| std::ptr::eq(*folder, word))))
        })
        .filter_map(|(word, is_folder)| {
            let mut names = names.iter().filter(|name| is_folder || name.contains('/'));
            Some((word, is_folder, names.find_map(|name| below(&word.text, name))?))
        })
        // the values of variables count as well
        .chain(cx.script.assignments.iter().filter_map(|a| {
            let mut names = names.iter().filter(|name| name.contains('/'));
            Some((&a.value, true, names.find_map(|name| below(&a.value.text, name))?))
        }))
        .collect();
    let (first, ..) = *found.first()?;
    // a command that deletes is not redirected to another folder
    let deletes = effects(cx.script).iter().any(|e| e.kind == Kind::Delete);
    let fix = found.iter().all(|(_, is_folder, _)| *is_folder && !deletes).then(|| {
        let edits = found.iter().fold(Edits::new(cx.script), |edits, (word, _, rest)| match *rest {
            "" => edits.replace(word, "."),
            rest if word.expands => {
                let folder = &word.text[..word.text.len() - rest.len()];
                edits.replace(word, &word.raw.replacen(folder, "", 1))
            }
            rest if word.glob && !word.quoted => edits.replace(word, rest),
            rest => edits.replace(word, &quote(rest, cx.dialect)),
        });
        edits.apply()
    });
    let why = format!("the request does not speak of {}, and there is none here", first.text);
    Some(warning("borrowed-place", first, why, fix.flatten()))
}

/// Returns the rest of a path below a folder; empty for the folder itself.
fn below<'a>(path: &'a str, folder: &str) -> Option<&'a str> {
    let rest = path.strip_prefix(folder)?;
    if rest.is_empty() { Some(rest) } else { rest.strip_prefix('/') }
}

/// Returns the arguments that are folders to search or list.
fn folders(command: &Invocation) -> Vec<&Word> {
    match command.name() {
        Some("find") => starting_points(command).collect(),
        Some("du" | "ls" | "tree") => command.operands().collect(),
        Some(name) if name.ends_with("grep") && ['r', 'R'].iter().any(|f| command.has_option(Some(*f), "")) => {
            command.operands().skip(1).collect()
        }
        _ => Vec::new(),
    }
}

/// Returns the offsets of a name in a text as that of a file, or of a folder before a slash.
fn positions<'t>(text: &'t str, name: &'t str) -> impl Iterator<Item = usize> + 't {
    let is_name = name.chars().all(|c| c.is_alphanumeric() || "._-".contains(c));
    let stands_alone = move |at: &usize| {
        let (before, after) = (&text[..*at], &text[at + name.len()..]);
        let is_start = !before.ends_with(|c: char| c.is_alphanumeric() || "./~*:@".contains(c));
        is_name && is_start && (after.starts_with('/') || is_file(name) && !after.starts_with(char::is_alphanumeric))
    };
    text.match_indices(name).map(|(at, _)| at).filter(stands_alone)
}

/// True for `notes.txt`, but not for `.txt`.
fn is_file(name: &str) -> bool {
    name.trim_matches('.').contains('.')
}
