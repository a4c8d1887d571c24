//! Tests of the checks among files (`tests/checks/here.txt`, whose head explains the columns): a line of shell fills a
//! new folder, in which the commands below it are checked; those above the first such line run nowhere.

use super::lists_tests::{complaint, rows};
use std::process::Command;
use tempfile::TempDir;

/// Makes a folder and runs a line of shell in it.
fn folder_after(line: &str) -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    let shell = Command::new("sh").args(["-ec", line]).current_dir(dir.path()).status().unwrap();
    assert!(shell.success(), "{line}");
    dir
}

#[test]
fn commands_have_the_findings_that_the_files_call_for() {
    let rows = rows(include_str!("../../../tests/checks/here.txt"));
    assert!(rows.len() >= 300, "only {} rows", rows.len());
    let (mut folder, mut wrong): (Option<TempDir>, _) = (None, Vec::new());
    for row in &rows {
        match row.as_slice() {
            [line] => folder = Some(folder_after(line.strip_prefix("@ ").unwrap_or_else(|| panic!("{line}")))),
            row => wrong.extend(complaint(folder.as_ref().map(TempDir::path), row)),
        }
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), rows.len(), wrong.join("\n"));
}
