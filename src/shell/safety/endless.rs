//! Finds commands that never end and use more and more of the machine: loops that start processes or fill the disk,
//! functions that call themselves, endless streams that are stored.

use super::{Level, Reason, reason};
use crate::effects::{Effect, Kind, Place, place_of};
use crate::parse::{Construct, How, Invocation, Script};
use std::ops::Range;

/// Programs that make a loop pause or end.
const PAUSES: &[&str] = &[
    "sleep",
    "read",
    "wait",
    "break",
    "exit",
    "return",
    "inotifywait",
    "fswatch",
    "timeout",
    "select",
    "start-sleep",
    "usleep",
    "nc",
    "ncat",
    "socat",
    "ping",
    "tail",
    "kill",
    "fg",
];

/// Devices that can be read endlessly.
const ENDLESS: &[&str] = &["/dev/zero", "/dev/urandom", "/dev/random", "/dev/full"];

/// Programs that pass on their input as long as it comes.
const PASS_ON: &[&str] = &[
    "cat", "tee", "tr", "sed", "awk", "grep", "base64", "xxd", "od", "hexdump", "gzip", "bzip2", "xz", "zstd", "pv",
    "rev", "cut", "nl", "openssl", "dd", "strings", "fold", "cp", "split", "sudo", "nohup", "nice",
];

/// Programs that store all of their input before they finish.
const STORE_INPUT: &[&str] = &["sort", "tail", "tac", "shuf", "tsort", "column", "sponge", "jq", "rev"];

/// Size in bytes from which a stream counts as endless.
const HUGE: u64 = 4 << 30;

/// Most pipes that are followed back.
const MAX_STAGES: usize = 12;

pub(super) fn reasons(script: &Script, all: &[Effect]) -> Vec<Reason> {
    let mut found = loops(script, all);
    found.extend(functions(script));
    found.extend(self_starts(script));
    found.extend(streams(script, all));
    found
}

fn exhaustion(span: &Range<usize>, why: &str, token: &str) -> Reason {
    let token: String = token.chars().take(60).collect();
    reason(Level::Danger, "process", &token, span.clone(), why).with_scope("the whole machine")
}

fn loops(script: &Script, all: &[Effect]) -> Vec<Reason> {
    let mut found = Vec::new();
    for endless in &script.loops {
        let text = script.text.get(endless.span.clone()).unwrap_or_default();
        let in_background = |span: &Range<usize>| {
            script.background.iter().any(|b| b.start <= span.start && span.end <= b.end && endless.span.start < b.start)
        };
        let Some(body) = script.commands.get(endless.commands.clone()) else { continue };
        let pauses =
            |c: &Invocation| c.key().is_some_and(|k| PAUSES.contains(&k.as_str())) && !in_background(&c.span());
        if body.iter().any(pauses) {
            continue;
        }
        if body.iter().any(|c| in_background(&c.span())) {
            found.push(exhaustion(&endless.span, "it starts processes without end, until the machine stops", text));
            continue;
        }
        let grows = |e: &Effect| {
            let within = e.command.is_some_and(|at| endless.commands.contains(&at));
            let is_stored = e.path.as_deref().is_none_or(|p| place_of(p) != Place::Sink);
            let copies = |at: usize| matches!(script.commands[at].name(), Some("cp" | "rsync"));
            within
                && is_stored
                && (matches!(e.kind, Kind::Append | Kind::Create)
                    || e.kind == Kind::Overwrite && e.command.is_some_and(copies))
        };
        if all.iter().any(grows) {
            found.push(exhaustion(&endless.span, "it writes without end, until the disk is full", text));
        } else {
            let token: String = text.chars().take(60).collect();
            found.push(reason(
                Level::Caution,
                "process",
                &token,
                endless.span.clone(),
                "it never ends by itself and never pauses",
            ));
        }
    }
    found
}

/// Finds functions that call themselves unconditionally.
fn functions(script: &Script) -> Vec<Reason> {
    let mut found = Vec::new();
    for function in &script.functions {
        let Some(body) = script.commands.get(function.commands.clone()) else { continue };
        let calls = |c: &&Invocation| c.via.is_empty() && c.words.first().is_some_and(|w| w.text == function.name);
        let is_condition = |construct: &Construct| {
            matches!(
                construct,
                Construct::BourneBlock
                    | Construct::AndOr
                    | Construct::DoubleBracket
                    | Construct::DoubleParen
                    | Construct::Arithmetic
            )
        };
        let inside = |span: &Range<usize>| function.span.start <= span.start && span.end <= function.span.end;
        let conditional = script.constructs.iter().any(|(construct, span)| is_condition(construct) && inside(span));
        let leaves = body.iter().any(|c| matches!(c.name(), Some("return" | "exit")));
        // the arguments of the first call do not matter: the function calls itself again
        let called = script.commands.iter().enumerate().any(|(at, c)| !function.commands.contains(&at) && calls(&c));
        if body.iter().filter(calls).count() == 1 && called && !conditional && !leaves {
            let why = format!("the function {} calls itself without end, until there is no memory left", function.name);
            found.push(exhaustion(&function.span, &why, &function.name));
        }
    }
    found
}

