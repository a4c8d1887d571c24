//! Evidence from the disk, where a command is for this machine and the folder that it runs in is known: what is not there cannot be
//! written over, and of what is there the size is told. The disk is asked by the caller; here is what to ask, and when the
//! answer still holds once the command runs.

use super::keeps::{exposes, fills};
use super::{Level, Reason};
use crate::effects::{Effect, Kind, Place, is_hidden, place_of};
use crate::parse::{Invocation, Script, Word};
use caro_base::size::size;

/// The kind of thing at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Found {
    /// Nothing.
    Nothing,
    /// An ordinary file of that many bytes.
    File(u64),
    /// A folder.
    Folder,
    /// Something else, or it cannot be told: a link, a device, a folder that may not be read.
    Other,
}

/// Where a command runs, and how its caller looks at the disk there.
#[derive(Clone, Copy)]
pub struct Surroundings<'a> {
    /// The folder, from the root on.
    pub folder: &'a str,
    /// The home folder of whoever runs it, from the root on.
    pub home: Option<&'a str>,
    /// Looks at a path, from the root on, without following a link at its end.
    pub look: &'a dyn Fn(&str) -> Found,
}

impl std::fmt::Debug for Surroundings<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Surroundings").field("folder", &self.folder).field("home", &self.home).finish_non_exhaustive()
    }
}

/// Programs that put what they are named into a folder that is the last of their words.
const INTO: [&str; 6] = ["cp", "gcp", "mv", "gmv", "install", "ln"];

/// The reason that is left of one, in view of the disk; `None` if nothing is lost.
pub(super) fn seen(
    script: &Script,
    all: &[Effect],
    effect: &Effect,
    reason: Reason,
    around: &Surroundings<'_>,
) -> Option<Reason> {
    let asked = reason.level == Level::Caution
        && !effect.remote
        && !effect.recursive
        && matches!(effect.kind, Kind::Overwrite | Kind::Append | Kind::Move);
    if !asked || exposes(script, all) || fills(script, all) || !is_steady(script, all, effect) {
        return Some(reason);
    }
    let targets = match effect.kind {
        // what is renamed to a name that is free comes back by the same way
        Kind::Move => moved_to(script, all, effect, around),
        _ => targets(script, all, effect, around),
    };
    let Some(targets) = targets else { return Some(reason) };
    let mut told = None;
    for target in targets {
        match (around.look)(&target) {
            Found::Nothing | Found::File(0) => {}
            Found::File(bytes) => told = Some(told.unwrap_or(0) + bytes),
            Found::Folder | Found::Other => return Some(reason),
        }
    }
    let bytes = told?;
    Some(match effect.kind {
        Kind::Move => reason,
        _ => Reason { why: format!("{} ({} there now)", reason.why, size(bytes)), ..reason },
    })
}

/// True if nothing in the script makes or moves something that the look could not see.
fn is_steady(script: &Script, all: &[Effect], effect: &Effect) -> bool {
    let own = |e: &Effect| e.command == effect.command;
    let harmless = |e: &Effect| match e.kind {
        Kind::None | Kind::Read | Kind::Fetch | Kind::Compute | Kind::Send => true,
        // `mkdir` makes no file, and no link that leads elsewhere
        Kind::Create => {
            e.command.is_some_and(|at| script.commands[at].name() == Some("mkdir")) && e.path != effect.path
        }
        // another file that is named
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

/// True for a path with nothing in it that a shell or the script fills in.
fn is_literal(path: &str) -> bool {
    !path.is_empty() && !path.contains(['*', '?', '[', ']', '$', '`', '{', '(', '%', '\\', '!'])
}

/// The paths from the root on that are written to; `None` where that cannot be told.
fn targets(script: &Script, all: &[Effect], effect: &Effect, around: &Surroundings<'_>) -> Option<Vec<String>> {
    let folder = folder_of(script, effect, around)?;
    let path = absolute(effect.path.as_deref()?, &folder, around)?;
    let redirected = effect.token.contains('>');
    match (around.look)(&path) {
        Found::Folder if !redirected => {
            let command = &script.commands[effect.command?];
            if !command.name().is_some_and(|name| INTO.contains(&name)) {
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
        // the name stands for a folder, and there is none
        Found::Nothing if effect.path.as_deref().is_some_and(|p| p.ends_with('/')) => None,
        _ => Some(vec![path]),
    }
}

/// The paths to which that command moves what it names.
fn moved_to(script: &Script, all: &[Effect], effect: &Effect, around: &Surroundings<'_>) -> Option<Vec<String>> {
    let command = &script.commands[effect.command?];
    let path = effect.path.as_deref()?;
    if !matches!(command.name(), Some("mv" | "gmv")) || place_of(path) != Place::Ordinary || !is_literal(path) {
        return None;
    }
    let goal = all.iter().find(|e| e.command == effect.command && e.kind == Kind::Overwrite)?;
    targets(script, all, goal, around)
}

/// The folder that the command writes from, where the script does not leave it or surely goes to another.
fn folder_of(script: &Script, effect: &Effect, around: &Surroundings<'_>) -> Option<String> {
    let command = effect.command.map(|at| &script.commands[at]);
    if command.is_some_and(|c| !c.via.is_empty() || c.inside.is_some() || goes_elsewhere(c)) {
        return None;
    }
    let goes = |c: &&Invocation| {
        matches!(c.name(), Some("cd" | "pushd" | "popd" | "chdir" | "z" | "set-location" | "push-location"))
    };
    let gone: Vec<&Invocation> = script.commands.iter().filter(goes).collect();
    let [cd] = gone[..] else { return gone.is_empty().then(|| around.folder.to_owned()) };
    // `cd FOLDER && ...`, and nothing before it
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

/// True for a command that is told to work in another folder.
fn goes_elsewhere(command: &Invocation) -> bool {
    let told = |w: &Word| {
        w.text == "-C" && command.name() != Some("tar")
            || w.text.starts_with("--directory") && command.name() != Some("tar")
            || w.text.starts_with("--git-dir")
            || w.text.starts_with("--output-dir")
    };
    command.args().iter().any(told)
}

/// The path from the root on, if it lies below the folder, the home folder or one for temporary files.
fn absolute(path: &str, folder: &str, around: &Surroundings<'_>) -> Option<String> {
    if !is_literal(path) || path.starts_with('-') {
        return None;
    }
    let full = match (path.strip_prefix("~/"), path.starts_with('/')) {
        (Some(rest), _) => format!("{}/{rest}", around.home?.trim_end_matches('/')),
        (None, true) => path.to_owned(),
        (None, false) if path.starts_with('~') => return None,
        (None, false) => format!("{}/{}", folder.trim_end_matches('/'), path.strip_prefix("./").unwrap_or(path)),
    };
    let mut parts: Vec<&str> = Vec::new();
    for part in full.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            _ => parts.push(part),
        }
    }
    let plain = format!("/{}", parts.join("/"));
    let below = |root: &str| {
        root.trim_end_matches('/').len() > 1
            && plain.strip_prefix(root.trim_end_matches('/')).is_some_and(|rest| rest.starts_with('/'))
    };
    let own = below(around.folder) || around.home.is_some_and(below) || below("/tmp") || below("/var/tmp");
    // programs start by what lies in hidden files
    let hidden = is_hidden(path);
    // as the system reads it: a folder on the way may be a link
    (own && !hidden).then_some(full)
}
