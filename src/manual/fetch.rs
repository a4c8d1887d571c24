//! Asks a program about itself: its man page, its `--version`, its `--help`, in the sandbox and within a second each.

use super::answer::{Answer, Page};
use super::assemble::{Heard, assemble};
use super::index::clean;
use super::{Entry, Program, trust};
use caro_exec::{Job, Limits, Status, capture, support};
use std::path::{Path, PathBuf};
use std::sync::RwLock;
use std::time::{Duration, Instant};

/// The time that one answer gets; a program's help has what its page left of it, but [`VERSION`] at least.
const PATIENCE: Duration = Duration::from_millis(950);
/// The time that `--version` gets, beside the page.
const VERSION: Duration = Duration::from_millis(450);
/// The sections of programs: games and administration too, no library functions.
const SECTIONS: &str = "1:8:6:1p:1ssl:n:l";
/// Columns: so many that no paragraph is wrapped or justified.
const WIDTH: &str = "4000";
/// Bytes of a man page; bash's has about 350 000.
const PAGE: usize = 4 << 20;
/// Bytes of a help text.
const HELP: usize = 256 << 10;

/// Asks programs about themselves.
#[derive(Debug)]
pub(super) struct Fetcher {
    /// The `man` program.
    man: Option<PathBuf>,
    /// The person's home.
    home: Option<PathBuf>,
    /// Where programs are not trusted.
    trees: RwLock<Vec<PathBuf>>,
    /// True if a program that is asked for its help can do nothing else.
    fenced: bool,
}

/// Why nobody was asked. A program that does not know `--help` does its work, whatever that is.
const UNFENCED: &str = "help is not captured here: this system has no sandbox for it";

impl Fetcher {
    pub(super) fn new(man: Option<PathBuf>, home: Option<PathBuf>) -> Self {
        Self { man, home, trees: RwLock::default(), fenced: support().holds_to_reading() }
    }

    /// Programs below the working tree of `cwd` are not run from now on.
    pub(super) fn avoid(&self, cwd: &Path) {
        let tree = trust::working_tree(cwd, self.home.as_deref());
        let mut trees = self.trees.write().unwrap_or_else(std::sync::PoisonError::into_inner);
        if !trees.contains(&tree) {
            trees.push(tree);
        }
    }

    /// Everything that the program says of itself; never fails, see [`Entry::problem`].
    pub(super) async fn fetch(&self, program: &Program) -> Entry {
        match program {
            Program::File { name, path } => self.file(name, path).await,
            Program::Builtin { name, shell } => self.builtin(name, shell).await,
        }
    }

    /// What is known of the subcommand `sub` of a program with the entry `whole`.
    pub(super) async fn fetch_sub(&self, program: &Program, whole: &Entry, sub: &str) -> Entry {
        let command = format!("{} {sub}", program.name());
        let path = program.path();
        let mut heard = Heard::default();
        if whole.problem.is_none() {
            heard.page = self.page(&format!("{}-{sub}", program.name())).await;
            let listed = whole.subcommands.iter().any(|known| known == sub);
            if heard.page.text().is_none()
                && listed
                && self.fenced
                && trust::never_run(program.name()).is_none()
                && self.refusal(path).is_none()
            {
                // Only a word that the program itself lists: another could be taken for something to do.
                heard.help = Some(ask(Job::new(path).args([sub, "--help"]), PATIENCE, HELP).await);
            }
        }
        let mut entry = assemble(&command, path, heard);
        if entry.options.is_empty() && entry.problem.is_none() {
            entry.problem = Some(format!("no manual of {command} was found"));
        }
        Entry { version: whole.version.clone(), ..entry }
    }

    fn refusal(&self, path: &Path) -> Option<String> {
        let trees = self.trees.read().unwrap_or_else(std::sync::PoisonError::into_inner);
        trust::refusal(path, &trees, self.home.as_deref())
    }

    async fn file(&self, name: &str, path: &Path) -> Entry {
        if let Some(problem) = self.refusal(path) {
            return Entry { command: name.into(), path: path.into(), problem: Some(problem), ..Entry::default() };
        }
        let started = Instant::now();
        let left = || PATIENCE.saturating_sub(started.elapsed());
        let runs = self.fenced && trust::never_run(name).is_none();
        // The page of the same name is about another program than busybox's.
        let many = path.canonicalize().ok().and_then(|p| Some(p.file_name()?.to_string_lossy().into_owned()));
        let applet =
            many.as_deref().is_some_and(|n| matches!(n, "busybox" | "toybox")) && many.as_deref() != Some(name);

        let page = async { if applet { Page::None } else { self.page(name).await } };
        let version =
            async { if runs { Some(ask(Job::new(path).args(["--version"]), VERSION, HELP).await) } else { None } };
        let (page, version) = tokio::join!(page, version);
        let mut heard = Heard { page, version, help: None };
        // A program that answers questions is asked on; one that does not is spared where its page says enough.
        let answers = heard.version.as_ref().is_some_and(|v| matches!(v.status, Some(Status::Exited(0))));
        if runs && (answers || heard.page.text().is_none()) {
            heard.help = Some(ask(Job::new(path).args(["--help"]), left().max(VERSION), HELP).await);
        }
        let mut entry = assemble(name, path, heard);
        if !self.fenced && entry.options.is_empty() {
            entry.problem = Some(UNFENCED.into());
        }
        entry
    }

