//! Checks the output of parts that only show something.

use super::{Claim, counts, number, numbers, order, shown, trim_path, verb, words};
use regex::Regex;
use std::path::Path;
use std::sync::LazyLock;

/// Most lines of output that are checked.
const MAX_LINES: usize = 400;

/// Returns the first finding against the output of a part.
pub(super) fn finding(claim: &Claim) -> Option<String> {
    check_number(claim)
        .or_else(|| check_repetition(claim))
        .or_else(|| check_files(claim))
        .or_else(|| check_selection(claim))
        .or_else(|| order::check_same_rows(claim))
        .or_else(|| order::finding(claim.part, claim.printed, claim.whole))
        .or_else(|| check_subject(claim))
}

fn rows(printed: &str) -> impl Iterator<Item = &str> {
    printed.lines().take(MAX_LINES).filter(|line| !line.trim().is_empty())
}

/// Reports output without the number that was asked for, or with nothing but zeros.
fn check_number(claim: &Claim) -> Option<String> {
    // `sum up notes.txt` asks for a summary of the text, not for a sum
    let part = words(claim.part);
    let is_summary = part.windows(2).next().is_some_and(|w| w[0].eq_ignore_ascii_case("sum") && w[1] == "up")
        && !part.iter().any(|w| matches!(*w, "amounts" | "numbers" | "column" | "values" | "prices" | "totals"));
    let sums = matches!(verb(claim.part).as_str(), "add" | "average" | "sum") && !is_summary;
    // what is written into a file is not printed
    if !(counts(claim.part) || sums) || !claim.whole || !claim.effects.is_read_only() {
        return None;
    }
    if !claim.printed.contains(|c: char| c.is_ascii_digit()) {
        return Some("A number was asked for, and it shows none.".into());
    }
    let found = numbers(claim.printed);
    let zero = !found.is_empty()
        && rows(claim.printed).count() <= 5
        && found.iter().all(|n| n.trim_start_matches('0').is_empty());
    zero.then(|| "It counted nothing: only 0.".to_owned())
}

/// Reports output that was shown for another part before.
fn check_repetition(claim: &Claim) -> Option<String> {
    const SHOWS: &[&str] = &[
        "show", "list", "print", "display", "give", "the", "them", "it", "those", "these", "all", "both", "result",
        "results", "output", "names",
    ];
    let now = claim.printed.trim();
    // `show them` asks for the same output
    if now.is_empty() || words(claim.part).iter().all(|w| SHOWS.contains(&w.to_lowercase().as_str())) {
        return None;
    }
    let same = claim.earlier.iter().any(|before| before.trim() == now);
    same.then(|| "It shows only what was shown for the part before.".to_owned())
}

/// Matches `find the largest file` and `list all empty files`, but not `find out how many files`.
static FILES: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"(?i)^(?:find|list)\s+(?:me\s+)?(?:(?:the|all|every|each|any)\s+)?(?:\w+\s+){0,3}?files?\b").ok()
});

/// Reports output whose paths name no file, although files were asked for. Bare names are not reported: they may be
/// files in a folder that only the command names.
fn check_files(claim: &Claim) -> Option<String> {
    let here = !words(claim.part).iter().any(|w| w.starts_with(['/', '~']));
    let named = here && claim.whole && FILES.as_ref()?.is_match(claim.part);
    // paths outside of the working folder were not looked up
    let elsewhere = rows(claim.printed).any(|row| row.contains(" /") || row.starts_with(['/', '~']));
    let paths = claim.printed.split_whitespace().any(|word| word.contains('/'));
    (named && paths && !elsewhere && claim.found == Some(0)).then(|| "It names no file that there is.".to_owned())
}

/// Matches `the largest file` and `the three newest logs`.
static BEST: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(
        r"(?i)^\w+\s+(?:me\s+)?the\s+(?:(?P<before>\w+)\s+)?(?:largest|biggest|smallest|newest|oldest|latest|longest|shortest|highest|lowest|first|last|most\s+(?:frequent|common|recent))\s+(?:(?P<behind>\w+)\s+)?(?:\w+\s+)?(?P<noun>files?|folders?|director(?:y|ies)|words?|lines?|numbers?|values?|rows?|names?|images?|photos?|pictures?|scripts?|logs?|documents?|users?)\b",
    )
    .ok()
});

/// Reports more rows than were asked for: the next part would be about all of them.
fn check_selection(claim: &Claim) -> Option<String> {
    if !claim.goes_on || !claim.whole || !matches!(verb(claim.part).as_str(), "find" | "get" | "list" | "show") {
        return None;
    }
    let found = BEST.as_ref()?.captures(claim.part)?;
    let group = |name| found.name(name).and_then(|m| number(m.as_str()));
    let most = match group("before").or_else(|| group("behind")) {
        Some(number) => number,
        None if found.name("noun")?.as_str().ends_with('s') => return None,
        None => 1,
    };
    let total = |line: &&str| line.trim_start().starts_with("total ") || line.trim_end().ends_with(" total");
    let shown = rows(claim.printed).filter(|line| !total(line)).count();
    (shown > most)
        .then(|| format!("It shows {shown} lines where {most} should be: only the one or those that are meant."))
}

/// Reports a command that does not refer to the one file that the part is about.
fn check_subject(claim: &Claim) -> Option<String> {
    let ([name], Some(command)) = (claim.names, claim.command) else { return None };
    let name = trim_path(name);
    let base = Path::new(name).file_name()?.to_string_lossy().into_owned();
    let folder = Path::new(name).parent().map(|p| p.to_string_lossy().into_owned()).unwrap_or_default();
    let stem = base.split('.').next().filter(|s| !s.is_empty()).unwrap_or(&base).to_owned();
    let wide = command.contains('*') || command.contains("find ") || command.contains(" -r") || command.contains(" -R");
    let refers_to = |text: &str| !text.is_empty() && (command.contains(text) || claim.printed.contains(text));
    let is_related = wide || refers_to(&stem) || refers_to(&folder);
    (!is_related).then(|| format!("The command has nothing to do with {}.", shown(name)))
}
