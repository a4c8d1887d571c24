//! What a listing is to show: hidden files, or only them; only folders; all about each file, or its mode in digits.

use super::edit::{Edits, is_ls_cluster, ls_cluster_with, warning, without};
use super::words::Words;
use super::{CheckContext, find};
use crate::shell::{Finding, Invocation, Userland, Word};

pub(super) fn check(it: &CheckContext) -> Vec<Finding> {
    let words = Words::of(it.request);
    let found = hidden(it, &words).or_else(|| only_hidden(it, &words)).or_else(|| only_folders(it, &words));
    found.into_iter().chain(long(it, &words)).chain(octal(it, &words)).collect()
}

/// `ls -a` for "hidden files only".
fn only_hidden(it: &CheckContext, words: &Words) -> Option<Finding> {
    const SAID: [&str; 8] = [
        "only hidden",
        "hidden files only",
        "only the hidden",
        "just hidden",
        "just the hidden",
        "hidden ones only",
        "nothing but hidden",
        "hidden only",
    ];
    let [ls] = it.script.commands.as_slice() else { return None };
    if ls.name() != Some("ls") || !words.say(&SAID) {
        return None;
    }
    let all =
        ls.args().iter().find(|w| is_ls_cluster(w) && w.text.contains(['a', 'A']) && !w.text.contains(['R', 'd']))?;
    let letters = format!("{}d", without(&without(&all.raw, 'a'), 'A').trim_start_matches('-'));
    let edits = Edits::new(it.script).replace(all, &format!("-{letters}"));
    const OWN: &str = ".[!.]*";
    let fix = match ls.operands().collect::<Vec<_>>()[..] {
        [] => edits.after(ls.words.last()?, &format!(" {OWN}")).done(),
        [one] if !one.glob && !one.quoted => {
            edits.after(one, if one.raw.ends_with('/') { OWN } else { "/.[!.]*" }).done()
        }
        _ => return None,
    };
    Some(warning("only-hidden", all, "ls -a lists all files, hidden or not", fix))
}

/// `ls -d *` for "only folders".
fn only_folders(it: &CheckContext, words: &Words) -> Option<Finding> {
    const FOLDERS: [&str; 4] = ["directories", "folders", "subdirectories", "subfolders"];
    let ls = ls(it)?;
    let asked = words.list().iter().any(|w| FOLDERS.contains(&w.as_str())) && !words.say(&["files"]);
    let flat = ls_cluster_with(ls, 'd').is_some();
    let all = ls.operands().find(|w| !w.quoted && (w.raw == "*" || w.raw.ends_with("/*")))?;
    let fix = Edits::new(it.script).after(all, "/").done();
    (asked && flat)
        .then(|| warning("only-folders", all, "this lists files, too: a slash at the end leaves only folders", fix))
}

/// `ls -l a` for "its permissions in octal".
fn octal(it: &CheckContext, words: &Words) -> Option<Finding> {
    let (ls, rest) = it.script.commands.split_first()?;
    let asked = words.say(&["octal"])
        && words
            .list()
            .iter()
            .any(|w| matches!(w.as_str(), "permission" | "permissions" | "mode" | "modes" | "rights"));
    let plain = rest.iter().all(|c| matches!(c.name(), Some("awk" | "cut"))) && ls.name() == Some("ls");
    let [file] = ls.operands().collect::<Vec<_>>()[..] else { return None };
    let told = it.script.text.contains("stat");
    let form = if it.target.userland == Userland::Bsd { "-f '%Lp %N'" } else { "-c '%a %n'" };
    (asked && plain && !told).then(|| {
        let fix = Some(format!("stat {form} {}", file.raw));
        warning("octal-mode", file, "ls has no digits for permissions: stat has", fix)
    })
}

/// The one `ls` of a script, where what it lists is printed as it is, or only cut and sorted.
fn ls<'a>(it: &CheckContext<'a>) -> Option<&'a Invocation> {
    let (ls, rest) = it.script.commands.split_first()?;
    let plain = rest.iter().all(|c| matches!(c.name(), Some("head" | "tail" | "sort" | "wc")));
    (ls.name() == Some("ls") && plain).then_some(ls)
}

