//! A row of the table of programs, as in `platform-rules/programs.toml`: how a family of programs parses its options,
//! and its effects.

use super::kind::Kind;
use crate::embedded::Language;
use crate::embedded::pure::ScriptLanguage;
use crate::pattern::Whole;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// The language of a database client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Database {
    Sql,
    Mongo,
    Redis,
}

/// The way a program parses its options.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Style {
    /// `-abc`, `-o value`, `--long=value`.
    #[default]
    Unix,
    /// `-name value`: words of more than one letter after one dash, as in `find`.
    Word,
    /// `name=value`, as in `dd`.
    Assign,
    /// `-Name value`, `-Name:value`, in any case.
    Powershell,
}

/// One family of programs. The head of `programs.toml` documents the fields.
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
    pub verb_help: bool,
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
    pub relays: Option<Vec<Whole>>,
    pub keeps_secrets: bool,
    pub records: Vec<Whole>,
    pub starts: Vec<Whole>,
    pub builds: Vec<Whole>,
    pub computes: Option<ScriptLanguage>,
    pub alone: Vec<Whole>,
    pub words: bool,
    pub attached: String,
    pub verbs: BTreeMap<String, Vec<Kind>>,
    pub option: Vec<Opt>,
}

/// The changes that come with an option, or with a word of a certain form.
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
    pub line: Option<Whole>,
    pub command: Option<Whole>,
    pub operands: Option<Kind>,
    pub first: Option<Kind>,
    pub second: Option<Kind>,
    pub third: Option<Kind>,
    pub last: Option<Kind>,
    pub here: Option<Kind>,
    pub value: Option<Kind>,
    pub does: Option<Vec<Kind>>,
    pub also: Vec<Kind>,
}

/// PowerShell parameters that take a value that is no path.
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
    pub fn names(&self) -> impl Iterator<Item = &String> {
        self.has.iter().chain(&self.with).chain(&self.lacks)
    }
}

impl Program {
    pub fn takes_value(&self, option: &str) -> bool {
        let by_option = || self.entries_with_value(option).any(|o| o.operand.is_none());
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

    /// True if the option takes a value after one verb only: `-o` of `git archive -o FILE`.
    pub fn takes_value_after(&self, option: &str, verb: &str) -> bool {
        self.entries_with_value(option).any(|o| o.operand.as_ref().is_some_and(|shape| shape.fits(verb)))
    }

    fn entries_with_value<'o>(&'o self, option: &'o str) -> impl Iterator<Item = &'o Opt> {
        self.option
            .iter()
            .filter(move |o| (o.value.is_some() || o.command.is_some()) && o.has.iter().any(|h| h == option))
    }

    /// Returns the long option of this row that `name` abbreviates, as getopt accepts `--outp` for `--output`.
    pub fn expand_abbreviation<'n>(&'n self, name: &'n str) -> Cow<'n, str> {
        if name.len() < 3 || self.knows(name) {
            return name.into();
        }
        if let Some(option_names) = self.option_names().find(|n| n.starts_with(name)) {
            return option_names.into();
        }
        let valued = self.valued_long.iter().find(|v| v.starts_with(&name[2..]));
        valued.map_or(name.into(), |valued| format!("--{valued}").into())
    }

    fn option_names(&self) -> impl Iterator<Item = &str> {
        let entries = self.option.iter().flat_map(Opt::names);
        entries.chain(&self.script).chain(&self.says).chain(&self.recursive).chain(&self.commands).map(String::as_str)
    }

    /// True if this row mentions the option.
    pub fn knows(&self, option: &str) -> bool {
        self.option_names().any(|n| n == option) || self.takes_value(option)
    }

    /// True for a program that only reads, according to its row.
    pub fn is_reader(&self) -> bool {
        let written = |kind: Option<Kind>| kind.is_some_and(|k| !matches!(k, Kind::None | Kind::Read));
        self.operands == Some(Kind::Read)
            && !written(self.first)
            && !written(self.last)
            && self.does.is_empty()
            && matches!(self.style, Style::Unix | Style::Word)
    }
}

/// The programs that fail without the files they are named, as in `platform-rules/programs.toml`, which documents the
/// fields.
#[derive(Debug, Default, serde::Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Needs {
    pub names: Vec<String>,
    pub valued: String,
    pub lacks: Vec<String>,
    pub with: Vec<String>,
    pub first: bool,
    pub like: Option<Whole>,
}
