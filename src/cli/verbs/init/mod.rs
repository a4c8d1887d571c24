//! `caro init SHELL`: prints a script that adds caro to the prompt of a shell, or installs it.
//!
//! The script binds one key that turns the words on the line into a command in the line, and one that explains the
//! command on it. With `--fix` the shell also remembers which command failed last, in variables of its own: nothing
//! is written to disk, and only `caro fix` gets them. A third key puts the repaired command into the line.
//!
//! A shell cannot record what programs write to standard error without standing between them and the terminal, which
//! breaks programs that check for a terminal. So the error is not recorded: `caro fix` tries the command in a sandbox
//! in which it can change nothing.
//!
//! - `bash.sh`, `zsh.zsh`, `fish.fish`, `nu.nu`, `pwsh.ps1`: the scripts, with placeholders between two `@`.
//! - `key`: keys by their names, as each shell writes them. `install`: has the line that loads the script written
//!   into the shell's file, in the form of [`rc`](crate::setup::rc).
//!
//! The keys call `caro --widget`, which belongs to the verb for requests.

mod install;
mod key;

use crate::setup::rc::Shell;
use crate::{Cx, Exit, Failure, Outcome};
use key::Key;

/// The default key for a command.
const COMMAND: Key = Key::Alt('e');
/// The default key for an explanation.
const EXPLAIN: Key = Key::Alt('i');
/// The default key for a repair. Alt-F is forward-word in every shell, and Alt-X runs a command of the editor in zsh.
const FIX: Key = Key::Alt('r');

/// The shells that take a line into their history that was not run.
const HISTORY_SHELLS: [Shell; 3] = [Shell::Bash, Shell::Zsh, Shell::Pwsh];
/// The shells for which there is a key that repairs.
const FIX_SHELLS: [Shell; 3] = [Shell::Bash, Shell::Zsh, Shell::Fish];

/// Arguments of `caro init`.
#[derive(Debug, clap::Args)]
#[command(after_help = "A line for the shell's own file loads the script at every start:\n  \
                        eval \"$(caro init bash)\"    in ~/.bashrc\n  \
                        eval \"$(caro init zsh)\"     in ~/.zshrc\n  \
                        caro init fish | source     in ~/.config/fish/config.fish\n  \
                        caro init pwsh | Out-String | Invoke-Expression    in $PROFILE\n\
                        For nushell it is longer; --install shows it, and writes it there.")]
pub struct Args {
    /// The shell
    pub shell: Shell,
    /// Key that turns the words on the line into a command: alt-LETTER, ctrl-LETTER, f1 to f12
    #[arg(long, value_name = "KEY", default_value_t = COMMAND)]
    pub key: Key,
    /// Key that explains the command on the line
    #[arg(long, value_name = "KEY", default_value_t = EXPLAIN)]
    pub explain_key: Key,
    /// In bash, zsh and fish: keep which command failed last, in the shell's own memory: `caro fix` repairs it, and a key
    /// puts that into the line
    #[arg(long)]
    pub fix: bool,
    /// Key that repairs the last command, or the one on the line
    #[arg(long, value_name = "KEY", default_value_t = FIX, requires = "fix")]
    pub fix_key: Key,
    /// With that key a command is tried where nothing can be changed, to see its error
    #[arg(long, requires = "fix")]
    pub fix_tries: bool,
    /// In bash, zsh and pwsh: keep what was asked in the shell's history, as a comment before its command, and what was run or taken at the keys
    /// after an answer
    #[arg(long)]
    pub history: bool,
    /// Show the line that the shell's own file needs, and write it there after asking
    #[arg(long, conflicts_with = "uninstall")]
    pub install: bool,
    /// Take the line out of the shell's own file after asking
    #[arg(long)]
    pub uninstall: bool,
    /// Write without asking
    #[arg(short, long)]
    pub yes: bool,
}

