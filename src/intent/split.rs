//! Splits a task into parts by its words alone: its sentences, and the clauses that begin with a verb of their own.

use super::courtesy;
use super::form::{proof_command, report_parts, saves_text, split_questions};
use super::said::with_statements;
use super::verbs::{BEGINS, asks};
use regex::Regex;
use std::sync::LazyLock;

/// Separators between two parts.
static SEPARATOR: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"(?i)(?:[.;!?]\s+|\n+|,\s+|\s+)(?:and\s+then\s+|and\s+|then\s+)|[.;!?]\s+|\n+|,\s+").ok()
});

/// Verbs that are nouns too: they count as verbs only after `then`, or before one of [`AFTER_VERB`] or a file name.
const NOUN_VERBS: &[&str] = &[
    "archive", "back", "copy", "export", "filter", "group", "join", "list", "look", "measure", "note", "open",
    "record", "report", "run", "search", "set", "sort", "split", "store", "sum", "test", "touch", "turn", "zip",
];

/// Words that show that the word before them is a verb: `sort the names`, but `sort order`.
const AFTER_VERB: &[&str] = &[
    "a",
    "all",
    "an",
    "at",
    "both",
    "by",
    "each",
    "every",
    "everything",
    "for",
    "how",
    "in",
    "into",
    "it",
    "its",
    "me",
    "my",
    "on",
    "only",
    "our",
    "out",
    "that",
    "the",
    "their",
    "them",
    "these",
    "this",
    "those",
    "to",
    "up",
    "what",
    "which",
];

/// Abbreviations whose last full stop ends no sentence.
const ABBREVIATIONS: &[&str] = &["e.g", "i.e", "vs"];

/// Splits a task at separators that are followed by a verb or end a sentence; the pieces are not trimmed.
fn pieces(task: &str) -> Vec<&str> {
    let Some(separator) = &*SEPARATOR else { return vec![task] };
    let quoted = quoted(task);
    let mut pieces = Vec::new();
    let mut start = 0;
    for found in separator.find_iter(task) {
        let rest = &task[found.end()..];
        let mut words = rest.split_whitespace().skip_while(|word| word.eq_ignore_ascii_case("please"));
        let next = words
            .next()
            .unwrap_or_default()
            .split(|c: char| !c.is_alphanumeric())
            .next()
            .unwrap_or_default()
            .to_lowercase();
        let second = words.next().unwrap_or_default().to_lowercase();
        let second = second.trim_end_matches([',', '.', ';', '!', '?']);
        let piece = &task[start..found.start()];
        let last = piece.split_whitespace().next_back().unwrap_or_default();
        let is_then = found.as_str().to_lowercase().contains("then");
        // `so that only I can read and write it`
        let paired = next == "write" && last == "read" && !is_then;
        // `the build and test folders`
        let is_noun = NOUN_VERBS.contains(&next.as_str())
            && !AFTER_VERB.contains(&second)
            && !second.contains(['.', '/'])
            && !is_then;
        let verb = asks(&next, BEGINS) && !paired && !is_noun && !belongs_together(piece, is_then);
        let is_end = found.as_str().starts_with(['.', ';', '!', '?', '\n']) && !ABBREVIATIONS.contains(&last);
        let sentence = is_end && !continues(rest);
        if !quoted.iter().any(|range| range.contains(&found.start())) && (sentence || verb) {
            pieces.push(piece);
            start = found.end();
        }
    }
    pieces.push(&task[start..]);
    pieces
}

/// The byte ranges of quotes, which contain no instructions.
fn quoted(task: &str) -> Vec<std::ops::Range<usize>> {
    let mut all = Vec::new();
    for (open, close) in [('"', '"'), ('`', '`'), ('\u{201c}', '\u{201d}')] {
        let mut at = 0;
        while let Some(start) = task[at..].find(open).map(|found| at + found) {
            let inside = start + open.len_utf8();
            let Some(end) = task[inside..].find(close).map(|found| inside + found) else { break };
            all.push(start..end);
            at = end + close.len_utf8();
        }
    }
    all
}

