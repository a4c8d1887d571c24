//! Tests the limits of runs and the reading of their events, end to end on a scripted model.

use crate::agent::{answer, by_step, events, kinds, step};
use crate::machine::{AMPLE, Machine, Ran, feed};
use serde_json::{Value, json};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

const TASK: &str = "look at every line of a.txt";

/// Writes a scripted model for a run of five reading steps and an answer; each token takes `delay_ms`.
fn reading_model(machine: &Machine, delay_ms: u64) -> String {
    machine.write("work/a.txt", "one\ntwo\n");
    let look = |n: usize| step("look", &[("shell", json!({"command": format!("sed -n {n}p a.txt | wc -c")}))]);
    let replies: Vec<String> = (1..=5).map(look).chain([answer("all seen")]).collect();
    let mut rules = by_step(&replies);
    rules.as_array_mut().unwrap().iter_mut().for_each(|rule| rule["delay_ms"] = json!(delay_ms));
    machine.model(rules)
}

/// Starts a run, waits until this many of its events are stored, and returns its process and its id.
fn begin(machine: &Machine, model: &str, args: &[&str], stored: usize) -> (Child, String) {
    let args = [&["agent", TASK, "--max-steps", "9"], args].concat();
    let child = machine.caro(&args).env("CARO_MODEL", model).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    let begun = Instant::now();
    loop {
        assert!(begun.elapsed() < AMPLE, "it does not begin");
        std::thread::sleep(Duration::from_millis(20));
        let listed = machine.run(&["session", "list", "--json"]).json();
        let Some(run) = listed[0]["runs"][0]["id"].as_str() else { continue };
        if events(machine, run).len() >= stored {
            return (child.unwrap(), run.to_owned());
        }
    }
}

#[test]
fn limits_apply_to_advice_chats_and_resumed_runs() {
    let machine = Machine::new();
    machine.write("work/a.txt", "one\ntwo\n");
    // the requests of `--advise` count
    let model = machine.model(json!([{"reply": "# not a shell task"}]));
    let advised = [
        "agent",
        "count the lines of a.txt that rhyme with moon",
        "--advise",
        "always",
        "--max-requests",
        "1",
        "--json",
    ];
    let ran = Ran::of(machine.caro(&advised).env("CARO_MODEL", &model).output().unwrap());
    let document = ran.json();
    assert_eq!((ran.code, &document["termination_reason"]), (Some(4), &json!("request_limit")), "{ran:#?}");
    assert_eq!(document["metric"]["total_requests"], 1);
    assert!(document["metric"]["request_tokens"].as_u64() > Some(20), "{document:#}");
    let called: Vec<Value> = events(&machine, "").into_iter().filter(|e| e["event_type"] == "model_call").collect();
    assert_eq!(called.len(), 1);
    let of = |name: &str| called[0]["metadata"][name].as_u64().unwrap();
    assert!(of("tokens") > 20 && of("tokens") <= of("limit"), "{called:#?}");
    // each answer of a chat has a limit of its own
    let look = step("look", &[("shell", json!({"command": "wc -l a.txt"}))]);
    let rules = json!([{"match": "\nStep 2 of ", "reply": answer("never")}, {"reply": look}]);
    let mut caro = machine.caro(&["chat", "--max-requests", "1"]);
    caro.env("CARO_MODEL", machine.model(rules));
    let ran = feed(caro, b"how many lines has a.txt?\nand how many lines now?\n");
    assert_eq!(ran.err.matches("error: 1 request(s) to the model were allowed").count(), 2, "{ran:#?}");
    assert_eq!(ran.out, "", "it is not an answer");
    // a resumed run keeps its limit, unless `resume` sets another one
    for (given, allowed) in [(&[][..], 2), (&["--max-requests", "3"], 3)] {
        let machine = Machine::new();
        let model = reading_model(&machine, 200);
        let (mut child, _) = begin(&machine, &model, &["--max-requests", "2"], 8);
        child.kill().unwrap();
        child.wait().unwrap();
        reading_model(&machine, 0);
        let args = [&["resume"], given].concat();
        let ran = Ran::of(machine.caro(&args).env("CARO_MODEL", &model).output().unwrap());
        assert_eq!(ran.code, Some(4), "{ran:#?}");
        assert!(ran.err.contains(&format!("error: {allowed} request(s) to the model were allowed")), "{ran:#?}");
    }
}

