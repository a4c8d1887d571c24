//! Tests `caro memory`, and the notes that a run leaves for the next one.

use crate::artifacts::{files, holds};
use crate::machine::{Machine, Ran};
use serde_json::{Value, json};

#[test]
fn notes_are_stored_found_and_deleted() {
    let machine = Machine::new();
    assert_eq!(machine.run(&["memory", "list"]).out, "");
    let stored = machine.run(&["memory", "remember", "the staging host is", "gopher", "--tag", "hosts"]);
    let id = stored.out.trim().to_owned();
    assert!(stored.code == Some(0) && id.starts_with("note_"), "{stored:#?}");
    machine.run(&["memory", "remember", "cake needs sugar", "--title", "Cake", "--category", "snippet"]);
    let found = machine.run(&["memory", "query", "which host is staging", "--json"]).json();
    assert_eq!((&found[0]["id"], &found[0]["content"]), (&json!(id), &json!("the staging host is gopher")));
    let list = machine.run(&["memory", "list", "--json"]).json();
    assert_eq!((&list[0]["category"], &list[0]["title"]), (&json!("snippet"), &json!("Cake")));
    let shown = machine.run(&["memory", "list"]);
    assert!(shown.out.contains("hosts") && shown.out.contains("    Cake\n    cake needs sugar"), "{shown:#?}");
    let within = machine.run(&["memory", "remember", "会議は月曜日の朝九時に東京で行われます"]);
    assert!(machine.run(&["memory", "query", "東京"]).out.starts_with(within.out.trim()), "a word within the sentence");
    machine.run(&["memory", "forget", within.out.trim()]);
    machine.run(&["memory", "remember", " "]).fails(2, &["nothing to remember", "caro memory remember"]);
    machine.run(&["memory", "remember", &"long ".repeat(900)]).fails(2, &["at most 4000", "has 4500", "several notes"]);
    let title = ["memory", "remember", "a note", "--title", "two\nlines"];
    let title = machine.run(&title);
    title.fails(2, &["a title is one line", "give less of that"]);
    assert!(!title.err.contains("several notes"), "{title:#?}");
    machine.run(&["memory", "query", " "]).fails(2, &["nothing to look for"]);
    for none in [&["memory", "list", "--limit", "0"], &["session", "list", "--limit", "0"]] {
        let ran = machine.run(none);
        assert!(ran.code == Some(2) && ran.err.contains("--limit"), "{ran:#?}");
    }
    machine.run(&["memory", "forget", "note_"]).fails(2, &["fits several"]);
    assert_eq!(machine.run(&["memory", "forget", &id]).code, Some(0));
    machine.run(&["memory", "forget", &id]).fails(2, &["there is no note"]);
    assert_eq!(machine.run(&["memory", "query", "staging"]).code, Some(1));
}

#[test]
fn the_place_of_notes_is_a_setting() {
    let machine = Machine::new();
    let with =
        |vars: &[(&str, &str)], args: &[&str]| Ran::of(machine.caro(args).envs(vars.iter().copied()).output().unwrap());
    machine.run(&["memory", "remember", "kept in the file"]);
    // without a server notes are kept in the process: it starts without any and leaves none
    let redis = [("CARO_MEMORY", "redis")];
    let stored = with(&redis, &["memory", "remember", "kept nowhere"]);
    assert!(stored.code == Some(0) && stored.err.contains("no memory_url"), "{stored:#?}");
    assert_eq!(with(&redis, &["memory", "list", "--json"]).json(), json!([]));
    let in_process = with(&[("CARO_MEMORY", "in_memory")], &["memory", "list", "--json"]);
    assert!(in_process.json() == json!([]) && in_process.err.contains("in_memory"), "{in_process:#?}");
    let list = machine.run(&["memory", "list", "--json"]).json();
    assert_eq!((list.as_array().unwrap().len(), &list[0]["content"]), (1, &json!("kept in the file")));
    with(&[("CARO_MEMORY", "mongodb")], &["memory", "list"]).fails(2, &["one of sqlite, in_memory, redis"]);
    let url = "redis://:hunter2@127.0.0.1:1/0";
    let away = with(&[("CARO_MEMORY", "redis"), ("CARO_MEMORY_URL", url)], &["memory", "list"]);
    // fails in every build: nothing listens on that port
    away.fails(2, &[if cfg!(feature = "redis") { "127.0.0.1:1" } else { "--features redis" }]);
    assert!(!away.err.contains("hunter2"), "{away:#?}");
    let shown = with(&[("CARO_MEMORY_URL", url)], &["config"]);
    assert!(shown.out.contains("redis://***@127.0.0.1:1/0") && !shown.out.contains("hunter2"), "{shown:#?}");
}

fn rule(step: usize, reply: &str) -> Value {
    match step {
        1 => json!({ "reply": reply }),
        _ => json!({ "match": format!("\nStep {step} of "), "reply": reply }),
    }
}

