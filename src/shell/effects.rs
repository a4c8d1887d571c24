//! Predicts what a command reads, writes, deletes, runs and contacts, from its parse tree and a table of programs.
//! The table is data (`platform-rules/programs.toml`); paths are resolved as far as the text allows.
//!
//! - [`kind`]: the kinds of effects. [`row`]: a row of the table, for one family of programs. [`mod@table`]: the
//!   table.
//! - [`parsed_args`]: parses a command's words as its program does. [`words`]: queries on them for other modules.
//!   [`says`]: evaluates a row for a parsed command.
//! - [`paths`]: resolves and classifies paths. [`handed`]: operands that one command passes to another.
//! - [`mod@needed`]: the paths that a command needs.
//! - [`expanded`], [`project`], [`database`]: options from variables, tools of a project, database clients.

pub(super) mod database;
mod expanded;
mod fd;
mod find;
mod handed;
mod kind;
pub mod needed;
mod parsed_args;
mod paths;
mod project;
mod row;
mod says;
mod table;
#[cfg(test)]
mod tests;
pub(super) mod words;

use super::Dialect;
use super::embedded::{Language, SideEffect};
pub use super::find::is_narrowing_test;
use super::parse::{Function, How, Invocation, Script, Word};
use super::substitution;
use super::unwrap::{is_interpreter, is_shell, is_wrapper, keeps_functions};
use handed::Handed;
pub use kind::Kind;
use parsed_args::ParsedArgs;
pub use paths::{Place, entered_folders, is_socket, place_of};
pub(super) use paths::{expand_braces, folder_above, is_hidden, matches_most, resolve_paths};
use row::{Program, Style};
use std::ops::Range;
pub(super) use table::{Variable, canonical, is_remade, variable};
use words::scripts;
pub(super) use words::{
    environment_option, has_value, is_assessed_by_words, operands_of, relays, sends, sent_files, verb,
};
pub use words::{git_config_file, is_known};

/// An effect of one command.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Effect {
    /// The kind.
    pub kind: Kind,
    /// The path, as far as the text tells; `None` if none is named.
    pub path: Option<String>,
    /// True if it includes the contents of folders.
    pub recursive: bool,
    /// True if tests (`find -name`) select a part of what is below the path.
    pub narrowed: bool,
    /// Index of the command in [`Script::commands`]; `None` for a redirection of a group.
    pub command: Option<usize>,
    /// The part of the text that causes it.
    pub token: String,
    /// The range of that part.
    pub span: Range<usize>,
    /// True if it happens on another machine or in a container.
    pub remote: bool,
}

/// Returns the effects of a script, in the order of its commands.
pub fn effects(script: &Script) -> Vec<Effect> {
    let mut found = Vec::new();
    for (index, command) in script.commands.iter().enumerate() {
        add_command(script, index, command, &mut found);
        for redirect in &command.redirects {
            add_redirect(script, Some(index), redirect, &mut found);
        }
    }
    for redirect in &script.redirects {
        add_redirect(script, None, redirect, &mut found);
    }
    found
}

/// A path for a file named `-`, where that does not mean standard output.
const DASH_FILE: &str = "./-";

/// The files in which Linux shows the environments of processes.
const ENVIRONMENTS: &str = "/proc/*/environ";

/// Programs that take `-` for an ordinary file name.
const DASH_IS_A_FILE: &[&str] = &["tee", "gtee", "cp", "gcp", "install", "mv", "gmv", "ln"];

fn add_redirect(script: &Script, command: Option<usize>, redirect: &super::parse::Redirect, found: &mut Vec<Effect>) {
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
    for path in paths::resolve_paths(script, &redirect.target) {
        found.push(Effect {
            kind,
            path: Some(if path == "-" { DASH_FILE.to_owned() } else { path }),
            recursive: false,
            narrowed: false,
            command,
            token: format!("{} {}", redirect.operator, redirect.target.raw),
            span: redirect.target.span.clone(),
            remote: command.is_some_and(|c| script.commands[c].remote),
        });
    }
}

/// Collects the effects of one command.
struct Collector<'s> {
    script: &'s Script,
    index: usize,
    command: &'s Invocation,
    found: &'s mut Vec<Effect>,
}

impl Collector<'_> {
    fn push(&mut self, kind: Kind, path: Option<String>, recursive: bool, narrowed: bool, word: &Word) {
        // handed-over operands have no name; they matter only if everything is affected
        let path = path.filter(|p| recursive || p != handed::UNKNOWN);
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

    /// Adds an effect without a path.
    fn plain(&mut self, kind: Kind, word: &Word) {
        self.push(kind, None, false, false, word);
    }
}

