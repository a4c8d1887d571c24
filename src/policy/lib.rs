//! Rules about what may be shown, decided by text and paths alone: secrets in values ([`redact`]) and in files
//! ([`secret`]), text that addresses a model ([`screen`](mod@screen)), and text cleaned for a prompt ([`text`]). It
//! calls no model and changes nothing.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used))]

pub mod redact;
pub mod screen;
pub mod secret;
pub mod text;

pub use redact::{Redactor, is_redacted};
pub use screen::{Evidence, InputError, MAX_INPUT, Mode, Passages, Screening, admit, cut_orders, screen};
pub use secret::{is_secret, leads_to_secret};
pub use text::{compress, escape, fence, head_tail, is_hidden, normalise};
