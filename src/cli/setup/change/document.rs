//! Edits the text of a settings file: adds, changes or removes a value, and leaves everything else as it was written.

use crate::setup::config::Key;
use toml_edit::{DocumentMut, Item, TableLike, Value};

/// The reason a text cannot be changed.
#[derive(Debug, thiserror::Error)]
pub enum Unchangeable {
    /// It is not TOML.
    #[error("{0}")]
    Form(String),
    /// Something else is in the place of a table.
    #[error("`{0}` is not a table there")]
    NoTable(String),
}

/// Returns the text with this value of a setting. Comments, order and all other lines stay unchanged.
///
/// # Errors
/// If it is not TOML, or something else is in the place of the setting's table.
pub fn with(text: &str, key: &Key, value: &str) -> Result<String, Unchangeable> {
    let mut document = read(text)?;
    let (table, name) = split(key);
    if let Some(table) = table {
        let inner = document.entry(table).or_insert_with(toml_edit::table);
        let inner = inner.as_table_like_mut().ok_or_else(|| Unchangeable::NoTable(table.into()))?;
        put(inner, name, toml_value(key, value));
        return Ok(document.to_string());
    }
    if document.as_table().is_empty() {
        // only comments: the new line goes below them
        let gap = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
        return Ok(format!("{text}{gap}{name} = {}\n", toml_value(key, value)));
    }
    put(document.as_table_mut(), name, toml_value(key, value));
    Ok(document.to_string())
}

/// Returns the text without the line of a setting; `None` if there is no such line. A comment above it stays.
///
/// # Errors
/// As [`with`].
pub fn without(text: &str, key: &Key) -> Result<Option<String>, Unchangeable> {
    let mut document = read(text)?;
    let (table, name) = split(key);
    let Some(table) = table else {
        let above = comment(document.as_table(), name);
        if document.remove(name).is_none() {
            return Ok(None);
        }
        let mut text = document.to_string();
        if let Some((above, next)) = above {
            text = restore_comment(text, &above, next.as_deref());
        }
        return Ok(Some(text));
    };
    let Some(inner) = document.get_mut(table).and_then(Item::as_table_like_mut) else { return Ok(None) };
    if inner.remove(name).is_none() {
        return Ok(None);
    }
    Ok(Some(document.to_string()))
}

fn read(text: &str) -> Result<DocumentMut, Unchangeable> {
    text.parse().map_err(|e: toml_edit::TomlError| Unchangeable::Form(e.message().to_owned()))
}

/// Splits the key of a setting into its table and its name there.
fn split(key: &Key) -> (Option<&str>, &str) {
    match key.name.split_once('.') {
        Some((table, name)) => (Some(table), name),
        None => (None, key.name),
    }
}

/// Converts a value to TOML: a number if the setting is one, else a string.
fn toml_value(key: &Key, value: &str) -> Value {
    let is_number = key.default.parse::<f64>().is_ok();
    match (value.parse::<i64>(), value.parse::<f64>()) {
        (Ok(number), _) if is_number => number.into(),
        (_, Ok(number)) if is_number && number.is_finite() => number.into(),
        _ => value.into(),
    }
}

/// Replaces a value, keeping the comments and blanks around it, or adds it at the end of the table.
fn put(table: &mut dyn TableLike, name: &str, mut new: Value) {
    if let Some(old) = table.get_mut(name).and_then(Item::as_value_mut) {
        *new.decor_mut() = old.decor().clone();
        *old = new;
        return;
    }
    table.insert(name, Item::Value(new));
}

/// Returns the comment above a line of the top-level table, which would be removed with it, and the name of the next
/// line.
fn comment(table: &toml_edit::Table, name: &str) -> Option<(String, Option<String>)> {
    let above = table.key(name)?.leaf_decor().prefix()?.as_str()?.to_owned();
    if !above.contains('#') {
        return None;
    }
    let next = table.iter().skip_while(|(other, _)| *other != name).nth(1).map(|(next, _)| next.to_owned());
    Some((above, next))
}

