//! Edits the line in a shell's startup file that loads caro's script, between two marks.

use crate::env;
use caro_base::files;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// The mark before the line.
pub const BEGIN: &str = "# >>> caro >>>";
/// The mark after the line.
pub const END: &str = "# <<< caro <<<";

/// Most bytes of a file that is edited.
const MAX_FILE: u64 = 1 << 20;

/// A shell whose line editor caro supports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Shell {
    /// 4 and newer
    Bash,
    /// 5 and newer
    Zsh,
    /// 3 and newer
    Fish,
    /// nushell 0.101 and newer: commands are written for bash, and put into the line as bash runs them
    Nu,
    /// PowerShell 7.3 and newer
    #[value(alias = "powershell")]
    Pwsh,
}

impl Shell {
    /// All shells.
    pub const ALL: [Self; 5] = [Self::Bash, Self::Zsh, Self::Fish, Self::Nu, Self::Pwsh];

    /// The name of its program.
    pub fn name(self) -> &'static str {
        match self {
            Self::Bash => "bash",
            Self::Zsh => "zsh",
            Self::Fish => "fish",
            Self::Nu => "nu",
            Self::Pwsh => "pwsh",
        }
    }
}

/// The way a shell's startup file loads the script.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Loading {
    /// By the line between the marks.
    Block,
    /// By a line that was written by hand.
    ByHand,
    /// Not at all.
    None,
    /// The marks are not in pairs.
    Broken,
    /// The file cannot be read, with the reason.
    Unreadable(String),
}

/// Returns the way a startup file loads the script.
pub fn loading_of(file: &Path) -> Loading {
    match files::read_text(file, MAX_FILE) {
        Ok(text) => loading(&text),
        Err(e) if e.kind() == ErrorKind::NotFound => Loading::None,
        Err(e) => Loading::Unreadable(e.to_string()),
    }
}

fn loading(text: &str) -> Loading {
    match outside(text) {
        None => Loading::Broken,
        Some(lines) if lines.len() < text.lines().count() => Loading::Block,
        Some(_) if by_hand(text).is_some() => Loading::ByHand,
        Some(_) => Loading::None,
    }
}

/// True for a line that loads the script.
fn loads(line: &str) -> bool {
    line.contains("caro init ") && !line.trim_start().starts_with('#')
}

/// Returns the first line that was written by hand and loads the script, with its number; `None` if the marks are not
/// in pairs.
pub fn by_hand(text: &str) -> Option<(usize, &str)> {
    outside(text)?.into_iter().map(|(number, line)| (number, line.trim())).find(|(_, line)| loads(line))
}

/// Returns the lines, with their ends and numbers, that are not between the marks; `None` if the marks are not in
/// pairs.
fn outside(text: &str) -> Option<Vec<(usize, &str)>> {
    let (mut lines, mut inside) = (Vec::new(), false);
    for (number, line) in (1..).zip(text.split_inclusive('\n')) {
        match line.trim() {
            BEGIN if inside => return None,
            BEGIN => inside = true,
            END if !inside => return None,
            END => inside = false,
            _ if inside => {}
            _ => lines.push((number, line)),
        }
    }
    if inside { None } else { Some(lines) }
}

/// The beginning of the script for nushell.
pub const NU_SCRIPT: &str = "# caro in the prompt of nushell";

/// Returns the copy of the script that the line in nushell's file writes and nushell loads at every start; `None` if it
/// is not there, or is another's.
pub fn nu_script() -> Option<PathBuf> {
    let file = nu_place(std::env::home_dir().as_deref(), variable)?;
    let text = read(&file).ok()?;
    text.starts_with(NU_SCRIPT).then_some(file)
}