fn add_command(script: &Script, index: usize, command: &Invocation, found: &mut Vec<Effect>) {
    let Some(first) = command.words.first() else { return };
    let key = key_of(script, command);
    let Some(program) = table::program(&key, command.naming(script.dialect_of(command))) else {
        if script.dialect_of(command) == Dialect::PowerShell && is_reading_cmdlet(&key) {
            return Collector { script, index, command, found }.plain(Kind::Fetch, first);
        }
        // called by its bare name it is an installed program, and it is only asked for its version or help
        let asks_for_info = |w: &Word| matches!(w.text.as_str(), "--version" | "--help" | "-V" | "version" | "help");
        let is_bare = !first.text.contains(['/', '\\']);
        if is_bare
            && (!command.args().is_empty() && command.args().iter().all(asks_for_info)
                || table::only_shows(command.args()))
        {
            return Collector { script, index, command, found }.plain(Kind::Fetch, first);
        }
        if !is_function(script, index, &first.text) {
            Collector { script, index, command, found }.plain(Kind::Unknown, first);
        }
        return;
    };
    let handed = handed::handed_operands(script, index);
    let with_unknown = handed::with_unknown_operand(script, index, &handed);
    let command = with_unknown.as_ref().unwrap_or(command);
    let unknown = expanded::unknown_word(script, index, command);
    let with_options = expanded::expanded(script, index, command);
    let command = with_options.as_ref().unwrap_or(command);
    let first = &command.words[0];
    let mut collector = Collector { script, index, command, found };
    if let Some(word) = unknown {
        collector.plain(Kind::Unknown, word);
    }
    let read = ParsedArgs::parse(command, program);
    let builds = || program.does(&read).contains(&Kind::Build) && project::is_own(script, index);
    if paths::is_elsewhere(first) && !(project::is_tool(first) && builds()) {
        // a program installed by the project is not the system's program of that name
        let reads = project::is_installed(first) && program.does(&read).is_empty() && project::is_own(script, index);
        collector.plain(if reads { Kind::Build } else { Kind::Unknown }, first);
    }
    if asks_for_help(command, script.dialect_of(command), program, &read) {
        return;
    }
    let wraps = script.commands.iter().any(|c| c.inside.is_some_and(|i| i.command == index && i.how == How::Wrapped));
    // what an option adds is run beside the command that the text holds
    let added = program.adds(&read).contains(&Kind::Run);
    let is_runner = wraps && !added && command.name().is_some_and(|name| is_wrapper(name) && !is_interpreter(name));
    for kind in program.does(&read) {
        let kind = match kind {
            Kind::Run if program.only_computes(command, &read) || program.computes_what_it_reads(script, index) => {
                Kind::Compute
            }
            Kind::Build if !project::is_own(script, index) => Kind::Run,
            kind => kind,
        };
        // `sh -c '...'` runs only what is in the text, which is assessed on its own; code of another language may do
        // more than the commands found in it
        if kind != Kind::Run || !is_runner {
            collector.plain(kind, first);
        }
    }
    if !wraps && handed::runs_operands(script, index) {
        collector.plain(Kind::Run, first);
    }
    if let Some(option) = table::suspect_option(&key, program, &read) {
        collector.plain(Kind::Unknown, read.word(option).unwrap_or(first));
    }
    if key == "find" && read.has("-delete") {
        let narrowed = find::narrowed(command, find::Action::Named("-delete"));
        for root in handed::roots(script, command) {
            collector.push(Kind::Delete, Some(root), true, narrowed, read.word("-delete").unwrap_or(first));
        }
    }
    if key == "ps"
        && let Some(word) = words::environment_option(command)
    {
        collector.push(Kind::Read, Some(ENVIRONMENTS.to_owned()), false, false, word);
    }
    if let Some(kind) = database::effect(script, index, program, &read, wraps) {
        collector.plain(kind, first);
    }
    add_values(&mut collector, program, &read);
    add_here(&mut collector, program, &read);
    if let Some(language) = program.language {
        add_language(&mut collector, language, program, &read);
    }
    add_operands(&mut collector, program, &read, &handed);
}

/// True if the command only asks for help or its version.
pub(super) fn is_help(command: &Invocation, dialect: Dialect) -> bool {
    let program = command.key().and_then(|key| table::program(&key, dialect));
    program.is_some_and(|program| asks_for_help(command, dialect, program, &ParsedArgs::parse(command, program)))
}

