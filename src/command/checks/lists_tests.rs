//! The checks over whole lists (`tests/checks`): silent on right commands, and wrong ones are named and mended.

use super::{CheckContext, run};
use caro_shell::{Dialect, Finding, Severity, Target, parse};
use std::collections::BTreeMap;

/// What the checks have against a bash command for Linux where no manual is at hand, hints left out.
fn findings(request: &str, command: &str) -> Vec<Finding> {
    let script = parse(command, Dialect::Bash);
    let target = Target::named("linux-gnu").unwrap();
    let manuals = BTreeMap::new();
    let it = CheckContext {
        request,
        script: &script,
        target,
        dialect: Dialect::Bash,
        context: None,
        cwd: None,
        manuals: &manuals,
    };
    run(&it).into_iter().filter(|f| f.severity > Severity::Hint).collect()
}

/// The lines of a list, each in its columns.
fn rows(list: &str) -> Vec<Vec<&str>> {
    let lines = list.lines().filter(|l| !l.is_empty() && !l.starts_with('#'));
    lines.map(|l| l.split(" => ").map(str::trim).collect()).collect()
}

#[test]
fn nothing_is_said_against_right_commands() {
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
fn wrong_commands_are_named_and_mended() {
    let rows = rows(include_str!("../../../tests/checks/wrong.txt"));
    assert!(rows.len() >= 60, "only {} rows", rows.len());
    let mut wrong = Vec::new();
    for row in &rows {
        let [request, command, id, mended] = row.as_slice() else { panic!("four columns: {row:?}") };
        let found = findings(request, command);
        match found.iter().find(|f| f.id == *id) {
            None => wrong.push(format!("{request} => {command}: no {id}, but {found:?}")),
            Some(f) if f.fix.as_deref().unwrap_or("-") != *mended => {
                wrong.push(format!("{request} => {command}: mended to {:?}", f.fix));
            }
            // what mends is clean itself
            Some(_) if *mended != "-" && findings(request, mended).iter().any(|f| f.id == *id) => {
                wrong.push(format!("{request} => {mended}: draws {id} still"));
            }
            Some(_) => {}
        }
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), rows.len(), wrong.join("\n"));
}

#[test]
fn no_request_and_no_command_breaks_a_check() {
    let lists = [include_str!("../../../tests/checks/right.txt"), include_str!("../../../tests/checks/wrong.txt")]
        .map(rows)
        .concat();
    let commands: Vec<&str> = lists.iter().map(|row| row[1]).collect();
    for (i, row) in lists.iter().enumerate() {
        // a request meets another's command, and halves of it, cut anywhere
        for step in [1, 7, 31] {
            let command = commands[(i + step) % commands.len()];
            let half: String = command.chars().take(command.chars().count() / 2).collect();
            for f in findings(row[0], command).iter().chain(&findings(row[0], &half)) {
                assert!(!f.id.is_empty() && !f.why.is_empty());
            }
        }
    }
}

/// Pieces of requests: the words that checks look for, and what nobody says.
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
    fn no_words_of_a_request_break_a_check(
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
