//! Looks at a command without a model: its programs' manuals, the checks, the safety verdict. `caro check` is this alone.

use super::checks::{self, CheckContext};
use super::refine_loop::Draft;
use caro_host::ExecutionContext;
use caro_manual::{Entry, Manual, ManualError, OptionEntry, Program, relevant};
use caro_shell::{self as shell, Dialect, Invocation, Script, Target, extract_commands, safety};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Manual lines shown to iteration 2 for a command that no check accuses.
const MANUAL_LINES: usize = 6;

/// The manuals at hand: by program name, and by `program subcommand` where a subcommand has a page of its own.
pub type Manuals = BTreeMap<String, Arc<Entry>>;

/// A command and what it is for.
#[derive(Debug, Clone, Copy)]
pub struct Subject<'a> {
    /// The request that it answers; empty if there is none.
    pub request: &'a str,
    /// The folder that it will run in.
    pub cwd: &'a Path,
    /// The machine it is written for.
    pub target: Target,
    /// The shell it is written for.
    pub dialect: Dialect,
}

/// This machine and its manuals.
#[derive(Debug, Clone)]
pub struct Inspector {
    /// The machine.
    pub context: Arc<ExecutionContext>,
    /// The help cache; without one, flags are not checked.
    pub manual: Option<Arc<Manual>>,
    /// The ids of findings that are not told, to measure what a check is worth.
    pub without: Arc<[String]>,
}

impl Inspector {
    /// One that tells everything it finds.
    pub fn new(context: Arc<ExecutionContext>, manual: Option<Arc<Manual>>) -> Self {
        Self { context, manual, without: [].into() }
    }

    /// Runs every check on a command, waiting at most `wait` for manuals that are not cached. `confidence` is its
    /// author's.
    pub async fn inspect(
        &self,
        cmd: String,
        confidence: f64,
        subject: Subject<'_>,
        manuals: &mut Manuals,
        wait: Duration,
    ) -> Draft {
        let script = shell::parse(&cmd, subject.dialect);
        self.look_up(&script, subject, manuals, wait).await;
        let commands_used = extract_commands(&script);
        let inspected = CheckContext {
            request: subject.request,
            script: &script,
            target: subject.target,
            dialect: subject.dialect,
            context: self.is_here(subject.target).then_some(&*self.context),
            cwd: self.is_here(subject.target).then_some(subject.cwd),
            manuals,
        };
        let mut findings = checks::run(&inspected);
        findings.retain(|finding| !self.without.contains(&finding.id));
        Draft {
            findings,
            risk: match self.is_here(subject.target) {
                true => super::risk::assess_here(&script, subject.cwd),
                false => safety::assess(&script),
            },
            manual: manual_lines(&commands_used, subject.request, manuals),
            delicate: delicate(&script, &commands_used),
            commands_used,
            confidence,
            cmd,
        }
    }

    /// Adds the manuals of the script's programs to `manuals`, waiting at most `wait` for those not cached. With no time
    /// to wait, fetching is only set going.
    pub async fn look_up(&self, script: &Script, subject: Subject<'_>, manuals: &mut Manuals, wait: Duration) {
        let Some(manual) = &self.manual else { return };
        if !self.is_here(subject.target) {
            return;
        }
        let mut fetches = tokio::task::JoinSet::new();
        for command in script.commands.iter().filter(|c| !c.remote) {
            let Some(program) = self.program(command, subject.dialect) else { continue };
            match manual.get_cached(&program) {
                Some(entry) if !entry.delegates => {
                    manuals.insert(entry.command.clone(), entry);
                }
                _ => {
                    let manual = manual.clone();
                    let args: Vec<String> = command.args().iter().map(|w| w.text.clone()).collect();
                    fetches.spawn(async move {
                        let args: Vec<&str> = args.iter().map(String::as_str).collect();
                        let whole = manual.get_or_fetch(&program).await?;
                        Ok::<_, ManualError>([whole, manual.get_for(&program, &args).await?.0])
                    });
                }
            }
        }
        let deadline = tokio::time::Instant::now() + wait;
        while !wait.is_zero()
            && let Ok(Some(Ok(found))) = tokio::time::timeout_at(deadline, fetches.join_next()).await
        {
            // without its manual a program's flags go unchecked; that is no reason to give no answer
            if let Ok(entries) = found {
                manuals.extend(entries.map(|entry| (entry.command.clone(), entry)));
            }
        }
        // what is under way goes on, and is cached for the next request
        fetches.detach_all();
    }

    /// Facts about this machine hold only for commands written for its kind.
    fn is_here(&self, target: Target) -> bool {
        target == self.context.target
    }

    fn program(&self, command: &Invocation, dialect: Dialect) -> Option<Program> {
        let name = command.name()?;
        if shell::is_builtin(name, dialect) {
            // another shell's builtin of the same name has other flags: without the right shell nothing is known
            let shell = self.context.shell_of(dialect)?.to_path_buf();
            return Some(Program::Builtin { name: name.into(), shell });
        }
        let path = self.context.available_commands.get(name)?.clone();
        Some(Program::File { name: name.into(), path })
    }
}

/// The manual's lines that matter most for a command, a few of each program.
fn manual_lines(programs: &[String], request: &str, manuals: &Manuals) -> Vec<String> {
    let each = (MANUAL_LINES / programs.len().max(1)).max(1);
    let words: Vec<&str> = request.split_whitespace().collect();
    let lines = programs.iter().filter_map(|name| Some((name, manuals.get(name)?))).flat_map(|(name, entry)| {
        relevant(entry, &words, &[], each)
            .iter()
            .map(|o| format!("{name} {}", OptionEntry::line(o)))
            .collect::<Vec<_>>()
    });
    lines.take(MANUAL_LINES).collect()
}

/// The specification's trigger list: commands that differ between platforms, sed, awk and xargs, long pipes.
fn delicate(script: &Script, commands: &[String]) -> bool {
    const DELICATE: [&str; 6] = ["ps", "ss", "df", "sed", "awk", "xargs"];
    const COMPLEX: [&str; 3] = ["--sort", "-exec", "-printf"];
    commands.iter().any(|c| DELICATE.contains(&c.as_str()))
        || script.commands.len() > 3
        || script.commands.iter().flat_map(|c| &c.words).any(|w| COMPLEX.iter().any(|flag| w.raw.starts_with(flag)))
}
