//! The head of a `SKILL.md`: YAML between two lines `---`.
//!
//! | field | |
//! | --- | --- |
//! | `name` | 1 to 64 of a-z, 0-9 and `-`, no `-` at an edge or twice in a row; the folder's name |
//! | `description` | 1 to 1024 characters: what it does and when it is used; it is found by it |
//! | `version`, `license`, `compatibility` (at most 500 characters) | optional |
//! | `metadata` | optional: a map of the author's own |
//! | `allowed-tools` | optional: tools it speaks of. Gives no right to use them |
//! | `required_refs` | optional: files of its folder that stand under its text, at most 50 |
//!
//! Source of the common fields: the Agent Skills format. `required_refs` may stand in `metadata` too.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The largest head, bytes.
const LARGEST: usize = 32 << 10;

/// References of one skill: each may be as large as its text.
const REFS: usize = 50;

/// What YAML aliases may stand for, in all.
const ALIASED: usize = 2000;

/// A sound head.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Front {
    /// Its name.
    pub name: String,
    /// What it does and when it is used.
    pub description: String,
    /// Tools it speaks of.
    pub allowed_tools: Vec<String>,
    /// Files that stand under its text.
    pub required_refs: Vec<String>,
    /// Everything as it was written: what a template calls `skill`.
    pub all: Map<String, Value>,
}

/// Divides a file into its head and its text.
///
/// # Errors
/// If there is no head.
pub fn split(text: &str) -> Result<(&str, &str), String> {
    let text = text.trim_start_matches('\u{feff}');
    let rest = text.strip_prefix("---").and_then(|rest| rest.trim_start_matches([' ', '\r']).strip_prefix('\n'));
    let rest = rest.ok_or("it does not begin with a line ---")?;
    let mut at = 0;
    for line in rest.split_inclusive('\n') {
        if line.trim_end() == "---" {
            return Ok((&rest[..at], &rest[at + line.len()..]));
        }
        at += line.len();
    }
    Err("the line --- that ends the head is missing".into())
}

/// Reads the head of a file in a folder of that name.
///
/// # Errors
/// The first thing that is wrong.
pub fn parse(text: &str, folder: &str) -> Result<Front, String> {
    let (head, _) = split(text)?;
    if head.len() > LARGEST {
        return Err(format!("its head has {} bytes, and {LARGEST} are the most", head.len()));
    }
    // a head of a few names needs no aliases that multiply
    let options = serde_saphyr::options! {
        alias_limits: serde_saphyr::alias_limits! { max_total_replayed_events: ALIASED },
    };
    let all: Value = serde_saphyr::from_str_with_options(head, options).map_err(|e| {
        let why = e.to_string();
        format!("its head is no YAML: {}", why.lines().next().unwrap_or_default())
    })?;
    let Value::Object(all) = all else { return Err("its head is no map of fields".into()) };
    let name = name(&all)?;
    if name != folder {
        return Err(format!("its `name` is `{name}`, and its folder is `{folder}`"));
    }
    let description = word(&all, "description")?.ok_or("it has no `description`")?;
    let length = description.trim().chars().count();
    if !(1..=1024).contains(&length) {
        return Err(format!("its `description` has {length} characters: 1 to 1024 are allowed"));
    }
    if let Some(text) = word(&all, "compatibility")?
        && text.chars().count() > 500
    {
        return Err("its `compatibility` has more than 500 characters".into());
    }
    for field in ["license", "version"] {
        scalar(&all, field)?;
    }
    if all.get("metadata").is_some_and(|m| !m.is_object() && !m.is_null()) {
        return Err("its `metadata` is no map".into());
    }
    let allowed_tools = list(&all, "allowed-tools")?;
    let mut required_refs = list(&all, "required_refs")?;
    if let Some(Value::Object(metadata)) = all.get("metadata") {
        required_refs.extend(list(metadata, "required_refs")?);
    }
    if required_refs.len() > REFS {
        return Err(format!("its `required_refs` has {} files, and {REFS} are the most", required_refs.len()));
    }
    Ok(Front { name, description: description.trim().to_owned(), allowed_tools, required_refs, all })
}

/// The `name`, if it is one.
fn name(all: &Map<String, Value>) -> Result<String, String> {
    let name = word(all, "name")?.ok_or("it has no `name`")?;
    is_name(&name).map(|()| name)
}

/// True to the rules of a name.
///
/// # Errors
/// Which rule it breaks.
pub fn is_name(name: &str) -> Result<(), String> {
    let fine = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if !(1..=64).contains(&name.chars().count()) {
        return Err(format!("its `name` has {} characters: 1 to 64 are allowed", name.chars().count()));
    }
    if let Some(odd) = name.chars().find(|c| !fine(*c)) {
        return Err(format!("its `name` has `{}`: only a-z, 0-9 and - are allowed", odd.escape_default()));
    }
    if name.starts_with('-') || name.ends_with('-') || name.contains("--") {
        return Err("its `name` has a - at an edge, or two in a row".into());
    }
    Ok(())
}

