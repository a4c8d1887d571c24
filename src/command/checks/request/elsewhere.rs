//! Finds users, ports and addresses of other machines that the request does not name. `ssh` takes the first two from
//! its own configuration or defaults; an address that a model invented does not exist, or belongs to somebody else.

use super::CheckContext;
use super::edit::{Edits, warning};
use super::words::without_punctuation;
use crate::library;
use caro_shell::{Finding, Invocation, Word};

pub(super) fn check(cx: &CheckContext) -> Vec<Finding> {
    let uses_ssh = |c: &&Invocation| matches!(c.name(), Some("ssh" | "scp" | "sftp" | "rsync" | "ssh-copy-id"));
    let of_ssh = cx.script.commands.iter().filter(uses_ssh).flat_map(|c| user(cx, c).into_iter().chain(port(cx, c)));
    of_ssh.chain(cx.script.commands.iter().filter_map(|c| address(cx, c))).collect()
}

/// `wget http://packages.example/htop_2.2.deb` where the request does not name the host. Hosts of our own examples
/// are fine, and so is a URL without a path.
fn address(cx: &CheckContext, command: &Invocation) -> Option<Finding> {
    if cx.request.is_empty() || !matches!(command.name()?, "curl" | "wget" | "git" | "aria2c" | "axel") {
        return None;
    }
    let request = cx.request.to_lowercase();
    let is_invented = |w: &&Word| {
        let Some((host, path)) = w.text.split_once("://").and_then(|(_, rest)| rest.split_once('/')) else {
            return false;
        };
        let host = host.rsplit('@').next().unwrap_or(host).split(':').next().unwrap_or(host);
        let is_here = matches!(host, "localhost" | "127.0.0.1" | "");
        // "from github" names github.com, and "the pokemon api" pokeapi.co
        let is_named = host.split('.').any(|part| {
            let part = part.to_lowercase();
            part.len() > 3
                && (request.contains(&part) || request.split_whitespace().any(|word| begin_alike(word, &part)))
        });
        !path.is_empty() && !is_here && !host.contains('$') && !is_named && !library::mentions(host)
    };
    let word = command.args().iter().find(is_invented)?;
    Some(warning("made-up-address", word, "nobody named this address, and it may not be there", None))
}

/// True if two words have the same first four letters.
fn begin_alike(a: &str, b: &str) -> bool {
    a.chars().zip(b.chars()).take_while(|(a, b)| a == b && a.is_alphabetic()).count() >= 4
}

/// `user@host` where the request names another user, or none.
fn user(cx: &CheckContext, command: &Invocation) -> Option<Finding> {
    const PLACEHOLDERS: [&str; 6] = ["user", "username", "your_user", "your_username", "remote_user", "remoteuser"];
    let (word, name) = command.args().iter().find_map(|w| {
        let (name, host) = w.text.split_once('@')?;
        (PLACEHOLDERS.contains(&name) && !host.is_empty()).then_some((w, name))
    })?;
    if cx.request.contains(&format!("{name}@")) || word.raw.matches('@').count() != 1 {
        return None;
    }
    let named = named_user(cx.request);
    let new = named.map(|user| format!("{user}@")).unwrap_or_default();
    let fix = Edits::new(cx.script).replace(word, &word.raw.replacen(&format!("{name}@"), &new, 1)).apply();
    let why = match named {
        Some(user) => format!("the user is {user}"),
        None => "no user was named: without one it is yours, or what your configuration has".into(),
    };
    Some(warning("made-up-user", word, why, fix))
}

/// Returns the user that a request names last: "as user bob", or "as bob" at its end.
fn named_user(request: &str) -> Option<&str> {
    let words: Vec<&str> = request.split_whitespace().map(without_punctuation).collect();
    let is_name = |w: &&str| {
        let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '_' | '-');
        w.starts_with(|c: char| c.is_ascii_lowercase())
            && w.chars().all(is_plain)
            && !matches!(*w, "a" | "an" | "the" | "my")
    };
    let at = words.iter().rposition(|w| w.eq_ignore_ascii_case("as"))?;
    let has_user = words.get(at + 1).is_some_and(|w| w.eq_ignore_ascii_case("user"));
    let name_at = at + 1 + usize::from(has_user);
    // "as backup to the server" names no user
    if !has_user && name_at + 1 < words.len() {
        return None;
    }
    words.get(name_at).copied().filter(is_name)
}

/// `-P 2222` where the request does not mention a port.
fn port(cx: &CheckContext, command: &Invocation) -> Option<Finding> {
    let option = match command.name()? {
        "scp" | "sftp" => "-P",
        "ssh" | "ssh-copy-id" => "-p",
        _ => return None,
    };
    let pair = command.words.windows(2).find(|w| w[0].text == option)?;
    let [flag, number]: &[Word; 2] = pair.try_into().ok()?;
    let is_number = !number.text.is_empty() && number.text.bytes().all(|b| b.is_ascii_digit());
    if !is_number || cx.request.is_empty() || cx.request.contains(&number.text) || cx.request.contains("port") {
        return None;
    }
    let fix = Edits::new(cx.script).replace(flag, "").replace(number, "").apply();
    Some(warning("made-up-port", number, "no port was named: without one it is the usual one", fix))
}