/// `ls` for "including hidden files".
fn hidden(it: &CheckContext, words: &Words) -> Option<Finding> {
    const SAID: [&str; 9] = [
        "including hidden",
        "including the hidden",
        "including all hidden",
        "include hidden",
        "including dotfiles",
        "hidden files too",
        "hidden ones too",
        "hidden files as well",
        "even hidden",
    ];
    let ls = ls(it).filter(|_| {
        words.say(&SAID) && !words.say(&["not including hidden", "not include hidden", "don't include hidden"])
    })?;
    let shown = |w: &Word| is_ls_cluster(w) && w.text.contains(['a', 'A', 'f']) || w.text.starts_with("--a");
    let program = ls.words.first()?;
    let fix = Edits::new(it.script).after(program, " -A").done();
    (!ls.args().iter().any(shown)).then(|| warning("hidden-too", program, "ls leaves out hidden files without -A", fix))
}

/// `ls -t` for "a long listing".
fn long(it: &CheckContext, words: &Words) -> Option<Finding> {
    const SAID: [&str; 7] = [
        "long listing",
        "long list format",
        "long format",
        "long listings",
        "detailed listing",
        "in long form",
        "long form",
    ];
    if !words.say(&SAID) || words.negate() {
        return None;
    }
    const WHY: &str = "a long listing is asked for, and this prints names only";
    if let Some(search) = find(it.script) {
        let tells = |w: &Word| w.text.starts_with("-exec") || w.text.starts_with("-print") || w.text.ends_with("ls");
        let alone = it.script.commands.len() == 1 && !search.words.iter().any(tells);
        let fix = Edits::new(it.script).after(search.words.last()?, " -exec ls -ld {} +").done();
        return alone.then(|| warning("long-listing", &search.words[0], WHY, fix));
    }
    let ls = ls(it)?;
    let told = |w: &Word| is_ls_cluster(w) && w.text.contains(['l', 'g', 'n', 'o']) || w.text.starts_with("--format");
    let program = ls.words.first()?;
    let one = ls_cluster_with(ls, '1');
    let edits = Edits::new(it.script);
    let fix = match one {
        Some(cluster) => edits.replace(cluster, &cluster.raw.replace('1', "l")).done(),
        None => edits.after(program, " -l").done(),
    };
    (!ls.args().iter().any(told)).then(|| warning("long-listing", program, WHY, fix))
}

#[cfg(test)]
mod tests {
    use super::super::tests::findings;
    use super::*;

    #[test]
    fn hidden_files_and_long_listings_are_shown() {
        let fix = |request, command| findings(check, request, command).into_iter().next().and_then(|f| f.fix);
        for (request, wrong, right) in [
            ("list all files including hidden ones", "ls docs", "ls -A docs"),
            ("everything in docs, including hidden files, recursively", "ls -R docs", "ls -A -R docs"),
            ("a long listing of docs, newest first", "ls -1t docs", "ls -lt docs"),
            ("long listing of the c files", "find . -name '*.c'", "find . -name '*.c' -exec ls -ld {} +"),
            ("list docs in long format", "ls docs", "ls -l docs"),
            ("show only hidden files", "ls -a", "ls -d .[!.]*"),
            ("hidden files only, with details, of docs", "ls -la docs", "ls -ld docs/.[!.]*"),
            ("list only the folders", "ls -d *", "ls -d */"),
            ("directories in docs", "ls -ld docs/*", "ls -ld docs/*/"),
            ("permissions of a.txt in octal", "ls -l a.txt | awk '{print $1}'", "stat -c '%a %n' a.txt"),
        ] {
            assert_eq!(fix(request, wrong).as_deref(), Some(right));
            assert_eq!(fix(request, right), None);
        }
        for (request, right) in [
            ("list all files including hidden ones", "ls -la"),
            ("list all files including hidden ones", "find . -type f"),
            ("files, not including hidden ones", "ls"),
            ("a long listing of the c files", "find . -name '*.c' -ls"),
            ("the longest listing", "ls"),
            ("long listing", "ls -og"),
            ("hidden files", "ls -a"),
            ("files and folders", "ls -d *"),
            ("permissions of a.txt", "ls -l a.txt"),
        ] {
            assert_eq!(fix(request, right), None, "{right}");
        }
    }
}
