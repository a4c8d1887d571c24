//! Reads the conditions of a command: the tests of `find`, the filters of other programs, and the folders and files
//! that they look at.

use caro_shell::find::{is_narrowing_test, starting_points};
use caro_shell::{Invocation, Script, Word};

/// The property of a file or line that a condition is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Family {
    /// Its name or its path.
    Name,
    /// Its time.
    Time,
    /// Its size.
    Size,
    /// Its owner or group.
    Owner,
    /// Its permissions.
    Mode,
    /// Its depth below the folder.
    Depth,
    /// Its type.
    Type,
    /// A thing that is left out.
    Excluded,
    /// A text that is searched for.
    Pattern,
    /// The folder or file that is looked at.
    Folder,
    /// Another property.
    Other,
}

/// The part of a command that a condition was read from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Origin {
    /// A test of `find`.
    Test,
    /// A starting point of `find`.
    Start,
    /// A filter option of another program.
    Option,
    /// The pattern of a `grep`.
    Pattern,
    /// A file or folder of another program.
    Operand,
}

/// An option and its value, if it has one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Test {
    pub(super) option: String,
    pub(super) value: Option<String>,
}

/// A condition of a command.
#[derive(Debug, Clone)]
pub(super) struct Condition {
    /// The program that has it.
    pub(super) program: String,
    pub(super) family: Family,
    pub(super) origin: Origin,
    /// As written.
    pub(super) text: String,
    /// The tests of a group in brackets; one otherwise.
    pub(super) tests: Vec<Test>,
    /// True if it is one of several branches (`-o`), so that it cannot be moved.
    pub(super) has_branches: bool,
}

/// Programs, their filters with a value, and those that are flags, short and long.
type Filters = (&'static [&'static str], &'static [&'static str], &'static [(char, &'static str)]);

/// Programs with their filters: options with a value, and flags.
const FILTERS: &[Filters] = &[
    (
        &["grep", "egrep", "fgrep", "zgrep"],
        &["--include", "--exclude", "--exclude-dir"],
        &[('v', "invert-match"), ('w', "word-regexp"), ('x', "line-regexp")],
    ),
    (&["rg"], &["-g", "--glob", "-t", "--type", "-T", "--type-not"], &[('v', "invert-match"), ('w', "word-regexp")]),
    (&["du"], &["--exclude", "--threshold", "-t", "-d", "--max-depth"], &[]),
    (&["tree"], &["-I", "-P", "-L"], &[]),
    (&["ls"], &["-I", "--ignore", "--hide"], &[]),
    (&["tar", "rsync"], &["--exclude", "--exclude-from", "--include"], &[]),
    (&["git"], &["--since", "--until", "--after", "--before", "--author", "--grep"], &[]),
    (&["journalctl"], &["-u", "--unit", "-p", "--priority", "--since", "--until"], &[]),
    (&["docker", "podman"], &["-f", "--filter"], &[]),
    (&["ps"], &["-u", "-U", "-C"], &[]),
    (&["fd", "fdfind"], &["-e", "--extension", "-E", "--exclude", "-S", "--size", "-d", "--max-depth"], &[]),
];

/// Programs whose operands are the files and folders that they look at.
const LOOKERS: [&str; 6] = ["ls", "du", "tree", "wc", "stat", "cat"];

/// The programs that print the lines with a text.
const GREPS: [&str; 5] = ["grep", "egrep", "fgrep", "zgrep", "rg"];

/// Tests of `find` without a value.
const FLAGS: [&str; 6] = ["-empty", "-nouser", "-nogroup", "-executable", "-readable", "-writable"];

/// Returns the conditions of a script in their order.
pub(super) fn of(script: &Script) -> Vec<Condition> {
    let mut found = Vec::new();
    for command in script.commands.iter().filter(|c| !c.remote) {
        match command.name() {
            Some("find") => {
                found.extend(starting_points(command).filter_map(|word| folder("find", Origin::Start, word)));
                found.extend(of_find(command));
            }
            Some(name) => {
                found.extend(filters(name, command));
                if let Some(pattern) = pattern(name, command) {
                    found.push(pattern);
                }
                if LOOKERS.contains(&name) {
                    found.extend(command.operands().filter_map(|word| folder(name, Origin::Operand, word)));
                }
            }
            None => {}
        }
    }
    found
}

/// True if a `find` has branches outside of brackets.
pub(super) fn has_branches(search: &Invocation) -> bool {
    let mut depth = 0_usize;
    for word in search.args() {
        match word.text.as_str() {
            "(" => depth += 1,
            ")" => depth = depth.saturating_sub(1),
            "-o" | "-or" | "," if depth == 0 => return true,
            _ => {}
        }
    }
    false
}