/// Returns the place of that copy for a home folder and variables.
fn nu_place(home: Option<&Path>, variable: impl Fn(&str) -> Option<PathBuf>) -> Option<PathBuf> {
    let folder = |name: &str| variable(name).filter(|folder| folder.is_absolute());
    let home = |path: &str| home.filter(|home| home.is_absolute()).map(|home| home.join(path));
    let usual = || {
        if cfg!(windows) {
            folder("APPDATA")
        } else if cfg!(target_os = "macos") {
            home("Library/Application Support")
        } else {
            home(".local/share")
        }
    };
    let data = folder("XDG_DATA_HOME").or_else(usual)?;
    Some(data.join("nushell/vendor/autoload/caro.nu"))
}

/// Returns the text without the line between the marks; `None` if the marks are not in pairs.
pub fn without(text: &str) -> Option<String> {
    edited(text, None)
}

/// Reads the text of a startup file.
///
/// # Errors
/// If it cannot be read, or is too long.
pub fn read(file: &Path) -> std::io::Result<String> {
    files::read_text(file, MAX_FILE)
}

/// Returns the startup file of this user that a shell reads when it starts interactively.
pub fn file(shell: Shell) -> Option<PathBuf> {
    let path = place(shell, std::env::home_dir().as_deref(), variable)?;
    // a symbolic link, as into a folder of dotfiles, is kept
    Some(path.canonicalize().unwrap_or(path))
}

/// Returns the path in an environment variable.
fn variable(name: &str) -> Option<PathBuf> {
    env::everything().find(|(of, _)| of == name).map(|(_, value)| PathBuf::from(value))
}

/// Returns the startup file for a home folder and variables.
fn place(shell: Shell, home: Option<&Path>, variable: impl Fn(&str) -> Option<PathBuf>) -> Option<PathBuf> {
    let folder = |name: &str| variable(name).filter(|folder| folder.is_absolute());
    let home = home.filter(|home| home.is_absolute());
    match shell {
        Shell::Bash => Some(home?.join(".bashrc")),
        Shell::Zsh => Some(folder("ZDOTDIR").or_else(|| home.map(Path::to_path_buf))?.join(".zshrc")),
        Shell::Fish => {
            let config = folder("XDG_CONFIG_HOME").or_else(|| Some(home?.join(".config")))?;
            Some(config.join("fish/config.fish"))
        }
        Shell::Nu if cfg!(windows) => Some(folder("APPDATA")?.join("nushell/config.nu")),
        Shell::Nu if cfg!(target_os = "macos") && folder("XDG_CONFIG_HOME").is_none() => {
            Some(home?.join("Library/Application Support/nushell/config.nu"))
        }
        Shell::Nu => {
            let config = folder("XDG_CONFIG_HOME").or_else(|| Some(home?.join(".config")))?;
            Some(config.join("nushell/config.nu"))
        }
        Shell::Pwsh => {
            let config = match cfg!(windows) {
                true => home?.join("Documents/PowerShell"),
                false => folder("XDG_CONFIG_HOME").or_else(|| Some(home?.join(".config")))?.join("powershell"),
            };
            Some(config.join("Microsoft.PowerShell_profile.ps1"))
        }
    }
}

