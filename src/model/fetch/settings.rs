//! The settings of fetching: the folders of models and the sources. Interprets environment variables that the caller
//! passes.

use super::FetchError;
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::time::Duration;

/// The folders of models, and the sources they are fetched from.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The folder of the model files.
    pub models: PathBuf,
    /// The cache folder, where verifications are recorded if the models folder is read-only.
    pub state: Option<PathBuf>,
    /// The hub; `None` disables it.
    pub hub: Option<HubSettings>,
    /// The package mirror.
    pub mirror: MirrorSettings,
}

/// The settings of the hub.
#[derive(Debug, Clone)]
pub struct HubSettings {
    /// Address without a trailing slash.
    pub endpoint: String,
    /// Access token, for repositories that need one.
    pub token: Option<String>,
    /// Cache folder of the hub's own tools, where the file may already be.
    pub cache: Option<PathBuf>,
    /// Timeout of connecting, and of the answer to a `HEAD` request.
    pub connect: Duration,
    /// Timeout of each read during a transfer.
    pub stall: Duration,
    /// Additional certificate authorities, as a PEM file.
    pub authorities: Option<PathBuf>,
}

/// The settings of `pip download`.
#[derive(Debug, Clone)]
pub struct MirrorSettings {
    /// The Python to use, as a path or as a name to look for; `python3` and `python` if `None`.
    pub python: Option<PathBuf>,
    /// Environment variables that pip needs: its own, and those of proxies and certificates.
    pub env: Vec<(OsString, OsString)>,
    /// Timeout of a download that makes no progress.
    pub stall: Duration,
    /// Parts downloaded at the same time, 1 or more.
    pub jobs: usize,
}

/// The public hub.
const HUB: &str = "https://huggingface.co";

/// The environment variables that pip needs to reach the network as the user does. Prefixes end with `*`; case is
/// ignored.
const PIP_NEEDS: &[&str] = &[
    "PIP_*",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "NO_PROXY",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "REQUESTS_CA_BUNDLE",
    "CURL_CA_BUNDLE",
    "NETRC",
    "XDG_CONFIG_HOME",
    "XDG_CONFIG_DIRS",
    // the Python of a version manager
    "PYENV_*",
    "ASDF_*",
    // Windows
    "APPDATA",
    "LOCALAPPDATA",
    "PROGRAMDATA",
    "USERPROFILE",
];

impl Settings {
    /// Reads the settings from environment variables. `models` is the folder of model files; `state` is the program's
    /// cache folder.
    ///
    /// | variable | meaning |
    /// | --- | --- |
    /// | `CARO_HUB_URL`, else `HF_ENDPOINT` | the hub's address; `off` disables the hub |
    /// | `HF_TOKEN` | the hub's access token; else the token file of the hub's own tools |
    /// | `HF_HOME` | home of the hub's own tools |
    /// | `HF_HUB_OFFLINE` | `1`, `on`, `yes` or `true` disables the hub |
    /// | `CARO_PYTHON` | the Python whose pip is used |
    /// | `SSL_CERT_FILE` | additional certificate authorities (PEM) |
    ///
    /// # Errors
    /// [`FetchError::NoFolder`] if there is no folder for models.
    pub fn new(
        models: Option<PathBuf>,
        state: Option<PathBuf>,
        vars: impl IntoIterator<Item = (OsString, OsString)>,
    ) -> Result<Self, FetchError> {
        // records have absolute paths
        let absolute = |path: PathBuf| std::path::absolute(&path).unwrap_or(path);
        let models = absolute(models.ok_or(FetchError::NoFolder)?);
        let state = state.map(absolute);
        let vars: Vec<(OsString, OsString)> = vars.into_iter().filter(|(_, v)| !v.is_empty()).collect();
        let path = |name: &str| vars.iter().find(|(k, _)| k == name).map(|(_, v)| PathBuf::from(v));
        let text = |name: &str| path(name).and_then(|p| p.into_os_string().into_string().ok());
        let endpoint = text("CARO_HUB_URL").or_else(|| text("HF_ENDPOINT")).unwrap_or_else(|| HUB.into());
        let is_on = |value: String| ["1", "on", "yes", "true"].iter().any(|word| value.eq_ignore_ascii_case(word));
        let offline = endpoint == "off" || text("HF_HUB_OFFLINE").is_some_and(is_on);
        let hub_home = path("HF_HOME").map(|home| hf_hub::Cache::new(home.join("hub"))).or_else(|| {
            let home = directories::BaseDirs::new()?;
            Some(hf_hub::Cache::new(home.home_dir().join(".cache/huggingface/hub")))
        });
        let hub = (!offline).then(|| HubSettings {
            endpoint: endpoint.trim_end_matches('/').into(),
            token: text("HF_TOKEN").or_else(|| hub_home.as_ref().and_then(hf_hub::Cache::token)),
            cache: hub_home.map(|c| c.path().clone()),
            connect: Duration::from_secs(6),
            stall: Duration::from_secs(30),
            authorities: path("SSL_CERT_FILE"),
        });
        let python = path("CARO_PYTHON");
        let env = vars.into_iter().filter(|(name, _)| pip_needs(name)).collect();
        let mirror = MirrorSettings { python, env, stall: Duration::from_secs(180), jobs: 3 };
        Ok(Self { models, state, hub, mirror })
    }
}

