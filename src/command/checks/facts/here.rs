//! Finds wrong file names in the working directory: a folder in place of a file, and a missing file.

use super::super::absent;
use super::edit::{Edits, warning};
use super::input::files;
use super::sums::digits_of;
use super::words::{is_in, written_words};
use super::{CheckContext, is_written_before};
use caro_shell::{Finding, Invocation, Word, effects};
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

/// `cat notes.txt`, `wc < notes.txt` and `cd folder`, where there is none, nothing before it may create one, and the
/// program fails without it.
fn absent_inputs(cx: &CheckContext, cwd: &Path) -> Vec<Finding> {
    // programs all of whose operands are files
    const NEED_FILES: &str = "cd pushd rm rmdir mv cp source tac";
    let needs_files = |name: &str| is_in(NEED_FILES, name) || digits_of(name).is_some();
    let exists = |path: &str| !cwd.join(path).symlink_metadata().is_err_and(|e| e.kind() == ErrorKind::NotFound);
    let effects = effects(cx.script);
    let first_maker = absent::first_maker(&effects);
    let is_operand = |command: &Invocation, word: &Word| match files(command) {
        Some(files) => files.iter().any(|file| file.span == word.span),
        None => command.name().is_some_and(needs_files),
    };
    let is_needed = |absent: &absent::Absent| {
        let command = &cx.script.commands[absent.index];
        let (name, text) = (command.name().unwrap_or_default(), absent.word.text.as_str());
        let is_redirected = command.redirects.iter().any(|r| r.target.span == absent.word.span && r.operator == "<");
        let is_forced = name == "rm" && command.has_option(Some('f'), "force");
        absent.index <= first_maker
            && command.inside.is_none()
            && absent.word.value.is_some()
            && !text.is_empty()
            && !text.starts_with(['~', '-'])
            && !text.contains([':', '$', '*', '?', '{'])
            && (is_redirected || is_operand(command, absent.word) && !is_forced)
    };
    let mut found: Vec<_> =
        absent::inputs(cx.script, &effects, cx.dialect, exists).into_iter().filter(is_needed).collect();
    found.dedup_by_key(|absent| absent.word.span.start);
    let finding = |absent: absent::Absent| {
        let why = format!("there is no {} here, and nothing before it makes one", absent.word.raw);
        warning("no-such-file", absent.word, why, None)
    };
    found.into_iter().map(finding).collect()
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
