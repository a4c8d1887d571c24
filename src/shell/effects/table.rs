//! The table of programs from `platform-rules/programs.toml`.

use super::parsed_args::ParsedArgs;
#[cfg(test)]
use super::row::Opt;
use super::row::{Needs, Program};
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
    needs: Vec<Needs>,
    #[serde(default)]
    remade: Remade,
    #[serde(default)]
    suspect: Suspect,
    #[serde(default)]
    unlisted: Unlisted,
    #[serde(default)]
    variables: Variables,
}

/// Environment variables that make programs run other code, by name; `*` at the end stands for any suffix.
#[derive(Default, serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Variables {
    runs: Vec<String>,
    loads: Vec<String>,
    steers: Vec<String>,
    writes: Vec<String>,
}

/// The way a variable makes programs run other code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Variable {
    /// Its value is a command.
    Runs,
    /// Its value names code that is loaded into every program.
    Loads,
    /// It says where to find code, or sets options of a program.
    Steers,
    /// A path in it is a file that a program appends to.
    Writes,
}

/// Files and folders that tools recreate.
#[derive(Default, serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Remade {
    /// Their names; `*` at the beginning or the end stands for any text.
    names: Vec<String>,
}

/// Options that write, run or kill in some program.
#[derive(Default, serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Suspect {
    /// Prefixes of long options.
    long: Vec<String>,
    /// For each such option, the programs in which it only selects what is shown.
    harmless: BTreeMap<String, Vec<String>>,
}

/// Rules for programs that are not in the table.
#[derive(Default, serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Unlisted {
    /// First operands for which a program only shows something.
    reads: Vec<String>,
    /// Operands after those for which it does more.
    changes: Vec<String>,
}

struct Table {
    programs: Vec<Program>,
    by_name: HashMap<String, usize>,
    needs: Vec<Needs>,
    long: Vec<String>,
    short: HashSet<String>,
    harmless: HashSet<(String, String)>,
    variables: Variables,
    remade: Vec<String>,
    unlisted: Unlisted,
}

impl Table {
    /// True for an option that looks like one that writes, runs or kills in some program.
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
            needs: file.needs,
            long,
            short,
            harmless: pairs.collect(),
            variables: file.variables,
            remade: file.remade.names,
            unlisted: file.unlisted,
        }
    })
}

/// True if the option is listed as harmless for the program.
#[cfg(test)]
pub(super) fn is_harmless(option: &str, name: &str) -> bool {
    table().harmless.contains(&(option.to_owned(), name.to_owned()))
}

/// Returns the cmdlet for a PowerShell alias; any other name unchanged.
pub(crate) fn canonical(key: &str, dialect: Dialect) -> String {
    match dialect {
        Dialect::PowerShell => powershell_alias(key).unwrap_or(key).to_owned(),
        _ => key.to_owned(),
    }
}

/// Returns the program of that name, which is in lower case.
pub(super) fn program(key: &str, dialect: Dialect) -> Option<&'static Program> {
    let table = table();
    let version = || key.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    let found = table.by_name.get(&canonical(key, dialect)).or_else(|| table.by_name.get(version()));
    found.map(|i| &table.programs[*i])
}

/// True if the words of an unlisted program say that it only shows something, and no option is suspect.
pub(super) fn only_shows(words: &[Word]) -> bool {
    let table = table();
    let is_suspect_option = |option: &str| match option.starts_with("--") {
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
        && !words.iter().filter(is_option).any(|w| is_suspect_option(&w.text))
}

/// Returns which of its operands a program needs, if it fails without them.
pub(super) fn needs(key: &str) -> Option<&'static Needs> {
    table().needs.iter().find(|needs| needs.names.iter().any(|name| name == key))
}

/// True for the name of a file or folder that tools recreate.
pub(crate) fn is_remade(name: &str) -> bool {
    table().remade.iter().any(|own| match (own.strip_prefix('*'), own.strip_suffix('*')) {
        (Some(end), _) => name.len() > end.len() && name.ends_with(end),
        (_, Some(start)) => name.starts_with(start),
        _ => own == name,
    })
}

/// Returns the way in which the variable can make programs run other code, if it can.
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

/// Returns an option of a reading program that writes in other programs and is not known to be harmless here.
pub(super) fn suspect_option<'r>(key: &str, program: &Program, read: &'r ParsedArgs<'_>) -> Option<&'r str> {
    if !program.is_reader() {
        return None;
    }
    let table = table();
    let harmless = |option: &str| table.harmless.contains(&(option.to_owned(), key.to_owned()));
    let is_suspicious = |option: &&str| !program.knows(option) && table.is_suspect(option) && !harmless(option);
    read.options.iter().map(|(name, _)| name.as_str()).find(is_suspicious)
}

/// The names of the programs that only read, according to the table.
#[cfg(test)]
pub(super) fn readers() -> impl Iterator<Item = &'static str> {
    table().programs.iter().filter(|p| p.is_reader()).flat_map(|p| p.names.iter().map(String::as_str))
}

/// Returns the mistakes in the table: duplicates, invalid patterns, unknown programs.
#[cfg(test)]
pub(super) fn problems() -> Vec<String> {
    let table = table();
    let mut found = Vec::new();
    let mut seen = HashSet::new();
    for program in &table.programs {
        for name in program.names.iter().filter(|n| !seen.insert(n.as_str())) {
            found.push(format!("{name} stands twice"));
        }
        let of_option = |o: &'static Opt| {
            [&o.word, &o.operand, &o.value_is, &o.value_is_not, &o.line, &o.command].into_iter().flatten()
        };
        let patterns = program
            .shows
            .iter()
            .chain(&program.asks)
            .chain(&program.makes)
            .chain(&program.gets)
            .chain(program.relays.iter().flatten())
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
            found.push(format!("{name}, for which {option} is harmless, is not a program"));
        }
    }
    found
}
