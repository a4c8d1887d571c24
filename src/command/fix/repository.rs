//! Repairs names of branches, tags and remotes, which are read from the repository's files.

use super::complaint::{self, Kind};
use super::near::nearest;
use super::{Case, Class, Repair, repair};
use caro_base::files;
use std::path::{Path, PathBuf};

/// Most bytes of one of git's files.
const MAX_FILE: u64 = 4 << 20;
/// Most names of references.
const MAX_NAMES: usize = 10_000;
/// Subcommands whose operands are rather branches than files.
const BRANCH_VERBS: [&str; 12] =
    ["checkout", "switch", "merge", "rebase", "branch", "log", "cherry-pick", "push", "fetch", "pull", "reset", "show"];

/// Replaces an unknown name by the nearest branch, tag, remote or file.
pub(super) fn unknown(case: &Case) -> Option<Repair> {
    if let Some(complaint) = case.first(Kind::NoRemote) {
        let word = case.word(&complaint.name)?;
        let remotes = remotes(&folder(case.facts.cwd)?);
        let meant = nearest(&word.text, remotes.iter().map(String::as_str), |_| false);
        let only_remote = if let [only] = &remotes[..] { Some(only.as_str()) } else { None };
        let meant = meant.or(only_remote)?;
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
    let takes_branch = verb.is_some_and(|verb| BRANCH_VERBS.contains(&verb.text.as_str()));
    let meant = if takes_branch { branch.or(file) } else { file.or(branch) }?;
    let why = format!("there is no {}, there is {meant}", word.text);
    repair(Class::Reference, case.edits().replace(word, &case.quoted(&meant)), why)
}

/// Returns the folder in which the repository around `cwd` stores its references.
fn folder(cwd: &Path) -> Option<PathBuf> {
    let found = cwd.ancestors().map(|above| above.join(".git")).find(|path| path.exists())?;
    if found.is_dir() {
        return Some(found);
    }
    // `.git` is a file in a linked worktree
    let text = files::read_text(&found, MAX_FILE).ok()?;
    let own = found.parent()?.join(text.trim().strip_prefix("gitdir: ")?);
    let common = files::read_text(&own.join("commondir"), MAX_FILE).ok();
    Some(common.map_or(own.clone(), |common| own.join(common.trim())))
}

/// Returns the names of branches and tags; those of remotes also without the remote's name.
fn references(git: &Path) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    let packed = files::read_text(&git.join("packed-refs"), MAX_FILE).unwrap_or_default();
    let packed = packed.lines().filter_map(|line| line.split_once(" refs/").map(|(_, name)| name.to_owned()));
    let mut loose = Vec::new();
    collect_files(&git.join("refs"), "", &mut loose);
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

/// Collects the files below a folder, by their relative paths.
fn collect_files(folder: &Path, name: &str, found: &mut Vec<String>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        if found.len() >= MAX_NAMES {
            return;
        }
        let Ok(own) = entry.file_name().into_string() else { continue };
        let inner = if name.is_empty() { own } else { format!("{name}/{own}") };
        if entry.path().is_dir() { collect_files(&entry.path(), &inner, found) } else { found.push(inner) }
    }
}

/// Returns the names of the remotes.
fn remotes(git: &Path) -> Vec<String> {
    let text = files::read_text(&git.join("config"), MAX_FILE).unwrap_or_default();
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
