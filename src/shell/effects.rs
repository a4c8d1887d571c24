//! What a command reads, writes, deletes, runs and reaches, foreseen from its parse tree and a table of programs.
//! Which program does what is data (`platform-rules/programs.toml`); paths are resolved as far as the text allows.

mod paths;
mod table;

use super::Dialect;
use super::parse::{How, Invocation, Script, Word};
pub use paths::{Place, place_of};
use std::ops::Range;
use table::{Program, Style};

/// One thing that a command does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Nothing to a path: the operand is none.
    None,
    /// Reads a file or folder.
    Read,
    /// Makes something new.
    Create,
    /// Writes over what may be there.
    Overwrite,
    /// Writes at the end of a file.
    Append,
    /// Deletes.
    Delete,
    /// Moves away or renames.
    Move,
    /// Changes who may do what.
    Mode,
    /// Changes the owner.
    Owner,
    /// Gets something from the network.
    Fetch,
    /// Sends something over the network.
    Send,
    /// Asks for another user's rights.
    Privilege,
    /// Ends or hinders processes.
    Kill,
    /// Changes the state of the system: services, mounts, users, firewall, power.
    System,
    /// Installs, removes or updates software.
    Package,
    /// Changes a repository of a version control system.
    Repository,
    /// Runs code that is not in the text.
    Run,
    /// Not known: the program is in no table.
    Unknown,
}

/// An effect of one command.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Effect {
    /// What is done.
    pub kind: Kind,
    /// To which path, as far as the text tells; `None` where no path is named.
    pub path: Option<String>,
    /// True if it goes into folders.
    pub recursive: bool,
    /// True if what it is done to is narrowed by tests (`find -name`), so that not all below the path is meant.
    pub narrowed: bool,
    /// Index of the command in [`Script::commands`]; `None` for a redirection of a group.
    pub command: Option<usize>,
    /// The piece of text that does it.
    pub token: String,
    /// Where that piece stands.
    pub span: Range<usize>,
    /// True if it happens on another machine or in a container.
    pub remote: bool,
}

/// Everything the script does, in the order of its commands.
pub fn effects(script: &Script) -> Vec<Effect> {
    let mut found = Vec::new();
    for (index, command) in script.commands.iter().enumerate() {
        of_command(script, index, command, &mut found);
        for redirect in &command.redirects {
            of_redirect(script, Some(index), redirect, &mut found);
        }
    }
    for redirect in &script.redirects {
        of_redirect(script, None, redirect, &mut found);
    }
    found
}

fn of_redirect(script: &Script, command: Option<usize>, redirect: &super::parse::Redirect, found: &mut Vec<Effect>) {
    if redirect.operator.contains("<<") || redirect.duplicates() {
        return;
    }
    let kind = match (redirect.writes(), redirect.appends()) {
        (true, true) => Kind::Append,
        (true, false) => Kind::Overwrite,
        (false, _) => Kind::Read,
    };
    for path in paths::resolved(script, &redirect.target) {
        found.push(Effect {
            kind,
            path: Some(path),
            recursive: false,
            narrowed: false,
            command,
            token: format!("{} {}", redirect.operator, redirect.target.raw),
            span: redirect.target.span.clone(),
            remote: command.is_some_and(|c| script.commands[c].remote),
        });
    }
}