impl Args {
    /// The line that loads the script with these keys.
    fn load(&self) -> String {
        let mut call = format!("caro init {}", self.shell.name());
        for (flag, key, default) in [
            ("--key", self.key, COMMAND),
            ("--explain-key", self.explain_key, EXPLAIN),
            ("--fix-key", self.fix_key, FIX),
        ] {
            if key != default {
                call.push_str(&format!(" {flag} {key}"));
            }
        }
        for (flag, is_given) in [("--fix", self.fix), ("--fix-tries", self.fix_tries), ("--history", self.history)] {
            if is_given {
                call.push_str(&format!(" {flag}"));
            }
        }
        match self.shell {
            Shell::Bash | Shell::Zsh => format!("eval \"$({call})\""),
            Shell::Fish => format!("{call} | source"),
            // nushell reads the files in that folder after its own file
            Shell::Nu => format!(
                "mkdir ($nu.data-dir | path join vendor autoload); \
                 ^{call} | save --force ($nu.data-dir | path join vendor autoload caro.nu)"
            ),
            Shell::Pwsh => format!("{call} | Out-String | Invoke-Expression"),
        }
    }

    /// The script with its placeholders filled.
    fn script(&self) -> String {
        let (template, key): (&str, fn(Key) -> String) = match self.shell {
            Shell::Bash => (include_str!("bash.sh"), Key::for_readline),
            Shell::Zsh => (include_str!("zsh.zsh"), Key::for_zle),
            Shell::Fish => (include_str!("fish.fish"), Key::for_fish),
            Shell::Nu => (include_str!("nu.nu"), Key::for_nu),
            Shell::Pwsh => (include_str!("pwsh.ps1"), Key::for_psreadline),
        };
        let filled = template
            .replace("@KEY@", &key(self.key))
            .replace("@EXPLAIN@", &key(self.explain_key))
            .replace("@REPAIR@", &key(self.fix_key))
            .replace("@REPAIR_NAME@", &self.fix_key.to_string())
            .replace("@TRIES@", if self.fix_tries { " --try" } else { "" })
            .replace("@KEY_MODIFIER@", self.key.modifier())
            .replace("@EXPLAIN_MODIFIER@", self.explain_key.modifier())
            .replace("@KEY_NAME@", &self.key.to_string())
            .replace("@EXPLAIN_NAME@", &self.explain_key.to_string())
            .replace("@CALL@", if self.history { "__caro_call" } else { "command caro" })
            .replace("@LOAD@", &self.load());
        // a line after a mark is included only if its flag was given
        let only_history = self.history && !self.fix;
        let chosen = [("@ONLY_HISTORY@", only_history), ("@HISTORY@", self.history), ("@FIX@", self.fix)];
        let lines = filled.lines().filter_map(|line| {
            let marked = chosen.iter().find_map(|(mark, is_given)| Some((line.split_once(mark)?, *is_given)));
            match marked {
                Some((_, false)) => None,
                Some(((indent, call), true)) => Some(format!("{indent}{call}\n")),
                None => Some(format!("{line}\n")),
            }
        });
        lines.collect()
    }
}

