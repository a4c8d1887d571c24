//! What is in front of the user comes before what is usual: `logs` of this folder before `/var/log`, "My Documents" that is here
//! before `~/Documents`. Only where the request speaks of that folder's name and of nothing else on the path.

use super::Inspected;
use super::edit::{Edits, warning};
use super::place::{is_invented, loses, whole, words};
use super::words::Words;
use crate::shell::{Finding, Word, quote};
use std::path::Path;

/// The most entries of this folder that are looked at.
const LOOKED_AT: usize = 500;

/// Held against a path that nobody wrote, where a folder of its kind is here and the request speaks of it.
pub(super) fn usual_place(it: &Inspected, cwd: &Path) -> Option<Finding> {
    // who says so means the usual place
    const USUAL: [&str; 10] =
        ["system", "systemwide", "kernel", "syslog", "journal", "machine", "computer", "os", "home", "root"];
    let said = Words::of(it.request);
    if said.say(&USUAL) {
        return None;
    }
    let folders = spoken_of(it.request, &said, cwd);
    let (word, folder, rest) = words(it).filter(|w| is_invented(w, it.request)).find_map(|word| {
        let (folder, rest) = folders.iter().find_map(|folder| Some((folder, rest_below(word, folder, &said)?)))?;
        Some((word, folder, rest))
    })?;
    if whole(word).canonicalize().is_ok_and(|path| cwd.canonicalize().is_ok_and(|cwd| path.starts_with(cwd))) {
        return None;
    }
    // of another file that was thought to be there nothing is known
    let is_there = rest.is_empty() || word.glob || cwd.join(folder).join(&rest).exists();
    let name = quote(folder, it.dialect);
    let path = if rest.is_empty() { name } else { format!("{name}/{rest}") };
    let fix = Edits::new(it.script).replace(word, &path).done().filter(|_| is_there && !loses(it, word));
    Some(warning("other-place", word, format!("`{folder}` is in this folder, and this is somewhere else"), fix))
}

/// The folders here of which the request speaks, by their whole name, or in the singular.
fn spoken_of(request: &str, said: &Words, cwd: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(cwd).into_iter().flatten().take(LOOKED_AT).flatten();
    let folders = entries.filter(|e| e.path().is_dir()).filter_map(|e| e.file_name().into_string().ok());
    let request = request.to_lowercase();
    let is_spoken = |name: &String| {
        if name.contains(' ') {
            request.contains(&name.to_lowercase())
        } else {
            said.list().iter().any(|w| alike(w, name))
        }
    };
    let mut names: Vec<String> = folders.filter(|name| !name.starts_with('.')).filter(is_spoken).collect();
    names.sort_unstable();
    names
}

/// What stands below the part of the path that is called as the folder is; `None` if no part is, or if the request speaks of
/// another part too ("the nginx logs").
fn rest_below(word: &Word, folder: &str, said: &Words) -> Option<String> {
    let parts: Vec<&str> = word.text.split('/').collect();
    // "My Documents" is what others call Documents
    let name = folder.rsplit(' ').next().unwrap_or(folder);
    let at = parts.iter().position(|part| alike(part, name))?;
    let is_other = |(i, part): (usize, &&str)| {
        let stem = part.trim_end_matches(|c: char| c.is_ascii_digit());
        i != at && stem.len() > 2 && said.list().iter().any(|w| alike(w, stem))
    };
    (!parts.iter().enumerate().any(is_other)).then(|| parts[at + 1..].join("/"))
}

/// True for the same word, in the singular or the plural.
fn alike(one: &str, other: &str) -> bool {
    let (one, other) = (one.to_lowercase(), other.to_lowercase());
    one.len() > 2 && one.strip_suffix('s').unwrap_or(&one) == other.strip_suffix('s').unwrap_or(&other)
}

#[cfg(test)]
mod tests {
    use super::super::place;
    use super::super::tests::findings_in;

    /// What is proposed in a folder with `logs/app.log`, `My Documents` and `tmp`; empty where it is only told.
    fn fixed(request: &str, command: &str) -> Option<String> {
        let dir = tempfile::tempdir().unwrap();
        for folder in ["logs", "My Documents", "tmp"] {
            std::fs::create_dir(dir.path().join(folder)).unwrap();
        }
        std::fs::write(dir.path().join("logs/app.log"), "x").unwrap();
        let found = findings_in(Some(dir.path()), place::check, request, command);
        found.first().map(|f| f.fix.clone().unwrap_or_default())
    }

    #[test]
    fn a_folder_that_is_here_comes_before_the_usual_one() {
        for (request, wrong, right) in [
            ("count errors in the log files", "grep -c error /var/log/*.log", "grep -c error logs/*.log"),
            ("newest log", "ls -t /var/log | head -n 1", "ls -t logs | head -n 1"),
            ("list the files in My Documents", "ls ~/Documents", "ls 'My Documents'"),
            ("how big is my documents", "du -sh \"$HOME/Documents\"", "du -sh 'My Documents'"),
            ("show the tmp folder", "ls /var/tmp", "ls tmp"),
            // told of, where it is not known which file is meant, or something would be lost
            ("show the log", "cat /var/log/syslog", ""),
            ("delete the log folder", "rm -r /var/log", ""),
        ] {
            assert_eq!(fixed(request, wrong).as_deref(), Some(right), "{wrong}");
            if !right.is_empty() {
                assert_eq!(fixed(request, right), None, "{right}");
            }
        }
    }

    #[test]
    fn what_says_where_it_means_is_left_alone() {
        for (request, right) in [
            ("count errors in /var/log", "grep -c error /var/log/*.log"),
            ("errors in the system logs", "grep error /var/log/syslog"),
            ("errors in the nginx logs", "grep error /var/log/nginx/error.log"),
            ("errors in the apache log", "grep error /var/log/apache2/error.log"),
            ("documents in my home folder", "ls ~/Documents"),
            ("show the downloads", "ls ~/Downloads"),
            ("who has an account", "cut -d: -f1 /etc/passwd"),
            ("list the documents", "ls ~/Documents"),
            ("newest log", "ls -t logs | head -n 1"),
        ] {
            assert_eq!(fixed(request, right), None, "{right}");
        }
    }
}
