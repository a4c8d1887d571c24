//! What a command reads, writes, deletes, runs and reaches, foreseen from its parse tree and a table of programs.
//! Which program does what is data (`platform-rules/programs.toml`); paths are resolved as far as the text allows.
//!
//! - [`kind`]: what there is to do. [`row`]: what the table has of one family of programs; [`mod@table`]: all of them.
//! - [`reading`]: a command's words as its program reads them; [`words`]: what they are, for others. [`says`]: what a row says
//!   of such a reading.
//! - [`paths`]: the paths that a word stands for, and what hangs on them. [`handed`]: those that one command hands to another.
//! - [`expanded`], [`project`], [`database`]: options out of variables, tools of a project, clients of databases.

pub(super) mod database;
mod expanded;
mod handed;
mod kind;
mod paths;
mod project;
mod reading;
mod row;
mod says;
mod table;
#[cfg(test)]
mod tests;
pub(super) mod words;

use super::Dialect;
use super::embedded::{Act, Language};
use super::parse::{Function, How, Invocation, Script, Word};
use super::substitution;
use super::unwrap::{is_interpreter, is_shell, keeps_functions};
use handed::Handed;
pub use kind::Kind;
pub use paths::{Place, is_socket, place_of};
pub(super) use paths::{is_hidden, opened, resolved};
use reading::Reading;
use row::{Program, Style};
use std::ops::Range;
pub(super) use table::{Variable, canonical, is_remade, variable};
pub use words::is_known;
use words::scripts;
pub(super) use words::{has_value, is_told_by_words, operands_of, sent, verb};

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

/// A file whose name is `-`, where that does not stand for standard output.
const A_FILE: &str = "./-";

/// Programs to which `-` is a name like any other.
const TAKE_DASH_FOR_A_FILE: &[&str] = &["tee", "gtee", "cp", "gcp", "install", "mv", "gmv", "ln"];

fn of_redirect(script: &Script, command: Option<usize>, redirect: &super::parse::Redirect, found: &mut Vec<Effect>) {
    if redirect.operator.contains("<<") || redirect.duplicates() {
        return;
    }
    let kind = match (redirect.writes(), redirect.appends()) {
        (true, _) if is_socket(&redirect.target.text) => Kind::Send,
        (true, true) => Kind::Append,
        (true, false) => Kind::Overwrite,
        (false, _) if is_socket(&redirect.target.text) => Kind::Fetch,
        (false, _) => Kind::Read,
    };
    for path in paths::resolved(script, &redirect.target) {
        found.push(Effect {
            kind,
            path: Some(if path == "-" { A_FILE.to_owned() } else { path }),
            recursive: false,
            narrowed: false,
            command,
            token: format!("{} {}", redirect.operator, redirect.target.raw),
            span: redirect.target.span.clone(),
            remote: command.is_some_and(|c| script.commands[c].remote),
        });
    }
}

/// What one command does, as it is being put together.
struct Doing<'s> {
    script: &'s Script,
    index: usize,
    command: &'s Invocation,
    found: &'s mut Vec<Effect>,
}

impl Doing<'_> {
    fn push(&mut self, kind: Kind, path: Option<String>, recursive: bool, narrowed: bool, word: &Word) {
        // what it is handed has no name; only whether all of it goes matters
        let path = path.filter(|p| recursive || p != handed::UNNAMED);
        self.found.push(Effect {
            kind,
            path,
            recursive,
            narrowed,
            command: Some(self.index),
            token: word.raw.clone(),
            span: word.span.clone(),
            remote: self.command.remote,
        });
    }

    /// An effect that has no path.
    fn plain(&mut self, kind: Kind, word: &Word) {
        self.push(kind, None, false, false, word);
    }
}