    /// What the shell says about something it does itself.
    async fn builtin(&self, name: &str, shell: &Path) -> Entry {
        let kind = shell.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
        let mut heard = Heard::default();
        match kind.as_str() {
            _ if self.refusal(shell).is_some() => {}
            "bash" | "rbash" => {
                // `[` is said to be a synonym for the other, and no more.
                let topic = if name == "[" { "test" } else { name };
                let job = Job::new(shell).args(["--norc", "--noprofile", "-c", r#"help -- "$1""#, "caro", topic]);
                heard.help = Some(ask(job, PATIENCE, HELP).await);
            }
            "fish" => {
                let job =
                    Job::new(shell).args(["--no-config", "-c", r#"man -- $argv[1]"#, name]).env("MANWIDTH", WIDTH);
                let answer = ask(job, PATIENCE, PAGE).await;
                heard.page = answer.text.filter(|text| text.contains("\nNAME")).map_or(Page::None, Page::Text);
            }
            "zsh" => heard.help = self.section_about(name, "zshbuiltins").await,
            "sh" | "dash" | "ash" | "ksh" | "mksh" => heard.help = self.section_about(name, &kind).await,
            _ => {}
        }
        let mut entry = assemble(name, shell, heard);
        if entry.help_text.is_empty() && entry.man_summary.is_none() {
            entry.problem = Some(format!("{kind} tells nothing about its builtin {name}"));
        }
        entry
    }

    /// The part of a shell's page that is about one builtin.
    async fn section_about(&self, name: &str, page: &str) -> Option<Answer> {
        let Page::Text(text) = self.page(page).await else { return None };
        let part = super::index::paragraph_about(name, &text)?;
        Some(Answer { status: Some(Status::Exited(0)), text: Some(part), whole: true })
    }

    /// The man page of that name, as plain text.
    async fn page(&self, name: &str) -> Page {
        let Some(man) = &self.man else { return Page::None };
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '+' | '@' | '-' | ':' | '[');
        if name.starts_with('-') || !name.chars().all(plain) {
            return Page::None;
        }
        let job =
            Job::new(man).args([name]).env("MANWIDTH", WIDTH).env("MANSECT", SECTIONS).env("MAN_KEEP_FORMATTING", "");
        let answer = ask(job, PATIENCE, PAGE).await;
        match (answer.status, answer.text) {
            (Some(Status::Exited(0)), Some(text)) if text.lines().count() > 5 => Page::Text(text),
            (Some(Status::TimedOut), _) => Page::Late,
            _ => Page::None,
        }
    }
}

/// Runs the job in the sandbox and keeps its words.
async fn ask(mut job: Job, wall: Duration, output: usize) -> Answer {
    job.limits = Limits { wall, output };
    let Ok(output) = capture(&job).await else { return Answer { status: None, text: None, whole: false } };
    let whole = output.stdout.len().max(output.stderr.len()) < job.limits.output;
    let text = clean(if output.stdout.trim_ascii().is_empty() { &output.stderr } else { &output.stdout });
    let said = matches!(output.status, Status::Exited(_)) && !text.trim().is_empty();
    Answer { status: Some(output.status), text: said.then_some(text), whole }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[tokio::test]
    async fn without_a_sandbox_no_program_is_asked() {
        let dir = tempfile::tempdir().unwrap();
        let (path, mark) = (dir.path().join("caro-deletes"), dir.path().join("ran"));
        std::fs::write(&path, format!("#!/bin/sh\ntouch {}\n", mark.display())).unwrap();
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
        let fetcher = Fetcher { fenced: false, ..Fetcher::new(None, None) };
        let program = Program::File { name: "caro-deletes".into(), path };
        let entry = fetcher.fetch(&program).await;
        assert_eq!(entry.problem.as_deref(), Some(UNFENCED));
        let whole = Entry { subcommands: vec!["all".into()], ..Entry::default() };
        fetcher.fetch_sub(&program, &whole, "all").await;
        assert!(!mark.exists(), "it was run");
    }
}
