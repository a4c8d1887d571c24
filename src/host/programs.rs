//! The index of all programs on PATH.
//!
//! It is cached on disk per directory, with the directory's inode and modification time: installing a program changes
//! the time of one directory, and only that one is read again. Another PATH shares the directories that both contain.

use caro_base::files;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The file in the cache folder; its name changes with its format.
const FILE: &str = "programs-2.json";

/// Most bytes of the file; a larger one is replaced.
const MAX_BYTES: u64 = 64 << 20;

/// Most directories in the file; those of the current PATH have priority.
const MAX_DIRS: usize = 128;

/// A directory that changed more recently than this may change again within the same tick of the file system's clock,
/// unnoticed.
const MIN_AGE: Duration = Duration::from_secs(2);

/// Identifies the state of a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
struct Stamp {
    /// Modification time in nanoseconds since 1970.
    modified: u128,
    device: u64,
    inode: u64,
}

/// The programs of one directory at one time.
#[derive(Debug, Clone, serde::Serialize, serde::Deserialize)]
struct Listing {
    stamp: Stamp,
    names: Vec<String>,
    /// Other files and broken links. They may become programs without a change of the directory, which only records
    /// names.
    others: Vec<String>,
}

/// Most names in a directory's [`Listing::others`]; one with more is no directory for programs.
const MAX_OTHERS: usize = 256;

type Listings = HashMap<PathBuf, Listing>;

/// Returns all programs in the directories by name; the first directory wins. Directories that do not exist or cannot
/// be read contain none, and are read again the next time.
pub fn index(dirs: &[PathBuf], cache_dir: Option<&Path>) -> BTreeMap<String, PathBuf> {
    let file = cache_dir.map(|dir| dir.join(FILE));
    let mut known = file.as_deref().and_then(load).unwrap_or_default();
    // `/bin` is often a link to `/usr/bin`, which is read only once
    let mut seen = HashSet::new();
    let current: Vec<(&PathBuf, Stamp)> =
        dirs.iter().filter_map(|dir| Some((dir, stamp(dir)?))).filter(|(_, stamp)| seen.insert(*stamp)).collect();
    let stale: Vec<(&PathBuf, Stamp)> =
        current.iter().filter(|(dir, stamp)| known.get(*dir).is_none_or(|l| l.stamp != *stamp)).copied().collect();
    let changed = !stale.is_empty();
    known.extend(scan(&stale));

    let mut programs = BTreeMap::new();
    for (dir, _) in &current {
        let Some(listing) = known.get(*dir) else { continue };
        let new_programs = listing.others.iter().filter(|name| is_program(&dir.join(name), true));
        for name in listing.names.iter().chain(new_programs) {
            programs.entry(name.clone()).or_insert_with(|| dir.join(name));
        }
    }
    if changed && let Some(file) = file {
        save(&file, known, dirs);
    }
    programs
}

/// Reads directories in parallel.
fn scan(dirs: &[(&PathBuf, Stamp)]) -> Listings {
    let workers = std::thread::available_parallelism().map_or(2, usize::from).min(dirs.len());
    let next = std::sync::atomic::AtomicUsize::new(0);
    let work = || {
        let mut found = Vec::new();
        while let Some((dir, stamp)) = dirs.get(next.fetch_add(1, std::sync::atomic::Ordering::Relaxed)) {
            if let Ok(listing) = list(dir, *stamp) {
                found.push(((*dir).clone(), listing));
            }
        }
        found
    };
    std::thread::scope(|scope| {
        let helpers: Vec<_> = (1..workers).map(|_| scope.spawn(work)).collect();
        let mut all: Listings = work().into_iter().collect();
        all.extend(helpers.into_iter().filter_map(|h| h.join().ok()).flatten());
        all
    })
}

