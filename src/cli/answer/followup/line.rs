//! Lays out the keys: in rows broken between words, or as a question on a terminal that is not drawn over.

use super::machine::{Item, Key};
use crate::term::fold::columns_of;

/// Columns between two keys.
const GAP: usize = 2;
/// Columns before the first key of a row.
const MARGIN: usize = 2;

/// Arranges the keys in rows of less than `columns` columns; a row of a single key may be wider.
pub fn rows(items: &[Item], columns: usize) -> Vec<Vec<&Item>> {
    let mut rows: Vec<Vec<&Item>> = Vec::new();
    let mut width = 0;
    for item in items {
        let own = columns_of(&item.0) + 1 + columns_of(item.1);
        match rows.last_mut() {
            // the last column stays free: some terminals wrap once it is written
            Some(row) if width + GAP + own < columns => {
                row.push(item);
                width += GAP + own;
            }
            _ => {
                rows.push(vec![item]);
                width = MARGIN + own;
            }
        }
    }
    rows
}

/// Returns the keys as a question that is answered by a line.
pub fn question(items: &[Item]) -> String {
    let choices: Vec<String> = items.iter().map(|(key, word)| format!("{key} {word}")).collect();
    format!("{}?", choices.join(", "))
}

/// Returns the key that a typed line stands for: its only character, the key of its word, or Enter if it is empty.
/// `None` for any other. The machine knows which characters are keys.
pub fn key_of(line: &str, items: &[Item]) -> Option<Key> {
    let line = line.trim().to_lowercase();
    if line.is_empty() {
        return Some(Key::Enter);
    }
    let mut chars = line.chars();
    if let (Some(key), None) = (chars.next(), chars.next()) {
        return Some(Key::Char(key));
    }
    // `choose` is not a key: a command is chosen by its number
    let item = items.iter().find(|(key, word)| *word == line && key.chars().count() == 1);
    item.and_then(|(key, _)| key.chars().next()).map(Key::Char)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::answer::followup::machine::{Event, Machine};

    fn items() -> Vec<Item> {
        Machine::new(vec!["ls".into()], Some(caro_shell::Dialect::Bash), true).items()
    }

    #[test]
    fn keys_are_in_one_row_and_break_between_words_on_a_narrow_terminal() {
        let items = items();
        let words = |columns| -> Vec<String> {
            let row = |row: &Vec<&Item>| row.iter().map(|(k, w)| format!("{k} {w}")).collect::<Vec<_>>().join("  ");
            rows(&items, columns).iter().map(row).collect()
        };
        assert_eq!(words(80), ["r run  e edit  v revise  ? explain  c copy  a another  q quit"]);
        assert_eq!(words(40), ["r run  e edit  v revise  ? explain", "c copy  a another  q quit"]);
        for columns in [0, 1, 7, 20, 40, 63, 64, 200] {
            let lines = words(columns);
            assert!(
                lines.iter().all(|line| MARGIN + line.len() < columns || !line.contains("  ")),
                "{columns}: {lines:?}"
            );
            assert_eq!(lines.join("  "), words(200).join("  "));
        }
    }

    #[test]
    fn a_line_is_a_key_or_its_word() {
        let items = items();
        for (line, key) in [
            ("r", Some(Key::Char('r'))),
            (" Run ", Some(Key::Char('r'))),
            ("revise", Some(Key::Char('v'))),
            ("?", Some(Key::Char('?'))),
            ("quit", Some(Key::Char('q'))),
            ("", Some(Key::Enter)),
            ("2", Some(Key::Char('2'))),
            ("rm -rf .", None),
        ] {
            assert_eq!(key_of(line, &items), key, "{line:?}");
        }
        for other in ["x", "z", "9", "é"] {
            let key = key_of(other, &items).unwrap();
            let mut machine = Machine::new(vec!["ls".into()], Some(caro_shell::Dialect::Bash), true);
            assert_eq!(machine.on(Event::Key(key)), [], "{other}");
        }
        assert_eq!(question(&items[..2]), "r run, e edit?");
    }
}
