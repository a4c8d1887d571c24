//! What is wrong with a command, told with evidence and without a model.
//!
//! Each check is one function from a [`CheckContext`] to findings. A check makes sense to a user who has never seen our task
//! files, and rather stays silent than accuses wrongly. [`facts`] is true of a command whatever was asked; [`request`] holds
//! what was asked against the command, in general terms, and may use `facts`, not the other way round. [`edit`] mends a
//! command as text, [`words`] reads a request as plain English words.
//!
//! A wording that only one request has is no matter of a check: that is taught to the model.

pub(crate) mod edit;
mod facts;
mod request;
mod words;

pub use facts::programs::ID as NOT_INSTALLED;
pub(super) use facts::{WAITS, begin, cells, prose, separated_by, syntax};
pub(super) use request::{asks_for_number, in_place, saved};

use caro_host::ExecutionContext;
use caro_manual::Entry;
use caro_shell::{Dialect, Finding, Invocation, Script, Severity, Target, Word};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

/// A command with everything the checks may look at.
#[derive(Debug)]
pub struct CheckContext<'a> {
    /// The request that it answers; empty for `caro check`.
    pub request: &'a str,
    /// The command.
    pub script: &'a Script,
    /// The machine it is written for.
    pub target: Target,
    /// The shell it is written for.
    pub dialect: Dialect,
    /// This machine, where the command is written for it.
    pub context: Option<&'a ExecutionContext>,
    /// The folder that it will run in, where that is of this machine: what the request names may be there.
    pub cwd: Option<&'a Path>,
    /// The manuals at hand, by program name.
    pub manuals: &'a BTreeMap<String, Arc<Entry>>,
}

impl CheckContext<'_> {
    /// The manual of an invocation, and how many of its arguments name the subcommand that the manual is about
    /// (`git log` has its own page).
    fn manual_of(&self, command: &Invocation) -> Option<(&Entry, usize)> {
        let name = command.name()?;
        let whole = self.manuals.get(name)?;
        let args: Vec<&str> = command.args().iter().map(|w| w.text.as_str()).collect();
        let sub =
            whole.subcommand_at(&args).and_then(|at| Some((self.manuals.get(&format!("{name} {}", args[at]))?, at)));
        Some(sub.map_or((&**whole, 0), |(entry, at)| (&**entry, at + 1)))
    }
}

/// Tells what is wrong with a command.
type Check = fn(&CheckContext) -> Vec<Finding>;

/// The one there is; nothing of several, of which it is not clear which is meant.
fn only<T>(mut all: impl Iterator<Item = T>) -> Option<T> {
    all.next().filter(|_| all.next().is_none())
}

/// The text of a file that is no longer than that; nothing of what is no file, or no text.
pub(super) fn read(file: &Path, most: u64) -> Option<String> {
    let meta = file.metadata().ok().filter(|meta| meta.is_file() && meta.len() <= most)?;
    let mut text = String::with_capacity(meta.len() as usize);
    File::open(file).ok()?.take(most).read_to_string(&mut text).ok()?;
    Some(text)
}

/// The first bytes of a file, so many at most; nothing of what is no file: opening a pipe waits for its other end.
fn beginning(file: &Path, most: u64) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    file.metadata().ok().filter(|meta| meta.is_file())?;
    File::open(file).ok()?.take(most).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

/// The one `find` of a script; with several, it is not clear which of them the request is about.
fn find(script: &Script) -> Option<&Invocation> {
    let finds = script.commands.iter().filter(|c| c.name() == Some("find"));
    only(finds)
}

/// Where a `find` starts: what stands behind its options on links, and before its first test.
fn starting_points(search: &Invocation) -> impl Iterator<Item = &Word> {
    let is_option = |w: &&Word| matches!(w.text.as_str(), "-H" | "-L" | "-P");
    search.args().iter().skip_while(is_option).take_while(|w| !w.text.starts_with(['-', '(', '!', ')', ',']))
}

/// True for a file that the script itself may have written before: it is redirected to, or another command than this one
/// has it as an argument.
fn made(script: &Script, command: &Invocation, name: &str) -> bool {
    let names = |c: &&Invocation| !std::ptr::eq(*c, command) && c.args().iter().any(|w| w.text == name);
    script.commands.iter().flat_map(|c| &c.redirects).any(|r| r.target.text == name)
        || script.commands.iter().any(|c| names(&c))
}

/// Everything that the checks have against a command, heaviest first.
pub fn run(it: &CheckContext) -> Vec<Finding> {
    let mut findings = syntax::check(it);
    // what does not parse would only draw nonsense from the rest
    if findings.is_empty() {
        // these know the Unix tools; PowerShell has other programs of the same names
        let is_unix = it.dialect != Dialect::PowerShell;
        let lists = [(facts::ANY, true), (request::UNIX, is_unix), (facts::UNIX, is_unix), (request::ANY, true)];
        for (checks, _) in lists.into_iter().filter(|(_, applies)| *applies) {
            findings.extend(checks.iter().flat_map(|check| check(it)));
        }
    }
    findings.sort_by_key(|f| std::cmp::Reverse(f.severity));
    findings
}

