//! A command that is to be changed: named with `--from`, the last answer of this terminal, or the one on the shell's line with a
//! comment behind it. In each case the model is told what led to it as a conversation, and the answer is checked as any other.

use super::ask;
use crate::Failure;
use caro_command::{CommandRequest, History, PastExchange};
use caro_host::ExecutionContext;
use caro_shell::{Dialect, is_builtin, parse};

/// The word that stands for the last answer of this terminal, in the place of a command.
pub const LAST: &str = "last";

/// The request that a command is taken to have answered where it is not known.
const ASKED: &str = "Write a command.";

/// The most exchanges that a revision is told of: a small model follows the last ones best.
const MOST: usize = 3;

/// The most bytes of those before the last one.
const MOST_BYTES: usize = 2000;

/// A command as the answer to a request that is not known.
pub fn given(command: &str) -> PastExchange {
    PastExchange { request: ASKED.into(), command: command.into(), outcome: String::new() }
}

/// The conversation that ends with this command as the answer to a question.
pub fn exchanges(ask: &CommandRequest, command: &str) -> Vec<PastExchange> {
    let last = PastExchange { request: ask.request.clone(), command: command.into(), outcome: String::new() };
    bounded(ask.before.said.iter().cloned().chain([last]).collect())
}

/// The history before words that say how the last command of a conversation is to be changed.
pub fn before(said: Vec<PastExchange>) -> History {
    History { said: bounded(said), ..History::default() }
}

/// The last exchanges, the very last whatever its length.
fn bounded(mut said: Vec<PastExchange>) -> Vec<PastExchange> {
    let mut left = MOST_BYTES;
    let fits = |(n, one): &(usize, &PastExchange)| {
        let bytes = one.request.len() + one.command.len() + one.outcome.len();
        let is_kept = *n == 0 || *n < MOST && bytes <= left;
        left = left.saturating_sub(if *n == 0 { 0 } else { bytes });
        is_kept
    };
    let kept = said.iter().rev().enumerate().take_while(fits).count();
    said.drain(..said.len() - kept);
    said
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
    ask::check(command).map_err(Failure::usage)?;
    Ok(command)
}

/// Splits a shell's line into a command of this machine and the comment behind it, which says how it is to be changed. `None`
/// for a line of words: `find the # of files` names no command, since nothing is left of it without its comment but words.
pub fn split<'a>(line: &'a str, dialect: Dialect, context: &ExecutionContext) -> Option<(&'a str, &'a str)> {
    let whole = parse(line, dialect);
    let words = |script: &caro_shell::Script| -> Vec<String> {
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

    fn said(request: &str, command: &str) -> PastExchange {
        PastExchange { request: request.into(), command: command.into(), outcome: String::new() }
    }

    #[test]
    fn a_conversation_is_bounded_by_number_and_by_length_and_ends_with_the_last_command() {
        let all: Vec<PastExchange> = (0..9).map(|n| said(&format!("r{n}"), &format!("c{n}"))).collect();
        assert_eq!(before(all.clone()).said, all[6..]);
        assert_eq!(before(Vec::new()).said, []);
        // one that is long leaves no room for what came before it
        let long = said("long", &"x".repeat(MOST_BYTES));
        let told = |said: &[PastExchange]| before(said.to_vec()).said;
        assert_eq!(told(&[all[0].clone(), long.clone(), all[1].clone()]), all[1..2]);
        assert_eq!(
            told(&[all[0].clone(), long.clone()]),
            [all[0].clone(), long.clone()],
            "the last one is always told"
        );
        assert_eq!(given("ls").request, ASKED);
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
