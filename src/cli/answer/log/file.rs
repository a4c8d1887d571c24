//! A log file of requests, one a line: private to its owner, limited in number and age, and without requests that
//! hold a secret.

use crate::Dirs;
use caro_base::files::{self, Access};
use caro_policy::Redactor;
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// Most requests stored.
pub const MAX_ENTRIES: usize = 2000;
/// Days after which a request is dropped.
pub const MAX_DAYS: u64 = 180;

/// Most bytes read from the file.
const MAX_FILE: u64 = 64 << 20;

/// A logged request with its command.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Entry {
    /// The time, seconds since 1970.
    pub at: u64,
    /// The words of the request.
    pub request: String,
    /// The command; if one was run, that one.
    pub command: String,
    /// The machine that it is for.
    pub target: String,
    /// The shell that it is for.
    pub shell: String,
    /// The working directory of the request.
    pub folder: String,
    /// True if caro ran it.
    pub ran: bool,
    /// Its exit status, if it was run.
    pub status: Option<i32>,
}

/// A log file.
#[derive(Debug, Clone)]
pub struct Log {
    file: PathBuf,
}

impl Log {
    /// The log of this user; `None` if there is no folder for it. Opens nothing.
    pub fn of(dirs: &Dirs) -> Option<Self> {
        Some(Self { file: dirs.state.as_ref()?.join("requests.jsonl") })
    }

    /// The log of the last answer of a terminal session, in the folder of such logs; see [`super::last`].
    pub fn of_session(folder: &Path, leader: u32) -> Self {
        Self { file: folder.join(format!("{leader}.jsonl")) }
    }

    /// The path of the file.
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// Adds a request. Returns false if it holds a secret and so is not stored.
    ///
    /// # Errors
    /// An I/O error.
    pub fn add(&self, entry: &Entry) -> io::Result<bool> {
        if has_secret(entry, &Redactor::default()) {
            return Ok(false);
        }
        let _lock = self.lock()?;
        let mut line = serde_json::to_string(entry)?;
        line.push('\n');
        let entries = self.lines()?;
        if entries.iter().any(|old| !is_recent(old, entry.at)) || entries.len() >= MAX_ENTRIES + MAX_ENTRIES / 10 {
            let mut text = String::new();
            for old in &bounded(entries, entry.at) {
                text.push_str(&serde_json::to_string(old)?);
                text.push('\n');
            }
            text.push_str(&line);
            return files::replace(&self.file, text.as_bytes(), Access::Private).map(|()| true);
        }
        let mut file = private().read(true).append(true).open(&self.file)?;
        // its permissions may have been changed
        #[cfg(unix)]
        file.set_permissions(std::os::unix::fs::PermissionsExt::from_mode(0o600))?;
        // a line that was cut off, as on a full disk, takes no other with it
        if !ends_in_line_end(&mut file)? {
            line.insert(0, '\n');
        }
        file.write_all(line.as_bytes())?;
        Ok(true)
    }

    /// Replaces the log with these requests, leaving out all up to the last one with a secret.
    ///
    /// # Errors
    /// An I/O error.
    pub fn replace(&self, entries: &[Entry]) -> io::Result<()> {
        let redactor = Redactor::default();
        let from = entries.iter().rposition(|entry| has_secret(entry, &redactor)).map_or(0, |at| at + 1);
        let mut text = String::new();
        for entry in &entries[from..] {
            text.push_str(&serde_json::to_string(entry)?);
            text.push('\n');
        }
        match text.is_empty() {
            true => self.remove(),
            false => files::replace(&self.file, text.as_bytes(), Access::Private),
        }
    }

    /// Deletes the file, if it exists.
    ///
    /// # Errors
    /// An I/O error.
    pub fn remove(&self) -> io::Result<()> {
        match fs::remove_file(&self.file) {
            Err(e) if e.kind() != ErrorKind::NotFound => Err(e),
            _ => Ok(()),
        }
    }

    /// Returns the requests that are not too old at the time `now`, the oldest first.
    ///
    /// # Errors
    /// An I/O error.
    pub fn entries(&self, now: u64) -> io::Result<Vec<Entry>> {
        Ok(bounded(self.lines()?, now))
    }

    /// Deletes all requests, and returns their number.
    ///
    /// # Errors
    /// An I/O error.
    pub fn clear(&self) -> io::Result<usize> {
        if !self.file.try_exists()? {
            return Ok(0);
        }
        let _lock = self.lock()?;
        let count = self.lines()?.len();
        fs::remove_file(&self.file)?;
        Ok(count)
    }

    /// Reads the entries; a truncated line, or one of a newer program, is skipped.
    fn lines(&self) -> io::Result<Vec<Entry>> {
        match files::read(&self.file, MAX_FILE) {
            Ok(bytes) => {
                Ok(String::from_utf8_lossy(&bytes).lines().filter_map(|line| serde_json::from_str(line).ok()).collect())
            }
            Err(e) if e.kind() == ErrorKind::NotFound => Ok(Vec::new()),
            Err(e) => Err(e),
        }
    }

    /// Locks the log until the returned file is dropped or the process ends.
    fn lock(&self) -> io::Result<File> {
        files::lock(&self.file.with_extension("lock"))
    }
}

/// True if a file ends in a line end, or is empty.
fn ends_in_line_end(file: &mut File) -> io::Result<bool> {
    if file.seek(SeekFrom::End(0))? == 0 {
        return Ok(true);
    }
    let mut last = [0];
    file.seek(SeekFrom::End(-1))?;
    file.read_exact(&mut last)?;
    Ok(last == *b"\n")
}

