//! `caro agent` on a real terminal: what is asked before a change, what each answer does, and a run that is stopped and
//! gone on with.

use crate::agent::{answer, by_step, events, kinds, step};
use crate::machine::{AMPLE, Machine};
use crate::pty::Terminal;
use serde_json::{Value, json};

const TASK: &str = "note the state of things in a.txt, b.txt and c.txt";

fn write(name: &str) -> String {
    step("write", &[("write", json!({"path": name, "content": "x"}))])
}

/// Three writes, and the end.
fn script() -> Value {
    by_step(&[write("a.txt"), write("b.txt"), write("c.txt"), answer("All noted.")])
}

fn start(machine: &Machine, more: &[&str]) -> Terminal {
    let args: Vec<&str> = ["agent", TASK].into_iter().chain(more.iter().copied()).collect();
    Terminal::start(machine, script(), &args)
}

/// Waits until a question has been put so often.
fn asked(terminal: &Terminal, times: usize) {
    let begun = std::time::Instant::now();
    while terminal.text().matches("allow it?").count() < times {
        assert!(begun.elapsed() < AMPLE, "asked less than {times} times:\n{}", terminal.text());
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
}

fn there(machine: &Machine) -> Vec<&'static str> {
    ["a.txt", "b.txt", "c.txt"].into_iter().filter(|name| machine.path("work").join(name).exists()).collect()
}

#[test]
fn each_change_is_asked_for_and_yes_and_no_are_for_this_one() {
    let machine = Machine::new();
    let mut terminal = start(&machine, &[]);
    for (times, keys) in [(1, "y\n"), (2, "n\n"), (3, "y\n")] {
        asked(&terminal, times);
        terminal.types(keys);
    }
    assert_eq!(terminal.ends(), 0);
    assert_eq!(there(&machine), ["a.txt", "c.txt"]);
    let text = terminal.text();
    assert!(text.contains("All noted.") && text.contains("it writes") && text.contains("wrote a.txt"), "{text}");
    assert!(!terminal.screen().hide_cursor());
}

#[test]
fn always_is_for_the_rest_of_the_run() {
    let machine = Machine::new();
    let mut terminal = start(&machine, &[]);
    asked(&terminal, 1);
    terminal.types("a\n");
    assert_eq!(terminal.ends(), 0);
    assert_eq!(there(&machine), ["a.txt", "b.txt", "c.txt"]);
    assert_eq!(terminal.text().matches("allow it?").count(), 1, "{}", terminal.text());
}

#[test]
fn whatever_is_no_yes_is_no() {
    for keys in ["\n", "what?\n", "\x04"] {
        let machine = Machine::new();
        let mut terminal = start(&machine, &[]);
        for times in 1..=3 {
            asked(&terminal, times);
            terminal.types(keys);
        }
        assert_eq!(terminal.ends(), 0, "{keys:?}");
        assert_eq!(there(&machine), [""; 0], "{keys:?}");
    }
}

#[test]
fn a_run_that_is_stopped_goes_on_where_it_stood() {
    let machine = Machine::new();
    let mut rules = script();
    // the second step takes long enough to be stopped in
    rules[0]["delay_ms"] = json!(60);
    let mut terminal = Terminal::start(&machine, rules, &["agent", TASK, "--yes"]);
    terminal.shows("wrote a.txt");
    terminal.types("\x03");
    assert_eq!(terminal.ends(), 130, "{}", terminal.text());
    assert!(terminal.text().contains("caro resume"), "{}", terminal.text());
    let before = there(&machine);
    assert!(before.contains(&"a.txt") && !before.contains(&"c.txt"), "{before:?}");
    let mut terminal = Terminal::start(&machine, script(), &["resume", "--yes"]);
    assert_eq!(terminal.ends(), 0, "{}", terminal.text());
    assert!(terminal.text().contains("All noted."), "{}", terminal.text());
    assert_eq!(there(&machine), ["a.txt", "b.txt", "c.txt"]);
    let events = events(&machine, "");
    let starts = kinds(&events).iter().filter(|kind| **kind == "agent_start").count();
    assert_eq!(starts, 2, "one run, in two parts");
}

#[test]
fn ctrl_c_at_a_question_changes_nothing_and_the_run_can_go_on() {
    let machine = Machine::new();
    let mut terminal = start(&machine, &[]);
    asked(&terminal, 1);
    terminal.types("\x03");
    assert_eq!(terminal.ends(), 130, "{}", terminal.text());
    assert_eq!(there(&machine), [""; 0]);
    let mut terminal = Terminal::start(&machine, script(), &["resume", "--yes"]);
    assert_eq!(terminal.ends(), 0, "{}", terminal.text());
    assert!(there(&machine).contains(&"c.txt"));
}

#[test]
fn a_command_is_shown_to_its_last_line_and_a_text_when_asked_for() {
    let lines: String = (1..=12).map(|n| format!("echo {n} >> log.txt\n")).collect();
    let command = format!("{lines}cp /etc/hostname stolen.txt");
    let text: String = (1..=20).map(|n| format!("row {n}\n")).collect();
    let machine = Machine::new();
    let rules = by_step(&[
        step("run", &[("shell", json!({ "command": command }))]),
        step("write", &[("write", json!({"path": "a.txt", "content": text}))]),
        answer("Done."),
    ]);
    let mut terminal = Terminal::start(&machine, rules, &["agent", TASK]);
    terminal.shows("allow it?");
    let shown = terminal.text();
    assert!(shown.contains("stolen.txt") && shown.contains("echo 3 "), "{shown}");
    let reasons = shown.lines().filter(|l| l.contains("it writes") && l.contains("log.txt")).count();
    assert!(reasons <= 1, "a reason is given {reasons} times:\n{shown}");
    terminal.types("n\n");
    terminal.shows("v(iew all)");
    assert!(!terminal.text().contains("row 20") && terminal.text().contains("more lines"), "{}", terminal.text());
    terminal.types("v\n");
    terminal.shows("row 20");
    terminal.types("y\n");
    assert_eq!(terminal.ends(), 0, "{}", terminal.text());
    assert_eq!(std::fs::read_to_string(machine.path("work/a.txt")).unwrap().lines().count(), 20);
    assert!(!machine.path("work/stolen.txt").exists());
}
