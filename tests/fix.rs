//! `caro fix`: broken commands of our own, repaired by rules alone and run; and the verb itself.

use crate::machine::{Machine, Ran, feed, have};
use caro::command::fix::{Facts, Failed, Repair, diagnose};
use caro::exec::Status;
use caro::exec::rehearse::{Change, Rehearsal, RehearsalJob, rehearse};
use caro::host::{ExecutionContext, packages};
use caro::manual::{Manual, Program, Setup};
use caro::shell::Dialect;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

#[derive(serde::Deserialize)]
struct Suite {
    case: Vec<Broken>,
}

/// A broken command; `tests/fix/broken.toml` says what each field is.
#[derive(serde::Deserialize)]
struct Broken {
    class: String,
    #[serde(rename = "in")]
    fixture: String,
    #[serde(default)]
    at: String,
    broken: String,
    #[serde(default)]
    want: Option<String>,
    #[serde(default)]
    accept: Vec<String>,
    #[serde(default)]
    stderr: Option<String>,
    #[serde(default)]
    status: Option<i32>,
    #[serde(default)]
    stages: Vec<i32>,
    #[serde(default)]
    here: Vec<String>,
    /// `output`: what it changes does not count.
    #[serde(default)]
    effect: Option<String>,
}

const DATES: [(&str, &str); 4] = [
    ("GIT_AUTHOR_DATE", "2026-01-01T00:00:00Z"),
    ("GIT_COMMITTER_DATE", "2026-01-01T00:00:00Z"),
    ("GIT_CONFIG_NOSYSTEM", "1"),
    ("GIT_EDITOR", "true"),
];

/// A machine that repairs and tries.
struct Bench {
    runtime: tokio::runtime::Runtime,
    manual: Manual,
    context: ExecutionContext,
    fixtures: toml::Table,
    _cache: tempfile::TempDir,
}

impl Bench {
    fn new() -> Self {
        let cache = tempfile::tempdir().unwrap();
        Self {
            runtime: tokio::runtime::Runtime::new().unwrap(),
            manual: Manual::open(Setup::of_process(Some(cache.path().into()), None)),
            context: ExecutionContext::detect(None),
            fixtures: toml::from_str(include_str!("fix/fixtures.toml")).unwrap(),
            _cache: cache,
        }
    }

    /// The fixture of a case, made anew, and the folder in it.
    fn stage(&self, case: &Broken) -> (tempfile::TempDir, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let work = dir.path().join("work");
        std::fs::create_dir(&work).unwrap();
        let script = self.fixtures[&case.fixture].as_str().unwrap();
        let mut shell = Command::new("bash");
        shell.args(["-e", "-c", script]).current_dir(&work).envs(DATES);
        assert!(shell.output().unwrap().status.success(), "{}", case.fixture);
        (dir, work.join(&case.at))
    }

    /// The command in a view of its folder that is thrown away.
    fn run(&self, command: &str, folder: &Path) -> Option<Rehearsal> {
        let mut play = RehearsalJob::new(Path::new("/bin/bash"), command, folder);
        play.helper = Some(env!("CARGO_BIN_EXE_caro").into());
        play.digests = true;
        play.limits.wall = Duration::from_secs(20);
        play.env = DATES.iter().map(|(name, value)| (name.into(), value.into())).collect();
        self.runtime.block_on(rehearse(&play)).ok()
    }

    /// The repair by rules alone, as somebody who is not root is given it, and how long it took.
    fn repair(&self, failed: &Failed, folder: &Path, here: &[String]) -> (Option<Repair>, Duration) {
        let mut programs = self.context.available_commands.clone();
        programs.extend(here.iter().map(|name| (name.clone(), PathBuf::from("/usr/bin").join(name))));
        let manual = |name: &str, sub: Option<&str>| {
            let path = self.context.available_commands.get(name)?.clone();
            let program = Program::File { name: name.into(), path };
            let entry = match sub {
                None => self.runtime.block_on(self.manual.get_or_fetch(&program)),
                Some(sub) => self.runtime.block_on(self.manual.get_or_fetch_sub(&program, sub)),
            };
            entry.ok().filter(|entry| entry.problem.is_none())
        };
        let package = |name: &str| self.runtime.block_on(packages::installing(name, &programs, false));
        let facts = Facts {
            cwd: folder,
            home: Some(Path::new("/nonexistent")),
            programs: &programs,
            dialect: Dialect::Bash,
            is_root: false,
            manual: &manual,
            package: &package,
        };
        // the first time the manuals are read
        diagnose(failed, &facts);
        let started = Instant::now();
        let repair = diagnose(failed, &facts);
        (repair, started.elapsed())
    }