/// Options that create a file private to its owner.
fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.create(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

/// True if an entry holds something that looks like a key or a password.
fn has_secret(entry: &Entry, redactor: &Redactor) -> bool {
    [&entry.request, &entry.command, &entry.folder].into_iter().any(|text| redactor.text(text) != *text)
}

/// True if an entry is not too old.
fn is_recent(entry: &Entry, now: u64) -> bool {
    now.saturating_sub(entry.at) <= MAX_DAYS * 86_400
}

/// Drops the entries that are too old, and the oldest ones beyond the limit.
fn bounded(mut entries: Vec<Entry>, now: u64) -> Vec<Entry> {
    entries.retain(|entry| is_recent(entry, now));
    let excess = entries.len().saturating_sub(MAX_ENTRIES);
    entries.drain(..excess);
    entries
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(at: u64, request: &str) -> Entry {
        Entry {
            at,
            request: request.into(),
            command: "ls".into(),
            target: "linux-gnu".into(),
            shell: "bash".into(),
            folder: "/w".into(),
            ran: false,
            status: None,
        }
    }

    fn log(dir: &Path) -> Log {
        Log::of(&Dirs { state: Some(dir.join("state")), ..Dirs::default() }).unwrap()
    }

    #[test]
    fn entries_are_read_back_in_order() {
        let dir = tempfile::tempdir().unwrap();
        let log = log(dir.path());
        assert_eq!((log.entries(9).unwrap(), log.clear().unwrap()), (Vec::new(), 0));
        let run = Entry { ran: true, status: Some(3), ..entry(2, "größte Dateien\nzeigen") };
        assert!(log.add(&entry(1, "list files")).unwrap() && log.add(&run).unwrap());
        assert_eq!(log.entries(9).unwrap(), [entry(1, "list files"), run]);
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            assert_eq!(log.file().metadata().unwrap().permissions().mode() & 0o777, 0o600);
        }
        assert_eq!(log.clear().unwrap(), 2);
        assert!(!log.file().exists());
    }

    #[test]
    fn a_request_with_a_secret_is_not_stored() {
        let dir = tempfile::tempdir().unwrap();
        let log = log(dir.path());
        let token = format!("ghp_{}", "a1".repeat(18));
        assert!(!log.add(&entry(1, &format!("log in with {token}"))).unwrap());
        assert!(!log.add(&Entry { command: format!("curl -u me:{token} x"), ..entry(1, "log in") }).unwrap());
        assert!(!log.file().exists());
    }

    #[test]
    fn a_replacement_begins_after_the_last_secret() {
        let dir = tempfile::tempdir().unwrap();
        let log = Log::of_session(&dir.path().join("last"), 7);
        let secret = Entry { command: format!("curl -u me:ghp_{} x", "a1".repeat(18)), ..entry(2, "log in") };
        log.replace(&[entry(1, "a"), entry(2, "b")]).unwrap();
        assert_eq!(log.entries(9).unwrap().len(), 2);
        log.replace(&[entry(1, "a"), secret.clone(), entry(3, "c")]).unwrap();
        assert_eq!(log.entries(9).unwrap(), [entry(3, "c")]);
        log.replace(&[entry(1, "a"), secret]).unwrap();
        assert!(!log.file().exists(), "what was kept before is not the last any more");
        log.remove().unwrap();
    }

    #[test]
    fn the_oldest_are_dropped_by_number_and_by_age() {
        let dir = tempfile::tempdir().unwrap();
        let log = log(dir.path());
        let day = 86_400;
        log.add(&entry(day, "old")).unwrap();
        log.add(&entry(MAX_DAYS * day, "new")).unwrap();
        let now = (MAX_DAYS + 2) * day;
        assert_eq!(log.entries(now).unwrap().len(), 1, "what is too old is not shown");
        log.add(&entry(now, "newest")).unwrap();
        assert!(!fs::read_to_string(log.file()).unwrap().contains("\"old\""), "nor kept");
        let many: String = (0..MAX_ENTRIES + MAX_ENTRIES / 10)
            .map(|n| serde_json::to_string(&entry(now, &format!("n{n}"))).unwrap() + "\n")
            .collect();
        fs::write(log.file(), many).unwrap();
        log.add(&entry(now, "last")).unwrap();
        let kept = log.entries(now).unwrap();
        assert_eq!((kept.len(), kept[MAX_ENTRIES - 1].request.as_str()), (MAX_ENTRIES, "last"));
        assert_eq!(fs::read_to_string(log.file()).unwrap().lines().count(), MAX_ENTRIES + 1);
    }

    #[test]
    fn a_truncated_line_is_skipped() {
        let dir = tempfile::tempdir().unwrap();
        let log = log(dir.path());
        log.add(&entry(1, "a")).unwrap();
        let text = fs::read_to_string(log.file()).unwrap();
        fs::write(log.file(), format!("{text}{{\"at\": 5, \"requ\n{text}")).unwrap();
        assert_eq!(log.entries(2).unwrap().len(), 2);
        fs::write(log.file(), format!("{text}{{\"at\": 5")).unwrap();
        log.add(&entry(2, "b")).unwrap();
        log.add(&entry(3, "c")).unwrap();
        assert_eq!(log.entries(3).unwrap(), [entry(1, "a"), entry(2, "b"), entry(3, "c")]);
        assert_eq!(fs::read_to_string(log.file()).unwrap().lines().count(), 4);
    }
}
