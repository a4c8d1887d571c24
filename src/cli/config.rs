//! The layers of configuration and `caro config`: defaults < the user's file < the project's file < `CARO_*` < flags.
//!
//! A project's file comes with whatever was cloned, so it may say how commands are to be written there, may make `-x`
//! stricter, and nothing else: it can neither pick a model (and with it a server) nor loosen anything.

use super::settings::{AUTO, LEVELS, one_of};
use super::{Cx, Dirs, Env, Exit, Failure, Outcome, Settings, configure};
use caro_base::files;
use caro_model::catalog::DEFAULT_MODEL;
use std::collections::BTreeMap;
use std::fmt;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use toml::de::{DeTable, DeValue};

/// The name of a project's file.
pub const PROJECT_FILE: &str = ".caro.toml";

/// What stands for no value.
pub const NONE: &str = "none";

/// The most bytes a configuration file may have.
const MAX_FILE: u64 = 64 * 1024;

/// How a line of a configuration file looks.
const FORM: &str = "text stands in quotes, as in: rehearse = \"off\"";

/// Settings that are turned on and off: `true` and `false` do, too.
pub(super) const SWITCHES: [&str; 7] =
    ["rehearse", "resident", "knowledge", "undo", "request_history", "last_answer", "keys"];

/// What a project's file may do to a setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Project {
    /// Set it.
    Sets,
    /// Only make it stricter than the user's.
    Tightens,
    /// Not touch it.
    Never,
}

