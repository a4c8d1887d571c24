//! The tests of `find` that hold when one of its actions is reached.

use super::fd::{fd_operands, is_fd};
use crate::find::{EXECS, PRINTS, is_narrowing_test};
use crate::parse::{Invocation, Word};

/// The position of an action in the words of a `find`: its tests are those that stand before it.
#[derive(Debug, Clone, Copy)]
pub(super) enum Action<'a> {
    /// The action of this name.
    Named(&'a str),
    /// The `-exec` that runs this command.
    Runs(&'a Invocation),
    /// The first that prints; without any, the names that pass the whole expression are printed.
    Prints,
}

/// True if a `find` or `fd` acts only on files that pass a test which excludes most files. An expression of `find` is
/// evaluated from left to right: a test behind the action does not limit it, nor does one on the other side of `-o`.
pub(super) fn narrowed(command: &Invocation, action: Action) -> bool {
    let all = |w: &Word| matches!(w.text.as_str(), "*" | ".*" | "*.*" | "**" | "." | "" | "^");
    if is_fd(command) {
        let tests = ["-e", "--extension", "-S", "--size", "-o", "--owner"];
        let tested = |w: &Word| tests.contains(&w.text.as_str()) || w.text.starts_with("--changed-");
        return fd_operands(command).first().is_some_and(|w| !all(w)) || command.args().iter().any(tested);
    }
    let words = expression(command);
    let is_selective = |i: usize| {
        let is_everything = words.get(i + 1).is_some_and(|(_, value)| all(value));
        is_narrowing_test(&words[i].1.text) && !is_everything && !is_negated(&words, i)
    };
    match position(&words, action) {
        Some(at) => tests_before(&words, at).into_iter().any(is_selective),
        None => (0..words.len()).any(is_selective),
    }
}

/// True if a word of an expression is negated; a negated test excludes few files.
fn is_negated(words: &[(usize, &Word)], at: usize) -> bool {
    at > 0 && matches!(words[at - 1].1.text.as_str(), "!" | "-not")
}

/// Returns the words of a `find` with their positions, without the commands that its `-exec` run.
fn expression(command: &Invocation) -> Vec<(usize, &Word)> {
    let mut is_body = false;
    let mut found = Vec::with_capacity(command.words.len());
    for (at, word) in command.words.iter().enumerate() {
        if !is_body {
            found.push((at, word));
        }
        let text = word.text.as_str();
        is_body = match is_body {
            // the words of a command that is assessed by itself are not here
            true => {
                let before = command.words[at - 1].text.as_str();
                text != ";" && !(text == "+" && (before == "{}" || EXECS.contains(&before)))
            }
            false => EXECS.contains(&text),
        };
    }
    found
}

/// Returns the index of an action in an expression; `None` if the whole expression comes before it.
fn position(words: &[(usize, &Word)], action: Action) -> Option<usize> {
    let first = |names: &[&str]| words.iter().position(|(_, word)| names.contains(&word.text.as_str()));
    match action {
        Action::Named(name) => first(&[name]),
        Action::Prints => first(PRINTS),
        Action::Runs(inner) => {
            let start = inner.words.first().map_or(0, |word| word.span.start);
            let is_before = |word: &Word| EXECS.contains(&word.text.as_str()) && word.span.end <= start;
            let exact = words.iter().rposition(|(_, word)| is_before(word));
            exact.or_else(|| first(EXECS))
        }
    }
}

/// Returns the indices of the words that must hold for the action at `at` to be reached: those before it in its own
/// part of the expression, which begins at a bracket, `-o` or `,`, and those before the bracket around it.
fn tests_before(words: &[(usize, &Word)], at: usize) -> Vec<usize> {
    let mut found = Vec::new();
    let (mut depth, mut is_other_side, mut negated) = (0_usize, false, None);
    for i in (0..at).rev() {
        match words[i].1.text.as_str() {
            ")" => {
                if negated.is_none() && is_negated(words, opening(words, i)) {
                    negated = Some(depth);
                }
                depth += 1;
            }
            "(" if depth == 0 => is_other_side = false,
            "(" => {
                depth -= 1;
                negated = negated.filter(|outer| *outer < depth);
            }
            "-o" | "-or" | "," if depth == 0 => is_other_side = true,
            _ if !is_other_side && negated.is_none() => found.push(i),
            _ => {}
        }
    }
    found
}

/// Returns the index of the bracket that the one at `close` closes.
fn opening(words: &[(usize, &Word)], close: usize) -> usize {
    let mut depth = 0_usize;
    for i in (0..=close).rev() {
        match words[i].1.text.as_str() {
            ")" => depth += 1,
            "(" => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return i;
        }
    }
    0
}

#[cfg(test)]
mod tests {
    use super::super::{Kind, effects};
    use crate::{Dialect, parse};

    /// True if what the command deletes is limited by a test.
    fn is_narrowed(text: &str) -> bool {
        let found = effects(&parse(text, Dialect::Bash));
        let mut deleted = found.iter().filter(|effect| effect.kind == Kind::Delete).peekable();
        assert!(deleted.peek().is_some(), "{text}: {found:?}");
        deleted.all(|effect| effect.narrowed)
    }

    #[test]
    fn only_the_tests_before_an_action_limit_it() {
        for text in [
            "find . -name '*.log' -delete",
            "find . -type f -mtime +30 -print -delete",
            "find . \\( -name a -o -name b \\) -delete",
            "find . -path ./x -prune -o -name y -delete",
            "find . -name a \\( -size +1M -exec rm {} \\; -o -print \\)",
            "find . -exec grep -q x {} \\; -name '*.tmp' -exec rm {} +",
            "find . -name '*.o' -exec sudo rm -rf {} +",
            "find . ! -name keep -name '*.log' -delete",
            "find . -print0 -name a | xargs -0 ls; find . -name '*.bak' -print0 | xargs -0 rm",
            "find . -name '*.bak' | xargs rm",
            "find . -iwholename './tmp/*' -delete",
            "find . -lname '/old/*' -delete",
        ] {
            assert!(is_narrowed(text), "{text}");
        }
        for text in [
            "find . -delete",
            "find . -delete -name '*.log'",
            "find . -type f -delete -name '*.log' -mtime +3",
            "find . -exec rm -rf {} \\; -name '*.log'",
            "find . -name '*.txt' -exec echo {} \\; -o -exec rm {} \\;",
            "find . -name '*.log' -o -delete",
            "find . -name a , -delete",
            "find . ! \\( -name a -o -name b \\) -delete",
            "find . -not -name a -delete",
            "find . -exec grep -name x {} \\; -delete",
            "find . -print0 -name '*.bak' | xargs -0 rm -rf",
        ] {
            assert!(!is_narrowed(text), "{text}");
        }
    }
}
