//! Helpers for SQLite files that several processes open, and create, concurrently. [`mod@file`]: opens a file for
//! writing or only for reading. [`repair`]: recovers a damaged file. Independent of the content of the files.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used))]

pub mod file;
pub mod repair;
#[cfg(any(test, feature = "test-support"))]
pub mod test_support;

pub use file::{DatabaseError, Layout};

use rusqlite::types::{Value, ValueRef};
use rusqlite::{Connection, ErrorCode, Row, TransactionBehavior};
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// The interval between attempts of operations for which SQLite does not wait.
const RETRY_INTERVAL: Duration = Duration::from_millis(5);

/// Enables concurrent access: readers work during writes (a write-ahead log), and a writer waits up to `timeout` for
/// another. Committed data survives a crash of this process; a crash of the machine may lose the last commits.
///
/// # Errors
/// If the file is no database, cannot be written, or is locked for longer than the timeout.
pub fn enable_sharing(sql: &Connection, timeout: Duration) -> rusqlite::Result<()> {
    sql.busy_timeout(timeout)?;
    let started = Instant::now();
    // if several processes enable the log at once, SQLite rejects some without waiting (https://sqlite.org/wal.html,
    // "Sometimes Queries Return SQLITE_BUSY In WAL Mode")
    while let Err(why) = sql.pragma_update(None, "journal_mode", "WAL") {
        if why.sqlite_error_code() != Some(ErrorCode::DatabaseBusy) || started.elapsed() > timeout {
            return Err(why);
        }
        sleep(RETRY_INTERVAL);
    }
    sql.pragma_update(None, "synchronous", "NORMAL")
}

/// Makes SQLite overwrite deleted data, for files with personal data. Copies in the write-ahead log are removed by
/// [`checkpoint`].
///
/// # Errors
/// If SQLite fails.
pub fn overwrite_deleted(sql: &Connection) -> rusqlite::Result<()> {
    sql.pragma_update(None, "secure_delete", true)
}

/// Empties the write-ahead log, and with it the deleted data in it; a process that only reads does not do that when
/// it is the last to close the file. Waits for readers as for a writer, and gives up if they take too long. Must be
/// called outside of a transaction.
pub fn checkpoint(sql: &Connection) {
    // the deletion itself is done, so an error is ignored
    let _ = sql.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
}

/// Deletes something. On a full disk, where the write-ahead log cannot grow, it tries once more with a journal in memory,
/// which writes only into pages that the file has; if this process were killed during that, the file would be damaged.
/// Must be called outside of a transaction.
///
/// # Errors
/// Those of `delete`, and of SQLite if another process keeps the log open.
pub fn delete_on_full_disk<T>(
    sql: &mut Connection,
    mut delete: impl FnMut(&mut Connection) -> rusqlite::Result<T>,
) -> rusqlite::Result<T> {
    let full = match delete(sql) {
        Err(why) if why.sqlite_error_code() == Some(ErrorCode::DiskFull) => why,
        result => return result,
    };
    checkpoint(sql);
    if sql.pragma_update(None, "journal_mode", "MEMORY").is_err() {
        return Err(full);
    }
    let result = delete(sql);
    // the next opening tries again
    let _ = sql.pragma_update(None, "journal_mode", "WAL");
    result
}

/// Shrinks the file if most of it is free. The ids of rows without an explicit key may change. Must be called outside
/// of a transaction.
pub fn shrink(sql: &Connection) {
    let pages = |of: &str| sql.pragma_query_value(None, of, |row| row.get::<_, i64>(0)).unwrap_or_default();
    if 2 * pages("freelist_count") > pages("page_count") {
        // fails while another process writes; the file just stays large
        let _ = sql.execute_batch("VACUUM");
    }
}