/// One setting.
#[derive(Debug)]
pub struct Key {
    /// Its name in files.
    pub name: &'static str,
    /// Its variable.
    pub env: &'static str,
    /// Its value where nothing is said.
    pub default: &'static str,
    /// What it does.
    pub what: &'static str,
    pub(super) project: Project,
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

/// Every setting there is.
pub const KEYS: [Key; 34] = [
    key(
        "model",
        "CARO_MODEL",
        DEFAULT_MODEL,
        Project::Never,
        "id of `caro model list`, GGUF file, openai:URL#NAME, anthropic:NAME",
    ),
    key("device", "CARO_DEVICE", AUTO, Project::Never, "where to compute: auto, cpu, cuda, metal"),
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
        "on, off: may commands be tried in a sandbox to choose among them",
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
    // A cloned project must not take the net away, nor make it hold less.
    key("undo", "CARO_UNDO", "on", Project::Never, "on, off: is what a command changes kept first, for `caro undo`"),
    key("undo_copies", "CARO_UNDO_COPIES", "1G", Project::Never, "bytes that undo copies for one command at most"),
    key("undo_total", "CARO_UNDO_TOTAL", "10G", Project::Never, "bytes that all of undo holds at most"),
    key("undo_days", "CARO_UNDO_DAYS", "14", Project::Never, "days after which what undo keeps goes"),
    // A cloned project must not leave processes behind, nor hold the model in one.
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
    // What a person said and what was learnt of them goes where they say, and nowhere else.
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
        "server of memory = redis: redis://[:PASSWORD@]HOST[/N]",
    ),
    // A cloned project must not have anybody watched.
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
    // A cloned project must not have anybody's conversations deleted.
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
    // A cloned project must not open this machine to anybody.
    key("serve.host", "CARO_SERVE_HOST", "127.0.0.1", Project::Never, "address that `caro serve` listens at"),
    key("serve.port", "CARO_SERVE_PORT", "8000", Project::Never, "its port; 0 takes one that is free"),
    key(
        "serve.timeout",
        "CARO_SERVE_TIMEOUT",
        "300",
        Project::Never,
        "seconds that an answer of it may take; 0 for any",
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

/// Where a value comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// Built in.
    Default,
    /// A file, and the line in it.
    File(PathBuf, usize),
    /// A variable.
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
    /// What is to be told of the files.
    warnings: Vec<String>,
}

/// A setting with its value, as a file has it.
pub(super) type Line = (&'static Key, String, Origin);

/// The flags that were given, as a layer of settings.
pub fn given(flags: &[(&'static str, &Option<String>)]) -> Vec<(&'static str, String)> {
    flags.iter().filter_map(|&(key, value)| Some((key, value.clone()?))).collect()
}

impl Config {
    /// Reads all layers; the project is looked for from `cwd` upwards, and `flags` are setting names with values. What is
    /// wrong in the user's own file is an error; of a project's, which may be a newer program's, it is a warning.
    ///
    /// # Errors
    /// If the user's file is unreadable, no TOML, or names what is no setting; if a variable is no text.
    pub fn load(dirs: &Dirs, env: &Env, cwd: Option<&Path>, flags: &[(&'static str, String)]) -> Result<Self, Failure> {
        let mut config = Self::defaults();
        if let Some(file) = &dirs.config_file {
            for (key, value, origin) in read(file)? {
                config.set(key, value, origin);
            }
            config.warnings.extend(writable(file));
        }
        let project = match cwd.and_then(project_file) {
            // The home folder's own dotfile would be both; the user's file has been read.
            Some(file) if dirs.config_file.as_ref() != Some(&file) => {
                let (lines, warnings) = read_project(&file);
                config.warnings.extend(warnings.into_iter().chain(writable(&file)));
                lines
            }
            _ => Vec::new(),
        };
        for (key, value, origin) in project.iter().filter(|(key, ..)| key.project == Project::Sets) {
            config.set(key, value.clone(), origin.clone());
        }
        for key in &KEYS {
            if let Some(value) = env.get(key.env) {
                let value = value.to_str().ok_or_else(|| Failure::usage(format!("{} is not valid UTF-8", key.env)))?;
                config.set(key, value.to_string(), Origin::Env(key.env));
            }
        }
        for (name, value) in flags {
            if let Some(key) = KEYS.iter().find(|k| k.name == *name) {
                config.set(
                    key,
                    value.clone(),
                    Origin::Flag(format!("--{}", name.trim_start_matches("serve.").replace('_', "-"))),
                );
            }
        }
        // What a project makes stricter holds against every other layer.
        for (key, value, origin) in project.into_iter().filter(|(key, ..)| key.project == Project::Tightens) {
            let level = |v: &str| one_of(&LEVELS, v);
            if level(config.text(key.name)).is_ok_and(|now| level(&value).is_ok_and(|wanted| wanted < now)) {
                config.set(key, value, origin);
            }
        }
        Ok(config)
    }

    /// What holds where nothing is said.
    pub(super) fn defaults() -> Self {
        let values = KEYS.iter().map(|k| (k.name, (k.default.to_string(), Origin::Default))).collect();
        Self { values, warnings: Vec::new() }
    }

    /// What is to be told of the files: lines that are passed over, and who else may write them.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// One value, and what holds where nothing is said.
    pub(super) fn of(key: &Key, value: &str, origin: Origin) -> Self {
        let mut alone = Self::defaults();
        alone.set(key, value.into(), origin);
        alone
    }

    fn set(&mut self, key: &Key, value: String, origin: Origin) {
        self.values.insert(key.name, (value, origin));
    }

    /// The value of a setting as it was written; empty for what is no setting.
    pub fn text(&self, name: &str) -> &str {
        self.values.get(name).map_or("", |(value, _)| value)
    }

    /// The same to be shown: without the password of a URL.
    pub(super) fn shown(&self, name: &str) -> String {
        shown(self.text(name))
    }

    /// Where that value comes from.
    pub fn origin(&self, name: &str) -> &Origin {
        self.values.get(name).map_or(&Origin::Default, |(_, origin)| origin)
    }

    /// The value in its type; `read` says what it must be.
    ///
    /// # Errors
    /// What the value must be, and where the wrong one stands.
    pub fn parse<T>(&self, name: &str, read: impl Fn(&str) -> Result<T, String>) -> Result<T, Failure> {
        let text = self.text(name);
        read(text).map_err(|wanted| {
            Failure::usage(format!("{}: `{name}` must be {wanted}, and not `{text}`", self.origin(name)))
                .hint("`caro config --origin` shows every setting and where it comes from")
        })
    }
}

/// A value without the password of a URL.
pub(super) fn shown(text: &str) -> String {
    let (url, query) = text.split_once('?').map_or((text, None), |(url, query)| (url, Some(query)));
    let url = match url.split_once("://").and_then(|(scheme, rest)| Some((scheme, rest.rsplit_once('@')?.1))) {
        Some((scheme, host)) => format!("{scheme}://***@{host}"),
        None => url.to_owned(),
    };
    match query {
        Some(query) if query.contains("pass=") => format!("{url}?***"),
        Some(query) => format!("{url}?{query}"),
        None => url,
    }
}

/// The nearest project file at or above `cwd`, not above the top of its repository. What another person has put there, say
/// in `/tmp`, is none.
pub(super) fn project_file(cwd: &Path) -> Option<PathBuf> {
    for dir in cwd.ancestors() {
        let file = dir.join(PROJECT_FILE);
        if std::fs::metadata(&file).is_ok_and(|meta| meta.is_file() && is_ours(&meta)) {
            return Some(file);
        }
        if dir.join(".git").exists() {
            break;
        }
    }
    None
}

/// True for a file of this user's or of the system's.
#[cfg(unix)]
fn is_ours(meta: &std::fs::Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;
    [0, rustix::process::geteuid().as_raw()].contains(&meta.uid())
}

#[cfg(not(unix))]
fn is_ours(_: &std::fs::Metadata) -> bool {
    true
}

/// What is to be told of a file that others can write: what caro does here would be up to them.
#[cfg(unix)]
fn writable(file: &Path) -> Option<String> {
    use std::os::unix::fs::MetadataExt;
    let meta = std::fs::metadata(file).ok()?;
    let name = file.display();
    if !meta.is_file() {
        return None;
    }
    if !is_ours(&meta) {
        return Some(format!("{name} belongs to user {}, who decides by it what caro does", meta.uid()));
    }
    let mode = meta.mode() & 0o777;
    (mode & 0o022 != 0).then(|| format!("others may write {name} (mode {mode:o}): `chmod go-w` keeps it yours"))
}

#[cfg(not(unix))]
fn writable(_: &Path) -> Option<String> {
    None
}

/// The settings in a file, each with its line. A file that does not exist holds none.
fn read(file: &Path) -> Result<Vec<Line>, Failure> {
    let mut lines = Vec::new();
    for line in parse(&text(file)?, file, 0)? {
        lines.push(line?);
    }
    Ok(lines)
}

/// The text of a file; nothing where there is none.
pub(super) fn text(file: &Path) -> Result<String, Failure> {
    let name = file.display();
    match files::read_text(file, MAX_FILE) {
        Ok(text) => Ok(text),
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(String::new()),
        Err(e) => Err(Failure::usage(format!("{name} cannot be read: {e}")).hint(match e.kind() {
            ErrorKind::InvalidData => "save it as UTF-8, or take it away",
            ErrorKind::FileTooLarge => "no configuration is that long: name another file, or take it away",
            _ => "mend its permissions, or take it away",
        })),
    }
}

/// The settings of a project's file that can be used here, and what is to be told of the others.
fn read_project(file: &Path) -> (Vec<Line>, Vec<String>) {
    let (mut lines, mut warnings) = (Vec::new(), Vec::new());
    let mut pass_over = |failure: Failure| warnings.push(format!("{}; it is passed over", failure.message));
    let found = match text(file) {
        Ok(text) => parse(&text, file, 0).unwrap_or_else(|_| line_by_line(&text, file)),
        Err(failure) => vec![Err(failure)],
    };
    for line in found {
        match line.and_then(|line| admitted(line, &mut pass_over)) {
            Ok(line) => lines.push(line),
            Err(failure) => pass_over(failure),
        }
    }
    (lines, warnings)
}

/// A line of a project's file, if a project may say so and this program knows what it means. What it does not know of how
/// strict to be is the strictest.
fn admitted((key, value, origin): Line, tell: &mut impl FnMut(Failure)) -> Result<Line, Failure> {
    if key.project == Project::Never {
        return Err(Failure::usage(format!("{origin}: a project may not set `{}`", key.name)));
    }
    match Settings::of(&Config::of(key, &value, origin.clone())) {
        Err(failure) if key.project == Project::Tightens => {
            tell(Failure::usage(format!("{}, so it is taken for `{}`", failure.message, LEVELS[0].0)));
            Ok((key, LEVELS[0].0.to_owned(), origin))
        }
        Err(failure) => Err(failure),
        Ok(_) => Ok((key, value, origin)),
    }
}

/// The same of a text that is no TOML as a whole: each line for itself, up to the first table.
fn line_by_line(text: &str, file: &Path) -> Vec<Result<Line, Failure>> {
    let lines = text.lines().enumerate().take_while(|(_, line)| !line.trim_start().starts_with('['));
    let of = |(at, line): (usize, &str)| match parse(line, file, at) {
        Ok(found) => found,
        Err(failure) => vec![Err(failure)],
    };
    lines.flat_map(of).collect()
}

/// The settings in a text that begins behind so many lines of its file: those that can be read, and what is wrong with
/// others.
pub(super) fn parse(text: &str, file: &Path, above: usize) -> Result<Vec<Result<Line, Failure>>, Failure> {
    let line_of = |offset: usize| above + text.bytes().take(offset).filter(|b| *b == b'\n').count() + 1;
    let name = file.display();
    let table = DeTable::parse(text).map_err(|e| {
        let line = e.span().map_or(above + 1, |s| line_of(s.start));
        Failure::usage(format!("{name}:{line}: {}", e.message())).hint(FORM)
    })?;
    let entry = |key: &str, line: usize, value: &DeValue<'_>| -> Result<Line, Failure> {
        let Some(known) = KEYS.iter().find(|k| k.name == key) else {
            return Err(unknown(key, matches!(value, DeValue::Table(_)), &format!("{name}:{line}")));
        };
        let value = match value {
            DeValue::String(s) => s.to_string(),
            DeValue::Integer(i) => i.to_string(),
            DeValue::Float(f) => f.to_string(),
            DeValue::Boolean(b) if SWITCHES.contains(&key) => String::from(if *b { "on" } else { "off" }),
            other => {
                return Err(Failure::usage(format!("{name}:{line}: `{key}` takes no {}", other.type_str()))
                    .hint(format!("write it like: {key} = \"{}\"", known.default)));
            }
        };
        Ok((known, value, Origin::File(file.to_owned(), line)))
    };
    let has_table = |name: &str| KEYS.iter().any(|k| k.name.split_once('.').is_some_and(|(table, _)| table == name));
    let mut found = Vec::new();
    for (key, value) in table.get_ref().iter() {
        let name: &str = key.get_ref();
        match value.get_ref() {
            DeValue::Table(inner) if has_table(name) => found.extend(inner.iter().map(|(inner, value)| {
                entry(&format!("{name}.{}", inner.get_ref()), line_of(inner.span().start), value.get_ref())
            })),
            value => found.push(entry(name, line_of(key.span().start), value)),
        }
    }
    Ok(found)
}

/// The failure of a name that is none of a setting, at its place.
pub(super) fn unknown(name: &str, is_table: bool, place: &str) -> Failure {
    if is_table {
        return Failure::usage(format!("{place}: `{name}` is a table, and settings stand in none"))
            .hint("take the line of the table out; `caro config` shows every setting");
    }
    let meant = nearest(name).map_or(String::new(), |near| format!("did you mean `{near}`? "));
    Failure::usage(format!("{place}: there is no setting `{name}`"))
        .hint(format!("{meant}`caro config` shows them all"))
}

/// The setting whose name is fewest edits away, and not too many.
fn nearest(name: &str) -> Option<&'static str> {
    let name = name.replace('-', "_");
    let most = if name.len() < 5 { 1 } else { 2 };
    let near = KEYS.iter().map(|k| (strsim::levenshtein(&name, k.name), k.name)).min_by_key(|(edits, _)| *edits);
    near.filter(|(edits, _)| *edits <= most).map(|(_, near)| near)
}

/// Arguments of `caro config`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Show where each value comes from
    #[arg(long, global = true)]
    origin: bool,
    /// Print a JSON document
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    what: Option<What>,
}

#[derive(Debug, clap::Subcommand)]
enum What {
    /// Print the value of one setting
    Get {
        /// Its name
        #[arg(value_parser = clap::builder::PossibleValuesParser::new(KEYS.iter().map(|k| k.name)))]
        key: String,
    },
    /// Set a setting in your file
    Set {
        /// Its name
        #[arg(value_parser = clap::builder::PossibleValuesParser::new(KEYS.iter().map(|k| k.name)))]
        key: String,
        /// Its new value
        #[arg(allow_hyphen_values = true)]
        value: String,
        /// In the project's file
        #[arg(long)]
        project: bool,
    },
    /// Take a setting out of your file
    Unset {
        /// Its name
        #[arg(value_parser = clap::builder::PossibleValuesParser::new(KEYS.iter().map(|k| k.name)))]
        key: String,
        /// Out of the project's file
        #[arg(long)]
        project: bool,
    },
    /// Open your file in $VISUAL or $EDITOR, and write it if it can be read then
    Edit {
        /// The project's file
        #[arg(long)]
        project: bool,
    },
    /// Print where the user's configuration file is, whether it exists or not
    Path,
}

/// Shows the settings in force, or changes a file.
///
/// # Errors
/// If a layer is broken, a file cannot be changed, or stdout cannot be written.
pub fn run(args: &Args, cx: &Cx) -> Outcome {
    match &args.what {
        Some(What::Path) => {
            let path = configure::own(cx)?;
            match args.json {
                true => cx.ui.document(&path)?,
                false => cx.ui.data(&path.display().to_string())?,
            }
            return Ok(Exit::Success);
        }
        Some(What::Set { key, value, project }) => return configure::set(key, value, *project, cx),
        Some(What::Unset { key, project }) => return configure::unset(key, *project, cx),
        Some(What::Edit { project }) => return configure::edit(*project, cx),
        Some(What::Get { .. }) | None => {}
    }
    let config = cx.config(&[])?;
    // a value that is wrong is shown as well: its error sends people here to see where it comes from
    let sound = Settings::of(&config).and_then(|_| super::settings::serve(&config)).map(|_| Exit::Success);
    let with_origin =
        |name: &str, value: &str| serde_json::json!({ "value": value, "origin": config.origin(name).to_string() });
    if let Some(What::Get { key }) = &args.what {
        match (args.json, args.origin) {
            (true, _) => cx.ui.document(&with_origin(key, config.text(key)))?,
            (false, true) => cx.ui.data(&config.origin(key).to_string())?,
            (false, false) => cx.ui.data(config.text(key))?,
        }
    } else if args.json {
        let all: serde_json::Map<_, _> =
            KEYS.iter().map(|k| (k.name.to_string(), with_origin(k.name, &config.shown(k.name)))).collect();
        cx.ui.document(&all)?;
    } else {
        for key in &KEYS {
            let value = toml::Value::String(config.shown(key.name));
            let note = if args.origin { config.origin(key.name).to_string() } else { key.what.to_string() };
            let setting = format!("{} = {value}", key.name);
            cx.ui.line(&format!("{setting:<38} {}", cx.ui.paint(super::ui::Role::Dim, &format!("# {note}"))))?;
        }
    }
    sound
}

#[cfg(test)]
#[path = "config_tests.rs"]
mod tests;
