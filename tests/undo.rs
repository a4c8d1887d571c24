//! Tests undo by a table of commands and of things they change: each pair runs for real in bash and is undone. That
//! restores everything: content, modes, owners, times, links, attributes and holes, also after a kill -9 at any step.

use caro::shell::{Dialect, parse};
use caro::undo::plan::{Cover, Plan};
use caro::undo::{Limits, Store, UndoError, Watch, foresee, journal, keep, restore};
use rustix::fs::{CWD, FileType, Mode, XattrFlags};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs::{self, File, Permissions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime};
use tempfile::TempDir;

/// Creates something in a folder.
type Thing = fn(&Path);

/// The things in the folder `d` that the commands change.
const THINGS: &[(&str, Thing)] = &[
    ("regular", |d| file(&d.join("f"), b"one\ntwo\n", 0o644)),
    ("empty", |d| file(&d.join("f"), b"", 0o600)),
    ("sparse", |d| {
        let file = File::create(d.join("f")).unwrap();
        file.set_len(8 << 20).unwrap();
        std::os::unix::fs::FileExt::write_all_at(&file, b"middle", 4 << 20).unwrap();
    }),
    ("link", |d| {
        file(&d.join("g"), b"end of the link\n", 0o644);
        symlink("g", d.join("f")).unwrap();
    }),
    ("dangling link", |d| symlink("../nowhere", d.join("f")).unwrap()),
    ("hard links", |d| {
        file(&d.join("f"), b"one file of two names\n", 0o640);
        fs::hard_link(d.join("f"), d.join("g")).unwrap();
    }),
    ("hard link outside", |d| {
        file(&d.join("f"), b"one more name elsewhere\n", 0o640);
        fs::hard_link(d.join("f"), d.join("../elsewhere")).unwrap();
    }),
    ("pipe", |d| rustix::fs::mknodat(CWD, d.join("f"), FileType::Fifo, Mode::from_raw_mode(0o640), 0).unwrap()),
    ("attributes", |d| {
        file(&d.join("f"), b"has attributes\n", 0o644);
        let _ = rustix::fs::lsetxattr(d.join("f"), "user.note", b"\x00\xff bytes", XattrFlags::empty());
    }),
    ("mode 000", |d| file(&d.join("f"), b"nobody reads it\n", 0o000)),
    ("setuid", |d| file(&d.join("f"), b"#!/bin/true\n", 0o4755)),
    ("read-only folder", |d| {
        fs::create_dir(d.join("r")).unwrap();
        file(&d.join("r/f"), b"in a folder that may not be written\n", 0o444);
        fs::set_permissions(d.join("r"), Permissions::from_mode(0o555)).unwrap();
    }),
    ("newline", |d| file(&d.join("a\nb"), b"newline\n", 0o644)),
    ("blanks", |d| file(&d.join(" a  b "), b"blanks\n", 0o644)),
    ("leading dash", |d| file(&d.join("-rf"), b"dash\n", 0o644)),
    ("no UTF-8", |d| file(&d.join(OsStr::from_bytes(b"\xff\xfe")), b"bytes\n", 0o644)),
    ("empty folders", |d| fs::create_dir_all(d.join("a/b/c")).unwrap()),
    ("tree", |d| {
        fs::create_dir_all(d.join("a/b")).unwrap();
        for name in ["a/one", "a/b/two", "a/b/.hidden", "three"] {
            file(&d.join(name), name.as_bytes(), 0o644);
        }
        symlink("../three", d.join("a/up")).unwrap();
        fs::create_dir(d.join("a/empty")).unwrap();
    }),
    ("owner", |d| {
        file(&d.join("f"), b"somebody else's\n", 0o644);
        if rustix::process::geteuid().is_root() {
            std::os::unix::fs::lchown(d.join("f"), Some(12), Some(34)).unwrap();
        }
    }),
    ("large", |d| file(&d.join("f"), &b"0123456789abcdef".repeat(200_000), 0o644)),
];

/// The commands. Each ends whether or not it succeeds.
const COMMANDS: &[&str] = &[
    "rm -rf d",
    "rm -rf ./d/*",
    "mv d e",
    "mv ./d/* dest",
    "truncate -s 0 ./d/*",
    "truncate -s 5 ./d/*",
    "sed -i 's/e/E/' ./d/*",
    "chmod -R 711 d",
    "chown -R 1:1 d",
    "touch -h ./d/*",
    "rm -rf d && mkdir d && echo new > d/other",
    "mv d e; rm -rf e",
    "cp -r other d",
    "cp -r other/deep d; mv dest d",
    "ln -sf /etc/passwd d/f",
];

