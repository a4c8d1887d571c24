//! The cache: the specification's `CommandHelpCache`, in memory before disk before the program itself.

use super::fetch::Fetcher;
use super::store::{Hit, Kept, Stamp, Store};
use super::{Entry, ManualError, Program};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// How long an entry holds: a day.
pub const FRESH: Duration = Duration::from_secs(24 * 60 * 60);
/// How long an entry with a problem holds, or one that was made in a hurry: what hung once may have been the machine's fault.
pub const FRESH_PROBLEM: Duration = Duration::from_secs(60 * 60);

/// Where a [`Manual`] keeps and finds things.
#[derive(Debug, Clone, Default)]
pub struct Setup {
    /// The cache folder; in memory only without one.
    pub cache_dir: Option<PathBuf>,
    /// The working directory: programs in its working tree are never run.
    pub cwd: Option<PathBuf>,
    /// The person's home.
    pub home: Option<PathBuf>,
    /// The `man` program; without one, only programs themselves are asked.
    pub man: Option<PathBuf>,
}

impl Setup {
    /// Keeps in `cache_dir`, works in `cwd`, and takes home and `man` from the process' environment.
    pub fn of_process(cache_dir: Option<PathBuf>, cwd: Option<PathBuf>) -> Self {
        Self {
            cache_dir,
            cwd,
            home: std::env::home_dir().filter(|home| home.is_absolute()),
            man: caro_exec::find("man"),
        }
    }
}

/// The cache: the specification's `CommandHelpCache`.
#[derive(Debug)]
pub struct Manual {
    fetcher: Fetcher,
    cache_dir: Option<PathBuf>,
    /// Opened by the first who needs it: a start that asks for no manual shall not pay for one.
    store: Mutex<Option<Store>>,
    memory: Mutex<HashMap<String, Kept<Arc<Entry>>>>,
    /// One lock a program that is being fetched, so that two who ask at once fetch it once.
    fetching: Mutex<HashMap<String, Arc<tokio::sync::Mutex<()>>>>,
}

impl Manual {
    /// Opens the cache. Nothing is read yet, and nothing can go wrong: a cache that cannot be used is kept in memory.
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

    /// From now on, programs in the working tree of `cwd` are not run either.
    pub fn avoid(&self, cwd: &Path) {
        self.fetcher.avoid(cwd);
    }

    /// The entry of a program, from memory, disk or the program itself.
    ///
    /// Needs a Tokio runtime with time and IO enabled.
    ///
    /// # Errors
    /// If there can be no such program. One without help is an entry with a [`problem`](Entry::problem).
    pub async fn get_or_fetch(&self, program: &Program) -> Result<Arc<Entry>, ManualError> {
        self.look_up(program, None).await
    }

    /// The entry of a subcommand (`git`, `log`), from its own page or help. Where it has none, the entry has a problem.
    ///
    /// # Errors
    /// As [`Manual::get_or_fetch`].
    pub async fn get_or_fetch_sub(&self, program: &Program, sub: &str) -> Result<Arc<Entry>, ManualError> {
        self.look_up(program, Some(sub)).await
    }

    /// The entry that is about these arguments, and how many of them are behind it: the subcommand's (`git log -5`: 1, or
    /// more if options stand before it), where the program has one of that name, else the program's own (0).
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

    /// The entry of a program if it is at hand and fresh. Runs nothing.
    pub fn get_cached(&self, program: &Program) -> Option<Arc<Entry>> {
        self.at_hand(&key_of(program, None), stamp_of(program)?)
    }

    async fn look_up(&self, program: &Program, sub: Option<&str>) -> Result<Arc<Entry>, ManualError> {
        let name = sub.unwrap_or(program.name());
        if name.is_empty() || name.len() > 255 || name.contains(['/', '\0', '\n']) || name.starts_with('-') {
            return Err(ManualError::Name(name.chars().take(80).collect()));
        }
        let key = key_of(program, sub);
        // A file that cannot be looked at is fetched, so that the entry says so, but not kept.
        let Some(stamp) = stamp_of(program) else { return Ok(Arc::new(self.fetcher.fetch(program).await)) };
        if let Some(entry) = self.at_hand(&key, stamp) {
            return Ok(entry);
        }
        let whole = match sub {
            Some(_) => Some(Box::pin(self.look_up(program, None)).await?),
            None => None,
        };
        let turn = lock(&self.fetching).entry(key.clone()).or_default().clone();
        let _turn = turn.lock().await;
        if let Some(entry) = self.at_hand(&key, stamp) {
            return Ok(entry);
        }
        let entry = match (sub, whole) {
            (Some(sub), Some(whole)) => self.fetcher.fetch_sub(program, &whole, sub).await,
            _ => self.fetcher.fetch(program).await,
        };
        let kept = Kept { stamp, fetched: now(), entry: Arc::new(entry) };
        // A cache that cannot keep it costs time, not the answer.
        let _ = self.with_store(|store| store.put(&key, &Kept { stamp, fetched: kept.fetched, entry: &kept.entry }));
        let entry = kept.entry.clone();
        lock(&self.memory).insert(key.clone(), kept);
        lock(&self.fetching).remove(&key);
        Ok(entry)
    }

