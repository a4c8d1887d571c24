//! Assesses programs of Python, Perl, Ruby, PHP, JavaScript and Lua in an argument or on standard input.

use super::secrets::is_secret;
use super::{Level, Reason, reason, said, stdin_texts};
use crate::effects::{Effect, Kind, Place, place_of};
use crate::embedded::code::{Action, actions, loops_forever};
use crate::parse::Script;
use crate::unwrap::{is_code, is_interpreter, is_shell};
use std::ops::Range;

pub(super) fn reasons(script: &Script, all: &[Effect]) -> Vec<Reason> {
    let mut found = Vec::new();
    for (index, command) in script.commands.iter().enumerate() {
        if let Some("awk" | "gawk" | "mawk" | "nawk") = command.name() {
            // GNU awk opens network connections by this name
            let reaches =
                command.args().iter().find(|w| w.text.contains("/inet/tcp/") || w.text.contains("/inet/udp/"));
            found.extend(reaches.and_then(|w| reason_of(&Action::RunsNetwork, &w.raw, &w.span)));
            for word in command.args().iter().filter(|w| w.text.contains('{')) {
                if ["system(", "| \"", "getline"].iter().any(|sign| word.text.contains(sign)) {
                    found.extend(said::reasons(&word.text, &word.raw, &word.span));
                }
                if prints_endlessly(&word.text) {
                    found.extend(reason_of(&Action::Fills, &word.raw, &word.span));
                }
            }
        }
        if !command.name().is_some_and(is_interpreter) {
            // a language that is not parsed: `emacs --eval`, `deno eval`, `R -e`
            let runs = |e: &Effect| e.command == Some(index) && matches!(e.kind, Kind::Run | Kind::Unknown);
            let is_other = !command.name().is_some_and(is_shell) && all.iter().any(runs);
            for (at, word) in command.words.iter().enumerate().skip(2) {
                if is_other && (is_code(&command.words, at) || command.words[at - 1].text == "eval") {
                    found.extend(said::reasons(&word.text, &word.raw, &word.span));
                }
            }
            continue;
        }
        let Some(first) = command.words.first() else { continue };
        // a pure program may have any string literals
        let computes = all.iter().any(|e| e.command == Some(index) && e.kind == Kind::Compute);
        for (at, word) in command.words.iter().enumerate().skip(1) {
            if is_code(&command.words, at) {
                if !computes {
                    found.extend(said::reasons(&word.text, &word.raw, &word.span));
                    if let Some(read) = command.args().iter().find(|w| is_secret(&w.text) && said::reaches(&word.text))
                    {
                        found.extend(reason_of(&Action::Sends(read.text.clone()), &word.raw, &word.span));
                    }
                }
                found.extend(
                    actions(&word.text).into_iter().filter_map(|action| reason_of(&action, &word.raw, &word.span)),
                );
            }
        }
        // a program without a file as an argument reads its code from standard input
        if command.operands().all(|w| w.text == "-")
            && !command.words.iter().enumerate().any(|(at, _)| is_code(&command.words, at))
        {
            for text in stdin_texts(script, index) {
                if !computes {
                    found.extend(said::reasons(&text, &first.raw, &first.span));
                }
                for action in actions(&text) {
                    if let Action::Run(Some(line)) = &action {
                        let inner = super::assess(&crate::parse(line, crate::Dialect::Sh));
                        found.extend(inner.reasons.into_iter().map(|r| Reason { span: Some(first.span.clone()), ..r }));
                    }
                    found.extend(reason_of(&action, &first.raw, &first.span));
                }
            }
        }
    }
    found
}

/// True for an awk program that prints to a file endlessly.
fn prints_endlessly(code: &str) -> bool {
    let prints = code.split('>').skip(1).any(|rest| rest.trim_start().starts_with('"'));
    prints && loops_forever(code)
}

fn reason_of(action: &Action, token: &str, span: &Range<usize>) -> Option<Reason> {
    let shown: String = token.chars().take(60).collect();
    let say = |level, effect: &str, why: String, scope: &str| {
        Some(reason(level, effect, &shown, span.clone(), why).with_scope(scope))
    };
    use Level::{Caution, Danger};
    match action {
        Action::Delete(Some(path), deep) => {
            let place = place_of(path);
            let lost = matches!(place, Place::Root | Place::System | Place::Home | Place::Device)
                || *deep && matches!(place, Place::Here | Place::Personal | Place::Configuration);
            let level = if lost { Danger } else { Caution };
            say(level, "delete", format!("the code in it deletes {path}"), path)
        }
        Action::Delete(None, deep) => {
            let level = if *deep { Danger } else { Caution };
            say(level, "delete", "the code in it deletes what it computes".to_owned(), "")
        }
        Action::Write(path) => match place_of(path) {
            Place::Device => say(Danger, "device", format!("the code in it writes over {path}"), path),
            Place::System | Place::Root => say(Danger, "overwrite", format!("the code in it writes to {path}"), path),
            Place::Sink | Place::Temporary => None,
            _ => say(Caution, "overwrite", format!("the code in it writes to {path}"), path),
        },
        Action::Mode(path) => match place_of(path) {
            Place::Root | Place::System | Place::Home | Place::Device => {
                say(Danger, "permission", format!("the code in it changes the rights of {path}"), path)
            }
            _ => say(Caution, "permission", format!("the code in it changes the rights of {path}"), path),
        },
        Action::Kill(number) if matches!(number.as_str(), "1" | "-1") => {
            say(Danger, "process", "the code in it ends what the system lives on".to_owned(), "every process")
        }
        Action::Kill(_) | Action::Run(_) => None,
        Action::RunsNetwork => say(
            Danger,
            "network-to-shell",
            "the code in it runs what another machine says".to_owned(),
            "all that you may do on this machine",
        ),
        Action::RunsDecoded => {
            say(Danger, "encoded", "the code in it runs what nobody can read as it stands".to_owned(), "")
        }
        Action::Sends(path) if is_secret(path) => {
            say(Danger, "network", format!("the code in it sends {path} to another machine"), path)
        }
        Action::Sends(_) => None,
        Action::Forks => say(
            Danger,
            "process",
            "it starts processes until the machine stops (a fork bomb)".to_owned(),
            "the whole machine",
        ),
        Action::Fills => {
            say(Danger, "process", "it takes memory until there is none left".to_owned(), "the whole machine")
        }
    }
}
