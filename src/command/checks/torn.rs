//! Finds names with blanks that are not quoted, and so are several words to the shell.

use caro_shell::{Invocation, Script, Word};

/// Most words of a name with blanks.
const MAX_WORDS: usize = 8;

/// Finds adjacent words of a command that together are the name of a file, and not each a file of its own.
pub(crate) fn existing_name<'c>(
    script: &Script,
    command: &'c Invocation,
    exists: impl Fn(&str) -> bool,
) -> Option<(&'c [Word], String)> {
    joined_name(script, command, |words, name| !words.iter().all(|word| exists(&word.text)) && exists(name))
}

/// Finds the longest run of adjacent plain words of a command that `is_one` takes for one name.
pub(crate) fn joined_name<'c>(
    script: &Script,
    command: &'c Invocation,
    is_one: impl Fn(&[Word], &str) -> bool,
) -> Option<(&'c [Word], String)> {
    let args = command.args();
    for length in (2..=MAX_WORDS.min(args.len())).rev() {
        for words in args.windows(length) {
            if !words.iter().all(|word| !word.quoted && word.value.is_some()) {
                continue;
            }
            let Some(text) = script.text.get(words[0].span.start..words[length - 1].span.end) else { continue };
            if is_one(words, text) {
                return Some((words, text.to_owned()));
            }
        }
    }
    None
}
