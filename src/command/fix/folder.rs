//! Repairs commands with a missing folder, a folder in place of a file, or a file in place of a folder.

use super::complaint::Kind;
use super::{Case, Class, Repair, repair};
use caro_shell::Word;
use caro_shell::effects::{self, effects};
use std::path::Path;

/// Programs with their option for recursion into folders. Source: POSIX and the manuals of GNU and BSD.
const RECURSIVE: [(&str, &str); 8] = [
    ("cp", "-r"),
    ("rm", "-r"),
    ("grep", "-r"),
    ("egrep", "-r"),
    ("fgrep", "-r"),
    ("scp", "-r"),
    ("zip", "-r"),
    ("diff", "-r"),
];
/// Programs that show a file, to be replaced by `ls` for a folder.
const VIEWERS: [&str; 5] = ["cat", "less", "more", "bat", "head"];

pub(super) fn wrong_kind(case: &Case) -> Option<Repair> {
    is_folder(case).or_else(|| not_folder(case)).or_else(|| not_empty(case)).or_else(|| parents(case))
}

/// `rm data`, `grep x logs`, `cat Photos`.
fn is_folder(case: &Case) -> Option<Repair> {
    let complaint = case.first(Kind::IsFolder)?;
    let word = case.word(&complaint.name)?;
    let command = case.holder(word)?;
    let program = command.words.first()?;
    let why = format!("{} is a folder", complaint.name);
    if program.span == word.span {
        return repair(Class::Folder, case.edits().insert_before(program, "cd "), why);
    }
    let name = command.name()?;
    if let Some((_, flag)) = RECURSIVE.iter().find(|(program, _)| *program == name) {
        return repair(Class::Folder, case.edits().insert_after(program, &format!(" {flag}")), why);
    }
    if VIEWERS.contains(&name) {
        return repair(Class::Folder, case.edits().replace_span(&command.words, &format!("ls {}", word.raw)), why);
    }
    None
}

/// `cd notes.txt`; `cat notes.txt/x`.
fn not_folder(case: &Case) -> Option<Repair> {
    let complaint = case.first(Kind::NotFolder)?;
    let word = case.word(&complaint.name)?;
    let command = case.holder(word).filter(|command| matches!(command.name(), Some("cd" | "pushd")))?;
    let folder = Path::new(&word.text).parent().filter(|folder| !folder.as_os_str().is_empty());
    let why = format!("{} is a file", word.text);
    let is_alone = case.script.commands.len() == 1;
    if is_alone && folder.is_none() {
        let edits = case.edits().replace_span(&command.words, &format!("cat {}", word.raw));
        return repair(Class::Folder, edits, why);
    }
    let folder = folder.and_then(Path::to_str).unwrap_or(".");
    repair(Class::Folder, case.edits().replace(word, &case.quoted(folder)), why)
}

/// `rmdir full`; `mkdir there`.
fn not_empty(case: &Case) -> Option<Repair> {
    if let Some(complaint) = case.first(Kind::NotEmpty) {
        let word = case.word(&complaint.name)?;
        let program = case.holder(word)?.words.first().filter(|program| program.text == "rmdir")?;
        let why = format!("{} is not empty", complaint.name);
        return repair(Class::Folder, case.edits().replace(program, "rm -r"), why);
    }
    let complaint = case.first(Kind::Exists)?;
    let word = case.word(&complaint.name).filter(|word| case.facts.is_folder(&word.text))?;
    let program = case.holder(word)?.words.first().filter(|program| program.text == "mkdir")?;
    repair(Class::Folder, case.edits().insert_after(program, " -p"), format!("{} is there already", complaint.name))
}

/// Repairs a missing parent folder of a file that the command creates: corrects its name, or creates it first.
fn parents(case: &Case) -> Option<Repair> {
    let complaint = case.first(Kind::NoFile)?;
    let word = created_path(case, &complaint.name)?;
    let parent = Path::new(&word.text).parent().filter(|parent| !parent.as_os_str().is_empty())?.to_str()?;
    if case.facts.is_folder(parent) {
        return None;
    }
    if let Some(meant) = case.facts.nearest_path(parent) {
        let name = Path::new(&word.text).file_name()?.to_str()?;
        let why = format!("there is no {parent}, there is {meant}");
        return repair(Class::Path, case.edits().replace(word, &case.quoted(&format!("{meant}/{name}"))), why);
    }
    let why = format!("there is no folder {parent}");
    if let Some(mkdir) = case.holder(word).filter(|command| command.name() == Some("mkdir")) {
        return repair(Class::Folder, case.edits().insert_after(mkdir.words.first()?, " -p"), why);
    }
    let command = format!("mkdir -p {} && {}", case.quoted(parent), case.text());
    Some(Repair { command, why, class: Class::Folder })
}

/// Returns the word of a path that the command creates or writes: the one that the complaint names, or the last
/// argument of the same command.
fn created_path<'c>(case: &'c Case, name: &str) -> Option<&'c Word> {
    // for `cp a b/c` and `mv a b/c`, programs name the source or the target
    let word = case.word(name)?;
    let creates = |kind| matches!(kind, effects::Kind::Create | effects::Kind::Overwrite | effects::Kind::Append);
    let effects = effects(&case.script);
    let is_created = |word: &Word| {
        word.value.is_some() && effects.iter().any(|effect| creates(effect.kind) && effect.path == word.value)
    };
    if is_created(word) {
        return Some(word);
    }
    // `mv a out/b` complains about `a` on some systems, although it exists
    if !case.facts.exists(&word.text) {
        return None;
    }
    let command = case.holder(word)?;
    command.args().last().filter(|last| is_created(last))
}
