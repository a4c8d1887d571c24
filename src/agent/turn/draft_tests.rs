//! Tests of texts that a skill has rules for; the state machine is driven by hand.

use super::tests::{TOKENS, task};
use super::*;
use crate::evidence::{Changes, Entry};
use caro_base::id;
use serde_json::json;

const RULE: &str = "Every entry begins with `CHG:`.";

/// A run of this task, with an active skill if `rule` is not empty.
fn run(words: &str, rule: &str) -> AgentRun {
    let mut turn = AgentRun::new(task(words, 9));
    let text = || json!({"type": "string"});
    let shell = ToolSpec::new("shell", "runs.", json!({"command": text()}), &["command"]);
    let write = ToolSpec::new("write", "writes.", json!({"path": text(), "content": text()}), &["path", "content"]);
    let layer = |name: &str, text: &str| Layer {
        name: name.into(),
        priority: 10,
        text: text.into(),
        tokens: 9,
        trusted: false,
    };
    let mut assembly = Assembly { layers: vec![layer("folder", "In the working folder: x")], ..Assembly::default() };
    assembly.layers.push(layer("memory", "the page is at /login"));
    if !rule.is_empty() {
        let heading =
            "How this project wants tasks of this kind done (from its skill changelog). It gives no permissions.";
        assembly.layers.push(layer("skill", &format!("{heading}\n\n{rule}")));
    }
    turn.lead(true);
    turn.assembled(assembly, vec![shell, write], Vec::new(), &Guards::default());
    turn
}

/// Answers the request for a text; returns the call that writes it.
fn draft(turn: &mut AgentRun, text: &str) -> Call {
    assert!(matches!(turn.next(), Step::Draft(_)), "{:?}", turn.next());
    turn.drafted(Some((text, Finish::Stop, TOKENS)), &Guards::default());
    let Step::Act(calls) = turn.next() else { panic!("{:?}", turn.next()) };
    calls[0].clone()
}

const TASK: &str = "write a changelog entry about the login page to entry.txt";

#[test]
fn a_text_with_rules_is_requested_with_only_these() {
    let mut turn = run(TASK, RULE);
    let Step::Draft(request) = turn.next() else { panic!("{:?}", turn.next()) };
    assert_eq!((request.file.as_str(), request.sampling), ("entry.txt", Sampling::GREEDY));
    let [system, user] = request.prompt.messages.as_slice() else { panic!("{request:?}") };
    assert!(!system.text.contains("tool"), "{request:?}");
    assert!(!user.text.contains("skill") && !user.text.contains("folder"), "{request:?}");
    assert_eq!(
        user.text,
        format!(
            "<memory>\nthe page is at /login\n</memory>\n\nwrite a changelog entry about the login page\n\nRules:\n{RULE}"
        )
    );
    let call = draft(&mut turn, "```text\nCHG: a login page\n```\n");
    assert_eq!(call.tool, "write");
    assert_eq!(call.args, *json!({"path": "entry.txt", "content": "CHG: a login page\n"}).as_object().unwrap());
    assert_eq!((turn.metric().total_requests, turn.metric().total_tokens), (1, TOKENS.request + TOKENS.response));
    let effects = Effects { writes: vec!["/w/entry.txt".into()], ..Effects::default() };
    let settled = ToolResult {
        call: Call { effects, ..call },
        outcome: Outcome::Succeeded,
        text: "wrote".into(),
        hash: id::hash("wrote"),
        ms: 1,
    };
    let entry = Entry { path: "entry.txt".into(), folder: false, text: None };
    let changes = Some(Changes { created: vec![entry], ..Changes::default() });
    turn.acted(&[settled], &StepObservation { changes, ..StepObservation::default() }, &Guards::default());
    assert_eq!(turn.end().unwrap().0, &End::Answered);
}

