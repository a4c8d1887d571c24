//! Finds the files that a task promises: those it asks to write, and those that must exist when it is done.

use super::verbs::begins_part;
use regex::Regex;
use std::sync::LazyLock;

/// Verbs that create a file.
static VERB: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"(?i)\b(?:write|save|put|store|export|create|make|output|generate|record)\b").ok());

/// A file name with an extension, after a word that leads to it.
static TARGET: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r#"(?i)\b(to|into|in|as|called|named|file)\s+["'`]?([\p{L}0-9_./~-]*[\p{L}0-9_-]\.[A-Za-z0-9]{1,5})\b"#)
        .ok()
});

/// Verbs that are as often nouns.
const NOUNS: &[&str] = &["output", "record", "store", "export"];
/// Verbs that put something `in` a file; with other verbs, `in` may name a file to read.
const PUTS: &[&str] = &["write", "save", "put", "store", "record"];
/// Words that may precede a verb.
const BEFORE: &[&str] = &["and", "then", "please", "to", "you", "also", "now", "finally", "or"];
/// Words that precede a noun.
const ARTICLES: &[&str] =
    &["a", "an", "the", "of", "this", "that", "each", "every", "no", "its", "their", "my", "your"];
/// Most characters between the verb and the word that leads to the file name.
const MAX_DISTANCE: usize = 80;

/// Returns the files that a task asks to write, as it names them.
pub fn files_to_write(task: &str) -> Vec<String> {
    let Some(form) = &*VERB else { return Vec::new() };
    let (mut files, mut from): (Vec<String>, usize) = (Vec::new(), 0);
    for found in form.find_iter(task) {
        let verb = found.as_str().to_lowercase();
        if found.start() < from || !is_verb(&verb, &task[..found.start()]) {
            continue;
        }
        let clause = clause(&task[found.end()..]);
        if let Some((name, length)) = target(&verb, clause) {
            from = found.end() + length;
            if !files.contains(&name) {
                files.push(name);
            }
        }
    }
    files
}

/// Verbs that put something into a file named after `to`, `into` or `as`, and do not ask for a new text.
static FILLS: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"(?i)\b(?:add|append|copy|extract|merge|sort)\b").ok());

/// A verb followed by the name of a new file: `touch a.txt`, `create an empty file a.txt`. `make run.sh executable`
/// creates none.
static MAKES: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(
        r#"(?i)\b(?:create|touch|make)\s+(?:(?:a|an|the|new|empty|text|file)\s+)*["'`]?([\p{L}0-9_./~-]*[\p{L}0-9_-]\.[A-Za-z0-9]{1,5})["'`]?(?:[,;.]?\s+(?:and|then|with|that|in)\b|[,;.!]?\s*$|[,;.!]\s)"#,
    )
    .ok()
});

/// Returns the files that must exist when a task is done, as it names them: those it asks to write, to fill or just
/// to create.
pub fn promised_files(task: &str) -> Vec<String> {
    let mut files = files_to_write(task);
    let mut add = |name: &str| {
        if !files.iter().any(|known| known == name) {
            files.push(name.to_owned());
        }
    };
    for found in FILLS.iter().flat_map(|form| form.find_iter(task)) {
        if !is_order(&found.as_str().to_lowercase(), &task[..found.start()]) {
            continue;
        }
        let clause = clause(&task[found.end()..]);
        // `to a.md`; a file after `in` or `from` exists already
        let strong = |c: &regex::Captures| matches!(&*c[1].to_lowercase(), "to" | "into" | "as");
        if let Some(c) = TARGET.iter().flat_map(|form| form.captures_iter(clause)).find(strong) {
            add(&c[2]);
        }
    }
    for found in MAKES.iter().flat_map(|form| form.captures_iter(task)) {
        if found.get(0).is_some_and(|all| is_order("create", &task[..all.start()])) {
            add(&found[1]);
        }
    }
    files
}

/// True if the word is a verb, and neither tells what someone else does nor asks about it (`how do I create ...`).
fn is_order(verb: &str, before: &str) -> bool {
    let last = before.split_whitespace().next_back().unwrap_or_default().to_lowercase();
    is_verb(verb, before) && !["i", "we", "they", "that", "which", "who", "not", "don't", "never"].contains(&&*last)
}

