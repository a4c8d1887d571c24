//! The text that a command is given on its standard input, as far as the script spells it out: here-documents,
//! here-strings, and what `echo` and `printf` print into its pipe.

use crate::parse::{How, Invocation, Script};

/// The most pipes and wrappers that are followed.
const MAX_STAGES: usize = 8;

/// Lists what that command reads from its standard input, one text for each that prints into it.
pub(crate) fn given(script: &Script, index: usize) -> Vec<String> {
    let mut found = Vec::new();
    follow(script, index, 0, &mut found);
    found
}

fn follow(script: &Script, index: usize, depth: usize, found: &mut Vec<String>) {
    if depth > MAX_STAGES {
        return;
    }
    let Some(command) = script.commands.get(index) else { return };
    let held = command.redirects.iter().filter_map(|r| match r.operator.as_str() {
        "<<<" => Some(r.target.text.clone()),
        _ => r.body.as_ref().map(|body| body.text.clone()),
    });
    let before = found.len();
    found.extend(held);
    if found.len() > before {
        return;
    }
    for (at, feeder) in script.commands.iter().enumerate().filter(|(_, c)| c.feeds.contains(&index)) {
        match feeder.name() {
            Some("echo" | "printf" | "print") => found.push(printed(feeder)),
            // what passes through these stays what it is, as far as lines go
            Some("cat" | "tee" | "sudo" | "sort" | "uniq" | "grep") => follow(script, at, depth + 1, found),
            _ => {}
        }
    }
    // what a wrapper is given is read by what it runs: `sudo tee f <<X`, `docker exec -i db psql <<X`
    if found.len() == before
        && let Some(inside) = command.inside.filter(|i| i.how == How::Wrapped)
        && !matches!(script.commands[inside.command].name(), Some("xargs" | "find" | "fd" | "parallel"))
    {
        follow(script, inside.command, depth + 1, found);
    }
}

/// The text that `echo` and `printf` print, their escapes for new lines and tabs resolved.
pub(crate) fn printed(command: &Invocation) -> String {
    let words =
        command.args().iter().skip_while(|w| matches!(w.text.as_str(), "-e" | "-n" | "-ne" | "-en" | "-E" | "--"));
    let text = words.map(|w| w.text.as_str()).collect::<Vec<_>>().join(" ");
    text.replace("\\n", "\n").replace("\\t", "\t")
}
