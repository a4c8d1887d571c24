//! Assesses files that run automatically later: scheduled jobs, services, files read at the start of a shell, hooks.
//! A text that is known is assessed as the command that will run.

use super::flow::is_fetcher;
use super::given::printed_text;
use super::{Level, Reason, assess, reason, stdin_texts};
use crate::Dialect;
use crate::effects::{Effect, Kind, Place, place_of};
use crate::parse::Script;
use caro_base::wildcard::{is_pattern, name_fits, patterns_overlap};

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
    let path = Split::new(path);
    form_of_split(&path).is_some() || GRANTING.iter().any(|row| path.fits(row))
}

/// Returns the format of a file, if it runs automatically.
fn form_of(path: &str) -> Option<Form> {
    form_of_split(&Split::new(path))
}

fn form_of_split(path: &Split) -> Option<Form> {
    RUNNING.iter().find(|(row, _)| path.fits(row)).map(|(_, form)| *form)
}

/// Files that run automatically. Names are in lower case, and `*` is any text in one. A row that begins with `/` counts
/// from the root of a system, another one at any place of a path; one that ends with `/` is a folder with all below it.
const RUNNING: [(&str, Form); 40] = [
    (".bashrc", Form::Shell),
    (".bash_profile", Form::Shell),
    (".bash_login", Form::Shell),
    (".bash_logout", Form::Shell),
    (".profile", Form::Shell),
    (".zshrc", Form::Shell),
    (".zshenv", Form::Shell),
    (".zprofile", Form::Shell),
    (".zlogin", Form::Shell),
    (".xinitrc", Form::Shell),
    (".xprofile", Form::Shell),
    (".xsession", Form::Shell),
    ("config.fish", Form::Shell),
    (".git/hooks/", Form::Shell),
    // a repository without a working folder
    ("*.git/hooks/", Form::Shell),
    ("/etc/profile", Form::Shell),
    ("/etc/profile.d/", Form::Shell),
    ("/etc/bash.bashrc", Form::Shell),
    ("/etc/environment", Form::Shell),
    ("/etc/init.d/", Form::Shell),
    ("/etc/rc*/", Form::Shell),
    ("/etc/update-motd.d/", Form::Shell),
    ("/etc/cron.hourly/", Form::Shell),
    ("/etc/cron.daily/", Form::Shell),
    ("/etc/cron.weekly/", Form::Shell),
    ("/etc/cron.monthly/", Form::Shell),
    ("/etc/cron*/", Form::Table),
    ("/var/spool/cron*/", Form::Table),
    ("/etc/systemd/system/", Form::Unit),
    ("/lib/systemd/system/", Form::Unit),
    ("/usr/lib/systemd/system/", Form::Unit),
    (".config/systemd/user/", Form::Unit),
    (".config/autostart/", Form::Unit),
    ("launchagents/", Form::Unit),
    ("launchdaemons/", Form::Unit),
    ("/etc/udev/rules.d/", Form::Device),
    ("/run/udev/rules.d/", Form::Device),
    ("/lib/udev/rules.d/", Form::Device),
    ("/usr/lib/udev/rules.d/", Form::Device),
    ("/usr/local/lib/udev/rules.d/", Form::Device),
];

/// Files that grant logins or rights, or that say where names lead to.
const GRANTING: [&str; 10] = [
    "authorized_keys",
    "authorized_keys2",
    ".ssh/authorized_keys*",
    "/etc/sudoers*/",
    "/etc/passwd*",
    "/etc/shadow*",
    "/etc/hosts*",
    "/etc/resolv.conf*",
    "/etc/pam.d*/",
    "/etc/ssh/",
];

/// Folders that may hold a system: another disk, a container, the part of this one that is installed apart.
const SYSTEMS: [&str; 15] = [
    "host",
    "media/*",
    "media/*/*",
    "mnt",
    "mnt/*",
    "opt",
    "opt/*",
    "private",
    "proc/*/root",
    "run/media/*/*",
    "sysroot",
    "target",
    "usr/local",
    "var/lib/machines/*",
    "volumes/*",
];

/// A path split into its names.
struct Split {
    /// In lower case, as many disks ignore case. `..` follows only another one, `~` or an expansion.
    names: Vec<String>,
    /// The positions where the root of a system may be.
    roots: Vec<usize>,
}

