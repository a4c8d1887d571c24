//! Checks caro's folders: the free space on their disks, their owners, and which other users may read or write them.

use super::finding::Finding;
use crate::Dirs;
use crate::term::ui::{plural, size};
use caro_model::fetch;
use std::path::{Path, PathBuf};

/// Bytes of free space below which nothing can be stored any more.
const MIN_FREE: u64 = 20_000_000;
/// Bytes of free space below which a warning is due.
const LOW_FREE: u64 = 500_000_000;
/// Most entries of a folder that are examined.
const MAX_ENTRIES: usize = 500;

/// One of our folders.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Folder {
    /// Its purpose.
    pub name: &'static str,
    /// Its path.
    pub path: PathBuf,
    /// Its permissions; `None` if the folder does not exist yet.
    pub rights: Option<Rights>,
    /// The folder or file above it that keeps us from making it.
    pub blocked_by: Option<PathBuf>,
    /// Free space on its disk in bytes, if the system reports it.
    pub free: Option<u64>,
}

/// The permissions of a folder.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rights {
    /// Its owner, if that is another user.
    pub other_owner: Option<u32>,
    /// Its mode, if others may write.
    pub open_to_writers: Option<u32>,
    /// True if we can make files there.
    pub is_writable: bool,
    /// Files in it with data of the user that others may read.
    pub open_files: Vec<PathBuf>,
}

/// Examines each folder once. In private ones, files that others may read are reported.
pub fn look(dirs: &Dirs) -> Vec<Folder> {
    let all = [
        ("data", &dirs.data, true),
        ("state", &dirs.state, true),
        ("settings", &dirs.config, false),
        ("cache", &dirs.cache, false),
        ("models", &dirs.models, false),
        ("runtime", &dirs.runtime, true),
    ];
    let mut seen: Vec<&Path> = Vec::new();
    let mut folders = Vec::new();
    for (name, path, is_private) in all {
        let Some(path) = path else { continue };
        if seen.contains(&path.as_path()) {
            continue;
        }
        seen.push(path);
        let there = path.ancestors().find(|folder| folder.is_dir());
        let free = there.and_then(fetch::free_bytes);
        let rights = rights(path, is_private);
        let blocked_by = if rights.is_none() { blocker(path) } else { None };
        folders.push(Folder { name, path: path.clone(), rights, blocked_by, free });
    }
    folders
}

/// The nearest existing path above a missing folder, if no folder can be made in it.
fn blocker(path: &Path) -> Option<PathBuf> {
    let above = path.ancestors().find(|above| above.symlink_metadata().is_ok())?;
    let can_make = above.is_dir() && is_writable(above);
    (!can_make).then(|| above.to_owned())
}

/// True if we can make files in a folder.
#[cfg(unix)]
fn is_writable(folder: &Path) -> bool {
    use rustix::fs::Access;
    rustix::fs::access(folder, Access::WRITE_OK | Access::EXEC_OK).is_ok()
}

#[cfg(not(unix))]
fn is_writable(folder: &Path) -> bool {
    std::fs::metadata(folder).is_ok_and(|meta| !meta.permissions().readonly())
}

#[cfg(unix)]
fn rights(path: &Path, is_private: bool) -> Option<Rights> {
    use std::os::unix::fs::MetadataExt;
    let meta = std::fs::metadata(path).ok().filter(std::fs::Metadata::is_dir)?;
    let me = rustix::process::geteuid().as_raw();
    let mode = meta.mode() & 0o777;
    let is_open = |meta: &std::fs::Metadata| meta.is_file() && meta.len() > 0 && meta.mode() & 0o044 != 0;
    let entries = std::fs::read_dir(path).into_iter().flatten().flatten().take(MAX_ENTRIES);
    // files are protected by a folder that others may not enter
    let open_files = match is_private && mode & 0o011 != 0 {
        true => entries
            .map(|entry| entry.path())
            .filter(|path| path.symlink_metadata().is_ok_and(|m| is_open(&m)))
            .collect(),
        false => Vec::new(),
    };
    Some(Rights {
        other_owner: (meta.uid() != me).then_some(meta.uid()),
        open_to_writers: (mode & 0o022 != 0).then_some(mode),
        is_writable: is_writable(path),
        open_files,
    })
}

