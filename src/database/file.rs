//! Opens an SQLite file (WAL) for writing or only for reading.

use super as database;
use rusqlite::{Connection, ErrorCode, OpenFlags, Row, RowIndex};
use std::path::Path;
use std::time::Duration;

/// The time that a writer waits for another process.
const BUSY_TIMEOUT: Duration = Duration::from_secs(10);

/// An error of a database file.
#[derive(Debug, thiserror::Error)]
pub enum DatabaseError {
    /// The file cannot be opened, or is not a database of caro.
    #[error("could not open {path}: {reason}")]
    Open {
        /// The file.
        path: String,
        /// The reason.
        reason: String,
    },
    /// The disk cannot be read or written: full, broken or not permitted. The file itself is fine.
    #[error("could not use {path}: {reason}")]
    Disk {
        /// The file.
        path: String,
        /// The reason.
        reason: String,
    },
    /// A newer version of this program created it.
    #[error("{0} was made by a newer version of caro")]
    Newer(String),
    /// Another process kept writing to the file.
    #[error("another process is writing to {0}")]
    Busy(String),
    /// Any other error of SQLite.
    #[error("the library failed: {0}")]
    Sql(rusqlite::Error),
}

impl DatabaseError {
    /// Advice to the user.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Open { path, .. } => repair_hint(path),
            Self::Disk { .. } => "free some space, or have the file and its folder be writable; what is in it stays",
            Self::Newer(_) => "use that version, or move the file away to begin anew",
            Self::Busy(_) => "wait for the other `caro` to end, and try again",
            Self::Sql(_) => "check that the disk is not full and the data folder can be written",
        }
    }

    /// Adds the file's path, which SQLite does not report.
    #[must_use]
    pub fn at(self, file: &Path) -> Self {
        let named = file.display().to_string();
        match self {
            Self::Busy(_) => Self::Busy(named),
            Self::Open { reason, .. } => Self::Open { path: named, reason },
            Self::Disk { reason, .. } => Self::Disk { path: named, reason },
            other => other,
        }
    }
}

impl From<rusqlite::Error> for DatabaseError {
    fn from(error: rusqlite::Error) -> Self {
        let unnamed = || "the file".to_owned();
        match error.sqlite_error_code() {
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Self::Busy(unnamed()),
            Some(code @ (ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase)) => {
                Self::Open { path: unnamed(), reason: damage(code, &error) }
            }
            Some(
                ErrorCode::DiskFull
                | ErrorCode::SystemIoFailure
                | ErrorCode::CannotOpen
                | ErrorCode::ReadOnly
                | ErrorCode::PermissionDenied,
            ) => Self::Disk { path: unnamed(), reason: error.to_string() },
            _ => Self::Sql(error),
        }
    }
}

/// Describes the damage of a file for the user.
fn damage(code: ErrorCode, error: &rusqlite::Error) -> String {
    match code {
        ErrorCode::NotADatabase => format!("it is not a file of caro's, or its beginning was overwritten ({error})"),
        _ => format!("it is damaged ({error})"),
    }
}

/// Advice about a file that cannot be opened, by its name: the command that recovers it.
pub fn repair_hint(path: &str) -> &'static str {
    match Path::new(path).file_stem().and_then(|stem| stem.to_str()) {
        Some("knowledge") => "`caro knowledge repair` saves what can be read, and keeps the file beside the new one",
        Some("memory" | "conversations") => {
            "`caro memory repair` saves what can be read, and keeps the file beside the new one"
        }
        Some("agent") => "`caro session repair` saves what can be read, and keeps the file beside the new one",
        _ => "check that the data folder can be written; move the file away to begin anew",
    }
}

/// The tables of a file and their version.
pub struct Layout<'a> {
    /// The statements.
    pub tables: &'a str,
    /// `user_version` of a file that has them.
    pub version: i64,
}

