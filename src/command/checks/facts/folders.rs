//! `scp site box:/var/www` for a folder: without `-r` it is left out, and only a warning tells.

use super::CheckContext;
use super::edit::{Edits, warning};
use caro_shell::{Finding, Invocation, Word};

pub(super) fn check(it: &CheckContext) -> Vec<Finding> {
    it.script.commands.iter().filter_map(|c| of_command(it, c)).collect()
}

fn of_command(it: &CheckContext, command: &Invocation) -> Option<Finding> {
    let operands: Vec<&Word> = command.operands().collect();
    // what is taken: all but the archive, or where it goes to
    let (taken, long) = match (command.name()?, operands.as_slice()) {
        ("scp", [taken @ .., _]) => (taken, "recursive"),
        ("zip", [_, taken @ ..]) => (taken, "recurse-paths"),
        _ => return None,
    };
    let deep = ['r', 'R'].iter().any(|letter| command.has_option(Some(*letter), long));
    // an entry that is deleted, or is told about, is none that is read
    let told = command.has_option(Some('d'), "delete")
        || command.args().iter().any(|w| matches!(w.raw.as_str(), "-T" | "-sf"));
    let other = command.name() == Some("zip") && told;
    let folder = taken.iter().find(|w| !deep && !other && is_folder(it, w))?;
    let fix = Edits::new(it.script).after(command.words.first()?, " -r").done();
    Some(warning(
        "folder-left-out",
        folder,
        format!("{} is a folder: without -r what is in it stays out", folder.text),
        fix,
    ))
}

/// True for a folder that is here.
fn is_folder(it: &CheckContext, word: &Word) -> bool {
    let Some(name) = word.value.as_deref().map(|name| name.trim_end_matches('/')).filter(|name| !name.is_empty())
    else {
        return false;
    };
    it.cwd.is_some_and(|cwd| !name.contains(':') && cwd.join(name).is_dir())
}

#[cfg(test)]
mod tests {
    use super::super::tests::findings_in;
    use super::*;

    #[test]
    fn a_folder_is_taken_with_what_is_in_it() {
        let here = tempfile::tempdir().unwrap();
        for folder in ["site", "docs"] {
            std::fs::create_dir(here.path().join(folder)).unwrap();
        }
        let fix = |command: &str| findings_in(Some(here.path()), check, "", command).into_iter().find_map(|f| f.fix);
        for (wrong, right) in [
            ("scp -P 2222 site ada@box:/var/www", "scp -r -P 2222 site ada@box:/var/www"),
            ("zip -e docs.zip docs/", "zip -r -e docs.zip docs/"),
        ] {
            assert_eq!(fix(wrong).as_deref(), Some(right));
            assert_eq!(fix(right), None);
        }
        for right in [
            "scp -pr site ada@box:/var/www",
            "scp a.txt box:site",
            "scp box:logs .",
            "zip -qr docs.zip docs",
            "zip -d docs.zip docs",
            "zip -qd docs.zip docs",
        ] {
            assert_eq!(fix(right), None, "{right}");
        }
    }
}
