//! Reads help out of plain text: the options of a man page or a `--help`, with what each takes and does.
//!
//! - [`clean`]: terminal text to plain text.
//! - [`tag`]: one line that names options.
//! - [`read`]: a whole text: sections, options, synopsis.
//! - [`mentions`]: every flag the text names anywhere, for what the index missed.
//!
//! Text in, facts out: nothing here runs or stores anything.

mod clean;
mod mentions;
mod read;
mod synopsis;
mod tag;

pub(super) use clean::clean;
pub(super) use mentions::mentions;
pub(super) use read::{Kind, Text, paragraph_about, read};
pub(super) use synopsis::usage;
