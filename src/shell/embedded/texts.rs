//! The texts that stand in a program, whatever language it is in: what is in quotes, with texts that are joined put together,
//! and lists of texts as the command that they may be. Unlike [`super::code`] it takes nothing for a comment: what is one depends on
//! the language.

use super::code::quoted;

/// One piece of a program: a text in quotes, a name or number, or a sign.
enum Piece {
    Text(String),
    Word,
    Mark(char),
}

/// The most pieces that are looked at.
const MOST: usize = 2000;

/// The texts of a program. `'sys' + 'tem'` is one; so are the words of `["rm", "-rf", "x"]`, with blanks between them, beside each
/// by itself. What stands between backquotes is a text, too.
pub(crate) fn texts(code: &str) -> Vec<String> {
    let pieces = pieces(code);
    let mut found: Vec<String> = Vec::new();
    let mut listed: Vec<String> = Vec::new();
    let mut at = 0;
    while at < pieces.len() {
        if let Piece::Text(text) = &pieces[at] {
            let mut whole = text.clone();
            while let (Some(Piece::Mark('+' | '.')), Some(Piece::Text(next))) = (pieces.get(at + 1), pieces.get(at + 2))
            {
                whole.push_str(next);
                at += 2;
            }
            listed.push(whole.clone());
            found.push(whole);
        } else if !matches!(&pieces[at], Piece::Mark(',')) {
            join(&mut listed, &mut found);
        }
        at += 1;
    }
    join(&mut listed, &mut found);
    found
}

/// A list of texts as one.
fn join(listed: &mut Vec<String>, found: &mut Vec<String>) {
    if listed.len() > 1 {
        let quoted = |text: &String| crate::quote(text, crate::Dialect::Sh);
        found.push(listed.iter().map(quoted).collect::<Vec<_>>().join(" "));
    }
    listed.clear();
}

fn pieces(code: &str) -> Vec<Piece> {
    let chars: Vec<char> = code.chars().collect();
    let mut found = Vec::new();
    let mut at = 0;
    while at < chars.len() && found.len() < MOST {
        let c = chars[at];
        let text = if matches!(c, '\'' | '"' | '`') { quoted(&chars, at) } else { None };
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
    use super::texts;

    #[test]
    fn texts_are_put_together_as_they_will_be() {
        assert_eq!(texts("f('sys' + 'tem', \"a\")"), ["system", "a", "system a"]);
        assert_eq!(texts("run([\"rm\", \"-rf\", \"/x y\"])").last().unwrap(), "rm -rf '/x y'");
        assert_eq!(texts("$f = 'sh'.\"ell\"; `ls -l`"), ["shell", "ls -l"]);
        assert_eq!(texts("it's what"), [""; 0]);
        assert_eq!(texts(""), [""; 0]);
    }
}