fn of_command(script: &Script, index: usize, command: &Invocation, found: &mut Vec<Effect>) {
    let Some(first) = command.words.first() else { return };
    let key = key_of(script, command);
    let Some(program) = table::program(&key, script.dialect_of(command)) else {
        if script.dialect_of(command) == Dialect::PowerShell && is_reading_cmdlet(&key) {
            return Doing { script, index, command, found }.plain(Kind::Fetch, first);
        }
        // by its bare name it is one that is installed, and this is all that it is asked
        let asks = |w: &Word| matches!(w.text.as_str(), "--version" | "--help" | "-V" | "version" | "help");
        let is_bare = !first.text.contains(['/', '\\']);
        if is_bare
            && (!command.args().is_empty() && command.args().iter().all(asks) || table::only_shows(command.args()))
        {
            return Doing { script, index, command, found }.plain(Kind::Fetch, first);
        }
        if !is_function(script, index, &first.text) {
            Doing { script, index, command, found }.plain(Kind::Unknown, first);
        }
        return;
    };
    let handed = handed::handed(script, index);
    let with_unnamed = handed::unnamed(script, index, &handed);
    let command = with_unnamed.as_ref().unwrap_or(command);
    let unknown = expanded::unknown(script, index, command);
    let with_options = expanded::expanded(script, index, command);
    let command = with_options.as_ref().unwrap_or(command);
    let first = &command.words[0];
    let mut doing = Doing { script, index, command, found };
    if let Some(word) = unknown {
        doing.plain(Kind::Unknown, word);
    }
    let read = Reading::of(command, program);
    let builds = || program.does(&read).contains(&Kind::Build) && project::is_own(script, index);
    if paths::is_elsewhere(first) && !(project::is_tool(first) && builds()) {
        // what a project has installed is its own, and no program of the system's with that name
        let reads = project::is_installed(first) && program.does(&read).is_empty() && project::is_own(script, index);
        doing.plain(if reads { Kind::Build } else { Kind::Unknown }, first);
    }
    if asks_for_help(command, &read) {
        return;
    }
    let wraps = script.commands.iter().any(|c| c.inside.is_some_and(|i| i.command == index && i.how == How::Wrapped));
    for kind in program.does(&read) {
        let kind = match kind {
            Kind::Run if program.only_computes(command, &read) || program.computes_what_it_reads(script, index) => {
                Kind::Compute
            }
            Kind::Build if !project::is_own(script, index) => Kind::Run,
            kind => kind,
        };
        // `sh -c '...'` runs nothing but what is in the text and is judged by itself.
        // code of another language does more than the commands in it
        if kind != Kind::Run || !wraps || command.name().is_some_and(is_interpreter) {
            doing.plain(kind, first);
        }
    }
    if !wraps && handed::runs_what_is_handed(script, index) {
        doing.plain(Kind::Run, first);
    }
    if let Some(option) = table::suspect(&key, program, &read) {
        doing.plain(Kind::Unknown, read.word(option).unwrap_or(first));
    }
    if key == "find" && read.has("-delete") {
        let narrowed = handed::narrowed(command);
        for root in handed::roots(script, command) {
            doing.push(Kind::Delete, Some(root), true, narrowed, read.word("-delete").unwrap_or(first));
        }
    }
    if let Some(kind) = database::effect(script, index, program, &read, wraps) {
        doing.plain(kind, first);
    }
    of_values(&mut doing, program, &read);
    if let Some(language) = program.language {
        of_language(&mut doing, language, program, &read);
    }
    of_operands(&mut doing, program, &read, &handed);
}

/// The same of a command by itself.
pub(super) fn is_help(command: &Invocation, dialect: Dialect) -> bool {
    let program = command.key().and_then(|key| table::program(&key, dialect));
    program.is_some_and(|program| asks_for_help(command, &Reading::of(command, program)))
}

/// True for a command that only shows how it is used. Shells and interpreters take the word for an argument of what they run.
fn asks_for_help(command: &Invocation, read: &Reading<'_>) -> bool {
    const RUNNERS: [&str; 12] =
        ["xargs", "find", "env", "sudo", "npm", "npx", "cargo", "go", "make", "eval", "exec", "ssh"];
    let name = command.name().unwrap_or_default();
    let last = command.words.last().is_some_and(|w| matches!(w.text.as_str(), "--help" | "--version"));
    let asked = last || read.options.first().is_some_and(|(name, _)| name == "--help");
    asked
        && read.has_any(&["--help".to_owned(), "--version".to_owned()])
        && !is_shell(name)
        && !is_interpreter(name)
        && !RUNNERS.contains(&name)
}

/// True for a cmdlet whose verb says that it only shows: which ones there are depends on the modules that are here.
fn is_reading_cmdlet(key: &str) -> bool {
    const VERBS: [&str; 14] = [
        "get",
        "test",
        "measure",
        "show",
        "find",
        "search",
        "compare",
        "resolve",
        "convertto",
        "convertfrom",
        "format",
        "group",
        "select",
        "sort",
    ];
    let verb = key.split_once('-').map(|(verb, _)| verb);
    verb.is_some_and(|verb| VERBS.contains(&verb)) && !key.starts_with("format-volume")
}

/// True if that name stands for a function of the script there, whose body is judged by itself. A program that the table
/// knows is taken for the program: which of the two it is depends on what ran before.
fn is_function(script: &Script, index: usize, name: &str) -> bool {
    let shell = |c: &Invocation| c.via.iter().filter(|v| !keeps_functions(v)).cloned().collect::<Vec<_>>();
    let here = shell(&script.commands[index]);
    let unset = |c: &Invocation| c.name() == Some("unset") && c.args().iter().any(|w| w.text == name);
    let known = |f: &Function| script.commands[f.commands.clone()].first().is_none_or(|body| shell(body) == here);
    script.functions.iter().any(|f| f.name == name && known(f)) && !script.commands[..index].iter().any(unset)
}

