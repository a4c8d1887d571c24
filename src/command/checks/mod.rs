//! Finds errors in a command, with evidence and without a model.
//!
//! Each check is a function from a [`CheckContext`] to findings. A check must make sense to a user who has never seen
//! our test tasks, and reports nothing rather than a false error. [`facts`] compares the command with the machine, its
//! manuals and its files; [`request`] compares it with the request, in general terms, and may use `facts`, but not the
//! other way round. [`edit`] edits the text of a command; [`words`] splits a request into English words.
//!
//! A wording that occurs in a single request is no reason for a check: that is a matter of training the model.

pub(crate) mod absent;
pub(crate) mod edit;
mod facts;
mod request;
pub(crate) mod torn;
mod words;

pub use facts::programs::ID as NOT_INSTALLED;
pub(crate) use facts::verbs::misspelled;
pub(super) use facts::{WAITS, cells, first_lines, prose, separator_of, syntax};
pub(super) use words::{asks_for_number, without_punctuation};

use caro_base::iter::only;
use caro_host::ExecutionContext;
use caro_manual::Entry;
use caro_shell::find::starting_points;
use caro_shell::{Dialect, Finding, Invocation, Script, Severity, Target};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

/// A command with everything that the checks may read.
#[derive(Debug)]
pub struct CheckContext<'a> {
    /// The request that the command answers; empty for `caro check`.
    pub request: &'a str,
    /// The command.
    pub script: &'a Script,
    /// The system that it is written for.
    pub target: Target,
    /// The shell that it is written for.
    pub dialect: Dialect,
    /// The facts of this machine, if the command is written for it.
    pub context: Option<&'a ExecutionContext>,
    /// The working directory of the command, if it is on this machine.
    pub cwd: Option<&'a Path>,
    /// The manuals that were found, by program name.
    pub manuals: &'a BTreeMap<String, Arc<Entry>>,
}

impl CheckContext<'_> {
    /// Returns the manual of an invocation, and the number of arguments up to the subcommand that it is about
    /// (`git log` has a page of its own).
    fn manual_of(&self, command: &Invocation) -> Option<(&Entry, usize)> {
        let name = command.name()?;
        let whole = self.manuals.get(name)?;
        let args: Vec<&str> = command.args().iter().map(|w| w.text.as_str()).collect();
        let sub =
            whole.subcommand_at(&args).and_then(|at| Some((self.manuals.get(&format!("{name} {}", args[at]))?, at)));
        Some(sub.map_or((&**whole, 0), |(entry, at)| (&**entry, at + 1)))
    }
}

/// A check, by the number of findings that it may return.
enum Check {
    /// Returns all findings against a script.
    All(fn(&CheckContext) -> Vec<Finding>),
    /// Returns at most one finding against a script.
    One(fn(&CheckContext) -> Option<Finding>),
    /// Returns at most one finding against each command of a script.
    Each(fn(&CheckContext, &Invocation) -> Option<Finding>),
}

impl Check {
    fn run(&self, cx: &CheckContext) -> Vec<Finding> {
        match self {
            Self::All(check) => check(cx),
            Self::One(check) => check(cx).into_iter().collect(),
            Self::Each(check) => cx.script.commands.iter().filter_map(|command| check(cx, command)).collect(),
        }
    }
}

/// Reads a text file of at most `most` bytes; `None` for anything else.
pub(super) fn read_text(file: &Path, most: u64) -> Option<String> {
    let meta = file.metadata().ok().filter(|meta| meta.is_file() && meta.len() <= most)?;
    let mut text = String::with_capacity(meta.len() as usize);
    File::open(file).ok()?.take(most).read_to_string(&mut text).ok()?;
    Some(text)
}

/// Reads at most the first `most` bytes of a regular file; `None` for anything else, as opening a named pipe would
/// block.
fn read_prefix(file: &Path, most: u64) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    file.metadata().ok().filter(|meta| meta.is_file())?;
    File::open(file).ok()?.take(most).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

/// Returns the names of what is in a folder, at most so many of them, in order.
fn names_in(folder: &Path, most: usize) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().take(most).flatten();
    let mut names: Vec<String> = entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort_unstable();
    names
}

/// Returns the only `find` of a script; with several, it is not clear which one the request is about.
fn single_find(script: &Script) -> Option<&Invocation> {
    let finds = script.commands.iter().filter(|c| c.name() == Some("find"));
    only(finds)
}

/// Returns the place of the first call of a program in the text of a script.
fn span_of_call(script: &Script, name: &str) -> Option<Range<usize>> {
    let call = script.commands.iter().find(|c| c.name() == Some(name))?;
    Some(call.words.first()?.span.clone())
}

/// True for a file that the script itself may create: it is the target of a redirection, or an argument of another
/// command.
fn is_written_before(script: &Script, command: &Invocation, name: &str) -> bool {
    let names = |c: &&Invocation| !std::ptr::eq(*c, command) && c.args().iter().any(|w| w.text == name);
    script.commands.iter().flat_map(|c| &c.redirects).any(|r| r.target.text == name)
        || script.commands.iter().any(|c| names(&c))
}

