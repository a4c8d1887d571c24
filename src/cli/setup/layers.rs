//! Loads the layers of configuration, each overriding those before: defaults, the user's file, the project's file,
//! `CARO_*` variables, flags.
//!
//! A project's file may come with a cloned repository. So it may set how commands are written there, and make `-x`
//! stricter, but it can neither choose a model (and with it a server) nor loosen a setting.

use super::config::{Config, KEYS, Line, Origin, PROJECT_FILE, Project, SWITCHES, unknown};
use super::names::{LEVELS, one_of};
use crate::{Dirs, Env, Failure, Settings};
use caro_base::files;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use toml::de::{DeTable, DeValue};

/// Most bytes of a configuration file.
const MAX_FILE: u64 = 64 * 1024;

/// The hint on the form of a line.
const FORM: &str = "text stands in quotes, as in: rehearse = \"off\"";

impl Config {
    /// Loads all layers; the project's file is searched for from `cwd` upwards, and `flags` are names of settings
    /// with values. A fault in the user's own file is an error; in a project's, which may be for a newer program, it
    /// is a warning.
    ///
    /// # Errors
    /// If the user's file cannot be read, is not TOML or has an unknown setting, or a variable is not UTF-8.
    pub fn load(dirs: &Dirs, env: &Env, cwd: Option<&Path>, flags: &[(&'static str, String)]) -> Result<Self, Failure> {
        let mut config = Self::defaults();
        if let Some(file) = &dirs.config_file {
            for (key, value, origin) in read(file)? {
                config.set(key, value, origin);
            }
            config.warnings.extend(writable(file));
        }
        let project = match cwd.and_then(project_file) {
            // the user's file may be found as a project's file, too, and has been read
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
        // a stricter value of a project overrides every other layer
        for (key, value, origin) in project.into_iter().filter(|(key, ..)| key.project == Project::Tightens) {
            let level = |v: &str| one_of(&LEVELS, v);
            if level(config.text(key.name)).is_ok_and(|now| level(&value).is_ok_and(|wanted| wanted < now)) {
                config.set(key, value, origin);
            }
        }
        Ok(config)
    }
}

/// Finds the nearest project file at or above `cwd`, up to the top of its repository. A file of another user, say in
/// `/tmp`, is ignored.
pub(crate) fn project_file(cwd: &Path) -> Option<PathBuf> {
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

/// True if a file belongs to this user or to root.
#[cfg(unix)]
fn is_ours(meta: &std::fs::Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;
    [0, rustix::process::geteuid().as_raw()].contains(&meta.uid())
}

#[cfg(not(unix))]
fn is_ours(_: &std::fs::Metadata) -> bool {
    true
}

/// Returns a warning if others own or may write a file: they could change what caro does.
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

/// Reads the settings in a file, each with its line; none if the file does not exist.
fn read(file: &Path) -> Result<Vec<Line>, Failure> {
    let mut lines = Vec::new();
    for line in parse(&text(file)?, file, 0)? {
        lines.push(line?);
    }
    Ok(lines)
}

/// Reads the text of a file; empty if it does not exist.
pub(crate) fn text(file: &Path) -> Result<String, Failure> {
    let name = file.display();
    match files::read_text(file, MAX_FILE) {
        Ok(text) => Ok(text),
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(String::new()),
        Err(e) => Err(Failure::usage(format!("{name} cannot be read: {e}")).hint(match e.kind() {
            ErrorKind::InvalidData => "save it as UTF-8, or remove it",
            ErrorKind::FileTooLarge => "no configuration is that long: name another file, or remove it",
            _ => "correct its permissions, or remove it",
        })),
    }
}

/// Reads the settings of a project's file that can be used here, and the warnings about the others.
fn read_project(file: &Path) -> (Vec<Line>, Vec<String>) {
    let (mut lines, mut warnings) = (Vec::new(), Vec::new());
    let mut ignore = |failure: Failure| warnings.push(format!("{}; it is passed over", failure.message));
    let found = match text(file) {
        Ok(text) => parse(&text, file, 0).unwrap_or_else(|_| parse_lines(&text, file)),
        Err(failure) => vec![Err(failure)],
    };
    for line in found {
        match line.and_then(|line| admit(line, &mut ignore)) {
            Ok(line) => lines.push(line),
            Err(failure) => ignore(failure),
        }
    }
    (lines, warnings)
}

/// Returns a line of a project's file if a project may set it and its value is valid. An invalid value that could
/// make a setting stricter counts as the strictest.
fn admit((key, value, origin): Line, warn: &mut impl FnMut(Failure)) -> Result<Line, Failure> {
    if key.project == Project::Never {
        return Err(Failure::usage(format!("{origin}: a project may not set `{}`", key.name)));
    }
    match Settings::of(&Config::of(key, &value, origin.clone())) {
        Err(failure) if key.project == Project::Tightens => {
            warn(Failure::usage(format!("{}, so it is taken for `{}`", failure.message, LEVELS[0].0)));
            Ok((key, LEVELS[0].0.to_owned(), origin))
        }
        Err(failure) => Err(failure),
        Ok(_) => Ok((key, value, origin)),
    }
}

/// Parses a text that is not TOML as a whole line by line, up to the first table.
fn parse_lines(text: &str, file: &Path) -> Vec<Result<Line, Failure>> {
    let lines = text.lines().enumerate().take_while(|(_, line)| !line.trim_start().starts_with('['));
    let parse_line = |(at, line): (usize, &str)| match parse(line, file, at) {
        Ok(found) => found,
        Err(failure) => vec![Err(failure)],
    };
    lines.flat_map(parse_line).collect()
}

/// Parses the settings in a text that begins after `above` lines of its file: each is a line, or the fault in it.
pub(crate) fn parse(text: &str, file: &Path, above: usize) -> Result<Vec<Result<Line, Failure>>, Failure> {
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

#[cfg(test)]
#[path = "layers_tests.rs"]
mod tests;
