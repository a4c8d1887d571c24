//! Finds wrong file names in the working directory: a folder in place of a file, and a missing file.

use super::super::absent;
use super::edit::{Edits, warning};
use super::input::files;
use super::words::written_words;
use super::{CheckContext, is_written_before};
use caro_shell::parse::Redirect;
use caro_shell::{Finding, Invocation, Word, effects, needed};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// Most existing names that are shown as evidence.
const MAX_NAMES: usize = 6;
/// Most entries of a folder that are read.
const MAX_ENTRIES: usize = 500;

pub(super) fn check(cx: &CheckContext) -> Vec<Finding> {
    let Some(cwd) = cx.cwd else { return Vec::new() };
    // a request may speak of a file that is yet to come
    if cx.request.is_empty() {
        let found = absent_inputs(cx, cwd);
        if !found.is_empty() {
            return found;
        }
    }
    let commands = &cx.script.commands;
    // the folder is not known after `cd`, nor on another machine
    if commands.iter().any(|c| matches!(c.name(), Some("cd" | "pushd" | "ssh")) || c.remote) {
        return Vec::new();
    }
    let is_plain = |c: &&Invocation| c.inside.is_none() && c.via.is_empty();
    let found = |c| folder_as_file(cx, c, cwd).or_else(|| missing_file(cx, c, cwd)).or_else(|| file_below(cx, c, cwd));
    commands.iter().filter(is_plain).filter_map(found).collect()
}

/// `grep x logs`, where `logs` is a folder.
fn folder_as_file(cx: &CheckContext, command: &Invocation, cwd: &Path) -> Option<Finding> {
    const FLAGS: [char; 3] = ['r', 'R', 'd'];
    let file = files(command)?.into_iter().find(|w| w.value.as_ref().is_some_and(|v| cwd.join(v).is_dir()))?;
    let (name, program) = (command.name()?, command.words.first()?);
    let why = format!("{} is a folder, and {name} reads files", file.raw);
    if !name.ends_with("grep") {
        return Some(warning("is-folder", file, why, None));
    }
    let has_option =
        FLAGS.iter().any(|f| command.has_option(Some(*f), "recursive")) || cx.script.text.contains("--dir");
    let fix = Edits::new(cx.script).insert_after(program, " -r").apply();
    (!has_option).then(|| warning("is-folder", file, format!("{why}: -r reads all in it"), fix))
}

/// `cat notes.txt`, `wc < notes.txt`, `tar xf a.tgz` and `cd folder`, where there is none, nothing before it may create
/// one, and the program fails without it.
fn absent_inputs(cx: &CheckContext, cwd: &Path) -> Vec<Finding> {
    let commands = &cx.script.commands;
    let exists = |path: &str| !cwd.join(path).symlink_metadata().is_err_and(|e| e.kind() == ErrorKind::NotFound);
    let effects = effects(cx.script);
    // what is behind a maker or in another folder may be there by then
    let last =
        absent::first_maker(&effects).min(commands.iter().position(absent::changes_folder).unwrap_or(usize::MAX));
    let mut inputs: Vec<(usize, &Word, &str)> = needed(cx.script).iter().map(|n| (n.command, n.word, n.path)).collect();
    for (index, command) in commands.iter().enumerate() {
        let redirects = command.redirects.iter().filter(|r| r.operator == "<").map(|r| &r.target);
        let words = files(command).into_iter().flatten().chain(redirects);
        inputs.extend(words.map(|word| (index, word, word.text.as_str())));
    }
    inputs.retain(|(index, word, path)| {
        let command = &commands[*index];
        *index <= last
            && command.inside.is_none()
            && !command.remote
            && word.value.is_some()
            && !path.is_empty()
            && !path.starts_with(['~', '-'])
            && !path.contains([':', '$', '*', '?', '{'])
            && !exists(path)
            && !is_prepared_for(cx, *index, path)
    });
    inputs.sort_by_key(|(.., word, _)| word.span.start);
    inputs.dedup_by_key(|(.., word, _)| word.span.start);
    let finding = |(_, word, path): (usize, &Word, &str)| {
        let here = if path.starts_with('/') { "" } else { " here" };
        let named = if word.text == path { &word.raw } else { path };
        let why = format!("there is no {named}{here}, and nothing before it makes one");
        warning("no-such-file", word, why, None)
    };
    inputs.into_iter().map(finding).collect()
}

