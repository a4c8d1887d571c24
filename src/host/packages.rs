//! Finds the package that contains a program, in the local index of this machine's package manager; nothing is
//! downloaded.
//!
//! The managers and their queries are data (`platform-rules/packages.toml`).

use caro_exec::{Job, Limits, Output, Status, capture};
use rusqlite::{Connection, OpenFlags};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// Timeout of all package managers together; one that reads a large index takes seconds.
const TIMEOUT: Duration = Duration::from_secs(6);
/// Most bytes of its output.
const MAX_OUTPUT: usize = 64 << 10;

/// A package manager.
#[derive(Debug, serde::Deserialize)]
struct Manager {
    /// Its program.
    name: String,
    /// The query, with `{}` for the name of the program.
    ask: Vec<String>,
    /// The form of the matching lines of its output: `{}` for the name of the program, `*` for the package's.
    line: String,
    /// The command that installs a package `{}`.
    install: String,
    /// True if only root may install.
    root: bool,
    /// The database of `command-not-found`, if there is one: it lists the programs of all packages.
    #[serde(default)]
    commands: Option<PathBuf>,
    /// The places of its index. If none has a file, no index was fetched, and the manager knows no packages.
    #[serde(default)]
    index: Vec<IndexFiles>,
}

/// A place with files of an index.
#[derive(Debug, serde::Deserialize)]
struct IndexFiles {
    folder: PathBuf,
    /// A part of the name of each file.
    part: String,
}

/// The answer of the package managers about a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Lookup {
    /// The command that installs its package.
    Found(String),
    /// No package has it.
    NotFound,
    /// There is no package manager.
    NoManager,
    /// A package manager did not answer, or has no index.
    Unknown,
}

/// Returns the package managers, in the order in which they are queried. An invalid file counts as empty; a test
/// makes sure that it is valid.
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

/// The package managers of a machine, each of which is asked about a program once.
#[derive(Debug)]
pub struct PackageIndex<'a> {
    managers: &'a [Manager],
    programs: &'a BTreeMap<String, PathBuf>,
    is_root: bool,
    timeout: Duration,
    answers: Mutex<BTreeMap<String, Lookup>>,
}

impl<'a> PackageIndex<'a> {
    /// Creates the index of a machine with these programs, for a user who is root or not.
    pub fn new(programs: &'a BTreeMap<String, PathBuf>, is_root: bool) -> Self {
        Self { managers: managers(), programs, is_root, timeout: TIMEOUT, answers: Mutex::default() }
    }

    /// Looks up the command that installs the package of a program.
    ///
    /// Needs a Tokio runtime with time and IO enabled.
    pub async fn installing(&self, name: &str) -> Lookup {
        let known = self.answers.lock().unwrap_or_else(PoisonError::into_inner).get(name).cloned();
        if let Some(known) = known {
            return known;
        }
        let found = self.look_up(name).await;
        self.answers.lock().unwrap_or_else(PoisonError::into_inner).insert(name.to_owned(), found.clone());
        found
    }

    async fn look_up(&self, name: &str) -> Lookup {
        let is_name = !name.is_empty() && name.len() < 64 && !name.starts_with('-');
        if !is_name || !name.chars().all(|c| c.is_ascii_alphanumeric() || "+._-".contains(c)) {
            return Lookup::NotFound;
        }
        let started = Instant::now();
        let mut answer = Lookup::NoManager;
        for manager in self.managers.iter().filter(|manager| self.programs.contains_key(&manager.name)) {
            let left = self.timeout.saturating_sub(started.elapsed());
            let from_database = manager.commands.as_deref().and_then(|file| package_in_database(file, name));
            let package = match from_database {
                Some(package) => Lookup::Found(package),
                None => query_manager(manager, name, self.programs, left).await,
            };
            match package {
                Lookup::Found(package) => return Lookup::Found(self.install_command(manager, &package)),
                // one that did not answer may have it
                found if answer != Lookup::Unknown => answer = found,
                _ => {}
            }
        }
        answer
    }

    /// The command that installs a package.
    fn install_command(&self, manager: &Manager, package: &str) -> String {
        let install = manager.install.replace("{}", package);
        let may_install = self.is_root || !manager.root;
        let elevation = ["sudo", "doas"].into_iter().find(|name| !may_install && self.programs.contains_key(*name));
        elevation.map_or(install.clone(), |elevation| format!("{elevation} {install}"))
    }
}

