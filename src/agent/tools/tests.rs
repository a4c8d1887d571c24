//! Tests of the built-in tools in a real folder.

use super::*;
use crate::event;
use crate::observe::{self, MemoryArtifacts, Pipeline};
use crate::tool::{Call, Effects, Outcome, Provider, ToolCx, shown_part};
use caro_model::Cancel;
use caro_policy::Mode;
use caro_shell::{Dialect, Script};
use serde_json::json;
use std::time::Duration;

struct Bench {
    dir: tempfile::TempDir,
    registry: Registry,
}

impl Bench {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join("work/logs")).unwrap();
        let setup = Setup {
            shell: Some(Shell::new("/bin/sh".into(), Dialect::Sh)),
            workspace: Some(Arc::new(Workspace::open(dir.path().join("ws")))),
            artifacts: Some(Arc::new(MemoryArtifacts::default())),
            ..Setup::default()
        };
        let mut registry = builtin(setup).unwrap();
        registry.add(Arc::new(Revise::append(None))).unwrap();
        Self { registry, dir }
    }

    fn root(&self) -> PathBuf {
        self.dir.path().join("work").canonicalize().unwrap()
    }

    fn cx(&self) -> ToolCx {
        ToolCx { root: self.root(), cancel: Cancel::new(), timeout: Duration::from_secs(5) }
    }

    fn effects(&self, tool: &str, args: Value) -> Effects {
        let Value::Object(args) = args else { unreachable!() };
        self.registry.get(tool).unwrap().effects(&args, &self.cx())
    }

    /// Returns the outcome and the text that the model would get.
    fn run(&self, tool: &str, args: Value) -> (Outcome, String) {
        self.run_with(tool, args, &self.cx())
    }

    fn run_with(&self, tool: &str, args: Value, cx: &ToolCx) -> (Outcome, String) {
        let Value::Object(mut args) = args else { unreachable!() };
        let tool = self.registry.get(tool).unwrap().clone();
        let result = match tool.spec().validate(&mut args) {
            Ok(()) => tool.call(&args, cx),
            Err(why) => Err(ToolError::Arguments(why)),
        };
        let emitter = event::Emitter::new("r", 1, caro_policy::Redactor::default(), Vec::new());
        let pipeline =
            Pipeline { mode: Mode::Full, artifacts: None, count: &|t| t.len() / 4, emitter: &emitter, redacts: false };
        let call = Call { id: "s1c1".into(), tool: tool.spec().name.clone(), args, effects: Effects::default() };
        let ended = observe::Ended { call, result, refused: None, took: Duration::ZERO };
        let settled = pipeline.process(vec![ended]).remove(0);
        (settled.outcome, settled.text)
    }

    fn done(&self, tool: &str, args: Value) -> String {
        let (outcome, text) = self.run(tool, args);
        assert_eq!(outcome, Outcome::Succeeded, "{text}");
        text
    }

    fn failed(&self, tool: &str, args: Value) -> String {
        let (outcome, text) = self.run(tool, args);
        assert_eq!(outcome, Outcome::Failed, "{text}");
        text
    }
}

#[test]
fn a_file_is_written_read_edited_and_listed() {
    let bench = Bench::new();
    assert_eq!(
        bench.done("write", json!({"path": "a/b.md", "content": "one\ntwo"})),
        "wrote a/b.md (2 lines, 8 bytes)"
    );
    assert_eq!(bench.done("read", json!({"path": "a/b.md"})), "one\ntwo\n");
    assert_eq!(bench.done("edit", json!({"path": "a/b.md", "old": "two", "new": "2"})), "changed a/b.md at line 2");
    assert_eq!(std::fs::read_to_string(bench.root().join("a/b.md")).unwrap(), "one\n2\n");
    assert!(bench.failed("edit", json!({"path": "a/b.md", "old": "three", "new": "x"})).contains("does not stand"));
    std::fs::write(bench.root().join("a/twice"), "x x").unwrap();
    assert!(bench.failed("edit", json!({"path": "a/twice", "old": "x", "new": "y"})).contains("2 times"));
    assert_eq!(bench.done("list", json!({"path": "a", "sort": "size"})), "b.md  6\ntwice  3\n");
    assert_eq!(bench.done("list", json!({"path": "."})), "a/\nlogs/\n");
    assert_eq!(bench.done("list", json!({"path": "logs"})), "(empty folder)");
}

