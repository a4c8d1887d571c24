//! The table of programs, as `platform-rules/programs.toml` has it.

use super::reading::Reading;
#[cfg(test)]
use super::row::Opt;
use super::row::Program;
use crate::parse::Word;
use crate::{Dialect, powershell_alias};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::OnceLock;

static TEXT: &str = include_str!("../../../platform-rules/programs.toml");

#[derive(Default, serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    program: Vec<Program>,
    #[serde(default)]
    remade: Remade,
    #[serde(default)]
    suspect: Suspect,
    #[serde(default)]
    unlisted: Unlisted,
    #[serde(default)]
    variables: Variables,
}

/// Variables of the environment through which programs run other code, by name; `*` at the end stands for any ending.
#[derive(Default, serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Variables {
    runs: Vec<String>,
    loads: Vec<String>,
    steers: Vec<String>,
    writes: Vec<String>,
}

/// How programs run other code because of a variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Variable {
    /// Its value is a command.
    Runs,
    /// Its value names code that is loaded into every program.
    Loads,
    /// It says where code is found, or what options a program has.
    Steers,
    /// A path in it is a file that something is added to.
    Writes,
}

/// Files and folders that tools make anew.
#[derive(Default, serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Remade {
    /// Their names; `*` at an end stands for any text.
    names: Vec<String>,
}

/// Options that write, run or kill in one program or another.
#[derive(Default, serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Suspect {
    /// The beginnings of long options.
    long: Vec<String>,
    /// For each option that is suspect: the programs in which it only chooses what is shown.
    harmless: BTreeMap<String, Vec<String>>,
}

/// Programs that the table does not know.
#[derive(Default, serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Unlisted {
    /// First operands with which they only show something.
    reads: Vec<String>,
    /// Operands behind those with which they do not.
    changes: Vec<String>,
}

struct Table {
    programs: Vec<Program>,
    by_name: HashMap<String, usize>,
    long: Vec<String>,
    short: HashSet<String>,
    harmless: HashSet<(String, String)>,
    variables: Variables,
    remade: Vec<String>,
    unlisted: Unlisted,
}

impl Table {
    /// True for an option that is written like one that writes, runs or kills in some program.
    fn is_suspect(&self, option: &str) -> bool {
        match option.strip_prefix("--") {
            Some(name) => {
                self.long.iter().any(|l| name.starts_with(l.as_str()) || name.len() > 2 && l.starts_with(name))
            }
            None => self.short.contains(option),
        }
    }
}

fn table() -> &'static Table {
    static TABLE: OnceLock<Table> = OnceLock::new();
    TABLE.get_or_init(|| {
        let file: File = toml::from_str(TEXT).unwrap_or_else(|error| {
            debug_assert!(false, "platform-rules/programs.toml: {error}");
            File::default()
        });
        let mut by_name = HashMap::new();
        for (index, program) in file.program.iter().enumerate() {
            by_name.extend(program.names.iter().map(|n| (n.to_ascii_lowercase(), index)));
        }
        let Suspect { long, harmless } = file.suspect;
        let short = harmless.keys().filter(|k| !k.starts_with("--")).cloned().collect();
        let pairs = harmless.into_iter().flat_map(|(o, names)| names.into_iter().map(move |n| (o.clone(), n)));
        Table {
            programs: file.program,
            by_name,
            long,
            short,
            harmless: pairs.collect(),
            variables: file.variables,
            remade: file.remade.names,
            unlisted: file.unlisted,
        }
    })
}

/// True if that option of that program is listed as one that only chooses what is shown.
#[cfg(test)]
pub(super) fn is_harmless(option: &str, name: &str) -> bool {
    table().harmless.contains(&(option.to_owned(), name.to_owned()))
}

/// The cmdlet or program that a name stands for in that dialect's tables.
pub(crate) fn canonical(key: &str, dialect: Dialect) -> String {
    match dialect {
        Dialect::PowerShell => powershell_alias(key).unwrap_or(key).to_owned(),
        _ => key.to_owned(),
    }
}

