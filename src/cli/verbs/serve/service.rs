//! `caro serve --print-service`: a file by which a service manager starts the server for this user, with the given
//! flags, and with the variables in force that set something or name a folder. Secrets are left out.

use super::Args;
use crate::env;
use crate::setup::config::{Config, KEYS, Origin, shown};
use crate::setup::download;
use crate::{Cx, Exit, Failure, Outcome};
use caro_model::fetch::{self, ModelSource};
use std::path::Path;

/// A service manager.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Kind {
    /// Linux
    Systemd,
    /// macOS
    Launchd,
}

/// The name of the service.
const LABEL: &str = "caro-serve";
/// The variables that name caro's folders and its file.
const FOLDERS: [&str; 4] = [env::CACHE_DIR, env::MODELS_DIR, env::CONFIG_FILE, env::RUNTIME_DIR];
/// The variables of the platform for the same. Source: the XDG base directory specification.
const PLATFORM_FOLDERS: [&str; 4] = ["XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME"];
/// The variables that are secrets.
const SECRETS: [&str; 3] = [env::API_KEY, env::ANTHROPIC_KEY, env::WORKSPACE_KEY];
/// The permissions that are taken from files which the service creates: those of other users. launchd reads a decimal
/// number.
const UMASK: u32 = 0o077;
/// Seconds that the server has to end, more than it gives to what is under way.
const STOP_TIMEOUT: u32 = 40;

