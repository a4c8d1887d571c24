//! Keys and passwords that are sent to another machine: through a pipe, from a redirection, into `/dev/tcp`.

use super::flow::is_joined;
use super::{Level, Reason, reason};
use crate::shell::effects::sent;
use crate::shell::parse::{Invocation, Script};

/// Programs that send what they read.
const SENDERS: [&str; 13] =
    ["curl", "wget", "nc", "ncat", "netcat", "socat", "telnet", "ftp", "ssh", "scp", "sftp", "rsync", "mail"];

/// How many pipes are followed back from what sends.
const MAX_STAGES: usize = 16;

pub(super) fn reasons(script: &Script) -> Vec<Reason> {
    let mut found = Vec::new();
    if !script.commands.iter().any(|command| secret_of(command, true).is_some()) {
        return found;
    }
    for (index, command) in script.commands.iter().enumerate() {
        let Some(first) = command.words.first() else { continue };
        let joined = is_joined(script, command);
        if !joined && !command.name().is_some_and(|n| SENDERS.contains(&n)) {
            continue;
        }
        let mut behind = feeders(script, index);
        behind.extend(wrapped(script, index).filter(|_| joined));
        let own = sent(command, script.dialect_of(command)).into_iter().find(|text| is_secret(text));
        let read = behind.into_iter().find_map(|at| secret_of(&script.commands[at], at != index || joined));
        if let Some(secret) = own.map(str::to_owned).or(read) {
            let why = format!("`{}` sends {secret} to another machine", first.raw);
            found.push(reason(Level::Danger, "network", &first.raw, first.span.clone(), why));
        }
    }
    found
}

/// The command, and all whose output comes to it through pipes.
fn feeders(script: &Script, index: usize) -> Vec<usize> {
    let mut found = vec![index];
    let mut at = 0;
    while at < found.len() && found.len() < MAX_STAGES {
        let feeds = |i: &usize| script.commands[*i].feeds.contains(&found[at]) && !found.contains(i);
        let new: Vec<usize> = (0..script.commands.len()).filter(feeds).collect();
        found.extend(new);
        at += 1;
    }
    found
}

/// What that command runs.
fn wrapped(script: &Script, index: usize) -> impl Iterator<Item = usize> {
    let inside = move |i: &usize| script.commands[*i].inside.is_some_and(|inside| inside.command == index);
    (0..script.commands.len()).filter(inside)
}

/// The secret that a command reads: from a redirection, and from its words if those are files.
fn secret_of(command: &Invocation, words: bool) -> Option<String> {
    let read = command.redirects.iter().filter(|r| r.operator.ends_with('<') && !r.operator.contains("<<"));
    let named = command.args().iter().filter(|_| words).map(|w| &w.text);
    named.chain(read.map(|r| &r.target.text)).find(|text| is_secret(text)).cloned()
}

/// True for the name of what lets its reader in somewhere. What a public key says may be known.
fn is_secret(path: &str) -> bool {
    const PARTS: [&str; 7] =
        ["/etc/shadow", ".ssh/id_", ".aws/credentials", ".gnupg", ".netrc", ".kube/config", ".password-store"];
    let path = path.trim_end_matches(['/', '*', '.']);
    !path.ends_with(".pub") && (path.ends_with("/.ssh") || PARTS.iter().any(|part| path.contains(part)))
}
