//! The tool `shell`: runs a command line through `exec`. Its effects are derived from its parse tree beforehand; the
//! sandbox keeps a command that only reads from doing anything else.

use super::keeper::{Change, Keeper, Kept, keep, reasons};
use super::sockets::{Need, need};
use super::sweep::{unlisted_secrets, unnamed_secret};
use super::written::files_of;
use super::{child, ended, text};
use crate::observe::Raw;
use crate::tool::{Args, Effects, Hazard, Outcome, Tool, ToolCx, ToolError, ToolSpec, home, normal, shown_part};
use caro_command::risk::assess_here;
use caro_exec::{self as exec, EnvProfile, Job, Limits, Output, Sandbox, Status, Support};
use caro_shell::effects::{Kind, Place, git_config_file, place_of};
use caro_shell::{self as shell, Dialect, Level, Script};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Most bytes captured of each output stream: half from its beginning, half from its end.
const MAX_OUTPUT: usize = 256 << 10;

/// Programs that print whole files if they have no options.
const WHOLE_FILE_PRINTERS: &[&str] = &["cat", "less", "more", "bat", "nl", "tac"];

/// The tool `shell`.
pub struct Shell {
    spec: ToolSpec,
    program: PathBuf,
    dialect: Dialect,
    /// The folders where approved commands may write besides the working folder; `None` for anywhere.
    writable: Option<Vec<PathBuf>>,
    /// Saves the files that commands change, for undo.
    keeper: Option<Arc<dyn Keeper>>,
}

impl Shell {
    /// Creates the tool for a shell program.
    pub fn new(program: PathBuf, dialect: Dialect) -> Self {
        let description = "runs a shell command in the working folder and shows what it prints: find looks into all \
                           folders below, grep -c WORD FILES counts the lines of each file that have the word.";
        let mut spec = ToolSpec::new("shell", description, json!({"command": {"type": "string"}}), &["command"]);
        spec.example = json!({"command": "find . -type f -name '*.py' -printf '%s %p\n' | sort -nr | head -n 5"});
        spec.core = true;
        Self { spec, program, dialect, writable: Some(Vec::new()), keeper: None }
    }

    /// Lets commands also write below these folders; `/` means anywhere.
    #[must_use]
    pub fn writable(mut self, folders: Vec<PathBuf>) -> Self {
        self.writable = if folders.iter().any(|f| f.parent().is_none()) { None } else { Some(folders) };
        self
    }

    /// Sets the keeper that saves the files that commands change before they run.
    #[must_use]
    pub(super) fn keeping(mut self, keeper: Option<Arc<dyn Keeper>>) -> Self {
        self.keeper = keeper;
        self
    }

    /// Saves the files that the command will change, unless it only reads.
    fn keep(&self, command: &str, script: &Script, root: &Path) -> Result<Option<Box<dyn Kept>>, ToolError> {
        if shell::is_read_only(script) {
            return Ok(None);
        }
        keep(self.keeper.as_deref(), Change::Command { text: command, script }, root)
    }

    /// Returns the sandbox of a command. One that only reads can do nothing else; an approved one may write below the
    /// working folder and where its effects say, since that was approved.
    fn sandbox(&self, script: &Script, root: &Path) -> Sandbox {
        if shell::is_read_only(script) {
            match need(script) {
                Need::Nothing => return Sandbox::ReadOnly,
                Need::Kernel => return Sandbox::AskKernel,
                // it was approved like a command that changes something
                Need::Service(_) => {}
            }
        }
        let Some(more) = &self.writable else { return Sandbox::None };
        let mut places = vec![root.to_path_buf()];
        places.extend(more.iter().cloned());
        let foreseen = foresee(script, root, exec::support()).writes;
        let all = shell::effects(script);
        let into = redirected(script, &all, root);
        // creating or replacing a file needs write access to its folder
        places.extend(foreseen.into_iter().filter(|path| !path.starts_with(root)).flat_map(|path| {
            let is_kept = path.is_file() && into.contains(&path);
            let folder = if is_kept { None } else { path.parent().map(Path::to_path_buf) };
            [Some(path), folder]
                .into_iter()
                .flatten()
                .filter(|p| p.exists() && p.parent().is_some())
                .collect::<Vec<_>>()
        }));
        Sandbox::Within(places)
    }

