//! Saves the files that a command will touch before it runs, and records the state after it.

use super::content;
use super::journal::{Entry, Event};
use super::look;
use super::node::{Kept, Kind, Node, Role};
use super::plan::Plan;
use super::store::{EntryLock, FILES, Store};
use super::{MAX_FILES, UndoError, Watch};
use rustix::fs::Access;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs::{self, DirBuilder, File};
use std::io::{self, BufRead, BufReader, BufWriter, ErrorKind, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

/// The file of the nodes before the command, one per line.
pub(super) const BEFORE: &str = "before.jsonl";
/// The file of the nodes after it.
pub(super) const AFTER: &str = "after.jsonl";
/// Most bytes read of either.
const MAX_BYTES: u64 = 1 << 30;
/// Bytes left free on the disk.
const RESERVE: u64 = 16 << 20;
/// Bytes that the record of one file takes, about.
const RECORD: u64 = 1 << 10;
/// Most copies that are synced one by one; more are synced all at once.
const MAX_SINGLE_SYNCS: u64 = 32;

/// The files that are saved as hard links.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Links {
    /// All, because none is written to.
    All,
    /// Files with a single name, because only files with several names are written to.
    Singles,
    /// None.
    None,
}

impl Links {
    fn of(plan: &Plan) -> Self {
        if plan.only_renames() { Self::All } else { Self::None }
    }

    fn allow(self, node: &Node) -> bool {
        match self {
            Self::All => true,
            Self::Singles => node.names == 1,
            Self::None => false,
        }
    }
}

/// The amount of data that would have to be saved.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Demand {
    /// The number of existing files, folders and links.
    pub count: u64,
    /// The bytes of files that would be saved, including links and clones.
    pub bytes: u64,
    /// The bytes of these that would be copied if the file system has no clones.
    pub copies: u64,
}

impl Demand {
    /// Returns the demand of these nodes, saved on the file system `device`.
    pub(super) fn of(nodes: &[Node], links: Links, device: u64) -> Self {
        let mut demand = Self::default();
        let mut known = HashSet::new();
        for node in nodes.iter().filter(|node| node.role != Role::Above && node.kind != Kind::Absent) {
            demand.count += 1;
            if node.role != Role::Whole || node.kind != Kind::File || !known.insert((node.device, node.inode)) {
                continue;
            }
            demand.bytes += node.room;
            if !(links.allow(node) && node.device == device) {
                demand.copies += node.room;
            }
        }
        demand
    }
}

/// Returns the current demand of a plan.
///
/// # Errors
/// If something cannot be read, or there are too many files.
pub fn demand(store: &Store, plan: &Plan) -> Result<Demand, UndoError> {
    let nodes = look::all_nodes(&plan.targets)?;
    Ok(Demand::of(&nodes, Links::of(plan), device_of(store.folder())))
}

/// Checks that a plan does not touch the folder of the store, which need not exist yet.
///
/// # Errors
/// [`UndoError::Itself`] if it does.
pub fn check_own(store: &Store, plan: &Plan) -> Result<(), UndoError> {
    let folder = store.folder();
    let existing = folder.ancestors().find_map(|above| Some((above, above.canonicalize().ok()?)));
    let own = existing.map_or_else(
        || folder.to_path_buf(),
        |(above, real)| {
            folder.strip_prefix(above).map_or(real.clone(), |rest| real.components().chain(rest.components()).collect())
        },
    );
    if plan.targets.iter().any(|t| own.starts_with(&t.path) && t.deep || t.path.starts_with(&own)) {
        return Err(UndoError::Itself(own));
    }
    Ok(())
}

/// Checks that this much can be saved now: that the folder of the store is there or can be made, and has the room. It
/// changes nothing; [`Store::sweep`] may make room.
///
/// # Errors
/// If it cannot be saved. Even without one [`keep`] may fail later.
pub fn check_room(store: &Store, demand: &Demand) -> Result<(), UndoError> {
    let folder = store.folder();
    let existing = folder.ancestors().find(|path| path.symlink_metadata().is_ok()).unwrap_or(folder);
    if !existing.is_dir() {
        return Err(UndoError::writing(existing, ErrorKind::NotADirectory.into()));
    }
    let writes = Access::WRITE_OK | Access::EXEC_OK;
    rustix::fs::access(existing, writes).map_err(|e| UndoError::writing(existing, e.into()))?;
    let needed = match demand.copies {
        copies if copies > 0 && !store.clones() => copies.saturating_add(RESERVE),
        _ => demand.count.saturating_mul(RECORD),
    };
    match free(existing) {
        free if free < needed => Err(UndoError::Full(format!("{free} bytes are free, and {needed} are needed"))),
        _ => Ok(()),
    }
}

