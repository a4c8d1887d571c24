//! The cache of manuals (the specification's `CommandHelpCache`): in memory, on disk, or fetched from the program.

use super::fetch::Fetcher;
use super::store::{CacheRow, Hit, Stamp, Store};
use super::{Entry, ManualError, Program};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Lifetime of an entry: one day.
pub const LIFETIME: Duration = Duration::from_secs(24 * 60 * 60);
/// Lifetime of an entry with a problem or a timeout, which may have been the machine's fault.
pub const PROBLEM_LIFETIME: Duration = Duration::from_secs(60 * 60);

/// The places that a [`Manual`] uses.
#[derive(Debug, Clone, Default)]
pub struct Setup {
    /// The cache folder; `None` for a cache in memory only.
    pub cache_dir: Option<PathBuf>,
    /// The working directory; programs in its working tree are never run.
    pub cwd: Option<PathBuf>,
    /// The user's home folder.
    pub home: Option<PathBuf>,
    /// The `man` program; without it, only the programs themselves are asked.
    pub man: Option<PathBuf>,
}

impl Setup {
    /// Creates the setup with home and `man` from the process environment.
    pub fn of_process(cache_dir: Option<PathBuf>, cwd: Option<PathBuf>) -> Self {
        Self {
            cache_dir,
            cwd,
            home: std::env::home_dir().filter(|home| home.is_absolute()),
            man: caro_exec::find("man"),
        }
    }
}

/// The cache of manuals.
#[derive(Debug)]
pub struct Manual {
    fetcher: Fetcher,
    cache_dir: Option<PathBuf>,
    /// Opened on first use, so that a start without manuals does not pay for it.
    store: Mutex<Option<Store>>,
    memory: Mutex<HashMap<String, CacheRow<Arc<Entry>>>>,
    /// One lock per program that is being fetched, so that it is fetched only once at a time.
    fetching: Mutex<HashMap<String, Arc<tokio::sync::Mutex<()>>>>,
}

impl Manual {
    /// Creates the cache without reading anything. Cannot fail: if the file is unusable, the cache is in memory.
    pub fn open(setup: Setup) -> Self {
        let fetcher = Fetcher::new(setup.man, setup.home);
        if let Some(cwd) = &setup.cwd {
            fetcher.avoid(cwd);
        }
        Self {
            fetcher,
            cache_dir: setup.cache_dir,
            store: Mutex::default(),
            memory: Mutex::default(),
            fetching: Mutex::default(),
        }
    }

    /// Also avoids running programs in the working tree of `cwd` from now on.
    pub fn avoid(&self, cwd: &Path) {
        self.fetcher.avoid(cwd);
    }

    /// Returns the entry of a program, from memory, disk or the program itself.
    ///
    /// Needs a Tokio runtime with time and IO enabled.
    ///
    /// # Errors
    /// If the name is invalid. A program without help has an entry with a [`problem`](Entry::problem).
    pub async fn get_or_fetch(&self, program: &Program) -> Result<Arc<Entry>, ManualError> {
        self.look_up(program, None).await
    }

    /// Returns the entry of a subcommand (`git`, `log`), from its own page or help; the entry has a problem if there
    /// is none.
    ///
    /// # Errors
    /// As [`Manual::get_or_fetch`].
    pub async fn get_or_fetch_sub(&self, program: &Program, sub: &str) -> Result<Arc<Entry>, ManualError> {
        self.look_up(program, Some(sub)).await
    }

    /// Returns the entry about these arguments, and how many of them it covers: that of the subcommand (`git log -5`:
    /// 1, or more if options precede it), if the program has it, else that of the program (0).
    ///
    /// # Errors
    /// As [`Manual::get_or_fetch`].
    pub async fn get_for(&self, program: &Program, args: &[&str]) -> Result<(Arc<Entry>, usize), ManualError> {
        let whole = self.get_or_fetch(program).await?;
        if let Some(at) = whole.subcommand_at(args) {
            let sub = self.get_or_fetch_sub(program, args[at]).await?;
            if sub.problem.is_none() {
                return Ok((sub, at + 1));
            }
        }
        Ok((whole, 0))
    }

    /// Returns the entry of a program if it is cached and fresh. Runs nothing.
    pub fn get_cached(&self, program: &Program) -> Option<Arc<Entry>> {
        self.cached(&key_of(program, None), stamp_of(program)?)
    }

