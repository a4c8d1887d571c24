//! Keys and passwords that are sent to another machine: through a pipe, from a redirection, into `/dev/tcp`.

use super::flow::is_joined;
use super::{Level, Reason, given, reason};
use crate::effects::{Place, place_of, sent};
use crate::parse::{How, Invocation, Script};

/// Programs that send what they read, or what they are told.
const SENDERS: [&str; 33] = [
    "curl",
    "wget",
    "nc",
    "ncat",
    "netcat",
    "socat",
    "telnet",
    "ftp",
    "lftp",
    "tftp",
    "ssh",
    "scp",
    "sftp",
    "rsync",
    "mail",
    "mailx",
    "mutt",
    "sendmail",
    "openssl",
    "http",
    "https",
    "xh",
    "rclone",
    "aws",
    "gsutil",
    "gcloud",
    "az",
    "croc",
    "gh",
    "invoke-restmethod",
    "invoke-webrequest",
    "irm",
    "iwr",
];

/// Programs whose question itself tells another machine something.
const ASKERS: [&str; 7] = ["dig", "nslookup", "host", "drill", "ping", "whois", "resolvectl"];

/// How many pipes are followed back from what sends.
const MAX_STAGES: usize = 16;

pub(super) fn reasons(script: &Script) -> Vec<Reason> {
    let mut found = Vec::new();
    let read: Vec<Option<String>> = script.commands.iter().map(|command| secret_of(command, true)).collect();
    // what a loop reads as a whole: `while read -r l; do ...; done < ~/.bash_history`
    let looped =
        script.redirects.iter().filter(|r| r.operator == "<").map(|r| &r.target.text).find(|text| is_secret(text));
    let put = |index: usize| {
        let asked = given(script, index);
        let mut words = asked.iter().flat_map(|text| text.split_whitespace());
        words.find(|word| is_secret(word)).map(str::to_owned)
    };
    let puts = |c: &Invocation| matches!(c.name(), Some("sftp" | "ftp" | "lftp" | "smbclient"));
    if read.iter().all(Option::is_none) && looped.is_none() && !script.commands.iter().any(puts) {
        return found;
    }
    let sends = |c: &Invocation| c.key().is_some_and(|n| SENDERS.contains(&n.as_str()));
    let asks = |c: &Invocation| c.name().is_some_and(|n| ASKERS.contains(&n));
    // what a secret was copied into is one, too
    let copies: Vec<(&str, &str)> = script
        .commands
        .iter()
        .zip(&read)
        .filter(|(c, _)| !sends(c))
        .filter_map(|(c, secret)| Some((c, secret.as_deref()?)))
        .flat_map(|(c, secret)| written(c).into_iter().map(move |path| (path, secret)))
        .collect();
    let elsewhere = script.commands.iter().zip(&read).filter(|(c, _)| !sends(c)).find_map(|(_, secret)| secret.clone());
    let elsewhere = elsewhere.or_else(|| looped.cloned());
    for (index, command) in script.commands.iter().enumerate() {
        let Some(first) = command.words.first() else { continue };
        let joined = is_joined(script, command);
        let published = matches!(command.name(), Some("cp" | "mv" | "ln" | "install")) && is_published(command);
        if !joined && !sends(command) && !asks(command) && !published {
            continue;
        }
        let mut behind = feeders(script, index);
        if joined {
            behind.extend(wrapped(script, index));
        }
        let own = sent(command, script.dialect_of(command)).into_iter().find(|text| is_secret(text));
        let read_there = behind.into_iter().find_map(|at| match at == index && !joined && !published {
            true => secret_of(command, posts(command)),
            false => read[at].clone(),
        });
        let copied = || {
            let named = |path: &str| command.args().iter().any(|w| w.text.trim_start_matches('@').ends_with(path));
            copies.iter().find(|(path, _)| named(path)).map(|(_, secret)| (*secret).to_owned())
        };
        // a variable that may hold it: a loop over its lines, what it was assigned
        let told = || {
            let own_words = command.args().iter().any(|w| w.expands && w.text.contains('$') && !w.text.contains("$("));
            if own_words && (asks(command) || sends(command)) { elsewhere.clone() } else { None }
        };
        // a backup goes over ssh or to a store; nothing else takes a whole database
        let stores =
            matches!(command.name(), Some("ssh" | "rsync" | "scp" | "aws" | "gsutil" | "rclone" | "gcloud" | "az"));
        let read_there = read_there.filter(|secret| !stores || !secret.starts_with("a dump"));
        if let Some(secret) = own
            .map(str::to_owned)
            .or(read_there)
            .or_else(copied)
            .or_else(told)
            .or_else(|| if puts(command) { put(index) } else { None })
        {
            let why = format!("`{}` sends {secret} to another machine", first.raw);
            found.push(reason(Level::Danger, "network", &first.raw, first.span.clone(), why).reaching(secret));
        }
    }
    found
}

