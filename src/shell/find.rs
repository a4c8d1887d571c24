//! The words of `find`'s expressions. Source: find(1) of GNU and of BSD.

use crate::parse::{Invocation, Word};

/// The actions that run a command, whose words follow up to `;` or `+`.
pub const EXECS: &[&str] = &["-exec", "-execdir", "-ok", "-okdir"];

/// The actions that print the names of files to standard output.
pub const PRINTS: &[&str] = &["-print", "-print0", "-printf"];

/// The tests whose value is a pattern.
pub const PATTERNS: &[&str] =
    &["-name", "-iname", "-path", "-ipath", "-wholename", "-iwholename", "-regex", "-iregex", "-lname", "-ilname"];

/// Further tests that few files pass.
const SELECTIVE: &[&str] = &[
    "-mtime",
    "-mmin",
    "-atime",
    "-amin",
    "-ctime",
    "-cmin",
    "-newer",
    "-newermt",
    "-size",
    "-empty",
    "-user",
    "-group",
    "-nouser",
    "-nogroup",
    "-perm",
    "-samefile",
    "-inum",
    "-links",
    "-xtype",
];

/// Returns the starting points: the words between the options on links and the first test or action.
pub fn starting_points(search: &Invocation) -> impl Iterator<Item = &Word> {
    let is_option = |word: &&Word| matches!(word.text.as_str(), "-H" | "-L" | "-P");
    let is_expression = |word: &&Word| word.text.starts_with(['-', '(', '!', ')', ',']);
    search.args().iter().skip_while(is_option).take_while(move |word| !is_expression(word))
}

/// True for an action that changes something: it deletes, or runs a command.
pub fn is_changing_action(word: &str) -> bool {
    word == "-delete" || EXECS.contains(&word)
}

/// True for a test that few files pass.
pub fn is_narrowing_test(word: &str) -> bool {
    PATTERNS.contains(&word) || SELECTIVE.contains(&word)
}
