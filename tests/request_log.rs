//! Tests `caro history`: off by default, then it records and finds requests, but none with a secret.

use crate::artifacts::{files, holds};
use crate::machine::{Machine, Ran};
use serde_json::{Value, json};

fn rules() -> Value {
    json!([
        { "match": "hello", "reply": "# not a shell task" },
        { "match": "log in", "reply": "curl -u me:hunter22 https://example.org" },
        { "match": "disks", "reply": "df -h" },
        { "reply": "ls -a" },
    ])
}

fn ask(machine: &Machine, words: &[&str]) -> Ran {
    machine.ask(rules(), words)
}

fn entries(machine: &Machine, words: &[&str]) -> Vec<Value> {
    let ran = machine.run(&[&["history", "--json"], words].concat());
    ran.json().as_array().unwrap().clone()
}

#[test]
fn nothing_is_recorded_until_it_is_turned_on() {
    let machine = Machine::new();
    ask(&machine, &["list files"]);
    assert!(entries(&machine, &[]).is_empty());
    let empty = machine.run(&["history"]);
    assert!(empty.code == Some(0) && empty.err.contains("`caro history on`"), "{empty:#?}");
    assert!(files(&machine.path("home")).iter().all(|file| !holds(file, "list files")));
    let on = machine.run(&["history", "on"]);
    assert!(on.code == Some(0) && on.err.contains("requests.jsonl"), "{on:#?}");
    assert_eq!(machine.run(&["config", "get", "request_history"]).out, "on\n");
    ask(&machine, &["list files"]);
    ask(&machine, &["show the disks", "--json", "--target", "macos-bsd"]);
    ask(&machine, &["hello"]);
    let all = entries(&machine, &[]);
    assert_eq!(all.len(), 2, "{all:#?}");
    assert_eq!(
        (&all[0]["request"], &all[0]["command"], &all[0]["ran"]),
        (&json!("list files"), &json!("ls -a"), &json!(false))
    );
    assert_eq!(
        (&all[1]["target"], &all[1]["shell"], &all[1]["status"]),
        (&json!("macos-bsd"), &json!("zsh"), &json!(null))
    );
    assert!(all[0]["folder"].as_str().unwrap().ends_with("/work") && all[0]["at"].as_u64().unwrap() > 1_700_000_000);
    assert_eq!(machine.run(&["history", "off"]).code, Some(0));
    ask(&machine, &["list files again"]);
    assert_eq!(entries(&machine, &[]).len(), 2);
}

#[test]
fn the_history_is_searched_and_cleared() {
    let machine = Machine::new();
    machine.run(&["history", "on"]);
    ask(&machine, &["list files"]);
    ask(&machine, &["show the disks"]);
    let found = machine.run(&["history", "DF"]);
    assert!(found.code == Some(0) && found.out.contains("df -h") && !found.out.contains("ls -a"), "{found:#?}");
    assert!(found.out.contains("show the disks") && found.out.contains("not run"), "{found:#?}");
    assert_eq!(entries(&machine, &["-n", "1"])[0]["command"], "df -h");
    let none = machine.run(&["history", "docker"]);
    assert!(none.code == Some(1) && none.err.contains("caro -- history docker"), "{none:#?}");
    // after `--` the words `on` and `off` are searched for
    assert_eq!(machine.run(&["history", "--", "on"]).code, Some(1));
    let cleared = machine.run(&["history", "--clear"]);
    assert!(cleared.err.contains("2 requests forgotten"), "{cleared:#?}");
    assert!(entries(&machine, &[]).is_empty());
    assert!(files(&machine.path("home")).iter().all(|file| !holds(file, "show the disks")));
}

#[test]
fn requests_with_a_secret_are_not_recorded() {
    let machine = Machine::new();
    machine.run(&["history", "on"]);
    let token = format!("ghp_{}", "a1".repeat(18));
    ask(&machine, &[&format!("list files of {token}")]);
    ask(&machine, &["log in to the server"]);
    assert!(entries(&machine, &[]).is_empty());
    assert!(files(&machine.path("home")).iter().all(|file| !holds(file, &token) && !holds(file, "hunter22")));
}

#[cfg(unix)]
#[test]
fn only_a_command_that_ran_has_a_status() {
    use crate::pty::Terminal;
    let machine = Machine::new();
    machine.run(&["history", "on"]);
    let start =
        |command: &str| Terminal::start(&machine, json!([{ "reply": command }]), &["-x", "do it", "--refine", "never"]);
    for (command, key, ends) in [("ls /nowhere-at-all", "y\n", 2), ("ls -a", "n\n", 1)] {
        let mut terminal = start(command);
        terminal.shows("run it?");
        terminal.types(key);
        assert_eq!(terminal.ends(), ends);
    }
    let all = entries(&machine, &[]);
    assert_eq!(all.len(), 2, "{all:#?}");
    assert_eq!((&all[0]["ran"], &all[0]["status"]), (&json!(true), &json!(2)));
    assert_eq!((&all[1]["ran"], &all[1]["status"], &all[1]["command"]), (&json!(false), &json!(null), &json!("ls -a")));
    #[cfg(target_os = "linux")]
    {
        use std::os::unix::fs::PermissionsExt;
        let file = machine.path("home/.local/state/caro/requests.jsonl");
        assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    }
}
