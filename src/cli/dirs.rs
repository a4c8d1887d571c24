//! Where files live: the platform's folders (XDG on Linux), or where the user says.

use super::env;
use crate::{Env, Failure};
use std::path::{Path, PathBuf};

/// The folders of this user. None of them needs to exist yet; all are `None` where there is no home.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Dirs {
    /// What can be made again: which programs there are, help texts, prompt states.
    pub cache: Option<PathBuf>,
    /// `config.toml`.
    pub config: Option<PathBuf>,
    /// What the user made.
    pub data: Option<PathBuf>,
    /// What is worth keeping from run to run, but not worth a backup.
    pub state: Option<PathBuf>,
    /// Model files.
    pub models: Option<PathBuf>,
    /// Sockets; this user's alone.
    pub runtime: Option<PathBuf>,
    /// The user's configuration file.
    pub config_file: Option<PathBuf>,
}

impl Dirs {
    /// The folders under this environment.
    pub fn find(env: &Env) -> Self {
        // What is relative would be a folder of wherever one happens to be.
        let is_relative = relative_home().is_some();
        let home = if is_relative { None } else { directories::ProjectDirs::from("", "", "caro") };
        let of = |dir: fn(&directories::ProjectDirs) -> &Path| home.as_ref().map(|h| dir(h).to_path_buf());
        // The resident process runs elsewhere: what is relative means the folder of this call, there too.
        let over = |name| env.get(name).map(|path| std::path::absolute(path).unwrap_or_else(|_| path.into()));
        let cache = over(env::CACHE_DIR).or_else(|| of(|h| h.cache_dir()));
        let config = of(|h| h.config_dir());
        Self {
            models: over(env::MODELS_DIR).or_else(|| cache.as_ref().map(|c| c.join("models"))),
            runtime: over(env::RUNTIME_DIR)
                .or_else(|| {
                    home.as_ref().and_then(|h| h.runtime_dir()).filter(|dir| has_place(dir)).map(Path::to_path_buf)
                })
                .or_else(|| cache.as_ref().map(|c| c.join("run"))),
            config_file: over(env::CONFIG_FILE).or_else(|| config.as_ref().map(|c| c.join("config.toml"))),
            data: of(|h| h.data_dir()),
            state: of(|h| h.state_dir().unwrap_or(h.data_local_dir())),
            cache,
            config,
        }
    }

    /// The folder of model files.
    ///
    /// # Errors
    /// Where there is neither a home nor a variable that names one.
    pub fn models(&self) -> Result<&Path, Failure> {
        self.models.as_deref().ok_or_else(|| {
            Failure::usage("there is no folder for model files, because this user has no home folder")
                .hint(format!("set {} to a folder that can be written", env::MODELS_DIR))
        })
    }
}

/// The home folder that the environment names, if it is no absolute path. (Variables of XDG that are relative are
/// passed over by the platform's own rules.)
pub fn relative_home() -> Option<PathBuf> {
    std::env::home_dir().filter(|home| home.is_relative() && !home.as_os_str().is_empty())
}

/// True if the folder that this one lies in is there: the session makes that, and nobody else.
fn has_place(dir: &Path) -> bool {
    dir.parent().is_some_and(Path::is_dir)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_runtime_folder_of_no_session_is_none() {
        let session = tempfile::tempdir().unwrap();
        assert!(has_place(&session.path().join("caro")));
        assert!(!has_place(&session.path().join("gone/caro")));
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

    /// The resident process runs in `/`: what it is told of is to be the same place there.
    #[test]
    fn a_variable_that_is_relative_means_the_callers_folder() {
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
