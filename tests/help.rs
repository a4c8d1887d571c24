//! Tests `caro help`: topics from the project's own documents, and manual pages.

use crate::machine::{Machine, have};
use serde_json::json;

#[test]
fn a_topic_is_plain_text_of_80_columns() {
    let machine = Machine::new();
    for topic in ["safety", "privacy", "exit-codes", "settings", "targets", "prompt", "models"] {
        let ran = machine.run(&["help", topic]);
        assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""), "{ran:#?}");
        assert!(ran.out.starts_with(&format!("{}: ", topic.to_uppercase())) && ran.out.lines().count() > 8, "{ran:#?}");
        for line in ran.out.lines() {
            assert!(!line.contains("**") && !line.contains("](") && !line.contains('`'), "{line}");
            assert!(line.chars().count() <= 80 || !line.trim().contains(' ') || line.starts_with("    "), "{line}");
        }
    }
    assert!(machine.run(&["help", "exit-codes"]).out.contains("124"));
    assert!(machine.run(&["help", "settings"]).out.contains("CARO_TIMEOUT"));
}

#[test]
fn help_for_a_verb_has_its_flags_and_its_topic() {
    let machine = Machine::new();
    let undo = machine.run(&["help", "undo"]).out;
    assert!(undo.contains("Usage: caro undo") && undo.contains("--list") && undo.contains("byte for byte"), "{undo}");
    let check = machine.run(&["help", "check"]).out;
    assert!(check.contains("Usage: caro check") && !check.contains("CHECK:"), "{check}");
    assert!(machine.run(&["help"]).out.contains("Verbs:"));
}

#[test]
fn an_unknown_topic_lists_all_and_several_words_are_a_request() {
    let machine = Machine::new();
    machine
        .run(&["help", "privcy"])
        .fails(2, &["no topic `privcy`", "did you mean `privacy`?", "exit-codes", "caro -- help privcy"]);
    let list = machine.run(&["help", "topics"]);
    assert!(list.code == Some(0) && list.out.contains("safety  ") && list.out.contains("exit-codes  "), "{list:#?}");
    let rules = || json!([{ "match": "find big files", "reply": "ls -S" }, { "reply": "ls -a" }]);
    for words in [
        &["help", "me", "find", "big", "files"][..],
        &["help me find big files"],
        &["--json", "help", "me", "find big files"],
    ] {
        let ran = machine.ask(rules(), words);
        assert!(ran.code == Some(0) && ran.out.contains("ls -S"), "{words:?}: {ran:#?}");
    }
    assert_eq!(machine.ask(rules(), &["--", "help", "tar"]).out, "ls -a\n");
}

#[test]
fn manual_pages_are_written_for_the_program_and_each_verb() {
    let machine = Machine::new();
    let page = machine.run(&["completions", "man"]);
    assert!(
        page.code == Some(0) && page.out.contains(".SH NAME") && page.out.contains(".SH \"EXIT STATUS\""),
        "{}",
        page.err
    );
    let folder = machine.path("man/man1");
    let ran = machine.run(&["completions", "man", folder.to_str().unwrap()]);
    assert!(ran.code == Some(0) && ran.err.contains("pages are in"), "{ran:#?}");
    for name in ["caro.1", "caro-undo.1", "caro-config-set.1", "caro-self-uninstall.1"] {
        assert!(folder.join(name).is_file(), "{name}");
    }
    machine.run(&["completions", "bash", "x"]).fails(2, &["a script goes to stdout"]);
    if !have("man") {
        return println!("skipped: there is no man here");
    }
    let mut man = std::process::Command::new("man");
    man.args(["--warnings=w", "-l"]).arg(folder.join("caro-undo.1")).env("MANWIDTH", "80").env("LC_ALL", "C.UTF-8");
    let shown = crate::machine::Ran::of(man.output().unwrap());
    if shown.code != Some(0) {
        return println!("skipped: this man shows no file by its name: {}", shown.err);
    }
    let words: Vec<&str> = shown.out.split_whitespace().collect();
    assert!(words.join(" ").contains("byte for byte") && shown.err.is_empty(), "{shown:#?}");
}