/// Files that a command writes a copy into: redirections, an archive, the goal of a `cp`.
fn written(command: &Invocation) -> Vec<&str> {
    let redirected = command.redirects.iter().filter(|r| r.writes()).map(|r| r.target.text.as_str());
    let key = command.key();
    let archive = match key.as_deref() {
        Some("compress-archive") => command.operands().last(),
        Some("tar") => command.args().iter().skip_while(|w| !w.text.contains('f')).nth(1),
        Some("zip") => command.operands().next(),
        Some("cp" | "mv") => command.operands().last(),
        _ => None,
    };
    let named = archive.map(|w| w.text.as_str()).filter(|t| !matches!(*t, "-" | "." | "/tmp"));
    redirected.filter(|t| !t.starts_with("/dev/")).chain(named).collect()
}

/// True where everybody may fetch what is put there.
fn is_published(command: &Invocation) -> bool {
    const SERVED: [&str; 4] = ["/var/www", "/srv/www", "/srv/http", "/public_html"];
    command.operands().last().is_some_and(|w| SERVED.iter().any(|folder| w.text.contains(folder)))
}

/// True for programs whose words name the files that they send: of the others the words are addresses and keys to log in with.
fn posts(command: &Invocation) -> bool {
    matches!(
        command.name(),
        Some(
            "wget"
                | "socat"
                | "mail"
                | "mailx"
                | "mutt"
                | "aws"
                | "gsutil"
                | "rclone"
                | "http"
                | "https"
                | "xh"
                | "gcloud"
                | "az"
                | "croc"
                | "lftp"
        )
    )
}

/// The command, and all whose output comes to it through pipes.
fn feeders(script: &Script, index: usize) -> Vec<usize> {
    let mut found = vec![index];
    let mut at = 0;
    while at < found.len() && found.len() < MAX_STAGES {
        let feeds = |i: &usize| script.commands[*i].feeds.contains(&found[at]) && !found.contains(i);
        let mut new: Vec<usize> = (0..script.commands.len()).filter(feeds).collect();
        // what stands in a substitution of it, and what feeds the program that runs it
        let here = script.commands[found[at]].inside;
        new.extend(substituted(script, found[at]).filter(|i| !found.contains(i)));
        new.extend(
            here.filter(|i| i.how == How::Wrapped && is_handing(&script.commands[i.command]))
                .map(|i| i.command)
                .filter(|i| !found.contains(i)),
        );
        new.dedup();
        found.extend(new);
        at += 1;
    }
    found
}

/// True for what hands its own input to the command that it runs.
fn is_handing(command: &Invocation) -> bool {
    matches!(command.name(), Some("xargs" | "parallel" | "sudo" | "env" | "nohup" | "timeout" | "busybox"))
}

/// The commands whose output becomes a word of that command.
fn substituted(script: &Script, index: usize) -> impl Iterator<Item = usize> {
    let inside = move |i: &usize| {
        script.commands[*i].inside.is_some_and(|inside| inside.command == index && inside.how != How::Wrapped)
    };
    (0..script.commands.len()).filter(inside)
}

/// What that command runs.
fn wrapped(script: &Script, index: usize) -> impl Iterator<Item = usize> {
    let inside = move |i: &usize| script.commands[*i].inside.is_some_and(|inside| inside.command == index);
    (0..script.commands.len()).filter(inside)
}

/// Patterns by which files of keys are found.
const KEY_FILES: [&str; 8] = ["id_*", "id_rsa*", "*.pem", "*.key", "*.kdbx", "*.p12", "*.pfx", ".env"];

/// True for a listing of PowerShell's drive of the environment.
fn says_env(command: &Invocation) -> bool {
    command.args().iter().any(|w| w.text.to_ascii_lowercase().starts_with("env:"))
}

/// True for a command of an account that prints a key of it.
fn tells_keys(command: &Invocation) -> bool {
    let named = |w: &crate::Word| {
        ["secret", "credential", "access-key", "access_key", "token"].iter().any(|part| w.text.contains(part))
    };
    command.operands().any(named)
}

