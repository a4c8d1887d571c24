//! Puts back what a command touched, and keeps what is there now: an undo is undone as a command is.
//!
//! First everything that was not there goes, the deepest first; then what is missing or other is made, folders before what
//! is in them; then modes, owners, attributes and times are set, the deepest first. Each step finds out by itself whether it
//! is needed, so that what was cut off can be done again.

use super::content;
use super::journal::{Entry, Event, State};
use super::keep::{AFTER, BEFORE, Links, by_path, keep_as, read_nodes};
use super::look;
use super::node::{Kept, Kind, Node, Role};
use super::plan::{Cover, Plan, Target, Touch};
use super::store::FILES;
use super::store::{Hold, Store};
use super::surface;
use super::{UndoError, Watch};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

pub(super) type Nodes = BTreeMap<PathBuf, Node>;

/// The result of an undo.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Restored {
    /// The entry that undoes this undo.
    pub by: u64,
    /// Files, folders and links that were put back or made as they were.
    pub put_back: u64,
    /// Those that were not there before, and are gone again.
    pub removed: u64,
    /// The paths that could not be put back, and why.
    pub problems: Vec<(PathBuf, String)>,
}

/// Puts back what the command of an entry touched. With `force` also what changed since; that is kept as all is.
///
/// # Errors
/// If it cannot be undone, or what is there now cannot be kept: then nothing is changed. What cannot be put back while
/// others can is told in [`Restored::problems`], and the entry stays as it was.
pub fn restore(store: &Store, id: u64, force: bool, watch: &mut dyn Watch) -> Result<Restored, UndoError> {
    let mut entry = store.get(id)?;
    let place = store.place(id);
    let hold = Hold::take(&place)?.ok_or(UndoError::Busy(id))?;
    match entry.state {
        State::Undone(by) => return Err(UndoError::Already(id, by)),
        State::Planned => return Err(UndoError::Nothing),
        State::Ready | State::Ran(_) => {}
    }
    let (before, after) = (read_nodes(&place, BEFORE)?, read_nodes(&place, AFTER)?);
    let now = by_path(look::all(&entry.plan.targets)?);
    // An undo of the same that was cut off, or met what it could not put back, has left some of it half done: that is no
    // work of anybody's. What is there is kept once more in any case.
    let again = store.all()?.iter().any(|e| e.undoes == Some(id) && e.state.can_be_undone());
    let mut changed = changed(&entry, &before, &after, &now);
    if again {
        changed.retain(|path| now.get(path).is_some_and(|node| node.role == Role::Above));
    }
    if !changed.is_empty() && !force {
        return Err(UndoError::Changed(changed));
    }
    let keeping = keep_as(store, |by| reverse(&entry, by), Links::Singles, watch)?;
    let by = keeping.entry().id;
    let mut work = Work {
        id,
        files: place.join(FILES),
        now: &now,
        done: Restored { by, ..Restored::default() },
        joined: HashMap::new(),
        made: Vec::new(),
        force,
        watch,
    };
    work.remove(&before);
    work.make(&before);
    work.surfaces(&before, |node| again || after.get(&node.path).is_some_and(|then| unmoved(&now, then)));
    work.sync(&entry.plan.targets);
    let mut done = work.done;
    if let Err(stopped) = watch.step("put back") {
        done.problems.push((place.clone(), stopped.to_string()));
    }
    keeping.ended(0, watch)?;
    if done.problems.is_empty() {
        entry.note(Event::PutBack(by));
        entry.bytes = 0;
        entry.write(&place)?;
        let _ = fs::remove_dir_all(place.join(FILES));
        super::trash::take_out(&entry.trashed);
    }
    drop(hold);
    Ok(done)
}

/// Makes everything of these nodes where nothing of it is, out of files that are kept.
pub(super) fn place(files: &Path, id: u64, nodes: &Nodes, watch: &mut dyn Watch) -> Restored {
    let now = Nodes::new();
    let mut work = Work {
        id,
        files: files.to_path_buf(),
        now: &now,
        done: Restored::default(),
        joined: HashMap::new(),
        made: Vec::new(),
        force: false,
        watch,
    };
    work.make(nodes);
    work.surfaces(nodes, |_| false);
    work.done
}

/// True if a folder has the time that it had when the command ended.
fn unmoved(now: &Nodes, then: &Node) -> bool {
    now.get(&then.path).is_some_and(|now| now.modified == then.modified)
}

/// The record of the undo of an entry.
fn reverse(entry: &Entry, id: u64) -> Entry {
    let target = |t: &Target| {
        let touch = if t.whole() { Touch::Write } else { Touch::Surface };
        Target { path: t.path.clone(), touch, deep: t.deep }
    };
    let targets = entry.plan.targets.iter().map(target).collect();
    let plan = Plan::new(targets, Cover::Whole, Vec::new());
    let mut undo = Entry::new(id, &entry.command, &entry.cwd, plan);
    undo.undoes = Some(entry.id);
    undo
}

