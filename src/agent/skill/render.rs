//! A skill's text as the model reads it: filled in, with the references it needs and its prompts under it. References are those
//! that its head names and what lies in `required_refs/`; prompts are what lies in `prompts/`, filled in as the text is.
//!
//! Anybody may have written it, and no limit of a template engine holds what an expression can ask for: a nest of signs
//! overflows the stack, `~`, `*` and filters make gigabytes out of a line. So a template may look things up, and ask for
//! them with `if`; nothing else reaches the engine.

use super::{FILE, Origin, Skill, SkillError, front, read};
use caro_policy::{normalise, screen};
use minijinja::value::Serde;
use minijinja::{AutoEscape, Environment, UndefinedBehavior};
use serde_json::{Map, Value, json};
use std::io::{self, Write};

/// Instructions of one template.
const FUEL: u64 = 200_000;
/// The longest look-up, bytes.
const LONGEST: usize = 200;
/// The longest text that a template may make, bytes.
const LARGEST: usize = 64 << 10;

/// Folders of a skill whose files belong to its text though its head names none of them; and files of each, and bytes of all of
/// them: what is longer is there to be read.
const REFS: &str = "required_refs";
const PROMPTS: &str = "prompts";
const UNNAMED: usize = 8;
const UNNAMED_BYTES: usize = 6000;

/// A skill ready for a prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rendered {
    /// The whole text.
    pub text: String,
    /// References that it goes without, and why.
    pub missing_refs: Vec<(String, String)>,
}

/// Reads, fills in and puts together. Each file is read on a thread of its own.
///
/// # Errors
/// If it cannot be read or filled in, or if it is a project's and overrides instructions.
pub fn render(skill: &Skill) -> Result<Rendered, SkillError> {
    let (named, unnamed, prompts) = (skill.front.required_refs.clone(), unnamed(skill, REFS), unnamed(skill, PROMPTS));
    let names: Vec<&String> = named.iter().chain(&unnamed).chain(&prompts).collect();
    let (body, mut texts) = std::thread::scope(|scope| {
        let texts: Vec<_> = names.iter().map(|name| scope.spawn(move || skill.reference(name))).collect();
        let body = read(&skill.folder.join(FILE));
        let lost = || Err("it could not be read".to_owned());
        let texts: Vec<Text> = texts.into_iter().map(|text| text.join().unwrap_or_else(|_| lost())).collect();
        (body, texts)
    });
    let body = body?;
    let mut room = UNNAMED_BYTES;
    texts[named.len()..].iter_mut().for_each(|text| *text = within(&mut room, text));
    let prompted = texts.split_off(named.len() + unnamed.len());
    let template = |reason: String| SkillError::Template { skill: skill.front.name.clone(), reason };
    let (_, text) = front::split(&body).map_err(template)?;
    let mut whole = fill(text, skill)?;
    let mut missing_refs = Vec::new();
    let filled = |text: Text| text.and_then(|text| fill(&text, skill).map_err(|error| error.to_string()));
    let prompted = prompted.into_iter().map(filled);
    for (heading, names, texts) in [
        ("Required References", named.iter().chain(&unnamed).collect::<Vec<_>>(), texts),
        ("Prompts", prompts.iter().collect(), prompted.collect()),
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

/// The text of a file of a skill, or in words why it goes without.
type Text = Result<String, String>;

/// The files of a folder of a skill that its head does not name, by their paths in the skill.
fn unnamed(skill: &Skill, folder: &str) -> Vec<String> {
    let mut all = skill.files_of(folder, UNNAMED);
    all.iter_mut().for_each(|file| *file = format!("{folder}/{file}"));
    all.retain(|file| !skill.front.required_refs.contains(file));
    all
}

/// The text, if there is so much room left for it.
fn within(room: &mut usize, text: &Text) -> Text {
    let text = text.clone()?;
    *room = room.checked_sub(text.len()).ok_or_else(|| {
        format!(
            "it has {} bytes, and files that no `required_refs` names may have {UNNAMED_BYTES} together",
            text.len()
        )
    })?;
    Ok(text)
}

/// The head as a template sees it. Where it has no version of its own it has that of its metadata, which is where the format has a
/// place for one.
fn seen(skill: &Skill) -> Map<String, Value> {
    let mut head = skill.front.all.clone();
    if !head.contains_key("version")
        && let Some(version) = head.get("metadata").and_then(|more| more.get("version")).cloned()
    {
        head.insert("version".into(), version);
    }
    head
}

/// Fills in a template; what it names and does not exist is an error. It sees its own head as `skill`, and nothing else.
///
/// # Errors
/// What is wrong, with its line.
pub fn fill(text: &str, skill: &Skill) -> Result<String, SkillError> {
    let failed = |e: minijinja::Error| {
        let line = e.line().map(|line| format!(" (line {line} of its text)")).unwrap_or_default();
        let what = e.detail().map_or_else(|| e.kind().to_string(), |detail| format!("{}: {detail}", e.kind()));
        SkillError::Template { skill: skill.front.name.clone(), reason: format!("{what}{line}") }
    };
    plain(text).map_err(|(at, why)| {
        let line = text[..at].matches('\n').count() + 1;
        SkillError::Template { skill: skill.front.name.clone(), reason: format!("{why} (line {line} of its text)") }
    })?;
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_auto_escape_callback(|_| AutoEscape::None);
    environment.set_fuel(Some(FUEL));
    let mut page = Page::default();
    let template = environment.template_from_str(text).map_err(failed)?;
    let made = template.render_captured_to(Serde(json!({"skill": seen(skill)})), &mut page).map(drop);
    if page.full {
        let reason = format!("it makes more than {LARGEST} bytes");
        return Err(SkillError::Template { skill: skill.front.name.clone(), reason });
    }
    made.map_err(failed)?;
    Ok(String::from_utf8_lossy(&page.text).trim().to_owned())
}

/// What a template writes, up to [`LARGEST`].
#[derive(Default)]
struct Page {
    text: Vec<u8>,
    full: bool,
}

impl Write for Page {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.full |= self.text.len() + bytes.len() > LARGEST;
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

/// Holds a template against what one may have: words and dots in braces, and `if`, `else`, `endif` and `raw` around text.
/// Sees tags where the engine does.
///
/// # Errors
/// What it may not have, and where.
fn plain(text: &str) -> Result<(), (usize, &'static str)> {
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
            _ if inside.len() > LONGEST || !inside.chars().all(word) => false,
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

/// Where the text goes on after the end of a raw part.
fn after_raw(text: &str) -> Option<usize> {
    text.match_indices("{%").find_map(|(at, _)| {
        let rest = &text[at + 2..];
        let rest = rest.strip_prefix(['-', '+']).unwrap_or(rest).trim_ascii_start().strip_prefix("endraw")?;
        let rest = rest.trim_ascii_start();
        let rest = rest.strip_prefix(['-', '+']).unwrap_or(rest).strip_prefix("%}")?;
        Some(text.len() - rest.len())
    })
}