impl Split {
    fn new(path: &str) -> Self {
        let path = path.trim_matches(['"', '\'']).to_lowercase();
        let is_unknown = |name: &str| name.contains(['$', '`', '{', '%']);
        let mut names: Vec<String> = Vec::new();
        for name in path.split(['/', '\\']).filter(|name| !matches!(*name, "" | ".")) {
            let is_plain = |before: &String| before != ".." && !before.starts_with('~') && !is_unknown(before);
            match name {
                ".." if names.last().is_some_and(is_plain) => drop(names.pop()),
                ".." if names.is_empty() && path.starts_with('/') => {}
                _ => names.push(name.to_owned()),
            }
        }
        let mut roots = Vec::new();
        if path.starts_with('/') {
            let systems = SYSTEMS.iter().map(|system| system.split('/').collect::<Vec<_>>());
            roots.push(0);
            roots.extend(systems.filter(|system| fits(system, &names, true)).map(|system| system.len()));
        }
        // `..` may lead up to the root, and an expansion anywhere
        roots.extend(names.iter().rposition(|name| name == "..").map(|at| at + 1));
        roots.extend(names.iter().position(|name| is_unknown(name)).into_iter().flat_map(|at| at + 1..names.len()));
        Self { names, roots }
    }

    /// True if the path fits a row of [`RUNNING`] or [`GRANTING`].
    fn fits(&self, row: &str) -> bool {
        let is_rooted = row.starts_with('/');
        let wanted: Vec<&str> = row.trim_matches('/').split('/').collect();
        let fits_at = |at: usize| {
            let has_length = row.ends_with('/') || self.names.len() == at + wanted.len();
            has_length && fits(&wanted, &self.names[at..], is_rooted)
        };
        if is_rooted { self.roots.iter().any(|at| fits_at(*at)) } else { (0..self.names.len()).any(fits_at) }
    }
}

/// True if the names begin with the wanted ones. A name may be a pattern, whose files are those that it may match; but
/// nearly any pattern would fit the first name of a row that counts anywhere, unless that name is hidden.
fn fits(wanted: &[&str], names: &[String], is_rooted: bool) -> bool {
    let fits_name = |(at, (wanted, name)): (usize, (&&str, &String))| {
        if is_pattern(name) {
            (is_rooted || at > 0 || wanted.starts_with('.')) && patterns_overlap(wanted, name)
        } else {
            name_fits(wanted, name)
        }
    };
    names.len() >= wanted.len() && wanted.iter().zip(names).enumerate().all(fits_name)
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

    #[test]
    fn files_that_run_by_themselves_are_told_by_whole_names() {
        for path in [
            "~/.profile",
            "$HOME/.bashrc",
            "/home/me/.BASHRC",
            ".zshrc",
            "~/.bashr?",
            "~/.config/fish/config.fish",
            "/home/x/.ssh/authorized_keys",
            "~/.ssh/auth*",
            "authorized_keys2",
            ".git/hooks/pre-commit",
            "deep/.gi[t]/hooks/",
            "/srv/site.git/hooks/post-receive",
            "~/.config/systemd/user/x.service",
            "~/.config/autostart",
            "~/Library/LaunchAgents/x.plist",
            "/etc/rc.local",
            "/etc/rc3.d/S99x",
            "//etc/./cron.d//x",
            "/usr/../etc/crontab",
            "../../../etc/cron.daily/x",
            "~/../../etc/profile.d/x.sh",
            "$ROOT/etc/rc.local",
            "${DESTDIR}/x/../etc/init.d/x",
            "$(dirname /a/b)/etc/sudoers.d/me",
            "/mnt/etc/passwd",
            "/mnt/disk/etc/shadow",
            "/proc/1/root/etc/cron.d/x",
            "/private/etc/hosts",
            "/usr/local/etc/rc.d/x",
            "/etc/hosts.allow",
            "/etc/ssh/sshd_config",
            "/e?c/pam.d/su",
            "/lib/udev/rules.d/9.rules",
            "{}/etc/resolv.conf",
        ] {
            assert!(runs_by_itself(path), "{path}");
        }
        for path in [
            "cpu.profile",
            "/w/cpu.profile",
            "my-config.fish",
            "tests/authorized_keys_test.py",
            "fixtures/etc/hosts.txt",
            "/home/me/work/fixtures/etc/hosts",
            "/home/me/work/etc/rc.local",
            "src/hooks/use.ts",
            "src/*/hooks/*.ts",
            "*",
            "*/*",
            "conf*",
            ".gitignore",
            "x.git/readme",
            "docs/etc/passwd.md",
            "launchagents.md",
            "/etcetera/hosts",
            "/etc/profiles/x",
        ] {
            assert!(!runs_by_itself(path), "{path}");
        }
    }
}
