//! The English verbs that parts of a task begin with, and what each asks for.

use super::tokens::path_words;

/// A new part may begin with the verb.
pub(super) const BEGINS: u8 = 1;
/// The verb puts something into a file.
pub(super) const PUTS: u8 = 1 << 1;
/// The verb only asks for an answer in words.
pub(super) const TELLS: u8 = 1 << 2;
/// The verb asks for more than one command can do.
pub(super) const THINKS: u8 = 1 << 3;
/// The verb changes something.
pub(super) const CHANGES: u8 = 1 << 4;

/// The verb runs or checks something, and any outcome is an answer: tests that fail were run nevertheless.
pub(super) const TRIES: u8 = 1 << 5;

/// The verbs in alphabetical order, each with its flags.
const VERBS: &[(&str, u8)] = &[
    ("add", BEGINS | CHANGES),
    ("analyse", BEGINS),
    ("analyze", BEGINS),
    ("answer", TELLS),
    ("append", BEGINS | PUTS | CHANGES),
    ("archive", BEGINS | CHANGES),
    ("back", BEGINS | CHANGES),
    ("change", BEGINS | CHANGES),
    ("check", BEGINS | TRIES),
    ("clean", BEGINS | CHANGES),
    ("compare", BEGINS),
    ("compress", BEGINS | CHANGES),
    ("convert", BEGINS | CHANGES),
    ("copy", BEGINS | CHANGES),
    ("correct", BEGINS | CHANGES),
    ("count", BEGINS),
    ("create", BEGINS | CHANGES),
    ("debug", THINKS | CHANGES),
    ("delete", BEGINS | CHANGES),
    ("describe", BEGINS | TELLS | THINKS),
    ("design", THINKS),
    ("edit", BEGINS | CHANGES),
    ("execute", TRIES),
    ("explain", BEGINS | TELLS | THINKS),
    ("export", BEGINS | PUTS),
    ("extract", BEGINS),
    ("fill", BEGINS | CHANGES),
    ("filter", BEGINS),
    ("find", BEGINS),
    ("fix", BEGINS | CHANGES),
    ("get", BEGINS),
    ("give", BEGINS | TELLS),
    ("group", BEGINS),
    ("implement", THINKS | CHANGES),
    ("improve", THINKS | CHANGES),
    ("insert", BEGINS | CHANGES),
    ("install", BEGINS | CHANGES),
    ("join", BEGINS),
    ("lint", TRIES),
    ("list", BEGINS),
    ("look", BEGINS),
    ("make", BEGINS | CHANGES),
    ("measure", BEGINS),
    ("merge", BEGINS | CHANGES),
    ("migrate", THINKS | CHANGES),
    ("move", BEGINS | CHANGES),
    ("note", BEGINS | PUTS),
    ("open", BEGINS),
    ("output", PUTS),
    ("pack", BEGINS | CHANGES),
    ("print", BEGINS),
    ("proofread", THINKS),
    ("put", BEGINS | PUTS | CHANGES),
    ("read", BEGINS),
    ("record", BEGINS | PUTS | CHANGES),
    ("refactor", THINKS | CHANGES),
    ("remove", BEGINS | CHANGES),
    ("rename", BEGINS | CHANGES),
    ("replace", BEGINS | CHANGES),
    ("report", BEGINS | PUTS | TELLS),
    ("review", THINKS),
    ("rewrite", THINKS | CHANGES),
    ("run", BEGINS | TRIES),
    ("save", BEGINS | PUTS | CHANGES),
    ("say", TELLS),
    ("search", BEGINS),
    ("set", BEGINS | CHANGES),
    ("show", BEGINS),
    ("sort", BEGINS),
    ("split", BEGINS | CHANGES),
    ("store", BEGINS | PUTS | CHANGES),
    ("suggest", THINKS),
    ("sum", BEGINS),
    ("summarise", BEGINS | PUTS | TELLS | THINKS),
    ("summarize", BEGINS | PUTS | TELLS | THINKS),
    ("swap", BEGINS | CHANGES),
    ("tell", BEGINS | TELLS),
    ("test", BEGINS | TRIES),
    ("touch", BEGINS | CHANGES),
    ("translate", BEGINS | THINKS | CHANGES),
    ("turn", BEGINS | CHANGES),
    ("unpack", BEGINS | CHANGES),
    ("unzip", BEGINS | CHANGES),
    ("update", BEGINS | CHANGES),
    ("validate", TRIES),
    ("verify", TRIES),
    ("write", BEGINS | PUTS | THINKS | CHANGES),
    ("zip", BEGINS | CHANGES),
];

/// True if the verb, in lower case, has one of the flags.
pub(super) fn asks(verb: &str, flags: u8) -> bool {
    VERBS.binary_search_by_key(&verb, |(known, _)| known).is_ok_and(|at| VERBS[at].1 & flags != 0)
}

/// True if a part may begin with the word, which is in lower case.
pub fn begins_part(word: &str) -> bool {
    asks(word, BEGINS)
}

/// True if the part asks to change something, so that looking alone does not do it.
pub fn changes(part: &str) -> bool {
    path_words(part).first().is_some_and(|verb| asks(verb, CHANGES))
}

/// True if the part asks to run or check something, so that any outcome is an answer.
pub fn tries(part: &str) -> bool {
    path_words(part).first().is_some_and(|verb| asks(verb, TRIES))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sorted() {
        assert!(VERBS.windows(2).all(|pair| pair[0].0 < pair[1].0));
        assert!(VERBS.iter().all(|(verb, what)| *what != 0 && asks(verb, *what)));
        assert!(asks("save", PUTS) && asks("save", CHANGES) && !asks("save", TELLS));
        assert!(!asks("ls", BEGINS) && !asks("", BEGINS));
    }
}
