//! Recovers a damaged file: its readable rows are copied to a new file, and it is moved aside.

use super as database;
use super::file::{DatabaseError, Layout, write};
use rusqlite::{Connection, ErrorCode, OpenFlags};
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

/// The result of a repair.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Repaired {
    /// There is no file.
    Nothing,
    /// The file is not damaged.
    Sound,
    /// It was damaged and has been recovered.
    Saved(Saved),
}

/// The rows recovered from a damaged file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Saved {
    /// The number of rows in each table.
    pub entries: Vec<(String, u64)>,
    /// The new path of the damaged file.
    pub aside: PathBuf,
}

impl Saved {
    /// Returns the number of recovered rows of a table.
    pub fn of(&self, table: &str) -> u64 {
        self.entries.iter().find(|(name, _)| name == table).map_or(0, |(_, count)| *count)
    }
}

/// Replaces a damaged file by a new one with its readable rows. `complete` creates what is not copied: the full-text
/// index, and tables that are not in the layout.
///
/// # Errors
/// If the disk prevents it, or a newer version created the file; the file is unchanged then.
pub fn repair(
    file: &Path,
    layout: &Layout<'_>,
    prepare: impl FnOnce(&mut Connection) -> rusqlite::Result<()>,
    complete: impl FnOnce(&Connection) -> rusqlite::Result<()>,
) -> Result<Repaired, DatabaseError> {
    let disk = |e: io::Error| DatabaseError::Disk { path: file.display().to_string(), reason: e.to_string() };
    if !file.try_exists().map_err(disk)? {
        return Ok(Repaired::Nothing);
    }
    if is_sound(file) {
        return Ok(Repaired::Sound);
    }
    let folder = file.parent().unwrap_or(Path::new("."));
    let work = tempfile::Builder::new().prefix(".repair-").tempdir_in(folder).map_err(disk)?;
    let (old, new) = (work.path().join("old.db"), work.path().join("new.db"));
    // opening a file with a log writes to it, and the damaged one must stay unchanged
    fs::copy(file, &old).map_err(disk)?;
    if with_suffix(file, LOG).exists() {
        fs::copy(with_suffix(file, LOG), with_suffix(&old, LOG)).map_err(disk)?;
    }
    // not all tables of a newer version would be copied
    if version(&old).is_some_and(|found| found > layout.version) {
        return Err(DatabaseError::Newer(file.display().to_string()));
    }
    let entries = (|| -> Result<_, DatabaseError> {
        let mut sql = write(&new, layout)?;
        prepare(&mut sql)?;
        sql.pragma_update(None, "foreign_keys", false)?;
        database::salvage(&old, &sql)?;
        complete(&sql)?;
        let entries = database::counts(&sql)?;
        database::checkpoint(&sql);
        Ok(entries)
    })()
    .map_err(|e| e.at(file))?;
    let aside = free_name(file);
    fs::rename(file, &aside).map_err(disk)?;
    if with_suffix(file, LOG).exists() {
        fs::rename(with_suffix(file, LOG), with_suffix(&aside, LOG)).map_err(disk)?;
    }
    let _ = fs::remove_file(with_suffix(file, "-shm"));
    fs::rename(&new, file).map_err(disk)?;
    Ok(Repaired::Saved(Saved { entries, aside }))
}

/// The suffix of a write-ahead log's name.
const LOG: &str = "-wal";

fn with_suffix(file: &Path, ending: &str) -> PathBuf {
    let mut name: OsString = file.as_os_str().to_owned();
    name.push(ending);
    name.into()
}

/// Returns an unused name for the damaged file.
fn free_name(file: &Path) -> PathBuf {
    let names = (1_u32..).map(|n| with_suffix(file, &if n == 1 { ".damaged".into() } else { format!(".damaged-{n}") }));
    names.into_iter().find(|name| !name.exists()).unwrap_or_else(|| with_suffix(file, ".damaged"))
}