/// Looks up the package in the database of `command-not-found`.
fn package_in_database(file: &Path, name: &str) -> Option<String> {
    let index = Connection::open_with_flags(file, OpenFlags::SQLITE_OPEN_READ_ONLY).ok()?;
    let query = "SELECT packages.name FROM commands INNER JOIN packages ON commands.pkgID = packages.pkgID \
                 WHERE commands.command = ?1 ORDER BY packages.priority DESC LIMIT 1";
    index.query_row(query, [name], |row| row.get(0)).ok()
}

/// True if the manager has an index. One without, as in most containers, answers that it knows no package.
fn has_index(manager: &Manager) -> bool {
    let has_file = |files: &IndexFiles| {
        let mut entries = std::fs::read_dir(&files.folder).into_iter().flatten().flatten();
        entries.any(|entry| entry.file_name().to_string_lossy().contains(&files.part))
    };
    manager.index.is_empty() || manager.index.iter().any(has_file)
}

/// Asks the manager for the package, for at most `wall`.
async fn query_manager(manager: &Manager, name: &str, programs: &BTreeMap<String, PathBuf>, wall: Duration) -> Lookup {
    if wall.is_zero() || !has_index(manager) {
        return Lookup::Unknown;
    }
    let Some((program, args)) = manager.ask.split_first() else { return Lookup::Unknown };
    let Some(path) = programs.get(program) else { return Lookup::Unknown };
    let limits = Limits { wall, output: MAX_OUTPUT };
    let args = args.iter().map(|arg| arg.replace("{}", name));
    let job = Job { limits, ..Job::new(path).args(args) };
    match capture(&job).await {
        Ok(output) => lookup(&output, manager, name),
        Err(_) => Lookup::Unknown,
    }
}

/// Finds the package in the output of a manager. An output that is incomplete, or that reports an error, does not say
/// that there is none.
fn lookup(output: &Output, manager: &Manager, name: &str) -> Lookup {
    let text = String::from_utf8_lossy(&output.stdout);
    if let Some(package) = text.lines().find_map(|line| package(&manager.line, line.trim(), name)) {
        return Lookup::Found(package);
    }
    let is_complete = output.stdout_cut.is_none()
        && match output.status {
            // a complaint alone: some do not fail without an index
            Status::Exited(0) => output.stderr.is_empty() || !output.stdout.is_empty(),
            // some report with their exit code alone that there is none
            Status::Exited(_) => output.stderr.is_empty(),
            _ => false,
        };
    if is_complete { Lookup::NotFound } else { Lookup::Unknown }
}

