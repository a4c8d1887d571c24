//! Finds calls of scripts that are not executable, such as `scripts/backup.sh`, which their interpreter can still
//! run.

use super::edit::{Edits, warning};
use super::{CheckContext, is_written_before};
use caro_shell::Finding;
use std::io::Read;
use std::path::Path;

/// Interpreters by the ending of a script without a `#!` line.
const BY_ENDING: [(&str, &str); 5] =
    [("sh", "sh"), ("bash", "bash"), ("py", "python3"), ("pl", "perl"), ("rb", "ruby")];

pub(super) fn check(cx: &CheckContext) -> Option<Finding> {
    let cwd = cx.cwd?;
    let (program, file) = cx.script.commands.iter().filter(|c| !c.remote).find_map(|command| {
        let program = command.words.first().filter(|w| w.value.is_some() && w.text.contains('/') && !w.glob)?;
        let file = cwd.join(&program.text);
        let is_found = is_not_executable(&file) && !is_written_before(cx.script, command, &program.text);
        is_found.then_some((program, file))
    })?;
    // an earlier command may create the file, make it executable, or change the folder
    if cx.script.text.get(..program.span.start)?.contains([';', '&', '|', '\n', '(', '{']) {
        return None;
    }
    let interpreter = interpreter(&file)?;
    let why = format!("{} is not executable: {interpreter} reads it", program.text);
    let fix = Edits::new(cx.script).insert_before(program, &format!("{interpreter} ")).apply();
    Some(warning("not-executable", program, why, fix))
}

/// True for a file without any execute permission.
#[cfg(unix)]
fn is_not_executable(file: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    file.metadata().is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 == 0)
}

#[cfg(not(unix))]
fn is_not_executable(_: &Path) -> bool {
    false
}

/// Returns the interpreter of a script, by its first line, else by its ending.
fn interpreter(file: &Path) -> Option<String> {
    let mut bytes = Vec::new();
    std::fs::File::open(file).ok()?.take(200).read_to_end(&mut bytes).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    if let Some(line) = text.lines().next().and_then(|line| line.strip_prefix("#!")) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let (path, rest) = words.split_first()?;
        let folder = ["/bin/", "/usr/bin/", "/usr/local/bin/"].iter().find_map(|folder| path.strip_prefix(folder));
        // only a known interpreter with at most one option is taken from the text of the file
        return match (folder?, rest) {
            ("env", [name]) if is_known(name) => Some((*name).to_owned()),
            (name, []) if is_known(name) => Some(name.to_owned()),
            (name, [option]) if is_known(name) && is_short_option(option) => Some(format!("{name} {option}")),
            _ => None,
        };
    }
    let ending = file.extension()?.to_str()?;
    BY_ENDING.iter().find(|(other, _)| *other == ending).map(|(_, name)| (*name).to_owned())
}

/// True for a program that runs a script given by its path.
fn is_known(name: &str) -> bool {
    let base = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    ["sh", "bash", "dash", "zsh", "ksh", "python", "perl", "ruby", "node"].contains(&base)
}

/// True for a cluster of short options such as `-eu`.
fn is_short_option(option: &str) -> bool {
    option.strip_prefix('-').is_some_and(|letters| letters.chars().all(|c| c.is_ascii_alphabetic()))
}