#[cfg(not(unix))]
fn rights(path: &Path, _: bool) -> Option<Rights> {
    let meta = std::fs::metadata(path).ok()?;
    meta.is_dir().then(|| Rights { is_writable: is_writable(path), ..Rights::default() })
}

/// The findings about folders: those on permissions, or one if all are well, and one on free space.
pub fn findings(folders: &[Folder]) -> Vec<Finding> {
    if folders.is_empty() {
        let fact = "there are no folders for caro, because this user has no home folder";
        return vec![Finding::warn("folders", fact, "set HOME to a folder of yours: nothing can be kept without")];
    }
    let mut all: Vec<Finding> = folders.iter().flat_map(permission_findings).collect();
    all.extend(blocked_findings(folders));
    if all.is_empty() {
        let there: Vec<&str> = folders.iter().filter(|f| f.rights.is_some()).map(|f| f.name).collect();
        all.push(match there.is_empty() {
            true => Finding::ok("folders", "none was made yet"),
            false => Finding::ok("folders", format!("{}: nobody else may write them", there.join(", "))),
        });
    }
    all.extend(space_finding(folders));
    all
}

/// A finding for each place in which folders of ours cannot be made.
fn blocked_findings(folders: &[Folder]) -> Vec<Finding> {
    let mut places: Vec<(&Path, Vec<&str>)> = Vec::new();
    for folder in folders {
        let Some(above) = folder.blocked_by.as_deref() else { continue };
        match places.iter_mut().find(|(place, _)| *place == above) {
            Some((_, names)) => names.push(folder.name),
            None => places.push((above, vec![folder.name])),
        }
    }
    let finding = |(above, names): (&Path, Vec<&str>)| {
        let (place, many) = (above.display(), if names.len() == 1 { "folder" } else { "folders" });
        let (why, remedy) = match above.is_dir() {
            true => (format!("nothing can be written in {place}"), format!("`chmod u+wx '{place}'`")),
            // a file, or a link that leads nowhere
            false => (format!("{place} is no folder"), format!("move it away: `mv '{place}' '{place}.old'`")),
        };
        let fact = format!("the {many} for {} cannot be made: {why}", names.join(", "));
        Finding::warn("folders", fact, format!("{remedy}, or set HOME to a folder of yours"))
    };
    places.into_iter().map(finding).collect()
}

fn permission_findings(folder: &Folder) -> Vec<Finding> {
    const CHECK: &str = "folders";
    let Some(rights) = &folder.rights else { return Vec::new() };
    let (name, path) = (folder.name, folder.path.display());
    let mut all = Vec::new();
    if let Some(user) = rights.other_owner {
        let fact = format!("the {name} folder {path} belongs to user {user}");
        all.push(Finding::fail(CHECK, fact, format!("`sudo chown -R \"$USER\" '{path}'`")));
    }
    if let Some(mode) = rights.open_to_writers {
        let fact = format!("others may write the {name} folder {path} (mode {mode:o})");
        all.push(Finding::fail(CHECK, fact, format!("`chmod go-w '{path}'`")));
    }
    if !rights.is_writable {
        let fact = format!("the {name} folder {path} cannot be written");
        all.push(Finding::warn(CHECK, fact, format!("`chmod u+w '{path}'`, or mount its disk to be written")));
    }
    if let Some(first) = rights.open_files.first() {
        let more = rights.open_files.len() - 1;
        let more = if more == 0 { String::new() } else { format!(" and {}", plural(more, "more file")) };
        let fact = format!("others may read {}{more}", first.display());
        all.push(Finding::warn(CHECK, fact, format!("`chmod -R go-rwx '{path}'`")));
    }
    all
}

/// The finding about free space: the disk with the least of it decides.
fn space_finding(folders: &[Folder]) -> Option<Finding> {
    let known = folders.iter().filter_map(|folder| Some((folder.free?, folder)));
    let (free, least) = known.min_by_key(|(free, _)| *free)?;
    let fact = format!("{} free where the {} folder is ({})", size(free), least.name, least.path.display());
    let remedy = "make room there; `caro undo --clear` and `caro model rm ID` give some back";
    Some(match free {
        0..MIN_FREE => Finding::fail("room", fact, remedy),
        MIN_FREE..LOW_FREE => Finding::warn("room", fact, remedy),
        _ => Finding::ok("room", fact),
    })
}

#[cfg(test)]
mod tests {
    use super::super::finding::State;
    use super::*;

