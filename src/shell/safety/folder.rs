//! Uses the disk as evidence for a command that runs on this machine in a known folder: a file that does not exist
//! cannot be overwritten, and the size of one that does is reported. The caller reads the disk; this module decides
//! which paths to check and whether the answer still holds when the command runs.

use super::keeps::{may_fill_disk, reads_secrets};
use super::{Level, Reason};
use crate::effects::{Effect, Kind, Place, entered_folders, is_hidden, matches_most, place_of};
use crate::parse::{Invocation, Script, Word};
use caro_base::size::size;
use caro_base::wildcard::{is_pattern, name_fits};

/// The kind of file at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Found {
    /// The path does not exist.
    Nothing,
    /// A regular file, with its size in bytes.
    File(u64),
    /// A folder.
    Folder,
    /// Something else or unknown: a link, a device, a folder that cannot be read.
    Other,
}

/// The place where a command runs, and access to its disk.
#[derive(Clone, Copy)]
pub struct Surroundings<'a> {
    /// The absolute path of the working directory.
    pub folder: &'a str,
    /// The absolute path of the user's home folder.
    pub home: Option<&'a str>,
    /// Returns the kind of file at an absolute path, without following a link at its end.
    pub look: &'a dyn Fn(&str) -> Found,
    /// Returns an absolute path with all its links followed; `None` if it does not exist.
    pub real: &'a dyn Fn(&str) -> Option<String>,
}

impl std::fmt::Debug for Surroundings<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Surroundings").field("folder", &self.folder).field("home", &self.home).finish_non_exhaustive()
    }
}

/// Programs that write their operands into the folder that is their last operand.
const WRITE_INTO: [&str; 6] = ["cp", "gcp", "mv", "gmv", "install", "ln"];

/// Revises a reason by evidence from the disk; `None` if nothing is lost.
pub(super) fn reassess(
    script: &Script,
    all: &[Effect],
    effect: &Effect,
    reason: Reason,
    around: &Surroundings<'_>,
) -> Option<Reason> {
    let is_checked = reason.level == Level::Caution
        && !effect.remote
        && !effect.recursive
        && matches!(effect.kind, Kind::Overwrite | Kind::Append | Kind::Move);
    if !is_checked || !is_steady(script, all, effect) {
        return Some(reason);
    }
    // a new file may harm by what is in it, or by its size
    let harms = reads_secrets(script, all) || may_fill_disk(script, all);
    let targets = match effect.kind {
        // renaming to a free name can be reverted
        Kind::Move => moved_to(script, all, effect, around),
        _ => targets(script, all, effect, around),
    };
    let Some(targets) = targets else { return Some(reason) };
    let mut existing = None;
    for target in targets {
        match (around.look)(&target) {
            Found::Nothing | Found::File(0) => {}
            Found::File(bytes) => existing = Some(existing.unwrap_or(0) + bytes),
            Found::Folder | Found::Other => return Some(reason),
        }
    }
    let Some(bytes) = existing else {
        let path = effect.path.as_deref().unwrap_or_default();
        return harms.then(|| match effect.kind {
            Kind::Overwrite => Reason { why: format!("it writes {path}"), ..reason },
            _ => reason,
        });
    };
    Some(match effect.kind {
        Kind::Move => reason,
        _ => Reason { why: format!("{} ({} there now)", reason.why, size(bytes)), ..reason },
    })
}

/// Returns a deletion of the working folder, of one above it, or of all that one of these contains, with the path `.`,
/// `..`, `../..` and so on; `None` if it deletes something else. It may name the folder in another way: `../work`,
/// `../wor*`, `/home/me/work/*`, `cd ..; rm -r work`.
pub(super) fn as_working_folder(script: &Script, effect: &Effect, around: &Surroundings<'_>) -> Option<Effect> {
    if effect.kind != Kind::Delete || effect.remote {
        return None;
    }
    // the name of a home folder or of the whole disk says more
    let path = effect.path.as_deref().filter(|path| place_of(path) < Place::Here && !path.contains(['$', '`']))?;
    let (folder, is_inside) = match path.rsplit_once('/') {
        Some((folder, name)) if name.is_empty() || matches_most(name) => (folder, true),
        None if matches_most(path) => (".", true),
        _ => (path, false),
    };
    if !is_inside && !effect.recursive {
        return None;
    }
    let places = folders_of(script, effect, around);
    let full = places.iter().filter_map(|from| joined(folder, from, around));
    let named = full.flat_map(|full| [real_path(&full, is_inside, around), Some(plain(&full))]).flatten();
    let own = [Some(around.folder.to_owned()), (around.real)(around.folder)];
    let depth = named.into_iter().find_map(|named| own.iter().flatten().find_map(|own| depth_below(&named, own)))?;
    let path = if depth == 0 { ".".to_owned() } else { vec![".."; depth].join("/") };
    Some(Effect { path: Some(path), ..effect.clone() })
}

