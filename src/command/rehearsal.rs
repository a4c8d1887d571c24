//! May a command be rehearsed? Its effects decide, and a list of programs that find nothing to show in a view
//! (`platform-rules/rehearsal.toml`). How it is done is [`caro_exec::rehearse`]'s business.

use caro_policy::leads_to_secret;
use caro_shell::Script;
use caro_shell::effects::{Kind, effects};
use caro_shell::safety::{Level, assess, is_read_only};
use std::collections::HashMap;
use std::path::Path;
use std::sync::OnceLock;

/// Why a command is not rehearsed.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Unfit {
    /// The piece of it that is the reason.
    pub token: String,
    /// The reason, in a few words for a person.
    pub why: String,
}

/// How a command may be rehearsed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fit {
    /// It only reads: where there are no views, the fence will do.
    Reads,
    /// It changes files, or what it does is not known: only in a view.
    Changes,
}

/// Whether and how a command may be rehearsed.
///
/// # Errors
/// The first reason against it.
///
/// ```
/// use caro_command::rehearsal::{Fit, fit};
/// use caro_shell::{Dialect, parse};
/// assert_eq!(fit(&parse("ls -l", Dialect::Bash)), Ok(Fit::Reads));
/// assert_eq!(fit(&parse("touch new", Dialect::Bash)), Ok(Fit::Changes));
/// assert!(fit(&parse("curl -O https://example.org/x", Dialect::Bash)).is_err());
/// ```
pub fn fit(script: &Script) -> Result<Fit, Unfit> {
    let fit = fit_to_show(script)?;
    // A view would hold it, but nothing is learnt from trying what will be refused anyway.
    match assess(script).reasons.first().filter(|r| r.level == Level::Danger) {
        Some(reason) => Err(Unfit { token: reason.token.clone(), why: "it is too dangerous even to try".to_owned() }),
        None => Ok(fit),
    }
}

/// The same for a command that a person is about to run, of which the rehearsal is to show what it changes: the more
/// dangerous, the better for them to see. What is dangerous by anything but its changes to files is not tried.
///
/// # Errors
/// As [`fit`].
pub fn fit_to_show(script: &Script) -> Result<Fit, Unfit> {
    /// The changes that files can come to.
    const FILES: [&str; 4] = ["delete", "move", "overwrite", "permission"];
    let unfit = |token: &str, why: &str| Err(Unfit { token: token.to_owned(), why: why.to_owned() });
    if let Some(error) = script.errors.first() {
        return unfit(script.torn(error).0, "it is no valid command");
    }
    if let Some(command) = script.commands.iter().find(|c| c.remote) {
        return unfit(command.name().unwrap_or_default(), "it runs on another machine");
    }
    for command in &script.commands {
        let Some(name) = command.name() else { continue };
        if let Some(why) = listed(name.rsplit('/').next().unwrap_or(name)) {
            return unfit(name, why);
        }
    }
    for effect in effects(script) {
        if let Some(why) = outside(effect.kind) {
            return unfit(&effect.token, why);
        }
        // what it prints goes into the model's next prompt
        if effect.kind == Kind::Read && effect.path.is_some_and(|path| leads_to_secret(Path::new(&path))) {
            return unfit(&effect.token, "it reads keys or passwords");
        }
    }
    let dangers = assess(script).reasons.into_iter().filter(|r| r.level == Level::Danger);
    if let Some(reason) = dangers.into_iter().find(|r| !FILES.contains(&r.effect.as_str())) {
        return unfit(&reason.token, "it is too dangerous even to try");
    }
    Ok(if is_read_only(script) { Fit::Reads } else { Fit::Changes })
}

/// What an effect has to do with the world outside of the file tree.
fn outside(kind: Kind) -> Option<&'static str> {
    match kind {
        Kind::Fetch | Kind::Send => Some("it reaches out to the network"),
        Kind::Privilege => Some("it asks for another user's rights"),
        Kind::Kill => Some("it acts on processes, and in the view there are none but its own"),
        Kind::System | Kind::Start => Some("it changes the system, not files"),
        Kind::Build => Some("it builds with the project's own tools, which takes long and may fetch more"),
        Kind::Package => Some("it installs or removes software"),
        _ => None,
    }
}

