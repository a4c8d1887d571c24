//! Another machine: a user, a port or an address that the person did not name. `ssh` takes the first two from its own
//! configuration, or the usual ones; an address that a model made up leads nowhere, or to somebody else.

use super::CheckContext;
use super::edit::{Edits, warning};
use super::words::bare;
use crate::library;
use caro_shell::{Finding, Invocation, Word};

pub(super) fn check(it: &CheckContext) -> Vec<Finding> {
    let own = |c: &&Invocation| matches!(c.name(), Some("ssh" | "scp" | "sftp" | "rsync" | "ssh-copy-id"));
    let named = it.script.commands.iter().filter(own).flat_map(|c| user(it, c).into_iter().chain(port(it, c)));
    named.chain(it.script.commands.iter().filter_map(|c| address(it, c))).collect()
}

/// `wget http://packages.example/htop_2.2.deb` where nobody spoke of that host. One that our own examples ask, or of which only
/// the front page is asked, is known to be there.
fn address(it: &CheckContext, command: &Invocation) -> Option<Finding> {
    if it.request.is_empty() || !matches!(command.name()?, "curl" | "wget" | "git" | "aria2c" | "axel") {
        return None;
    }
    let asked = it.request.to_lowercase();
    let made_up = |w: &&Word| {
        let Some((host, path)) = w.text.split_once("://").and_then(|(_, rest)| rest.split_once('/')) else {
            return false;
        };
        let host = host.rsplit('@').next().unwrap_or(host).split(':').next().unwrap_or(host);
        let is_here = matches!(host, "localhost" | "127.0.0.1" | "");
        // "from github" names github.com, and "the pokemon api" pokeapi.co
        let is_named = host.split('.').any(|part| {
            let part = part.to_lowercase();
            part.len() > 3 && (asked.contains(&part) || asked.split_whitespace().any(|word| begin_alike(word, &part)))
        });
        !path.is_empty() && !is_here && !host.contains('$') && !is_named && !library::mentions(host)
    };
    let word = command.args().iter().find(made_up)?;
    Some(warning("made-up-address", word, "nobody named this address, and it may not be there", None))
}

/// True if two words have their first four letters in common.
fn begin_alike(a: &str, b: &str) -> bool {
    a.chars().zip(b.chars()).take_while(|(a, b)| a == b && a.is_alphabetic()).count() >= 4
}

/// `user@host` where nobody spoke of `user`: the one that was named, or none.
fn user(it: &CheckContext, command: &Invocation) -> Option<Finding> {
    const STANDINS: [&str; 6] = ["user", "username", "your_user", "your_username", "remote_user", "remoteuser"];
    let (word, name) = command.args().iter().find_map(|w| {
        let (name, host) = w.text.split_once('@')?;
        (STANDINS.contains(&name) && !host.is_empty()).then_some((w, name))
    })?;
    if it.request.contains(&format!("{name}@")) || word.raw.matches('@').count() != 1 {
        return None;
    }
    let said = said_user(it.request);
    let new = said.map(|said| format!("{said}@")).unwrap_or_default();
    let fix = Edits::new(it.script).replace(word, &word.raw.replacen(&format!("{name}@"), &new, 1)).done();
    let why = match said {
        Some(said) => format!("the user is {said}"),
        None => "no user was named: without one it is yours, or what your configuration has".into(),
    };
    Some(warning("made-up-user", word, why, fix))
}

/// "As user bob", "as bob": the last such word that can be a name.
fn said_user(request: &str) -> Option<&str> {
    let words: Vec<&str> = request.split_whitespace().map(bare).collect();
    let name = |w: &&str| {
        let own = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '_' | '-');
        w.starts_with(|c: char| c.is_ascii_lowercase())
            && w.chars().all(own)
            && !matches!(*w, "a" | "an" | "the" | "my")
    };
    let at = words.iter().rposition(|w| w.eq_ignore_ascii_case("as"))?;
    let user = words.get(at + 1).is_some_and(|w| w.eq_ignore_ascii_case("user"));
    // "as bob" ends what is asked for, or stands before where it goes; "as backup to the server" does not
    let rest = at + 1 + usize::from(user);
    let ends = user || rest + 1 >= words.len();
    words.get(rest).copied().filter(name).filter(|_| ends)
}

