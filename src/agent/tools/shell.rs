//! `shell`: a command line, run through `exec`. What it would do is foreseen from its parse tree; one that only reads is
//! held to that by the sandbox.

use super::keeper::{Keeper, Kept};
use super::sockets::{Need, need};
use super::sweep::{unlisted_secrets, unnamed_secret};
use super::{child, ended, text};
use crate::observe::Raw;
use crate::tool::{Args, Effects, Hazard, Outcome, Tool, ToolCx, ToolError, ToolSpec, home, normal, shown_part};
use caro_command::risk::assess_here;
use caro_exec::{self as exec, EnvProfile, Job, Limits, Output, Sandbox, Status, Support};
use caro_shell::effects::{Kind, Place, place_of};
use caro_shell::{self as shell, Dialect, Level, Script};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Bytes kept of each stream: half of them of its beginning, half of its end.
const OUTPUT: usize = 256 << 10;

/// Programs that show a file whole, where no option says otherwise.
const SHOWERS: &[&str] = &["cat", "less", "more", "bat", "nl", "tac"];

/// The tool.
pub struct Shell {
    spec: ToolSpec,
    program: PathBuf,
    dialect: Dialect,
    /// Where commands that were agreed to may write beside the working folder; `None` for anywhere.
    writable: Option<Vec<PathBuf>>,
    /// The keeper of the files that they change.
    keeper: Option<Arc<dyn Keeper>>,
}

impl Shell {
    /// A shell by its program.
    pub fn new(program: PathBuf, dialect: Dialect) -> Self {
        let description = "runs a shell command in the working folder and shows what it prints: find looks into all \
                           folders below, grep -c WORD FILES counts the lines of each file that have the word.";
        let mut spec = ToolSpec::new("shell", description, json!({"command": {"type": "string"}}), &["command"]);
        spec.example = json!({"command": "find . -type f -name '*.py' -printf '%s %p\n' | sort -nr | head -n 5"});
        spec.core = true;
        Self { spec, program, dialect, writable: Some(Vec::new()), keeper: None }
    }

    /// The same shell whose commands may write below these folders too; `/` is anywhere.
    #[must_use]
    pub fn writable(mut self, folders: Vec<PathBuf>) -> Self {
        self.writable = if folders.iter().any(|f| f.parent().is_none()) { None } else { Some(folders) };
        self
    }

    /// The same shell, the files that its commands change kept by this one before they run.
    #[must_use]
    pub fn keeping(mut self, keeper: Option<Arc<dyn Keeper>>) -> Self {
        self.keeper = keeper;
        self
    }

    /// Keeps what the command will change, if anything does.
    fn keep(&self, command: &str, script: &Script, root: &Path) -> Result<Option<Box<dyn Kept>>, ToolError> {
        if shell::is_read_only(script) {
            return Ok(None);
        }
        let Some(keeper) = &self.keeper else { return Ok(None) };
        keeper.keep(command, script, root).map_err(|why| {
            ToolError::Failed(format!(
                "Not run: what it changes could not be kept for an undo ({why}). The user can allow commands without undo: \
                 CARO_UNDO=off."
            ))
        })
    }

