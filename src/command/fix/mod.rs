//! Repairs a command that failed, without a model: from the command, its error messages, and the facts of this
//! machine.
//!
//! [`diagnose`] takes these and returns a repair, if there is one; nothing is run. Each rule is a function from a
//! [`Case`] to a repair, and takes what it writes from a fact: a program on PATH, a flag of the installed manual, a
//! path that exists, a branch of the repository, a command that the program itself says to run.
//!
//! - [`complaint`]: parses standard error, by patterns from a file. [`facts`]: reads this machine. `near`: finds the
//!   nearest name.
//! - `absence`: finds what is missing, where no rule knows what was meant.
//! - `text`: faults in the text before it is parsed. `quote`: words that need quotes. `program`, `flag`, `verb`,
//!   `value`, `path`, `folder`, `permission`, `place`, `repository`, `advised`: one kind of mistake each.

mod absence;
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

pub use absence::{Absent, absent};
pub use facts::Facts;

use super::checks::absent;
use super::checks::edit::Edits;
use caro_shell::{Invocation, Script, Word, parse};
use complaint::{Complaint, Kind};

/// Most rounds of repair, as a command may have more than one mistake.
const MAX_ROUNDS: usize = 3;

/// A command that failed, with its exit status and standard error.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Failed {
    /// The command, as it was typed.
    pub command: String,
    /// Its exit status, if it is known.
    pub status: Option<i32>,
    /// The exit statuses of the stages of its pipeline, if they are known.
    pub stages: Vec<i32>,
    /// Its standard error, if it is known.
    pub stderr: Option<String>,
}

impl Failed {
    /// Returns the index, from 0, and the status of the first stage that failed although the whole pipeline
    /// succeeded. A stage that ended by SIGPIPE, because its reader stopped, did not fail.
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
    /// A subcommand, a target or a script.
    Subcommand,
    /// A path.
    Path,
    /// Quotes.
    Quoting,
    /// Permissions.
    Permission,
    /// A folder that is missing, or a folder in place of a file or the other way round.
    Folder,
    /// The working directory of the command.
    Place,
    /// Another value of an option or operand.
    Value,
    /// A branch, tag or remote.
    Reference,
    /// A command that the program itself says to run.
    Advice,
    /// A port that is in use.
    Port,
    /// Characters that were mistyped, or pasted along with the command.
    Typing,
}

/// A repaired command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repair {
    /// The command.
    pub command: String,
    /// The fault, in one line.
    pub why: String,
    /// The kind of repair.
    pub class: Class,
}

/// A failed command with everything that a rule may read.
struct Case<'a> {
    facts: &'a Facts<'a>,
    script: Script,
    complaints: Vec<Complaint>,
    stderr: &'a str,
    /// True if no complaint was recognized, so that only the facts of the machine count.
    is_silent: bool,
}

type Rule = fn(&Case) -> Option<Repair>;

/// The rules in order; the first that returns a repair decides. Programs and options come before the paths that they
/// are given.
const RULES: [Rule; 19] = [
    text::prompt_sign,
    text::typography,
    text::open_quote,
    quote::special_letters,
    quote::patterns,
    quote::names_with_blanks,
    advised::advised_command,
    program::misplaced_blank,
    program::unknown,
    verb::unknown,
    value::invalid,
    value::expression,
    flag::unknown,
    place::project,
    permission::denied,
    folder::wrong_kind,
    repository::unknown,
    path::missing,
    value::port,
];

/// The rules for further mistakes in a repaired command, by facts alone.
const FURTHER_RULES: [Rule; 4] = [program::unknown, verb::unknown, flag::unknown, path::missing];

/// Finds a repair. Without standard error, it is found from the command itself and the facts of this machine.
pub fn diagnose(failed: &Failed, facts: &Facts) -> Option<Repair> {
    let stderr = failed.stderr.as_deref().unwrap_or_default();
    let complaints = complaint::complaints(stderr);
    let is_silent = complaints.is_empty();
    let script = parse(&failed.command, facts.dialect);
    let case = Case { facts, script, complaints, stderr, is_silent };
    let mut repair = RULES.iter().find_map(|rule| rule(&case))?;
    for _ in 1..MAX_ROUNDS {
        let script = parse(&repair.command, facts.dialect);
        let again = Case { facts, script, complaints: Vec::new(), stderr: "", is_silent: true };
        let Some(more) = FURTHER_RULES.iter().find_map(|rule| rule(&again)) else { break };
        repair = Repair { command: more.command, why: format!("{}; {}", repair.why, more.why), class: repair.class };
    }
    (repair.command != failed.command).then_some(repair)
}

impl Case<'_> {
    /// Returns the complaints of a kind.
    fn all(&self, kind: Kind) -> impl Iterator<Item = &Complaint> {
        self.complaints.iter().filter(move |complaint| complaint.kind == kind)
    }

    /// Returns the first complaint of a kind.
    fn first(&self, kind: Kind) -> Option<&Complaint> {
        self.all(kind).next()
    }

    /// Returns the text of the command.
    fn text(&self) -> &str {
        &self.script.text
    }

    /// Returns the commands that run on this machine.
    fn commands(&self) -> impl Iterator<Item = &Invocation> {
        self.script.commands.iter().filter(|command| !command.remote)
    }

    /// Returns every word of the commands, and every file that they are redirected to or from.
    fn words(&self) -> impl Iterator<Item = &Word> {
        absent::words(&self.script)
    }

    /// Returns the word that a complaint names: the same text, or the same path.
    fn word(&self, name: &str) -> Option<&Word> {
        if name.is_empty() {
            return None;
        }
        let path = self.facts.path(name);
        let is_same =
            |word: &&Word| word.text == name || word.value.as_deref().is_some_and(|v| self.facts.path(v) == path);
        self.words().find(|word| word.text == name).or_else(|| self.words().find(is_same))
    }

    /// Returns the command that contains a word, as its name or an argument.
    fn holder(&self, word: &Word) -> Option<&Invocation> {
        self.commands().find(|command| command.words.iter().any(|other| other.span == word.span))
    }

    /// Returns the command that wrote a complaint, by the name at the beginning of the line; else the only command,
    /// if there is one.
    fn complainer(&self, line: &str) -> Option<&Invocation> {
        let named = self.commands().find(|command| {
            let name = command.name().unwrap_or_default();
            !name.is_empty() && line.starts_with(name) && !line[name.len()..].starts_with(|c: char| c.is_alphanumeric())
        });
        let mut all = self.commands();
        let only = all.next().xor(all.next());
        named.or(only)
    }

    /// Returns an empty list of edits to the command.
    fn edits(&self) -> Edits<'_> {
        Edits::new(&self.script)
    }

    /// Quotes a word for the shell.
    fn quoted(&self, text: &str) -> String {
        // the tilde stays unquoted, so that the shell expands it
        match text.strip_prefix("~/") {
            Some(rest) => format!("~/{}", caro_shell::quote(rest, self.facts.dialect)),
            None => caro_shell::quote(text, self.facts.dialect),
        }
    }
}

/// Makes a repair of edits; `None` if they cannot be applied.
fn repair(class: Class, edits: Edits<'_>, why: impl Into<String>) -> Option<Repair> {
    Some(Repair { command: edits.apply()?, why: why.into(), class })
}

#[cfg(test)]
mod tests;
