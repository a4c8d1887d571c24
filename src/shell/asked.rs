//! Whether a request in plain English speaks of taking something away. What is said in another language is not understood
//! here, and so is never held against anybody.

/// Verbs of a request that wants to know something.
const LOOKS: &[&str] = &[
    "calculate",
    "check",
    "compare",
    "compute",
    "count",
    "display",
    "do",
    "does",
    "find",
    "get",
    "give",
    "how",
    "identify",
    "is",
    "list",
    "locate",
    "look",
    "print",
    "search",
    "see",
    "show",
    "tell",
    "view",
    "what",
    "when",
    "where",
    "which",
    "who",
];

/// How words begin that speak of taking away, or of what may be done by taking away.
const REMOVES: &[&str] = &[
    "away",
    "clean",
    "clear",
    "dedup",
    "delet",
    "destr",
    "discard",
    "dispos",
    "drop",
    "elimin",
    "empt",
    "eras",
    "expung",
    "extermin",
    "filter",
    "flush",
    "free",
    "keep",
    "kill",
    "leav",
    "merg",
    "nuk",
    "obliterat",
    "overwrit",
    "prun",
    "purg",
    "recreat",
    "reduc",
    "remov",
    "replac",
    "reset",
    "rid",
    "rm",
    "rotat",
    "shred",
    "strip",
    "swap",
    "sync",
    "throw",
    "tidy",
    "trash",
    "trim",
    "trunc",
    "undo",
    "uninstall",
    "unlink",
    "vanish",
    "wip",
];

/// The words of a request, in lower case.
fn words(request: &str) -> impl Iterator<Item = String> + '_ {
    let parts = request.split(|c: char| !c.is_alphanumeric() && c != '\'');
    parts.filter(|w| !w.is_empty()).map(str::to_lowercase)
}

/// True if a request may want something taken away: it says so, or it is in words that are not known here.
pub fn may_remove(request: &str) -> bool {
    const NEGATIONS: &[&str] = &["don't", "dont", "never", "not", "nothing", "without"];
    let words: Vec<String> = words(request).collect();
    let known = words.iter().any(|w| LOOKS.contains(&w.as_str()));
    // `don't delete anything`, but not `don't forget to delete them`
    let negated = |at: usize| words[at.saturating_sub(2)..at].iter().any(|w| NEGATIONS.contains(&w.as_str()));
    let removes = |(at, word): (usize, &String)| REMOVES.iter().any(|stem| word.starts_with(stem)) && !negated(at);
    !known || words.iter().enumerate().any(removes)
}

/// True if a request begins by wanting to know something, and speaks of taking nothing away.
pub fn only_looks(request: &str) -> bool {
    const POLITE: &[&str] = &["please", "can", "could", "you", "i", "want", "to", "me", "let", "help"];
    let first = words(request).find(|w| !POLITE.contains(&w.as_str()));
    first.is_some_and(|w| LOOKS.contains(&w.as_str())) && !may_remove(request)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_wants_to_know_something_wants_nothing_removed() {
        for look in ["find the two oldest files in archive", "Can you show me the tmp files?", "what is in /tmp"] {
            assert!(only_looks(look) && !may_remove(look), "{look}");
        }
        assert!(only_looks("list the logs. Don't delete anything") && only_looks("show them without removing any"));
        assert!(may_remove("list the logs, and don't forget to delete them"));
        let move_it = "go through archive, find the two oldest files and move them to attic";
        assert!(!only_looks(move_it) && !may_remove(move_it));
        for other in [
            "find the old files and delete them",
            "remove notes.txt",
            "show me how you get rid of the logs",
            "lösche alle tmp-Dateien",
            "find duplicate photos and keep one of each",
            "",
        ] {
            assert!(!only_looks(other) && may_remove(other), "{other}");
        }
    }
}