/// The paths that are neither as the command left them nor as they were before it.
fn changed(entry: &Entry, before: &Nodes, after: &Nodes, now: &Nodes) -> Vec<PathBuf> {
    let is = |nodes: &Nodes, node: &Node| match nodes.get(&node.path) {
        Some(then) => then.agrees(node),
        None => node.kind == Kind::Absent,
    };
    let mut changed = Vec::new();
    for node in now.values() {
        let ours = temporary_of(&node.path, entry.id);
        let other = match node.role {
            // a link in the place of a folder would lead elsewhere
            Role::Above => node.kind != Kind::Absent && node.kind != Kind::Folder,
            _ => matches!(entry.state, State::Ran(_)) && !is(after, node) && !is(before, node),
        };
        if other && !ours {
            changed.push(node.path.clone());
        }
    }
    if matches!(entry.state, State::Ran(_)) {
        let gone =
            |node: &&Node| node.role != Role::Above && node.kind != Kind::Absent && !now.contains_key(&node.path);
        let wanted = |node: &&Node| before.get(&node.path).is_some_and(|b| b.kind != Kind::Absent);
        changed.extend(after.values().filter(gone).filter(wanted).map(|node| node.path.clone()));
    }
    changed
}

/// The name of a file while it is being put back.
fn temporary(path: &Path, id: u64) -> PathBuf {
    let folder = path.parent().unwrap_or(Path::new("/"));
    folder.join(format!(".caro-undo-{id}.part"))
}

fn temporary_of(path: &Path, id: u64) -> bool {
    temporary(path, id) == path
}

struct Work<'a> {
    id: u64,
    files: PathBuf,
    now: &'a Nodes,
    done: Restored,
    /// Where files of several names were put back.
    joined: HashMap<(u64, u64), PathBuf>,
    /// Folders that were missing.
    made: Vec<PathBuf>,
    /// True if what changed since is put back, too.
    force: bool,
    watch: &'a mut dyn Watch,
}

