//! The layers of configuration, laid over each other: defaults < the user's file < the project's file < `CARO_*` < flags.
//!
//! A project's file comes with whatever was cloned, so it may say how commands are to be written there, may make `-x`
//! stricter, and nothing else: it can neither pick a model (and with it a server) nor loosen anything.

use super::config::{Config, KEYS, Line, Origin, PROJECT_FILE, Project, SWITCHES, unknown};
use super::names::{LEVELS, one_of};
use crate::{Dirs, Env, Failure, Settings};
use caro_base::files;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use toml::de::{DeTable, DeValue};

/// The most bytes a configuration file may have.
const MAX_FILE: u64 = 64 * 1024;

/// How a line of a configuration file looks.
const FORM: &str = "text stands in quotes, as in: rehearse = \"off\"";

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
}

/// The nearest project file at or above `cwd`, not above the top of its repository. What another person has put there, say
/// in `/tmp`, is none.
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

/// The warning of a file that others can write: what caro does here would be up to them.
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
pub(crate) fn text(file: &Path) -> Result<String, Failure> {
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
