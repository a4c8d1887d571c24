//! Queries on the words of a command as its program parses them: the verb, operands, commands inside.

use super::parsed_args::ParsedArgs;
use super::row::Program;
use super::table;
use crate::Dialect;
use crate::embedded::SideEffect;
use crate::parse::{Invocation, Word};

/// Returns the index and text of a command's first operand, ignoring the values of options: `clean` of `git -C x
/// clean`.
pub(crate) fn verb(command: &Invocation, dialect: Dialect) -> Option<(usize, &str)> {
    let plain = Program::default();
    let program = command.key().and_then(|key| table::program(&key, dialect)).unwrap_or(&plain);
    let operand = ParsedArgs::parse(command, program).operands.first().copied()?;
    let index = command.words.iter().position(|w| std::ptr::eq(w, operand.word))?;
    Some((index, operand.text()))
}

/// Returns the operands of a command with the indices of their words, without the values of options.
pub(crate) fn operands_of(command: &Invocation, dialect: Dialect) -> Vec<(usize, &str)> {
    let plain = Program::default();
    let program = command.key().and_then(|key| table::program(&key, dialect)).unwrap_or(&plain);
    let read = ParsedArgs::parse(command, program);
    let index = |word: &Word| command.words.iter().position(|w| std::ptr::eq(w, word));
    read.operands.iter().filter_map(|o| Some((index(o.word)?, o.text()))).collect()
}

/// True if the rest of a cluster after this letter is its value: `econds` of `date -Iseconds`.
pub(crate) fn has_value(command: &Invocation, letter: char) -> bool {
    let program = command.key().and_then(|key| table::program(&key, Dialect::Bash));
    program.is_some_and(|program| program.takes_value(&format!("-{letter}")))
}

/// Returns the option of `ps` that makes it print the environments of processes: `e` among the letters without a dash,
/// `E` anywhere, and `-e` with BSD's letters behind it (`-axe`, but not `-e` and `-ef`).
pub(crate) fn environment_option(command: &Invocation) -> Option<&Word> {
    const VALUED: &str = "CGgOopqstUukNFn";
    const VALUED_BSD: &str = "oOkpqtU";
    const VALUED_LONG: [&str; 16] = [
        "cols",
        "columns",
        "format",
        "Group",
        "group",
        "lines",
        "pid",
        "ppid",
        "quick-pid",
        "rows",
        "sid",
        "sort",
        "tty",
        "User",
        "user",
        "width",
    ];
    let mut is_value = false;
    command.args().iter().find(|word| {
        if std::mem::take(&mut is_value) {
            return false;
        }
        if let Some(long) = word.text.strip_prefix("--") {
            is_value = VALUED_LONG.contains(&long);
            return false;
        }
        let (letters, is_bsd) = match word.text.strip_prefix('-') {
            Some(letters) => (letters, letters.starts_with("ax") || letters.starts_with("aux")),
            None => (word.text.as_str(), true),
        };
        if letters.is_empty() || !letters.chars().all(|c| c.is_ascii_alphabetic()) {
            return false;
        }
        // `-opid` and `-Cname` have their value in the same word; of BSD's letters only a few take one
        let at = letters.find(|c| if is_bsd { VALUED_BSD } else { VALUED }.contains(c));
        is_value = at.is_some_and(|at| at + 1 == letters.len());
        let flags = &letters[..at.unwrap_or(letters.len())];
        flags.contains('E') || is_bsd && flags.contains('e')
    })
}

/// Returns the commands in a command's arguments, with the indices of their words: the value of an option (`gzip` of
/// `tar -I gzip`), commands that an `awk` or `sed` program passes to a shell.
pub(crate) fn commands_in(words: &[Word], dialect: Dialect) -> Vec<(usize, String)> {
    let of = |words: &[Word]| Invocation { words: words.to_vec(), ..Invocation::default() };
    let known = of(&words[..words.len().min(1)]).key().and_then(|key| table::program(&key, dialect));
    let Some(program) = known.filter(|p| p.takes_commands()) else { return Vec::new() };
    let command = of(words);
    let read = ParsedArgs::parse(&command, program);
    let mut held = program.command_lines(&read);
    for (word, text) in scripts(program, &read) {
        let side_effects = program.language.map(|l| l.side_effects(text)).unwrap_or_default();
        held.extend(side_effects.into_iter().filter_map(|side_effect| match side_effect {
            SideEffect::Run(command) => Some((word, command?)),
            SideEffect::Write(_) => None,
        }));
    }
    let index = |word: &Word| command.words.iter().position(|w| std::ptr::eq(w, word));
    held.into_iter().filter_map(|(word, text)| Some((index(word)?, text))).collect()
}