    fn job(&self, command: &str, script: &Script, cx: &ToolCx) -> Job {
        let before = exec::shell_options(&self.program);
        let mut job = Job::new(&self.program).args(before.iter().copied()).args([command]);
        job.cwd = Some(cx.root.clone());
        job.limits = Limits { wall: cx.timeout, output: MAX_OUTPUT };
        job.sandbox = self.sandbox(script, &cx.root);
        job.profile = if job.sandbox.only_reads() { EnvProfile::Work } else { EnvProfile::Approved };
        job
    }
}

/// Error messages of a system whose sandbox denies a program a write.
const DENIED: &[&str] = &["Permission denied", "Read-only file system", "Operation not permitted"];

/// Programs that edit a file in place.
const EDITORS: &[&str] = &["ed", "ex", "gsed", "perl", "ruby", "sed"];

/// Returns the effects of a command line, given what the sandbox of this system supports.
fn foresee(script: &Script, root: &Path, support: Support) -> Effects {
    let mut effects = Effects { exec: true, ..Effects::default() };
    let read_only = shell::is_read_only(script);
    let moved = script.commands.iter().any(|c| matches!(c.name(), Some("cd" | "pushd")));
    let all = shell::effects(script);
    effects.reads.extend(unnamed_secret(script, &all, root));
    effects.reads.extend(unlisted_secrets(script, &all, root));
    effects.writes.extend(configured(script, &all, root));
    for effect in all {
        let path = effect.path.as_deref().filter(|p| !matches!(place_of(p), Place::Sink));
        effects.removes |= effect.kind == Kind::Delete;
        let program = effect.command.and_then(|at| script.commands[at].name());
        effects.edits |= effect.kind == Kind::Overwrite && program.is_some_and(|name| EDITORS.contains(&name));
        match effect.kind {
            Kind::Read => effects.reads.extend(path.map(|p| normal(root, &home(p)))),
            Kind::Create | Kind::Overwrite | Kind::Append | Kind::Delete | Kind::Move | Kind::Mode | Kind::Owner => {
                // a pattern, a whole folder or a path after `cd`: the files are unknown
                effects.opaque |= effect.recursive || moved || path.is_some_and(|p| p.contains(['*', '?', '[', '$']));
                effects.writes.extend(path.into_iter().flat_map(|p| files_of(script, &effect, p, root)));
            }
            Kind::Fetch | Kind::Send => effects.net = true,
            Kind::None => {}
            Kind::Privilege
            | Kind::Kill
            | Kind::System
            | Kind::Package
            | Kind::Repository
            | Kind::Record
            | Kind::Start
            | Kind::Build
            | Kind::Compute
            | Kind::Run
            | Kind::Unknown => {
                effects.opaque = true;
            }
        }
    }
    let risk = assess_here(script, root);
    effects.hazard = match risk.level {
        Level::Danger => Hazard::Danger,
        _ if !read_only => Hazard::Change,
        _ => Hazard::None,
    };
    effects.opaque |= !read_only && effects.writes.is_empty();
    effects.reasons = risk.reasons.into_iter().map(|r| r.why).take(4).collect();
    // a reading command runs without approval only if the sandbox can keep it from anything else
    let unconfined = match need(script) {
        _ if !read_only => None,
        Need::Service(name) => {
            Some(format!("`{name}` asks a service of this machine, which no sandbox holds to reading"))
        }
        _ if !support.holds_to_reading() => Some("this system has no sandbox that would hold it to reading".to_owned()),
        _ => None,
    };
    if let Some(why) = unconfined {
        effects.opaque = true;
        effects.hazard = effects.hazard.max(Hazard::Change);
        effects.reasons.push(why);
    }
    // a single program that prints whole files does the same as the `read` tool
    if let [only] = script.commands.as_slice()
        && read_only
        && !moved
        && only.name().is_some_and(|n| WHOLE_FILE_PRINTERS.contains(&n))
        && only.args().iter().all(|a| !a.text.starts_with('-'))
    {
        effects.shows = effects.reads.iter().filter(|p| p.is_file()).map(|path| shown_part(path, "")).collect();
    }
    effects
}

/// True if the script runs code whose effects its text does not tell.
fn runs_unread_code(script: &Script) -> bool {
    shell::effects(script).iter().any(|effect| matches!(effect.kind, Kind::Run | Kind::Unknown))
}

