//! The installed programs' own words: version, help, man summary and an index of their options, fetched once a day in a
//! sandbox and kept in SQLite. Knows no model; never runs a program that lies in the working tree.

use std::path::PathBuf;
use std::sync::Arc;

/// A program to look up.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Program {
    /// A file on PATH.
    File {
        /// The name it is called by.
        name: String,
        /// Where it is.
        path: PathBuf,
    },
    /// Something the shell does itself (`cd`, `export`).
    Builtin {
        /// Its name.
        name: String,
        /// The shell program whose builtin it is.
        shell: PathBuf,
    },
}

/// What is known about one program.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Entry {
    /// The name it was looked up by.
    pub command: String,
    /// Where it is; the shell for a builtin.
    pub path: PathBuf,
    /// First line of its version, empty where it has none.
    pub version: String,
    /// The relevant part of its `--help`.
    pub help_text: String,
    /// First paragraph of the description in its man page.
    pub man_summary: Option<String>,
    /// Its options.
    pub options: Vec<OptionEntry>,
    /// True if the options are the program's whole set (a man page or a full `--help` was read),
    /// so that a flag not among them does not exist.
    pub complete: bool,
    /// Why there is no help, where there is none (`timed out`, `is a directory`).
    pub problem: Option<String>,
}

/// One option of a program.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct OptionEntry {
    /// `-n`; also `-name` of programs with long options after one dash.
    pub short: Option<String>,
    /// `--lines`.
    pub long: Option<String>,
    /// `NUM`, where it takes an argument.
    pub argument: Option<String>,
    /// One line on what it does.
    pub text: String,
    /// The section it stands in, where there are sections.
    pub section: Option<String>,
}

/// The cache: the specification's `CommandHelpCache`.
#[derive(Debug)]
pub struct Manual {}

/// Why an entry could not be had.
#[derive(Debug, thiserror::Error)]
pub enum ManualError {
    /// The database.
    #[error("the help cache is not usable: {0}")]
    Store(String),
}

impl Manual {
    /// The entry of a program, from memory, disk or the program itself.
    ///
    /// # Errors
    /// If the cache is broken. A program without help is an entry with a `problem`.
    pub async fn get_or_fetch(&self, program: &Program) -> Result<Arc<Entry>, ManualError> {
        let _ = program;
        todo!()
    }
}
