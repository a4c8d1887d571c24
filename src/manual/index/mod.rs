//! Parses the options of a man page or a `--help` from plain text.
//!
//! - [`clean`]: converts terminal text to plain text.
//! - [`tag`]: parses a line that names options.
//! - [`read`]: parses a whole text: sections, options, synopsis.
//! - [`verbs`]: parses the lists of subcommands.
//! - [`mentions`]: finds every flag the text mentions, for those the index missed.
//!
//! Nothing here runs or stores anything.

mod clean;
mod mentions;
mod read;
mod synopsis;
mod tag;
mod verbs;

pub(super) use clean::clean;
pub(super) use mentions::mentions;
pub(super) use read::{Kind, Text, entry_about, read};
pub(super) use synopsis::usage;
pub(super) use verbs::verbs;
