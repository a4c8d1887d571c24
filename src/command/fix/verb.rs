//! Repairs unknown subcommands, targets and scripts.

use super::complaint::{self, Kind};
use super::near::nearest;
use super::{Case, Class, Repair, repair};
use crate::checks::misspelled;
use caro_base::files;
use caro_shell::Word;
use std::path::Path;

/// Most bytes of a makefile, a `package.json` or a completion script.
const MAX_FILE: u64 = 1 << 20;

/// Replaces an unknown name by the nearest one that the program offers, or that its manual or the project's file has.
pub(super) fn unknown(case: &Case) -> Option<Repair> {
    for (kind, what) in [
        (Kind::UnknownVerb, "subcommand"),
        (Kind::UnknownScript, "script"),
        (Kind::UnknownTarget, "target"),
        (Kind::NoPage, "page"),
    ] {
        for complaint in case.all(kind) {
            let Some(word) = case.word(&complaint.name) else { continue };
            let Some(meant) = meant(case, kind, word) else { continue };
            let why = format!("there is no {what} `{}`, there is `{meant}`", word.text);
            return repair(Class::Subcommand, case.edits().replace(word, &meant), why);
        }
    }
    if case.is_silent { by_manual(case).or_else(|| by_project(case)) } else { None }
}

fn meant(case: &Case, kind: Kind, word: &Word) -> Option<String> {
    let typed = word.text.as_str();
    let offers = complaint::offers(case.stderr);
    let near = |names: &[String]| nearest(typed, names.iter().map(String::as_str), |_| false).map(str::to_owned);
    if let Some(offer) = near(&offers) {
        return Some(offer);
    }
    if let [only] = &offers[..] {
        return Some(only.clone());
    }
    match kind {
        Kind::UnknownTarget => near(&targets(case.facts.cwd)),
        Kind::UnknownScript => near(&scripts(case.facts.cwd)),
        Kind::NoPage => case.facts.nearest_program(typed).map(str::to_owned),
        _ => {
            let command = case.holder(word)?;
            verb(case, command.name()?, typed)
        }
    }
}

/// Returns the nearest subcommand in the program's manual, else in its completion script.
fn verb(case: &Case, program: &str, typed: &str) -> Option<String> {
    let entry = (case.facts.manual)(program, None);
    let known = entry.as_ref().map(|entry| entry.subcommands.as_slice()).unwrap_or_default();
    let by_manual = nearest(typed, known.iter().map(String::as_str), |_| false).map(str::to_owned);
    by_manual.or_else(|| {
        let words = completions(program)?;
        nearest(typed, words.iter().map(String::as_str), |_| false).map(str::to_owned)
    })
}

/// The folders of bash's completion scripts.
const COMPLETION_FOLDERS: [&str; 3] = [
    "/usr/share/bash-completion/completions",
    "/usr/local/share/bash-completion/completions",
    "/opt/homebrew/share/bash-completion/completions",
];

/// Returns the words in a program's completion script for bash, which include its subcommands.
fn completions(program: &str) -> Option<Vec<String>> {
    let text = COMPLETION_FOLDERS
        .iter()
        .find_map(|folder| files::read_text(&Path::new(folder).join(program), MAX_FILE).ok())?;
    let is_letter = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    let words = text
        .split(|c| !is_letter(c))
        .filter(|word| word.len() > 2 && word.starts_with(|c: char| c.is_ascii_lowercase()));
    let mut words: Vec<String> = words.filter(|word| !word.contains('_')).map(str::to_owned).collect();
    words.sort_unstable();
    words.dedup();
    Some(words)
}

/// Repairs without a complaint: the manual lists all subcommands, this is none of them, and one is near.
fn by_manual(case: &Case) -> Option<Repair> {
    case.commands().find_map(|command| {
        let program = command.name()?;
        let word = command.args().first().filter(|word| word.value.is_some() && !word.text.starts_with('-'))?;
        let entry = (case.facts.manual)(program, None).filter(|entry| entry.delegates && entry.complete)?;
        if case.facts.exists(&word.text) {
            return None;
        }
        let meant = misspelled(&word.text, &entry.subcommands)?;
        let why = format!("{program} has no subcommand `{}`, it has `{meant}`", word.text);
        repair(Class::Subcommand, case.edits().replace(word, meant), why)
    })
}

/// Repairs without a complaint: the project has scripts or targets, this is none of them, and one is near.
fn by_project(case: &Case) -> Option<Repair> {
    case.commands().find_map(|command| {
        let mut operands = command.operands();
        let (word, names, what) = match command.name()? {
            "npm" | "pnpm" | "yarn" => {
                operands.find(|word| matches!(word.text.as_str(), "run" | "run-script"))?;
                (operands.next()?, scripts(case.facts.cwd), "script")
            }
            "make" => (operands.find(|word| !word.text.contains('='))?, targets(case.facts.cwd), "target"),
            _ => return None,
        };
        if names.contains(&word.text) || case.facts.exists(&word.text) {
            return None;
        }
        let meant = nearest(&word.text, names.iter().map(String::as_str), |_| false)?;
        let why = format!("there is no {what} `{}`, there is `{meant}`", word.text);
        repair(Class::Subcommand, case.edits().replace(word, meant), why)
    })
}

/// Returns the targets of the makefile in a folder.
fn targets(folder: &Path) -> Vec<String> {
    let text = ["GNUmakefile", "makefile", "Makefile"]
        .iter()
        .find_map(|name| files::read_text(&folder.join(name), MAX_FILE).ok());
    let text = text.unwrap_or_default();
    let heads = text.lines().filter(|line| !line.starts_with(['\t', ' ', '#', '.'])).filter_map(|line| {
        let (names, rest) = line.split_once(':')?;
        (!rest.starts_with('=') && !names.contains('=')).then_some(names)
    });
    heads.flat_map(str::split_whitespace).filter(|name| !name.contains(['$', '%'])).map(str::to_owned).collect()
}

/// Returns the scripts of the `package.json` in a folder.
fn scripts(folder: &Path) -> Vec<String> {
    let text = files::read_text(&folder.join("package.json"), MAX_FILE).unwrap_or_default();
    let document: serde_json::Value = serde_json::from_str(&text).unwrap_or_default();
    document["scripts"].as_object().map(|all| all.keys().cloned().collect()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_and_scripts_are_read_and_invalid_files_have_none() {
        let dir = tempfile::tempdir().unwrap();
        assert!(targets(dir.path()).is_empty() && scripts(dir.path()).is_empty());
        std::fs::write(
            dir.path().join("Makefile"),
            "CC := gcc\nA=b:c\nall: build\nbuild test:\n\techo a:b\n%.o: %.c\n.PHONY: all\n",
        )
        .unwrap();
        assert_eq!(targets(dir.path()), ["all", "build", "test"]);
        std::fs::write(dir.path().join("package.json"), r#"{"scripts": {"build": "x", "test": "y"}}"#).unwrap();
        assert_eq!(scripts(dir.path()), ["build", "test"]);
        std::fs::write(dir.path().join("package.json"), "[1").unwrap();
        assert!(scripts(dir.path()).is_empty());
    }
}