/// The program of that name, in lower case.
pub(super) fn program(key: &str, dialect: Dialect) -> Option<&'static Program> {
    let table = table();
    let version = || key.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    let found = table.by_name.get(&canonical(key, dialect)).or_else(|| table.by_name.get(version()));
    found.map(|i| &table.programs[*i])
}

/// True for the words of a program that is not known and only shows something: its first operand says so, and no option writes.
pub(super) fn only_shows(words: &[Word]) -> bool {
    let table = table();
    let suspect = |option: &str| match option.starts_with("--") {
        true => table.is_suspect(option) || ["--fix", "--force"].contains(&option),
        false => table.is_suspect(&option.chars().take(2).collect::<String>()),
    };
    let is_option = |w: &&Word| w.text.starts_with('-');
    let plain = words.iter().all(|w| !w.expands);
    let mut operands = words.iter().filter(|w| !is_option(w));
    let Unlisted { reads, changes } = &table.unlisted;
    plain
        && operands.next().is_some_and(|w| reads.contains(&w.text))
        && !operands.any(|w| changes.contains(&w.text))
        && !words.iter().filter(is_option).any(|w| suspect(&w.text))
}

/// True for the name of a file or folder that tools make anew.
pub(crate) fn is_remade(name: &str) -> bool {
    table().remade.iter().any(|own| match (own.strip_prefix('*'), own.strip_suffix('*')) {
        (Some(end), _) => name.len() > end.len() && name.ends_with(end),
        (_, Some(start)) => name.starts_with(start),
        _ => own == name,
    })
}

/// What programs make of that variable, if it can make them run other code.
pub(crate) fn variable(name: &str) -> Option<Variable> {
    let named = |listed: &String| match listed.strip_suffix('*') {
        Some(beginning) => name.starts_with(beginning),
        None => listed == name,
    };
    let Variables { runs, loads, steers, writes } = &table().variables;
    let kinds =
        [(runs, Variable::Runs), (loads, Variable::Loads), (steers, Variable::Steers), (writes, Variable::Writes)];
    kinds.into_iter().find(|(names, _)| names.iter().any(named)).map(|(_, kind)| kind)
}

/// An option of a reading program that writes in others, and of which nothing says that here it does not.
pub(super) fn suspect<'r>(key: &str, program: &Program, read: &'r Reading<'_>) -> Option<&'r str> {
    if !program.is_reader() {
        return None;
    }
    let table = table();
    let harmless = |option: &str| table.harmless.contains(&(option.to_owned(), key.to_owned()));
    let suspicious = |option: &&str| !program.knows(option) && table.is_suspect(option) && !harmless(option);
    read.options.iter().map(|(name, _)| name.as_str()).find(suspicious)
}

/// The names of the programs that only read as far as the table says.
#[cfg(test)]
pub(super) fn readers() -> impl Iterator<Item = &'static str> {
    table().programs.iter().filter(|p| p.is_reader()).flat_map(|p| p.names.iter().map(String::as_str))
}

/// Everything the table says twice or in vain.
#[cfg(test)]
pub(super) fn faults() -> Vec<String> {
    let table = table();
    let mut found = Vec::new();
    let mut seen = HashSet::new();
    for program in &table.programs {
        for name in program.names.iter().filter(|n| !seen.insert(n.as_str())) {
            found.push(format!("{name} stands twice"));
        }
        let of_option = |o: &'static Opt| [&o.word, &o.operand, &o.value_is, &o.value_is_not].into_iter().flatten();
        let patterns = program
            .shows
            .iter()
            .chain(&program.asks)
            .chain(&program.makes)
            .chain(&program.gets)
            .chain(&program.records)
            .chain(&program.starts)
            .chain(&program.builds)
            .chain(&program.alone)
            .chain(&program.script_word)
            .chain(program.option.iter().flat_map(of_option));
        if patterns.into_iter().any(|p| !p.is_sound()) {
            found.push(format!("{:?} has a pattern that is none", program.names));
        }
    }
    for (option, name) in &table.harmless {
        if !table.by_name.contains_key(name) {
            found.push(format!("{name}, for which {option} is harmless, is no program"));
        }
    }
    found
}
