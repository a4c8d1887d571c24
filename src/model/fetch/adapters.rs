//! Lists, adds, verifies and removes low-rank adapters: those of the cards, which are embedded in the program, and
//! those that the user added to the folder `adapters` beside the models.

use super::{Cx, FetchError, Fetcher, Record, Settings, io_error, list, locate, record, sum_of, verified_path};
use crate::adapter::{AdapterChoice, AdapterInfo, AdapterSource};
use crate::catalog::{self, Card};
use crate::engine;
use caro_base::files::{self, Access};
use sha2::{Digest, Sha256};
use std::fs;
use std::path::{Path, PathBuf};

/// Most bytes of an adapter that is added: about forty times the size of one of rank 16 for the default model.
const MAX_ADAPTER: u64 = 1 << 30;

/// An adapter as `caro model adapter list` shows it.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct ListedAdapter {
    /// Its description.
    #[serde(flatten)]
    pub info: AdapterInfo,
    /// Its place.
    pub source: AdapterSource,
    /// Its size in bytes.
    pub bytes: u64,
    /// The id of the model that it belongs to, if that is in the list of models.
    pub model: Option<String>,
    /// True if it was checked against its model; false if that is not downloaded, or not verified.
    pub is_checked: bool,
    /// True if the files of its model are here, but were not verified since they were written.
    pub is_model_unverified: bool,
}

/// Returns the folder of the adapters that the user added.
fn folder(settings: &Settings) -> PathBuf {
    settings.models.join("adapters")
}

/// Returns the adapter of a card.
pub fn adapter_of_card(card: &Card, settings: &Settings) -> Option<AdapterSource> {
    let file = &card.adapter.as_ref()?.file;
    Some(match catalog::embedded_file(file) {
        Some(_) => AdapterSource::Embedded(file.clone()),
        None => AdapterSource::File(settings.models.join(file)),
    })
}

/// Returns the adapter that `spec` names: by the name of an available one, or by the path of a file.
///
/// # Errors
/// [`FetchError::NoAdapter`] and [`FetchError::NoFile`].
pub fn adapter_of_spec(spec: &str, settings: &Settings) -> Result<AdapterSource, FetchError> {
    let available = adapter_sources(settings);
    if let Some(source) = available.iter().find(|source| source.name() == spec) {
        return Ok(source.clone());
    }
    let path = Path::new(spec);
    if path.is_file() {
        // a resident process has another working directory
        return Ok(AdapterSource::File(std::path::absolute(path).map_err(|e| io_error("read", path, e))?));
    }
    if spec.contains(['/', '\\']) || spec.to_ascii_lowercase().ends_with(".gguf") {
        return Err(FetchError::NoFile { path: path.into() });
    }
    Err(FetchError::NoAdapter { spec: spec.into(), known: available.iter().map(AdapterSource::name).collect() })
}

/// Returns the places of all adapters: those of the cards, then those that the user added.
pub fn adapter_sources(settings: &Settings) -> Vec<AdapterSource> {
    let cards = catalog::embedded_ids().into_iter().filter_map(|id| catalog::embedded(id).ok().flatten());
    let mut sources: Vec<AdapterSource> = cards.filter_map(|card| adapter_of_card(&card, settings)).collect();
    let entries = fs::read_dir(folder(settings)).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut added: Vec<PathBuf> = entries.filter(|path| path.extension().is_some_and(|e| e == "gguf")).collect();
    added.sort();
    sources.extend(added.into_iter().map(AdapterSource::File));
    sources
}

/// Returns the SHA-256 of the model's first file, if the card has it or the file was verified.
pub fn base_sum(card: &Card, settings: &Settings) -> Option<String> {
    let file = card.files.first()?;
    file.sha256.clone().or_else(|| {
        let name = super::record_name(card, file);
        verified_path(card, file, settings).and_then(|_| record::read(settings, &name, Record::holds)).map(|r| r.sha256)
    })
}

/// Returns the SHA-256 of any model file. It is recorded until the file changes.
///
/// # Errors
/// If it cannot be read, or the caller cancels.
pub fn file_sum(path: &Path, fetcher: &Fetcher<'_>) -> Result<String, FetchError> {
    let path = std::path::absolute(path).map_err(|e| io_error("read", path, e))?;
    let digest = Sha256::digest(path.as_os_str().as_encoded_bytes());
    let name: String = digest.iter().take(8).map(|b| format!("{b:02x}")).collect();
    let name = format!("{name}.named");
    if let Some(record) = record::read(fetcher.settings, &name, |r| r.path == path && r.holds()) {
        return Ok(record.sha256);
    }
    let sum = sum_of(&path, &Cx { progress: fetcher.progress, cancel: fetcher.cancel })?;
    if let Ok(record) = Record::of(&path, &sum) {
        record::write(fetcher.settings, &name, &record);
    }
    Ok(sum)
}

