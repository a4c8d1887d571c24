//! Judges programs of Python, Perl, Ruby, PHP, JavaScript and Lua that stand in an argument or on standard input.

use super::secrets::is_secret;
use super::{Level, Reason, given, reason, said};
use crate::effects::{Effect, Kind, Place, place_of};
use crate::embedded::code::{Deed, deeds, loops_for_ever};
use crate::parse::Script;
use crate::unwrap::{is_code, is_interpreter, is_shell};
use std::ops::Range;

pub(super) fn reasons(script: &Script, all: &[Effect]) -> Vec<Reason> {
    let mut found = Vec::new();
    for (index, command) in script.commands.iter().enumerate() {
        if let Some("awk" | "gawk" | "mawk" | "nawk") = command.name() {
            // the awk of GNU opens connections by this name
            let reaches =
                command.args().iter().find(|w| w.text.contains("/inet/tcp/") || w.text.contains("/inet/udp/"));
            found.extend(reaches.and_then(|w| of_deed(&Deed::RunsNetwork, &w.raw, &w.span)));
            for word in command.args().iter().filter(|w| w.text.contains('{')) {
                if ["system(", "| \"", "getline"].iter().any(|sign| word.text.contains(sign)) {
                    found.extend(said::reasons(&word.text, &word.raw, &word.span));
                }
                if fills(&word.text) {
                    found.extend(of_deed(&Deed::Fills, &word.raw, &word.span));
                }
            }
        }
        if !command.name().is_some_and(is_interpreter) {
            // a language that is not looked into: `emacs --eval`, `deno eval`, `R -e`
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
        // what only computes may print whatever it likes
        let computes = all.iter().any(|e| e.command == Some(index) && e.kind == Kind::Compute);
        for (at, word) in command.words.iter().enumerate().skip(1) {
            if is_code(&command.words, at) {
                if !computes {
                    found.extend(said::reasons(&word.text, &word.raw, &word.span));
                    if let Some(read) = command.args().iter().find(|w| is_secret(&w.text) && said::reaches(&word.text))
                    {
                        found.extend(of_deed(&Deed::Sends(read.text.clone()), &word.raw, &word.span));
                    }
                }
                found.extend(deeds(&word.text).into_iter().filter_map(|deed| of_deed(&deed, &word.raw, &word.span)));
            }
        }
        // a program without a file of its own reads its code
        if command.operands().all(|w| w.text == "-")
            && !command.words.iter().enumerate().any(|(at, _)| is_code(&command.words, at))
        {
            for text in given(script, index) {
                if !computes {
                    found.extend(said::reasons(&text, &first.raw, &first.span));
                }
                for deed in deeds(&text) {
                    if let Deed::Run(Some(line)) = &deed {
                        let inner = super::assess(&crate::parse(line, crate::Dialect::Sh));
                        found.extend(inner.reasons.into_iter().map(|r| Reason { span: Some(first.span.clone()), ..r }));
                    }
                    found.extend(of_deed(&deed, &first.raw, &first.span));
                }
            }
        }
    }
    found
}

/// True for a program of awk that prints into a file without end.
fn fills(code: &str) -> bool {
    let prints = code.split('>').skip(1).any(|rest| rest.trim_start().starts_with('"'));
    prints && loops_for_ever(code)
}

fn of_deed(deed: &Deed, token: &str, span: &Range<usize>) -> Option<Reason> {
    let shown: String = token.chars().take(60).collect();
    let say = |level, effect: &str, why: String, scope: &str| {
        Some(reason(level, effect, &shown, span.clone(), why).reaching(scope))
    };
    use Level::{Caution, Danger};
    match deed {
        Deed::Delete(Some(path), deep) => {
            let place = place_of(path);
            let lost = matches!(place, Place::Root | Place::System | Place::Home | Place::Device)
                || *deep && matches!(place, Place::Here | Place::Personal | Place::Configuration);
            let level = if lost { Danger } else { Caution };
            say(level, "delete", format!("the code in it deletes {path}"), path)
        }
        Deed::Delete(None, deep) => {
            let level = if *deep { Danger } else { Caution };
            say(level, "delete", "the code in it deletes what it computes".to_owned(), "")
        }
        Deed::Write(path) => match place_of(path) {
            Place::Device => say(Danger, "device", format!("the code in it writes over {path}"), path),
            Place::System | Place::Root => say(Danger, "overwrite", format!("the code in it writes to {path}"), path),
            Place::Sink | Place::Temporary => None,
            _ => say(Caution, "overwrite", format!("the code in it writes to {path}"), path),
        },
        Deed::Mode(path) => match place_of(path) {
            Place::Root | Place::System | Place::Home | Place::Device => {
                say(Danger, "permission", format!("the code in it changes the rights of {path}"), path)
            }
            _ => say(Caution, "permission", format!("the code in it changes the rights of {path}"), path),
        },
        Deed::Kill(number) if matches!(number.as_str(), "1" | "-1") => {
            say(Danger, "process", "the code in it ends what the system lives on".to_owned(), "every process")
        }
        Deed::Kill(_) | Deed::Run(_) => None,
        Deed::RunsNetwork => say(
            Danger,
            "network-to-shell",
            "the code in it runs what another machine says".to_owned(),
            "all that you may do on this machine",
        ),
        Deed::RunsDecoded => {
            say(Danger, "encoded", "the code in it runs what nobody can read as it stands".to_owned(), "")
        }
        Deed::Sends(path) if is_secret(path) => {
            say(Danger, "network", format!("the code in it sends {path} to another machine"), path)
        }
        Deed::Sends(_) => None,
        Deed::Forks => say(
            Danger,
            "process",
            "it starts processes until the machine stops (a fork bomb)".to_owned(),
            "the whole machine",
        ),
        Deed::Fills => {
            say(Danger, "process", "it takes memory until there is none left".to_owned(), "the whole machine")
        }
    }
}
