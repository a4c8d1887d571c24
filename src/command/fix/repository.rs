//! Branches, tags and remotes of a repository, read from its files.

use super::complaint::{self, Kind};
use super::near::nearest;
use super::{Case, Class, Repair, repair};
use caro_base::files;
use std::path::{Path, PathBuf};

/// The most bytes of a file of git's that are read, and the most names.
const LONGEST: u64 = 4 << 20;
const MOST: usize = 10_000;
/// Subcommands whose operands are branches before they are files.
const OF_BRANCHES: [&str; 12] =
    ["checkout", "switch", "merge", "rebase", "branch", "log", "cherry-pick", "push", "fetch", "pull", "reset", "show"];

/// The nearest branch, tag, remote or file.
pub(super) fn unknown(case: &Case) -> Option<Repair> {
    if let Some(complaint) = case.first(Kind::NoRemote) {
        let word = case.word(&complaint.name)?;
        let remotes = remotes(&folder(case.facts.cwd)?);
        let meant = nearest(&word.text, remotes.iter().map(String::as_str), |_| false);
        let only = if let [only] = &remotes[..] { Some(only.as_str()) } else { None };
        let meant = meant.or(only)?;
        let why = format!("there is no remote {}, there is {meant}", word.text);
        return repair(Class::Reference, case.edits().replace(word, meant), why);
    }
    let complaint = case.first(Kind::NoReference)?;
    let word = case.word(&complaint.name)?;
    let names = references(&folder(case.facts.cwd)?);
    let offers = complaint::offers(case.stderr);
    let near = |names: &[String]| nearest(&word.text, names.iter().map(String::as_str), |_| false).map(str::to_owned);
    let branch = near(&names).or_else(|| near(&offers));
    let file = case.facts.nearest_path(&word.text);
    let verb = case.commands().find(|c| c.name() == Some("git")).and_then(|c| c.operands().next());
    let is_of_branches = verb.is_some_and(|verb| OF_BRANCHES.contains(&verb.text.as_str()));
    let meant = if is_of_branches { branch.or(file) } else { file.or(branch) }?;
    let why = format!("there is no {}, there is {meant}", word.text);
    repair(Class::Reference, case.edits().replace(word, &case.quoted(&meant)), why)
}

/// The folder in which the repository around a folder keeps its branches.
fn folder(cwd: &Path) -> Option<PathBuf> {
    let found = cwd.ancestors().map(|above| above.join(".git")).find(|path| path.exists())?;
    if found.is_dir() {
        return Some(found);
    }
    // of a linked tree
    let text = files::read_text(&found, LONGEST).ok()?;
    let own = found.parent()?.join(text.trim().strip_prefix("gitdir: ")?);
    let common = files::read_text(&own.join("commondir"), LONGEST).ok();
    Some(common.map_or(own.clone(), |common| own.join(common.trim())))
}

/// The names of branches and tags; of those of a remote also without its name.
fn references(git: &Path) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    let packed = files::read_text(&git.join("packed-refs"), LONGEST).unwrap_or_default();
    let packed = packed.lines().filter_map(|line| line.split_once(" refs/").map(|(_, name)| name.to_owned()));
    let mut loose = Vec::new();
    below(&git.join("refs"), "", &mut loose);
    for name in packed.chain(loose) {
        let Some((kind, name)) = name.split_once('/') else { continue };
        all.push(name.to_owned());
        if kind == "remotes"
            && let Some((_, branch)) = name.split_once('/')
        {
            all.push(branch.to_owned());
        }
    }
    all
}

/// The files below a folder, by their paths in it.
fn below(folder: &Path, name: &str, found: &mut Vec<String>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        if found.len() >= MOST {
            return;
        }
        let Ok(own) = entry.file_name().into_string() else { continue };
        let inner = if name.is_empty() { own } else { format!("{name}/{own}") };
        if entry.path().is_dir() { below(&entry.path(), &inner, found) } else { found.push(inner) }
    }
}

/// The names of the remotes.
fn remotes(git: &Path) -> Vec<String> {
    let text = files::read_text(&git.join("config"), LONGEST).unwrap_or_default();
    let heads = text.lines().filter_map(|line| line.trim().strip_prefix("[remote \"")?.strip_suffix("\"]"));
    heads.map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn names_are_read_from_loose_and_packed_files() {
        let dir = tempfile::tempdir().unwrap();
        let git = dir.path().join(".git");
        fs::create_dir_all(git.join("refs/heads/feature")).unwrap();
        fs::create_dir_all(git.join("refs/remotes/origin")).unwrap();
        for name in ["heads/main", "heads/feature/login", "remotes/origin/next"] {
            fs::write(git.join("refs").join(name), "0").unwrap();
        }
        fs::write(git.join("packed-refs"), "# pack-refs\n01 refs/tags/v1\n^02\n03 refs/heads/old\n").unwrap();
        fs::write(git.join("config"), "[core]\n[remote \"origin\"]\n\turl = x\n").unwrap();
        let inner = dir.path().join("src");
        fs::create_dir(&inner).unwrap();
        let mut names = references(&folder(&inner).unwrap());
        names.sort();
        assert_eq!(names, ["feature/login", "main", "next", "old", "origin/next", "v1"]);
        assert_eq!(remotes(&git), ["origin"]);
        fs::write(inner.join(".git"), "gitdir: ../.git\n").unwrap();
        assert_eq!(references(&folder(&inner).unwrap()).len(), 6);
    }
}
