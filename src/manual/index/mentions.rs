//! Finds every flag that a text mentions, so that a flag missed by the index is not reported as unknown.

use std::collections::BTreeSet;

/// Returns the flags mentioned in the text, without attached arguments. A cluster in brackets (`[-aBc]`) also counts
/// letter by letter.
pub(crate) fn mentions(text: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut before = ' ';
    let mut skip_to = 0;
    for (at, c) in text.char_indices() {
        let starts = c == '-' && !(before.is_alphanumeric() || matches!(before, '-' | '_' | '.' | '/' | ')' | '>'));
        if starts && at >= skip_to {
            let body = text[at..].trim_start_matches('-');
            let dashes = text.len() - at - body.len();
            let len = body.find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '-' | '_'))).unwrap_or(body.len());
            let name = body[..len].trim_end_matches(['-', '_']);
            if dashes <= 2 && !name.is_empty() {
                found.insert(text[at..at + dashes + name.len()].to_string());
                if dashes == 1 && before == '[' {
                    found.extend(name.chars().map(|letter| format!("-{letter}")));
                }
                skip_to = at + dashes + name.len();
            } else if dashes <= 2 && (body.starts_with("[no") || body.starts_with("(no")) {
                // `--[no-]name` in running text
                let inner =
                    body.trim_start_matches(['[', '(']).trim_start_matches("no").trim_start_matches(['-', ']', ')']);
                let len =
                    inner.find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '-' | '_'))).unwrap_or(inner.len());
                found.insert(format!("--{}", &inner[..len]));
                found.insert(format!("--no-{}", &inner[..len]));
            } else if dashes == 1 && (body.starts_with('<') || body.starts_with('[')) && before != '[' {
                found.insert("-<>".into());
            }
        }
        before = c;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_are_found_anywhere() {
        let found = mentions("use -a (or --all), not x-y; [-bC] [--no-z=1] `-q' --[no-]tag a/-/b -- - -5");
        let expected = ["--all", "--no-tag", "--no-z", "--tag", "-5", "-C", "-a", "-b", "-bC", "-q"];
        assert_eq!(found.iter().map(String::as_str).collect::<Vec<_>>(), expected);
    }
}
