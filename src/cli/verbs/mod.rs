//! The verbs of the command line, one file or folder for each. No verb uses another one; code that two of them share
//! lives beside this folder.
//!
//! **A verb** is a file with `pub struct Args` (clap) and `pub fn run(args: &Args, cx: &Cx) -> Outcome`. It is added
//! with its `pub mod`, its variant of [`args::Verb`](crate::args::Verb) and its arm in [`mod@crate::dispatch`]. It
//! prints through `cx.ui`, takes its folders from `cx.dirs` and its settings from `cx.settings(..)`, and runs async
//! code in `cx.block_on(..)`.
//!
//! [`request`] is the default verb. [`perpetual`] is `caro loop`, [`uninstall`] is `caro self`.

pub mod agent;
pub mod artifacts;
pub mod batch;
pub mod bench;
pub mod chat;
pub mod check;
pub mod completions;
pub mod config;
pub mod context;
pub mod doctor;
pub mod eval;
pub mod explain;
pub mod fix;
pub mod forge;
pub mod help;
pub mod history;
pub mod init;
pub mod knowledge;
pub mod manual;
pub mod mcp;
pub mod memory;
pub mod model;
pub mod perpetual;
pub mod request;
pub mod serve;
pub mod skills;
pub mod status;
pub mod stop;
pub mod task;
pub mod tools;
#[cfg(unix)]
pub mod undo;
#[cfg(not(unix))]
#[path = "no_undo.rs"]
pub mod undo;
pub mod uninstall;
pub mod version;
pub mod workspace;
