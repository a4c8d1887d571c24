//! The manuals of installed programs: version, help, man summary and an index of their options, fetched once a day in
//! a sandbox and cached in SQLite. Uses no model; never runs a program in the working tree.
//!
//! - [`Manual`]: the cache. [`Entry`], [`OptionEntry`]: its content.
//! - [`Entry::knows`], [`Entry::unknown_flags`]: decide whether a flag exists. [`relevant`]: the option lines that
//!   matter for a request.
//! - `fetch`: asks programs. `trust`: decides which may be run. `assemble`: creates the entry. `index`: parses the
//!   texts. `store`: the cache file.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used))]

mod answer;
mod assemble;
mod cache;
mod entry;
mod fetch;
mod flags;
mod index;
mod relevant;
mod store;
mod trust;
mod value;

pub use cache::{LIFETIME, Manual, PROBLEM_LIFETIME, Setup};
pub use entry::{Entry, OptionEntry, Program};
pub use flags::{Known, Use};
pub use relevant::relevant;
pub use store::Hit;

/// The most common programs of all systems, by name: the default of [`Manual::warm`].
pub fn common() -> impl Iterator<Item = &'static str> {
    include_str!("common.txt").split_whitespace()
}

/// The reason why there is no entry.
#[derive(Debug, thiserror::Error)]
pub enum ManualError {
    /// The database failed.
    #[error("the help cache is not usable: {0}")]
    Store(String),
    /// The text cannot be the name of a program.
    #[error("there can be no program called {0:?}")]
    Name(String),
}

impl ManualError {
    /// Advice to the user.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Store(_) => "run `caro manual clear`, or set CARO_CACHE_DIR to a folder that can be written",
            Self::Name(_) => "give the name of a program on PATH, without its folder",
        }
    }
}

impl From<rusqlite::Error> for ManualError {
    fn from(why: rusqlite::Error) -> Self {
        Self::Store(why.to_string())
    }
}
