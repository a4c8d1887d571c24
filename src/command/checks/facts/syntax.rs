//! Finds commands that do not parse.

use super::CheckContext;
use caro_shell::{Dialect, Finding, Severity};
use std::ops::Range;

/// The id of the finding.
pub const ID: &str = "syntax";

/// The id of the finding that a command nests too deeply to be parsed.
const TOO_DEEP: &str = "too-deep";

pub(in crate::checks) fn check(cx: &CheckContext) -> Vec<Finding> {
    cx.script
        .errors
        .iter()
        .take(1) // later errors mostly follow from the first
        .map(|span| finding(cx, span))
        .collect()
}

fn finding(cx: &CheckContext, span: &Range<usize>) -> Finding {
    if cx.script.too_deep {
        return Finding {
            id: TOO_DEEP.into(),
            severity: Severity::Warning,
            token: cx.script.text.chars().take(40).collect(),
            span: None,
            why: "it nests too deep to be followed: brackets, or programs that run one another; check its parts one by one"
                .into(),
            evidence: Vec::new(),
            fix: None,
        };
    }
    let (piece, nothing_follows) = cx.script.error_text(span);
    let dialect = cx.dialect.name();
    Finding {
        id: ID.into(),
        // the parser does not know all of these languages
        severity: match cx.dialect {
            Dialect::Zsh if short_forms(&cx.script.text) => Severity::Warning,
            Dialect::Fish | Dialect::PowerShell => Severity::Warning,
            Dialect::Bash | Dialect::Zsh | Dialect::Sh => Severity::Error,
        },
        token: piece.chars().take(40).collect(),
        span: Some(span.clone()),
        why: if cx.dialect == Dialect::Fish && has_bourne_block(&cx.script.text) {
            "fish blocks end with `end` and have no do, done, then, fi: for f in *; ...; end".to_owned()
        } else if nothing_follows {
            format!("{dialect} cannot parse this: nothing follows the `{piece}`")
        } else {
            format!("{dialect} cannot parse this; look for an unclosed quote or bracket")
        },
        evidence: Vec::new(),
        fix: None,
    }
}

/// True if the text has the keywords of blocks in shells like `sh`.
fn has_bourne_block(text: &str) -> bool {
    const WORDS: [&str; 6] = ["do", "done", "then", "fi", "elif", "esac"];
    text.split(|c: char| c.is_whitespace() || c == ';').any(|word| WORDS.contains(&word))
}

/// True if the text may contain zsh's own forms of loops and conditions, as in `for f (*.txt) echo $f` and
/// `if [[ -f x ]] { ls }`.
fn short_forms(text: &str) -> bool {
    const WORDS: [&str; 8] = ["for", "foreach", "if", "while", "until", "select", "always", "repeat"];
    text.split(|c: char| c.is_whitespace() || c == ';').any(|word| WORDS.contains(&word))
}

#[cfg(test)]
mod tests {
    use super::*;
    use caro_shell::parse;

    fn found(dialect: Dialect, text: &str) -> Option<Finding> {
        let script = parse(text, dialect);
        check(&CheckContext { dialect, ..CheckContext::on_linux("", &script) }).into_iter().next()
    }

    #[test]
    fn blocks_of_another_shell_are_named_in_fish() {
        let found = found(Dialect::Fish, "for f in *.csv; do echo $f; done");
        assert!(found.as_ref().is_some_and(|f| f.why.contains("`end`")), "{found:?}");
    }

    #[test]
    fn the_short_forms_of_zsh_are_no_error() {
        let of = |text| found(Dialect::Zsh, text).map(|f| f.severity);
        for text in
            ["for f (*.txt) echo $f", "if [[ -f x ]] { echo y }", "foreach x (a b) echo $x; end", "{ ls } always { : }"]
        {
            assert!(of(text) < Some(Severity::Error), "{text}: {:?}", of(text));
        }
        assert_eq!(of("echo 'unclosed"), Some(Severity::Error));
    }
}
