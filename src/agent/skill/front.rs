//! Parses the front matter of a `SKILL.md`: YAML between two lines `---`.
//!
//! | field | |
//! | --- | --- |
//! | `name` | 1 to 64 of a-z, 0-9 and `-`, no `-` at an edge or twice in a row; the folder's name |
//! | `description` | 1 to 1024 characters: what the skill does and when it is used; the search for skills reads it |
//! | `version`, `license`, `compatibility` (at most 500 characters) | optional |
//! | `metadata` | optional: a map for the author's own fields |
//! | `allowed-tools` | optional: tools that the skill mentions; grants no permission to use them |
//! | `required_refs` | optional: at most 50 files of its folder that are appended to its text |
//!
//! Source of the common fields: the Agent Skills format. `required_refs` may stand in `metadata` too.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Most bytes of a front matter.
const MAX_BYTES: usize = 32 << 10;

/// Most references of one skill; each may be as large as its text.
const MAX_REFS: usize = 50;

/// Most YAML events that aliases may expand to in total.
const MAX_ALIASED: usize = 2000;

/// A valid front matter.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Front {
    /// Its name.
    pub name: String,
    /// The purpose of the skill and when it is used.
    pub description: String,
    /// Tools that it mentions.
    pub allowed_tools: Vec<String>,
    /// Files that are appended to its text.
    pub required_refs: Vec<String>,
    /// All fields as written; templates see them as `skill`.
    pub all: Map<String, Value>,
}

/// Splits a file into its front matter and its text.
///
/// # Errors
/// If there is no front matter.
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

/// Parses the front matter of a file in a folder of that name.
///
/// # Errors
/// The first error found, as a sentence.
pub fn parse(text: &str, folder: &str) -> Result<Front, String> {
    let (head, _) = split(text)?;
    if head.len() > MAX_BYTES {
        return Err(format!("its head has {} bytes, and {MAX_BYTES} are the most", head.len()));
    }
    // a short front matter needs no aliases that multiply
    let options = serde_saphyr::options! {
        alias_limits: serde_saphyr::alias_limits! { max_total_replayed_events: MAX_ALIASED },
    };
    let all: Value = serde_saphyr::from_str_with_options(head, options).map_err(|e| {
        let why = e.to_string();
        format!("its head is not YAML: {}", why.lines().next().unwrap_or_default())
    })?;
    let Value::Object(all) = all else { return Err("its head is not a map of fields".into()) };
    let name = name(&all)?;
    if name != folder {
        return Err(format!("its `name` is `{name}`, and its folder is `{folder}`"));
    }
    let description = string(&all, "description")?.ok_or("it has no `description`")?;
    let length = description.trim().chars().count();
    if !(1..=1024).contains(&length) {
        return Err(format!("its `description` has {length} characters: 1 to 1024 are allowed"));
    }
    if let Some(text) = string(&all, "compatibility")?
        && text.chars().count() > 500
    {
        return Err("its `compatibility` has more than 500 characters".into());
    }
    for field in ["license", "version"] {
        scalar(&all, field)?;
    }
    if all.get("metadata").is_some_and(|m| !m.is_object() && !m.is_null()) {
        return Err("its `metadata` is not a map".into());
    }
    let allowed_tools = list(&all, "allowed-tools")?;
    let mut required_refs = list(&all, "required_refs")?;
    if let Some(Value::Object(metadata)) = all.get("metadata") {
        required_refs.extend(list(metadata, "required_refs")?);
    }
    if required_refs.len() > MAX_REFS {
        return Err(format!("its `required_refs` has {} files, and {MAX_REFS} are the most", required_refs.len()));
    }
    Ok(Front { name, description: description.trim().to_owned(), allowed_tools, required_refs, all })
}

/// Returns the `name` if it is valid.
fn name(all: &Map<String, Value>) -> Result<String, String> {
    let name = string(all, "name")?.ok_or("it has no `name`")?;
    is_name(&name).map(|()| name)
}

/// Checks the rules of a skill's name.
///
/// # Errors
/// The rule that is broken, as a sentence.
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

/// Returns a field that must be a string if present.
fn string(all: &Map<String, Value>, field: &str) -> Result<Option<String>, String> {
    match all.get(field) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(_) => Err(format!("its `{field}` is not text: put it in quotes")),
    }
}

/// Checks that a field is a single value if present.
fn scalar(all: &Map<String, Value>, field: &str) -> Result<(), String> {
    match all.get(field) {
        Some(Value::Array(_) | Value::Object(_)) => Err(format!("its `{field}` is not a single value")),
        _ => Ok(()),
    }
}

/// Returns a field that is a list of strings or words separated by spaces.
fn list(all: &Map<String, Value>, field: &str) -> Result<Vec<String>, String> {
    match all.get(field) {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(Value::String(words)) => Ok(words.split_whitespace().map(str::to_owned).collect()),
        Some(Value::Array(items)) => items
            .iter()
            .map(|item| item.as_str().map(str::to_owned).ok_or_else(|| format!("its `{field}` holds what is not text")))
            .collect(),
        Some(_) => Err(format!("its `{field}` is not a list")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(fields: &str) -> Result<Front, String> {
        parse(&format!("---\n{fields}\n---\nText.\n"), "pdf")
    }

    #[test]
    fn all_fields_of_a_valid_head_are_read() {
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
    fn an_invalid_head_is_refused_with_the_reason() {
        for (fields, why) in [
            ("description: x", "no `name`"),
            ("name: pdf", "no `description`"),
            ("name: other\ndescription: x", "its folder is `pdf`"),
            ("name: Pdf\ndescription: x", "has `P`"),
            ("name: p--d\ndescription: x", "two in a row"),
            ("name: -p\ndescription: x", "at an edge"),
            ("name: 5\ndescription: x", "is not text"),
            ("name: pdf\ndescription: ''", "0 characters"),
            ("name: pdf\ndescription: x\nmetadata: 5", "`metadata` is not a map"),
            ("name: pdf\ndescription: x\nallowed-tools: {a: 1}", "`allowed-tools` is not a list"),
            ("name: pdf\ndescription: x\nrequired_refs: [1]", "holds what is not text"),
            ("name: pdf\n description: [", "not YAML"),
            ("- a", "not a map"),
        ] {
            let error = head(fields).unwrap_err();
            assert!(error.contains(why), "{fields}: {error}");
        }
        assert!(head(&format!("name: pdf\ndescription: {}", "x".repeat(1025))).unwrap_err().contains("1025"));
        assert!(parse("# Title", "pdf").unwrap_err().contains("does not begin"));
        assert!(parse("---\nname: pdf\n", "pdf").unwrap_err().contains("is missing"));
    }

    #[test]
    fn a_hostile_head_is_refused_quickly() {
        let bomb: String = (0..40).fold("a0: &a0 [x,x,x,x,x,x,x,x]\n".into(), |text, n| {
            format!("{text}a{}: &a{} [*a{n},*a{n},*a{n},*a{n},*a{n},*a{n}]\n", n + 1, n + 1)
        });
        let start = std::time::Instant::now();
        assert!(head(&bomb).is_err());
        assert!(head(&"[".repeat(20_000)).is_err());
        let refs = format!("name: pdf\ndescription: x\nrequired_refs: {}", "a.md ".repeat(MAX_REFS + 1));
        assert!(head(&refs).unwrap_err().contains("has 51 files"));
        assert!(head(&"x".repeat(MAX_BYTES + 1)).unwrap_err().contains("are the most"));
        assert!(start.elapsed() < std::time::Duration::from_secs(20), "{:?}", start.elapsed());
    }
}
