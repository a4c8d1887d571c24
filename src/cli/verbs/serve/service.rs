//! `caro serve --print-service`: a file by which a service manager starts the server for this user, with the given
//! flags.

use super::Args;
use crate::{Cx, Exit, Failure, Outcome};

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
/// The permissions that are taken from files which the service creates: those of other users. launchd reads a decimal
/// number.
const UMASK: u32 = 0o077;
/// Seconds that the server has to end, more than it gives to what is under way.
const STOP_TIMEOUT: u32 = 40;

/// Prints the file, and a note that says where it belongs.
///
/// # Errors
/// If this program does not know where it is, or a word cannot stand in such a file.
pub(super) fn print(kind: Kind, args: &Args, cx: &Cx) -> Outcome {
    let program = std::env::current_exe().map_err(|e| Failure::internal(format!("where is this program? {e}")))?;
    let mut words = vec![text(program)?, "serve".into()];
    for (key, value) in args.flags() {
        words.push(format!("--{}", key.trim_start_matches("serve.").replace('_', "-")));
        words.push(value);
    }
    if let Some(path) = &args.socket {
        let whole = std::path::absolute(path).map_err(|e| Failure::usage(format!("--socket: {e}")))?;
        words.extend(["--socket".into(), text(whole)?]);
    }
    if args.no_mcp {
        words.push("--no-mcp".into());
    }
    if args.allow_agent {
        words.push("--allow-agent".into());
    }
    if words.iter().any(|word| word.contains(char::is_control)) {
        return Err(Failure::usage("a word with a control character cannot stand in a service file")
            .hint("put the program and its files where their names have none"));
    }
    let (file, place) = match kind {
        Kind::Systemd => (
            systemd(&words),
            "~/.config/systemd/user/caro-serve.service, then: `systemctl --user enable --now caro-serve`",
        ),
        Kind::Launchd => (
            launchd(&words, &home()?),
            "~/Library/LaunchAgents/caro-serve.plist, then: `launchctl load -w ~/Library/LaunchAgents/caro-serve.plist`",
        ),
    };
    cx.ui.data(file.trim_end())?;
    cx.ui.note(&format!("it belongs into {place}"));
    Ok(Exit::Success)
}

fn text(path: std::path::PathBuf) -> Result<String, Failure> {
    path.into_os_string()
        .into_string()
        .map_err(|path| Failure::usage(format!("{} is not UTF-8: no service file can name it", path.display())))
}

fn systemd(words: &[String]) -> String {
    let quoted: Vec<String> = words.iter().map(|word| systemd_word(word)).collect();
    format!(
        "[Unit]\nDescription=caro: the local model for the programs of this machine\n\n[Service]\nExecStart={}\n\
         WorkingDirectory=%h\nRestart=on-failure\nTimeoutStopSec={STOP_TIMEOUT}\nUMask={UMASK:04o}\n\n[Install]\nWantedBy=default.target\n",
        quoted.join(" ")
    )
}

/// Quotes a word for a command line of systemd, and escapes the characters that have a meaning there.
fn systemd_word(word: &str) -> String {
    let escaped = word.replace('\\', "\\\\").replace('"', "\\\"").replace('%', "%%").replace('$', "$$");
    format!("\"{escaped}\"")
}

/// The user's home folder, in which launchd starts the server: it knows no short name for it.
fn home() -> Result<String, Failure> {
    let home = std::env::home_dir().filter(|home| home.is_absolute());
    text(home.ok_or_else(|| Failure::usage("this user has no home folder").hint("set HOME to a folder"))?)
}

fn launchd(words: &[String], home: &str) -> String {
    let escaped = |word: &str| word.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    let strings: String = words.iter().map(|word| format!("    <string>{}</string>\n", escaped(word))).collect();
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
         <!DOCTYPE plist PUBLIC \"-//Apple//DTD PLIST 1.0//EN\" \"http://www.apple.com/DTDs/PropertyList-1.0.dtd\">\n\
         <plist version=\"1.0\">\n<dict>\n  <key>Label</key>\n  <string>{LABEL}</string>\n  <key>ProgramArguments</key>\n  <array>\n\
         {strings}  </array>\n  <key>WorkingDirectory</key>\n  <string>{}</string>\n  <key>Umask</key>\n  <integer>{UMASK}</integer>\n  \
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
        assert_eq!(systemd_word(r#"/a b/100% $x "y" \z"#), r#""/a b/100%% $$x \"y\" \\z""#);
        let plist = launchd(&["/a&b".into(), "</string><key>x".into()], "/h<o>me");
        assert!(plist.contains("<string>/a&amp;b</string>"));
        assert_eq!(plist.matches("</string>").count(), 4, "{plist}");
    }

    #[test]
    fn both_services_work_in_the_home_folder_with_private_files() {
        let (unit, plist) = (systemd(&["caro".into()]), launchd(&["caro".into()], "/Users/ann"));
        assert!(unit.contains("WorkingDirectory=%h\n") && unit.contains("UMask=0077\n"), "{unit}");
        let has = |key: &str, value: &str| plist.contains(&format!("  <key>{key}</key>\n  {value}\n"));
        assert!(
            has("WorkingDirectory", "<string>/Users/ann</string>") && has("Umask", "<integer>63</integer>"),
            "{plist}"
        );
        assert!(unit.contains("TimeoutStopSec=40\n") && has("ExitTimeOut", "<integer>40</integer>"), "{unit}{plist}");
    }
}
