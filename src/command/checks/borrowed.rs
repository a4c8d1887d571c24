//! A name that the worked examples have and the request has not: asked to turn "csv to tsv", a small model writes `people.csv`
//! after an example.

use super::Inspected;
use crate::command::library;
use crate::shell::{Finding, Severity};

/// So many of the library's pairs may have been shown.
const SHOWN: usize = 3;

pub(super) fn check(it: &Inspected) -> Vec<Finding> {
    of_script(it).into_iter().collect()
}

fn of_script(it: &Inspected) -> Option<Finding> {
    let (asked, text) = (it.request.to_lowercase(), &it.script.text);
    let shown = library::nearest(it.request, it.target, SHOWN);
    let said = shown.iter().flat_map(|e| e.request.split_whitespace().map(move |word| (word, &e.command)));
    let name = said
        .map(|(word, command)| (word.trim_end_matches([',', ';', ':', '?']), command))
        .filter(|(name, command)| name.len() > 1 && has_name(command, name) && has_name(text, name))
        .map(|(name, _)| name)
        .filter(|name| !asked.contains(&name.to_lowercase()))
        // a file that is there may be the one that is meant, and where one is named another may be what comes of it
        .find(|name| {
            let is_missing = it.cwd.is_some_and(|cwd| !cwd.join(name).exists());
            text.contains(&format!("{name}/")) || is_missing && !asked.split_whitespace().any(is_file)
        })?;
    let at = text.find(name)?;
    let folder = format!("{name}/");
    Some(Finding {
        id: "borrowed-name".into(),
        severity: Severity::Warning,
        token: name.to_owned(),
        span: Some(at..at + name.len()),
        why: format!("the request does not speak of {name}"),
        evidence: Vec::new(),
        fix: text.contains(&folder).then(|| text.replace(&folder, "")),
    })
}

/// True if the text has this as the name of a file, or of a folder that something is in.
fn has_name(text: &str, name: &str) -> bool {
    let is_name = name.chars().all(|c| c.is_alphanumeric() || "._-".contains(c));
    is_name
        && text.match_indices(name).any(|(at, _)| {
            let (before, after) = (&text[..at], &text[at + name.len()..]);
            let whole = !before.ends_with(|c: char| c.is_alphanumeric() || "./~*:@".contains(c));
            whole && (after.starts_with('/') || is_file(name) && !after.starts_with(char::is_alphanumeric))
        })
}

/// True for `notes.txt`, but not for `.txt`.
fn is_file(name: &str) -> bool {
    name.trim_matches('.').contains('.')
}

#[cfg(test)]
mod tests {
    use super::super::tests::findings_in;
    use super::*;

    #[test]
    fn names_of_the_examples_are_not_the_requests() {
        let here = tempfile::tempdir().unwrap();
        let found =
            |request: &str, command: &str| findings_in(Some(here.path()), check, request, command).into_iter().next();
        let named = found("csv to tsv", "tr ',' '\\t' < people.csv");
        assert_eq!(named.map(|f| f.fix), Some(None), "which file is meant nobody knows");
        let folder =
            found("rename all .jpeg files to .jpg", "for f in photos/*.jpeg; do mv \"$f\" \"${f%.jpeg}.jpg\"; done");
        assert_eq!(
            folder.and_then(|f| f.fix).as_deref(),
            Some("for f in *.jpeg; do mv \"$f\" \"${f%.jpeg}.jpg\"; done")
        );
        for (request, right) in [
            (
                "rename all .jpeg files in photos to .jpg",
                "for f in photos/*.jpeg; do mv \"$f\" \"${f%.jpeg}.jpg\"; done",
            ),
            ("convert people.csv to tsv", "tr ',' '\\t' < people.csv"),
            ("csv to tsv", "tr ',' '\\t' < *.csv"),
            ("resize photo.jpg to 800px wide", "convert photo.jpg -resize 800x small.jpg"),
            ("save my work without committing", "git stash"),
            ("", "tr ',' '\\t' < people.csv"),
        ] {
            assert_eq!(found(request, right), None, "{request}: {right}");
        }
        std::fs::write(here.path().join("people.csv"), "").unwrap();
        assert_eq!(found("csv to tsv", "tr ',' '\\t' < people.csv"), None, "it is there");
    }
}