#[test]
fn earlier_results_are_in_the_request() {
    let mut turn = run("count the users, and write a report to report.md", RULE);
    let args = json!({"command": "wc -l < users"}).as_object().unwrap().clone();
    let suggestion = crate::suggest::Suggestion { tool: "shell".into(), args, confidence: 0.9, doubt: false };
    turn.advised(Some(suggestion), &Guards::default());
    let Step::Act(calls) = turn.next() else { panic!("{:?}", turn.next()) };
    let settled = ToolResult {
        call: calls[0].clone(),
        outcome: Outcome::Succeeded,
        text: "4\n".into(),
        hash: id::hash("4\n"),
        ms: 1,
    };
    turn.acted(&[settled], &StepObservation::default(), &Guards::default());
    let Step::Draft(request) = turn.next() else { panic!("{:?}", turn.next()) };
    assert!(
        request.prompt.messages[1]
            .text
            .contains("<observations>\ncount the users:\n4\n</observations>\n\nwrite a report\n")
    );
}

#[test]
fn without_a_text_the_model_decides() {
    let mut turn = run(TASK, RULE);
    turn.drafted(None, &Guards::default());
    assert!(matches!(turn.next(), Step::Decide(_)), "{:?}", turn.next());
    assert_eq!(turn.metric().total_requests, 0);
    for reply in [(" \n", Finish::Stop, TOKENS), ("CHG: half of", Finish::Length, TOKENS)] {
        let mut turn = run(TASK, RULE);
        turn.drafted(Some(reply), &Guards::default());
        let Step::Draft(again) = turn.next() else { panic!("{:?}", turn.next()) };
        assert_ne!(again.sampling, Sampling::GREEDY, "the same words would come of it");
        let mut good = turn.clone();
        draft(&mut good, "CHG: a page");
        turn.drafted(Some(reply), &Guards::default());
        let Step::Decide(decide) = turn.next() else { panic!("{:?}", turn.next()) };
        assert_eq!(decide.sampling, Sampling::GREEDY);
        assert_eq!(turn.metric().total_requests, 2, "what was asked is paid for");
    }
}

#[test]
fn endless_repetition_is_detected_and_a_refrain_is_not() {
    let stanza = "The sea is a mystery to be explored,\nA wonder to be discovered.\nIt is a place of beauty,\n\n";
    let other = "The tide goes out and leaves the shells behind.\nWho finds them puts them to the ear.\n\n";
    assert!(is_repetitive(&format!("SEA\n\n{}", stanza.repeat(3))));
    assert!(
        is_repetitive(&"word ".repeat(60))
            && is_repetitive(&format!("{}{}", other, format!("{stanza}{other}").repeat(3)))
    );
    assert!(!is_repetitive(&stanza.repeat(2)));
    assert!(!is_repetitive(&format!("{stanza}{other}{stanza}{stanza}")));
    assert!(!is_repetitive(&format!("{stanza}{stanza}{stanza}The end.")));
    assert!(!is_repetitive(&"-".repeat(200)) && !is_repetitive("") && !is_repetitive("short"));
}

#[test]
fn without_rules_and_for_other_parts_nothing_is_drafted() {
    for (words, rule) in [
        (TASK, ""),
        ("delete the file entry.txt", RULE),
        ("write a script clean.sh that deletes all .tmp files", RULE),
        ("fix the typo in entry.txt", RULE),
        ("explain the changelog", RULE),
    ] {
        let turn = run(words, rule);
        assert!(!matches!(turn.next(), Step::Draft(_)), "{words}");
    }
}

#[test]
fn a_part_about_a_file_to_be_read_is_not_drafted() {
    let AgentRun { layers, tools, .. } = run(TASK, RULE);
    let first_step = |shown: &[&str]| {
        let mut turn = AgentRun::new(task("write a better text of notes.md to better.md", 9));
        turn.lead(true);
        let of = |text: &&str| Layer { name: PLACE.into(), text: (*text).into(), ..layers[0].clone() };
        let layers = layers.iter().cloned().chain(shown.iter().map(of)).collect();
        let assembly = Assembly { layers, ..Assembly::default() };
        turn.assembled(assembly, tools.clone(), Vec::new(), &Guards::default());
        turn.next()
    };
    assert!(matches!(first_step(&[]), Step::Draft(_)));
    assert!(!matches!(first_step(&["notes.md begins with:\n# Notes"]), Step::Draft(_)));
}

#[test]
fn only_a_fence_around_the_whole_text_is_removed() {
    let mut turn = run(TASK, RULE);
    let two = "```sh\na\n```\nand\n```sh\nb\n```";
    assert_eq!(draft(&mut turn, two).args["content"], format!("{two}\n"));
}
