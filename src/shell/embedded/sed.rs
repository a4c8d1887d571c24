//! `sed`: the commands `w`, `W` and `e`, and the flags `w` and `e` of `s`.

use super::Act;
use std::iter::Peekable;
use std::str::Chars;

/// What a sed script does besides reading and printing.
pub(super) fn acts(text: &str) -> Vec<Act> {
    let mut acts = Vec::new();
    let mut chars = text.chars().peekable();
    loop {
        while chars.next_if(|c| c.is_whitespace() || matches!(c, ';' | '{' | '}')).is_some() {}
        if !address(&mut chars) {
            break;
        }
        while chars.next_if(|c| c.is_whitespace() || *c == '!').is_some() {}
        let Some(command) = chars.next() else { break };
        match command {
            '{' | '}' | ';' => {}
            'w' | 'W' => acts.push(Act::Write(Some(line(&mut chars)))),
            'e' => {
                let command = line(&mut chars);
                // alone it runs what stands in the pattern space
                acts.push(Act::Run((!command.is_empty()).then_some(command)));
            }
            's' => substitute(&mut chars, &mut acts),
            'y' => {
                let Some(end) = chars.next() else { break };
                until(&mut chars, end);
                until(&mut chars, end);
            }
            // text, file names and comments go to the end of the line; `a\` goes on while lines end with `\`
            'a' | 'i' | 'c' => while goes_on(&raw_line(&mut chars)) {},
            'r' | 'R' | '#' => {
                line(&mut chars);
            }
            // GNU's ends there; who takes the line for the label runs nothing that is in it
            ':' => {
                while chars.next_if_eq(&' ').is_some() {}
                while chars.next_if(|c| !matches!(c, ';' | '}') && !c.is_whitespace()).is_some() {}
            }
            // what stands behind any other (`b label`, `q 1`, `l 80`) ends with the command
            _ => while chars.next_if(|c| !matches!(c, ';' | '\n' | '}')).is_some() {},
        }
    }
    acts
}

/// Skips the address before a command; false at the end of the script.
fn address(chars: &mut Peekable<Chars<'_>>) -> bool {
    loop {
        match chars.peek() {
            None => return false,
            Some('/') => {
                chars.next();
                until_in_pattern(chars, '/');
            }
            Some('\\') => {
                chars.next();
                if let Some(end) = chars.next() {
                    until_in_pattern(chars, end);
                }
            }
            Some(c) if c.is_ascii_digit() || matches!(c, '$' | ',' | '~' | '+' | 'I' | 'M' | ' ') => {
                chars.next();
            }
            Some(_) => return true,
        }
    }
}

/// The rest of the line, without blanks around it.
fn line(chars: &mut Peekable<Chars<'_>>) -> String {
    raw_line(chars).trim().to_owned()
}

/// True if the end of the line is escaped: it is not by a backslash that is escaped itself, or with a blank behind it.
fn goes_on(line: &str) -> bool {
    line.chars().rev().take_while(|c| *c == '\\').count() % 2 == 1
}

/// The rest of the line.
fn raw_line(chars: &mut Peekable<Chars<'_>>) -> String {
    let mut text = String::new();
    while let Some(c) = chars.next_if(|c| *c != '\n') {
        text.push(c);
    }
    chars.next();
    text
}

/// Skips to behind the next `end` that is not escaped.
fn until(chars: &mut Peekable<Chars<'_>>, end: char) {
    while let Some(c) = chars.next() {
        match c {
            '\\' => {
                chars.next();
            }
            c if c == end => return,
            _ => {}
        }
    }
}

/// The same in a pattern, where `[...]` hides what is in it.
fn until_in_pattern(chars: &mut Peekable<Chars<'_>>, end: char) {
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

/// `s/old/new/flags`: behind the `s`.
fn substitute(chars: &mut Peekable<Chars<'_>>, acts: &mut Vec<Act>) {
    let Some(end) = chars.next() else { return };
    until_in_pattern(chars, end);
    until(chars, end);
    while let Some(flag) = chars.next_if(|c| !matches!(c, ';' | '\n' | '}')) {
        match flag {
            'w' => {
                acts.push(Act::Write(Some(line(chars))));
                return;
            }
            'e' => acts.push(Act::Run(None)),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_sed_script_writes_and_runs() {
        let file = |name: &str| Act::Write(Some(name.into()));
        let run = |command: &str| Act::Run(Some(command.into()));
        for (text, acts) in [
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
            ("e", vec![Act::Run(None)]),
            ("s/.*/date/e", vec![Act::Run(None)]),
            ("s/", vec![]),
            ("s/[^/]*$//", vec![]),
            ("s/[/]/we/", vec![]),
            ("/[]/]/w f", vec![file("f")]),
        ] {
            assert_eq!(super::acts(text), acts, "{text}");
        }
    }
}