fn of_command(script: &Script, index: usize, command: &Invocation, found: &mut Vec<Effect>) {
    let Some(first) = command.words.first() else { return };
    let mut push = |kind: Kind, path: Option<String>, recursive: bool, narrowed: bool, word: &Word| {
        found.push(Effect {
            kind,
            path,
            recursive,
            narrowed,
            command: Some(index),
            token: word.raw.clone(),
            span: word.span.clone(),
            remote: command.remote,
        });
    };
    let key = command.key().unwrap_or_default();
    let own_function = script.functions.iter().any(|f| f.name == first.text);
    if own_function {
        return;
    }
    // `a=rm; $a x`: a program word that the script itself spells out.
    let key = match first.value {
        Some(_) => key,
        None => paths::resolved(script, first).concat().rsplit('/').next().unwrap_or_default().to_lowercase(),
    };
    let Some(program) = table::program(&key, script.dialect) else {
        return push(Kind::Unknown, None, false, false, first);
    };
    let read = Reading::of(command, program);
    if program.is_quiet(&read) {
        return;
    }
    let wraps = script.commands.iter().any(|c| c.inside.is_some_and(|i| i.command == index && i.how == How::Wrapped));
    for kind in program.does(&read) {
        // `sh -c '...'` runs nothing but what is in the text and is judged by itself.
        if kind != Kind::Run || !wraps {
            push(kind, None, false, false, first);
        }
    }
    if key == "find" && read.has("-delete") {
        let narrowed = paths::narrowed(command);
        for root in paths::roots(script, command) {
            push(Kind::Delete, Some(root), true, narrowed, read.word("-delete").unwrap_or(first));
        }
    }
    for (value_of, word, attached) in &read.values {
        if let Some(kind) = program.option_of(value_of).and_then(|o| o.value).filter(|k| *k != Kind::None) {
            let paths = attached.map_or_else(|| paths::resolved(script, word), |path| vec![path.to_owned()]);
            for path in paths {
                push(kind, Some(path), false, false, word);
            }
        }
    }
    let recursive = program.recursive.iter().any(|o| read.has(o));
    let scripted = program.script.iter().any(|o| read.has(o));
    let mut operands: Vec<(String, &Word, bool)> = Vec::new();
    // an empty word names no file: it is the suffix of BSD's `sed -i ''`
    for word in read.operands.iter().filter(|w| w.value.as_deref() != Some("")) {
        let brace =
            word.text.contains("{}") && command.via.iter().any(|v| matches!(v.as_str(), "find" | "fd" | "xargs"));
        if brace {
            let handed = paths::handed(script, index);
            if handed.is_empty() || word.text != "{}" {
                operands.extend(paths::resolved(script, word).into_iter().map(|p| (p, *word, false)));
            }
            operands.extend(handed.into_iter().map(|(path, narrowed)| (path, *word, narrowed)));
        } else {
            operands.extend(paths::resolved(script, word).into_iter().map(|p| (p, *word, false)));
        }
    }
    let appended = command.via.last().is_some_and(|v| matches!(v.as_str(), "xargs" | "gxargs" | "parallel"));
    if appended && !read.operands.iter().any(|w| w.text.contains("{}")) {
        operands.extend(paths::handed(script, index).into_iter().map(|(path, narrowed)| (path, first, narrowed)));
    }
    if program.style == Style::Powershell && operands.is_empty() && command.stdin_pipe {
        let kind = read.operand(program);
        for (path, narrowed, deep) in paths::piped(script, index) {
            if kind != Kind::Read && kind != Kind::None {
                push(kind, Some(path), recursive || deep, narrowed, first);
            }
        }
    }
    let count = operands.len();
    if appended && count == 0 && read.operand(program) != Kind::Read {
        push(read.operand(program), None, recursive, false, first);
    }
    for (at, (path, word, narrowed)) in operands.into_iter().enumerate() {
        let kind = if at == 0 && !scripted && program.first.is_some() {
            program.first.unwrap_or(Kind::None)
        } else if at + 1 == count && count > 1 {
            read.last(program).unwrap_or_else(|| read.operand(program))
        } else {
            read.operand(program)
        };
        if kind != Kind::None {
            push(kind, Some(path), recursive, narrowed, word);
        }
    }
}

/// A command's words, read as its program reads them.
struct Reading<'c> {
    options: Vec<(String, &'c Word)>,
    /// Option, the word its value is in, and the value where it is only a part of that word.
    values: Vec<(String, &'c Word, Option<&'c str>)>,
    operands: Vec<&'c Word>,
}

