//! Tests `caro doctor`: its findings on prepared machines, its remedies, and that it changes nothing.

use crate::artifacts::files;
use crate::machine::{Machine, Ran};
use serde_json::{Value, json};

/// The JSON report of `caro doctor` with a scripted model.
fn doctor_report(machine: &Machine, args: &[&str]) -> Value {
    let model = machine.model(json!([{ "match": "broken", "error": "the script says so" }, { "reply": "ls -a" }]));
    let ran = Ran::of(machine.caro(&[&["doctor", "--json"], args].concat()).env("CARO_MODEL", model).output().unwrap());
    let document = ran.json();
    assert_eq!(ran.code, Some(if document["ok"] == true { 0 } else { 1 }), "{ran:#?}");
    document
}

fn of<'d>(document: &'d Value, check: &str) -> Vec<&'d Value> {
    document["findings"].as_array().unwrap().iter().filter(|finding| finding["check"] == check).collect()
}

#[test]
fn a_new_machine_has_no_failure_and_stays_unchanged() {
    let machine = Machine::new();
    let document = doctor_report(&machine, &[]);
    assert_eq!(document["ok"], true, "{document:#}");
    for check in
        ["model", "sandbox", "rehearsal", "shells", "path", "resident", "folders", "room", "settings", "stores"]
    {
        assert!(!of(&document, check).is_empty(), "no {check} in {document:#}");
    }
    for finding in document["findings"].as_array().unwrap() {
        assert!(finding["state"] == "ok" || finding["remedy"].is_string(), "{finding}");
    }
    assert!(document.get("test").is_none());
    assert!(files(&machine.path("home")).is_empty());
}

#[test]
fn without_json_each_check_has_a_line_with_its_remedy_below() {
    let machine = Machine::new();
    // the default model is not on this machine
    let ran = machine.run(&["doctor"]);
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    let lines: Vec<&str> = ran.out.lines().collect();
    let at = lines.iter().position(|line| line.starts_with("warn  model ")).unwrap();
    assert!(lines[at].contains("is not here") && lines[at + 1].trim().starts_with("`caro model pull "), "{ran:#?}");
    assert!(ran.err.contains(" checks: "), "{ran:#?}");
    assert_eq!(machine.run(&["doctor", "-q"]).err, "");
}

#[test]
fn a_failed_check_has_a_remedy_and_does_not_stop_the_others() {
    let machine = Machine::new();
    machine.write("config.toml", "timeout = 5\nglow = true\n");
    let data = machine.path("home/.local/share/caro");
    std::fs::create_dir_all(&data).unwrap();
    std::fs::write(data.join("memory.db"), "no database".repeat(500)).unwrap();
    let document = doctor_report(&machine, &[]);
    assert_eq!(document["ok"], false);
    let settings = of(&document, "settings")[0];
    assert!(settings["state"] == "fail" && settings["fact"].as_str().unwrap().contains("config.toml:2"), "{settings}");
    let stores = of(&document, "stores")[0];
    assert_eq!(stores["state"], "fail");
    assert!(stores["remedy"].as_str().unwrap().contains("caro memory repair"), "{stores}");
    // the variables hold all the same
    let model = of(&document, "model")[0]["fact"].as_str().unwrap();
    assert!(!model.contains("is not here"), "{model}");
    // follow the remedies
    machine.write("config.toml", "timeout = 5\n");
    assert_eq!(machine.run(&["memory", "repair"]).code, Some(0));
    let repaired = doctor_report(&machine, &[]);
    assert_eq!(repaired["ok"], true, "{repaired:#}");
    assert!(of(&repaired, "stores").iter().any(|one| one["fact"].as_str().unwrap().contains("memory.db.damaged")));
}

#[cfg(unix)]
#[test]
fn folders_that_others_may_write_fail() {
    use std::os::unix::fs::PermissionsExt;
    let machine = Machine::new();
    let data = machine.path("home/.local/share/caro");
    std::fs::create_dir_all(&data).unwrap();
    std::fs::set_permissions(&data, std::fs::Permissions::from_mode(0o777)).unwrap();
    let document = doctor_report(&machine, &[]);
    let remedy = of(&document, "folders")[0]["remedy"].as_str().unwrap().to_owned();
    assert!(document["ok"] == false && remedy.starts_with("`chmod go-w "), "{document:#}");
    let line = remedy.trim_matches('`');
    assert!(std::process::Command::new("sh").args(["-c", line]).status().unwrap().success());
    assert_eq!(doctor_report(&machine, &[])["ok"], true);
}

#[test]
fn a_test_asks_the_model_once_and_reports_the_times() {
    let machine = Machine::new();
    let document = doctor_report(&machine, &["--test"]);
    assert_eq!(document["test"]["command"], "ls -a", "{document:#}");
    assert!(document["test"]["answer_s"].as_f64().unwrap() > 0.0);
    assert!(of(&document, "test")[0]["fact"].as_str().unwrap().contains("answered"), "{document:#}");
    let failing = machine.model(json!([{ "error": "the script says so" }]));
    let ran = Ran::of(machine.caro(&["doctor", "--test"]).env("CARO_MODEL", failing).output().unwrap());
    assert!(ran.code == Some(1) && ran.out.contains("the script says so"), "{ran:#?}");
    // no model is downloaded for a test
    let ran = machine.run(&["doctor", "--test"]);
    assert!(ran.code == Some(1) && ran.out.contains("is not fetched for a test"), "{ran:#?}");
}

#[test]
fn doctor_with_further_words_is_a_request() {
    let machine = Machine::new();
    let ran = machine.ask(json!([{ "reply": "ls -a" }]), &["doctor", "my", "images"]);
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), "ls -a\n"), "{ran:#?}");
}