fn word(all: &Map<String, Value>, field: &str) -> Result<Option<String>, String> {
    match all.get(field) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(_) => Err(format!("its `{field}` is no text: put it in quotes")),
    }
}

fn scalar(all: &Map<String, Value>, field: &str) -> Result<(), String> {
    match all.get(field) {
        Some(Value::Array(_) | Value::Object(_)) => Err(format!("its `{field}` is no single value")),
        _ => Ok(()),
    }
}

/// A list, or words between spaces.
fn list(all: &Map<String, Value>, field: &str) -> Result<Vec<String>, String> {
    match all.get(field) {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(Value::String(words)) => Ok(words.split_whitespace().map(str::to_owned).collect()),
        Some(Value::Array(items)) => items
            .iter()
            .map(|item| item.as_str().map(str::to_owned).ok_or_else(|| format!("its `{field}` holds what is no text")))
            .collect(),
        Some(_) => Err(format!("its `{field}` is no list")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(fields: &str) -> Result<Front, String> {
        parse(&format!("---\n{fields}\n---\nText.\n"), "pdf")
    }

    #[test]
    fn a_sound_head_is_read_whole() {
        let front = head(
            "name: pdf\ndescription: >\n  Works on PDFs.\n  When asked.\nversion: 1.2\nlicense: MIT\nallowed-tools: Bash Read\n\
             metadata:\n  author: me\n  required_refs: [a.md]\nrequired_refs:\n  - references/b.md",
        )
        .unwrap();
        assert_eq!((front.name.as_str(), front.description.as_str()), ("pdf", "Works on PDFs. When asked."));
        assert_eq!(
            (front.allowed_tools.len(), front.required_refs),
            (2, vec!["references/b.md".into(), "a.md".into()])
        );
        assert_eq!(front.all["version"].to_string(), "1.2");
        assert!(
            parse("\u{feff}---\r\nname: pdf\r\ndescription: x\r\n---\r\nText", "pdf").is_ok(),
            "from another system"
        );
        assert_eq!(split("---\na: 1\n---\nText\n---\nmore").unwrap().1, "Text\n---\nmore");
    }

    #[test]
    fn what_is_wrong_is_said() {
        for (fields, why) in [
            ("description: x", "no `name`"),
            ("name: pdf", "no `description`"),
            ("name: other\ndescription: x", "its folder is `pdf`"),
            ("name: Pdf\ndescription: x", "has `P`"),
            ("name: p--d\ndescription: x", "two in a row"),
            ("name: -p\ndescription: x", "at an edge"),
            ("name: 5\ndescription: x", "is no text"),
            ("name: pdf\ndescription: ''", "0 characters"),
            ("name: pdf\ndescription: x\nmetadata: 5", "`metadata` is no map"),
            ("name: pdf\ndescription: x\nallowed-tools: {a: 1}", "`allowed-tools` is no list"),
            ("name: pdf\ndescription: x\nrequired_refs: [1]", "holds what is no text"),
            ("name: pdf\n description: [", "no YAML"),
            ("- a", "no map"),
        ] {
            let error = head(fields).unwrap_err();
            assert!(error.contains(why), "{fields}: {error}");
        }
        assert!(head(&format!("name: pdf\ndescription: {}", "x".repeat(1025))).unwrap_err().contains("1025"));
        assert!(parse("# Title", "pdf").unwrap_err().contains("does not begin"));
        assert!(parse("---\nname: pdf\n", "pdf").unwrap_err().contains("is missing"));
    }

    #[test]
    fn a_hostile_head_costs_little() {
        let bomb: String = (0..40).fold("a0: &a0 [x,x,x,x,x,x,x,x]\n".into(), |text, n| {
            format!("{text}a{}: &a{} [*a{n},*a{n},*a{n},*a{n},*a{n},*a{n}]\n", n + 1, n + 1)
        });
        let begun = std::time::Instant::now();
        assert!(head(&bomb).is_err());
        assert!(head(&"[".repeat(20_000)).is_err());
        let refs = format!("name: pdf\ndescription: x\nrequired_refs: {}", "a.md ".repeat(REFS + 1));
        assert!(head(&refs).unwrap_err().contains("has 51 files"));
        assert!(head(&"x".repeat(LARGEST + 1)).unwrap_err().contains("are the most"));
        assert!(begun.elapsed() < std::time::Duration::from_secs(20), "{:?}", begun.elapsed());
    }
}
