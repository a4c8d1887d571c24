//! Assesses files that run automatically later: scheduled jobs, services, files read at the start of a shell, hooks.
//! A text that is known is assessed as the command that will run.

use super::flow::is_fetcher;
use super::given::printed_text;
use super::{Level, Reason, assess, reason, stdin_texts};
use crate::Dialect;
use crate::effects::{Effect, Kind, Place, place_of};
use crate::parse::Script;

/// The format of a file that runs automatically.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// A shell script.
    Shell,
    /// A crontab: five fields or a word with `@` before the command; a user name too in the system's tables.
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
            Some("echo" | "printf" | "print") => vec![printed_text(command)],
            _ => stdin_texts(script, index),
        };
        for text in &texts {
            found.extend(danger_of(text, form, path, &effect.token, &effect.span));
        }
        let from_elsewhere = is_fetcher(script, command) || from_network(script, index);
        let copies_temporary = matches!(command.name(), Some("cp" | "mv" | "ln" | "install"))
            && command.operands().any(|w| w.text != path && is_in_temporary(&w.text));
        if texts.is_empty() && (from_elsewhere || copies_temporary) {
            let why = format!("it puts something unread where it runs by itself: {path}");
            found.push(
                reason(Level::Danger, "persistence", &effect.token, effect.span.clone(), why)
                    .with_scope("every start from now on"),
            );
        }
    }
    for (index, command) in script.commands.iter().enumerate().filter(|(_, c)| c.name() == Some("crontab")) {
        let Some(first) = command.words.first() else { continue };
        for text in stdin_texts(script, index) {
            found.extend(danger_of(&text, Form::Table, "the scheduled jobs", &first.raw, &first.span));
        }
    }
    found
}

/// True if the command reads its input from the network.
fn from_network(script: &Script, index: usize) -> bool {
    script.commands.iter().any(|c| c.feeds.contains(&index) && is_fetcher(script, c))
}

/// True for a program in a folder in which anyone may create files.
fn is_in_temporary(path: &str) -> bool {
    place_of(path) == Place::Temporary || path.starts_with("/dev/shm/")
}

/// Returns the danger of a text that runs later, if there is one.
fn danger_of(text: &str, form: Form, path: &str, token: &str, span: &std::ops::Range<usize>) -> Option<Reason> {
    let commands: Vec<&str> = match form {
        Form::Shell => vec![text],
        Form::Table => text.lines().filter_map(cron_command).collect(),
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
        let danger = risk.reasons.into_iter().find(|r| r.level == Level::Danger);
        let untrusted = || script.commands.iter().filter_map(|c| c.words.first()).find(|w| is_in_temporary(&w.text));
        let reason =
            danger.map(|r| r.why).or_else(|| Some(format!("{} lies where anybody may have put it", untrusted()?.text)));
        worst = worst.or(reason);
    }
    let why = format!("what it puts into {path} runs by itself later: {}", worst?);
    Some(reason(Level::Danger, "persistence", token, span.clone(), why).with_scope("every start from now on"))
}

/// Returns the command of a crontab line.
pub(super) fn cron_command(line: &str) -> Option<&str> {
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
    // the system's crontabs have a user before the command
    let (first, behind) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    let user = matches!(first, "root" | "www-data" | "nobody" | "daemon") && !behind.is_empty();
    Some(if user { behind.trim_start() } else { rest })
}

/// True for a file that runs automatically, or that grants logins or rights.
pub fn runs_by_itself(path: &str) -> bool {
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

/// Returns the format of a file, if it runs automatically.
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
    fn the_command_of_a_crontab_line_is_found() {
        assert_eq!(cron_command("*/5 * * * * curl x | sh"), Some("curl x | sh"));
        assert_eq!(cron_command("@reboot /tmp/x"), Some("/tmp/x"));
        assert_eq!(cron_command("0 3 * * * root /opt/a.sh"), Some("/opt/a.sh"));
        assert_eq!(cron_command("# comment"), None);
        assert_eq!(cron_command("* * *"), None);
    }
}