/// Returns the version of a file's layout, if it can be read.
fn version(file: &Path) -> Option<i64> {
    Connection::open(file).ok()?.query_row("PRAGMA user_version", [], |row| row.get(0)).ok()
}

/// The state of a file, as far as it was checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Health {
    /// SQLite found no error in any page.
    Sound,
    /// The check timed out without finding an error.
    Unfinished,
    /// It is no database any more, or has invalid pages; with the error.
    Damaged(String),
    /// It cannot be opened; with the error.
    Unreadable(String),
}

/// Checks a file for at most `timeout`, without creating the files beside it that SQLite normally creates.
pub fn examine(file: &Path, timeout: Duration) -> Health {
    if with_suffix(file, LOG).exists() {
        return quick_check(file, "mode=ro", timeout);
    }
    match quick_check(file, "immutable=1", timeout) {
        // another process may have started to write meanwhile
        Health::Damaged(_) if with_suffix(file, LOG).exists() => quick_check(file, "mode=ro", timeout),
        found => found,
    }
}

fn quick_check(file: &Path, how: &str, timeout: Duration) -> Health {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_URI;
    let name = file.to_string_lossy().replace('%', "%25").replace('?', "%3f").replace('#', "%23");
    let sql = match Connection::open_with_flags(format!("file:{name}?{how}"), flags) {
        Ok(sql) => sql,
        Err(error) => return health_of(&error),
    };
    let handle = sql.get_interrupt_handle();
    let (done, receiver) = mpsc::channel::<()>();
    let result = std::thread::scope(|scope| {
        scope.spawn(move || {
            if receiver.recv_timeout(timeout) == Err(RecvTimeoutError::Timeout) {
                handle.interrupt();
            }
        });
        // reads every page once; the longer check would also compare indexes with their tables
        let result = sql.query_row("PRAGMA quick_check(1)", [], |row| row.get::<_, String>(0));
        drop(done);
        result
    });
    match result {
        Ok(result) if result == "ok" => Health::Sound,
        Ok(result) => Health::Damaged(result.lines().last().unwrap_or_default().to_owned()),
        Err(error) => health_of(&error),
    }
}

/// Returns the state of a file for an error of SQLite.
fn health_of(error: &rusqlite::Error) -> Health {
    match error.sqlite_error_code() {
        Some(ErrorCode::OperationInterrupted) => Health::Unfinished,
        // another process is writing, which it can do only to a sound file
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Health::Unfinished,
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => Health::Damaged(error.to_string()),
        _ => Health::Unreadable(error.to_string()),
    }
}

