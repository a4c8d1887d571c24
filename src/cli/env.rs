//! The environment variables that caro takes settings from. Those of downloads (`CARO_HUB_URL`, `CARO_PYTHON` and
//! those of the hub and pip) are named where they are read, in `model::fetch::settings`; all others only here.
//!
//! Variables that only describe the system (`PATH`, `SHELL`, `USER`) are read by `host`, those of child processes by
//! `exec`.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};

/// The folder of caches, instead of the platform's.
pub const CACHE_DIR: &str = "CARO_CACHE_DIR";
/// The folder of model files, instead of `models` in the cache folder.
pub const MODELS_DIR: &str = "CARO_MODELS_DIR";
/// The user's configuration file, instead of the platform's.
pub const CONFIG_FILE: &str = "CARO_CONFIG_FILE";
/// The folder of the resident process's socket, instead of the platform's.
pub const RUNTIME_DIR: &str = "CARO_RUNTIME_DIR";
/// The key for a remote model (`--model openai:URL#NAME`).
pub const API_KEY: &str = "CARO_API_KEY";
/// The key for `--model anthropic:NAME`.
pub const ANTHROPIC_KEY: &str = "ANTHROPIC_API_KEY";
/// The credentials for the bucket of `workspace_backend = s3 | r2`: `KEY_ID:SECRET`.
pub const WORKSPACE_KEY: &str = "CARO_WORKSPACE_KEY";
/// The last failed command of the shell, for `caro fix`: set by the hook of `caro init --fix`.
pub const FAILED_COMMAND: &str = "CARO_FAILED_COMMAND";
/// The exit status of [`FAILED_COMMAND`].
pub const FAILED_STATUS: &str = "CARO_FAILED_STATUS";
/// The exit statuses of the stages of its pipeline.
pub const FAILED_STAGES: &str = "CARO_FAILED_STAGES";
/// The user's editor for a full-screen terminal, for `caro config edit`.
pub const VISUAL: &str = "VISUAL";
/// The user's editor where [`VISUAL`] names none.
pub const EDITOR: &str = "EDITOR";
/// The file that the accepted command is written to, for the shell's history: set by the script of
/// `caro init --history`.
pub const TAKEN: &str = "CARO_TAKEN";
/// Any value but the empty one: no colour.
pub const NO_COLOR: &str = "NO_COLOR";
/// Any value but the empty one and `0`: colour even if the output is not a terminal.
pub const CLICOLOR_FORCE: &str = "CLICOLOR_FORCE";
/// `dumb`: a terminal without colour.
pub const TERM: &str = "TERM";
/// Any value but `0`: as `--plain`.
pub const PLAIN: &str = "CARO_PLAIN";
/// The locale, which says whether the terminal shows more than ASCII; the first of the three that is set counts.
pub const LC_ALL: &str = "LC_ALL";
/// See [`LC_ALL`].
pub const LC_CTYPE: &str = "LC_CTYPE";
/// See [`LC_ALL`].
pub const LANG: &str = "LANG";

/// Every variable that is read, with one line of documentation, besides those of the settings (`CARO_MODEL` ...): see
/// [`super::setup::config::KEYS`].
pub const VARIABLES: [(&str, &str); 20] = [
    (CACHE_DIR, "folder of caches, instead of the platform's"),
    (MODELS_DIR, "folder of model files, instead of `models` in the cache folder"),
    (CONFIG_FILE, "the user's configuration file, instead of the platform's"),
    (RUNTIME_DIR, "folder of the resident process's socket, instead of the platform's (mode 700)"),
    (API_KEY, "key for a remote model (`--model openai:URL#NAME`)"),
    (ANTHROPIC_KEY, "key for `--model anthropic:NAME`"),
    (WORKSPACE_KEY, "what opens the bucket of `workspace_url`: KEY_ID:SECRET"),
    (FAILED_COMMAND, "the command that failed last, for `caro fix` (from the hook of `caro init --fix`)"),
    (FAILED_STATUS, "its exit status"),
    (FAILED_STAGES, "the exit statuses of the stages of its pipeline"),
    (VISUAL, "the editor of `caro config edit`"),
    (EDITOR, "the same where VISUAL names none"),
    (TAKEN, "the file that takes the command that was run or taken (from the script of `caro init --history`)"),
    (NO_COLOR, "any value: no colour"),
    (CLICOLOR_FORCE, "any value but 0: colour even in a pipe"),
    (TERM, "`dumb`: no colour, no moving status line"),
    (PLAIN, "any value but 0: as --plain, for screen readers"),
    (LC_ALL, "the locale: without UTF-8 in it nothing but ASCII is drawn"),
    (LC_CTYPE, "the same, if that is not set"),
    (LANG, "the same, if neither is set"),
];

/// The variables as they were when the program started. An empty variable counts as not set.
#[derive(Debug, Clone, Default)]
pub struct Env(BTreeMap<&'static str, OsString>);

impl Env {
    /// Reads the variables of this process.
    pub fn of_process() -> Self {
        Self::from_lookup(|name| std::env::var_os(name))
    }

    /// Reads the variables with `lookup`, for tests.
    pub fn from_lookup(lookup: impl Fn(&str) -> Option<OsString>) -> Self {
        let names = VARIABLES.iter().map(|(name, _)| *name).chain(super::setup::config::KEYS.iter().map(|key| key.env));
        Self(names.filter_map(|name| lookup(name).filter(|v| !v.is_empty()).map(|v| (name, v))).collect())
    }

    /// The value of a variable, if it is set and not empty.
    pub fn get(&self, name: &str) -> Option<&OsStr> {
        self.0.get(name).map(OsString::as_os_str)
    }
}

/// All variables of this process: downloads read the hub's and pass those of the network to pip, and a service file
/// takes over the platform's folders.
pub fn everything() -> impl Iterator<Item = (OsString, OsString)> {
    std::env::vars_os()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_counts_as_unset_and_unknown_names_are_not_read() {
        let env = Env::from_lookup(|name| match name {
            "CARO_MODEL" => Some("".into()),
            "CARO_CACHE_DIR" => Some("/c".into()),
            _ => None,
        });
        assert_eq!(env.get("CARO_MODEL"), None);
        assert_eq!(env.get(CACHE_DIR), Some(OsStr::new("/c")));
    }

    #[test]
    fn every_variable_is_ours_or_a_convention() {
        for (name, description) in VARIABLES {
            const CONVENTIONS: [&str; 9] =
                [NO_COLOR, CLICOLOR_FORCE, TERM, ANTHROPIC_KEY, VISUAL, EDITOR, LC_ALL, LC_CTYPE, LANG];
            assert!(name.starts_with("CARO_") || CONVENTIONS.contains(&name), "{name}");
            assert!(!description.is_empty());
        }
    }
}
