//! Reads the meaning of a request or a task from its words alone. Uses no model, no file and no process.
//!
//! - [`tokens`]: words and the parts of names. [`courtesy`]: polite phrases around a request. [`verbs`]: the verbs
//!   that parts of a task begin with.
//! - [`split`]: splits a task into parts. [`part`]: the kind of work of each part. [`said`]: sentences that are no
//!   orders. [`form`]: parts in fixed forms. [`reading`]: tasks that only ask what a text says.
//! - [`targets`]: the files that a task promises. [`removal`]: decides whether a task asks to delete something.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used))]

pub mod courtesy;
pub mod form;
pub mod part;
pub mod reading;
pub mod removal;
pub mod said;
pub mod split;
pub mod targets;
pub mod tokens;
pub mod verbs;

pub use form::{asks_what_changed, before_file, script};
pub use part::{Kind, composes, kind, locate, refer, refers, stand_in, tallies};
pub use reading::{asks_documents, asks_world, is_told_at_length, reads};
pub use removal::orders_removal;
pub use said::order;
pub use split::parts;
pub use targets::{files_to_write, promised_files};
pub use tokens::is_in;
pub use verbs::{begins_part, changes, tries};