impl Work<'_> {
    /// Takes a step, if it may be taken; what stands in its way is noted.
    fn step(&mut self, what: &'static str, path: &Path, act: impl FnOnce(&mut Self) -> io::Result<bool>) -> bool {
        let taken = self.watch.step(what).and_then(|()| act(self));
        match taken {
            Ok(changed) => changed,
            Err(e) => {
                self.done.problems.push((path.to_path_buf(), e.to_string()));
                false
            }
        }
    }

    /// Takes away what was not there, and what was something else.
    fn remove(&mut self, before: &Nodes) {
        let now = self.now;
        for node in now.values().rev().filter(|n| n.role == Role::Whole && n.kind != Kind::Absent) {
            let same = before.get(&node.path).is_some_and(|then| then.kind == node.kind && then.target == node.target);
            if same {
                continue;
            }
            let gone = self.step("remove", &node.path, |_| {
                in_folder(&node.path, || match node.kind {
                    Kind::Folder => fs::remove_dir(&node.path),
                    _ => fs::remove_file(&node.path),
                })?;
                Ok(true)
            });
            if gone && before.get(&node.path).is_none_or(|then| then.kind == Kind::Absent) {
                self.done.removed += 1;
            }
        }
    }

    /// Makes what is missing, and brings back the content of what is there.
    fn make(&mut self, before: &Nodes) {
        for node in before.values().filter(|node| node.kind != Kind::Absent) {
            let path = &node.path;
            let made = match (node.kind, node.role) {
                (Kind::Folder, _) => self.step("folder", path, |work| work.folder(node)),
                (_, Role::Above | Role::Surface) => false,
                (Kind::File, _) => self.step("put", path, |work| work.file(node)),
                (Kind::Link, _) => self.step("put", path, |_| link(node)),
                (Kind::Pipe | Kind::Socket | Kind::BlockDevice | Kind::Device, _) => {
                    self.step("put", path, |_| special(node))
                }
                (Kind::Absent, _) => false,
            };
            self.done.put_back += u64::from(made);
        }
    }

    fn folder(&mut self, node: &Node) -> io::Result<bool> {
        if fs::symlink_metadata(&node.path).is_ok() || node.role == Role::Surface {
            return Ok(false);
        }
        in_folder(&node.path, || fs::create_dir(&node.path))?;
        self.made.push(node.path.clone());
        Ok(true)
    }

    fn file(&mut self, node: &Node) -> io::Result<bool> {
        let Some(kept) = node.kept else { return Ok(false) };
        let source = self.files.join(kept.number().to_string());
        let there = look::node(&node.path, Role::Whole)?;
        let is_same = there.kind == Kind::File && (there.device, there.inode) == (node.device, node.inode);
        let changed = self.put(node, kept, &source, &there, is_same)?;
        if node.names > 1 {
            self.joined.entry((node.device, node.inode)).or_insert_with(|| node.path.clone());
        }
        Ok(changed)
    }

    fn put(&self, node: &Node, kept: Kept, source: &Path, there: &Node, is_same: bool) -> io::Result<bool> {
        let path = &node.path;
        let differs = |path: &Path| -> io::Result<bool> {
            let opened = with_read(path, || content::open(path))?;
            Ok(!content::same(&opened, &content::open(source)?)?)
        };
        if let Kept::Linked(_) = kept {
            if is_same {
                return Ok(false);
            }
            self.name(source, path, there).or_else(|_| self.copy(source, node))?;
            return Ok(true);
        }
        if is_same {
            if !differs(path)? {
                return Ok(false);
            }
            // its other names get back what they had, too
            let within = node.names > 1 && rewrite(source, path).is_ok();
            if !within {
                self.copy(source, node)?;
            }
            return Ok(true);
        }
        let held = node.held.map(|number| self.files.join(number.to_string()));
        let other = held.as_ref().or_else(|| self.joined.get(&(node.device, node.inode)));
        if let Some(other) = other
            // who changed the file under another name since keeps what was changed
            && !differs(other)?
            && self.name(other, path, there).is_ok()
        {
            return Ok(true);
        }
        if there.kind == Kind::File && !differs(path)? {
            return Ok(false);
        }
        self.copy(source, node)?;
        Ok(true)
    }

    /// Gives a file that name, in the place of what has it.
    fn name(&self, file: &Path, path: &Path, there: &Node) -> io::Result<()> {
        if there.kind == Kind::Absent {
            return in_folder(path, || fs::hard_link(file, path));
        }
        let temporary = temporary(path, self.id);
        in_folder(path, || {
            let _ = fs::remove_file(&temporary);
            fs::hard_link(file, &temporary)?;
            fs::rename(&temporary, path)?;
            // where both were the same file, nothing was renamed
            let _ = fs::remove_file(&temporary);
            Ok(())
        })
    }

    /// Writes a file whole, and puts it in its place.
    fn copy(&self, source: &Path, node: &Node) -> io::Result<()> {
        let path = &node.path;
        let temporary = temporary(path, self.id);
        in_folder(path, || {
            let _ = fs::remove_file(&temporary);
            let mut from = content::open(source)?;
            let mut to = content::create(&temporary)?;
            content::copy(&mut from, &mut to)?;
            to.sync_all()?;
            surface::set(&temporary, node)?;
            fs::rename(&temporary, path)
        })
    }

    /// Sets mode, owner, attributes and times. Of a folder on the way that was there all the time only its time, and only
    /// if `unmoved` says that nobody else changed it since.
    fn surfaces(&mut self, before: &Nodes, unmoved: impl Fn(&Node) -> bool) {
        for node in before.values().rev().filter(|node| node.kind != Kind::Absent) {
            let path = &node.path;
            if node.role == Role::Above && !self.made.contains(path) {
                if unmoved(node) {
                    self.step("time", path, |_| surface::set_times(path, node).map(|()| true));
                }
                continue;
            }
            self.step("surface", path, |work| {
                let there = look::node(path, node.role)?;
                if there.kind != node.kind {
                    return Err(io::Error::other("something else is in its place"));
                }
                // a file that was moved and written to since comes back as it is now
                let is_linked = matches!(node.kept, Some(Kept::Linked(_)));
                let written = (there.size, there.modified) != (node.size, node.modified);
                let modified = if work.force && is_linked && written { there.modified } else { node.modified };
                surface::set(path, &Node { modified, ..node.clone() }).map(|()| true)
            });
        }
    }

    /// Brings the folders of all targets to the disk.
    fn sync(&mut self, targets: &[Target]) {
        let folders: BTreeSet<&Path> = targets.iter().filter_map(|t| t.path.parent()).collect();
        for folder in folders {
            let _ = content::sync_folder(folder);
        }
    }
}

fn link(node: &Node) -> io::Result<bool> {
    let Some(target) = &node.target else { return Ok(false) };
    if fs::symlink_metadata(&node.path).is_ok() {
        return Ok(false);
    }
    in_folder(&node.path, || std::os::unix::fs::symlink(target, &node.path))?;
    Ok(true)
}

fn special(node: &Node) -> io::Result<bool> {
    if fs::symlink_metadata(&node.path).is_ok() {
        return Ok(false);
    }
    in_folder(&node.path, || surface::make_special(node))?;
    Ok(true)
}

/// Writes into the very file that is there.
fn rewrite(source: &Path, path: &Path) -> io::Result<()> {
    use std::os::unix::fs::OpenOptionsExt;
    let mut from = content::open(source)?;
    let flags = rustix::fs::OFlags::NOFOLLOW.bits();
    let mut to: File =
        File::options().write(true).truncate(true).custom_flags(i32::try_from(flags).unwrap_or_default()).open(path)?;
    content::copy(&mut from, &mut to)?;
    to.sync_all()
}

/// Does something in the folder of a path. A folder of ours that may not be written is opened up for that long.
fn in_folder(path: &Path, act: impl Fn() -> io::Result<()>) -> io::Result<()> {
    match act() {
        Err(e) if e.kind() == ErrorKind::PermissionDenied => {
            let folder = path.parent().ok_or(e)?;
            surface::opened(folder, 0o700, act)
        }
        done => done,
    }
}

/// Reads a file of ours that may not be read.
fn with_read<T>(path: &Path, act: impl Fn() -> io::Result<T>) -> io::Result<T> {
    match act() {
        Err(e) if e.kind() == ErrorKind::PermissionDenied => surface::opened(path, 0o400, act),
        done => done,
    }
}
