//! The terminal and the person at it: what is printed, typed, drawn, interrupted. Nothing here knows of commands or models.
//!
//! - [`ui`]: the only writer to the terminal, [`color`] or not; [`spinner`]; [`first`]: why a first call takes long.
//! - [`typed`], [`edit`], [`piped`], [`history`]: lines that are typed, that come from a pipe, that were typed before; [`given`]:
//!   words that a verb is to look at; [`mod@stdin`]: data beside a request. [`clipboard`]: copying.
//! - [`interrupt`]: Ctrl-C. [`keys`]: what gives up while a shell's line editor waits.

pub mod clipboard;
pub mod color;
pub mod edit;
pub mod first;
pub mod given;
pub mod history;
pub mod interrupt;
pub mod keys;
pub mod piped;
pub mod spinner;
pub mod stdin;
pub mod typed;
pub mod ui;
