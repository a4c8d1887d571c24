//! The files and folders that must be there for a command to work: those that it reads, moves, deletes, or edits in
//! place.

use super::kind::Kind;
use super::parsed_args::{Operand, ParsedArgs};
use super::row::{Needs, Program, Style};
use super::{asks_for_help, kind_of_operand, table};
use crate::find::starting_points;
use crate::parse::{Invocation, Script, Word};

/// A path that must be there for a command to work.
#[derive(Debug, Clone, Copy)]
pub struct Needed<'s> {
    /// The index of the command.
    pub command: usize,
    /// The word that the path is in.
    pub word: &'s Word,
    /// The path, as it is written.
    pub path: &'s str,
}

/// Returns the paths that the commands of a script need, in the order of the commands. Those of other machines are left
/// out.
pub fn needed(script: &Script) -> Vec<Needed<'_>> {
    let local = script.commands.iter().enumerate().filter(|(_, command)| !command.remote);
    local.flat_map(|(index, command)| paths_of(script, index, command)).collect()
}

fn paths_of<'s>(script: &'s Script, index: usize, command: &'s Invocation) -> Vec<Needed<'s>> {
    let dialect = script.dialect_of(command);
    let Some(key) = command.key() else { return Vec::new() };
    let Some(program) = table::program(&key, command.naming(dialect)) else { return Vec::new() };
    let read = ParsedArgs::parse(command, program);
    if asks_for_help(command, dialect, program, &read) {
        return Vec::new();
    }
    let values = read.values.iter().filter(|value| program.value_of(&value.of, &read) == Some(Kind::Read));
    let values = values.map(|value| Needed { command: index, word: value.word, path: value.text() });
    let operands = table::needs(&key).map(|needs| needs.operands(command, program, &read)).unwrap_or_default();
    let operands = operands.into_iter().map(|word| Needed { command: index, word, path: word.text.as_str() });
    values.chain(operands).collect()
}

impl Needs {
    /// Returns the operands that must be there.
    fn operands<'s>(&self, command: &'s Invocation, program: &Program, read: &ParsedArgs<'s>) -> Vec<&'s Word> {
        if read.has_any(&self.lacks) || !self.with.is_empty() && !read.has_any(&self.with) {
            return Vec::new();
        }
        let is_path = |operand: &&Operand<'_>| !operand.word.text.is_empty() && !self.is_value(command, operand.word);
        let words: Vec<&Word> = match program.style {
            // behind the first test stand the values of tests
            Style::Word => starting_points(command).collect(),
            _ => read.operands.iter().filter(is_path).map(|operand| operand.word).collect(),
        };
        let is_listed = self.first || !self.with.is_empty();
        let is_needed = |at: usize| is_listed || must_exist(program, read, at, words.len());
        let like = |word: &Word| self.like.as_ref().is_none_or(|like| like.fits(&word.text));
        let most = if self.first { 1 } else { words.len() };
        (0..words.len()).take(most).filter(|at| is_needed(*at) && like(words[*at])).map(|at| words[at]).collect()
    }

    /// True for a word that may be the value of the option before it.
    fn is_value(&self, command: &Invocation, word: &Word) -> bool {
        let at = command.words.iter().position(|other| std::ptr::eq(other, word));
        let Some(before) = at.and_then(|at| at.checked_sub(1)).map(|at| command.words[at].text.as_str()) else {
            return false;
        };
        match before.strip_prefix('-') {
            Some(long) if long.starts_with('-') => long.len() > 1 && !long.contains('='),
            Some(letters) => letters.find(|c| self.valued.contains(c)).is_some_and(|at| at + 1 == letters.len()),
            None => false,
        }
    }
}

/// True for an operand of that index that is read, moved or deleted, or that an option says is edited in place.
fn must_exist(program: &Program, read: &ParsedArgs<'_>, at: usize, count: usize) -> bool {
    match kind_of_operand(program, read, at, count, false) {
        Kind::Read | Kind::Delete | Kind::Move | Kind::Mode | Kind::Owner => true,
        Kind::Overwrite => {
            matches!(program.operands, Some(Kind::Read | Kind::None)) && program.operand(read) == Kind::Overwrite
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use crate::{Dialect, parse};

    /// Returns the paths that a command needs.
    fn needed(command: &str) -> Vec<String> {
        let script = parse(command, Dialect::Bash);
        super::needed(&script).iter().map(|needed| needed.path.to_owned()).collect()
    }

    #[test]
    fn the_paths_that_must_be_there_are_told_from_those_that_are_made() {
        for (command, paths) in [
            ("ls a b", &["a", "b"][..]),
            ("ls -la --color=auto a", &["a"]),
            ("du -sh a", &["a"]),
            ("du -d 1 a", &["a"]),
            ("find -L a b -name x -newer y", &["a", "b"]),
            ("tar xf a.tgz", &["a.tgz"]),
            ("tar -czf a.tgz b c", &["b", "c"]),
            ("sed -i 's/a/b/' a", &["a"]),
            ("sed -i -e d a", &["a"]),
            ("python3 a.py b", &["a.py"]),
            ("python3 -W ignore a.py", &["a.py"]),
            ("bash -x a.sh", &["a.sh"]),
            ("rm -r a", &["a"]),
            ("mv a b", &["a"]),
            ("cp -r a b c", &["a", "b"]),
            ("chmod +x a", &["a"]),
            ("chmod 600 a", &["a"]),
            ("dd if=a of=b", &["a"]),
            ("gzip a", &["a"]),
            ("unzip a.zip", &["a.zip"]),
            ("diff a b", &["a", "b"]),
            ("source ./a", &["./a"]),
        ] {
            assert_eq!(needed(command), paths, "{command}");
        }
        for command in [
            "echo a",
            "ls -I a",
            "ls --ignore a",
            "ls --help",
            "mkdir a",
            "touch a",
            "tee a",
            "tar -cf a.tgz -T list",
            "python3 -m a b",
            "python3 -c a b",
            "rm -f a",
            "bash -c 'true' a",
            "bash a",
            "node a",
            "unzip a",
            "diff -N a b",
            "which a",
            "ssh box ls a",
            "printf a",
        ] {
            assert_eq!(needed(command), [""; 0], "{command}");
        }
    }
}
