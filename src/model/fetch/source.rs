//! Parses the value of `--model`.

use super::{FetchError, Settings};
use crate::catalog::{self, Card, Purpose};
use std::path::{Path, PathBuf};

/// The source of the model of a request.
#[derive(Debug, Clone, PartialEq)]
pub enum ModelSource {
    /// A card of the catalog, or one that the user added. Its files may have to be fetched.
    Card(Box<Card>),
    /// A GGUF file that the user named by its path.
    File(PathBuf),
    /// `script:FILE`: canned replies, for tests.
    Script(PathBuf),
    /// `openai:URL#NAME`: an OpenAI-compatible server.
    Remote {
        /// Base address.
        url: String,
        /// Name of the model there.
        name: String,
    },
    /// `anthropic:NAME`, or `anthropic:URL#NAME`: a server that speaks Anthropic's protocol.
    Anthropic {
        /// Base address; Anthropic's own without one.
        url: Option<String>,
        /// Name of the model there.
        name: String,
    },
}

/// The prefixes of models that are remote or scripted.
const WITHOUT_WEIGHTS: [&str; 3] = ["script:", "openai:", "anthropic:"];

/// True if `--model SPEC` names a model that is computed on this machine.
pub fn computes_here(spec: &str) -> bool {
    !WITHOUT_WEIGHTS.iter().any(|prefix| spec.starts_with(prefix))
}

/// Parses `--model SPEC`: `script:FILE`, `openai:URL#NAME`, `anthropic:NAME`, an id of the catalog, an id that the user
/// added, or the path of a GGUF file. Never uses the network.
///
/// # Errors
/// [`FetchError::Unknown`], [`FetchError::NoChat`], [`FetchError::NoFile`], [`FetchError::NoScript`],
/// [`FetchError::BadSpec`] or [`FetchError::Card`].
pub fn resolve(spec: &str, settings: &Settings) -> Result<ModelSource, FetchError> {
    if let Some(file) = spec.strip_prefix("script:") {
        let path = PathBuf::from(file);
        return if path.is_file() { Ok(ModelSource::Script(path)) } else { Err(FetchError::NoScript { path }) };
    }
    if let Some(address) = spec.strip_prefix("openai:") {
        let (url, name) = remote(address).ok_or_else(|| FetchError::BadSpec { spec: spec.into() })?;
        return Ok(ModelSource::Remote { url, name });
    }
    if let Some(address) = spec.strip_prefix("anthropic:") {
        return anthropic(address).ok_or_else(|| FetchError::BadSpec { spec: spec.into() });
    }
    if let Some(card) = find(spec, settings)? {
        if card.purpose == Purpose::Embedding {
            return Err(FetchError::NoChat { id: card.id });
        }
        return Ok(ModelSource::Card(Box::new(card)));
    }
    let path = Path::new(spec);
    if path.is_file() {
        return Ok(ModelSource::File(path.into()));
    }
    let looks_like_a_path = spec.contains(['/', '\\']) || spec.to_ascii_lowercase().ends_with(".gguf");
    if looks_like_a_path {
        return Err(FetchError::NoFile { path: path.into() });
    }
    Err(FetchError::Unknown { spec: spec.into(), near: nearest(spec) })
}

/// Returns the card with an id, from the catalog or added by the user.
///
/// # Errors
/// If the card is invalid.
pub fn find(id: &str, settings: &Settings) -> Result<Option<Card>, FetchError> {
    if let Some(card) = catalog::embedded(id)? {
        return Ok(Some(card));
    }
    Ok(catalog::added(&settings.models, id)?)
}

/// Parses `URL#NAME`: a server's address and the name of a model there.
fn remote(address: &str) -> Option<(String, String)> {
    // at the last `#`, since an address may contain one and a model's name does not
    let (url, name) = address.rsplit_once('#')?;
    let host = url.strip_prefix("http://").or_else(|| url.strip_prefix("https://"))?;
    let is_valid = !host.is_empty() && !name.is_empty() && !url.contains(|c: char| c.is_whitespace() || c.is_control());
    is_valid.then(|| (url.trim_end_matches('/').into(), name.into()))
}

/// Parses `NAME` or `URL#NAME`.
fn anthropic(address: &str) -> Option<ModelSource> {
    if address.contains('#') {
        return remote(address).map(|(url, name)| ModelSource::Anthropic { url: Some(url), name });
    }
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || "-_.@:".contains(c);
    let is_name = !address.is_empty() && address.chars().all(is_allowed);
    is_name.then(|| ModelSource::Anthropic { url: None, name: address.into() })
}

