//! Where tasks are played: fixtures on disk, made once, and every run in a view of them that is thrown away.

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

/// Wall time of a run.
const WALL: Duration = Duration::from_secs(5);
/// Bytes of output that are compared.
const OUTPUT: usize = 1 << 20;
/// Between what a command printed and what the task's `then` did.
const MARK: &str = "--- caro eval: afterwards ---";
/// Runs the command and then the other line, each in a shell of its own, so that neither can break the frame.
const FRAME: &str =
    r#""$@" "$CARO_EVAL_COMMAND"; code=$?; printf '\n%s\n' "$CARO_EVAL_MARK"; "$@" "$CARO_EVAL_THEN"; exit $code"#;

/// A userland to run in.
#[derive(Debug)]
pub struct Userspace {
    /// Shell program and what stands before the line.
    shell: Vec<PathBuf>,
    /// The only PATH; `None` is this process' own.
    path: Option<PathBuf>,
    /// What caro is told about it; `None` is this machine.
    pub context: Option<ExecutionContext>,
    /// The shell's language.
    pub dialect: Dialect,
}

/// The place of all runs of one evaluation.
#[derive(Debug)]
pub struct Stage {
    dir: tempfile::TempDir,
    made: BTreeMap<usize, PathBuf>,
    runtime: tokio::runtime::Runtime,
    helper: Option<PathBuf>,
}

impl Stage {
    /// A stage, if this system can play at all.
    ///
    /// # Errors
    /// If there are no views here: nothing is run unprotected.
    pub fn open() -> Result<Self, Failure> {
        let dir = tempfile::Builder::new().prefix("caro-eval-").tempdir()?;
        // Links on the way (`/tmp` on some systems) would show in what commands print.
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let stage = Self { dir, made: BTreeMap::new(), runtime, helper: None };
        let probe = RehearsalJob::new(Path::new("/bin/sh"), "true", stage.dir.path());
        stage.play(probe).map_err(|e| {
            Failure::no(format!("commands are run in a sandbox only, and there is none: {e}")).hint(e.hint())
        })?;
        Ok(stage)
    }

    fn play(&self, play: RehearsalJob) -> Result<Rehearsal, RehearsalError> {
        self.runtime.block_on(rehearse(&RehearsalJob { helper: self.helper.clone(), ..play }))
    }

    /// GNU, or whatever this machine has.
    pub fn native(&self) -> Userspace {
        let bash = ["/bin/bash", "/usr/bin/bash", "/usr/local/bin/bash"].into_iter().find(|p| Path::new(p).exists());
        let (shell, dialect) = bash.map_or(("/bin/sh", Dialect::Sh), |bash| (bash, Dialect::Bash));
        Userspace { shell: vec![shell.into(), "-c".into()], path: None, context: None, dialect }
    }

