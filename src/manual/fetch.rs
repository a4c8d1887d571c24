//! Fetches the manual of a program: its man page, `--version` and `--help`, in the sandbox and within a second each.

use super::answer::{Answer, Page};
use super::assemble::{Sources, assemble};
use super::index::clean;
use super::{Entry, Program, trust};
use caro_exec::{Job, Limits, Status, capture, support};
use std::path::{Path, PathBuf};
use std::sync::RwLock;
use std::time::{Duration, Instant};

/// Timeout of an answer. The help gets what the page left of it, but at least [`VERSION_TIMEOUT`].
const TIMEOUT: Duration = Duration::from_millis(950);
/// Timeout of `--version`, which runs beside the page.
const VERSION_TIMEOUT: Duration = Duration::from_millis(450);
/// The sections of programs, games and administration; no library functions.
const SECTIONS: &str = "1:8:6:1p:1ssl:n:l";
/// Columns of a page, so many that no paragraph is wrapped or justified.
const COLUMNS: &str = "4000";
/// Most bytes of a man page; bash's has about 350 000.
const MAX_PAGE: usize = 4 << 20;
/// Most bytes of a help text.
const MAX_HELP: usize = 256 << 10;

/// Fetches manuals.
#[derive(Debug)]
pub(super) struct Fetcher {
    /// The `man` program.
    man: Option<PathBuf>,
    /// The user's home folder.
    home: Option<PathBuf>,
    /// Working trees whose programs are not run.
    avoided: RwLock<Vec<PathBuf>>,
    /// True if the sandbox works, so that a program asked for help can do nothing else.
    sandboxed: bool,
}

/// The reason why no program is run. One that does not know `--help` would do its normal work.
const UNFENCED: &str = "help is not captured here: this system has no sandbox for it";

impl Fetcher {
    pub(super) fn new(man: Option<PathBuf>, home: Option<PathBuf>) -> Self {
        Self { man, home, avoided: RwLock::default(), sandboxed: support().holds_to_reading() }
    }

    /// Adds the working tree of `cwd` to those whose programs are not run.
    pub(super) fn avoid(&self, cwd: &Path) {
        let tree = trust::working_tree(cwd, self.home.as_deref());
        let mut avoided = self.avoided.write().unwrap_or_else(std::sync::PoisonError::into_inner);
        if !avoided.contains(&tree) {
            avoided.push(tree);
        }
    }

    /// Returns the manual of a program; never fails, see [`Entry::problem`].
    pub(super) async fn fetch(&self, program: &Program) -> Entry {
        match program {
            Program::File { name, path } => self.file(name, path).await,
            Program::Builtin { name, shell } => self.builtin(name, shell).await,
        }
    }

    /// Returns the manual of the subcommand `sub` of a program with the entry `whole`.
    pub(super) async fn fetch_sub(&self, program: &Program, whole: &Entry, sub: &str) -> Entry {
        let command = format!("{} {sub}", program.name());
        let path = program.path();
        let mut sources = Sources::default();
        if whole.problem.is_none() {
            sources.page = self.page(&format!("{}-{sub}", program.name())).await;
            let listed = whole.subcommands.iter().any(|known| known == sub);
            if sources.page.text().is_none()
                && listed
                && self.sandboxed
                && trust::never_run(program.name()).is_none()
                && self.refusal(path).is_none()
            {
                // only a word that the program itself lists: any other could be taken for an operand
                sources.help = Some(ask(Job::new(path).args([sub, "--help"]), TIMEOUT, MAX_HELP).await);
            }
        }
        let mut entry = assemble(&command, path, sources);
        if entry.options.is_empty() && entry.problem.is_none() {
            entry.problem = Some(format!("no manual of {command} was found"));
        }
        Entry { version: whole.version.clone(), ..entry }
    }

    fn refusal(&self, path: &Path) -> Option<String> {
        let avoided = self.avoided.read().unwrap_or_else(std::sync::PoisonError::into_inner);
        trust::refusal(path, &avoided, self.home.as_deref())
    }

    async fn file(&self, name: &str, path: &Path) -> Entry {
        if let Some(problem) = self.refusal(path) {
            return Entry { command: name.into(), path: path.into(), problem: Some(problem), ..Entry::default() };
        }
        let started = Instant::now();
        let left = || TIMEOUT.saturating_sub(started.elapsed());
        let runs = self.sandboxed && trust::never_run(name).is_none();
        // for an applet of busybox, the page of the same name is about another program
        let resolved_name = path.canonicalize().ok().and_then(|p| Some(p.file_name()?.to_string_lossy().into_owned()));
        let applet = resolved_name.as_deref().is_some_and(|n| matches!(n, "busybox" | "toybox"))
            && resolved_name.as_deref() != Some(name);

        let page = async { if applet { Page::None } else { self.page(name).await } };
        let version = async {
            if runs { Some(ask(Job::new(path).args(["--version"]), VERSION_TIMEOUT, MAX_HELP).await) } else { None }
        };
        let (page, version) = tokio::join!(page, version);
        let mut sources = Sources { page, version, help: None };
        // a program that answered `--version` is asked for help; any other only if it has no page
        let answers = sources.version.as_ref().is_some_and(|v| matches!(v.status, Some(Status::Exited(0))));
        if runs && (answers || sources.page.text().is_none()) {
            sources.help = Some(ask(Job::new(path).args(["--help"]), left().max(VERSION_TIMEOUT), MAX_HELP).await);
        }
        let mut entry = assemble(name, path, sources);
        if !self.sandboxed && entry.options.is_empty() {
            entry.problem = Some(UNFENCED.into());
        }
        entry
    }

