//! What a command reads, writes, deletes, runs and reaches, foreseen from its parse tree and a table of programs.
//! Which program does what is data (`platform-rules/programs.toml`); paths are resolved as far as the text allows.

pub(super) mod database;
mod expanded;
mod handed;
mod paths;
mod project;
mod reading;
mod table;
#[cfg(test)]
mod tests;

use super::Dialect;
use super::embedded::{Act, Language};
use super::parse::{Function, How, Invocation, Script, Word};
use super::substitution;
use super::unwrap::{is_interpreter, is_shell, keeps_functions};
use handed::Handed;
pub use paths::{Place, is_socket, place_of};
pub(super) use paths::{is_hidden, opened, resolved};
use reading::Reading;
use std::ops::Range;
use table::{Program, Style};
pub(super) use table::{Variable, is_remade, variable};

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
    /// Adds to a repository of a version control system, or moves to another place in it: what was there is kept.
    Record,
    /// Starts a service, a container or an editor that is named: what runs already goes on.
    Start,
    /// Does what the files of the project in this folder say: builds, checks, tests.
    Build,
    /// Runs a program that stands in the command in full and only computes and prints.
    Compute,
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
        if !command.args().is_empty() && command.args().iter().all(asks) && !first.text.contains(['/', '\\']) {
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
            Kind::Run if program.only_computes(command, &read) => Kind::Compute,
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

/// The arguments that are programs in a language of their own: the first operand, or the values of `-e`.
fn scripts<'c>(program: &Program, read: &Reading<'c>) -> impl Iterator<Item = (&'c Word, &'c str)> {
    let given = read.values.iter().filter(|v| matches!(v.of.as_str(), "-e" | "--expression" | "--source"));
    let own = read.operands.first().filter(|_| program.language.is_some() && !read.has_any(&program.script));
    let given = given.filter(|_| program.language.is_some()).map(|v| (v.word, v.text()));
    given.chain(own.map(|o| (o.word, o.text())))
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

/// Index and text of a command's first operand, with the values of options set aside: `clean` of `git -C x clean`.
pub(super) fn verb(command: &Invocation, dialect: Dialect) -> Option<(usize, &str)> {
    let plain = Program::default();
    let program = command.key().and_then(|key| table::program(&key, dialect)).unwrap_or(&plain);
    let operand = Reading::of(command, program).operands.first().copied()?;
    let index = command.words.iter().position(|w| std::ptr::eq(w, operand.word))?;
    Some((index, operand.text()))
}

/// The operands of a command with the index of their word, the values of options set aside.
pub(super) fn operands_of(command: &Invocation, dialect: Dialect) -> Vec<(usize, &str)> {
    let plain = Program::default();
    let program = command.key().and_then(|key| table::program(&key, dialect)).unwrap_or(&plain);
    let read = Reading::of(command, program);
    let index = |word: &Word| command.words.iter().position(|w| std::ptr::eq(w, word));
    read.operands.iter().filter_map(|o| Some((index(o.word)?, o.text()))).collect()
}

/// True if what follows this letter in a cluster of options is its value: `econds` of `date -Iseconds`.
pub(super) fn has_value(command: &Invocation, letter: char) -> bool {
    let program = command.key().and_then(|key| table::program(&key, Dialect::Bash));
    program.is_some_and(|program| program.takes_value(&format!("-{letter}")))
}

/// The commands in a command's arguments, with the index of their word: the value of an option (`gzip` of `tar -I gzip`),
/// what a program of `awk` or `sed` hands to a shell.
pub(super) fn commands_in(words: &[Word], dialect: Dialect) -> Vec<(usize, String)> {
    let of = |words: &[Word]| Invocation { words: words.to_vec(), ..Invocation::default() };
    let known = of(&words[..words.len().min(1)]).key().and_then(|key| table::program(&key, dialect));
    let Some(program) = known.filter(|p| !p.commands.is_empty() || p.language.is_some()) else { return Vec::new() };
    let command = of(words);
    let read = Reading::of(&command, program);
    let values = read.values.iter().filter(|v| program.commands.contains(&v.of));
    let mut held: Vec<(&Word, String)> = values.map(|v| (v.word, v.text().to_owned())).collect();
    for (word, text) in scripts(program, &read) {
        let acts = program.language.map(|l| l.acts(text)).unwrap_or_default();
        held.extend(acts.into_iter().filter_map(|act| match act {
            Act::Run(command) => Some((word, command?)),
            Act::Write(_) => None,
        }));
    }
    let index = |word: &Word| command.words.iter().position(|w| std::ptr::eq(w, word));
    held.into_iter().filter_map(|(word, text)| Some((index(word)?, text))).collect()
}

/// What a command sends by itself: files of this machine that it copies to another, and those that it posts.
pub(super) fn sent(command: &Invocation, dialect: Dialect) -> Vec<&str> {
    const POSTED: [&str; 10] = [
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
    let Some(program) = command.key().and_then(|key| table::program(&key, dialect)) else { return Vec::new() };
    let read = Reading::of(command, program);
    match command.name() {
        Some("scp" | "rsync") => {
            let is_remote = |text: &str| text.split('/').next().is_some_and(|first| first.contains(':'));
            let mut operands: Vec<&str> = read.operands.iter().map(|o| o.text()).collect();
            if !operands.pop().is_some_and(is_remote) {
                return Vec::new();
            }
            operands.retain(|text| !is_remote(text));
            operands
        }
        Some("curl") => read.values.iter().filter(|v| POSTED.contains(&v.of.as_str())).map(|v| v.text()).collect(),
        _ => Vec::new(),
    }
}

/// The cmdlet or program that a name stands for in that dialect's tables.
pub(super) fn canonical(key: &str, dialect: Dialect) -> String {
    match dialect {
        Dialect::PowerShell => super::powershell_alias(key).unwrap_or(key).to_owned(),
        _ => key.to_owned(),
    }
}

/// True if only the words of that program tell what it destroys: the table does not know it, or says so.
pub(super) fn is_told_by_words(name: &str, dialect: Dialect) -> bool {
    table::program(&name.to_ascii_lowercase(), dialect).is_none_or(|program| program.words)
}

/// True if the table of programs knows that name.
pub fn is_known(name: &str, dialect: Dialect) -> bool {
    table::program(&name.to_ascii_lowercase(), dialect).is_some()
}