/// Returns the version of the file's tables. Creates those of `version` if there are none.
///
/// # Errors
/// If they cannot be read or created.
pub fn create_tables(sql: &mut Connection, tables: &str, version: i64) -> rusqlite::Result<i64> {
    let found = |sql: &Connection| sql.pragma_query_value(None, "user_version", |row| row.get(0));
    let known = found(sql)?;
    if known != 0 {
        return Ok(known);
    }
    // of two processes that find no tables, the second finds those of the first
    let tx = sql.transaction_with_behavior(TransactionBehavior::Immediate)?;
    if found(&tx)? == 0 {
        tx.execute_batch(tables)?;
        tx.pragma_update(None, "user_version", version)?;
    }
    let made = found(&tx)?;
    tx.commit()?;
    Ok(made)
}

/// Copies the readable rows of a damaged file into the same tables of another file, and deletes rows there whose
/// references are lost. A table is read from both ends: rows between two damaged places are lost.
///
/// # Errors
/// If the new file cannot be written. Unreadable data is no error.
pub fn salvage(damaged: &Path, into: &Connection) -> rusqlite::Result<()> {
    let transaction = into.unchecked_transaction()?;
    let tables = table_names(into)?;
    if let Ok(old) = Connection::open(damaged) {
        for table in &tables {
            copy(&old, into, table)?;
        }
    }
    // rows whose references are lost, repeatedly, as deleting them may orphan others
    while tables.iter().map(|table| delete_orphans(into, table)).sum::<rusqlite::Result<usize>>()? > 0 {}
    transaction.commit()
}

/// Returns the number of rows of each table.
///
/// # Errors
/// If they cannot be read.
pub fn counts(sql: &Connection) -> rusqlite::Result<Vec<(String, u64)>> {
    let count = |table: String| {
        let count: i64 = sql.query_row(&format!("SELECT count(*) FROM \"{table}\""), [], |row| row.get(0))?;
        Ok((table, count.unsigned_abs()))
    };
    table_names(sql)?.into_iter().map(count).collect()
}

/// Returns the tables of a file except those of SQLite and of full-text indexes.
fn table_names(sql: &Connection) -> rusqlite::Result<Vec<String>> {
    let all = "SELECT name FROM pragma_table_list WHERE schema = 'main' AND type = 'table' AND name NOT LIKE 'sqlite\\_%' \
               ESCAPE '\\' ORDER BY name";
    sql.prepare(all)?.query_map([], |row| row.get(0))?.collect()
}

/// Returns the columns of a table with their position in the primary key (0: none).
fn columns(sql: &Connection, table: &str) -> rusqlite::Result<Vec<(String, i64)>> {
    let mut all = sql.prepare("SELECT name, pk FROM pragma_table_info(?1)")?;
    all.query_map([table], |row| Ok((row.get(0)?, row.get(1)?)))?.collect()
}

/// Copies the readable rows of a table.
fn copy(old: &Connection, new: &Connection, table: &str) -> rusqlite::Result<()> {
    let known = columns(old, table).unwrap_or_default();
    let mut named: Vec<(String, i64)> = columns(new, table)?;
    named.retain(|(name, _)| known.iter().any(|(other, _)| other == name));
    if named.is_empty() {
        return Ok(());
    }
    let quoted = |name: &str| format!("\"{name}\"");
    let mut names: Vec<String> = named.iter().map(|(name, _)| quoted(name)).collect();
    let has_numbers = new.prepare(&format!("SELECT rowid FROM {}", quoted(table))).is_ok();
    let keys: Vec<String> = match has_numbers {
        true => {
            // without its rowid, a row would be copied twice
            names.insert(0, "rowid".into());
            vec!["rowid".into()]
        }
        false => {
            named.retain(|(_, place)| *place > 0);
            named.sort_by_key(|(_, place)| *place);
            named.iter().map(|(name, _)| quoted(name)).collect()
        }
    };
    let marks = vec!["?"; names.len()].join(", ");
    let (list, table) = (names.join(", "), quoted(table));
    let mut add = new.prepare(&format!("INSERT OR IGNORE INTO {table} ({list}) VALUES ({marks})"))?;
    for direction in ["ASC", "DESC"] {
        let order: Vec<String> = keys.iter().map(|key| format!("{key} {direction}")).collect();
        let all = format!("SELECT {list} FROM {table} NOT INDEXED ORDER BY {}", order.join(", "));
        let Ok(mut all) = old.prepare(&all) else { continue };
        let Ok(mut rows) = all.query([]) else { continue };
        loop {
            match rows.next() {
                Ok(Some(row)) => {
                    let values: rusqlite::Result<Vec<Value>> = (0..names.len()).map(|at| value(row, at)).collect();
                    // an unreadable or invalid value costs its row
                    let Ok(values) = values else { continue };
                    match add.execute(rusqlite::params_from_iter(values)) {
                        Err(e) if e.sqlite_error_code() != Some(ErrorCode::ConstraintViolation) => return Err(e),
                        _ => {}
                    }
                }
                // read to the end: the other direction is not needed
                Ok(None) => return Ok(()),
                Err(_) => break,
            }
        }
    }
    Ok(())
}

