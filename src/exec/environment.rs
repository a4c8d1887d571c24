//! The environment of children: few variables, the same on every machine where possible, nothing secret.

use super::EnvProfile;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// Inherited by all children: the user's folders, and what Windows needs to start a program.
const BARE: &[&str] = &[
    "HOME",
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

/// Inherited by programs that are asked about themselves: who the user is and where programs store their files.
/// Tokens, keys, proxies, preloads and editor settings are excluded; a job that needs one sets it in `Job::env`.
const IDENTITY: &[&str] = &[
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
];

/// Inherited by work on behalf of the user. The output stays English and without colours, as a model reads it and
/// tests match it.
const WORK: &[&str] = &[
    "VIRTUAL_ENV",
    "CONDA_PREFIX",
    "GOPATH",
    "GOROOT",
    "NODE_PATH",
    "XDG_CACHE_HOME",
    "XDG_STATE_HOME",
    "XDG_CONFIG_DIRS",
    "XDG_CURRENT_DESKTOP",
];

/// Inherited by approved commands: proxies, key agents, and the user's own services.
const APPROVED: &[&str] = &[
    "http_proxy",
    "https_proxy",
    "ftp_proxy",
    "all_proxy",
    "no_proxy",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "FTP_PROXY",
    "ALL_PROXY",
    "NO_PROXY",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "SSH_AUTH_SOCK",
    "SSH_AGENT_PID",
    "GPG_TTY",
    "GNUPGHOME",
    "DBUS_SESSION_BUS_ADDRESS",
    "XDG_RUNTIME_DIR",
    "DISPLAY",
    "WAYLAND_DISPLAY",
    "XAUTHORITY",
    "DOCKER_HOST",
    "DOCKER_CONTEXT",
    "KUBECONFIG",
];

/// Set for all children: English, no colour, no pager, a wide and dumb terminal.
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
    (TIME_ZONE, "UTC0"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("DEBIAN_FRONTEND", "noninteractive"),
    ("PYTHONDONTWRITEBYTECODE", "1"),
];

/// The fixed variables that are set for a script written by others.
const SCRIPT_FIXED: &[&str] = &["LANG", "LC_ALL", "TERM"];

/// The time zone variable: inherited by work on behalf of the user. If it is unset, the system's zone is used.
const TIME_ZONE: &str = "TZ";

/// An English UTF-8 locale. Older versions of macOS have no `C.UTF-8`.
const LOCALE: &str = if cfg!(target_os = "macos") { "en_US.UTF-8" } else { "C.UTF-8" };

/// The search path if PATH is unset.
#[cfg(unix)]
const FALLBACK_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Inherited by a child that outlives us: the home folder, and where a program finds its libraries and devices.
#[cfg(unix)]
const DETACHED: [&str; 4] = ["HOME", "LD_LIBRARY_PATH", "DYLD_FALLBACK_LIBRARY_PATH", "CUDA_VISIBLE_DEVICES"];

/// Returns the environment of a child that outlives us.
#[cfg(unix)]
pub(super) fn detached() -> Vec<(OsString, OsString)> {
    DETACHED.iter().filter_map(|name| Some((OsString::from(name), std::env::var_os(name)?))).collect()
}

/// Returns the environment of a captured child, with its temporary files in `scratch`.
pub(super) fn scrubbed(profile: EnvProfile, scratch: Option<&Path>) -> Vec<(OsString, OsString)> {
    scrubbed_from(|name| std::env::var_os(name), profile, scratch)
}

/// Like [`scrubbed`], for any source of variables.
fn scrubbed_from(
    var: impl Fn(&str) -> Option<OsString>,
    profile: EnvProfile,
    scratch: Option<&Path>,
) -> Vec<(OsString, OsString)> {
    let own: &[&[&str]] = match profile {
        EnvProfile::Script => &[BARE],
        EnvProfile::Neutral => &[BARE, IDENTITY],
        EnvProfile::Work => &[BARE, IDENTITY, WORK, &[TIME_ZONE]],
        EnvProfile::Approved => &[BARE, IDENTITY, WORK, &[TIME_ZONE], APPROVED],
    };
    let mut all: Vec<(OsString, OsString)> = Vec::new();
    all.extend(own.iter().copied().flatten().filter_map(|name| Some((OsString::from(name), var(name)?))));
    let fixed = FIXED.iter().filter(|(name, _)| match profile {
        EnvProfile::Script => SCRIPT_FIXED.contains(name),
        EnvProfile::Neutral => true,
        EnvProfile::Work | EnvProfile::Approved => *name != TIME_ZONE,
    });
    all.extend(fixed.map(|(name, value)| (OsString::from(name), OsString::from(value))));
    all.push((OsString::from("PATH"), search_path(var("PATH").as_deref())));
    if let Some(scratch) = scratch {
        all.extend(["TMPDIR", "TEMP", "TMP"].map(|name| (OsString::from(name), scratch.as_os_str().to_owned())));
    }
    all
}

/// Returns the path of an installed program, as children find it. A path is resolved relative to the working
/// directory. `None` if it does not exist or may not be run.
pub fn find(program: impl AsRef<OsStr>) -> Option<PathBuf> {
    let path = search_path(std::env::var_os("PATH").as_deref());
    let cwd = std::env::current_dir().unwrap_or_else(|_| PathBuf::from("/"));
    which::which_in(program, Some(path), cwd).ok()
}

/// Returns PATH without relative entries: the child's working directory must not decide which program runs.
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

    fn names(profile: EnvProfile) -> Vec<String> {
        let env = scrubbed_from(|name| Some(OsString::from(format!("{name}-value"))), profile, None);
        let names: Vec<_> = env.iter().map(|(name, _)| name.to_string_lossy().into_owned()).collect();
        let mut unique = names.clone();
        unique.sort();
        unique.dedup();
        assert_eq!(unique.len(), names.len(), "a variable is set twice");
        names
    }

    #[test]
    fn secrets_are_not_inherited() {
        for profile in [EnvProfile::Script, EnvProfile::Neutral, EnvProfile::Work, EnvProfile::Approved] {
            let names = names(profile);
            for secret in ["AWS_SECRET_ACCESS_KEY", "GITHUB_TOKEN", "LD_PRELOAD", "BASH_ENV", "ENV"] {
                assert!(!names.iter().any(|name| name == secret), "{secret} is passed on in {profile:?}");
            }
            assert!(names.iter().any(|name| name == "HOME"));
            for door in ["SSH_AUTH_SOCK", "http_proxy", "DISPLAY"] {
                assert_eq!(
                    names.iter().any(|name| name == door),
                    profile == EnvProfile::Approved,
                    "{door} in {profile:?}"
                );
            }
        }
    }

    #[test]
    fn work_has_the_users_time_zone() {
        let zone = |profile, set: Option<&str>| {
            let env = scrubbed_from(|name| if name == "TZ" { set.map(OsString::from) } else { None }, profile, None);
            env.into_iter().find(|(name, _)| name == "TZ").map(|(_, value)| value.to_string_lossy().into_owned())
        };
        for profile in [EnvProfile::Work, EnvProfile::Approved] {
            assert_eq!(zone(profile, Some("Asia/Tokyo")).as_deref(), Some("Asia/Tokyo"));
            assert_eq!(zone(profile, None), None, "without one it is the system's");
        }
        assert_eq!(zone(EnvProfile::Neutral, Some("Asia/Tokyo")).as_deref(), Some("UTC0"));
    }
}
