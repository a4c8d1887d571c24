//! Changes the settings files. [`config`] has the values in force; [`document`] edits the text of a file.

pub mod document;

use super::config::{self, KEYS, Key, Origin, PROJECT_FILE, Project, SWITCHES};
use super::settings::{AdapterUse, serve};
use super::{download, layers};
use crate::term::ui;
use crate::{Config, Cx, Exit, Failure, Outcome, Settings, env};
use caro_base::files::{self, Access};
use caro_model::fetch::{self, ModelSource};
use std::fs::File;
use std::path::{Path, PathBuf};

/// A settings file to be changed.
pub struct Target {
    /// Its path.
    pub path: PathBuf,
    /// Its present text.
    pub text: String,
    is_project: bool,
}

impl Target {
    /// Opens the user's own file, or the project's.
    ///
    /// # Errors
    /// If there is no folder for it, or it cannot be read.
    pub fn open(is_project: bool, cx: &Cx) -> Result<Self, Failure> {
        let path = if is_project { project(cx)? } else { own(cx)? };
        // a symbolic link, as into a folder of dotfiles, is kept
        let path = path.canonicalize().unwrap_or(path);
        Ok(Self { text: layers::text(&path)?, path, is_project })
    }

    /// Writes an edited text unless the file changed since it was opened. Returns true if it is written.
    ///
    /// # Errors
    /// If the file cannot be read or written.
    pub fn write_edited(&self, text: &str, cx: &Cx) -> Result<bool, Failure> {
        // an editor is open for minutes: the lock is not held so long, but from the comparison to the end
        let _lock = lock(cx);
        self.write_if_unchanged(text)
    }

    /// Writes a text unless the file changed since it was opened. Returns true if it is written.
    fn write_if_unchanged(&self, text: &str) -> Result<bool, Failure> {
        if layers::text(&self.path)? != self.text {
            return Ok(false);
        }
        self.write(text)?;
        Ok(true)
    }

    /// Writes the file atomically, with the permissions that it had.
    fn write(&self, text: &str) -> Result<(), Failure> {
        let access = match self.path.metadata() {
            Ok(meta) => Access::Like(meta.permissions()),
            // a project's file is for all who work on it; the user's own may hold the password of a server
            Err(_) if self.is_project => Access::Umask,
            Err(_) => Access::Private,
        };
        files::replace(&self.path, text.as_bytes(), access).map_err(|e| {
            Failure::usage(format!("{} cannot be written: {e}", self.path.display()))
                .hint("have the file and its folder be writable; it is as it was")
        })
    }

    /// The failure of a text that cannot be changed, with the line if it is known.
    fn unchangeable(&self, why: &document::Unchangeable) -> Failure {
        let failure = match layers::parse(&self.text, &self.path, 0) {
            Err(failure) => failure,
            Ok(_) => Failure::usage(format!("{}: {why}", self.path.display())),
        };
        let project = if self.is_project { " --project" } else { "" };
        let hint = failure.hint.as_deref().map_or(String::new(), |hint| format!("; {hint}"));
        Failure { hint: Some(format!("`caro config edit{project}` opens it{hint}")), ..failure }
    }
}

/// The path of the user's own file.
///
/// # Errors
/// If there is no folder for it.
pub fn own(cx: &Cx) -> Result<PathBuf, Failure> {
    cx.dirs.config_file.clone().ok_or_else(|| {
        Failure::usage("there is no configuration file, because this user has no home folder")
            .hint(format!("set {} to a file", env::CONFIG_FILE))
    })
}

/// The path of the file of the current project: the nearest one, or a new one at the top of the repository.
fn project(cx: &Cx) -> Result<PathBuf, Failure> {
    let cwd = cx.folder()?;
    let top = || cwd.ancestors().find(|folder| folder.join(".git").exists()).unwrap_or(&cwd).join(PROJECT_FILE);
    Ok(layers::project_file(&cwd).unwrap_or_else(top))
}

/// Sets a setting in a file.
///
/// # Errors
/// If the value is not valid, a project may not set it, or the file cannot be changed.
pub fn set(name: &str, value: &str, is_project: bool, cx: &Cx) -> Outcome {
    let key = key(name)?;
    if is_project && key.project == Project::Never {
        return Err(Failure::usage(format!("a project may not set `{name}`: its file comes with whatever was cloned"))
            .hint(format!("without --project it is set for you: `caro config set {name} ...`")));
    }
    let value = match value {
        "true" if SWITCHES.contains(&key.name) => "on",
        "false" if SWITCHES.contains(&key.name) => "off",
        value => value,
    };
    let value = &check_value(key, value, cx)?;
    let _lock = lock(cx);
    let target = Target::open(is_project, cx)?;
    let text = document::with(&target.text, key, value).map_err(|why| target.unchangeable(&why))?;
    if text != target.text {
        target.write(&text)?;
    }
    cx.ui.note(&format!("{name} = {} in {}", ui::in_line(&config::shown(name, value)), target.path.display()));
    report_value_in_force(key, Some(value), cx);
    Ok(Exit::Success)
}

/// Removes a setting from a file.
///
/// # Errors
/// If the file cannot be changed.
pub fn unset(name: &str, is_project: bool, cx: &Cx) -> Outcome {
    let key = key(name)?;
    let _lock = lock(cx);
    let target = Target::open(is_project, cx)?;
    match document::without(&target.text, key).map_err(|why| target.unchangeable(&why))? {
        None => cx.ui.note(&format!("{} does not set {name}", target.path.display())),
        Some(text) => {
            target.write(&text)?;
            cx.ui.note(&format!("{name} is out of {}", target.path.display()));
            report_value_in_force(key, None, cx);
        }
    }
    Ok(Exit::Success)
}