fn of_find(search: &Invocation) -> Vec<Condition> {
    let (words, has_branches) = (&search.words, has_branches(search));
    let mut found = Vec::new();
    let (mut at, mut negation) = (1, None);
    while let Some(word) = words.get(at) {
        let end = match word.text.as_str() {
            "!" | "-not" => {
                negation = Some(at);
                at += 1;
                continue;
            }
            "(" => close(words, at),
            "-exec" | "-execdir" | "-ok" | "-okdir" => body_end(words, at),
            "-printf" | "-fprint" => at + 1,
            text => at + usize::from(takes_value(text)),
        };
        let tests = tests(words.get(at..=end).unwrap_or_default());
        if !word.text.starts_with("-exec")
            && let Some(first) = tests.first()
        {
            let is_pruned = words.get(end + 1).is_some_and(|next| next.text == "-prune");
            let raw: Vec<&str> = words[negation.unwrap_or(at)..=end].iter().map(|w| w.raw.as_str()).collect();
            found.push(Condition {
                program: "find".into(),
                family: if negation.is_some() || is_pruned { Family::Excluded } else { family(&first.option) },
                origin: Origin::Test,
                text: raw.join(" "),
                tests,
                has_branches,
            });
        }
        (at, negation) = (end + 1, None);
    }
    found
}

/// Returns the index of the bracket that closes the one at `open`, or of the last word.
fn close(words: &[Word], open: usize) -> usize {
    let mut depth = 0_usize;
    for (at, word) in words.iter().enumerate().skip(open) {
        match word.text.as_str() {
            "(" => depth += 1,
            ")" if depth == 1 => return at,
            ")" => depth -= 1,
            _ => {}
        }
    }
    words.len() - 1
}

/// Returns the index of the word that ends the command of an `-exec`.
fn body_end(words: &[Word], exec: usize) -> usize {
    let end = words.iter().skip(exec).position(|w| matches!(w.text.as_str(), ";" | "+"));
    end.map_or(words.len() - 1, |end| exec + end)
}

fn tests(words: &[Word]) -> Vec<Test> {
    let is_test = |w: &Word| takes_value(&w.text) || FLAGS.contains(&w.text.as_str());
    let mut found = Vec::new();
    let mut rest = words.iter();
    while let Some(word) = rest.next() {
        if is_test(word) {
            let value = if takes_value(&word.text) { rest.next().map(|w| w.text.clone()) } else { None };
            found.push(Test { option: word.text.clone(), value });
        }
    }
    found
}

/// True for a test or a limit of `find` with one value.
fn takes_value(word: &str) -> bool {
    let is_other = matches!(word, "-type" | "-maxdepth" | "-mindepth" | "-uid" | "-gid" | "-iwholename" | "-lname");
    is_other || word.starts_with("-newer") || is_narrowing_test(word) && !FLAGS.contains(&word)
}

fn family(option: &str) -> Family {
    match option.trim_start_matches('-') {
        "name" | "iname" | "path" | "ipath" | "wholename" | "iwholename" | "regex" | "iregex" | "lname" | "include"
        | "g" | "glob" | "P" | "e" | "extension" => Family::Name,
        "mtime" | "mmin" | "atime" | "amin" | "ctime" | "cmin" | "since" | "until" | "after" | "before" => Family::Time,
        "size" | "empty" | "threshold" | "S" => Family::Size,
        "user" | "group" | "nouser" | "nogroup" | "uid" | "gid" | "author" => Family::Owner,
        "perm" | "executable" | "readable" | "writable" => Family::Mode,
        "maxdepth" | "mindepth" | "max-depth" | "d" | "L" => Family::Depth,
        "type" | "xtype" => Family::Type,
        "grep" => Family::Pattern,
        name if name.starts_with("newer") => Family::Time,
        name if name.starts_with("exclude") || matches!(name, "I" | "ignore" | "hide" | "E") => Family::Excluded,
        _ => Family::Other,
    }
}

/// Returns the filters of a program other than `find`.
fn filters(name: &str, command: &Invocation) -> Vec<Condition> {
    let Some((_, valued, flags)) = FILTERS.iter().find(|(programs, ..)| programs.contains(&name)) else {
        return Vec::new();
    };
    let condition = |family, text: String, option: &str, value: Option<String>| Condition {
        program: name.to_owned(),
        family,
        origin: Origin::Option,
        text,
        tests: vec![Test { option: option.to_owned(), value }],
        has_branches: false,
    };
    let mut found = Vec::new();
    let args = command.args();
    for (at, word) in args.iter().enumerate() {
        match word.text.split_once('=') {
            Some((option, value)) if valued.contains(&option) => {
                found.push(condition(family(option), word.raw.clone(), option, Some(value.to_owned())));
            }
            None if valued.contains(&word.text.as_str()) => {
                if let Some(value) = args.get(at + 1) {
                    let text = format!("{} {}", word.raw, value.raw);
                    found.push(condition(family(&word.text), text, &word.text, Some(value.text.clone())));
                }
            }
            _ => {}
        }
    }
    let set = flags.iter().filter(|(letter, long)| command.has_option(Some(*letter), long));
    found.extend(set.map(|(letter, _)| condition(Family::Other, format!("-{letter}"), &format!("-{letter}"), None)));
    found
}

