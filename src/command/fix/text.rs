//! Repairs faults in the text of a line before it is parsed: a pasted prompt, characters of a word processor, an open
//! quote.

use super::complaint::Kind;
use super::{Case, Class, Repair};

/// The ends of common prompts.
const PROMPTS: [&str; 3] = ["$ ", "% ", "> "];

/// `$ ls`: the prompt was pasted along with the command.
pub(super) fn prompt_sign(case: &Case) -> Option<Repair> {
    let text = case.text().trim_start();
    let sign = PROMPTS.iter().find(|sign| text.starts_with(**sign))?;
    let command = text[sign.len()..].trim_start().to_owned();
    // `> file` alone is a redirection that creates the file
    let program = command.split_whitespace().next()?;
    if !case.facts.has_program(program) {
        return None;
    }
    Some(Repair { command, why: format!("`{}` is the prompt's", sign.trim_end()), class: Class::Typing })
}

/// `ls –a`, `echo “x”`: dashes and quotes as word processors and web pages write them.
pub(super) fn typography(case: &Case) -> Option<Repair> {
    let mut command = String::with_capacity(case.text().len());
    let mut before = ' ';
    for c in case.text().chars() {
        match c {
            '\u{2010}'..='\u{2013}' | '\u{2212}' if before.is_whitespace() => command.push('-'),
            '\u{2014}' if before.is_whitespace() => command.push_str("--"),
            '\u{201c}' | '\u{201d}' | '\u{201e}' => command.push('"'),
            '\u{2018}' | '\u{2019}' if !before.is_alphanumeric() || before == '\'' => command.push('\''),
            '\u{2019}' if command.matches('\'').count() % 2 == 1 => command.push('\''),
            '\u{a0}' => command.push(' '),
            c => command.push(c),
        }
        before = c;
    }
    let why = "a dash, quote or blank is not the one of the keyboard".to_owned();
    (command != case.text()).then_some(Repair { command, why, class: Class::Typing })
}

/// Repairs a quote that is not closed: quotes a word with an apostrophe, or adds the closing quote.
pub(super) fn open_quote(case: &Case) -> Option<Repair> {
    let (at, quote) = find_open_quote(case.text())?;
    if !case.is_silent && case.first(Kind::OpenQuote).is_none() {
        return None;
    }
    let text = case.text();
    let (before, rest) = (&text[..at], &text[at + quote.len_utf8()..]);
    let is_inside = before.ends_with(char::is_alphanumeric) && rest.starts_with(char::is_alphanumeric);
    let command = if quote == '\'' && is_inside {
        let start = before.rfind(char::is_whitespace).map_or(0, |blank| blank + 1);
        let end = at + 1 + rest.find(|c: char| c.is_whitespace() || "|;&<>".contains(c)).unwrap_or(rest.len());
        format!("{}\"{}\"{}", &text[..start], &text[start..end], &text[end..])
    } else {
        // the quote ends before words that are existing files, else at the end
        let blanks = rest.char_indices().filter(|(_, c)| c.is_whitespace()).map(|(i, _)| i);
        let is_files = |from: &usize| {
            let mut words = rest[*from..].split_whitespace().peekable();
            words.peek().is_some() && words.all(|word| case.facts.exists(word))
        };
        let end = blanks.into_iter().find(is_files).unwrap_or(rest.trim_end().len());
        format!("{before}{quote}{}{quote}{}", &rest[..end], &rest[end..])
    };
    Some(Repair { command, why: format!("a {quote} is not closed"), class: Class::Quoting })
}

/// Finds the quote that is open at the end of a text, with its byte offset.
fn find_open_quote(text: &str) -> Option<(usize, char)> {
    let (mut open, mut is_escaped) = (None, false);
    for (at, c) in text.char_indices() {
        match (c, open) {
            _ if is_escaped => is_escaped = false,
            ('\\', None | Some((_, '"'))) => is_escaped = true,
            ('\'' | '"', None) => open = Some((at, c)),
            (c, Some((_, quote))) if c == quote => open = None,
            _ => {}
        }
    }
    open
}