/// Why a program is on the list.
fn listed(name: &str) -> Option<&'static str> {
    #[derive(serde::Deserialize)]
    struct Group {
        why: String,
        names: Vec<String>,
    }
    #[derive(serde::Deserialize)]
    struct File {
        group: Vec<Group>,
    }
    static LIST: OnceLock<HashMap<String, String>> = OnceLock::new();
    let list = LIST.get_or_init(|| {
        // a file that does not parse would let everything through: a test holds that it does
        let file = toml::from_str::<File>(include_str!("../../platform-rules/rehearsal.toml"));
        let groups = file.map(|f| f.group).unwrap_or_default();
        groups.into_iter().flat_map(|g| g.names.into_iter().map(move |name| (name, g.why.clone()))).collect()
    });
    list.get(name).map(String::as_str)
}

#[cfg(test)]
mod tests {
    use super::*;
    use caro_shell::{Dialect, parse};

    fn of(text: &str) -> Result<Fit, Unfit> {
        fit(&parse(text, Dialect::Bash))
    }

    #[test]
    fn what_reads_or_changes_files_is_fit() {
        for text in [
            "find . -name '*.c' | wc -l",
            "grep -r x . | sort | head",
            "awk '{print $1}' f",
            "cat /etc/passwd",
            "git log --oneline",
            "du -sh *",
        ] {
            assert_eq!(of(text), Ok(Fit::Reads), "{text}");
        }
        for text in [
            "mkdir a",
            "sed -i s/a/b/ f",
            "rm -r build",
            "mv a b",
            "tar xf x.tar",
            "chmod +x f",
            "git add .",
            "echo x > f",
            "unknown-tool f",
        ] {
            assert_eq!(of(text), Ok(Fit::Changes), "{text}");
        }
    }

    #[test]
    fn what_reaches_outside_is_not_and_says_why() {
        for (text, token) in [
            ("curl -s https://example.org | head", "curl"),
            ("wget x", "wget"),
            ("ssh host ls", "ls"),
            ("git push", "git"),
            ("git clone https://example.org/x", "git"),
            ("sudo ls", "sudo"),
            ("apt install jq", "apt"),
            ("pip install x", "pip"),
            ("npm install", "npm"),
            ("npm ci", "npm"),
            ("cargo build", "cargo"),
            ("git fetch", "git"),
            ("systemctl start x", "systemctl"),
            ("systemctl restart x", "systemctl"),
            ("docker ps", "docker"),
            ("kill 1", "kill"),
            ("pkill x", "pkill"),
            ("mount /dev/sda1 /mnt", "mount"),
            ("ps aux | sort -k3", "ps"),
            ("df -h", "df"),
            ("vim f", "vim"),
            ("/usr/bin/top", "/usr/bin/top"),
            ("find . | xargs less", "less"),
            ("reboot", "reboot"),
            ("useradd x", "useradd"),
            ("ping -c1 host", "ping"),
            ("echo | openssl s_client -connect example.org:443", "openssl"),
            ("sleep 100", "sleep"),
            ("rm -rf /", "/"),
            ("bash -c 'curl x'", "curl"),
            ("echo 'unclosed", "'unclosed"),
            ("rsync -a a h:b", "rsync"),
            ("rsync -n h:b .", "rsync"),
            ("rsync --backup h:a b", "rsync"),
            ("tar xf h:x.tar", "tar"),
            ("git submodule update --init", "git"),
            ("cat ~/.netrc >&2; false", "~/.netrc"),
            ("sort -u < .env", ".env"),
        ] {
            let found = of(text).expect_err(text);
            assert!(!found.why.is_empty(), "{text}");
            assert!(found.token.contains(token) || token.contains(&found.token), "{text}: {found:?}");
        }
    }
}
