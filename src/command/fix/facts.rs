//! Reads the facts of this machine and of the folder that a command failed in, without running the command.

use super::near::{BUILTINS, is_common, is_misspelling, nearest};
use caro_host::packages::Lookup;
use caro_manual::Entry;
use caro_shell::{Dialect, is_builtin};
use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

/// Most entries of one folder that are read.
const MAX_ENTRIES: usize = 4096;
/// Most entries that a search below a folder reads.
const MAX_SEARCHED: usize = 8192;
/// Most levels that a search goes below a folder.
const MAX_DEPTH: usize = 4;
/// Most levels that a search goes above a folder.
const MAX_ABOVE: usize = 3;

/// Finds the manual of a program, or of a subcommand of it.
pub type Manuals<'a> = dyn Fn(&str, Option<&str>) -> Option<Arc<Entry>> + 'a;

/// The facts of this machine and of the folder where the command failed.
#[derive(Clone, Copy)]
pub struct Facts<'a> {
    /// The working directory of the command.
    pub cwd: &'a Path,
    /// The user's home directory.
    pub home: Option<&'a Path>,
    /// Every program on PATH.
    pub programs: &'a BTreeMap<String, PathBuf>,
    /// The shell that the command was written for.
    pub dialect: Dialect,
    /// True if the user is root.
    pub is_root: bool,
    /// Finds the manual of a program, or of a subcommand of it.
    pub manual: &'a Manuals<'a>,
    /// Looks up the command that installs the package of a program, in this machine's package index.
    pub package: &'a dyn Fn(&str) -> Lookup,
}