fn file(path: &Path, content: &[u8], mode: u32) {
    fs::write(path, content).unwrap();
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

/// A folder to work in, and one for the store, on one file system.
struct Stage {
    dir: TempDir,
}

impl Stage {
    /// Uses a file system in memory if there is one: hundreds of stages with many syncs are slow on a disk.
    fn new() -> Self {
        let memory = Path::new("/dev/shm");
        let dir = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() };
        Self { dir: dir.unwrap() }
    }

    /// Creates a stage with this thing.
    fn with(thing: Thing) -> Self {
        let stage = Self::new();
        let work = stage.work();
        fs::create_dir_all(work.join("d")).unwrap();
        fs::create_dir_all(work.join("dest/in")).unwrap();
        fs::create_dir_all(work.join("other/deep")).unwrap();
        file(&work.join("dest/f"), b"was at the destination\n", 0o600);
        file(&work.join("other/deep/x"), b"x", 0o644);
        thing(&work.join("d"));
        age(&work);
        stage
    }

    fn work(&self) -> PathBuf {
        self.dir.path().canonicalize().unwrap().join("w")
    }

    fn store(&self) -> Store {
        Store::new(self.dir.path().join("store"), Limits::default())
    }

    /// Plans what to save for a command, without a rehearsal.
    fn plan(&self, command: &str) -> Plan {
        foresee(&parse(command, Dialect::Bash), &self.work()).plan(None)
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        // ordinary users cannot remove the content of a read-only folder
        let _ = Command::new("chmod").args(["-R", "u+rwX"]).arg(self.dir.path()).stderr(Stdio::null()).status();
    }
}

/// Sets a distinct time, long ago, for each path below a folder.
fn age(top: &Path) {
    let mut paths = vec![top.to_path_buf()];
    let mut at = 0;
    while at < paths.len() {
        if paths[at].is_dir() && !paths[at].is_symlink() {
            paths.extend(fs::read_dir(&paths[at]).unwrap().map(|entry| entry.unwrap().path()));
        }
        at += 1;
    }
    paths.sort();
    for (at, path) in paths.iter().enumerate().rev() {
        let time = rustix::fs::Timespec { tv_sec: 1_000_000_000 + at as i64, tv_nsec: 123_456_789 };
        let times = rustix::fs::Timestamps { last_access: time, last_modification: time };
        rustix::fs::utimensat(CWD, path, &times, rustix::fs::AtFlags::SYMLINK_NOFOLLOW).unwrap();
    }
}

/// A description of each path below a folder, including the folder itself as the empty path.
type State = BTreeMap<PathBuf, String>;

fn state(top: &Path) -> State {
    let mut names: BTreeMap<u64, BTreeSet<PathBuf>> = BTreeMap::new();
    let mut all: Vec<(PathBuf, fs::Metadata)> = Vec::new();
    let mut folders = vec![top.to_path_buf()];
    let mut add = |path: PathBuf, all: &mut Vec<(PathBuf, fs::Metadata)>| {
        let meta = fs::symlink_metadata(&path).unwrap();
        if meta.is_file() {
            names.entry(meta.ino()).or_default().insert(path.clone());
        }
        all.push((path, meta));
    };
    add(top.to_path_buf(), &mut all);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let entry = entry.unwrap();
            if entry.file_type().unwrap().is_dir() {
                folders.push(entry.path());
            }
            add(entry.path(), &mut all);
        }
    }
    let describe = |(path, meta): (PathBuf, fs::Metadata)| {
        let mut line =
            format!("{:o} {}:{} {}.{:09}", meta.mode(), meta.uid(), meta.gid(), meta.mtime(), meta.mtime_nsec());
        if meta.is_symlink() {
            line.push_str(&format!(" -> {:?}", fs::read_link(&path).unwrap()));
        }
        if meta.is_file() {
            let content = fs::read(&path).unwrap();
            let shown = String::from_utf8_lossy(&content[..content.len().min(40)]).into_owned();
            let sum = content.iter().fold(7u64, |sum, byte| sum.wrapping_mul(31).wrapping_add(u64::from(*byte)));
            let holes = meta.blocks() * 512 + 65536 < meta.len();
            line.push_str(&format!(" {} {sum:x} {shown:?} holes {holes} names {:?}", meta.len(), names[&meta.ino()]));
        }
        let mut list = vec![0u8; 4096];
        if let Ok(length) = rustix::fs::llistxattr(&path, &mut list[..]) {
            for name in list[..length].split(|b| *b == 0).filter(|n| n.starts_with(b"user.")) {
                let mut value = vec![0u8; 4096];
                let length = rustix::fs::lgetxattr(&path, name, &mut value[..]).unwrap();
                line.push_str(&format!(" {}={:?}", String::from_utf8_lossy(name), &value[..length]));
            }
        }
        (path.strip_prefix(top).unwrap().to_path_buf(), line)
    };
    all.into_iter().map(describe).collect()
}

