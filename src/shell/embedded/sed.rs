//! Finds side effects of `sed` scripts: the commands `w`, `W` and `e`, and the flags `w` and `e` of `s`.

use super::SideEffect;
use std::iter::Peekable;
use std::str::Chars;

/// Returns the side effects of a sed script.
pub(super) fn side_effects(text: &str) -> Vec<SideEffect> {
    let mut side_effects = Vec::new();
    let mut chars = text.chars().peekable();
    loop {
        while chars.next_if(|c| c.is_whitespace() || matches!(c, ';' | '{' | '}')).is_some() {}
        if !skip_address(&mut chars) {
            break;
        }
        while chars.next_if(|c| c.is_whitespace() || *c == '!').is_some() {}
        let Some(command) = chars.next() else { break };
        match command {
            '{' | '}' | ';' => {}
            'w' | 'W' => side_effects.push(SideEffect::Write(Some(line(&mut chars)))),
            'e' => {
                let command = line(&mut chars);
                // without an argument it runs the pattern space
                side_effects.push(SideEffect::Run((!command.is_empty()).then_some(command)));
            }
            's' => substitute(&mut chars, &mut side_effects),
            'y' => {
                let Some(end) = chars.next() else { break };
                skip_until(&mut chars, end);
                skip_until(&mut chars, end);
            }
            // text, file names and comments extend to the end of the line; `a\` continues while lines end with `\`
            'a' | 'i' | 'c' => while continues(&raw_line(&mut chars)) {},
            'r' | 'R' | '#' => {
                line(&mut chars);
            }
            // GNU's label ends here; a sed that takes the whole line for the label runs nothing of it
            ':' => {
                while chars.next_if_eq(&' ').is_some() {}
                while chars.next_if(|c| !matches!(c, ';' | '}') && !c.is_whitespace()).is_some() {}
            }
            // the argument of any other command (`b label`, `q 1`, `l 80`) ends with the command
            _ => while chars.next_if(|c| !matches!(c, ';' | '\n' | '}')).is_some() {},
        }
    }
    side_effects
}

/// Skips the address before a command; false at the end of the script.
fn skip_address(chars: &mut Peekable<Chars<'_>>) -> bool {
    loop {
        match chars.peek() {
            None => return false,
            Some('/') => {
                chars.next();
                skip_pattern(chars, '/');
            }
            Some('\\') => {
                chars.next();
                if let Some(end) = chars.next() {
                    skip_pattern(chars, end);
                }
            }
            Some(c) if c.is_ascii_digit() || matches!(c, '$' | ',' | '~' | '+' | 'I' | 'M' | ' ') => {
                chars.next();
            }
            Some(_) => return true,
        }
    }
}

/// Reads the rest of the line, without blanks around it.
fn line(chars: &mut Peekable<Chars<'_>>) -> String {
    raw_line(chars).trim().to_owned()
}

/// True if the end of the line is escaped: by an odd number of backslashes, without a blank after them.
fn continues(line: &str) -> bool {
    line.chars().rev().take_while(|c| *c == '\\').count() % 2 == 1
}

/// Reads the rest of the line.
fn raw_line(chars: &mut Peekable<Chars<'_>>) -> String {
    let mut text = String::new();
    while let Some(c) = chars.next_if(|c| *c != '\n') {
        text.push(c);
    }
    chars.next();
    text
}

/// Skips up to and including the next `end` that is not escaped.
fn skip_until(chars: &mut Peekable<Chars<'_>>, end: char) {
    read_until(chars, end);
}

/// Reads up to the next `end` that is not escaped, which is skipped, and resolves the escapes; groups (`\1`) are empty.
fn read_until(chars: &mut Peekable<Chars<'_>>, end: char) -> String {
    let mut text = String::new();
    while let Some(c) = chars.next() {
        match c {
            '\\' => text.extend(chars.next().filter(|c| !c.is_ascii_digit())),
            c if c == end => break,
            c => text.push(c),
        }
    }
    text
}

/// Like `skip_until`, in a pattern, in which `[...]` may contain `end`.
fn skip_pattern(chars: &mut Peekable<Chars<'_>>, end: char) {
    while let Some(c) = chars.next() {
        match c {
            '\\' => {
                chars.next();
            }
            c if c == end => return,
            '[' => {
                chars.next_if_eq(&'^');
                chars.next_if_eq(&']');
                while chars.next().is_some_and(|c| c != ']') {}
            }
            _ => {}
        }
    }
}

/// Parses `s/old/new/flags` after the `s`.
fn substitute(chars: &mut Peekable<Chars<'_>>, side_effects: &mut Vec<SideEffect>) {
    let Some(end) = chars.next() else { return };
    skip_pattern(chars, end);
    let mut replacement = read_until(chars, end);
    while let Some(flag) = chars.next_if(|c| !matches!(c, ';' | '\n' | '}')) {
        match flag {
            'w' => {
                side_effects.push(SideEffect::Write(Some(line(chars))));
                return;
            }
            // it runs the line with the replacement in it, and nothing else where the whole line is replaced
            'e' => {
                side_effects.push(SideEffect::Run(None));
                if !replacement.is_empty() {
                    side_effects.push(SideEffect::Run(Some(std::mem::take(&mut replacement))));
                }
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn side_effects_of_sed_scripts_are_found() {
        let file = |name: &str| SideEffect::Write(Some(name.into()));
        let run = |command: &str| SideEffect::Run(Some(command.into()));
        for (text, side_effects) in [
            ("s/a/b/", vec![]),
            ("s/w/e/g;s|a|w|", vec![]),
            ("s,a/b,e,2", vec![]),
            ("s/a\\/w/b/", vec![]),
            ("1,5p", vec![]),
            ("/w x/d", vec![]),
            ("$!N;P;D", vec![]),
            (":a;N;$!ba;s/\\n/ /g", vec![]),
            (":a;N;$!ba;s/\\n/,/g;w out", vec![file("out")]),
            (":a w out", vec![file("out")]),
            (": wide\n$!N;b wide", vec![]),
            ("{:w};p", vec![]),
            ("y/abc/wed/", vec![]),
            ("2q", vec![]),
            ("/^#/!s/x/y/", vec![]),
            ("1i\\\nw out\n", vec![]),
            ("a new line", vec![]),
            ("a one\\\nw two\n", vec![]),
            ("a foo\\ \nw out", vec![file("out")]),
            ("a foo\\\\\nw out", vec![file("out")]),
            ("\\,x,d", vec![]),
            ("w /etc/passwd", vec![file("/etc/passwd")]),
            ("/x/w out", vec![file("out")]),
            ("1,3W out\ns/a/b/", vec![file("out")]),
            ("s/a/b/w F", vec![file("F")]),
            ("s/a/b/gpw out.txt", vec![file("out.txt")]),
            ("/x/{s/a/b/;w f\n}", vec![file("f")]),
            ("1e date", vec![run("date")]),
            ("/x/e rm -rf ~", vec![run("rm -rf ~")]),
            ("/x/I,$!e id", vec![run("id")]),
            ("e", vec![SideEffect::Run(None)]),
            ("s/.*/date/e", vec![SideEffect::Run(None), run("date")]),
            ("s/x/rm a\\/b/ge; p", vec![SideEffect::Run(None), run("rm a/b")]),
            ("s/", vec![]),
            ("s/[^/]*$//", vec![]),
            ("s/[/]/we/", vec![]),
            ("/[]/]/w f", vec![file("f")]),
        ] {
            assert_eq!(super::side_effects(text), side_effects, "{text}");
        }
    }
}
