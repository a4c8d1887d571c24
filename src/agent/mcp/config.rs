//! Which servers there are: files in the shape that other programs have too, `{"mcpServers": {NAME: {...}}}`.
//!
//! | key | for | what |
//! | --- | --- | --- |
//! | `command`, `args`, `env`, `cwd` | stdio | the program that is started, and what it is given |
//! | `url`, `headers`, `type` | streamable HTTP | where it is (`type` `http` or `streamable-http`, may be left out) |
//! | `timeout` | both | seconds that a call may take, 60 if not given |
//! | `disabled` | both | true: not used |
//! | `autoApprove` | both | names of tools that run unasked, if the server says that they only read |
//!
//! `${NAME}` and `${NAME:-DEFAULT}` in values stand for variables of the person's environment. Other keys are left alone:
//! other programs read the same files.

use serde::Deserialize;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long a call may take if the file says nothing.
const TIMEOUT: Duration = Duration::from_secs(60);
/// The largest file that is read, bytes.
const LARGEST: u64 = 1 << 20;

/// Where a file is from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// The person's own configuration.
    User,
    /// The project's folder: somebody else may have written it.
    Project,
}

/// A server that may be used.
#[derive(Clone, PartialEq, Eq)]
pub struct Config {
    /// Its name in the file.
    pub name: String,
    /// How it is reached.
    pub reach: Reach,
    /// How long a call may take.
    pub timeout: Duration,
    /// True if it is not to be used.
    pub disabled: bool,
    /// Tools that the person lets run unasked. Of a project's file this does not count.
    pub approved: Vec<String>,
    /// Where it is from.
    pub origin: Origin,
}

/// How a server is reached.
#[derive(Clone, PartialEq, Eq)]
pub enum Reach {
    /// A program that is started, and talked with over its standard streams.
    Stdio {
        /// The program: a name on PATH, or a path.
        command: String,
        /// Its arguments.
        args: Vec<String>,
        /// Variables on top of the few that every child gets.
        env: Vec<(String, String)>,
        /// Where it runs; the working folder if not given.
        cwd: Option<PathBuf>,
    },
    /// An address.
    Http {
        /// `http://` or `https://`.
        url: String,
        /// Sent with every request.
        headers: Vec<(String, String)>,
    },
}

impl Config {
    /// What is started or asked, for a person. Values of variables and headers are not shown.
    pub fn shown(&self) -> String {
        match &self.reach {
            Reach::Stdio { command, args, env, .. } => {
                let names: String = env.iter().map(|(name, _)| format!("{name}=... ")).collect();
                let args: String = args.iter().map(|a| format!(" {a}")).collect();
                format!("{names}{command}{args}")
            }
            Reach::Http { url, .. } => url.clone(),
        }
    }

    /// Values that no event may hold: what is given in variables and headers.
    pub fn secrets(&self) -> impl Iterator<Item = String> + '_ {
        let (Reach::Stdio { env: pairs, .. } | Reach::Http { headers: pairs, .. }) = &self.reach;
        // `Bearer abc`: the word before is no secret, and the server may echo the rest alone
        pairs
            .iter()
            .flat_map(|(_, value)| [value.as_str(), value.rsplit(' ').next().unwrap_or_default()])
            .map(str::to_owned)
    }
}

/// Why a file, or a server of it, cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("could not read {path}: {reason}")]
    Read {
        /// The file.
        path: String,
        /// Why.
        reason: String,
    },
    /// It is no such file.
    #[error("{path} is no list of MCP servers: {reason}")]
    Form {
        /// The file.
        path: String,
        /// Why.
        reason: String,
    },
    /// One server is wrong; the others are used.
    #[error("the MCP server `{server}` of {path} is left out: {reason}")]
    Server {
        /// The server.
        server: String,
        /// The file.
        path: String,
        /// Why.
        reason: String,
    },
}

