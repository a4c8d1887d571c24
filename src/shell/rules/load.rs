//! Reads rule files: those built in, and the user's.

use super::{File, Rule, catalogue};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// A list of rule files by name, with their text. `include_str!` rather than a folder as a whole: so cargo sees an edit.
macro_rules! files {
    ($($name:literal),* $(,)?) => {
        /// The rule files, by name: what holds everywhere, one a target, one a dialect.
        pub(super) const NAMES: [&str; [$($name),*].len()] = [$($name),*];
        static TEXTS: [&str; NAMES.len()] =
            [$(include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/platform-rules/", $name, ".toml"))),*];
    };
}

files!(
    "all",
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

/// Why the user's rules cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum RulesError {
    /// A file or the folder cannot be read.
    #[error("cannot read the rules in {path}: {source}")]
    Read {
        /// Which.
        path: PathBuf,
        /// The system's word.
        source: std::io::Error,
    },
    /// A file is no rule file.
    #[error("{path}, line {line}: {message}")]
    Syntax {
        /// Which.
        path: PathBuf,
        /// Where, from 1.
        line: usize,
        /// What is wrong.
        message: String,
    },
    /// A file has a name that no system and no shell has.
    #[error("{path} is named after no system and no shell")]
    Name {
        /// Which.
        path: PathBuf,
    },
    /// A rule is milder than the built-in rule it replaces.
    #[error("{path}: rule `{id}` is milder than the built-in rule of that id")]
    Looser {
        /// Which file.
        path: PathBuf,
        /// Which rule.
        id: String,
    },
}

impl RulesError {
    /// What to do about it.
    pub fn hint(&self) -> String {
        match self {
            Self::Read { path, .. } => format!("make {} readable, or remove it", path.display()),
            Self::Syntax { path, line, .. } => format!("mend line {line} of {}, or move the file away", path.display()),
            Self::Name { .. } => format!("call it one of {}, with .toml", NAMES.join(", ")),
            Self::Looser { id, .. } => {
                format!("user rules may add or tighten: give `{id}` a stricter verdict, or another id")
            }
        }
    }
}

/// A built-in file, parsed once. Its syntax is held by `tests/rules.rs`; a broken one counts as empty here.
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

/// The user's files of a folder, each with its rules.
pub(super) fn user(dir: &Path) -> Result<Vec<(String, Vec<Rule>)>, RulesError> {
    let unreadable = |path: &Path| {
        let path = path.to_owned();
        move |source| RulesError::Read { path, source }
    };
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(dir).map_err(unreadable(dir))? {
        let path = entry.map_err(unreadable(dir))?.path();
        if path.extension().is_some_and(|e| e == "toml") {
            paths.push(path);
        }
    }
    paths.sort();
    let mut files = Vec::new();
    for path in paths {
        let name = path.file_stem().map(|s| s.to_string_lossy().into_owned()).unwrap_or_default();
        if !NAMES.contains(&name.as_str()) {
            return Err(RulesError::Name { path });
        }
        let text = std::fs::read_to_string(&path).map_err(unreadable(&path))?;
        let file: File = toml::from_str(&text).map_err(|error| {
            let at = error.span().map_or(0, |s| s.start.min(text.len()));
            let line = text.as_bytes()[..at].iter().filter(|b| **b == b'\n').count() + 1;
            RulesError::Syntax { path: path.clone(), line, message: error.message().to_owned() }
        })?;
        let milder = |rule: &Rule| catalogue().iter().any(|(_, own)| own.id == rule.id && own.verdict > rule.verdict);
        if let Some(rule) = file.rule.iter().find(|r| milder(r)) {
            return Err(RulesError::Looser { path, id: rule.id.clone() });
        }
        files.push((name, file.rule));
    }
    Ok(files)
}