/// Lists the programs of one directory. A name that is not UTF-8 cannot be written in a command, and is left out.
fn list(dir: &Path, stamp: Stamp) -> std::io::Result<Listing> {
    let mut listing = Listing { stamp, names: Vec::new(), others: Vec::new() };
    for entry in fs::read_dir(dir)? {
        let Ok(entry) = entry else { continue };
        let Ok(name) = entry.file_name().into_string() else { continue };
        // the kind is known without access to the file
        let Ok(kind) = entry.file_type() else { continue };
        if kind.is_dir() {
            continue;
        }
        if is_program(&entry.path(), !kind.is_file()) {
            listing.names.extend(program_name(name));
        } else if cfg!(unix) && listing.others.len() < MAX_OTHERS {
            listing.others.push(name);
        }
    }
    Ok(listing)
}

/// True if a file may be executed; with `check_kind` its kind is checked too.
#[cfg(unix)]
fn is_program(path: &Path, check_kind: bool) -> bool {
    rustix::fs::access(path, rustix::fs::Access::EXEC_OK).is_ok()
        && (!check_kind || fs::metadata(path).is_ok_and(|m| m.is_file()))
}

#[cfg(not(unix))]
fn is_program(path: &Path, _: bool) -> bool {
    let runs = |ext: &str| ["exe", "com", "bat", "cmd", "ps1"].iter().any(|e| ext.eq_ignore_ascii_case(e));
    path.extension().and_then(|e| e.to_str()).is_some_and(runs) && path.is_file()
}

/// Returns the name by which a program is called.
#[cfg(unix)]
fn program_name(file: String) -> Option<String> {
    Some(file)
}

#[cfg(not(unix))]
fn program_name(file: String) -> Option<String> {
    Some(Path::new(&file).file_stem()?.to_str()?.to_ascii_lowercase())
}

fn stamp(dir: &Path) -> Option<Stamp> {
    let meta = fs::metadata(dir).ok().filter(fs::Metadata::is_dir)?;
    let modified = meta.modified().ok()?.duration_since(UNIX_EPOCH).ok()?.as_nanos();
    #[cfg(unix)]
    let (device, inode) = {
        use std::os::unix::fs::MetadataExt;
        (meta.dev(), meta.ino())
    };
    // elsewhere the standard library has no file numbers: the path is used instead
    #[cfg(not(unix))]
    let (device, inode) = {
        use std::hash::{DefaultHasher, Hash, Hasher};
        let mut hasher = DefaultHasher::new();
        dir.hash(&mut hasher);
        (0, hasher.finish())
    };
    Some(Stamp { modified, device, inode })
}

fn load(file: &Path) -> Option<Listings> {
    serde_json::from_slice(&files::read(file, MAX_BYTES).ok()?).ok()
}