impl ConfigError {
    /// What to do next.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Read { .. } => "check that the file may be read and is not too large",
            Self::Form { .. } => {
                r#"it looks like {"mcpServers": {"time": {"command": "uvx", "args": ["mcp-server-time"]}}}"#
            }
            Self::Server { .. } => "give it a `command` (with `args`, `env`) or a `url` (with `headers`)",
        }
    }
}

/// What a server's entry may say.
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

/// The text of a file of servers; `None` where there is none.
///
/// # Errors
/// If it cannot be read, is too large, or no text.
pub fn text(path: &Path) -> Result<Option<String>, ConfigError> {
    let failed = |reason: String| ConfigError::Read { path: path.display().to_string(), reason };
    match std::fs::metadata(path) {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(failed(e.to_string())),
        Ok(meta) if meta.len() > LARGEST => return Err(failed(format!("it has {} bytes", meta.len()))),
        Ok(_) => {}
    }
    std::fs::read_to_string(path).map(Some).map_err(|e| failed(e.to_string()))
}

/// The servers of a file, and what is wrong with others. `variable` is asked for what `${NAME}` stands for.
///
/// # Errors
/// If it is no such file at all.
pub fn parse(
    text: &str,
    path: &Path,
    origin: Origin,
    variable: &dyn Fn(&str) -> Option<String>,
) -> Result<(Vec<Config>, Vec<ConfigError>), ConfigError> {
    let form = |reason: String| ConfigError::Form { path: path.display().to_string(), reason };
    let text = text.trim_start_matches('\u{feff}');
    let document: Value = serde_json::from_str(text).map_err(|e| form(e.to_string()))?;
    let servers: &Map<String, Value> = document
        .get("mcpServers")
        .and_then(Value::as_object)
        .ok_or_else(|| form("it has no object `mcpServers`".into()))?;
    let (mut all, mut wrong) = (Vec::new(), Vec::new());
    for (name, entry) in servers {
        match server(name, entry, origin, variable) {
            Ok(config) => all.push(config),
            Err(reason) => {
                wrong.push(ConfigError::Server { server: name.clone(), path: path.display().to_string(), reason });
            }
        }
    }
    Ok((all, wrong))
}

fn server(
    name: &str,
    entry: &Value,
    origin: Origin,
    variable: &dyn Fn(&str) -> Option<String>,
) -> Result<Config, String> {
    if name.trim().is_empty() || name.chars().count() > 64 || name.contains(char::is_control) {
        return Err("its name is empty, longer than 64 characters or not printable".into());
    }
    let entry = Entry::deserialize(entry).map_err(|e| e.to_string())?;
    let full = |text: &String| expand(text, variable);
    let pairs = |map: &BTreeMap<String, String>| -> Result<Vec<(String, String)>, String> {
        map.iter().map(|(name, value)| Ok((name.clone(), full(value)?))).collect()
    };
    let kind = entry.kind.as_deref();
    let reach = match (&entry.command, &entry.url) {
        (Some(command), None) if matches!(kind, None | Some("stdio")) => {
            let args = entry.args.iter().map(full).collect::<Result<_, _>>()?;
            Reach::Stdio { command: full(command)?, args, env: pairs(&entry.env)?, cwd: entry.cwd }
        }
        (None, Some(url)) if matches!(kind, None | Some("http" | "streamable-http" | "streamableHttp" | "sse")) => {
            let url = full(url)?;
            if !url.starts_with("http://") && !url.starts_with("https://") {
                return Err(format!("`{url}` is no http:// or https:// address"));
            }
            Reach::Http { url, headers: pairs(&entry.headers)? }
        }
        (Some(_), Some(_)) => return Err("it has both a `command` and a `url`".into()),
        (None, None) => return Err("it has neither a `command` nor a `url`".into()),
        _ => return Err(format!("its `type` {} does not fit", kind.unwrap_or_default())),
    };
    let timeout = match entry.timeout {
        None => TIMEOUT,
        Some(seconds) if (0.1..=3600.0).contains(&seconds) => Duration::from_secs_f64(seconds),
        Some(other) => return Err(format!("its `timeout` {other} is not in seconds between 0.1 and 3600")),
    };
    let approved = if origin == Origin::User { entry.auto_approve } else { Vec::new() };
    Ok(Config { name: name.into(), reach, timeout, disabled: entry.disabled, approved, origin })
}