/// True for a command whose failure the script expects (`ls x || mkdir x`, `if ls x`, `ls x 2> /dev/null`), or before
/// which it tests whether the path exists.
fn is_prepared_for(cx: &CheckContext, index: usize, path: &str) -> bool {
    let command = &cx.script.commands[index];
    let span = command.span();
    let end = command.redirects.iter().map(|r| r.target.span.end).fold(span.end, usize::max);
    let text = &cx.script.text;
    let before = text.get(..span.start).and_then(|before| before.split_whitespace().next_back());
    let after = text.get(end..).unwrap_or_default().trim_start();
    let hides_errors = |r: &Redirect| r.operator.starts_with(['2', '&']) && r.target.text == "/dev/null";
    let tests =
        |c: &Invocation| matches!(c.name(), Some("test" | "[" | "[[")) && c.args().iter().any(|word| word.text == path);
    matches!(before, Some("if" | "elif" | "while" | "until" | "!"))
        || after.starts_with("||")
        || command.redirects.iter().any(hides_errors)
        || cx.script.commands[..index].iter().any(tests)
}

/// `grep 500 access.log`, where the file does not exist and the request does not name it.
fn missing_file(cx: &CheckContext, command: &Invocation, cwd: &Path) -> Option<Finding> {
    if cx.request.is_empty() {
        return None;
    }
    let request = cx.request.to_lowercase();
    let is_invented = |w: &&Word| {
        let Some(name) = w.value.as_deref().filter(|v| !v.starts_with('/') && !v.is_empty()) else { return false };
        let last = name.rsplit('/').next().unwrap_or(name).to_lowercase();
        !request.contains(&last)
            && !is_written_before(cx.script, command, name)
            && matches!(cwd.join(name).try_exists(), Ok(false))
    };
    let file = files(command)?.into_iter().find(is_invented)?;
    let existing = with_same_ending(cwd, &file.text);
    let mut finding = warning("no-such-file", file, format!("there is no {} here", file.raw), None);
    if !existing.is_empty() {
        finding.evidence = vec![format!("here are: {}", existing.join(" "))];
    }
    Some(finding)
}

/// `sort people.csv` where the only such file is `data/people.csv`, and the request names it without its folder.
fn file_below(cx: &CheckContext, command: &Invocation, cwd: &Path) -> Option<Finding> {
    if command.redirects.iter().any(|r| r.writes()) || command.has_option(Some('i'), "in-place") {
        return None;
    }
    let is_sought = |w: &&Word| {
        let Some(name) = w.value.as_deref().filter(|v| !v.contains('/') && Path::new(v).extension().is_some()) else {
            return false;
        };
        written_words(cx.request).any(|word| word == name)
            && !is_written_before(cx.script, command, name)
            && matches!(cwd.join(name).try_exists(), Ok(false))
    };
    let file = files(command)?.into_iter().find(is_sought)?;
    let found = super::only(files_below(cwd, &file.text).into_iter())?;
    let path = found.strip_prefix(cwd).ok()?.to_str().filter(|path| is_plain(path))?;
    let fix = Edits::new(cx.script).replace(file, path).apply();
    Some(warning("no-such-file", file, format!("there is no {} here, and one in {path}", file.raw), fix))
}

/// Returns the files of this name one or two levels below the folder.
fn files_below(cwd: &Path, name: &str) -> Vec<PathBuf> {
    let near = folders(cwd);
    let far: Vec<PathBuf> =
        near.iter().take(MAX_ENTRIES / 10).flat_map(|folder| folders(folder)).take(MAX_ENTRIES).collect();
    near.iter().chain(&far).map(|folder| folder.join(name)).filter(|path| path.is_file()).collect()
}

/// Returns the paths in a folder.
fn entries(folder: &Path) -> Vec<PathBuf> {
    let read = std::fs::read_dir(folder).into_iter().flatten().take(MAX_ENTRIES);
    read.filter_map(|entry| Some(entry.ok()?.path())).collect()
}

/// Returns the folders in a folder, without hidden ones and links.
fn folders(folder: &Path) -> Vec<PathBuf> {
    let is_hidden = |path: &Path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'));
    entries(folder).into_iter().filter(|path| path.is_dir() && !path.is_symlink() && !is_hidden(path)).collect()
}

/// Returns the files in this folder and one level below it that have the same ending as the name.
fn with_same_ending(cwd: &Path, name: &str) -> Vec<String> {
    let Some(ending) = Path::new(name).extension() else { return Vec::new() };
    let mut paths = entries(cwd);
    paths.extend(folders(cwd).iter().take(MAX_NAMES).flat_map(|folder| entries(folder)));
    let found = paths.iter().filter(|p| p.extension() == Some(ending));
    let mut names: Vec<String> =
        found.filter_map(|p| Some(p.strip_prefix(cwd).ok()?.to_str()?.to_owned())).filter(|n| is_plain(n)).collect();
    names.sort_unstable();
    names.truncate(MAX_NAMES);
    names
}

/// True for a name that is safe to show to the model.
fn is_plain(name: &str) -> bool {
    name.chars().all(|c| c.is_alphanumeric() || "._-/".contains(c))
}