/// True if the command only shows its usage. Shells and interpreters pass the option on to what they run.
fn asks_for_help(command: &Invocation, dialect: Dialect, program: &Program, read: &ParsedArgs<'_>) -> bool {
    const RUNNERS: [&str; 12] =
        ["xargs", "find", "env", "sudo", "npm", "npx", "cargo", "go", "make", "eval", "exec", "ssh"];
    const HELP: [&str; 2] = ["--help", "--version"];
    let name = command.name().unwrap_or_default();
    let args = command.args();
    let asks = |w: &Word| HELP.contains(&w.text.as_str());
    let Some(at) = args.iter().position(asks) else { return false };
    let last = args.last().is_some_and(asks);
    let has_option = last || read.options.first().is_some_and(|(name, _)| name == "--help");
    // a builtin knows it only as its first word, and what `-c` sets may be what shows git's help
    let builtin = at > 0 && super::is_builtin(name, dialect);
    let set = name == "git" && read.has_any(&["-c".to_owned(), "--config-env".to_owned(), "--exec-path".to_owned()]);
    // to BSD's tools, and GNU's if told to follow POSIX, an option after the first operand is an operand
    let operand = read.operands.first().and_then(|o| args.iter().position(|w| std::ptr::eq(w, o.word)));
    let behind = operand.is_some_and(|operand| operand < at);
    has_option
        && read.has_any(&HELP.map(str::to_owned))
        && !builtin
        && !set
        && (!behind || looks_behind_verb(program, read))
        && !is_shell(name)
        && !is_interpreter(name)
        && !RUNNERS.contains(&name)
}

/// True for a program with verbs, which looks for `--help` behind them on every system: it names no file, process or
/// account, and no operand is read as code.
fn looks_behind_verb(program: &Program, read: &ParsedArgs<'_>) -> bool {
    let names_none = |kind: Option<Kind>| kind.is_none_or(|kind| kind == Kind::None);
    let changes = [Kind::Kill, Kind::System, Kind::Privilege].iter().any(|kind| program.does.contains(kind));
    let writes = |kind: Kind| !matches!(kind, Kind::None | Kind::Read);
    program.operands == Some(Kind::None)
        && names_none(program.first)
        && names_none(program.last)
        && program.database.is_none()
        && program.language.is_none()
        && !program.bundle
        && !read.values.iter().any(|v| program.value_of(&v.of, read).is_some_and(writes))
        && (!changes || program.verb_help)
}

/// True for a cmdlet whose verb only shows something. The cmdlets themselves depend on the installed modules.
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

/// True if the name is that of a function of the script, whose body is assessed on its own. A name of a known program
/// counts as the program, since it depends on earlier commands which of the two is called.
fn is_function(script: &Script, index: usize, name: &str) -> bool {
    let shell = |c: &Invocation| c.via.iter().filter(|v| !keeps_functions(v)).cloned().collect::<Vec<_>>();
    let here = shell(&script.commands[index]);
    let unset = |c: &Invocation| c.name() == Some("unset") && c.args().iter().any(|w| w.text == name);
    let known = |f: &Function| script.commands[f.commands.clone()].first().is_none_or(|body| shell(body) == here);
    script.functions.iter().any(|f| f.name == name && known(f)) && !script.commands[..index].iter().any(unset)
}

/// Returns the key of a command's program for the table.
fn key_of(script: &Script, command: &Invocation) -> String {
    match command.words.first() {
        // `a=rm; $a x`: the program is the value of a variable of the script
        Some(first) if first.value.is_none() => {
            paths::resolve_paths(script, first).concat().rsplit('/').next().unwrap_or_default().to_lowercase()
        }
        _ => command.key().unwrap_or_default(),
    }
}

fn add_values(collector: &mut Collector<'_>, program: &Program, read: &ParsedArgs<'_>) {
    for value in &read.values {
        if let Some(kind) = program.value_of(&value.of, read).filter(|k| *k != Kind::None) {
            for path in paths::resolve_part(collector.script, value.word, value.part) {
                collector.push(kind, Some(path), false, false, value.word);
            }
        }
    }
}

/// Adds the effect on the working directory, where that is a folder that matters: `cd / && tar xf x.tar`.
fn add_here(collector: &mut Collector<'_>, program: &Program, read: &ParsedArgs<'_>) {
    let (Some(kind), Some(first)) = (program.here(read), collector.command.words.first()) else { return };
    let folder = Word { raw: ".".to_owned(), text: ".".to_owned(), span: first.span.clone(), ..Word::default() };
    for path in paths::resolve_paths(collector.script, &folder) {
        if matches!(place_of(&path), Place::Root | Place::System | Place::Configuration | Place::Home) {
            collector.push(kind, Some(path), false, false, first);
        }
    }
}