    /// How the broken command failed.
    fn failure(&self, case: &Broken, folder: &Path) -> Option<Failed> {
        let (command, stages) = (case.broken.clone(), case.stages.clone());
        if let Some(stderr) = &case.stderr {
            let status = Some(case.status.unwrap_or(1));
            return Some(Failed { command, status, stages, stderr: Some(stderr.clone()) });
        }
        let ran = self.run(&case.broken, folder)?;
        let Status::Exited(status) = ran.status else { return None };
        let stderr = Some(String::from_utf8_lossy(&ran.stderr).into_owned());
        Some(Failed { command, status: Some(status), stages, stderr })
    }

    /// True if the repaired command does what is wanted.
    fn is_right(&self, case: &Broken, repaired: &str, folder: &Path) -> bool {
        let Some(want) = &case.want else { return case.accept.iter().any(|accepted| accepted == repaired) };
        let (Some(mine), Some(theirs)) = (self.run(repaired, folder), self.run(want, folder)) else { return false };
        let changes = |ran: &Rehearsal| -> Vec<String> {
            let told =
                |c: &Change| format!("{:?} {:?} {:?}", c.kind, c.path, c.now.as_ref().map(|e| (e.mode, &e.digest)));
            // the index of git has the times of files in it
            // what programs keep elsewhere (logs of npm) has the time in its name
            let root = folder.ancestors().find(|above| above.ends_with("work")).and_then(Path::parent).unwrap();
            let counts = |c: &&Change| {
                c.path.starts_with(root) && !c.time_only && !c.path.ends_with(".git/index") && case.effect.is_none()
            };
            ran.changes.iter().filter(counts).map(told).collect()
        };
        assert!(
            theirs.status.success() || theirs.stderr.is_empty(),
            "{want}: {}",
            String::from_utf8_lossy(&theirs.stderr)
        );
        mine.status == theirs.status && mine.stdout == theirs.stdout && changes(&mine) == changes(&theirs)
    }
}

/// Repairs every command of a suite: how many are right, of how many; what is wrong is printed.
fn measure(suite: &str) -> (usize, usize) {
    let suite: Suite = toml::from_str(suite).unwrap();
    let bench = Bench::new();
    let (mut right, mut all, mut slowest) = (0, 0, Duration::ZERO);
    let mut classes: std::collections::BTreeMap<&str, (usize, usize)> = Default::default();
    for case in &suite.case {
        let program = case.broken.split_whitespace().next().unwrap();
        if case.stderr.is_none()
            && ["npm", "docker", "cargo"].contains(&program)
            && !have(program)
            && !cargo_is_here(program)
        {
            println!("skipped: no {program} is here: {}", case.broken);
            continue;
        }
        let (_dir, folder) = bench.stage(case);
        let Some(failed) = bench.failure(case, &folder) else {
            println!("skipped: no view is to be had for {}", case.broken);
            continue;
        };
        let (repair, took) = bench.repair(&failed, &folder, &case.here);
        let good = repair.as_ref().is_some_and(|repair| bench.is_right(case, &repair.command, &folder));
        let row = classes.entry(&case.class).or_default();
        (row.0, row.1) = (row.0 + usize::from(good), row.1 + 1);
        (right, all) = (right + usize::from(good), all + 1);
        if case.class != "package" {
            slowest = slowest.max(took);
        }
        if !good {
            let stderr = failed.stderr.unwrap_or_default();
            let told = stderr.lines().take(3).collect::<Vec<_>>().join(" | ");
            println!(
                "wrong: {}: {}\n    {:?}\n    {told}",
                case.class,
                case.broken,
                repair.map(|r| (r.command, r.why))
            );
        }
    }
    println!("{right} of {all} right; slowest {slowest:?}; {classes:?}");
    (right, all)
}

