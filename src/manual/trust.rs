//! Decides which programs may be run to read their help: regular files of root or the user, outside of the working
//! tree, and not on the list of those that act on any arguments.

use std::path::{Path, PathBuf};

/// Programs that are never run, with the reason. The list is data.
static NEVER_RUN: &str = include_str!("never-run.txt");
/// Folders of the system's programs, which may be run even if they are below the working directory (`cd /`).
const SYSTEM: &[&str] = &[
    "/bin",
    "/sbin",
    "/usr/bin",
    "/usr/sbin",
    "/usr/local/bin",
    "/usr/local/sbin",
    "/usr/libexec",
    "/opt/homebrew",
    "/opt/local/bin",
    "/home/linuxbrew/.linuxbrew",
    "/nix/store",
    "/run/current-system",
    "/snap/bin",
    "/usr/pkg/bin",
];
/// Markers of the top of a working tree.
const MARKERS: &[&str] = &[".git", ".hg", ".jj", ".svn"];

/// Returns the reason why a program of that name is never run, if there is one.
pub(super) fn never_run(name: &str) -> Option<&'static str> {
    NEVER_RUN.lines().filter(|line| !line.starts_with('#')).find_map(|line| {
        let (program, why) = line.split_once(char::is_whitespace)?;
        (program == name).then(|| why.trim())
    })
}

/// Returns the directory whose programs are not trusted while the user works in `cwd`: the top of the working tree,
/// or `cwd` itself. A home directory, or one above it, is no working tree.
pub(super) fn working_tree(cwd: &Path, home: Option<&Path>) -> PathBuf {
    let above_home = |dir: &Path| home.is_some_and(|home| home.starts_with(dir));
    cwd.ancestors()
        .take_while(|dir| !above_home(dir))
        .find(|dir| MARKERS.iter().any(|mark| dir.join(mark).exists()))
        .unwrap_or(cwd)
        .to_path_buf()
}

/// Returns the reason why the file must not be run; `None` if there is none.
pub(super) fn refusal(path: &Path, trees: &[PathBuf], home: Option<&Path>) -> Option<String> {
    let meta = match std::fs::metadata(path) {
        Ok(meta) => meta,
        Err(error) => return Some(format!("cannot be looked at: {error}")),
    };
    if meta.is_dir() {
        return Some("is a directory".into());
    }
    if !meta.is_file() {
        return Some("is not a regular file".into());
    }
    if !path.is_absolute() {
        return Some("has no absolute path".into());
    }
    let resolved = path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
    let system = |path: &Path| SYSTEM.iter().any(|dir| path.starts_with(dir));
    let inside = |path: &Path| {
        trees.iter().any(|tree| {
            let tree = tree.canonicalize().unwrap_or_else(|_| tree.clone());
            // in a home directory programs are trusted, except directly inside of it
            let wide = home.is_some_and(|home| home.starts_with(&tree));
            if wide { path.parent() == Some(tree.as_path()) } else { path.starts_with(&tree) }
        })
    };
    if [path, &resolved].into_iter().any(|path| inside(path) && !system(path)) {
        return Some("lies in the working tree, so it is not run".into());
    }
    ownership(&meta)
}

/// Returns the reason that follows from the file's owner and mode.
#[cfg(unix)]
fn ownership(meta: &std::fs::Metadata) -> Option<String> {
    use std::os::unix::fs::MetadataExt;
    let (owner, mode) = (meta.uid(), meta.mode());
    if mode & 0o111 == 0 {
        return Some("is not executable".into());
    }
    if owner != 0 && owner != rustix::process::getuid().as_raw() && owner != rustix::process::geteuid().as_raw() {
        return Some("belongs to somebody else, so it is not run".into());
    }
    (mode & 0o002 != 0).then(|| "can be changed by anybody, so it is not run".into())
}

/// Refuses all programs: there is no sandbox, and they might open windows.
#[cfg(not(unix))]
fn ownership(_meta: &std::fs::Metadata) -> Option<String> {
    Some("help is not captured on this system".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_has_reasons() {
        assert_eq!(never_run("reboot"), Some("restarts the machine"));
        assert_eq!(never_run("ls"), None);
        assert_eq!(never_run("#"), None);
        for line in NEVER_RUN.lines().filter(|line| !line.starts_with('#')) {
            assert!(line.split_whitespace().count() > 1, "{line}: no reason");
        }
    }

    #[cfg(unix)]
    #[test]
    fn programs_of_the_working_tree_are_refused() {
        use std::os::unix::fs::PermissionsExt;
        let top = tempfile::tempdir().unwrap();
        let home = top.path().join("home");
        let tree = home.join("project");
        for dir in [tree.join(".git"), tree.join("bin"), tree.join("deep"), home.join("bin")] {
            std::fs::create_dir_all(dir).unwrap();
        }
        let program = |path: PathBuf, mode: u32| {
            std::fs::write(&path, "#!/bin/sh\n").unwrap();
            std::fs::set_permissions(&path, PermissionsExt::from_mode(mode)).unwrap();
            path
        };
        let inside = program(tree.join("bin/ls"), 0o755);
        let mine = program(home.join("bin/mine"), 0o755);
        let lying = program(home.join("lying"), 0o755);
        let link = home.join("bin/link");
        std::os::unix::fs::symlink(&inside, &link).unwrap();
        let check = |path: &Path, cwd: &Path| {
            refusal(path, &[working_tree(cwd, Some(&home))], Some(&home))
                .map(|why| why.split(',').next().unwrap().to_string())
        };
        let refused = Some("lies in the working tree".to_string());
        assert_eq!(check(&inside, &tree.join("deep")), refused);
        assert_eq!(check(&link, &tree.join("deep")), refused, "a link from outside leads inside");
        assert_eq!(check(&mine, &tree.join("deep")), None);
        assert_eq!(check(&mine, &home), None, "a home is not a working tree");
        assert_eq!(check(&lying, &home), refused);
        assert_eq!(check(Path::new("/bin/sh"), Path::new("/")), None);
        assert_eq!(check(&program(home.join("bin/text"), 0o644), &tree), Some("is not executable".into()));
        assert_eq!(check(&program(home.join("bin/open"), 0o777), &tree), Some("can be changed by anybody".into()));
        assert_eq!(check(&tree, &home), Some("is a directory".into()));
        assert!(check(&tree.join("gone"), &home).unwrap().starts_with("cannot be looked at"));
    }
}
