//! Builds the recipe from machine, manual and model, opened in parallel.

use super::resident::{self, Resident};
use super::settings::{AdapterUse, Settings};
use super::unfetched::Unfetched;
use super::{adapter, download, stores};
use crate::term::first;
use crate::{Cx, Failure, env};
use caro_command::Recipe;
use caro_host::ExecutionContext;
use caro_manual::Program;
use caro_manual::{Manual, Setup};
use caro_model::Model;
use caro_model::fetch::{self, ModelSource};
use caro_model::remote::{self, Remote};
use caro_serve::resident::Weights;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Most tokens of prompt and completion with Anthropic's models. They accept more; the limit has long runs shortened
/// before they become expensive.
const ANTHROPIC_CONTEXT: usize = 32_768;

/// The recipe, and how it was opened.
pub struct Wired {
    /// The recipe.
    pub recipe: Recipe,
    /// The time it took to open it.
    pub opened: Opened,
    /// The place of the model.
    pub resident: Resident,
    /// True if the common prefix of all prompts has not been computed here yet.
    pub is_first: bool,
}

/// The time spent before the first request. The model reports the time of its opening with its first call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Opened {
    /// Detecting the machine.
    pub context: Duration,
    /// Fetching the model's file, if it was missing.
    pub download: Duration,
}

/// The use of the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wants {
    /// Answers: a missing model is fetched.
    Answers,
    /// Answers to at most so many simultaneous callers, which are computed together.
    Many(usize),
    /// The sizes of texts: a missing model is not fetched for them, they are estimated.
    Sizes,
}

/// Opens the recipe for answers.
///
/// # Errors
/// If the model cannot be opened.
pub fn open(cx: &Cx, settings: &Settings) -> Result<Wired, Failure> {
    open_for(cx, settings, Wants::Answers)
}

/// Opens the recipe for this use of the model.
///
/// # Errors
/// As [`open`].
pub fn open_for(cx: &Cx, settings: &Settings, wants: Wants) -> Result<Wired, Failure> {
    std::thread::scope(|scope| {
        let context = scope.spawn(|| timed(|| ExecutionContext::detect(cx.dirs.cache.as_deref())));
        let (model, resident, download, is_first) = model(cx, settings, wants)?;
        let (context, detection_time) =
            context.join().map_err(|_| Failure::internal("the machine could not be detected"))?;
        let recipe = Recipe {
            model,
            context: Arc::new(context),
            manual: Some(manual(cx)),
            documents: settings.knowledge.then(|| stores::librarian_by_words(cx)).flatten(),
            adapted: settings.adapter != AdapterUse::Off,
            without: [].into(),
        };
        Ok(Wired { recipe, opened: Opened { context: detection_time, download }, resident, is_first })
    })
}

/// Opens the cache of manuals, which never runs programs of the working directory.
pub fn manual(cx: &Cx) -> Arc<Manual> {
    Arc::new(Manual::open(Setup::of_process(cx.dirs.cache.clone(), cx.cwd.clone())))
}

/// Opens the model that the settings name. Also returns its place, the time of its download, and true if its first
/// call is still to come.
fn model(cx: &Cx, settings: &Settings, wants: Wants) -> Result<(Arc<dyn Model>, Resident, Duration, bool), Failure> {
    let folders = download::settings(cx)?;
    let (weights, took) = match fetch::resolve(&settings.model, &folders)? {
        // a model that the user added is never fetched: `ensure` reports its missing file
        ModelSource::Card(card)
            if wants == Wants::Sizes && !card.is_added() && fetch::locate(&card, &folders).is_none() =>
        {
            cx.ui.warn(&format!(
                "{id} has not been fetched, and is not for this: tokens are estimated (`caro model pull {id}` fetches it)",
                id = card.id
            ));
            return Ok((Arc::new(Unfetched::new(&card)), Resident::None(None), Duration::ZERO, false));
        }
        ModelSource::Card(card) => {
            let (file, download_time) = timed(|| download::with_fetcher(&folders, cx, |f| fetch::ensure(&card, f)));
            let (file, beside) =
                (file?, adapter::choose(&settings.adapter, adapter::Model::Card(&card), &folders, cx)?);
            (resident::weights(cx, &file, &card.id, settings, beside), download_time)
        }
        ModelSource::File(file) => {
            let id =
                file.file_stem().map_or_else(|| settings.model.clone(), |stem| stem.to_string_lossy().into_owned());
            let beside = adapter::choose(&settings.adapter, adapter::Model::File(&file), &folders, cx)?;
            (resident::weights(cx, &file, &id, settings, beside), Duration::ZERO)
        }
        // the resident runs in another directory
        ModelSource::Script(file) => (Weights::Script(std::path::absolute(&file).unwrap_or(file)), Duration::ZERO),
        ModelSource::Remote { url, name } => {
            let remote = Remote::new(&url, &name, options(cx, env::API_KEY, &folders));
            return Ok((Arc::new(remote), Resident::None(None), Duration::ZERO, false));
        }
        ModelSource::Anthropic { url, name } => {
            let options = remote::Options { context: ANTHROPIC_CONTEXT, ..options(cx, env::ANTHROPIC_KEY, &folders) };
            let remote = Remote::anthropic(url.as_deref(), &name, options);
            return Ok((Arc::new(remote), Resident::None(None), Duration::ZERO, false));
        }
    };
    // before anything is computed
    let is_first = wants != Wants::Sizes && first::is_first(&weights);
    let (model, resident) = match wants {
        Wants::Many(slots) => resident::for_many(cx, settings, weights, slots)?,
        Wants::Answers | Wants::Sizes => resident::model(cx, settings, weights)?,
    };
    Ok((model, resident, took, is_first))
}

/// Returns the options for a remote server: the key in the variable `key`, and the certificate authorities of the
/// settings.
fn options(cx: &Cx, key: &str, folders: &fetch::Settings) -> remote::Options {
    remote::Options {
        api_key: cx.env.get(key).and_then(|key| key.to_str()).map(str::to_string),
        authorities: folders.hub.as_ref().and_then(|hub| hub.authorities.clone()),
        ..remote::Options::default()
    }
}

fn timed<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    let started = Instant::now();
    let result = work();
    (result, started.elapsed())
}

/// Finds the program of that name, as the calling shell would.
///
/// # Errors
/// If there is none.
pub fn program(name: &str, context: &ExecutionContext) -> Result<Program, Failure> {
    let shell = context.shell.path.as_deref();
    Program::find(name, context.shell.dialect, shell, &context.available_commands).ok_or_else(|| {
        Failure::no(format!("there is no program called {name} here")).hint("`caro context --json` lists all there are")
    })
}
