//! SQLite files that several processes open, and make, at once: what all of them have in common. [`mod@file`]: one of them opened, to
//! write or only to read; [`repair`]: what can be saved of a damaged one. What stands in them is no matter of this room.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used))]

pub mod file;
pub mod repair;

pub use file::{DatabaseError, Layout};

use rusqlite::types::{Value, ValueRef};
use rusqlite::{Connection, ErrorCode, Row, TransactionBehavior};
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Between two attempts at what SQLite does not wait for.
const PAUSE: Duration = Duration::from_millis(5);

/// Readers go on while somebody writes (a write-ahead log), and a writer waits `patience` for another one. What was
/// written survives a crash of this process; one of the whole machine may cost the last moments.
///
/// # Errors
/// If the file is no database, cannot be written, or is held for longer than that.
pub fn share(sql: &Connection, patience: Duration) -> rusqlite::Result<()> {
    sql.busy_timeout(patience)?;
    let begun = Instant::now();
    // of several that turn the log on at once SQLite turns some away without waiting
    // (https://sqlite.org/wal.html, "Sometimes Queries Return SQLITE_BUSY In WAL Mode")
    while let Err(why) = sql.pragma_update(None, "journal_mode", "WAL") {
        if why.sqlite_error_code() != Some(ErrorCode::DatabaseBusy) || begun.elapsed() > patience {
            return Err(why);
        }
        sleep(PAUSE);
    }
    sql.pragma_update(None, "synchronous", "NORMAL")
}

/// What is deleted is overwritten, and not only given up: in a file of what a person says and has. What the write-ahead log
/// still has of it goes with [`settle`].
///
/// # Errors
/// If SQLite cannot.
pub fn overwrite(sql: &Connection) -> rusqlite::Result<()> {
    sql.pragma_update(None, "secure_delete", true)
}

/// Has what was deleted leave the write-ahead log too, which is emptied: a process that only reads does not empty it when it
/// closes the file last. While another one is reading it waits for that as for a writer, and leaves it to the next time then.
/// Outside of a transaction.
pub fn settle(sql: &Connection) {
    // the deletion itself is done, whatever comes of this
    let _ = sql.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
}

/// Gives what was deleted back to the disk, where that is most of the file. Numbers that are no table's own key may change.
/// Outside of a transaction.
pub fn shrink(sql: &Connection) {
    let pages = |of: &str| sql.pragma_query_value(None, of, |row| row.get::<_, i64>(0)).unwrap_or_default();
    if 2 * pages("freelist_count") > pages("page_count") {
        // while another process writes it stays as large as it is
        let _ = sql.execute_batch("VACUUM");
    }
}

/// The version of the file's tables; those of `version` are made where there are none.
///
/// # Errors
/// If they cannot be read or made.
pub fn tables(sql: &mut Connection, tables: &str, version: i64) -> rusqlite::Result<i64> {
    let found = |sql: &Connection| sql.pragma_query_value(None, "user_version", |row| row.get(0));
    let known = found(sql)?;
    if known != 0 {
        return Ok(known);
    }
    // of two that find none, the later finds those of the other
    let tx = sql.transaction_with_behavior(TransactionBehavior::Immediate)?;
    if found(&tx)? == 0 {
        tx.execute_batch(tables)?;
        tx.pragma_update(None, "user_version", version)?;
    }
    let made = found(&tx)?;
    tx.commit()?;
    Ok(made)
}

/// Copies what can be read of the tables of a damaged file into the same tables of another one, and takes out what stands
/// alone there. A table is read from both ends: what lies between two damaged places is lost.
///
/// # Errors
/// If the new file cannot be written. What cannot be read is no error.
pub fn salvage(damaged: &Path, into: &Connection) -> rusqlite::Result<()> {
    let transaction = into.unchecked_transaction()?;
    let tables = tables_of(into)?;
    if let Ok(old) = Connection::open(damaged) {
        for table in &tables {
            copy(&old, into, table)?;
        }
    }
    // whose other half is lost: until nothing more goes with what went
    while tables.iter().map(|table| orphans(into, table)).sum::<rusqlite::Result<usize>>()? > 0 {}
    transaction.commit()
}