/// Finds `$0 & $0`: a script that starts itself more than once.
fn self_starts(script: &Script) -> Vec<Reason> {
    let own =
        |c: &&Invocation| c.words.first().is_some_and(|w| matches!(w.text.as_str(), "$0" | "${0}" | "$BASH_SOURCE"));
    let starts: Vec<&Invocation> = script.commands.iter().filter(own).collect();
    if starts.len() < 2 {
        return Vec::new();
    }
    vec![exhaustion(&starts[0].span(), "it starts itself more than once, until the machine stops (a fork bomb)", "$0")]
}

/// Finds endless streams that are stored in a file or in memory.
fn streams(script: &Script, all: &[Effect]) -> Vec<Reason> {
    let mut found = Vec::new();
    // a quick check that rules out most scripts
    if !script.commands.iter().any(is_source) {
        return found;
    }
    for (index, command) in script.commands.iter().enumerate() {
        let Some(first) = command.words.first() else { continue };
        if !is_endless(script, index, 0) || command.via.iter().any(|v| v == "timeout" || v == "gtimeout") {
            continue;
        }
        let writes = |e: &&Effect| {
            e.command == Some(index)
                && matches!(e.kind, Kind::Overwrite | Kind::Append | Kind::Create)
                && e.path.as_deref().is_some_and(|p| !matches!(place_of(p), Place::Sink | Place::Device))
        };
        if let Some(effect) = all.iter().find(writes) {
            let path = effect.path.clone().unwrap_or_default();
            let why = format!("it writes to {path} without end, until the disk is full");
            found.push(
                reason(Level::Danger, "overwrite", &first.raw, first.span.clone(), why)
                    .with_scope("all room on that disk"),
            );
        }
        let stores_input = command.name().is_some_and(|n| STORE_INPUT.contains(&n));
        let inside = command.inside.is_some_and(|i| i.how == How::Substitution);
        let assigned = script.assignments.iter().any(|a| a.commands.contains(&index));
        if stores_input || (inside || assigned) && command.feeds.is_empty() {
            found.push(exhaustion(
                &first.span,
                "it keeps a stream without end in memory, until there is none left",
                &first.raw,
            ));
        }
    }
    found
}

/// True for a command whose output is an endless stream, or that stores one.
fn is_endless(script: &Script, index: usize, depth: usize) -> bool {
    let command = &script.commands[index];
    if is_source(command) {
        return true;
    }
    let passes = command.name().is_some_and(|n| PASS_ON.contains(&n) || STORE_INPUT.contains(&n));
    let bounded = command.args().iter().any(|w| w.text.starts_with("count="));
    passes
        && !bounded
        && depth < MAX_STAGES
        && command.stdin_pipe
        && script
            .commands
            .iter()
            .enumerate()
            .any(|(at, c)| c.feeds.contains(&index) && is_endless(script, at, depth + 1))
}

/// True for a command that starts an endless stream.
fn is_source(command: &Invocation) -> bool {
    let device = |text: &str| ENDLESS.contains(&text);
    let read = command.redirects.iter().any(|r| r.operator == "<" && device(&r.target.text));
    let named = || command.operands().any(|w| device(&w.text));
    match command.name() {
        Some("yes") => true,
        Some("dd" | "dcfldd" | "pv") => {
            let from = |w: &crate::Word| w.text.strip_prefix("if=").is_some_and(device);
            let bounded = |w: &crate::Word| w.text.starts_with("count=");
            (command.args().iter().any(from) || read || command.name() == Some("pv") && named())
                && !command.args().iter().any(bounded)
        }
        Some("head" | "ghead") => {
            let huge = |w: &crate::Word| {
                bytes(w.text.trim_start_matches("-c").trim_start_matches("--bytes=")).is_some_and(|n| n >= HUGE)
            };
            (read || named()) && command.args().iter().any(huge)
        }
        Some(name) if PASS_ON.contains(&name) || STORE_INPUT.contains(&name) => {
            let few =
                command.args().iter().any(|w| matches!(w.text.as_str(), "-n" | "-N" | "-l" | "-c") && name != "tr");
            (read || named() && name != "grep") && !(few && matches!(name, "od" | "hexdump" | "xxd" | "tail"))
        }
        _ => false,
    }
}

/// Parses a size such as `100G` into bytes.
fn bytes(text: &str) -> Option<u64> {
    let digits: String = text.chars().take_while(char::is_ascii_digit).collect();
    let number: u64 = digits.parse().ok()?;
    let unit = match text[digits.len()..].chars().next().map(|c| c.to_ascii_uppercase()) {
        None => 1,
        Some('K') => 1 << 10,
        Some('M') => 1 << 20,
        Some('G') => 1 << 30,
        Some('T') => 1 << 40,
        Some('P') => 1 << 50,
        Some(_) => return None,
    };
    number.checked_mul(unit)
}
