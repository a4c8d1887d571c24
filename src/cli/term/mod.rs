//! Terminal input and output: printing, reading lines, drawing, and Ctrl-C. It does not know of commands or models.
//!
//! - [`ui`]: all output, with its [`color`]; [`mod@fold`]: breaks lines; [`spinner`]: a moving line; [`first`]: explains a slow first call.
//! - [`typed`], [`edit`], [`piped`], [`history`]: replies, edited lines, lines from a pipe, earlier lines; [`given`]:
//!   the text that a verb examines; [`mod@stdin`]: data beside a request. [`clipboard`]: copying.
//! - [`interrupt`]: Ctrl-C. [`keys`]: keys that cancel while a shell's line editor waits.

pub mod clipboard;
pub mod color;
pub mod edit;
pub mod first;
pub mod fold;
pub mod given;
pub mod history;
pub mod interrupt;
pub mod keys;
pub mod piped;
pub mod spinner;
pub mod stdin;
pub mod typed;
pub mod ui;
