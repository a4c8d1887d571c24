//! Recognizes scripts that do nothing but change the shell that runs them, and so have no effect in one of their own.

use super::Dialect;
use super::builtin::powershell_alias;
use super::effects::{Kind, effects};
use super::parse::{How, Invocation, Script};

/// Builtins that change the shell which runs them and nothing else.
const STATE: &[&str] = &["cd", "chdir", "pushd", "popd", "export", "unset", "alias", "unalias", "set", "umask"];

/// Builtins that run a file in this shell. It may start any program, unless it is known to be written for a shell:
/// `~/.bashrc`, `venv/bin/activate`.
const RUN_FILES: &[&str] = &["source", "."];

/// The cmdlets of that kind.
const STATE_CMDLETS: &[&str] = &["set-location", "push-location", "pop-location", "set-alias", "set-variable"];

/// True if all that a script does is to change the shell that runs it: the folder, variables, aliases. In a shell of its
/// own it has no effect.
///
/// ```
/// use caro_shell::{Dialect, changes_only_its_shell, parse};
/// assert!(changes_only_its_shell(&parse("cd /tmp && export A=1", Dialect::Bash)));
/// assert!(!changes_only_its_shell(&parse("cd /tmp && ls", Dialect::Bash)));
/// ```
pub fn changes_only_its_shell(script: &Script) -> bool {
    let is_plain = script.errors.is_empty() && script.functions.is_empty() && script.redirects.is_empty();
    if !is_plain || script.commands.is_empty() && script.assignments.is_empty() {
        return false;
    }
    // a substitution only gives text for the command around it
    let is_text = |c: &Invocation| c.inside.is_some_and(|inside| inside.how == How::Substitution);
    let all = effects(script);
    let only =
        |index: usize, kinds: &[Kind]| all.iter().filter(|e| e.command == Some(index)).all(|e| kinds.contains(&e.kind));
    // the command of an alias is only noted
    let is_noted = |c: &Invocation| c.via.first().is_some_and(|outer| outer == "alias");
    script.commands.iter().enumerate().filter(|(_, command)| !is_noted(command)).all(|(index, command)| {
        match is_text(command) {
            true => only(index, &[Kind::None, Kind::Read, Kind::Compute]),
            false => {
                changes_shell(command, script.dialect_of(command))
                    && (!command.name().is_some_and(|name| RUN_FILES.contains(&name))
                        || only(index, &[Kind::None, Kind::Build]))
            }
        }
    })
}

/// True for a command that changes the shell, and does not print its state instead.
fn changes_shell(command: &Invocation, dialect: Dialect) -> bool {
    let is_alone = command.via.is_empty()
        && command.inside.is_none()
        && !command.remote
        && !command.stdin_pipe
        && !command.stdout_pipe
        && !command.redirects.iter().any(|r| r.writes() && r.target.text != "/dev/null");
    let Some(name) = command.words.first().and_then(|word| word.value.as_deref()) else { return false };
    if !is_alone {
        return false;
    }
    if dialect == Dialect::PowerShell {
        let lower = name.to_ascii_lowercase();
        return STATE_CMDLETS.contains(&powershell_alias(&lower).unwrap_or(&lower));
    }
    let args: Vec<&str> = command.args().iter().map(|word| word.text.as_str()).collect();
    let has_name = args.iter().any(|arg| !arg.starts_with('-'));
    (STATE.contains(&name) || RUN_FILES.contains(&name))
        && match name {
            "alias" => args.iter().any(|arg| arg.contains('=')) || dialect == Dialect::Fish && args.len() > 1,
            "set" if dialect == Dialect::Fish => {
                // a universal variable outlives the shell; the others print or test
                let other = |arg: &&str| match arg.strip_prefix("--") {
                    Some(long) => ["universal", "query", "show", "names"].contains(&long),
                    None => arg.strip_prefix('-').is_some_and(|short| short.contains(['U', 'q', 'S', 'n'])),
                };
                has_name && !args.iter().take_while(|arg| arg.starts_with('-')).any(other)
            }
            "set" => !matches!(args[..], [] | ["-o" | "+o"]),
            "export" | "unset" | "unalias" | "umask" | "source" | "." => {
                has_name || name == "unalias" && !args.is_empty()
            }
            _ => true,
        }
}

#[cfg(test)]
mod tests {
    use super::super::parse;
    use super::*;

    #[test]
    fn a_change_of_the_shell_alone_is_told_from_what_prints_or_writes() {
        let is_one = |text: &str, dialect| changes_only_its_shell(&parse(text, dialect));
        for text in [
            "cd /tmp",
            "cd",
            "cd \"$(git rev-parse --show-toplevel)\"",
            "export FOO=1",
            "export PATH=$HOME/bin:$PATH; cd ~/x 2>/dev/null",
            "FOO=1",
            "unset FOO",
            "alias ll='ls -l'",
            "source ~/.bashrc",
            ". venv/bin/activate",
            ". ./.env && export A",
            "set -o vi",
            "umask 022",
            "pushd /tmp && popd",
        ] {
            assert!(is_one(text, Dialect::Bash) && is_one(text, Dialect::Zsh), "{text}");
        }
        for text in [
            "",
            "ls",
            "cd /tmp && ls",
            "cd /tmp; rm x",
            "FOO=1 make",
            "export -p",
            "export FOO=$(rm x)",
            "alias",
            "set",
            "set -o",
            "umask -S",
            "alias > saved",
            "set | grep x",
            "bash -c 'cd /tmp'",
            "command cd /tmp",
            "(cd /tmp && make)",
            "cd() { ls; }; cd /tmp",
            ". ./deploy.sh",
            "source setup.sh",
            "cd /tmp && . ./x",
        ] {
            assert!(!is_one(text, Dialect::Bash), "{text}");
        }
        for text in ["cd /tmp", "set -x FOO 1", "set -gx FOO 1", "alias ll 'ls -l'", "source venv/bin/activate.fish"] {
            assert!(is_one(text, Dialect::Fish), "{text}");
        }
        for text in ["set -Ux FOO 1", "set --universal FOO 1", "set -q FOO", "set", "alias", "source x.fish"] {
            assert!(!is_one(text, Dialect::Fish), "{text}");
        }
        assert!(is_one("Set-Location C:\\x", Dialect::PowerShell) && is_one("cd x", Dialect::PowerShell));
        assert!(!is_one("Get-ChildItem", Dialect::PowerShell));
    }
}
