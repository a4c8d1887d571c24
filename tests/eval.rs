//! Tests `caro eval` on a scripted model: right, wrong, dangerous and hanging answers; reports; the
//! project's own suites.
#![cfg(target_os = "linux")]

use crate::machine::{Machine, Ran, have};
use serde_json::{Value, json};
use std::path::Path;

const SUITE: &str = r#"
[fixture.shop]
sizes = { "big.bin" = 5000 }
dirs = ["empty"]
ages = { "a.log" = 9.0 }
modes = { "run.sh" = "755" }
links = { "here" = "a.log" }
setup = "tar -cf logs.tar a.log"
[fixture.shop.files]
"a.log" = "one\ntwo\n"
"sub/b.log" = "three\n"
"run.sh" = "echo hi\n"

[[task]]
id = "list"
request = "list all the logs"
fixture = "shop"
reference = "find . -name '*.log'"
output = "paths"

[[task]]
id = "remove"
request = "remove the big file"
fixture = "shop"
reference = "rm big.bin"
output = "any"

[[task]]
id = "sub"
request = "count lines in the subfolder"
fixture = "shop"
cwd = "sub"
reference = "wc -l < b.log"
output = "number"

[[task]]
id = "then"
request = "pack the logs anew"
fixture = "shop"
reference = "tar -cf new.tar a.log"
output = "any"
files = "names"
then = "tar -tf new.tar"

[[task]]
id = "expected"
request = "write a greeting"
expect = { stdout = "hello", created = ["greeting"] }
"#;

/// Rules of a model with right answers to all tasks.
fn right_rules() -> Value {
    json!([
        { "match": "list all", "reply": "find . -type f -name '*.log'" },
        { "match": "remove", "reply": "rm -f big.bin" },
        { "match": "count", "reply": "wc -l b.log" },
        { "match": "pack", "reply": "tar cf new.tar a.log" },
        { "match": "greeting", "reply": "echo hello | tee greeting" },
    ])
}

/// Right answers, except `reply` to the requests that contain `word`.
fn with_reply(word: &str, reply: &str) -> Value {
    let mut rules = right_rules();
    rules.as_array_mut().unwrap().insert(0, json!({ "match": word, "reply": reply }));
    rules
}

fn eval(machine: &Machine, rules: Value, args: &[&str]) -> Ran {
    machine.write("suite.toml", SUITE);
    let suite = machine.path("suite.toml");
    let all: Vec<&str> =
        ["eval", suite.to_str().unwrap(), "--refine", "never"].into_iter().chain(args.iter().copied()).collect();
    machine.ask(rules, &all)
}

/// Verdicts by task id.
fn verdicts(report: &Value) -> Vec<(String, String)> {
    let text = |v: &Value| v.as_str().unwrap().to_owned();
    report["tasks"].as_array().unwrap().iter().map(|t| (text(&t["id"]), text(&t["verdict"]))).collect()
}

/// The verdict of one task with another answer.
#[track_caller]
fn verdict_of(id: &str, word: &str, reply: &str) -> String {
    let ran = eval(&Machine::new(), with_reply(word, reply), &["--json", "--only", id]);
    let all = verdicts(&ran.json());
    assert_eq!(all.len(), 1, "{all:?}");
    all[0].1.clone()
}

#[test]
fn right_answers_pass_and_the_report_has_everything() {
    let machine = Machine::new();
    // a report is shared, so it must not have this password
    machine.write("config.toml", "memory_url = \"redis://me:hunter2@host\"\n");
    let ran = eval(&machine, right_rules(), &["--json"]);
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    let report = ran.json();
    assert_eq!(report["settings"]["memory_url"], "redis://***@host");
    let wrong: Vec<_> = verdicts(&report).into_iter().filter(|(_, verdict)| verdict != "passed").collect();
    assert!(wrong.is_empty(), "{wrong:?} {report:#}");
    assert_eq!((&report["asked"], &report["passed"], &report["score"]), (&json!(5), &json!(5), &json!(1.0)));
    assert_eq!((&report["settings"]["refine"], &report["model"]), (&json!("never"), &json!("script:script.json")));
    assert!(report["interval"][0].as_f64().unwrap() > 0.5 && report["ms_p50"].as_f64().unwrap() > 0.0);
    assert!(report["calibration"]["brier"].is_number() && report["second"]["touched"] == 0);
    let table = eval(&machine, right_rules(), &[]);
    assert!(table.out.contains("5 of 5: 100.0 %"), "{table:#?}");
}

