//! Inspects a command without a model: looks up its programs' manuals, runs the checks, and assesses the risk.
//! `caro check` does only this.

use super::answer::PastExchange;
use super::checks::{self, CheckContext, without_punctuation};
use super::refine_loop::Draft;
use caro_host::ExecutionContext;
use caro_manual::{Entry, Manual, ManualError, OptionEntry, Program, relevant};
use caro_shell::{self as shell, Dialect, Finding, Invocation, Script, Target, extract_commands, safety};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Most lines of manuals that iteration 2 is shown.
const MAX_MANUAL_LINES: usize = 6;

/// The findings against a name that the request does not speak of: an earlier request may.
const UNTOLD: [&str; 3] = ["borrowed-name", "borrowed-place", "no-such-file"];

/// The manuals that were found, by program name, and by `program subcommand` for a subcommand with a page of its own.
pub type Manuals = BTreeMap<String, Arc<Entry>>;

/// The request and the machine that a command is for.
#[derive(Debug, Clone, Copy)]
pub struct Subject<'a> {
    /// The request that the command answers; empty if there is none.
    pub request: &'a str,
    /// The earlier requests that this one goes on from, oldest first.
    pub earlier: &'a [PastExchange],
    /// The working directory of the command.
    pub cwd: &'a Path,
    /// The system that it is written for.
    pub target: Target,
    /// The shell that it is written for.
    pub dialect: Dialect,
}

impl<'a> Subject<'a> {
    /// Creates the subject of a command that answers no request.
    pub fn without_request(cwd: &'a Path, target: Target, dialect: Dialect) -> Self {
        Self { request: "", earlier: &[], cwd, target, dialect }
    }

    /// True if an earlier request speaks of a file or folder, by its path or its name.
    fn speaks_of(&self, path: &str) -> bool {
        let name = path.trim_end_matches('/').rsplit('/').next().unwrap_or(path).to_lowercase();
        let is_name = |word: &str| word.trim_end_matches('/').rsplit('/').next() == Some(name.as_str());
        self.earlier.iter().any(|said| {
            let request = said.request.to_lowercase();
            request.split_whitespace().any(|word| is_name(word) || is_name(without_punctuation(word)))
        })
    }
}

/// Inspects commands with the facts and manuals of this machine.
#[derive(Debug, Clone)]
pub struct Inspector {
    /// The machine.
    pub context: Arc<ExecutionContext>,
    /// The cache of manuals; without one, flags are not checked.
    pub manual: Option<Arc<Manual>>,
    /// The ids of findings that are left out, to measure the worth of a check.
    pub without: Arc<[String]>,
}

impl Inspector {
    /// Creates an inspector that leaves out no findings.
    pub fn new(context: Arc<ExecutionContext>, manual: Option<Arc<Manual>>) -> Self {
        Self { context, manual, without: [].into() }
    }

    /// Runs every check on a command, waiting at most `wait` for manuals that are not cached. The draft has the given
    /// `confidence`.
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
        let context = CheckContext {
            request: subject.request,
            script: &script,
            target: subject.target,
            dialect: subject.dialect,
            context: self.is_here(subject.target).then_some(&*self.context),
            cwd: self.is_here(subject.target).then_some(subject.cwd),
            manuals,
        };
        let mut findings = checks::run(&context);
        let is_told = |finding: &Finding| UNTOLD.contains(&finding.id.as_str()) && subject.speaks_of(&finding.token);
        findings.retain(|finding| !self.without.contains(&finding.id) && !is_told(finding));
        Draft {
            findings,
            risk: match self.is_here(subject.target) {
                true => super::risk::assess_here(&script, subject.cwd),
                false => safety::assess(&script),
            },
            manual: manual_lines(&commands_used, subject.request, manuals),
            delicate: is_delicate(&script, &commands_used),
            commands_used,
            confidence,
            cmd,
        }
    }

    /// Adds the manuals of the script's programs to `manuals`, waiting at most `wait` for those that are not cached.
    /// If `wait` is zero, only starts to fetch them.
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
            // without its manual, a program's flags are not checked
            if let Ok(entries) = found {
                manuals.extend(entries.map(|entry| (entry.command.clone(), entry)));
            }
        }
        // unfinished fetches go on in the background and are cached for the next request
        fetches.detach_all();
    }

    /// True if the target is this machine's system, so that facts about this machine apply.
    fn is_here(&self, target: Target) -> bool {
        target == self.context.target
    }

    fn program(&self, command: &Invocation, dialect: Dialect) -> Option<Program> {
        let name = command.name()?;
        if shell::is_builtin(name, dialect) {
            // a builtin of the same name has other flags in another shell, so the right shell is needed
            let shell = self.context.shell_of(dialect)?.to_path_buf();
            return Some(Program::Builtin { name: name.into(), shell });
        }
        let path = self.context.available_commands.get(name)?.clone();
        Some(Program::File { name: name.into(), path })
    }
}

