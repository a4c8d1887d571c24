//! The table of programs, as `platform-rules/programs.toml` has it.

use super::database::Database;
use super::reading::Reading;
use super::{Kind, canonical};
use crate::Dialect;
use crate::embedded::Language;
use crate::embedded::pure::{self, Tongue};
use crate::parse::Invocation;
use crate::pattern::Whole;
use crate::unwrap::is_code;
use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::OnceLock;

static TEXT: &str = include_str!("../../../platform-rules/programs.toml");

/// How a program reads its options.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Style {
    /// `-abc`, `-o value`, `--long=value`.
    #[default]
    Unix,
    /// `-name value`: words of more than a letter after one dash, as `find` has them.
    Word,
    /// `name=value`, as `dd` has it.
    Assign,
    /// `-Name value`, `-Name:value`, whatever the case.
    Powershell,
}

/// One family of programs. The head of `programs.toml` says what each field means.
#[derive(Debug, Default, serde::Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Program {
    pub names: Vec<String>,
    pub style: Style,
    pub operands: Option<Kind>,
    pub first: Option<Kind>,
    pub last: Option<Kind>,
    pub valued: String,
    pub valued_long: Vec<String>,
    pub leading: Vec<String>,
    pub bundle: bool,
    pub script: Vec<String>,
    pub script_word: Option<Whole>,
    pub language: Option<Language>,
    pub database: Option<Database>,
    pub says: Vec<String>,
    pub says_after: Option<usize>,
    pub recursive: Vec<String>,
    pub commands: Vec<String>,
    pub does: Vec<Kind>,
    pub shows: Vec<Whole>,
    pub asks: Vec<Whole>,
    pub makes: Vec<Whole>,
    pub gets: Vec<Whole>,
    pub records: Vec<Whole>,
    pub starts: Vec<Whole>,
    pub builds: Vec<Whole>,
    pub computes: Option<Tongue>,
    pub alone: Vec<Whole>,
    pub words: bool,
    pub attached: String,
    pub verbs: BTreeMap<String, Vec<Kind>>,
    pub option: Vec<Opt>,
}

/// What changes with an option, or with a word of some shape.
#[derive(Debug, Default, serde::Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Opt {
    pub has: Vec<String>,
    pub with: Vec<String>,
    pub lacks: Vec<String>,
    pub word: Option<Whole>,
    pub operand: Option<Whole>,
    pub value_is: Option<Whole>,
    pub value_is_not: Option<Whole>,
    pub operands: Option<Kind>,
    pub first: Option<Kind>,
    pub last: Option<Kind>,
    pub value: Option<Kind>,
    pub does: Option<Vec<Kind>>,
    pub also: Vec<Kind>,
}

/// PowerShell parameters that take a value which is no path.
const POWERSHELL_VALUED: &[&str] = &[
    "-filter",
    "-include",
    "-exclude",
    "-encoding",
    "-first",
    "-last",
    "-property",
    "-name",
    "-id",
    "-computername",
    "-itemtype",
    "-value",
    "-erroraction",
    "-ea",
    "-depth",
    "-pattern",
    "-uri",
    "-method",
    "-headers",
    "-delimiter",
    "-newname",
    "-tail",
    "-totalcount",
    "-skip",
];

impl Opt {
    /// True if the command has what this entry is about.
    fn applies(&self, read: &Reading<'_>) -> bool {
        let valued =
            |test: &dyn Fn(&str) -> bool| read.values.iter().any(|v| self.has.contains(&v.of) && test(v.text()));
        (self.has.is_empty() || read.has_any(&self.has))
            && (self.with.is_empty() || read.has_any(&self.with))
            && !read.has_any(&self.lacks)
            && self.word.as_ref().is_none_or(|p| read.line.split(' ').any(|w| p.fits(w)))
            && self.operand.as_ref().is_none_or(|p| read.operands.iter().any(|o| p.fits(o.text())))
            && self.value_is.as_ref().is_none_or(|p| valued(&|v| p.fits(v)))
            && self.value_is_not.as_ref().is_none_or(|p| valued(&|v| !p.fits(v)))
    }

    fn names(&self) -> impl Iterator<Item = &String> {
        self.has.iter().chain(&self.with).chain(&self.lacks)
    }
}

