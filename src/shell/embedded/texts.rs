//! Returns the string literals of a program in any language. Concatenated literals are joined, and a list of literals
//! is also returned as the command that it may be. Unlike [`super::code`] it treats nothing as a comment, as comments
//! depend on the language.

use super::code::string_literal;

/// A piece of a program: a string literal, a name or number, or another character.
enum Piece {
    Text(String),
    Word,
    Mark(char),
}

/// Most pieces that are examined.
const MAX_PIECES: usize = 2000;

/// Returns the string literals of a program. `'sys' + 'tem'` is one; the words of `["rm", "-rf", "x"]` are one joined
/// with blanks, in addition to each by itself. Text between backquotes counts as a literal.
pub(crate) fn string_literals(code: &str) -> Vec<String> {
    let pieces = pieces(code);
    let mut found: Vec<String> = Vec::new();
    let mut listed: Vec<String> = Vec::new();
    let mut at = 0;
    while at < pieces.len() {
        if let Piece::Text(text) = &pieces[at] {
            let mut joined = text.clone();
            while let (Some(Piece::Mark('+' | '.')), Some(Piece::Text(next))) = (pieces.get(at + 1), pieces.get(at + 2))
            {
                joined.push_str(next);
                at += 2;
            }
            listed.push(joined.clone());
            found.push(joined);
        } else if !matches!(&pieces[at], Piece::Mark(',')) {
            join(&mut listed, &mut found);
        }
        at += 1;
    }
    join(&mut listed, &mut found);
    found
}

/// Adds a list of literals as one text.
fn join(listed: &mut Vec<String>, found: &mut Vec<String>) {
    if listed.len() > 1 {
        let quote = |text: &String| crate::quote(text, crate::Dialect::Sh);
        found.push(listed.iter().map(quote).collect::<Vec<_>>().join(" "));
    }
    listed.clear();
}

fn pieces(code: &str) -> Vec<Piece> {
    let chars: Vec<char> = code.chars().collect();
    let mut found = Vec::new();
    let mut at = 0;
    while at < chars.len() && found.len() < MAX_PIECES {
        let c = chars[at];
        let text = if matches!(c, '\'' | '"' | '`') { string_literal(&chars, at) } else { None };
        if let Some((text, end)) = text {
            found.push(Piece::Text(text));
            at = end.max(at + 1);
        } else if c.is_alphanumeric() || c == '_' {
            at = (at..chars.len()).find(|i| !chars[*i].is_alphanumeric() && chars[*i] != '_').unwrap_or(chars.len());
            found.push(Piece::Word);
        } else {
            if !c.is_whitespace() {
                found.push(Piece::Mark(c));
            }
            at += 1;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::string_literals;

    #[test]
    fn concatenated_literals_are_joined() {
        assert_eq!(string_literals("f('sys' + 'tem', \"a\")"), ["system", "a", "system a"]);
        assert_eq!(string_literals("run([\"rm\", \"-rf\", \"/x y\"])").last().unwrap(), "rm -rf '/x y'");
        assert_eq!(string_literals("$f = 'sh'.\"ell\"; `ls -l`"), ["shell", "ls -l"]);
        assert_eq!(string_literals("it's what"), [""; 0]);
        assert_eq!(string_literals(""), [""; 0]);
    }
}
