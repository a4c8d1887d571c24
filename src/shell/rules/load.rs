//! Reads the rule files that are built in.

use super::File;
use std::sync::OnceLock;

/// A list of rule files by name, with their text. `include_str!` rather than a folder as a whole: so cargo sees an edit.
macro_rules! files {
    ($($name:literal),* $(,)?) => {
        /// The rule files, by name: what holds everywhere, one a target, one a dialect.
        pub(super) const NAMES: [&str; [$($name),*].len()] = [$($name),*];
        static TEXTS: [&str; NAMES.len()] =
            [$(include_str!(concat!("../../../platform-rules/", $name, ".toml"))),*];
    };
}

/// The files that hold on every system and in every shell.
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

/// A file, parsed once. Its syntax is held by `tests/rules.rs`; a broken one counts as empty here.
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