    /// What a command may touch. One that only reads is held to that; one that was agreed to may write below the working
    /// folder, and where it was foreseen to write: that is what was agreed to.
    fn sandbox(&self, script: &Script, root: &Path) -> Sandbox {
        if shell::is_read_only(script) {
            match need(script) {
                Need::Nothing => return Sandbox::ReadOnly,
                Need::Kernel => return Sandbox::AskKernel,
                // it was asked for as one that changes something
                Need::Service(_) => {}
            }
        }
        let Some(more) = &self.writable else { return Sandbox::None };
        let mut places = vec![root.to_path_buf()];
        places.extend(more.iter().cloned());
        let foreseen = foresee(script, root, exec::support()).writes;
        let all = shell::effects(script);
        let into = redirected(script, &all, root);
        // what is not there yet is made in its folder, and so is what takes the place of a file
        places.extend(foreseen.into_iter().filter(|path| !path.starts_with(root)).flat_map(|path| {
            let stays = path.is_file() && into.contains(&path);
            let folder = path.parent().filter(|_| !stays).map(Path::to_path_buf);
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
        job.limits = Limits { wall: cx.timeout, output: OUTPUT };
        job.sandbox = self.sandbox(script, &cx.root);
        job.profile = if job.sandbox.only_reads() { EnvProfile::Work } else { EnvProfile::Agreed };
        job
    }
}

/// What a system says where the sandbox does not let a program write.
const REFUSED: &[&str] = &["Permission denied", "Read-only file system", "Operation not permitted"];

/// Programs that change the text of a file where it stands.
const EDITORS: &[&str] = &["ed", "ex", "gsed", "perl", "ruby", "sed"];

/// What a command line would do, where the sandbox can do this much.
fn foresee(script: &Script, root: &Path, support: Support) -> Effects {
    let mut effects = Effects { exec: true, ..Effects::default() };
    let read_only = shell::is_read_only(script);
    let moved = script.commands.iter().any(|c| matches!(c.name(), Some("cd" | "pushd")));
    let all = shell::effects(script);
    effects.reads.extend(unnamed_secret(script, &all, root));
    effects.reads.extend(unlisted_secrets(script, &all, root));
    for effect in all {
        let path = effect.path.as_deref().filter(|p| !matches!(place_of(p), Place::Sink));
        let resolved = path.map(|p| normal(root, &home(p)));
        effects.removes |= effect.kind == Kind::Delete;
        let program = effect.command.and_then(|at| script.commands[at].name());
        effects.edits |= effect.kind == Kind::Overwrite && program.is_some_and(|name| EDITORS.contains(&name));
        match effect.kind {
            Kind::Read => effects.reads.extend(resolved),
            Kind::Create | Kind::Overwrite | Kind::Append | Kind::Delete | Kind::Move | Kind::Mode | Kind::Owner => {
                // a pattern, a folder with all below it, or a path after `cd`: which files, nobody can say here
                effects.opaque |= effect.recursive || moved || path.is_some_and(|p| p.contains(['*', '?', '[', '$']));
                effects.writes.extend(resolved);
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
    // what the table takes for reading runs unasked only where it is held to that
    let unheld = match need(script) {
        _ if !read_only => None,
        Need::Service(name) => {
            Some(format!("`{name}` asks a service of this machine, which no sandbox holds to reading"))
        }
        _ if !support.holds_to_reading() => Some("this system has no sandbox that would hold it to reading".to_owned()),
        _ => None,
    };
    if let Some(why) = unheld {
        effects.opaque = true;
        effects.hazard = effects.hazard.max(Hazard::Change);
        effects.reasons.push(why);
    }
    // one program that prints files as they are reads them as the `read` tool does
    if let [only] = script.commands.as_slice()
        && read_only
        && !moved
        && only.name().is_some_and(|n| SHOWERS.contains(&n))
        && only.args().iter().all(|a| !a.text.starts_with('-'))
    {
        effects.shows = effects.reads.iter().filter(|p| p.is_file()).map(|path| shown_part(path, "")).collect();
    }
    effects
}

/// The files that are written by nothing but redirections and `tee`: they stay the files that they are.
fn redirected(script: &Script, all: &[shell::Effect], root: &Path) -> Vec<PathBuf> {
    let writes = |effect: &&shell::Effect| !matches!(effect.kind, Kind::None | Kind::Read);
    let commands = script.commands.iter().flat_map(|command| &command.redirects);
    let targets: Vec<_> = commands.chain(&script.redirects).map(|redirect| &redirect.target.span).collect();
    let into = |effect: &shell::Effect| {
        let tee = effect.command.is_some_and(|at| script.commands[at].name() == Some("tee"));
        tee || targets.contains(&&effect.span)
    };
    let of = |wanted: bool| {
        let found = all.iter().filter(writes).filter(move |effect| into(effect) == wanted);
        found.filter_map(|effect| Some(normal(root, &home(effect.path.as_deref()?)))).collect::<Vec<PathBuf>>()
    };
    let otherwise = of(false);
    of(true).into_iter().filter(|path| !otherwise.contains(path)).collect()
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
            let gaps = keeper.gaps(&script, &cx.root).into_iter();
            effects.reasons.extend(gaps.map(|gap| format!("undo does not cover all of it: {gap}")));
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
        let ran = child::run(&job, &cx.cancel);
        if let Some(kept) = kept {
            kept.ended(match &ran {
                Ok(Some(Output { status: Status::Exited(code), .. })) => *code,
                Ok(Some(Output { status: Status::Signaled(signal), .. })) => 128 + signal,
                // stopped by us
                _ => 128 + 9,
            });
        }
        let Some(output) = ran? else { return Err(ToolError::TimedOut(cx.timeout.as_secs())) };
        let cut = child::left_out(&output);
        let outcome = ended::outcome(&script, output.status, &output.stdout, &output.stderr);
        let mut stderr = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        if !output.status.success() && REFUSED.iter().any(|words| stderr.contains(words)) {
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
            // told before its output, where it cannot be missed
            Status::Flooded => String::new(),
        };
        let (stdout, stderr, note) = (output.stdout, stderr.into_bytes(), note.into_bytes());
        // why it came to nothing is what matters then
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

    /// On a system that has a sandbox.
    fn effects(command: &str, root: &Path) -> Effects {
        let all = Support { writes: true, network: true, processes: true };
        foresee(&shell::parse(command, Dialect::Bash), root, all)
    }

    #[test]
    fn without_a_sandbox_reading_is_asked_for() {
        let root = Path::new("/");
        for (writes, network) in [(false, false), (true, false), (false, true)] {
            let support = Support { writes, network, processes: false };
            let effects = foresee(&shell::parse("ls -l | wc -l", Dialect::Bash), root, support);
            assert!(!effects.is_read_only() && effects.hazard == Hazard::Change, "{effects:?}");
            assert!(effects.reasons.iter().any(|why| why.contains("no sandbox")), "{effects:?}");
            // it is as dangerous as it was
            assert_eq!(foresee(&shell::parse("rm -rf /", Dialect::Bash), root, support).hazard, Hazard::Danger);
        }
        assert!(effects("ls -l | wc -l", root).is_read_only());
    }

    #[test]
    fn what_reads_through_a_service_is_asked_for_and_gets_its_socket() {
        let shell = Shell::new("/bin/sh".into(), Dialect::Bash);
        let sandbox = |command: &str| shell.sandbox(&shell::parse(command, Dialect::Bash), Path::new("/w"));
        let asked = effects("docker ps", Path::new("/"));
        assert!(!asked.is_read_only() && asked.reasons.iter().any(|why| why.contains("`docker`")), "{asked:?}");
        assert!(matches!(sandbox("docker ps"), Sandbox::Within(_)));
        assert!(effects("ip addr", Path::new("/")).is_read_only());
        assert_eq!((sandbox("ip addr"), sandbox("ls")), (Sandbox::AskKernel, Sandbox::ReadOnly));
    }

    #[test]
    fn what_adds_to_a_file_may_not_write_beside_it() {
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
    fn a_secret_is_seen_wherever_a_command_names_it() {
        let dir = tempfile::tempdir().unwrap();
        let root = &dir.path().canonicalize().unwrap();
        let reads = |command: &str| {
            let effects = effects(command, root);
            effects.reads.iter().any(|path| caro_policy::is_secret(path))
        };
        for command in [
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
    fn what_a_command_does_is_foreseen() {
        let dir = tempfile::tempdir().unwrap();
        let root = &dir.path().canonicalize().unwrap();
        std::fs::write(root.join("a.log"), "x").unwrap();
        let file = |name: &str| root.join(name);
        let cat = effects("cat a.log", root);
        assert_eq!((cat.shows, cat.hazard), (vec![shown_part(&file("a.log"), "")], Hazard::None));
        // which part of it they show is not looked at: a repetition to the letter is the loop guard's matter
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
        for command in ["rm *.log", "python3 x.py", "cd /tmp && touch x", "sed -i s/a/b/ *.txt"] {
            assert!(effects(command, root).opaque, "{command}: {:?}", effects(command, root));
        }
        assert!(effects("curl http://x/y", root).net && effects("rsync -a a h:b", root).net);
        assert!(!effects("rsync -a a b", root).net);
        assert!(effects("wc -l a.log 2>/dev/null", root).is_read_only());
    }
}