    /// Nothing but busybox's applets.
    ///
    /// # Errors
    /// If there is no busybox.
    pub fn busybox(&self) -> Result<Userspace, Failure> {
        let busybox = caro_exec::find("busybox").ok_or_else(|| {
            Failure::no("there is no busybox to run these tasks with").hint("install it, or leave them out with --only")
        })?;
        let bin = self.dir.path().join("busybox");
        if !bin.exists() {
            let mut play = RehearsalJob::new(&busybox, "busybox --list", self.dir.path());
            play.limits = Limits { wall: WALL, output: OUTPUT };
            let list = self.play(play).map_err(|e| Failure::internal(&e).hint(e.hint()))?;
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

    /// The folder that a task's command runs in.
    ///
    /// # Errors
    /// If the fixture cannot be made.
    pub fn folder(&mut self, suite: &Suite, task: &Task) -> Result<PathBuf, Failure> {
        let top = match self.made.get(&task.fixture) {
            Some(top) => top.clone(),
            None => {
                let top = self.dir.path().join(task.fixture.to_string());
                let told = |f: Failure| {
                    let hint = f.hint.unwrap_or_else(|| "`caro eval --help` shows what a fixture may hold".into());
                    Failure::new(f.exit, format!("task `{}`: its fixture: {}", task.id, f.message)).hint(hint)
                };
                self.make(&suite.fixtures[task.fixture], &top).map_err(told)?;
                self.made.insert(task.fixture, top.clone());
                top
            }
        };
        Ok(top.join("work").join(&task.cwd))
    }

    fn make(&self, fixture: &Fixture, top: &Path) -> Result<(), Failure> {
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
            let play = RehearsalJob {
                writable: Some(top.to_path_buf()),
                ..self.framed(&self.native(), &fixture.setup, &work, top)
            };
            let made = self.play(play).map_err(|e| Failure::internal(&e).hint(e.hint()))?;
            if !made.status.success() {
                let said = String::from_utf8_lossy(&made.stderr);
                let what = format!("its setup failed ({}): {}", made.status, said.trim());
                return Err(Failure::usage(what.trim_end_matches(": ")));
            }
        }
        set_times(&work, &work, &fixture.ages, SystemTime::now())?;
        Ok(())
    }

    /// A line in a userspace, in a folder of the fixture at `top`.
    fn framed(&self, space: &Userspace, line: &str, cwd: &Path, top: &Path) -> RehearsalJob {
        let mut play = RehearsalJob::new(&space.shell[0], line, cwd);
        play.shell = space.shell.iter().map(|word| word.clone().into()).collect();
        play.limits = Limits { wall: WALL, output: OUTPUT };
        play.digests = true;
        let day = "2026-01-15T12:00:00Z";
        play.env = [
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
            play.env.push(("PATH".into(), path.into()));
        }
        play
    }

    /// Runs a command as an answer to the task, in a view of its fixture.
    ///
    /// # Errors
    /// If the fixture cannot be made or there is no view any more.
    pub fn run(&mut self, suite: &Suite, task: &Task, space: &Userspace, command: &str) -> Result<Outcome, Failure> {
        let cwd = self.folder(suite, task)?;
        let top = self.dir.path().join(task.fixture.to_string());
        let mut play = self.framed(space, command, &cwd, &top);
        if !task.then.is_empty() {
            let own = play.shell.clone();
            play.script = FRAME.into();
            // `$0`, and then the words that start a shell.
            play.after = std::iter::once("caro-eval".into()).chain(own).collect();
            play.env.extend([
                ("CARO_EVAL_COMMAND".into(), command.into()),
                ("CARO_EVAL_THEN".into(), (&task.then).into()),
                ("CARO_EVAL_MARK".into(), MARK.into()),
            ]);
        }
        let seen = self.play(play).map_err(|e| Failure::internal(&e).hint(e.hint()))?;
        Ok(outcome(seen, &top.join("work"), task))
    }
}

/// What matters of a run, with paths relative to the fixture.
fn outcome(seen: Rehearsal, work: &Path, task: &Task) -> Outcome {
    let text = String::from_utf8_lossy(&seen.stdout).replace(&format!("{}/", work.join(&task.cwd).display()), "");
    let text = text.replace(&format!("{}/", work.display()), "");
    let mark = format!("\n{MARK}\n");
    let (stdout, afterwards) = match text.split_once(&mark) {
        Some((stdout, afterwards)) => (stdout.to_owned(), afterwards.to_owned()),
        None => (text, String::new()),
    };
    let changes = seen.changes.into_iter().filter_map(|change| relative(change, work)).collect();
    let status = match seen.status {
        // A shell that reports the signal of its child.
        Status::Exited(code) if code > 128 && code < 160 => Status::Signaled(code - 128),
        other => other,
    };
    Outcome { status, stdout, afterwards, changes }
}

/// A change with its path below the fixture. Temporary files elsewhere do not count; other places stay absolute. Nor does
/// git's index count: to look at a repository is to write there when files were last looked at.
fn relative(change: Change, work: &Path) -> Option<Change> {
    if let Ok(inside) = change.path.strip_prefix(work) {
        if inside.ends_with(".git/index") {
            return None;
        }
        return Some(Change { path: inside.to_path_buf(), ..change });
    }
    let passing = ["/tmp", "/var/tmp", "/dev"].iter().any(|place| change.path.starts_with(place));
    (!passing).then_some(change)
}

/// The path of a name in a fixture, with the folders above it.
///
/// # Errors
/// If it is not below `work`, be it by a link of the fixture's own.
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

/// The modes that are named, and the usual ones for everything else, whatever the umask.
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
        let bits = bits.ok_or_else(|| Failure::usage(format!("`{mode}` is no mode")))?;
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

/// Ages everything: an hour, or as many days as are named. Folders last, for what happens in them makes them young.
fn set_times(work: &Path, folder: &Path, ages: &BTreeMap<String, f64>, now: SystemTime) -> Result<(), Failure> {
    let mut paths = below(folder)?;
    paths.reverse();
    for path in paths {
        let name = path.strip_prefix(work).unwrap_or(&path).to_string_lossy().into_owned();
        let days = ages.get(&name).copied().unwrap_or(1.0 / 24.0);
        let age =
            Duration::try_from_secs_f64(days * 86_400.0).map_err(|_| Failure::usage(format!("{days} is no age")))?;
        let kind = fs::symlink_metadata(&path)?;
        // a pipe would have us wait for who writes into it
        if !kind.is_file() && !kind.is_dir() {
            continue;
        }
        if let (Ok(file), Some(then)) = (fs::File::open(&path), now.checked_sub(age)) {
            file.set_modified(then)?;
        }
    }
    Ok(())
}

/// Everything below a folder and the folder itself, parents first. A `.git` is left as its program made it.
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
