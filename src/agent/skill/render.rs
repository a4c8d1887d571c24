//! Renders a skill's text for the model: filled in, followed by its references and its prompts. References are the
//! files named in the front matter and those in `required_refs/`; prompts are the files in `prompts/`, filled in as
//! the text is.
//!
//! Skills are untrusted, and the limits of the template engine do not bound expressions: nested operators overflow the
//! stack, and `~`, `*` and filters make gigabytes out of a line. So a template may only look up values and test them
//! with `if`; nothing else reaches the engine.

use super::{FILE, Origin, Skill, SkillError, front, read};
use caro_policy::{normalise, screen};
use minijinja::value::Serde;
use minijinja::{AutoEscape, Environment, UndefinedBehavior};
use serde_json::{Map, Value, json};
use std::io::{self, Write};

/// Most engine instructions of one template.
const FUEL: u64 = 200_000;
/// Most bytes of a tag.
const MAX_TAG: usize = 200;
/// Most bytes a template may produce.
const MAX_OUTPUT: usize = 64 << 10;

/// The folder whose files are appended as references even if the front matter does not name them.
const REFS: &str = "required_refs";
/// The folder whose files are appended as prompts.
const PROMPTS: &str = "prompts";
/// Most files of each folder that the front matter does not name.
const MAX_UNNAMED: usize = 8;
/// Most bytes of all such files together; the others can be read with the tool.
const MAX_UNNAMED_BYTES: usize = 6000;

/// A skill ready for a prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rendered {
    /// The whole text.
    pub text: String,
    /// References that could not be included, each with the reason.
    pub missing_refs: Vec<(String, String)>,
}

/// Renders a skill. Each file is read on its own thread.
///
/// # Errors
/// If it cannot be read or filled in, or if it is a project's and overrides instructions.
pub fn render(skill: &Skill) -> Result<Rendered, SkillError> {
    let (named, unnamed, prompts) = (skill.front.required_refs.clone(), unnamed(skill, REFS), unnamed(skill, PROMPTS));
    let names: Vec<&String> = named.iter().chain(&unnamed).chain(&prompts).collect();
    let (body, mut texts) = std::thread::scope(|scope| {
        let texts: Vec<_> = names.iter().map(|name| scope.spawn(move || skill.reference(name))).collect();
        let body = read(&skill.folder.join(FILE));
        let unreadable = || Err("it could not be read".to_owned());
        let texts: Vec<Text> = texts.into_iter().map(|text| text.join().unwrap_or_else(|_| unreadable())).collect();
        (body, texts)
    });
    let body = body?;
    let mut room = MAX_UNNAMED_BYTES;
    texts[named.len()..].iter_mut().for_each(|text| *text = take_room(&mut room, text));
    let prompt_texts = texts.split_off(named.len() + unnamed.len());
    let template = |reason: String| SkillError::Template { skill: skill.front.name.clone(), reason };
    let (_, text) = front::split(&body).map_err(template)?;
    let mut whole = fill(text, skill)?;
    let mut missing_refs = Vec::new();
    let filled = |text: Text| text.and_then(|text| fill(&text, skill).map_err(|error| error.to_string()));
    let prompt_texts = prompt_texts.into_iter().map(filled);
    for (heading, names, texts) in [
        ("Required References", named.iter().chain(&unnamed).collect::<Vec<_>>(), texts),
        ("Prompts", prompts.iter().collect(), prompt_texts.collect()),
    ] {
        let mut heading = format!("\n\n# {heading}");
        for (name, text) in names.into_iter().zip(texts) {
            match text {
                Ok(text) => whole.push_str(&format!("{}\n\n## {name}\n{}", std::mem::take(&mut heading), text.trim())),
                Err(why) => missing_refs.push((name.clone(), why)),
            }
        }
    }
    let text = normalise(&whole);
    if skill.origin == Origin::Project && screen(&text).blocks() {
        return Err(SkillError::Withheld { skill: skill.front.name.clone() });
    }
    Ok(Rendered { text, missing_refs })
}

/// The text of a file of a skill, or the reason it is left out, as a sentence.
type Text = Result<String, String>;

/// Returns the files of a skill's subfolder that its front matter does not name, relative to the skill.
fn unnamed(skill: &Skill, folder: &str) -> Vec<String> {
    let mut all = skill.files_of(folder, MAX_UNNAMED);
    all.iter_mut().for_each(|file| *file = format!("{folder}/{file}"));
    all.retain(|file| !skill.front.required_refs.contains(file));
    all
}

/// Returns the text if it fits into the remaining bytes, and subtracts it from them.
fn take_room(room: &mut usize, text: &Text) -> Text {
    let text = text.clone()?;
    *room = room.checked_sub(text.len()).ok_or_else(|| {
        format!(
            "it has {} bytes, and files that no `required_refs` names may have {MAX_UNNAMED_BYTES} together",
            text.len()
        )
    })?;
    Ok(text)
}