/// The name under which the table may know a command's program.
fn key_of(script: &Script, command: &Invocation) -> String {
    match command.words.first() {
        // `a=rm; $a x`: a program word that the script itself spells out.
        Some(first) if first.value.is_none() => {
            paths::resolved(script, first).concat().rsplit('/').next().unwrap_or_default().to_lowercase()
        }
        _ => command.key().unwrap_or_default(),
    }
}

fn of_values(doing: &mut Doing<'_>, program: &Program, read: &Reading<'_>) {
    for value in &read.values {
        if let Some(kind) = program.value_of(&value.of, read).filter(|k| *k != Kind::None) {
            for path in paths::resolved_part(doing.script, value.word, value.part) {
                doing.push(kind, Some(path), false, false, value.word);
            }
        }
    }
}

/// What the program in an argument of `awk` or `sed` does.
fn of_language(doing: &mut Doing<'_>, language: Language, program: &Program, read: &Reading<'_>) {
    for (word, text) in scripts(program, read) {
        let rest = substitution::without(text);
        let computed = word.value.is_none() && text.starts_with(['$', '`']);
        if computed && !rest.contains([' ', ';', '!']) && !matches!(rest.as_str(), "p" | "d" | "q") {
            // `sed "$script"`: nobody knows what it does; `sed "$n!d"` and the like are plain enough
            doing.plain(Kind::Run, word);
        }
        for act in language.acts(text) {
            match act {
                Act::Write(path) => doing.push(Kind::Overwrite, path, false, false, word),
                // a command that is there in full is judged by itself
                Act::Run(None) => doing.plain(Kind::Run, word),
                Act::Run(Some(_)) => {}
            }
        }
    }
}

/// What the operands say, and what is `handed` over beside them.
fn of_operands(doing: &mut Doing<'_>, program: &Program, read: &Reading<'_>, handed: &[Handed]) {
    let (script, command, index) = (doing.script, doing.command, doing.index);
    let Some(first) = command.words.first() else { return };
    let recursive = program.recursive.iter().any(|o| read.has(o));
    let scripted = read.has_any(&program.script)
        || read.options.iter().any(|(name, _)| program.script_word.as_ref().is_some_and(|p| p.fits(name)));
    let mut operands: Vec<(String, &Word, Option<&Handed>)> = Vec::new();
    // an empty word names no file: it is the suffix of BSD's `sed -i ''`
    for operand in read.operands.iter().filter(|o| o.part.is_some() || o.word.value.as_deref() != Some("")) {
        let word = operand.word;
        let within = command.via.iter().any(|v| ["find", "fd", "fdfind", "xargs", "gfind", "parallel"].contains(&&**v));
        let filled = if word.text.contains("{}") && within { handed } else { &[] };
        if filled.is_empty() || word.text != "{}" {
            let paths = paths::resolved_part(script, word, operand.part).into_iter();
            operands.extend(paths.map(|p| (p, word, None)));
        }
        operands.extend(filled.iter().map(|h| (h.path.clone(), word, Some(h))));
    }
    let appended = handed::appends(script, index);
    if appended {
        operands.extend(handed.iter().map(|h| (h.path.clone(), first, Some(h))));
    }
    let kind = program.operand(read);
    let takes = program.style == Style::Powershell && operands.is_empty() && command.stdin_pipe;
    if takes && kind != Kind::Read && kind != Kind::None {
        let mut piped = handed::piped(script, index);
        if piped.is_empty() {
            // a list, a variable: what it is nobody can say here
            piped.push((handed::UNNAMED.to_owned(), false, false));
        }
        for (path, narrowed, deep) in piped {
            doing.push(kind, Some(path), recursive || deep, narrowed, first);
        }
    }
    let count = operands.len();
    for (at, (path, word, by)) in operands.into_iter().enumerate() {
        let of_first = program.first(read).filter(|_| at == 0 && !scripted);
        let of_last = program.last(read).filter(|_| at + 1 == count && (count > 1 || appended));
        let kind = of_first.or(of_last).unwrap_or_else(|| program.operand(read));
        // what `find` hands over stands for all below it, which matters where it is written over or deleted
        let deep = match kind {
            Kind::Overwrite => recursive || by.is_some(),
            Kind::Delete => recursive || by.is_some_and(|h| h.walked),
            _ => recursive,
        };
        let narrowed = by.is_some_and(|h| h.narrowed);
        let is_file = || command.key().is_some_and(|key| TAKE_DASH_FOR_A_FILE.contains(&key.as_str()));
        let path = if path == "-" && is_file() { A_FILE.to_owned() } else { path };
        if kind != Kind::None {
            doing.push(kind, Some(path), deep, narrowed, word);
        }
    }
}
