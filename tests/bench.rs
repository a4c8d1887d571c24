//! Tests `caro bench`: complete requests on a scripted model, and the engine on a real one.

use crate::machine::Machine;
use crate::support::model_or_skip;
use serde_json::{Value, json};

#[test]
fn the_loop_times_every_request_in_a_process_of_its_own() {
    let machine = Machine::new();
    machine.write("work/requests.txt", "list files\n\nshow the date\n");
    let rules = json!([{ "match": "date", "reply": "date", "delay_ms": 120 }, { "reply": "ls -a" }]);
    let ran = machine.ask(rules, &["bench", "loop", "--requests", "requests.txt", "--json"]);
    let document = ran.json();
    let samples = document["requests"].as_array().unwrap();
    let commands: Vec<&str> = samples.iter().map(|s| s["cmd"].as_str().unwrap()).collect();
    assert_eq!(commands, ["ls -a", "date"]);
    let wall = |i: usize| samples[i]["wall"].as_f64().unwrap();
    assert!(wall(1) >= 120.0, "the model's time is part of it: {ran:#?}");
    let stages = document["stages"].as_array().unwrap();
    let whole = stages.iter().find(|stage| stage["name"] == "whole").unwrap();
    assert_eq!(whole["max_ms"].as_f64().unwrap(), wall(0).max(wall(1)));
    assert_eq!(ran.code, Some(0), "{ran:#?}");
}

/// Options such as `-n` and `--debug` are passed on to each request.
#[test]
fn the_loop_passes_options_to_each_request() {
    let machine = Machine::new();
    machine.write("work/requests.txt", "list files\n");
    let args = ["bench", "loop", "--requests", "requests.txt", "--json", "--debug", "--timing", "-n", "2"];
    let ran = machine.ask(json!([{ "reply": "ls -a" }]), &args);
    assert_eq!(ran.json()["requests"][0]["cmd"], "ls -a", "{ran:#?}");
    assert!(ran.err.contains("--- prompt of iteration 1") && ran.err.contains("\ntotal "), "{ran:#?}");
    assert!(ran.err.contains("list files"), "{ran:#?}");
    // the limit of `-n` is that of a request
    let ran = machine.ask(json!([{ "reply": "ls -a" }]), &["bench", "loop", "-n", "9"]);
    assert_eq!(ran.code, Some(2), "{ran:#?}");
}

#[test]
fn a_slow_loop_has_exit_code_1() {
    let machine = Machine::new();
    machine.write("work/requests.txt", "slow\n");
    let ran =
        machine.ask(json!([{ "reply": "ls -a", "delay_ms": 2100 }]), &["bench", "loop", "--requests", "requests.txt"]);
    assert_eq!(ran.code, Some(1), "{ran:#?}");
    assert!(ran.out.contains("missed") && ran.out.contains("met"), "{ran:#?}");
}

#[test]
fn invalid_benchmarks_are_refused() {
    let machine = Machine::new();
    machine.ask(json!([{ "reply": "ls" }]), &["bench"]).fails(2, &["does not compute on this machine"]);
    machine.run(&["bench", "loop", "--requests", "none.txt"]).fails(2, &["none.txt"]);
    let ran = machine.run(&["bench", "--kernels", "abacus"]);
    assert!(ran.code == Some(2) && ran.err.contains("abacus") && ran.err.contains("avx2"), "{ran:#?}");
    for (flag, value) in [("--adapter", "auto"), ("--device", "cpu")] {
        machine.run(&["bench", "--engine", "both", flag, value]).fails(2, &[flag, "both engines"]);
    }
    let ran = machine.ask(json!([{ "error": "no weights" }]), &["bench", "loop"]);
    ran.fails(2, &["no weights"]);
}

#[test]
#[ignore = "a minute and more: benches/full.sh runs it"]
fn the_engine_is_measured_on_the_real_model() {
    let Some(mut caro) = model_or_skip("bench") else { return };
    let output = caro.args(["--runs", "1", "--quick", "--json"]).output().unwrap();
    check_bounds(&serde_json::from_slice(&output.stdout).unwrap());
}

