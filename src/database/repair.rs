//! A damaged file: what can be read of it goes into a new one, and it stays beside that.

use super as database;
use super::file::{DatabaseError, Layout, write};
use rusqlite::{Connection, ErrorCode, OpenFlags};
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

/// What came of a repair.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Repaired {
    /// There is no file.
    Nothing,
    /// Nothing is wrong with it.
    Sound,
    /// It was damaged.
    Saved(Saved),
}

/// What was saved of a damaged file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Saved {
    /// What is left in each table.
    pub entries: Vec<(String, u64)>,
    /// Where the damaged file is now.
    pub aside: PathBuf,
}

impl Saved {
    /// How many entries of a table were saved.
    pub fn of(&self, table: &str) -> u64 {
        self.entries.iter().find(|(name, _)| name == table).map_or(0, |(_, count)| *count)
    }
}

/// Copies what can be read of a damaged file into a new one in its place. `complete` makes what is not copied: the index of
/// words, and tables that came later than the layout.
///
/// # Errors
/// If the disk does not let it be done, or a newer version made the file: then it is as it was.
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
    // to open a file with a log is to write into it, and the damaged one stays as it is
    fs::copy(file, &old).map_err(disk)?;
    if beside(file, LOG).exists() {
        fs::copy(beside(file, LOG), beside(&old, LOG)).map_err(disk)?;
    }
    // of a newer version's tables not all would be copied
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
        database::settle(&sql);
        Ok(entries)
    })()
    .map_err(|e| e.at(file))?;
    let aside = free_name(file);
    fs::rename(file, &aside).map_err(disk)?;
    if beside(file, LOG).exists() {
        fs::rename(beside(file, LOG), beside(&aside, LOG)).map_err(disk)?;
    }
    let _ = fs::remove_file(beside(file, "-shm"));
    fs::rename(&new, file).map_err(disk)?;
    Ok(Repaired::Saved(Saved { entries, aside }))
}

/// The ending of a write-ahead log's name.
const LOG: &str = "-wal";

fn beside(file: &Path, ending: &str) -> PathBuf {
    let mut name: OsString = file.as_os_str().to_owned();
    name.push(ending);
    name.into()
}

/// A name for the damaged file that nothing has.
fn free_name(file: &Path) -> PathBuf {
    let names = (1_u32..).map(|n| beside(file, &if n == 1 { ".damaged".into() } else { format!(".damaged-{n}") }));
    names.into_iter().find(|name| !name.exists()).unwrap_or_else(|| beside(file, ".damaged"))
}

/// The number of a file's layout, where it can be read.
fn version(file: &Path) -> Option<i64> {
    Connection::open(file).ok()?.query_row("PRAGMA user_version", [], |row| row.get(0)).ok()
}

/// The state of a file, as far as it was looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Health {
    /// SQLite has nothing against any page of it.
    Sound,
    /// Nor against those that there was time for.
    Unfinished,
    /// It is no database any more, or pages of it are wrong; what.
    Damaged(String),
    /// It cannot be opened; why.
    Unreadable(String),
}

/// Looks at a file for so long, and leaves it and its folder as they are: SQLite's own way makes files beside it.
pub fn examine(file: &Path, patience: Duration) -> Health {
    if beside(file, LOG).exists() {
        return checked(file, "mode=ro", patience);
    }
    match checked(file, "immutable=1", patience) {
        // somebody may have begun to write meanwhile
        Health::Damaged(_) if beside(file, LOG).exists() => checked(file, "mode=ro", patience),
        found => found,
    }
}

fn checked(file: &Path, how: &str, patience: Duration) -> Health {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_URI;
    let name = file.to_string_lossy().replace('%', "%25").replace('?', "%3f").replace('#', "%23");
    let sql = match Connection::open_with_flags(format!("file:{name}?{how}"), flags) {
        Ok(sql) => sql,
        Err(error) => return unwell(&error),
    };
    let handle = sql.get_interrupt_handle();
    let (over, waits) = mpsc::channel::<()>();
    let said = std::thread::scope(|scope| {
        scope.spawn(move || {
            if waits.recv_timeout(patience) == Err(RecvTimeoutError::Timeout) {
                handle.interrupt();
            }
        });
        // it reads every page once; the longer check holds indexes against their tables, too
        let said = sql.query_row("PRAGMA quick_check(1)", [], |row| row.get::<_, String>(0));
        drop(over);
        said
    });
    match said {
        Ok(said) if said == "ok" => Health::Sound,
        Ok(said) => Health::Damaged(said.lines().last().unwrap_or_default().to_owned()),
        Err(error) => unwell(&error),
    }
}

