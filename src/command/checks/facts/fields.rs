//! Finds fields that no line of the file has: `awk '{ print $9 }' app.log`, where the lines have 8.

use super::super::absent;
use super::awk::is_awk;
use super::csv::{awk_fields, is_csv};
use super::edit::warning;
use super::input::files;
use super::{CheckContext, is_written_before, only, read_prefix};
use caro_shell::{Finding, Invocation, Word};
use std::path::Path;

/// Most bytes of a file that are read.
const MAX_READ: u64 = 16 << 10;
/// Most lines of a file that are looked at.
const MAX_LINES: usize = 50;

pub(super) fn check(cx: &CheckContext) -> Vec<Finding> {
    let Some(cwd) = cx.cwd else { return Vec::new() };
    let commands = &cx.script.commands;
    if commands.iter().any(|command| absent::changes_folder(command) || command.remote) {
        return Vec::new();
    }
    let is_plain = |c: &(usize, &Invocation)| c.1.inside.is_none() && c.1.via.is_empty();
    commands.iter().enumerate().filter(is_plain).filter_map(|(index, _)| beyond(cx, cwd, index)).collect()
}

/// The separator of the fields of a line.
#[derive(Clone, Copy)]
enum Separator {
    Blanks,
    Char(char),
}

impl Separator {
    fn count(self, line: &str) -> usize {
        match self {
            Self::Blanks => line.split_whitespace().count(),
            Self::Char(by) => line.split(by).count(),
        }
    }
}

/// Finds a field of a command that is beyond the last one of every line of its files.
fn beyond(cx: &CheckContext, cwd: &Path, index: usize) -> Option<Finding> {
    let command = &cx.script.commands[index];
    let (word, field, by) = last_field(command)?;
    let (reader, inputs) = inputs(cx, index)?;
    let is_own = |file: &&Word| {
        let name = file.value.as_deref().unwrap_or_default();
        !name.is_empty() && !name.starts_with('-') && !is_written_before(cx.script, reader, name)
    };
    // another check says what separates the columns of such a file
    let is_unsplit = |file: &&Word| matches!(by, Separator::Blanks) && is_csv(file);
    if inputs.is_empty() || !inputs.iter().all(is_own) || inputs.iter().any(is_unsplit) {
        return None;
    }
    let mut most = 0;
    for file in &inputs {
        let lines = lines_of(&cwd.join(file.value.as_deref()?))?;
        most = lines.iter().map(|line| by.count(line)).max()?.max(most);
    }
    if most >= field {
        return None;
    }
    let names: Vec<&str> = inputs.iter().map(|file| file.raw.as_str()).collect();
    let fields = if most == 1 { "field" } else { "fields" };
    let why =
        format!("the first lines of {} have {most} {fields} at most, and this takes field {field}", names.join(", "));
    Some(warning("no-such-field", word, why, None))
}

/// Returns the first lines of a regular file, without one that is cut off; `None` if it has none.
fn lines_of(file: &Path) -> Option<Vec<String>> {
    let bytes = read_prefix(file, MAX_READ)?;
    let is_cut = bytes.len() as u64 == MAX_READ;
    let text = String::from_utf8(bytes).ok()?;
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    if is_cut {
        lines.pop();
    }
    lines.retain(|line| !line.trim().is_empty());
    lines.truncate(MAX_LINES);
    (!lines.is_empty()).then_some(lines)
}

/// Returns the files whose lines a command gets, and the command that opens them: itself, or the one before it that
/// passes lines on.
fn inputs<'c>(cx: &'c CheckContext, index: usize) -> Option<(&'c Invocation, Vec<&'c Word>)> {
    let command = &cx.script.commands[index];
    if command.redirects.iter().any(|r| r.operator.starts_with('<')) {
        return None;
    }
    let own = files(command)?;
    if !own.is_empty() || !command.stdin_pipe {
        return Some((command, own));
    }
    let feeder = only(cx.script.commands.iter().filter(|c| c.feeds.contains(&index)))?;
    // options that add something to the lines, or leave something out
    let changes = match feeder.name()? {
        "grep" => "nocHlLrRZzbd",
        "cat" => "nbAETv",
        "sort" | "head" | "tail" => "z",
        _ => return None,
    };
    let is_plain = changes.chars().all(|letter| !feeder.has_option(Some(letter), ""));
    let fed = files(feeder)?;
    // of several files grep and tail print the names
    let is_bare = feeder.inside.is_none() && !feeder.stdin_pipe && (fed.len() == 1 || feeder.name() == Some("cat"));
    (is_plain && is_bare).then_some((feeder, fed))
}

/// Returns the highest field that a command takes, with the word that says so and what separates the fields.
fn last_field(command: &Invocation) -> Option<(&Word, usize, Separator)> {
    match command.name()? {
        "cut" => cut_field(command),
        _ if is_awk(command) => awk_field(command),
        _ => None,
    }
}

fn awk_field(awk: &Invocation) -> Option<(&Word, usize, Separator)> {
    // what changes the fields or reads other lines
    const CHANGES: [&str; 8] = ["FS", "FPAT", "FIELDWIDTHS", "RS", "NF", "getline", "sub(", "=~"];
    let mut by = Separator::Blanks;
    let mut args = awk.args().iter();
    let program = loop {
        let word = args.next()?;
        match word.text.strip_prefix("-F") {
            Some("") => by = separator(&args.next()?.text)?,
            Some(value) => by = separator(value)?,
            None if word.text == "-v" => _ = args.next(),
            None if word.text.starts_with('-') => return None,
            None => break word,
        }
    };
    let text = program.value.as_deref()?;
    let plain = text.replace("OFS", "").replace("ORS", "");
    let sets_field = |(at, _): (usize, &str)| {
        let after = plain[at + 1..].trim_start_matches(|c: char| c.is_ascii_digit()).trim_start();
        let after = after.trim_start_matches(['+', '-', '*', '/', '%', '^']);
        after.starts_with('=') && !after.starts_with("==")
    };
    let is_changed = CHANGES.iter().any(|word| plain.contains(word))
        || plain.match_indices('$').any(sets_field)
        || args.any(|word| word.text.contains("FS=") || word.text.contains("RS="));
    if is_changed || awk.args().iter().any(|word| word.text.starts_with("FS=")) || !plain.contains("print") {
        return None;
    }
    Some((program, awk_fields(program).into_iter().max()?, by))
}

/// Parses the value of awk's `-F`, as far as it is one character that means itself.
fn separator(value: &str) -> Option<Separator> {
    match value {
        " " => Some(Separator::Blanks),
        "\\t" | "t" => Some(Separator::Char('\t')),
        _ => only(value.chars()).filter(|c| !c.is_alphanumeric() && *c != '\\').map(Separator::Char),
    }
}

fn cut_field(cut: &Invocation) -> Option<(&Word, usize, Separator)> {
    let value_of = |option: &str| {
        let at = cut.words.iter().position(|word| word.text.starts_with(option))?;
        match &cut.words[at].text[option.len()..] {
            "" => cut.words.get(at + 1).map(|word| (word, word.text.as_str())),
            value => Some((&cut.words[at], value)),
        }
    };
    if cut.has_option(None, "complement") {
        return None;
    }
    let (word, list) = value_of("-f")?;
    let by = match value_of("-d") {
        Some((_, value)) => only(value.chars())?,
        None => '\t',
    };
    // of a range only its beginning has to be there
    let start = |range: &str| range.split('-').next().and_then(|number| number.parse::<usize>().ok());
    let fields: Option<Vec<usize>> = list.split(',').map(start).collect();
    Some((word, fields?.into_iter().max()?, Separator::Char(by)))
}
