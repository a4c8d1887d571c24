//! Tests of the conditions on a list of follow-ups (`tests/checks/revised.txt`).

use super::*;
use crate::PastExchange;

fn found(earlier: &str, request: &str, command: &str, revises: bool) -> Option<Finding> {
    let said = vec![PastExchange { command: earlier.into(), ..PastExchange::default() }];
    check(&History { said, revises, ..History::default() }, request, command, Dialect::Bash)
}

#[test]
fn conditions_stay_unless_the_request_asks_otherwise() {
    let list = include_str!("../../../tests/checks/revised.txt");
    let rows: Vec<Vec<&str>> = list
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .map(|line| line.split(" => ").map(str::trim).collect())
        .collect();
    let mut wrong = Vec::new();
    for row in &rows {
        let [earlier, request, command, dropped, fix] = row.as_slice() else { panic!("five columns: {row:?}") };
        let finding = found(earlier, request, command, true);
        let (why, fixed) = finding.map_or((String::new(), None), |f| (f.why, f.fix));
        let is_right = match *dropped {
            "-" => why.is_empty(),
            texts => why == format!("leaves out {texts} of the earlier command"),
        };
        if !is_right || fixed.as_deref().unwrap_or("-") != *fix {
            wrong.push(format!("{earlier} => {request} => {command}: {why}, {fixed:?}"));
        }
        if *fix != "-" && found(earlier, request, fix, true).is_some() {
            wrong.push(format!("{fix}: still leaves something out"));
        }
        assert_eq!(found(earlier, request, command, false), None, "it is another step, not a change");
    }
    let findings = rows.iter().filter(|row| row[3] != "-").count();
    assert!(findings >= 12 && rows.len() - findings >= 24, "{findings} of {}", rows.len());
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), rows.len(), wrong.join("\n"));
}