impl Program {
    pub fn takes_value(&self, option: &str) -> bool {
        let by_option = || self.valued_by_entry(option).any(|o| o.operand.is_none());
        let listed = match self.style {
            Style::Powershell => POWERSHELL_VALUED.contains(&option),
            Style::Word => self.valued_long.iter().any(|v| option.trim_start_matches('-') == v),
            Style::Unix | Style::Assign => match option.strip_prefix("--") {
                Some(long) => self.valued_long.iter().any(|v| v == long),
                None => option.strip_prefix('-').is_some_and(|o| self.valued.contains(o)),
            },
        };
        listed || by_option() || self.commands.iter().chain(&self.says).any(|c| c == option)
    }

    /// The same where that is so behind one verb only: `-o` of `git archive -o FILE`.
    pub fn takes_value_behind(&self, option: &str, verb: &str) -> bool {
        self.valued_by_entry(option).any(|o| o.operand.as_ref().is_some_and(|shape| shape.fits(verb)))
    }

    fn valued_by_entry<'o>(&'o self, option: &'o str) -> impl Iterator<Item = &'o Opt> {
        self.option.iter().filter(move |o| o.value.is_some() && o.has.iter().any(|h| h == option))
    }

    /// The long option of this row that this one begins, as getopt takes `--outp` for `--output`.
    pub fn unabbreviated<'n>(&'n self, name: &'n str) -> Cow<'n, str> {
        if name.len() < 3 || self.knows(name) {
            return name.into();
        }
        if let Some(named) = self.named().find(|n| n.starts_with(name)) {
            return named.into();
        }
        let valued = self.valued_long.iter().find(|v| v.starts_with(&name[2..]));
        valued.map_or(name.into(), |valued| format!("--{valued}").into())
    }

    fn named(&self) -> impl Iterator<Item = &str> {
        let entries = self.option.iter().flat_map(Opt::names);
        entries.chain(&self.script).chain(&self.says).chain(&self.recursive).chain(&self.commands).map(String::as_str)
    }

    /// True if this row says something of that option.
    fn knows(&self, option: &str) -> bool {
        self.named().any(|n| n == option) || self.takes_value(option)
    }

    /// What becomes of the value of that option.
    pub fn value_of(&self, option: &str, read: &Reading<'_>) -> Option<Kind> {
        let named = |o: &&Opt| o.has.iter().any(|h| h == option);
        self.option.iter().filter(named).filter(|o| o.applies(read)).find_map(|o| o.value)
    }

    /// True if this use of the program only shows something.
    pub fn only_shows(&self, read: &Reading<'_>) -> bool {
        self.shows.iter().any(|shape| shape.fits(&read.line))
    }

    /// What the program does besides what it does to its operands.
    pub fn does(&self, read: &Reading<'_>) -> Vec<Kind> {
        let applying = || self.option.iter().filter(|o| o.applies(read));
        let mut kinds = match applying().find_map(|o| o.does.clone()) {
            _ if self.only_shows(read) => Vec::new(),
            _ if self.asks.iter().any(|shape| shape.fits(&read.line)) => vec![Kind::Fetch],
            _ if self.gets.iter().any(|shape| shape.fits(&read.line)) => vec![Kind::Fetch, Kind::Create],
            _ if self.shaped(read).is_some() => self.shaped(read).into_iter().collect(),
            Some(kinds) => kinds,
            None => self.by_verb(read).unwrap_or(&self.does).to_vec(),
        };
        kinds.extend(applying().flat_map(|o| o.also.iter().copied()));
        kinds
    }

    /// The effect of those shapes of a call in which nothing is lost.
    fn shaped(&self, read: &Reading<'_>) -> Option<Kind> {
        let shapes = [
            (&self.makes, Kind::Create),
            (&self.records, Kind::Record),
            (&self.starts, Kind::Start),
            (&self.builds, Kind::Build),
        ];
        let fits = |shapes: &[Whole]| shapes.iter().any(|shape| shape.fits(&read.line));
        shapes.into_iter().find(|(shapes, _)| fits(shapes)).map(|(_, kind)| kind)
    }

    /// True if it makes something out of what is here.
    pub fn only_makes(&self, read: &Reading<'_>) -> bool {
        self.shaped(read) == Some(Kind::Create)
    }

