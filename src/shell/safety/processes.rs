//! Finds vital processes that are killed by number, by name or from a list: the first process, the login, the
//! display, the current shell, or all of them.

use super::{Level, Reason, reason};
use crate::effects::{canonical, operands_of};
use crate::parse::{How, Invocation, Script, Word};

/// Names of processes that the system, the session or the login depends on.
const VITAL: &[&str] = &[
    "systemd",
    "init",
    "launchd",
    "sshd",
    "systemd-logind",
    "systemd-udevd",
    "systemd-journald",
    "udevd",
    "dbus-daemon",
    "dbus-broker",
    "Xorg",
    "Xwayland",
    "X",
    "gnome-shell",
    "gnome-session",
    "plasmashell",
    "kwin_x11",
    "kwin_wayland",
    "mutter",
    "sway",
    "Hyprland",
    "gdm",
    "gdm3",
    "lightdm",
    "sddm",
    "xfce4-session",
    "cinnamon",
    "wayland",
    "weston",
    "WindowServer",
    "loginwindow",
    "Finder",
    "kernel_task",
    "login",
    "agetty",
    "getty",
    "NetworkManager",
    "wpa_supplicant",
    "networkd",
    "bash",
    "zsh",
    "sh",
    "fish",
    "lsass",
    "csrss",
    "winlogon",
    "wininit",
    "smss",
    "svchost",
];

/// Signals that end no process: tests, and requests to reload the configuration.
const HARMLESS_SIGNALS: &[&str] = &[
    "-0",
    "-HUP",
    "-SIGHUP",
    "-USR1",
    "-USR2",
    "-SIGUSR1",
    "-SIGUSR2",
    "-WINCH",
    "-SIGWINCH",
    "-CONT",
    "-SIGCONT",
    "-l",
    "-L",
    "-CHLD",
];

pub(super) fn reasons(script: &Script) -> Vec<Reason> {
    let mut found = Vec::new();
    for (index, command) in script.commands.iter().enumerate() {
        let Some(name) = command.name() else { continue };
        let harmless = command.args().iter().any(|w| HARMLESS_SIGNALS.contains(&w.text.as_str()));
        let killed_process = match name {
            "kill" if !harmless => vital_target(script, index, command),
            "pkill" | "killall" if !harmless => vital_name(command, name),
            _ if command.key().is_some_and(|k| canonical(&k, script.dialect) == "stop-process") => {
                let all = |c: &Invocation| {
                    c.key().is_some_and(|k| canonical(&k, script.dialect) == "get-process")
                        && c.feeds.contains(&index)
                        && c.args().is_empty()
                };
                if !script.commands.iter().any(all) {
                    continue;
                }
                command.words.first().map(|w| (w, "every process".to_owned()))
            }
            "killall5" => command.words.first().map(|w| (w, "every process".to_owned())),
            _ => None,
        };
        if let Some((word, what)) = killed_process {
            let why = format!("it ends {what}, on which the system or the session lives");
            found.push(reason(Level::Danger, "process", &word.raw, word.span.clone(), why).with_scope(what));
        }
    }
    found
}

/// Returns the vital process that a `kill` ends, with the word that names it.
fn vital_target<'c>(script: &Script, index: usize, command: &'c Invocation) -> Option<(&'c Word, String)> {
    let own =
        command.operands().chain(command.args().iter().filter(|w| w.expands)).find_map(|w| match w.text.as_str() {
            "$$" | "${$}" | "$BASHPID" => Some((w, "the shell that this is typed into".to_owned())),
            "0" => Some((w, "the shell that this is typed into, and all that it has started".to_owned())),
            "$PPID" | "${PPID}" => Some((w, "the process that started this shell".to_owned())),
            _ => None,
        });
    if own.is_some() {
        return own;
    }
    // `kill $(pidof sshd)`, `pgrep sshd | xargs kill`
    let around = command.inside.filter(|i| i.how == How::Wrapped);
    let inside = |at: usize, how: How| {
        script
            .commands
            .iter()
            .enumerate()
            .filter(move |(_, c)| c.inside.is_some_and(|i| i.command == at && i.how == how))
    };
    let mut feeders: Vec<(usize, &Invocation)> = inside(index, How::Substitution).collect();
    let mut at = around.map(|i| i.command);
    while let Some(outer) = at {
        feeders.extend(script.commands.iter().enumerate().filter(|(_, c)| c.feeds.contains(&outer)));
        at = script.commands[outer].inside.filter(|i| i.how == How::Wrapped).map(|i| i.command);
    }
    // a loop over a list: `for p in $(ps -eo pid); do kill $p; done`
    if command.operands().any(|w| w.text.starts_with('$') && !w.text.starts_with("$(")) && script.assignments.is_empty()
    {
        feeders.extend(script.commands.iter().enumerate().filter(|(_, c)| matches!(c.name(), Some("ps"))));
    }
    // `for p in /proc/[0-9]*; do kill ${p#/proc/}; done`
    let globbed = ["/proc/[0-9]", "/proc/*"].iter().any(|all| script.text.contains(all));
    if let Some(word) = command.args().iter().find(|w| globbed && w.expands) {
        return Some((word, "every process".to_owned()));
    }
    let word = command.args().iter().find(|w| w.expands).or_else(|| command.words.first())?;
    feeders.into_iter().find_map(|(at, c)| vital_in_list(script, at, c)).map(|what| (word, what))
}

