//! Parses the files of the library. All of them are parsed in every process, so this has to be fast.

use super::pair::{Pair, Text};
use std::borrow::Cow;

/// Parses a file line by line: each field is on a line of its own, except for multi-line fields, which are skipped. A
/// full TOML parser takes several times as long; a test checks that the result is the same.
pub(super) fn read(text: &'static str) -> Vec<Pair> {
    let mut pairs: Vec<Pair> = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if line == "[[pair]]" {
            pairs.push(Pair::default());
            continue;
        }
        let (Some((key, value)), Some(pair)) = (line.split_once(" = "), pairs.last_mut()) else { continue };
        if value.starts_with("'''") && (value.len() < 6 || !value.ends_with("'''")) {
            let _ = lines.find(|line| line.ends_with("'''"));
            continue;
        }
        match key {
            "request" => pair.request = string(value),
            "also" => pair.also = strings(value),
            "cmd" => pair.cmd = string(value),
            "macos" => pair.macos = Some(string(value)),
            "freebsd" => pair.freebsd = Some(string(value)),
            "busybox" => pair.busybox = Some(string(value)),
            "powershell" => pair.powershell = Some(string(value)),
            _ => {}
        }
    }
    pairs
}

/// Parses a quoted string on one line; empty if it is malformed.
fn string(quoted: &'static str) -> Text {
    next_string(quoted).map_or_else(Text::default, |(text, _)| text)
}

/// Parses the strings of an `also` line; empty if it is malformed.
fn strings(list: &'static str) -> Vec<Text> {
    let mut all = Vec::new();
    let mut rest = list.strip_prefix('[').unwrap_or_default();
    while let Some((text, after)) = next_string(rest) {
        all.push(text);
        rest = after.strip_prefix(", ").unwrap_or_default();
    }
    all
}

/// Parses the string at the beginning of a text, and returns it with the rest.
fn next_string(text: &'static str) -> Option<(Text, &'static str)> {
    for quote in ["'''", "'"] {
        if let Some(rest) = text.strip_prefix(quote)
            && let Some(end) = rest.find(quote)
        {
            // quotes before the closing three belong to the text
            let own =
                if quote.len() > 1 { rest[end + 3..].bytes().take(2).take_while(|b| *b == b'\'').count() } else { 0 };
            let (inner, after) = rest.split_at(end + own);
            return Some((Cow::Borrowed(inner), &after[quote.len()..]));
        }
    }
    let body = text.strip_prefix('"')?;
    let mut escaped = false;
    let end = body.bytes().position(|b| {
        let ends = b == b'"' && !escaped;
        escaped = b == b'\\' && !escaped;
        ends
    })?;
    let (inner, after) = (body.get(..end)?, body.get(end + 1..)?);
    if inner.contains('\\') {
        // the files use only the escapes that TOML and JSON have in common
        let read = serde_json::from_str::<String>(text.get(..end + 2)?).ok()?;
        return Some((Cow::Owned(read), after));
    }
    Some((Cow::Borrowed(inner), after))
}

#[cfg(test)]
mod tests {
    use super::super::{FILES, pairs};
    use super::*;

    #[test]
    fn the_line_parser_reads_the_same_as_a_toml_parser() {
        #[derive(serde::Deserialize)]
        struct File {
            pair: Vec<Pair>,
        }
        for text in FILES {
            let file: File = toml::from_str(text).unwrap();
            assert_eq!(read(text), file.pair);
        }
        assert!(pairs().len() >= 600);
        let quoted = "[[pair]]\nrequest = '''say 'it''''\ncmd = '''echo 'it''''\n";
        assert_eq!(read(quoted), toml::from_str::<File>(quoted).unwrap().pair);
        assert_eq!(read("no = table\n[[pair]]\nrequest = broken\nalso = [1"), [Pair::default()]);
    }
}