/// Returns the file system of the nearest existing folder.
fn device_of(folder: &Path) -> u64 {
    folder.ancestors().find_map(|folder| fs::metadata(folder).ok()).map_or(0, |meta| meta.dev())
}

/// A command whose files are saved and that has not ended.
#[derive(Debug)]
pub struct Keeping {
    store: Store,
    entry: Entry,
    before: BTreeMap<PathBuf, Node>,
    lock: EntryLock,
}

impl Keeping {
    /// Returns its record.
    pub fn entry(&self) -> &Entry {
        &self.entry
    }

    /// Records the exit code of the command and the state after it. `None`, and everything saved is deleted, if the
    /// command changed nothing of its plan.
    ///
    /// # Errors
    /// If that cannot be written. The command can be undone all the same.
    pub fn ended(mut self, code: i32, watch: &mut dyn Watch) -> Result<Option<Entry>, UndoError> {
        let place = self.store.place(self.entry.id);
        let after: BTreeMap<PathBuf, Node> = by_path(look::all_nodes(&self.entry.plan.targets)?);
        if is_unchanged(&self.before, &after) {
            drop(self.lock);
            self.store.remove(self.entry.id)?;
            return Ok(None);
        }
        watch.step("after").map_err(|e| UndoError::writing(&place, e))?;
        write_nodes(&place, AFTER, after.values())?;
        watch.step("ran").map_err(|e| UndoError::writing(&place, e))?;
        self.entry.note(Event::Ended(code));
        self.entry.write(&place)?;
        Ok(Some(self.entry))
    }

    /// Deletes everything saved, because the command did not run.
    pub fn dropped(self) {
        drop(self.lock);
        let _ = self.store.remove(self.entry.id);
    }
}

/// True if no node has changed.
fn is_unchanged(before: &BTreeMap<PathBuf, Node>, after: &BTreeMap<PathBuf, Node>) -> bool {
    let count = |nodes: &BTreeMap<PathBuf, Node>| nodes.values().filter(|n| n.role != Role::Above).count();
    let same = |node: &Node| after.get(&node.path).is_some_and(|now| now.agrees(node) && now.modified == node.modified);
    count(before) == count(after) && before.values().filter(|n| n.role != Role::Above).all(same)
}

/// Saves everything that a command will touch, and syncs it to the disk.
///
/// # Errors
/// If this fails, nothing is saved, and the command should not run unless the user agrees.
pub fn keep(store: &Store, command: &str, cwd: &Path, plan: Plan, watch: &mut dyn Watch) -> Result<Keeping, UndoError> {
    let links = Links::of(&plan);
    keep_as(store, |id| Entry::new(id, command, cwd, plan), links, watch)
}

/// Does the work of [`keep`] for a record that is created from its number.
pub(super) fn keep_as(
    store: &Store,
    entry: impl FnOnce(u64) -> Entry,
    links: Links,
    watch: &mut dyn Watch,
) -> Result<Keeping, UndoError> {
    let (id, lock) = store.reserve()?;
    let place = store.place(id);
    let mut entry = entry(id);
    match save(store, &place, &mut entry, links, watch) {
        Ok(before) => Ok(Keeping { store: store.clone(), entry, before, lock }),
        Err(why) => {
            drop(lock);
            let _ = store.remove(id);
            Err(why)
        }
    }
}

/// Writes the record and saves its files in the folder `place`; returns the nodes before the command.
fn save(
    store: &Store,
    place: &Path,
    entry: &mut Entry,
    links: Links,
    watch: &mut dyn Watch,
) -> Result<BTreeMap<PathBuf, Node>, UndoError> {
    let failed = |e| UndoError::writing(place, e);
    let own = store.folder().canonicalize().map_err(failed)?;
    check_own(store, &entry.plan)?;
    watch.step("plan").map_err(failed)?;
    entry.write(place)?;
    let mut nodes = look::all_nodes(&entry.plan.targets)?;
    let device = fs::metadata(&own).map_err(failed)?.dev();
    if nodes.iter().any(|node| node.kind == Kind::File && node.names > 1) {
        let own_names = store.names();
        for node in nodes.iter_mut().filter(|node| node.device == device) {
            let in_store = own_names.get(&node.inode).copied().unwrap_or_default();
            node.names = node.names.saturating_sub(in_store).max(1);
        }
    }
    let demand = Demand::of(&nodes, links, device);
    let limits = store.limits();
    if demand.bytes > limits.total {
        return Err(UndoError::TooLarge { needed: demand.bytes, most: limits.total });
    }
    store.sweep(demand.bytes);
    let files = place.join(FILES);
    DirBuilder::new().mode(0o700).create(&files).map_err(failed)?;
    let mut keeper = Keeper {
        files: &files,
        links,
        next: 1,
        copied: 0,
        most: limits.copies,
        sync_count: demand.count,
        known: HashMap::new(),
    };
    for node in nodes.iter_mut().filter(|node| node.role == Role::Whole && node.kind == Kind::File) {
        watch.step("file").map_err(failed)?;
        keeper.file(node)?;
    }
    watch.step("nodes").map_err(failed)?;
    write_nodes(place, BEFORE, nodes.iter())?;
    keeper.sync().map_err(failed)?;
    entry.count = demand.count;
    entry.bytes = demand.bytes;
    watch.step("ready").map_err(failed)?;
    entry.note(Event::Kept);
    entry.write(place)?;
    content::sync_folder(store.folder()).map_err(failed)?;
    watch.step("kept").map_err(failed)?;
    Ok(by_path(nodes))
}

