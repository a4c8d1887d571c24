//! Decides whether a command may be rehearsed, by its effects and by a list of programs that are of no use in a
//! sandbox (`platform-rules/rehearsal.toml`). [`caro_exec::rehearse`] runs the rehearsal.

use caro_policy::leads_to_secret;
use caro_shell::Script;
use caro_shell::effects::{Kind, effects};
use caro_shell::safety::{Level, assess, is_read_only};
use std::collections::HashMap;
use std::path::Path;
use std::sync::OnceLock;

/// The reason why a command is not rehearsed.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Unfit {
    /// The part of the command that is the reason.
    pub token: String,
    /// The reason, in a few words for the user.
    pub why: String,
}

/// The kind of rehearsal that a command needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fit {
    /// It only reads: on a system without sandboxed views of the folder, it may run under a read-only fence.
    Reads,
    /// It changes files, or its effects are not known: it may only run in a view.
    Changes,
}

/// Decides whether and how a command may be rehearsed.
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
    // a view would contain it, but a dangerous command is not suggested anyway
    match assess(script).reasons.first().filter(|r| r.level == Level::Danger) {
        Some(reason) => Err(Unfit { token: reason.token.clone(), why: "it is too dangerous even to try".to_owned() }),
        None => Ok(fit),
    }
}

/// Decides like [`fit`] for a command that the user is about to run, whose changes a rehearsal is to show. A command
/// that is dangerous only by its changes to files is fit.
///
/// # Errors
/// The first reason against it.
pub fn fit_to_show(script: &Script) -> Result<Fit, Unfit> {
    /// The effects on files that a rehearsal can show.
    const FILES: [&str; 4] = ["delete", "move", "overwrite", "permission"];
    let unfit = |token: &str, why: &str| Err(Unfit { token: token.to_owned(), why: why.to_owned() });
    if let Some(error) = script.errors.first() {
        return unfit(script.error_text(error).0, "it is no valid command");
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
        // its output goes into the model's next prompt
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

/// Returns why an effect reaches beyond the file tree; `None` if it does not.
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

/// Returns why a program is on the list; `None` if it is not.
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
        // the embedded file always parses, as a test checks; an empty list would let every program through
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
    fn commands_that_read_or_change_files_are_fit() {
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
    fn commands_with_effects_beyond_files_are_unfit_with_a_reason() {
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