#[test]
fn errors_name_similar_files() {
    let bench = Bench::new();
    std::fs::write(bench.root().join("logs/app.log"), "x").unwrap();
    assert_eq!(bench.failed("read", json!({"path": "app.log"})), "there is no app.log; there is logs/app.log");
    assert_eq!(bench.failed("read", json!({"path": "app.txt"})), "there is no app.txt; there is logs/app.log");
    assert!(bench.failed("read", json!({"path": "logs"})).contains("use list"));
    assert!(bench.failed("list", json!({"path": "logs/app.log"})).contains("use read"));
    assert!(bench.failed("read", json!({"path": "nothing"})).starts_with("could not read nothing:"));
    assert!(bench.failed("write", json!({"path": "logs", "content": ""})).contains("is a folder"));
    assert!(bench.failed("read", json!({})).contains("`path` is required"));
}

#[cfg(unix)]
#[test]
fn a_pipe_is_not_opened() {
    let bench = Bench::new();
    assert!(std::process::Command::new("mkfifo").arg(bench.root().join("pipe")).status().unwrap().success());
    assert_eq!(bench.failed("read", json!({"path": "pipe"})), "pipe is not a regular file");
    assert_eq!(bench.failed("edit", json!({"path": "pipe", "old": "a", "new": "b"})), "pipe is not a regular file");
}

/// The kernel's log claims to be a regular file and blocks where there is nothing new.
#[cfg(target_os = "linux")]
#[test]
fn a_file_that_blocks_does_not_hold_up_a_call() {
    let path = "/proc/kmsg";
    if caro_base::files::open_nonblocking(Path::new(path)).is_err() {
        eprintln!("this user may not read {path}");
        return;
    }
    for (tool, args) in [("read", json!({"path": path})), ("search", json!({"path": path, "pattern": "x"}))] {
        let (send, receive) = std::sync::mpsc::channel();
        std::thread::spawn(move || send.send(Bench::new().run(tool, args)));
        assert!(receive.recv_timeout(Duration::from_secs(20)).is_ok(), "{tool} does not end");
    }
}

#[cfg(unix)]
#[test]
fn a_changed_file_keeps_its_names_and_one_that_may_not_be_written_its_text() {
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    let bench = Bench::new();
    let file = |name: &str| bench.root().join(name);
    std::fs::write(file("a"), "one\n").unwrap();
    std::fs::hard_link(file("a"), file("b")).unwrap();
    let changes = [
        ("edit", json!({"path": "a", "old": "one", "new": "two"}), "two\n"),
        ("append", json!({"path": "a", "content": "three"}), "two\nthree\n"),
        ("write", json!({"path": "a", "content": "four"}), "four\n"),
    ];
    for (tool, args, text) in &changes {
        bench.done(tool, args.clone());
        assert_eq!(std::fs::read_to_string(file("b")).unwrap(), *text);
    }
    assert_eq!(std::fs::metadata(file("a")).unwrap().nlink(), 2);
    if rustix::process::geteuid().is_root() {
        eprintln!("root may write everything");
        return;
    }
    std::fs::write(file("a"), "one\n").unwrap();
    std::fs::set_permissions(file("a"), std::fs::Permissions::from_mode(0o444)).unwrap();
    for (tool, args, _) in changes {
        let text = bench.failed(tool, args);
        assert!(text.contains("may not write it") && text.contains("chmod u+w"), "{text}");
        assert_eq!(std::fs::read_to_string(file("a")).unwrap(), "one\n");
    }
}

/// A keeper that notes what it is to keep, and keeps nothing if it is full.
#[derive(Default)]
struct Notes {
    seen: Arc<std::sync::Mutex<Vec<String>>>,
    full: bool,
}

struct Noted(Arc<std::sync::Mutex<Vec<String>>>);

impl Kept for Noted {
    fn ended(self: Box<Self>, code: i32) {
        self.0.lock().unwrap().push(format!("ended {code}"));
    }
}

impl Keeper for Notes {
    fn gaps(&self, change: Change<'_>, _: &Path) -> Vec<String> {
        if matches!(change, Change::File { .. }) { vec!["it is large".into()] } else { Vec::new() }
    }

    fn removes(&self, command: &str, _: &Script, _: &Path) -> bool {
        command.contains("rmtree")
    }

