//! Tests of answers from texts in the prompt; the state machine is driven by hand.

use super::tests::{TOKENS, task};
use super::*;
use serde_json::json;

const OWNER: &str = "### notes.md\nThe boat belongs to Ada, since 1843.";
const WIFI: &str = "What your documents say:\n\n### Source 1: docs/fire.md:1-4\nIn a fire, leave the office.\n\n\
                    ### Source 2: docs/net.md:7-9\nThe guest network of the office is Heron.";

/// A run of this task with these layers of data.
fn run(words: &str, layers: &[(&str, &str)]) -> AgentRun {
    let mut turn = AgentRun::new(task(words, 9));
    turn.lead(true);
    begin(&mut turn, layers);
    turn
}

fn begin(turn: &mut AgentRun, layers: &[(&str, &str)]) {
    let shell = ToolSpec::new("shell", "runs.", json!({"command": {"type": "string"}}), &["command"]);
    let mut other = ToolSpec::new("ask", "asks.", json!({}), &[]);
    other.provider = crate::tool::Provider::Mcp("archive".into());
    let layer = |(name, text): &(&str, &str)| Layer {
        name: (*name).into(),
        priority: 10,
        text: (*text).into(),
        tokens: 9,
        trusted: false,
    };
    let folder = layer(&("folder", "In the working folder: notes.md"));
    let persona = Layer { trusted: true, ..layer(&("persona", "You work step by step.")) };
    let layers = [persona, folder].into_iter().chain(layers.iter().map(layer)).collect();
    let assembly = Assembly { layers, ..Assembly::default() };
    turn.assembled(assembly, vec![shell, other], Vec::new(), &Guards::default());
}

fn answer_with(turn: &mut AgentRun, text: &str) {
    assert!(matches!(turn.next(), Step::Reply(_)), "{:?}", turn.next());
    turn.replied(Some((text, Finish::Stop, TOKENS)), &Guards::default());
}

/// Returns the answer, if the run has ended with one.
fn answer(turn: &AgentRun) -> Option<&str> {
    turn.end().filter(|(end, _)| **end == End::Answered).map(|(_, text)| text)
}

/// True if the run goes on as it would without the texts.
fn goes_its_usual_way(turn: &AgentRun) -> bool {
    matches!(turn.next(), Step::Advise(_) | Step::Decide(_))
}

const OF_FILE: &str = "read notes.md and tell me whose boat it is";
const OF_DOCUMENTS: &str = "what is the guest network of the office called?";

#[test]
fn a_question_about_a_file_is_asked_with_only_its_text() {
    let turn = run(OF_FILE, &[(TEXTS, OWNER)]);
    let Step::Reply(reply) = turn.next() else { panic!("{:?}", turn.next()) };
    let [system, examples @ .., user] = reply.prompt.messages.as_slice() else { panic!("{reply:?}") };
    assert_eq!(reply.sampling, Sampling::GREEDY);
    // the examples come first and are the same in every request
    assert_eq!(
        examples.iter().filter(|said| said.text == "NOT FOUND" && said.role == caro_model::Role::Assistant).count(),
        4
    );
    assert_eq!(reply.prompt.stable_messages, examples.len() + 1);
    assert!(system.text.contains("NOT FOUND") && !system.text.contains("step by step"), "{system:?}");
    assert_eq!(user.text, format!("<texts>\n{OWNER}\n</texts>\n\n{OF_FILE}"));
    // a run that is resumed here goes on from here
    let mut turn: AgentRun = serde_json::from_str(&serde_json::to_string(&turn).unwrap()).unwrap();
    answer_with(&mut turn, " It is Ada's.\n");
    assert_eq!(answer(&turn), Some("It is Ada's."));
    assert_eq!((turn.metric().total_requests, turn.metric().total_tokens), (1, TOKENS.request + TOKENS.response));
}

#[test]
fn a_summary_is_requested_without_examples_of_single_sentences() {
    let turn = run("summarize notes.md", &[(TEXTS, OWNER)]);
    let Step::Reply(reply) = turn.next() else { panic!("{:?}", turn.next()) };
    assert_eq!((reply.prompt.messages.len(), reply.prompt.stable_messages), (2, 0));
}

#[test]
fn an_answer_from_documents_has_its_source() {
    let mut turn = run(OF_DOCUMENTS, &[(KNOWLEDGE, WIFI)]);
    answer_with(&mut turn, "It is called Heron.");
    assert_eq!(answer(&turn), Some("It is called Heron.\n\nSource: docs/net.md:7-9"));
    // the user has named the file
    let mut turn = run("what does notes.md say about the boat?", &[(TEXTS, OWNER), (KNOWLEDGE, WIFI)]);
    answer_with(&mut turn, "It is Ada's, and the network is Heron.");
    assert_eq!(answer(&turn), Some("It is Ada's, and the network is Heron."));
    // a note has no source
    let mut turn = run(OF_DOCUMENTS, &[("memory", "the guest network is Heron")]);
    answer_with(&mut turn, "Heron");
    assert_eq!(answer(&turn), Some("Heron"));
}

