//! The README says what the program does: its table of settings is the program's own, and every verb and flag it names exists.

use crate::machine::{Machine, Ran};

const README: &str = include_str!("../README.md");

#[test]
fn the_table_of_settings_is_the_programs_own() {
    // the variables that tests set are not the program's defaults
    let settings = Ran::of(Machine::new().caro(&["config"]).env_remove("CARO_RESIDENT").output().unwrap());
    assert_eq!(settings.code, Some(0), "{settings:#?}");
    let mut rows = 0;
    for line in settings.out.lines() {
        let (name, rest) = line.split_once(" = ").unwrap();
        let default = rest.split('"').nth(1).unwrap();
        let row = format!("| `{name}` | `CARO_{}` | `{default}` |", name.to_uppercase());
        assert!(README.contains(&row), "the README lacks {row}");
        rows += 1;
    }
    assert!(rows >= 8, "{settings:#?}");
}

#[test]
fn every_verb_and_flag_named_exists() {
    let machine = Machine::new();
    let help = machine.run(&["--help"]).out
        + &machine.run(&["agent", "--help"]).out
        + &machine.run(&["knowledge", "ingest", "--help"]).out;
    let named = |mark: &str| -> Vec<String> {
        README
            .match_indices(mark)
            .map(|(at, _)| &README[at + mark.len()..])
            .map(|rest| rest.chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '-').collect())
            .collect()
    };
    let verbs = named("`caro ");
    let known = ["model", "manual", "check", "explain", "batch", "context", "config", "completions"];
    assert!(known.iter().all(|verb| verbs.iter().any(|v| v == verb)), "the README forgets a verb");
    for verb in known {
        assert!(help.contains(&format!("\n  {verb} ")), "{verb} is no verb");
    }
    for flag in named("`--").into_iter().chain(named("`caro --")).filter(|f| !f.is_empty()) {
        // a flag of cargo, or of one verb
        let elsewhere = ["profile", "origin", "features"].contains(&flag.as_str());
        assert!(elsewhere || help.contains(&format!("--{flag}")), "--{flag} is no flag");
    }
}
