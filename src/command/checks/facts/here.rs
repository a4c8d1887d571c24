//! What is in this folder, and what is not: a folder given where a file belongs, and a file that nobody spoke of.

use super::edit::{Edits, warning};
use super::input::files;
use super::words::written;
use super::{CheckContext, made};
use caro_shell::{Finding, Invocation, Word};
use std::path::{Path, PathBuf};

/// The most names that are told as there.
const TOLD: usize = 6;
/// The most entries of a folder that are looked at.
const LOOKED_AT: usize = 500;

pub(super) fn check(it: &CheckContext) -> Vec<Finding> {
    let Some(cwd) = it.cwd else { return Vec::new() };
    let commands = &it.script.commands;
    // where it runs in the end is not known then
    if commands.iter().any(|c| matches!(c.name(), Some("cd" | "pushd" | "ssh")) || c.remote) {
        return Vec::new();
    }
    let plain = |c: &&Invocation| c.inside.is_none() && c.via.is_empty();
    let found = |c| folder(it, c, cwd).or_else(|| nowhere(it, c, cwd)).or_else(|| further_down(it, c, cwd));
    commands.iter().filter(plain).filter_map(found).collect()
}

/// `grep x logs`, where `logs` is a folder.
fn folder(it: &CheckContext, command: &Invocation, cwd: &Path) -> Option<Finding> {
    const FLAGS: [char; 3] = ['r', 'R', 'd'];
    let file = files(command)?.into_iter().find(|w| w.value.as_ref().is_some_and(|v| cwd.join(v).is_dir()))?;
    let (name, program) = (command.name()?, command.words.first()?);
    let why = format!("{} is a folder, and {name} reads files", file.raw);
    if !name.ends_with("grep") {
        return Some(warning("is-folder", file, why, None));
    }
    let told = FLAGS.iter().any(|f| command.has_option(Some(*f), "recursive")) || it.script.text.contains("--dir");
    let fix = Edits::new(it.script).after(program, " -r").done();
    (!told).then(|| warning("is-folder", file, format!("{why}: -r reads all in it"), fix))
}

/// `grep 500 access.log`, where there is none, and nobody spoke of it.
fn nowhere(it: &CheckContext, command: &Invocation, cwd: &Path) -> Option<Finding> {
    let request = it.request.to_lowercase();
    let is_missing = |w: &&Word| {
        let Some(name) = w.value.as_deref().filter(|v| !v.starts_with('/') && !v.is_empty()) else { return false };
        let last = name.rsplit('/').next().unwrap_or(name).to_lowercase();
        !request.contains(&last) && !made(it.script, command, name) && matches!(cwd.join(name).try_exists(), Ok(false))
    };
    let file = files(command)?.into_iter().find(is_missing).filter(|_| !request.is_empty())?;
    let there = alike(cwd, &file.text);
    let mut finding = warning("no-such-file", file, format!("there is no {} here", file.raw), None);
    if !there.is_empty() {
        finding.evidence = vec![format!("here are: {}", there.join(" "))];
    }
    Some(finding)
}

/// `sort people.csv` where the only one is `data/people.csv`: a file that the request names without saying where it is.
fn further_down(it: &CheckContext, command: &Invocation, cwd: &Path) -> Option<Finding> {
    let is_sought = |w: &&Word| {
        let Some(name) = w.value.as_deref().filter(|v| !v.contains('/') && Path::new(v).extension().is_some()) else {
            return false;
        };
        written(it.request).any(|word| word == name)
            && !made(it.script, command, name)
            && matches!(cwd.join(name).try_exists(), Ok(false))
    };
    let writes = command.redirects.iter().any(|r| r.writes()) || command.has_option(Some('i'), "in-place");
    let file = files(command)?.into_iter().find(is_sought).filter(|_| !writes)?;
    let there = super::only(holding(cwd, &file.text).into_iter())?;
    let path = there.strip_prefix(cwd).ok()?.to_str().filter(|path| is_plain(path))?;
    let fix = Edits::new(it.script).replace(file, path).done();
    Some(warning("no-such-file", file, format!("there is no {} here, and one in {path}", file.raw), fix))
}