    async fn look_up(&self, program: &Program, sub: Option<&str>) -> Result<Arc<Entry>, ManualError> {
        let name = sub.unwrap_or(program.name());
        if name.is_empty() || name.len() > 255 || name.contains(['/', '\0', '\n']) || name.starts_with('-') {
            return Err(ManualError::Name(name.chars().take(80).collect()));
        }
        let key = key_of(program, sub);
        // an unreadable file is fetched, so that the entry reports it, but not cached
        let Some(stamp) = stamp_of(program) else { return Ok(Arc::new(self.fetcher.fetch(program).await)) };
        if let Some(entry) = self.cached(&key, stamp) {
            return Ok(entry);
        }
        let whole = match sub {
            Some(_) => Some(Box::pin(self.look_up(program, None)).await?),
            None => None,
        };
        let fetch_lock = lock(&self.fetching).entry(key.clone()).or_default().clone();
        let _guard = fetch_lock.lock().await;
        if let Some(entry) = self.cached(&key, stamp) {
            return Ok(entry);
        }
        let entry = match (sub, whole) {
            (Some(sub), Some(whole)) => self.fetcher.fetch_sub(program, &whole, sub).await,
            _ => self.fetcher.fetch(program).await,
        };
        let row = CacheRow { stamp, fetched: now(), entry: Arc::new(entry) };
        // a failure to store the entry costs time, not the answer
        let _ = self.with_store(|store| store.put(&key, &CacheRow { stamp, fetched: row.fetched, entry: &row.entry }));
        let entry = row.entry.clone();
        lock(&self.memory).insert(key.clone(), row);
        lock(&self.fetching).remove(&key);
        Ok(entry)
    }

    /// Returns the entry from memory or disk, if it is fresh and the file is unchanged.
    fn cached(&self, key: &str, stamp: Stamp) -> Option<Arc<Entry>> {
        if let Some(row) = lock(&self.memory).get(key)
            && is_fresh(row.stamp == stamp, row.fetched, &row.entry)
        {
            return Some(row.entry.clone());
        }
        let row = self.with_store(|store| store.get(key)).ok()??;
        if !is_fresh(row.stamp == stamp, row.fetched, &row.entry) {
            return None;
        }
        let entry = Arc::new(row.entry);
        lock(&self.memory).insert(key.to_string(), CacheRow { stamp, fetched: row.fetched, entry: entry.clone() });
        Some(entry)
    }

    fn with_store<T>(&self, work: impl FnOnce(&mut Store) -> Result<T, ManualError>) -> Result<T, ManualError> {
        let mut store = lock(&self.store);
        match &mut *store {
            Some(store) => work(store),
            empty => work(empty.insert(Store::open(self.cache_dir.as_deref())?)),
        }
    }

    /// Searches the option lines and programs of all cached entries for words of the text; best first.
    ///
    /// # Errors
    /// If the cache cannot be read.
    pub fn search(&self, text: &str, limit: usize) -> Result<Vec<Hit>, ManualError> {
        self.with_store(|store| store.search(text, limit))
    }

    /// Deletes all entries and returns their number.
    ///
    /// # Errors
    /// If the cache cannot be written.
    pub fn clear(&self) -> Result<usize, ManualError> {
        lock(&self.memory).clear();
        self.with_store(Store::clear)
    }

    /// Returns the number of entries.
    ///
    /// # Errors
    /// If the cache cannot be read.
    pub fn count(&self) -> Result<usize, ManualError> {
        self.with_store(Store::count)
    }

    /// The path of the cache; `None` if it is in memory only.
    pub fn location(&self) -> Option<PathBuf> {
        self.with_store(|store| Ok(store.path().map(Path::to_path_buf))).ok().flatten()
    }

    /// Looks up all programs, at most `concurrency` at once, and calls `done` for each result.
    pub async fn warm(
        self: &Arc<Self>,
        programs: Vec<Program>,
        concurrency: usize,
        mut done: impl FnMut(&Program, &Entry),
    ) {
        let mut queue = programs.into_iter();
        let mut running = tokio::task::JoinSet::new();
        loop {
            while running.len() < concurrency.max(1)
                && let Some(program) = queue.next()
            {
                let manual = self.clone();
                running.spawn(async move {
                    let entry = manual.get_or_fetch(&program).await;
                    (program, entry)
                });
            }
            match running.join_next().await {
                None => return,
                Some(Ok((program, Ok(entry)))) => done(&program, &entry),
                Some(_) => {}
            }
        }
    }
}

/// True if a cached entry may still be used.
fn is_fresh(same_file: bool, fetched: i64, entry: &Entry) -> bool {
    let lifetime = if entry.problem.is_some() || entry.hurried { PROBLEM_LIFETIME } else { LIFETIME };
    let age = now().saturating_sub(fetched);
    // an entry from the future was written under a wrong clock
    same_file && (0..i64::try_from(lifetime.as_secs()).unwrap_or(i64::MAX)).contains(&age)
}

/// Returns the cache key: it has the path as called, since one file may be several programs by its name.
fn key_of(program: &Program, sub: Option<&str>) -> String {
    let kind = match program {
        Program::File { .. } => "file",
        Program::Builtin { .. } => "builtin",
    };
    format!("{kind}\n{}\n{}\n{}", program.path().display(), program.name(), sub.unwrap_or_default())
}

/// Returns the state of the program's file, following links.
fn stamp_of(program: &Program) -> Option<Stamp> {
    let meta = std::fs::metadata(program.path()).ok()?;
    let mtime = meta.modified().ok()?.duration_since(UNIX_EPOCH).ok()?;
    Some(Stamp { mtime: i64::try_from(mtime.as_nanos()).ok()?, size: i64::try_from(meta.len()).ok()? })
}

/// Seconds since 1970.
fn now() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).ok().and_then(|t| i64::try_from(t.as_secs()).ok()).unwrap_or(0)
}

/// Locks a mutex. A panic with a lock held leaves no inconsistent data.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
