//! A command that is to be changed: named with `--from`, or the one on the shell's line with a comment behind it.

use super::{Failure, request};
use crate::command::{History, PastExchange};
use crate::host::ExecutionContext;
use crate::shell::{Dialect, is_builtin, parse};

/// The request that the command is taken to have answered: what it was is not known here.
const ASKED: &str = "Write a command.";

/// The conversation before words that say how a command is to be changed.
pub fn before(command: &str) -> History {
    let said = PastExchange { request: ASKED.into(), command: command.into(), outcome: String::new() };
    History { said: vec![said], ..History::default() }
}

/// Holds a command that the person gives against what a prompt takes.
///
/// # Errors
/// If it is empty or far too long.
pub fn checked(command: &str) -> Result<&str, Failure> {
    let command = command.trim();
    if command.is_empty() {
        return Err(Failure::usage("--from has no command").hint("caro --from 'du -sh *' \"the largest first\""));
    }
    request::check(command).map_err(Failure::usage)?;
    Ok(command)
}

/// Splits a shell's line into a command of this machine and the comment behind it, which says how it is to be changed. `None`
/// for a line of words: `find the # of files` names no command, since nothing is left of it without its comment but words.
pub fn split<'a>(line: &'a str, dialect: Dialect, context: &ExecutionContext) -> Option<(&'a str, &'a str)> {
    let whole = parse(line, dialect);
    let words = |script: &crate::shell::Script| -> Vec<String> {
        script.commands.iter().flat_map(|c| &c.words).map(|word| word.raw.clone()).collect()
    };
    let comment = |(at, _): (usize, &str)| {
        let (command, words_behind) = (line[..at].trim(), line[at + 2..].trim());
        let head = parse(command, dialect);
        let is_comment = head.errors.is_empty() && !head.commands.is_empty() && words(&head) == words(&whole);
        let is_here = |name: &str| context.available_commands.contains_key(name) || is_builtin(name, dialect);
        let are_here = head.commands.iter().all(|c| c.name().is_some_and(is_here));
        (is_comment && are_here && !words_behind.is_empty()).then_some((command, words_behind))
    };
    line.match_indices(" #").find_map(comment)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_comment_behind_a_command_says_how_to_change_it() {
        let mut context = ExecutionContext::detect(None);
        context.available_commands = ["du", "sort", "grep"].map(|name| (name.to_owned(), "/bin/x".into())).into();
        let split = |line| split(line, Dialect::Bash, &context);
        for (line, wanted) in [
            ("du -sh * # the largest first", Some(("du -sh *", "the largest first"))),
            ("du -sh * | sort -h  #  in reverse ", Some(("du -sh * | sort -h", "in reverse"))),
            ("grep ' # ' a.txt # whole words", Some(("grep ' # ' a.txt", "whole words"))),
            ("grep ' # ' a.txt", None),
            ("du -sh * #", None),
            ("# list files", None),
            ("list files # hidden ones too", None),
            ("count the files", None),
            ("du 'x # y", None),
        ] {
            assert_eq!(split(line), wanted, "{line}");
        }
    }
}
