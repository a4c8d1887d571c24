//! Finds keys and passwords that are sent to another machine: through a pipe, from a redirection, into `/dev/tcp`.

use super::flow::is_connected;
use super::{Level, Reason, reason, stdin_texts};
use crate::effects::{Place, environment_option, place_of, sends, sent_files};
use crate::parse::{How, Invocation, Script};

/// Most pipes that are followed back from a sender.
const MAX_STAGES: usize = 16;

pub(super) fn reasons(script: &Script) -> Vec<Reason> {
    let mut found = Vec::new();
    let read: Vec<Option<String>> = script.commands.iter().map(|command| secret_read_by(command, true)).collect();
    // the input of a whole loop: `while read -r l; do ...; done < ~/.bash_history`
    let loop_input =
        script.redirects.iter().filter(|r| r.operator == "<").map(|r| &r.target.text).find(|text| is_secret(text));
    let uploaded = |index: usize| {
        let texts = stdin_texts(script, index);
        let mut words = texts.iter().flat_map(|text| text.split_whitespace());
        words.find(|word| is_secret(word)).map(str::to_owned)
    };
    let uploads = |c: &Invocation| matches!(c.name(), Some("sftp" | "ftp" | "lftp" | "smbclient"));
    if read.iter().all(Option::is_none) && loop_input.is_none() && !script.commands.iter().any(uploads) {
        return found;
    }
    let sends = |c: &Invocation| sends(c, script.dialect_of(c));
    // a copy of a secret is a secret
    let copies: Vec<(&str, &str)> = script
        .commands
        .iter()
        .zip(&read)
        .filter(|(c, _)| !sends(c))
        .filter_map(|(c, secret)| Some((c, secret.as_deref()?)))
        .flat_map(|(c, secret)| copied_to(c).into_iter().map(move |path| (path, secret)))
        .collect();
    let read_before =
        script.commands.iter().zip(&read).filter(|(c, _)| !sends(c)).find_map(|(_, secret)| secret.clone());
    let read_before = read_before.or_else(|| loop_input.cloned());
    for (index, command) in script.commands.iter().enumerate() {
        let Some(first) = command.words.first() else { continue };
        let connected = is_connected(script, command);
        let published = matches!(command.name(), Some("cp" | "mv" | "ln" | "install")) && is_published(command);
        if !connected && !sends(command) && !published {
            continue;
        }
        let mut sources = feeders(script, index);
        if connected {
            sources.extend(wrapped(script, index));
        }
        let own = sent_files(command, script.dialect_of(command)).into_iter().find(|text| is_secret(text));
        let read_there = sources.into_iter().find_map(|at| match at == index && !connected && !published {
            // what it prints itself stays here
            true => secret_file_of(command, posts(command)),
            false => read[at].clone(),
        });
        let from_copy = || {
            let named = |path: &str| command.args().iter().any(|w| w.text.trim_start_matches('@').ends_with(path));
            copies.iter().find(|(path, _)| named(path)).map(|(_, secret)| (*secret).to_owned())
        };
        // a variable that may hold the secret: from a loop over its lines, or assigned
        let from_variable = || {
            let own_words = command.args().iter().any(|w| w.expands && w.text.contains('$') && !w.text.contains("$("));
            if own_words && sends(command) { read_before.clone() } else { None }
        };
        // a backup goes over ssh or to a store; other programs do not accept a whole database
        let stores =
            matches!(command.name(), Some("ssh" | "rsync" | "scp" | "aws" | "gsutil" | "rclone" | "gcloud" | "az"));
        let read_there = read_there.filter(|secret| !stores || !secret.starts_with("a dump"));
        if let Some(secret) = own
            .map(str::to_owned)
            .or(read_there)
            .or_else(from_copy)
            .or_else(from_variable)
            .or_else(|| if uploads(command) { uploaded(index) } else { None })
        {
            let why = format!("`{}` sends {secret} to another machine", first.raw);
            found.push(reason(Level::Danger, "network", &first.raw, first.span.clone(), why).with_scope(secret));
        }
    }
    found
}

