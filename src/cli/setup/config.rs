//! Defines the settings, and holds the values in force.

use super::names::{AUTO, NONE};
use crate::Failure;
use caro_model::catalog::DEFAULT_MODEL;
use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

/// The name of a project's file.
pub const PROJECT_FILE: &str = ".caro.toml";

/// The settings that are on or off; a file may also say `true` or `false`.
pub(crate) const SWITCHES: [&str; 7] =
    ["rehearse", "resident", "knowledge", "undo", "request_history", "last_answer", "keys"];

/// The power of a project's file over a setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Project {
    /// It may set it.
    Sets,
    /// It may only make it stricter than the user's.
    Tightens,
    /// It may not set it.
    Never,
}

/// One setting.
#[derive(Debug)]
pub struct Key {
    /// Its name in files.
    pub name: &'static str,
    /// Its environment variable.
    pub env: &'static str,
    /// Its default value.
    pub default: &'static str,
    /// Its description.
    pub what: &'static str,
    pub(crate) project: Project,
}

const fn key(
    name: &'static str,
    env: &'static str,
    default: &'static str,
    project: Project,
    what: &'static str,
) -> Key {
    Key { name, env, default, what, project }
}

/// Every setting.
pub const KEYS: [Key; 35] = [
    key(
        "model",
        "CARO_MODEL",
        DEFAULT_MODEL,
        Project::Never,
        "id of `caro model list`, GGUF file, openai:URL#NAME, anthropic:NAME, script:FILE",
    ),
    key("device", "CARO_DEVICE", AUTO, Project::Never, "where to compute: auto, cpu, cuda, metal"),
    key("engine", "CARO_ENGINE", AUTO, Project::Never, "what computes the model: auto, own, candle"),
    key(
        "adapter",
        "CARO_ADAPTER",
        AUTO,
        Project::Never,
        "adapter that requests are answered with: auto (the model's own, if it has one), off, name, file",
    ),
    key("target", "CARO_TARGET", AUTO, Project::Sets, "machine to write for; auto is this one"),
    key("shell", "CARO_SHELL", AUTO, Project::Sets, "shell to write for; auto is the calling one"),
    key("refine", "CARO_REFINE", "evidence", Project::Sets, "when to reconsider: never, evidence, always"),
    key(
        "candidates",
        "CARO_CANDIDATES",
        "5",
        Project::Sets,
        "commands to choose from where the model is unsure, 1 to 8",
    ),
    key(
        "rehearse",
        "CARO_REHEARSE",
        "on",
        Project::Never,
        "on, off: may commands be tried in a sandbox before they are shown, and to choose among them",
    ),
    key(
        "knowledge",
        "CARO_KNOWLEDGE",
        "on",
        Project::Never,
        "on, off: are the documents of `caro knowledge` looked into for commands",
    ),
    key("max_iterations", "CARO_MAX_ITERATIONS", "2", Project::Sets, "the most iterations, 1 to 3"),
    key(
        "timeout",
        "CARO_TIMEOUT",
        "60",
        Project::Sets,
        "seconds after which there is no answer, a model download not counted",
    ),
    key(
        "budget",
        "CARO_BUDGET",
        "4",
        Project::Sets,
        "seconds within which a better answer than the first is looked for",
    ),
    key(
        "run_up_to",
        "CARO_RUN_UP_TO",
        "danger",
        Project::Tightens,
        "worst risk that -x runs after asking: safe, caution, danger",
    ),
    key(
        "keys",
        "CARO_KEYS",
        "on",
        Project::Never,
        "on, off: are keys offered after an answer at a terminal, to run, edit, revise or copy it",
    ),
    // a cloned project must not turn undo off or limit it
    key("undo", "CARO_UNDO", "on", Project::Never, "on, off: is what a command changes kept first, for `caro undo`"),
    key("undo_copies", "CARO_UNDO_COPIES", "1G", Project::Never, "bytes that undo copies for one command at most"),
    key("undo_total", "CARO_UNDO_TOTAL", "10G", Project::Never, "bytes that all of undo holds at most"),
    key("undo_days", "CARO_UNDO_DAYS", "14", Project::Never, "days after which what undo keeps goes"),
    // a cloned project must not start a process that stays
    key("resident", "CARO_RESIDENT", AUTO, Project::Never, "keep the model ready between calls: auto, on, off"),
    key(
        "resident_idle",
        "CARO_RESIDENT_IDLE",
        "900",
        Project::Never,
        "seconds without a request after which the resident process ends",
    ),
    key(
        "workspace_backend",
        "CARO_WORKSPACE_BACKEND",
        "local",
        Project::Never,
        "where agents keep their files: local, s3, r2",
    ),
    key(
        "workspace_url",
        "CARO_WORKSPACE_URL",
        NONE,
        Project::Never,
        "bucket of s3 and r2: https://HOST/BUCKET[/FOLDER]",
    ),
    // a cloned project must not send the user's notes and conversations elsewhere
    key(
        "memory",
        "CARO_MEMORY",
        "sqlite",
        Project::Never,
        "where notes and conversations are: sqlite, in_memory, redis",
    ),
    key(
        "memory_url",
        "CARO_MEMORY_URL",
        NONE,
        Project::Never,
        "server of memory = redis: redis://[:PASSWORD@]HOST[:PORT][/N] or redis+unix:///SOCKET",
    ),
    // a cloned project must not turn on the log of requests
    key(
        "request_history",
        "CARO_REQUEST_HISTORY",
        "off",
        Project::Never,
        "on, off: are requests kept with their commands, on this machine, for `caro history`",
    ),
    key(
        "last_answer",
        "CARO_LAST_ANSWER",
        "on",
        Project::Never,
        "on, off: is the last answer of a terminal kept until it is closed, for `--from last`",
    ),
    // a cloned project must not delete conversations
    key(
        "history",
        "CARO_HISTORY",
        "budget",
        Project::Never,
        "what `caro chat` remembers: budget, window:N, tokens:N; with :summary, :delete",
    ),
    key(
        "context",
        "CARO_CONTEXT",
        "budget",
        Project::Never,
        "when long runs are shortened: budget[:PERCENT], window:N, off; with :truncate or :summary, :last=N",
    ),
    key("loop", "CARO_LOOP", NONE, Project::Never, "parameters of `caro loop`: NAME=VALUE, one after the other"),
    // a cloned project must not open this machine to others
    key("serve.host", "CARO_SERVE_HOST", "127.0.0.1", Project::Never, "address that `caro serve` listens at"),
    key("serve.port", "CARO_SERVE_PORT", "8000", Project::Never, "its port; 0 takes one that is free"),
    key(
        "serve.timeout",
        "CARO_SERVE_TIMEOUT",
        "300",
        Project::Never,
        "seconds that an answer of it may take; 0 or less for any time",
    ),
    key(
        "serve.cors_origins",
        "CARO_SERVE_CORS_ORIGINS",
        NONE,
        Project::Never,
        "origins of web pages that may ask it, between commas",
    ),
    key(
        "serve.rate_limit",
        "CARO_SERVE_RATE_LIMIT",
        "off",
        Project::Never,
        "how often one client may ask it: off, on, N a minute, N/SECONDS",
    ),
];