fn bash(command: &str, cwd: &Path) -> i32 {
    let mut bash = Command::new("timeout");
    bash.args(["20", "/bin/bash", "-c", command])
        .current_dir(cwd)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    bash.status().unwrap().code().unwrap_or(128)
}

/// All pairs with their numbers, except those that would wait for a writer of the pipe.
fn pairs() -> impl Iterator<Item = (usize, &'static str, Thing, &'static str)> {
    let all = THINGS.iter().flat_map(|(name, thing)| COMMANDS.iter().map(move |command| (*name, *thing, *command)));
    let all = all.filter(|(name, _, command)| *name != "pipe" || !command.starts_with("sed"));
    all.enumerate().map(|(number, (name, thing, command))| (number, name, thing, command))
}

#[track_caller]
fn assert_same(now: &State, then: &State, what: &str) {
    let gone: Vec<_> = then.iter().filter(|(path, description)| now.get(*path) != Some(description)).collect();
    let new: Vec<_> = now.iter().filter(|(path, description)| then.get(*path) != Some(description)).collect();
    assert!(gone.is_empty() && new.is_empty(), "{what}:\nwas {gone:#?}\nis {new:#?}");
}

#[test]
fn undo_restores_everything_and_can_be_undone() {
    let mut undone = 0;
    for (_, name, thing, command) in pairs() {
        let what = format!("{command} ({name})");
        let stage = Stage::with(thing);
        let (work, store) = (stage.work(), stage.store());
        let plan = stage.plan(command);
        // the plan does not know that these programs leave folders alone
        let covered = plan.cover == Cover::Whole || ["truncate", "sed", "touch"].iter().any(|p| command.starts_with(p));
        assert!(covered, "{what}: {plan:?}");
        let before = state(&work);
        let keeping = keep(&store, command, &work, plan, &mut ()).unwrap();
        let saved = state(&work);
        let id = keeping.entry().id;
        let code = bash(command, &work);
        let changed = state(&work);
        let Some(entry) = keeping.ended(code, &mut ()).unwrap() else {
            assert_same(&changed, &saved, &what);
            assert!(store.all().unwrap().is_empty(), "{what}");
            continue;
        };
        assert_eq!(entry.state, journal::State::Ran(code));
        let done = restore(&store, id, false, &mut ()).unwrap_or_else(|e| panic!("{what}: {e} {e:?}"));
        assert_eq!(done.problems, [], "{what}");
        assert_same(&state(&work), &before, &what);
        assert!(matches!(restore(&store, id, false, &mut ()), Err(UndoError::Already(..))));
        // undo the undo
        let again = restore(&store, done.by, false, &mut ()).unwrap_or_else(|e| panic!("{what}: {e} {e:?}"));
        assert_eq!(again.problems, [], "{what}");
        assert_same(&state(&work), &changed, &format!("{what}, undone twice"));
        restore(&store, again.by, false, &mut ()).unwrap();
        assert_same(&state(&work), &before, &format!("{what}, undone thrice"));
        undone += 1;
    }
    assert!(pairs().count() >= 290 && undone >= 200, "{undone}");
}

/// Counts steps down, and calls `act` at one of them.
struct AtStep<F: FnMut() -> io::Result<()>> {
    left: usize,
    act: F,
}

impl<F: FnMut() -> io::Result<()>> Watch for AtStep<F> {
    fn step(&mut self, _: &'static str) -> io::Result<()> {
        if self.left == 0 {
            return (self.act)();
        }
        self.left -= 1;
        Ok(())
    }
}