fn cargo_is_here(program: &str) -> bool {
    which::which(program).is_ok()
}

#[test]
fn most_broken_commands_are_repaired_by_rules_alone() {
    let (right, all) = measure(include_str!("fix/broken.toml"));
    assert!(all == 0 || right * 100 >= all * 70, "{right} of {all}");
}

#[test]
#[ignore = "measured once: cargo test --test suite -- --ignored fix::those_that_were_kept_aside"]
fn those_that_were_kept_aside() {
    let (right, all) = measure(include_str!("fix/last.toml"));
    assert!(all == 0 || right * 100 >= all * 70, "{right} of {all}");
}

/// A machine with a file that commands mistype.
fn machine() -> Machine {
    let machine = Machine::new();
    machine.write("work/notes.txt", "milk\n");
    machine
}

#[test]
fn the_repaired_command_stands_alone_on_stdout_and_why_beside_it() {
    let machine = machine();
    machine.write("error.txt", "cat: nots.txt: No such file or directory\n");
    let error = machine.path("error.txt");
    let ran = machine.run(&["fix", "cat nots.txt", "--stderr", error.to_str().unwrap(), "--status", "1"]);
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), "cat notes.txt\n"), "{ran:#?}");
    assert!(ran.err.contains("there is no nots.txt, there is notes.txt"), "{ran:#?}");
    let piped =
        feed(machine.caro(&["fix", "cat nots.txt", "--stderr", "-"]), b"cat: nots.txt: No such file or directory\n");
    assert_eq!(piped.out, "cat notes.txt\n", "{piped:#?}");
    let told = machine.run(&["fix", "gerp milk notes.txt", "--json"]).json();
    assert_eq!((&told["cmd"], &told["model"]), (&json!("grep milk notes.txt"), &json!("rules")));
    assert_eq!(told["fix"]["class"], "program");
    assert_eq!(told["fix"]["error_from"], "none");
    assert_eq!(told["risk"]["level"], "safe");
}

#[test]
fn a_repair_is_checked_and_rated_like_every_answer() {
    let machine = machine();
    std::fs::create_dir(machine.path("work/data")).unwrap();
    let told = feed(
        machine.caro(&["fix", "rm data", "--stderr", "-", "--json"]),
        b"rm: cannot remove 'data': Is a directory\n",
    );
    let told: Value = serde_json::from_str(&told.out).unwrap();
    assert_eq!(told["cmd"], "rm -r data");
    assert_ne!(told["risk"]["level"], "safe", "{told:#}");
}

#[test]
fn what_failed_is_never_run_and_tried_only_where_nothing_can_be_changed() {
    let machine = machine();
    std::fs::create_dir(machine.path("work/data")).unwrap();
    let command = "touch made.txt; cp data copy";
    machine.run(&["fix", command, "--no-model"]).fails_with_note();
    assert!(!machine.path("work/made.txt").exists());
    let tried = machine.run(&["fix", command, "--no-model", "--try"]);
    assert!(!machine.path("work/made.txt").exists() && !machine.path("work/copy").exists());
    if tried.err.contains("not tried: no rehearsal") {
        return println!("skipped: {}", tried.err);
    }
    assert_eq!(tried.out, "touch made.txt; cp -r data copy\n", "{tried:#?}");
    let far = machine.run(&["fix", "curl -s http://x.invalid/", "--no-model", "--try"]);
    assert!(far.err.contains("not tried: curl: it reaches out to the network"), "{far:#?}");
}

impl Ran {
    /// No repair, and what would help is told.
    #[track_caller]
    fn fails_with_note(&self) {
        assert_eq!((self.code, self.out.as_str()), (Some(1), ""), "{self:#?}");
        assert!(self.err.contains("--stderr FILE") && self.err.contains("no rule repairs it"), "{self:#?}");
    }
}

