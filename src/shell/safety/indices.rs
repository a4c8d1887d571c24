//! Finds commands in array indices and other text that the shell evaluates although no substitution is written there:
//! `x='a[$(cmd)]'; echo $((x))`, `[[ -v 'a[$(cmd)]' ]]`, `compgen -W '$(cmd)'`, and `"${x@P}"`.

use super::{Level, Reason, reason};
use crate::Dialect;
use crate::parse::{Construct, Script, Word};
use crate::tree::split_words;

pub(super) fn reasons(script: &Script) -> Vec<Reason> {
    if !matches!(script.dialect, Dialect::Bash | Dialect::Zsh | Dialect::Sh) {
        return Vec::new();
    }
    let say = |token: &str, span: &std::ops::Range<usize>| {
        let why = format!("`{token}` has a command in it that the shell may run");
        reason(Level::Caution, "code", token, span.clone(), why)
    };
    // `${x@P}` evaluates any value
    let anywhere = script.text.contains("@P}");
    let indexed = |word: &Word| {
        word.value.as_deref().is_some_and(|value| has_command(value) && (anywhere || value.contains('[')))
    };
    let assigned = script.assignments.iter().map(|a| &a.value).filter(|value| indexed(value));
    let mut found: Vec<Reason> = assigned.map(|value| say(&value.raw, &value.span)).collect();
    for (construct, span) in &script.constructs {
        let text = script.text.get(span.clone()).unwrap_or_default();
        let hides = match construct {
            Construct::DoubleBracket => {
                split_words(text).into_iter().any(|range| indexed(&Word::new(&text[range], 0, script.dialect)))
            }
            Construct::DoubleParen | Construct::Arithmetic => text.split('\'').skip(1).step_by(2).any(has_command),
            _ => false,
        };
        found.extend(hides.then(|| say(text, span)));
    }
    for command in script.commands.iter().filter(|c| c.name() == Some("compgen")) {
        let words = command.args().iter().filter(|w| w.value.as_deref().is_some_and(has_command));
        found.extend(words.map(|word| say(&word.raw, &word.span)));
    }
    found
}

fn has_command(text: &str) -> bool {
    text.contains("$(") || text.contains('`')
}
