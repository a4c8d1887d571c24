//! Tests that `caro agent --json` prints a document when it is stopped by Ctrl-C.

use super::{TASK, answer, by_step, step};
use crate::http_server::Server;
use crate::machine::{AMPLE, Machine, Ran};
use serde_json::{Value, json};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Sends Ctrl-C to the binary once `is_ready` holds, and waits for its end.
fn interrupt(mut caro: Command, is_ready: impl Fn() -> bool) -> Ran {
    let mut child = caro.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let (started, mut is_sent) = (Instant::now(), false);
    while child.try_wait().unwrap().is_none() {
        if !is_sent && is_ready() {
            let pid = rustix::process::Pid::from_child(&child);
            rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
            is_sent = true;
        }
        if started.elapsed() > AMPLE {
            child.kill().unwrap();
            panic!("it does not end");
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    Ran::of(child.wait_with_output().unwrap())
}

/// Three writes and an answer; the model waits `ms` milliseconds before each token of its second step.
fn rules(ms: u64) -> Value {
    let write = |name: &str| step("write", &[("write", json!({"path": name, "content": "x"}))]);
    let mut rules = by_step(&[write("a.txt"), write("b.txt"), write("c.txt"), answer("All noted.")]);
    rules[0]["delay_ms"] = json!(ms);
    rules
}

#[test]
fn ctrl_c_prints_the_document_of_the_unfinished_run() {
    let machine = Machine::new();
    let task = "note the state of things in a.txt, b.txt and c.txt";
    let mut caro = machine.caro(&["agent", task, "--yes", "--json", "--session", "s"]);
    caro.env("CARO_MODEL", machine.model(rules(300_000)));
    let model_calls = || machine.run(&["events", "--json"]).out.matches("\"model_call\"").count();
    let ran = interrupt(caro, || model_calls() > 1);
    assert_eq!(ran.code, Some(130), "{ran:#?}");
    let stopped = ran.json();
    let run = stopped["run_id"].as_str().unwrap();
    assert_eq!((&stopped["status"], &stopped["termination_reason"]), (&json!("stopped"), &json!("stopped")));
    assert_eq!((&stopped["session_id"], &stopped["steps"]), (&json!("s"), &json!(2)), "{stopped}");
    assert_eq!(stopped["state"]["modified_files"], 1, "{stopped}");
    assert_eq!(stopped["response"], format!("stopped; `caro resume {run}` goes on"), "{stopped}");
    assert_eq!(ran.err, format!("stopped; `caro resume {run}` goes on\n"), "stderr is the same as without --json");
    // it has the fields of a final report, and the resumed run ends with one
    let report = machine.ask(rules(0), &["resume", run, "--yes", "--json"]).json();
    let fields = |document: &Value| document.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    assert_eq!(fields(&stopped), fields(&report));
    assert_eq!((&report["run_id"], &report["response"]), (&stopped["run_id"], &json!("All noted.")), "{report}");
}

#[test]
fn ctrl_c_before_the_run_prints_an_error_document() {
    let machine = Machine::new();
    // the hub accepts the request for the model, and never answers
    let hub = Server::start(|_, _| std::thread::sleep(2 * AMPLE));
    let mut caro = machine.caro(&["agent", TASK, "--json"]);
    caro.env("CARO_HUB_URL", &hub.url).env("CARO_PYTHON", "/nowhere/python3");
    let ran = interrupt(caro, || !hub.seen().is_empty());
    assert_eq!((ran.code, ran.json()), (Some(130), json!({"error": {"message": "stopped", "hint": ""}})), "{ran:#?}");
}