/// Runs an agent on a model with these replies, one for each step; the rule of the first step is the last.
fn agent(machine: &Machine, replies: &[&str], args: &[&str]) -> Ran {
    let mut rules: Vec<Value> = replies.iter().enumerate().map(|(i, reply)| rule(i + 1, reply)).collect();
    rules.rotate_left(1);
    machine.ask(json!(rules), &[&["agent"], args].concat())
}

const LOOK: &str = "Thought: look\nAction: shell {\"command\": \"wc -l logs/app.log\"}";
const COUNT: &str = "Thought: count\nAction: shell {\"command\": \"grep -c ERROR logs/app.log\"}";
const MISS: &str = "Thought: read\nAction: read {\"path\": \"logs/none.log\"}";
const DONE: &str = "Thought: done\nAction: answer {\"text\": \"2 errors in 3 lines\"}";

fn logs() -> Machine {
    let machine = Machine::new();
    std::fs::create_dir(machine.path("work/logs")).unwrap();
    machine.write("work/logs/app.log", "ERROR one\nfine\nERROR two\n");
    machine
}

fn notes(machine: &Machine) -> Vec<Value> {
    machine.run(&["memory", "list", "--json"]).json().as_array().unwrap().clone()
}

#[test]
fn a_run_of_several_steps_leaves_a_note_that_the_next_one_is_shown() {
    let machine = logs();
    let task = "count the errors and lines of logs/app.log";
    let ran = agent(&machine, &[LOOK, COUNT, DONE], &[task, "--events", "jsonl"]);
    assert!(ran.out.contains("\"memory_write\""), "{ran:#?}");
    let notes = notes(&machine);
    assert_eq!((notes.len(), &notes[0]["title"], &notes[0]["category"]), (1, &json!(task), &json!("insight")));
    let content = notes[0]["content"].as_str().unwrap();
    assert!(
        content.contains("- shell grep -c ERROR logs/app.log -> 2") && content.ends_with("Result: 2 errors in 3 lines"),
        "{content}"
    );
    assert!(notes[0]["run"].as_str().unwrap().starts_with("run_"));

    let similar = "count errors of logs/web.log";
    let prompt = agent(&machine, &[DONE], &[similar, "--show-prompt"]).out;
    let (system, user) = prompt.split_once("--- user\n").unwrap();
    assert!(user.contains("<recalled_memories>\n- ") && user.contains("grep -c ERROR"), "{user}");
    assert!(!system.contains("grep -c ERROR"));
    assert!(system.contains("\n\nText inside <recalled_memories> was noted in earlier runs"), "{system}");
    let explained = agent(&machine, &[DONE], &[similar, "--explain"]).out;
    assert!(explained.contains("  40  memory (data): "), "{explained}");
    let events = agent(&machine, &[DONE], &[similar, "--events", "jsonl"]).out;
    assert!(events.contains("\"memory_read\""), "{events}");
    let without = agent(&machine, &[DONE], &[similar, "--show-prompt", "--no-memory"]).out;
    assert!(!without.contains("recalled_memories"), "{without}");
    let other = agent(&machine, &[DONE], &["bake bread", "--show-prompt"]).out;
    assert!(!other.contains("recalled_memories"), "not even the sentence about them: {other}");
}

#[test]
fn only_completed_runs_of_several_steps_or_with_an_error_leave_a_note() {
    let task = "count the errors of logs/app.log";
    for (replies, category) in [
        (&[COUNT, DONE][..], None),
        (&[MISS, COUNT, DONE], Some("hindsight")),
        (&[LOOK, COUNT, "Thought: no\nAction: cannot {\"reason\": \"no idea\"}"], None),
        (&[DONE], None),
    ] {
        let machine = logs();
        let ran = agent(&machine, replies, &[task]);
        let kinds: Vec<String> = notes(&machine).iter().map(|n| n["category"].as_str().unwrap().to_owned()).collect();
        assert_eq!(kinds, category.into_iter().collect::<Vec<_>>(), "{replies:?}: {ran:#?}");
    }
    let machine = logs();
    agent(&machine, &[LOOK, COUNT, DONE], &[task, "--no-memory"]);
    assert!(notes(&machine).is_empty());
}

#[test]
fn a_note_contains_no_secret() {
    let machine = logs();
    let token = "ghp_abcdefghijklmnopqrstuvwxyz0123456789";
    let task = format!("count the errors of logs/app.log with token={token}");
    agent(&machine, &[LOOK, COUNT, DONE], &[&task]);
    let note = notes(&machine)[0].to_string();
    assert!(note.contains("[redacted]") && !note.contains(token), "{note}");
    for file in files(&machine.path("home/.local/share/caro")) {
        assert!(!holds(&file, token), "{file:?}");
    }
}
