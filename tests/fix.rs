//! Tests `caro fix`: a suite of broken commands, repaired by rules alone and run; and the subcommand itself.

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

/// A broken command; `tests/fix/broken.toml` documents the fields.
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
    /// If `output`, changes of files are not compared.
    #[serde(default)]
    effect: Option<String>,
}

const DATES: [(&str, &str); 4] = [
    ("GIT_AUTHOR_DATE", "2026-01-01T00:00:00Z"),
    ("GIT_COMMITTER_DATE", "2026-01-01T00:00:00Z"),
    ("GIT_CONFIG_NOSYSTEM", "1"),
    ("GIT_EDITOR", "true"),
];

/// Repairs commands and runs them in fixtures.
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

    /// Creates the fixture of a case. Returns its temporary folder, and the working directory of the case.
    fn create_fixture(&self, case: &Broken) -> (tempfile::TempDir, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let work = dir.path().join("work");
        std::fs::create_dir(&work).unwrap();
        let script = self.fixtures[&case.fixture].as_str().unwrap();
        let mut shell = Command::new("bash");
        shell.args(["-e", "-c", script]).current_dir(&work).envs(DATES);
        assert!(shell.output().unwrap().status.success(), "{}", case.fixture);
        (dir, work.join(&case.at))
    }

    /// Runs the command in a temporary view of its folder; `None` if that is not possible here.
    fn run(&self, command: &str, folder: &Path) -> Option<Rehearsal> {
        let mut job = RehearsalJob::new(Path::new("/bin/bash"), command, folder);
        job.helper = Some(env!("CARGO_BIN_EXE_caro").into());
        job.digests = true;
        job.limits.wall = Duration::from_secs(20);
        job.env = DATES.iter().map(|(name, value)| (name.into(), value.into())).collect();
        self.runtime.block_on(rehearse(&job)).ok()
    }

    /// Repairs the command by rules alone, for a user who is not root. Returns the repair and the time it took.
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
        let index = packages::PackageIndex::new(&programs, false);
        let package = |name: &str| self.runtime.block_on(index.installing(name));
        let facts = Facts {
            cwd: folder,
            home: Some(Path::new("/nonexistent")),
            programs: &programs,
            dialect: Dialect::Bash,
            is_root: false,
            manual: &manual,
            package: &package,
        };
        // a first call reads the manuals, and is not timed
        diagnose(failed, &facts);
        let started = Instant::now();
        let repair = diagnose(failed, &facts);
        (repair, started.elapsed())
    }

    /// The failure of the broken command: given by the case, or of a run.
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

    /// True if the repaired command has the wanted output and changes.
    fn is_right(&self, case: &Broken, repaired: &str, folder: &Path) -> bool {
        let Some(want) = &case.want else { return case.accept.iter().any(|accepted| accepted == repaired) };
        let (Some(actual), Some(expected)) = (self.run(repaired, folder), self.run(want, folder)) else { return false };
        let changes = |ran: &Rehearsal| -> Vec<String> {
            let describe =
                |c: &Change| format!("{:?} {:?} {:?}", c.kind, c.path, c.now.as_ref().map(|e| (e.mode, &e.digest)));
            // not compared: git's index, which has the times of files, and files elsewhere, such as npm's logs, which
            // have the time in their names
            let root = folder.ancestors().find(|above| above.ends_with("work")).and_then(Path::parent).unwrap();
            let counts = |c: &&Change| {
                c.path.starts_with(root) && !c.time_only && !c.path.ends_with(".git/index") && case.effect.is_none()
            };
            ran.changes.iter().filter(counts).map(describe).collect()
        };
        assert!(
            expected.status.success() || expected.stderr.is_empty(),
            "{want}: {}",
            String::from_utf8_lossy(&expected.stderr)
        );
        actual.status == expected.status && actual.stdout == expected.stdout && changes(&actual) == changes(&expected)
    }
}

/// Repairs every command of a suite. Returns the number of right repairs and of all; prints the wrong ones.
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
            && !is_on_own_path(program)
        {
            println!("skipped: {program} is missing: {}", case.broken);
            continue;
        }
        let (_dir, folder) = bench.create_fixture(case);
        let Some(failed) = bench.failure(case, &folder) else {
            println!("skipped: there is no view for {}", case.broken);
            continue;
        };
        let (repair, took) = bench.repair(&failed, &folder, &case.here);
        let is_right = repair.as_ref().is_some_and(|repair| bench.is_right(case, &repair.command, &folder));
        let row = classes.entry(&case.class).or_default();
        (row.0, row.1) = (row.0 + usize::from(is_right), row.1 + 1);
        (right, all) = (right + usize::from(is_right), all + 1);
        if case.class != "package" {
            slowest = slowest.max(took);
        }
        if !is_right {
            let stderr = failed.stderr.unwrap_or_default();
            let error = stderr.lines().take(3).collect::<Vec<_>>().join(" | ");
            println!(
                "wrong: {}: {}\n    {:?}\n    {error}",
                case.class,
                case.broken,
                repair.map(|r| (r.command, r.why))
            );
        }
    }
    println!("{right} of {all} right; slowest {slowest:?}; {classes:?}");
    (right, all)
}