/// Returns how many folders the absolute path `own` lies below another one, which may be a pattern; `None` if it does
/// not.
fn depth_below(folder: &str, own: &str) -> Option<usize> {
    let names = |path: &str| path.split('/').filter(|name| !name.is_empty()).map(str::to_owned).collect::<Vec<_>>();
    let (folder, own) = (names(folder), names(own));
    // quotes are gone: a sign of a pattern may as well be a part of the name
    let fits = |(name, own): (&String, &String)| {
        let hides = own.starts_with('.') && !name.starts_with('.');
        name == own || is_pattern(name) && !hides && name_fits(name, own)
    };
    let is_below = folder.len() <= own.len() && folder.iter().zip(&own).all(fits);
    is_below.then(|| own.len() - folder.len())
}

/// Returns the path without links. The last name of a path is the link itself, unless the path leads inside.
fn real_path(full: &str, is_inside: bool, around: &Surroundings<'_>) -> Option<String> {
    match full.rsplit_once('/') {
        Some((above, name)) if !is_inside && !matches!(name, "." | "..") => {
            Some(format!("{}/{name}", (around.real)(if above.is_empty() { "/" } else { above })?.trim_end_matches('/')))
        }
        _ => (around.real)(full),
    }
}

/// Returns the folders that the path of an effect may start from: the working folder and, as the path may have the last
/// change of the folder in it already, each folder that the script changes to before the command.
fn folders_of(script: &Script, effect: &Effect, around: &Surroundings<'_>) -> Vec<String> {
    let mut folders = vec![around.folder.to_owned()];
    for goal in entered_folders(script, &effect.span) {
        // `cd ..` takes a name away, as a shell does not follow the links behind it
        let next = folders.last().and_then(|from| joined(&goal, from, around)).map(|full| plain(&full));
        folders.extend(next);
    }
    folders
}

/// True if nothing else in the script changes the files that are checked.
fn is_steady(script: &Script, all: &[Effect], effect: &Effect) -> bool {
    let own = |e: &Effect| e.command == effect.command;
    let harmless = |e: &Effect| match e.kind {
        Kind::None | Kind::Read | Kind::Fetch | Kind::Compute | Kind::Send => true,
        // `mkdir` creates no file and no link
        Kind::Create => {
            e.command.is_some_and(|at| script.commands[at].name() == Some("mkdir")) && e.path != effect.path
        }
        // another file with a literal name
        Kind::Overwrite | Kind::Append => e.path.as_deref().is_some_and(|path| {
            Some(path) != effect.path.as_deref() && (place_of(path) == Place::Sink || is_literal(path))
        }),
        _ => false,
    };
    let other = |e: &Effect| !own(e) && !harmless(e);
    let same_twice =
        all.iter().filter(|e| e.path == effect.path && matches!(e.kind, Kind::Overwrite | Kind::Append)).count() > 1;
    !all.iter().any(other) && !same_twice && script.functions.is_empty() && script.errors.is_empty()
}

/// True for a path that neither the shell nor the script expands.
fn is_literal(path: &str) -> bool {
    !path.is_empty() && !path.contains(['*', '?', '[', ']', '$', '`', '{', '(', '%', '\\', '!'])
}

/// Returns the absolute paths that are written to; `None` if unknown.
fn targets(script: &Script, all: &[Effect], effect: &Effect, around: &Surroundings<'_>) -> Option<Vec<String>> {
    let folder = folder_of(script, effect, around)?;
    let path = absolute(effect.path.as_deref()?, &folder, around)?;
    let redirected = effect.token.contains('>');
    match (around.look)(&path) {
        Found::Folder if !redirected => {
            let command = &script.commands[effect.command?];
            if !command.name().is_some_and(|name| WRITE_INTO.contains(&name)) {
                return None;
            }
            let sources =
                all.iter().filter(|e| e.command == effect.command && matches!(e.kind, Kind::Read | Kind::Move));
            let names = sources.map(|e| {
                let source = e.path.as_deref().filter(|path| is_literal(path) && !path.ends_with(['/', '.']))?;
                Some(format!("{}/{}", path.trim_end_matches('/'), source.rsplit('/').next()?))
            });
            let names: Option<Vec<String>> = names.collect();
            names.filter(|names| !names.is_empty())
        }
        // the path means a folder, which does not exist
        Found::Nothing if effect.path.as_deref().is_some_and(|p| p.ends_with('/')) => None,
        _ => Some(vec![path]),
    }
}

