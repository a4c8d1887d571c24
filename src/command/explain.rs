//! What a command does, in one line, out of the installed manuals' own words. No model.

use crate::manual::Entry;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The line is cut here, in characters.
const WIDTH: usize = 160;

/// `ps: report a snapshot of the current processes; head: output the first part of files`.
/// Programs without a summary are left out; if none has one the line is empty.
pub fn line(commands: &[String], manuals: &BTreeMap<String, Arc<Entry>>) -> String {
    let parts: Vec<String> = commands
        .iter()
        .filter_map(|name| {
            let title = manuals.get(name)?.title.trim();
            (!title.is_empty()).then(|| format!("{name}: {title}"))
        })
        .collect();
    let text = parts.join("; ");
    match text.char_indices().nth(WIDTH) {
        Some((at, _)) => format!("{}…", text[..at].trim_end()),
        None => text,
    }
}