#[test]
#[ignore = "minutes: benches/full.sh runs it"]
fn drafts_and_a_busy_core_are_measured_on_the_real_model() {
    let Some(mut caro) = model_or_skip("bench") else { return };
    let output = caro.args(["--runs", "1", "--json"]).output().unwrap();
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    check_bounds(&document);
    let rate = |of: &Value| of.as_f64().unwrap();
    let effective = &document["effective"];
    let count = |of: &str| effective[of].as_u64().unwrap();
    assert!(count("accepted") <= count("drafted") && count("drafted") < 7 * count("tokens"), "{document}");
    assert!(rate(&effective["decode_tokens_per_s"]) > 0.5, "{document}");
    assert!(rate(&document["one_core_busy"]["decode_tokens_per_s"]) > 0.2, "{document}");
}

/// Checks the bounds of every measurement of the default model.
fn check_bounds(document: &Value) {
    let rate = |of: &Value| of.as_f64().unwrap();
    assert!(rate(&document["decode_tokens_per_s"]) > 0.5, "{document}");
    let prefill = &document["prefill_tokens_per_s"];
    assert!(rate(&prefill["512"]) > rate(&document["decode_tokens_per_s"]), "prefill beats decode: {document}");
    // a mapped model file counts as memory
    let peak = document["peak_memory_bytes"].as_u64();
    assert!(peak.is_none_or(|b| b > 500 << 20 && b <= 1_250_000_000), "{document}");
}

#[test]
fn the_recommended_model_has_the_best_score_of_those_that_fit() {
    let machine = Machine::new();
    let ran = machine.run(&["model", "recommend", "--json"]);
    let document = ran.json();
    let models = document["models"].as_array().unwrap();
    let of = |id: &str| models.iter().find(|one| one["id"] == id).unwrap();
    let (default, small) = (of("qwen2.5-coder-1.5b"), of("qwen2.5-coder-0.5b"));
    assert_eq!(
        (&default["is_here"], &default["is_in_use"], &default["speed"]),
        (&json!(false), &json!(true), &json!(null))
    );
    assert!(default["eval"].as_f64() > small["eval"].as_f64() && small["eval"].is_number(), "{ran:#?}");
    assert_eq!(of("llama-3.2-3b")["eval"], json!(null), "no score for a model that was not measured");
    assert!(models.iter().all(|one| one["id"] != "all-minilm-l6-v2"), "an embedding model answers nothing");
    let fitting = |one: &&Value| one["fits"] != json!(false) && one["eval"].is_number();
    let best = models
        .iter()
        .filter(fitting)
        .max_by(|a, b| a["eval"].as_f64().unwrap().total_cmp(&b["eval"].as_f64().unwrap()));
    let recommended = &document["recommended"];
    match best {
        None => assert_eq!((recommended, ran.code), (&json!(null), Some(1)), "{ran:#?}"),
        Some(best) => {
            assert_eq!((&recommended["id"], ran.code), (&best["id"], Some(0)), "{ran:#?}");
            assert!(recommended["command"].as_str().unwrap().starts_with("caro model pull "), "{ran:#?}");
            let table = machine.run(&["model", "recommend"]);
            let line = format!("take it: {}", recommended["command"].as_str().unwrap());
            assert!(table.out.contains("* qwen2.5-coder-1.5b") && table.out.contains(&line), "{table:#?}");
        }
    }
}

/// A file that is no model has an error in its row, and does not stop the comparison of the others.
#[test]
fn an_unreadable_model_is_reported_and_skipped() {
    let machine = Machine::new();
    std::fs::create_dir_all(machine.path("cache/models")).unwrap();
    machine.write("work/own.gguf", "GGUF and nothing else");
    let file = machine.path("work/own.gguf").display().to_string();
    let card = format!(
        "id='own'\nname='Own'\npurpose='chat'\nfamily='f'\narch='llama'\nquant='F32'\nlicence='MIT'\nctx=512\ntemplate='chatml'\n\
         stop=['<|im_end|>']\n[[file]]\nname='own.gguf'\npath='{file}'\n"
    );
    machine.write("cache/models/own.toml", card);
    let ran = machine.run(&["model", "recommend", "--json"]);
    let document = ran.json();
    let own = document["models"].as_array().unwrap().iter().find(|one| one["id"] == "own");
    assert!(own.is_none_or(|own| own["is_here"] == json!(false) || own["problem"].is_string()), "{ran:#?}");
    assert_ne!(document["recommended"]["id"], "own", "{ran:#?}");
}