/// The work of a process that is killed at some step: save, run, record the end, undo.
fn run_and_undo(store: &Store, command: &str, work: &Path, watch: &mut dyn Watch) {
    let plan = foresee(&parse(command, Dialect::Bash), work).plan(None);
    let keeping = keep(store, command, work, plan, watch).unwrap();
    let id = keeping.entry().id;
    watch.step("run").unwrap();
    let code = bash(command, work);
    watch.step("ended").unwrap();
    if keeping.ended(code, watch).unwrap().is_some() {
        restore(store, id, false, watch).unwrap();
    }
}

const CHILD: &str = "UNDO_TEST_CHILD";

/// Not a test by itself: the process that the next test starts, and that kills itself at a step.
#[test]
fn the_process_that_is_killed() {
    let Some(orders) = std::env::var_os(CHILD) else { return };
    let orders = orders.into_string().unwrap();
    let [number, left, top] = orders.splitn(3, ' ').collect::<Vec<_>>()[..] else { panic!("{orders}") };
    let (_, _, _, command) = pairs().nth(number.parse().unwrap()).unwrap();
    let top = Path::new(top);
    let store = Store::new(top.join("store"), Limits::default());
    let kill = || {
        rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL)?;
        loop {
            std::thread::park();
        }
    };
    run_and_undo(&store, command, &top.join("w"), &mut AtStep { left: left.parse().unwrap(), act: kill });
}

#[test]
fn a_kill_at_any_step_loses_nothing() {
    let (mut killed, mut after_ready) = (0, 0);
    for (number, name, thing, command) in pairs().filter(|(number, ..)| number % 2 == 0) {
        // count the steps
        let rehearsal = Stage::with(thing);
        let mut counter = AtStep { left: usize::MAX, act: || Ok(()) };
        run_and_undo(&rehearsal.store(), command, &rehearsal.work(), &mut counter);
        let steps = usize::MAX - counter.left;
        let left = number * 7 % steps;
        let what = format!("{command} ({name}), killed at step {left} of {steps}");

        let stage = Stage::with(thing);
        let (work, store) = (stage.work(), stage.store());
        let before = state(&work);
        let top = stage.dir.path().canonicalize().unwrap();
        let status = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "undo::the_process_that_is_killed", "--test-threads", "1"])
            .env(CHILD, format!("{number} {left} {}", top.display()))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .unwrap();
        assert_eq!(std::os::unix::process::ExitStatusExt::signal(&status), Some(9), "{what}");
        killed += 1;
        store.sweep(0);
        let latest = match store.latest() {
            Ok(latest) => latest,
            // the command never ran, changed nothing, or is undone already
            Err(UndoError::Nothing) => {
                assert_same(&without_folder_times(state(&work)), &without_folder_times(before), &what);
                continue;
            }
            Err(e) => panic!("{what}: {e}"),
        };
        after_ready += 1;
        let done = restore(&store, latest.id, false, &mut ()).unwrap_or_else(|e| panic!("{what}: {e} {e:?}"));
        assert_eq!(done.problems, [], "{what}");
        assert_same(&without_folder_times(state(&work)), &without_folder_times(before), &what);
        assert!(matches!(store.latest(), Err(UndoError::Nothing)), "{what}");
    }
    assert!(killed >= 100 && after_ready >= 60, "{killed} killed, {after_ready} of them with something saved");
}

/// Removes the times of the surrounding folders, which other actions change too.
fn without_folder_times(mut state: State) -> State {
    for folder in ["", "d", "dest"] {
        if let Some(description) = state.get_mut(Path::new(folder)) {
            *description = description.rsplit_once(' ').unwrap().0.to_owned();
        }
    }
    state
}

#[test]
fn a_full_disk_at_any_step_prevents_the_command_and_loses_nothing() {
    let (_, thing) = THINGS.iter().find(|(name, _)| *name == "tree").unwrap();
    for command in ["rm -rf d", "sed -i s/e/E/ d/three"] {
        for left in 0.. {
            let stage = Stage::with(*thing);
            let (work, store) = (stage.work(), stage.store());
            let before = state(&work);
            let full = || Err(io::Error::from(ErrorKind::StorageFull));
            let result = keep(&store, command, &work, stage.plan(command), &mut AtStep { left, act: full });
            assert_same(&state(&work), &before, command);
            match result {
                Ok(_) => {
                    assert!(left > 3, "{command}: {left} steps");
                    break;
                }
                Err(why) => {
                    assert!(matches!(why, UndoError::Full(_)), "{why:?}");
                    assert_eq!(fs::read_dir(store.folder()).unwrap().count(), 0, "{command} at {left}");
                }
            }
        }
    }
}

