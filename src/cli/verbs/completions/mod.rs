//! `caro completions SHELL`: prints the completion script; `caro completions man`: prints or writes the manual pages.
//!
//! Both are generated from the definition of the arguments. They are one verb because a package needs both, and
//! because `caro man tar` is a request.
//!
//! - [`values`]: words that are completed from what is on this machine: models, adapters, sessions.

pub mod values;

use crate::papers::man;
use crate::{Cx, Exit, Failure, Outcome};
use caro_base::files::{self, Access};
use clap::Command;
use clap::builder::PossibleValue;
use clap_complete::Shell;
use std::path::{Path, PathBuf};
use values::Kind;

/// The things that can be generated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum What {
    /// A script for bash
    Bash,
    /// A script for elvish
    Elvish,
    /// A script for fish
    Fish,
    /// A script for PowerShell
    Powershell,
    /// A script for zsh
    Zsh,
    /// Manual pages: that of the program on stdout, or all of them in a folder
    Man,
}

impl What {
    fn shell(self) -> Option<Shell> {
        match self {
            Self::Bash => Some(Shell::Bash),
            Self::Elvish => Some(Shell::Elvish),
            Self::Fish => Some(Shell::Fish),
            Self::Powershell => Some(Shell::PowerShell),
            Self::Zsh => Some(Shell::Zsh),
            Self::Man => None,
        }
    }
}

/// Arguments of `caro completions`.
#[derive(Debug, clap::Args)]
#[command(override_usage = "caro completions [OPTIONS] <WHAT> [DIR]")]
#[command(after_help = "  caro completions bash > ~/.local/share/bash-completion/completions/caro\n  \
                        caro completions zsh > ~/.zfunc/_caro                  # a folder of fpath\n  \
                        caro completions fish > ~/.config/fish/completions/caro.fish\n  \
                        caro completions man ~/.local/share/man/man1           # then `man caro`, `man caro-undo`")]
pub struct Args {
    /// The shell, or `man` for manual pages
    #[arg(required_unless_present = "values")]
    pub what: Option<What>,
    /// With `man`: the folder that the pages are written to
    #[arg(value_name = "DIR")]
    pub folder: Option<PathBuf>,
    /// Print what stands for a word of that kind, a line each: the scripts ask for it
    #[arg(long, hide = true, value_name = "KIND", conflicts_with_all = ["what", "folder"])]
    pub values: Option<Kind>,
}

/// Prints the script, or writes the pages.
///
/// # Errors
/// If stdout or the folder cannot be written.
pub fn run(args: &Args, cx: &Cx) -> Outcome {
    if let Some(kind) = args.values {
        values::of(kind, cx).iter().try_for_each(|value| cx.ui.data(value))?;
        return Ok(Exit::Success);
    }
    match args.what.and_then(What::shell) {
        Some(_) if args.folder.is_some() => {
            Err(Failure::usage("a script goes to stdout").hint("`caro completions bash > FILE` puts it into a file"))
        }
        Some(shell) => {
            cx.ui.data(script(shell, cx.definition()).trim_end())?;
            Ok(Exit::Success)
        }
        None => pages(args.folder.as_deref(), cx),
    }
}

fn pages(folder: Option<&Path>, cx: &Cx) -> Outcome {
    let pages = man::pages(cx.definition())?;
    let Some(folder) = folder else {
        if let Some(page) = pages.first() {
            cx.ui.data(page.text.trim_end())?;
        }
        return Ok(Exit::Success);
    };
    for page in &pages {
        let file = folder.join(&page.file);
        files::replace(&file, page.text.as_bytes(), Access::Umask).map_err(|e| {
            Failure::usage(format!("{} cannot be written: {e}", file.display()))
                .hint("name a folder that can be written")
        })?;
    }
    cx.ui.note(&format!("{} pages are in {}", pages.len(), folder.display()));
    Ok(Exit::Success)
}

/// The code by which the generator for bash completes words without known values: with file names, split at blanks.
const GENERATED_FILES: &str = "COMPREPLY=($(compgen -f \"${cur}\"))";

/// The functions that complete files and values in bash, placed before the script.
const BASH_FUNCTIONS: &str = r#"_caro_files() {
    local IFS=$'\n'
    COMPREPLY=($(compgen -f -- "${cur}"))
    compopt -o filenames 2>/dev/null || true
}