    fn folder(rights: Option<Rights>, free: u64) -> Folder {
        Folder { name: "data", path: "/h/caro".into(), rights, blocked_by: None, free: Some(free) }
    }

    fn sound() -> Rights {
        Rights { is_writable: true, ..Rights::default() }
    }

    #[test]
    fn each_fault_of_a_folder_has_its_command() {
        let states = |rights| {
            let all = findings(&[folder(Some(rights), LOW_FREE)]);
            all.into_iter().map(|f| (f.state, f.remedy.unwrap_or_default())).collect::<Vec<_>>()
        };
        assert_eq!(states(sound()), [(State::Ok, String::new()), (State::Ok, String::new())]);
        let chmod = "`chmod go-w '/h/caro'`".to_owned();
        assert_eq!(states(Rights { open_to_writers: Some(0o777), ..sound() })[0], (State::Fail, chmod));
        assert!(states(Rights { other_owner: Some(5), ..sound() })[0].1.contains("chown"));
        assert_eq!(states(Rights { is_writable: false, ..sound() })[0].0, State::Warn);
        let open = states(Rights { open_files: vec!["/h/caro/a.db".into(), "/h/caro/b.db".into()], ..sound() });
        assert_eq!((open[0].0, open[0].1.as_str()), (State::Warn, "`chmod -R go-rwx '/h/caro'`"));
    }

    #[test]
    fn folders_that_cannot_be_made_are_a_warning_for_each_place() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("file");
        std::fs::write(&file, "").unwrap();
        let at = |name: &str| Some(file.join(name));
        let dirs = Dirs {
            data: at("data"),
            state: Some(file.clone()),
            cache: Some(dir.path().join("a/b")),
            ..Dirs::default()
        };
        let found = look(&dirs);
        let blocked: Vec<_> = found.iter().map(|folder| folder.blocked_by.as_deref()).collect();
        assert_eq!(blocked, [Some(file.as_path()), Some(&file), None]);
        let all = findings(&found);
        assert_eq!(all.iter().filter(|f| f.check == "folders").count(), 1, "{all:?}");
        assert!(all[0].state == State::Warn && all[0].fact.contains("data, state cannot be made"), "{all:?}");
        assert!(all[0].remedy.as_deref().unwrap().contains(&format!("`mv '{}'", file.display())), "{all:?}");
    }

    #[cfg(unix)]
    #[test]
    fn the_remedy_of_a_place_fits_what_stands_there() {
        let dir = tempfile::tempdir().unwrap();
        let link = dir.path().join("link");
        std::os::unix::fs::symlink(dir.path().join("gone"), &link).unwrap();
        let remedy = |place: &Path| {
            let blocked = Folder { blocked_by: Some(place.into()), ..folder(None, LOW_FREE) };
            findings(&[blocked])[0].remedy.clone().unwrap()
        };
        assert!(remedy(&link).contains("`mv '"), "{}", remedy(&link));
        assert!(remedy(dir.path()).contains("`chmod u+wx '"), "{}", remedy(dir.path()));
    }

    #[test]
    fn the_disk_with_the_least_free_space_decides() {
        let state = |free: u64| findings(&[folder(None, u64::MAX), folder(None, free)]).pop().unwrap().state;
        assert_eq!([0, MIN_FREE, LOW_FREE].map(state), [State::Fail, State::Warn, State::Ok]);
        assert_eq!(findings(&[])[0].state, State::Warn);
    }

    #[cfg(unix)]
    #[test]
    fn modes_are_read_from_the_folders() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        let chmod = |path: &Path, mode| std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
        std::fs::write(dir.path().join("agent.db"), "x").unwrap();
        chmod(&dir.path().join("agent.db"), 0o644);
        let dirs = Dirs { data: Some(dir.path().into()), cache: Some(dir.path().join("none")), ..Dirs::default() };
        let rights = |mode| {
            chmod(dir.path(), mode);
            look(&dirs)[0].rights.clone().unwrap()
        };
        assert_eq!(rights(0o700), sound());
        assert_eq!(rights(0o755).open_files, [dir.path().join("agent.db")]);
        assert_eq!(rights(0o777).open_to_writers, Some(0o777));
        chmod(&dir.path().join("agent.db"), 0o600);
        assert_eq!(rights(0o755), sound());
        let none = &look(&dirs)[1];
        assert!(none.rights.is_none() && none.free.is_some(), "{none:?}");
    }
}