/// The origin of a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// Built in.
    Default,
    /// A file, and the line in it.
    File(PathBuf, usize),
    /// An environment variable.
    Env(&'static str),
    /// A flag.
    Flag(String),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File(path, line) => write!(f, "{}:{line}", path.display()),
            Self::Env(name) => f.write_str(name),
            Self::Flag(flag) => f.write_str(flag),
        }
    }
}

/// The values in force, each with its origin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    values: BTreeMap<&'static str, (String, Origin)>,
    /// The warnings about the files.
    pub(crate) warnings: Vec<String>,
}

/// A setting with its value in a file.
pub(crate) type Line = (&'static Key, String, Origin);

/// Returns the given flags as a layer of settings.
pub fn given(flags: &[(&'static str, &Option<String>)]) -> Vec<(&'static str, String)> {
    flags.iter().filter_map(|&(key, value)| Some((key, value.clone()?))).collect()
}

impl Config {
    /// The default values.
    pub(crate) fn defaults() -> Self {
        let values = KEYS.iter().map(|k| (k.name, (k.default.to_string(), Origin::Default))).collect();
        Self { values, warnings: Vec::new() }
    }

    /// The warnings about the files: lines that are ignored, and files that other users may write.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// The default values, with one value set.
    pub(crate) fn of(key: &Key, value: &str, origin: Origin) -> Self {
        let mut alone = Self::defaults();
        alone.set(key, value.into(), origin);
        alone
    }

    /// Sets one value.
    pub(crate) fn set(&mut self, key: &Key, value: String, origin: Origin) {
        self.values.insert(key.name, (value, origin));
    }

    /// The value of a setting as it was written; empty for an unknown name.
    pub fn text(&self, name: &str) -> &str {
        self.values.get(name).map_or("", |(value, _)| value)
    }

    /// The value of a setting for display: without the password of a URL.
    pub(crate) fn shown(&self, name: &str) -> String {
        shown(name, self.text(name))
    }

    /// The origin of the value of a setting.
    pub fn origin(&self, name: &str) -> &Origin {
        self.values.get(name).map_or(&Origin::Default, |(_, origin)| origin)
    }

    /// Parses the value of a setting with `read`, whose error says what it must be.
    ///
    /// # Errors
    /// If the value is not valid; names its origin and what it must be.
    pub fn parse<T>(&self, name: &str, read: impl Fn(&str) -> Result<T, String>) -> Result<T, Failure> {
        let text = self.text(name);
        read(text).map_err(|wanted| {
            Failure::usage(format!("{}: `{name}` must be {wanted}, and not `{}`", self.origin(name), shown(name, text)))
                .hint("`caro config --origin` shows every setting and where it comes from")
        })
    }
}

/// The settings whose value may have a password in it even where it is no valid URL.
const WITH_PASSWORD: [&str; 2] = ["memory_url", "workspace_url"];

/// Hides the password of a URL in the value of a setting: all that is before the last `@` or behind `pass=`.
pub(crate) fn shown(name: &str, text: &str) -> String {
    let has_password = WITH_PASSWORD.contains(&name);
    let is_scheme = |start: &str| !has_password || start.chars().all(|c| c.is_ascii_alphanumeric() || c == '+');
    let (scheme, rest) = match text.find("://").filter(|at| is_scheme(&text[..*at])) {
        Some(at) => text.split_at(at + "://".len()),
        None => ("", text),
    };
    // without a scheme it may be the path of a file, with an `@` in it
    let at = if has_password || !scheme.is_empty() { rest.rfind('@') } else { None };
    match (at, rest.find("pass=")) {
        (None, None) => text.to_owned(),
        (None, Some(pass)) => format!("{scheme}{}pass=***", &rest[..pass]),
        (Some(at), None) => format!("{scheme}***{}", &rest[at..]),
        (Some(at), Some(pass)) if at < pass => format!("{scheme}***{}pass=***", &rest[at..pass]),
        // the password has one of the two in it
        (Some(_), Some(_)) => format!("{scheme}***"),
    }
}

/// The failure of an unknown name of a setting, with its place.
pub(crate) fn unknown(name: &str, is_table: bool, place: &str) -> Failure {
    if is_table {
        return Failure::usage(format!("{place}: `{name}` is a table, and settings stand in none"))
            .hint("take the line of the table out; `caro config` shows every setting");
    }
    let meant = nearest(&name.replace('-', "_"), KEYS.iter().map(|key| key.name))
        .map_or(String::new(), |near| format!("did you mean `{near}`? "));
    Failure::usage(format!("{place}: there is no setting `{name}`"))
        .hint(format!("{meant}`caro config` shows them all"))
}

/// Finds the name that is the fewest edits away, at most two.
pub(crate) fn nearest<'n>(name: &str, known: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    let most = if name.len() < 5 { 1 } else { 2 };
    let closest = known.map(|known| (strsim::levenshtein(name, known), known)).min_by_key(|(edits, _)| *edits);
    closest.filter(|(edits, _)| *edits <= most).map(|(_, known)| known)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAPER: &str = include_str!("../SETTINGS.md");

    /// The names between backquotes in a text.
    fn code(text: &str) -> impl Iterator<Item = &str> {
        text.split('`').skip(1).step_by(2)
    }

    #[test]
    fn the_paper_says_what_a_projects_file_may_set() {
        let sentence = PAPER.split("A project's file may set ").nth(1).and_then(|rest| rest.split(';').next()).unwrap();
        let (sets, tightens) = sentence.split_once(", and make ").unwrap();
        for (power, part) in [(Project::Sets, sets), (Project::Tightens, tightens)] {
            let names: Vec<&str> = KEYS.iter().filter(|key| key.project == power).map(|key| key.name).collect();
            assert_eq!(code(part).collect::<Vec<_>>(), names, "{power:?}");
        }
    }

    /// The comment of a setting has every form of a value that its row in the paper has.
    #[test]
    fn the_comment_of_a_setting_has_the_forms_of_the_paper() {
        let plain = |text: &str| text.replace(['[', ']'], "");
        let mut forms = 0;
        for key in &KEYS {
            let Some(row) = PAPER.lines().find(|line| line.starts_with(&format!("| `{}` |", key.name))) else {
                continue;
            };
            let about = row.split(" | ").skip(3).flat_map(code).filter(|form| !form.starts_with("CARO_"));
            // `openai:URL#NAME`, `redis://HOST`
            let is_form = |form: &&str| {
                form.split_once(':')
                    .is_some_and(|(kind, rest)| !kind.is_empty() && rest.contains(|c: char| c.is_uppercase()))
            };
            for form in about.filter(is_form) {
                assert!(plain(key.what).contains(&plain(form)), "{}: {form} is not in {:?}", key.name, key.what);
                forms += 1;
            }
        }
        assert!(forms > 6, "{forms}");
    }

    #[test]
    fn a_mistyped_name_is_recognized() {
        let nearest = |name| nearest(name, KEYS.iter().map(|key| key.name));
        for (slip, name) in [("timout", "timeout"), ("max_iteration", "max_iterations"), ("sehll", "shell")] {
            assert_eq!(nearest(slip), Some(name));
        }
        for other in ["foo", "colour", "general", "x"] {
            assert_eq!(nearest(other), None, "{other}");
        }
        let hint = unknown("max-iteration", false, "x").hint.unwrap_or_default();
        assert!(hint.starts_with("did you mean `max_iterations`? "), "{hint}");
    }
}