/// True if the text after a separator still belongs to the piece: the consequence of a condition, or a step of the
/// script that the piece asks for. `is_then` tells if the separator says `then`.
fn belongs_together(piece: &str, is_then: bool) -> bool {
    static FORM: LazyLock<Option<Regex>> = LazyLock::new(|| {
        Regex::new(
            r"(?i)^\s*(?:(?:and|then|also) )*(?:(?P<script>(?:write|create|make|add|generate)\b.*\b(?:script|program|function|alias)\b.*?\bto\b)|(?:if|when|unless|in case|as soon as|wherever|otherwise)\b)",
        )
        .ok()
    });
    // the condition may open the last sentence of the piece: `check a. If it is empty, ...`
    let ends = piece.match_indices(['.', ';', '!', '?']).map(|(at, _)| &piece[at + 1..]);
    let sentence = ends.rev().find(|rest| rest.starts_with(char::is_whitespace)).unwrap_or(piece);
    let begins = |text| FORM.as_ref().and_then(|form| form.captures(text));
    let found = begins(piece).or_else(|| if continues(sentence.trim_start()) { begins(sentence) } else { None });
    // `write a script to ..., then run it`: the second verb is a separate instruction
    found.is_some_and(|found| found.name("script").is_none() || !is_then)
}

/// True if a sentence depends on the one before: `If it is, delete it`.
fn continues(rest: &str) -> bool {
    let first = rest.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default().to_lowercase();
    matches!(first.as_str(), "if" | "otherwise" | "else")
}

/// Splits a task into its parts, its sentences and the clauses that begin with a verb of their own. Statements and names
/// of tools are added to the part that they belong to, and a command that is to prove the result becomes a last part,
/// `run COMMAND`, too.
pub fn parts(task: &str) -> Vec<String> {
    let parts = pieces(courtesy::ungreeted(task)).into_iter().fold(Vec::new(), |mut all: Vec<String>, part| {
        match all.last_mut() {
            Some(before) if names_tool(part) => {
                *before = format!("{}, {}", before.trim().trim_end_matches(['.', ';', ',', '!', '?']), part.trim())
            }
            _ => all.push(part.to_owned()),
        }
        all
    });
    let trim_part = |part: String| part.trim().trim_end_matches(['.', ';', ',', '!', '?']).trim().to_owned();
    let strip_connective = |part: String| {
        let connective_len = ["then ", "and ", "finally ", "also "]
            .iter()
            .find_map(|word| part.get(..word.len()).filter(|start| start.eq_ignore_ascii_case(word)))
            .map_or(0, str::len);
        courtesy::without_politeness(&part[connective_len..]).to_owned()
    };
    let parts = parts.into_iter().map(trim_part).map(strip_connective).filter(|part| !part.is_empty()).collect();
    let mut merged: Vec<String> = Vec::new();
    for part in with_statements(parts) {
        match merged.last_mut().filter(|before| saves_text(&part, before)) {
            Some(before) => *before = format!("{before} and {part}"),
            None => merged.extend(report_parts(&part).or_else(|| split_questions(&part)).unwrap_or_else(|| vec![part])),
        }
    }
    let proof_commands: Vec<String> = merged.iter().filter_map(|part| proof_command(part)).collect();
    merged.extend(proof_commands.into_iter().map(|command| format!("run {command}")));
    merged
}