#[test]
fn where_no_rule_fits_the_model_is_shown_the_command_and_its_error() {
    let machine = machine();
    let rules = json!([{ "match": "something odd", "reply": "grep -c milk notes.txt" }, { "reply": "# no" }]);
    let file = machine.path("error.txt");
    std::fs::write(&file, "frob: something odd happened\n").unwrap();
    let ran = machine
        .ask(rules, &["fix", "cat notes.txt | grep -v", "--stderr", file.to_str().unwrap(), "--refine", "never"]);
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), "grep -c milk notes.txt\n"), "{ran:#?}");
    let secret = machine
        .ask(json!([{ "reply": "ls" }]), &["fix", "mysql -phunter2hunter2 db", "--stderr", file.to_str().unwrap()]);
    assert!(secret.code == Some(1) && secret.err.contains("secret") && !secret.err.contains("hunter2"), "{secret:#?}");
}

#[test]
fn where_the_model_has_none_either_that_is_told() {
    let rules = json!([{ "reply": "# not a shell task" }]);
    let machine = machine();
    let file = machine.path("error.txt");
    std::fs::write(&file, "frob: something odd happened\n").unwrap();
    let ran = machine.ask(rules, &["fix", "cat notes.txt | grep -v", "--stderr", file.to_str().unwrap()]);
    assert_eq!((ran.code, ran.out.as_str()), (Some(1), ""), "{ran:#?}");
    assert!(ran.err.contains("neither a rule nor the model"), "{ran:#?}");
}

#[test]
fn a_call_that_makes_no_sense_is_told_what_would() {
    let machine = machine();
    machine.run(&["fix"]).fails(2, &["no command to repair", "caro init bash --fix"]);
    machine.run(&["fix", " "]).fails(2, &["there is no command"]);
    machine.run(&["fix", "ls", "--status", "0"]).fails(1, &["did not fail"]);
    machine.run(&["fix", "ls", "--stderr", "/no/such/file"]).fails(2, &["/no/such/file"]);
    machine
        .run(&["fix", "cat \"$x\"", "--no-model", "--stderr", "/dev/null"])
        .fails(1, &["no rule repairs it", "--no-model"]);
    // a request that begins so
    let ran = machine.ask(json!([{ "reply": "chmod 644 notes.txt" }]), &["fix", "the", "mode", "of", "notes.txt"]);
    assert_eq!(ran.out, "chmod 644 notes.txt\n", "{ran:#?}");
}

#[test]
fn a_mistyped_verb_is_told_and_never_sent_to_the_model() {
    let machine = machine();
    for (line, verb) in [
        (&["chekc", "rm -rf x"][..], "check"),
        (&["agnet", "count the files"], "agent"),
        (&["statsu"], "status"),
        (&["expalin", "ls -l"], "explain"),
    ] {
        let ran = machine.ask(json!([{ "reply": "ls" }]), line);
        ran.fails(2, &[&format!("there is no verb `{}`", line[0]), &format!("`caro {verb}`?")]);
    }
    for line in [&["list", "files"][..], &["versions", "of", "git"], &["--", "chekc", "x"]] {
        let ran = machine.ask(json!([{ "reply": "ls" }]), line);
        assert_eq!(ran.out, "ls\n", "{line:?}: {ran:#?}");
    }
}

/// A rule answers before a model is even opened: no model is here, and the time of the whole call is held.
#[test]
fn a_common_slip_needs_no_model_and_no_time() {
    let machine = machine();
    let call = || {
        let mut caro = machine.caro(&["fix", "gerp milk notes.txt"]);
        caro.env("CARO_MODEL", "script:/no/such/file");
        Ran::of(caro.output().unwrap())
    };
    call();
    let started = Instant::now();
    let ran = call();
    println!("{:?} for the whole call", started.elapsed());
    assert_eq!(ran.out, "grep milk notes.txt\n", "{ran:#?}");
}