#[test]
fn wrong_answers_fail_with_their_reason() {
    assert_eq!(verdict_of("list", "list all", "find . -maxdepth 1 -name '*.log'"), "wrong-output");
    assert_eq!(verdict_of("list", "list all", "find . -name '*.log' ; false"), "wrong-exit");
    assert_eq!(verdict_of("list", "list all", "find . -name '*.log' | tee list.txt"), "wrong-files");
    assert_eq!(verdict_of("remove", "remove", "rm big.bin run.sh"), "wrong-files");
    assert_eq!(verdict_of("remove", "remove", "true"), "wrong-files");
    assert_eq!(verdict_of("then", "pack", "tar cf new.tar run.sh"), "wrong-output");
    assert_eq!(verdict_of("expected", "greeting", "echo hello"), "wrong-files");
    assert_eq!(verdict_of("list", "list all", "csvsort notes.csv"), "not-found");
    // an answer that starts with an unknown program is taken for prose
    assert_eq!(verdict_of("list", "list all", "no-such-program-at-all"), "no-command");
    assert_eq!(verdict_of("list", "list all", "p=$$; kill -9 \"$p\""), "killed");
}

#[test]
fn hanging_and_flooding_answers_are_stopped() {
    assert_eq!(verdict_of("list", "list all", "tail -f a.log"), "timed-out");
    assert_eq!(verdict_of("list", "list all", "yes"), "flooded");
}

#[test]
fn dangerous_answers_are_not_run_and_prose_is_no_command() {
    assert_eq!(verdict_of("list", "list all", "rm -rf /"), "dangerous");
    let rules = with_reply("list all", "# not a shell task");
    let refused = eval(&Machine::new(), rules, &["--json", "--only", "list"]).json();
    assert_eq!(refused["tasks"][0]["verdict"], "no-command");
    assert!(refused["tasks"][0]["error"].is_string());
    let failing = json!([{ "error": "the script says so" }]);
    let broken = eval(&Machine::new(), failing, &["--json", "--only", "list"]).json();
    assert!(broken["tasks"][0]["error"].as_str().unwrap().contains("the script says so"), "{broken:#}");
}

#[test]
fn answers_leave_no_files() {
    let machine = Machine::new();
    let mark = machine.path("work/mark");
    let reply = format!("echo x > {}", mark.display());
    assert_eq!(
        eval(&machine, with_reply("remove", &reply), &["--json", "--only", "remove"]).json()["tasks"][0]["verdict"],
        "wrong-files"
    );
    assert!(!mark.exists(), "an answer wrote outside of its sandbox");
}

#[test]
fn two_reports_are_compared_task_by_task() {
    let machine = Machine::new();
    machine.write("before.json", eval(&machine, with_reply("count", "echo 7"), &["--json"]).out);
    machine.write("now.json", eval(&machine, with_reply("remove", "ls"), &["--json"]).out);
    let before = machine.path("before.json");
    let report = eval(&machine, with_reply("remove", "ls"), &["--json", "--against", before.to_str().unwrap()]).json();
    assert_eq!(report["against"], json!({ "tasks": 5, "wins": ["sub"], "losses": ["remove"], "p": 1.0 }));
    let table = eval(&machine, with_reply("remove", "ls"), &["--against", before.to_str().unwrap()]).out;
    assert!(table.contains("5 tasks in both: 1 won (sub), 1 lost (remove), p = "), "{table}");
    machine.write("same.json", eval(&machine, right_rules(), &["--json"]).out);
    let same = machine.path("same.json");
    let table = eval(&machine, right_rules(), &["--against", same.to_str().unwrap()]).out;
    assert!(table.contains("5 tasks in both: 0 won, 0 lost, p = "), "{table}");
    eval(&machine, right_rules(), &["--only", "nosuch"]).fails(2, &["no task whose id contains `nosuch`", "--only"]);
    eval(&machine, right_rules(), &["--against", "/no/such/report"]).fails(2, &["/no/such/report"]);
}

#[test]
fn the_report_counts_what_the_second_iteration_changed() {
    let machine = Machine::new();
    machine.write("suite.toml", SUITE);
    let rules = json!([{ "match": "list all", "replies": ["find . -nmae '*.log'", "find . -name '*.log'"] },
                       { "reply": "find . -name '*.log'" }]);
    let suite = machine.path("suite.toml");
    // on a busy machine the manual may come too late, and no time may be left for the second iteration
    machine.run(&["manual", "warm", "find"]);
    let time = ["--budget", "120", "--timeout", "240"];
    // with one candidate, no others are sampled before the second iteration
    let args =
        [&["eval", suite.to_str().unwrap(), "--json", "--only", "list", "--candidates", "1"], &time[..]].concat();
    let report = machine.ask(rules, &args).json();
    let task = &report["tasks"][0];
    assert_eq!((&task["verdict"], &task["iterations"]), (&json!("passed"), &json!(2)), "{report:#}");
    assert_eq!(task["first"][0], "find . -nmae '*.log'");
    let second = &report["second"];
    assert_eq!(
        (&second["touched"], &second["passed_before"], &second["passed_after"]),
        (&json!(1), &json!(0), &json!(1))
    );
}

