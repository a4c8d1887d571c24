//! Tests `caro task` (row B43): tasks are stored, run when due, retried after a failure, and leave their results.

use crate::agent::{answer, step};
#[cfg(unix)]
use crate::machine::{AMPLE, wait_for_exit};
use crate::machine::{Machine, Ran, feed};
use serde_json::{Value, json};
#[cfg(unix)]
use std::process::Stdio;
#[cfg(unix)]
use std::time::{Duration, Instant};

fn listed(machine: &Machine) -> Value {
    machine.run(&["task", "list", "--json"]).json()
}

/// Runs a loop that ends as soon as the due tasks are done.
fn run_loop(machine: &Machine, rules: Value, args: &[&str]) -> Ran {
    let model = machine.model(rules);
    let args: Vec<&str> =
        ["loop", "sleepInterval=0", "maxNewInputLoops=1"].into_iter().chain(args.iter().copied()).collect();
    let mut caro = machine.caro(&args);
    caro.env("CARO_MODEL", model);
    feed(caro, b"")
}

#[test]
fn tasks_are_added_listed_and_removed() {
    let machine = Machine::new();
    for (args, name, schedule) in [
        (vec!["count", "the", "lines", "of", "a.txt"], "count-the-lines-of", "manual"),
        (vec!["--every", "10m", "count the lines of a.txt"], "count-the-lines-of-2", "every 600s"),
        (vec!["--cron", "0  8 * * 1-5", "--name", "morning", "count the lines"], "morning", "cron 0 8 * * 1-5"),
        (vec!["--at", "2099-01-01 08:00", "--name", "later", "count the lines"], "later", "at 2099-01-01 08:00:00"),
    ] {
        let ran = machine.run(&[&["task", "add"], &args[..]].concat());
        assert_eq!((ran.code, ran.out.trim_end()), (Some(0), name), "{ran:#?}");
        let listed = listed(&machine);
        let task = listed.as_array().unwrap().iter().find(|task| task["name"] == name).unwrap();
        assert_eq!((&task["schedule"], task["next"].is_null()), (&json!(schedule), schedule == "manual"), "{task}");
        assert_eq!((&task["retries"], &task["delay"]), (&json!(0), &json!(30)));
    }
    let add = |args: &[&str]| machine.run(&[&["task", "add"], args].concat());
    add(&["--name", "morning", "count the lines"]).fails(2, &["there is a task `morning` already"]);
    add(&["--cron", "61 * * * *", "count the lines"]).fails(2, &["--cron must be a minute from 0 to 59"]);
    for wrong in ["soon", "400d", "1w", "-5m"] {
        let asked = ["--every", wrong, "count the lines"];
        add(&asked).fails(2, &["--every must be from a second to 366 days, as in 90s, 10m, 2h, 1d"]);
    }
    add(&["--at", "noon", "count the lines"]).fails(2, &["--at must be"]);
    let shown = machine.run(&["task", "list"]).out;
    assert!(
        shown.contains("morning") && shown.contains("never run") && shown.contains("due 2099-01-01 08:00:00"),
        "{shown}"
    );
    assert_eq!(machine.run(&["task", "rm", "morning"]).code, Some(0));
    machine.run(&["task", "rm", "morning"]).fails(2, &["there is no task"]);
    machine.run(&["task", "run", "morning"]).fails(2, &["there is no task"]);
}

#[test]
fn a_time_that_the_clocks_skip_is_the_end_of_the_gap_and_one_that_is_over_is_told_of() {
    let machine = Machine::new();
    for (zone, when, due) in [
        ("America/New_York", ["--at", "2099-03-08 02:30"], "due 2099-03-08 03:00:00"),
        ("CET-1CEST,J87/2,J300/3", ["--cron", "30 2 28 3 *"], "-03-28 03:00:00"),
    ] {
        if zone.contains('/') && !std::path::Path::new("/usr/share/zoneinfo").join(zone).exists() {
            continue;
        }
        let mut caro = machine.caro(&["task", "add", when[0], when[1], "count the lines"]);
        caro.env("TZ", zone);
        let ran = feed(caro, b"");
        assert!(ran.err.contains(due), "{zone}: {ran:#?}");
    }
    let ran = machine.run(&["task", "add", "--at", "2020-01-01", "count the lines"]);
    assert!(ran.code == Some(0) && ran.err.contains("that time is over"), "{ran:#?}");
}

