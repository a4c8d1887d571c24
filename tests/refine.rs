//! Tests the second iteration end to end on a scripted model: it starts on evidence, its prompt has the manual, and its
//! answer is taken only if it is better.

use crate::machine::{Machine, have};
use serde_json::{Value, json};

/// A phrase in every prompt of the second iteration.
const SECOND: &str = "not right yet";

fn answer(rules: Value, args: &[&str]) -> Value {
    let machine = Machine::new();
    // on a busy machine a manual may come too late, and no time may be left for the second iteration
    machine.run(&["manual", "warm", "sort", "find", "ps"]);
    let mut all = vec!["--json", "--shell", "bash"];
    if !args.contains(&"--timeout") {
        all.extend(["--budget", "120", "--timeout", "240"]);
    }
    all.extend(args);
    machine.ask(rules, &all).json()
}

fn ids(document: &Value) -> Vec<&str> {
    document["findings"].as_array().unwrap().iter().map(|f| f["id"].as_str().unwrap()).collect()
}

#[test]
fn a_flag_that_does_not_exist_is_found_and_refined_away() {
    let rules = json!([
        // the prompt must have the line of the manual
        { "regex": "(?s)not right yet.*--reversed-order.*-r, --reverse", "reply": "sort --reverse names.txt" },
        { "match": SECOND, "error": "iteration 2 was not shown the manual" },
        { "reply": "sort --reversed-order names.txt" },
    ]);
    let document = answer(rules, &["sort names.txt backwards, in reverse"]);
    assert_eq!(document["cmd"], "sort --reverse names.txt", "{document:#}");
    assert_eq!((&document["iterations"], ids(&document)), (&json!(2), vec![]));
    assert!(document["changes"].as_str().unwrap().contains("no option --reversed-order"), "{document:#}");
    assert!(document["timing"]["iteration2"].as_f64().unwrap() > 0.0);
}

#[test]
fn with_refine_never_the_finding_stays() {
    let rules = json!([
        { "match": SECOND, "error": "there must be no second iteration" },
        { "reply": "sort --reversed-order names.txt" },
    ]);
    let document = answer(rules, &["sort names.txt backwards", "--refine", "never"]);
    assert_eq!((&document["iterations"], ids(&document)), (&json!(1), vec!["unknown-flag"]));
}

#[test]
fn a_second_answer_that_is_no_better_is_not_taken() {
    for second in ["sort --upside-down names.txt", "sortall names.txt", "sort 'names.txt", "rm -rf / names.txt"] {
        let rules = json!([{ "match": SECOND, "reply": second }, { "reply": "sort --reversed-order names.txt" }]);
        let document = answer(rules, &["sort names.txt backwards"]);
        assert_eq!(document["cmd"], "sort --reversed-order names.txt", "{second}: {document:#}");
        assert_eq!(document["changes"], "");
    }
}

#[test]
fn a_program_that_is_not_installed_is_replaced() {
    let rules = json!([
        { "regex": "not right yet(?s:.*)frobnicate is not installed", "reply": "find . -name '*.rs'" },
        { "reply": "frobnicate --ext rs" },
    ]);
    let document = answer(rules, &["find the rust files"]);
    assert_eq!(document["cmd"], "find . -name '*.rs'", "{document:#}");
}

#[test]
fn a_fix_by_a_rule_needs_no_second_iteration() {
    if !have("ps") {
        println!("skipped: there is no ps here");
        return;
    }
    let rules = json!([
        { "match": SECOND, "error": "the rule knows the answer" },
        { "reply": "ps aux --sort=-%cpu | head -n 5" },
    ]);
    let document = answer(rules, &["show top 5 processes by CPU usage"]);
    assert_eq!(document["cmd"], "ps aux --sort=-%cpu | head -n 6", "{document:#}");
    assert!(document["changes"].as_str().unwrap().contains("header"));
}

#[test]
fn a_rule_of_a_platform_applies_only_to_that_platform() {
    let rules = || json!([{ "match": SECOND, "reply": "ps aux | sort -nrk 3" }, { "reply": "ps aux --sort=-%cpu" }]);
    let mac = answer(rules(), &["show processes by CPU", "--target", "macos-bsd"]);
    assert_eq!((&mac["cmd"], &mac["target"]), (&json!("ps aux | sort -nrk 3"), &json!("macos-bsd")), "{mac:#}");
    let linux = answer(rules(), &["show processes by CPU", "--target", "linux-gnu"]);
    assert_eq!(linux["cmd"], "ps aux --sort=-%cpu", "{linux:#}");
}

#[test]
fn no_second_iteration_begins_once_half_of_the_time_is_spent() {
    let rules = json!([
        { "match": SECOND, "error": "too late for that" },
        { "reply": "sort --reversed-order a b c d e f", "delay_ms": 200 },
    ]);
    let document = answer(rules, &["sort backwards", "--timeout", "3"]);
    assert_eq!(document["iterations"], 1, "{document:#}");
}

#[test]
fn a_second_iteration_that_takes_too_long_leaves_the_first_answer() {
    let slow = |first: &str| {
        json!([
            { "match": SECOND, "reply": "sort -r", "delay_ms": 600_000 },
            { "reply": first },
        ])
    };
    // far less than the second iteration takes
    let args = ["sort backwards", "--budget", "6", "--timeout", "300"];
    let document = answer(slow("sort --reversed-order"), &args);
    assert_eq!(document["cmd"], "sort --reversed-order", "{document:#}");
    assert!(document["timing"]["total"].as_f64().unwrap() < 200_000.0, "{document:#}");
}

#[test]
fn alternatives_are_different_commands_and_each_is_rated() {
    let rules = || json!([{ "replies": ["ls", "ls", "ls 'x", "hello world friend", "ls -a", "rm -rf /", "ls -l"] }]);
    let document = answer(rules(), &["list files", "-n", "3"]);
    let others = document["alternatives"].as_array().unwrap();
    let shown: Vec<_> =
        others.iter().map(|o| (o["cmd"].as_str().unwrap(), o["risk"]["level"].as_str().unwrap())).collect();
    assert_eq!((&document["cmd"], &shown[..]), (&json!("ls"), &[("ls -a", "safe"), ("rm -rf /", "danger")][..]));
    // printed into a pipe, where each of them may be run unread
    let ran = Machine::new().ask(rules(), &["--shell", "bash", "list files", "-n", "3"]);
    assert_eq!(ran.out, "ls\nls -a\nrm -rf /\n", "{ran:#?}");
    assert!(ran.err.contains("rm -rf /\n") && ran.err.contains("danger"), "{ran:#?}");
    let alone = Machine::new().ask(json!([{ "reply": "ls" }]), &["--shell", "bash", "list files", "-n", "3"]);
    assert!(alone.out == "ls\n" && alone.err.contains("1 of 3"), "{alone:#?}");
}
