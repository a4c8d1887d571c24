//! What stands in a file that was written: something, what it is to stand for, and as much as was asked for.

use super::{Claim, Entry, counts, number, shown, verb, words};
use caro_shell::{Dialect, parse};
use regex::Regex;
use std::sync::LazyLock;

/// Verbs whose file is another one as it was: what stands in it is not their business.
const AS_IT_WAS: &[&str] = &["copy", "extract", "move", "rename", "restore", "touch", "unpack", "unzip"];
/// Lines of a file that may be nothing but what a program complained.
const COMPLAINT: usize = 5;
/// Things of which a text has so many.
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
/// More than that nobody counts.
const MANY: usize = 20;

/// What speaks against the files that a call has made.
pub(super) fn finding(claim: &Claim) -> Option<String> {
    let made = claim.changes?.made();
    if AS_IT_WAS.contains(&verb(claim.part).as_str()) {
        return None;
    }
    let part = words(claim.part);
    let says = |word: &str| part.iter().any(|w| w.eq_ignore_ascii_case(word));
    let texts: Vec<(&Entry, &str)> = made.filter_map(|e| Some((e, e.text.as_deref().filter(|_| !e.folder)?))).collect();
    let named = |entry: &Entry| part.iter().any(|word| super::normal(word) == entry.path);
    let one = |what: &dyn Fn(&str) -> Option<&'static str>| {
        texts.iter().find_map(|(entry, text)| Some(format!("{} {}", shown(&entry.path), what(text)?)))
    };
    let empty = |text: &str| text.trim().is_empty().then_some("is empty.");
    // an empty file may be what is wanted, where nothing is said of what it is to hold
    let holds = !matches!(verb(claim.part).as_str(), "create" | "make" | "add") || says("with") || says("containing");
    let is_new = |entry: &Entry| claim.changes.is_some_and(|c| c.created.iter().any(|new| new.path == entry.path));
    let reports = texts.iter().filter(|(entry, _)| is_new(entry) && is_report(&entry.path) && !says("script"));
    if !says("empty")
        && holds
        && let Some(found) = one(&empty)
    {
        return Some(found);
    }
    if let Some((entry, _)) = texts.iter().find(|(entry, text)| is_new(entry) && is_broken(&entry.path, text)) {
        return Some(format!("{} does not hold what its name says: it cannot be read as that.", shown(&entry.path)));
    }
    for (entry, text) in reports {
        let name = shown(&entry.path);
        if let Some(program) = complaint(text).filter(|_| counts(claim.part) || !says("errors")) {
            return Some(format!("{name} holds what a program complained, and nothing else: {program}"));
        }
        if !says("command") && (text.contains("$(") || text.contains("${")) {
            return Some(format!("{name} has `$(...)` or `${{...}}` in it, and not what that stands for."));
        }
        if text.trim_end().lines().count() == 1 && text.contains("\\n") {
            return Some(format!("{name} has `\\n` in it where lines should end."));
        }
    }
    texts.iter().filter(|(entry, _)| named(entry)).find_map(|(_, text)| fewer(claim.part, text))
}

/// True for a JSON file that is none, and a shell script that no shell can read; one with nothing in it is not broken.
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

/// A file that is read by people.
fn is_report(path: &str) -> bool {
    ["md", "txt", "csv", "tsv", "rst", "org"].iter().any(|e| path.rsplit_once('.').is_some_and(|(_, end)| end == *e))
}

/// `grep: a.log: No such file or directory`: which program complained, if that is all there is.
fn complaint(text: &str) -> Option<String> {
    static FORM: LazyLock<Option<Regex>> = LazyLock::new(|| {
        Regex::new(
            r"^(?:(?P<program>[\w./-]{2,40}): .*(?:No such file or directory|command not found|Permission denied|[Ii]nvalid option|[Ss]yntax error|cannot open|Is a directory)|(?P<python>Traceback) \(most recent call last\))",
        )
        .ok()
    });
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    let found = FORM.as_ref()?.captures(lines.first()?)?;
    let all = found.name("python").is_some()
        || lines.len() <= COMPLAINT && lines.iter().all(|line| FORM.as_ref().is_some_and(|form| form.is_match(line)));
    let name = found.name("program").or(found.name("python"))?.as_str();
    all.then(|| shown(name))
}

/// `each of the four files`, `the five most frequent words`.
static CHOICE: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(
        r"(?i)\b(?:each|all) of (?:the|these|those) (?P<all>\w+)\b|\bthe (?P<best>\w+) (?:most \w+|largest|biggest|smallest|newest|oldest|latest|longest|shortest|highest|lowest|best|worst|first|last)\b",
    )
    .ok()
});

/// How many a part wants of what there is: 3 of `the three most frequent words`.
pub fn chosen(part: &str) -> Option<usize> {
    number(CHOICE.as_ref()?.captures(part)?.name("best")?.as_str())
}

/// Fewer things stand in a text than the part asks for: `three sentences`, `a line about each of the four files`, `the five
/// most frequent words`.
pub(super) fn fewer(part: &str, text: &str) -> Option<String> {
    let part_words = words(part);
    let lines = text.lines().filter(|line| !line.trim().is_empty()).count();
    let sentences = text.split(['.', '!', '?']).filter(|s| s.chars().any(char::is_alphabetic)).count();
    let unit = part_words.windows(2).find_map(|pair| {
        let unit = pair[1].to_lowercase();
        Some((number(pair[0]).filter(|_| UNITS.contains(&unit.as_str()))?, unit))
    });
    if let Some((wanted, unit)) = unit {
        // a paragraph may be a line, and a point may be a sentence
        let there = if unit == "lines" { lines } else { lines.max(sentences) };
        return (wanted <= MANY && there < wanted)
            .then(|| format!("{wanted} {unit} were asked for, and it has {there}."));
    }
    let found = CHOICE.as_ref()?.captures(part)?;
    let wanted = number(found.name("all").or(found.name("best"))?.as_str()).filter(|n| *n <= MANY)?;
    let listed = text.split([',', ';', '\n']).filter(|piece| !piece.trim().is_empty()).count();
    let there = lines.max(sentences).max(listed);
    (there < wanted).then(|| format!("It should be about {wanted} things, and has {there}."))
}