/// Returns the files from which git starts programs, and which a command of the script sets: `git config core.pager`.
/// What the table of effects knows to start none is left out.
fn configured(script: &Script, all: &[shell::Effect], root: &Path) -> Vec<PathBuf> {
    let sets = all.iter().filter(|e| matches!(e.kind, Kind::Repository | Kind::Unknown | Kind::Run));
    let files = sets.filter_map(|effect| git_config_file(&script.commands[effect.command?], script.dialect));
    files.map(|file| normal(root, &home(&file))).collect()
}

/// Returns the files that are written only by redirections and `tee`, which do not replace the file.
fn redirected(script: &Script, all: &[shell::Effect], root: &Path) -> Vec<PathBuf> {
    let writes = |effect: &&shell::Effect| !matches!(effect.kind, Kind::None | Kind::Read);
    let commands = script.commands.iter().flat_map(|command| &command.redirects);
    let targets: Vec<_> = commands.chain(&script.redirects).map(|redirect| &redirect.target.span).collect();
    let is_redirected = |effect: &shell::Effect| {
        let is_tee = effect.command.is_some_and(|at| script.commands[at].name() == Some("tee"));
        is_tee || targets.contains(&&effect.span)
    };
    let written = |redirected: bool| {
        let found = all.iter().filter(writes).filter(move |effect| is_redirected(effect) == redirected);
        let files = found.filter_map(|effect| Some(files_of(script, effect, effect.path.as_deref()?, root)));
        files.flatten().collect::<Vec<PathBuf>>()
    };
    let otherwise = written(false);
    written(true).into_iter().filter(|path| !otherwise.contains(path)).collect()
}

impl Tool for Shell {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn effects(&self, args: &Args, cx: &ToolCx) -> Effects {
        let script = shell::parse(text(args, "command"), self.dialect);
        let mut effects = foresee(&script, &cx.root, exec::support());
        if let Some(keeper) = &self.keeper
            && !shell::is_read_only(&script)
        {
            let command = text(args, "command");
            effects.removes |= effects.opaque
                && effects.hazard != Hazard::Danger
                && runs_unread_code(&script)
                && keeper.removes(command, &script, &cx.root);
            let change = Change::Command { text: command, script: &script };
            effects.reasons.extend(reasons(&**keeper, change, &cx.root));
        }
        effects
    }