/// True if a program is on the `PATH` of this process, such as cargo.
fn is_on_own_path(program: &str) -> bool {
    which::which(program).is_ok()
}

#[test]
fn most_broken_commands_are_repaired_by_rules_alone() {
    let (right, all) = measure(include_str!("fix/broken.toml"));
    assert!(all == 0 || right * 100 >= all * 70, "{right} of {all}");
}

#[test]
#[ignore = "measured once: cargo test --test suite -- --ignored fix::held_out_commands_are_repaired_by_rules_alone"]
fn held_out_commands_are_repaired_by_rules_alone() {
    let (right, all) = measure(include_str!("fix/last.toml"));
    assert!(all == 0 || right * 100 >= all * 70, "{right} of {all}");
}

/// A machine with a file whose name the commands mistype.
fn machine() -> Machine {
    let machine = Machine::new();
    machine.write("work/notes.txt", "milk\n");
    machine
}

#[test]
fn stdout_has_only_the_repaired_command_and_stderr_the_reason() {
    let machine = machine();
    machine.write("error.txt", "cat: nots.txt: No such file or directory\n");
    let error = machine.path("error.txt");
    let ran = machine.run(&["fix", "cat nots.txt", "--stderr", error.to_str().unwrap(), "--status", "1"]);
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), "cat notes.txt\n"), "{ran:#?}");
    assert!(ran.err.contains("there is no nots.txt, there is notes.txt"), "{ran:#?}");
    let piped =
        feed(machine.caro(&["fix", "cat nots.txt", "--stderr", "-"]), b"cat: nots.txt: No such file or directory\n");
    assert_eq!(piped.out, "cat notes.txt\n", "{piped:#?}");
    let document = machine.run(&["fix", "gerp milk notes.txt", "--json"]).json();
    assert_eq!((&document["cmd"], &document["model"]), (&json!("grep milk notes.txt"), &json!("rules")));
    assert_eq!(document["fix"]["class"], "program");
    assert_eq!(document["fix"]["error_from"], "none");
    assert_eq!(document["risk"]["level"], "safe");
}

#[test]
fn a_repair_is_checked_and_rated_like_every_answer() {
    let machine = machine();
    std::fs::create_dir(machine.path("work/data")).unwrap();
    let ran = feed(
        machine.caro(&["fix", "rm data", "--stderr", "-", "--json"]),
        b"rm: cannot remove 'data': Is a directory\n",
    );
    let document: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(document["cmd"], "rm -r data");
    assert_ne!(document["risk"]["level"], "safe", "{document:#}");
}

#[test]
fn a_failed_command_is_run_again_only_in_a_sandbox_and_on_request() {
    let machine = machine();
    std::fs::create_dir(machine.path("work/data")).unwrap();
    let command = "touch made.txt; cp data copy";
    machine.run(&["fix", command, "--no-model"]).has_no_repair();
    assert!(!machine.path("work/made.txt").exists());
    let tried = machine.run(&["fix", command, "--no-model", "--try"]);
    assert!(!machine.path("work/made.txt").exists() && !machine.path("work/copy").exists());
    if tried.err.contains("not tried: no rehearsal") {
        return println!("skipped: {}", tried.err);
    }
    assert_eq!(tried.out, "touch made.txt; cp -r data copy\n", "{tried:#?}");
    let remote = machine.run(&["fix", "curl -s http://x.invalid/", "--no-model", "--try"]);
    assert!(remote.err.contains("not tried: curl: it reaches out to the network"), "{remote:#?}");
}

impl Ran {
    /// Checks that there is no repair, and that the hint suggests to give the error.
    #[track_caller]
    fn has_no_repair(&self) {
        assert_eq!((self.code, self.out.as_str()), (Some(1), ""), "{self:#?}");
        assert!(self.err.contains("--stderr FILE") && self.err.contains("no rule repairs it"), "{self:#?}");
    }
}

