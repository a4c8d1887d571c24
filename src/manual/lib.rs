//! The installed programs' own words: version, help, man summary and an index of their options, fetched once a day in a
//! sandbox and kept in SQLite. Knows no model; never runs a program that lies in the working tree.
//!
//! - [`Manual`]: the cache. [`Entry`], [`OptionEntry`]: what it knows.
//! - [`Entry::knows`], [`Entry::unknown_flags`]: flag truth. [`relevant`]: the lines that matter for a request.
//! - `fetch`, `trust`, `assemble`: who is asked, whether it may be, and what comes of it. `index`: reads the texts. `store`: the file.
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

pub use cache::{FRESH, FRESH_PROBLEM, Manual, Setup};
pub use entry::{Entry, OptionEntry, Program};
pub use flags::{Known, Use};
pub use relevant::relevant;
pub use store::Hit;

/// The commonest programs of all systems, by name: what [`Manual::warm`] is given if nobody names any.
pub fn common() -> impl Iterator<Item = &'static str> {
    include_str!("common.txt").split_whitespace()
}

/// Why an entry could not be had.
#[derive(Debug, thiserror::Error)]
pub enum ManualError {
    /// The database.
    #[error("the help cache is not usable: {0}")]
    Store(String),
    /// What was asked for cannot be a program's name.
    #[error("there can be no program called {0:?}")]
    Name(String),
}

impl ManualError {
    /// What to do next.
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
