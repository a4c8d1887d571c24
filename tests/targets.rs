//! What the real model writes for a machine other than this one.

use crate::checks::rows;
use crate::real::Batch;
use regex::Regex;

/// Rows of `request => what the answer may not have => what it has to have`, as regular expressions; `-` is nothing.
fn kept(caro: &mut Batch, list: &str) -> (usize, Vec<String>) {
    let rows = rows(list);
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
fn answers_for_macos_are_for_its_own_tools() {
    if cfg!(debug_assertions) {
        println!("skipped: a hundred answers take too long in a debug build");
        return;
    }
    // what is written on a slow machine's first try is another matter
    let time = ["--budget", "60", "--timeout", "120"];
    let Some(mut caro) = Batch::start_with(&[&["--target", "macos-bsd"][..], &time[..]].concat()) else { return };
    let (all, missed) = kept(&mut caro, include_str!("macos.txt"));
    println!("{} of {all}; missed: {missed:#?}", all - missed.len());
    assert!(all >= 80 && missed.len() * 20 <= all, "at least 95 %: {missed:#?}");
}