/// Returns the package named in a line of the output.
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
    fn every_manager_is_complete() {
        assert!(managers().len() >= 5);
        for manager in managers() {
            assert!(manager.install.contains("{}") && manager.ask.iter().any(|arg| arg.contains("{}")), "{manager:?}");
        }
    }

    #[test]
    fn lines_are_parsed() {
        assert_eq!(package("{}", "htop", "htop").as_deref(), Some("htop"));
        assert_eq!(package("{}", "htop-dev", "htop"), None);
        assert_eq!(package("*", "extra/htop", "htop").as_deref(), Some("htop"));
        assert_eq!(package("*", "error: no such thing", "htop"), None);
    }

    #[test]
    fn the_database_of_commands_is_read() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("commands.db");
        assert_eq!(package_in_database(&file, "rg"), None);
        let index = Connection::open(&file).unwrap();
        index
            .execute_batch(
                "CREATE TABLE commands (cmdID INTEGER PRIMARY KEY, pkgID INTEGER, command TEXT);
                 CREATE TABLE packages (pkgID INTEGER PRIMARY KEY, name TEXT, version TEXT, component TEXT, priority INTEGER);
                 INSERT INTO packages VALUES (1, 'ripgrep', '14', 'main', 10), (2, 'other', '1', 'main', 1);
                 INSERT INTO commands VALUES (1, 2, 'rg'), (2, 1, 'rg');",
            )
            .unwrap();
        assert_eq!(package_in_database(&file, "rg").as_deref(), Some("ripgrep"));
        assert_eq!(package_in_database(&file, "no-such"), None);
    }

    #[tokio::test]
    async fn invalid_names_are_not_queried() {
        let programs = BTreeMap::new();
        let index = PackageIndex::new(&programs, true);
        for name in ["", "-x", "a b", "a;b", "../x"] {
            assert_eq!(index.installing(name).await, Lookup::NotFound);
        }
        assert_eq!(index.installing("htop").await, Lookup::NoManager);
    }

    /// A manager whose query is a script of the shell.
    fn scripted(script: &str) -> Manager {
        Manager {
            name: "sh".into(),
            ask: vec!["sh".into(), "-c".into(), script.to_owned(), "{}".into()],
            line: "{}".into(),
            install: "install {}".into(),
            root: false,
            commands: None,
            index: Vec::new(),
        }
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn managers_share_one_deadline_and_are_asked_once() {
        let programs = BTreeMap::from([("sh".to_owned(), PathBuf::from("/bin/sh"))]);
        let managers = [scripted("exec sleep 60"), scripted("exec sleep 60"), scripted("exec sleep 60")];
        let timeout = Duration::from_secs(1);
        let index = PackageIndex { managers: &managers, timeout, ..PackageIndex::new(&programs, false) };
        let started = Instant::now();
        assert_eq!(index.installing("htop").await, Lookup::Unknown);
        assert!(started.elapsed() < timeout * 30, "{:?}", started.elapsed());
        // the answer is kept
        let kept = index.answers.lock().unwrap().insert("htop".to_owned(), Lookup::NotFound);
        assert_eq!((kept, index.installing("htop").await), (Some(Lookup::Unknown), Lookup::NotFound));
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn a_manager_without_an_answer_leaves_it_open_and_another_may_have_the_package() {
        let programs = BTreeMap::from([("sh".to_owned(), PathBuf::from("/bin/sh"))]);
        let dir = tempfile::tempdir().unwrap();
        let [none, fails, has] = [scripted("true"), scripted("echo broken >&2; exit 3"), scripted("echo htop")];
        let indexed = |folder: &Path| Manager {
            index: vec![IndexFiles { folder: folder.into(), part: "_Packages".into() }],
            ..scripted("true")
        };
        std::fs::write(dir.path().join("lock"), "").unwrap();
        let found = Lookup::Found("install htop".to_owned());
        for (managers, wanted) in [
            (vec![], Lookup::NoManager),
            (vec![scripted("true")], Lookup::NotFound),
            (vec![scripted("echo htop-dev; echo old >&2")], Lookup::NotFound),
            (vec![scripted("echo no index >&2")], Lookup::Unknown),
            (vec![indexed(dir.path())], Lookup::Unknown),
            (vec![indexed(&dir.path().join("missing"))], Lookup::Unknown),
            (vec![none, fails], Lookup::Unknown),
            (vec![scripted("exit 3 >&2"), scripted("echo broken >&2; exit 3"), has], found),
            (vec![Manager { name: "other".into(), ..scripted("echo htop") }], Lookup::NoManager),
        ] {
            let index = PackageIndex { managers: &managers, ..PackageIndex::new(&programs, false) };
            assert_eq!(index.installing("htop").await, wanted, "{managers:?}");
        }
        std::fs::write(dir.path().join("main_Packages.lz4"), "").unwrap();
        let managers = [indexed(dir.path())];
        let index = PackageIndex { managers: &managers, ..PackageIndex::new(&programs, false) };
        assert_eq!(index.installing("htop").await, Lookup::NotFound);
    }

    #[test]
    fn an_output_that_is_no_answer_does_not_say_that_there_is_no_package() {
        let apt = managers().iter().find(|manager| manager.name == "apt").unwrap();
        let of = |status, stdout: &str, stderr: &str| {
            let output = Output {
                status,
                stdout: stdout.into(),
                stderr: stderr.into(),
                stdout_cut: None,
                stderr_cut: None,
                took: Duration::ZERO,
            };
            lookup(&output, apt, "mpv")
        };
        assert_eq!(of(Status::Exited(0), "mpv-mpris\nmpv\n", ""), Lookup::Found("mpv".into()));
        assert_eq!(of(Status::TimedOut, "mpv\n", ""), Lookup::Found("mpv".into()));
        for (status, stderr) in [(Status::Exited(0), "warning"), (Status::Exited(1), "")] {
            assert_eq!(of(status, "mpv-mpris\n", stderr), Lookup::NotFound, "{status}");
        }
        for (status, stderr) in [(Status::TimedOut, ""), (Status::Flooded, ""), (Status::Exited(1), "no index")] {
            assert_eq!(of(status, "mpv-mpris\n", stderr), Lookup::Unknown, "{status}");
        }
    }
}
