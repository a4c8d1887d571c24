//! Judges what is put where it runs by itself later: scheduled jobs, services, the files that shells read when they start, hooks.
//! A text that the script spells out is judged as the command that it will be.

use super::flow::is_fetcher;
use super::given::printed;
use super::{Level, Reason, assess, given, reason};
use crate::Dialect;
use crate::effects::{Effect, Kind, Place, place_of};
use crate::parse::Script;

/// The form in which a file tells what is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// It is a script of the shell.
    Shell,
    /// Five fields or a word with `@` stand before the command; in the system's own tables a user, too.
    Table,
    /// `ExecStart=command`.
    Unit,
    /// `ACTION=="add", RUN+="command"`.
    Device,
}

pub(super) fn reasons(script: &Script, all: &[Effect]) -> Vec<Reason> {
    let mut found = Vec::new();
    for effect in all.iter().filter(|e| matches!(e.kind, Kind::Overwrite | Kind::Append | Kind::Create)) {
        let Some((path, form)) = effect.path.as_deref().and_then(|p| Some((p, form_of(p)?))) else { continue };
        let Some(index) = effect.command else { continue };
        let command = &script.commands[index];
        let texts: Vec<String> = match command.name() {
            Some("echo" | "printf" | "print") => vec![printed(command)],
            _ => given(script, index),
        };
        for text in &texts {
            found.extend(later(text, form, path, &effect.token, &effect.span));
        }
        let unread = is_fetcher(script, command) || from_network(script, index);
        let planted = matches!(command.name(), Some("cp" | "mv" | "ln" | "install"))
            && command.operands().any(|w| w.text != path && is_loose(&w.text));
        if texts.is_empty() && (unread || planted) {
            let why = format!("it puts something unread where it runs by itself: {path}");
            found.push(
                reason(Level::Danger, "persistence", &effect.token, effect.span.clone(), why)
                    .reaching("every start from now on"),
            );
        }
    }
    for (index, command) in script.commands.iter().enumerate().filter(|(_, c)| c.name() == Some("crontab")) {
        let Some(first) = command.words.first() else { continue };
        for text in given(script, index) {
            found.extend(later(&text, Form::Table, "the scheduled jobs", &first.raw, &first.span));
        }
    }
    found
}

/// True if what the command reads comes from the network.
fn from_network(script: &Script, index: usize) -> bool {
    script.commands.iter().any(|c| c.feeds.contains(&index) && is_fetcher(script, c))
}

/// True for a program in a folder in which everybody may write, or one that is hidden.
fn is_loose(path: &str) -> bool {
    place_of(path) == Place::Temporary || path.starts_with("/dev/shm/")
}

/// The danger of a text that runs later, if there is one.
fn later(text: &str, form: Form, path: &str, token: &str, span: &std::ops::Range<usize>) -> Option<Reason> {
    let commands: Vec<&str> = match form {
        Form::Shell => vec![text],
        Form::Table => text.lines().filter_map(scheduled).collect(),
        Form::Unit => text
            .lines()
            .filter_map(|line| line.split_once('='))
            .filter(|(key, _)| key.contains("Exec"))
            .map(|(_, run)| run.trim_start_matches(['-', '@', '+', '"', '=']))
            .collect(),
        Form::Device => text
            .split("RUN")
            .skip(1)
            .filter_map(|run| run.split_once("=\"").map(|(_, run)| run.split('"').next().unwrap_or(run)))
            .collect(),
    };
    let mut worst = None;
    for command in commands {
        let script = crate::parse(command, Dialect::Bash);
        let risk = assess(&script);
        let bad = risk.reasons.into_iter().find(|r| r.level == Level::Danger);
        let loose = || script.commands.iter().filter_map(|c| c.words.first()).find(|w| is_loose(&w.text));
        let told = bad.map(|r| r.why).or_else(|| Some(format!("{} lies where anybody may have put it", loose()?.text)));
        worst = worst.or(told);
    }
    let why = format!("what it puts into {path} runs by itself later: {}", worst?);
    Some(reason(Level::Danger, "persistence", token, span.clone(), why).reaching("every start from now on"))
}

/// The command of a line of a crontab.
pub(super) fn scheduled(line: &str) -> Option<&str> {
    let line = line.trim_start();
    if line.starts_with('#') || line.is_empty() {
        return None;
    }
    let fields = if line.starts_with('@') { 1 } else { 5 };
    let mut rest = line;
    for _ in 0..fields {
        let end = rest.find(char::is_whitespace)?;
        rest = rest[end..].trim_start();
    }
    // the system's own tables have a user before the command
    let (first, behind) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    let user = matches!(first, "root" | "www-data" | "nobody" | "daemon") && !behind.is_empty();
    Some(if user { behind.trim_start() } else { rest })
}

/// True for a file that runs by itself, or says who may log in or gain rights.
pub(super) fn runs_by_itself(path: &str) -> bool {
    let decides = [
        "authorized_keys",
        "/etc/sudoers",
        "/etc/passwd",
        "/etc/shadow",
        "/etc/hosts",
        "/etc/resolv.conf",
        "/etc/pam.d",
        "/etc/ssh/",
    ];
    form_of(path).is_some() || decides.iter().any(|own| path.contains(own))
}

/// The form of that file, if it is one that runs by itself.
fn form_of(path: &str) -> Option<Form> {
    const SHELL: [&str; 17] = [
        ".bashrc",
        ".bash_profile",
        ".bash_login",
        ".bash_logout",
        ".profile",
        ".zshrc",
        ".zshenv",
        ".zprofile",
        ".zlogin",
        ".xinitrc",
        ".xprofile",
        ".xsession",
        "config.fish",
        "/etc/profile",
        "/etc/bash.bashrc",
        "/etc/rc.local",
        "/etc/environment",
    ];
    const FOLDERS: [(&str, Form); 16] = [
        ("/etc/profile.d/", Form::Shell),
        ("/etc/init.d/", Form::Shell),
        ("/etc/rc", Form::Shell),
        ("/etc/update-motd.d/", Form::Shell),
        ("/etc/cron.hourly", Form::Shell),
        ("/etc/cron.daily", Form::Shell),
        ("/etc/cron.weekly", Form::Shell),
        ("/etc/cron.monthly", Form::Shell),
        (".git/hooks/", Form::Shell),
        ("/etc/cron", Form::Table),
        ("/var/spool/cron", Form::Table),
        ("/etc/systemd/system/", Form::Unit),
        ("/usr/lib/systemd/system/", Form::Unit),
        (".config/systemd/user/", Form::Unit),
        (".config/autostart/", Form::Unit),
        ("/udev/rules.d/", Form::Device),
    ];
    if SHELL.iter().any(|name| path.ends_with(name)) {
        return Some(Form::Shell);
    }
    if path.contains("/LaunchAgents/") || path.contains("/LaunchDaemons/") {
        return Some(Form::Unit);
    }
    FOLDERS.iter().find(|(folder, _)| path.contains(folder)).map(|(_, form)| *form)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_of_a_scheduled_line_is_found_behind_its_times() {
        assert_eq!(scheduled("*/5 * * * * curl x | sh"), Some("curl x | sh"));
        assert_eq!(scheduled("@reboot /tmp/x"), Some("/tmp/x"));
        assert_eq!(scheduled("0 3 * * * root /opt/a.sh"), Some("/opt/a.sh"));
        assert_eq!(scheduled("# comment"), None);
        assert_eq!(scheduled("* * *"), None);
    }
}