    fn keep(&self, change: Change<'_>, _: &Path) -> Result<Option<Box<dyn Kept>>, String> {
        let (Change::Command { text, .. } | Change::File { text, .. }) = change;
        self.seen.lock().unwrap().push(text.to_owned());
        if self.full { Err("the disk is full".into()) } else { Ok(Some(Box::new(Noted(self.seen.clone())))) }
    }
}

#[test]
fn what_is_written_is_kept_for_an_undo_first() {
    for full in [false, true] {
        let mut bench = Bench::new();
        let keeper = Notes { full, ..Notes::default() };
        let seen = keeper.seen.clone();
        let keeper: Option<Arc<dyn Keeper>> = Some(Arc::new(keeper));
        bench.registry = builtin(Setup { keeper: keeper.clone(), ..Setup::default() }).unwrap();
        bench.registry.add(Arc::new(Revise::append(keeper))).unwrap();
        std::fs::write(bench.root().join("a"), "one\n").unwrap();
        let edit = json!({"path": "a", "old": "one", "new": "two"});
        assert_eq!(bench.effects("edit", edit.clone()).reasons, ["undo does not cover all of it: it is large"]);
        let calls = [
            ("edit", edit),
            ("append", json!({"path": "a", "content": "three"})),
            ("write", json!({"path": "new/x", "content": "x"})),
        ];
        for (tool, args) in calls {
            let (outcome, text) = bench.run(tool, args);
            assert_eq!((outcome == Outcome::Failed, text.contains("CARO_UNDO=off")), (full, full), "{text}");
        }
        let now = std::fs::read_to_string(bench.root().join("a")).unwrap();
        assert_eq!(
            (now.as_str(), bench.root().join("new/x").exists()),
            (if full { "one\n" } else { "two\nthree\n" }, !full)
        );
        let titles = ["edit a", "append a", "write new/x"];
        let ended = if full { &[][..] } else { &["ended 0"] };
        let want: Vec<&str> =
            titles.iter().flat_map(|title| [*title].into_iter().chain(ended.iter().copied())).collect();
        assert_eq!(*seen.lock().unwrap(), want);
    }
}

#[test]
fn a_removal_that_only_a_rehearsal_shows_is_one() {
    let mut bench = Bench::new();
    let shell = Shell::new("/bin/sh".into(), Dialect::Bash);
    let keeper: Option<Arc<dyn Keeper>> = Some(Arc::new(Notes::default()));
    bench.registry = builtin(Setup { shell: Some(shell), keeper, ..Setup::default() }).unwrap();
    for (command, removes) in [
        ("python3 -c \"import shutil; shutil.rmtree('sub')\"", true),
        ("python3 -c \"open('a', 'w')\"", false),
        ("echo rmtree", false),
        ("rm a", true),
    ] {
        assert_eq!(bench.effects("shell", json!({"command": command})).removes, removes, "{command}");
    }
}

#[test]
fn a_long_file_is_shown_in_pages_and_a_binary_one_is_not_shown() {
    let bench = Bench::new();
    let lines: String = (1..=500).map(|n| format!("line number {n}\n")).collect();
    std::fs::write(bench.root().join("long.txt"), &lines).unwrap();
    let first = bench.done("read", json!({"path": "long.txt"}));
    assert!(first.len() < 2000 && first.starts_with("line number 1\n"), "{first}");
    let more: usize = first.split("from=").nth(1).unwrap().trim_end_matches(']').parse().unwrap();
    let second = bench.done("read", json!({"path": "long.txt", "from": more}));
    assert!(second.starts_with(&format!("line number {more}\n")));
    assert!(bench.done("read", json!({"path": "long.txt", "from": 499})).ends_with("[lines 499 to 500 of 500]"));
    assert!(bench.failed("read", json!({"path": "long.txt", "from": 501})).contains("only 500 lines"));
    std::fs::write(bench.root().join("x.bin"), [0u8, 1, 2]).unwrap();
    assert_eq!(bench.done("read", json!({"path": "x.bin"})), "x.bin is a binary file of 3 bytes");
    std::fs::write(bench.root().join("none"), "").unwrap();
    assert_eq!(bench.done("read", json!({"path": "none"})), "none is empty");
    assert_eq!(
        bench.effects("read", json!({"path": "long.txt", "from": 5})).shows,
        [shown_part(&bench.root().join("long.txt"), "5")]
    );
}