_caro_values() {
    local IFS=$'\n'
    COMPREPLY=($(compgen -W "$(caro completions --values "$1" 2>/dev/null)" -- "${cur}"))
}

_caro_values_or_files() {
    local IFS=$'\n' values
    _caro_values "$1"
    values=("${COMPREPLY[@]}")
    _caro_files
    COMPREPLY=("${values[@]}" "${COMPREPLY[@]}")
}
"#;

/// The functions that complete values in zsh, placed in the script. They use `compadd`, because the lists of zsh give
/// a meaning to the colon that a value may contain.
const ZSH_FUNCTIONS: &str = r#"
_caro_values() {
    local -a values
    values=(${(f)"$(caro completions --values $1 2>/dev/null)"})
    compadd -a values
}
_caro_values_or_files() {
    _caro_values $1
    _files
}
"#;

/// The code by which the generator for fish parses a line. It fails if the line ends with an option that lacks its
/// value.
const FISH_NO_VALUE: &str = "    argparse -s (__fish_caro_global_optspecs) -- $cmd 2>/dev/null\n    or return\n";

/// The code that replaces it, which then parses the line without that option.
const FISH_VALUE: &str = "    if not argparse -s (__fish_caro_global_optspecs) -- $cmd 2>/dev/null
        set -e cmd[-1]
        argparse -s (__fish_caro_global_optspecs) -- $cmd 2>/dev/null
        or return
    end
";

/// Generates the script for a shell, and replaces the marks in it by code that asks for values.
fn script(shell: Shell, definition: Command) -> String {
    let mut script = Vec::new();
    let mut command = values::marked(definition);
    clap_complete::generate(shell, &mut command, "caro", &mut script);
    let script = String::from_utf8_lossy(&script).into_owned();
    match shell {
        Shell::Bash => patch_bash(&script),
        Shell::Zsh => patch_zsh(&script),
        Shell::Fish => patch_fish(&script, &command),
        _ => script,
    }
}

/// Keeps file names with blanks whole, and replaces the marks.
fn patch_bash(script: &str) -> String {
    let mut script = script.replace(GENERATED_FILES, "_caro_files");
    for kind in Kind::ALL {
        for (with_files, call) in [(true, "_caro_values_or_files"), (false, "_caro_values")] {
            let mark = kind.mark(with_files);
            // after an option the mark is the only word; elsewhere it is among the options
            script = script.replace(
                &format!("COMPREPLY=($(compgen -W \"{mark}\" -- \"${{cur}}\"))"),
                &format!("{call} {}", kind.name()),
            );
            script = script.replace(mark, &format!("$(caro completions --values {} 2>/dev/null)", kind.name()));
        }
    }
    format!("{BASH_FUNCTIONS}\n{script}")
}

fn patch_zsh(script: &str) -> String {
    let mut script = script.to_owned();
    for kind in Kind::ALL {
        for (with_files, call) in [(true, "_caro_values_or_files"), (false, "_caro_values")] {
            script = script.replace(&format!("({})", kind.mark(with_files)), &format!("{{{call} {}}}", kind.name()));
        }
    }
    let script = without_words(&script);
    // the first line has to stay first: it says what the file completes
    match script.split_once('\n') {
        Some((first, rest)) => format!("{first}\n{ZSH_FUNCTIONS}{rest}"),
        None => script,
    }
}

/// Removes the words of a request, or of a search, where a verb may stand in their place. The script for zsh would
/// count them before the verb and complete nothing after it.
fn without_words(script: &str) -> String {
    let lines: Vec<&str> = script.lines().collect();
    let (mut kept, mut dropped) = (Vec::new(), 0);
    for (at, line) in lines.iter().enumerate() {
        let is_word = ["'::", "'*::", "':"].iter().any(|begin| line.starts_with(begin));
        let mut rest = lines[at + 1..].iter().take_while(|line| !line.starts_with("&& ret=0"));
        if is_word && rest.any(|line| line.starts_with("\":: :_caro_")) {
            dropped += 1;
            continue;
        }
        kept.push(line.replace(&format!("$line[{}]", dropped + 1), "$line[1]"));
        if line.trim_start().starts_with("case $line[") {
            dropped = 0;
        }
    }
    kept.join("\n")
}