    /// Returns the shell's help about a builtin.
    async fn builtin(&self, name: &str, shell: &Path) -> Entry {
        let kind = shell.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
        let mut sources = Sources::default();
        match kind.as_str() {
            _ if self.refusal(shell).is_some() => {}
            "bash" | "rbash" => {
                // the help of `[` only says that it is a synonym of `test`
                let topic = if name == "[" { "test" } else { name };
                let job = Job::new(shell).args(["--norc", "--noprofile", "-c", r#"help -- "$1""#, "caro", topic]);
                sources.help = Some(ask(job, TIMEOUT, MAX_HELP).await);
            }
            "fish" => {
                let job =
                    Job::new(shell).args(["--no-config", "-c", r#"man -- $argv[1]"#, name]).env("MANWIDTH", COLUMNS);
                let answer = ask(job, TIMEOUT, MAX_PAGE).await;
                sources.page = answer.text.filter(|text| text.contains("\nNAME")).map_or(Page::None, Page::Text);
            }
            "zsh" => sources.help = self.section_about(name, "zshbuiltins").await,
            "sh" | "dash" | "ash" | "ksh" | "mksh" => sources.help = self.section_about(name, &kind).await,
            _ => {}
        }
        let mut entry = assemble(name, shell, sources);
        if entry.help_text.is_empty() && entry.man_summary.is_none() {
            entry.problem = Some(format!("{kind} tells nothing about its builtin {name}"));
        }
        entry
    }

    /// Returns the part of a shell's page that is about one builtin.
    async fn section_about(&self, name: &str, page: &str) -> Option<Answer> {
        let Page::Text(text) = self.page(page).await else { return None };
        let part = super::index::entry_about(name, &text)?;
        Some(Answer { status: Some(Status::Exited(0)), text: Some(part), complete: true })
    }

    /// Returns the man page of that name, as plain text.
    async fn page(&self, name: &str) -> Page {
        let Some(man) = &self.man else { return Page::None };
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '+' | '@' | '-' | ':' | '[');
        if name.starts_with('-') || !name.chars().all(plain) {
            return Page::None;
        }
        let job =
            Job::new(man).args([name]).env("MANWIDTH", COLUMNS).env("MANSECT", SECTIONS).env("MAN_KEEP_FORMATTING", "");
        let answer = ask(job, TIMEOUT, MAX_PAGE).await;
        match (answer.status, answer.text) {
            (Some(Status::Exited(0)), Some(text)) if text.lines().count() > 5 => Page::Text(text),
            (Some(Status::TimedOut), _) => Page::TimedOut,
            _ => Page::None,
        }
    }
}

/// Runs the job in the sandbox and returns its output.
async fn ask(mut job: Job, wall: Duration, output: usize) -> Answer {
    job.limits = Limits { wall, output };
    let Ok(output) = capture(&job).await else { return Answer { status: None, text: None, complete: false } };
    let complete = output.stdout.len().max(output.stderr.len()) < job.limits.output;
    let text = clean(if output.stdout.trim_ascii().is_empty() { &output.stderr } else { &output.stdout });
    let has_text = matches!(output.status, Status::Exited(_)) && !text.trim().is_empty();
    Answer { status: Some(output.status), text: has_text.then_some(text), complete }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[tokio::test]
    async fn without_a_sandbox_no_program_is_run() {
        let dir = tempfile::tempdir().unwrap();
        let (path, mark) = (dir.path().join("caro-deletes"), dir.path().join("ran"));
        std::fs::write(&path, format!("#!/bin/sh\ntouch {}\n", mark.display())).unwrap();
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
        let fetcher = Fetcher { sandboxed: false, ..Fetcher::new(None, None) };
        let program = Program::File { name: "caro-deletes".into(), path };
        let entry = fetcher.fetch(&program).await;
        assert_eq!(entry.problem.as_deref(), Some(UNFENCED));
        let whole = Entry { subcommands: vec!["all".into()], ..Entry::default() };
        fetcher.fetch_sub(&program, &whole, "all").await;
        assert!(!mark.exists(), "it was run");
    }
}
