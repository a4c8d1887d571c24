//! Decides whether a request in plain English speaks of removing something. A request in another language is not
//! understood here, and is never taken for one that only looks.

/// Verbs that ask for information only.
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

/// Beginnings of words that speak of removing something, or of an action that may remove something.
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

/// Returns the words of a request in lower case.
fn words(request: &str) -> impl Iterator<Item = String> + '_ {
    let parts = request.split(|c: char| !c.is_alphanumeric() && c != '\'');
    parts.filter(|w| !w.is_empty()).map(str::to_lowercase)
}

/// True if a request may want something removed: it says so, or it has none of the verbs of [`LOOKS`].
fn may_remove(request: &str) -> bool {
    const NEGATIONS: &[&str] = &["don't", "dont", "never", "not", "nothing", "without"];
    let words: Vec<String> = words(request).collect();
    let known = words.iter().any(|w| LOOKS.contains(&w.as_str()));
    // `don't delete anything`, but not `don't forget to delete them`
    let negated = |at: usize| words[at.saturating_sub(2)..at].iter().any(|w| NEGATIONS.contains(&w.as_str()));
    let removes = |(at, word): (usize, &String)| REMOVES.iter().any(|stem| word.starts_with(stem)) && !negated(at);
    !known || words.iter().enumerate().any(removes)
}

/// True if the first verb of a request asks for information only, and it does not speak of removing anything.
pub fn only_looks(request: &str) -> bool {
    const POLITE: &[&str] = &["please", "can", "could", "you", "i", "want", "to", "me", "let", "help"];
    let first = words(request).find(|w| !POLITE.contains(&w.as_str()));
    first.is_some_and(|w| LOOKS.contains(&w.as_str())) && !may_remove(request)
}

/// True if a request only moves or renames files, and does not speak of changing their content. `is_there` tells
/// whether a word is the name of a file or folder; names with blanks are not recognized.
pub fn only_moves(request: &str, is_there: impl Fn(&str) -> bool) -> bool {
    const MOVES: [&str; 4] = ["move", "moving", "rename", "renaming"];
    const BETWEEN: [&str; 9] = ["the", "this", "my", "all", "file", "files", "folder", "directory", "just"];
    /// Beginnings of words that speak of the content of files.
    const TEXT: [&str; 24] = [
        "add",
        "append",
        "chang",
        "class",
        "column",
        "content",
        "convert",
        "correct",
        "edit",
        "field",
        "fix",
        "function",
        "header",
        "insert",
        "line",
        "mention",
        "method",
        "refer",
        "replac",
        "substitut",
        "text",
        "updat",
        "variable",
        "writ",
    ];
    let around = |c: char| !c.is_alphanumeric() && !"./~_-".contains(c);
    let words: Vec<&str> = request.split_whitespace().map(|word| word.trim_matches(around)).collect();
    let lower = |word: &&str| word.to_lowercase();
    let changes_text = |word: &&str| TEXT.iter().any(|stem| lower(word).starts_with(stem)) && !is_there(word);
    let moves_file = |at: usize| {
        let mut rest = words[at + 1..].iter().skip_while(|word| BETWEEN.contains(&&*lower(word)));
        rest.next().is_some_and(|word| !word.is_empty() && is_there(word.trim_end_matches('.')))
    };
    // with a second order, the request may change content as well
    let has_second_order = words.iter().any(|word| ["and", "then", "also"].contains(&&*lower(word)));
    let mut all = words.iter().enumerate();
    !has_second_order
        && !words.iter().any(changes_text)
        && all.any(|(at, word)| MOVES.contains(&&*lower(word)) && moves_file(at))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn renaming_files_does_not_change_their_text() {
        let is_there = |word: &str| ["app1.log", "src/main.py", "old", "change.md"].contains(&word);
        for only in ["rename app1.log to first.log", "Move the folder old to attic.", "rename \"change.md\" to new.md"]
        {
            assert!(only_moves(only, is_there), "{only}");
        }
        for other in [
            "rename the function foo to bar in src/main.py",
            "rename foo to bar in src/main.py",
            "rename app1.log to first.log and replace ERROR with error in it",
            "move src/main.py to old and adjust the imports",
            "rename nothing.log to first.log",
            "show app1.log",
            "rename",
            "",
        ] {
            assert!(!only_moves(other, is_there), "{other}");
        }
    }

    #[test]
    fn questions_remove_nothing() {
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