    /// From memory, else from disk, if it is about the file as it is and fresh.
    fn at_hand(&self, key: &str, stamp: Stamp) -> Option<Arc<Entry>> {
        if let Some(kept) = lock(&self.memory).get(key)
            && holds(kept.stamp == stamp, kept.fetched, &kept.entry)
        {
            return Some(kept.entry.clone());
        }
        let kept = self.with_store(|store| store.get(key)).ok()??;
        if !holds(kept.stamp == stamp, kept.fetched, &kept.entry) {
            return None;
        }
        let entry = Arc::new(kept.entry);
        lock(&self.memory).insert(key.to_string(), Kept { stamp, fetched: kept.fetched, entry: entry.clone() });
        Some(entry)
    }

    fn with_store<T>(&self, work: impl FnOnce(&mut Store) -> Result<T, ManualError>) -> Result<T, ManualError> {
        let mut store = lock(&self.store);
        match &mut *store {
            Some(store) => work(store),
            empty => work(empty.insert(Store::open(self.cache_dir.as_deref())?)),
        }
    }

    /// The option lines and programs, of all that were ever looked up, that share words with the text; best first.
    ///
    /// # Errors
    /// If the cache cannot be read.
    pub fn search(&self, text: &str, limit: usize) -> Result<Vec<Hit>, ManualError> {
        self.with_store(|store| store.search(text, limit))
    }

    /// Forgets everything; tells how many entries there were.
    ///
    /// # Errors
    /// If the cache cannot be written.
    pub fn clear(&self) -> Result<usize, ManualError> {
        lock(&self.memory).clear();
        self.with_store(Store::clear)
    }

    /// How many entries are kept.
    ///
    /// # Errors
    /// If the cache cannot be read.
    pub fn count(&self) -> Result<usize, ManualError> {
        self.with_store(Store::count)
    }

    /// Where the cache lies; `None` if it is in memory only.
    pub fn location(&self) -> Option<PathBuf> {
        self.with_store(|store| Ok(store.path().map(Path::to_path_buf))).ok().flatten()
    }

    /// Looks all of them up, at most `concurrency` at once, and tells `done` about each as it comes.
    pub async fn warm(
        self: &Arc<Self>,
        programs: Vec<Program>,
        concurrency: usize,
        mut done: impl FnMut(&Program, &Entry),
    ) {
        let mut waiting = programs.into_iter();
        let mut running = tokio::task::JoinSet::new();
        loop {
            while running.len() < concurrency.max(1)
                && let Some(program) = waiting.next()
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

/// True if a kept entry may still be used.
fn holds(same_file: bool, fetched: i64, entry: &Entry) -> bool {
    let life = if entry.problem.is_some() || entry.hurried { FRESH_PROBLEM } else { FRESH };
    let age = now().saturating_sub(fetched);
    // An entry from the future was written under a wrong clock.
    same_file && (0..i64::try_from(life.as_secs()).unwrap_or(i64::MAX)).contains(&age)
}

/// What an entry is kept under: the path as it was called, since one file may be many programs by its name.
fn key_of(program: &Program, sub: Option<&str>) -> String {
    let kind = match program {
        Program::File { .. } => "file",
        Program::Builtin { .. } => "builtin",
    };
    format!("{kind}\n{}\n{}\n{}", program.path().display(), program.name(), sub.unwrap_or_default())
}

/// The state of the program's file; links are followed.
fn stamp_of(program: &Program) -> Option<Stamp> {
    let meta = std::fs::metadata(program.path()).ok()?;
    let mtime = meta.modified().ok()?.duration_since(UNIX_EPOCH).ok()?;
    Some(Stamp { mtime: i64::try_from(mtime.as_nanos()).ok()?, size: i64::try_from(meta.len()).ok()? })
}

/// Seconds since 1970.
fn now() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).ok().and_then(|t| i64::try_from(t.as_secs()).ok()).unwrap_or(0)
}

/// Nobody panics while holding one of these; if somebody did, what is inside is still whole.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
