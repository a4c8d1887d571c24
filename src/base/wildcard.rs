//! Compares names of files with the wildcards of a shell: `*`, `?` and `[...]`.

/// True if a name contains a wildcard.
pub fn is_pattern(name: &str) -> bool {
    name.contains(['*', '?', '['])
}

/// True if the name fits the pattern. `*` is any text and `?` one character; a `[...]` counts as any one character, so
/// that doubtful names are included.
pub fn name_fits(pattern: &str, name: &str) -> bool {
    overlap(&tokens(pattern), &name.chars().map(Token::Char).collect::<Vec<_>>())
}

/// True if a name fits both patterns: `.gi?` and `.g*`. A shell lets a wildcard stand for no leading dot, so a pattern
/// that begins with one has no hidden name.
pub fn patterns_overlap(one: &str, other: &str) -> bool {
    let hides = |pattern: &str| pattern.starts_with('.');
    hides(one) == hides(other) && overlap(&tokens(one), &tokens(other))
}

/// A token of a name pattern.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Token {
    Any,
    One,
    Char(char),
}

fn tokens(pattern: &str) -> Vec<Token> {
    let mut found = Vec::new();
    let mut rest = pattern.chars();
    while let Some(c) = rest.next() {
        found.push(match c {
            '*' => Token::Any,
            '?' => Token::One,
            '[' if rest.as_str().contains(']') => {
                rest.by_ref().skip(1).find(|c| *c == ']');
                Token::One
            }
            c => Token::Char(c),
        });
    }
    found
}

/// True if a text fits both.
fn overlap(one: &[Token], other: &[Token]) -> bool {
    // reach[n]: a text fits the tokens of `one` so far and the first n of `other`
    let through = |reach: &mut [bool]| {
        for (n, token) in other.iter().enumerate() {
            reach[n + 1] |= *token == Token::Any && reach[n];
        }
    };
    let mut reach = vec![false; other.len() + 1];
    reach[0] = true;
    through(&mut reach);
    for token in one {
        let mut next = vec![false; other.len() + 1];
        if *token == Token::Any {
            let first = reach.iter().position(|reached| *reached).unwrap_or(next.len());
            next[first..].fill(true);
        } else {
            for (n, with) in other.iter().enumerate() {
                let is_same = *with == *token || *with == Token::One || *token == Token::One;
                match with {
                    // it stands for this one and more
                    Token::Any => next[n] |= reach[n],
                    _ => next[n + 1] |= reach[n] && is_same,
                }
            }
            through(&mut next);
        }
        reach = next;
    }
    reach[other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_fit_patterns_as_in_a_shell() {
        for (pattern, name) in [
            ("*.pem", "a.pem"),
            ("id_*", "id_rsa"),
            (".en?", ".env"),
            ("[i]d_rsa", "id_rsa"),
            ("*", ""),
            ("a*c", "abc"),
            ("a**c*", "ac"),
            ("[]]x", "]x"),
            ("a[", "a["),
        ] {
            assert!(name_fits(pattern, name), "{pattern} {name}");
        }
        for (pattern, name) in
            [("*.pem", "a.pe"), ("id_?", "id_rsa"), ("a*", "ba"), ("", "x"), ("??", "x"), ("a*c", "acb"), ("x", "*")]
        {
            assert!(!name_fits(pattern, name), "{pattern} {name}");
        }
    }

    #[test]
    fn two_patterns_overlap_where_a_name_fits_both() {
        for (one, other) in [
            ("a", "a"),
            (".gi?", ".git"),
            ("*", "?"),
            ("a*", "*z"),
            ("a*c", "ab*"),
            ("*b*", "a*"),
            ("cron*", "c[r]on.d"),
            ("**", ""),
            (".*", ".git"),
        ] {
            assert!(patterns_overlap(one, other) && patterns_overlap(other, one), "{one} {other}");
        }
        for (one, other) in
            [("a", "b"), ("a*", "b*"), ("?", "ab"), ("a*c", "a*d"), ("*", ".git"), ("?git", ".git"), ("", "?")]
        {
            assert!(!patterns_overlap(one, other) && !patterns_overlap(other, one), "{one} {other}");
        }
    }
}
