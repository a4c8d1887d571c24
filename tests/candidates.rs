//! Tests the choice between candidates, end to end on a scripted model that gives longer commands a lower probability:
//! if the first answer is uncertain, the most likely effect, as rehearsals show it, wins.

use crate::agent::events;
use crate::machine::{Machine, Ran, have};
use serde_json::{Value, json};

/// A first answer that fails, one of equal probability, and three with the same output.
const REPLIES: [&str; 5] =
    ["find a.text | wc -l", "head -n 1 a.txt", "wc -l < a.txt", "cat a.txt | wc -l", "sed -n '$=' a.txt"];

fn answer(logprob: f64, flags: &[&str]) -> (Machine, Value) {
    answer_of(&REPLIES, logprob, flags)
}

fn answer_of(replies: &[&str], logprob: f64, flags: &[&str]) -> (Machine, Value) {
    let machine = Machine::new();
    machine.write("work/a.txt", "x\ny\nz\n");
    let rules = json!([{ "replies": replies, "logprob": logprob }]);
    // on a busy machine no time may be left for all of them
    let asked = ["--json", "--shell", "bash", "--budget", "120", "--timeout", "240", "how many lines has it"];
    let ran = machine.ask(rules, &[&asked[..], flags].concat());
    let document = ran.json();
    (machine, document)
}

fn can_rehearse() -> bool {
    let support = caro::exec::support();
    let is_supported = have("bash") && support.writes && support.network;
    if !is_supported {
        println!("skipped: nothing can be rehearsed here");
    }
    is_supported
}

#[test]
fn the_most_likely_effect_wins_over_an_uncertain_first_answer() {
    if !can_rehearse() {
        return;
    }
    let (machine, document) = answer(-1.0, &[]);
    assert_eq!(document["cmd"], "wc -l < a.txt", "{document:#}");
    assert_eq!(document["candidates"], 5, "{document:#}");
    assert!(document["changes"].as_str().unwrap().contains("was `find a.text | wc -l`"), "{document:#}");
    assert!(document["timing"]["choice"].as_f64().unwrap() > 0.0);
    let left: Vec<_> = std::fs::read_dir(machine.path("work")).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(left, ["a.txt"], "a rehearsal leaves no files");
}

#[test]
fn a_confident_answer_has_no_other_candidates() {
    let (_, document) = answer_of(&REPLIES[2..], -0.01, &[]);
    assert_eq!((&document["cmd"], &document["candidates"]), (&json!(REPLIES[2]), &json!(1)), "{document:#}");
}

#[test]
fn an_uncertain_answer_is_withdrawn_if_most_samples_refuse() {
    let no = "# not a shell task";
    for (replies, refused) in [(["curl x", no, no, no, "ls"], true), (["curl x", no, "ls", no, "ls"], false)] {
        let machine = Machine::new();
        let ran = machine.ask(json!([{ "replies": replies, "logprob": -1.0 }]), &["--json", "how far is the moon"]);
        assert_eq!(ran.json()["refusal"].is_string(), refused, "{ran:#?}");
        assert_eq!(ran.code, Some(i32::from(refused)));
    }
}

/// If the command for a part of a task failed to do it, no command with the same effect is run again.
#[test]
fn a_command_that_failed_its_part_is_not_run_again() {
    if !can_rehearse() {
        return;
    }
    let machine = Machine::new();
    let wrong = "mkdir -p .backup";
    let replies = [wrong, wrong, wrong, "test -d .backup || mkdir .backup", "mkdir backup", wrong, "cp a.conf backup"];
    machine.write("work/a.conf", "x");
    let model = machine.model(json!([{ "replies": replies, "logprob": -0.01 }]));
    let task = "create a folder backup and copy a.conf into it";
    let ran = Ran::of(
        machine.caro(&["agent", "--yes", "--advise", "always", task]).env("CARO_MODEL", model).output().unwrap(),
    );
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    assert!(machine.path("work/backup/a.conf").exists(), "{ran:#?}");
    let events = events(&machine, "");
    let calls = events.iter().filter(|e| e["event_type"] == "tool_call");
    let commands: Vec<_> = calls.map(|e| e["input"]["args"]["command"].as_str().unwrap_or("?").to_owned()).collect();
    assert_eq!(commands, [wrong, "mkdir backup", "cp a.conf backup"]);
}