#[test]
fn search_skips_ignored_hidden_binary_and_secret_files() {
    let bench = Bench::new();
    let write = |name: &str, text: &[u8]| {
        let file = bench.root().join(name);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, text).unwrap();
    };
    write("src/a.rs", b"fn one() {}\nfn two() {}\n");
    write("src/b.txt", b"one more\nERROR here\n");
    write(".gitignore", b"target/\n*.tmp\n");
    write("target/a.rs", b"fn one() {}\n");
    write("x.tmp", b"fn one() {}\n");
    write(".hidden/a.rs", b"fn one() {}\n");
    write("bin", b"fn one\0() {}\n");
    write("keys/id_rsa", b"fn one() {}\n");
    assert_eq!(
        bench.done("search", json!({"pattern": "fn one"})),
        "src/a.rs:1: fn one() {}\n[1 line in 1 file]",
        "ignored, hidden, binary and secret files are left out"
    );
    assert_eq!(
        bench.done("search", json!({"pattern": r"\bone\b", "path": "src"})),
        "src/a.rs:1: fn one() {}\nsrc/b.txt:1: one more\n[2 lines in 2 files]"
    );
    assert!(bench.done("search", json!({"pattern": "error"})).starts_with("src/b.txt:2: ERROR here"));
    assert!(bench.done("search", json!({"pattern": "Error"})).starts_with("no line of the 3 files matches Error"));
    let only = bench.done("search", json!({"pattern": "one", "glob": "*.txt"}));
    assert_eq!(only, "src/b.txt:1: one more\n[1 line in 1 file]");
    let ignored = bench.done("search", json!({"pattern": "one", "glob": "*.tmp"}));
    assert!(ignored.starts_with("no line of the 0 files of that name"), "a glob does not bring back: {ignored}");
    // a file that is named is searched; the policy asks if it holds keys
    assert!(bench.done("search", json!({"pattern": "one", "path": "keys/id_rsa"})).starts_with("keys/id_rsa:1:"));
    assert_eq!(bench.effects("search", json!({"pattern": "x", "path": "src"})).reads, [bench.root().join("src")]);
    assert!(bench.effects("search", json!({"pattern": "x"})).is_read_only());
}

#[test]
fn a_search_is_limited_and_reports_errors() {
    let bench = Bench::new();
    for n in 0..9 {
        let text: String = (0..500).map(|i| format!("match {i} {}\n", "x".repeat(n * 90))).collect();
        std::fs::write(bench.root().join(format!("f{n}.txt")), text).unwrap();
    }
    let text = bench.done("search", json!({"pattern": "match"}));
    assert!(text.starts_with("f0.txt:1: match 0") && text.ends_with("[4500 lines in 9 files, 100 shown]"), "{text}");
    let wrong = bench.failed("search", json!({"pattern": "a(b"}));
    assert!(wrong.contains("not a regular expression: unclosed group") && wrong.contains("write \\ before"), "{wrong}");
    assert!(bench.failed("search", json!({"pattern": ""})).contains("is empty"));
    assert!(bench.failed("search", json!({"pattern": "x", "glob": "a[b"})).contains("not a file pattern"));
    assert!(bench.failed("search", json!({"pattern": "x", "path": "nowhere"})).contains("could not search nowhere"));
    let over = ToolCx { cancel: Cancel::new(), ..bench.cx() };
    over.cancel.cancel();
    let (_, text) = bench.run_with("search", json!({"pattern": "match"}), &over);
    assert!(text.contains("[not everything was searched"), "{text}");
}