/// Returns the paths that a command moves its operands to.
fn moved_to(script: &Script, all: &[Effect], effect: &Effect, around: &Surroundings<'_>) -> Option<Vec<String>> {
    let command = &script.commands[effect.command?];
    let path = effect.path.as_deref()?;
    if !matches!(command.name(), Some("mv" | "gmv")) || place_of(path) != Place::Ordinary || !is_literal(path) {
        return None;
    }
    let goal = all.iter().find(|e| e.command == effect.command && e.kind == Kind::Overwrite)?;
    targets(script, all, goal, around)
}

/// Returns the folder that a command runs in, if the script stays in the current one or certainly changes to another.
fn folder_of(script: &Script, effect: &Effect, around: &Surroundings<'_>) -> Option<String> {
    let command = effect.command.map(|at| &script.commands[at]);
    if command.is_some_and(|c| !c.via.is_empty() || c.inside.is_some() || goes_elsewhere(c)) {
        return None;
    }
    let changes_folder = |c: &&Invocation| {
        matches!(c.name(), Some("cd" | "pushd" | "popd" | "chdir" | "z" | "set-location" | "push-location"))
    };
    let changes: Vec<&Invocation> = script.commands.iter().filter(changes_folder).collect();
    let [cd] = changes[..] else { return changes.is_empty().then(|| around.folder.to_owned()) };
    // `cd FOLDER && ...` as the first command
    let first =
        script.commands.first().is_some_and(|c| std::ptr::eq(c, cd)) && cd.name() == Some("cd") && cd.via.is_empty();
    let [goal] = cd.operands().collect::<Vec<&Word>>()[..] else { return None };
    let end = cd.words.last()?.span.end;
    let rest = script.text.get(end..)?;
    let sure = rest.trim_start().starts_with("&&")
        && !rest.contains([';', '\n', '(', ')', '{', '}'])
        && !rest.replace("&&", "").contains('&')
        && !rest.contains("||");
    if !first || !sure || !script.text.trim_start().starts_with("cd ") {
        return None;
    }
    let text = goal.value.as_deref().unwrap_or(&goal.text);
    absolute(text, around.folder, around)
}

/// True for a command with an option to work in another folder.
fn goes_elsewhere(command: &Invocation) -> bool {
    let has_folder_option = |w: &Word| {
        w.text == "-C" && command.name() != Some("tar")
            || w.text.starts_with("--directory") && command.name() != Some("tar")
            || w.text.starts_with("--git-dir")
            || w.text.starts_with("--output-dir")
    };
    command.args().iter().any(has_folder_option)
}

/// Returns the absolute path, if it is below the folder, the home folder or one for temporary files.
fn absolute(path: &str, folder: &str, around: &Surroundings<'_>) -> Option<String> {
    if path == "~" {
        return None;
    }
    let full = full_path(path, folder, around)?;
    let plain = plain(&full);
    let below = |root: &str| {
        root.trim_end_matches('/').len() > 1
            && plain.strip_prefix(root.trim_end_matches('/')).is_some_and(|rest| rest.starts_with('/'))
    };
    let own = below(around.folder) || around.home.is_some_and(below) || below("/tmp") || below("/var/tmp");
    // hidden files configure programs
    let hidden = is_hidden(path);
    // returned without normalization: `..` after a link leads elsewhere
    (own && !hidden).then_some(full)
}

/// Returns the absolute path that a literal path means in a folder, not normalized; `None` if it is not literal.
fn full_path(path: &str, folder: &str, around: &Surroundings<'_>) -> Option<String> {
    if is_literal(path) { joined(path, folder, around) } else { None }
}

/// Returns the absolute path that a path means in a folder, not normalized; `None` if the text does not tell.
fn joined(path: &str, folder: &str, around: &Surroundings<'_>) -> Option<String> {
    if path.is_empty() || path.starts_with('-') || path.contains(['$', '`']) {
        return None;
    }
    match path.strip_prefix('~') {
        Some(rest) if rest.is_empty() || rest.starts_with('/') => {
            Some(format!("{}{rest}", around.home?.trim_end_matches('/')))
        }
        Some(_) => None,
        None if path.starts_with('/') => Some(path.to_owned()),
        None => Some(format!("{}/{}", folder.trim_end_matches('/'), path.strip_prefix("./").unwrap_or(path))),
    }
}

/// Returns an absolute path without `.` and doubled slashes, where `..` takes a name away.
fn plain(full: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in full.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            _ => parts.push(part),
        }
    }
    format!("/{}", parts.join("/"))
}