/// Opens a file for writing, and creates it if it does not exist.
///
/// # Errors
/// If it cannot be opened or created, or is not a database of caro.
pub fn write(file: &Path, layout: &Layout<'_>) -> Result<Connection, DatabaseError> {
    if let Some(folder) = file.parent() {
        std::fs::create_dir_all(folder)
            .map_err(|e| DatabaseError::Disk { path: file.display().to_string(), reason: e.to_string() })?;
    }
    let mut sql = match Connection::open(file) {
        Err(e) if is_write_protected(&e) && file.exists() => return open_still(file, layout),
        opened => opened.map_err(|e| open_error(e, file))?,
    };
    // the user's documents and notes are private
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let _ = std::fs::set_permissions(file, std::fs::Permissions::from_mode(0o600));
    }
    let mut prepare = || {
        database::enable_sharing(&sql, BUSY_TIMEOUT)?;
        database::overwrite_deleted(&sql)?;
        sql.pragma_update(None, "foreign_keys", true)?;
        database::create_tables(&mut sql, layout.tables, layout.version)
    };
    let found = match prepare() {
        Err(e) if is_write_protected(&e) && file.exists() => return open_still(file, layout),
        found => found.map_err(|e| open_error(e, file))?,
    };
    check(file, found, layout)?;
    Ok(sql)
}

/// True for the error of a file that this user may not write, or not into its folder.
fn is_write_protected(error: &rusqlite::Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::CannotOpen | ErrorCode::ReadOnly | ErrorCode::PermissionDenied))
}

/// Opens a file that cannot be written for reading, without the shared memory beside it that SQLite otherwise needs;
/// writing to it fails. Nothing is seen of what a log beside it has.
fn open_still(file: &Path, layout: &Layout<'_>) -> Result<Connection, DatabaseError> {
    let open = |e: rusqlite::Error| open_error(e, file);
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_URI;
    let sql = Connection::open_with_flags(still_uri(file), flags).map_err(open)?;
    let found = version(&sql).map_err(open)?;
    check(file, found, layout)?;
    Ok(sql)
}

/// Returns the URI of a file that nothing changes (<https://sqlite.org/uri.html>).
fn still_uri(file: &Path) -> String {
    let path = file.to_string_lossy().replace('\\', "/");
    let rooted = if path.contains(':') && !path.starts_with('/') { format!("/{path}") } else { path };
    let mut uri = String::from("file:");
    for byte in rooted.bytes() {
        match byte {
            b'%' | b'?' | b'#' => uri.push_str(&format!("%{byte:02x}")),
            byte if byte.is_ascii() => uri.push(char::from(byte)),
            byte => uri.push_str(&format!("%{byte:02x}")),
        }
    }
    uri.push_str("?immutable=1");
    uri
}

/// Opens a file only for reading, while another process may be writing. `None` if it does not exist.
///
/// # Errors
/// If it cannot be opened or is not a database of caro.
pub fn read(file: &Path, layout: &Layout<'_>) -> Result<Option<Connection>, DatabaseError> {
    let open = |e: rusqlite::Error| open_error(e, file);
    match file.try_exists() {
        Ok(false) => return Ok(None),
        Err(e) => return Err(DatabaseError::Disk { path: file.display().to_string(), reason: e.to_string() }),
        Ok(true) => {}
    }
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let sql = Connection::open_with_flags(file, flags).map_err(open)?;
    sql.busy_timeout(BUSY_TIMEOUT).map_err(open)?;
    // maps the file into memory instead of copying its pages
    sql.pragma_update(None, "mmap_size", 1_i64 << 28).map_err(open)?;
    let found = match version(&sql) {
        Err(e) if is_write_protected(&e) => return open_still(file, layout).map(Some),
        found => found.map_err(open)?,
    };
    if found == 0 {
        // its creator has not created the tables yet
        return Ok(None);
    }
    check(file, found, layout)?;
    Ok(Some(sql))
}

/// Converts an error of opening; an error without a better reason counts as the file's.
fn open_error(error: rusqlite::Error, file: &Path) -> DatabaseError {
    match DatabaseError::from(error).at(file) {
        DatabaseError::Sql(e) => DatabaseError::Open { path: file.display().to_string(), reason: e.to_string() },
        other => other,
    }
}

/// Reads a text with invalid UTF-8 replaced, so that one damaged row does not hide the others.
///
/// # Errors
/// If the column is no text.
pub fn text(row: &Row<'_>, column: impl RowIndex) -> rusqlite::Result<String> {
    Ok(String::from_utf8_lossy(row.get_ref(column)?.as_bytes()?).into_owned())
}

/// Converts a count to SQLite's signed integer.
pub fn int(count: impl TryInto<i64>) -> i64 {
    count.try_into().unwrap_or(i64::MAX)
}

/// Converts it back; an invalid value becomes 0.
///
/// # Errors
/// If the column is no number.
pub fn count<T: TryFrom<i64> + Default>(row: &Row<'_>, column: impl RowIndex) -> rusqlite::Result<T> {
    Ok(T::try_from(row.get::<_, i64>(column)?).unwrap_or_default())
}