/// The text with its variables filled in.
fn expand(text: &str, variable: &dyn Fn(&str) -> Option<String>) -> Result<String, String> {
    let mut full = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("${") {
        let (before, after) = (&rest[..at], &rest[at + 2..]);
        let (inside, end) = after.split_once('}').ok_or(format!("`{text}` has a ${{ without its }}"))?;
        let (name, default) = match inside.split_once(":-") {
            Some((name, default)) => (name, Some(default)),
            None => (inside, None),
        };
        let value = variable(name).filter(|v| !v.is_empty()).or_else(|| default.map(str::to_owned));
        full.push_str(before);
        full.push_str(&value.ok_or(format!("the variable {name} is not set"))?);
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
        let (all, wrong) = parse(text, Path::new("mcp.json"), origin, &variable).unwrap();
        (all, wrong.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn both_kinds_of_servers_are_read_and_variables_filled_in() {
        let text = r#"{"mcpServers": {
            "files": {"command": "npx", "args": ["-y", "x", "${DIR:-.}"], "env": {"TOKEN": "${KEY}"}, "timeout": 5,
                      "autoApprove": ["read"], "unknownToUs": {"a": 1}},
            "web": {"type": "http", "url": "https://host/mcp", "headers": {"Authorization": "Bearer ${KEY}"}},
            "off": {"command": "x", "disabled": true}}, "other": 1}"#;
        let (all, wrong) = read(text, Origin::User);
        assert!(wrong.is_empty(), "{wrong:?}");
        assert_eq!(all.iter().map(|c| c.name.as_str()).collect::<Vec<_>>(), ["files", "web", "off"]);
        let Reach::Stdio { args, env, .. } = &all[0].reach else { panic!() };
        assert_eq!((args[2].as_str(), env[0].1.as_str()), (".", "k-123456"));
        assert_eq!((all[0].timeout, all[1].timeout), (Duration::from_secs(5), TIMEOUT));
        assert_eq!((all[0].approved.len(), all[2].disabled), (1, true));
        assert_eq!(all[0].shown(), "TOKEN=... npx -y x .");
        assert!(all.iter().all(|c| !c.shown().contains("k-123456")));
        assert!(all[1].secrets().any(|s| s == "k-123456"), "without its `Bearer`");
        // what a project says about its own tools is no permission
        assert_eq!(read(text, Origin::Project).0[0].approved, [""; 0]);
    }

    #[test]
    fn one_wrong_server_costs_no_other() {
        let text = r#"{"mcpServers": {
            "none": {}, "both": {"command": "a", "url": "http://b"}, "ftp": {"url": "ftp://b"}, "t": {"command": "a", "timeout": 60000},
            "v": {"command": "${NOT_SET}"}, "o": {"command": "a${"}, "n": 5, "s": {"command": "a", "type": "http"},
            "": {"command": "a"}, "good": {"command": "a"}}}"#;
        let (all, wrong) = read(text, Origin::User);
        assert_eq!(all.iter().map(|c| c.name.as_str()).collect::<Vec<_>>(), ["good"]);
        for why in [
            "neither",
            "both",
            "no http://",
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
    fn what_is_no_such_file_says_how_one_looks() {
        for text in ["", "{", "[]", r#"{"servers": {}}"#, r#"{"mcpServers": []}"#] {
            let Err(error) = parse(text, Path::new("x.json"), Origin::User, &|_| None) else {
                panic!("{text} was read")
            };
            assert!(error.to_string().contains("x.json is no list") && error.hint().contains("mcpServers"), "{error}");
        }
        assert!(text(Path::new("/nowhere/mcp.json")).unwrap().is_none());
    }
}