/// An error of SQLite's as the state of a file.
fn unwell(error: &rusqlite::Error) -> Health {
    match error.sqlite_error_code() {
        Some(ErrorCode::OperationInterrupted) => Health::Unfinished,
        // somebody writes: whoever can is no fault
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Health::Unfinished,
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => Health::Damaged(error.to_string()),
        _ => Health::Unreadable(error.to_string()),
    }
}

/// True if SQLite has nothing against any page of a file.
fn is_sound(file: &Path) -> bool {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let asked = Connection::open_with_flags(file, flags)
        .and_then(|sql| sql.query_row("PRAGMA integrity_check(1)", [], |row| row.get::<_, String>(0)));
    asked.is_ok_and(|said| said == "ok")
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

    fn filled(file: &Path) {
        let sql = write(file, &LAYOUT).unwrap();
        for id in 1..=400 {
            sql.execute("INSERT INTO parents VALUES (?1, ?2)", (id, format!("parent {id}"))).unwrap();
            sql.execute("INSERT INTO children VALUES (?1, ?1, ?2)", (id, "word ".repeat(60))).unwrap();
            sql.execute("INSERT INTO pairs VALUES ('pair', ?1)", [id]).unwrap();
        }
        sql.execute("INSERT INTO loose VALUES ('one')", []).unwrap();
    }

    fn mend(file: &Path) -> Repaired {
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
    fn what_is_sound_or_not_there_is_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("x.db");
        assert_eq!(mend(&file), Repaired::Nothing);
        filled(&file);
        assert_eq!(mend(&file), Repaired::Sound);
        assert_eq!(count(&file, "children"), 400);
    }

    /// Wherever the damage is: most of what lies on other pages is saved, and the damaged file stays.
    #[test]
    fn what_lies_on_other_pages_is_saved() {
        let dir = tempfile::tempdir().unwrap();
        let whole = dir.path().join("whole.db");
        filled(&whole);
        let pages = fs::metadata(&whole).unwrap().len() / 4096;
        assert!(pages > 20, "{pages}");
        let mut best = 0;
        for page in (6..pages).step_by(3) {
            let file = dir.path().join(format!("{page}.db"));
            fs::copy(&whole, &file).unwrap();
            overwrite(&file, page * 4096, 4096);
            let damaged = fs::read(&file).unwrap();
            let Repaired::Saved(saved) = mend(&file) else { continue };
            assert_eq!(fs::read(&saved.aside).unwrap(), damaged, "it stays as it was");
            assert_eq!(mend(&file), Repaired::Sound);
            assert_eq!(count(&file, "children"), saved.of("children"));
            assert_eq!(saved.of("loose"), 1, "nothing is there twice");
            best = best.max(saved.of("children"));
            // a child has its parent
            let sql = write(&file, &LAYOUT).unwrap();
            assert!(!sql.prepare("PRAGMA foreign_key_check").unwrap().exists([]).unwrap());
        }
        assert!(best > 300, "{best}");
    }

    #[test]
    fn a_look_tells_sound_from_damaged_and_ends_in_time() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("x.db");
        assert!(matches!(examine(&file, Duration::MAX), Health::Unreadable(_)), "there is none");
        filled(&file);
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
    fn where_nothing_can_be_read_an_empty_file_takes_its_place() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("x.db");
        for n in ["x.db.damaged", "x.db.damaged-2"] {
            filled(&file);
            overwrite(&file, 0, 4096);
            let Repaired::Saved(saved) = mend(&file) else { panic!("it is damaged") };
            assert_eq!((saved.of("children"), saved.aside), (0, dir.path().join(n)));
            assert_eq!(count(&file, "children"), 0);
            fs::remove_file(&file).unwrap();
        }
        let left: Vec<_> = fs::read_dir(dir.path()).unwrap().flatten().map(|e| e.file_name()).collect();
        assert!(!left.iter().any(|name| name.to_string_lossy().starts_with(".repair-")), "{left:?}");
    }
}