#[cfg(unix)]
#[test]
fn a_command_runs_in_the_working_folder_and_writes_only_where_foreseen() {
    let bench = Bench::new();
    std::fs::write(bench.root().join("logs/a.log"), "ERROR 1\nok\nERROR 2\n").unwrap();
    assert_eq!(bench.done("shell", json!({"command": "grep -c ERROR logs/*.log"})), "2\n");
    assert_eq!(bench.done("shell", json!({"command": "grep -c NOTHING logs/a.log"})), "0\n(exit code 1)");
    assert_eq!(bench.done("shell", json!({"command": "true"})), "(no output)");
    assert!(bench.failed("shell", json!({"command": "ls nowhere"})).contains("(exit code 2)"));
    let (outcome, text) = bench.run("shell", json!({"command": "touch made; echo built; echo broken >&2; exit 3"}));
    assert_eq!((outcome, text.as_str()), (Outcome::FailedLate, "built\nbroken\n(exit code 3)"));
    assert_eq!(bench.failed("shell", json!({"command": "sh -c 'exit 3'"})), "(exit code 3)");
    assert!(bench.failed("shell", json!({"command": " "})).contains("empty"));
    // the output of a pipe without input is not a result
    let hidden = bench.failed("shell", json!({"command": "cat nowhere.log | wc -l"}));
    assert!(hidden.contains("nowhere.log") && hidden.trim_end().ends_with("\n0"), "{hidden}");
    assert_eq!(bench.done("shell", json!({"command": "grep NOTHING logs/a.log | wc -l"})).trim(), "0");
    assert!(bench.done("shell", json!({"command": "cat logs/a.log nowhere.log | wc -l"})).contains("nowhere.log"));
    // the sandbox keeps a command from writing that looks read-only
    if caro_exec::support().writes {
        let (_, text) = bench.run("shell", json!({"command": "sort -o logs/b.log logs/a.log; echo $?"}));
        assert!(bench.effects("shell", json!({"command": "sort logs/a.log"})).is_read_only(), "{text}");
    }
    bench.done("shell", json!({"command": "cp logs/a.log copy"}));
    assert!(bench.root().join("copy").exists());
    // even an approved command cannot write where its effects do not say so
    if caro_exec::support().writes {
        let elsewhere = bench.dir.path().join("elsewhere");
        std::fs::create_dir(&elsewhere).unwrap();
        let hidden =
            |name: &str| json!({"command": format!("touch here; d=$(echo ../elsewhere); touch \"$d/{name}\"")});
        let text = bench.failed("shell", hidden("a"));
        assert!(text.contains("may write below") && text.contains("--write"), "{text}");
        assert!(bench.root().join("here").exists() && !elsewhere.join("a").exists());
        let foreseen = format!("touch {}/b", elsewhere.display());
        bench.done("shell", json!({ "command": foreseen }));
        assert!(elsewhere.join("b").exists());
        for wide in [elsewhere.canonicalize().unwrap(), "/".into()] {
            let shell = Shell::new("/bin/sh".into(), Dialect::Sh).writable(vec![wide]);
            let Value::Object(args) = hidden("c") else { unreachable!() };
            shell.call(&args, &bench.cx()).unwrap();
            std::fs::remove_file(elsewhere.join("c")).unwrap();
        }
    }
    // `~` is the home folder, as in a shell, and not a folder of that name
    let home = std::env::home_dir().unwrap();
    assert_eq!(bench.effects("write", json!({"path": "~/big.txt", "content": "x"})).writes, [home.join("big.txt")]);
    let start = std::time::Instant::now();
    let Value::Object(args) = json!({"command": "sleep 300"}) else { unreachable!() };
    let cx = ToolCx { timeout: Duration::from_millis(200), ..bench.cx() };
    let error = bench.registry.get("shell").unwrap().call(&args, &cx).unwrap_err();
    assert!(matches!(error, ToolError::TimedOut(_)) && start.elapsed() < Duration::from_secs(60), "{error}");
}