/// Returns the pattern of a `grep`.
fn pattern(name: &str, command: &Invocation) -> Option<Condition> {
    let named = command.has_option(Some('e'), "regexp") || command.has_option(Some('f'), "file");
    if !GREPS.contains(&name) || named {
        return None;
    }
    let word = command.operands().next()?;
    Some(Condition {
        program: name.to_owned(),
        family: if command.has_option(Some('v'), "invert-match") { Family::Excluded } else { Family::Pattern },
        origin: Origin::Pattern,
        text: word.raw.clone(),
        tests: vec![Test { option: String::new(), value: Some(word.text.clone()) }],
        has_branches: false,
    })
}

/// Returns a folder or file that is looked at, unless it is the working directory or everything in it.
fn folder(program: &str, origin: Origin, word: &Word) -> Option<Condition> {
    let is_name = word.text.chars().any(char::is_alphabetic) || matches!(word.text.as_str(), "/" | "~" | "..");
    is_name.then(|| Condition {
        program: program.to_owned(),
        family: Family::Folder,
        origin,
        text: word.raw.clone(),
        tests: vec![Test { option: String::new(), value: Some(word.text.clone()) }],
        has_branches: false,
    })
}

impl Condition {
    /// True if it says the same as another.
    pub(super) fn is(&self, other: &Self) -> bool {
        self.family == other.family && self.tests.iter().map(|t| &t.value).eq(other.tests.iter().map(|t| &t.value))
    }

    /// True if a file has one value of the property, so that a command seldom has two conditions on it.
    pub(super) fn is_single(&self) -> bool {
        matches!(self.family, Family::Time | Family::Size | Family::Owner | Family::Mode | Family::Depth | Family::Type)
    }

    /// True if it must hold in a command of another program, too.
    pub(super) fn outlives_program(&self) -> bool {
        match self.origin {
            Origin::Test => !matches!(self.family, Family::Depth | Family::Type),
            Origin::Pattern | Origin::Start => true,
            Origin::Option | Origin::Operand => false,
        }
    }

    /// True if the script has each of its tests.
    pub(super) fn is_kept(&self, script: &Script) -> bool {
        self.tests.iter().all(|test| self.has_test(test, script))
    }

    fn has_test(&self, test: &Test, script: &Script) -> bool {
        let Some(value) = &test.value else {
            let letter = if test.option.len() == 2 { test.option.chars().nth(1) } else { None };
            let of_program = |c: &Invocation| c.name() == Some(&self.program) && c.has_option(letter, "");
            return texts(script).any(|text| text == test.option)
                || letter.is_some() && script.commands.iter().any(of_program);
        };
        match self.family {
            Family::Name | Family::Excluded | Family::Pattern | Family::Folder => {
                let core = core(value);
                texts(script).any(|text| text.replace('\\', "").to_lowercase().contains(&core))
            }
            _ => texts(script)
                .any(|text| text == *value || text.split_once('=').is_some_and(|(_, right)| right == value.as_str())),
        }
    }
}

/// Returns every word of a script, and the files that it is redirected to or from.
fn texts(script: &Script) -> impl Iterator<Item = &str> {
    let words = script.commands.iter().flat_map(|c| c.words.iter().chain(c.redirects.iter().map(|r| &r.target)));
    words.chain(script.assignments.iter().map(|a| &a.value)).map(|w| w.text.as_str())
}

/// Returns the longest piece of a name or pattern without wildcards, in lower case: `.log` of `*.log`, `vendor` of
/// `*/vendor/*`.
pub(super) fn core(value: &str) -> String {
    let plain = value.replace('\\', "");
    let home = plain.strip_prefix("$HOME").map(|rest| format!("~{rest}")).unwrap_or(plain);
    let pieces = home.split(|c: char| "*?[](){}|^$+".contains(c)).map(|piece| {
        let piece = piece.strip_prefix("./").unwrap_or(piece);
        if piece.len() > 1 { piece.trim_matches('/') } else { piece }
    });
    pieces.max_by_key(|piece| piece.len()).unwrap_or_default().to_lowercase()
}