    fn call(&self, args: &Args, cx: &ToolCx) -> Result<Raw, ToolError> {
        let command = text(args, "command").trim();
        if command.is_empty() {
            return Err(ToolError::Arguments("`command` is empty".into()));
        }
        let script = shell::parse(command, self.dialect);
        if let Some(reason) = shell::assess(&script).refused() {
            return Err(ToolError::Failed(format!(
                "Not run: {}. Nobody can allow it here; do it another way.",
                reason.why
            )));
        }
        let job = self.job(command, &script, cx);
        let kept = self.keep(command, &script, &cx.root)?;
        let result = child::run(&job, &cx.cancel);
        if let Some(kept) = kept {
            kept.ended(match &result {
                Ok(Some(Output { status: Status::Exited(code), .. })) => *code,
                Ok(Some(Output { status: Status::Signaled(signal), .. })) => 128 + signal,
                // killed by this program
                _ => 128 + 9,
            });
        }
        let Some(output) = result? else { return Err(ToolError::TimedOut(cx.timeout.as_secs())) };
        let cut = child::left_out(&output);
        let outcome = ended::outcome(&script, output.status, &output.stdout, &output.stderr);
        let mut stderr = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        if !output.status.success() && DENIED.iter().any(|words| stderr.contains(words)) {
            match &job.sandbox {
                Sandbox::Within(_) if exec::support().writes => stderr.push_str(&format!(
                    "\n(Commands may write below {} only. The user can allow more: --write DIR.)",
                    cx.root.display()
                )),
                Sandbox::ReadOnly | Sandbox::AskKernel => stderr.push_str(
                    "\n(A command that only reads runs without network, sockets and the right to change anything.)",
                ),
                _ => {}
            }
        }
        let note = match output.status {
            Status::Exited(0) if output.stdout.is_empty() && stderr.is_empty() => "(no output)".to_owned(),
            Status::Exited(0) => String::new(),
            Status::Exited(code) => format!("(exit code {code})"),
            Status::Signaled(signal) => format!("(ended by signal {signal})"),
            Status::TimedOut => return Err(ToolError::TimedOut(cx.timeout.as_secs())),
            // reported before its output, where it cannot be missed
            Status::Flooded => String::new(),
        };
        let (stdout, stderr, note) = (output.stdout, stderr.into_bytes(), note.into_bytes());
        // of a failed command the errors matter most
        let parts = if outcome == Outcome::Failed { [stderr, stdout, note] } else { [stdout, stderr, note] };
        let raw = Raw::bytes(child::lines(parts)).cut(cut);
        Ok(match outcome {
            Outcome::Failed => raw.failed(if output.status == Status::Flooded { child::FLOODED } else { "" }),
            Outcome::FailedLate => raw.failed_late(),
            _ => raw,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the effects on a system with a full sandbox.
    fn effects(command: &str, root: &Path) -> Effects {
        let all = Support { writes: true, network: true, processes: true };
        foresee(&shell::parse(command, Dialect::Bash), root, all)
    }

    #[test]
    fn without_a_sandbox_reading_needs_approval() {
        let root = Path::new("/");
        for (writes, network) in [(false, false), (true, false), (false, true)] {
            let support = Support { writes, network, processes: false };
            let effects = foresee(&shell::parse("ls -l | wc -l", Dialect::Bash), root, support);
            assert!(!effects.is_read_only() && effects.hazard == Hazard::Change, "{effects:?}");
            assert!(effects.reasons.iter().any(|why| why.contains("no sandbox")), "{effects:?}");
            // a dangerous command stays dangerous
            assert_eq!(foresee(&shell::parse("rm -rf /", Dialect::Bash), root, support).hazard, Hazard::Danger);
        }
        assert!(effects("ls -l | wc -l", root).is_read_only());
    }

    #[test]
    fn reading_through_a_service_needs_approval_and_gets_its_socket() {
        let shell = Shell::new("/bin/sh".into(), Dialect::Bash);
        let sandbox = |command: &str| shell.sandbox(&shell::parse(command, Dialect::Bash), Path::new("/w"));
        let asked = effects("docker ps", Path::new("/"));
        assert!(!asked.is_read_only() && asked.reasons.iter().any(|why| why.contains("`docker`")), "{asked:?}");
        assert!(matches!(sandbox("docker ps"), Sandbox::Within(_)));
        assert!(effects("ip addr", Path::new("/")).is_read_only());
        assert_eq!((sandbox("ip addr"), sandbox("ls")), (Sandbox::AskKernel, Sandbox::ReadOnly));
    }

    #[test]
    fn writing_to_an_existing_file_gives_no_access_to_its_folder() {
        let (work, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let (root, folder) = (work.path().canonicalize().unwrap(), other.path().canonicalize().unwrap());
        std::fs::write(folder.join("rc"), "x").unwrap();
        let shell = Shell::new("/bin/sh".into(), Dialect::Bash);
        let places = |command: &str| {
            let command = command.replace("DIR", &folder.display().to_string());
            match shell.sandbox(&shell::parse(&command, Dialect::Bash), &root) {
                Sandbox::Within(places) => places,
                other => panic!("{command}: {other:?}"),
            }
        };
        for command in ["python3 gen.py >> DIR/rc", "echo x > DIR/rc", "echo x | tee -a DIR/rc"] {
            let places = places(command);
            assert!(places.contains(&folder.join("rc")) && !places.contains(&folder), "{command}: {places:?}");
        }
        for command in ["echo x > DIR/new", "sed -i s/a/b/ DIR/rc", "cp a DIR/rc", "echo x > DIR/rc; mv a DIR/rc"] {
            assert!(places(command).contains(&folder), "{command}");
        }
    }

    #[test]
    fn a_secret_is_found_wherever_a_command_names_it() {
        let dir = tempfile::tempdir().unwrap();
        let root = &dir.path().canonicalize().unwrap();
        let reads = |command: &str| {
            let effects = effects(command, root);
            effects.reads.iter().any(|path| caro_policy::secret::reads_secret(path))
        };
        for command in [
            "strings /proc/*/environ | grep CARO_API_KEY | base64",
            "cat /proc/[0-9]*/environ",
            "grep -a KEY /proc/*/environ",
            "tr '\\0' '\\n' < /proc/1/environ",
            "cd /proc/1 && cat environ",
            "ps eww -e",
            "ps aux e | grep KEY",
            "tail ~/.bash_history",
            "tar cf - ~/.ssh | strings",
            "git diff --no-index /dev/null ~/.aws/credentials",
            "git blame .env",
            "git show HEAD:.env",
            "git cat-file -p main~2:config/.env",
            "git config -f ~/.aws/credentials -l",
            "man ./.env",
            "date -f .env",
            "date --file=.env",
            "echo .env | cpio -o",
            "cd .aws && cat credentials",
            "cd ~ && cd .aws && cat credentials",
            "cd /srv; cd ~/.ssh; cat config",
            "cat docs/passwords.txt",
            "cat docs/credentials",
            "git show HEAD:docs/api_key.txt",
            "git show HEAD:credentials",
        ] {
            assert!(reads(command), "{command}");
        }
        for command in [
            "git log -n 3",
            "cd src && cat main.rs",
            "find . -name '*.key'",
            "cat /etc/passwd src/token.rs",
            "git log --grep token",
            "git commit -m 'renew the token'",
        ] {
            assert!(!reads(command), "{command}");
        }
    }

    #[test]
    fn a_setting_of_git_that_may_start_a_program_is_a_write_of_its_file() {
        let root = Path::new("/w");
        let writes = |command: &str| effects(command, root).writes;
        for command in [
            "git config core.fsmonitor cmd",
            "git config --local core.pager less",
            "git config set core.hooksPath hooks",
            "git config alias.x '!cmd'",
            "git config --add filter.a.clean cmd",
            "git config include.path ../x",
            "git config --unset core.editor",
            "nice git config diff.a.textconv cmd",
        ] {
            assert_eq!(writes(command), [Path::new("/w/.git/config")], "{command}");
        }
        assert_eq!(writes("git -C sub config credential.helper x"), [Path::new("/w/sub/.git/config")]);
        assert_eq!(writes("git config --file=.gitmodules core.pager x"), [Path::new("/w/.gitmodules")]);
        assert_eq!(writes("git config -f /x/y core.pager x"), [Path::new("/x/y")]);
        assert!(writes("git config --global core.editor vi")[0].ends_with(".gitconfig"));
        for command in ["git config -l", "git config core.pager", "git config user.name Ann", "git log config"] {
            assert!(writes(command).is_empty(), "{command}");
        }
    }

    #[test]
    fn effects_are_derived_from_the_command() {
        let dir = tempfile::tempdir().unwrap();
        let root = &dir.path().canonicalize().unwrap();
        std::fs::write(root.join("a.log"), "x").unwrap();
        let file = |name: &str| root.join(name);
        let cat = effects("cat a.log", root);
        assert_eq!((cat.shows, cat.hazard), (vec![shown_part(&file("a.log"), "")], Hazard::None));
        // partial output is not tracked: the loop guard catches exact repetitions
        for command in ["head -n 5 a.log", "head -20 a.log", "tail a.log", "sed -n 20,30p a.log", "cat -n a.log"] {
            assert!(effects(command, root).shows.is_empty(), "{command}");
        }
        for command in ["grep -c ERROR a.log", "cat a.log | wc -l", "find . -name '*.log' | sort"] {
            let effects = effects(command, root);
            assert!(effects.is_read_only() && effects.shows.is_empty(), "{command}: {effects:?}");
        }
        let write = effects("grep ERROR a.log > out.txt", root);
        assert_eq!(write.writes, [file("out.txt")]);
        assert!(!write.is_read_only() && !write.opaque, "{write:?}");
        assert!(effects("sed -i 's/a/b/' a.log", root).edits && !effects("mv a.log b.log", root).edits);
        assert!(effects("rm -rf /", root).hazard == Hazard::Danger);
        let moved = effects("cd .git && echo x > hooks/pre-commit", root);
        assert!(moved.writes.contains(&file(".git/hooks/pre-commit")), "{moved:?}");
        for command in ["rm *.log", "python3 x.py", "cd /tmp && touch x", "sed -i s/a/b/ *.txt"] {
            assert!(effects(command, root).opaque, "{command}: {:?}", effects(command, root));
        }
        assert!(effects("curl http://x/y", root).net && effects("rsync -a a h:b", root).net);
        assert!(!effects("rsync -a a b", root).net);
        assert!(effects("wc -l a.log 2>/dev/null", root).is_read_only());
    }
}