#[test]
fn an_undo_on_a_full_disk_fails_and_can_be_repeated() {
    let (_, thing) = THINGS.iter().find(|(name, _)| *name == "tree").unwrap();
    let command = "rm -rf d";
    for left in 0..60 {
        let stage = Stage::with(*thing);
        let (work, store) = (stage.work(), stage.store());
        let before = state(&work);
        let keeping = keep(&store, command, &work, stage.plan(command), &mut ()).unwrap();
        let id = keeping.entry().id;
        keeping.ended(bash(command, &work), &mut ()).unwrap();
        let mut full = AtStep { left, act: || Err(io::Error::from(ErrorKind::StorageFull)) };
        let succeeded = restore(&store, id, false, &mut full).is_ok_and(|done| done.problems.is_empty());
        if !succeeded {
            let done = restore(&store, id, false, &mut ()).unwrap_or_else(|e| panic!("{left}: {e} {e:?}"));
            assert_eq!(done.problems, [], "{left}");
        }
        assert_same(&without_folder_times(state(&work)), &without_folder_times(before), &format!("full at {left}"));
    }
}

#[test]
fn files_changed_since_are_overwritten_only_if_forced_and_then_saved() {
    let (_, thing) = THINGS[0];
    let stage = Stage::with(thing);
    let (work, store) = (stage.work(), stage.store());
    let before = state(&work);
    let command = "sed -i s/one/1/ d/f";
    let keeping = keep(&store, command, &work, stage.plan(command), &mut ()).unwrap();
    let id = keeping.entry().id;
    keeping.ended(bash(command, &work), &mut ()).unwrap();
    fs::write(work.join("d/f"), "my own work\n").unwrap();
    let mine = state(&work);
    match restore(&store, id, false, &mut ()) {
        Err(UndoError::Changed(paths)) => assert_eq!(paths, [work.join("d/f")]),
        other => panic!("{other:?}"),
    }
    assert_same(&state(&work), &mine, "refused");
    let done = restore(&store, id, true, &mut ()).unwrap();
    assert_eq!(fs::read(work.join("d/f")).unwrap(), b"one\ntwo\n");
    restore(&store, done.by, false, &mut ()).unwrap();
    assert_eq!(fs::read(work.join("d/f")).unwrap(), b"my own work\n");
    drop(before);
}

#[test]
fn a_new_file_in_place_of_a_deleted_one_is_detected() {
    let (_, thing) = THINGS[0];
    let stage = Stage::with(thing);
    let (work, store) = (stage.work(), stage.store());
    let keeping = keep(&store, "rm -r d", &work, stage.plan("rm -r d"), &mut ()).unwrap();
    let id = keeping.entry().id;
    keeping.ended(bash("rm -r d", &work), &mut ()).unwrap();
    fs::create_dir(work.join("d")).unwrap();
    fs::write(work.join("d/new"), "new").unwrap();
    assert!(matches!(restore(&store, id, false, &mut ()), Err(UndoError::Changed(_))));
    // a link in the place of a folder would lead the undo elsewhere
    fs::remove_dir_all(work.join("d")).unwrap();
    symlink("/etc", work.join("d")).unwrap();
    assert!(matches!(restore(&store, id, false, &mut ()), Err(UndoError::Changed(_))));
    let done = restore(&store, id, true, &mut ()).unwrap();
    assert_eq!((done.problems.len(), fs::read(work.join("d/f")).unwrap()), (0, b"one\ntwo\n".to_vec()));
}

#[test]
fn a_deleted_file_is_saved_as_a_link_and_an_overwritten_one_as_a_copy_up_to_a_limit() {
    let stage = Stage::with(|d| file(&d.join("f"), &[7; 3 << 20], 0o644));
    let (work, folder) = (stage.work(), stage.dir.path().join("store"));
    let store = Store::new(&folder, Limits { copies: 1 << 20, ..Limits::default() });
    let keeping = keep(&store, "rm d/f", &work, stage.plan("rm d/f"), &mut ()).unwrap();
    let saved = fs::metadata(folder.join("1/files/1")).unwrap();
    assert_eq!((saved.ino(), saved.nlink()), (fs::metadata(work.join("d/f")).unwrap().ino(), 2));
    keeping.dropped();
    let why = keep(&store, "truncate -s 0 d/f", &work, stage.plan("truncate -s 0 d/f"), &mut ()).unwrap_err();
    assert!(matches!(why, UndoError::TooLarge { needed, most } if needed >= 3 << 20 && most == 1 << 20), "{why:?}");
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);
    // the total limit applies to links too
    let store = Store::new(&folder, Limits { total: 1 << 20, ..Limits::default() });
    let why = keep(&store, "rm d/f", &work, stage.plan("rm d/f"), &mut ()).unwrap_err();
    assert!(matches!(why, UndoError::TooLarge { .. }), "{why:?}");
    assert_eq!(fs::metadata(&folder).unwrap().permissions().mode() & 0o777, 0o700);
}

