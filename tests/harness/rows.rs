//! Tests that each row of the list of the harness's behaviours has a test, or a reason why not.

use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::Path;

/// The rows of the list: each letter with the number of its rows.
const ROWS: &[(&str, usize)] = &[("A", 41), ("B", 43), ("C", 20), ("D", 23), ("I", 22)];

/// Stands for a test in a file's documentation, which has no name.
const DOC: &str = "doc test";

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Row {
    Held(Vec<String>),
    Part { tests: Vec<String>, open: String },
    Not(String),
}

fn rows() -> BTreeMap<String, Row> {
    toml::from_str(include_str!("rows.toml")).unwrap()
}

/// The names of the tests in a source text.
fn tests(code: &str) -> Vec<&str> {
    let (mut found, mut marked) = (Vec::new(), false);
    for line in code.lines().map(str::trim) {
        if line.starts_with("#[test]") || line.starts_with("#[tokio::test") {
            marked = true;
        } else if marked && let Some((_, rest)) = line.split_once("fn ") {
            found.extend(rest.split(['(', '<']).next());
            marked = false;
        }
    }
    found
}

/// True if the documentation has a compiled example that begins with a `use`.
fn has_doc_test(code: &str) -> bool {
    let lines: Vec<&str> = code.lines().map(str::trim).collect();
    lines
        .windows(2)
        .any(|two| ["/// ```", "//! ```"].contains(&two[0]) && two[1].get(3..).unwrap_or_default().starts_with(" use "))
}

/// Checks that a test exists, given as `FILE: TEST`. Returns the reason if not.
fn find_test(named: &str) -> Result<(), String> {
    let (file, test) = named.split_once(": ").ok_or("it is not of the form FILE: TEST")?;
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
    let code = std::fs::read_to_string(path).map_err(|error| error.to_string())?;
    let exists = match test {
        DOC => code.contains("```compile_fail") || has_doc_test(&code),
        _ => tests(&code).contains(&test),
    };
    exists.then_some(()).ok_or_else(|| format!("{file} has no such test"))
}

#[test]
fn each_row_has_a_test_or_a_reason() {
    let rows = rows();
    let known = ROWS.iter().flat_map(|(letter, most)| (1..=*most).map(move |n| format!("{letter}{n}")));
    let mut wrong: Vec<String> = Vec::new();
    let mut unknown: Vec<&String> = rows.keys().collect();
    for id in known {
        unknown.retain(|row| **row != id);
        let (tests, why) = match rows.get(&id) {
            None => {
                wrong.push(format!("{id} has neither a test nor a reason"));
                continue;
            }
            Some(Row::Held(tests)) => (tests.as_slice(), None),
            Some(Row::Part { tests, open }) => (tests.as_slice(), Some(open)),
            Some(Row::Not(why)) => (&[][..], Some(why)),
        };
        if why.is_some_and(|why| why.trim().is_empty()) || why.is_none() && tests.is_empty() {
            wrong.push(format!("{id} has neither a test nor a reason"));
        }
        wrong.extend(tests.iter().filter_map(|test| find_test(test).err().map(|why| format!("{id}: {test}: {why}"))));
    }
    wrong.extend(unknown.iter().map(|row| format!("{row} is not a row of the list")));
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// The row ids of a list in Markdown: the first cell of each row of its tables.
fn row_ids(list: &str) -> Vec<String> {
    let cells = list.lines().filter_map(|line| line.strip_prefix("| ")?.split(" |").next());
    let is_number = |cell: &&str| {
        let (letter, digits) = cell.split_at(1);
        letter.starts_with(|c: char| c.is_ascii_uppercase()) && digits.parse::<u8>().is_ok()
    };
    cells.filter(|cell| cell.is_ascii() && cell.len() > 1).filter(is_number).map(str::to_owned).collect()
}

#[test]
fn the_rows_are_those_of_the_list() {
    let list = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/HARNESS.md");
    let Ok(list) = std::fs::read_to_string(list) else {
        println!("skipped: the list, which is beside the repository, does not exist");
        return;
    };
    let mut listed = row_ids(&list);
    listed.sort();
    let ours: Vec<String> = rows().into_keys().collect();
    assert_eq!(listed, ours);
}

#[test]
fn tests_and_row_ids_are_parsed() {
    let code = "#[test]\nfn a() {}\nfn b() {}\n#[cfg(unix)]\n#[tokio::test(flavor = \"x\")]\nasync fn c() {}\n    \
                #[test]\n    fn d(x in 0..1) {}\n";
    assert_eq!(tests(code), ["a", "c", "d"]);
    assert_eq!(row_ids("| # | B |\n|---|---|\n| A1 | x | y |\n| D23 | x |\nA2 | x\n| Ability | x |\n"), ["A1", "D23"]);
    assert!(find_test("tests/harness/rows.rs: tests_and_row_ids_are_parsed").is_ok());
    assert!(find_test("tests/harness/rows.rs: rows").is_err() && find_test("tests/none.rs: a").is_err());
}
