//! Decides whether a command may be rehearsed, by its effects and by a list of programs that are of no use in a
//! sandbox (`platform-rules/rehearsal.toml`). [`caro_exec::rehearse`] runs the rehearsal.

use caro_policy::leads_to_secret;
use caro_shell::Script;
use caro_shell::effects::{Kind, effects};
use caro_shell::safety::{Level, assess, is_read_only};
use std::collections::HashMap;
use std::path::Path;
use std::sync::LazyLock;

/// The reason why a command is not rehearsed.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct NotRehearsable {
    /// The part of the command that is the reason.
    pub token: String,
    /// The reason, in a few words for the user.
    pub why: String,
}

/// The kind of rehearsal that a command needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RehearsalMode {
    /// It only reads: on a system without views, it may run in a read-only sandbox.
    Reads,
    /// It changes files, or its effects are not known: it may only run in a view.
    Changes,
}

/// Decides whether and how a command may be rehearsed that caro is about to suggest.
///
/// # Errors
/// The first reason against it.
///
/// ```
/// use caro_command::rehearsal::{RehearsalMode, mode_for_suggestion};
/// use caro_shell::{Dialect, parse};
/// assert_eq!(mode_for_suggestion(&parse("ls -l", Dialect::Bash)), Ok(RehearsalMode::Reads));
/// assert_eq!(mode_for_suggestion(&parse("touch new", Dialect::Bash)), Ok(RehearsalMode::Changes));
/// assert!(mode_for_suggestion(&parse("curl -O https://example.org/x", Dialect::Bash)).is_err());
/// ```
pub fn mode_for_suggestion(script: &Script) -> Result<RehearsalMode, NotRehearsable> {
    let mode = mode_for_preview(script)?;
    // a view would contain it, but a dangerous command is not suggested anyway
    match assess(script).reasons.first().filter(|r| r.level == Level::Danger) {
        Some(reason) => {
            Err(NotRehearsable { token: reason.token.clone(), why: "it is too dangerous even to try".to_owned() })
        }
        None => Ok(mode),
    }
}

/// Decides like [`mode_for_suggestion`] for a command that the user is about to run, whose changes a rehearsal is to
/// show. A command that is dangerous only by its changes to files may be rehearsed.
///
/// # Errors
/// The first reason against it.
pub fn mode_for_preview(script: &Script) -> Result<RehearsalMode, NotRehearsable> {
    /// The effects on files that a rehearsal can show.
    const FILES: [&str; 4] = ["delete", "move", "overwrite", "permission"];
    let refuse = |token: &str, why: &str| Err(NotRehearsable { token: token.to_owned(), why: why.to_owned() });
    if let Some(error) = script.errors.first() {
        return refuse(script.error_text(error).0, "it is not a valid command");
    }
    if let Some(command) = script.commands.iter().find(|c| c.remote) {
        return refuse(command.name().unwrap_or_default(), "it runs on another machine");
    }
    for command in &script.commands {
        let Some(name) = command.name() else { continue };
        if let Some(why) = reason_listed(name.rsplit('/').next().unwrap_or(name)) {
            return refuse(name, why);
        }
    }
    for effect in effects(script) {
        if let Some(why) = reason_beyond_files(effect.kind) {
            return refuse(&effect.token, why);
        }
        // the output may be shown, stored, or go into the model's next prompt
        if effect.kind == Kind::Read && effect.path.is_some_and(|path| leads_to_secret(Path::new(&path))) {
            return refuse(&effect.token, "it reads keys or passwords");
        }
    }
    let mut dangers = assess(script).reasons.into_iter().filter(|r| r.level == Level::Danger);
    if let Some(reason) = dangers.find(|r| !FILES.contains(&r.effect.as_str())) {
        return refuse(&reason.token, "it is too dangerous even to try");
    }
    Ok(if is_read_only(script) { RehearsalMode::Reads } else { RehearsalMode::Changes })
}

/// Returns why an effect reaches beyond the file tree; `None` if it does not.
fn reason_beyond_files(kind: Kind) -> Option<&'static str> {
    match kind {
        Kind::Fetch | Kind::Send => Some("it reaches out to the network"),
        Kind::Privilege => Some("it asks for another user's rights"),
        Kind::Kill => Some("it acts on processes, and in the view there are none but its own"),
        Kind::System | Kind::Start => Some("it changes the system, not files"),
        Kind::Build => Some("it builds with the project's own tools, which takes long and may fetch more"),
        Kind::Package => Some("it installs or removes software"),
        Kind::None | Kind::Read | Kind::Create | Kind::Overwrite | Kind::Append | Kind::Delete | Kind::Move => None,
        Kind::Mode | Kind::Owner | Kind::Repository | Kind::Record | Kind::Compute | Kind::Run | Kind::Unknown => None,
    }
}

/// Returns why a program is on the list; `None` if it is not.
fn reason_listed(name: &str) -> Option<&'static str> {
    #[derive(serde::Deserialize)]
    struct Group {
        why: String,
        names: Vec<String>,
    }
    #[derive(serde::Deserialize)]
    struct File {
        group: Vec<Group>,
    }
    static LIST: LazyLock<Option<HashMap<String, String>>> = LazyLock::new(|| {
        let groups = toml::from_str::<File>(include_str!("../../platform-rules/rehearsal.toml")).ok()?.group;
        Some(groups.into_iter().flat_map(|g| g.names.into_iter().map(move |name| (name, g.why.clone()))).collect())
    });
    match LIST.as_ref() {
        Some(list) => list.get(name).map(String::as_str),
        // the embedded file parses, as a test checks
        None => Some("the list of programs that are not rehearsed cannot be read"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use caro_shell::{Dialect, parse};

    fn of(text: &str) -> Result<RehearsalMode, NotRehearsable> {
        mode_for_suggestion(&parse(text, Dialect::Bash))
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
            assert_eq!(of(text), Ok(RehearsalMode::Reads), "{text}");
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
            assert_eq!(of(text), Ok(RehearsalMode::Changes), "{text}");
        }
    }

    #[test]
    fn commands_with_effects_beyond_files_are_refused_with_a_reason() {
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
            assert!(!found.token.is_empty(), "{text}: {found:?}");
            assert!(found.token.contains(token) || token.contains(&found.token), "{text}: {found:?}");
        }
    }
}
