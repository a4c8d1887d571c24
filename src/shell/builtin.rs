//! Lists the names that a shell handles itself, from the shells' own manuals.

use super::Dialect;

/// Builtins of every POSIX shell, the special ones first.
const POSIX: &[&str] = &[
    ".", ":", "break", "continue", "eval", "exec", "exit", "export", "readonly", "return", "set", "shift", "times",
    "trap", "unset", "[", "alias", "bg", "cd", "command", "echo", "false", "fg", "getopts", "hash", "jobs", "kill",
    "printf", "pwd", "read", "test", "true", "type", "ulimit", "umask", "unalias", "wait", "local",
];

/// Builtins that bash adds.
const BASH: &[&str] = &[
    "bind",
    "builtin",
    "caller",
    "compgen",
    "complete",
    "compopt",
    "declare",
    "dirs",
    "disown",
    "enable",
    "fc",
    "help",
    "history",
    "let",
    "logout",
    "mapfile",
    "popd",
    "pushd",
    "readarray",
    "shopt",
    "source",
    "suspend",
    "typeset",
];

/// Builtins that zsh adds.
const ZSH: &[&str] = &[
    "autoload",
    "bindkey",
    "builtin",
    "bye",
    "chdir",
    "compadd",
    "compctl",
    "declare",
    "dirs",
    "disable",
    "disown",
    "emulate",
    "enable",
    "fc",
    "float",
    "functions",
    "getln",
    "history",
    "integer",
    "let",
    "limit",
    "log",
    "logout",
    "noglob",
    "popd",
    "print",
    "pushd",
    "pushln",
    "r",
    "rehash",
    "sched",
    "setopt",
    "source",
    "stat",
    "suspend",
    "ttyctl",
    "typeset",
    "unfunction",
    "unhash",
    "unlimit",
    "unsetopt",
    "vared",
    "whence",
    "where",
    "which",
    "zcompile",
    "zle",
    "zmodload",
    "zparseopts",
    "zstyle",
];

/// Builtins of fish.
const FISH: &[&str] = &[
    "[",
    "_",
    "abbr",
    "alias",
    "argparse",
    "bg",
    "bind",
    "block",
    "break",
    "breakpoint",
    "builtin",
    "cd",
    "command",
    "commandline",
    "complete",
    "contains",
    "continue",
    "count",
    "dirh",
    "disown",
    "echo",
    "emit",
    "end",
    "eval",
    "exec",
    "exit",
    "export",
    "false",
    "fg",
    "fish_config",
    "functions",
    "funced",
    "funcsave",
    "history",
    "isatty",
    "jobs",
    "math",
    "nextd",
    "open",
    "path",
    "popd",
    "prevd",
    "printf",
    "psub",
    "pushd",
    "pwd",
    "random",
    "read",
    "realpath",
    "return",
    "set",
    "set_color",
    "source",
    "status",
    "string",
    "test",
    "time",
    "trap",
    "true",
    "type",
    "ulimit",
    "umask",
    "vared",
    "wait",
];

/// Aliases that PowerShell defines itself, with the cmdlet each stands for.
const POWERSHELL_ALIASES: &[(&str, &str)] = &[
    ("?", "where-object"),
    ("%", "foreach-object"),
    ("ac", "add-content"),
    ("cat", "get-content"),
    ("cd", "set-location"),
    ("chdir", "set-location"),
    ("clc", "clear-content"),
    ("clear", "clear-host"),
    ("cls", "clear-host"),
    ("copy", "copy-item"),
    ("cp", "copy-item"),
    ("cpi", "copy-item"),
    ("curl", "invoke-webrequest"),
    ("del", "remove-item"),
    ("dir", "get-childitem"),
    ("echo", "write-output"),
    ("erase", "remove-item"),
    ("fl", "format-list"),
    ("foreach", "foreach-object"),
    ("ft", "format-table"),
    ("gc", "get-content"),
    ("gci", "get-childitem"),
    ("gcm", "get-command"),
    ("gi", "get-item"),
    ("gip", "get-netipconfiguration"),
    ("gm", "get-member"),
    ("gp", "get-itemproperty"),
    ("gps", "get-process"),
    ("group", "group-object"),
    ("gsv", "get-service"),
    ("h", "get-history"),
    ("history", "get-history"),
    ("icm", "invoke-command"),
    ("iex", "invoke-expression"),
    ("irm", "invoke-restmethod"),
    ("iwr", "invoke-webrequest"),
    ("kill", "stop-process"),
    ("ls", "get-childitem"),
    ("man", "get-help"),
    ("md", "new-item"),
    ("measure", "measure-object"),
    ("mi", "move-item"),
    ("mkdir", "new-item"),
    ("move", "move-item"),
    ("mv", "move-item"),
    ("nal", "new-alias"),
    ("ni", "new-item"),
    ("popd", "pop-location"),
    ("ps", "get-process"),
    ("pushd", "push-location"),
    ("pwd", "get-location"),
    ("rd", "remove-item"),
    ("ren", "rename-item"),
    ("ri", "remove-item"),
    ("rm", "remove-item"),
    ("rmdir", "remove-item"),
    ("rni", "rename-item"),
    ("sal", "set-alias"),
    ("saps", "start-process"),
    ("sasv", "start-service"),
    ("sc", "set-content"),
    ("select", "select-object"),
    ("set", "set-variable"),
    ("si", "set-item"),
    ("sleep", "start-sleep"),
    ("sls", "select-string"),
    ("sort", "sort-object"),
    ("sp", "set-itemproperty"),
    ("spps", "stop-process"),
    ("spsv", "stop-service"),
    ("start", "start-process"),
    ("tee", "tee-object"),
    ("type", "get-content"),
    ("wget", "invoke-webrequest"),
    ("where", "where-object"),
    ("write", "write-output"),
];

