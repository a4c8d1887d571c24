//! Tests that deleted data is in no file any more, neither in deleted rows nor in word indexes.

use crate::artifacts::{files, holds};
use crate::machine::{Machine, feed};
use serde_json::json;

/// A word that occurs nowhere else and shares no prefix with other words, so that an index stores it whole.
const WORD: &str = "qwzkoba7";

/// The files below the home folder that contain the word.
fn files_with_word(machine: &Machine) -> Vec<String> {
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
    assert!(!files_with_word(&machine).is_empty());
    assert_eq!(machine.run(&["session", "rm", "s"]).code, Some(0));
    assert_eq!(files_with_word(&machine), [""; 0]);
    // likewise after `/clear` in the conversation
    talk("my dog is called Rex\n/clear\n");
    assert_eq!(files_with_word(&machine), [""; 0]);
}

/// The removal can be repeated later, by the same name.
#[test]
fn a_session_that_cannot_be_removed_completely_is_kept() {
    let machine = Machine::new();
    let reply = format!("Thought: x\nAction: answer {{\"text\": \"it is {WORD}, I know\"}}");
    let mut caro = machine.caro(&["chat", "--session", "s"]);
    caro.env("CARO_MODEL", machine.model(json!([{ "reply": reply }])));
    assert_eq!(feed(caro, b"my dog is called Rex\n").code, Some(0));
    let file = machine.path("home/.local/share/caro/conversations.db");
    let saved = std::fs::read(&file).unwrap();
    std::fs::write(&file, "no database".repeat(999)).unwrap();
    machine.run(&["session", "rm", "s"]).fails(2, &["conversations.db", "not a database", "caro memory repair"]);
    assert!(machine.run(&["session", "show", "s"]).out.contains(WORD));
    std::fs::write(&file, saved).unwrap();
    let ran = machine.run(&["session", "rm", "s"]);
    assert_eq!((ran.code, files_with_word(&machine)), (Some(0), Vec::new()), "{ran:#?}");
}

#[test]
fn a_deleted_note_is_in_no_file() {
    let machine = Machine::new();
    machine.run(&["memory", "remember", "cake needs sugar"]);
    let id = machine.run(&["memory", "remember", "the host is", WORD]).out;
    assert!(!files_with_word(&machine).is_empty());
    assert_eq!(machine.run(&["memory", "forget", id.trim()]).code, Some(0));
    assert_eq!(files_with_word(&machine), [""; 0]);
    assert_eq!(machine.run(&["memory", "query", "sugar"]).code, Some(0), "the other one is still found");
}

#[test]
fn removed_documents_are_in_no_file() {
    let machine = Machine::new();
    std::fs::create_dir(machine.path("work/docs")).unwrap();
    machine.write("work/docs/cake.txt", "Flour, sugar and eggs make a cake.\n");
    machine.write("work/docs/host.txt", format!("The host is {WORD}.\n"));
    for rm in [&["knowledge", "rm", "docs/host.txt"][..], &["knowledge", "rm", "--all"]] {
        assert_eq!(machine.run(&["knowledge", "ingest", "docs"]).code, Some(0));
        assert!(!files_with_word(&machine).is_empty());
        assert_eq!(machine.run(rm).code, Some(0));
        assert_eq!(files_with_word(&machine), [""; 0], "{rm:?}");
    }
}