/// Returns the id with an edit distance of at most 3 from `spec`, else one that contains it or is contained in it.
fn nearest(spec: &str) -> Option<String> {
    let spec: String = spec.to_lowercase().chars().take(200).collect();
    let ids = catalog::embedded_ids();
    let (distance, id) = ids.iter().map(|id| (strsim::levenshtein(&spec, id), *id)).min()?;
    if distance <= 3 && distance < spec.chars().count() {
        return Some(id.into());
    }
    let overlaps = |id: &&&str| spec.len() >= 4 && (id.contains(&spec) || spec.contains(**id));
    ids.iter().find(overlaps).map(|id| id.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(models: &Path) -> Settings {
        Settings::new(Some(models.into()), None, []).unwrap()
    }

    #[test]
    fn every_form_of_a_model_is_parsed() {
        let folder = tempfile::tempdir().unwrap();
        let s = settings(folder.path());
        let file = folder.path().join("My Model.gguf");
        std::fs::write(&file, "x").unwrap();
        let file_name = file.to_str().unwrap();

        let ModelSource::Card(card) = resolve("qwen2.5-coder-0.5b", &s).unwrap() else { panic!("no card") };
        assert_eq!(card.id, "qwen2.5-coder-0.5b");
        assert!(matches!(resolve("all-minilm-l6-v2", &s), Err(FetchError::NoChat { .. })));
        assert_eq!(resolve(file_name, &s).unwrap(), ModelSource::File(file.clone()));
        assert_eq!(resolve(&format!("script:{file_name}"), &s).unwrap(), ModelSource::Script(file.clone()));
        let there = ModelSource::Remote { url: "http://h:1/v1".into(), name: "n".into() };
        assert_eq!(resolve("openai:http://h:1/v1/#n", &s).unwrap(), there);
        let own = ModelSource::Anthropic { url: None, name: "claude-x-4.5".into() };
        assert_eq!(resolve("anthropic:claude-x-4.5", &s).unwrap(), own);
        let proxy = ModelSource::Anthropic { url: Some("http://h:1".into()), name: "n".into() };
        assert_eq!(resolve("anthropic:http://h:1/#n", &s).unwrap(), proxy);
    }

    #[test]
    fn an_unknown_model_is_refused_with_the_nearest_id() {
        let folder = tempfile::tempdir().unwrap();
        let s = settings(folder.path());
        let near = |spec: &str| match resolve(spec, &s) {
            Err(FetchError::Unknown { near, .. }) => near,
            other => panic!("{spec}: {other:?}"),
        };
        assert_eq!(near("qwen2.5-codr-1.5b").as_deref(), Some("qwen2.5-coder-1.5b"));
        assert_eq!(near("Qwen3-4B").as_deref(), Some("qwen3-4b"));
        assert_eq!(near("minilm").as_deref(), Some("all-minilm-l6-v2"));
        assert_eq!(near("gpt"), None);
        assert_eq!(near(""), None);
        for spec in ["nowhere/x.gguf", "x.gguf"] {
            assert!(matches!(resolve(spec, &s), Err(FetchError::NoFile { .. })), "{spec}");
        }
        for spec in ["script:", "script:nowhere.json"] {
            let why = resolve(spec, &s).unwrap_err();
            assert!(matches!(why, FetchError::NoScript { .. }) && !why.hint().contains("GGUF"), "{spec}: {why}");
        }
        for spec in
            ["openai:", "openai:http://h", "openai:#n", "openai:http://#n", "openai:ftp://h#n", "openai:http://h h#n"]
        {
            assert!(matches!(resolve(spec, &s), Err(FetchError::BadSpec { .. })), "{spec}");
        }
        let elsewhere = ["script:f", "openai:http://h#n", "anthropic:n", "anthropic:http://h#n"];
        assert!(!elsewhere.into_iter().any(computes_here) && computes_here("qwen") && computes_here("./m.gguf"));
        for spec in ["anthropic:", "anthropic:#n", "anthropic:http://h", "anthropic:a b", "anthropic:http://h#"] {
            let why = resolve(spec, &s).unwrap_err();
            assert!(matches!(why, FetchError::BadSpec { .. }) && why.hint().contains("anthropic:"), "{spec}: {why}");
        }
    }
}
