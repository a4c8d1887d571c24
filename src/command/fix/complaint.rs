//! A program's complaints, read from its standard error. The forms are data: `platform-rules/complaints.toml`.

use regex::Regex;
use std::sync::OnceLock;

/// The most bytes of standard error that are read, from its end.
pub const LONGEST: usize = 16 << 10;

/// The most complaints that are kept.
const MOST: usize = 32;

/// A kind of mistake that programs complain about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// There is no program of that name.
    NoProgram,
    /// There is no such file or folder.
    NoFile,
    /// A folder stands where a file is wanted.
    IsFolder,
    /// A file stands where a folder is wanted.
    NotFolder,
    /// It is there already.
    Exists,
    /// A folder that has to be empty is not.
    NotEmpty,
    /// The rights do not suffice for that file.
    Denied,
    /// Only root may do that.
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
    /// The package index has no such package.
    NoPackage,
    /// The repository has no such branch, tag or file.
    NoReference,
    /// The repository has no such remote.
    NoRemote,
    /// It has to be called in a project's folder, and this is none.
    NoProject,
    /// A quote is opened and not closed.
    OpenQuote,
    /// A letter that means something to the shell stands unquoted.
    SpecialLetter,
    /// A pattern that is the program's was expanded by the shell.
    OpenGlob,
    /// A pattern fits no file, and the shell refuses to hand it on.
    NoMatch,
    /// The archive is packed in another way.
    WrongCompression,
    /// An expression lacks its last delimiter.
    OpenExpression,
    /// The program wants something to work on.
    MissingOperand,
    /// The program wants to be told where to.
    MissingDestination,
    /// One name was given as several words.
    ManyWords,
    /// Another process listens there.
    PortUsed,
    /// The first line of a script names a program that is not there.
    BadInterpreter,
    /// There is no manual page of that name.
    NoPage,
    /// `[` lacks its `]`.
    OpenBracket,
}

/// One complaint.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Complaint {
    /// Its kind.
    pub kind: Kind,
    /// The name that it is about; empty where no name is told.
    pub name: String,
    /// The line, as it was written.
    pub line: String,
}

/// A command that a program says to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Advice {
    /// The command.
    pub run: String,
    /// True if the failed command is to be run again behind it.
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

/// The forms with their expressions.
struct Forms {
    complaints: Vec<(Kind, Regex)>,
    advice: Vec<(Then, Regex)>,
    offers: Vec<(Option<Regex>, Regex)>,
}

const TEXT: &str = include_str!("../../../platform-rules/complaints.toml");

/// The forms, compiled once. One that is broken counts as none here: a test holds that there is none.
fn forms() -> &'static Forms {
    static FORMS: OnceLock<Forms> = OnceLock::new();
    FORMS.get_or_init(|| {
        let Ok(File { complaint, advice, offer }) = toml::from_str(TEXT) else {
            return Forms { complaints: Vec::new(), advice: Vec::new(), offers: Vec::new() };
        };
        let complaints = complaint.into_iter().filter_map(|form| Some((form.kind, Regex::new(&form.pattern).ok()?)));
        let advice = advice.into_iter().filter_map(|form| Some((form.then, Regex::new(&form.pattern).ok()?)));
        let offers = offer.into_iter().filter_map(|form| {
            let behind = form.behind.map(|pattern| Regex::new(&pattern)).transpose().ok()?;
            Some((behind, Regex::new(&form.pattern).ok()?))
        });
        Forms { complaints: complaints.collect(), advice: advice.collect(), offers: offers.collect() }
    })
}

/// The end of a text of at most [`LONGEST`] bytes, from the beginning of a line.
pub fn tail(text: &str) -> &str {
    let mut from = text.len().saturating_sub(LONGEST);
    while !text.is_char_boundary(from) {
        from += 1;
    }
    let end = &text[from..];
    if from == 0 { end } else { end.split_once('\n').map_or(end, |(_, rest)| rest) }
}

/// A text with one kind of quotes, and without what colours it.
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

/// Reads what was complained, in the order of the lines.
pub fn complaints(stderr: &str) -> Vec<Complaint> {
    let mut found: Vec<Complaint> = Vec::new();
    if stderr.trim().is_empty() {
        // the forms take their time to compile
        return found;
    }
    for line in plain(tail(stderr)).lines() {
        let line = line.trim_end();
        for (kind, form) in &forms().complaints {
            let Some(captured) = form.captures(line) else { continue };
            let name = ["name", "of", "flag"].iter().find_map(|group| captured.name(group));
            let name = name.map_or_else(String::new, |name| name.as_str().trim().to_owned());
            let complaint = Complaint { kind: *kind, name, line: line.trim().to_owned() };
            let is_new = !found.iter().any(|other| other.kind == complaint.kind && other.name == complaint.name);
            if is_new && found.len() < MOST {
                found.push(complaint);
            }
        }
    }
    found
}

/// The command that the program itself says to run.
pub fn advice(stderr: &str) -> Option<Advice> {
    if stderr.trim().is_empty() {
        return None;
    }
    let text = plain(tail(stderr));
    forms().advice.iter().find_map(|(then, form)| {
        let run = form.captures(&text)?.name("run")?.as_str().trim().to_owned();
        Some(Advice { run, first: *then == Then::First })
    })
}

/// The names that the program itself offers, in its order.
pub fn offers(stderr: &str) -> Vec<String> {
    let text = plain(tail(stderr));
    let mut found: Vec<String> = Vec::new();
    if text.trim().is_empty() {
        return found;
    }
    for (behind, form) in &forms().offers {
        let mut is_behind = behind.is_none();
        for line in text.lines() {
            let name = form.captures(line).and_then(|captured| captured.name("name"));
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
    fn every_form_reads_its_own_examples_and_no_other() {
        let examples: Examples = toml::from_str(TEXT).unwrap();
        assert_eq!(forms().complaints.len(), examples.complaint.len(), "one does not compile");
        assert_eq!(forms().advice.len(), examples.advice.len());
        assert_eq!(forms().offers.len(), examples.offer.len());
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
        let text = format!("{}\nls: unrecognized option '--siez'\n", "é".repeat(LONGEST));
        assert_eq!(complaints(&text).len(), 1);
        assert!(tail(&"é".repeat(LONGEST)).len() <= LONGEST);
        assert_eq!(complaints("\u{1b}[31mcat: x: No such file or directory\u{1b}[0m")[0].name, "x");
    }
}
