//! The shell as text: parse, quote, name the programs, foresee the effects, judge the risk, apply platform rules.
//!
//! Nothing here runs a program, reads a file or knows a model. Rules are data (`platform-rules/`), built in; the code only
//! interprets them.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used))]

pub mod asked;
mod builder;
mod builtin;
pub mod effects;
mod embedded;
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
mod substitution;
pub mod target;
mod tree;
mod unwrap;
mod word;

pub use builtin::{is_builtin, powershell_alias};
pub use effects::{Effect, effects};
pub use parse::{Invocation, Script, Word, extract_commands, parse};
pub use safety::{Level, Risk, assess, assess_in, is_read_only};
pub use target::{Dialect, Os, Target, Userland};
pub use word::quote;

use std::ops::Range;

/// How much a [`Finding`] weighs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Worth saying; the command does its job.
    Hint,
    /// Probably not what was asked for.
    Warning,
    /// The command fails or does something else than asked.
    Error,
}

/// One thing that a check has against a command.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Finding {
    /// Stable id of the check or rule, in kebab case (`unknown-flag`, `bsd-sed-inplace`).
    pub id: String,
    /// How much it weighs.
    pub severity: Severity,
    /// The piece of the command it is about.
    pub token: String,
    /// Where that piece stands in the command, in bytes.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub span: Option<Range<usize>>,
    /// Why it is wrong, in one sentence for a person (and for the model in iteration 2).
    pub why: String,
    /// Evidence: manual lines, an error text. Few and short.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub evidence: Vec<String>,
    /// The whole command with this one thing mended, where that can be done mechanically.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub fix: Option<String>,
}