/// Saves the files of one command.
struct Keeper<'a> {
    files: &'a Path,
    links: Links,
    next: u64,
    /// The bytes copied so far.
    copied: u64,
    /// Most bytes that may be copied.
    most: u64,
    /// The number of files to sync.
    sync_count: u64,
    /// The saved contents of files with several names.
    known: HashMap<(u64, u64), (Option<Kept>, Option<u64>)>,
}

impl Keeper<'_> {
    /// Saves one file.
    fn file(&mut self, node: &mut Node) -> Result<(), UndoError> {
        let key = (node.device, node.inode);
        if let Some((kept, held)) = self.known.get(&key) {
            (node.kept, node.held) = (*kept, *held);
            return Ok(());
        }
        if self.links.allow(node)
            && let Some(number) = self.link(node)?
        {
            node.kept = Some(Kept::Linked(number));
        } else {
            node.kept = Some(Kept::Copied(self.copy(node)?));
            if node.names > 1 {
                node.held = self.link(node)?;
            }
        }
        if node.names > 1 {
            self.known.insert(key, (node.kept, node.held));
        }
        Ok(())
    }

    /// Returns the next number and its path.
    fn number(&mut self) -> (u64, PathBuf) {
        let number = self.next;
        self.next += 1;
        (number, self.files.join(number.to_string()))
    }

    /// Creates a hard link to the file; `None` if the system refuses: across file systems, or for another user's file.
    fn link(&mut self, node: &Node) -> Result<Option<u64>, UndoError> {
        let (number, path) = self.number();
        match fs::hard_link(&node.path, &path) {
            Ok(()) => {}
            Err(e) if no_room(&e) => return Err(UndoError::writing(self.files, e)),
            Err(_) => return Ok(None),
        }
        let meta = fs::symlink_metadata(&path).map_err(|e| UndoError::writing(self.files, e))?;
        if (meta.dev(), meta.ino()) != (node.device, node.inode) {
            return Err(UndoError::unreadable(&node.path, changed()));
        }
        Ok(Some(number))
    }

    /// Copies or clones the file.
    fn copy(&mut self, node: &Node) -> Result<u64, UndoError> {
        let unreadable = |e| UndoError::unreadable(&node.path, e);
        let failed = |e| UndoError::writing(self.files, e);
        let mut from = content::open(&node.path).map_err(unreadable)?;
        let meta = from.metadata().map_err(unreadable)?;
        if (meta.dev(), meta.ino()) != (node.device, node.inode) {
            return Err(unreadable(changed()));
        }
        let number = self.next;
        let mut to = content::create(&self.files.join(number.to_string())).map_err(failed)?;
        // a clone needs no space, but whether cloning works is only known after trying
        let needed = self.copied.saturating_add(node.room);
        let has_room = needed <= self.most && free(self.files) >= node.room.saturating_add(RESERVE);
        if has_room {
            if !content::copy(&mut from, &mut to).map_err(failed)? {
                self.copied = needed;
            }
        } else if !content::clone(&from, &to) {
            return Err(if needed > self.most {
                UndoError::TooLarge { needed, most: self.most }
            } else {
                UndoError::Full(format!("{} bytes are free, and {} are needed", free(self.files), node.room))
            });
        }
        if self.sync_count <= MAX_SINGLE_SYNCS {
            to.sync_all().map_err(failed)?;
        }
        self.next += 1;
        Ok(number)
    }

    /// Syncs all files to the disk.
    fn sync(&self) -> io::Result<()> {
        if self.sync_count > MAX_SINGLE_SYNCS {
            sync_many(self.files)?;
        }
        content::sync_folder(self.files)
    }
}

#[cfg(target_os = "linux")]
fn sync_many(folder: &Path) -> io::Result<()> {
    Ok(rustix::fs::syncfs(File::open(folder)?)?)
}

#[cfg(not(target_os = "linux"))]
fn sync_many(folder: &Path) -> io::Result<()> {
    fs::read_dir(folder)?.try_for_each(|entry| File::open(entry?.path())?.sync_all())
}

/// Returns the bytes free for this user; the maximum if unknown.
fn free(folder: &Path) -> u64 {
    rustix::fs::statvfs(folder).map_or(u64::MAX, |disk| disk.f_bavail.saturating_mul(disk.f_frsize))
}

