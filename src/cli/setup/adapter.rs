//! Chooses the adapter that is loaded with a model, as the settings say.

use super::download;
use super::settings::AdapterUse;
use crate::{Cx, Failure};
use caro_model::adapter::AdapterChoice;
use caro_model::catalog::Card;
use caro_model::fetch::{self, Settings};
use std::path::Path;

/// Returns the adapter to load with a model.
///
/// If adapters are off, that of the card is loaded all the same: it costs nothing until a prompt asks for it, and calls
/// with and without it share one resident process.
///
/// # Errors
/// If the settings name an adapter that is not on this machine.
pub fn choose(
    wanted: &AdapterUse,
    model: Model<'_>,
    folders: &Settings,
    cx: &Cx,
) -> Result<Option<AdapterChoice>, Failure> {
    let AdapterUse::Named(spec) = wanted else {
        let Model::Card(card) = model else { return Ok(None) };
        let source = fetch::adapter_of_card(card, folders);
        let base_sha256 = fetch::base_sum(card, folders);
        return Ok(source.map(|source| AdapterChoice { source, base_sha256, is_required: false }));
    };
    let source = fetch::adapter_of_spec(spec, folders)?;
    let base_sha256 = match model {
        Model::Card(card) => fetch::base_sum(card, folders),
        Model::File(file) => Some(download::with_fetcher(folders, cx, |fetcher| fetch::file_sum(file, fetcher))?),
    };
    Ok(Some(AdapterChoice { source, base_sha256, is_required: true }))
}

/// The model that an adapter is for.
#[derive(Debug, Clone, Copy)]
pub enum Model<'a> {
    /// A model of the catalog.
    Card(&'a Card),
    /// A model file.
    File(&'a Path),
}