#[test]
fn a_run_that_a_limit_ended_is_begun_again_and_not_resumed() {
    let machine = Machine::new();
    machine.write("work/a.txt", "one\ntwo\n");
    let look = step("look", &[("shell", json!({"command": "wc -l a.txt"}))]);
    let task = ["agent", "count the lines of a.txt", "--max-requests", "1", "--advise", "never"];
    let ended = machine.ask(json!([{ "reply": look }]), &task);
    let hint = "hint: begin again with a higher limit, --max-requests N";
    assert!(ended.code == Some(4) && ended.err.contains(hint), "{ended:#?}");
    let again = machine.run(&["resume", "--max-requests", "5"]);
    assert!(again.code == Some(4) && again.err.contains(hint), "{again:#?}");
    assert!(again.err.contains(" is over, and cannot go on: it ended so\n"), "{again:#?}");
}

#[test]
fn the_hint_of_a_model_error_holds_for_every_verb() {
    let machine = Machine::new();
    machine.write("work/broken.json", "{}}");
    let hint =
        "`--debug` of a request for a command shows the prompt and the raw answer, `caro events --json` those of a run";
    for verb in [&["agent", TASK][..], &["chat"], &["list files"]] {
        machine.run(&[verb, &["--model", "script:broken.json"]].concat()).fails(2, &["scripted model: ", hint]);
    }
    // the events have what the hint says
    let rules = json!([{"match": "Task:", "error": "out of memory"}]);
    let ran = machine.ask(rules, &["agent", TASK, "--advise", "never"]);
    assert_eq!(ran.code, Some(2), "{ran:#?}");
    let call = events(&machine, "").into_iter().rfind(|event| event["event_type"] == "model_call");
    assert!(call.is_some_and(|call| call["input"].to_string().contains(TASK)), "{ran:#?}");
}

#[test]
fn resume_uses_the_model_of_the_run() {
    // a run on a model of its own, killed; and another model
    let killed = || {
        let machine = Machine::new();
        let own = |delay_ms: u64| {
            reading_model(&machine, delay_ms);
            std::fs::copy(machine.path("script.json"), machine.path("work/own.json")).unwrap()
        };
        own(200);
        let (mut child, run) = begin(&machine, "nosuch", &["--model", "script:own.json"], 8);
        child.kill().unwrap();
        child.wait().unwrap();
        own(0);
        let other = machine.model(json!([{"reply": answer("the other one")}]));
        (machine, run, other)
    };
    let resume = |machine: &Machine, other: &str, more: &[&str]| {
        let mut caro = machine.caro(&[&["resume"], more].concat());
        // in another folder, in which the model's relative path does not exist
        caro.current_dir(machine.path("home")).env("CARO_MODEL", other);
        Ran::of(caro.output().unwrap())
    };
    let (machine, run, other) = killed();
    let ran = resume(&machine, &other, &[]);
    assert_eq!(ran.out, "all seen\n");
    let told = format!("going on with {run}, which was stopped: {TASK}");
    assert!(ran.err.starts_with(&told), "the user named no run: {ran:#?}");
    let (machine, run, other) = killed();
    std::fs::remove_file(machine.path("work/own.json")).unwrap();
    let hint = format!("caro resume {run} --model MODEL");
    resume(&machine, "nosuch", &[]).fails(2, &["the model that it was driven with is gone", &hint]);
    let ran = resume(&machine, "nosuch", &["--model", &other]);
    assert!(ran.out.contains("the other one"), "{ran:#?}");
}

