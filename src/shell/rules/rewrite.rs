//! The closed set of repairs that a rule may name. Each changes the words of one command and leaves the rest of the
//! script as it was written.

use super::condition::option;
use crate::parse::{How, Invocation, Script, Word};
use crate::pattern::Pattern;
use std::ops::Range;

/// A repair.
#[derive(Debug, Clone, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rewrite {
    /// Another program word, the arguments stay.
    Rename(String),
    /// Another command altogether, arguments and all, whose output has the same form.
    Become(String),
    /// Another command altogether whose output looks otherwise: only where people read it, or where it is read whole.
    Instead(String),
    /// Another text, with the groups of the pattern (`$1`) in it; only of a command that the pattern fits, and that
    /// nothing but `sudo` runs: what stands in `find -exec` or in the quotes of `sh -c` cannot be any text. A pipe only
    /// takes the place of a command that stands alone and reads no redirected file.
    Turn(Pattern, String),
    /// An option is taken out, with its `=value`.
    Remove(String),
    /// An option (first) becomes another (second).
    Replace(String, String),
    /// Text is put in as a word after an option (first).
    InsertAfter(String, String),
    /// Text is put in front of the word after an option (first), as a part of it.
    Prefix(String, String),
    /// An option (first) becomes another (second), and text (third) is put in front of its value.
    Exchange(String, String, String),
    /// Text is put in right after the program word.
    InsertFirst(String),
    /// Text is put at the command's end.
    Append(String),
}

impl Rewrite {
    /// The whole script, mended; `None` if the words of this command do not stand in it as written.
    pub fn apply(&self, script: &Script, command: &Invocation) -> Option<String> {
        let exact = |w: &Word| script.text.get(w.span.clone()) == Some(w.raw.as_str());
        if !command.words.iter().all(exact) {
            return None;
        }
        let program = command.words.first()?;
        let (range, text) = match self {
            Self::Rename(name) => (program.span.clone(), name.clone()),
            Self::Become(text) => (command.span(), text.clone()),
            Self::Instead(text) => (command.span(), Some(text.clone()).filter(|_| is_looked_at(script, command))?),
            Self::Turn(pattern, text) => {
                let range = command.span();
                let text = pattern.replaced(script.text.get(range.clone())?, text)?;
                let reads = command.redirects.iter().any(|r| !r.writes());
                let alone = command.via.is_empty() && !reads;
                let fits = if text.contains(" | ") { alone } else { command.via.iter().all(|via| via == "sudo") };
                (range, Some(text).filter(|_| fits)?)
            }
            Self::Remove(name) => {
                let word = &command.words[option(command, name)?];
                // The cluster keeps its other letters.
                if let (Some(letter), true) = (short(name), word.raw.len() > 2 && !word.raw.starts_with("--")) {
                    (word.span.clone(), word.raw.replacen(letter, "", 1))
                } else {
                    let blank = script.text[..word.span.start].ends_with(' ');
                    (word.span.start - usize::from(blank)..word.span.end, String::new())
                }
            }
            Self::Replace(old, new) => {
                let word = &command.words[option(command, old.trim_end_matches('='))?];
                let text = match (short(old), short(new)) {
                    (Some(a), Some(b)) if !word.raw.starts_with("--") => word.raw.replacen(a, &b.to_string(), 1),
                    _ => word.raw.replacen(old.as_str(), new, 1),
                };
                (word.span.clone(), text)
            }
            Self::InsertAfter(name, text) => {
                let word = &command.words[option(command, name)?];
                (word.span.end..word.span.end, format!(" {text}"))
            }
            Self::Prefix(name, text) => {
                let word = command.words.get(option(command, name)? + 1)?;
                (word.span.start..word.span.start, text.clone())
            }
            Self::Exchange(old, new, before) => {
                let at = option(command, old)?;
                let (word, value) = (&command.words[at], command.words.get(at + 1)?);
                // a letter of a cluster has no word for itself
                if word.text != *old {
                    return None;
                }
                (word.span.start..value.span.start, format!("{new} {before}"))
            }
            Self::InsertFirst(text) => (program.span.end..program.span.end, format!(" {text}")),
            Self::Append(text) => (command.span().end..command.span().end, format!(" {text}")),
        };
        Some(spliced(&script.text, range, &text))
    }
}

/// True if nothing picks lines or columns out of what the command prints.
fn is_looked_at(script: &Script, command: &Invocation) -> bool {
    const WHOLE: [&str; 6] = ["cat", "head", "less", "more", "tail", "tee"];
    let whole = |i: &usize| {
        let reader = script.commands.get(*i);
        reader.is_some_and(|r| r.name().is_some_and(|name| WHOLE.contains(&name)) && is_looked_at(script, r))
    };
    command.inside.is_none_or(|inside| inside.how == How::Wrapped) && command.feeds.iter().all(whole)
}

fn short(option: &str) -> Option<char> {
    let mut chars = option.strip_prefix('-')?.chars();
    chars.next().filter(|c| *c != '-' && chars.next().is_none())
}

fn spliced(text: &str, range: Range<usize>, new: &str) -> String {
    format!("{}{new}{}", &text[..range.start], &text[range.end..])
}
