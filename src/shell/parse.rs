//! A command line as a tree: which programs, with which words, wrapped in what.

use super::Dialect;
use std::ops::Range;

/// A parsed command line.
#[derive(Debug, Clone)]
pub struct Script {
    /// The text it was parsed from.
    pub text: String,
    /// Its dialect.
    pub dialect: Dialect,
    /// Every program invocation in source order, those inside `$(...)`, subshells, `xargs`, `env`, `sudo`,
    /// `find -exec` and `sh -c '...'` included.
    pub commands: Vec<Invocation>,
    /// Syntax errors, as byte ranges of `text`.
    pub errors: Vec<Range<usize>>,
}

/// One program invocation.
#[derive(Debug, Clone)]
pub struct Invocation {
    /// The program word, and the words after it.
    pub words: Vec<Word>,
    /// Programs it is wrapped in, outermost first (`sudo`, `xargs`, `find`).
    pub via: Vec<String>,
    /// Redirections of this command.
    pub redirects: Vec<Redirect>,
}

/// A word of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Word {
    /// As written, quotes and all.
    pub raw: String,
    /// With quotes and escapes resolved, if nothing in it needs the shell to expand; `None` for `$x`, `$(...)`, globs.
    pub value: Option<String>,
    /// Where it stands, in bytes.
    pub span: Range<usize>,
}

/// A redirection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Redirect {
    /// `>`, `>>`, `<`, `2>`, `&>` ...
    pub operator: String,
    /// The file.
    pub target: Word,
}

/// Parses a command line. Never fails: what is no shell shows in [`Script::errors`].
pub fn parse(text: &str, dialect: Dialect) -> Script {
    let _ = (text, dialect);
    todo!()
}

/// The names of all programs in the script, each once, in order of appearance; no operators, no builtin keywords.
pub fn extract_commands(script: &Script) -> Vec<String> {
    let _ = script;
    todo!()
}
