//! Parses the lists of subcommands, each with its text.

use super::read::{indent, one_line};
use super::synopsis::{is_command_heading, is_word};

/// Longest stored text of a subcommand, in bytes.
const MAX_TEXT: usize = 160;
/// Deepest column of a subcommand's name.
const MAX_INDENT: usize = 8;
/// Most stored subcommands.
const MAX_VERBS: usize = 400;

/// Returns the subcommands below a heading about commands that have a text: `restart UNIT...   Restart units`.
pub(crate) fn verbs(text: &str) -> Vec<(String, String)> {
    let lines: Vec<&str> = text.lines().collect();
    let mut found: Vec<(String, String)> = Vec::new();
    let mut is_listing = false;
    for (at, line) in lines.iter().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let column = indent(line);
        if column < 2 {
            is_listing = is_command_heading(line.trim());
        } else if is_listing && column <= MAX_INDENT && found.len() < MAX_VERBS {
            let Some((name, text)) = verb(line.trim(), column, &lines[at + 1..]) else { continue };
            if !found.iter().any(|(known, _)| *known == name) {
                found.push((name, one_line(&text, MAX_TEXT)));
            }
        }
    }
    found
}

/// Parses `restart UNIT...   Restart units`, `install - install packages`, and a name whose text is below it.
fn verb(line: &str, column: usize, more: &[&str]) -> Option<(String, String)> {
    let name = line.split([' ', '\t', ',', ':', '*']).next().filter(|name| is_word(name))?;
    let rest = &line[name.len()..];
    let below = || {
        let deeper = more.iter().take_while(|line| !line.trim().is_empty() && indent(line) > column);
        deeper.map(|line| line.trim()).collect::<Vec<_>>().join(" ")
    };
    let text = match rest.strip_prefix(" - ").or_else(|| rest.strip_prefix(": ")) {
        Some(text) => text.to_owned(),
        None => after_operands(rest)?.to_owned(),
    };
    let text = format!("{text} {}", below());
    let text = text.trim();
    text.contains(' ').then(|| (name.to_owned(), text.to_owned()))
}

/// Returns what stands behind the operands of a subcommand; `None` if the line is prose.
fn after_operands(rest: &str) -> Option<&str> {
    // `build, b    Compile`: another name of it
    let rest = rest.strip_prefix(", ").map_or(rest, |more| &more[more.find(' ').unwrap_or(more.len())..]);
    let mut left = rest.trim_start_matches('*');
    loop {
        let text = left.trim_start();
        let gap = left.len() - text.len();
        let word = text.split_whitespace().next().unwrap_or_default();
        if word.is_empty() || gap >= 2 && !is_operand(word) || left.starts_with('\t') {
            return Some(text);
        }
        if !is_operand(word) {
            let is_sentence = gap == 1 && word.starts_with(|c: char| c.is_ascii_uppercase());
            return is_sentence.then_some(text);
        }
        left = &text[word.len()..];
    }
}

/// True for `UNIT...`, `[PATTERN...|PID...]`, `<image>`, `NAME=VALUE`.
fn is_operand(word: &str) -> bool {
    word.starts_with(['[', '<', '{']) || word.len() > 1 && !word.contains(|c: char| c.is_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_style_of_list_has_its_texts() {
        let help = "x [OPTIONS...] COMMAND\n\nUnit Commands:\n  list-units [PATTERN...]      List units currently\n                               in memory\n  restart UNIT...              Restart units\n  set-property UNIT A=B... Sets it at once\n  cat PATTERN...|PID...\n      Show the files\n\nMost used commands:\n  install - install packages\n  compose*    Docker Compose\n  build, b    Compile it\n  this is prose and no list\n\nOptions:\n  nothing     of this\n";
        let found = verbs(help);
        let shown: Vec<(&str, &str)> = found.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
        assert_eq!(
            shown,
            [
                ("list-units", "List units currently in memory"),
                ("restart", "Restart units"),
                ("set-property", "Sets it at once"),
                ("cat", "Show the files"),
                ("install", "install packages"),
                ("compose", "Docker Compose"),
                ("build", "Compile it"),
            ]
        );
        let page = "COMMANDS\n   Unit Commands\n       restart PATTERN...\n           Stop and then start units.\n\n           More.\n\n       When none is given.\n\nOPTIONS\n       halt\n           Not this one.\n";
        assert_eq!(verbs(page), [("restart".to_owned(), "Stop and then start units.".to_owned())]);
    }
}
