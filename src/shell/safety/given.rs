//! Finds the text of a command's standard input, as far as it is in the script: here-documents, here-strings, and
//! what `echo` and `printf` print into its pipe.

use crate::parse::{How, Invocation, Script};

/// Most pipes and wrappers that are followed.
const MAX_STAGES: usize = 8;

/// Returns the known texts on the standard input of a command, one for each command that prints into it.
pub(crate) fn stdin_texts(script: &Script, index: usize) -> Vec<String> {
    let mut found = Vec::new();
    follow(script, index, 0, &mut found);
    found
}

fn follow(script: &Script, index: usize, depth: usize, found: &mut Vec<String>) {
    if depth > MAX_STAGES {
        return;
    }
    let Some(command) = script.commands.get(index) else { return };
    let here_texts = command.redirects.iter().filter_map(|r| match r.operator.as_str() {
        "<<<" => Some(r.target.text.clone()),
        _ => r.body.as_ref().map(|body| body.text.clone()),
    });
    let before = found.len();
    found.extend(here_texts);
    if found.len() > before {
        return;
    }
    for (at, feeder) in script.commands.iter().enumerate().filter(|(_, c)| c.feeds.contains(&index)) {
        match feeder.name() {
            Some("echo" | "printf" | "print") => found.push(printed_text(feeder)),
            // these pass on the lines of their input
            Some("cat" | "tee" | "sudo" | "sort" | "uniq" | "grep") => follow(script, at, depth + 1, found),
            _ => {}
        }
    }
    // the wrapped command reads the input of its wrapper: `sudo tee f <<X`, `docker exec -i db psql <<X`
    if found.len() == before
        && let Some(inside) = command.inside.filter(|i| i.how == How::Wrapped)
        && !matches!(script.commands[inside.command].name(), Some("xargs" | "find" | "fd" | "parallel"))
    {
        follow(script, inside.command, depth + 1, found);
    }
}

/// Returns the text that `echo` or `printf` prints, with `\n` and `\t` resolved.
pub(crate) fn printed_text(command: &Invocation) -> String {
    let words =
        command.args().iter().skip_while(|w| matches!(w.text.as_str(), "-e" | "-n" | "-ne" | "-en" | "-E" | "--"));
    let text = words.map(|w| w.text.as_str()).collect::<Vec<_>>().join(" ");
    text.replace("\\n", "\n").replace("\\t", "\t")
}