/// Returns the front matter as a template sees it: a missing `version` is taken from `metadata`, where the common
/// format puts it.
fn template_fields(skill: &Skill) -> Map<String, Value> {
    let mut head = skill.front.all.clone();
    if !head.contains_key("version")
        && let Some(version) = head.get("metadata").and_then(|more| more.get("version")).cloned()
    {
        head.insert("version".into(), version);
    }
    head
}

/// Fills in a template. It sees only its own front matter, as `skill`; undefined names are errors.
///
/// # Errors
/// The error in the template, with its line.
pub fn fill(text: &str, skill: &Skill) -> Result<String, SkillError> {
    let failed = |e: minijinja::Error| {
        let line = e.line().map(|line| format!(" (line {line} of its text)")).unwrap_or_default();
        let what = e.detail().map_or_else(|| e.kind().to_string(), |detail| format!("{}: {detail}", e.kind()));
        SkillError::Template { skill: skill.front.name.clone(), reason: format!("{what}{line}") }
    };
    check_tags(text).map_err(|(at, why)| {
        let line = text[..at].matches('\n').count() + 1;
        SkillError::Template { skill: skill.front.name.clone(), reason: format!("{why} (line {line} of its text)") }
    })?;
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_auto_escape_callback(|_| AutoEscape::None);
    environment.set_fuel(Some(FUEL));
    let mut page = Page::default();
    let template = environment.template_from_str(text).map_err(failed)?;
    let made = template.render_captured_to(Serde(json!({"skill": template_fields(skill)})), &mut page).map(drop);
    if page.full {
        let reason = format!("it makes more than {MAX_OUTPUT} bytes");
        return Err(SkillError::Template { skill: skill.front.name.clone(), reason });
    }
    made.map_err(failed)?;
    Ok(String::from_utf8_lossy(&page.text).trim().to_owned())
}

/// The output of a template, up to [`MAX_OUTPUT`] bytes.
#[derive(Default)]
struct Page {
    text: Vec<u8>,
    full: bool,
}

impl Write for Page {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.full |= self.text.len() + bytes.len() > MAX_OUTPUT;
        if self.full {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.text.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Checks that a template has only allowed tags: words and dots in braces, and `if`, `else`, `endif` and `raw` around
/// text. It must recognise tags exactly where the engine does.
///
/// # Errors
/// The byte offset of the first forbidden tag, and the reason.
fn check_tags(text: &str) -> Result<(), (usize, &'static str)> {
    let mut at = 0;
    while let Some(next) = text[at..].find('{') {
        let begin = at + next;
        let end = match text.as_bytes().get(begin + 1) {
            Some(b'{') => "}}",
            Some(b'%') => "%}",
            Some(b'#') => "#}",
            _ => {
                at = begin + 1;
                continue;
            }
        };
        let Some(length) = text[begin + 2..].find(end) else {
            return Err((begin, "template error: a brace is opened and not closed"));
        };
        at = begin + 2 + length + 2;
        let inside = &text[begin + 2..at - 2];
        if end == "#}" {
            continue;
        }
        let inside = inside.strip_prefix(['-', '+']).unwrap_or(inside);
        let inside = inside.strip_suffix(['-', '+']).unwrap_or(inside);
        let word = |c: char| c.is_ascii_alphanumeric() || c.is_ascii_whitespace() || c == '_' || c == '.';
        let words: Vec<&str> = inside.split_ascii_whitespace().take(2).collect();
        let fine = match words[..] {
            _ if inside.len() > MAX_TAG || !inside.chars().all(word) => false,
            ["raw"] if end == "%}" => {
                let Some(after) = after_raw(&text[at..]) else {
                    return Err((begin, "template error: a raw part is not closed"));
                };
                at += after;
                true
            }
            ["else" | "endif"] | ["if", _] => true,
            _ => end == "}}",
        };
        if !fine {
            return Err((
                begin,
                "a template has {{ skill.NAME }}, {% if %}, {% else %}, {% endif %} and {% raw %} alone",
            ));
        }
    }
    Ok(())
}

/// Returns the byte offset behind the `endraw` tag of a raw part.
fn after_raw(text: &str) -> Option<usize> {
    text.match_indices("{%").find_map(|(at, _)| {
        let rest = &text[at + 2..];
        let rest = rest.strip_prefix(['-', '+']).unwrap_or(rest).trim_ascii_start().strip_prefix("endraw")?;
        let rest = rest.trim_ascii_start();
        let rest = rest.strip_prefix(['-', '+']).unwrap_or(rest).strip_prefix("%}")?;
        Some(text.len() - rest.len())
    })
}