fn no_room(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded)
}

fn changed() -> io::Error {
    io::Error::other("it changed while it was kept")
}

pub(super) fn by_path(nodes: Vec<Node>) -> BTreeMap<PathBuf, Node> {
    nodes.into_iter().map(|node| (node.path.clone(), node)).collect()
}

fn write_nodes<'n>(place: &Path, name: &str, nodes: impl Iterator<Item = &'n Node>) -> Result<(), UndoError> {
    let failed = |e: io::Error| UndoError::writing(place, e);
    let path = place.join(name);
    // a file of an interrupted attempt is useless
    let _ = fs::remove_file(&path);
    let mut to = BufWriter::new(content::create(&path).map_err(failed)?);
    for node in nodes {
        serde_json::to_writer(&mut to, node).map_err(|e| failed(e.into()))?;
        to.write_all(b"\n").map_err(failed)?;
    }
    let file = to.into_inner().map_err(|e| failed(e.into_error()))?;
    file.sync_all().map_err(failed)?;
    content::sync_folder(place).map_err(failed)
}

/// Reads the nodes in a file; empty if it does not exist.
pub(super) fn read_nodes(place: &Path, name: &str) -> Result<BTreeMap<PathBuf, Node>, UndoError> {
    let path = place.join(name);
    let damaged = |why: String| UndoError::Damaged { path: path.clone(), why };
    let file = match File::open(&path) {
        Ok(file) => file,
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(BTreeMap::new()),
        Err(e) => return Err(damaged(e.to_string())),
    };
    let mut nodes = Vec::new();
    for line in BufReader::new(file.take(MAX_BYTES)).lines() {
        let line = line.map_err(|e| damaged(e.to_string()))?;
        nodes.push(serde_json::from_str(&line).map_err(|e| damaged(e.to_string()))?);
        if nodes.len() > 2 * MAX_FILES {
            return Err(damaged("it has too many lines".into()));
        }
    }
    Ok(by_path(nodes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Limits;

    #[test]
    fn a_plan_that_touches_the_folder_of_undo_is_known_before_that_exists() {
        use crate::plan::{Cover, Target, Touch};
        let dir = tempfile::tempdir().unwrap();
        let home = dir.path().canonicalize().unwrap();
        std::os::unix::fs::symlink(&home, home.join("link")).unwrap();
        let check = |path: PathBuf, touch| {
            let plan = Plan::new(vec![Target::new(path, touch)], Cover::Whole, Vec::new());
            check_own(&Store::new(home.join("link/data/undo"), Limits::default()), &plan)
        };
        for _ in ["absent", "there"] {
            for path in [home.clone(), home.join("data"), home.join("data/undo"), home.join("data/undo/7")] {
                let is_known = matches!(check(path.clone(), Touch::Delete), Err(UndoError::Itself(own)) if own == home.join("data/undo"));
                assert!(is_known, "{path:?}");
            }
            for (path, touch) in [("data/un", Touch::Delete), ("data/other", Touch::Delete), ("data", Touch::Surface)] {
                assert!(check(home.join(path), touch).is_ok(), "{path}");
            }
            fs::create_dir_all(home.join("data/undo")).unwrap();
        }
    }

    #[test]
    fn what_cannot_be_saved_is_known_beforehand() {
        let dir = tempfile::tempdir().unwrap();
        let checked = |folder: &str, copies| {
            check_room(
                &Store::new(dir.path().join(folder), Limits::default()),
                &Demand { count: 1, bytes: copies, copies },
            )
        };
        assert!(checked("caro/undo", 1).is_ok() && !dir.path().join("caro").exists(), "nothing is made");
        let most = u64::MAX / 2;
        let is_full = matches!(checked("caro/undo", most), Err(UndoError::Full(_)));
        assert!(is_full || Store::new(dir.path(), Limits::default()).clones());
        fs::create_dir_all(dir.path().join("old/7")).unwrap();
        assert!(checked("old", most).is_err() == is_full && dir.path().join("old/7").exists(), "nothing is swept");
        fs::write(dir.path().join("file"), "").unwrap();
        assert!(matches!(checked("file/undo", 1), Err(UndoError::Folder { .. })));
        std::os::unix::fs::symlink("nowhere", dir.path().join("link")).unwrap();
        assert!(matches!(checked("link/undo", 0), Err(UndoError::Folder { .. })));
        if !rustix::process::geteuid().is_root() {
            fs::create_dir(dir.path().join("closed")).unwrap();
            fs::set_permissions(dir.path().join("closed"), std::os::unix::fs::PermissionsExt::from_mode(0o555))
                .unwrap();
            assert!(matches!(checked("closed/undo", 0), Err(UndoError::Folder { .. })));
        }
    }
}