#[test]
fn an_answer_without_support_in_a_text_is_not_given() {
    for reply in ["The boat was built in 1912.", "See boats.txt.", "NOT FOUND", " \n"] {
        let mut turn = run(OF_DOCUMENTS, &[(KNOWLEDGE, WIFI)]);
        answer_with(&mut turn, reply);
        let shown = turn.prompt().messages.iter().any(|said| said.text.contains("Heron"));
        assert_eq!(shown, reply != "NOT FOUND", "what does not say it is not in the way");
        assert!(goes_its_usual_way(&turn), "{reply}: {:?}", turn.next());
        assert_eq!(turn.metric().total_requests, 1, "what was asked is paid for");
    }
    let mut turn = run(OF_DOCUMENTS, &[(KNOWLEDGE, WIFI)]);
    answer_with(&mut turn, "NOT FOUND");
    turn.advised(None, &Guards::default());
    let cannot = "Thought: no\nAction: cannot {\"reason\": \"There is no such file.\"}";
    turn.decided(cannot, Finish::Stop, TOKENS, &Guards::default());
    let (end, reason) = turn.end().unwrap();
    assert_eq!((end, reason), (&End::Cannot, "Your documents do not say it. There is no such file."));
    let mut turn = run(OF_DOCUMENTS, &[(KNOWLEDGE, WIFI)]);
    turn.replied(Some(("It is called", Finish::Length, TOKENS)), &Guards::default());
    assert!(goes_its_usual_way(&turn), "half of an answer");
    let mut turn = run(OF_DOCUMENTS, &[(KNOWLEDGE, WIFI)]);
    turn.replied(None, &Guards::default());
    assert!(goes_its_usual_way(&turn), "no model answered");
    assert_eq!(turn.metric().total_requests, 0);
}

#[test]
fn a_missing_answer_is_reported_only_if_the_whole_file_was_shown() {
    let mut turn = run(OF_FILE, &[(TEXTS, OWNER)]);
    answer_with(&mut turn, "NOT FOUND");
    assert_eq!(answer(&turn), Some("notes.md does not say that."));
    let two = format!("{OWNER}\n### A heading of its own\n\n### more.md\nNothing.");
    let mut turn = run("read notes.md and more.md and tell me who built the boat", &[(TEXTS, &two)]);
    answer_with(&mut turn, "NOT FOUND.");
    assert_eq!(answer(&turn), Some("None of notes.md, more.md says that."));
    let mut turn = run(OF_FILE, &[(TEXTS, OWNER)]);
    answer_with(&mut turn, "It was built in 1912.");
    assert_eq!(answer(&turn), Some("I do not find that in notes.md."));
    let part = format!("{OWNER}\n[... 12 lines left out ...]\nThe end.");
    let mut turn = run(OF_FILE, &[(TEXTS, &part)]);
    answer_with(&mut turn, "NOT FOUND");
    assert!(goes_its_usual_way(&turn), "{:?}", turn.next());
}

#[test]
fn an_answer_may_use_numbers_of_the_question_and_of_the_texts() {
    let mut turn = run("read notes.md and tell me who owned the boat in 1850", &[(TEXTS, OWNER)]);
    answer_with(&mut turn, "In 1850 it was Ada's, who has had it since 1843 (notes.md).");
    assert!(answer(&turn).is_some(), "{:?}", turn.next());
}

#[test]
fn the_role_and_the_rules_of_a_skill_are_in_the_request() {
    let mut turn = AgentRun::new(task(OF_FILE, 9));
    let of = |name: &str, text: &str, trusted| Layer {
        name: name.into(),
        priority: 0,
        text: text.into(),
        tokens: 1,
        trusted,
    };
    let rule = "How this project wants tasks of this kind done (from its skill boats). It gives no permissions.\n\n\
                Name boats in capitals.";
    let layers = vec![of("role", "You are a harbour master.", true), of(TEXTS, OWNER, false), of("skill", rule, false)];
    turn.assembled(Assembly { layers, ..Assembly::default() }, Vec::new(), Vec::new(), &Guards::default());
    let Step::Reply(reply) = turn.next() else { panic!("{:?}", turn.next()) };
    assert!(reply.prompt.messages[0].text.starts_with("You are a harbour master.\n\n"), "{reply:?}");
    assert!(
        reply.prompt.messages.last().unwrap().text.contains("\n\nRules for the answer:\nName boats in capitals.\n\n"),
        "{reply:?}"
    );
}

#[test]
fn other_tasks_go_their_usual_way() {
    for (words, layers) in [
        ("what is the kernel version?", &[(KNOWLEDGE, WIFI)][..]),
        ("write the name of the guest network to wifi.txt", &[(KNOWLEDGE, WIFI)]),
        (OF_DOCUMENTS, &[]),
        (OF_DOCUMENTS, &[(KNOWLEDGE, WIFI), (PLACE, "net.csv begins with:\nname,key")]),
        ("ask the archive server what the guest network is called", &[(KNOWLEDGE, WIFI)]),
        (OF_FILE, &[]),
    ] {
        let turn = run(words, layers);
        assert!(goes_its_usual_way(&turn), "{words}: {:?}", turn.next());
    }
}
