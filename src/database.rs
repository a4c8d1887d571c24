//! What every SQLite file of this program needs: several processes open it, and make it, at once.

use rusqlite::{Connection, ErrorCode, TransactionBehavior};
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

/// True if a file of that folder has these words.
#[cfg(test)]
pub fn holds(folder: &std::path::Path, words: &str) -> bool {
    let files = std::fs::read_dir(folder).unwrap().map(|file| std::fs::read(file.unwrap().path()).unwrap());
    files.into_iter().any(|bytes| bytes.windows(words.len()).any(|some| some == words.as_bytes()))
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
        assert!(holds(dir.path(), "what goes"));
        sql.execute("DELETE FROM t", []).unwrap();
        settle(&sql);
        drop(sql);
        drop(reader);
        assert!(!holds(dir.path(), "what goes"));
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
