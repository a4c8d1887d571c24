//! Restores what a command touched, and saves the present state first: an undo can be undone like a command.
//!
//! First new paths are removed, deepest first; then missing or different ones are restored, folders before their
//! content; then modes, owners, attributes and times are set, deepest first. Each step checks if it is needed, so that
//! an interrupted undo can be repeated.

use super::content;
use super::journal::{Entry, Event, State};
use super::keep::{AFTER, BEFORE, Links, by_path, keep_as, read_nodes};
use super::look;
use super::node::{Kept, Kind, Node, Role};
use super::plan::{Cover, Plan, Target, Touch};
use super::store::FILES;
use super::store::{EntryLock, Store};
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
    /// The number of restored files, folders and links.
    pub put_back: u64,
    /// The number of new paths that were removed.
    pub removed: u64,
    /// The paths that could not be restored, with the reasons.
    pub problems: Vec<(PathBuf, String)>,
}

/// Restores what the command of an entry touched; with `force` also paths that changed since. The present state is
/// saved in any case.
///
/// # Errors
/// If it cannot be undone, or the present state cannot be saved; nothing is changed then. Single paths that cannot be
/// restored are listed in [`Restored::problems`], and the entry keeps its state.
pub fn restore(store: &Store, id: u64, force: bool, watch: &mut dyn Watch) -> Result<Restored, UndoError> {
    let mut entry = store.get(id)?;
    let place = store.place(id);
    let lock = EntryLock::acquire(&place)?.ok_or(UndoError::Busy(id))?;
    match entry.state {
        State::Undone(by) => return Err(UndoError::Already(id, by)),
        State::Planned => return Err(UndoError::Nothing),
        State::Ready | State::Ran(_) => {}
    }
    let (before, after) = (read_nodes(&place, BEFORE)?, read_nodes(&place, AFTER)?);
    let now = by_path(look::all_nodes(&entry.plan.targets)?);
    // Differences left by an earlier, incomplete undo of this entry do not count as changes by others. The present
    // state is saved once more in any case.
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
    let mut work = Restorer {
        id,
        files: place.join(FILES),
        now: &now,
        done: Restored { by, ..Restored::default() },
        relinked: HashMap::new(),
        made: Vec::new(),
        force,
        watch,
    };
    work.remove(&before);
    work.make(&before);
    work.surfaces(&before, |node| again || after.get(&node.path).is_some_and(|then| has_same_time(&now, then)));
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
        super::trash::remove_restored(&entry.trashed);
    }
    drop(lock);
    Ok(done)
}

/// Creates all these nodes, which must not exist, out of the saved files.
pub(super) fn create_all(files: &Path, id: u64, nodes: &Nodes, watch: &mut dyn Watch) -> Restored {
    let now = Nodes::new();
    let mut work = Restorer {
        id,
        files: files.to_path_buf(),
        now: &now,
        done: Restored::default(),
        relinked: HashMap::new(),
        made: Vec::new(),
        force: false,
        watch,
    };
    work.make(nodes);
    work.surfaces(nodes, |_| false);
    work.done
}

/// True if a folder has the same modification time as when the command ended.
fn has_same_time(now: &Nodes, then: &Node) -> bool {
    now.get(&then.path).is_some_and(|now| now.modified == then.modified)
}

/// Creates the record of the undo of an entry.
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

