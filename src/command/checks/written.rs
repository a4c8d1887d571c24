//! "Into NAME in the folder DIR", and NAME is written to this folder.

use super::edit::{Edits, warning};
use super::words::bare;
use super::{CheckContext, only};
use crate::shell::{Finding, Invocation, Word};

pub(super) fn check(it: &CheckContext) -> Vec<Finding> {
    of_script(it).into_iter().collect()
}

fn of_script(it: &CheckContext) -> Option<Finding> {
    let (name, folder) = place(it.request)?;
    // who goes there first writes there
    let goes = |c: &Invocation| matches!(c.name(), Some("cd" | "pushd")) || c.args().iter().any(|w| w.text == "-C");
    let here = it.cwd.is_some_and(|cwd| cwd.to_str() == Some(folder.trim_end_matches('/')));
    if here || it.script.commands.iter().any(goes) {
        return None;
    }
    let found = it.script.commands.iter().flat_map(outputs).filter(|w| w.value.as_deref() == Some(name.as_str()));
    let word = only(found)?;
    // what is taken from there is not put there
    let there = format!("{}/{name}", folder.trim_end_matches('/'));
    if it.script.commands.iter().flat_map(|c| c.args()).any(|w| w.text == there) {
        return None;
    }
    let fix = Edits::new(it.script).before(word, &format!("{}/", folder.trim_end_matches('/'))).done();
    Some(warning("other-folder", word, format!("{name} is to be in {folder}, and this puts it into this folder"), fix))
}

/// The words of a command that name what it makes.
fn outputs(command: &Invocation) -> Vec<&Word> {
    let redirects = command.redirects.iter().filter(|r| r.writes()).map(|r| &r.target);
    let operands: Vec<&Word> = command.operands().collect();
    let own: Vec<&Word> = match command.name() {
        Some("touch" | "mkdir" | "tee" | "truncate") => operands,
        Some("zip") => operands.into_iter().take(1).collect(),
        Some("cp" | "mv" | "ln") => operands.into_iter().next_back().into_iter().collect(),
        // `-czf NAME`, `czf NAME`
        Some("tar") => {
            let pair = command.args().windows(2).find(|w| {
                let letters = w[0].text.trim_start_matches('-');
                letters.ends_with('f') && letters.contains('c') && letters.chars().all(|c| c.is_ascii_alphabetic())
            });
            pair.map(|w| &w[1]).into_iter().collect()
        }
        _ => Vec::new(),
    };
    redirects.chain(own).collect()
}

/// The file and the folder of "a file called NAME in the folder /DIR".
fn place(request: &str) -> Option<(String, String)> {
    let words: Vec<&str> = request.split_whitespace().map(bare).collect();
    let plain = |w: &str| w.chars().all(|c| c.is_alphanumeric() || "._-/~".contains(c)) && !w.starts_with('-');
    let places: Vec<(String, String)> = words
        .iter()
        .enumerate()
        .filter_map(|(i, name)| {
            let file = !name.contains('/') && plain(name) && name.chars().any(char::is_alphanumeric);
            let named = i > 0 && matches!(words[i - 1], "named" | "called") || name.trim_end_matches('.').contains('.');
            words.get(i + 1).filter(|w| matches!(**w, "in" | "inside" | "under"))?;
            let folder = words[i + 2..].iter().find(|w| !matches!(**w, "the" | "folder" | "directory"))?;
            let absolute = folder.len() > 1 && folder.starts_with(['/', '~']) && plain(folder);
            (file && named && absolute).then(|| ((*name).to_owned(), (*folder).to_owned()))
        })
        .collect();
    match places.as_slice() {
        [one] => Some(one.clone()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::findings;
    use super::*;

    #[test]
    fn a_file_is_put_where_it_belongs() {
        let fix = |request, command| findings(check, request, command).into_iter().next().and_then(|f| f.fix);
        for (request, wrong, right) in [
            (
                "pack the c files into all.tgz in the folder /srv/out",
                "tar -czf all.tgz *.c",
                "tar -czf /srv/out/all.tgz *.c",
            ),
            ("create a file called notes in ~/docs", "touch notes", "touch ~/docs/notes"),
            ("write the date to a file named day.txt in /srv/out/.", "date > day.txt", "date > /srv/out/day.txt"),
            ("copy a.txt to b.txt in /srv", "cp a.txt b.txt", "cp a.txt /srv/b.txt"),
        ] {
            assert_eq!(fix(request, wrong).as_deref(), Some(right));
            assert_eq!(fix(request, right), None);
        }
        for (request, right) in [
            ("find files called a.txt in /srv", "find /srv -name a.txt"),
            ("create a file called notes in ~/docs", "cd ~/docs && touch notes"),
            ("create a.txt", "touch a.txt"),
            ("create a.txt in docs", "touch a.txt"),
            ("copy a.txt in /srv to b.txt", "cp /srv/a.txt b.txt"),
        ] {
            assert_eq!(fix(request, right), None, "{right}");
        }
    }
}