/// How many entries each table has.
///
/// # Errors
/// If they cannot be read.
pub fn counts(sql: &Connection) -> rusqlite::Result<Vec<(String, u64)>> {
    let count = |table: String| {
        let count: i64 = sql.query_row(&format!("SELECT count(*) FROM \"{table}\""), [], |row| row.get(0))?;
        Ok((table, count.unsigned_abs()))
    };
    tables_of(sql)?.into_iter().map(count).collect()
}

/// The tables of a file that are its own: neither SQLite's nor those of an index of words.
fn tables_of(sql: &Connection) -> rusqlite::Result<Vec<String>> {
    let all = "SELECT name FROM pragma_table_list WHERE schema = 'main' AND type = 'table' AND name NOT LIKE 'sqlite\\_%' \
               ESCAPE '\\' ORDER BY name";
    sql.prepare(all)?.query_map([], |row| row.get(0))?.collect()
}

/// The columns of a table, those of its key first in their order.
fn columns(sql: &Connection, table: &str) -> rusqlite::Result<Vec<(String, i64)>> {
    let mut all = sql.prepare("SELECT name, pk FROM pragma_table_info(?1)")?;
    all.query_map([table], |row| Ok((row.get(0)?, row.get(1)?)))?.collect()
}

/// Copies a table, as far as it can be read.
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
            // without its number an entry would be there twice
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
                    // a value that cannot be read, or is none of such a column, costs its entry
                    let Ok(values) = values else { continue };
                    match add.execute(rusqlite::params_from_iter(values)) {
                        Err(e) if e.sqlite_error_code() != Some(ErrorCode::ConstraintViolation) => return Err(e),
                        _ => {}
                    }
                }
                // read to its end: nothing is left for the other direction
                Ok(None) => return Ok(()),
                Err(_) => break,
            }
        }
    }
    Ok(())
}

/// A value; of a text what is no text is marked.
fn value(row: &Row<'_>, at: usize) -> rusqlite::Result<Value> {
    Ok(match row.get_ref(at)? {
        ValueRef::Null => Value::Null,
        ValueRef::Integer(number) => Value::Integer(number),
        ValueRef::Real(number) => Value::Real(number),
        ValueRef::Text(bytes) => Value::Text(String::from_utf8_lossy(bytes).into_owned()),
        ValueRef::Blob(bytes) => Value::Blob(bytes.to_vec()),
    })
}

