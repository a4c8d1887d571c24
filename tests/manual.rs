//! Tests the cache of manuals on real programs of this machine and on programs that misbehave.
#![cfg(unix)]

use crate::machine::{AMPLE, Machine};
use caro::exec::support;
use caro::manual::{Entry, Known, Manual, Program, Setup, relevant};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Builtins of bash that occur in the lists below.
const BUILTINS: &[&str] = &["echo", "printf", "test", "[", "kill", "cd", "export", "read", "set", "ulimit"];

/// Finds a program as bash would.
fn program(name: &str) -> Option<Program> {
    let shell = Path::new("/bin/bash");
    if BUILTINS.contains(&name) && shell.exists() {
        return Some(Program::Builtin { name: name.into(), shell: shell.into() });
    }
    which::which_global(name).ok().map(|path| Program::File { name: name.into(), path })
}

/// Opens a cache in `dir`, or in memory without one, that uses this machine's `man`.
fn manual(dir: Option<&Path>) -> Arc<Manual> {
    Arc::new(Manual::open(Setup::of_process(dir.map(Path::to_path_buf), None)))
}

/// A cache in memory shared by all tests on real programs, so that each program is asked only once.
fn shared() -> &'static Manual {
    static SHARED: std::sync::LazyLock<Manual> =
        std::sync::LazyLock::new(|| Manual::open(Setup::of_process(None, None)));
    &SHARED
}

/// True if the man pages of GNU's programs are installed; prints a message if not.
fn has_pages() -> bool {
    let folder = Path::new("/usr/share/man/man1");
    let has = cfg!(target_os = "linux")
        && which::which_global("man").is_ok()
        && (folder.join("ls.1.gz").exists() || folder.join("ls.1").exists());
    if !has {
        eprintln!("skipped: GNU's man pages are not installed here");
    }
    has
}