#[test]
fn a_named_session_is_removed_by_its_full_name_and_an_unnamed_one_by_a_prefix() {
    let machine = Machine::new();
    for named in [&["--session", "proj"][..], &["--session", "proj-important"], &[]] {
        machine.ask(json!([{"reply": answer("seen")}]), &[&["agent", TASK][..], named].concat());
    }
    let sessions = || -> Vec<String> {
        let listed = machine.run(&["session", "list", "--json"]).json();
        listed.as_array().unwrap().iter().map(|one| one["id"].as_str().unwrap().to_owned()).collect()
    };
    let rm = |name: &str| machine.run(&["session", "rm", name]);
    assert_eq!((sessions().len(), rm("proj").code), (3, Some(0)));
    rm("proj").fails(2, &["there is no session `proj`", "caro session rm proj-important"]);
    assert!(machine.run(&["session", "show", "proj"]).out.contains(TASK), "a prefix is enough to show a session");
    assert_eq!(rm("session_").code, Some(0));
    assert_eq!(sessions(), ["proj-important"]);
}

#[test]
fn a_task_of_several_lines_is_listed_in_one_line() {
    let machine = Machine::new();
    machine.ask(json!([{"reply": answer("seen")}]), &["agent", "look at every line\nof a.txt\tand\r\nof b.txt"]);
    let listed = machine.run(&["session", "list"]).out;
    assert_eq!(listed.lines().count(), 1, "{listed}");
    assert!(listed.contains("look at every line\\nof a.txt\\tand\\r\\nof b.txt"), "{listed}");
}

