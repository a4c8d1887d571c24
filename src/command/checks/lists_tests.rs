//! Tests of the checks on whole lists (`tests/checks`): right commands have no findings, wrong ones have the right
//! finding and fix.

use super::{CheckContext, run};
use caro_shell::{Dialect, Finding, Severity, parse};
use std::path::Path;

/// Runs the checks on a bash command for Linux without manuals, and returns the findings other than hints.
fn findings(cwd: Option<&Path>, request: &str, command: &str) -> Vec<Finding> {
    let script = parse(command, Dialect::Bash);
    let cx = CheckContext { cwd, ..CheckContext::on_linux(request, &script) };
    run(&cx).into_iter().filter(|f| f.severity > Severity::Hint).collect()
}

/// Splits the lines of a list into columns.
pub(super) fn rows(list: &str) -> Vec<Vec<&str>> {
    let lines = list.lines().filter(|l| !l.is_empty() && !l.starts_with('#'));
    lines.map(|l| l.split(" => ").map(str::trim).collect()).collect()
}

/// Returns what is wrong with the findings in a folder, if they are not those of the row (`tests/checks/here.txt`
/// explains its columns).
pub(super) fn complaint(cwd: Option<&Path>, row: &[&str]) -> Option<String> {
    let [request, command, expected @ ..] = row else { panic!("a request and a command: {row:?}") };
    let request = if *request == "-" { "" } else { *request };
    let found = findings(cwd, request, command);
    let complaint = match expected {
        [] => (!found.is_empty()).then(|| format!("{found:?}")),
        [allowed] => {
            let other = found.iter().find(|f| !allowed.split(' ').any(|id| f.id == id));
            other.map(|f| format!("{f:?}"))
        }
        [id, fix, texts @ ..] => {
            let has_texts = |f: &Finding| texts.iter().all(|text| format!("{f:?}").contains(text));
            match found.iter().find(|f| f.id == *id && has_texts(f)) {
                None => Some(format!("no {id} {texts:?}, but {found:?}")),
                Some(f) if f.fix.as_deref().unwrap_or("-") != *fix => Some(format!("fixed to {:?}", f.fix)),
                // the fix itself does not have the finding
                Some(_) if *fix != "-" && findings(cwd, request, fix).iter().any(|f| f.id == *id) => {
                    Some(format!("{fix} still has {id}"))
                }
                Some(_) => None,
            }
        }
    };
    complaint.map(|complaint| format!("{request} => {command}: {complaint}"))
}

/// Tests the rows of a list, which have so many columns.
fn test_list(list: &str, columns: usize, least: usize) {
    let rows = rows(list);
    assert!(rows.len() >= least, "only {} rows", rows.len());
    let strange = rows.iter().find(|row| row.len() != columns);
    assert_eq!(strange, None, "it has not {columns} columns");
    let wrong: Vec<String> = rows.iter().filter_map(|row| complaint(None, row)).collect();
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), rows.len(), wrong.join("\n"));
}

#[test]
fn right_commands_have_no_findings() {
    test_list(include_str!("../../../tests/checks/right.txt"), 2, 150);
}

#[test]
fn wrong_commands_have_the_right_finding_and_fix() {
    test_list(include_str!("../../../tests/checks/wrong.txt"), 4, 60);
}

#[test]
fn no_pair_of_request_and_command_panics() {
    let lists = [include_str!("../../../tests/checks/right.txt"), include_str!("../../../tests/checks/wrong.txt")]
        .map(rows)
        .concat();
    let commands: Vec<&str> = lists.iter().map(|row| row[1]).collect();
    for (i, row) in lists.iter().enumerate() {
        // a request with the command of another one, and with half of it
        let command = commands[(i + 7) % commands.len()];
        let half: String = command.chars().take(command.chars().count() / 2).collect();
        for f in findings(None, row[0], command).iter().chain(&findings(None, row[0], &half)) {
            assert!(!f.id.is_empty() && !f.why.is_empty());
        }
    }
}

/// Pieces of requests between bars: words that checks look for, and unusual text.
const PIECES: &str = "|\"|'|`|.|,|-|/|~/|*|(|)|\\|\"\"|' '|..|é|日本|named|called|in|the|/srv|files|and|directories|lines|\
    not|empty|blank|largest|5|0|-1|99999999999999999999|to|first|column|spaces|hidden|only|octal|\
    permissions|size|*.txt|a.b|differ|{}";

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig { cases: 2000, failure_persistence: None, ..Default::default() })]

    #[test]
    fn no_words_of_a_request_panic(
        said in proptest::collection::vec(proptest::sample::select(PIECES.split('|').collect::<Vec<_>>()), 0..12),
        words in proptest::collection::vec(proptest::sample::select(PIECES.split('|').collect::<Vec<_>>()), 0..4),
        row in 0usize..1000,
    ) {
        let lists = [include_str!("../../../tests/checks/right.txt"), include_str!("../../../tests/checks/wrong.txt")].map(rows).concat();
        let command = format!("{} {}", lists[row % lists.len()][1], words.join(" "));
        for f in findings(None, &said.join(" "), &command) {
            proptest::prop_assert!(!f.id.is_empty() && !f.why.is_empty());
        }
    }
}
