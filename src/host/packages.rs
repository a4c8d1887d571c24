//! The package that brings a program, by the index that the package manager of this machine keeps: nothing is fetched.
//!
//! Which managers there are, and how each is asked, is data (`platform-rules/packages.toml`).

use caro_exec::{Job, Limits, capture};
use rusqlite::{Connection, OpenFlags};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

/// How long a manager may look into its index.
const PATIENCE: Duration = Duration::from_millis(1500);
/// The most bytes of its answer.
const LONGEST: usize = 64 << 10;

/// A package manager.
#[derive(Debug, serde::Deserialize)]
struct Manager {
    /// Its program.
    name: String,
    /// The question that it is asked, `{}` for the program that is looked for.
    ask: Vec<String>,
    /// The lines of the answer that count: `{}` for the name of the program, `*` for the package's.
    line: String,
    /// The command that installs a package `{}`.
    install: String,
    /// True if only root may install.
    root: bool,
    /// The database of `command-not-found`, where there is one: it knows every program of every package.
    #[serde(default)]
    commands: Option<PathBuf>,
}

/// The managers, in the order in which they are asked. A file that is broken counts as empty: a test holds that it is not.
fn managers() -> &'static [Manager] {
    #[derive(serde::Deserialize)]
    struct File {
        manager: Vec<Manager>,
    }
    static MANAGERS: OnceLock<Vec<Manager>> = OnceLock::new();
    MANAGERS.get_or_init(|| {
        let text = include_str!("../../platform-rules/packages.toml");
        toml::from_str::<File>(text).map(|file| file.manager).unwrap_or_default()
    })
}

/// The command that installs what brings the program of that name; `None` where no manager of this machine knows any.
///
/// Needs a Tokio runtime with time and IO enabled.
pub async fn installing(name: &str, programs: &BTreeMap<String, PathBuf>, is_root: bool) -> Option<String> {
    let is_name = !name.is_empty() && name.len() < 64 && !name.starts_with('-');
    if !is_name || !name.chars().all(|c| c.is_ascii_alphanumeric() || "+._-".contains(c)) {
        return None;
    }
    for manager in managers() {
        if !programs.contains_key(&manager.name) {
            continue;
        }
        let by_commands = manager.commands.as_deref().and_then(|file| of_commands(file, name));
        let package = match by_commands {
            Some(package) => package,
            None => match asked(manager, name, programs).await {
                Some(package) => package,
                None => continue,
            },
        };
        let way = ["sudo", "doas"].into_iter().find(|way| programs.contains_key(*way) && manager.root && !is_root);
        let install = manager.install.replace("{}", &package);
        return Some(way.map_or(install.clone(), |way| format!("{way} {install}")));
    }
    None
}

/// The package by the database of `command-not-found`.
fn of_commands(file: &Path, name: &str) -> Option<String> {
    let index = Connection::open_with_flags(file, OpenFlags::SQLITE_OPEN_READ_ONLY).ok()?;
    let query = "SELECT packages.name FROM commands INNER JOIN packages ON commands.pkgID = packages.pkgID \
                 WHERE commands.command = ?1 ORDER BY packages.priority DESC LIMIT 1";
    index.query_row(query, [name], |row| row.get(0)).ok()
}

/// The package by the manager itself.
async fn asked(manager: &Manager, name: &str, programs: &BTreeMap<String, PathBuf>) -> Option<String> {
    let (program, args) = manager.ask.split_first()?;
    let limits = Limits { wall: PATIENCE, output: LONGEST };
    let args = args.iter().map(|arg| arg.replace("{}", name));
    let job = Job { limits, ..Job::new(programs.get(program)?).args(args) };
    let output = capture(&job).await.ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.lines().find_map(|line| package(&manager.line, line.trim(), name))
}

/// The package that a line of an answer names.
fn package(form: &str, line: &str, name: &str) -> Option<String> {
    let form = form.replace("{}", name);
    let Some((before, behind)) = form.split_once('*') else { return (line == form).then(|| name.to_owned()) };
    let package = line.strip_prefix(before)?.strip_suffix(behind)?;
    let package = package.rsplit('/').next()?;
    let is_one = !package.is_empty() && package.chars().all(|c| c.is_ascii_alphanumeric() || "+._-@".contains(c));
    is_one.then(|| package.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_manager_is_whole() {
        assert!(managers().len() >= 5);
        for manager in managers() {
            assert!(manager.install.contains("{}") && manager.ask.iter().any(|arg| arg.contains("{}")), "{manager:?}");
        }
    }

    #[test]
    fn a_line_names_a_package_or_none() {
        assert_eq!(package("{}", "htop", "htop").as_deref(), Some("htop"));
        assert_eq!(package("{}", "htop-dev", "htop"), None);
        assert_eq!(package("*", "extra/htop", "htop").as_deref(), Some("htop"));
        assert_eq!(package("*", "error: no such thing", "htop"), None);
    }

    #[test]
    fn the_database_of_commands_is_read() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("commands.db");
        assert_eq!(of_commands(&file, "rg"), None);
        let index = Connection::open(&file).unwrap();
        index
            .execute_batch(
                "CREATE TABLE commands (cmdID INTEGER PRIMARY KEY, pkgID INTEGER, command TEXT);
                 CREATE TABLE packages (pkgID INTEGER PRIMARY KEY, name TEXT, version TEXT, component TEXT, priority INTEGER);
                 INSERT INTO packages VALUES (1, 'ripgrep', '14', 'main', 10), (2, 'other', '1', 'main', 1);
                 INSERT INTO commands VALUES (1, 2, 'rg'), (2, 1, 'rg');",
            )
            .unwrap();
        assert_eq!(of_commands(&file, "rg").as_deref(), Some("ripgrep"));
        assert_eq!(of_commands(&file, "no-such"), None);
    }

    #[tokio::test]
    async fn what_cannot_be_a_name_is_not_asked_for() {
        for name in ["", "-x", "a b", "a;b", "../x"] {
            assert_eq!(installing(name, &BTreeMap::new(), true).await, None);
        }
    }
}
