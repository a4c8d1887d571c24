//! What the real model writes for a machine other than this one.

use crate::real::Batch;
use crate::support::rows;
use regex::Regex;

/// The suite asks one of so many, the same ones each time; `benches/full.sh` asks all.
const SAMPLE: usize = 6;

/// Every `step`-th of the rows of `request => what the answer may not have => what it has to have`, as regular expressions; `-` is nothing.
fn kept(caro: &mut Batch, list: &str, step: usize) -> (usize, Vec<String>) {
    let rows: Vec<_> = rows(list).into_iter().step_by(step).collect();
    let mut missed = Vec::new();
    for row in &rows {
        let [request, never, ever] = row.as_slice() else { panic!("three columns: {row:?}") };
        let holds = |pattern: &str, cmd: &str| Regex::new(pattern).unwrap().is_match(cmd);
        let answer = caro.ask(request);
        let cmd = answer["cmd"].as_str().unwrap_or_default();
        if *never != "-" && holds(never, cmd) || *ever != "-" && !holds(ever, cmd) {
            missed.push(format!("{request} => {cmd}"));
        }
    }
    (rows.len(), missed)
}

#[test]
fn answers_of_a_sample_for_macos_are_for_its_own_tools() {
    answers_for_macos(SAMPLE);
}

#[test]
#[ignore = "minutes: benches/full.sh runs it"]
fn answers_for_macos_are_for_its_own_tools() {
    answers_for_macos(1);
}

fn answers_for_macos(step: usize) {
    if cfg!(debug_assertions) {
        println!("skipped: a hundred answers take too long in a debug build");
        return;
    }
    // what is written on a slow machine's first try is another matter
    let time = ["--budget", "60", "--timeout", "120"];
    let Some(mut caro) = Batch::start_with(&[&["--target", "macos-bsd"][..], &time[..]].concat()) else { return };
    let (all, missed) = kept(&mut caro, include_str!("macos.txt"), step);
    println!("{} of {all}; missed: {missed:#?}", all - missed.len());
    assert!(all * step >= 80 && missed.len() <= all.div_ceil(20), "at least 95 %: {missed:#?}");
}
