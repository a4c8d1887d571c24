//! Tests `caro agent --shards`, which reads a tree in parts, on a scripted model.

use crate::agent::{events, kinds};
use crate::machine::Machine;
use serde_json::json;

const QUESTION: &str = "which files deal with configuration, and how are they layered?";

fn tree() -> Machine {
    let machine = Machine::new();
    for n in 0..4 {
        std::fs::create_dir_all(machine.path(&format!("work/tree/m{n}"))).unwrap();
    }
    for n in 0..300 {
        let text = format!("//! The part of number {n}.\n\npub fn f{n}() {{\n{}}}\n", "    work();\n".repeat(60));
        machine.write(format!("work/tree/m{}/f{n}.rs", n % 4), text);
    }
    machine.write("work/tree/config.rs", "//! Settings in layers.\npub struct Config;\n");
    machine.write("work/tree/.gitignore", "*.log\n");
    machine.write("work/tree/left.log", "configuration\n");
    machine
}

#[test]
fn c18_a_tree_is_read_in_shards_and_its_answer_names_files_that_exist() {
    let machine = tree();
    let rules = json!([
        {"regex": "(?s)<found>.*config.rs", "reply":
            "{\"answer\": \"config.rs holds settings in layers. made/up.rs merges them.\", \"files\": [\"config.rs\"]}"},
        {"match": "## config.rs", "reply": "{\"answer\": \"settings in layers\", \"files\": [\"config.rs\"]}"},
        {"reply": "{\"answer\": \"nothing\", \"files\": []}"}
    ]);
    let ran = machine.ask(rules.clone(), &["agent", QUESTION, "--shards", "tree"]);
    assert_eq!(
        (ran.code, ran.out.as_str()),
        (Some(0), "config.rs holds settings in layers.\n- config.rs\n"),
        "{ran:#?}"
    );
    assert!(ran.err.contains("part 1 (") && ran.err.contains("1 sentence"), "{ran:#?}");
    assert!(ran.err.contains(": settings in layers [config.rs]"), "the files of a part are printed: {ran:#?}");
    let recorded = events(&machine, "");
    let count = |kind: &str| kinds(&recorded).iter().filter(|k| **k == kind).count();
    assert_eq!((count("context_assembly"), count("model_call"), count("agent_end")), (1, 9, 1));
    let document = machine.ask(rules, &["agent", QUESTION, "--shards", "tree", "--json"]).json();
    assert_eq!((document["shards"].as_array().unwrap().len(), &document["files"]), (8, &json!(["config.rs"])));
    assert!(!document.to_string().contains("left.log"), "ignored files are left out");
}

#[test]
fn c18_an_unreadable_folder_is_an_error_and_asks_no_model() {
    let machine = Machine::new();
    std::fs::create_dir_all(machine.path("work/empty")).unwrap();
    machine.write("work/empty/a.bin", [0u8, 1]);
    let run = |args: &[&str]| machine.ask(json!([]), &[&["agent", QUESTION, "--shards"], args].concat());
    run(&["empty"]).fails(2, &["no text in it"]);
    run(&["nowhere"]).fails(2, &["nowhere"]);
    for other in ["--plan-only", "--forge", "--explain"] {
        let ran = run(&["empty", other]);
        assert!(ran.code == Some(2) && ran.err.contains(other), "{ran:#?}");
    }
}
