//! "Change http:// to https://", and `sed` is to find something else than that.

use super::edit::{Edits, warning};
use super::{CheckContext, only};
use crate::shell::{Finding, Invocation, Word};

pub(super) fn check(it: &CheckContext) -> Vec<Finding> {
    of_script(it).into_iter().collect()
}

fn of_script(it: &CheckContext) -> Option<Finding> {
    let (old, new) = said(it.request)?;
    let seds = it.script.commands.iter().filter(|c| c.name() == Some("sed"));
    let sed = only(seds)?;
    let word = only(sed.args().iter().filter(|w| w.text.starts_with('s') && w.quoted && w.value.is_some()))?;
    let (pattern, replacement, flags) = split(&word.text)?;
    let (pattern, replacement) = (plain(pattern), plain(replacement));
    // both texts in the pattern, or the new one nowhere: then the halves were not kept apart
    let mixed = pattern.contains(&old)
        && (pattern != old && pattern.contains(&new) && new != old || !replacement.contains(&new));
    let mixed = mixed && !(pattern == old && replacement == new);
    if !mixed || word.raw.contains('"') && [&old, &new].iter().any(|t| t.contains(['$', '`', '"', '\\'])) {
        return None;
    }
    let quote =
        word.raw.chars().last().filter(|c| matches!(c, '\'' | '"') && !old.contains(*c) && !new.contains(*c))?;
    let by = ['/', '|', '#', ',', '%'].into_iter().find(|by| !old.contains(*by) && !new.contains(*by))?;
    let fixed = format!(
        "{quote}s{by}{}{by}{}{by}{flags}{quote}",
        literal(&old, sed),
        new.replace('\\', "\\\\").replace('&', "\\&")
    );
    let fix = Edits::new(it.script).replace(word, &fixed).done();
    Some(warning("other-text", word, format!("`{old}` is to become `{new}`, and this looks for `{pattern}`"), fix))
}

/// What is to become what, where that is said in as many words: two names without a blank, not only letters.
fn said(request: &str) -> Option<(String, String)> {
    let words: Vec<&str> = request.split_whitespace().map(|w| w.trim_matches(['\'', '"', '`', ',', ';'])).collect();
    let starts = words.windows(4).filter(|w| {
        let verb = w[0].to_lowercase();
        match verb.as_str() {
            "change" | "turn" => matches!(w[2], "to" | "into"),
            "replace" | "substitute" => matches!(w[2], "by" | "with"),
            _ => false,
        }
    });
    let found = only(starts)?;
    let is_text = |w: &str| w.chars().any(|c| c.is_ascii_punctuation()) && !w.contains(['*', '…']);
    let (old, new) = (found[1], found[3]);
    (is_text(old) && is_text(new) && old != new).then(|| (old.to_owned(), new.to_owned()))
}

/// Pattern, replacement and flags of `s/a/b/g`.
fn split(text: &str) -> Option<(&str, &str, &str)> {
    let rest = text.strip_prefix('s')?;
    let by = rest.chars().next().filter(char::is_ascii_punctuation)?;
    let (mut ends, mut escaped) = (Vec::new(), false);
    for (at, c) in rest.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            c if c == by => ends.push(at),
            _ => {}
        }
    }
    // "s/http:\/\/https:\/\//https:\/\//g": what was meant for three parts may have more
    let &[first, .., last] = ends.as_slice() else { return None };
    let flags = &rest[last + 1..];
    (flags.len() <= 2 && flags.chars().all(|c| matches!(c, 'g' | 'I' | 'i')))
        .then(|| (&rest[1..first], &rest[first + 1..last], flags))
}

/// A text without the backslashes that only mask.
fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        out.push(if c == '\\' { chars.next().unwrap_or('\\') } else { c });
    }
    out
}

/// A text as a pattern of sed that finds nothing else.
fn literal(text: &str, sed: &Invocation) -> String {
    let extended = sed.args().iter().any(|w: &Word| matches!(w.text.as_str(), "-E" | "-r" | "--regexp-extended"));
    let special: &[char] = if extended {
        &['.', '*', '[', ']', '^', '$', '\\', '+', '?', '(', ')', '{', '}', '|']
    } else {
        &['.', '*', '[', ']', '^', '$', '\\']
    };
    text.chars().flat_map(|c| special.contains(&c).then_some('\\').into_iter().chain([c])).collect()
}

#[cfg(test)]
mod tests {
    use super::super::tests::findings;
    use super::*;

    #[test]
    fn what_is_said_is_what_is_found() {
        let fix = |request, command| findings(check, request, command).into_iter().next().and_then(|f| f.fix);
        let request = "change http:// to https:// in all the html files";
        let right = "find . -name '*.html' -exec sed -i 's|http://|https://|g' {} +";
        let wrong = r"find . -name '*.html' -exec sed -i 's/http:\/\/https:\/\//https:\/\//g' {} +";
        assert_eq!(fix(request, wrong).as_deref(), Some(right));
        assert_eq!(fix(request, right), None);
        let request = "replace v1.2 by v1.3 in setup.py";
        assert_eq!(fix(request, "sed -i 's/v1.2/v1/' setup.py").as_deref(), Some("sed -i 's/v1\\.2/v1.3/' setup.py"));
        for (request, right) in [
            (request, "sed -i 's/v1\\.2/v1.3/g' setup.py"),
            (request, "sed -i 's/\\bv1.2\\b/v1.3/' setup.py"),
            ("change a to b", "sed 's/a/c/'"),
            ("replace foo.h with bar.h in x.c", "sed 's/\"foo.h\"/\"bar.h\"/' x.c"),
            ("replace a.b with c.d and e.f with g.h", "sed 's/a.b/c.d/;s/e.f/g.h/' x"),
            ("change the name to x.txt", "mv a x.txt"),
        ] {
            assert_eq!(fix(request, right), None, "{right}");
        }
    }
}
