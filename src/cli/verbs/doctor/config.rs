//! Checks the settings files and the variables: what cannot be read, what is no setting, what others may write.

use super::finding::Finding;
use crate::env::{self, VARIABLES};
use crate::setup::config::{KEYS, nearest};
use crate::setup::layers;
use crate::setup::settings::serve;
use crate::{Config, Cx, Failure, Settings};
use std::path::PathBuf;

/// The facts about settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Facts {
    /// The user's own file; `None` where there is no place for one.
    pub file: Option<PathBuf>,
    /// True if that file exists.
    pub file_exists: bool,
    /// The project's file, if one applies here.
    pub project: Option<PathBuf>,
    /// The error that stops every verb, or only the server.
    pub broken: Option<Failure>,
    /// The warnings that every call prints.
    pub warnings: Vec<String>,
    /// Variables that begin with `CARO_` but are not read by caro.
    pub unread: Vec<String>,
}

/// Variables that only the code for downloads reads.
const DOWNLOAD_VARIABLES: [&str; 2] = ["CARO_HUB_URL", "CARO_PYTHON"];

/// Reads all layers of settings. If they are broken, the other checks use the defaults and the variables.
///
/// # Errors
/// Never: a test makes sure that the defaults are valid.
pub fn look(cx: &Cx) -> Result<(Facts, Settings), Failure> {
    let loaded = Config::load(&cx.dirs, &cx.env, cx.cwd.as_deref(), &[]);
    let (broken, warnings, settings) = match loaded {
        Ok(config) => {
            let settings = Settings::of(&config);
            let broken = settings.as_ref().err().cloned().or_else(|| serve(&config).err());
            (broken, config.warnings().to_vec(), settings.ok())
        }
        Err(failure) => (Some(failure), Vec::new(), None),
    };
    let file = cx.dirs.config_file.clone();
    let facts = Facts {
        file_exists: file.as_ref().is_some_and(|file| file.exists()),
        project: cx.cwd.as_deref().and_then(layers::project_file).filter(|found| Some(found) != file.as_ref()),
        file,
        broken,
        warnings,
        unread: unread(env::everything().filter_map(|(name, _)| name.into_string().ok())),
    };
    let settings = settings.map_or_else(|| Settings::of_variables(&cx.env), Ok)?;
    Ok((facts, settings))
}

/// The names that begin with `CARO_` but are not read by caro.
fn unread(names: impl Iterator<Item = String>) -> Vec<String> {
    let is_known = |name: &str| {
        VARIABLES.iter().any(|(known, _)| *known == name)
            || KEYS.iter().any(|key| key.env == name)
            || DOWNLOAD_VARIABLES.contains(&name)
    };
    let mut unread: Vec<String> = names.filter(|name| name.starts_with("CARO_") && !is_known(name)).collect();
    unread.sort();
    unread
}

/// The findings about settings.
pub fn findings(facts: &Facts) -> Vec<Finding> {
    const CHECK: &str = "settings";
    let mut all = Vec::new();
    if let Some(failure) = &facts.broken {
        let hint = failure.hint.as_deref().unwrap_or("`caro config edit` opens the file");
        all.push(Finding::fail(CHECK, &failure.message, hint));
    }
    let remedy = |warning: &str| match warning.split_once(": `chmod") {
        Some(_) => "`chmod go-w` on that file",
        None => "correct the line, or remove it",
    };
    all.extend(facts.warnings.iter().map(|warning| Finding::warn(CHECK, warning, remedy(warning))));
    all.extend(facts.unread.iter().map(|name| {
        let near = nearest(name, KEYS.iter().map(|key| key.env));
        let suggestion = near.map_or(String::new(), |env| format!("did you mean {env}? "));
        Finding::warn(
            CHECK,
            format!("{name} is set, and caro reads no such variable"),
            format!("{suggestion}unset {name}"),
        )
    }));
    if all.is_empty() {
        let own = match (&facts.file, facts.file_exists) {
            (Some(file), true) => file.display().to_string(),
            (Some(file), false) => format!("{} is not there: the defaults hold", file.display()),
            (None, _) => "no file: the defaults hold".to_owned(),
        };
        let project = facts.project.as_ref().map_or(String::new(), |file| format!(", and {}", file.display()));
        all.push(Finding::ok(CHECK, format!("{own}{project}")));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::super::finding::State;
    use super::*;

    fn facts() -> Facts {
        Facts {
            file: Some("/c.toml".into()),
            file_exists: true,
            project: None,
            broken: None,
            warnings: Vec::new(),
            unread: Vec::new(),
        }
    }

    #[test]
    fn a_broken_file_fails_with_its_own_hint() {
        let broken = findings(&Facts { broken: Some(Failure::usage("c.toml:3: no").hint("write it so")), ..facts() });
        assert_eq!(
            (broken[0].state, broken[0].fact.as_str(), broken[0].remedy.as_deref()),
            (State::Fail, "c.toml:3: no", Some("write it so"))
        );
        assert_eq!(broken.len(), 1);
    }

    #[test]
    fn a_warning_about_settings_is_a_finding() {
        let warned = findings(&Facts {
            warnings: vec!["others may write x (mode 666): `chmod go-w` keeps it yours".into()],
            ..facts()
        });
        assert!(warned[0].state == State::Warn && warned[0].remedy.as_deref().unwrap().contains("chmod"), "{warned:?}");
        let well = findings(&Facts { project: Some("/p/.caro.toml".into()), ..facts() });
        assert_eq!((well[0].state, well[0].fact.as_str()), (State::Ok, "/c.toml, and /p/.caro.toml"));
    }

    #[test]
    fn an_unknown_variable_is_reported_with_the_nearest_known_one() {
        let names = ["CARO_TIMOUT", "CARO_TIMEOUT", "CARO_HUB_URL", "CARO_CACHE_DIR", "PATH"].map(String::from);
        let unread = unread(names.into_iter());
        assert_eq!(unread, ["CARO_TIMOUT"]);
        let all = findings(&Facts { unread, ..facts() });
        assert!(all[0].remedy.as_deref().unwrap().contains("did you mean CARO_TIMEOUT?"), "{all:?}");
    }
}