#[test]
fn an_invalid_suite_is_reported() {
    let machine = Machine::new();
    let suite = machine.path("bad.toml");
    let text = suite.to_str().unwrap();
    for (content, words) in [
        ("[[task]]\nid = 'x'\nrequest = 'y'\n", "neither `reference` nor `expect`"),
        ("[[task]]\nid = 'x'\nrequest = 'y'\nreference = 'ls'\ntarget = 'macos-bsd'\n", "cannot be run here"),
        (
            "[fixture.f]\nfiles = { '../x' = '' }\n[[task]]\nid = 'x'\nrequest = 'y'\nreference = 'ls'\nfixture = 'f'\n",
            "leads out of it",
        ),
        (
            "[fixture.f]\nmodes = { '../x' = '600' }\n[[task]]\nid = 'x'\nrequest = 'y'\nreference = 'ls'\nfixture = 'f'\n",
            "leads out of it",
        ),
        (
            "[fixture.f]\nlinks = { 'a' = '..', 'a/x' = 'y' }\n[[task]]\nid = 'x'\nrequest = 'y'\nreference = 'ls'\nfixture = 'f'\n",
            "leads out of it",
        ),
        (
            "[fixture.f]\nlinks = { 'a' = '..' }\nmodes = { 'a' = '777' }\n[[task]]\nid = 'x'\nrequest = 'y'\nreference = 'ls'\nfixture = 'f'\n",
            "is a link",
        ),
        (
            "[fixture.f]\nsetup = 'false'\n[[task]]\nid = 'x'\nrequest = 'y'\nreference = 'ls'\nfixture = 'f'\n",
            "its setup failed (exit code 1)",
        ),
        ("", "there is no task in "),
    ] {
        machine.write("bad.toml", content);
        machine.run(&["eval", text, "--check"]).fails(2, &[words]);
    }
}

#[test]
fn a_named_pipe_in_a_fixture_does_not_block() {
    let machine = Machine::new();
    let text = "[fixture.f]\nsetup = 'mkfifo p; echo x > a'\n[[task]]\nid = 'x'\nrequest = 'y'\nreference = 'cat a'\nfixture = 'f'\n";
    machine.write("pipe.toml", text);
    let ran = machine.run(&["eval", machine.path("pipe.toml").to_str().unwrap(), "--check"]);
    assert_eq!(ran.code, Some(0), "{ran:#?}");
}

/// The example in `--help` can be copied.
#[test]
fn the_suite_of_the_help_passes_its_own_check() {
    let machine = Machine::new();
    let help = machine.run(&["eval", "--help"]).out;
    let format = &help[help.find("A suite is a TOML file:").unwrap()..];
    let wide: Vec<&str> = format.lines().filter(|line| line.chars().count() > 78).collect();
    assert!(wide.is_empty(), "{wide:#?}");
    let suite: String =
        format.lines().skip(1).take_while(|l| !l.starts_with("or JSON")).flat_map(|l| [l, "\n"]).collect();
    // with the optional expectation, too, which the example's own reference meets
    let with_expectation = suite.replace("# expect =", "expect =");
    assert_ne!(with_expectation, suite);
    for suite in [suite, with_expectation] {
        machine.write("help.toml", &suite);
        let ran = machine.run(&["eval", machine.path("help.toml").to_str().unwrap(), "--check"]);
        assert_eq!(ran.code, Some(0), "{suite}{ran:#?}");
    }
}

#[test]
fn the_check_finds_bad_tasks() {
    let machine = Machine::new();
    machine.write(
        "bad.toml",
        "[[task]]\nid = 'idle'\nrequest = 'r'\nreference = 'true'\n\
         [[task]]\nid = 'chance'\nrequest = 'r'\nreference = 'date +%N'\n\
         [[task]]\nid = 'gone'\nrequest = 'r'\nreference = 'no-such-program'\n\
         [[task]]\nid = 'fails'\nrequest = 'r'\nreference = 'echo x; false'\n\
         [[task]]\nid = 'good'\nrequest = 'r'\nreference = 'echo x'\n",
    );
    let ran = machine.run(&["eval", machine.path("bad.toml").to_str().unwrap(), "--check"]);
    assert_eq!(ran.code, Some(1), "{ran:#?}");
    for line in [
        "idle doing nothing passes",
        "chance `date +%N` does not pass",
        "gone `no-such-program` does not pass",
        "fails `echo x; false` fails (exit code 1)",
        "5 tasks, 4 bad",
    ] {
        assert!(ran.out.contains(line), "no {line:?} in {ran:#?}");
    }
    assert!(!ran.out.contains("good "), "{ran:#?}");
}

