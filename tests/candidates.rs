//! A doubtful answer is held against others, end to end on a scripted model, to which a command is the less likely the more
//! words it has: what is likeliest to be done wins, as a rehearsal shows it.

use crate::agent::events;
use crate::machine::{Machine, Ran, have};
use serde_json::{Value, json};

/// A first answer that fails, one that is as likely as any, and three that print the same in different words.
const REPLIES: [&str; 5] =
    ["find a.text | wc -l", "head -n 1 a.txt", "wc -l < a.txt", "cat a.txt | wc -l", "sed -n '$=' a.txt"];

fn answer(logprob: f64, flags: &[&str]) -> (Machine, Value) {
    let machine = Machine::new();
    machine.write("work/a.txt", "x\ny\nz\n");
    let rules = json!([{ "replies": REPLIES, "logprob": logprob }]);
    let ran = machine.ask(rules, &[&["--json", "--shell", "bash", "how many lines has it"], flags].concat());
    let document = ran.json();
    (machine, document)
}

fn can_rehearse() -> bool {
    let support = caro::exec::support();
    let can = have("bash") && support.writes && support.network;
    if !can {
        println!("skipped: nothing can be rehearsed here");
    }
    can
}

#[test]
fn what_candidates_do_together_wins_over_a_doubtful_first_answer() {
    if !can_rehearse() {
        return;
    }
    let (machine, document) = answer(-1.0, &[]);
    assert_eq!(document["cmd"], "wc -l < a.txt", "{document:#}");
    assert_eq!(document["candidates"], 5, "{document:#}");
    assert!(document["changes"].as_str().unwrap().contains("was `find a.text | wc -l`"), "{document:#}");
    assert!(document["timing"]["choice"].as_f64().unwrap() > 0.0);
    let left: Vec<_> = std::fs::read_dir(machine.path("work")).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(left, ["a.txt"], "a rehearsal leaves nothing");
}

#[test]
fn a_sure_answer_is_not_held_against_others() {
    let (_, document) = answer(-0.01, &[]);
    assert_eq!((&document["cmd"], &document["candidates"]), (&json!(REPLIES[0]), &json!(1)), "{document:#}");
}

#[test]
fn a_doubtful_answer_is_withdrawn_where_the_samples_refuse() {
    let no = "# not a shell task";
    for (replies, refused) in [(["curl x", no, no, no, "ls"], true), (["curl x", no, "ls", no, "ls"], false)] {
        let machine = Machine::new();
        let ran = machine.ask(json!([{ "replies": replies, "logprob": -1.0 }]), &["--json", "how far is the moon"]);
        assert_eq!(ran.json()["refusal"].is_string(), refused, "{ran:#?}");
        assert_eq!(ran.code, Some(i32::from(refused)));
    }
}

/// A part of a task, whose command was run and did not do it: nothing that does the same is run again.
#[test]
fn what_did_not_do_it_is_not_done_again() {
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
        let (_, document) = answer(-1.0, flags);
        assert_eq!((&document["cmd"], &document["candidates"]), (&json!(REPLIES[0]), &json!(1)), "{flags:?}");
    }
    // without a rehearsal nobody knows that three of them do the same
    let (_, document) = answer(-1.0, &["--rehearse", "off"]);
    assert_eq!((&document["cmd"], &document["candidates"]), (&json!(REPLIES[1]), &json!(5)), "{document:#}");
}

#[test]
fn what_writes_is_rehearsed_and_nothing_is_written() {
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
