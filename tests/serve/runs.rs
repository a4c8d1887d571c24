//! Tests runs that wait for each other, background tasks beside them, and the end of the server while they go on.

use super::{Response, Server, read_until};
use crate::agent::{answer, by_step, step};
use crate::machine::{AMPLE, Machine};
use serde_json::{Value, json};
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// Rules of a task that takes this many words, four of them a second, and of tasks that take no time.
fn rules(words: usize) -> Value {
    let slow = answer(&"letter ".repeat(words));
    // a later run of a session has the earlier tasks in its prompt
    json!([
        {"match": "say hello to everybody", "reply": answer("hello, everybody")},
        {"match": "say the letters slowly", "reply": slow, "delay_ms": 250}
    ])
}

fn until(what: &str, holds: impl Fn() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < AMPLE, "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Starts a server whose only background task is running.
fn with_running_task(words: usize) -> Server {
    let machine = Machine::new();
    machine.run(&["task", "add", "--at", "2020-01-01", "--name", "slow", "say the letters slowly"]);
    let server = Server::on(machine, rules(words), &["--port", "0"]);
    until("the task begins", || state(&server) == "running");
    server
}

fn state(server: &Server) -> Value {
    server.get("/background/runs?task=slow").json()["runs"][0]["state"].clone()
}

fn stored_run(machine: &Machine) -> Value {
    // the latest first; one that is queued again has no run yet
    let runs = machine.run(&["task", "list", "--json"]).json()[0]["runs"].clone();
    runs.as_array().unwrap().iter().find(|run| run["run"] != "").unwrap_or(&Value::Null).clone()
}

fn hello(server: &Server, session: &str) -> TcpStream {
    server.begin("/run/sync", json!({"query": "say hello to everybody", "session_id": session}))
}

#[test]
fn runs_that_wait_for_their_session_leave_the_places_to_others() {
    let server = Server::start(rules(400), &["--port", "0"]);
    let mut first = server.begin("/run", json!({"query": "say the letters slowly", "session_id": "s"}));
    read_until(&mut first, "event: agent_start");
    let waiting: Vec<TcpStream> = (0..4).map(|_| hello(&server, "s")).collect();
    let load = || server.get("/metrics").json()["server"]["runs"].clone();
    until("four runs wait", || load() == json!({"under_way": 1, "waiting": 4}));
    let other = Response::read(&mut hello(&server, "t"));
    assert_eq!((other.status, &other.json()["response"]), (200, &json!("hello, everybody")), "{other:#?}");
    assert_eq!(load(), json!({"under_way": 1, "waiting": 4}), "the first run still goes on");
    drop(first);
    for mut one in waiting {
        let answered = Response::read(&mut one);
        assert_eq!((answered.status, &answered.json()["session_id"]), (200, &json!("s")), "{answered:#?}");
    }
}

#[test]
fn a_process_that_holds_the_store_holds_up_no_other_request() {
    let server = Server::start(rules(1), &["--port", "0"]);
    assert_eq!(Response::read(&mut hello(&server, "s")).status, 200);
    let store = rusqlite::Connection::open(server.machine.path("home/.local/share/caro/agent.db")).unwrap();
    store.execute_batch("BEGIN IMMEDIATE").unwrap();
    // more than the runtime has threads
    let waiting: Vec<TcpStream> = (0..4).map(|n| hello(&server, &format!("t{n}"))).collect();
    std::thread::sleep(Duration::from_millis(300));
    for path in ["/health", "/v1/models"] {
        let begun = Instant::now();
        assert_eq!(server.get(path).status, 200, "{path}");
        assert!(begun.elapsed() < Duration::from_secs(9), "{path}: {:?}", begun.elapsed());
    }
    store.execute_batch("ROLLBACK").unwrap();
    for mut one in waiting {
        let answered = Response::read(&mut one);
        assert_eq!(answered.status, 200, "{answered:#?}");
    }
}

#[test]
fn while_a_task_runs_its_session_takes_no_other_run_and_cannot_be_deleted() {
    let server = with_running_task(24);
    let mut waits = hello(&server, "task-slow");
    let delete = || server.send("DELETE", "/sessions/task-slow", &[("Authorization", &server.bearer())], "");
    let refused = delete();
    assert_eq!((refused.status, &refused.json()["error"]), (409, &json!("conflict")), "{refused:#?}");
    let answered = Response::read(&mut waits);
    assert_eq!((answered.status, state(&server)), (200, json!("completed")), "{answered:#?}");
    let events = server.get("/events/task-slow/list").json();
    let kinds: Vec<&str> =
        events["events"].as_array().unwrap().iter().map(|event| event["event_type"].as_str().unwrap()).collect();
    let at = |kind: &str| kinds.iter().rposition(|found| *found == kind).unwrap();
    assert!(at("background_end") < at("agent_start"), "one after the other: {kinds:?}");
    assert_eq!(delete().status, 200);
}

#[test]
fn on_sigterm_a_task_has_time_to_end() {
    let mut server = with_running_task(16);
    server.signal("-TERM");
    assert_eq!(server.wait_for_exit(), Some(0), "{}", server.log());
    let run = stored_run(&server.machine);
    assert_eq!(run["state"], "completed", "{run:#}\n{}", server.log());
}

#[test]
fn a_task_that_is_cut_off_is_queued_again_and_resumed_with_the_servers_model() {
    let mut server = with_running_task(400);
    server.signal("-TERM");
    until("the server ends", || server.get("/tools").status == 503);
    assert_eq!(server.child.try_wait().unwrap(), None, "it waits for the task");
    server.signal("-TERM");
    assert_eq!(server.wait_for_exit(), Some(0), "{}", server.log());
    let run = stored_run(&server.machine);
    assert_eq!(run["state"], "interrupted", "{run:#}\n{}", server.log());
    server.machine.model(json!([{"reply": answer("a b c")}]));
    // no model is named here
    let resumed = server.machine.run(&["resume", run["run"].as_str().unwrap()]);
    assert_eq!((resumed.code, resumed.out.contains("a b c")), (Some(0), true), "{resumed:#?}");
}

#[test]
fn a_stopped_run_is_resumed_with_the_servers_model() {
    let mut server = Server::start(rules(400), &["--port", "0"]);
    let mut run = server.begin("/run", json!({"query": "say the letters slowly", "session_id": "s"}));
    let text = read_until(&mut run, "event: agent_start");
    let id = text.split("\"run_id\":\"").nth(1).unwrap().split('"').next().unwrap().to_owned();
    drop(run);
    until("the run stops", || server.get("/sessions").json()["sessions"][0]["status"] == "stopped");
    server.signal("-TERM");
    server.wait_for_exit();
    server.machine.model(json!([{"reply": answer("a b c")}]));
    let resumed = server.machine.run(&["resume", &id]);
    assert_eq!((resumed.code, resumed.out.contains("a b c")), (Some(0), true), "{resumed:#?}");
}

#[test]
fn a_run_is_answered_while_the_server_ends() {
    let write = step("write", &[("write", json!({"path": "report.md", "content": "2 errors"}))]);
    let mut server = Server::start(by_step(&[write, answer("written")]), &["--port", "0"]);
    let mut run = server.begin("/run", json!({"query": "write `2 errors` to report.md", "session_id": "s"}));
    let text = read_until(&mut run, "event: approval_request");
    let id = text.split("\"run_id\":\"").nth(1).unwrap().split('"').next().unwrap().to_owned();
    server.signal("-TERM");
    until("the server ends", || server.get("/tools").status == 503);
    let without = server.send("POST", &format!("/runs/{id}/approve"), &[], r#"{"decision": "yes"}"#);
    assert_eq!(without.status, 401, "{without:#?}");
    until("the run is answered", || {
        let approved = server.post(&format!("/runs/{id}/approve"), json!({"decision": "yes"}));
        assert!([200, 409].contains(&approved.status), "{approved:#?}");
        approved.status == 200
    });
    read_until(&mut run, "\"status\":\"ended\"");
    assert_eq!(server.wait_for_exit(), Some(0), "{}", server.log());
    assert_eq!(std::fs::read_to_string(server.machine.path("work/report.md")).unwrap(), "2 errors\n");
}
