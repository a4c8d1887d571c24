//! Commands behind a program that may run what stands behind it: of one that is not known, or that is known to run things,
//! nobody can say that it does not.

use super::{Level, Reason, judged};
use crate::Dialect;
use crate::effects::{Effect, Kind, is_known};
use crate::parse::{How, Invocation, Script, parse};
use crate::unwrap::{is_interpreter, is_shell};

/// The most words of a command that is looked into: each known program in it is looked into in turn.
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
        let function = |name: &str| script.functions.iter().any(|f| f.name == name);
        let own = command.name().is_some_and(|name| is_shell(name) || is_interpreter(name) || function(name));
        if own || command.words.len() > MAX_WORDS || !all.iter().any(runs) || script.commands.iter().any(wraps) {
            continue;
        }
        let dangers = |text: &str, dialect: Dialect| -> Vec<Reason> {
            let reasons = judged(&parse(text, dialect)).reasons;
            reasons.into_iter().filter(|r| r.level == Level::Danger).collect()
        };
        for (at, word) in command.words.iter().enumerate().skip(1) {
            let value = word.value.as_deref().unwrap_or_default();
            let name = value.rsplit('/').next().unwrap_or_default();
            let mut last = false;
            let held = if value.contains(' ') && COMMANDS.contains(&command.words[at - 1].text.as_str()) {
                dangers(value, Dialect::Sh)
            } else if !name.is_empty() && !value.contains(' ') && is_known(name, script.dialect) {
                // what stands behind this one is for the look into it
                last = true;
                let line: Vec<&str> = command.words[at..].iter().map(|w| w.raw.as_str()).collect();
                dangers(&line.join(" "), script.dialect)
            } else {
                Vec::new()
            };
            let done = last || !held.is_empty();
            found.extend(held.into_iter().map(|r| Reason { span: Some(word.span.clone()), ..r }));
            if done {
                break;
            }
        }
    }
    found
}
