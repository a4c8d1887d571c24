//! Tests of the checks on whole lists (`tests/checks`): right commands have no findings, wrong ones have the right
//! finding and fix.

use super::{CheckContext, run};
use caro_shell::{Dialect, Finding, Severity, Target, parse};
use std::collections::BTreeMap;

/// Runs the checks on a bash command for Linux without manuals, and returns the findings other than hints.
fn findings(request: &str, command: &str) -> Vec<Finding> {
    let script = parse(command, Dialect::Bash);
    let target = Target::named("linux-gnu").unwrap();
    let manuals = BTreeMap::new();
    let cx = CheckContext {
        request,
        script: &script,
        target,
        dialect: Dialect::Bash,
        context: None,
        cwd: None,
        manuals: &manuals,
    };
    run(&cx).into_iter().filter(|f| f.severity > Severity::Hint).collect()
}

/// Splits the lines of a list into columns.
fn rows(list: &str) -> Vec<Vec<&str>> {
    let lines = list.lines().filter(|l| !l.is_empty() && !l.starts_with('#'));
    lines.map(|l| l.split(" => ").map(str::trim).collect()).collect()
}

#[test]
fn right_commands_have_no_findings() {
    let rows = rows(include_str!("../../../tests/checks/right.txt"));
    assert!(rows.len() >= 150, "only {} pairs", rows.len());
    let mut wrong = Vec::new();
    for row in &rows {
        let [request, command] = row.as_slice() else { panic!("two columns: {row:?}") };
        for f in findings(request, command) {
            wrong.push(format!("{request} => {command}: {} says {}, fix {:?}", f.id, f.why, f.fix));
        }
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), rows.len(), wrong.join("\n"));
}

#[test]
fn wrong_commands_have_the_right_finding_and_fix() {
    let rows = rows(include_str!("../../../tests/checks/wrong.txt"));
    assert!(rows.len() >= 60, "only {} rows", rows.len());
    let mut wrong = Vec::new();
    for row in &rows {
        let [request, command, id, fix] = row.as_slice() else { panic!("four columns: {row:?}") };
        let found = findings(request, command);
        match found.iter().find(|f| f.id == *id) {
            None => wrong.push(format!("{request} => {command}: no {id}, but {found:?}")),
            Some(f) if f.fix.as_deref().unwrap_or("-") != *fix => {
                wrong.push(format!("{request} => {command}: fixed to {:?}", f.fix));
            }
            // the fix itself does not have the finding
            Some(_) if *fix != "-" && findings(request, fix).iter().any(|f| f.id == *id) => {
                wrong.push(format!("{request} => {fix}: still has {id}"));
            }
            Some(_) => {}
        }
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), rows.len(), wrong.join("\n"));
}

#[test]
fn no_pair_of_request_and_command_panics() {
    let lists = [include_str!("../../../tests/checks/right.txt"), include_str!("../../../tests/checks/wrong.txt")]
        .map(rows)
        .concat();
    let commands: Vec<&str> = lists.iter().map(|row| row[1]).collect();
    for (i, row) in lists.iter().enumerate() {
        // a request with the command of another one, and with half of it
        for step in [1, 7, 31] {
            let command = commands[(i + step) % commands.len()];
            let half: String = command.chars().take(command.chars().count() / 2).collect();
            for f in findings(row[0], command).iter().chain(&findings(row[0], &half)) {
                assert!(!f.id.is_empty() && !f.why.is_empty());
            }
        }
    }
}

/// Pieces of requests: words that checks look for, and unusual text.
const PIECES: [&str; 48] = [
    "",
    "\"",
    "'",
    "`",
    ".",
    ",",
    "-",
    "/",
    "~/",
    "*",
    "(",
    ")",
    "\\",
    "\"\"",
    "' '",
    "..",
    "é",
    "日本",
    "named",
    "called",
    "in",
    "the",
    "/srv",
    "files",
    "and",
    "directories",
    "lines",
    "not",
    "empty",
    "blank",
    "largest",
    "5",
    "0",
    "-1",
    "99999999999999999999",
    "to",
    "first",
    "column",
    "spaces",
    "hidden",
    "only",
    "octal",
    "permissions",
    "size",
    "*.txt",
    "a.b",
    "differ",
    "{}",
];

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig { cases: 2000, failure_persistence: None, ..Default::default() })]

    #[test]
    fn no_words_of_a_request_panic(
        said in proptest::collection::vec(proptest::sample::select(&PIECES[..]), 0..12),
        words in proptest::collection::vec(proptest::sample::select(&PIECES[..]), 0..4),
        row in 0usize..1000,
    ) {
        let lists = [include_str!("../../../tests/checks/right.txt"), include_str!("../../../tests/checks/wrong.txt")].map(rows).concat();
        let command = format!("{} {}", lists[row % lists.len()][1], words.join(" "));
        for f in findings(&said.join(" "), &command) {
            proptest::prop_assert!(!f.id.is_empty() && !f.why.is_empty());
        }
    }
}