/// Words that begin, part or end a block in some shells only. Source: the shells' own manuals.
const KEYWORDS: &[(&str, &[Dialect])] = &[
    ("begin", &[Dialect::Fish]),
    ("do", &[Dialect::Sh, Dialect::Bash, Dialect::Zsh]),
    ("done", &[Dialect::Sh, Dialect::Bash, Dialect::Zsh]),
    ("elif", &[Dialect::Sh, Dialect::Bash, Dialect::Zsh]),
    ("elseif", &[Dialect::PowerShell]),
    ("end", &[Dialect::Fish, Dialect::Zsh]),
    ("esac", &[Dialect::Sh, Dialect::Bash, Dialect::Zsh]),
    ("fi", &[Dialect::Sh, Dialect::Bash, Dialect::Zsh]),
    ("foreach", &[Dialect::Zsh, Dialect::PowerShell]),
    ("repeat", &[Dialect::Zsh]),
    ("select", &[Dialect::Bash, Dialect::Zsh]),
    ("switch", &[Dialect::Fish, Dialect::PowerShell]),
    ("then", &[Dialect::Sh, Dialect::Bash, Dialect::Zsh]),
    ("until", &[Dialect::Sh, Dialect::Bash, Dialect::Zsh, Dialect::PowerShell]),
];

/// Returns the names of the shells that have `name` as a word of their language, if this one has not.
pub fn foreign_keyword(name: &str, dialect: Dialect) -> Option<Vec<&'static str>> {
    let (_, shells) = KEYWORDS.iter().find(|(word, shells)| *word == name && !shells.contains(&dialect))?;
    Some(shells.iter().map(|shell| shell.name()).collect())
}

/// True if the shell handles `name` itself. For PowerShell: its aliases and every `Verb-Noun` cmdlet.
pub fn is_builtin(name: &str, dialect: Dialect) -> bool {
    match dialect {
        Dialect::Sh => POSIX.contains(&name),
        Dialect::Bash => POSIX.contains(&name) || BASH.contains(&name),
        Dialect::Zsh => POSIX.contains(&name) || ZSH.contains(&name),
        Dialect::Fish => FISH.contains(&name),
        Dialect::PowerShell => powershell_alias(name).is_some() || is_cmdlet(name),
    }
}

/// Returns the cmdlet of a PowerShell alias, in lower case (`rm` is `remove-item`).
pub fn powershell_alias(name: &str) -> Option<&'static str> {
    let name = name.to_ascii_lowercase();
    POWERSHELL_ALIASES.iter().find(|(alias, _)| *alias == name).map(|(_, cmdlet)| *cmdlet)
}

/// True for a name of the form `Verb-Noun`, in letters.
fn is_cmdlet(name: &str) -> bool {
    let Some((verb, noun)) = name.split_once('-') else { return false };
    let letters = |s: &str| !s.is_empty() && s.chars().all(|c| c.is_ascii_alphanumeric());
    letters(verb) && letters(noun) && verb.starts_with(|c: char| c.is_ascii_uppercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_of_another_shell_is_no_program() {
        assert_eq!(foreign_keyword("foreach", Dialect::Fish), Some(vec!["zsh", "powershell"]));
        assert_eq!(foreign_keyword("end", Dialect::Bash), Some(vec!["fish", "zsh"]));
        for (name, dialect) in
            [("foreach", Dialect::Zsh), ("then", Dialect::Bash), ("end", Dialect::Fish), ("ls", Dialect::Fish)]
        {
            assert_eq!(foreign_keyword(name, dialect), None, "{name}");
        }
    }
}
