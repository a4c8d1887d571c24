//! The command line: arguments, terminal, and one module for each verb. It is the only crate that prints, and no other
//! library crate depends on it.
//!
//! - [`args`]: the arguments; [`flags`]: those of several verbs; [`slip`]: mistyped verbs. [`dispatch`]: runs the
//!   verb, with its context [`cx`]. [`failure`]: errors and exit codes. [`mod@env`]: environment variables; [`dirs`]:
//!   folders.
//! - [`verbs`]: one file or folder for each verb. They use these modules, each of which uses only later ones:
//!   [`served`] (requests of other programs), [`harness`] (runs of several steps), [`answer`] (from a request to its
//!   command, and running it), [`papers`] (help and manual pages), [`setup`] (settings, folders, wiring), [`term`]
//!   (the terminal).
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used))]

pub mod answer;
pub mod args;
pub mod cx;
pub mod dirs;
pub mod dispatch;
pub mod env;
pub mod failure;
pub mod flags;
pub mod harness;
pub mod papers;
pub mod served;
pub mod setup;
pub mod slip;
pub mod term;
pub mod verbs;

pub use cx::{Cx, wind_up};
pub use dirs::Dirs;
pub use dispatch::main;
pub use env::Env;
pub use failure::{Exit, Failure, Outcome};
pub use setup::config::Config;
pub use setup::settings::Settings;
pub use term::interrupt::Interrupt;
pub use term::ui::Ui;
