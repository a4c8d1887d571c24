//! Runs tasks: fixtures are made on disk once, and each run gets a view of one that is thrown away afterwards.

use super::compare::Outcome;
use super::suite::{Fixture, Suite, Task};
use crate::Failure;
use caro_exec::rehearse::{Change, Rehearsal, RehearsalError, RehearsalJob, rehearse};
use caro_exec::{Limits, Status};
use caro_host::{Ambient, ExecutionContext};
use caro_shell::{Dialect, Userland};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// The time limit of a run.
const RUN_TIMEOUT: Duration = Duration::from_secs(5);
/// Most bytes of output that are compared.
const MAX_OUTPUT: usize = 1 << 20;
/// The line between the output of a command and that of the task's `then`.
const MARK: &str = "--- caro eval: afterwards ---";
/// The script that runs the command and then the `then` line, each in its own shell, so that neither can break the
/// script.
const FRAME: &str =
    r#""$@" "$CARO_EVAL_COMMAND"; code=$?; printf '\n%s\n' "$CARO_EVAL_MARK"; "$@" "$CARO_EVAL_THEN"; exit $code"#;

/// A userland to run in.
#[derive(Debug)]
pub struct Userspace {
    /// The shell program and the arguments before the line.
    shell: Vec<PathBuf>,
    /// Its PATH; `None` for that of this process.
    path: Option<PathBuf>,
    /// The context that caro gets for it; `None` for that of this machine.
    pub context: Option<ExecutionContext>,
    /// The shell's language.
    pub dialect: Dialect,
}

/// The fixtures and the sandbox for all runs of one evaluation.
#[derive(Debug)]
pub struct Stage {
    dir: tempfile::TempDir,
    made: BTreeMap<usize, PathBuf>,
    runtime: tokio::runtime::Runtime,
}

impl Stage {
    /// Opens a stage, if commands can be run in a sandbox here.
    ///
    /// # Errors
    /// If there is no sandbox: nothing is run unprotected.
    pub fn open() -> Result<Self, Failure> {
        let dir = tempfile::Builder::new().prefix("caro-eval-").tempdir()?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let stage = Self { dir, made: BTreeMap::new(), runtime };
        let probe = RehearsalJob::new(Path::new("/bin/sh"), "true", stage.dir.path());
        stage.rehearse(probe).map_err(|e| {
            Failure::no(format!("commands are run in a sandbox only, and there is none: {e}")).hint(e.hint())
        })?;
        Ok(stage)
    }

    fn rehearse(&self, job: RehearsalJob) -> Result<Rehearsal, RehearsalError> {
        self.runtime.block_on(rehearse(&job))
    }

    /// The userland of this machine.
    pub fn native(&self) -> Userspace {
        let bash = ["/bin/bash", "/usr/bin/bash", "/usr/local/bin/bash"].into_iter().find(|p| Path::new(p).exists());
        let (shell, dialect) = bash.map_or(("/bin/sh", Dialect::Sh), |bash| (bash, Dialect::Bash));
        Userspace { shell: vec![shell.into(), "-c".into()], path: None, context: None, dialect }
    }

    /// A userland with nothing but busybox's applets.
    ///
    /// # Errors
    /// If there is no busybox.
    pub fn busybox(&self) -> Result<Userspace, Failure> {
        let busybox = caro_exec::find("busybox").ok_or_else(|| {
            Failure::no("there is no busybox to run these tasks with").hint("install it, or leave them out with --only")
        })?;
        let bin = self.dir.path().join("busybox");
        if !bin.exists() {
            let mut job = RehearsalJob::new(&busybox, "busybox --list", self.dir.path());
            job.limits = Limits { wall: RUN_TIMEOUT, output: MAX_OUTPUT };
            let list = self.rehearse(job).map_err(|e| Failure::internal(&e).hint(e.hint()))?;
            fs::create_dir(&bin)?;
            for applet in String::from_utf8_lossy(&list.stdout).split_whitespace().filter(|a| !a.contains('/')) {
                link(&busybox, &bin.join(applet))?;
            }
            link(&busybox, &bin.join("busybox"))?;
        }
        let ambient =
            Ambient { path: Some(bin.clone().into()), shell: Some(bin.join("sh").into()), ..Ambient::of_process() };
        let mut context = ExecutionContext::detect_in(&ambient, None);
        context.target.userland = Userland::Busybox;
        context.shell.path = Some(bin.join("sh"));
        let shell = vec![busybox, "sh".into(), "-c".into()];
        Ok(Userspace { shell, path: Some(bin), context: Some(context), dialect: Dialect::Sh })
    }

    /// The folder in which the command of a task runs; its fixture is made if need be.
    ///
    /// # Errors
    /// If the fixture cannot be made.
    pub fn folder(&mut self, suite: &Suite, task: &Task) -> Result<PathBuf, Failure> {
        let top = match self.made.get(&task.fixture) {
            Some(top) => top.clone(),
            None => {
                let top = self.dir.path().join(task.fixture.to_string());
                let with_task = |f: Failure| {
                    let hint = f.hint.unwrap_or_else(|| "`caro eval --help` shows what a fixture may hold".into());
                    Failure::new(f.exit, format!("task `{}`: its fixture: {}", task.id, f.message)).hint(hint)
                };
                self.make_fixture(&suite.fixtures[task.fixture], &top).map_err(with_task)?;
                self.made.insert(task.fixture, top.clone());
                top
            }
        };
        Ok(top.join("work").join(&task.cwd))
    }