/// Runs all checks on a command, and returns the findings, the most serious first.
pub fn run(cx: &CheckContext) -> Vec<Finding> {
    let mut findings = syntax::check(cx);
    // the other checks would misread a command that does not parse
    if findings.is_empty() {
        // the Unix checks do not apply to PowerShell, which has other programs of the same names
        let is_unix = cx.dialect != Dialect::PowerShell;
        let lists = [(facts::ANY, true), (request::UNIX, is_unix), (facts::UNIX, is_unix), (request::ANY, true)];
        for (checks, _) in lists.into_iter().filter(|(_, applies)| *applies) {
            findings.extend(checks.iter().flat_map(|check| check.run(cx)));
        }
    }
    findings.sort_by_key(|f| std::cmp::Reverse(f.severity));
    findings
}

/// Returns the total weight of findings; 0 for a clean command. An error outweighs 99 warnings, a warning 99 hints.
pub fn weight(findings: &[Finding]) -> u32 {
    findings
        .iter()
        .map(|f| match f.severity {
            Severity::Error => 10_000,
            Severity::Warning => 100,
            Severity::Hint => 1,
        })
        .sum()
}

#[cfg(all(test, unix))]
mod here_tests;
#[cfg(test)]
mod lists_tests;
#[cfg(test)]
mod tests {
    use super::*;

    /// A function that is a check of one of the kinds of [`Check`].
    pub(super) trait AnyCheck<Kind> {
        fn findings(&self, cx: &CheckContext) -> Vec<Finding>;
    }

    impl<F: Fn(&CheckContext) -> R, R: IntoIterator<Item = Finding>> AnyCheck<(R,)> for F {
        fn findings(&self, cx: &CheckContext) -> Vec<Finding> {
            self(cx).into_iter().collect()
        }
    }

    impl<F: Fn(&CheckContext, &Invocation) -> Option<Finding>> AnyCheck<()> for F {
        fn findings(&self, cx: &CheckContext) -> Vec<Finding> {
            cx.script.commands.iter().filter_map(|command| self(cx, command)).collect()
        }
    }

    impl<'a> CheckContext<'a> {
        /// Creates the context of a bash command for Linux, without manuals.
        pub(super) fn on_linux(request: &'a str, script: &'a Script) -> Self {
            static NO_MANUALS: BTreeMap<String, Arc<Entry>> = BTreeMap::new();
            let (target, dialect) = (Target::ALL[0].1, Dialect::Bash);
            Self { request, script, target, dialect, context: None, cwd: None, manuals: &NO_MANUALS }
        }
    }

    /// Runs one check on a bash command for Linux, without manuals.
    pub(super) fn findings<Kind>(check: impl AnyCheck<Kind>, request: &str, command: &str) -> Vec<Finding> {
        findings_on(None, check, request, command)
    }

    /// Runs one check on a bash command for this machine, on which only these programs are installed.
    pub(super) fn findings_among<Kind>(
        programs: &[&str],
        check: impl AnyCheck<Kind>,
        request: &str,
        command: &str,
    ) -> Vec<Finding> {
        let mut context = ExecutionContext::detect(None);
        context.available_commands = programs.iter().map(|p| ((*p).to_owned(), format!("/bin/{p}").into())).collect();
        findings_on(Some(&context), check, request, command)
    }

    fn findings_on<Kind>(
        context: Option<&ExecutionContext>,
        check: impl AnyCheck<Kind>,
        request: &str,
        command: &str,
    ) -> Vec<Finding> {
        let script = caro_shell::parse(command, Dialect::Bash);
        check.findings(&CheckContext { context, ..CheckContext::on_linux(request, &script) })
    }

    #[test]
    fn the_place_of_a_program_is_that_of_its_call() {
        let place = |id: &str, request: &str, command: &str| {
            findings_among(&["echo"], run, request, command).into_iter().find(|f| f.id == id).and_then(|f| f.span)
        };
        assert_eq!(place(NOT_INSTALLED, "", "echo frob '; frob' && frob x"), Some(22..26));
        assert_eq!(place(prose::ID, "say something", "A='Plato, x' Plato, Aristotle"), Some(13..19));
    }

    #[test]
    fn an_error_outweighs_warnings_and_they_outweigh_hints() {
        let of = |severity| Finding {
            id: String::new(),
            severity,
            token: String::new(),
            span: None,
            why: String::new(),
            evidence: Vec::new(),
            fix: None,
        };
        let many = |severity, n| weight(&vec![of(severity); n]);
        assert!(many(Severity::Error, 1) > many(Severity::Warning, 20));
        assert!(many(Severity::Warning, 1) > many(Severity::Hint, 20));
        assert_eq!(weight(&[]), 0);
    }
}
