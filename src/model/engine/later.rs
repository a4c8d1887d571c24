//! A value that another thread prepares while this one has better things to do.

use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread::JoinHandle;

type Made<T> = Result<T, String>;

/// Prepared at most once; asking for it waits.
pub(super) struct Later<T> {
    value: OnceLock<Made<T>>,
    job: Mutex<Option<JoinHandle<Made<T>>>>,
}

impl<T: Send + 'static> Later<T> {
    /// Nothing yet.
    pub fn new() -> Self {
        Self { value: OnceLock::new(), job: Mutex::new(None) }
    }

    /// Begins to prepare the value, unless somebody has.
    pub fn start(&self, make: impl FnOnce() -> Made<T> + Send + 'static) {
        let mut job = self.job.lock().unwrap_or_else(PoisonError::into_inner);
        if job.is_none() && self.value.get().is_none() {
            // Where the system refuses a thread, `get` reports it.
            *job = std::thread::Builder::new().name("caro-grammar".into()).spawn(make).ok();
        }
    }

    /// The value.
    ///
    /// # Errors
    /// What preparing it said, or that it was never begun.
    pub fn get(&self) -> Result<&T, &str> {
        let made = self.value.get_or_init(|| {
            let job = self.job.lock().unwrap_or_else(PoisonError::into_inner).take();
            match job {
                None => Err("its preparation could not begin".into()),
                Some(job) => job.join().unwrap_or_else(|_| Err("its preparation broke off".into())),
            }
        });
        made.as_ref().map_err(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_preparation_counts_and_everybody_waits_for_it() {
        let later = Later::new();
        let (go, wait) = std::sync::mpsc::channel::<()>();
        later.start(move || wait.recv().map(|()| 1).map_err(|e| e.to_string()));
        later.start(|| Ok(2));
        std::thread::scope(|scope| {
            let waiting = [scope.spawn(|| later.get()), scope.spawn(|| later.get())];
            go.send(()).unwrap();
            for thread in waiting {
                assert_eq!(thread.join().unwrap(), Ok(&1));
            }
        });
    }

    #[test]
    fn what_goes_wrong_is_told() {
        assert!(Later::<u32>::new().get().is_err());
        let later = Later::<u32>::new();
        later.start(|| panic!("no value"));
        assert_eq!(later.get(), Err("its preparation broke off"));
        let later = Later::<u32>::new();
        later.start(|| Err("no".into()));
        assert_eq!(later.get(), Err("no"));
    }
}
