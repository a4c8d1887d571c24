//! Builds the recipe out of its parts: machine, manual and model, opened side by side.

use super::request::milliseconds;
use super::settings::Settings;
use super::{Cx, Failure, download};
use crate::command::Recipe;
use crate::host::ExecutionContext;
use crate::model::Model;
use crate::model::fetch::{self, ModelSource};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The recipe, and what it took to open it.
pub struct Wired {
    /// The recipe.
    pub recipe: Recipe,
    /// What it took.
    pub opened: Opened,
}

/// Time spent before the first request.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Opened {
    /// Detecting the machine.
    pub context: Duration,
    /// Opening the model.
    pub load: Duration,
    /// Fetching the model's file, where it was not here.
    pub download: Duration,
}

/// Opens everything.
///
/// # Errors
/// If there is no model to be had. Without a help cache the recipe works on, and the person is told.
pub fn open(cx: &Cx, settings: &Settings) -> Result<Wired, Failure> {
    std::thread::scope(|scope| {
        let context = scope.spawn(|| timed(|| ExecutionContext::detect(cx.dirs.cache.as_deref())));
        let (model, download, load) = model(cx, settings)?;
        let (context, detecting) =
            context.join().map_err(|_| Failure::internal("the machine could not be detected"))?;
        let opened = Opened { context: detecting, load, download };
        tracing::debug!("model opened in {:.1} ms", milliseconds(load));
        let recipe = Recipe { model, context: Arc::new(context), manual: None };
        Ok(Wired { recipe, opened })
    })
}

/// The model that the settings name, with the time its download and its opening took.
fn model(cx: &Cx, settings: &Settings) -> Result<(Arc<dyn Model>, Duration, Duration), Failure> {
    let folders = download::settings(cx)?;
    let source = fetch::resolve(&settings.model, &folders)?;
    let (file, download) = timed(|| match source {
        ModelSource::Card(card) => download::with_fetcher(&folders, cx, |fetcher| fetch::ensure(&card, fetcher)),
        ModelSource::File(file) => Ok(file),
        _ => Err(Failure::internal("not wired")),
    });
    let file = file?;
    let (model, load) = timed(|| engine(&file));
    Ok((model?, download, load))
}

fn engine(file: &Path) -> Result<Arc<dyn Model>, Failure> {
    let _ = file;
    Err(Failure::internal("no engine"))
}

fn timed<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    let started = Instant::now();
    let result = work();
    (result, started.elapsed())
}