/// The marker of the left-out middle has its number of bytes and lines.
#[cfg(unix)]
#[test]
fn a_long_output_keeps_both_ends_and_reports_what_is_left_out() {
    let bench = Bench::new();
    let output = |command: &str| {
        let Value::Object(args) = json!({ "command": command }) else { unreachable!() };
        let cx = ToolCx { timeout: Duration::from_secs(60), ..bench.cx() };
        let result = bench.registry.get("shell").unwrap().call(&args, &cx);
        let emitter = event::Emitter::new("r", 1, caro_policy::Redactor::default(), Vec::new());
        let kept = MemoryArtifacts::default();
        let pipeline = Pipeline {
            mode: Mode::Off,
            artifacts: Some(&kept),
            count: &|t| t.len() / 4,
            emitter: &emitter,
            redacts: false,
        };
        let call = Call { id: "s1c1".into(), tool: "shell".into(), args, effects: Effects::default() };
        let ended = observe::Ended { call, result, refused: None, took: Duration::ZERO };
        let settled = pipeline.process(vec![ended]).remove(0);
        let kept = kept.list().unwrap().first().map(|artifact| kept.get(&artifact.id).unwrap()).unwrap_or_default();
        (settled.outcome, settled.text, kept)
    };
    let (outcome, told, kept) = output("seq 1 60000");
    assert_eq!(outcome, Outcome::Succeeded);
    assert!(told.contains("of standard output (348894 bytes, 60000 lines)") && told.contains("left out."), "{told}");
    assert!(!told.contains("whole") && told.contains("[What is not left out is kept"), "{told}");
    assert!(kept.starts_with("1\n2\n") && kept.ends_with("\n59999\n60000\n") && kept.len() < 300_000);
    let (before, after) = kept.split_once("[cut: ").unwrap();
    let (mark, after) = after.split_once(" lines are left out here]\n").unwrap();
    let (bytes, lines) = mark.split_once(" bytes, ").unwrap();
    assert_eq!(before.len() + after.len() + bytes.parse::<usize>().unwrap(), 348_894);
    assert_eq!(before.lines().count() + after.lines().count() + lines.parse::<usize>().unwrap(), 60_000);
    // output that fits is complete and reported as such
    let (_, told, kept) = output("seq 1 9999");
    assert!(told.contains("[The whole is kept") && !told.contains("cut") && !kept.contains("cut"), "{told}");
    // a failing command with output on standard error only
    let (outcome, told, kept) = output("seq 1 60000 >&2; false");
    assert_eq!(outcome, Outcome::Failed, "{told}");
    assert!(told.contains("of standard error (348894 bytes") && kept.ends_with("60000\n(exit code 1)"), "{told}");
    // lines that end with `\r` are not taken for overwritten ones
    let (_, told, kept) = output("seq 1 60000 | tr '\\n' '\\r'");
    assert!(told.contains("1 lines)") && kept.lines().count() > 10_000 && kept.contains("\n[cut: "), "{told}");
}

#[cfg(unix)]
#[test]
fn long_output_is_cut_and_endless_output_stops_the_command() {
    let bench = Bench::new();
    let run = |command: &str| {
        let cx = ToolCx { timeout: Duration::from_secs(60), ..bench.cx() };
        bench.run_with("shell", json!({ "command": command }), &cx)
    };
    std::fs::write(bench.root().join("big.txt"), "0123456789abcde\n".repeat(1 << 18)).unwrap();
    let (outcome, told) = run("cat big.txt; touch behind");
    assert!(outcome == Outcome::Succeeded && bench.root().join("behind").exists(), "{told}");
    assert!(
        told.starts_with("[It was too long and is cut: of standard output (4194304 bytes, 262144 lines)"),
        "{told}"
    );
    for command in ["yes; touch never", "yes >&2; touch never", "yes | cat; touch never"] {
        let (outcome, told) = run(command);
        assert_eq!(outcome, Outcome::Failed, "{command}: {told}");
        assert!(told.starts_with("The command was stopped: it wrote more than 64 MiB"), "{command}: {told}");
        assert!(told.contains("was not run") && !bench.root().join("never").exists(), "{command}: {told}");
    }
}

#[test]
fn a_command_that_creates_or_changes_a_file_is_not_read_only() {
    let bench = Bench::new();
    for command in [
        "mkdir new",
        "mkdir -p new/sub",
        "mkdir -pv new",
        "rmdir new",
        "touch new",
        "touch -c -r a b",
        "cp -p a b",
        "mv a b",
        "ln -s a b",
        "tee new < a",
        "install -p a b",
        "truncate -s 0 a",
        "mktemp new.XXXX",
        "dd if=a of=b",
        "split a",
        "gzip -k a",
    ] {
        assert!(!bench.effects("shell", json!({ "command": command })).is_read_only(), "{command}");
    }
    for command in ["ls -p", "mktemp -u", "cat a", "gzip -l a.gz"] {
        assert!(bench.effects("shell", json!({ "command": command })).is_read_only(), "{command}");
    }
}