#[test]
fn a_task_is_run_when_it_is_due_and_leaves_its_files_and_events() {
    let machine = Machine::new();
    machine.run(&["task", "add", "--at", "2020-01-01", "--name", "once", "say hello to everybody"]);
    machine.run(&["task", "add", "--at", "2099-01-01", "--name", "later", "say goodbye to everybody"]);
    let rules = json!([{"match": "Task: say hello", "reply": answer("hello, everybody")}, {"reply": "()"}]);
    let ran = run_loop(&machine, rules.clone(), &[]);
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    let tasks = listed(&machine);
    let of = |name: &str| tasks.as_array().unwrap().iter().find(|task| task["name"] == name).unwrap().clone();
    let once = of("once");
    assert_eq!((&once["runs"][0]["state"], &once["next"]), (&json!("completed"), &Value::Null), "{once}");
    assert_eq!(of("later")["runs"], json!([]));
    let run = once["runs"][0]["run"].as_str().unwrap();
    let events = crate::agent::events(&machine, run);
    let kinds = crate::agent::kinds(&events);
    assert_eq!((kinds[0], *kinds.last().unwrap()), ("background_start", "background_end"));
    assert_eq!(events[0]["metadata"]["task"], "once");
    let shown = machine.run(&["workspace", "ls", "background"]);
    let id = once["runs"][0]["id"].as_str().unwrap();
    let path = format!("agent/once/{id}/answer.md");
    let data = std::process::Command::new("find").arg(machine.path("home")).output().unwrap();
    let files = String::from_utf8(data.stdout).unwrap();
    assert!(files.lines().any(|line| line.contains("background/") && line.ends_with(&path)), "{shown:#?}\n{files}");
    // it is not run again
    run_loop(&machine, rules, &[]);
    assert_eq!(listed(&machine)[1]["runs"].as_array().unwrap().len(), 1, "{}", listed(&machine));
    // nothing of its runs is left for another task of that name
    assert_eq!(machine.run(&["task", "rm", "once"]).code, Some(0));
    assert_eq!(machine.run(&["session", "list"]).out.matches("task-once").count(), 0);
    machine.run(&["events", run]).fails(2, &["there is no run"]);
    let left =
        std::process::Command::new("find").arg(machine.path("home")).args(["-path", "*/once*"]).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&left.stdout), "");
    machine.run(&["session", "rm", "task-once"]).fails(2, &["there is no session"]);
}

/// The states of the runs of the only task, latest first.
fn states(machine: &Machine) -> Vec<String> {
    let listed = listed(machine);
    let runs = listed[0]["runs"].as_array().unwrap().iter();
    runs.map(|run| run["state"].as_str().unwrap().to_owned()).collect()
}

/// Starts a loop that runs the only task, and ends the loop with a signal while the task is running.
#[cfg(unix)]
fn interrupt(machine: &Machine, signal: &str) {
    let model =
        machine.model(json!([{"match": "Task: say hello", "reply": answer(&"hello ".repeat(40)), "delay_ms": 500}]));
    let mut caro = machine.caro(&["loop", "sleepInterval=0"]);
    caro.env("CARO_MODEL", &model).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = caro.spawn().unwrap();
    let until = Instant::now() + AMPLE;
    while states(machine).first().is_none_or(|state| state != "running") {
        assert!(Instant::now() < until, "{:#}", listed(machine));
        std::thread::sleep(Duration::from_millis(10));
    }
    let id = child.id().to_string();
    assert!(std::process::Command::new("kill").args([signal, &id]).status().unwrap().success());
    assert!(wait_for_exit(&mut child).is_some(), "it does not end");
}

#[cfg(unix)]
#[test]
fn an_interrupted_task_that_runs_once_is_run_by_the_next_loop_once() {
    let quick = json!([{"match": "Task: say hello", "reply": answer("hello")}, {"reply": "()"}]);
    for (signal, shown) in [("-KILL", "interrupted (its process was ended)"), ("-INT", "queued")] {
        let machine = Machine::new();
        machine.run(&["task", "add", "--at", "2020-01-01", "--name", "once", "say hello to everybody"]);
        interrupt(&machine, signal);
        let tasks = listed(&machine);
        let mut runs = tasks[0]["runs"].as_array().unwrap().iter();
        // `caro resume` finds it by the id of the agent's run
        assert!(runs.any(|run| run["state"] == "interrupted" && run["run"] != ""), "{tasks:#}");
        let list = machine.run(&["task", "list"]).out;
        assert!(list.contains(shown), "{list}");
        let ran = run_loop(&machine, quick.clone(), &["maxNewInputLoops=3"]);
        assert_eq!((ran.code, states(&machine)), (Some(0), vec!["completed".into(), "interrupted".into()]), "{ran:#?}");
        // one that was interrupted twice is not run again
        machine.run(&["task", "rm", "once"]);
        machine.run(&["task", "add", "--at", "2020-01-01", "--name", "once", "say hello to everybody"]);
        interrupt(&machine, signal);
        interrupt(&machine, signal);
        let ran = run_loop(&machine, quick.clone(), &["maxNewInputLoops=3"]);
        assert_eq!((ran.code, states(&machine)), (Some(0), vec!["failed".into(), "interrupted".into()]), "{ran:#?}");
    }
}

