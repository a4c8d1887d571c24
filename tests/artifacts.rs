//! What a run leaves in the data folder: results that were too long for a prompt, and the agent's own files.

use crate::agent::{answer, by_step, step};
use crate::machine::{Machine, Ran};
use serde_json::json;
use std::path::{Path, PathBuf};

/// Every file below a folder.
pub fn files(folder: &Path) -> Vec<PathBuf> {
    let (mut all, mut folders) = (Vec::new(), vec![folder.to_path_buf()]);
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            if entry.is_dir() { folders.push(entry) } else { all.push(entry) }
        }
    }
    all
}

/// True if a file has these bytes anywhere.
pub fn holds(file: &Path, text: &str) -> bool {
    std::fs::read(file).unwrap().windows(text.len()).any(|bytes| bytes == text.as_bytes())
}

/// A run that makes one command, with a result of whatever length.
fn run(machine: &Machine, command: &str, session: &str) -> Ran {
    let replies = [step("look", &[("shell", json!({ "command": command }))]), answer("seen")];
    machine.ask(by_step(&replies), &["agent", "look at what is there", "--session", session])
}

#[test]
fn a_secret_is_in_no_file_of_the_data_folder() {
    let machine = Machine::new();
    let token = "ghp_abcdefghijklmnopqrstuvwxyz0123456789";
    let rows: String = (0..400).map(|n| format!("row {n}\n")).collect();
    machine.write("work/dump.txt", format!("{rows}token={token}\n{rows}"));
    let ran = run(&machine, "cat dump.txt", "s");
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    let all = files(&machine.path("home/.local/share/caro"));
    let kept: Vec<&PathBuf> = all.iter().filter(|file| holds(file, "row 399\ntoken=[redacted]\nrow 0")).collect();
    assert!(kept.len() == 1 && kept[0].to_string_lossy().contains("/artifacts/"), "{all:?}");
    let leaks: Vec<&PathBuf> = all.iter().filter(|file| holds(file, token)).collect();
    assert!(leaks.is_empty(), "{leaks:?}");
}