/// Returns the paths whose state is neither that after the command nor that before it.
fn changed(entry: &Entry, before: &Nodes, after: &Nodes, now: &Nodes) -> Vec<PathBuf> {
    let is = |nodes: &Nodes, node: &Node| match nodes.get(&node.path) {
        Some(then) => then.agrees(node),
        None => node.kind == Kind::Absent,
    };
    let mut changed = Vec::new();
    for node in now.values() {
        let ours = temporary_of(&node.path, entry.id);
        let other = match node.role {
            // a link in place of a folder would lead elsewhere
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

/// Returns the temporary name of a file while it is being restored.
fn temporary(path: &Path, id: u64) -> PathBuf {
    let folder = path.parent().unwrap_or(Path::new("/"));
    folder.join(format!(".caro-undo-{id}.part"))
}

fn temporary_of(path: &Path, id: u64) -> bool {
    temporary(path, id) == path
}

/// Restores the nodes of one entry.
struct Restorer<'a> {
    id: u64,
    files: PathBuf,
    now: &'a Nodes,
    done: Restored,
    /// The restored paths of files with several names.
    relinked: HashMap<(u64, u64), PathBuf>,
    /// The folders that were created.
    made: Vec<PathBuf>,
    /// True if paths that changed since are restored, too.
    force: bool,
    watch: &'a mut dyn Watch,
}

impl Restorer<'_> {
    /// Takes a step if the watch allows it; records errors as problems.
    fn step(&mut self, what: &'static str, path: &Path, act: impl FnOnce(&mut Self) -> io::Result<bool>) -> bool {
        let result = self.watch.step(what).and_then(|()| act(self));
        match result {
            Ok(changed) => changed,
            Err(e) => {
                self.done.problems.push((path.to_path_buf(), e.to_string()));
                false
            }
        }
    }

    /// Removes paths that did not exist before or were of another kind.
    fn remove(&mut self, before: &Nodes) {
        let now = self.now;
        for node in now.values().rev().filter(|n| n.role == Role::Whole && n.kind != Kind::Absent) {
            let same = before.get(&node.path).is_some_and(|then| then.kind == node.kind && then.target == node.target);
            if same {
                continue;
            }
            let removed = self.step("remove", &node.path, |_| {
                in_folder(&node.path, || match node.kind {
                    Kind::Folder => fs::remove_dir(&node.path),
                    _ => fs::remove_file(&node.path),
                })?;
                Ok(true)
            });
            if removed && before.get(&node.path).is_none_or(|then| then.kind == Kind::Absent) {
                self.done.removed += 1;
            }
        }
    }

    /// Creates missing paths and restores the content of existing ones.
    fn make(&mut self, before: &Nodes) {
        for node in before.values().filter(|node| node.kind != Kind::Absent) {
            let path = &node.path;
            let made = match (node.kind, node.role) {
                (Kind::Folder, _) => self.step("folder", path, |work| work.folder(node)),
                (_, Role::Above | Role::Surface) => false,
                (Kind::File, _) => self.step("put", path, |work| work.file(node)),
                (Kind::Link, _) => self.step("put", path, |_| symlink(node)),
                (Kind::Pipe | Kind::Socket | Kind::BlockDevice | Kind::Device, _) => {
                    self.step("put", path, |_| special(node))
                }
                (Kind::Absent, _) => false,
            };
            self.done.put_back += u64::from(made);
        }
    }

    /// Creates a missing folder; true if it did.
    fn folder(&mut self, node: &Node) -> io::Result<bool> {
        if fs::symlink_metadata(&node.path).is_ok() || node.role == Role::Surface {
            return Ok(false);
        }
        in_folder(&node.path, || fs::create_dir(&node.path))?;
        self.made.push(node.path.clone());
        Ok(true)
    }

    /// Restores a file; true if anything was changed.
    fn file(&mut self, node: &Node) -> io::Result<bool> {
        let Some(kept) = node.kept else { return Ok(false) };
        let source = self.files.join(kept.number().to_string());
        let current = look::node(&node.path, Role::Whole)?;
        let is_same = current.kind == Kind::File && (current.device, current.inode) == (node.device, node.inode);
        let changed = self.restore_content(node, kept, &source, &current, is_same)?;
        if node.names > 1 {
            self.relinked.entry((node.device, node.inode)).or_insert_with(|| node.path.clone());
        }
        Ok(changed)
    }

    /// Restores the content of a file from `source`. `is_same` is true if the path is still the same inode.
    fn restore_content(
        &self,
        node: &Node,
        kept: Kept,
        source: &Path,
        current: &Node,
        is_same: bool,
    ) -> io::Result<bool> {
        let path = &node.path;
        let differs = |path: &Path| -> io::Result<bool> {
            let opened = with_read(path, || content::open(path))?;
            Ok(!content::same(&opened, &content::open(source)?)?)
        };
        if let Kept::Linked(_) = kept {
            if is_same {
                return Ok(false);
            }
            self.link(source, path, current).or_else(|_| self.copy(source, node))?;
            return Ok(true);
        }
        if is_same {
            if !differs(path)? {
                return Ok(false);
            }
            // writing in place restores the content under its other names, too
            let in_place = node.names > 1 && rewrite(source, path).is_ok();
            if !in_place {
                self.copy(source, node)?;
            }
            return Ok(true);
        }
        let held = node.held.map(|number| self.files.join(number.to_string()));
        let other = held.as_ref().or_else(|| self.relinked.get(&(node.device, node.inode)));
        if let Some(other) = other
            // a change made under another name since then is preserved
            && !differs(other)?
            && self.link(other, path, current).is_ok()
        {
            return Ok(true);
        }
        if current.kind == Kind::File && !differs(path)? {
            return Ok(false);
        }
        self.copy(source, node)?;
        Ok(true)
    }

    /// Links a file to a path, replacing what exists there.
    fn link(&self, file: &Path, path: &Path, current: &Node) -> io::Result<()> {
        if current.kind == Kind::Absent {
            return in_folder(path, || fs::hard_link(file, path));
        }
        let temporary = temporary(path, self.id);
        in_folder(path, || {
            let _ = fs::remove_file(&temporary);
            fs::hard_link(file, &temporary)?;
            fs::rename(&temporary, path)?;
            // if both are links to the same file, the rename did nothing
            let _ = fs::remove_file(&temporary);
            Ok(())
        })
    }

    /// Replaces a file atomically with a copy.
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

    /// Sets mode, owner, attributes and times. Of an existing folder above the targets only the times are set, and
    /// only if `is_unmodified` says that nothing else has changed it since.
    fn surfaces(&mut self, before: &Nodes, is_unmodified: impl Fn(&Node) -> bool) {
        for node in before.values().rev().filter(|node| node.kind != Kind::Absent) {
            let path = &node.path;
            if node.role == Role::Above && !self.made.contains(path) {
                if is_unmodified(node) {
                    self.step("time", path, |_| surface::set_times(path, node).map(|()| true));
                }
                continue;
            }
            self.step("surface", path, |work| {
                let current = look::node(path, node.role)?;
                if current.kind != node.kind {
                    return Err(io::Error::other("something else is in its place"));
                }
                // a moved file that was written to since then keeps its content and time
                let is_linked = matches!(node.kept, Some(Kept::Linked(_)));
                let written = (current.size, current.modified) != (node.size, node.modified);
                let modified = if work.force && is_linked && written { current.modified } else { node.modified };
                surface::set(path, &Node { modified, ..node.clone() }).map(|()| true)
            });
        }
    }

    /// Syncs the folders of all targets to the disk.
    fn sync(&mut self, targets: &[Target]) {
        let folders: BTreeSet<&Path> = targets.iter().filter_map(|t| t.path.parent()).collect();
        for folder in folders {
            let _ = content::sync_folder(folder);
        }
    }
}

/// Creates a missing symbolic link; true if it did.
fn symlink(node: &Node) -> io::Result<bool> {
    let Some(target) = &node.target else { return Ok(false) };
    if fs::symlink_metadata(&node.path).is_ok() {
        return Ok(false);
    }
    in_folder(&node.path, || std::os::unix::fs::symlink(target, &node.path))?;
    Ok(true)
}

/// Creates a missing pipe or device; true if it did.
fn special(node: &Node) -> io::Result<bool> {
    if fs::symlink_metadata(&node.path).is_ok() {
        return Ok(false);
    }
    in_folder(&node.path, || surface::make_special(node))?;
    Ok(true)
}

/// Overwrites an existing file in place.
fn rewrite(source: &Path, path: &Path) -> io::Result<()> {
    use std::os::unix::fs::OpenOptionsExt;
    let mut from = content::open(source)?;
    let flags = rustix::fs::OFlags::NOFOLLOW.bits();
    let mut to: File =
        File::options().write(true).truncate(true).custom_flags(i32::try_from(flags).unwrap_or_default()).open(path)?;
    content::copy(&mut from, &mut to)?;
    to.sync_all()
}

/// Runs `act` in the folder of a path, which is temporarily made writable if necessary.
fn in_folder(path: &Path, act: impl Fn() -> io::Result<()>) -> io::Result<()> {
    match act() {
        Err(e) if e.kind() == ErrorKind::PermissionDenied => {
            let folder = path.parent().ok_or(e)?;
            surface::with_rights(folder, 0o700, act)
        }
        done => done,
    }
}

/// Reads a file, which is temporarily made readable if necessary.
fn with_read<T>(path: &Path, act: impl Fn() -> io::Result<T>) -> io::Result<T> {
    match act() {
        Err(e) if e.kind() == ErrorKind::PermissionDenied => surface::with_rights(path, 0o400, act),
        done => done,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Limits, keep};
    use std::process::Command;
    use std::time::{Duration, SystemTime};

    /// Runs git in a folder, without the settings of the user; false if there is no git or it fails.
    fn git(folder: &Path, args: &[&str]) -> bool {
        let mut git = Command::new("git");
        git.arg("-C").arg(folder).args(["-c", "user.name=x", "-c", "user.email=x@example.org"]).args(args);
        git.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_SYSTEM", "/dev/null");
        git.output().is_ok_and(|output| output.status.success())
    }

    /// Has git write down new times of the files in its index, as a prompt does that shows the state of a repository.
    fn look_at_status(top: &Path, seconds: u64) {
        let index = top.join(".git/index");
        let before = fs::read(&index).unwrap();
        let time = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000 + seconds);
        File::options().append(true).open(top.join("other")).unwrap().set_modified(time).unwrap();
        assert!(git(top, &["status", "-s"]));
        assert_ne!(fs::read(&index).unwrap(), before, "git wrote nothing");
    }

    #[test]
    fn a_look_at_a_repository_does_not_prevent_an_undo_nor_its_undo() {
        let dir = tempfile::tempdir().unwrap();
        let top = dir.path().canonicalize().unwrap().join("w");
        fs::create_dir(&top).unwrap();
        for name in ["changed", "other"] {
            fs::write(top.join(name), "first\n").unwrap();
        }
        if !git(&top, &["init", "-q"]) {
            println!("skipped: there is no git");
            return;
        }
        assert!(git(&top, &["add", "."]) && git(&top, &["commit", "-q", "-m", "first"]));
        fs::write(top.join("changed"), "second and longer\n").unwrap();
        let text = || fs::read_to_string(top.join("changed")).unwrap();
        let store = Store::new(dir.path().join("store"), Limits::default());
        let plan = Plan::new(
            vec![Target { path: top.clone(), touch: Touch::Write, deep: true }],
            Cover::Rehearsed,
            Vec::new(),
        );
        let keeping = keep(&store, "git stash", &top, plan, &mut ()).unwrap();
        let id = keeping.entry().id;
        assert!(git(&top, &["stash"]));
        keeping.ended(0, &mut ()).unwrap();
        fs::write(top.join("later"), "").unwrap();
        assert!(
            matches!(restore(&store, id, false, &mut ()), Err(UndoError::Changed(paths)) if paths == [top.join("later")])
        );
        fs::remove_file(top.join("later")).unwrap();
        let stashed = fs::metadata(top.join("other")).unwrap().modified().unwrap();
        look_at_status(&top, 1);
        File::options().append(true).open(top.join("other")).unwrap().set_modified(stashed).unwrap();
        let undone = restore(&store, id, false, &mut ()).unwrap();
        assert_eq!((undone.problems.len(), text().as_str()), (0, "second and longer\n"));
        assert!(!git(&top, &["rev-parse", "--verify", "-q", "refs/stash"]));
        look_at_status(&top, 2);
        File::options().append(true).open(top.join("other")).unwrap().set_modified(stashed).unwrap();
        let again = restore(&store, undone.by, false, &mut ()).unwrap();
        assert_eq!((again.problems.len(), text().as_str()), (0, "first\n"));
        // something new in the index is a change
        fs::write(top.join("changed"), "third\n").unwrap();
        assert!(git(&top, &["add", "changed"]));
        fs::write(top.join("changed"), "first\n").unwrap();
        match restore(&store, again.by, false, &mut ()) {
            Err(UndoError::Changed(paths)) => assert!(paths.contains(&top.join(".git/index")), "{paths:?}"),
            other => panic!("{other:?}"),
        }
    }
}
