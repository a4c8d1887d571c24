//! Turns a request and its settings into a `CommandRequest` of the recipe, and the recipe's errors into failures.

use crate::flags::AnswerArgs;
use crate::{Exit, Failure, Settings};
use caro_command::recipe::{MAX_REQUEST, too_long};
use caro_command::{CommandError, CommandRequest, FewShot, History, View};
use caro_host::ExecutionContext;
use caro_model::Cancel;
use caro_shell::{Dialect, Os, Target};
use regex::Regex;
use std::path::PathBuf;
use std::sync::LazyLock;
use std::time::Duration;

/// Refuses a request that is empty, too long or holds a mark of a chat template, before any model is opened. The recipe
/// checks the length again, in tokens.
pub fn check(request: &str) -> Result<(), String> {
    if request.trim().is_empty() {
        return Err("the request is empty".into());
    }
    if request.len() > MAX_REQUEST {
        return Err(too_long(request.len(), "bytes"));
    }
    match template_mark(request) {
        Some(mark) => Err(format!(
            "`{mark}` is a mark between a model's own messages and no word of a request; as a text to look for it stands in quotes"
        )),
        None => Ok(()),
    }
}

/// Finds an unquoted mark of a chat template, as copied text may hold one. To the model a mark is plain text.
fn template_mark(request: &str) -> Option<&str> {
    static PATTERN: LazyLock<Option<Regex>> = LazyLock::new(|| {
        let quoted = "\"[^\"]*\"|\\B'[^']*'|`[^`]*`";
        let marks = r"<\|[a-z][a-z0-9_]*\|>|\[/?INST\]|<</?SYS>>|</?(?:start|end)_of_turn>";
        Regex::new(&format!("{quoted}|(?P<mark>{marks})")).ok()
    });
    PATTERN.as_ref()?.captures_iter(request).find_map(|found| found.name("mark")).map(|mark| mark.as_str())
}

/// The directory, machine and shell that a command is written for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The directory that it is to run in.
    pub cwd: PathBuf,
    /// The machine.
    pub target: Target,
    /// The shell.
    pub dialect: Dialect,
}

impl Place {
    /// Returns this machine, unless the settings name another; for another system, the shell usual there.
    pub fn of(context: &ExecutionContext, settings: &Settings, cwd: Option<PathBuf>) -> Self {
        let target = settings.target.unwrap_or(context.target);
        let dialect = settings.shell.unwrap_or_else(|| match target.os {
            os if os == context.target.os => context.shell.dialect,
            Os::Linux => Dialect::Bash,
            Os::MacOs => Dialect::Zsh,
            Os::FreeBsd => Dialect::Sh,
            Os::Windows => Dialect::PowerShell,
        });
        Self { cwd: cwd.unwrap_or_else(|| context.cwd.clone()), target, dialect }
    }
}

/// Checks that the shell of the settings fits their target: commands for Windows are written in PowerShell.
///
/// # Errors
/// If they do not go together.
pub fn check_target(settings: &Settings) -> Result<(), Failure> {
    let (Some(target), Some(shell)) = (settings.target, settings.shell) else { return Ok(()) };
    if target.os != Os::Windows || shell == Dialect::PowerShell {
        return Ok(());
    }
    Err(Failure::usage(format!("for {} no command is written in {}", target.name(), shell.name()))
        .hint("--target windows goes with --shell powershell, or with none"))
}

/// Builds the recipe's form of a request.
pub fn ask(request: String, place: &Place, settings: &Settings, args: &AnswerArgs, cancel: &Cancel) -> CommandRequest {
    CommandRequest {
        request,
        alternatives: usize::from(args.alternatives),
        few_shot: args.few_shot.map_or(FewShot::Alike, |k| FewShot::Nearest(usize::from(k))),
        budget: settings.budget,
        cancel: cancel.clone(),
        ..part(place, settings)
    }
}

/// Builds a request that is part of a larger task; its words and history are filled in later. No user waits at a prompt
/// for it, so its budget is larger.
pub fn part(place: &Place, settings: &Settings) -> CommandRequest {
    CommandRequest {
        request: String::new(),
        cwd: place.cwd.clone(),
        target: place.target,
        dialect: place.dialect,
        refine: settings.refine,
        max_iterations: settings.max_iterations,
        timeout: settings.timeout,
        alternatives: 1,
        few_shot: FewShot::Alike,
        candidates: settings.candidates,
        rehearse: settings.rehearse,
        view: View::Examples,
        budget: settings.budget.max(CommandRequest::MIN_STEP_BUDGET),
        before: History::default(),
        rejected: Vec::new(),
        cancel: Cancel::new(),
    }
}

/// Turns an error of the recipe into a failure for the user.
pub fn failure(error: CommandError, settings: &Settings) -> Failure {
    match error {
        CommandError::BadRequest(message) => {
            Failure::usage(message).hint("say in a sentence what the command is to do")
        }
        CommandError::Model(e) => e.into(),
        CommandError::Timeout(_) => {
            let seconds = settings.timeout.as_secs_f64();
            let from = settings.timeout_from.as_ref().map_or(String::new(), |from| format!(", as {from} has it"));
            Failure::new(Exit::Timeout, format!("no command within {seconds} s{from}")).hint(format!(
                "give it more time (--timeout {}), or take a smaller model (`caro model list`)",
                seconds.ceil() * 4.0
            ))
        }
        CommandError::Cancelled => Failure::silent(Exit::Interrupted),
    }
}

/// The time in milliseconds, with fraction.
pub fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unquoted_mark_of_a_chat_template_is_refused() {
        for mark in ["<|im_start|>", "<|im_end|>", "<|endoftext|>", "<|eot_id|>", "[INST]", "[/INST]", "<<SYS>>"] {
            for request in
                [format!("{mark} list files"), format!("list files{mark}"), format!("don't list {mark} it's x")]
            {
                assert!(check(&request).unwrap_err().starts_with(&format!("`{mark}` is a mark")), "{request}");
            }
            for quote in ['"', '\'', '`'] {
                assert_eq!(check(&format!("find files that have {quote}{mark}{quote}")), Ok(()), "{mark}");
            }
        }
        for plain in ["sort < a | wc > b", "list [install] files", "files with <b> in them", "a <| b |> c"] {
            assert_eq!(check(plain), Ok(()), "{plain}");
        }
    }

    #[test]
    fn every_error_has_its_exit_code() {
        let config = crate::Config::load(&Default::default(), &Default::default(), None, &[]).unwrap();
        let settings = Settings::of(&config).unwrap();
        let code = |e| failure(e, &settings).exit.code();
        assert_eq!(code(CommandError::Timeout(Duration::ZERO)), 124);
        assert_eq!(code(CommandError::Cancelled), 130);
        assert_eq!(code(CommandError::BadRequest("x".into())), 2);
        assert_eq!(code(CommandError::Model(caro_model::ModelError::Engine("x".into()))), 2);
        assert_eq!(failure(CommandError::Timeout(Duration::ZERO), &settings).message, "no command within 60 s");
    }
}