fn patch_fish(script: &str, command: &Command) -> String {
    let lines: Vec<String> = script
        .lines()
        .map(|line| match (marked_in(line), line.split_once(" -a \"")) {
            (Some((kind, with_files)), Some((before, _))) => {
                let before = if with_files { before.replace(" -f", " -F") } else { before.to_owned() };
                format!("{before} -a \"{}\"", values_of(kind))
            }
            _ => line.to_owned(),
        })
        .collect();
    let script = lines.join("\n").replace(FISH_NO_VALUE, FISH_VALUE);
    let mut lines = vec![script];
    for verb in command.get_subcommands() {
        let only = format!("__fish_caro_using_subcommand {}", verb.get_name());
        add_words_for_fish(verb, &only, &mut lines);
    }
    lines.join("\n")
}

/// The kind whose mark is in a text, and true if files may stand there as well.
fn marked_in(text: &str) -> Option<(Kind, bool)> {
    let mut all = Kind::ALL.into_iter().flat_map(|kind| [(kind, true), (kind, false)]);
    all.find(|(kind, with_files)| text.contains(kind.mark(*with_files)))
}

/// The code of fish that asks for the values of a kind.
fn values_of(kind: Kind) -> String {
    format!("(caro completions --values {} 2>/dev/null)", kind.name())
}

/// Adds the words without an option before them, which the generator for fish leaves out.
fn add_words_for_fish(command: &Command, only: &str, lines: &mut Vec<String>) {
    for word in command.get_positionals() {
        let values = word.get_possible_values();
        let names: Vec<&str> =
            values.iter().filter(|value| !value.is_hide_set()).map(PossibleValue::get_name).collect();
        let names = names.join(" ");
        match marked_in(&names) {
            _ if names.is_empty() => {}
            Some((kind, true)) => lines.push(format!("complete -c caro -n \"{only}\" -a \"{}\"", values_of(kind))),
            Some((kind, false)) => lines.push(format!("complete -c caro -n \"{only}\" -f -a \"{}\"", values_of(kind))),
            None => lines.push(format!("complete -c caro -n \"{only}\" -f -a \"{names}\"")),
        }
    }
    for verb in command.get_subcommands() {
        let below = format!("{only}; and __fish_seen_subcommand_from {}", verb.get_name());
        add_words_for_fish(verb, &below, lines);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::Cli;
    use clap::CommandFactory;

    /// Fails if a later version of the generator writes its marks in another form.
    #[test]
    fn every_mark_is_replaced_by_a_call_for_values() {
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish, Shell::PowerShell, Shell::Elvish] {
            let script = script(shell, Cli::command());
            for kind in Kind::ALL {
                assert!(
                    !script.contains(kind.mark(true)) && !script.contains(kind.mark(false)),
                    "{shell} {}",
                    kind.name()
                );
                let is_asked = match shell {
                    Shell::Zsh => script.contains(&format!("_caro_values {}", kind.name())),
                    Shell::Bash | Shell::Fish => script.contains(&format!("caro completions --values {}", kind.name())),
                    _ => true,
                };
                assert!(is_asked, "{shell}: {}", kind.name());
            }
        }
    }

    #[test]
    fn the_generated_completion_of_files_is_replaced_everywhere() {
        let mut before = Vec::new();
        clap_complete::generate(Shell::Bash, &mut Cli::command(), "caro", &mut before);
        assert!(String::from_utf8(before).unwrap().contains(GENERATED_FILES));
        let after = script(Shell::Bash, Cli::command());
        assert!(script(Shell::Fish, Cli::command()).contains(FISH_VALUE));
        let zsh = script(Shell::Zsh, Cli::command());
        assert!(zsh.matches("case $line[1] in").count() > 10 && !zsh.contains("$line[2]"));
        assert!(!after.contains(GENERATED_FILES) && after.matches("_caro_values_or_files models").count() > 1);
    }

    #[test]
    fn fixed_words_are_completed_in_the_three_shells() {
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
            let script = script(shell, Cli::command());
            for word in ["macos-bsd", "powershell", "exit-codes", "max_iterations", "uninstall"] {
                assert!(script.contains(word), "{shell}: {word}");
            }
        }
    }
}