/// Parses a list of commands: for each the wrong flag, if any, and the words.
fn commands(list: &'static str) -> Vec<(&'static str, Vec<&'static str>)> {
    let lines = list.lines().filter(|line| !line.starts_with('#') && !line.trim().is_empty());
    lines
        .map(|line| line.split_once(" # ").map_or((line, ""), |(line, wrong)| (line, wrong.trim())))
        .map(|(line, wrong)| (wrong, line.split_whitespace().collect()))
        .collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn correct_flags_are_accepted() {
    if !has_pages() {
        return;
    }
    let manual = shared();
    let (mut uses, mut unsure, mut wrong) = (0, 0, Vec::new());
    for (_, words) in commands(include_str!("manual/valid.txt")) {
        let Some(program) = program(words[0]) else { continue };
        let (entry, skip) = manual.get_for(&program, &words[1..]).await.unwrap();
        for found in entry.read_args(&words[1 + skip..]) {
            uses += 1;
            unsure += usize::from(found.known == Known::Unsure);
            if found.known == Known::No {
                wrong.push(format!("{} in `{}`", found.flag, words.join(" ")));
            }
        }
    }
    println!("{uses} uses of right flags: {} called wrong, {unsure} unsure", wrong.len());
    assert!(uses >= 300, "only {uses} flags could be looked at");
    assert!(wrong.len() * 100 < uses, "{} of {uses}: {wrong:#?}", wrong.len());
    assert!(unsure * 10 < uses, "{unsure} of {uses} are unsure");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn wrong_flags_are_caught() {
    if !has_pages() {
        return;
    }
    let manual = shared();
    let (mut all, mut missed) = (0, Vec::new());
    for (wrong, words) in commands(include_str!("manual/wrong.txt")) {
        let Some(program) = program(words[0]) else { continue };
        all += 1;
        let (entry, skip) = manual.get_for(&program, &words[1..]).await.unwrap();
        let unknown = entry.unknown_flags(&words[1 + skip..]);
        if !unknown.iter().any(|found| found.flag == wrong) {
            missed.push(words.join(" "));
        }
    }
    println!("{all} wrong flags, {} missed: {missed:?}", missed.len());
    assert!(all >= 60, "only {all} commands could be looked at");
    assert!(missed.len() * 10 < all, "{} of {all} missed: {missed:#?}", missed.len());
}

/// Programs whose usage names an operand such as `script` or `arg`, but whose own flags may follow it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flag_after_an_operand_is_looked_up_too() {
    if !has_pages() {
        return;
    }
    let manual = shared();
    let mut seen = 0;
    for (wrong, words) in commands(include_str!("manual/wrong-after-operand.txt")) {
        let Some(program) = program(words[0]) else { continue };
        let (entry, skip) = manual.get_for(&program, &words[1..]).await.unwrap();
        let unknown = entry.unknown_flags(&words[1 + skip..]);
        assert!(unknown.iter().any(|found| found.flag == wrong), "{}: {unknown:?}", words.join(" "));
        seen += 1;
    }
    println!("{seen} flags after an operand");
    assert!(seen >= 4, "only {seen} commands could be looked at");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn options_of_real_pages_are_parsed() {
    if !has_pages() {
        return;
    }
    let manual = shared();
    for (name, flag, argument, text) in [
        ("ls", "--sort", Some("WORD"), "sort by WORD instead of name"),
        ("ls", "--color", Some("[WHEN]"), "color"),
        ("ls", "-a", None, "do not ignore entries starting with ."),
        ("find", "-name", Some("pattern"), "Base of file name"),
        ("find", "-delete", None, "Delete files"),
        ("find", "-size", Some("n[cwbkMG]"), "File uses"),
        ("ps", "--sort", Some("spec"), "sorting order"),
        ("ps", "u", None, "user-oriented"),
        ("tar", "--extract", None, "Extract files"),
        ("tar", "-f", Some("ARCHIVE"), "Use archive file"),
        ("sort", "-k", Some("KEYDEF"), "sort via a key"),
        ("grep", "-A", Some("NUM"), "trailing context"),
        ("du", "--max-depth", Some("N"), "print the total"),
        ("df", "-h", None, "powers of 1024"),
        ("sed", "-i", Some("[SUFFIX]"), "edit files in place"),
        ("xargs", "-I", Some("replace-str"), "Replace occurrences"),
        ("head", "-n", Some("[-]NUM"), "first NUM lines"),
        ("dd", "if=", Some("FILE"), "read from FILE"),
        ("ss", "-l", None, "listening"),
        ("curl", "-o", Some("file"), "Write output to"),
        ("git", "-C", Some("path"), "Run as if git was started"),
    ] {
        let Some(program) = program(name) else { continue };
        let entry = manual.get_or_fetch(&program).await.unwrap();
        let option = entry.option(flag).unwrap_or_else(|| panic!("{name} {flag} is not in the index"));
        assert_eq!(option.argument.as_deref(), argument, "{name} {flag}: {option:?}");
        assert!(option.text.contains(text), "{name} {flag}: {}", option.text);
        assert!(entry.complete, "{name} is not complete");
        assert!(entry.man_summary.as_deref().is_some_and(|s| s.len() > 10), "{name}: {:?}", entry.man_summary);
    }
    let ls = manual.get_or_fetch(&program("ls").unwrap()).await.unwrap();
    assert_eq!(ls.title, "list directory contents");
    assert!(ls.help_text.starts_with("Usage:") && ls.help_text.len() <= 2048);
    let lines: Vec<String> =
        relevant(&ls, &["files", "by", "size"], &["--sort-by"], 3).iter().map(|o| o.usage()).collect();
    assert_eq!(lines[0], "--sort=WORD", "{lines:?}");
}

#[tokio::test]
async fn a_subcommand_has_its_own_page() {
    let Some(git) = program("git") else { return };
    if !has_pages() {
        return;
    }
    let manual = manual(None);
    let (entry, skip) = manual.get_for(&git, &["-C", "dir", "log", "--oneline"]).await.unwrap();
    if entry.command == "git" {
        eprintln!("skipped: git's pages are not installed here");
        return;
    }
    assert_eq!((entry.command.as_str(), skip), ("git log", 3));
    assert_eq!((entry.knows("--oneline"), entry.knows("--onelin")), (Known::Yes, Known::Yes));
    assert_eq!(entry.knows("--one-line"), Known::No);
    let (entry, skip) = manual.get_for(&git, &["--version"]).await.unwrap();
    assert_eq!((entry.command.as_str(), skip), ("git", 0));
}

#[tokio::test]
async fn the_help_of_a_builtin_comes_from_its_shell() {
    let manual = manual(None);
    let bash = Path::new("/bin/bash");
    if !bash.exists() {
        eprintln!("skipped: no bash here");
        return;
    }
    let of = |name: &str| Program::Builtin { name: name.into(), shell: bash.into() };
    let cd = manual.get_or_fetch(&of("cd")).await.unwrap();
    assert!(cd.help_text.contains("Change the shell working directory"), "{cd:?}");
    assert_eq!((cd.knows("-P"), cd.knows("-z"), cd.complete), (Known::Yes, Known::No, true));
    let read = manual.get_or_fetch(&of("read")).await.unwrap();
    assert_eq!(read.option("-p").and_then(|o| o.argument.as_deref()), Some("prompt"));
    let none = manual.get_or_fetch(&of("no-such-builtin")).await.unwrap();
    assert!(none.problem.is_some());
}

#[tokio::test]
async fn the_help_of_builtins_of_other_shells_is_found() {
    let manual = shared();
    for (shell, name, flag) in
        [("fish", "set", "--export"), ("fish", "string", "-q"), ("zsh", "read", "-r"), ("dash", "read", "-p")]
    {
        let Ok(path) = which::which_global(shell) else {
            eprintln!("skipped: no {shell} here");
            continue;
        };
        if !has_pages() {
            continue;
        }
        let entry = manual.get_or_fetch(&Program::Builtin { name: name.into(), shell: path }).await.unwrap();
        assert_eq!(entry.problem, None, "{shell} {name}");
        assert_ne!(entry.knows(flag), Known::No, "{shell} {name} {flag}: {:?}", entry.options);
        assert!(!entry.help_text.is_empty() || entry.man_summary.is_some());
    }
}

#[tokio::test]
async fn a_busybox_applet_is_not_mistaken_for_the_gnu_program() {
    let Ok(busybox) = which::which_global("busybox") else {
        eprintln!("skipped: no busybox here");
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("ls");
    std::os::unix::fs::symlink(busybox, &path).unwrap();
    let ls = manual(None).get_or_fetch(&Program::File { name: "ls".into(), path }).await.unwrap();
    assert!(ls.help_text.contains("BusyBox") && ls.man_summary.is_none(), "{ls:?}");
    assert_eq!((ls.knows("-la"), ls.knows("--block-size=M"), ls.complete), (Known::Yes, Known::No, true));
}

/// A folder with one executable script.
struct Script {
    dir: tempfile::TempDir,
    path: PathBuf,
}

impl Script {
    fn new(body: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let (text, path) = (dir.path().join("text"), dir.path().join("caro-fixture"));
        std::fs::write(&text, format!("#!/bin/sh\n{body}\n")).unwrap();
        // written by a child: no other thread's child inherits the open file, which would keep it from being run
        assert!(std::process::Command::new("install").arg(&text).arg(&path).status().unwrap().success());
        std::fs::remove_file(text).unwrap();
        Self { dir, path }
    }

    fn program(&self) -> Program {
        Program::File { name: "caro-fixture".into(), path: self.path.clone() }
    }

    /// Reads the entry, and returns it with the time that took.
    async fn entry(&self) -> (Arc<Entry>, Duration) {
        let manual = manual(None);
        let started = Instant::now();
        let entry = manual.get_or_fetch(&self.program()).await.unwrap();
        (entry, started.elapsed())
    }
}

#[tokio::test]
async fn a_program_that_misbehaves_is_stopped_and_gets_an_entry_with_the_problem() {
    for (body, problem) in [
        ("sleep 300", "did not answer within a second"),
        ("while :; do echo flooooooooooooooooooooooooood; done", "writes without end"),
        ("read answer < /dev/tty; exit 1", "neither a manual page nor a --help"),
        ("trap '' TERM; (sleep 301) & wait", "did not answer within a second"),
        ("kill -SEGV $$", "crashed"),
        ("exit 3", "neither a manual page nor a --help"),
    ] {
        let (entry, took) = Script::new(body).entry().await;
        let found = entry.problem.clone().unwrap_or_default();
        assert!(found.contains(problem), "{body}: {found:?}");
        assert!(!entry.complete && entry.options.is_empty());
        assert!(took < AMPLE, "{body} took {took:?}");
    }
    let (entry, _) = Script { path: std::env::temp_dir(), dir: tempfile::tempdir().unwrap() }.entry().await;
    assert_eq!(entry.problem.as_deref(), Some("is a directory"));
    let (entry, _) = Script { path: "/nonexistent/program".into(), dir: tempfile::tempdir().unwrap() }.entry().await;
    assert!(entry.problem.as_deref().is_some_and(|p| p.starts_with("cannot be looked at")), "{entry:?}");
}

#[tokio::test]
async fn a_help_text_with_invalid_bytes_is_read() {
    let body = r"printf 'Usage: x [OPTIONS]\n\n  -a, --all   caf\351 \377\376\n  \033[1m-b\033[0m          bold\n'";
    let (entry, _) = Script::new(body).entry().await;
    assert_eq!((entry.knows("--all"), entry.knows("-ab"), entry.knows("-z")), (Known::Yes, Known::Yes, Known::No));
    assert!(entry.complete && entry.problem.is_none());
}

#[tokio::test]
async fn asking_for_help_writes_no_file() {
    if !support().writes {
        eprintln!("skipped: this system cannot fence writes");
        return;
    }
    let mark = tempfile::tempdir().unwrap();
    let body = format!("echo x > {0}/written; mkdir {0}/made; echo '  -a  all'; echo '  -b  b'", mark.path().display());
    let script = Script::new(&body);
    let (entry, _) = script.entry().await;
    assert_eq!(entry.options.len(), 2, "it was run: {entry:?}");
    assert_eq!(std::fs::read_dir(mark.path()).unwrap().count(), 0, "it wrote");
    assert_eq!(std::fs::read_dir(script.dir.path()).unwrap().count(), 1);
}

#[tokio::test]
async fn programs_of_the_working_tree_are_not_run() {
    let mark = tempfile::tempdir().unwrap();
    let script = Script::new(&format!("touch {}/ran; echo '  -a  all'", mark.path().display()));
    let cwd = script.dir.path().to_path_buf();
    let manual = Manual::open(Setup { cwd: Some(cwd), ..Setup::of_process(None, None) });
    let entry = manual.get_or_fetch(&script.program()).await.unwrap();
    assert_eq!(entry.problem.as_deref(), Some("lies in the working tree, so it is not run"));
    assert!(!mark.path().join("ran").exists());
}

#[tokio::test]
async fn invalid_program_names_are_errors() {
    for name in ["", "-n", "a/b", "a\nb", "a\0b", &"x".repeat(300)] {
        let error =
            manual(None).get_or_fetch(&Program::File { name: name.into(), path: "/bin/sh".into() }).await.unwrap_err();
        assert!(!error.hint().is_empty());
    }
}

/// A program with two options, and a folder for a cache.
fn program_and_folder() -> (Script, tempfile::TempDir) {
    let dir = tempfile::tempdir().unwrap();
    (Script::new("echo 'Usage: caro-fixture'; echo '  -a, --all   take everything'; echo '  -v  version 1.0'"), dir)
}

#[tokio::test]
async fn entries_are_cached_in_memory_and_on_disk_until_the_program_changes() {
    let (script, dir) = program_and_folder();
    let first = manual(Some(dir.path()));
    let entry = first.get_or_fetch(&script.program()).await.unwrap();
    assert_eq!(entry.option("--all").map(|o| o.text.as_str()), Some("take everything"));
    assert!(Arc::ptr_eq(&entry, &first.get_or_fetch(&script.program()).await.unwrap()), "from memory");

    let second = manual(Some(dir.path()));
    assert_eq!(second.get_cached(&script.program()).as_deref(), Some(&*entry), "from disk");
    assert_eq!(second.count().unwrap(), 1);

    std::fs::write(&script.path, "#!/bin/sh\necho '  -z   new'; echo '  -y   new'\n").unwrap();
    assert_eq!(second.get_cached(&script.program()), None, "another size");
    let changed = second.get_or_fetch(&script.program()).await.unwrap();
    assert!(changed.option("-z").is_some() && changed.option("-a").is_none());
    assert_eq!(second.count().unwrap(), 1, "in place of the old one");
    assert!(second.search("everything", 5).unwrap().is_empty(), "the old lines are gone");
    assert_eq!(second.clear().unwrap(), 1);
    assert_eq!((second.count().unwrap(), second.get_cached(&script.program())), (0, None));
}

#[tokio::test]
async fn reading_a_cached_entry_takes_less_than_five_milliseconds() {
    let Some(ls) = program("ls") else { return };
    let dir = tempfile::tempdir().unwrap();
    manual(Some(dir.path())).get_or_fetch(&ls).await.unwrap();
    // the least of several: other processes run too
    let disk = (0..21).map(|_| {
        let again = manual(Some(dir.path()));
        again.count().unwrap();
        let started = Instant::now();
        again.get_cached(&ls).expect("it is on disk");
        started.elapsed()
    });
    let disk = disk.min().unwrap();
    let again = manual(Some(dir.path()));
    let entry = again.get_cached(&ls).unwrap();
    let memory = (0..101).map(|_| {
        let started = Instant::now();
        assert!(Arc::ptr_eq(&again.get_cached(&ls).unwrap(), &entry));
        started.elapsed()
    });
    let memory = memory.min().unwrap();
    println!("from disk {disk:?}, from memory {memory:?}");
    assert!(disk < Duration::from_millis(if cfg!(debug_assertions) { 50 } else { 5 }), "{disk:?}");
    assert!(memory < Duration::from_millis(5), "{memory:?}");
}

#[tokio::test]
async fn a_damaged_or_newer_cache_is_replaced() {
    let (script, dir) = program_and_folder();
    let file = dir.path().join("manual.db");
    manual(Some(dir.path())).get_or_fetch(&script.program()).await.unwrap();
    let sound = std::fs::read(&file).unwrap();
    let mut holed = sound.clone();
    let middle = holed.len() / 8;
    holed[middle..].fill(0xa5);
    for (what, bytes) in [
        ("text", b"this is not a database at all".repeat(300)),
        ("cut", sound[..sound.len() / 2].to_vec()),
        ("holed", holed),
    ] {
        std::fs::write(&file, bytes).unwrap();
        for log in ["manual.db-wal", "manual.db-shm"] {
            let _ = std::fs::remove_file(dir.path().join(log));
        }
        let manual = manual(Some(dir.path()));
        let entry = manual.get_or_fetch(&script.program()).await.unwrap();
        assert!(entry.option("--all").is_some(), "{what}");
        assert!(!manual.search("everything", 5).unwrap().is_empty(), "{what}");
        assert_eq!(manual.location().as_deref(), Some(file.as_path()), "{what}: it is on disk again");
    }
    let newer = rusqlite::Connection::open(&file).unwrap();
    newer.pragma_update(None, "user_version", 99).unwrap();
    drop(newer);
    let manual = manual(Some(dir.path()));
    assert_eq!(manual.get_cached(&script.program()), None);
    assert!(manual.get_or_fetch(&script.program()).await.unwrap().problem.is_none());
    assert_eq!(manual.location().as_deref(), Some(file.as_path()));
}

#[tokio::test]
async fn without_a_usable_folder_the_cache_is_in_memory() {
    let (script, dir) = program_and_folder();
    std::fs::write(dir.path().join("file"), "").unwrap();
    let manual = manual(Some(&dir.path().join("file/cache")));
    let entry = manual.get_or_fetch(&script.program()).await.unwrap();
    assert!(Arc::ptr_eq(&entry, &manual.get_cached(&script.program()).unwrap()));
    assert_eq!(manual.location(), None);
    assert_eq!(manual.search("everything", 5).unwrap().len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_concurrent_writers_lose_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let scripts: Vec<Script> = (0..12).map(|n| Script::new(&format!("echo '  -{n}, --opt{n}   number {n}'"))).collect();
    let (a, b) = (manual(Some(dir.path())), manual(Some(dir.path())));
    let programs: Vec<Program> = scripts.iter().map(Script::program).collect();
    let mut reported = 0;
    let other = tokio::spawn({
        let programs = programs.clone();
        async move { b.warm(programs, 3, |_, _| {}).await }
    });
    a.warm(programs.clone(), 3, |_, _| reported += 1).await;
    other.await.unwrap();
    assert_eq!(reported, 12);
    let fresh = manual(Some(dir.path()));
    for program in &programs {
        assert!(fresh.get_cached(program).is_some_and(|e| e.options.len() == 1), "{program:?}");
    }
}

#[tokio::test]
async fn search_finds_options_and_accepts_any_query() {
    let (script, dir) = program_and_folder();
    let manual = manual(Some(dir.path()));
    manual.get_or_fetch(&script.program()).await.unwrap();
    let hits = manual.search("Taking EVERYTHING", 5).unwrap();
    assert_eq!((hits[0].command.as_str(), hits[0].option.as_str()), ("caro-fixture", "-a, --all"));
    for odd in ["", "\"", "a AND", "(", "*", "--all OR", "\0", "ключ файл", &"word ".repeat(10_000)] {
        manual.search(odd, 5).unwrap();
    }
}

// --- the verbs

#[test]
fn the_manual_verb_shows_warms_searches_and_clears() {
    let machine = Machine::new();
    machine.run(&["manual", "search", "sort"]).fails(1, &["nothing was found", "caro manual warm"]);
    let warm = machine.run(&["manual", "warm", "sort", "head"]);
    assert!(warm.code == Some(0) && warm.err.contains("2 manuals read"), "{}", warm.err);
    let shown = machine.run(&["manual", "show", "sort"]);
    assert!(shown.out.contains("--reverse") && shown.out.starts_with("sort"), "{}", shown.out);
    let document = machine.run(&["manual", "show", "sort", "--json"]).json();
    assert_eq!(document["command"], "sort");
    assert!(document["options"].as_array().is_some_and(|options| options.len() > 5));
    let found = machine.run(&["manual", "search", "reverse", "--json"]).json();
    assert_eq!(found[0]["command"], "sort", "{found}");
    machine.run(&["manual", "show", "no-such-program"]).fails(1, &["no-such-program", "caro context"]);
    let cleared = machine.run(&["manual", "clear"]);
    assert!(cleared.err.contains("2 manuals forgotten"), "{}", cleared.err);
    machine.run(&["manual", "search", "reverse"]).fails(1, &["nothing was found"]);
}

#[test]
fn explain_describes_tests_and_redirections_which_are_no_programs() {
    let machine = Machine::new();
    let explain = |line: &str| machine.run(&["explain", "--shell", "bash", "--json", line]).json();
    let document = explain("echo x && [[ -f x ]] && echo y 2>/dev/null");
    let names: Vec<&str> =
        document["commands"].as_array().unwrap().iter().map(|c| c["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["echo", "[[", "echo"]);
    let (test, last) = (&document["commands"][1], &document["commands"][2]);
    assert_eq!((&test["flags"][0]["flag"], &test["flags"][0]["known"]), (&json!("-f"), &json!("yes")));
    assert_eq!(last["redirects"][0]["text"], "standard error is thrown away");
    let alone = explain("2>&1");
    assert_eq!(alone["redirects"][0]["text"], "standard error goes where standard output goes");
}

#[test]
fn explain_describes_each_program_and_flag() {
    let machine = Machine::new();
    let ran =
        machine.run(&["explain", "--shell", "bash", "--json", "sudo -u x true; ls -la --sort-by=size | head -n 5"]);
    let document = ran.json();
    let commands = document["commands"].as_array().unwrap();
    let of = |name: &str| commands.iter().find(|c| c["name"] == name).unwrap_or_else(|| panic!("{name}: {document}"));
    let flags = of("ls")["flags"].as_array().unwrap();
    assert_eq!(flags.iter().map(|f| f["flag"].as_str().unwrap()).collect::<Vec<_>>(), ["-l", "-a", "--sort-by"]);
    assert!(flags.iter().take(2).all(|f| f["known"] == "yes"), "{flags:?}");
    assert_eq!(
        (of("head")["flags"][0]["flag"].as_str(), of("head")["flags"][0]["value"].as_str()),
        (Some("-n"), Some("5"))
    );
    let text = machine.run(&["explain", "--shell", "bash", "ls -l"]);
    assert!(text.out.contains("-l"), "{}", text.out);
    // flags after a quoted command are caro's; without quotes they belong to the command
    assert!(machine.run(&["explain", "ls -l", "--json", "--shell", "bash"]).json()["commands"].is_array());
    assert!(machine.run(&["explain", "--shell", "bash", "ls", "--sort=size", "--json"]).out.contains("unknown"));
    machine.run(&["explain", "ls -l", "--jsno"]).fails(2, &["what is `--jsno`?"]);
    machine.write("config.toml", "shell = \"fish\"\n");
    assert_eq!(machine.run(&["explain", "--json", "ls"]).json()["shell"], "fish");
    machine.write("config.toml", "");
    machine.run(&["explain", "  "]).fails(2, &["no command to explain"]);
    for (torn, words) in [("ls 'unclosed", "syntax error: at `"), ("ls |", "syntax error: nothing follows the `|`")] {
        let ran = machine.run(&["explain", "--shell", "bash", torn]);
        assert!(ran.code == Some(1) && ran.out.contains(words), "{ran:#?}");
    }
    let torn = machine.run(&["explain", "--shell", "bash", "ls \\"]).out;
    assert_eq!(torn.matches("syntax error").count(), 1, "{torn}");
    for (command, said, unsaid) in [
        ("kill -9 1", "-9", "signal name"),
        ("tail -20f x", "-20 ", "0f"),
        ("chmod -x f", "chmod", "does not define it"),
        ("chmod -w f", "chmod", "does not define it"),
    ] {
        let told = machine.run(&["explain", "--shell", "bash", command]).out;
        assert!(told.contains(said) && !told.contains(unsaid), "{command}: {told}");
    }
    assert!(machine.run(&["explain", "--shell", "bash", "nosuchprogram -x"]).out.contains("is not installed here"));
    let own = machine.run(&["explain", "--shell", "bash", "./run.sh -x"]).out;
    assert!(own.contains("./run.sh") && !own.contains("not installed"), "{own}");
}