impl<'c> Reading<'c> {
    fn of(command: &'c Invocation, program: &Program) -> Self {
        let mut read = Self { options: Vec::new(), values: Vec::new(), operands: Vec::new() };
        let args = command.args();
        let mut at = 0;
        while let Some(word) = args.get(at) {
            at += 1;
            let text = word.text.as_str();
            let next = args.get(at);
            match program.style {
                Style::Assign => match text.split_once('=') {
                    Some((name, _)) => {
                        read.options.push((format!("{name}="), word));
                        read.values.push((format!("{name}="), word, None));
                    }
                    None => read.operands.push(word),
                },
                Style::Powershell => match text.strip_prefix('-').filter(|t| !t.is_empty()) {
                    Some(name) => {
                        let name = format!("-{}", name.split(':').next().unwrap_or(name).to_ascii_lowercase());
                        if let Some(value) = next.filter(|_| program.takes_value(&name)) {
                            read.values.push((name.clone(), value, None));
                            at += 1;
                        }
                        read.options.push((name, word));
                    }
                    None if text.starts_with('/') && text.len() < 4 => {
                        read.options.push((text.to_ascii_lowercase(), word))
                    }
                    None => read.operands.push(word),
                },
                Style::Unix => {
                    if text == "--" {
                        read.operands.extend(&args[at..]);
                        break;
                    } else if let Some(long) = text.strip_prefix("--") {
                        let name = format!("--{}", long.split('=').next().unwrap_or(long));
                        if long.contains('=') {
                            read.values.push((name.clone(), word, None));
                        } else if let Some(value) = next.filter(|_| program.takes_value(&name)) {
                            read.values.push((name.clone(), value, None));
                            at += 1;
                        }
                        read.options.push((name, word));
                    } else if let Some(cluster) = text.strip_prefix('-').filter(|c| !c.is_empty()) {
                        read.options.push((text.to_owned(), word));
                        for (i, letter) in cluster.char_indices() {
                            let name = format!("-{letter}");
                            let takes = program.takes_value(&name);
                            read.options.push((name.clone(), word));
                            if takes {
                                if i + letter.len_utf8() < cluster.len() {
                                    read.values.push((name, word, cluster.get(i + letter.len_utf8()..)));
                                } else if let Some(value) = next {
                                    read.values.push((name, value, None));
                                    at += 1;
                                }
                                break;
                            }
                        }
                    } else {
                        read.operands.push(word);
                    }
                }
            }
        }
        // `dd of=x` and `--output=x`: the value is part of the word; what stands before `=` is no path.
        read
    }

    fn has(&self, option: &str) -> bool {
        option == "always" || self.options.iter().any(|(name, _)| name == option)
    }

    fn word(&self, option: &str) -> Option<&'c Word> {
        self.options.iter().find(|(name, _)| name == option).map(|(_, word)| *word)
    }

    fn operand(&self, program: &Program) -> Kind {
        let by_option = program.option.iter().filter(|o| o.has.iter().any(|h| self.has(h))).find_map(|o| o.operands);
        by_option.or(program.operands).unwrap_or(Kind::Read)
    }

    fn last(&self, program: &Program) -> Option<Kind> {
        let by_option = program.option.iter().filter(|o| o.has.iter().any(|h| self.has(h))).find_map(|o| o.last);
        by_option.or(program.last)
    }
}

/// The cmdlet or program that a name stands for in that dialect's tables.
pub(super) fn canonical(key: &str, dialect: Dialect) -> String {
    match dialect {
        Dialect::PowerShell => super::powershell_alias(key).unwrap_or(key).to_owned(),
        _ => key.to_owned(),
    }
}

/// True if the table of programs knows that name.
pub fn is_known(name: &str, dialect: Dialect) -> bool {
    table::program(&name.to_ascii_lowercase(), dialect).is_some()
}
