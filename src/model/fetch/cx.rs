//! The progress and the switch that every part of a download has at hand.

use super::progress::Progress;
use crate::Cancel;
use std::fmt::Write;

/// The listener that is told of progress, and the switch that stops it.
#[derive(Clone, Copy)]
pub(super) struct Cx<'a> {
    pub(super) progress: &'a dyn Progress,
    pub(super) cancel: &'a Cancel,
}

/// Bytes as lower-case hexadecimal digits.
pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}