impl Facts<'_> {
    /// Resolves a word to a path.
    pub fn path(&self, text: &str) -> PathBuf {
        match (text.strip_prefix("~/"), self.home) {
            (Some(rest), Some(home)) => home.join(rest),
            _ if text == "~" => self.home.map_or_else(|| self.cwd.join(text), Path::to_path_buf),
            _ => self.cwd.join(text),
        }
    }

    /// True if the path exists.
    pub fn exists(&self, text: &str) -> bool {
        !text.is_empty() && self.path(text).symlink_metadata().is_ok()
    }

    /// True if the path is a folder.
    pub fn is_folder(&self, text: &str) -> bool {
        !text.is_empty() && self.path(text).is_dir()
    }

    /// True if the path is a file.
    pub fn is_file(&self, text: &str) -> bool {
        !text.is_empty() && self.path(text).is_file()
    }

    /// True if the shell finds such a program or builtin.
    pub fn has_program(&self, name: &str) -> bool {
        self.programs.contains_key(name) || is_builtin(name, self.dialect)
    }

    /// Returns the program that was most likely meant.
    pub fn nearest_program(&self, typed: &str) -> Option<&str> {
        let lower = typed.to_lowercase();
        if lower != typed
            && let Some((name, _)) = self.programs.get_key_value(lower.as_str())
        {
            return Some(name);
        }
        let names = self.programs.keys().map(String::as_str).filter(|name| !name.starts_with('.'));
        let names = names.chain(BUILTINS).filter(|name| is_misspelling(typed, name, self.dialect));
        nearest(typed, names, is_common)
    }

    /// Returns the names in a folder, hidden ones only if `hidden` is true.
    pub fn names(&self, folder: &Path, hidden: bool) -> Vec<String> {
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten().take(MAX_ENTRIES);
        let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
        names.filter(|name| hidden || !name.starts_with('.')).collect()
    }

    /// Returns the existing path that was most likely meant, found component by component, in the form that was typed
    /// (`./`, `~/`).
    pub fn nearest_path(&self, typed: &str) -> Option<String> {
        let mut real = if typed.starts_with('/') { PathBuf::from("/") } else { PathBuf::new() };
        let (root, rest) = match typed.strip_prefix("~/") {
            Some(rest) => (self.home?.to_path_buf(), rest),
            None => (self.cwd.to_path_buf(), typed),
        };
        let parts: Vec<&str> = rest.split('/').filter(|part| !part.is_empty()).collect();
        for (at, part) in parts.iter().enumerate() {
            let folder = root.join(&real);
            if *part == "." || *part == ".." || folder.join(part).symlink_metadata().is_ok() {
                real.push(part);
                continue;
            }
            let is_last = at + 1 == parts.len();
            let names = self.names(&folder, part.starts_with('.'));
            let candidates = names.iter().filter(|name| is_last || folder.join(name).is_dir());
            real.push(nearest(part, candidates.map(String::as_str), |_| false)?);
        }
        let is_found = root.join(&real).symlink_metadata().is_ok() && root.join(&real) != root.join(rest);
        let mut text = real.to_str()?.to_owned();
        if typed.starts_with("~/") {
            text.insert_str(0, "~/");
        } else if typed.starts_with("./") && !text.starts_with("./") {
            text.insert_str(0, "./");
        }
        if typed.ends_with('/') {
            text.push('/');
        }
        is_found.then_some(text)
    }

    /// Finds the same relative path below this folder or above it; `None` if it is nowhere or in several places
    /// below.
    pub fn elsewhere(&self, typed: &str) -> Option<String> {
        let wanted = Path::new(typed.strip_prefix("./").unwrap_or(typed));
        if wanted.is_absolute() || wanted.components().any(|part| !matches!(part, Component::Normal(_))) {
            return None;
        }
        let below = self.below(|folder| folder.join(wanted).symlink_metadata().is_ok());
        if let [folder] = &below[..] {
            return folder.join(wanted).to_str().map(str::to_owned);
        }
        let mut up = PathBuf::new();
        for _ in 0..MAX_ABOVE {
            up.push("..");
            if below.is_empty() && self.cwd.join(&up).join(wanted).symlink_metadata().is_ok() {
                return up.join(wanted).to_str().map(str::to_owned);
            }
        }
        None
    }

    /// Finds the project folder near by: the nearest above this one, else the only one below, that contains one of
    /// these files.
    pub fn project(&self, marks: &[&str]) -> Option<String> {
        let has_mark = |folder: &Path| marks.iter().any(|mark| folder.join(mark).symlink_metadata().is_ok());
        let mut up = PathBuf::new();
        for _ in 0..MAX_ABOVE {
            up.push("..");
            if has_mark(&self.cwd.join(&up)) {
                return up.to_str().map(str::to_owned);
            }
        }
        match &self.below(has_mark)[..] {
            [folder] => folder.to_str().map(str::to_owned),
            _ => None,
        }
    }

    /// Searches the folders below this one level by level, and returns all matches of the first level that has any.
    /// Empty if the search reads too many entries.
    fn below(&self, matches: impl Fn(&Path) -> bool) -> Vec<PathBuf> {
        let (mut level, mut searched) = (vec![PathBuf::new()], 0);
        for _ in 0..MAX_DEPTH {
            let mut next = Vec::new();
            for folder in &level {
                for name in self.names(&self.cwd.join(folder), false) {
                    searched += 1;
                    if searched > MAX_SEARCHED {
                        return Vec::new();
                    }
                    let inner = folder.join(&name);
                    let is_folder = self.cwd.join(&inner).symlink_metadata().is_ok_and(|meta| meta.is_dir());
                    if is_folder && !["node_modules", "target"].contains(&name.as_str()) {
                        next.push(inner);
                    }
                }
            }
            let found: Vec<PathBuf> = next.iter().filter(|folder| matches(&self.cwd.join(folder))).cloned().collect();
            if !found.is_empty() {
                return found;
            }
            level = next;
        }
        Vec::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn with<T>(files: &[&str], look: impl FnOnce(&Facts) -> T) -> T {
        let dir = tempfile::tempdir().unwrap();
        for file in files {
            let path = dir.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "x").unwrap();
        }
        let programs = ["caro", "grep", "mv", "perl", "git", "sync"]
            .map(|name| (name.to_owned(), PathBuf::from("/bin").join(name)))
            .into();
        let facts = Facts {
            cwd: dir.path(),
            home: Some(dir.path()),
            programs: &programs,
            dialect: Dialect::Bash,
            is_root: false,
            manual: &|_, _| None,
            package: &|_| Lookup::NotFound,
        };
        look(&facts)
    }

    #[test]
    fn a_path_is_corrected_component_by_component_and_keeps_its_form() {
        with(&["Documents/letters/march.txt", "data/people.csv", "notes.txt"], |facts| {
            for (typed, meant) in [
                ("nots.txt", Some("notes.txt")),
                ("./nots.txt", Some("./notes.txt")),
                ("~/dtaa/peopel.csv", Some("~/data/people.csv")),
                ("documents/leters/", Some("Documents/letters/")),
                ("notes.txt", None),
                ("xyz.txt", None),
                ("", None),
                ("/no/such/path", None),
            ] {
                assert_eq!(facts.nearest_path(typed).as_deref(), meant, "{typed}");
            }
        });
    }

    #[test]
    fn a_file_in_another_folder_is_found_if_it_is_the_only_one() {
        with(&["scripts/hello.py", "a/twice.txt", "b/twice.txt", "web/package.json"], |facts| {
            assert_eq!(facts.elsewhere("hello.py").as_deref(), Some("scripts/hello.py"));
            assert_eq!(facts.elsewhere("twice.txt"), None);
            assert_eq!(facts.project(&["package.json"]).as_deref(), Some("web"));
            let inner = facts.cwd.join("scripts");
            let inner = Facts { cwd: &inner, ..*facts };
            assert_eq!(inner.elsewhere("a/twice.txt").as_deref(), Some("../a/twice.txt"));
        });
    }

    #[test]
    fn the_nearest_program_is_found() {
        with(&[], |facts| {
            assert_eq!(facts.nearest_program("gerp"), Some("grep"));
            assert_eq!(facts.nearest_program("GREP"), Some("grep"));
            assert_eq!(facts.nearest_program("gti"), Some("git"));
            for typed in ["ripgrep", "mpv", "rsync", "cargo", "caroo"] {
                assert_eq!(facts.nearest_program(typed), None, "{typed}");
            }
        });
    }
}
