//! Repairs a command that failed, without a model: from the command, what was complained and what is on this machine.
//!
//! [`diagnose`] is given what is known and tells a repair, or none; nothing is run. Each rule is a function from a [`Case`] to a
//! repair, and finds what it writes in a fact: a program on PATH, a flag of the installed manual, a path that is there, a branch
//! of the repository, a command that the program itself says to run.
//!
//! - [`complaint`]: what standard error says, by forms that are data. [`facts`]: this machine. `near`: the nearest name.
//! - `text`: what is wrong before a shell even parses it; `quote`: words that want quotes. `program`, `flag`, `verb`, `value`,
//!   `path`, `folder`, `permission`, `place`, `repository`, `advised`: one kind of mistake each.

mod advised;
pub mod complaint;
pub mod facts;
mod flag;
mod folder;
pub mod near;
mod path;
mod permission;
mod place;
mod program;
mod quote;
mod repository;
mod text;
mod value;
mod verb;

pub use facts::Facts;

use super::checks::edit::Edits;
use caro_shell::{Invocation, Script, Word, parse};
use complaint::{Complaint, Kind};

/// How often a repaired command is looked at again: a command may have more than one slip.
const ROUNDS: usize = 3;

/// A command that failed, and what is known of how.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Failed {
    /// The command, as it was typed.
    pub command: String,
    /// Its exit status, where it is known.
    pub status: Option<i32>,
    /// The exit statuses of the stages of its pipeline, where they are known.
    pub stages: Vec<i32>,
    /// Its standard error, where that is known.
    pub stderr: Option<String>,
}

impl Failed {
    /// The first stage that failed although the whole seems to have worked, from 0, with its status. One that was told to stop
    /// because nobody reads on (SIGPIPE) did not fail.
    pub fn masked(&self) -> Option<(usize, i32)> {
        const SIGPIPE: i32 = 141;
        let failed = |status: &i32| *status != 0 && *status != SIGPIPE;
        let at = self.stages.iter().position(failed)?;
        (self.status == Some(0) && at + 1 < self.stages.len()).then(|| (at, self.stages[at]))
    }
}

/// A kind of repair.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Class {
    /// A program's name.
    Program,
    /// The package of a program that is not installed.
    Package,
    /// A flag.
    Flag,
    /// A subcommand, a target, a script.
    Subcommand,
    /// A path.
    Path,
    /// Quotes.
    Quoting,
    /// Rights.
    Permission,
    /// A folder that is missing, or stands where a file is wanted, and the other way round.
    Folder,
    /// The folder that it is called in.
    Place,
    /// Another value of an option or operand.
    Value,
    /// A branch, tag or remote.
    Reference,
    /// A command that the program itself says to run.
    Advice,
    /// A port that is in use.
    Port,
    /// Signs that were typed or pasted beside the command.
    Typing,
}

/// A repaired command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repair {
    /// The command.
    pub command: String,
    /// The fault, in one line.
    pub why: String,
    /// The kind.
    pub class: Class,
}

/// A failed command with everything that a rule may look at.
struct Case<'a> {
    facts: &'a Facts<'a>,
    script: Script,
    complaints: Vec<Complaint>,
    stderr: &'a str,
    /// True if nothing was complained that is understood: then only facts speak.
    is_silent: bool,
}

type Rule = fn(&Case) -> Option<Repair>;

/// The rules; the first that has a repair has the say. What a program was told wrongly comes before what it was told about.
const RULES: [Rule; 19] = [
    text::prompt_sign,
    text::typography,
    text::open_quote,
    quote::special_letters,
    quote::patterns,
    quote::names_with_blanks,
    advised::advised,
    program::glued,
    program::unknown,
    verb::unknown,
    value::bad,
    value::expression,
    flag::unknown,
    place::project,
    permission::denied,
    folder::kinds,
    repository::unknown,
    path::missing,
    value::port,
];

/// The rules that a repaired command is looked at with once more, by facts alone.
const AGAIN: [Rule; 4] = [program::unknown, verb::unknown, flag::unknown, path::missing];

