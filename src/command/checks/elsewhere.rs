//! Another machine: a user and a port that the person did not name. `ssh` takes them from its own configuration, or the
//! usual ones.

use super::Inspected;
use super::edit::{Edits, warning};
use crate::shell::{Finding, Invocation, Word};

pub(super) fn check(it: &Inspected) -> Vec<Finding> {
    let own = |c: &&Invocation| matches!(c.name(), Some("ssh" | "scp" | "sftp" | "rsync" | "ssh-copy-id"));
    it.script.commands.iter().filter(own).flat_map(|c| user(it, c).into_iter().chain(port(it, c))).collect()
}

/// `user@host` where nobody spoke of `user`: the one that was named, or none.
fn user(it: &Inspected, command: &Invocation) -> Option<Finding> {
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
    let words: Vec<&str> =
        request.split_whitespace().map(|w| w.trim_matches([',', '.', ';', '\'', '"', '`'])).collect();
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
fn port(it: &Inspected, command: &Invocation) -> Option<Finding> {
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