#[test]
fn a_moved_file_of_any_size_is_moved_back_with_later_changes() {
    let stage = Stage::with(|d| file(&d.join("f"), &[7; 3 << 20], 0o644));
    let (work, folder) = (stage.work(), stage.dir.path().join("store"));
    let store = Store::new(&folder, Limits { copies: 1 << 20, ..Limits::default() });
    let before = state(&work);
    let command = "mv d/f dest/g";
    for force in [false, true] {
        let keeping = keep(&store, command, &work, stage.plan(command), &mut ()).unwrap();
        let id = keeping.entry().id;
        keeping.ended(bash(command, &work), &mut ()).unwrap();
        if force {
            bash("echo more >> dest/g", &work);
            assert!(matches!(restore(&store, id, false, &mut ()), Err(UndoError::Changed(_))));
        }
        assert_eq!(restore(&store, id, force, &mut ()).unwrap().problems, []);
        if force {
            assert!(fs::read(work.join("d/f")).unwrap().ends_with(b"\x07more\n"));
        } else {
            assert_same(&state(&work), &before, command);
        }
    }
}

#[test]
fn entries_are_removed_by_age_and_size_and_the_store_is_never_saved_in_itself() {
    let stage = Stage::with(THINGS[0].1);
    let (work, folder) = (stage.work(), stage.dir.path().join("store"));
    let limits = Limits { total: 3 << 20, ..Limits::default() };
    let store = Store::new(&folder, limits);
    for name in ["a", "b", "c"] {
        file(&work.join(name), &[1; 1 << 20], 0o644);
        let command = format!("rm {name}");
        let keeping = keep(&store, &command, &work, stage.plan(&command), &mut ()).unwrap();
        keeping.ended(bash(&command, &work), &mut ()).unwrap();
    }
    assert_eq!(store.all().unwrap().len(), 3);
    file(&work.join("big"), &[1; 2 << 20], 0o644);
    let keeping = keep(&store, "rm big", &work, stage.plan("rm big"), &mut ()).unwrap();
    assert_eq!(store.all().unwrap().iter().map(|e| e.command.as_str()).collect::<Vec<_>>(), ["rm c", "rm big"]);
    keeping.dropped();
    std::thread::sleep(Duration::from_millis(1100));
    let young = Store::new(&folder, Limits { age: Duration::ZERO, ..limits });
    assert_eq!(young.sweep(0), [3]);
    assert!(young.all().unwrap().is_empty());
    let top = stage.dir.path().canonicalize().unwrap();
    for command in [format!("rm -rf {}", top.display()), format!("rm -rf {}/store/*", top.display())] {
        file(&folder.join("x"), b"", 0o600);
        let why = keep(&store, &command, &work, stage.plan(&command), &mut ()).unwrap_err();
        assert!(matches!(why, UndoError::Itself(_)), "{command}: {why:?}");
    }
}

#[test]
fn three_thousand_files_are_saved_and_restored() {
    let stage = Stage::with(|d| {
        for i in 0..3000 {
            fs::write(d.join(i.to_string()), "x").unwrap();
        }
    });
    let (work, store) = (stage.work(), stage.store());
    let begun = SystemTime::now();
    let keeping = keep(&store, "rm -rf d", &work, stage.plan("rm -rf d"), &mut ()).unwrap();
    assert_eq!(keeping.entry().count, 3001);
    println!("3000 files kept in {:?}", begun.elapsed().unwrap());
    let id = keeping.entry().id;
    keeping.ended(bash("rm -rf d", &work), &mut ()).unwrap();
    let done = restore(&store, id, false, &mut ()).unwrap();
    assert_eq!((done.put_back, done.removed), (3001, 0));
    let _ = io::stdout().flush();
}