fn version(sql: &Connection) -> rusqlite::Result<i64> {
    sql.query_row("PRAGMA user_version", [], |row| row.get(0))
}

fn check(file: &Path, found: i64, layout: &Layout<'_>) -> Result<(), DatabaseError> {
    if found > layout.version {
        return Err(DatabaseError::Newer(file.display().to_string()));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const LAYOUT: Layout<'_> = Layout { tables: "CREATE TABLE t (x);", version: 3 };

    #[test]
    fn a_reader_needs_no_writer_and_no_file() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("data/x.db");
        assert!(read(&file, &LAYOUT).unwrap().is_none());
        assert!(!file.exists());
        let writer = write(&file, &LAYOUT).unwrap();
        writer.execute_batch("BEGIN IMMEDIATE; INSERT INTO t VALUES (1);").unwrap();
        let reader = read(&file, &LAYOUT).unwrap().unwrap();
        let count = || reader.query_row("SELECT count(*) FROM t", [], |r| r.get::<_, i64>(0)).unwrap();
        assert_eq!(count(), 0, "a reader does not wait for an open transaction");
        writer.execute_batch("COMMIT").unwrap();
        assert_eq!(count(), 1);
        assert!(reader.execute("INSERT INTO t VALUES (2)", []).is_err());
    }

    #[test]
    fn a_file_in_a_folder_that_cannot_be_written_is_read() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("50% ü #1?.db");
        let writer = write(&file, &LAYOUT).unwrap();
        writer.execute_batch("INSERT INTO t VALUES (1);").unwrap();
        drop(writer);
        let still = open_still(&file, &LAYOUT).unwrap();
        assert_eq!(still.query_row("SELECT count(*) FROM t", [], |r| r.get::<_, i64>(0)), Ok(1));
        let refused = still.execute("INSERT INTO t VALUES (2)", []).unwrap_err();
        assert!(matches!(DatabaseError::from(refused), DatabaseError::Disk { .. }));
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1, "nothing is made beside it");
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let protect = |mode| std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(mode)).unwrap();
            protect(0o500);
            let opened = (write(&file, &LAYOUT).is_ok(), matches!(read(&file, &LAYOUT), Ok(Some(_))));
            protect(0o700);
            assert_eq!(opened, (true, true));
        }
    }

    #[test]
    fn other_files_are_not_changed() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("x.db");
        std::fs::write(&file, "this is not a database, and long enough to be looked at".repeat(30)).unwrap();
        assert!(matches!(write(&file, &LAYOUT), Err(DatabaseError::Open { .. })));
        assert!(matches!(read(&file, &LAYOUT), Err(DatabaseError::Open { .. })));
        let file = dir.path().join("y.db");
        drop(write(&file, &Layout { tables: "", version: 4 }).unwrap());
        assert!(matches!(write(&file, &LAYOUT), Err(DatabaseError::Newer(_))));
        assert!(matches!(read(&file, &LAYOUT), Err(DatabaseError::Newer(_))));
        assert!(matches!(read(dir.path(), &LAYOUT), Err(DatabaseError::Disk { .. })));
        assert!(
            matches!(write(&file.join("x.db"), &LAYOUT), Err(DatabaseError::Disk { .. })),
            "no folder can be there"
        );
    }

    #[test]
    fn a_disk_error_is_not_an_error_of_the_file() {
        use rusqlite::ffi;
        let of = |code: i32| DatabaseError::from(rusqlite::Error::SqliteFailure(ffi::Error::new(code), None));
        for code in [ffi::SQLITE_FULL, ffi::SQLITE_IOERR, ffi::SQLITE_CANTOPEN, ffi::SQLITE_READONLY, ffi::SQLITE_PERM]
        {
            let error = of(code).at(Path::new("/data/x.db"));
            assert!(matches!(&error, DatabaseError::Disk { path, .. } if path == "/data/x.db"), "{code}: {error}");
            assert!(!error.hint().contains("move the file away"), "{code}");
        }
        for code in [ffi::SQLITE_CORRUPT, ffi::SQLITE_NOTADB] {
            assert!(matches!(of(code), DatabaseError::Open { .. }), "{code}");
        }
        assert!(matches!(of(ffi::SQLITE_BUSY), DatabaseError::Busy(_)));
        assert!(matches!(of(ffi::SQLITE_ERROR), DatabaseError::Sql(_)));
    }
}