/// Puts a comment back above the line of the name `next`, or at the end of the text.
fn restore_comment(text: String, above: &str, next: Option<&str>) -> String {
    let begins_with_name = |line: &str, name: &str| {
        let rest = line.trim_start().trim_start_matches('[').trim_start();
        rest.strip_prefix(name).is_some_and(|rest| !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_'))
    };
    let Some(next) = next else { return format!("{text}{above}") };
    let (mut placed, mut is_placed) = (String::with_capacity(text.len() + above.len()), false);
    let mut waiting = String::new();
    for line in text.split_inclusive('\n') {
        // comments already above the next line stay closest to it
        if line.trim().is_empty() || line.trim_start().starts_with('#') {
            waiting.push_str(line);
            continue;
        }
        if !is_placed && begins_with_name(line, next) {
            placed.push_str(above);
            is_placed = true;
        }
        placed.push_str(&std::mem::take(&mut waiting));
        placed.push_str(line);
    }
    placed.push_str(&waiting);
    if is_placed { placed } else { format!("{placed}{above}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::setup::config::KEYS;
    use proptest::prelude::*;

    fn key(name: &str) -> &'static Key {
        KEYS.iter().find(|key| key.name == name).unwrap()
    }

    const FILE: &str = "# mine\n\n# slow machine\ntimeout = 9   # seconds\nrefine = \"never\"\n\n[serve] # for the team\nport = 9000\n# the end\n";

    #[test]
    fn a_value_is_changed_in_place() {
        let after = with(FILE, key("timeout"), "90").unwrap();
        assert_eq!(after, FILE.replace("= 9 ", "= 90 "));
        assert_eq!(with(FILE, key("timeout"), "2.5").unwrap(), FILE.replace("= 9 ", "= 2.5 "));
        assert_eq!(with(FILE, key("refine"), "always").unwrap(), FILE.replace("never", "always"));
        assert_eq!(with(FILE, key("serve.port"), "9001").unwrap(), FILE.replace("9000", "9001"));
    }

    #[test]
    fn a_new_value_goes_before_the_tables_and_every_comment_stays() {
        let after = with(FILE, key("shell"), "fish").unwrap();
        assert_eq!(after, FILE.replace("refine = \"never\"\n", "refine = \"never\"\nshell = \"fish\"\n"));
        assert_eq!(with("", key("timeout"), "5").unwrap(), "timeout = 5\n");
        assert_eq!(with("# only words", key("timeout"), "5").unwrap(), "# only words\ntimeout = 5\n");
        assert_eq!(with("", key("serve.port"), "0").unwrap(), "[serve]\nport = 0\n");
        assert_eq!(
            with("serve = { port = 1 }\n", key("serve.host"), "::1").unwrap(),
            "serve = { port = 1 , host = \"::1\" }\n"
        );
    }

    #[test]
    fn a_line_is_removed_and_the_comment_above_it_stays() {
        let after = without(FILE, key("timeout")).unwrap().unwrap();
        assert_eq!(after, FILE.replace("timeout = 9   # seconds\n", ""));
        assert_eq!(without("timeout = 1\n", key("timeout")).unwrap().as_deref(), Some(""));
        assert_eq!(without("# why\ntimeout = 1\n", key("timeout")).unwrap().as_deref(), Some("# why\n"));
        assert_eq!(without(FILE, key("shell")).unwrap(), None);
        assert_eq!(without("", key("serve.port")).unwrap(), None);
        assert_eq!(without("[serve]\nport = 1\n", key("serve.port")).unwrap().as_deref(), Some("[serve]\n"));
    }

    #[test]
    fn a_text_that_is_not_toml_is_an_error() {
        assert!(matches!(with("a = [", key("timeout"), "5"), Err(Unchangeable::Form(_))));
        assert!(matches!(without("a = [", key("timeout")), Err(Unchangeable::Form(_))));
        assert!(matches!(with("serve = 1\n", key("serve.port"), "5"), Err(Unchangeable::NoTable(_))));
    }

    proptest! {
        #[test]
        fn an_added_value_is_read_back_and_its_removal_leaves_no_trace(
            at in 0..KEYS.len(), value in "[ -~äß😀]{1,30}", other in 0..KEYS.len()
        ) {
            let key = &KEYS[at];
            let before = match at == other {
                true => String::new(),
                false => with("# first\n", &KEYS[other], "x").unwrap(),
            };
            let after = with(&before, key, &value).unwrap();
            let found: Vec<_> = crate::setup::layers::parse(&after, std::path::Path::new("c.toml"), 0).unwrap()
                .into_iter().filter_map(Result::ok).filter(|(found, ..)| found.name == key.name).collect();
            prop_assert_eq!(found.len(), 1);
            let same = found[0].1 == value || found[0].1.parse::<f64>().ok() == value.parse::<f64>().ok();
            prop_assert!(same, "{} is not {}", found[0].1, value);
            let gone = without(&after, key).unwrap().unwrap();
            let tables = |text: &str| text.replace("[serve]\n", "").trim().to_owned();
            prop_assert_eq!(tables(&gone), tables(&before));
        }
    }
}
