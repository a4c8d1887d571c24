//! The words of a call of `fd`.

use crate::parse::{Invocation, Word};
use crate::unwrap::fd_exec;

/// Options of `fd` whose value is the next word.
const FD_VALUED: &[&str] = &[
    "-e",
    "--extension",
    "-t",
    "--type",
    "-d",
    "--max-depth",
    "--min-depth",
    "--exact-depth",
    "-E",
    "--exclude",
    "-S",
    "--size",
    "--changed-within",
    "--changed-before",
    "-o",
    "--owner",
    "-c",
    "--color",
    "-j",
    "--threads",
    "--max-results",
    "--base-directory",
    "--search-path",
    "--and",
    "--format",
    "--path-separator",
];

/// True for a call of `fd`.
pub(super) fn is_fd(command: &Invocation) -> bool {
    command.name().is_some_and(|n| matches!(n, "fd" | "fdfind"))
}

/// Returns the operands of `fd`: a pattern, then the folders to search.
pub(super) fn fd_operands(command: &Invocation) -> Vec<&Word> {
    let mut found = Vec::new();
    let mut words = command.args().iter();
    while let Some(word) = words.next() {
        if fd_exec(&word.text).is_some() {
            break;
        } else if FD_VALUED.contains(&word.text.as_str()) {
            words.next();
        } else if !word.text.starts_with('-') {
            found.push(word);
        }
    }
    found
}
