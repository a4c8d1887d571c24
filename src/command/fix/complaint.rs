//! Parses a program's complaints from its standard error, by the patterns of `platform-rules/complaints.toml`.

use regex::Regex;
use std::sync::OnceLock;

/// Most bytes of standard error that are read, from its end.
pub const MAX_STDERR: usize = 16 << 10;

/// Most complaints that are returned.
const MAX_COMPLAINTS: usize = 32;

/// The kind of a complaint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// There is no program of that name.
    NoProgram,
    /// There is no such file or folder.
    NoFile,
    /// A folder was given where a file is required.
    IsFolder,
    /// A file was given where a folder is required.
    NotFolder,
    /// The file or folder exists already.
    Exists,
    /// A folder that has to be empty is not.
    NotEmpty,
    /// Access to the file is denied.
    Denied,
    /// The operation requires root.
    NeedsRoot,
    /// The program has no such option.
    UnknownFlag,
    /// The program has no such subcommand.
    UnknownVerb,
    /// The makefile has no such target.
    UnknownTarget,
    /// The project has no such script.
    UnknownScript,
    /// The option takes no such value.
    BadValue,
    /// There is no such user.
    NoUser,
    /// There is no such group.
    NoGroup,
    /// There is no such service.
    NoUnit,
    /// The repository has no such branch, tag or file.
    NoReference,
    /// The repository has no such remote.
    NoRemote,
    /// The program has to run in a project's folder, and this is none.
    NoProject,
    /// A quote is not closed.
    OpenQuote,
    /// A character with a meaning to the shell is not quoted.
    SpecialLetter,
    /// The shell expanded a pattern that was meant for the program.
    OpenGlob,
    /// A pattern matches no file, and the shell rejects it.
    NoMatch,
    /// The archive has another compression.
    WrongCompression,
    /// An expression lacks its last delimiter.
    OpenExpression,
    /// An operand is missing.
    MissingOperand,
    /// The destination is missing.
    MissingDestination,
    /// One name was given as several words.
    ManyWords,
    /// Another process listens on the port.
    PortUsed,
    /// The first line of a script names a program that does not exist.
    BadInterpreter,
    /// There is no manual page of that name.
    NoPage,
    /// `[` lacks its `]`.
    OpenBracket,
}

/// One complaint.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Complaint {
    /// The kind.
    pub kind: Kind,
    /// The name in the complaint; empty if there is none.
    pub name: String,
    /// The whole line.
    pub line: String,
}

/// A command that a program says to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Advice {
    /// The command.
    pub run: String,
    /// True if the failed command is to be run again after it.
    pub first: bool,
}

#[derive(Debug, serde::Deserialize)]
struct File {
    complaint: Vec<ComplaintForm>,
    advice: Vec<AdviceForm>,
    offer: Vec<OfferForm>,
}

#[derive(Debug, serde::Deserialize)]
struct ComplaintForm {
    kind: Kind,
    pattern: String,
}

#[derive(Debug, serde::Deserialize)]
struct AdviceForm {
    pattern: String,
    then: Then,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
enum Then {
    Instead,
    First,
}

#[derive(Debug, serde::Deserialize)]
struct OfferForm {
    pattern: String,
    #[serde(default)]
    behind: Option<String>,
}

/// The compiled patterns.
struct Patterns {
    complaints: Vec<(Kind, Regex)>,
    advice: Vec<(Then, Regex)>,
    offers: Vec<(Option<Regex>, Regex)>,
}

const TEXT: &str = include_str!("../../../platform-rules/complaints.toml");

/// Returns the patterns, compiled once. Invalid ones are left out; a test checks that there are none.
fn patterns() -> &'static Patterns {
    static PATTERNS: OnceLock<Patterns> = OnceLock::new();
    PATTERNS.get_or_init(|| {
        let Ok(File { complaint, advice, offer }) = toml::from_str(TEXT) else {
            return Patterns { complaints: Vec::new(), advice: Vec::new(), offers: Vec::new() };
        };
        let complaints = complaint.into_iter().filter_map(|form| Some((form.kind, Regex::new(&form.pattern).ok()?)));
        let advice = advice.into_iter().filter_map(|form| Some((form.then, Regex::new(&form.pattern).ok()?)));
        let offers = offer.into_iter().filter_map(|form| {
            let behind = form.behind.map(|pattern| Regex::new(&pattern)).transpose().ok()?;
            Some((behind, Regex::new(&form.pattern).ok()?))
        });
        Patterns { complaints: complaints.collect(), advice: advice.collect(), offers: offers.collect() }
    })
}

/// Returns the last lines of a text, at most [`MAX_STDERR`] bytes.
pub fn tail(text: &str) -> &str {
    let mut from = text.len().saturating_sub(MAX_STDERR);
    while !text.is_char_boundary(from) {
        from += 1;
    }
    let end = &text[from..];
    if from == 0 { end } else { end.split_once('\n').map_or(end, |(_, rest)| rest) }
}

