//! `scp site box:/var/www` for a folder: without `-r` it is left out, and only a warning tells.

use super::CheckContext;
use super::edit::{Edits, warning};
use super::words::written;
use crate::shell::{Finding, Invocation, Word};

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

/// True for a folder that is here, and for what the request calls one.
fn is_folder(it: &CheckContext, word: &Word) -> bool {
    let Some(name) = word.value.as_deref().map(|name| name.trim_end_matches('/')).filter(|name| !name.is_empty())
    else {
        return false;
    };
    let is_kind = |word: &&str| matches!(word.to_lowercase().as_str(), "folder" | "directory" | "dir");
    let words: Vec<&str> = written(it.request).filter(|w| !w.is_empty()).collect();
    let called = words.windows(2).any(|w| is_kind(&w[0]) && w[1] == name || is_kind(&w[1]) && w[0] == name);
    called || it.cwd.is_some_and(|cwd| !name.contains(':') && cwd.join(name).is_dir())
}

#[cfg(test)]
mod tests {
    use super::super::tests::{findings, findings_in};
    use super::*;

    #[test]
    fn a_folder_is_taken_with_what_is_in_it() {
        let fix = |request: &str, command: &str| findings(check, request, command).into_iter().find_map(|f| f.fix);
        let copy = "copy the folder site to ada@box:/var/www";
        assert_eq!(
            fix(copy, "scp -P 2222 site ada@box:/var/www").as_deref(),
            Some("scp -r -P 2222 site ada@box:/var/www")
        );
        assert_eq!(fix("fetch the logs folder from box", "scp box:logs ."), None, "its name there is another");
        assert_eq!(fix("zip the docs directory", "zip -e docs.zip docs/").as_deref(), Some("zip -r -e docs.zip docs/"));
        for (request, right) in [
            (copy, "scp -r site ada@box:/var/www"),
            (copy, "scp -pr site ada@box:/var/www"),
            (copy, "scp a.txt box:site"),
            ("zip the docs directory", "zip -qr docs.zip docs"),
            ("remove the folder docs from docs.zip", "zip -d docs.zip docs"),
            ("remove the folder docs from docs.zip", "zip -qd docs.zip docs"),
            ("", "scp a.txt box:"),
        ] {
            assert_eq!(fix(request, right), None, "{request}: {right}");
        }
        let here = tempfile::tempdir().unwrap();
        std::fs::create_dir(here.path().join("site")).unwrap();
        assert_eq!(findings_in(Some(here.path()), check, "send site to box", "scp site box:").len(), 1);
    }
}
