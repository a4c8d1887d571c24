//! Repairs commands that failed for lack of permission.

use super::complaint::Kind;
use super::{Case, Class, Repair, repair};
use caro_shell::{Invocation, Word, quote};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// System folders.
const SYSTEM: [&str; 12] =
    ["/etc", "/usr", "/var", "/opt", "/boot", "/lib", "/sbin", "/bin", "/srv", "/root", "/sys", "/run"];
/// Endings of scripts with their interpreters.
const INTERPRETERS: [(&str, &str); 6] =
    [("sh", "sh"), ("bash", "bash"), ("py", "python3"), ("pl", "perl"), ("rb", "ruby"), ("js", "node")];

pub(super) fn denied(case: &Case) -> Option<Repair> {
    if let Some(repair) = interpreted(case) {
        return Some(repair);
    }
    for complaint in case.all(Kind::Denied) {
        let Some(word) = case.word(&complaint.name) else { continue };
        if let Some(command) = case.commands().find(|command| is_program(command, word)) {
            return executable(case, command, word);
        }
        if is_system(&case.facts.path(&word.text)) {
            return as_root(case, holder(case, word), &complaint.name);
        }
    }
    if let Some(complaint) = case.first(Kind::NeedsRoot) {
        let command = case.complainer(&complaint.line).or_else(|| case.commands().next());
        return as_root(case, command, command.and_then(|command| command.name()).unwrap_or_default());
    }
    None
}

fn is_program(command: &Invocation, word: &Word) -> bool {
    command.words.first().is_some_and(|first| first.span == word.span)
}

/// Returns the command that has the word as an argument or as the file of a redirection.
fn holder<'c>(case: &'c Case, word: &Word) -> Option<&'c Invocation> {
    case.commands().find(|command| {
        let files = command.redirects.iter().map(|redirect| &redirect.target);
        command.words.iter().chain(files).any(|other| other.span == word.span)
    })
}

/// Makes a script or program executable that is not, or runs a script with its interpreter.
fn executable(case: &Case, command: &Invocation, word: &Word) -> Option<Repair> {
    let path = case.facts.path(&word.text);
    if !path.is_file() || is_executable(&path) {
        return None;
    }
    let why = format!("{} may not be run yet", word.text);
    let head = head(&path);
    if head.starts_with(b"#!") || head.starts_with(b"\x7fELF") {
        let command = format!("chmod +x {} && {}", word.raw, case.text());
        return Some(Repair { command, why, class: Class::Permission });
    }
    let interpreter = interpreter(case, &word.text)?;
    repair(Class::Permission, case.edits().insert_before(command.words.first()?, &format!("{interpreter} ")), why)
}

/// Runs a script whose first line names a missing interpreter with the one that was meant.
fn interpreted(case: &Case) -> Option<Repair> {
    let complaint = case.first(Kind::BadInterpreter)?;
    let word = case.word(&complaint.name)?;
    let interpreter = interpreter(case, &word.text)?;
    let why = format!("the first line of {} names a program that is not here", word.text);
    repair(Class::Permission, case.edits().insert_before(word, &format!("{interpreter} ")), why)
}

/// Returns the interpreter of a script, by its first line, else by its ending.
pub(super) fn interpreter(case: &Case, script: &str) -> Option<String> {
    let head = head(&case.facts.path(script));
    let line = head.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let line = String::from_utf8_lossy(line);
    let named = line.strip_prefix("#!").and_then(|line| {
        let mut words = line.split_whitespace().map(|word| word.rsplit('/').next().unwrap_or(word));
        let first = words.next()?;
        if first == "env" { words.find(|word| !word.starts_with('-')) } else { Some(first) }.map(str::to_owned)
    });
    let known = named.and_then(|name| match case.facts.has_program(&name) {
        true => Some(name),
        false => case.facts.nearest_program(&name).map(str::to_owned),
    });
    let ending = Path::new(script).extension().and_then(|ending| ending.to_str()).unwrap_or_default();
    known.or_else(|| {
        let (_, program) = INTERPRETERS.iter().find(|(end, _)| *end == ending)?;
        case.facts.has_program(program).then(|| (*program).to_owned())
    })
}

/// Reads at most 256 bytes of a file.
fn head(path: &Path) -> Vec<u8> {
    let mut head = Vec::new();
    if path.is_file()
        && let Ok(file) = File::open(path)
    {
        // a file that cannot be read counts as empty
        let _ = file.take(256).read_to_end(&mut head);
    }
    head
}

/// True if a file is executable.
pub(super) fn is_executable(path: &Path) -> bool {
    #[cfg(unix)]
    return std::os::unix::fs::PermissionsExt::mode(&match path.metadata() {
        Ok(meta) => meta.permissions(),
        Err(_) => return false,
    }) & 0o111
        != 0;
    #[cfg(not(unix))]
    path.is_file()
}

/// True for a path in a system folder.
fn is_system(path: &Path) -> bool {
    let top = |folder: &&str| path.starts_with(PathBuf::from(folder));
    SYSTEM.iter().any(top) && !path.starts_with("/var/tmp")
}

/// Runs the command as root, with the first of `sudo`, `doas` and `run0` that is installed.
fn as_root(case: &Case, command: Option<&Invocation>, what: &str) -> Option<Repair> {
    let command = command?;
    let sudo = ["sudo", "doas", "run0"].into_iter().find(|program| case.facts.programs.contains_key(*program))?;
    let has_sudo = command.via.iter().any(|outer| outer == sudo);
    let is_plain_builtin = command.is_builtin(case.facts.dialect) && !command.redirects.iter().any(|r| r.writes());
    if case.facts.is_root || has_sudo || is_plain_builtin {
        return None;
    }
    let why = format!("{what} is for root alone");
    // the user's shell opens the file, so `tee` has to write it as root
    let written = command.redirects.iter().find(|redirect| redirect.writes() && redirect.target.text == what);
    if let Some(redirect) = written {
        let text = case.text();
        let from =
            text.get(..redirect.target.span.start)?.trim_end().strip_suffix(redirect.operator.as_str())?.trim_end();
        let append = if redirect.appends() { "-a " } else { "" };
        let behind = text.get(redirect.target.span.end..)?;
        let command = format!("{from} | {sudo} tee {append}{} >/dev/null{behind}", quote(what, case.facts.dialect));
        return Some(Repair { command, why, class: Class::Permission });
    }
    repair(Class::Permission, case.edits().insert_before(command.words.first()?, &format!("{sudo} ")), why)
}