/// True if SQLite finds no error in the file.
fn is_sound(file: &Path) -> bool {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let result = Connection::open_with_flags(file, flags)
        .and_then(|sql| sql.query_row("PRAGMA integrity_check(1)", [], |row| row.get::<_, String>(0)));
    result.is_ok_and(|said| said == "ok")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Seek, SeekFrom, Write};

    const LAYOUT: Layout<'_> = Layout {
        tables: "CREATE TABLE parents (id INTEGER PRIMARY KEY, name TEXT NOT NULL);
                 CREATE TABLE children (
                     id INTEGER PRIMARY KEY, parent INTEGER NOT NULL REFERENCES parents(id), text TEXT NOT NULL);
                 CREATE TABLE pairs (a TEXT, b INTEGER, PRIMARY KEY (a, b)) WITHOUT ROWID;
                 CREATE TABLE loose (x TEXT NOT NULL);",
        version: 2,
    };

    fn create_filled(file: &Path) {
        let sql = write(file, &LAYOUT).unwrap();
        for id in 1..=400 {
            sql.execute("INSERT INTO parents VALUES (?1, ?2)", (id, format!("parent {id}"))).unwrap();
            sql.execute("INSERT INTO children VALUES (?1, ?1, ?2)", (id, "word ".repeat(60))).unwrap();
            sql.execute("INSERT INTO pairs VALUES ('pair', ?1)", [id]).unwrap();
        }
        sql.execute("INSERT INTO loose VALUES ('one')", []).unwrap();
    }

    fn repair_file(file: &Path) -> Repaired {
        repair(file, &LAYOUT, |_| Ok(()), |_| Ok(())).unwrap()
    }

    fn count(file: &Path, table: &str) -> u64 {
        let sql = write(file, &LAYOUT).unwrap();
        sql.query_row(&format!("SELECT count(*) FROM {table}"), [], |row| row.get::<_, i64>(0)).unwrap() as u64
    }

    /// Overwrites some bytes of a file.
    fn overwrite(file: &Path, at: u64, length: usize) {
        let mut open = fs::OpenOptions::new().write(true).open(file).unwrap();
        open.seek(SeekFrom::Start(at)).unwrap();
        open.write_all(&vec![0xa5; length]).unwrap();
    }

    #[test]
    fn a_sound_or_missing_file_is_not_changed() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("x.db");
        assert_eq!(repair_file(&file), Repaired::Nothing);
        create_filled(&file);
        assert_eq!(repair_file(&file), Repaired::Sound);
        assert_eq!(count(&file, "children"), 400);
    }

    /// Wherever the damage is, most rows on other pages are recovered, and the damaged file stays.
    #[test]
    fn rows_on_other_pages_are_recovered() {
        let dir = tempfile::tempdir().unwrap();
        let whole = dir.path().join("whole.db");
        create_filled(&whole);
        let pages = fs::metadata(&whole).unwrap().len() / 4096;
        assert!(pages > 20, "{pages}");
        let mut best = 0;
        for page in (6..pages).step_by(3) {
            let file = dir.path().join(format!("{page}.db"));
            fs::copy(&whole, &file).unwrap();
            overwrite(&file, page * 4096, 4096);
            let damaged = fs::read(&file).unwrap();
            let Repaired::Saved(saved) = repair_file(&file) else { continue };
            assert_eq!(fs::read(&saved.aside).unwrap(), damaged, "it stays as it was");
            assert_eq!(repair_file(&file), Repaired::Sound);
            assert_eq!(count(&file, "children"), saved.of("children"));
            assert_eq!(saved.of("loose"), 1, "nothing is there twice");
            best = best.max(saved.of("children"));
            // a child row has its parent
            let sql = write(&file, &LAYOUT).unwrap();
            assert!(!sql.prepare("PRAGMA foreign_key_check").unwrap().exists([]).unwrap());
        }
        assert!(best > 300, "{best}");
    }

    #[test]
    fn the_check_finds_damage_and_has_a_timeout() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("x.db");
        assert!(matches!(examine(&file, Duration::MAX), Health::Unreadable(_)), "there is none");
        create_filled(&file);
        assert_eq!(examine(&file, Duration::from_secs(60)), Health::Sound);
        for (at, length) in [(0, 100), (8 * 4096, 4096)] {
            let damaged = dir.path().join(format!("{at}.db"));
            fs::copy(&file, &damaged).unwrap();
            overwrite(&damaged, at, length);
            let before = fs::read(&damaged).unwrap();
            assert!(matches!(examine(&damaged, Duration::from_secs(60)), Health::Damaged(_)), "{at}");
            assert_eq!(fs::read(&damaged).unwrap(), before, "a look changes nothing");
        }
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 3, "and makes nothing");
    }

    #[test]
    fn an_unreadable_file_is_replaced_by_an_empty_one() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("x.db");
        for n in ["x.db.damaged", "x.db.damaged-2"] {
            create_filled(&file);
            overwrite(&file, 0, 4096);
            let Repaired::Saved(saved) = repair_file(&file) else { panic!("it is damaged") };
            assert_eq!((saved.of("children"), saved.aside), (0, dir.path().join(n)));
            assert_eq!(count(&file, "children"), 0);
            fs::remove_file(&file).unwrap();
        }
        let left: Vec<_> = fs::read_dir(dir.path()).unwrap().flatten().map(|e| e.file_name()).collect();
        assert!(!left.iter().any(|name| name.to_string_lossy().starts_with(".repair-")), "{left:?}");
    }
}