fn pip_needs(name: &OsStr) -> bool {
    let Some(name) = name.to_str().map(str::to_ascii_uppercase) else { return false };
    PIP_NEEDS.iter().any(|p| p.strip_suffix('*').map_or(name == *p, |prefix| name.starts_with(prefix)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vars(list: &[(&str, &str)]) -> Vec<(OsString, OsString)> {
        list.iter().map(|(k, v)| (k.into(), v.into())).collect()
    }

    fn settings(list: &[(&str, &str)]) -> Settings {
        Settings::new(Some("/m".into()), None, vars(list)).unwrap()
    }

    #[test]
    fn a_missing_models_folder_is_an_error_that_names_the_variable() {
        let error = Settings::new(None, None, vars(&[])).unwrap_err();
        assert!(error.hint().contains("CARO_MODELS_DIR"), "{error} {}", error.hint());
    }

    #[test]
    fn relative_folders_become_absolute() {
        let settings = Settings::new(Some("models".into()), Some("state".into()), vars(&[])).unwrap();
        assert!(settings.models.is_absolute() && settings.state.unwrap().is_absolute());
    }

    #[test]
    fn variables_set_or_disable_the_hub() {
        let hub = |list: &[(&str, &str)]| settings(list).hub;
        assert_eq!(hub(&[("HF_ENDPOINT", "http://h/")]).unwrap().endpoint, "http://h");
        assert_eq!(hub(&[("HF_ENDPOINT", "http://h"), ("CARO_HUB_URL", "http://c")]).unwrap().endpoint, "http://c");
        assert_eq!(hub(&[("HF_TOKEN", "t")]).unwrap().token.as_deref(), Some("t"));
        assert_eq!(hub(&[("HF_HOME", "/h")]).unwrap().cache.unwrap(), PathBuf::from("/h/hub"));
        assert!(hub(&[("CARO_HUB_URL", "off")]).is_none());
        assert!(hub(&[("HF_HUB_OFFLINE", "1")]).is_none());
    }

    #[test]
    fn pip_gets_its_own_variables_and_no_others() {
        let settings = settings(&[("PIP_INDEX_URL", "x"), ("https_proxy", "p"), ("SECRET", "s"), ("HF_TOKEN", "t")]);
        let names: Vec<_> = settings.mirror.env.iter().map(|(k, _)| k.to_str().unwrap()).collect();
        assert_eq!(names, ["PIP_INDEX_URL", "https_proxy"]);
    }
}