    /// True if all that it runs stands in its words, and that is understood and only computes.
    pub fn only_computes(&self, command: &Invocation, read: &Reading<'_>) -> bool {
        let Some(tongue) = self.computes else { return false };
        let words = &command.words;
        let is_alone = |text: &str| self.alone.iter().any(|option| option.fits(text));
        let code: Vec<usize> = (1..words.len())
            .filter(|at| {
                is_code(words, *at) && tongue.takes_code(&words[*at - 1].text) && is_alone(&words[*at - 1].text)
            })
            .collect();
        let Some(first) = code.first() else { return false };
        // what is no code is an option that changes nothing of it, or behind it a file that is read or handed over
        let mut others = (1..words.len()).filter(|at| !code.contains(at));
        let plain = |at: usize| match words[at].text.as_str() {
            text if text.starts_with('-') => is_alone(text),
            text => at > *first && tongue != Tongue::Lua && !text.contains(['|', '<', '>', '$', '`']),
        };
        command.assignments.is_empty()
            && !read.has("-i")
            && others.all(plain)
            && code.iter().all(|at| words[*at].value.as_deref().is_some_and(|text| pure::is_pure(text, tongue)))
    }

    /// What its verb does: two words where the table has them, else one.
    fn by_verb(&self, read: &Reading<'_>) -> Option<&[Kind]> {
        if self.verbs.is_empty() {
            return None;
        }
        let word = |at: usize| read.operands.get(at).map(|o| o.text());
        let Some(verb) = word(0) else { return Some(&[]) };
        let two = word(1).and_then(|second| self.verbs.get(&format!("{verb} {second}")));
        two.or_else(|| self.verbs.get(verb)).map(Vec::as_slice)
    }

    pub fn operand(&self, read: &Reading<'_>) -> Kind {
        self.by_option(read, |o| o.operands).or(self.operands).unwrap_or(Kind::Read)
    }

    pub fn first(&self, read: &Reading<'_>) -> Option<Kind> {
        self.by_option(read, |o| o.first).or(self.first)
    }

    pub fn last(&self, read: &Reading<'_>) -> Option<Kind> {
        self.by_option(read, |o| o.last).or(self.last)
    }

    fn by_option(&self, read: &Reading<'_>, of: impl Fn(&Opt) -> Option<Kind>) -> Option<Kind> {
        self.option.iter().filter(|o| o.applies(read)).find_map(of)
    }

    /// True for a program whose row says no more than that it reads.
    pub fn is_reader(&self) -> bool {
        let written = |kind: Option<Kind>| kind.is_some_and(|k| !matches!(k, Kind::None | Kind::Read));
        self.operands == Some(Kind::Read)
            && !written(self.first)
            && !written(self.last)
            && self.does.is_empty()
            && matches!(self.style, Style::Unix | Style::Word)
    }
}

#[derive(Default, serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    program: Vec<Program>,
    #[serde(default)]
    remade: Remade,
    #[serde(default)]
    suspect: Suspect,
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

struct Table {
    programs: Vec<Program>,
    by_name: HashMap<String, usize>,
    long: Vec<String>,
    short: HashSet<String>,
    harmless: HashSet<(String, String)>,
    variables: Variables,
    remade: Vec<String>,
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
        }
    })
}

/// True if that option of that program is listed as one that only chooses what is shown.
#[cfg(test)]
pub(super) fn is_harmless(option: &str, name: &str) -> bool {
    table().harmless.contains(&(option.to_owned(), name.to_owned()))
}

/// The program of that name, in lower case.
pub(super) fn program(key: &str, dialect: Dialect) -> Option<&'static Program> {
    let table = table();
    let version = || key.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    let found = table.by_name.get(&canonical(key, dialect)).or_else(|| table.by_name.get(version()));
    found.map(|i| &table.programs[*i])
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
    let suspicious = |option: &str| {
        if program.knows(option) {
            return false;
        }
        match option.strip_prefix("--") {
            Some(name) => {
                let stem =
                    table.long.iter().any(|l| name.starts_with(l.as_str()) || name.len() > 2 && l.starts_with(name));
                stem && !harmless(option)
            }
            None => table.short.contains(option) && !harmless(option),
        }
    };
    read.options.iter().map(|(name, _)| name.as_str()).find(|name| suspicious(name))
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