/// Checks one of the project's suites: every reference passes reproducibly, and doing nothing never passes.
#[track_caller]
fn check_suite(name: &str, programs: &[&str]) {
    if let Some(missing) = programs.iter().find(|p| !have(p)) {
        return eprintln!("skipped: {name} needs {missing}");
    }
    let suite = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/tasks").join(name);
    let ran = Machine::new().run(&["eval", "--check", suite.to_str().unwrap()]);
    assert_eq!(ran.code, Some(0), "{}\n{}", ran.out, ran.err);
}

#[test]
fn own_file_tasks_are_good() {
    check_suite("files.toml", &[]);
}

#[test]
fn own_text_tasks_are_good() {
    check_suite("text.toml", &["jq"]);
}

#[test]
fn own_measuring_tasks_are_good() {
    check_suite("measure.toml", &[]);
}

#[test]
fn own_archive_tasks_are_good() {
    check_suite("archives.toml", &["zip", "unzip", "xz", "bzip2"]);
}

#[test]
fn own_json_tasks_are_good() {
    check_suite("json.toml", &["jq"]);
}

#[test]
fn own_table_tasks_are_good() {
    check_suite("tables.toml", &[]);
}

#[test]
fn held_out_tasks_are_good() {
    check_suite("unseen.toml", &["jq", "zip", "unzip", "rev"]);
}

#[test]
fn held_out_tasks_of_a_prompt_are_good() {
    check_suite("held-plain.toml", &["jq", "zip", "unzip"]);
}

#[test]
fn held_out_tasks_of_everyday_folders_are_good() {
    check_suite("held-blind.toml", &[]);
}

#[test]
fn held_out_tasks_of_question_sites_are_good() {
    check_suite("held-tree.toml", &[]);
}

#[test]
fn held_out_tasks_of_titles_are_good() {
    check_suite("held-titles.toml", &["jq", "zip", "unzip", "xxd"]);
    check_suite("held-forum.toml", &["jq", "zip", "unzip", "xxd"]);
}

#[test]
fn own_git_tasks_are_good() {
    check_suite("git.toml", &["git"]);
}

#[test]
fn own_busybox_tasks_are_good() {
    check_suite("busybox.toml", &["busybox"]);
}

#[test]
fn tasks_are_many_and_distinct_from_the_examples() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/tasks");
    let texts: Vec<String> =
        std::fs::read_dir(folder).unwrap().map(|e| std::fs::read_to_string(e.unwrap().path()).unwrap()).collect();
    let requests: Vec<&str> =
        texts.iter().flat_map(|t| t.lines()).filter_map(|l| l.strip_prefix("request = ")).collect();
    assert!(requests.len() >= 150, "{}", requests.len());
    let mut words: Vec<String> = requests.iter().map(|r| r.trim_matches('"').to_lowercase()).collect();
    // a task whose request is an example would measure memory
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("platform-rules/examples")];
    let mut examples = 0;
    while let Some(folder) = folders.pop() {
        for path in std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()) {
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            for line in std::fs::read_to_string(&path).unwrap().lines().filter(|l| l.contains("request = ")) {
                let request = line.split('"').nth(1).unwrap_or_default().to_lowercase();
                assert!(!words.contains(&request), "`{request}` is an example too, in {}", path.display());
                examples += 1;
            }
        }
    }
    assert!(examples > 20, "the examples were not found");
    words.sort();
    let count = words.len();
    words.dedup();
    assert_eq!(words.len(), count, "a request occurs twice");
}

#[test]
fn without_disables_a_check() {
    let check_task = |more: &[&str]| {
        let machine = Machine::new();
        machine.write("suite.toml", SUITE);
        let suite = machine.path("suite.toml");
        let args = [&["eval", suite.to_str().unwrap(), "--only", "list", "--json"], more].concat();
        let report = machine.ask(with_reply("list all", "find . -name *.log"), &args).json();
        (report["tasks"][0]["cmd"].clone(), report["tasks"][0]["seen"].clone())
    };
    assert_eq!(check_task(&[]), (json!("find . -name '*.log'"), json!(["find-name-unquoted"])));
    assert_eq!(check_task(&["--without", "find-name-unquoted"]), (json!("find . -name *.log"), json!([])));
}