#[test]
fn each_part_can_be_switched_off() {
    for flags in [&["--candidates", "1"][..], &["--refine", "never"]] {
        let (_, document) = answer_of(&REPLIES[2..], -1.0, flags);
        assert_eq!((&document["cmd"], &document["candidates"]), (&json!(REPLIES[2]), &json!(1)), "{flags:?}");
    }
    // without rehearsals it is unknown that three of them have the same effect
    let (_, document) = answer(-1.0, &["--rehearse", "off"]);
    assert_eq!((&document["cmd"], &document["candidates"]), (&json!(REPLIES[1]), &json!(5)), "{document:#}");
}

#[test]
fn commands_that_write_are_rehearsed_without_writing() {
    let machine = Machine::new();
    if !machine.run(&["check", "--rehearse", "touch new"]).out.contains("would create new") {
        println!("skipped: what writes cannot be rehearsed here");
        return;
    }
    machine.write("work/a.txt", "one\n");
    let replies = [
        "sed -i s/one/two/ b.txt",
        "sed -i s/one/two/ a.txt",
        "sed -i 's/one/two/' a.txt",
        "sed -i s/o/t/ a.txt",
        "test -e a.txt -a -f a.txt",
    ];
    let ran = machine
        .ask(json!([{ "replies": replies, "logprob": -1.0 }]), &["--json", "--shell", "bash", "put two for one"]);
    let text = std::fs::read_to_string(machine.path("work/a.txt")).unwrap();
    assert_eq!(text, "one\n", "{ran:#?}");
    assert_eq!(ran.json()["cmd"], replies[1], "{ran:#?}");
}

/// The findings of a rehearsal against a confident answer, in a folder with `f` (5 lines), `blank` and `logs/app.log`.
/// On a busy machine a rehearsal may time out without a finding, so up to `tries` calls are made.
fn rehearsal_findings(request: &str, cmd: &str, tries: u32) -> Vec<String> {
    let machine = Machine::new();
    std::fs::create_dir(machine.path("work/logs")).unwrap();
    machine.write("work/logs/app.log", "an ERROR\n");
    machine.write("work/f", "1\n2\n3\n4\n5\n");
    machine.write("work/blank", "\n");
    let ask = || {
        let rules = json!([{ "reply": cmd, "logprob": -0.01 }]);
        let document = machine.ask(rules, &["--json", "--shell", "bash", "--candidates", "1", request]).json();
        assert_eq!(document["cmd"], cmd, "{document:#}");
        let findings = document["findings"].as_array().unwrap().clone();
        let ids: Vec<String> = findings
            .iter()
            .filter(|f| ["fails", "prints-nothing"].iter().any(|id| f["id"] == *id))
            .map(|f| f["id"].as_str().unwrap().to_owned())
            .collect();
        assert!(ids.is_empty() || document["confidence"].as_f64().unwrap() < 0.5, "{document:#}");
        ids
    };
    (0..tries).map(|_| ask()).find(|ids| !ids.is_empty()).unwrap_or_default()
}

#[test]
fn an_error_or_empty_output_is_a_finding_against_a_confident_answer() {
    if !caro::exec::support().writes || !can_rehearse() {
        return;
    }
    for (request, cmd, id) in [
        ("errors in the logs", "grep ERROR *.log", "fails"),
        ("sort what the logs say", "cat *.log | sort", "fails"),
        // it prints a number, but an earlier stage of the pipeline fails
        ("lines of the logs", "cat *.log | wc -l", "fails"),
        ("show the end of the logs", "cat < logs | tail -n 3", "fails"),
        ("count lines with 9 in f", "awk '/9/ {n++} END {if (n) print n}' f", "prints-nothing"),
    ] {
        assert_eq!(rehearsal_findings(request, cmd, 4), [id], "{cmd}");
    }
    for (request, cmd) in [
        ("lines with 9 in f", "grep 9 f"),
        ("lines from the sixth of f on", "tail -n +6 f"),
        ("line 200 of f", "sed -n '200p' f"),
        ("show what is in blank", "cat blank | head -n 3"),
        ("names behind the first twenty", "ls | tail -n +21"),
        ("count lines with 9 in f", "grep -c 9 f"),
        ("lines of missing.txt", "wc -l missing.txt"),
    ] {
        assert_eq!(rehearsal_findings(request, cmd, 1), Vec::<String>::new(), "{cmd}");
    }
}