#[test]
fn a_failed_task_is_retried_and_a_task_of_another_folder_is_not_run() {
    let machine = Machine::new();
    machine.run(&[
        "task",
        "add",
        "--at",
        "2020-01-01",
        "--name",
        "fails",
        "--retries",
        "1",
        "--delay",
        "0",
        "count the lines of a.txt",
    ]);
    std::fs::create_dir(machine.path("work/other")).unwrap();
    let mut other = machine.caro(&["task", "add", "--at", "2020-01-01", "--name", "other", "count the lines of a.txt"]);
    assert!(other.current_dir(machine.path("work/other")).status().unwrap().success());
    let cannot = step("no", &[("cannot", json!({"reason": "there is no a.txt"}))]);
    let rules = json!([{"match": "Task: count", "reply": cannot}, {"reply": "()"}]);
    let ran = run_loop(&machine, rules, &["maxNewInputLoops=4"]);
    let tasks = listed(&machine);
    let states = |at: usize| -> Vec<(String, u64)> {
        let runs = tasks[at]["runs"].as_array().unwrap().iter();
        runs.map(|run| (run["state"].as_str().unwrap().to_owned(), run["attempt"].as_u64().unwrap())).collect()
    };
    assert_eq!(states(0), [("failed".to_owned(), 2), ("failed".into(), 1)], "{tasks:#}\n{ran:#?}");
    assert_eq!(states(1), []);
}

#[test]
fn a_task_can_be_run_now_and_calls_that_need_approval_are_denied_without_yes() {
    let machine = Machine::new();
    machine.run(&["task", "add", "--name", "note", "write x to a.txt"]);
    let replies = [step("write", &[("write", json!({"path": "a.txt", "content": "x"}))]), answer("a.txt is written")];
    for (args, written) in [(vec!["task", "run", "note"], false), (vec!["task", "run", "note", "--yes"], true)] {
        let ran = machine.ask(crate::agent::by_step(&replies), &args);
        assert_eq!(machine.path("work/a.txt").exists(), written, "{ran:#?}");
        assert_eq!(ran.code, Some(if written { 0 } else { 1 }), "{ran:#?}");
    }
    let runs = &listed(&machine)[0]["runs"];
    assert_eq!((&runs[0]["state"], &runs[1]["state"]), (&json!("completed"), &json!("failed")), "{runs:#}");
}

#[test]
fn a_run_that_takes_too_long_is_ended() {
    let machine = Machine::new();
    machine.run(&["task", "add", "--name", "slow", "--timeout", "1", "say hello to everybody"]);
    let rules = json!([{"reply": answer(&"hello ".repeat(40)), "delay_ms": 200}]);
    let ran = machine.ask(rules, &["task", "run", "slow"]);
    assert_eq!(ran.code, Some(124), "{ran:#?}");
    assert_eq!(listed(&machine)[0]["runs"][0]["state"], "timeout");
}

#[test]
fn a_call_that_the_time_limit_ends_is_not_said_to_be_aborted_by_the_user() {
    let machine = Machine::new();
    machine.run(&["task", "add", "--name", "slow", "--timeout", "5", "wait a minute"]);
    let wait = step("wait", &[("shell", json!({"command": "sleep 60"}))]);
    let ran = machine.ask(json!([{ "reply": wait }]), &["task", "run", "slow", "--yes"]);
    assert_eq!(ran.code, Some(124), "{ran:#?}");
    assert!(ran.err.contains("stopped after ") && !ran.err.contains("by the user"), "{ran:#?}");
    assert!(ran.err.contains("slow: timeout, after 5 s"), "{ran:#?}");
}