/// Returns the vital process whose number a command prints: one by name, or all without a filter.
fn vital_in_list(script: &Script, index: usize, command: &Invocation) -> Option<String> {
    let (mut at, mut c) = (index, command);
    for _ in 0..8 {
        let operands = || operands_of(c, script.dialect_of(c)).into_iter().map(|(_, text)| text);
        match c.name()? {
            "pidof" => return operands().find(|o| VITAL.contains(o)).map(str::to_owned),
            "pgrep" => {
                let whole = c.has_option(Some('x'), "exact");
                // without a name it lists all processes of a user or a terminal
                if c.args().iter().any(|w| matches!(w.text.as_str(), "-u" | "-U" | "-t")) && c.operands().count() <= 1 {
                    return Some("every process of a user".to_owned());
                }
                return operands().find_map(|o| matching_vital(o, whole));
            }
            "ps" => {
                let filtered =
                    c.args().iter().any(|w| matches!(w.text.as_str(), "-p" | "-C" | "--pid" | "--ppid" | "-g" | "-t"));
                return (!filtered).then(|| "every process".to_owned());
            }
            "grep" | "egrep" => {
                let leaves_out = c.has_option(Some('v'), "invert-match");
                let vital = if leaves_out { None } else { operands().next().and_then(|o| matching_vital(o, false)) };
                if vital.is_some() {
                    return vital;
                }
                if !leaves_out {
                    return None;
                }
            }
            "awk" if c.args().iter().all(|w| !w.text.contains(['/', '~', '='])) => {}
            "sed" | "cut" | "tr" | "sort" | "uniq" | "tail" | "xargs" | "cat" => {}
            _ => return None,
        }
        let (before, feeder) = script.commands.iter().enumerate().find(|(_, f)| f.feeds.contains(&at))?;
        (at, c) = (before, feeder);
    }
    None
}

/// Returns the vital process that a `pkill` or `killall` names.
fn vital_name<'c>(command: &'c Invocation, program: &str) -> Option<(&'c Word, String)> {
    let whole =
        program == "killall" && !command.has_option(Some('r'), "regexp") || command.has_option(Some('x'), "exact");
    if let Some(word) = command.args().iter().find(|w| matches!(w.text.as_str(), "-t" | "--terminal")) {
        return Some((word, "all that runs on a terminal".to_owned()));
    }
    command.operands().find_map(|w| Some((w, matching_vital(&w.text, whole)?)))
}

/// Returns the first vital process that matches a name: as a whole, or a part of it if it is a pattern.
fn matching_vital(pattern: &str, whole: bool) -> Option<String> {
    let plain = pattern.trim_start_matches('^').trim_end_matches('$');
    // `[s]shd` excludes the search itself
    let plain: String = plain.chars().filter(|c| !matches!(c, '[' | ']' | '(' | ')' | '"' | '\'')).collect();
    if plain.is_empty() || !plain.chars().any(char::is_alphanumeric) {
        return Some("every process".to_owned());
    }
    let anchored = whole || pattern.starts_with('^') && pattern.ends_with('$');
    let fits = |name: &&&str| if anchored || plain.len() < 2 { **name == plain } else { name.contains(plain.as_str()) };
    VITAL.iter().find(fits).map(|name| (*name).to_owned())
}