    fn make_fixture(&self, fixture: &Fixture, top: &Path) -> Result<(), Failure> {
        let work = top.join("work");
        fs::create_dir_all(&work)?;
        fs::create_dir(top.join("home"))?;
        let at = |name: &str| inside(&work, name);
        for folder in &fixture.dirs {
            fs::create_dir_all(at(folder)?)?;
        }
        for (name, text) in &fixture.files {
            fs::write(at(name)?, text)?;
        }
        for (name, size) in &fixture.sizes {
            let size = usize::try_from(*size).ok().filter(|s| *s <= 64 << 20);
            let size = size.ok_or_else(|| Failure::usage(format!("`{name}` is larger than 64 MiB")))?;
            fs::write(at(name)?, b"0123456789abcde\n".iter().copied().cycle().take(size).collect::<Vec<u8>>())?;
        }
        for (name, target) in &fixture.links {
            link(Path::new(target), &at(name)?)?;
        }
        set_modes(&work, &fixture.modes)?;
        if !fixture.setup.is_empty() {
            let job = RehearsalJob {
                writable: Some(top.to_path_buf()),
                ..self.job(&self.native(), &fixture.setup, &work, top)
            };
            let made = self.rehearse(job).map_err(|e| Failure::internal(&e).hint(e.hint()))?;
            if !made.status.success() {
                let stderr = String::from_utf8_lossy(&made.stderr);
                let what = format!("its setup failed ({}): {}", made.status, stderr.trim());
                return Err(Failure::usage(what.trim_end_matches(": ")));
            }
        }
        set_times(&work, &work, &fixture.ages, SystemTime::now())?;
        Ok(())
    }

    /// The job that runs a line in a userspace, in a folder of the fixture at `top`.
    fn job(&self, space: &Userspace, line: &str, cwd: &Path, top: &Path) -> RehearsalJob {
        let mut job = RehearsalJob::new(&space.shell[0], line, cwd);
        job.shell = space.shell.iter().map(|word| word.clone().into()).collect();
        job.limits = Limits { wall: RUN_TIMEOUT, output: MAX_OUTPUT };
        job.digests = true;
        let day = "2026-01-15T12:00:00Z";
        job.env = [
            ("HOME", top.join("home").into()),
            ("GIT_CONFIG_GLOBAL", "/dev/null".into()),
            ("GIT_CONFIG_NOSYSTEM", "1".into()),
            ("GIT_AUTHOR_NAME", "Ada Example".into()),
            ("GIT_AUTHOR_EMAIL", "ada@example.org".into()),
            ("GIT_AUTHOR_DATE", day.into()),
            ("GIT_COMMITTER_NAME", "Ada Example".into()),
            ("GIT_COMMITTER_EMAIL", "ada@example.org".into()),
            ("GIT_COMMITTER_DATE", day.into()),
        ]
        .map(|(name, value)| (name.into(), value))
        .to_vec();
        if let Some(path) = &space.path {
            job.env.push(("PATH".into(), path.into()));
        }
        job
    }

    /// Runs a command as an answer to the task, in a view of its fixture.
    ///
    /// # Errors
    /// If the fixture cannot be made or the sandbox fails.
    pub fn run(&mut self, suite: &Suite, task: &Task, space: &Userspace, command: &str) -> Result<Outcome, Failure> {
        let cwd = self.folder(suite, task)?;
        let top = self.dir.path().join(task.fixture.to_string());
        let mut job = self.job(space, command, &cwd, &top);
        if !task.then.is_empty() {
            let shell = job.shell.clone();
            job.script = FRAME.into();
            // `$0`, and then the words that start a shell
            job.args = std::iter::once("caro-eval".into()).chain(shell).collect();
            job.env.extend([
                ("CARO_EVAL_COMMAND".into(), command.into()),
                ("CARO_EVAL_THEN".into(), (&task.then).into()),
                ("CARO_EVAL_MARK".into(), MARK.into()),
            ]);
        }
        let result = self.rehearse(job).map_err(|e| Failure::internal(&e).hint(e.hint()))?;
        Ok(outcome(result, &top.join("work"), task))
    }
}

/// The outcome of a run, with paths relative to the fixture.
fn outcome(result: Rehearsal, work: &Path, task: &Task) -> Outcome {
    let text = String::from_utf8_lossy(&result.stdout).replace(&format!("{}/", work.join(&task.cwd).display()), "");
    let text = text.replace(&format!("{}/", work.display()), "");
    let mark = format!("\n{MARK}\n");
    let (stdout, afterwards) = match text.split_once(&mark) {
        Some((stdout, afterwards)) => (stdout.to_owned(), afterwards.to_owned()),
        None => (text, String::new()),
    };
    let changes = result.changes.into_iter().filter_map(|change| relative(change, work)).collect();
    let status = match result.status {
        // a shell reports the signal of its child as 128 and its number
        Status::Exited(code) if code > 128 && code < 160 => Status::Signaled(code - 128),
        other => other,
    };
    Outcome { status, stdout, afterwards, changes }
}