/// True for a home folder, or all of them.
fn is_home(path: &str) -> bool {
    matches!(place_of(path), Place::Home | Place::Root)
        || matches!(path.trim_end_matches('/'), "/home" | "/root" | "/Users")
}

/// The secret that a command reads: from a redirection, and from its words if those are files; what it prints itself.
fn secret_of(command: &Invocation, words: bool) -> Option<String> {
    let read = command.redirects.iter().filter(|r| r.operator.ends_with('<') && !r.operator.contains("<<"));
    let args = if words { command.args() } else { &[] };
    let named = args.iter().map(|w| &w.text);
    let says = |word: &str| command.args().iter().any(|w| w.text.starts_with(word));
    let printed = match command.name() {
        Some(name) if name.eq_ignore_ascii_case("get-childitem") && says_env(command) => {
            Some("the environment, with the keys in it")
        }
        // all of it, or what is picked out of all of it
        Some("env" | "printenv") if command.args().is_empty() => Some("the environment, with the keys in it"),
        Some("printenv")
            if command
                .args()
                .iter()
                .any(|w| ["KEY", "SECRET", "TOKEN", "PASS"].iter().any(|part| w.text.contains(part))) =>
        {
            Some("a key in the environment")
        }
        Some("aws" | "az" | "gcloud" | "kubectl" | "oc" | "vault" | "gh") if tells_keys(command) => {
            Some("a key of the account")
        }
        Some("pg_dump" | "pg_dumpall" | "mysqldump" | "mongodump" | "mongoexport") => Some("a dump of a database"),
        Some("find" | "fd" | "locate") if command.args().iter().any(|w| KEY_FILES.contains(&w.text.as_str())) => {
            Some("files of keys")
        }
        Some("curl" | "wget") if says("http://169.254.169.254") || says("http://metadata.google.internal") => {
            Some("the credentials that this machine has in the cloud")
        }
        Some("tcpdump" | "tshark" | "dumpcap") if !says("-r") => Some("what goes over the network here"),
        Some("tar" | "zip" | "7z") if command.operands().any(|w| is_home(&w.text)) => Some("a whole home folder"),
        Some("history") if command.args().iter().all(|w| w.text.chars().all(|c| c.is_ascii_digit())) => {
            Some("the history of what was typed")
        }
        Some("gpg" | "gpg2") if says("--export-secret") => Some("the secret keys"),
        Some("security") if says("dump-keychain") || says("find-") || says("export") => Some("the keychain"),
        Some("pass" | "secret-tool" | "op" | "bw") if says("show") || says("lookup") || says("get") || says("read") => {
            Some("a password")
        }
        _ => None,
    };
    named
        .chain(read.map(|r| &r.target.text))
        .find(|text| is_secret(text))
        .cloned()
        .or_else(|| printed.map(str::to_owned))
}

/// True for the name of what lets its reader in somewhere, or tells what somebody typed. What a public key says may be known.
pub(super) fn is_secret(path: &str) -> bool {
    const PARTS: [&str; 36] = [
        "/etc/shadow",
        "/etc/gshadow",
        "/etc/sudoers",
        ".ssh/id_",
        ".aws/",
        ".gnupg",
        ".netrc",
        ".kube/config",
        ".password-store",
        "_history",
        ".git-credentials",
        ".docker/config",
        ".pgpass",
        ".my.cnf",
        ".mozilla",
        ".thunderbird",
        "google-chrome",
        "chromium/",
        "Login Data",
        "logins.json",
        "logins.db",
        "key4.db",
        "Keychains",
        "wallet.dat",
        ".config/gh",
        ".npmrc",
        ".pypirc",
        "/environ",
        ".azure/",
        ".config/gcloud",
        ".vault-token",
        ".electrum",
        ".bitcoin",
        "/etc/ssl/private",
        "ssh_host_",
        ".config/rclone",
    ];
    const NAMES: [&str; 10] =
        [".ssh", ".aws", ".kube", ".env", "id_rsa", "id_ed25519", "id_ecdsa", "id_dsa", ".gnupg", ".azure"];
    let path = path.trim_end_matches(['/', '*', '.', '"', '\'']);
    let last = path.rsplit(['/', '=', '@', ':']).next().unwrap_or_default();
    let private = path.ends_with(".env.production") || path.ends_with(".env.local");
    !path.ends_with(".pub")
        && !path.ends_with("known_hosts")
        && (private || NAMES.contains(&last) || PARTS.iter().any(|part| path.contains(part)))
}
