//! What a command does, in one line, out of the installed manuals' own words. No model.

use crate::manual::Entry;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The line is cut here, in characters: what fits a terminal of 80 columns.
const WIDTH: usize = 76;

/// `ps: report a snapshot of the current processes; head: output the first part of files`.
/// Programs without a summary are left out; if none has one the line is empty.
pub fn line(commands: &[String], manuals: &BTreeMap<String, Arc<Entry>>) -> String {
    let parts: Vec<String> = commands
        .iter()
        .filter_map(|name| {
            let title = manuals.get(name)?.title.trim().trim_end_matches('.');
            (!title.is_empty()).then(|| format!("{name}: {title}"))
        })
        .collect();
    let text = parts.join("; ");
    match text.char_indices().nth(WIDTH) {
        Some((end, _)) => {
            // between words, if there is a space at all
            let cut = text[..end].rfind(' ').unwrap_or(end);
            format!("{}…", text[..cut].trim_end_matches([' ', ';', ',']))
        }
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_of_the_manuals_own_words() {
        let entry = |title: &str| Arc::new(Entry { title: title.into(), ..Entry::default() });
        let manuals = BTreeMap::from([
            ("ps".to_owned(), entry("report a snapshot of the current processes.")),
            ("head".to_owned(), entry("output the first part of files")),
            ("mute".to_owned(), entry("")),
        ]);
        let of = |names: &[&str]| line(&names.iter().map(|n| (*n).to_owned()).collect::<Vec<_>>(), &manuals);
        assert_eq!(of(&["head", "mute", "unknown"]), "head: output the first part of files");
        assert_eq!(of(&["mute"]), "");
        let cut = of(&["ps", "head"]);
        assert_eq!(cut, "ps: report a snapshot of the current processes; head: output the first part…");
    }
}
