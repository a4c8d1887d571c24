//! Finds the files that a command line may write: in each folder that it may be in then, and through the links that it
//! makes. A wrong guess only names a file more; a missing one lets it be written unseen.

use crate::tool::{home, normal};
use caro_shell::effects::entered_folders;
use caro_shell::{Effect, Invocation, Script};
use std::ops::Range;
use std::path::{Path, PathBuf};

/// Most folders that a command is looked for in.
const MAX_FOLDERS: usize = 16;

/// Returns the folders that the script may be in at a part of its text, the working folder first: each `cd` before may
/// start from any of them, as those before it may fail or end with their subshell.
pub(super) fn folders_at(script: &Script, part: &Range<usize>, root: &Path) -> Vec<PathBuf> {
    folders_after(&entered_folders(script, part), root)
}

fn folders_after(goals: &[String], root: &Path) -> Vec<PathBuf> {
    let mut folders = vec![root.to_path_buf()];
    for goal in goals.iter().filter(|goal| !goal.contains(['$', '`'])) {
        let next: Vec<PathBuf> = folders.iter().map(|from| normal(from, &home(goal))).collect();
        let new = next.into_iter().filter(|folder| !folders.contains(folder)).collect::<Vec<_>>();
        folders.extend(new);
        folders.truncate(MAX_FOLDERS);
    }
    folders
}

/// Returns the files that an effect of the script may mean by its path.
pub(super) fn files_of(script: &Script, effect: &Effect, path: &str, root: &Path) -> Vec<PathBuf> {
    let mut goals = entered_folders(script, &effect.span);
    // the path has the last `cd` in it, if that leads up
    let has_goal = |goal: &String| goal.starts_with("..") && Path::new(path).starts_with(goal);
    if goals.last().is_some_and(has_goal) {
        goals.pop();
    }
    let mut files: Vec<PathBuf> = folders_after(&goals, root).iter().map(|from| normal(from, &home(path))).collect();
    for (link, target) in links_before(script, &effect.span, root) {
        let behind: Vec<PathBuf> =
            files.iter().filter_map(|file| Some(target.join(file.strip_prefix(&link).ok()?))).collect();
        files.extend(behind.iter().map(|file| normal(file, "")));
    }
    files.sort();
    files.dedup();
    files
}

/// Returns the links that the script may make before a part of its text, each with its target.
fn links_before(script: &Script, part: &Range<usize>, root: &Path) -> Vec<(PathBuf, PathBuf)> {
    let mut found = Vec::new();
    for command in script.commands.iter().filter(|c| matches!(c.name(), Some("ln" | "gln"))) {
        let Some(last) = command.words.last().filter(|last| last.span.end <= part.start) else { continue };
        for folder in folders_at(script, &last.span, root) {
            found.extend(links_of(command, &folder));
        }
    }
    found
}

/// Returns the links that `ln` may make in a folder.
fn links_of(command: &Invocation, folder: &Path) -> Vec<(PathBuf, PathBuf)> {
    let names: Vec<&str> = command.operands().map(|word| word.text.as_str()).collect();
    let (targets, last) = match names.split_last() {
        Some((last, targets)) if !targets.is_empty() => (targets, *last),
        _ => (names.as_slice(), "./"),
    };
    let place = normal(folder, &home(last));
    // the last operand is the link, or the folder that it comes into
    let has_name = !last.ends_with('/') && Path::new(last).file_name().is_some();
    let is_folder = targets.len() > 1 || !has_name || place.is_dir();
    let mut found = Vec::new();
    for target in targets {
        let below = Path::new(target).file_name().map(|name| place.join(name));
        let itself = if is_folder { None } else { Some(place.clone()) };
        for link in itself.into_iter().chain(below) {
            let from = if command.has_option(Some('s'), "symbolic") { link.parent() } else { Some(folder) };
            found.extend(from.map(|from| (link.clone(), normal(from, &home(target)))));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use caro_shell::effects::Kind;
    use caro_shell::{Dialect, effects, parse};

    /// Returns the files that a command may write, below the working folder `/w`.
    fn written(command: &str) -> Vec<String> {
        let script = parse(command, Dialect::Bash);
        let writes = |e: &&Effect| matches!(e.kind, Kind::Overwrite | Kind::Append | Kind::Create);
        let all = effects(&script);
        let files = all
            .iter()
            .filter(writes)
            .filter_map(|effect| Some(files_of(&script, effect, effect.path.as_deref()?, Path::new("/w"))));
        files.flatten().map(|file| file.display().to_string()).collect()
    }

    #[test]
    fn a_file_is_sought_in_each_folder_of_the_script() {
        for (command, file) in [
            ("echo x > hooks/a", "/w/hooks/a"),
            ("cd .git && echo x > hooks/a", "/w/.git/hooks/a"),
            ("pushd .git; echo x > hooks/a", "/w/.git/hooks/a"),
            ("cd .git; cd hooks; echo x > a", "/w/.git/hooks/a"),
            ("(cd sub && make); cd .git && echo x > hooks/a", "/w/.git/hooks/a"),
            ("cd sub; cd ../.git; echo x > hooks/a", "/w/.git/hooks/a"),
            ("d=.git; cd \"$d\" && echo x > hooks/a", "/w/.git/hooks/a"),
            ("cd $PWD/.git && echo x > hooks/a", "/w/.git/hooks/a"),
            ("env -C .git tee hooks/a", "/w/.git/hooks/a"),
            ("cd .git && cp /x/a hooks/a", "/w/.git/hooks/a"),
            ("bash -c 'cd .git; echo x > hooks/a'", "/w/.git/hooks/a"),
        ] {
            assert!(written(command).iter().any(|own| own == file), "{command}: {:?}", written(command));
        }
        // a path that has the folder in it already is not sought above it
        assert_eq!(written("cd .. && echo x > a"), ["/a"]);
        assert_eq!(written("cd /srv && echo x > a"), ["/srv/a"]);
        assert_eq!(written("echo x > a; cd sub"), ["/w/a"]);
    }

    #[test]
    fn a_file_is_sought_behind_the_links_of_the_script() {
        for command in [
            "ln -s .git/hooks/a x; echo x > x",
            "ln -sf .git/hooks/a; echo x > a",
            "ln .git/hooks/a x && echo x >> x",
            "ln -s .git y && cp a y/hooks/a",
            "ln -s ../.git sub/y && cp a sub/y/hooks/a",
            "cd .git; ln -s hooks y; cp a y/a",
        ] {
            let files = written(command);
            assert!(files.iter().any(|own| own == "/w/.git/hooks/a"), "{command}: {files:?}");
        }
        // making a link writes nothing behind it, nor beside it
        assert_eq!(written("echo x > a; ln -s /usr/bin/python3 a"), ["/w/a", "/w/a"]);
        for command in ["ln -s /usr/share/x", "ln -s /usr/share/x .", "ln -s /usr/share/x /usr/share/y sub"] {
            let files = written(&format!("{command}; echo x > sub/a; echo x > b"));
            assert!(files.iter().all(|own| own.starts_with("/w")), "{command}: {files:?}");
        }
    }
}
