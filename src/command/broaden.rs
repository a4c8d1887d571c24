//! Widens a search that found nothing, without a model: reads the pattern as an extended expression, ignores case,
//! searches all files, or drops the last filter.

use caro_shell::{Dialect, Invocation, parse};

/// Programs that search text and have the option `-i`.
const GREPS: &[&str] = &["grep", "egrep", "fgrep", "zgrep", "rg"];

/// Returns a wider command; `None` if there is nothing to widen.
pub fn broaden(command: &str) -> Option<String> {
    let script = parse(command, Dialect::Bash);
    if !script.errors.is_empty() || script.commands.is_empty() {
        return None;
    }
    // `[a-z]+` is an extended expression: plain grep takes the `+` literally
    let plain = script.commands.iter().rev().find(|c| {
        matches!(c.name(), Some("grep" | "zgrep")) && !has_kind(c) && c.args().iter().any(|w| is_extended(&w.text))
    });
    if let Some(grep) = plain {
        let mut extended = command.to_owned();
        extended.insert_str(grep.words.first()?.span.end, " -E");
        return Some(extended);
    }
    let mut wider = command.to_owned();
    // from the end, so that the spans before an edit stay valid
    for command in script.commands.iter().rev() {
        let Some(name) = command.name() else { continue };
        if GREPS.contains(&name) {
            for (at, word) in command.args().iter().enumerate().rev().filter(|(_, w)| w.text.starts_with("--include")) {
                // also removes the blank before it, and its value if that is a word of its own
                let value = if word.text == "--include" { command.args().get(at + 1) } else { None };
                wider.replace_range(word.span.start.saturating_sub(1)..value.unwrap_or(word).span.end, "");
            }
            if !ignores_case(command) {
                wider.insert_str(command.words.first()?.span.end, " -i");
            }
        } else if name == "find" {
            for word in command.args().iter().rev().filter(|w| w.text == "-name") {
                wider.replace_range(word.span.clone(), "-iname");
            }
        }
    }
    if wider != command && parse(&wider, Dialect::Bash).errors.is_empty() {
        return Some(wider);
    }
    // without the last filter, which lets nothing through
    let last = script.commands.last().filter(|c| c.stdin_pipe && c.name().is_some_and(|n| GREPS.contains(&n)))?;
    let pipe = command.get(..last.words.first()?.span.start)?.trim_end().strip_suffix('|')?.trim_end();
    (!pipe.is_empty() && parse(pipe, Dialect::Bash).errors.is_empty()).then(|| pipe.to_owned())
}

/// True if an option says which kind of expression the pattern is.
fn has_kind(command: &Invocation) -> bool {
    let short = |text: &str| text.starts_with('-') && !text.starts_with("--") && text.contains(['E', 'F', 'G', 'P']);
    command.args().iter().any(|w| short(&w.text) || w.text.ends_with("-regexp") || w.text == "--fixed-strings")
}

/// True for a pattern that is meant as an extended expression: it repeats something or has alternatives.
fn is_extended(pattern: &str) -> bool {
    let repeats = ["]+", ")+", ".+", "\\w+", "\\d+", "]{", ")?", "]?"].iter().any(|form| pattern.contains(form));
    let has_alternatives = pattern.contains('|') && !pattern.contains("\\|");
    !pattern.starts_with('-') && (repeats || has_alternatives)
}

fn ignores_case(command: &Invocation) -> bool {
    command.args().iter().any(|w| {
        w.text == "--ignore-case" || w.text.starts_with('-') && !w.text.starts_with("--") && w.text.contains('i')
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_search_is_widened_step_by_step() {
        for (command, want) in [
            ("grep -c 'error' a.log b.log", Some("grep -i -c 'error' a.log b.log")),
            ("grep -rl --include='*.conf' 'debug = true' .", Some("grep -i -rl 'debug = true' .")),
            ("grep -rn --include '*.py' 'todo' .", Some("grep -i -rn 'todo' .")),
            ("diff -rq a b | grep '^Only in'", Some("diff -rq a b | grep -i '^Only in'")),
            ("diff -rq a b | grep -i '^Only in'", Some("diff -rq a b")),
            ("find . -type f -name '*.LOG'", Some("find . -type f -iname '*.LOG'")),
            ("grep -o '[a-z]+' a.txt | sort", Some("grep -E -o '[a-z]+' a.txt | sort")),
            ("grep 'cat|dog' a.txt", Some("grep -E 'cat|dog' a.txt")),
            ("grep -Eo '[a-z]+' a.txt", Some("grep -i -Eo '[a-z]+' a.txt")),
            ("ls notes", None),
            ("grep -ri x .", None),
            ("grep 'unclosed", None),
        ] {
            assert_eq!(broaden(command).as_deref(), want, "{command}");
        }
    }
}