/// True if the word is not a noun (`lines of output`, `the record`).
fn is_verb(verb: &str, before: &str) -> bool {
    let last = before.split_whitespace().next_back().unwrap_or_default().to_lowercase();
    let begins = last.is_empty() || last.ends_with([',', ';', ':', '.', '?', '!']);
    if NOUNS.contains(&verb) { begins || BEFORE.contains(&&*last) } else { !ARTICLES.contains(&&*last) }
}

/// Returns the text that belongs to a verb: up to the end of its sentence, or to `and` and the next verb.
fn clause(text: &str) -> &str {
    let mut before = "";
    let mut at = 0;
    for word in text.split_inclusive(char::is_whitespace) {
        let plain = word.trim();
        if (["and", "then"].contains(&before) || before.ends_with(',')) && begins_part(&plain.to_lowercase()) {
            return &text[..at];
        }
        at += word.len();
        if plain.ends_with(['.', ';', '?', '!']) || plain.contains(';') || word.contains('\n') {
            return &text[..at];
        }
        before = plain;
    }
    text
}

/// Returns the file that a verb is about, and the byte offset of its end in the clause. `to a.md` takes precedence
/// over `file a.md`, and that over `in a.md`.
fn target(verb: &str, clause: &str) -> Option<(String, usize)> {
    let rank = |word: &str| ["in", "file"].iter().position(|weak| word.eq_ignore_ascii_case(weak)).unwrap_or(2);
    let found = TARGET.as_ref()?.captures_iter(clause).filter_map(|c| {
        let (word, name) = (c.get(1)?, c.get(2)?);
        let between = &clause[..word.start()];
        // `create a list of all functions in main.py` reads main.py
        let reads = || !PUTS.contains(&verb) && between.split_whitespace().any(|w| ["of", "from", "for"].contains(&w));
        let near = between.chars().count() <= MAX_DISTANCE;
        (near && (rank(word.as_str()) > 0 || !reads())).then(|| (rank(word.as_str()), name))
    });
    // of equal ones the first
    let (_, name) = found.reduce(|best, next| if next.0 > best.0 { next } else { best })?;
    Some((name.as_str().to_owned(), name.end()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_to_write_are_recognized() {
        for (task, files) in [
            ("find the three largest log files, and write a summary to report.md", &["report.md"][..]),
            ("save the list of users in out/users.txt", &["out/users.txt"]),
            ("create a file named notes.md with today's date", &["notes.md"]),
            ("write a summary of main.rs to a.md and put the count into b.txt", &["a.md", "b.txt"]),
            ("read report.md and tell me what is in it", &[]),
            ("count the lines in main.rs", &[]),
            ("how many errors are in app.log?", &[]),
            ("how many lines of output are in log.txt?", &[]),
            ("show the record with id 5 in users.csv", &[]),
            ("create a list of all functions in main.py", &[]),
            ("make run.sh executable and tell me how many lines are in data.csv", &[]),
            ("write the number of functions in main.py to out.txt", &["out.txt"]),
            ("write what is in the file a.txt into b.txt.", &["b.txt"]),
            ("create a summary in report.md", &["report.md"]),
            ("have two helpers write their reports to a.md, and put the sum into b.md", &["a.md", "b.md"]),
            ("output the names, then record them in names.txt", &["names.txt"]),
        ] {
            assert_eq!(files_to_write(task), files, "{task}");
        }
    }

    #[test]
    fn files_that_must_exist_are_recognized() {
        for (task, files) in [
            ("create zq.txt", &["zq.txt"][..]),
            ("touch zq.txt.", &["zq.txt"]),
            ("make an empty file a.txt, and tell me its date", &["a.txt"]),
            ("extract all errors from logs/app.log into zq.txt", &["zq.txt"]),
            ("append hello to report.md", &["report.md"]),
            ("copy the lines with x in a.txt to b.txt", &["b.txt"]),
            ("make run.sh executable", &[]),
            ("add the numbers in a.txt", &[]),
            ("sort the lines in a.txt", &[]),
            ("show the extract in a.txt", &[]),
            ("compare the copy to a.txt", &[]),
            ("create a list of all functions in main.py", &[]),
            ("how do I create a.txt?", &[]),
        ] {
            assert_eq!(promised_files(task), files, "{task}");
        }
    }
}
