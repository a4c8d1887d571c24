//! Renders the project's documents as help topics and manual pages.
//!
//! - [`topics`]: the topics. [`markdown`]: parses a document; [`plain`] and [`roff`]: render it for a terminal and for
//!   `man`. [`man`]: the manual pages.

pub mod man;
pub mod markdown;
pub mod plain;
pub mod roff;
pub mod topics;
