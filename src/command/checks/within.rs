//! "Everything in X" is not X: the folder itself stays where it is.

use super::Inspected;
use super::edit::{Edits, warning};
use super::words::{Words, bare};
use crate::shell::{Finding, Invocation, Word};
use std::path::Path;

pub(super) fn check(it: &Inspected) -> Vec<Finding> {
    of_script(it).into_iter().collect()
}

fn of_script(it: &Inspected) -> Option<Finding> {
    let (cwd, [command]) = (it.cwd?, it.script.commands.as_slice()) else { return None };
    let said = Words::of(it.request);
    if said.negate() || said.say(&["itself", "too", "as well"]) {
        return None;
    }
    let operands: Vec<&Word> = command.operands().collect();
    let is_meant = |w: &&&Word| {
        let name = w.value.as_deref().map_or("", |name| name.trim_end_matches('/'));
        says_within(it.request, name) && cwd.join(name).is_dir()
    };
    let folder = operands.iter().find(is_meant).filter(|_| command.redirects.is_empty())?;
    match command.name()? {
        "rm" => emptied(it, command, folder, &operands),
        "mv" => moved(it, command, folder, &operands),
        "cp" => copied(it, folder, &operands, cwd),
        _ => None,
    }
}

/// "everything in logs", "the contents of logs": what the folder holds, whatever it is.
fn says_within(request: &str, folder: &str) -> bool {
    const ALL: [&str; 2] = ["everything", "contents"];
    const IN: [&str; 6] = ["in", "inside", "of", "within", "under", "from"];
    const BESIDE: [&str; 6] = ["the", "my", "our", "folder", "directory", "called"];
    let words: Vec<String> =
        request.split_whitespace().map(bare).filter(|w| !BESIDE.contains(w)).map(str::to_lowercase).collect();
    let name = folder.to_lowercase();
    !name.is_empty()
        && words
            .windows(3)
            .any(|w| ALL.contains(&w[0].as_str()) && IN.contains(&w[1].as_str()) && w[2].trim_end_matches('/') == name)
}

const WHY: &str = "what is in the folder is meant, and this takes the folder itself";

/// `rm -r logs` for "delete everything in logs".
fn emptied(it: &Inspected, rm: &Invocation, folder: &Word, operands: &[&Word]) -> Option<Finding> {
    let line = rm.words.as_slice();
    let fix = (operands.len() == 1 && rm.via.is_empty())
        .then(|| Edits::new(it.script).span(line, &format!("find {} -mindepth 1 -delete", folder.raw)).done());
    Some(warning("folder-itself", folder, WHY, fix.flatten()))
}

/// `mv logs archive` for "move everything in logs to archive".
fn moved(it: &Inspected, mv: &Invocation, folder: &Word, operands: &[&Word]) -> Option<Finding> {
    let [from, to] = operands else { return None };
    if from.text != folder.text {
        return None;
    }
    let each = format!("find {} -mindepth 1 -maxdepth 1 -exec mv {{}} {} \\;", from.raw.trim_end_matches('/'), to.raw);
    let fix = mv.via.is_empty().then(|| Edits::new(it.script).span(&mv.words, &each).done());
    Some(warning("folder-itself", folder, WHY, fix.flatten()))
}

/// `cp -r logs archive` for "copy everything in logs to archive", where there is an archive: the folder ends up in it.
fn copied(it: &Inspected, folder: &Word, operands: &[&Word], cwd: &Path) -> Option<Finding> {
    let [from, to] = operands else { return None };
    let is_there = to.value.as_deref().is_some_and(|to| cwd.join(to).is_dir());
    if from.text != folder.text || !is_there {
        return None;
    }
    let fix = Edits::new(it.script).replace(folder, &format!("{}/.", folder.raw.trim_end_matches('/'))).done();
    Some(warning("folder-itself", folder, WHY, fix))
}

#[cfg(test)]
mod tests {
    use super::super::tests::findings_in;
    use super::*;

    fn fixed(request: &str, command: &str) -> Option<String> {
        let dir = tempfile::tempdir().unwrap();
        for folder in ["logs", "archive"] {
            std::fs::create_dir(dir.path().join(folder)).unwrap();
        }
        findings_in(Some(dir.path()), check, request, command).first().map(|f| f.fix.clone().unwrap_or_default())
    }

    #[test]
    fn the_folder_stays() {
        for (request, wrong, right) in [
            ("delete everything in logs", "rm -rf logs", "find logs -mindepth 1 -delete"),
            ("remove the contents of the folder logs", "rm -r logs/", "find logs/ -mindepth 1 -delete"),
            (
                "move everything in logs to archive",
                "mv logs archive",
                "find logs -mindepth 1 -maxdepth 1 -exec mv {} archive \\;",
            ),
            ("copy everything from logs into archive", "cp -a logs/ archive", "cp -a logs/. archive"),
        ] {
            assert_eq!(fixed(request, wrong).as_deref(), Some(right), "{wrong}");
            assert_eq!(fixed(request, right), None, "{right}");
        }
    }

    #[test]
    fn where_the_folder_is_meant_or_ends_up_right_it_is_left_alone() {
        for (request, right) in [
            ("delete logs", "rm -rf logs"),
            ("delete everything in logs", "rm -rf logs/*"),
            ("delete everything in logs and logs itself", "rm -rf logs"),
            ("delete everything in other", "rm -rf other"),
            ("copy everything in logs to fresh", "cp -r logs fresh"),
            ("copy logs into archive", "cp -r logs archive"),
            ("move logs into archive", "mv logs archive"),
            ("show everything in logs", "ls logs"),
        ] {
            assert_eq!(fixed(request, right), None, "{right}");
        }
    }
}