/// Reads a value; invalid UTF-8 in a text is replaced.
fn value(row: &Row<'_>, at: usize) -> rusqlite::Result<Value> {
    Ok(match row.get_ref(at)? {
        ValueRef::Null => Value::Null,
        ValueRef::Integer(number) => Value::Integer(number),
        ValueRef::Real(number) => Value::Real(number),
        ValueRef::Text(bytes) => Value::Text(String::from_utf8_lossy(bytes).into_owned()),
        ValueRef::Blob(bytes) => Value::Blob(bytes.to_vec()),
    })
}

/// Deletes rows that refer to a missing row; returns their number.
fn delete_orphans(sql: &Connection, table: &str) -> rusqlite::Result<usize> {
    let mut links =
        sql.prepare("SELECT \"table\", \"from\", coalesce(\"to\", 'id') FROM pragma_foreign_key_list(?1)")?;
    let links: Vec<(String, String, String)> =
        links.query_map([table], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?.collect::<Result<_, _>>()?;
    let gone = links.iter().map(|(parent, from, to)| {
        sql.execute(&format!("DELETE FROM \"{table}\" WHERE \"{from}\" NOT IN (SELECT \"{to}\" FROM \"{parent}\")"), [])
    });
    gone.sum()
}

#[cfg(test)]
mod tests {
    use super::test_support::contains_bytes;
    use super::*;
    use std::sync::Barrier;

    #[test]
    fn many_processes_can_create_a_file_at_once() {
        for _ in 0..40 {
            let dir = tempfile::tempdir().unwrap();
            let (file, start) = (dir.path().join("x.db"), Barrier::new(6));
            let open = || {
                start.wait();
                let mut sql = Connection::open(&file)?;
                enable_sharing(&sql, Duration::from_secs(10))?;
                assert_eq!(create_tables(&mut sql, "CREATE TABLE t (x);", 7)?, 7);
                sql.execute("INSERT INTO t VALUES (1)", [])
            };
            std::thread::scope(|s| {
                let opened: Vec<_> = (0..6).map(|_| s.spawn(open)).collect();
                opened.into_iter().for_each(|one| assert_eq!(one.join().unwrap(), Ok(1)));
            });
        }
    }

    #[test]
    fn deleted_data_is_not_in_the_file() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("x.db");
        let has = |text: &[u8]| std::fs::read(&file).unwrap().windows(text.len()).any(|bytes| bytes == text);
        let mut sql = Connection::open(&file).unwrap();
        enable_sharing(&sql, Duration::from_secs(1)).unwrap();
        overwrite_deleted(&sql).unwrap();
        create_tables(&mut sql, "CREATE TABLE t (x);", 7).unwrap();
        let long = "what is long lies on pages of its own ".repeat(300);
        sql.execute("INSERT INTO t VALUES ('what stays'), ('what goes'), (?1)", [long]).unwrap();
        drop(sql);
        assert!(has(b"what stays") && has(b"what goes") && has(b"pages of its own"));
        let sql = Connection::open(&file).unwrap();
        enable_sharing(&sql, Duration::from_secs(1)).unwrap();
        overwrite_deleted(&sql).unwrap();
        sql.execute("DELETE FROM t WHERE x <> 'what stays'", []).unwrap();
        drop(sql);
        assert!(has(b"what stays") && !has(b"what goes") && !has(b"pages of its own"));
    }

    /// Creates a file whose deleted data is overwritten, with one row.
    fn with_what_goes(file: &Path) -> Connection {
        let mut sql = Connection::open(file).unwrap();
        enable_sharing(&sql, Duration::from_secs(1)).unwrap();
        overwrite_deleted(&sql).unwrap();
        create_tables(&mut sql, "CREATE TABLE t (x);", 7).unwrap();
        sql.execute("INSERT INTO t VALUES ('what goes')", []).unwrap();
        sql
    }

    #[test]
    fn deleted_data_is_not_in_the_log_even_if_a_reader_closes_last() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("x.db");
        let sql = with_what_goes(&file);
        let reader = Connection::open_with_flags(&file, rusqlite::OpenFlags::SQLITE_OPEN_READ_ONLY).unwrap();
        assert_eq!(reader.query_row("SELECT count(*) FROM t", [], |row| row.get(0)), Ok(1));
        assert!(contains_bytes(dir.path(), "what goes").unwrap());
        sql.execute("DELETE FROM t", []).unwrap();
        checkpoint(&sql);
        drop(sql);
        drop(reader);
        assert!(!contains_bytes(dir.path(), "what goes").unwrap());
    }

    #[test]
    fn deletion_on_a_full_disk_needs_no_log() {
        let dir = tempfile::tempdir().unwrap();
        let mut sql = with_what_goes(&dir.path().join("x.db"));
        let journal = |sql: &Connection| sql.pragma_query_value(None, "journal_mode", |row| row.get::<_, String>(0));
        let full = || rusqlite::Error::SqliteFailure(rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_FULL), None);
        let delete = |sql: &mut Connection| match journal(sql)?.as_str() {
            "wal" => Err(full()),
            _ => sql.execute("DELETE FROM t", []),
        };
        assert_eq!(delete_on_full_disk(&mut sql, delete), Ok(1));
        assert_eq!(journal(&sql).unwrap(), "wal");
        checkpoint(&sql);
        assert!(!contains_bytes(dir.path(), "what goes").unwrap());
        assert_eq!(delete_on_full_disk(&mut sql, |_| Err::<(), _>(full())), Err(full()));
    }

    #[test]
    fn a_mostly_empty_file_shrinks() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("x.db");
        let mut sql = Connection::open(&file).unwrap();
        enable_sharing(&sql, Duration::from_secs(1)).unwrap();
        create_tables(&mut sql, "CREATE TABLE t (x);", 7).unwrap();
        for _ in 0..50 {
            sql.execute("INSERT INTO t VALUES (?1)", ["x".repeat(10_000)]).unwrap();
        }
        let after = |deleted: i64| {
            sql.execute("DELETE FROM t WHERE rowid <= ?1", [deleted]).unwrap();
            shrink(&sql);
            checkpoint(&sql);
            std::fs::metadata(&file).unwrap().len()
        };
        let whole = after(0);
        assert_eq!(after(10), whole, "what is left is more than what is free");
        assert!(after(40) < whole / 2);
    }

    #[test]
    fn tables_of_another_version_are_unchanged() {
        let mut sql = Connection::open_in_memory().unwrap();
        sql.pragma_update(None, "user_version", 3).unwrap();
        assert_eq!(create_tables(&mut sql, "CREATE TABLE t (x);", 7), Ok(3));
        assert!(sql.execute("INSERT INTO t VALUES (1)", []).is_err());
    }
}