#[test]
fn with_json_an_error_before_the_run_is_a_document_too() {
    let machine = Machine::new();
    let cases = [
        (&["agent", "--json", ""][..], "too short"),
        (&["agent", "--json", "--model", "nosuch", TASK], "nosuch"),
        (&["agent", "--json", "--session", "", TASK], "a session's name"),
        (&["agent", "--json", "--skill", "nope", TASK], "there is no skill `nope`"),
        (&["chat", "--json", "--session", ""], "a session's name"),
        (&["resume", "--json"], "no run has been kept yet"),
    ];
    for (args, message) in cases {
        let ran = machine.ask(json!([{"reply": answer("seen")}]), args);
        assert_eq!((ran.code, ran.out.lines().count()), (Some(2), 1), "{args:?}: {ran:#?}");
        let error = &ran.json()["error"];
        assert!(error["message"].as_str().unwrap().contains(message), "{args:?}: {error}");
        assert!(error["hint"].is_string() && ran.err.contains(message), "{args:?}: {ran:#?}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_run_is_completed_though_its_events_cannot_be_printed() {
    let machine = Machine::new();
    let replies = [step("note", &[("write", json!({"path": "note.md", "content": "x"}))]), answer("note.md is there")];
    let mut caro = machine.caro(&["agent", "write x to note.md", "--yes", "--events", "jsonl"]);
    let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
    let ran = Ran::of(caro.env("CARO_MODEL", machine.model(by_step(&replies))).stdout(full).output().unwrap());
    assert!(ran.code == Some(2) && ran.err.contains("error: No space left on device"), "{ran:#?}");
    assert!(machine.path("work/note.md").exists());
}

#[cfg(unix)]
#[test]
fn listing_an_empty_store_creates_no_file() {
    use std::os::unix::fs::PermissionsExt;
    let machine = Machine::new();
    let data = machine.path("home/.local/share/caro");
    std::fs::create_dir_all(&data).unwrap();
    let mode = |mode| std::fs::set_permissions(&data, std::fs::Permissions::from_mode(mode)).unwrap();
    mode(0o555);
    let look = |args: &[&str]| machine.run(args);
    let (list, stats, events) = (look(&["session", "list"]), look(&["stats"]), look(&["events"]));
    mode(0o755);
    assert!(list.code == Some(0) && list.err.contains("no session has been kept yet"), "{list:#?}");
    assert!(stats.code == Some(0) && stats.out.contains("0 (0 completed"), "{stats:#?}");
    events.fails(2, &["no run has been kept yet"]);
    // root could write there in spite of the mode
    assert_eq!(std::fs::read_dir(&data).unwrap().count(), 0);
}

#[test]
fn events_after_a_number_are_listed_and_the_context_is_assembled_once() {
    let machine = Machine::new();
    let model = reading_model(&machine, 0);
    let ran = Ran::of(machine.caro(&["agent", TASK, "--max-steps", "9"]).env("CARO_MODEL", model).output().unwrap());
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    let all = events(&machine, "");
    let assembled = kinds(&all).iter().filter(|kind| **kind == "context_assembly").count();
    assert_eq!((assembled, kinds(&all).iter().filter(|kind| **kind == "model_call").count()), (1, 6));
    let last = all.len() as u64;
    for after in [0, 1, 7, last - 1, last, last + 9] {
        let ran = machine.run(&["events", "--json", "--after", &after.to_string()]);
        let numbers: Vec<u64> = ran
            .out
            .lines()
            .map(|line| serde_json::from_str::<Value>(line).unwrap()["sequence_number"].as_u64().unwrap())
            .collect();
        assert_eq!(numbers, (after + 1..=last).collect::<Vec<_>>(), "after {after}");
    }
}

#[test]
fn a_second_process_follows_a_run_to_its_end_and_sees_every_event_once() {
    let machine = Machine::new();
    let model = reading_model(&machine, 100);
    let (mut child, run) = begin(&machine, &model, &[], 5);
    let mut follower =
        machine.caro(&["events", &run, "--follow", "--json", "--after", "1"]).stdout(Stdio::piped()).spawn().unwrap();
    let lines = std::io::BufRead::lines(std::io::BufReader::new(follower.stdout.take().unwrap()));
    let mut live = 0;
    let mut numbers = Vec::new();
    let mut last = Value::Null;
    for line in lines {
        last = serde_json::from_str(&line.unwrap()).unwrap();
        numbers.push(last["sequence_number"].as_u64().unwrap());
        live += usize::from(child.try_wait().unwrap().is_none());
    }
    assert!(follower.wait().unwrap().success() && child.wait().unwrap().success());
    assert_eq!(last["event_type"], "agent_end");
    assert_eq!(numbers, (2..=events(&machine, &run).len() as u64).collect::<Vec<_>>(), "each once, in order");
    assert!(live > 10, "only {live} of {} came while it ran", numbers.len());
    // following a finished run prints its events and ends
    let finished = machine.run(&["events", "--follow"]);
    assert_eq!((finished.code, finished.out.lines().count(), finished.err.as_str()), (Some(0), numbers.len() + 1, ""));
}

#[test]
fn following_ends_with_the_process_that_is_followed() {
    let machine = Machine::new();
    let model = reading_model(&machine, 300);
    let (mut child, run) = begin(&machine, &model, &[], 5);
    let follower = machine.caro(&["events", &run, "--follow"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    std::thread::sleep(Duration::from_millis(500));
    child.kill().unwrap();
    child.wait().unwrap();
    let ran = Ran::of(follower.unwrap().wait_with_output().unwrap());
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    assert!(ran.err.contains(&format!("`caro resume {run}` goes on")), "{ran:#?}");
}

#[test]
fn the_usage_of_runs_is_summed_and_the_layers_of_a_prompt_are_listed() {
    let machine = Machine::new();
    let none = machine.run(&["stats", "--json"]).json();
    assert_eq!((&none["runs"], &none["average_ms"]), (&json!(0), &json!(0.0)));
    let model = reading_model(&machine, 0);
    let go = |args: &[&str]| {
        let args = [&["agent", TASK, "--max-steps", "9"], args].concat();
        Ran::of(machine.caro(&args).env("CARO_MODEL", &model).output().unwrap())
    };
    let reports = [go(&["--json"]).json(), go(&["--json", "--max-requests", "2"]).json()];
    let sum = |name: &str| reports.iter().map(|r| r["metric"][name].as_u64().unwrap()).sum::<u64>();
    let stats = machine.run(&["stats", "--json"]).json();
    for name in ["total_requests", "request_tokens", "response_tokens", "total_tokens", "tool_calls", "total_ms"] {
        assert_eq!(stats[name].as_u64(), Some(sum(name)), "{name}: {stats:#}");
    }
    assert_eq!((&stats["runs"], &stats["completed"], &stats["not_completed"]), (&json!(2), &json!(1), &json!(1)));
    assert_eq!(stats["average_ms"].as_f64().unwrap(), sum("total_ms") as f64 / 2.0);
    let text = machine.run(&["stats"]).out;
    assert!(text.contains("2 (1 completed, 1 not completed, 0 open)") && text.contains(" s a run\n"), "{text}");

    let quiet = go(&[]);
    assert!(!quiet.err.contains("persona: priority"), "{quiet:#?}");
    let ran = go(&["--verbose"]);
    let all = events(&machine, "");
    let assembly = &all.iter().find(|e| e["event_type"] == "context_assembly").unwrap()["metadata"];
    let mut chars = 0;
    for layer in assembly["layers"].as_array().unwrap() {
        let (name, priority) = (layer["name"].as_str().unwrap(), &layer["priority"]);
        let line = format!("{name}: priority {priority}, {} tokens, {} characters\n", layer["tokens"], layer["chars"]);
        assert!(ran.err.contains(&line), "no {line:?} in {ran:#?}");
        chars += layer["chars"].as_u64().unwrap();
    }
    let total = format!("total: {} of {} tokens, {chars} characters\n", assembly["tokens"], assembly["budget"]);
    assert!(assembly["layers"].as_array().unwrap().len() > 2 && ran.err.contains(&total), "no {total:?} in {ran:#?}");
    let mut caro = machine.caro(&["chat", "--verbose"]);
    caro.env("CARO_MODEL", machine.model(json!([{"reply": answer("hello")}])));
    let ran = feed(caro, b"hi\n");
    assert!(ran.out == "hello\n" && ran.err.contains("persona: priority 0, "), "{ran:#?}");
}

#[test]
fn checkpoints_and_uses_of_the_workspace_are_events() {
    let machine = Machine::new();
    // each task is offered only the one of these tools that fits it
    let turns = [
        ("write a note into the workspace", "write", json!({"path": "a.md", "content": "one"}), "workspace_write a.md"),
        ("view a note of the workspace", "view", json!({"path": "a.md"}), "workspace_read a.md"),
        (
            "rename a note of the workspace",
            "rename",
            json!({"path": "a.md", "to": "b.md"}),
            "workspace_delete a.md, workspace_write b.md",
        ),
        ("delete a note of the workspace", "delete", json!({"path": "b.md"}), "workspace_delete b.md"),
        ("delete a note of the workspace", "delete", json!({"path": "gone.md"}), ""),
    ];
    let mut all = Vec::new();
    for (task, tool, args, want) in turns {
        let replies = [step("note", &[(&format!("workspace_{tool}"), args)]), answer("noted")];
        let words = ["agent", task, "--yes", "--session", "s"];
        let ran = Ran::of(machine.caro(&words).env("CARO_MODEL", machine.model(by_step(&replies))).output().unwrap());
        all = events(&machine, "");
        let about = |e: &Value| {
            let kind = e["event_type"].as_str().unwrap();
            let is_own = ["workspace_read", "workspace_write", "workspace_delete"].contains(&kind);
            is_own.then(|| format!("{kind} {}", e["metadata"]["path"].as_str().unwrap()))
        };
        let touched: Vec<String> = all.iter().filter_map(about).collect();
        assert_eq!(touched.join(", "), want, "{task}: {ran:#?}");
    }
    let at = |kind: &str| kinds(&all).iter().filter(|k| **k == kind).count();
    assert!(at("checkpoint") > at("tool_call") && at("checkpoint") > at("model_call"), "one a step and more");
    let checkpoint = all.iter().find(|e| e["event_type"] == "checkpoint").unwrap();
    assert!(checkpoint["metadata"]["bytes"].as_u64() > Some(100), "{checkpoint:#}");
}
