//! What a listing is to show: hidden files, and all about each file.

use super::edit::{Edits, is_cluster, warning};
use super::words::Words;
use super::{Inspected, find};
use crate::shell::{Finding, Invocation, Word};

pub(super) fn check(it: &Inspected) -> Vec<Finding> {
    let words = Words::of(it.request);
    hidden(it, &words).into_iter().chain(long(it, &words)).collect()
}

/// The one `ls` of a script, where what it lists is printed as it is, or only cut and sorted.
fn ls<'a>(it: &Inspected<'a>) -> Option<&'a Invocation> {
    let (ls, rest) = it.script.commands.split_first()?;
    let plain = rest.iter().all(|c| matches!(c.name(), Some("head" | "tail" | "sort" | "wc")));
    (ls.name() == Some("ls") && plain).then_some(ls)
}

/// `ls` for "including hidden files".
fn hidden(it: &Inspected, words: &Words) -> Option<Finding> {
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
    let shown = |w: &Word| is_letters(w) && w.text.contains(['a', 'A', 'f']) || w.text.starts_with("--a");
    let program = ls.words.first()?;
    let fix = Edits::new(it.script).after(program, " -A").done();
    (!ls.args().iter().any(shown)).then(|| warning("hidden-too", program, "ls leaves out hidden files without -A", fix))
}

/// `ls -t` for "a long listing".
fn long(it: &Inspected, words: &Words) -> Option<Finding> {
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
    let told = |w: &Word| is_letters(w) && w.text.contains(['l', 'g', 'n', 'o']) || w.text.starts_with("--format");
    let program = ls.words.first()?;
    let one = ls.args().iter().find(|w| is_letters(w) && w.text.contains('1'));
    let edits = Edits::new(it.script);
    let fix = match one {
        Some(cluster) => edits.replace(cluster, &cluster.raw.replace('1', "l")).done(),
        None => edits.after(program, " -l").done(),
    };
    (!ls.args().iter().any(told)).then(|| warning("long-listing", program, WHY, fix))
}

/// A cluster of letters, and the `1` of ls.
fn is_letters(word: &Word) -> bool {
    is_cluster(word) || word.raw.strip_prefix('-').is_some_and(|l| l.chars().all(|c| c.is_ascii_alphanumeric()))
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
        ] {
            assert_eq!(fix(request, right), None, "{right}");
        }
    }
}
