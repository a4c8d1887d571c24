//! Finds the name that is nearest to a mistyped one.

use caro_manual::common;
use caro_shell::Dialect;
use caro_shell::effects::is_known;
use std::cmp::Reverse;

/// The distance of a name: twice the edits (one more if letters are not only swapped), then whether it is uncommon,
/// has another first letter, and has another ending.
type Distance = (usize, bool, bool, bool);

/// Returns the name of `all` that was most likely meant; `None` if none is near, or two are equally near. `is_common`
/// breaks a tie.
pub fn nearest<'n>(
    typed: &str,
    all: impl IntoIterator<Item = &'n str>,
    is_common: impl Fn(&str) -> bool,
) -> Option<&'n str> {
    let mut best: Option<(Distance, &str)> = None;
    let mut is_tied = false;
    for name in all {
        let Some(distance) = distance(typed, name, &is_common) else { continue };
        // most short names are one edit away from a short word
        if typed.chars().count() < 3 && !is_swapped(typed, name) {
            continue;
        }
        match best {
            Some((_, other)) if other == name => {}
            Some((least, _)) if distance > least => {}
            Some((least, _)) if distance == least => is_tied = true,
            _ => {
                best = Some((distance, name));
                is_tied = false;
            }
        }
    }
    if is_tied { None } else { best.map(|(_, name)| name) }
}

/// Returns up to `most` names that look like the typed one, the nearest first, for a reader to choose from: more than one
/// may be equally near. For a short word only common names with its first letter count.
pub fn similar<'n>(
    typed: &str,
    all: impl IntoIterator<Item = &'n str>,
    is_common: impl Fn(&str) -> bool,
    most: usize,
) -> Vec<&'n str> {
    let is_short = typed.chars().count() <= MAX_SHORT;
    let one = |name: &'n str| {
        let distance = distance(typed, name, &is_common)?;
        let (_, is_rare, begins_otherwise, _) = distance;
        (!is_short || is_swapped(typed, name) || !is_rare && !begins_otherwise).then_some((distance, name))
    };
    let mut names: Vec<_> = all.into_iter().filter_map(one).collect();
    names.sort_unstable();
    names.dedup_by_key(|(_, name)| *name);
    names.truncate(most);
    names.into_iter().map(|(_, name)| name).collect()
}

/// Returns the distance of a name from the typed text; `None` if it is too far, or the same.
fn distance(typed: &str, name: &str, is_common: &impl Fn(&str) -> bool) -> Option<Distance> {
    let max_edits = max_edits(typed);
    if typed == name || name.len().abs_diff(typed.len()) > max_edits + 2 {
        return None;
    }
    let (low_typed, low_name) = (typed.to_lowercase(), name.to_lowercase());
    let edits = strsim::osa_distance(&low_typed, &low_name);
    let is_swapped = letters(&low_typed) == letters(&low_name);
    if edits > max_edits {
        return None;
    }
    let begins_alike = low_typed.chars().next() == low_name.chars().next();
    let ends_alike = ending(&low_typed) == ending(&low_name);
    // swapped letters are the commonest mistake: half an edit nearer than any other
    Some((2 * edits + usize::from(!is_swapped), !is_common(name), !begins_alike, !ends_alike))
}

/// True if both have the same letters in another order, the surest sign of a typing error.
pub fn is_swapped(typed: &str, name: &str) -> bool {
    typed != name && letters(&typed.to_lowercase()) == letters(&name.to_lowercase())
}

/// Builtins that are often mistyped.
pub const BUILTINS: [&str; 10] =
    ["cd", "echo", "export", "source", "alias", "history", "type", "unset", "pushd", "popd"];

/// True for the name of a very common program or builtin.
pub fn is_common(name: &str) -> bool {
    BUILTINS.contains(&name) || common().any(|other| other == name)
}

/// True if the names differ by one swap of two neighbouring characters.
fn is_transposed(typed: &str, name: &str) -> bool {
    let mut swaps = typed.char_indices().zip(typed.chars().skip(1));
    typed != name
        && swaps.any(|((at, one), two)| {
            let rest = &typed[at + one.len_utf8() + two.len_utf8()..];
            format!("{}{two}{one}{rest}", &typed[..at]) == name
        })
}

/// Most characters of a short word, which is one edit away from many programs.
const MAX_SHORT: usize = 4;

/// True if `typed`, which is no program here, can be a typing error of the program `name`. A program that caro knows
/// is not installed rather than mistyped, except for another version (`python` of `python3`) and for a rare name that
/// is a common one with two letters swapped (`sl` of `ls`). In a short word only swapped letters count. Nobody means
/// caro itself.
pub fn is_misspelling(typed: &str, name: &str, dialect: Dialect) -> bool {
    if name == "caro" {
        return false;
    }
    if is_same(typed, name) {
        return true;
    }
    let is_short = typed.chars().count() <= MAX_SHORT;
    match is_program_name(typed, dialect) {
        true => !is_common(typed) && is_common(name) && is_transposed(typed, name),
        false => !is_short || is_swapped(typed, name),
    }
}

/// True if a name is typed for certain in place of `name`: it has the same letters in another order, is in capitals or
/// lacks the version.
pub fn is_sure(typed: &str, name: &str) -> bool {
    is_same(typed, name) || is_swapped(typed, name)
}

/// True for the name of a program that caro knows, installed or not.
pub fn is_program_name(typed: &str, dialect: Dialect) -> bool {
    // `cd..` is no version of `cd`
    !typed.ends_with('.') && is_known(typed, dialect)
}

