//! Puts deleted files into the desktop's trash, out of their saved copies. Source: the Desktop Trash Can specification
//! 1.0 of freedesktop.org; of its locations only the trash in the home folder is used.

use super::content;
use super::journal::{Entry, Trashed};
use super::keep::{BEFORE, read_nodes};
use super::node::{Kind, Node, Role};
use super::plan::Touch;
use super::restore::{Nodes, create_all};
use super::store::FILES;
use super::store::Store;
use super::{UndoError, Watch};
use std::fs::{self, DirBuilder};
use std::io::{self, ErrorKind, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// Most names tried for one item.
const MAX_TRIES: u32 = 10_000;

/// Puts the files that the command of an entry deleted into the trash folder; returns the number of items.
///
/// # Errors
/// If the trash cannot be written. The saved files stay in any case.
pub fn to_trash(store: &Store, mut entry: Entry, trash: &Path, watch: &mut dyn Watch) -> Result<usize, UndoError> {
    let failed = |e| UndoError::writing(trash, e);
    let kept = store.place(entry.id);
    let before = read_nodes(&kept, BEFORE)?;
    for folder in ["files", "info"] {
        DirBuilder::new().recursive(true).mode(0o700).create(trash.join(folder)).map_err(failed)?;
    }
    let mut trashed = Vec::new();
    for target in entry.plan.targets.iter().filter(|target| target.touch == Touch::Delete) {
        let existed = before.get(&target.path).is_some_and(|node| node.kind != Kind::Absent);
        if !existed || fs::symlink_metadata(&target.path).is_ok() {
            continue;
        }
        let (info, file) = reserve(trash, &target.path).map_err(failed)?;
        let done = create_all(&kept.join(FILES), entry.id, &rebase(&before, &target.path, &file), watch);
        if let Some((path, why)) = done.problems.first() {
            // a partial item would look complete
            let _ = fs::remove_dir_all(&file).or_else(|_| fs::remove_file(&file));
            let _ = fs::remove_file(info);
            return Err(UndoError::writing(path, io::Error::other(why.clone())));
        }
        trashed.push(Trashed { file, info });
    }
    entry.trashed = trashed;
    entry.write(&kept)?;
    Ok(entry.trashed.len())
}

/// Removes restored items from the trash, where they would be second links to the same files.
pub(super) fn remove_restored(trashed: &[Trashed]) {
    for Trashed { file, info } in trashed {
        // without its info file the desktop does not list the item
        if fs::remove_file(info).is_ok() {
            let _ = fs::remove_file(file).or_else(|_| fs::remove_dir_all(file));
        }
    }
}

/// Reserves a free name in the trash by creating its `.trashinfo` file, as the specification requires. Returns the
/// paths of the info file and of the item.
fn reserve(trash: &Path, path: &Path) -> io::Result<(PathBuf, PathBuf)> {
    let name = path.file_name().ok_or(ErrorKind::InvalidInput)?;
    let date = chrono::Local::now().format("%Y-%m-%dT%H:%M:%S");
    let text = format!("[Trash Info]\nPath={}\nDeletionDate={date}\n", percent_encode(path.as_os_str().as_bytes()));
    for number in 1..MAX_TRIES {
        let mut own = name.to_owned();
        if number > 1 {
            own.push(format!(".{number}"));
        }
        let file = trash.join("files").join(&own);
        own.push(".trashinfo");
        let info = trash.join("info").join(&own);
        if fs::symlink_metadata(&file).is_ok() {
            continue;
        }
        match content::create(&info) {
            Ok(mut to) => {
                to.write_all(text.as_bytes())?;
                to.sync_all()?;
                return Ok((info, file));
            }
            Err(e) if e.kind() == ErrorKind::AlreadyExists => {}
            Err(e) => return Err(e),
        }
    }
    Err(ErrorKind::AlreadyExists.into())
}

/// Percent-encodes a path, except its slashes.
fn percent_encode(path: &[u8]) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/-._~".contains(&byte);
    path.iter().map(|byte| if plain(*byte) { char::from(*byte).to_string() } else { format!("%{byte:02X}") }).collect()
}

/// Returns the nodes at and below a path, moved to another path.
fn rebase(nodes: &Nodes, from: &Path, to: &Path) -> Nodes {
    let below = nodes.range(from.to_path_buf()..).take_while(|(path, _)| path.starts_with(from));
    let moved = |(path, node): (&PathBuf, &Node)| {
        let inside = path.strip_prefix(from).unwrap_or(path);
        let path = if inside.as_os_str().is_empty() { to.to_path_buf() } else { to.join(inside) };
        // in the trash it is independent of other names of the file
        (path.clone(), Node { path, role: Role::Whole, held: None, ..node.clone() })
    };
    below.map(moved).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_original_path_is_written_as_a_uri() {
        assert_eq!(percent_encode(b"/home/a b/100%\xff-x_y.txt"), "/home/a%20b/100%25%FF-x_y.txt");
        let dir = tempfile::tempdir().unwrap();
        for folder in ["files", "info"] {
            fs::create_dir(dir.path().join(folder)).unwrap();
        }
        for want in ["x.o", "x.o.2", "x.o.3"] {
            let (info, file) = reserve(dir.path(), Path::new("/w/x.o")).unwrap();
            assert_eq!((file, info.exists()), (dir.path().join("files").join(want), true));
            let text = fs::read_to_string(info).unwrap();
            assert!(text.starts_with("[Trash Info]\nPath=/w/x.o\nDeletionDate=20"), "{text}");
        }
    }
}
