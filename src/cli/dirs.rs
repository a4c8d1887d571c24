//! Finds the folders of caro's files: the platform's (XDG on Linux), or those that environment variables name.

use super::env;
use crate::{Env, Failure};
use std::path::{Path, PathBuf};

/// The folders of this user. None of them needs to exist yet; all are `None` where there is no home.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Dirs {
    /// Caches: installed programs, help texts, prompt states.
    pub cache: Option<PathBuf>,
    /// The folder of `config.toml`.
    pub config: Option<PathBuf>,
    /// Data of the user.
    pub data: Option<PathBuf>,
    /// State worth keeping from run to run, but not worth a backup.
    pub state: Option<PathBuf>,
    /// Model files.
    pub models: Option<PathBuf>,
    /// Sockets, private to this user.
    pub runtime: Option<PathBuf>,
    /// The user's configuration file.
    pub config_file: Option<PathBuf>,
}

impl Dirs {
    /// The folders under this environment.
    pub fn find(env: &Env) -> Self {
        // a relative home would be a different folder in each working directory
        let is_relative = relative_home().is_some();
        let home = if is_relative { None } else { directories::ProjectDirs::from("", "", "caro") };
        let platform_dir = |dir: fn(&directories::ProjectDirs) -> &Path| home.as_ref().map(|h| dir(h).to_path_buf());
        // made absolute, because the resident process runs in another directory
        let from_env = |name| env.get(name).map(|path| std::path::absolute(path).unwrap_or_else(|_| path.into()));
        let cache = from_env(env::CACHE_DIR).or_else(|| platform_dir(|h| h.cache_dir()));
        let config = platform_dir(|h| h.config_dir());
        Self {
            models: from_env(env::MODELS_DIR).or_else(|| cache.as_ref().map(|c| c.join("models"))),
            runtime: from_env(env::RUNTIME_DIR)
                .or_else(|| {
                    home.as_ref().and_then(|h| h.runtime_dir()).filter(|dir| has_parent(dir)).map(Path::to_path_buf)
                })
                .or_else(|| cache.as_ref().map(|c| c.join("run"))),
            config_file: from_env(env::CONFIG_FILE).or_else(|| config.as_ref().map(|c| c.join("config.toml"))),
            data: platform_dir(|h| h.data_dir()),
            state: platform_dir(|h| h.state_dir().unwrap_or(h.data_local_dir())),
            cache,
            config,
        }
    }

    /// The folder of model files.
    ///
    /// # Errors
    /// If there is neither a home folder nor a variable that names one.
    pub fn models(&self) -> Result<&Path, Failure> {
        self.models.as_deref().ok_or_else(|| {
            Failure::usage("there is no folder for model files, because this user has no home folder")
                .hint(format!("set {} to a folder that can be written", env::MODELS_DIR))
        })
    }
}

/// Returns the home folder, without links in its path; `None` if there is none.
pub fn home() -> Option<PathBuf> {
    std::env::home_dir()?.canonicalize().ok()
}

/// Returns the home folder of the environment if its path is relative. (Relative XDG variables are ignored, as their
/// specification says.)
pub fn relative_home() -> Option<PathBuf> {
    std::env::home_dir().filter(|home| home.is_relative() && !home.as_os_str().is_empty())
}

/// True if the parent of a folder exists: only the user's session creates it.
fn has_parent(dir: &Path) -> bool {
    dir.parent().is_some_and(Path::is_dir)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_runtime_folder_needs_the_folder_of_the_session() {
        let session = tempfile::tempdir().unwrap();
        assert!(has_parent(&session.path().join("caro")));
        assert!(!has_parent(&session.path().join("gone/caro")));
    }

    #[test]
    fn variables_override() {
        let env = Env::from_lookup(|name| match name {
            env::CACHE_DIR => Some("/c".into()),
            env::CONFIG_FILE => Some("/f.toml".into()),
            _ => None,
        });
        let dirs = Dirs::find(&env);
        assert_eq!(dirs.cache.as_deref(), Some(Path::new("/c")));
        assert_eq!(dirs.models().unwrap(), Path::new("/c/models"));
        assert_eq!(dirs.config_file.as_deref(), Some(Path::new("/f.toml")));
        let env = Env::from_lookup(|name| (name == env::MODELS_DIR).then(|| "/m".into()));
        assert_eq!(Dirs::find(&env).models().unwrap(), Path::new("/m"));
    }

    /// The resident process runs in `/`, where a relative path would mean another folder.
    #[test]
    fn a_relative_variable_means_the_callers_folder() {
        let env = Env::from_lookup(|name| name.ends_with("_DIR").then(|| "here".into()));
        let dirs = Dirs::find(&env);
        let here = std::env::current_dir().unwrap().join("here");
        assert_eq!([dirs.cache, dirs.models, dirs.runtime], [0; 3].map(|_| Some(here.clone())));
    }

    #[test]
    fn without_a_home_the_error_names_the_variable() {
        let failure = Dirs::default().models().unwrap_err();
        assert!(failure.hint.unwrap().contains("CARO_MODELS_DIR"));
    }
}
