//! The fixes that a rule may use. Each changes the words of one command and leaves the rest of the script unchanged.

use super::condition::{option, short_option};
use crate::parse::{How, Invocation, Script, Word};
use crate::pattern::Pattern;
use std::ops::Range;

/// A fix.
#[derive(Debug, Clone, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rewrite {
    /// Replaces the program word; the arguments stay.
    Rename(String),
    /// Replaces the whole command by another one whose output has the same form.
    Become(String),
    /// Replaces the whole command by one whose output has another form: only if the output is read by a person or as
    /// a whole.
    Instead(String),
    /// Replaces the text of the command, with the groups of the pattern (`$1`). Only if the pattern matches and no
    /// wrapper but `sudo` runs the command, as `find -exec` or the quotes of `sh -c` do not accept any text. A pipe
    /// may replace only a command without a wrapper and without a redirected input.
    Turn(Pattern, String),
    /// Removes an option, with its `=value`.
    Remove(String),
    /// Replaces an option (first) by another (second).
    Replace(String, String),
    /// Inserts a word (second) after an option (first).
    InsertAfter(String, String),
    /// Inserts text (second) in front of the word after an option (first), as a part of it.
    Prefix(String, String),
    /// Replaces an option (first) by another (second), and inserts text (third) in front of its value.
    Exchange(String, String, String),
    /// Inserts text right after the program word.
    InsertFirst(String),
    /// Appends text to the command.
    Append(String),
}

impl Rewrite {
    /// Returns the fixed script; `None` if a word of this command is not in the script as written.
    pub fn apply(&self, script: &Script, command: &Invocation) -> Option<String> {
        let exact = |w: &Word| script.text.get(w.span.clone()) == Some(w.raw.as_str());
        if !command.words.iter().all(exact) {
            return None;
        }
        let program = command.words.first()?;
        let (range, text) = match self {
            Self::Rename(name) => (program.span.clone(), name.clone()),
            Self::Become(text) => (command.span(), text.clone()),
            Self::Instead(text) => {
                if !is_read_whole(script, command) {
                    return None;
                }
                (command.span(), text.clone())
            }
            Self::Turn(pattern, text) => {
                let range = command.span();
                let text = pattern.replaced(script.text.get(range.clone())?, text)?;
                let reads = command.redirects.iter().any(|r| !r.writes());
                let alone = command.via.is_empty() && !reads;
                let fits = if text.contains(" | ") { alone } else { command.via.iter().all(|via| via == "sudo") };
                if !fits {
                    return None;
                }
                (range, text)
            }
            Self::Remove(name) => {
                let word = &command.words[option(command, name)?];
                // the other letters of a cluster stay
                if let (Some(letter), true) = (short_option(name), word.raw.len() > 2 && !word.raw.starts_with("--")) {
                    (word.span.clone(), word.raw.replacen(letter, "", 1))
                } else {
                    let blank = script.text[..word.span.start].ends_with(' ');
                    (word.span.start - usize::from(blank)..word.span.end, String::new())
                }
            }
            Self::Replace(old, new) => {
                let word = &command.words[option(command, old.trim_end_matches('='))?];
                let text = match (short_option(old), short_option(new)) {
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
                // a letter of a cluster is no word of its own
                if word.text != *old {
                    return None;
                }
                (word.span.start..value.span.start, format!("{new} {before}"))
            }
            Self::InsertFirst(text) => (program.span.end..program.span.end, format!(" {text}")),
            Self::Append(text) => (command.span().end..command.span().end, format!(" {text}")),
        };
        Some(splice(&script.text, range, &text))
    }
}

/// True if nothing selects lines or columns of the command's output.
fn is_read_whole(script: &Script, command: &Invocation) -> bool {
    const WHOLE: [&str; 6] = ["cat", "head", "less", "more", "tail", "tee"];
    let whole = |i: &usize| {
        let reader = script.commands.get(*i);
        reader.is_some_and(|r| r.name().is_some_and(|name| WHOLE.contains(&name)) && is_read_whole(script, r))
    };
    command.inside.is_none_or(|inside| inside.how == How::Wrapped) && command.feeds.iter().all(whole)
}

fn splice(text: &str, range: Range<usize>, new: &str) -> String {
    format!("{}{new}{}", &text[..range.start], &text[range.end..])
}