/// Returns the lines of the manuals that are most relevant to a request, a few of each program.
fn manual_lines(programs: &[String], request: &str, manuals: &Manuals) -> Vec<String> {
    let each = (MAX_MANUAL_LINES / programs.len().max(1)).max(1);
    let words: Vec<&str> = request.split_whitespace().collect();
    let lines = programs.iter().filter_map(|name| Some((name, manuals.get(name)?))).flat_map(|(name, entry)| {
        relevant(entry, &words, &[], each)
            .iter()
            .map(|o| format!("{name} {}", OptionEntry::line(o)))
            .collect::<Vec<_>>()
    });
    lines.take(MAX_MANUAL_LINES).collect()
}

/// True for the commands of the specification's trigger list: those that differ between platforms, sed, awk and
/// xargs, and long pipelines.
fn is_delicate(script: &Script, commands: &[String]) -> bool {
    const DELICATE: [&str; 6] = ["ps", "ss", "df", "sed", "awk", "xargs"];
    const COMPLEX: [&str; 3] = ["--sort", "-exec", "-printf"];
    commands.iter().any(|c| DELICATE.contains(&c.as_str()))
        || script.commands.len() > 3
        || script.commands.iter().flat_map(|c| &c.words).any(|w| COMPLEX.iter().any(|flag| w.raw.starts_with(flag)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the ids of the findings against a command that answers the last of several requests.
    fn ids(requests: &[&str], cmd: &str) -> Vec<String> {
        let context = Arc::new(ExecutionContext::detect(None));
        let dir = tempfile::tempdir().unwrap();
        let (request, earlier) = requests.split_last().unwrap();
        let earlier: Vec<PastExchange> = earlier
            .iter()
            .map(|request| PastExchange { request: (*request).into(), ..PastExchange::default() })
            .collect();
        let subject =
            Subject { request, earlier: &earlier, cwd: dir.path(), target: context.target, dialect: Dialect::Bash };
        let inspector = Inspector::new(context, None);
        let mut manuals = Manuals::new();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let draft = runtime.block_on(inspector.inspect(cmd.into(), 1.0, subject, &mut manuals, Duration::ZERO));
        draft.findings.into_iter().map(|finding| finding.id).collect()
    }

    #[test]
    fn what_an_earlier_request_names_is_not_made_up() {
        for (earlier, request, cmd, id) in [
            ("show the end of access.log", "only the last two lines", "tail -n 2 access.log", "no-such-file"),
            ("sort logs/access.log, please", "in reverse", "sort -r logs/access.log", "no-such-file"),
            (
                "find every html file in /srv/www",
                "find every html file, subfolders too",
                "find /srv/www -type f -name '*.html'",
                "borrowed-place",
            ),
            ("convert people.csv to tsv", "csv to tsv", "tr ',' '\\t' < people.csv", "borrowed-name"),
        ] {
            assert!(ids(&["something else", request], cmd).contains(&id.to_owned()), "{request}");
            assert!(!ids(&[earlier, request], cmd).contains(&id.to_owned()), "{request} after {earlier}");
        }
    }
}
