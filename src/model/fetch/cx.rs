//! The context that every part of a download needs: the progress and the cancel switch.

use super::progress::Progress;
use crate::Cancel;
use std::fmt::Write;

/// The receiver of progress, and the switch that stops a download.
#[derive(Clone, Copy)]
pub(super) struct Cx<'a> {
    pub(super) progress: &'a dyn Progress,
    pub(super) cancel: &'a Cancel,
}

/// Formats bytes as lower-case hexadecimal digits.
pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}