/// True if what the command prints or saves is a text from another machine, according to the table.
pub(crate) fn relays(command: &Invocation, dialect: Dialect) -> bool {
    in_table(command, dialect, Program::relays)
}

/// True if what the command is given leaves for another machine, according to the table.
pub(crate) fn sends(command: &Invocation, dialect: Dialect) -> bool {
    in_table(command, dialect, Program::sends)
}

/// True if the row of the command's program says so.
fn in_table(command: &Invocation, dialect: Dialect, says: fn(&Program, &ParsedArgs<'_>) -> bool) -> bool {
    let program = command.key().and_then(|key| table::program(&key, command.naming(dialect)));
    program.is_some_and(|program| says(program, &ParsedArgs::parse(command, program)))
}

/// Returns the local files that a command sends: those that it copies to another machine or uploads.
pub(crate) fn sent_files(command: &Invocation, dialect: Dialect) -> Vec<&str> {
    const UPLOADS: [&str; 10] = [
        "-T",
        "--upload-file",
        "-F",
        "--form",
        "-d",
        "--data",
        "--data-binary",
        "--data-urlencode",
        "--data-ascii",
        "--json",
    ];
    let dialect = command.naming(dialect);
    let Some(program) = command.key().and_then(|key| table::program(&key, dialect)) else { return Vec::new() };
    let read = ParsedArgs::parse(command, program);
    match command.key().as_deref() {
        Some("scp" | "rsync") => {
            let is_remote = |text: &str| text.split('/').next().is_some_and(|first| first.contains(':'));
            let mut operands: Vec<&str> = read.operands.iter().map(|o| o.text()).collect();
            if !operands.pop().is_some_and(is_remote) {
                return Vec::new();
            }
            operands.retain(|text| !is_remote(text));
            operands
        }
        Some("curl") => read.values.iter().filter(|v| UPLOADS.contains(&v.of.as_str())).map(|v| v.text()).collect(),
        Some("gh" | "glab") => {
            let words: Vec<&str> = read.operands.iter().map(|o| o.text()).collect();
            match words.as_slice() {
                ["gist" | "snippet", "create" | "new" | "edit", files @ ..] => files.to_vec(),
                _ => Vec::new(),
            }
        }
        _ => Vec::new(),
    }
}

/// True if only the words of a program tell what it destroys: the table does not know the program, or says so.
pub(crate) fn is_assessed_by_words(name: &str, dialect: Dialect) -> bool {
    table::program(&name.to_ascii_lowercase(), dialect).is_none_or(|program| program.words)
}

/// True if the table knows the program.
pub fn is_known(name: &str, dialect: Dialect) -> bool {
    table::program(&name.to_ascii_lowercase(), dialect).is_some()
}

/// Returns the file that a `git config` sets or reads, as its words name it; `None` for other commands.
pub fn git_config_file(command: &Invocation, dialect: Dialect) -> Option<String> {
    if command.key().as_deref() != Some("git") {
        return None;
    }
    let (at, _) = verb(command, dialect).filter(|(_, verb)| *verb == "config")?;
    let (before, after) = command.words.split_at(at);
    let after: Vec<&str> = after.iter().map(|word| word.text.as_str()).collect();
    if after.contains(&"--global") {
        return Some("~/.gitconfig".to_owned());
    }
    if after.contains(&"--system") {
        return Some("/etc/gitconfig".to_owned());
    }
    let separate = after.iter().position(|word| matches!(*word, "-f" | "--file")).and_then(|at| after.get(at + 1));
    let file = after.iter().find_map(|word| word.strip_prefix("--file=")).or(separate.copied());
    let folder = before.iter().position(|word| word.text == "-C").and_then(|at| before.get(at + 1));
    let file = file.unwrap_or(".git/config");
    Some(match folder {
        Some(folder) if !file.starts_with(['/', '~']) => format!("{}/{file}", folder.text),
        _ => file.to_owned(),
    })
}

/// Returns the arguments that are programs in another language: the first operand, or the values of `-e`.
pub(super) fn scripts<'c>(program: &Program, read: &ParsedArgs<'c>) -> Vec<(&'c Word, &'c str)> {
    if program.language.is_none() {
        return Vec::new();
    }
    let values = read.values.iter().filter(|v| matches!(v.of.as_str(), "-e" | "--expression" | "--source"));
    let operand = if read.has_any(&program.script) { None } else { read.operands.first() };
    values.map(|v| (v.word, v.text())).chain(operand.map(|o| (o.word, o.text()))).collect()
}