/// Adds the effects of an `awk` or `sed` program in an argument.
fn add_language(collector: &mut Collector<'_>, language: Language, program: &Program, read: &ParsedArgs<'_>) {
    for (word, text) in scripts(program, read) {
        let rest = substitution::without(text);
        let computed = word.value.is_none() && text.starts_with(['$', '`']);
        if computed && !rest.contains([' ', ';', '!']) && !matches!(rest.as_str(), "p" | "d" | "q") {
            // `sed "$script"` may do anything; `sed "$n!d"` and the like are harmless
            collector.plain(Kind::Run, word);
        }
        for side_effect in language.side_effects(text) {
            match side_effect {
                SideEffect::Write(path) => collector.push(Kind::Overwrite, path, false, false, word),
                // a command that is written out in full is assessed on its own
                SideEffect::Run(None) => collector.plain(Kind::Run, word),
                SideEffect::Run(Some(_)) => {}
            }
        }
    }
}

/// Adds the effects on the operands, and on those `handed` over by another command.
fn add_operands(collector: &mut Collector<'_>, program: &Program, read: &ParsedArgs<'_>, handed: &[Handed]) {
    let (script, command, index) = (collector.script, collector.command, collector.index);
    let Some(first) = command.words.first() else { return };
    let recursive = program.recursive.iter().any(|o| read.has(o));
    let mut operands: Vec<(String, &Word, Option<&Handed>)> = Vec::new();
    // an empty word names no file: it is the suffix of BSD's `sed -i ''`
    for operand in read.operands.iter().filter(|o| o.part.is_some() || o.word.value.as_deref() != Some("")) {
        let word = operand.word;
        let within = command.via.iter().any(|v| ["find", "fd", "fdfind", "xargs", "gfind", "parallel"].contains(&&**v));
        let from_outer = if word.text.contains("{}") && within { handed } else { &[] };
        if from_outer.is_empty() || word.text != "{}" {
            let paths = paths::resolve_part(script, word, operand.part).into_iter();
            operands.extend(paths.map(|p| (p, word, None)));
        }
        operands.extend(from_outer.iter().map(|h| (h.path.clone(), word, Some(h))));
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
            // a list or a variable: its content is unknown
            piped.push((handed::UNKNOWN.to_owned(), false, false));
        }
        for (path, narrowed, deep) in piped {
            collector.push(kind, Some(path), recursive || deep, narrowed, first);
        }
    }
    let count = operands.len();
    for (at, (path, word, by)) in operands.into_iter().enumerate() {
        let kind = kind_of_operand(program, read, at, count, appended);
        // paths handed over by `find` include everything below them, which matters if they are overwritten or deleted
        let deep = match kind {
            Kind::Overwrite => recursive || by.is_some(),
            Kind::Delete => recursive || by.is_some_and(|h| h.walked),
            _ => recursive,
        };
        let narrowed = by.is_some_and(|h| h.narrowed);
        let is_file = || command.key().is_some_and(|key| DASH_IS_A_FILE.contains(&key.as_str()));
        let path = if path == "-" && is_file() { DASH_FILE.to_owned() } else { path };
        if kind != Kind::None {
            collector.push(kind, Some(path), deep, narrowed, word);
        }
    }
}

/// Returns what becomes of the operand at an index, of `count`. Where operands are `appended` by another command, a
/// single one is the last as well.
fn kind_of_operand(program: &Program, read: &ParsedArgs<'_>, at: usize, count: usize, appended: bool) -> Kind {
    let scripted = read.has_any(&program.script)
        || read.options.iter().any(|(name, _)| program.script_word.as_ref().is_some_and(|p| p.fits(name)));
    let of_first = if at == 0 && !scripted { program.first(read) } else { None };
    let of_last = if at + 1 == count && (count > 1 || appended) { program.last(read) } else { None };
    of_first.or_else(|| program.inner(at, read)).or(of_last).unwrap_or_else(|| program.operand(read))
}

/// True for a deletion of a path that ends in `.` or `..` by `rm`, which POSIX has it refuse.
pub fn is_refused(script: &Script, effect: &Effect) -> bool {
    let command = effect.command.map(|at| &script.commands[at]);
    let is_rm = command.is_some_and(|c| matches!(c.name(), Some("rm" | "grm")));
    let path = effect.token.trim_matches(['"', '\'']).trim_end_matches('/');
    let last = path.rsplit('/').next().unwrap_or(path);
    effect.kind == Kind::Delete && is_rm && script.dialect != Dialect::PowerShell && matches!(last, "." | "..")
}