/// `-P 2222` where no port was spoken of.
fn port(it: &CheckContext, command: &Invocation) -> Option<Finding> {
    let option = match command.name()? {
        "scp" | "sftp" => "-P",
        "ssh" | "ssh-copy-id" => "-p",
        _ => return None,
    };
    let pair = command.words.windows(2).find(|w| w[0].text == option)?;
    let [flag, number]: &[Word; 2] = pair.try_into().ok()?;
    let is_number = !number.text.is_empty() && number.text.bytes().all(|b| b.is_ascii_digit());
    if !is_number || it.request.is_empty() || it.request.contains(&number.text) || it.request.contains("port") {
        return None;
    }
    let fix = Edits::new(it.script).replace(flag, "").replace(number, "").done();
    Some(warning("made-up-port", number, "no port was named: without one it is the usual one", fix))
}

#[cfg(test)]
mod tests {
    use super::super::tests::findings;
    use super::*;

    fn fixed(request: &str, command: &str) -> Option<String> {
        findings(check, request, command).into_iter().next().and_then(|f| f.fix)
    }

    #[test]
    fn an_address_is_not_made_up() {
        let found = |request: &str, command: &str| findings(check, request, command).len();
        assert_eq!(found("download the deb of htop", "wget http://packages.ubuntu.com/a/htop_2.2.0-1_amd64.deb"), 1);
        for (request, right) in [
            ("download https://example.net/a.zip", "wget https://example.net/a.zip"),
            ("clone torvalds/linux from GitHub", "git clone https://github.com/torvalds/linux"),
            ("is example.net up", "curl -I https://example.net/"),
            ("the weather of the openmeteo service", "curl -s https://api.open-meteo.example/v1/forecast"),
            ("look up isbn 3 in the openlibrary books", "curl -s https://openlib.example/isbn/3.json"),
            ("what is my public address", "curl -s https://ifconfig.me"),
            ("is my server up", "curl -fs http://localhost:8080/health"),
            ("download the page of $SITE", "curl -O \"https://$SITE/index.html\""),
            ("", "wget https://example.net/a.zip"),
        ] {
            assert_eq!(found(request, right), 0, "{request}: {right}");
        }
    }

    #[test]
    fn nobody_logs_in_as_who_was_not_named() {
        for (request, wrong, right) in [
            ("copy a.txt to /tmp on box as user bob", "scp a.txt user@box:/tmp", "scp a.txt bob@box:/tmp"),
            ("log in to box as ada", "ssh username@box", "ssh ada@box"),
            ("log in to box", "ssh user@box", "ssh box"),
            ("forward 8080 to box", "ssh -N -L 8080:localhost:80 user@box", "ssh -N -L 8080:localhost:80 box"),
            ("copy a.txt to /tmp on box", "scp -P 2222 a.txt box:/tmp", "scp a.txt box:/tmp"),
        ] {
            assert_eq!(fixed(request, wrong).as_deref(), Some(right), "{request}");
            assert_eq!(fixed(request, right), None, "{right}");
        }
        for (request, right) in [
            ("log in as user@box", "ssh user@box"),
            ("log in to box as root", "ssh root@box"),
            ("log in to box on port 2222", "ssh -p 2222 box"),
            ("log in to box, other port", "ssh -p 2222 box"),
            ("", "ssh -p 2222 box"),
            ("clone it", "git clone user@box:repo.git"),
        ] {
            assert_eq!(fixed(request, right), None, "{right}");
        }
        assert_eq!(said_user("mirror it as a backup to box"), None);
    }
}
