//! The content of a program's manual.

use caro_shell::{Dialect, is_builtin};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// A program to look up.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Program {
    /// A file on PATH.
    File {
        /// The name it is called by.
        name: String,
        /// Its path.
        path: PathBuf,
    },
    /// A builtin of a shell (`cd`, `export`).
    Builtin {
        /// Its name.
        name: String,
        /// The shell program whose builtin it is.
        shell: PathBuf,
    },
}

impl Program {
    /// Finds what a shell of that dialect runs for a name: a builtin, or the file of that name.
    pub fn find(
        name: &str,
        dialect: Dialect,
        shell: Option<&Path>,
        programs: &BTreeMap<String, PathBuf>,
    ) -> Option<Self> {
        match shell {
            Some(shell) if is_builtin(name, dialect) => {
                Some(Self::Builtin { name: name.into(), shell: shell.to_path_buf() })
            }
            _ => programs.get(name).map(|path| Self::File { name: name.into(), path: path.clone() }),
        }
    }

    /// The name it is called by.
    pub fn name(&self) -> &str {
        match self {
            Self::File { name, .. } | Self::Builtin { name, .. } => name,
        }
    }

    /// The file that it belongs to: its own, or the shell's.
    pub fn path(&self) -> &Path {
        match self {
            Self::File { path, .. } => path,
            Self::Builtin { shell, .. } => shell,
        }
    }
}

/// The manual of one program.
#[derive(Debug, Clone, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Entry {
    /// The name it was looked up by, followed by the subcommand if it is about one (`git log`).
    pub command: String,
    /// The path of the program; that of the shell for a builtin.
    pub path: PathBuf,
    /// First line of its version; empty if unknown.
    pub version: String,
    /// A short description in its own words; empty if unknown.
    #[serde(default)]
    pub title: String,
    /// The relevant part of its `--help`, or the synopsis of its man page.
    pub help_text: String,
    /// First paragraph of the description in its man page.
    pub man_summary: Option<String>,
    /// Its options.
    pub options: Vec<OptionEntry>,
    /// True if the options are complete (a man page or a full `--help` was read), so that any other flag does not
    /// exist.
    pub complete: bool,
    /// Flags that its texts mention without defining them; they may exist.
    #[serde(default)]
    pub mentions: Vec<String>,
    /// True if an operand may be something with flags of its own: a subcommand, another program, a script.
    #[serde(default)]
    pub delegates: bool,
    /// Subcommands listed in its texts.
    #[serde(default)]
    pub subcommands: Vec<String>,
    /// The subcommands that its texts describe, each with its text.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub verbs: Vec<(String, String)>,
    /// True if its man page timed out, so that there may be more; it is fetched again soon.
    #[serde(default)]
    pub hurried: bool,
    /// The reason why there is no help (`timed out`, `is a directory`).
    pub problem: Option<String>,
}

/// One option of a program.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct OptionEntry {
    /// `-n`; also `-name` of programs with long options after one dash, `a` of ps and `if=` of dd.
    pub short: Option<String>,
    /// `--lines`.
    pub long: Option<String>,
    /// `NUM`, if it takes an argument; `[WHEN]` if that is optional.
    pub argument: Option<String>,
    /// Its effect, in one line.
    pub text: String,
    /// Its section, if there are sections.
    pub section: Option<String>,
    /// Further spellings.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub also: Vec<String>,
    /// Other effects of the option, for arguments that begin with a sign: `-perm -mode`, `-perm /mode`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub forms: Vec<OptionEntry>,
    /// The letters that the argument may be or end in, each with its meaning: `d`, `directory`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub choices: Vec<(String, String)>,
}

impl OptionEntry {
    /// All spellings.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.short.iter().chain(&self.long).chain(&self.also).map(String::as_str)
    }

    /// Returns the form of the option that an argument's value selects by its sign; the option itself if none does.
    pub fn form(&self, value: &str) -> &Self {
        let sign = |form: &&Self| form.argument.as_deref().is_some_and(|a| a.chars().next() == value.chars().next());
        self.forms.iter().find(sign).unwrap_or(self)
    }

    /// True if the argument is optional; it must be attached then.
    pub fn argument_is_optional(&self) -> bool {
        let Some(argument) = &self.argument else { return false };
        let mut depth = 0usize;
        !argument.is_empty()
            && argument.chars().all(|c| {
                let outside = depth == 0 && c != '[';
                depth = match c {
                    '[' => depth + 1,
                    ']' => depth.saturating_sub(1),
                    _ => depth,
                };
                !outside
            })
    }

    /// True if its argument is a number, so that letters attached to it are further options (`-l[octnum]`, `-u NUM`).
    pub fn takes_number(&self) -> bool {
        const NUMBERS: &[&str] = &["n", "num", "number", "octnum", "octal/hexadecimal", "count"];
        let Some(argument) = &self.argument else { return false };
        NUMBERS.contains(&argument.trim_matches(['[', ']', '=', '<', '>']).to_ascii_lowercase().as_str())
    }

    /// True if the next word is its argument, unless one is attached.
    pub fn takes_next(&self) -> bool {
        self.argument.is_some() && !self.argument_is_optional()
    }

    /// The form shown in manuals: `-n, --lines=NUM`.
    pub fn usage(&self) -> String {
        let mut line = self.names().collect::<Vec<_>>().join(", ");
        match (&self.argument, &self.long) {
            (Some(argument), Some(_)) if self.argument_is_optional() && self.also.is_empty() => {
                line.push_str(&format!("[={}", argument.trim_start_matches('[')));
            }
            (Some(argument), Some(_)) if self.also.is_empty() => line.push_str(&format!("={argument}")),
            (Some(argument), _) if line.ends_with('=') => line.push_str(argument),
            (Some(argument), _) => line.push_str(&format!(" {argument}")),
            (None, _) => {}
        }
        line
    }

    /// One line for a prompt or the user: the usage and the text.
    pub fn line(&self) -> String {
        let usage = self.usage();
        if self.text.is_empty() { usage } else { format!("{usage}  {}", self.text) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn optional_arguments_are_recognized() {
        let option = |argument: Option<&str>| OptionEntry {
            short: Some("-n".into()),
            long: Some("--lines".into()),
            argument: argument.map(str::to_string),
            text: "how many".into(),
            ..OptionEntry::default()
        };
        assert_eq!(option(Some("[WHEN]")).line(), "-n, --lines[=WHEN]  how many");
        assert_eq!(option(Some("[-]NUM")).line(), "-n, --lines=[-]NUM  how many");
        assert!(!option(Some("[color][={always|auto|never}]")).takes_next());
        assert!(option(Some("[octnum]")).takes_number() && !option(Some("number/list")).takes_number());
        assert!(option(Some("[-]NUM")).takes_next());
        assert!(!option(Some("[WHEN]")).takes_next());
        assert!(!option(None).takes_next());
    }
}
