//! What a run costs and what is told about it, end to end on a scripted model: limits, and what happened read afterwards.

use crate::agent::{answer, by_step, events, kinds, step};
use crate::machine::{Machine, Ran, feed};
use serde_json::{Value, json};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

const TASK: &str = "look at every line of a.txt";

/// A run of five looks and an answer, each token of which takes so long.
fn looks(machine: &Machine, delay_ms: u64) -> String {
    machine.write("work/a.txt", "one\ntwo\n");
    let look = |n: usize| step("look", &[("shell", json!({"command": format!("sed -n {n}p a.txt | wc -c")}))]);
    let replies: Vec<String> = (1..=5).map(look).chain([answer("all seen")]).collect();
    let mut rules = by_step(&replies);
    rules.as_array_mut().unwrap().iter_mut().for_each(|rule| rule["delay_ms"] = json!(delay_ms));
    machine.model(rules)
}

/// Starts it, and waits until so many of its events are kept.
fn begin(machine: &Machine, model: &str, args: &[&str], kept: usize) -> (Child, String) {
    let args = [&["agent", TASK, "--max-steps", "9"], args].concat();
    let child = machine.caro(&args).env("CARO_MODEL", model).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    let begun = Instant::now();
    loop {
        assert!(begun.elapsed() < Duration::from_secs(60), "it does not begin");
        std::thread::sleep(Duration::from_millis(20));
        let listed = machine.run(&["session", "list", "--json"]).json();
        let Some(run) = listed[0]["runs"][0]["id"].as_str() else { continue };
        if events(machine, run).len() >= kept {
            return (child.unwrap(), run.to_owned());
        }
    }
}

#[test]
fn limits_hold_for_advice_for_conversations_and_for_who_goes_on() {
    let machine = Machine::new();
    machine.write("work/a.txt", "one\ntwo\n");
    // the adviser's requests count
    let model = machine.model(json!([{"reply": "# not a shell task"}]));
    let advised = ["agent", "count the lines of a.txt", "--advise", "always", "--max-requests", "1", "--json"];
    let ran = Ran::of(machine.caro(&advised).env("CARO_MODEL", &model).output().unwrap());
    let document = ran.json();
    assert_eq!((ran.code, &document["termination_reason"]), (Some(4), &json!("request_limit")), "{ran:#?}");
    assert_eq!(document["metric"]["total_requests"], 1);
    assert!(document["metric"]["request_tokens"].as_u64() > Some(20), "{document:#}");
    let called: Vec<Value> = events(&machine, "").into_iter().filter(|e| e["event_type"] == "model_call").collect();
    assert_eq!(called.len(), 1);
    let of = |name: &str| called[0]["metadata"][name].as_u64().unwrap();
    assert!(of("tokens") > 20 && of("tokens") <= of("limit"), "{called:#?}");
    // each answer of a conversation has its own
    let look = step("look", &[("shell", json!({"command": "wc -l a.txt"}))]);
    let rules = json!([{"match": "\nStep 2 of ", "reply": answer("never")}, {"reply": look}]);
    let mut caro = machine.caro(&["chat", "--max-requests", "1"]);
    caro.env("CARO_MODEL", machine.model(rules));
    let ran = feed(caro, b"how many lines has a.txt?\nand how many lines now?\n");
    assert_eq!(ran.out.matches("Usage limit error: 1 request(s)").count(), 2, "{ran:#?}");
    // killed, and gone on with; who goes on may say another number
    for (given, allowed) in [(&[][..], 2), (&["--max-requests", "3"], 3)] {
        let machine = Machine::new();
        let model = looks(&machine, 20);
        let (mut child, _) = begin(&machine, &model, &["--max-requests", "2"], 8);
        child.kill().unwrap();
        child.wait().unwrap();
        let args = [&["resume"], given].concat();
        let ran = Ran::of(machine.caro(&args).env("CARO_MODEL", &model).output().unwrap());
        assert_eq!(ran.code, Some(4), "{ran:#?}");
        assert!(ran.out.starts_with(&format!("Usage limit error: {allowed} request(s)")), "{ran:#?}");
    }
}

#[test]
fn events_after_a_number_are_those_and_the_context_is_assembled_once() {
    let machine = Machine::new();
    let model = looks(&machine, 0);
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