#[test]
fn without_a_matching_rule_the_model_gets_the_command_and_its_error() {
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
fn a_refusal_of_the_model_is_reported() {
    let rules = json!([{ "reply": "# not a shell task" }]);
    let machine = machine();
    let file = machine.path("error.txt");
    std::fs::write(&file, "frob: something odd happened\n").unwrap();
    let ran = machine.ask(rules, &["fix", "cat notes.txt | grep -v", "--stderr", file.to_str().unwrap()]);
    assert_eq!((ran.code, ran.out.as_str()), (Some(1), ""), "{ran:#?}");
    assert!(ran.err.contains("neither a rule nor the model"), "{ran:#?}");
}

#[test]
fn a_program_that_is_not_installed_is_not_replaced_by_one_with_a_similar_name() {
    let machine = machine();
    for program in ["mpv", "rar", "sar", "fd"] {
        if have(program) {
            println!("skipped: {program} is installed");
            continue;
        }
        let ran = machine.run(&["fix", "--no-model", "--status", "127", &format!("{program} a.txt big.bin")]);
        assert!(ran.out.is_empty() || ran.out.contains(" install "), "{program}: {ran:#?}");
        assert!(!ran.err.contains("there is `"), "{program}: {ran:#?}");
    }
}

#[test]
fn what_is_not_here_is_reported_without_the_model() {
    let machine = machine();
    for (command, status, message) in [
        ("lzz -la", "127", "there is no `lzz` here"),
        ("cd nowhere", "1", "there is no folder nowhere here"),
        ("cat nofile.tx", "1", "there is no nofile.tx here"),
    ] {
        let ran = machine.ask(json!([{ "reply": "ls" }]), &["fix", command, "--status", status]);
        ran.fails(1, &[message, "caro \"WORDS\""]);
        assert!(!ran.err.contains("--stderr"), "{ran:#?}");
    }
    let refused = machine.ask(json!([{ "reply": "# not a shell task" }]), &["fix", "cat notes.txt -", "--json"]).json();
    assert!(refused["refusal"].as_str().is_some_and(|why| why.contains("neither a rule nor the model")), "{refused:#}");
    assert!(refused["hint"].as_str().is_some_and(|hint| hint.contains("--stderr FILE")), "{refused:#}");
    assert_eq!(refused["fix"]["failed"], "cat notes.txt -");
}

/// `-x` takes no consent from a pipe, and a rule's only command is told as such.
#[test]
fn a_repair_is_run_only_with_a_terminal_and_a_rule_has_one_command() {
    let machine = machine();
    std::fs::create_dir(machine.path("work/data")).unwrap();
    machine.write("error.txt", "rm: cannot remove 'data': Is a directory\n");
    let error = machine.path("error.txt");
    let args = ["fix", "rm data", "--stderr", error.to_str().unwrap()];
    feed(machine.caro(&[&args[..], &["-x"]].concat()), b"y\ny\n").fails(1, &["nobody to ask", "without -x"]);
    assert!(machine.path("work/data").exists());
    let several = machine.run(&[&args[..], &["-n", "3"]].concat());
    assert!(several.out == "rm -r data\n" && several.err.contains("1 of 3: a rule repairs it"), "{several:#?}");
}

#[test]
fn invalid_calls_have_a_hint() {
    let machine = machine();
    machine.run(&["fix"]).fails(2, &["no command to repair", "caro init bash --fix"]);
    machine.run(&["fix", " "]).fails(2, &["there is no command"]);
    machine.run(&["fix", "-"]).fails(2, &["no command to fix on standard input", "caro fix 'gerp"]);
    machine.run(&["fix", "-", "--stderr", "-"]).fails(2, &["at once", "--stderr FILE"]);
    let read = feed(machine.caro(&["fix", "-", "--no-model"]), b"gerp milk notes.txt\n");
    assert_eq!(read.out, "grep milk notes.txt\n", "{read:#?}");
    machine.run(&["fix", "ls", "--status", "0"]).fails(1, &["did not fail"]);
    for stages in ["abc", "1 x", "1 999"] {
        machine.run(&["fix", "ls foo", "--stages", stages]).fails(2, &["number from 0 to 255", "--stages \"1 0\""]);
    }
    for status in ["999", "-1", "x"] {
        let ran = machine.run(&["fix", "ls foo", &format!("--status={status}")]);
        assert!(ran.code == Some(2) && ran.err.contains("number from 0 to 255"), "{ran:#?}");
    }
    machine.run(&["fix", "ls", "--stderr", "/no/such/file"]).fails(2, &["/no/such/file"]);
    machine
        .run(&["fix", "cat \"$x\"", "--no-model", "--stderr", "/dev/null"])
        .fails(1, &["no rule repairs it", "--no-model"]);
    // a request that begins with `fix`
    let ran = machine.ask(json!([{ "reply": "chmod 644 notes.txt" }]), &["fix", "the", "mode", "of", "notes.txt"]);
    assert_eq!(ran.out, "chmod 644 notes.txt\n", "{ran:#?}");
}

#[test]
fn a_safeguard_is_no_error_to_go_around() {
    let machine = machine();
    for (command, repaired, program) in [
        ("rm -rf /", "rm -rf --no-preserve-root /", "rm"),
        ("chmod -R 777 /", "chmod -R --no-preserve-root 777 /", "chmod"),
    ] {
        let error = format!(
            "{program}: it is dangerous to operate recursively on '/'\n{program}: use --no-preserve-root to override this failsafe\n"
        );
        machine.write("stderr.txt", error);
        let stderr = machine.path("stderr.txt");
        let ran = machine.ask(json!([{ "reply": repaired }]), &["fix", command, "--stderr", stderr.to_str().unwrap()]);
        ran.fails(1, &["not repaired", "dangerous"]);
    }
}

#[test]
fn a_misspelt_verb_is_reported_and_not_sent_to_the_model() {
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

/// Rules answer before a model is opened: there is no model here. The time of the whole call is printed.
#[test]
fn a_common_typo_needs_no_model() {
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
