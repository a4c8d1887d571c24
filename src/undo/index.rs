//! Reads the tracked files of a git repository from its index. Git is not run, since a repository's configuration can
//! make it run programs.

use super::git_index;
use caro_base::files;
use std::collections::HashSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// The files that a repository tracks.
#[derive(Debug)]
pub(super) struct Tracked {
    top: PathBuf,
    names: HashSet<Vec<u8>>,
}

impl Tracked {
    /// Returns the tracked files of the repository around a folder; `None` if there is none, or its index is not
    /// understood.
    pub(super) fn of(folder: &Path) -> Option<Self> {
        let top = folder.ancestors().find(|top| top.join(".git").is_dir())?;
        let names = match files::read(&top.join(".git/index"), git_index::MAX_BYTES) {
            Ok(bytes) => git_index::entries(&bytes)?.into_iter().map(|entry| entry.path).collect(),
            // nothing was added yet
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => HashSet::new(),
            Err(_) => return None,
        };
        Some(Self { top: top.to_path_buf(), names })
    }

    /// True if git tracks the file.
    pub(super) fn has(&self, path: &Path) -> bool {
        let name = path.strip_prefix(&self.top).unwrap_or(path);
        // git's own files do not count as untracked work
        name.starts_with(OsStr::new(".git")) || self.names.contains(name.as_os_str().as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn the_tracked_files_of_a_repository_are_known() {
        let dir = tempfile::tempdir().unwrap();
        let top = dir.path();
        assert!(Tracked::of(top).is_none());
        let git = |args: &[&str]| Command::new("git").arg("-C").arg(top).args(args).output().is_ok();
        std::fs::write(top.join("old"), "").unwrap();
        std::fs::write(top.join("new"), "").unwrap();
        if !git(&["init", "-q"]) || !git(&["add", "old"]) {
            println!("skipped: there is no git");
            return;
        }
        let tracked = Tracked::of(top).unwrap();
        assert!(tracked.has(&top.join("old")) && tracked.has(&top.join(".git/HEAD")));
        assert!(!tracked.has(&top.join("new")));
        std::fs::write(top.join(".git/index"), "DIRC").unwrap();
        assert!(Tracked::of(top).is_none());
    }
}