/// The files of this name in the folders of this one, and in those in them.
fn holding(cwd: &Path, name: &str) -> Vec<PathBuf> {
    let folders = |folder: &Path| -> Vec<PathBuf> {
        let read = std::fs::read_dir(folder).into_iter().flatten().take(LOOKED_AT).flatten();
        let is_hidden = |e: &std::fs::DirEntry| e.file_name().to_string_lossy().starts_with('.');
        let is_folder = |e: &std::fs::DirEntry| e.file_type().is_ok_and(|kind| kind.is_dir());
        read.filter(|e| is_folder(e) && !is_hidden(e)).map(|e| e.path()).collect()
    };
    let near = folders(cwd);
    let far: Vec<PathBuf> =
        near.iter().take(LOOKED_AT / 10).flat_map(|folder| folders(folder)).take(LOOKED_AT).collect();
    near.iter().chain(&far).map(|folder| folder.join(name)).filter(|path| path.is_file()).collect()
}

/// Files of this folder, and of those in it, that end as this name does.
fn alike(cwd: &Path, name: &str) -> Vec<String> {
    let Some(ending) = Path::new(name).extension() else { return Vec::new() };
    let entries = |folder: &Path| -> Vec<std::path::PathBuf> {
        let read = std::fs::read_dir(folder).into_iter().flatten().take(LOOKED_AT);
        read.filter_map(|e| Some(e.ok()?.path())).collect()
    };
    let mut paths = entries(cwd);
    let folders: Vec<_> = paths.iter().filter(|p| p.is_dir() && !p.is_symlink()).take(TOLD).cloned().collect();
    paths.extend(folders.iter().flat_map(|folder| entries(folder)));
    let found = paths.iter().filter(|p| p.extension() == Some(ending));
    let mut names: Vec<String> =
        found.filter_map(|p| Some(p.strip_prefix(cwd).ok()?.to_str()?.to_owned())).filter(|n| is_plain(n)).collect();
    names.sort_unstable();
    names.truncate(TOLD);
    names
}

/// True for a name that can be told to a model as it is.
fn is_plain(name: &str) -> bool {
    name.chars().all(|c| c.is_alphanumeric() || "._-/".contains(c))
}

#[cfg(test)]
mod tests {
    use super::super::tests::findings_in;
    use super::*;

    /// What is found in a folder with `logs/boot.log` and `a.txt`.
    fn found(request: &str, command: &str) -> Option<Finding> {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("logs")).unwrap();
        std::fs::write(dir.path().join("logs/boot.log"), "x").unwrap();
        std::fs::write(dir.path().join("a.txt"), "x").unwrap();
        findings_in(Some(dir.path()), check, request, command).into_iter().next()
    }

    #[test]
    fn a_folder_is_no_file() {
        let fix = |command| found("lines with x in logs", command).map(|f| (f.id, f.fix));
        assert_eq!(fix("grep -n x logs"), Some(("is-folder".into(), Some("grep -r -n x logs".into()))));
        assert_eq!(fix("cat logs | grep x"), Some(("is-folder".into(), None)));
        for right in
            ["grep -rn x logs", "grep x a.txt", "grep -R x logs", "cd .. && grep x logs", "grep -d skip x logs"]
        {
            assert_eq!(fix(right), None, "{right}");
        }
    }

    #[test]
    fn a_file_that_nobody_spoke_of_has_to_be_there() {
        let finding = found("count requests with status 500 in the log files", "grep -c 500 access.log").unwrap();
        assert_eq!(
            (finding.id.as_str(), finding.evidence),
            ("no-such-file", vec!["here are: logs/boot.log".to_owned()])
        );
        let path = |request, command| found(request, command).and_then(|f| f.fix);
        let known = "show the first lines of boot.log";
        assert_eq!(path(known, "head boot.log").as_deref(), Some("head logs/boot.log"));
        for (request, command) in [
            (known, "sed -i 1d boot.log"),
            (known, "cp a.txt boot.log && head boot.log"),
            (known, "head a.txt"),
            ("show the first lines of the log", "head boot.log"),
        ] {
            assert_eq!(path(request, command), None, "{request}: {command}");
        }
        for (request, right) in [
            ("count 500 in access.log", "grep -c 500 access.log"),
            ("count 500 in the log", "grep -c 500 logs/boot.log"),
            ("sort a.txt", "sort a.txt > b.txt && cat b.txt"),
            ("show it", "curl -o page https://example.org && cat page"),
            ("", "cat b.txt"),
            ("users", "cut -d: -f1 /etc/nowhere"),
        ] {
            assert_eq!(found(request, right).map(|f| f.id), None, "{right}");
        }
    }
}
