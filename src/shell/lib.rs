//! The shell as text: parses and quotes command lines, predicts their effects, assesses their risk and applies
//! platform rules.
//!
//! Nothing here runs a program, reads a file or uses a model. Rules are data (`platform-rules/`) that is compiled in
//! and interpreted.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used))]

pub mod asked;
mod builder;
mod builtin;
pub mod effects;
mod embedded;
pub mod find;
mod fish;
mod mask;
pub mod parse;
mod pattern;
pub mod policy;
mod posix;
mod powershell;
pub mod rules;
pub mod safety;
mod script;
mod shell_state;
mod substitution;
pub mod target;
mod tree;
mod unwrap;
mod word;

pub use builtin::{foreign_keyword, is_builtin, powershell_alias};
pub use effects::needed::needed;
pub use effects::{Effect, effects};
pub use parse::{Invocation, Script, Word, extract_commands, parse};
pub use safety::{Level, Risk, assess, assess_in, is_read_only};
pub use shell_state::changes_only_its_shell;
pub use target::{Dialect, Os, Target, Userland};
pub use word::quote;

use std::ops::Range;

/// The severity of a [`Finding`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Worth mentioning; the command does its job.
    Hint,
    /// Probably not what was asked for.
    Warning,
    /// The command fails or does something else than requested.
    Error,
}

/// One problem that a check found in a command.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Finding {
    /// Stable id of the check or rule, in kebab case (`unknown-flag`, `bsd-sed-inplace`).
    pub id: String,
    /// Its severity.
    pub severity: Severity,
    /// The part of the command it is about.
    pub token: String,
    /// The range of that part in the command, in bytes.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub span: Option<Range<usize>>,
    /// The reason, in one sentence for the user (and for the model in iteration 2).
    pub why: String,
    /// Evidence, a few short texts: manual lines, an error message.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub evidence: Vec<String>,
    /// The whole command with this problem fixed, where that can be done mechanically.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub fix: Option<String>,
}