/// Returns the text with this line between the marks, at its end, or without marks and line; `None` if the marks are
/// not in pairs.
pub fn edited(text: &str, line: Option<&str>) -> Option<String> {
    let mut after: String = outside(text)?.into_iter().map(|(_, line)| line).collect();
    let Some(line) = line else { return Some(after) };
    if !after.is_empty() && !after.ends_with('\n') {
        after.push('\n');
    }
    Some(format!("{after}{BEGIN}\n{line}\n{END}\n"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn each_shell_has_its_file() {
        let home = Some(Path::new("/home/u"));
        let none = |_: &str| None;
        assert_eq!(place(Shell::Bash, home, none), Some("/home/u/.bashrc".into()));
        assert_eq!(place(Shell::Zsh, home, none), Some("/home/u/.zshrc".into()));
        assert_eq!(place(Shell::Fish, home, none), Some("/home/u/.config/fish/config.fish".into()));
        if cfg!(target_os = "linux") {
            assert_eq!(place(Shell::Nu, home, none), Some("/home/u/.config/nushell/config.nu".into()));
            let profile = "/home/u/.config/powershell/Microsoft.PowerShell_profile.ps1";
            assert_eq!(place(Shell::Pwsh, home, none), Some(profile.into()));
        }
        assert_eq!(place(Shell::Zsh, None, |_| Some("/z".into())), Some("/z/.zshrc".into()));
        assert_eq!(place(Shell::Fish, home, |_| Some("/x".into())), Some("/x/fish/config.fish".into()));
        assert_eq!(place(Shell::Bash, Some(Path::new("relative")), none), None);
    }

    #[test]
    fn the_way_a_file_loads_the_script_is_found() {
        let block = edited("ls\n", Some("eval \"$(caro init bash)\"")).unwrap();
        for (text, wanted) in [
            (block.as_str(), Loading::Block),
            ("eval \"$(caro init bash)\"\n", Loading::ByHand),
            ("# eval \"$(caro init bash)\"\nls\n", Loading::None),
            ("", Loading::None),
            (BEGIN, Loading::Broken),
        ] {
            assert_eq!(loading(text), wanted, "{text}");
        }
        assert_eq!(loading_of(Path::new("/nowhere/.bashrc")), Loading::None);
        assert!(matches!(loading_of(Path::new("/")), Loading::Unreadable(_)));
    }

    #[test]
    fn a_line_written_by_hand_is_found_outside_of_the_marks() {
        let line = "eval \"$(caro init bash --fix)\"";
        let block = edited("ls\n", Some(line)).unwrap();
        assert_eq!(by_hand(&block), None);
        assert_eq!(by_hand(&format!("{block}# {line}\n  {line}\n")), Some((6, line)));
        assert_eq!(by_hand(&format!("{line}\n{block}")), Some((1, line)));
        assert_eq!(by_hand("ls\n"), None);
        assert_eq!(by_hand(&format!("{line}\n{BEGIN}\n")), None, "a broken file is reported as such");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn nushell_loads_its_copy_from_the_data_folder() {
        let home = Some(Path::new("/home/u"));
        let ends = "nushell/vendor/autoload/caro.nu";
        assert_eq!(nu_place(home, |_| None), Some(Path::new("/home/u/.local/share").join(ends)));
        assert_eq!(
            nu_place(home, |name| (name == "XDG_DATA_HOME").then(|| "/d".into())),
            Some(Path::new("/d").join(ends))
        );
        assert_eq!(nu_place(None, |_| None), None);
    }

    #[test]
    fn marks_that_are_not_in_pairs_are_left_alone() {
        for text in [BEGIN, END, &format!("{BEGIN}\n{BEGIN}\n{END}\n"), &format!("{END}\n{BEGIN}\n")] {
            assert_eq!((edited(text, Some("x")), edited(text, None)), (None, None), "{text}");
        }
    }

    proptest! {
        #[test]
        fn an_added_line_is_there_once_and_is_removed_without_a_trace(
            lines in proptest::collection::vec("[ -~äß\t]{0,20}", 0..8), ends in any::<bool>(), (one, two) in ("[a-z]{1,9}", "[a-z]{1,9}")
        ) {
            let mut text = lines.join("\n");
            if ends && !text.is_empty() {
                text.push('\n');
            }
            let first = edited(&text, Some(&one)).unwrap();
            prop_assert_eq!(edited(&first, Some(&one)).unwrap(), first.clone());
            let second = edited(&first, Some(&two)).unwrap();
            prop_assert_eq!(second.matches(BEGIN).count(), 1);
            let expected = format!("{}\n", two);
            prop_assert!(second.contains(&expected));
            let gone = edited(&second, None).unwrap();
            prop_assert_eq!(gone.strip_suffix('\n').unwrap_or(&gone), text.strip_suffix('\n').unwrap_or(&text));
        }
    }
}
