//! What was forgotten is in no file any more, neither in a row that was deleted nor in an index of words.

use crate::artifacts::{files, holds};
use crate::machine::{Machine, feed};
use serde_json::json;

/// A word that nothing else has, and that shares no beginning with another one: an index keeps it whole.
const WORD: &str = "qwzkoba7";

/// The files of the person's own folders that have the word.
fn with_word(machine: &Machine) -> Vec<String> {
    let found = files(&machine.path("home")).into_iter().filter(|file| holds(file, WORD));
    found.map(|file| file.display().to_string()).collect()
}

#[test]
fn a_removed_session_is_in_no_file() {
    let machine = Machine::new();
    let reply = format!("Thought: x\nAction: answer {{\"text\": \"it is {WORD}, I know\"}}");
    let model = machine.model(json!([{ "reply": reply }]));
    let talk = |lines: &str| {
        let mut caro = machine.caro(&["chat", "--session", "s"]);
        caro.env("CARO_MODEL", &model);
        let ran = feed(caro, lines.as_bytes());
        assert_eq!(ran.code, Some(0), "{ran:#?}");
    };
    talk("my dog is called Rex\nand my cat?\n");
    assert!(!with_word(&machine).is_empty());
    assert_eq!(machine.run(&["session", "rm", "s"]).code, Some(0));
    assert_eq!(with_word(&machine), [""; 0]);
    // likewise what is forgotten in the conversation itself
    talk("my dog is called Rex\n/clear\n");
    assert_eq!(with_word(&machine), [""; 0]);
}

/// What cannot be removed now can be removed later, by the same name.
#[test]
fn a_session_that_could_not_be_removed_wholly_is_still_there() {
    let machine = Machine::new();
    let reply = format!("Thought: x\nAction: answer {{\"text\": \"it is {WORD}, I know\"}}");
    let mut caro = machine.caro(&["chat", "--session", "s"]);
    caro.env("CARO_MODEL", machine.model(json!([{ "reply": reply }])));
    assert_eq!(feed(caro, b"my dog is called Rex\n").code, Some(0));
    let file = machine.path("home/.local/share/caro/conversations.db");
    let said = std::fs::read(&file).unwrap();
    std::fs::write(&file, "no database".repeat(999)).unwrap();
    machine.run(&["session", "rm", "s"]).fails(2, &["conversations.db", "not a database", "caro memory repair"]);
    assert!(machine.run(&["session", "show", "s"]).out.contains(WORD));
    std::fs::write(&file, said).unwrap();
    let ran = machine.run(&["session", "rm", "s"]);
    assert_eq!((ran.code, with_word(&machine)), (Some(0), Vec::new()), "{ran:#?}");
}

#[test]
fn a_forgotten_note_is_in_no_file() {
    let machine = Machine::new();
    machine.run(&["memory", "remember", "cake needs sugar"]);
    let id = machine.run(&["memory", "remember", "the host is", WORD]).out;
    assert!(!with_word(&machine).is_empty());
    assert_eq!(machine.run(&["memory", "forget", id.trim()]).code, Some(0));
    assert_eq!(with_word(&machine), [""; 0]);
    assert_eq!(machine.run(&["memory", "query", "sugar"]).code, Some(0), "the other one is still found");
}

#[test]
fn forgotten_documents_are_in_no_file() {
    let machine = Machine::new();
    std::fs::create_dir(machine.path("work/docs")).unwrap();
    machine.write("work/docs/cake.txt", "Flour, sugar and eggs make a cake.\n");
    machine.write("work/docs/host.txt", format!("The host is {WORD}.\n"));
    for rm in [&["knowledge", "rm", "docs/host.txt"][..], &["knowledge", "rm", "--all"]] {
        assert_eq!(machine.run(&["knowledge", "ingest", "docs"]).code, Some(0));
        assert!(!with_word(&machine).is_empty());
        assert_eq!(machine.run(rm).code, Some(0));
        assert_eq!(with_word(&machine), [""; 0], "{rm:?}");
    }
}