/// Normalizes a text: replaces typographic quotes by ASCII ones, and removes colour sequences and carriage returns.
fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\u{1b}' if chars.peek() == Some(&'[') => {
                // up to the letter that ends the sequence
                chars.next();
                for c in chars.by_ref() {
                    if c.is_ascii_alphabetic() {
                        break;
                    }
                }
            }
            '‘' | '’' | '`' | '´' => plain.push('\''),
            '“' | '”' => plain.push('"'),
            '\r' => {}
            c => plain.push(c),
        }
    }
    plain
}

/// Parses the complaints in standard error, in the order of its lines, without duplicates.
pub fn complaints(stderr: &str) -> Vec<Complaint> {
    let mut found: Vec<Complaint> = Vec::new();
    if stderr.trim().is_empty() {
        // avoids compiling the patterns, which takes time
        return found;
    }
    for line in plain(tail(stderr)).lines() {
        let line = line.trim_end();
        for (kind, pattern) in &patterns().complaints {
            let Some(captured) = pattern.captures(line) else { continue };
            let name = ["name", "of", "flag"].iter().find_map(|group| captured.name(group));
            let name = name.map_or_else(String::new, |name| name.as_str().trim().to_owned());
            let complaint = Complaint { kind: *kind, name, line: line.trim().to_owned() };
            let is_new = !found.iter().any(|other| other.kind == complaint.kind && other.name == complaint.name);
            if is_new && found.len() < MAX_COMPLAINTS {
                found.push(complaint);
            }
        }
    }
    found
}

/// Returns the command that the program itself says to run.
pub fn advice(stderr: &str) -> Option<Advice> {
    if stderr.trim().is_empty() {
        return None;
    }
    let text = plain(tail(stderr));
    patterns().advice.iter().find_map(|(then, pattern)| {
        let run = pattern.captures(&text)?.name("run")?.as_str().trim().to_owned();
        Some(Advice { run, first: *then == Then::First })
    })
}

/// Returns the names that the program itself offers, in its order.
pub fn offers(stderr: &str) -> Vec<String> {
    let text = plain(tail(stderr));
    let mut found: Vec<String> = Vec::new();
    if text.trim().is_empty() {
        return found;
    }
    for (behind, pattern) in &patterns().offers {
        let mut is_behind = behind.is_none();
        for line in text.lines() {
            let name = pattern.captures(line).and_then(|captured| captured.name("name"));
            match (behind, name) {
                (Some(behind), _) if behind.is_match(line.trim_end()) => is_behind = true,
                (_, Some(name)) if is_behind => found.push(name.as_str().to_owned()),
                (Some(_), None) if !line.trim().is_empty() => is_behind = false,
                _ => {}
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(serde::Deserialize)]
    struct Examples {
        complaint: Vec<ComplaintExamples>,
        advice: Vec<Pairs>,
        offer: Vec<Pairs>,
    }

    #[derive(serde::Deserialize)]
    struct ComplaintExamples {
        kind: Kind,
        pattern: String,
        source: String,
        matches: Vec<(String, String)>,
        not_matches: Vec<String>,
    }

    #[derive(serde::Deserialize)]
    struct Pairs {
        matches: Vec<(String, String)>,
    }

    #[test]
    fn every_pattern_matches_its_own_examples_and_no_other() {
        let examples: Examples = toml::from_str(TEXT).unwrap();
        assert_eq!(patterns().complaints.len(), examples.complaint.len(), "one does not compile");
        assert_eq!(patterns().advice.len(), examples.advice.len());
        assert_eq!(patterns().offers.len(), examples.offer.len());
        for form in &examples.complaint {
            assert!(!form.source.is_empty() && !form.matches.is_empty() && !form.not_matches.is_empty());
            for (line, name) in &form.matches {
                let read = complaints(line);
                assert!(
                    read.iter().any(|c| c.kind == form.kind && c.name == *name),
                    "{line:?} of {:?}: {read:?}",
                    form.kind
                );
            }
            let own = Regex::new(&form.pattern).unwrap();
            for line in &form.not_matches {
                assert!(!own.is_match(&plain(line)), "{line:?} is none of {:?}", form.kind);
            }
        }
        for (text, run) in examples.advice.iter().flat_map(|form| &form.matches) {
            assert_eq!(advice(text).map(|advice| advice.run).as_ref(), Some(run), "{text}");
        }
        for (text, name) in examples.offer.iter().flat_map(|form| &form.matches) {
            assert_eq!(offers(text).first(), Some(name), "{text}");
        }
    }

    #[test]
    fn only_the_end_of_a_long_text_is_read_and_no_letter_is_cut() {
        let text = format!("{}\nls: unrecognized option '--siez'\n", "é".repeat(MAX_STDERR));
        assert_eq!(complaints(&text).len(), 1);
        assert!(tail(&"é".repeat(MAX_STDERR)).len() <= MAX_STDERR);
        assert_eq!(complaints("\u{1b}[31mcat: x: No such file or directory\u{1b}[0m")[0].name, "x");
    }
}