/// A variable with its value.
type Variable = (&'static str, String);

/// Prints the file, and a note that says where it belongs.
///
/// # Errors
/// If this program does not know where it is, or a word cannot stand in such a file.
pub(super) fn print(kind: Kind, args: &Args, config: &Config, cx: &Cx) -> Outcome {
    let program = std::env::current_exe().map_err(|e| Failure::internal(format!("where is this program? {e}")))?;
    let mut words = vec![text(program)?, "serve".into()];
    for (key, value) in args.flags() {
        words.push(format!("--{}", key.trim_start_matches("serve.").replace('_', "-")));
        words.push(if key == "model" { absolute_model(&value, &download::settings(cx)?)? } else { value });
    }
    if !cx.ui.is_talkative() {
        words.push("--quiet".into());
    }
    if let Some(path) = &args.socket {
        words.extend(["--socket".into(), absolute(path)?]);
    }
    if args.no_mcp {
        words.push("--no-mcp".into());
    }
    if args.allow_agent {
        words.push("--allow-agent".into());
    }
    let (variables, secret) = variables(config, cx)?;
    if words.iter().chain(variables.iter().map(|(_, value)| value)).any(|word| word.contains(char::is_control)) {
        return Err(Failure::usage("a word with a control character cannot stand in a service file")
            .hint("put the program and its files where their names have none"));
    }
    let (file, place) = match kind {
        Kind::Systemd => (
            systemd(&words, &variables),
            "~/.config/systemd/user/caro-serve.service, then: `systemctl --user enable --now caro-serve`",
        ),
        Kind::Launchd => (
            launchd(&words, &variables, &home()?),
            "~/Library/LaunchAgents/caro-serve.plist, then: `launchctl load -w ~/Library/LaunchAgents/caro-serve.plist`",
        ),
    };
    cx.ui.data(file.trim_end())?;
    cx.ui.note(&format!("it belongs into {place}"));
    if !secret.is_empty() {
        cx.ui.note(&format!("left out, because a secret does not belong into it: {}", secret.join(", ")));
    }
    Ok(Exit::Success)
}

/// Returns the variables that the server needs to find the same settings and folders as here, and the names of those
/// that hold a secret.
fn variables(config: &Config, cx: &Cx) -> Result<(Vec<Variable>, Vec<&'static str>), Failure> {
    let (mut found, mut secret) = (Vec::new(), Vec::new());
    for key in KEYS.iter().filter(|key| *config.origin(key.name) == Origin::Env(key.env)) {
        let value = config.text(key.name);
        match key.name {
            _ if shown(key.name, value) != value => secret.push(key.env),
            "model" => found.push((key.env, absolute_model(value, &download::settings(cx)?)?)),
            _ if Path::new(value).is_file() => found.push((key.env, absolute(value)?)),
            _ => found.push((key.env, value.to_owned())),
        }
    }
    for name in FOLDERS {
        if let Some(path) = cx.env.get(name) {
            found.push((name, absolute(path)?));
        }
    }
    for (name, path) in env::everything() {
        let known = PLATFORM_FOLDERS.iter().find(|known| name == **known);
        // a relative one is ignored, as its specification says
        if let Some(name) = known
            && Path::new(&path).is_absolute()
        {
            found.push((*name, absolute(path)?));
        }
    }
    secret.extend(SECRETS.iter().filter(|name| cx.env.get(name).is_some()));
    Ok((found, secret))
}

/// Returns the name of a model for a server that starts in another folder: the absolute path of a file.
fn absolute_model(spec: &str, folders: &fetch::Settings) -> Result<String, Failure> {
    match fetch::resolve(spec, folders) {
        Ok(ModelSource::File(path)) => absolute(path),
        Ok(ModelSource::Script(path)) => Ok(format!("script:{}", absolute(path)?)),
        // the server says what is wrong with it
        _ => Ok(spec.to_owned()),
    }
}

fn absolute(path: impl AsRef<Path>) -> Result<String, Failure> {
    let path = path.as_ref();
    text(std::path::absolute(path).map_err(|e| Failure::usage(format!("{}: {e}", path.display())))?)
}

fn text(path: std::path::PathBuf) -> Result<String, Failure> {
    path.into_os_string()
        .into_string()
        .map_err(|path| Failure::usage(format!("{} is not UTF-8: no service file can name it", path.display())))
}

fn systemd(words: &[String], variables: &[Variable]) -> String {
    let quoted: Vec<String> = words.iter().map(|word| systemd_word(&word.replace('$', "$$"))).collect();
    let line = |(name, value): &(&str, String)| format!("Environment={}\n", systemd_word(&format!("{name}={value}")));
    let environment: String = variables.iter().map(line).collect();
    format!(
        "[Unit]\nDescription=caro: the local model for the programs of this machine\n\n[Service]\nExecStart={}\n\
         {environment}WorkingDirectory=%h\nRestart=on-failure\nTimeoutStopSec={STOP_TIMEOUT}\nUMask={UMASK:04o}\n\n[Install]\nWantedBy=default.target\n",
        quoted.join(" ")
    )
}

/// Quotes a word for systemd, and escapes the characters that have a meaning everywhere. A `$` has one in a command
/// line alone.
fn systemd_word(word: &str) -> String {
    let escaped = word.replace('\\', "\\\\").replace('"', "\\\"").replace('%', "%%");
    format!("\"{escaped}\"")
}

/// The user's home folder, in which launchd starts the server: it knows no short name for it.
fn home() -> Result<String, Failure> {
    let home = std::env::home_dir().filter(|home| home.is_absolute());
    text(home.ok_or_else(|| Failure::usage("this user has no home folder").hint("set HOME to a folder"))?)
}

fn launchd(words: &[String], variables: &[Variable], home: &str) -> String {
    let escaped = |word: &str| word.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    let strings: String = words.iter().map(|word| format!("    <string>{}</string>\n", escaped(word))).collect();
    let pair =
        |(name, value): &(&str, String)| format!("    <key>{name}</key>\n    <string>{}</string>\n", escaped(value));
    let pairs: String = variables.iter().map(pair).collect();
    let environment = match pairs.as_str() {
        "" => String::new(),
        pairs => format!("  <key>EnvironmentVariables</key>\n  <dict>\n{pairs}  </dict>\n"),
    };
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
         <!DOCTYPE plist PUBLIC \"-//Apple//DTD PLIST 1.0//EN\" \"http://www.apple.com/DTDs/PropertyList-1.0.dtd\">\n\
         <plist version=\"1.0\">\n<dict>\n  <key>Label</key>\n  <string>{LABEL}</string>\n  <key>ProgramArguments</key>\n  <array>\n\
         {strings}  </array>\n{environment}  <key>WorkingDirectory</key>\n  <string>{}</string>\n  <key>Umask</key>\n  <integer>{UMASK}</integer>\n  \
         <key>ExitTimeOut</key>\n  <integer>{STOP_TIMEOUT}</integer>\n  <key>RunAtLoad</key>\n  <true/>\n  <key>KeepAlive</key>\n  <dict>\n    <key>SuccessfulExit</key>\n    <false/>\n  \
         </dict>\n</dict>\n</plist>\n",
        escaped(home)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_escaped_in_both_formats() {
        let unit = systemd(&[r#"/a b/100% $x "y" \z"#.into()], &[("XDG_DATA_HOME", r#"/d $x 5% "q""#.into())]);
        assert!(unit.contains("ExecStart=\"/a b/100%% $$x \\\"y\\\" \\\\z\"\n"), "{unit}");
        assert!(unit.contains("Environment=\"XDG_DATA_HOME=/d $x 5%% \\\"q\\\"\"\n"), "{unit}");
        let plist = launchd(&["/a&b".into(), "</string><key>x".into()], &[], "/h<o>me");
        assert!(plist.contains("<string>/a&amp;b</string>"));
        assert_eq!(plist.matches("</string>").count(), 4, "{plist}");
        let plist = launchd(&["caro".into()], &[("CARO_MODEL", "a<b".into())], "/h");
        assert!(plist.contains("<key>CARO_MODEL</key>\n    <string>a&lt;b</string>\n"), "{plist}");
    }

    #[test]
    fn both_services_work_in_the_home_folder_with_private_files() {
        let (unit, plist) = (systemd(&["caro".into()], &[]), launchd(&["caro".into()], &[], "/Users/ann"));
        assert!(unit.contains("WorkingDirectory=%h\n") && unit.contains("UMask=0077\n"), "{unit}");
        let has = |key: &str, value: &str| plist.contains(&format!("  <key>{key}</key>\n  {value}\n"));
        assert!(
            has("WorkingDirectory", "<string>/Users/ann</string>") && has("Umask", "<integer>63</integer>"),
            "{plist}"
        );
        assert!(unit.contains("TimeoutStopSec=40\n") && has("ExitTimeOut", "<integer>40</integer>"), "{unit}{plist}");
    }
}