/// True for a part that only says which server or tool is to do the one before: `use the weather server`.
fn names_tool(part: &str) -> bool {
    static FORM: LazyLock<Option<Regex>> = LazyLock::new(|| {
        Regex::new(r"(?i)^(?:and |please )*(?:ask|by|through|use|using|via|with)(?: [\w.`'-]+){1,4} (?:servers?|tools?|mcp)\W*$").ok()
    });
    FORM.as_ref().is_some_and(|form| form.is_match(part.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_are_split_into_parts() {
        for (task, want) in [
            (
                "find the three largest log files, show how many errors each has, and write a summary to report.md",
                &["find the three largest log files", "show how many errors each has", "write a summary to report.md"]
                    [..],
            ),
            (
                "Read main.rs and tests.rs. Then fix the typo in both.",
                &["Read main.rs and tests.rs", "fix the typo in both"],
            ),
            ("list files", &["list files"]),
            ("can you list the files, and please count them?", &["list the files", "count them"]),
            ("hi, list the files", &["list the files"]),
            ("Hello there! List the files and count them.", &["List the files", "count them"]),
            ("copy a.txt to b.txt then delete a.txt", &["copy a.txt to b.txt", "delete a.txt"]),
            (
                "find the names and addresses, and phones, in users.csv",
                &["find the names and addresses, and phones, in users.csv"],
            ),
            ("what is the time in Lima? Use the clock server.", &["what is the time in Lima, Use the clock server"]),
            (
                "everybody can read a.env, change that so only I can read and write it",
                &["change that so only I can read and write it (everybody can read a.env)"],
            ),
            (
                "translate de.txt to English and save it to en.txt",
                &["translate de.txt to English and save it to en.txt"],
            ),
            (
                "fix a.py so that python3 a.py works, and list the errors",
                &["fix a.py so that python3 a.py works", "list the errors", "run python3 a.py"],
            ),
            ("use the clock server. Show the time", &["use the clock server", "Show the time"]),
            (
                "find issue 4, ask the tracker server for its owner",
                &["find issue 4, ask the tracker server for its owner"],
            ),
        ] {
            assert_eq!(parts(task), want, "{task}");
        }
    }

    #[test]
    fn sentence_ends_names_and_nouns_are_told_apart() {
        for (task, want) in [
            ("delete the build and test folders.", &["delete the build and test folders"][..]),
            (
                "look at backup. If old.tar is there, delete new.tar",
                &["look at backup. If old.tar is there, delete new.tar"],
            ),
            ("list the logs, e.g. a.log", &["list the logs, e.g. a.log"]),
            (
                "count the posts of each thread and write the sum to x.txt",
                &["count the posts of each thread", "write the sum to x.txt"],
            ),
            ("show what I can read, then write it to x.txt", &["show what I can read", "write it to x.txt"]),
        ] {
            assert_eq!(parts(task), want, "{task}");
        }
    }

    #[test]
    fn parts_that_belong_together_are_not_split() {
        for (task, want) in [
            ("delete the build and test folders", &["delete the build and test folders"][..]),
            ("list all tar and zip files", &["list all tar and zip files"]),
            ("find all logs and zip them", &["find all logs", "zip them"]),
            ("find the logs and sort them by size", &["find the logs", "sort them by size"]),
            (
                "add the line \"sell the bike, copy the keys and delete old mails\" to list.md",
                &["add the line \"sell the bike, copy the keys and delete old mails\" to list.md"],
            ),
            (
                "write a script clean.sh to find all .tmp files and delete them, then run it",
                &["write a script clean.sh to find all .tmp files and delete them", "run it"],
            ),
            ("if new.tar is there, delete old.tar", &["if new.tar is there, delete old.tar"]),
            (
                "check if a.txt is empty. If it is, delete it. Then list the files",
                &["check if a.txt is empty. If it is, delete it", "list the files"],
            ),
            (
                "delete all .log files. error.log must stay. Then list what is left",
                &["delete all .log files (error.log must stay)", "list what is left"],
            ),
            ("delete the .log files. Don't touch error.log", &["delete the .log files (Don't touch error.log)"]),
            ("delete all .log files. Keep error.log.", &["delete all .log files (Keep error.log)"]),
            (
                "look at backup. Keep the newest three archives, delete the others",
                &["look at backup", "Keep the newest three archives", "delete the others"],
            ),
            (
                "find all logs. They should be in a folder called old",
                &["find all logs", "They should be in a folder called old"],
            ),
            (
                "delete the logs. All .tmp files should also be deleted",
                &["delete the logs", "All .tmp files should also be deleted"],
            ),
            (
                "list the photos. I'll need a copy of them in backup",
                &["list the photos", "I'll need a copy of them in backup"],
            ),
            ("sort names.txt. The result goes to sorted.txt", &["sort names.txt", "The result goes to sorted.txt"]),
            ("what is in notes? my sister wants to know", &["what is in notes (my sister wants to know)"]),
        ] {
            assert_eq!(parts(task), want, "{task}");
        }
    }
}
