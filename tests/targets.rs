//! Tests the commands of the real model for a system other than this one.

use crate::real::Batch;
use crate::support::rows;
use regex::Regex;

/// The suite asks every sixth request; `benches/full.sh` asks all.
const SAMPLE: usize = 6;

/// Asks every `step`-th row of a list of `request => forbidden => required`, two regular expressions for the answer,
/// `-` for none. Returns the number of rows and the failures.
fn ask_rows(caro: &mut Batch, list: &str, step: usize) -> (usize, Vec<String>) {
    let rows: Vec<_> = rows(list).into_iter().step_by(step).collect();
    let mut missed = Vec::new();
    for row in &rows {
        let [request, forbidden, required] = row.as_slice() else { panic!("three columns: {row:?}") };
        let holds = |pattern: &str, cmd: &str| Regex::new(pattern).unwrap().is_match(cmd);
        let answer = caro.ask(request);
        let cmd = answer["cmd"].as_str().unwrap_or_default();
        if *forbidden != "-" && holds(forbidden, cmd) || *required != "-" && !holds(required, cmd) {
            missed.push(format!("{request} => {cmd}"));
        }
    }
    (rows.len(), missed)
}

#[test]
fn a_sample_of_answers_for_macos_uses_its_own_tools() {
    check_macos_answers(SAMPLE);
}

#[test]
#[ignore = "minutes: benches/full.sh runs it"]
fn answers_for_macos_use_its_own_tools() {
    check_macos_answers(1);
}

fn check_macos_answers(step: usize) {
    if cfg!(debug_assertions) {
        println!("skipped: a hundred answers take too long in a debug build");
        return;
    }
    // enough time for all iterations on a slow machine
    let time = ["--budget", "60", "--timeout", "120"];
    let Some(mut caro) = Batch::start_with(&[&["--target", "macos-bsd"][..], &time[..]].concat()) else { return };
    let (all, missed) = ask_rows(&mut caro, include_str!("macos.txt"), step);
    println!("{} of {all}; missed: {missed:#?}", all - missed.len());
    assert!(all * step >= 80 && missed.len() <= all.div_ceil(20), "at least 95 %: {missed:#?}");
}
