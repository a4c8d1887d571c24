//! Assesses the arguments of a program as a command that it may run: an unknown program, or one that is known to run
//! something.

use super::{Level, Reason, builtin_risk};
use crate::Dialect;
use crate::effects::{Effect, Kind, is_known};
use crate::parse::{How, Invocation, Script, parse};
use crate::unwrap::{is_interpreter, is_shell};

/// Most words of a command that is examined; each known program in it is assessed recursively.
const MAX_WORDS: usize = 24;

/// Options whose value is a command.
const COMMANDS: [&str; 15] = [
    "-c",
    "-e",
    "-x",
    "-ex",
    "-lc",
    "-ic",
    "--command",
    "--cmd",
    "--exec",
    "--eval",
    "--run",
    "--shell",
    "cmd.run",
    "-a",
    "--args",
];

pub(super) fn reasons(script: &Script, all: &[Effect]) -> Vec<Reason> {
    let mut found = Vec::new();
    for (index, command) in script.commands.iter().enumerate() {
        let runs = |e: &Effect| {
            e.command == Some(index) && matches!(e.kind, Kind::Unknown | Kind::Run | Kind::Build | Kind::Start)
        };
        let wraps = |c: &Invocation| c.inside.is_some_and(|i| i.command == index && i.how == How::Wrapped);
        let is_function = |name: &str| script.functions.iter().any(|f| f.name == name);
        let is_handled_elsewhere =
            command.name().is_some_and(|name| is_shell(name) || is_interpreter(name) || is_function(name));
        // `poetry run`, `bundle exec`: whatever else they do, what follows is a command
        let hands_on = command.args().first().is_some_and(|w| matches!(w.text.as_str(), "run" | "exec"));
        if is_handled_elsewhere
            || command.words.len() > MAX_WORDS
            || !hands_on && !all.iter().any(runs)
            || script.commands.iter().any(wraps)
        {
            continue;
        }
        let dangers = |text: &str, dialect: Dialect| -> Vec<Reason> {
            let reasons = builtin_risk(&parse(text, dialect)).reasons;
            reasons.into_iter().filter(|r| r.level == Level::Danger).collect()
        };
        for (at, word) in command.words.iter().enumerate().skip(1) {
            let value = word.value.as_deref().unwrap_or_default();
            let name = value.rsplit('/').next().unwrap_or_default();
            let mut last = false;
            let reasons = if value.contains(' ') && COMMANDS.contains(&command.words[at - 1].text.as_str()) {
                dangers(value, Dialect::Sh)
            } else if !name.is_empty() && !value.contains(' ') && is_known(name, script.dialect) {
                // the arguments after this program are assessed with it
                last = true;
                let line: Vec<&str> = command.words[at..].iter().map(|w| w.raw.as_str()).collect();
                dangers(&line.join(" "), script.dialect)
            } else {
                Vec::new()
            };
            let done = last || !reasons.is_empty();
            found.extend(reasons.into_iter().map(|r| Reason { span: Some(word.span.clone()), ..r }));
            if done {
                break;
            }
        }
    }
    found
}
