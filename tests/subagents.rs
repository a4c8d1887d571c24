//! Tests `caro agent --subagents` end to end on a scripted model: the output and the events of helpers, and that there
//! are none unless the user asks for them.

use crate::agent::{answer, events, kinds, step};
use crate::machine::Machine;
use serde_json::{Value, json};

const TASK: &str = "compare the two logs, and tell which has more errors";

fn worker(name: &str) -> Value {
    let task = format!("count the errors in {name}.log");
    json!({"name": name, "role": "researcher", "task": task, "output_path": format!("{name}.md")})
}

/// The lead starts two helpers that count, reads the output of the first, and answers. The second leaves output if
/// `both`.
fn rules(both: bool) -> Value {
    let count = |name: &str| step("count", &[("shell", json!({"command": format!("grep -c ERROR {name}.log")}))]);
    let write =
        |name: &str| step("write", &[("workspace_write", json!({"path": format!("{name}.md"), "content": "2"}))]);
    let cannot = step("no", &[("cannot", json!({"reason": "nothing to see"}))]);
    let rule = |name: &str, second: String| json!({"match": format!("Task: count the errors in {name}.log"), "replies": [count(name), second, answer("done")]});
    let spawn = step("both at once", &[("spawn_subagents", json!({"workers": [worker("one"), worker("two")]}))]);
    let read = step("look", &[("workspace_view", json!({"path": "one.md"}))]);
    json!([
        rule("one", write("one")),
        rule("two", if both { write("two") } else { cannot }),
        {"replies": [spawn, read, answer("The first log has 2 errors.")]}
    ])
}

fn machine() -> Machine {
    let machine = Machine::new();
    machine.write("work/one.log", "ERROR a\nfine\nERROR b\n");
    machine.write("work/two.log", "ERROR a\n");
    machine
}

#[test]
fn the_lead_reads_the_output_of_its_helpers_and_their_runs_belong_to_it() {
    let machine = machine();
    let args = ["agent", TASK, "--subagents", "--session", "s1"];
    let ran = machine.ask(rules(true), &[&args[..], &["--json"]].concat());
    let document = ran.json();
    assert_eq!(document["response"], "The first log has 2 errors.", "{ran:#?}");
    assert_eq!(document["metric"]["total_requests"], 9, "three of the lead and of each helper");
    let stats = machine.run(&["stats", "--json"]).json();
    assert_eq!((&stats["runs"], &stats["total_requests"]), (&json!(1), &json!(9)), "helpers count once: {stats}");
    let lead = events(&machine, "");
    assert_eq!(kinds(&lead).iter().filter(|kind| **kind == "subagent_result").count(), 2);
    let read = lead.iter().find(|e| e["span_id"] == "s2c1" && e["event_type"] == "tool_result").unwrap();
    assert_eq!(read["output"], "2\n");
    let spawned = lead.iter().find(|e| e["event_type"] == "subagent_spawn").unwrap();
    let helper = spawned["metadata"]["run"].as_str().unwrap();
    let own = events(&machine, helper);
    assert_eq!((kinds(&own)[0], kinds(&own).last()), ("agent_start", Some(&"agent_end")));
    // a helper's run is no session and no latest run, cannot be resumed by itself, and is removed with its lead
    assert_eq!(machine.run(&["session", "list", "--json"]).json().as_array().unwrap().len(), 1);
    machine.run(&["resume", helper]).fails(2, &["is a helper's run", document["run_id"].as_str().unwrap()]);
    assert_eq!(machine.run(&["session", "rm", "s1"]).code, Some(0));
    machine.run(&["events", helper]).fails(2, &["there is no run"]);
}

#[test]
fn a_helper_without_output_is_reported_with_its_path() {
    let machine = machine();
    let ran = machine.ask(rules(false), &["agent", TASK, "--subagents"]);
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    for shown in ["one: left one.md", "two: Error: it left no output in the workspace file `two.md` (cannot)"] {
        assert!(ran.err.contains(shown), "{shown} in {ran:#?}");
    }
}

#[test]
fn there_are_no_helpers_without_the_option() {
    let machine = machine();
    let tools = |args: &[&str]| {
        let ran = machine.ask(json!([{"reply": "x"}]), &[&["agent", TASK, "--explain"], args].concat());
        ran.out.lines().find(|line| line.starts_with("tools: ")).unwrap().to_owned()
    };
    assert!(!tools(&[]).contains("spawn_subagents"));
    let with = tools(&["--subagents"]);
    assert!(with.contains("spawn_subagents") && with.contains("workspace_view"), "{with}");
}