/// Writes the file atomically. An error is ignored: the next run reads PATH again.
fn save(file: &Path, mut known: Listings, dirs: &[PathBuf]) {
    let newest = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().saturating_sub(MIN_AGE).as_nanos();
    known.retain(|_, listing| listing.stamp.modified < newest);
    if known.len() > MAX_DIRS {
        known.retain(|dir, _| dirs.contains(dir));
    }
    // if it is not saved, the index is only rebuilt
    let _ = serde_json::to_vec(&known).map(|known| files::replace(file, &known, files::Access::Private));
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    fn program(dir: &Path, name: &str, mode: u32) {
        let file = dir.join(name);
        fs::write(&file, "#!/bin/sh\n").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
    }

    /// Makes a directory look as if it had not changed for some time, so that it is cached.
    fn age(dir: &Path, seconds: u64) {
        let time = SystemTime::now() - Duration::from_secs(seconds);
        fs::File::open(dir).unwrap().set_modified(time).unwrap();
    }

    #[test]
    fn the_first_directory_wins_and_only_programs_are_listed() {
        let top = tempfile::tempdir().unwrap();
        let (a, b) = (top.path().join("a"), top.path().join("b"));
        fs::create_dir_all(a.join("folder")).unwrap();
        fs::create_dir(&b).unwrap();
        program(&a, "both", 0o755);
        program(&a, "data", 0o644);
        program(&b, "both", 0o755);
        program(&b, "only-b", 0o755);
        symlink(b.join("only-b"), a.join("link")).unwrap();
        symlink(b.join("gone"), a.join("dangling")).unwrap();
        symlink(a.join("folder"), a.join("link-to-folder")).unwrap();
        let found = index(&[a.clone(), top.path().join("missing"), b.clone()], None);
        let expected = [("both", a.join("both")), ("link", a.join("link")), ("only-b", b.join("only-b"))];
        assert_eq!(found, expected.map(|(n, p)| (n.to_string(), p)).into());
    }

    #[test]
    fn a_link_to_a_directory_already_read_changes_nothing() {
        let top = tempfile::tempdir().unwrap();
        let (real, link) = (top.path().join("usr-bin"), top.path().join("bin"));
        fs::create_dir(&real).unwrap();
        program(&real, "ls", 0o755);
        symlink(&real, &link).unwrap();
        assert_eq!(index(&[link.clone(), real], None), [("ls".to_string(), link.join("ls"))].into());
    }

    #[test]
    fn the_cached_index_is_used_until_the_directory_changes() {
        let top = tempfile::tempdir().unwrap();
        let (dir, cache) = (top.path().join("bin"), top.path().join("cache"));
        fs::create_dir(&dir).unwrap();
        program(&dir, "one", 0o755);
        age(&dir, 3600);
        let dirs = [dir.clone()];
        assert_eq!(index(&dirs, Some(&cache)).len(), 1);
        // the file is used: a name that only it has is found
        let file = cache.join(FILE);
        let kept = fs::read_to_string(&file).unwrap();
        fs::write(&file, kept.replace("\"one\"", "\"from-the-file\"")).unwrap();
        assert!(index(&dirs, Some(&cache)).contains_key("from-the-file"));
        program(&dir, "two", 0o755);
        age(&dir, 1800);
        let names: Vec<String> = index(&dirs, Some(&cache)).into_keys().collect();
        assert_eq!(names, ["one", "two"]);
    }

    #[test]
    fn a_file_that_becomes_a_program_is_found() {
        let top = tempfile::tempdir().unwrap();
        let (dir, cache) = (top.path().join("bin"), top.path().join("cache"));
        fs::create_dir(&dir).unwrap();
        program(&dir, "one", 0o755);
        program(&dir, "deploy", 0o644);
        symlink(top.path().join("later"), dir.join("link")).unwrap();
        age(&dir, 3600);
        let names = || Vec::from_iter(index(std::slice::from_ref(&dir), Some(&cache)).into_keys());
        assert_eq!(names(), ["one"]);
        fs::set_permissions(dir.join("deploy"), fs::Permissions::from_mode(0o755)).unwrap();
        program(top.path(), "later", 0o755);
        assert_eq!(names(), ["deploy", "link", "one"]);
    }

    #[test]
    fn a_directory_that_just_changed_is_not_cached() {
        let top = tempfile::tempdir().unwrap();
        let (dir, cache) = (top.path().join("bin"), top.path().join("cache"));
        fs::create_dir(&dir).unwrap();
        program(&dir, "one", 0o755);
        index(&[dir], Some(&cache));
        assert_eq!(fs::read_to_string(cache.join(FILE)).unwrap(), "{}");
    }

    #[test]
    fn a_broken_or_unwritable_cache_only_costs_time() {
        let top = tempfile::tempdir().unwrap();
        let dir = top.path().join("bin");
        fs::create_dir(&dir).unwrap();
        program(&dir, "one", 0o755);
        fs::write(top.path().join(FILE), b"{\"half\": ").unwrap();
        assert_eq!(index(std::slice::from_ref(&dir), Some(top.path())).len(), 1);
        fs::write(top.path().join("file"), "").unwrap();
        assert_eq!(index(&[dir], Some(&top.path().join("file/cache"))).len(), 1);
    }
}