#[test]
fn artifacts_are_read_searched_and_listed() {
    let artifacts = Arc::new(MemoryArtifacts::default());
    let call = Call { id: "s1c1".into(), tool: "shell".into(), args: Args::new(), effects: Effects::default() };
    let lines = (1..=200).map(|n| format!("row {n}")).collect::<Vec<_>>().join("\n");
    let kept = observe::Offload::store(&*artifacts, &call, &lines, &|t| t.len()).unwrap();
    let mut bench = Bench::new();
    bench.registry = Registry::default();
    for tool in artifact::all(artifacts) {
        bench.registry.add(tool).unwrap();
    }
    let id = kept.id.as_str();
    assert!(bench.done("read_artifact", json!({"id": id, "from": 199})).ends_with("row 199\nrow 200"));
    assert_eq!(bench.done("tail_artifact", json!({"id": id, "lines": 2})), "row 199\nrow 200");
    assert_eq!(bench.done("tail_artifact", json!({"id": id})).lines().count(), 50);
    let found = bench.done("search_artifact", json!({"id": id, "query": "ROW 15"}));
    assert!(found.starts_with("10 of 11 matches:\n14- row 14\n15: row 15\n16- row 16\n"), "{found}");
    assert!(bench.done("list_artifacts", json!({})).starts_with(id));
    assert!(bench.failed("read_artifact", json!({"id": "x"})).starts_with("Error: Artifact 'x' not found"));
}

#[test]
fn the_workspace_cannot_be_left() {
    let bench = Bench::new();
    bench.done("workspace_write", json!({"path": "notes.md", "content": "a\nb"}));
    assert!(bench.failed("workspace_write", json!({"path": "notes.md", "content": "x"})).contains("exists"));
    bench.done("workspace_write", json!({"path": "notes.md", "content": "c", "mode": "append"}));
    bench.done("workspace_insert", json!({"path": "notes.md", "line": 1, "content": "first"}));
    bench.done("workspace_replace", json!({"path": "notes.md", "old": "b", "new": "B"}));
    assert_eq!(bench.done("workspace_view", json!({"path": "files/notes.md"})), "first\na\nB\nc\n");
    bench.done("workspace_rename", json!({"path": "notes.md", "to": "old.md"}));
    assert_eq!(bench.done("workspace_view", json!({"path": ""})), "old.md");
    for outside in ["../x", "%2E%2E/x", "a/../../x"] {
        assert!(
            bench.failed("workspace_write", json!({"path": outside, "content": "x"})).contains("outside"),
            "{outside}"
        );
    }
    let effects = bench.effects("workspace_write", json!({"path": "a", "content": ""}));
    assert_eq!(effects.writes, [bench.dir.path().join("ws/files/a")]);
    bench.done("workspace_delete", json!({"path": "old.md"}));
    bench.done("workspace_clear", json!({}));
    assert_eq!(bench.done("workspace_view", json!({"path": ""})), "(the workspace is empty)");
}

#[test]
fn results_of_workspace_tools_are_never_offloaded() {
    let bench = Bench::new();
    let of_workspace = bench.registry.specs().filter(|spec| spec.provider == Provider::Workspace);
    let mut own: Vec<&str> = of_workspace.map(|spec| spec.name.as_str()).collect();
    let mut listed = observe::NEVER_OFFLOADED;
    own.sort_unstable();
    listed.sort_unstable();
    assert_eq!(own, listed);
    assert!(observe::ARTIFACT_TOOLS.iter().all(|name| name.contains("artifact")) && observe::ARTIFACT_TOOLS.len() == 4);
}

/// A user in the folder `notes` may say `what is in notes`.
#[test]
fn the_working_folder_may_be_named_by_its_own_name() {
    let bench = Bench::new();
    std::fs::write(bench.root().join("a.md"), "tides\n").unwrap();
    assert_eq!(bench.done("list", json!({"path": "work"})), bench.done("list", json!({"path": "."})));
    assert!(bench.done("read", json!({"path": "work/a.md"})).contains("tides"));
    assert!(bench.done("search", json!({"path": "work", "pattern": "tides"})).contains("a.md"));
    assert_eq!(bench.effects("read", json!({"path": "work/a.md"})).reads, [bench.root().join("a.md")]);
    // writing uses the path as it is, and an existing folder of that name takes precedence
    assert_eq!(bench.effects("write", json!({"path": "work", "content": "x"})).writes, [bench.root().join("work")]);
    std::fs::create_dir(bench.root().join("work")).unwrap();
    assert_eq!(bench.done("list", json!({"path": "work"})), "(empty folder)");
}
