//! Our papers as the program shows them: topics of help and manual pages, out of the same texts.
//!
//! - [`topics`]: which there are. [`markdown`]: reads one; [`plain`] and [`roff`]: write it for a terminal and for `man`. [`man`]:
//!   the pages.

pub mod man;
pub mod markdown;
pub mod plain;
pub mod roff;
pub mod topics;
