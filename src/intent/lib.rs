//! The meaning of a request or a task, read from its words: text in, meaning out. Asks no model, knows no machine and no tool.
//!
//! - [`tokens`]: words and the parts of names. [`courtesy`]: what only asks for something. [`verbs`]: what the verbs of a task ask for.
//! - [`split`]: what a task falls into; [`part`]: what kind of work each part is; [`said`]: what it says beside its orders;
//!   [`form`]: parts whose form says all; [`reading`]: tasks that only ask what a text says.
//! - [`targets`]: the files that a task promises; [`removal`]: whether it orders that something be taken away.
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
pub use targets::{asked_for, to_be_made};
pub use tokens::is_in;
pub use verbs::{begins_part, changes, tries};