/// Locks the settings files from before they are read until after they are written: a call that overlaps waits, or it
/// would write what it has read before. `None` without a folder of state that can be written.
fn lock(cx: &Cx) -> Option<File> {
    files::lock(&cx.dirs.state.as_ref()?.join("settings.lock")).ok()
}

fn key(name: &str) -> Result<&'static Key, Failure> {
    KEYS.iter().find(|key| key.name == name).ok_or_else(|| config::unknown(name, false, "caro config"))
}

/// Checks a value of a setting: its form, and that a named model or adapter is known. Returns the value to write: the
/// path of a file is made absolute.
fn check_value(key: &'static Key, value: &str, cx: &Cx) -> Result<String, Failure> {
    let with_hint = |failure: Failure| {
        // the hints of these two list the choices
        let hint = if ["model", "adapter"].contains(&key.name) { failure.hint } else { None };
        Failure { hint: Some(hint.unwrap_or_else(|| format!("{}: {}", key.name, key.what))), ..failure }
    };
    let alone = Config::of(key, value, Origin::Flag("caro config set".into()));
    let settings = Settings::of(&alone).map_err(with_hint)?;
    serve(&alone).map_err(with_hint)?;
    let file = match (key.name, &settings.adapter) {
        ("model", _) => match fetch::resolve(value, &download::settings(cx)?).map_err(|e| with_hint(e.into()))? {
            ModelSource::File(file) => Some(file),
            _ => None,
        },
        ("adapter", AdapterUse::Named(spec)) => {
            let found = fetch::adapter_of_spec(spec, &download::settings(cx)?).map_err(|e| with_hint(e.into()))?;
            // a name is kept: its adapter may be built into the program
            if found.name() == *spec { None } else { Some(found.path().to_owned()) }
        }
        _ => None,
    };
    let absolute = file.and_then(|file| std::path::absolute(file).ok());
    Ok(absolute.map_or_else(|| value.to_owned(), |file| file.to_string_lossy().into_owned()))
}

/// Prints the value in force after a change: a warning if another layer overrides the changed file, or a note after a
/// removal.
fn report_value_in_force(key: &Key, value: Option<&str>, cx: &Cx) {
    let Ok(config) = cx.config(&[]) else { return };
    let (now, origin) = (config.text(key.name), config.origin(key.name));
    let number = |text: &str| text.parse::<f64>().ok();
    match value {
        Some(value) if now != value && (number(now).is_none() || number(now) != number(value)) => {
            cx.ui.warn(&format!("{origin} has more to say here: {} = {}", key.name, config.shown(key.name)));
        }
        None => cx.ui.note(&format!("{} = {} now ({origin})", key.name, config.shown(key.name))),
        Some(_) => {}
    }
}

/// Returns the faults of a text, each with its line; none if the text is valid.
pub fn faults(text: &str, path: &Path, is_project: bool) -> Vec<Failure> {
    let lines = match layers::parse(text, path, 0) {
        Ok(lines) => lines,
        Err(failure) => return vec![failure],
    };
    let check = |(key, value, origin): config::Line| {
        if is_project && key.project == Project::Never {
            return Err(Failure::usage(format!("{origin}: a project may not set `{}`", key.name)));
        }
        let alone = Config::of(key, &value, origin);
        Settings::of(&alone).and_then(|_| serve(&alone)).map(|_| ())
    };
    lines.into_iter().filter_map(|line| line.and_then(check).err()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_fault_of_a_text_is_found_with_its_line() {
        let faults = |text: &str, is_project| -> Vec<String> {
            faults(text, Path::new("c.toml"), is_project).into_iter().map(|failure| failure.message).collect()
        };
        assert_eq!(faults("timeout = 5\n# x\n", false), [""; 0]);
        let found = faults("timeout = \"soon\"\nglow = 1\nrefine = \"always\"\n", false);
        assert_eq!(found.len(), 2, "{found:?}");
        for fault in ["c.toml:1: `timeout` must be", "c.toml:2: there is no setting `glow`"] {
            assert!(found.iter().any(|found| found.starts_with(fault)), "{found:?}");
        }
        assert!(faults("a = [", false)[0].starts_with("c.toml:1: "));
        assert_eq!(faults("model = \"x\"\n", true), ["c.toml:1: a project may not set `model`"]);
        assert_eq!(faults("model = \"x\"\n", false), [""; 0]);
    }

    #[test]
    fn an_edited_text_replaces_only_the_text_that_was_opened() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("c.toml");
        let opened = |text: &str| Target { path: path.clone(), text: text.to_owned(), is_project: false };
        let present = || std::fs::read_to_string(&path).unwrap_or_default();
        // a file that is missing is an empty text
        assert!(opened("").write_if_unchanged("timeout = 9\n").unwrap());
        assert!(!opened("").write_if_unchanged("budget = 1\n").unwrap());
        assert_eq!(present(), "timeout = 9\n");
        assert!(opened("timeout = 9\n").write_if_unchanged("budget = 1\n").unwrap());
        std::fs::remove_file(&path).unwrap();
        assert!(!opened("budget = 1\n").write_if_unchanged("timeout = 9\n").unwrap());
        assert_eq!(present(), "");
    }
}