/// Makes the path of a change relative to the fixture; other paths stay absolute. `None` for temporary files
/// elsewhere, and for git's index, which is written even by commands that only read the repository.
fn relative(change: Change, work: &Path) -> Option<Change> {
    if let Ok(inside) = change.path.strip_prefix(work) {
        if inside.ends_with(".git/index") {
            return None;
        }
        return Some(Change { path: inside.to_path_buf(), ..change });
    }
    let is_temporary = ["/tmp", "/var/tmp", "/dev"].iter().any(|place| change.path.starts_with(place));
    (!is_temporary).then_some(change)
}

/// Returns the path of a name in a fixture, and makes the folders above it.
///
/// # Errors
/// If it is not below `work`, for example because of a link in the fixture.
fn inside(work: &Path, name: &str) -> Result<PathBuf, Failure> {
    let out = || Failure::usage(format!("`{name}` leads out of it"));
    let mut path = work.to_path_buf();
    let mut parts = Path::new(name).components().peekable();
    while let Some(part) = parts.next() {
        let std::path::Component::Normal(part) = part else { return Err(out()) };
        path.push(part);
        if parts.peek().is_none() {
            return Ok(path);
        }
        match fs::symlink_metadata(&path) {
            Ok(meta) if meta.is_dir() => {}
            Ok(_) => return Err(out()),
            Err(_) => fs::create_dir(&path)?,
        }
    }
    Err(out())
}

#[cfg(unix)]
fn link(target: &Path, at: &Path) -> Result<(), Failure> {
    Ok(std::os::unix::fs::symlink(target, at)?)
}

#[cfg(not(unix))]
fn link(_: &Path, at: &Path) -> Result<(), Failure> {
    Err(Failure::usage(format!("{}: no links on this system", at.display())))
}

/// Sets the given modes, and the usual ones for everything else, whatever the umask.
#[cfg(unix)]
fn set_modes(work: &Path, modes: &BTreeMap<String, String>) -> Result<(), Failure> {
    use std::os::unix::fs::PermissionsExt;
    let set = |path: &Path, mode: u32| fs::set_permissions(path, fs::Permissions::from_mode(mode));
    for path in below(work)? {
        let meta = fs::symlink_metadata(&path)?;
        if !meta.is_symlink() {
            set(&path, if meta.is_dir() { 0o755 } else { 0o644 })?;
        }
    }
    for (name, mode) in modes {
        let bits = u32::from_str_radix(mode, 8).ok().filter(|m| *m <= 0o7777);
        let bits = bits.ok_or_else(|| Failure::usage(format!("`{mode}` is not a mode")))?;
        let path = inside(work, name)?;
        if fs::symlink_metadata(&path)?.is_symlink() {
            return Err(Failure::usage(format!("`{name}` is a link, which has no mode")));
        }
        set(&path, bits)?;
    }
    Ok(())
}

#[cfg(not(unix))]
fn set_modes(_: &Path, _: &BTreeMap<String, String>) -> Result<(), Failure> {
    Ok(())
}

/// Sets the modification times: an hour ago, or the given number of days ago. Folders come after their contents,
/// because changing these updates their times.
fn set_times(work: &Path, folder: &Path, ages: &BTreeMap<String, f64>, now: SystemTime) -> Result<(), Failure> {
    let mut paths = below(folder)?;
    paths.reverse();
    for path in paths {
        let name = path.strip_prefix(work).unwrap_or(&path).to_string_lossy().into_owned();
        let days = ages.get(&name).copied().unwrap_or(1.0 / 24.0);
        let age = Duration::try_from_secs_f64(days * 86_400.0)
            .map_err(|_| Failure::usage(format!("{days} is not an age")))?;
        let kind = fs::symlink_metadata(&path)?;
        // opening a pipe would wait for a writer
        if !kind.is_file() && !kind.is_dir() {
            continue;
        }
        if let (Ok(file), Some(then)) = (fs::File::open(&path), now.checked_sub(age)) {
            file.set_modified(then)?;
        }
    }
    Ok(())
}

/// Lists a folder and everything below it, parents first. What is in a `.git` is left out, and so stays as git made
/// it.
fn below(top: &Path) -> Result<Vec<PathBuf>, Failure> {
    let mut found = vec![top.to_path_buf()];
    let mut at = 0;
    while at < found.len() {
        let path = found[at].clone();
        at += 1;
        if fs::symlink_metadata(&path)?.is_dir() && path.file_name().is_none_or(|n| n != ".git") {
            let mut inside = fs::read_dir(&path)?.map(|e| Ok(e?.path())).collect::<std::io::Result<Vec<_>>>()?;
            inside.sort();
            found.extend(inside);
        }
    }
    Ok(found)
}
