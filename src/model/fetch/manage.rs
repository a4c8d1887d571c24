//! The subcommands of `caro model`, without their output: list, add, verify, remove.

use super::{Cx, Record, locate_unverified, sum_of, work_folder};
use super::{
    FetchError, Fetcher, ModelFile, Settings, file_path, header, io_error, locate, partial, record, record_name,
    verified_path,
};
use crate::catalog::{self, Card, CardError, CardFile, Purpose};
use caro_base::files;
use std::fs;
use std::path::{Path, PathBuf};

/// A model as `caro model list` shows it.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct Listed {
    /// Its card.
    #[serde(flatten)]
    pub card: Card,
    /// Its path, if its files exist and are verified.
    pub path: Option<PathBuf>,
    /// True if its files are here, but were not verified since they were written.
    pub is_unverified: bool,
    /// Bytes of an unfinished fetch.
    pub partial: u64,
}

/// Lists all models, downloaded or not. An invalid card of the user is an error in its place.
pub fn list(settings: &Settings) -> Vec<Result<Listed, CardError>> {
    let listed = |card: Card| {
        let partial_bytes = |file| {
            let [path, _] = partial::Partial::paths(&file_path(&card, file, settings));
            fs::metadata(path).map_or(0, |meta| meta.len())
        };
        let partial = card.files.iter().map(partial_bytes).sum();
        let is_unverified = locate_unverified(&card, settings).is_some();
        Listed { path: locate(&card, settings), is_unverified, partial, card }
    };
    catalog::all(&settings.models).into_iter().map(|card| card.map(listed)).collect()
}

/// Hashes the files of a model, whether or not they have a record, and returns their paths with their SHA-256.
///
/// # Errors
/// [`FetchError::NoFile`] for a missing file; [`FetchError::Damaged`] and [`FetchError::Changed`] for a wrong one,
/// whose record is deleted.
pub fn verify(card: &Card, fetcher: &Fetcher<'_>) -> Result<Vec<(PathBuf, String)>, FetchError> {
    let mut sums = Vec::new();
    for file in &card.files {
        let model_file = ModelFile { card, file, fetcher };
        let name = record_name(card, file);
        let recorded = record::read(fetcher.settings, &name, |_| true);
        // the file may be in the cache folder of the hub's own tools
        let path =
            verified_path(card, file, fetcher.settings).unwrap_or_else(|| file_path(card, file, fetcher.settings));
        if !path.is_file() {
            return Err(FetchError::NoFile { path });
        }
        let sum = sum_of(&path, &model_file.cx())?;
        // without a checksum in the catalog, the recorded one is the reference
        let want = file.sha256.clone().or_else(|| recorded.map(|record| record.sha256));
        let wrong = match want {
            Some(want) if want != sum => Some(format!("SHA-256 {sum}, not {want}")),
            _ => model_file.check_form(&path).err(),
        };
        if let Some(reason) = wrong {
            record::forget(fetcher.settings, &name);
            return Err(model_file.damaged(path, reason));
        }
        model_file.remember(&path, &sum);
        sums.push((path, sum));
    }
    Ok(sums)
}

/// Removes a model: its files, the rest of an unfinished fetch, and its records. Of a model that the user added only
/// the card is removed; the file is the user's. Returns the removed paths and the bytes freed.
///
/// # Errors
/// If the system refuses.
pub fn remove(card: &Card, settings: &Settings) -> Result<(Vec<PathBuf>, u64), FetchError> {
    let mut removed = Vec::new();
    let mut bytes = 0;
    let mut drop_file = |path: PathBuf| -> Result<(), FetchError> {
        match fs::metadata(&path) {
            Ok(meta) => {
                fs::remove_file(&path).map_err(|e| io_error("delete", &path, e))?;
                bytes += meta.len();
                removed.push(path);
                Ok(())
            }
            Err(_) => Ok(()),
        }
    };
    for file in &card.files {
        if file.path.is_none() {
            let path = file_path(card, file, settings);
            for path in partial::Partial::paths(&path).into_iter().chain([path]) {
                drop_file(path)?;
            }
        }
        record::forget(settings, &record_name(card, file));
    }
    if card.is_added() {
        drop_file(settings.models.join(format!("{}.toml", card.id)))?;
    } else if card.files.len() > 1 {
        let _ = fs::remove_dir_all(settings.models.join(&card.id));
    }
    let _ = fs::remove_dir_all(work_folder(card, settings));
    Ok((removed, bytes))
}

/// Adds a GGUF file of the user with an id (made from its name if `None`) and returns its card. The file stays where
/// it is; its card, with size and SHA-256, is written to the models folder.
///
/// # Errors
/// [`FetchError::NoFile`], [`FetchError::NoGguf`] if it is not valid, [`FetchError::Card`] if the id is taken or
/// invalid.
pub fn add(path: &Path, id: Option<&str>, fetcher: &Fetcher<'_>) -> Result<Card, FetchError> {
    let settings = fetcher.settings;
    let path = std::path::absolute(path).map_err(|e| io_error("read", path, e))?;
    if !path.is_file() {
        return Err(FetchError::NoFile { path });
    }
    let header = header::read(&path).map_err(|reason| FetchError::NoGguf { path: path.clone(), reason })?;
    let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let id = id.map_or_else(|| slug(&stem), str::to_string);
    let origin = format!("{id}.toml");
    let refuse = |reason: &str| FetchError::Card(CardError { origin: origin.clone(), reason: reason.into() });
    if !catalog::is_id(&id) {
        return Err(refuse("an id has lower-case letters, digits, `.`, `-`, `_` only; give another with --id"));
    }
    if catalog::embedded(&id)?.is_some()
        || catalog::added(&settings.models, &id)?.is_some_and(|c| c.files[0].path.as_ref() != Some(&path))
    {
        return Err(refuse("a model of that id exists; give another with --id"));
    }
    let sha256 = sum_of(&path, &Cx { progress: fetcher.progress, cancel: fetcher.cancel })?;
    let record = Record::of(&path, &sha256).map_err(|e| io_error("read", &path, e))?;
    let card = Card {
        name: header.name.unwrap_or(stem),
        purpose: Purpose::Chat,
        family: header.arch.clone(),
        quant: header.quant.unwrap_or("unknown").into(),
        licence: header.licence.unwrap_or_else(|| "unknown".into()),
        ctx: header.ctx.unwrap_or(2048),
        arch: header.arch,
        template: String::new(),
        stop: Vec::new(),
        k_aligned: header.k_aligned,
        min_ram: None,
        hub: None,
        files: vec![CardFile {
            // the file itself may have any name
            name: format!("{id}.gguf"),
            path: Some(path),
            bytes: Some(record.bytes),
            sha256: Some(sha256),
            mirror: None,
        }],
        adapter: None,
        measured: Vec::new(),
        id,
    };
    let text = toml::to_string(&card).map_err(|e| refuse(&e.to_string()))?;
    let target = settings.models.join(format!("{}.toml", card.id));
    files::replace(&target, text.as_bytes(), files::Access::Umask).map_err(|e| io_error("write", &target, e))?;
    record::write(settings, &record_name(&card, &card.files[0]), &record);
    Ok(card)
}

/// Makes an id from a file's name.
fn slug(stem: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '.' { c.to_ascii_lowercase() } else { '-' };
    let text: String = stem.chars().map(plain).collect();
    let words: Vec<&str> = text.split('-').filter(|word| !word.is_empty()).collect();
    words.join("-").trim_start_matches('.').to_string()
}
