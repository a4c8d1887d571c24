//! The surroundings of the process: variables and files of the system. The only module of `host` that reads a
//! variable.

use std::ffi::OsString;
use std::path::PathBuf;

/// The search path if `PATH` is unset, as in shells.
const DEFAULT_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// The surroundings of a process.
#[derive(Debug, Clone)]
pub struct Ambient {
    /// `PATH`.
    pub path: Option<OsString>,
    /// `SHELL`: the login shell.
    pub shell: Option<OsString>,
    /// `USER`, on Windows `USERNAME`.
    pub user: Option<String>,
    /// The working directory, unless it has been deleted.
    pub cwd: Option<PathBuf>,
    /// The root directory that contains `/proc` and `/etc`.
    pub root: PathBuf,
    /// The id of the parent process.
    pub parent: Option<u32>,
    /// The user's id; `None` on systems without user ids.
    pub uid: Option<u32>,
}

impl Ambient {
    /// Returns the surroundings of this process.
    pub fn of_process() -> Self {
        let var = |name| std::env::var_os(name).filter(|v| !v.is_empty());
        Self {
            path: var("PATH"),
            shell: var("SHELL"),
            user: var(if cfg!(windows) { "USERNAME" } else { "USER" }).and_then(|u| u.into_string().ok()),
            cwd: std::env::current_dir().ok(),
            root: PathBuf::from("/"),
            #[cfg(unix)]
            parent: rustix::process::getppid().map(|pid| pid.as_raw_nonzero().get().unsigned_abs()),
            #[cfg(not(unix))]
            parent: None,
            #[cfg(unix)]
            uid: Some(rustix::process::getuid().as_raw()),
            #[cfg(not(unix))]
            uid: None,
        }
    }

    /// Returns the directories of the search path, in order, each once. Relative and empty entries depend on the
    /// working directory, whose programs must not be mistaken for installed ones, so they are left out.
    pub fn search_path(&self) -> Vec<PathBuf> {
        let path = self.path.clone().unwrap_or_else(|| OsString::from(if cfg!(unix) { DEFAULT_PATH } else { "" }));
        let mut dirs: Vec<PathBuf> = Vec::new();
        for dir in std::env::split_paths(&path) {
            if dir.is_absolute() && !dirs.contains(&dir) {
                dirs.push(dir);
            }
        }
        dirs
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_path(path: Option<&str>) -> Ambient {
        Ambient { path: path.map(Into::into), ..Ambient::of_process() }
    }

    #[cfg(unix)]
    #[test]
    fn search_path_is_absolute_and_each_directory_once() {
        let dirs = with_path(Some("/a:.::/b:bin:/a:/c/")).search_path();
        assert_eq!(dirs, ["/a", "/b", "/c/"].map(PathBuf::from));
    }

    #[cfg(unix)]
    #[test]
    fn without_path_the_default_is_used() {
        assert!(with_path(None).search_path().contains(&PathBuf::from("/usr/bin")));
    }
}
