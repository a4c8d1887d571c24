//! The variables a child sees that is not the person's own: few, the same on every machine where possible, nothing secret.

use std::ffi::{OsStr, OsString};
use std::path::Path;

/// Taken over from our own environment if set: who the person is and where programs keep themselves. Tokens, keys,
/// proxies, preloads and editor settings are not among them; who needs one passes it in `Job::env`.
const KEPT: &[&str] = &[
    "HOME",
    "USER",
    "LOGNAME",
    "MANPATH",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_DATA_DIRS",
    "RUSTUP_HOME",
    "CARGO_HOME",
    "JAVA_HOME",
    "PYENV_ROOT",
    "ASDF_DATA_DIR",
    "NVM_DIR",
    "HOMEBREW_PREFIX",
    // Windows does not start a program without these.
    "SystemRoot",
    "SystemDrive",
    "windir",
    "ComSpec",
    "PATHEXT",
    "USERPROFILE",
    "APPDATA",
    "LOCALAPPDATA",
    "ProgramData",
    "ProgramFiles",
    "ProgramFiles(x86)",
    "PSModulePath",
];

/// The same for everybody: English, no colour, no pager, a wide and dumb terminal.
const FIXED: &[(&str, &str)] = &[
    ("LANG", LOCALE),
    ("LC_ALL", LOCALE),
    ("TERM", "dumb"),
    ("NO_COLOR", "1"),
    ("CLICOLOR", "0"),
    ("PAGER", "cat"),
    ("MANPAGER", "cat"),
    ("GIT_PAGER", "cat"),
    ("SYSTEMD_PAGER", "cat"),
    ("LESS", ""),
    ("EDITOR", "false"),
    ("VISUAL", "false"),
    ("COLUMNS", "200"),
    ("LINES", "10000"),
    ("TZ", "UTC0"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("DEBIAN_FRONTEND", "noninteractive"),
    ("PYTHONDONTWRITEBYTECODE", "1"),
];

/// An English UTF-8 locale: macOS has had `C.UTF-8` only of late.
const LOCALE: &str = if cfg!(target_os = "macos") { "en_US.UTF-8" } else { "C.UTF-8" };

/// Where programs are if nobody says.
#[cfg(unix)]
const FALLBACK_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Taken over by a child that outlives us: where the user's files are, and what a program needs to find its libraries and
/// devices.
#[cfg(unix)]
const DETACHED: [&str; 4] = ["HOME", "LD_LIBRARY_PATH", "DYLD_FALLBACK_LIBRARY_PATH", "CUDA_VISIBLE_DEVICES"];

/// The environment of a child that outlives us.
#[cfg(unix)]
pub(super) fn detached() -> Vec<(OsString, OsString)> {
    DETACHED.iter().filter_map(|name| Some((OsString::from(name), std::env::var_os(name)?))).collect()
}

/// The environment of a captured child, with its temporary files in `scratch`.
pub(super) fn scrubbed(scratch: Option<&Path>) -> Vec<(OsString, OsString)> {
    from(|name| std::env::var_os(name), scratch)
}

/// [`scrubbed`] over any source of variables.
fn from(var: impl Fn(&str) -> Option<OsString>, scratch: Option<&Path>) -> Vec<(OsString, OsString)> {
    let mut all: Vec<(OsString, OsString)> = Vec::with_capacity(KEPT.len() + FIXED.len() + 4);
    all.extend(KEPT.iter().filter_map(|name| Some((OsString::from(name), var(name)?))));
    all.extend(FIXED.iter().map(|(name, value)| (OsString::from(name), OsString::from(value))));
    all.push((OsString::from("PATH"), search_path(var("PATH").as_deref())));
    if let Some(scratch) = scratch {
        all.extend(["TMPDIR", "TEMP", "TMP"].map(|name| (OsString::from(name), scratch.as_os_str().to_owned())));
    }
    all
}

/// PATH without what is relative: the child's working directory must not decide which program runs.
fn search_path(path: Option<&OsStr>) -> OsString {
    let absolute = std::env::split_paths(path.unwrap_or_default()).filter(|part| part.is_absolute());
    let joined = std::env::join_paths(absolute).unwrap_or_default();
    #[cfg(unix)]
    if joined.is_empty() {
        return OsString::from(FALLBACK_PATH);
    }
    joined
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn relative_path_entries_are_dropped() {
        assert_eq!(search_path(Some(OsStr::new(".:/usr/bin::bin:/bin"))), OsString::from("/usr/bin:/bin"));
        assert_eq!(search_path(Some(OsStr::new(""))), OsString::from(FALLBACK_PATH));
        assert_eq!(search_path(None), OsString::from(FALLBACK_PATH));
    }

    #[test]
    fn secrets_stay_here() {
        let env = from(|name| Some(OsString::from(format!("{name}-value"))), None);
        let names: Vec<_> = env.iter().map(|(name, _)| name.to_string_lossy().into_owned()).collect();
        for secret in ["AWS_SECRET_ACCESS_KEY", "GITHUB_TOKEN", "LD_PRELOAD", "SSH_AUTH_SOCK", "http_proxy", "DISPLAY"]
        {
            assert!(!names.iter().any(|name| name == secret), "{secret} is passed on");
        }
        assert!(names.iter().any(|name| name == "HOME"));
        let mut unique = names.clone();
        unique.sort();
        unique.dedup();
        assert_eq!(unique.len(), names.len(), "a variable is set twice");
    }
}
