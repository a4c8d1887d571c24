//! Finds what a command names and is not here, for a command that no rule repairs.

use super::complaint::{Kind, complaints};
use super::near::{BUILTINS, is_common, is_program_name, similar};
use super::{Case, Facts, Failed, program};
use crate::checks::absent;
use caro_shell::effects::effects;
use caro_shell::{Dialect, Word, parse};
use std::path::Path;

/// Most similar names that are listed.
const MAX_NEAR: usize = 3;
/// The exit status of shells for a program that does not exist.
const NOT_FOUND: i32 = 127;

/// Something that a failed command names and that is not here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Absent {
    /// The kind.
    pub kind: Missing,
    /// Its name, as it was typed.
    pub name: String,
    /// Names that look like it, the nearest first.
    pub near: Vec<String>,
    /// True if this is all that is wrong, as far as is known, and no other command can do without it.
    pub is_whole_fault: bool,
}

/// The kind of a missing thing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Missing {
    /// A program.
    Program,
    /// A folder.
    Folder,
    /// A file, or either.
    Path,
}

impl Absent {
    /// The fault, in one line.
    pub fn why(&self) -> String {
        // a path says itself where it is
        let here = if self.name.contains('/') { "" } else { " here" };
        match self.kind {
            Missing::Program => format!("there is no `{}`{here}", self.name),
            Missing::Folder => format!("there is no folder {}{here}", self.name),
            Missing::Path => format!("there is no {}{here}", self.name),
        }
    }
}

/// Finds what is missing: a program, or a file or folder that is read.
pub fn absent(failed: &Failed, facts: &Facts) -> Option<Absent> {
    let stderr = failed.stderr.as_deref().unwrap_or_default();
    let complaints = complaints(stderr);
    let is_silent = complaints.is_empty();
    // an error that is not understood may be about something else
    if is_silent && !stderr.trim().is_empty() || facts.dialect == Dialect::PowerShell {
        return None;
    }
    let case = Case { facts, script: parse(&failed.command, facts.dialect), complaints, stderr, is_silent };
    if !case.script.errors.is_empty() {
        return None;
    }
    missing_program(&case, failed.status).or_else(|| missing_path(&case, failed.status))
}

/// Finds a missing program. Another status than that of shells says that there is an alias or function of that name.
fn missing_program(case: &Case, status: Option<i32>) -> Option<Absent> {
    if case.is_silent && status.is_some_and(|status| status != NOT_FOUND) {
        return None;
    }
    let (_, word) = program::missing(case)?;
    let name = word.value.clone()?;
    // another program may do what a known one does
    let is_known = is_program_name(&name, case.facts.dialect);
    let programs = case.facts.programs.keys().map(String::as_str).filter(|name| !name.starts_with('.'));
    let programs = programs.chain(BUILTINS).filter(|name| *name != "caro");
    let near = if is_known { Vec::new() } else { similar(&name, programs, is_common, MAX_NEAR) };
    Some(Absent { kind: Missing::Program, near: owned(&near), name, is_whole_fault: !is_known })
}

/// Finds a missing file or folder that the command reads.
fn missing_path(case: &Case, status: Option<i32>) -> Option<Absent> {
    if case.is_silent && status == Some(NOT_FOUND) || case.complaints.iter().any(|c| c.kind != Kind::NoFile) {
        return None;
    }
    let all = absent::inputs(&case.script, &effects(&case.script), case.facts.dialect, |path| case.facts.exists(path));
    let found = all.into_iter().find(|found| {
        let is_path = found.word.text.contains(['.', '/']) || enters(case, found);
        if case.is_silent { is_path } else { is_named(case, found.word) }
    })?;
    let name = found.word.value.clone()?;
    let is_folder = enters(case, &found) || name.ends_with('/');
    let near = near_paths(case.facts, &name, is_folder);
    let kind = if is_folder { Missing::Folder } else { Missing::Path };
    Some(Absent { kind, name, near, is_whole_fault: true })
}

fn enters(case: &Case, found: &absent::Absent) -> bool {
    absent::changes_folder(&case.script.commands[found.index])
}

/// True if a complaint is about the word.
fn is_named(case: &Case, word: &Word) -> bool {
    case.all(Kind::NoFile).any(|complaint| case.word(&complaint.name).is_some_and(|named| named.span == word.span))
}

/// Returns the names beside a missing path that look like it.
fn near_paths(facts: &Facts, typed: &str, folders_only: bool) -> Vec<String> {
    let path = Path::new(typed);
    let Some(name) = path.file_name().and_then(|name| name.to_str()) else { return Vec::new() };
    let above = path.parent().and_then(Path::to_str).unwrap_or_default();
    let folder = if above.is_empty() { facts.cwd.to_path_buf() } else { facts.path(above) };
    let names = facts.names(&folder, name.starts_with('.'));
    let fits = |found: &&str| !folders_only || folder.join(found).is_dir();
    let near = similar(name, names.iter().map(String::as_str).filter(fits), |_| true, MAX_NEAR);
    near.into_iter().map(|near| path.with_file_name(near).display().to_string()).collect()
}

fn owned(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}
