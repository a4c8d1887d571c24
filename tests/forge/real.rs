//! Measures the forge on the real model: sets of skills, each with tests hidden from the model and the forge.

use super::can_forge;
use crate::machine::{Machine, Ran};
use serde::Deserialize;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

#[derive(Deserialize)]
struct Set {
    skill: Vec<Wanted>,
}

#[derive(Deserialize)]
struct Wanted {
    name: String,
    request: String,
    way: String,
    examples: Vec<(String, String)>,
    hidden: Vec<(String, String)>,
}

const SET: &str = include_str!("../../benches/forge/skills.toml");
/// The skills on which the forge was developed.
const MORE: &str = include_str!("../../benches/forge/more.toml");

/// The output of a promoted script for an input.
fn output(script: &Path, input: &str, folder: &Path) -> String {
    let file = folder.join("hidden.txt");
    std::fs::write(&file, input).unwrap();
    let ran = Command::new("python3").arg(script).arg("--file").arg(&file).stdin(Stdio::null()).output().unwrap();
    let text = String::from_utf8_lossy(&ran.stdout).into_owned();
    text.trim_end().lines().map(str::trim_end).collect::<Vec<_>>().join("\n")
}

/// The arguments with the examples of a skill.
fn example_args(wanted: &Wanted, machine: &Machine) -> Vec<String> {
    let mut args = Vec::new();
    for (at, (input, expected)) in wanted.examples.iter().enumerate() {
        if wanted.way == "file" {
            let (sample, expect) = (format!("{at}.sample"), format!("{at}.expect"));
            machine.write(format!("work/{sample}"), input);
            machine.write(format!("work/{expect}"), expected);
            args.extend(["--sample".into(), sample, "--expect".into(), expect]);
        } else {
            let escaped = |text: &str| text.replace('\\', "\\\\").replace('\n', "\\n");
            args.extend(["--example".into(), format!("{} => {}", escaped(input), escaped(expected))]);
        }
    }
    args
}

/// No hidden test is an example, and each skill has enough of both.
#[test]
fn no_hidden_test_is_an_example() {
    let (set, more): (Set, Set) = (toml::from_str(SET).unwrap(), toml::from_str(MORE).unwrap());
    assert_eq!((set.skill.len(), more.skill.len()), (6, 10));
    for wanted in set.skill.iter().chain(&more.skill) {
        assert!(wanted.hidden.len() >= 2 && !wanted.examples.is_empty(), "{}", wanted.name);
        assert!(wanted.hidden.iter().all(|(input, _)| wanted.examples.iter().all(|(shown, _)| shown != input)));
    }
}

/// A29 to A35 on the default model: at least three of six are forged, and none is promoted that a hidden test refutes.
/// `CARO_FORGE_ONLY=NAME` runs one.
#[test]
#[ignore = "a measurement of ten minutes, whose goal is not reached yet (benches/records)"]
fn a29_the_real_model_forges_three_of_six_and_none_falsely() {
    let Some((right, count)) = forge_all(SET) else { return };
    assert!(count < 6 || right >= 3, "{right} of {count} were forged");
}

#[test]
#[ignore = "a measurement of twenty minutes (benches/records)"]
fn a29_the_real_model_forges_some_of_ten_more_and_none_falsely() {
    let Some((right, count)) = forge_all(MORE) else { return };
    assert!(count < 10 || right >= 1, "{right} of {count} were forged");
}

/// Forges the skills of a set. Returns the number forged rightly and the number of all.
fn forge_all(set: &str) -> Option<(usize, usize)> {
    if cfg!(debug_assertions) {
        println!("skipped: it takes minutes in a debug build");
        return None;
    }
    if !can_forge() {
        return None;
    }
    crate::support::model_or_skip("forge")?;
    let set: Set = toml::from_str(set).unwrap();
    let only = std::env::var("CARO_FORGE_ONLY").ok();
    let (mut right, mut wrong, mut count) = (0, Vec::new(), 0);
    for wanted in set.skill.iter().filter(|w| only.as_ref().is_none_or(|only| *only == w.name)) {
        let machine = Machine::new();
        let started = Instant::now();
        let mut caro = crate::support::model_or_skip("forge").unwrap();
        caro.args([&wanted.request, "--name", &wanted.name, "--json", "--model", "qwen2.5-coder-1.5b"]);
        caro.args(example_args(wanted, &machine)).env("CARO_CONFIG_FILE", machine.path("config.toml"));
        caro.env("XDG_DATA_HOME", machine.path("data")).current_dir(machine.path("work")).stdin(Stdio::null());
        let ran = Ran::of(caro.output().unwrap());
        let report = ran.json();
        let is_promoted = report["verdict"] == "promoted";
        let script = machine.path(&format!("skills/{}/scripts/main.py", wanted.name));
        let passes = is_promoted
            && wanted.hidden.iter().all(|(input, expected)| output(&script, input, &machine.path("work")) == *expected);
        let verdict = format!("{} after {} scripts", report["verdict"], report["iterations"]);
        println!("{}: {verdict}, hidden tests {passes}, {:.0} s", wanted.name, started.elapsed().as_secs_f64());
        if !passes {
            let place = if is_promoted { "skills" } else { "skills/.quarantine" };
            let script = machine.path(&format!("{place}/{}/scripts/main.py", wanted.name));
            println!("{}\n{:#}", std::fs::read_to_string(script).unwrap_or_default(), report["failures"]);
            println!("{:#}\n{:#}", report["findings"], report["open"]);
        }
        count += 1;
        right += usize::from(passes);
        if is_promoted && !passes {
            wrong.push(&wanted.name);
        }
        // a rejected skill has a reason
        assert!(
            is_promoted
                || report["open"].is_object()
                || report["failures"].as_array().is_some_and(|f| !f.is_empty())
                || report["findings"].as_array().is_some_and(|f| !f.is_empty()),
            "{report:#}"
        );
    }
    println!("forged: {right} of {count}; falsely promoted: {wrong:?}");
    assert!(wrong.is_empty(), "falsely promoted: {wrong:?}");
    Some((right, count))
}
