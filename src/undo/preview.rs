//! Builds the tree of files that a command would create, change and delete, with sizes, from a rehearsal or from the
//! command's text.

use super::look;
use super::node::{Kind, Role};
use super::plan::{Target, Touch};
use caro_exec::rehearse::{Change, ChangeKind, EntryKind};
use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};
use std::time::{Duration, Instant};

/// A change to a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mark {
    /// It is created.
    Created,
    /// It is changed.
    Changed,
    /// It is deleted, with its content.
    Deleted,
    /// It is unchanged and only contains changes.
    Around,
}

/// A line of the tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// The depth in the tree.
    pub depth: usize,
    /// Its name, ending with a slash for a folder. Folders with a single subfolder are joined into one name.
    pub name: String,
    /// The change to it.
    pub mark: Mark,
    /// Its present size in bytes; of a folder that of its content.
    pub before: Option<u64>,
    /// Its size afterwards in bytes.
    pub after: Option<u64>,
    /// The number of files in a deleted folder.
    pub files: u64,
}

/// One path of a preview.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    /// The absolute path.
    pub path: PathBuf,
    /// The change to it.
    pub mark: Mark,
    /// True for a folder.
    pub folder: bool,
    /// Its present size in bytes.
    pub before: Option<u64>,
    /// Its size afterwards in bytes.
    pub after: Option<u64>,
    /// The number of files in it if it is deleted.
    pub files: u64,
}

/// Returns the changes of a rehearsal with the present sizes, which are measured within the time limit.
pub fn of_changes(changes: &[Change], time: Duration) -> Vec<Item> {
    let deadline = Instant::now() + time;
    let shown = changes.iter().filter(|change| !change.time_only);
    let item = |change: &Change| {
        let path = change.place();
        let now = change.now.as_ref();
        let mark = match change.kind {
            ChangeKind::Created => Mark::Created,
            ChangeKind::Changed => Mark::Changed,
            ChangeKind::Deleted => Mark::Deleted,
        };
        let (bytes, files, folder) = if mark == Mark::Created { (None, 0, false) } else { measure(&path, deadline) };
        Item {
            mark,
            folder: now.map_or(folder, |entry| entry.kind == EntryKind::Folder),
            before: bytes,
            after: now.filter(|entry| entry.kind == EntryKind::File).map(|entry| entry.size),
            files,
            path,
        }
    };
    shown.map(item).collect()
}

/// Returns the changes that follow from the text of a command, likewise.
pub fn of_targets(targets: &[Target], time: Duration) -> Vec<Item> {
    let deadline = Instant::now() + time;
    let item = |target: &Target| {
        let (before, files, folder) = measure(&target.path, deadline);
        let exists = look::node(&target.path, Role::Surface).is_ok_and(|node| node.kind != Kind::Absent);
        let mark = match target.touch {
            Touch::Delete | Touch::Move if exists => Mark::Deleted,
            _ if exists => Mark::Changed,
            Touch::Delete | Touch::Surface => return None,
            _ => Mark::Created,
        };
        Some(Item { path: target.path.clone(), mark, folder, before, after: None, files })
    };
    targets.iter().filter_map(item).collect()
}

/// Returns the present bytes of a path, the number of files if it is a folder, and true if it is one.
fn measure(path: &Path, deadline: Instant) -> (Option<u64>, u64, bool) {
    let mut found = Vec::new();
    let whole = look::walk(&Target::new(path, Touch::Delete), Some(deadline), &mut found);
    let files = found.iter().filter(|node| node.kind == Kind::File);
    let (bytes, count) = files.fold((0, 0), |(bytes, count), node| (bytes + node.size, count + 1));
    let is_folder = found.first().is_some_and(|node| node.kind == Kind::Folder);
    (if matches!(whole, Ok(true)) { Some(bytes) } else { None }, if is_folder { count } else { 0 }, is_folder)
}

/// One node of the tree while it is built.
#[derive(Default)]
struct Branch<'a> {
    item: Option<&'a Item>,
    below: BTreeMap<String, Branch<'a>>,
}

/// Builds the tree of at most `most` lines; also returns the number of lines left out. Paths below `cwd` are relative
/// to it.
pub fn tree(items: &[Item], cwd: &Path, most: usize) -> (Vec<Row>, usize) {
    let mut root = Branch::default();
    for item in items {
        let (inside, path) = match item.path.strip_prefix(cwd) {
            Ok(path) => (true, path),
            Err(_) => (false, item.path.as_path()),
        };
        let mut at = &mut root;
        for part in path.components() {
            let name = match part {
                Component::Normal(name) => name.to_string_lossy().into_owned(),
                Component::RootDir if !inside => "/".to_owned(),
                _ => continue,
            };
            at = at.below.entry(name).or_default();
        }
        if path.as_os_str().is_empty() {
            at = at.below.entry(".".to_owned()).or_default();
        }
        at.item = Some(item);
    }
    let mut rows = Vec::new();
    rows_of(&root, 0, &mut rows);
    let left = rows.len().saturating_sub(most);
    rows.truncate(most);
    (rows, left)
}

fn rows_of(branch: &Branch<'_>, depth: usize, rows: &mut Vec<Row>) {
    for (name, mut inner) in &branch.below {
        let mut name = name.clone();
        while inner.item.is_none()
            && inner.below.len() == 1
            && let Some((next, only)) = inner.below.first_key_value()
        {
            name = if name == "/" { format!("/{next}") } else { format!("{name}/{next}") };
            inner = only;
        }
        let item = inner.item;
        if !name.ends_with('/') && item.is_none_or(|item| item.folder) {
            name.push('/');
        }
        rows.push(Row {
            depth,
            name,
            mark: item.map_or(Mark::Around, |item| item.mark),
            before: item.and_then(|item| item.before),
            after: item.and_then(|item| item.after),
            files: item.map_or(0, |item| item.files),
        });
        rows_of(inner, depth + 1, rows);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn item(path: &str, mark: Mark, folder: bool) -> Item {
        Item { path: path.into(), mark, folder, before: None, after: None, files: 0 }
    }

    #[test]
    fn a_tree_joins_single_folders_and_is_cut() {
        let items = [
            item("/w/src/deep/a.c", Mark::Changed, false),
            item("/w/src/deep/b.c", Mark::Deleted, false),
            item("/w/build", Mark::Deleted, true),
            item("/etc/x", Mark::Created, false),
        ];
        let (rows, left) = tree(&items, Path::new("/w"), 10);
        let lines: Vec<String> =
            rows.iter().map(|r| format!("{}{} {:?}", "  ".repeat(r.depth), r.name, r.mark)).collect();
        let want = ["/etc/x Created", "build/ Deleted", "src/deep/ Around", "  a.c Changed", "  b.c Deleted"];
        assert_eq!((lines.as_slice(), left), (want.map(str::to_owned).as_slice(), 0));
        let (rows, left) = tree(&items, Path::new("/w"), 2);
        assert_eq!((rows.len(), left), (2, 3));
    }

    proptest! {
        #[test]
        fn every_item_has_its_row(paths in prop::collection::btree_set("(/[ab]{1,2}){1,4}", 0..12)) {
            let items: Vec<Item> = paths.iter().map(|path| item(path, Mark::Created, false)).collect();
            let (rows, left) = tree(&items, Path::new("/a"), 1000);
            prop_assert_eq!(left, 0);
            prop_assert_eq!(rows.iter().filter(|row| row.mark == Mark::Created).count(), items.len());
        }
    }
}
