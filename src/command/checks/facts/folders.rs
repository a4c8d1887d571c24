//! Finds `scp site box:/var/www` where `site` is a folder: without `-r` it is left out, with only a warning.

use super::CheckContext;
use super::edit::{Edits, warning};
use caro_shell::{Finding, Invocation, Word};

pub(super) fn check(cx: &CheckContext, command: &Invocation) -> Option<Finding> {
    let operands: Vec<&Word> = command.operands().collect();
    // the sources: all operands but the target or the archive
    let (sources, long) = match (command.name()?, operands.as_slice()) {
        ("scp", [sources @ .., _]) => (sources, "recursive"),
        ("zip", [_, sources @ ..]) => (sources, "recurse-paths"),
        _ => return None,
    };
    let is_recursive = ['r', 'R'].iter().any(|letter| command.has_option(Some(*letter), long));
    // `zip` does not read files to delete, test or show entries
    let adds_nothing = command.has_option(Some('d'), "delete")
        || command.args().iter().any(|w| matches!(w.raw.as_str(), "-T" | "-sf"));
    if is_recursive || command.name() == Some("zip") && adds_nothing {
        return None;
    }
    let folder = sources.iter().find(|w| is_folder(cx, w))?;
    let fix = Edits::new(cx.script).insert_after(command.words.first()?, " -r").apply();
    Some(warning(
        "folder-left-out",
        folder,
        format!("{} is a folder: without -r what is in it stays out", folder.text),
        fix,
    ))
}

/// True for an existing folder.
fn is_folder(cx: &CheckContext, word: &Word) -> bool {
    let Some(name) = word.value.as_deref().map(|name| name.trim_end_matches('/')).filter(|name| !name.is_empty())
    else {
        return false;
    };
    cx.cwd.is_some_and(|cwd| !name.contains(':') && cwd.join(name).is_dir())
}

#[cfg(test)]
mod tests {
    use super::super::tests::findings_in;
    use super::*;

    #[test]
    fn a_folder_is_copied_with_its_content() {
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