/// Returns the files that a command copies data into: redirections, an archive, the target of a `cp`.
fn copied_to(command: &Invocation) -> Vec<&str> {
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

/// True if the target is a folder of a web server.
fn is_published(command: &Invocation) -> bool {
    const SERVED: [&str; 4] = ["/var/www", "/srv/www", "/srv/http", "/public_html"];
    command.operands().last().is_some_and(|w| SERVED.iter().any(|folder| w.text.contains(folder)))
}

/// True for programs whose words name the files that they send; the words of other programs are addresses and login
/// keys.
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

/// Returns the command, and all commands whose output reaches it through pipes.
fn feeders(script: &Script, index: usize) -> Vec<usize> {
    let mut found = vec![index];
    let mut at = 0;
    while at < found.len() && found.len() < MAX_STAGES {
        let feeds = |i: &usize| script.commands[*i].feeds.contains(&found[at]) && !found.contains(i);
        let mut new: Vec<usize> = (0..script.commands.len()).filter(feeds).collect();
        // the commands in its substitutions, and those that feed its wrapper
        let here = script.commands[found[at]].inside;
        new.extend(substituted(script, found[at]).filter(|i| !found.contains(i)));
        new.extend(
            here.filter(|i| i.how == How::Wrapped && passes_input(&script.commands[i.command]))
                .map(|i| i.command)
                .filter(|i| !found.contains(i)),
        );
        new.dedup();
        found.extend(new);
        at += 1;
    }
    found
}

/// True for programs that pass their input on to the command they run.
fn passes_input(command: &Invocation) -> bool {
    matches!(command.name(), Some("xargs" | "parallel" | "sudo" | "env" | "nohup" | "timeout" | "busybox"))
}

/// Returns the commands whose output becomes a word of the command.
fn substituted(script: &Script, index: usize) -> impl Iterator<Item = usize> {
    let inside = move |i: &usize| {
        script.commands[*i].inside.is_some_and(|inside| inside.command == index && inside.how != How::Wrapped)
    };
    (0..script.commands.len()).filter(inside)
}

/// Returns the commands inside of the command.
fn wrapped(script: &Script, index: usize) -> impl Iterator<Item = usize> {
    let inside = move |i: &usize| script.commands[*i].inside.is_some_and(|inside| inside.command == index);
    (0..script.commands.len()).filter(inside)
}

/// File name patterns of keys.
const KEY_FILES: [&str; 8] = ["id_*", "id_rsa*", "*.pem", "*.key", "*.kdbx", "*.p12", "*.pfx", ".env"];

/// True for a listing of the environment in PowerShell.
fn lists_environment(command: &Invocation) -> bool {
    command.args().iter().any(|w| w.text.to_ascii_lowercase().starts_with("env:"))
}

/// True for a command that prints a key of an account.
fn prints_keys(command: &Invocation) -> bool {
    let named = |w: &crate::Word| {
        ["secret", "credential", "access-key", "access_key", "token"].iter().any(|part| w.text.contains(part))
    };
    command.operands().any(named)
}

/// True for a home folder, or a folder that contains them.
fn is_home(path: &str) -> bool {
    matches!(place_of(path), Place::Home | Place::Root)
        || matches!(path.trim_end_matches('/'), "/home" | "/root" | "/Users")
}

/// Returns the secret that a command reads or prints: from a redirection, from its words if `words` are files, or
/// from the system.
fn secret_read_by(command: &Invocation, words: bool) -> Option<String> {
    let says = |word: &str| command.args().iter().any(|w| w.text.starts_with(word));
    let printed = match command.name() {
        Some(name) if name.eq_ignore_ascii_case("get-childitem") && lists_environment(command) => {
            Some("the environment, with the keys in it")
        }
        // all of the environment, or the keys of it
        Some("env" | "printenv") if command.args().is_empty() => Some("the environment, with the keys in it"),
        Some("ps") if environment_option(command).is_some() => Some("the environments of processes"),
        Some("printenv")
            if command
                .args()
                .iter()
                .any(|w| ["KEY", "SECRET", "TOKEN", "PASS"].iter().any(|part| w.text.contains(part))) =>
        {
            Some("a key in the environment")
        }
        Some("aws" | "az" | "gcloud" | "kubectl" | "oc" | "vault" | "gh") if prints_keys(command) => {
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
    secret_file_of(command, words).or_else(|| printed.map(str::to_owned))
}

/// Returns the secret file that a command reads: from a redirection, or from its words if `words` are files.
fn secret_file_of(command: &Invocation, words: bool) -> Option<String> {
    let read = command.redirects.iter().filter(|r| r.operator.ends_with('<') && !r.operator.contains("<<"));
    let args = if words { command.args() } else { &[] };
    args.iter().map(|w| &w.text).chain(read.map(|r| &r.target.text)).find(|text| is_secret(text)).cloned()
}

/// True for the name of a file that gives access to something, or records what the user typed. Public keys are no
/// secrets.
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
    // PowerShell takes both slashes
    let path = path.trim_end_matches(['/', '*', '.', '"', '\'']).replace('\\', "/");
    let last = path.rsplit(['/', '=', '@', ':']).next().unwrap_or_default();
    let private = path.ends_with(".env.production") || path.ends_with(".env.local");
    !path.ends_with(".pub")
        && !path.ends_with("known_hosts")
        && (private || NAMES.contains(&last) || PARTS.iter().any(|part| path.contains(part)))
}