/// Prints the script, or edits the shell's own file.
///
/// # Errors
/// If two keys are the same, the shell does not support a flag, or the file cannot be read or written.
pub fn run(args: &Args, cx: &Cx) -> Outcome {
    if args.key == args.explain_key {
        return Err(Failure::usage(format!("{} cannot do both", args.key)).hint("give --explain-key another key"));
    }
    if args.fix && [args.key, args.explain_key].contains(&args.fix_key) {
        return Err(Failure::usage(format!("{} cannot do both", args.fix_key)).hint("give --fix-key another key"));
    }
    if args.history && !HISTORY_SHELLS.contains(&args.shell) {
        return Err(Failure::usage(format!("{} takes no line into its history that was not run", args.shell.name()))
            .hint("without --history the command is kept, as every other that is run"));
    }
    if args.fix && !FIX_SHELLS.contains(&args.shell) {
        return Err(Failure::usage(format!("for {} there is no key that repairs yet", args.shell.name()))
            .hint("without --fix there are the other two; `caro fix 'COMMAND'` repairs any command"));
    }
    if args.install || args.uninstall {
        return install::edit(args, cx);
    }
    cx.ui.data(args.script().trim_end())?;
    Ok(Exit::Success)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::parsed;

    fn args(words: &[&str]) -> Args {
        parsed(words.iter().copied()).unwrap()
    }

    /// The help and the paper name the shells that a flag is for, and no other.
    #[test]
    fn a_flag_of_some_shells_names_them() {
        let command = <Args as clap::Args>::augment_args(clap::Command::new("init"));
        let readme = include_str!("../../README.md");
        for (flag, shells) in [("history", HISTORY_SHELLS), ("fix", FIX_SHELLS)] {
            let help = command.get_arguments().find(|arg| arg.get_long() == Some(flag)).unwrap().get_help().unwrap();
            let [first, second, third] = shells.map(Shell::name);
            assert!(help.to_string().starts_with(&format!("In {first}, {second} and {third}: ")), "{help}");
            let named = readme.split(&format!("`--{flag}`")).nth(1).and_then(|rest| rest.split(')').next()).unwrap();
            assert!(named.ends_with(&format!("({first}, {second}, {third}")), "src/cli/README.md: --{flag}{named}");
        }
    }

    #[test]
    fn a_script_is_filled_and_says_what_loads_it() {
        for (shell, load) in [
            ("bash", "eval \"$(caro init bash)\""),
            ("zsh", "eval \"$(caro init zsh)\""),
            ("fish", "caro init fish | source"),
            ("nu", "vendor autoload caro.nu)"),
            ("pwsh", "caro init pwsh | Out-String | Invoke-Expression"),
        ] {
            let script = args(&[shell]).script();
            assert!(script.lines().nth(1).unwrap().ends_with(load), "{script}");
            assert!(script.contains("alt-e") && script.contains("--widget") && !script.contains('@'), "{script}");
        }
    }

    #[test]
    fn the_copy_for_nushell_is_known_by_its_beginning() {
        assert!(args(&["nu"]).script().starts_with(crate::setup::rc::NU_SCRIPT));
    }

    #[test]
    fn the_line_that_loads_it_has_the_chosen_flags() {
        let chosen = args(&["zsh", "--key", "ctrl-g", "--explain-key", "f2", "--history"]);
        assert_eq!(chosen.load(), "eval \"$(caro init zsh --key ctrl-g --explain-key f2 --history)\"");
        let script = chosen.script();
        assert!(script.contains("'^G' caro-command") && script.contains("'^[OQ' caro-explain"), "{script}");
        assert!(script.contains("print -sr") && !args(&["zsh"]).script().contains("print -sr"));
    }

    #[test]
    fn the_script_of_powershell_parses_and_binds_its_keys() {
        use caro_shell::{Dialect, parse};
        let chosen = args(&["powershell", "--key", "f2", "--explain-key", "ctrl-g", "--history"]);
        assert_eq!(
            chosen.load(),
            "caro init pwsh --key f2 --explain-key ctrl-g --history | Out-String | Invoke-Expression"
        );
        let script = chosen.script();
        assert!(parse(&script, Dialect::PowerShell).errors.is_empty(), "{script}");
        assert!(script.contains("-Chord 'F2'") && script.contains("-Chord 'Ctrl+g'"), "{script}");
        assert!(script.contains("AddToHistory") && !args(&["pwsh"]).script().contains("AddToHistory"));
    }

    #[test]
    fn the_hook_is_included_only_with_fix() {
        for shell in ["bash", "zsh", "fish"] {
            let plain = args(&[shell]).script();
            assert!(!plain.contains("FAILED") && !plain.contains("alt-r"), "{plain}");
            let hooked = args(&[shell, "--fix", "--fix-tries"]);
            let script = hooked.script();
            assert!(
                script.contains("CARO_FAILED_COMMAND")
                    && script.contains("--try")
                    && !script.replace("$@", "").contains('@'),
                "{script}"
            );
            assert!(hooked.load().contains("--fix --fix-tries"), "{}", hooked.load());
            assert!(!args(&[shell, "--fix"]).script().contains("--try"));
        }
    }
}