/// Takes out the entries of a table that belong to one which is not there; how many.
fn orphans(sql: &Connection, table: &str) -> rusqlite::Result<usize> {
    let mut links =
        sql.prepare("SELECT \"table\", \"from\", coalesce(\"to\", 'id') FROM pragma_foreign_key_list(?1)")?;
    let links: Vec<(String, String, String)> =
        links.query_map([table], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?.collect::<Result<_, _>>()?;
    let gone = links.iter().map(|(parent, from, to)| {
        sql.execute(&format!("DELETE FROM \"{table}\" WHERE \"{from}\" NOT IN (SELECT \"{to}\" FROM \"{parent}\")"), [])
    });
    gone.sum()
}

/// True if a file of that folder has these words, whatever else is in it: tests of all who keep something look for what is to be gone.
///
/// # Errors
/// If the folder or a file of it cannot be read.
#[doc(hidden)]
pub fn holds(folder: &Path, words: &str) -> std::io::Result<bool> {
    for file in std::fs::read_dir(folder)? {
        if std::fs::read(file?.path())?.windows(words.len()).any(|some| some == words.as_bytes()) {
            return Ok(true);
        }
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Barrier;

    #[test]
    fn of_many_that_make_a_file_at_once_each_opens_it() {
        for _ in 0..40 {
            let dir = tempfile::tempdir().unwrap();
            let (file, start) = (dir.path().join("x.db"), Barrier::new(6));
            let open = || {
                start.wait();
                let mut sql = Connection::open(&file)?;
                share(&sql, Duration::from_secs(10))?;
                assert_eq!(tables(&mut sql, "CREATE TABLE t (x);", 7)?, 7);
                sql.execute("INSERT INTO t VALUES (1)", [])
            };
            std::thread::scope(|s| {
                let opened: Vec<_> = (0..6).map(|_| s.spawn(open)).collect();
                opened.into_iter().for_each(|one| assert_eq!(one.join().unwrap(), Ok(1)));
            });
        }
    }

    #[test]
    fn what_is_deleted_is_not_in_the_file() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("x.db");
        let has = |text: &[u8]| std::fs::read(&file).unwrap().windows(text.len()).any(|bytes| bytes == text);
        let mut sql = Connection::open(&file).unwrap();
        share(&sql, Duration::from_secs(1)).unwrap();
        overwrite(&sql).unwrap();
        tables(&mut sql, "CREATE TABLE t (x);", 7).unwrap();
        let long = "what is long lies on pages of its own ".repeat(300);
        sql.execute("INSERT INTO t VALUES ('what stays'), ('what goes'), (?1)", [long]).unwrap();
        drop(sql);
        assert!(has(b"what stays") && has(b"what goes") && has(b"pages of its own"));
        let sql = Connection::open(&file).unwrap();
        share(&sql, Duration::from_secs(1)).unwrap();
        overwrite(&sql).unwrap();
        sql.execute("DELETE FROM t WHERE x <> 'what stays'", []).unwrap();
        drop(sql);
        assert!(has(b"what stays") && !has(b"what goes") && !has(b"pages of its own"));
    }

    #[test]
    fn what_is_deleted_is_not_in_the_log_either_though_a_reader_closes_last() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("x.db");
        let mut sql = Connection::open(&file).unwrap();
        share(&sql, Duration::from_secs(1)).unwrap();
        overwrite(&sql).unwrap();
        tables(&mut sql, "CREATE TABLE t (x);", 7).unwrap();
        sql.execute("INSERT INTO t VALUES ('what goes')", []).unwrap();
        let reader = Connection::open_with_flags(&file, rusqlite::OpenFlags::SQLITE_OPEN_READ_ONLY).unwrap();
        assert_eq!(reader.query_row("SELECT count(*) FROM t", [], |row| row.get(0)), Ok(1));
        assert!(holds(dir.path(), "what goes").unwrap());
        sql.execute("DELETE FROM t", []).unwrap();
        settle(&sql);
        drop(sql);
        drop(reader);
        assert!(!holds(dir.path(), "what goes").unwrap());
    }

    #[test]
    fn a_file_that_is_mostly_empty_becomes_smaller() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("x.db");
        let mut sql = Connection::open(&file).unwrap();
        share(&sql, Duration::from_secs(1)).unwrap();
        tables(&mut sql, "CREATE TABLE t (x);", 7).unwrap();
        for _ in 0..50 {
            sql.execute("INSERT INTO t VALUES (?1)", ["x".repeat(10_000)]).unwrap();
        }
        let after = |deleted: i64| {
            sql.execute("DELETE FROM t WHERE rowid <= ?1", [deleted]).unwrap();
            shrink(&sql);
            settle(&sql);
            std::fs::metadata(&file).unwrap().len()
        };
        let whole = after(0);
        assert_eq!(after(10), whole, "what is left is more than what is free");
        assert!(after(40) < whole / 2);
    }

    #[test]
    fn the_tables_of_another_version_stay_as_they_are() {
        let mut sql = Connection::open_in_memory().unwrap();
        sql.pragma_update(None, "user_version", 3).unwrap();
        assert_eq!(tables(&mut sql, "CREATE TABLE t (x);", 7), Ok(3));
        assert!(sql.execute("INSERT INTO t VALUES (1)", []).is_err());
    }
}