/// How much all findings weigh together; 0 is a clean command. An error outweighs any number of warnings a command of
/// reasonable length can draw, a warning any number of hints.
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

#[cfg(test)]
mod lists_tests;
#[cfg(test)]
mod tests {
    use super::*;

    /// What one check has against a bash command for Linux, with no manuals at hand.
    pub(super) fn findings(check: fn(&CheckContext) -> Vec<Finding>, request: &str, command: &str) -> Vec<Finding> {
        findings_in(None, check, request, command)
    }

    /// The same of one that is for this machine, where these are all its programs.
    pub(super) fn findings_among(
        programs: &[&str],
        check: fn(&CheckContext) -> Vec<Finding>,
        request: &str,
        command: &str,
    ) -> Vec<Finding> {
        let mut context = ExecutionContext::detect(None);
        context.available_commands = programs.iter().map(|p| ((*p).to_owned(), format!("/bin/{p}").into())).collect();
        let script = caro_shell::parse(command, Dialect::Bash);
        let (target, dialect, context) = (Target::ALL[0].1, Dialect::Bash, Some(&context));
        check(&CheckContext {
            request,
            script: &script,
            target,
            dialect,
            context,
            cwd: None,
            manuals: &BTreeMap::new(),
        })
    }

    /// The same of one that is to run in a folder.
    pub(super) fn findings_in(
        cwd: Option<&Path>,
        check: fn(&CheckContext) -> Vec<Finding>,
        request: &str,
        command: &str,
    ) -> Vec<Finding> {
        let script = caro_shell::parse(command, Dialect::Bash);
        let (target, dialect) = (Target::ALL[0].1, Dialect::Bash);
        check(&CheckContext {
            request,
            script: &script,
            target,
            dialect,
            context: None,
            cwd,
            manuals: &BTreeMap::new(),
        })
    }

    /// Right answers that one check or another once took for wrong ones.
    #[test]
    fn nothing_is_said_against_what_is_right() {
        let dir = tempfile::tempdir().unwrap();
        for (name, text) in [
            ("people.csv", "name,age,city\nAda,36,Rome\nBob,41,Oslo\n"),
            ("products.csv", "product,unit price,stock\nnut,3,7\nbolt,4,9\n"),
            ("users.csv", "user,email_address,created\nada,a@b.example,2026-01-01\nbob,b@b.example,2026-02-01\n"),
            ("nginx.conf", "x\n"),
        ] {
            std::fs::write(dir.path().join(name), text).unwrap();
        }
        for (request, right) in [
            ("install node.js", "sudo apt-get install -y nodejs"),
            ("which version of node.js is installed", "node --version"),
            ("remove blank lines from notes.txt", "sed '/^[ \t]*$/d' notes.txt"),
            ("remove blank lines from notes.txt", "grep -v '^[[:blank:]]*$' notes.txt"),
            ("remove blank lines from notes.txt", "awk '$0 != \"\"' notes.txt"),
            ("how many people per city in people.csv", "cut -d, -f3 people.csv | sed 1d | sort | uniq -c"),
            ("list the unit price of each product in products.csv", "tail -n +2 products.csv | cut -d, -f2"),
            ("email addresses of all users in users.csv", "tail -n +2 users.csv | cut -d, -f2"),
            ("find all uses of fetch in typescript files", "grep -rn --include='*.ts' fetch ."),
            ("list all sql.gz files", "find . -name '*.sql.gz'"),
            ("compare nginx.conf with the one the server uses", "diff nginx.conf /etc/nginx/nginx.conf"),
            ("kill tomcat", "pgrep -f tomcat | xargs kill"),
            ("how many rows do the csv files have", "find . -name '*.csv' -exec wc -l {} +"),
            ("list zombie processes", "ps aux | grep '<defunct>'"),
            ("are there files with the same content", "find . -type f -exec md5sum {} + | sort | cut -c1-32 | uniq -d"),
            ("make a symlink to settings.json in ~/dotfiles", "ln -s ~/dotfiles/settings.json settings.json"),
            ("extract the text between square brackets from app.log", "grep -o '\\[\\([^]]*\\)\\]' app.log"),
            ("the 3 largest files", "find . -type f -exec du -b {} + | sort -rn | head -n 3"),
        ] {
            let found = findings_in(Some(dir.path()), run, request, right);
            let found: Vec<_> =
                found.iter().filter(|f| f.severity != Severity::Hint).map(|f| (&f.id, &f.why)).collect();
            assert!(found.is_empty(), "{request}: {right}: {found:?}");
        }
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
