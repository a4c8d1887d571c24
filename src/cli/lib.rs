//! The command line. Nobody imports this room, and no other room prints.
//!
//! - [`args`]: what can be typed; [`flags`]: what several verbs have; [`slip`]: a word that is nearly a verb. [`dispatch`]: from there
//!   to the verb that runs, with its context [`cx`]. [`failure`]: errors and exit codes.
//!   [`mod@env`]: every variable that is read; [`dirs`]: our folders.
//! - [`verbs`]: one file or folder a verb. What they stand on, each on those behind it: [`served`] (what programs are served with),
//!   [`harness`] (runs of several steps), [`answer`] (from a request to its command, and what is done with it), [`papers`] (help and
//!   manual pages), [`setup`] (settings, folders, wiring), [`term`] (the terminal).
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