/// Finds a repair. Without standard error only what can be told from the command itself and this machine is repaired.
pub fn diagnose(failed: &Failed, facts: &Facts) -> Option<Repair> {
    let stderr = failed.stderr.as_deref().unwrap_or_default();
    let complaints = complaint::complaints(stderr);
    let is_silent = complaints.is_empty();
    let script = parse(&failed.command, facts.dialect);
    let case = Case { facts, script, complaints, stderr, is_silent };
    let mut repair = RULES.iter().find_map(|rule| rule(&case))?;
    for _ in 1..ROUNDS {
        let script = parse(&repair.command, facts.dialect);
        let again = Case { facts, script, complaints: Vec::new(), stderr: "", is_silent: true };
        let Some(more) = AGAIN.iter().find_map(|rule| rule(&again)) else { break };
        repair = Repair { command: more.command, why: format!("{}; {}", repair.why, more.why), class: repair.class };
    }
    (repair.command != failed.command).then_some(repair)
}

impl Case<'_> {
    /// The complaints of a kind.
    fn all(&self, kind: Kind) -> impl Iterator<Item = &Complaint> {
        self.complaints.iter().filter(move |complaint| complaint.kind == kind)
    }

    /// The first complaint of a kind.
    fn first(&self, kind: Kind) -> Option<&Complaint> {
        self.all(kind).next()
    }

    /// The text of the command.
    fn text(&self) -> &str {
        &self.script.text
    }

    /// The commands that run here, not on another machine.
    fn commands(&self) -> impl Iterator<Item = &Invocation> {
        self.script.commands.iter().filter(|command| !command.remote)
    }

    /// Every word of the commands, and every file that they are redirected to or from.
    fn words(&self) -> impl Iterator<Item = &Word> {
        let own = self.commands().flat_map(|command| {
            let files = command.redirects.iter().filter(|r| !r.duplicates() && !r.operator.contains("<<"));
            command.words.iter().chain(files.map(|redirect| &redirect.target))
        });
        own.chain(self.script.redirects.iter().map(|redirect| &redirect.target))
    }

    /// The word that a complaint is about: the same text, or the same path.
    fn word(&self, name: &str) -> Option<&Word> {
        if name.is_empty() {
            return None;
        }
        let path = self.facts.path(name);
        let is_same =
            |word: &&Word| word.text == name || word.value.as_deref().is_some_and(|v| self.facts.path(v) == path);
        self.words().find(|word| word.text == name).or_else(|| self.words().find(is_same))
    }

    /// The command that has a word, as its name or an argument.
    fn holder(&self, word: &Word) -> Option<&Invocation> {
        self.commands().find(|command| command.words.iter().any(|other| other.span == word.span))
    }

    /// The command that a complaint is from, by the name that the line begins with; else the only one there is.
    fn complainer(&self, line: &str) -> Option<&Invocation> {
        let named = self.commands().find(|command| {
            let name = command.name().unwrap_or_default();
            !name.is_empty() && line.starts_with(name) && !line[name.len()..].starts_with(|c: char| c.is_alphanumeric())
        });
        let mut all = self.commands();
        let only = all.next().xor(all.next());
        named.or(only)
    }

    /// Changes to the command.
    fn edits(&self) -> Edits<'_> {
        Edits::new(&self.script)
    }

    /// A word as the shell reads it in one piece.
    fn quoted(&self, text: &str) -> String {
        // a tilde is the shell's
        match text.strip_prefix("~/") {
            Some(rest) => format!("~/{}", caro_shell::quote(rest, self.facts.dialect)),
            None => caro_shell::quote(text, self.facts.dialect),
        }
    }
}

/// A repair, if the changes hold.
fn repair(class: Class, edits: Edits<'_>, why: impl Into<String>) -> Option<Repair> {
    Some(Repair { command: edits.done()?, why: why.into(), class })
}

#[cfg(test)]
mod tests;