/// Lists all adapters. Each is checked against its model if that is downloaded.
pub fn list_adapters(settings: &Settings) -> Vec<Result<ListedAdapter, FetchError>> {
    adapter_sources(settings).into_iter().map(|source| listed(source, settings)).collect()
}

fn listed(source: AdapterSource, settings: &Settings) -> Result<ListedAdapter, FetchError> {
    let choice = AdapterChoice { source, base_sha256: None, is_required: true };
    let (info, file) = (choice.info()?, choice.source.open()?);
    let base = info.base_sha256.as_deref();
    let model = list(settings)
        .into_iter()
        .flatten()
        .find(|model| base.is_some() && base_sum(&model.card, settings).as_deref() == base);
    let path = model.as_ref().and_then(|model| locate(&model.card, settings));
    if let Some(path) = &path {
        engine::check_adapter(&file, path, base)?;
    }
    let is_model_unverified = model.as_ref().is_some_and(|model| model.is_unverified);
    let model = model.map(|model| model.card.id);
    let (bytes, is_checked) = (file.bytes().len() as u64, path.is_some());
    Ok(ListedAdapter { info, source: choice.source, bytes, model, is_checked, is_model_unverified })
}

/// Adds an adapter of the user: copies it to the folder `adapters` beside the models, with its file's name.
///
/// # Errors
/// [`FetchError::NoFile`]; [`FetchError::Adapter`] if it is no adapter or does not fit its model;
/// [`FetchError::AdapterTaken`] if another adapter has that name; [`FetchError::Card`] if the name is invalid.
pub fn add_adapter(path: &Path, settings: &Settings) -> Result<ListedAdapter, FetchError> {
    if !path.is_file() {
        return Err(FetchError::NoFile { path: path.into() });
    }
    let source = AdapterSource::File(path.into());
    let name = source.name();
    listed(source, settings)?;
    if !catalog::is_file_name(&name) {
        let reason = "the name of an adapter has letters, digits, `.`, `-`, `_` only: rename the file".into();
        return Err(catalog::CardError { origin: path.display().to_string(), reason }.into());
    }
    let bytes = files::read(path, MAX_ADAPTER).map_err(|e| io_error("read", path, e))?;
    let target = folder(settings).join(format!("{name}.gguf"));
    let others = adapter_sources(settings);
    if let Some(other) = others.iter().find(|other| other.name() == name)
        && other.open().map_or(true, |file| file.bytes()[..] != bytes)
    {
        return Err(FetchError::AdapterTaken { name });
    }
    files::replace(&target, &bytes, Access::Umask).map_err(|e| io_error("write", &target, e))?;
    listed(AdapterSource::File(target), settings)
}

/// Hashes an adapter, checks it against its card and, if that is downloaded, its model, and returns it with its
/// SHA-256.
///
/// # Errors
/// [`FetchError::Damaged`] and [`FetchError::Adapter`].
pub fn verify_adapter(source: AdapterSource, settings: &Settings) -> Result<(ListedAdapter, String), FetchError> {
    let listed = listed(source, settings)?;
    let file = listed.source.open()?;
    let sum = super::hex(&Sha256::digest(&file.bytes()[..]));
    let card = listed.model.as_deref().and_then(|id| super::find(id, settings).ok().flatten());
    let wanted = card.filter(|card| adapter_of_card(card, settings).as_ref() == Some(&listed.source));
    match wanted.and_then(|card| card.adapter).filter(|adapter| adapter.sha256 != sum) {
        Some(adapter) => {
            let reason = format!("SHA-256 {sum}, not {}", adapter.sha256);
            Err(FetchError::Damaged { path: file.file().into(), reason })
        }
        None => Ok((listed, sum)),
    }
}

/// Removes an adapter that the user added, and returns its file with its size.
///
/// # Errors
/// [`FetchError::NoAdapter`] if none of that name was added, [`FetchError::AdapterEmbedded`] if it comes with the
/// program.
pub fn remove_adapter(name: &str, settings: &Settings) -> Result<(PathBuf, u64), FetchError> {
    let sources = adapter_sources(settings);
    let is_embedded = sources.iter().any(|one| matches!(one, AdapterSource::Embedded(_)) && one.name() == name);
    let added: Vec<PathBuf> = sources
        .into_iter()
        .filter_map(|source| match source {
            AdapterSource::File(path) => Some(path),
            AdapterSource::Embedded(_) => None,
        })
        .collect();
    let stem = |path: &Path| path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let Some(path) = added.iter().find(|path| stem(path) == name) else {
        if is_embedded {
            return Err(FetchError::AdapterEmbedded { name: name.into() });
        }
        return Err(FetchError::NoAdapter { spec: name.into(), known: added.iter().map(|path| stem(path)).collect() });
    };
    let bytes = fs::metadata(path).map_or(0, |meta| meta.len());
    fs::remove_file(path).map_err(|e| io_error("delete", path, e))?;
    Ok((path.clone(), bytes))
}

#[cfg(test)]
#[path = "adapters_tests.rs"]
mod tests;
