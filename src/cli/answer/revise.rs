//! Changes a command: one named with `--from`, the last answer of this terminal, or one on the shell's line with a
//! comment after it. The model gets the conversation that led to it, and its answer is checked as any other.

use super::ask;
use crate::Failure;
use caro_command::{CommandRequest, History, PastExchange};
use caro_host::ExecutionContext;
use caro_shell::{Dialect, is_builtin, parse};

/// The word for the last answer of this terminal, in place of a command.
pub const LAST: &str = "last";

/// The request that stands for an unknown one.
const UNKNOWN_REQUEST: &str = "Write a command.";

/// Most past exchanges in a prompt: a small model follows the last ones best.
const MAX_EXCHANGES: usize = 3;

/// Most bytes of the exchanges before the last one.
const MAX_BYTES: usize = 2000;

/// Wraps a command as the answer to an unknown request.
pub fn exchange(command: &str) -> PastExchange {
    PastExchange { request: UNKNOWN_REQUEST.into(), command: command.into(), outcome: String::new() }
}

/// Returns the conversation that ends with this command as the answer to a request.
pub fn exchanges(ask: &CommandRequest, command: &str) -> Vec<PastExchange> {
    let last = PastExchange { request: ask.request.clone(), command: command.into(), outcome: String::new() };
    bounded(ask.before.said.iter().cloned().chain([last]).collect())
}

/// Returns the history of a request that changes the last command of a conversation.
pub fn history(said: Vec<PastExchange>) -> History {
    History { revises: !said.is_empty(), said: bounded(said), ..History::default() }
}

/// Keeps the last exchanges within the limits; the very last is kept whatever its length.
fn bounded(mut said: Vec<PastExchange>) -> Vec<PastExchange> {
    let mut left = MAX_BYTES;
    let fits = |(n, one): &(usize, &PastExchange)| {
        let bytes = one.request.len() + one.command.len() + one.outcome.len();
        let is_kept = *n == 0 || *n < MAX_EXCHANGES && bytes <= left;
        left = left.saturating_sub(if *n == 0 { 0 } else { bytes });
        is_kept
    };
    let kept = said.iter().rev().enumerate().take_while(fits).count();
    said.drain(..said.len() - kept);
    said
}

/// Checks that a command of the user can be put into a prompt.
///
/// # Errors
/// If it is empty or far too long.
pub fn check_command(command: &str) -> Result<&str, Failure> {
    let command = command.trim();
    if command.is_empty() {
        return Err(
            Failure::usage("--from has no command").hint("for example: `caro --from 'du -sh *' \"the largest first\"`")
        );
    }
    ask::check(command).map_err(Failure::usage)?;
    Ok(command)
}

/// Splits a shell's line into a command of this machine and the comment after it, which says how to change it. `None`
/// for a line of plain words, as `find the # of files`.
pub fn split<'a>(line: &'a str, dialect: Dialect, context: &ExecutionContext) -> Option<(&'a str, &'a str)> {
    let whole = parse(line, dialect);
    let words = |script: &caro_shell::Script| -> Vec<String> {
        script.commands.iter().flat_map(|c| &c.words).map(|word| word.raw.clone()).collect()
    };
    let comment = |(at, _): (usize, &str)| {
        let (command, words_after) = (line[..at].trim(), line[at + 2..].trim());
        let head = parse(command, dialect);
        let is_comment = head.errors.is_empty() && !head.commands.is_empty() && words(&head) == words(&whole);
        let is_here = |name: &str| context.available_commands.contains_key(name) || is_builtin(name, dialect);
        let are_here = head.commands.iter().all(|c| c.name().is_some_and(is_here));
        (is_comment && are_here && !words_after.is_empty()).then_some((command, words_after))
    };
    line.match_indices(" #").find_map(comment)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(request: &str, command: &str) -> PastExchange {
        PastExchange { request: request.into(), command: command.into(), outcome: String::new() }
    }

    #[test]
    fn a_conversation_is_bounded_by_number_and_by_length_and_ends_with_the_last_command() {
        let all: Vec<PastExchange> = (0..9).map(|n| said(&format!("r{n}"), &format!("c{n}"))).collect();
        assert_eq!(history(all.clone()).said, all[6..]);
        assert_eq!(history(Vec::new()).said, []);
        // a long exchange leaves no room for earlier ones
        let long = said("long", &"x".repeat(MAX_BYTES));
        let kept = |said: &[PastExchange]| history(said.to_vec()).said;
        assert_eq!(kept(&[all[0].clone(), long.clone(), all[1].clone()]), all[1..2]);
        assert_eq!(
            kept(&[all[0].clone(), long.clone()]),
            [all[0].clone(), long.clone()],
            "the last one is always told"
        );
        assert_eq!(exchange("ls").request, UNKNOWN_REQUEST);
    }

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
