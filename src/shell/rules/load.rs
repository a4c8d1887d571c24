//! Parses the built-in rule files.

use super::File;
use std::sync::OnceLock;

/// Declares the rule files with their names and texts. Uses `include_str!` for each file so that cargo notices
/// changes.
macro_rules! files {
    ($($name:literal),* $(,)?) => {
        /// The names of the rule files: those that apply everywhere, one per target, one per dialect.
        pub(super) const NAMES: [&str; [$($name),*].len()] = [$($name),*];
        static TEXTS: [&str; NAMES.len()] =
            [$(include_str!(concat!("../../../platform-rules/", $name, ".toml"))),*];
    };
}

/// The files that apply on every system and in every shell.
pub(super) const EVERYWHERE: [&str; 3] = ["all", "machine", "services"];

files!(
    "all",
    "machine",
    "services",
    "linux-gnu",
    "linux-busybox",
    "macos-bsd",
    "freebsd",
    "windows",
    "bash",
    "zsh",
    "fish",
    "posix-sh",
    "powershell",
);

/// Returns a file, parsed once. `tests/rules.rs` checks the syntax of all; an invalid file counts as empty here.
pub(super) fn file(name: &str) -> Option<&'static File> {
    static PARSED: [OnceLock<File>; NAMES.len()] = [const { OnceLock::new() }; NAMES.len()];
    let at = NAMES.iter().position(|n| *n == name)?;
    Some(PARSED[at].get_or_init(|| {
        toml::from_str(TEXTS[at]).unwrap_or_else(|error| {
            debug_assert!(false, "platform-rules/{name}.toml: {error}");
            File::default()
        })
    }))
}