/// True if the names differ only in capitals or in the version at the end.
fn is_same(typed: &str, name: &str) -> bool {
    let version = name.strip_prefix(typed).filter(|end| !end.is_empty());
    typed.to_lowercase() == name || version.is_some_and(|end| end.chars().all(|c| c.is_ascii_digit() || c == '.'))
}

/// Returns the most edits of a typing error in a word of this length.
fn max_edits(word: &str) -> usize {
    match word.chars().count() {
        0..=5 => 1,
        6..=9 => 2,
        _ => 3,
    }
}

fn letters(word: &str) -> Vec<char> {
    let mut letters: Vec<char> = word.chars().collect();
    letters.sort_unstable();
    letters
}

/// Returns the ending of a file name.
fn ending(name: &str) -> Option<&str> {
    name.rsplit_once('.').map(|(_, ending)| ending)
}

/// Returns the shortest name that begins with the typed text.
pub fn shortest_completion<'n>(typed: &str, all: impl IntoIterator<Item = &'n str>) -> Option<&'n str> {
    all.into_iter()
        .filter(|name| name.starts_with(typed) && *name != typed)
        .min_by_key(|name| (name.len(), Reverse(*name)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of<'n>(typed: &str, all: &[&'n str]) -> Option<&'n str> {
        nearest(typed, all.iter().copied(), |name| name == "grep")
    }

    #[test]
    fn the_nearest_name_is_found_and_a_far_one_is_not() {
        for (typed, all, name) in [
            ("gerp", &["perl", "grep", "gcp"][..], "grep"),
            ("sl", &["ls", "s", "sh"], "ls"),
            ("photos", &["Photos", "photo"], "Photos"),
            ("nots.txt", &["notes.txt", "note.md"], "notes.txt"),
            ("--revrese", &["--reverse", "--recurse"], "--reverse"),
            ("grap", &["grip", "grep"], "grep"),
        ] {
            assert_eq!(of(typed, all), Some(name), "{typed}");
        }
        for (typed, all) in
            [("xy", &["ab", "x"][..]), ("notes", &["notes"]), ("abc", &["abd", "abe"]), ("made", &["data"])]
        {
            assert_eq!(of(typed, all), None, "{typed}");
        }
    }

    #[test]
    fn names_to_choose_from_are_the_nearest_and_common_ones() {
        let of =
            |typed, all: &[&'static str]| similar(typed, all.iter().copied(), |name| ["ls", "ln"].contains(&name), 3);
        for (typed, all, names) in [
            ("lz", &["ls", "ln", "ld", "az", "find"][..], &["ln", "ls"][..]),
            ("sl", &["ls", "sa"], &["ls"]),
            ("report1", &["report2", "report3", "report4", "report5"], &["report2", "report3", "report4"]),
            ("nowhere", &["src", "tests"], &[]),
            ("x", &["a"], &[]),
        ] {
            assert_eq!(of(typed, all), names, "{typed}");
        }
    }

    #[test]
    fn a_known_program_is_no_misspelling_and_a_short_word_is_one_only_with_its_letters() {
        for (typed, name) in [
            ("gerp", "grep"),
            ("mkdirr", "mkdir"),
            ("sotr", "sort"),
            ("RSYNC", "rsync"),
            ("python", "python3"),
            ("pyhton3", "python3"),
            ("netsat", "netstat"),
            ("sl", "ls"),
            ("dc", "cd"),
        ] {
            assert!(is_misspelling(typed, name, Dialect::Bash), "{typed}");
        }
        for (typed, name) in [
            ("mpv", "mv"),
            ("rar", "tar"),
            ("rename", "renice"),
            ("yum", "sum"),
            ("sar", "tar"),
            ("dig", "dir"),
            ("php", "pip"),
            ("fd", "df"),
            ("cargo", "caro"),
            ("acro", "caro"),
            ("rsync", "sync"),
            ("tree", "free"),
            ("python2", "python3"),
            ("zmv", "mv"),
            ("cpp", "cp"),
            ("gre", "grep"),
            ("di", "dig"),
            ("df", "fd"),
            ("act", "tac"),
            ("sl", "lsof"),
        ] {
            assert!(!is_misspelling(typed, name, Dialect::Bash), "{typed}");
        }
        assert!(is_sure("GREP", "grep") && is_sure("python", "python3") && !is_sure("grepp", "grep"));
        assert!(!is_program_name("cd..", Dialect::Bash));
        // all of these are programs that are known, whether installed or not
        assert!(["sl", "dc", "fd", "mpv"].iter().all(|name| is_program_name(name, Dialect::Bash)));
    }

    #[test]
    fn one_swap_is_a_transposition() {
        for (typed, name) in [("sl", "ls"), ("gerp", "grep"), ("äö", "öä"), ("abc", "acb")] {
            assert!(is_transposed(typed, name), "{typed}");
        }
        for (typed, name) in [("ls", "ls"), ("act", "tac"), ("mpv", "mv"), ("oo", "oo"), ("", ""), ("a", "b")] {
            assert!(!is_transposed(typed, name), "{typed}");
        }
    }

    #[test]
    fn a_beginning_is_completed_by_the_shortest() {
        assert_eq!(shortest_completion("--al", ["--almost-all", "--all"]), Some("--all"));
        assert_eq!(shortest_completion("--x", ["--all"]), None);
    }
}
