//! Checks the content of a written file: it is not empty, is valid for its type, and has as many items as were asked
//! for.

use super::{Claim, Entry, counts, number, shown, verb, words};
use caro_shell::{Dialect, parse};
use regex::Regex;
use std::sync::LazyLock;

/// Verbs that do not produce the content of their file.
const COPIES: &[&str] = &["copy", "extract", "move", "rename", "restore", "touch", "unpack", "unzip"];
/// Most lines of a file that may consist of error messages only.
const MAX_ERROR_LINES: usize = 5;
/// Countable items of a text.
const UNITS: &[&str] = &[
    "bullets",
    "examples",
    "ideas",
    "items",
    "lines",
    "paragraphs",
    "points",
    "questions",
    "reasons",
    "sentences",
    "steps",
    "tips",
];
/// Largest number of items that is checked.
const MAX_COUNTED: usize = 20;

/// Reports a file written by a call whose content is wrong.
pub(super) fn finding(claim: &Claim) -> Option<String> {
    let made = claim.changes?.made();
    if COPIES.contains(&verb(claim.part).as_str()) {
        return None;
    }
    let part = words(claim.part);
    let says = |word: &str| part.iter().any(|w| w.eq_ignore_ascii_case(word));
    let files = made.filter(|entry| !entry.folder);
    let texts: Vec<(&Entry, &str)> = files.filter_map(|entry| Some((entry, entry.text.as_deref()?))).collect();
    let named = |entry: &Entry| part.iter().any(|word| super::trim_path(word) == entry.path);
    let first = |what: &dyn Fn(&str) -> Option<&'static str>| {
        texts.iter().find_map(|(entry, text)| Some(format!("{} {}", shown(&entry.path), what(text)?)))
    };
    let empty = |text: &str| text.trim().is_empty().then_some("is empty.");
    // an empty file may be wanted if the part names no content
    let wants_content =
        !matches!(verb(claim.part).as_str(), "create" | "make" | "add") || says("with") || says("containing");
    let is_new = |entry: &Entry| claim.changes.is_some_and(|c| c.created.iter().any(|new| new.path == entry.path));
    let reports = texts.iter().filter(|(entry, _)| is_new(entry) && is_report(&entry.path) && !says("script"));
    if !says("empty")
        && wants_content
        && let Some(found) = first(&empty)
    {
        return Some(found);
    }
    if let Some((entry, _)) = texts.iter().find(|(entry, text)| is_new(entry) && is_broken(&entry.path, text)) {
        return Some(format!("{} does not hold what its name says: it cannot be read as that.", shown(&entry.path)));
    }
    for (entry, text) in reports {
        let name = shown(&entry.path);
        if (counts(claim.part) || !says("errors"))
            && let Some(program) = failed_program(text)
        {
            return Some(format!("{name} holds what a program complained, and nothing else: {program}"));
        }
        if !says("command") && (text.contains("$(") || text.contains("${")) {
            return Some(format!("{name} has `$(...)` or `${{...}}` in it, and not what that stands for."));
        }
        if text.trim_end().lines().count() == 1 && text.contains("\\n") {
            return Some(format!("{name} has `\\n` in it where lines should end."));
        }
    }
    texts.iter().filter(|(entry, _)| named(entry)).find_map(|(_, text)| too_few_items(claim.part, text))
}

/// True for a JSON file or shell script that does not parse. An empty file is not broken.
fn is_broken(path: &str, text: &str) -> bool {
    if text.trim().is_empty() {
        return false;
    }
    match path.rsplit_once('.') {
        Some((_, "json")) => serde_json::from_str::<serde::de::IgnoredAny>(text).is_err(),
        Some((_, "sh" | "bash")) => !parse(text, Dialect::Bash).errors.is_empty(),
        _ => false,
    }
}

/// True for a file type that people read.
fn is_report(path: &str) -> bool {
    ["md", "txt", "csv", "tsv", "rst", "org"].iter().any(|e| path.rsplit_once('.').is_some_and(|(_, end)| end == *e))
}

/// Returns the program, if a text consists only of its error messages:
/// `grep: a.log: No such file or directory`.
fn failed_program(text: &str) -> Option<String> {
    static FORM: LazyLock<Option<Regex>> = LazyLock::new(|| {
        Regex::new(
            r"^(?:(?P<program>[\w./-]{2,40}): .*(?:No such file or directory|command not found|Permission denied|[Ii]nvalid option|[Ss]yntax error|cannot open|Is a directory)|(?P<python>Traceback) \(most recent call last\))",
        )
        .ok()
    });
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    let found = FORM.as_ref()?.captures(lines.first()?)?;
    let is_error = |line: &&str| FORM.as_ref().is_some_and(|form| form.is_match(line));
    let all = found.name("python").is_some() || lines.len() <= MAX_ERROR_LINES && lines.iter().all(is_error);
    let name = found.name("program").or(found.name("python"))?.as_str();
    all.then(|| shown(name))
}

/// Matches `each of the four files` and `the five most frequent words`.
static CHOICE: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(
        r"(?i)\b(?:each|all) of (?:the|these|those) (?P<all>\w+)\b|\bthe (?P<best>\w+) (?:most \w+|largest|biggest|smallest|newest|oldest|latest|longest|shortest|highest|lowest|best|worst|first|last)\b",
    )
    .ok()
});

/// Returns the number of items that a part selects: 3 in `the three most frequent words`.
pub fn wanted_count(part: &str) -> Option<usize> {
    number(CHOICE.as_ref()?.captures(part)?.name("best")?.as_str())
}

/// Reports a text with fewer items than the part asks for: `three sentences`, `a line about each of the four files`,
/// `the five most frequent words`.
pub(super) fn too_few_items(part: &str, text: &str) -> Option<String> {
    let part_words = words(part);
    let lines = text.lines().filter(|line| !line.trim().is_empty()).count();
    let sentences = text.split(['.', '!', '?']).filter(|s| s.chars().any(char::is_alphabetic)).count();
    let unit = part_words.windows(2).find_map(|pair| {
        let unit = pair[1].to_lowercase();
        if !UNITS.contains(&unit.as_str()) {
            return None;
        }
        Some((number(pair[0])?, unit))
    });
    if let Some((wanted, unit)) = unit {
        // a paragraph may be one line, and a point one sentence
        let present = if unit == "lines" { lines } else { lines.max(sentences) };
        return (wanted <= MAX_COUNTED && present < wanted)
            .then(|| format!("{wanted} {unit} were asked for, and it has {present}."));
    }
    let found = CHOICE.as_ref()?.captures(part)?;
    let wanted = number(found.name("all").or(found.name("best"))?.as_str()).filter(|n| *n <= MAX_COUNTED)?;
    let listed = text.split([',', ';', '\n']).filter(|piece| !piece.trim().is_empty()).count();
    let present = lines.max(sentences).max(listed);
    (present < wanted).then(|| format!("It should be about {wanted} things, and has {present}."))
}
