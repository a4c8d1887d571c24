//! The table of programs, as `platform-rules/programs.toml` has it.

use super::{Kind, Reading, canonical};
use crate::shell::Dialect;
use std::collections::{BTreeMap, HashMap};
use std::sync::OnceLock;

static TEXT: &str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/platform-rules/programs.toml"));

/// How a program reads its options.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Style {
    /// `-abc`, `-o value`, `--long=value`.
    #[default]
    Unix,
    /// `name=value`, as `dd` has it.
    Assign,
    /// `-Name value`, whatever the case.
    Powershell,
}

/// One family of programs.
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
    pub script: Vec<String>,
    pub recursive: Vec<String>,
    pub does: Vec<Kind>,
    /// With one of these as an option or as the first operand the program only shows something.
    pub quiet: Vec<String>,
    pub verbs: BTreeMap<String, Vec<Kind>>,
    /// Verbs that only list when nothing more is said, or `list`, `show`, `status`.
    pub listing: Vec<String>,
    pub option: Vec<Opt>,
}

/// What changes with an option.
#[derive(Debug, Default, serde::Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Opt {
    pub has: Vec<String>,
    pub operands: Option<Kind>,
    pub last: Option<Kind>,
    pub value: Option<Kind>,
    pub does: Option<Vec<Kind>>,
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
    "-descending",
];

impl Program {
    pub fn takes_value(&self, option: &str) -> bool {
        if self.style == Style::Powershell {
            return POWERSHELL_VALUED.contains(&option) && option != "-descending" || self.valued_by_option(option);
        }
        match option.strip_prefix("--") {
            Some(long) => self.valued_long.iter().any(|v| v == long) || self.valued_by_option(option),
            None => option.strip_prefix('-').is_some_and(|o| self.valued.contains(o)) || self.valued_by_option(option),
        }
    }

    fn valued_by_option(&self, option: &str) -> bool {
        self.option_of(option).is_some_and(|o| o.value.is_some())
    }

    pub fn option_of(&self, name: &str) -> Option<&Opt> {
        self.option.iter().find(|o| o.has.iter().any(|h| h == name))
    }

    /// True if this use of the program only shows something.
    pub fn is_quiet(&self, read: &Reading<'_>) -> bool {
        let verb = read.operands.first().map(|w| w.text.as_str());
        let shows = |q: &String| if q.starts_with('-') { verb.is_none() && read.has(q) } else { verb == Some(q) };
        let bare = verb.is_none() && read.options.is_empty();
        self.quiet.iter().any(shows) || bare && !self.quiet.is_empty() && self.bare_is_quiet()
    }

    /// `ip`, `systemctl`, `mount` without arguments list what there is.
    fn bare_is_quiet(&self) -> bool {
        self.does == [Kind::System] || self.does == [Kind::Repository]
    }

    /// What the program does besides what it does to its operands.
    pub fn does(&self, read: &Reading<'_>) -> Vec<Kind> {
        let by_option = self.option.iter().filter(|o| o.has.iter().any(|h| read.has(h))).find_map(|o| o.does.clone());
        if let Some(kinds) = by_option {
            return kinds;
        }
        if !self.verbs.is_empty() {
            let verb = read.operands.first().map(|w| w.text.as_str());
            let more = read.operands.get(1).map(|w| w.text.as_str());
            let lists = matches!(more, Some("list" | "show" | "status" | "get-url"))
                || more.is_none()
                    && !["-d", "-D", "-m", "-M", "-e", "--edit", "--unset", "-f", "-u"].iter().any(|o| read.has(o))
                || ["--list", "-l", "--get"].iter().any(|o| read.has(o));
            if lists && verb.is_some_and(|v| self.listing.iter().any(|l| l == v)) {
                return Vec::new();
            }
            if let Some(kinds) = verb.and_then(|v| self.verbs.get(v)) {
                return kinds.clone();
            }
            if verb.is_none() {
                return Vec::new();
            }
        }
        self.does.clone()
    }
}

#[derive(serde::Deserialize)]
struct File {
    program: Vec<Program>,
}

/// The program of that name, in lower case.
pub(super) fn program(key: &str, dialect: Dialect) -> Option<&'static Program> {
    static TABLE: OnceLock<(Vec<Program>, HashMap<String, usize>)> = OnceLock::new();
    let (programs, by_name) = TABLE.get_or_init(|| {
        let file: File = toml::from_str(TEXT).unwrap_or_else(|error| {
            debug_assert!(false, "platform-rules/programs.toml: {error}");
            File { program: Vec::new() }
        });
        let mut by_name = HashMap::new();
        for (index, program) in file.program.iter().enumerate() {
            by_name.extend(program.names.iter().map(|n| (n.to_ascii_lowercase(), index)));
        }
        (file.program, by_name)
    });
    let version = || key.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    by_name.get(&canonical(key, dialect)).or_else(|| by_name.get(version())).map(|i| &programs[*i])
}
