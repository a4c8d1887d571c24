//! `caro model`: lists, fetches, adds, verifies and deletes models.
//!
//! `recommend`: which model suits this machine. `adapter`: adapters, which are loaded beside a model.

mod adapter;
mod recommend;

use crate::setup::download;
use crate::term::ui::Role;
use crate::{Cx, Exit, Failure, Outcome};
use caro_model::catalog::Card;
use caro_model::fetch::{self, FetchError, Settings, Size};
use std::path::PathBuf;

/// Arguments of `caro model`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// What to do
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, clap::Subcommand)]
enum What {
    /// List the models, and which are here
    List {
        /// Print a JSON document
        #[arg(long)]
        json: bool,
    },
    /// Say which model suits this machine: those that are here are measured, the memory is looked at
    Recommend {
        /// Print a JSON document
        #[arg(long)]
        json: bool,
    },
    /// Fetch a model, or go on where that stopped
    Pull {
        /// Its id; the model in use if none is given
        id: Option<String>,
    },
    /// Add a GGUF file of yours; it stays where it is
    Add {
        /// The file
        file: PathBuf,
        /// The id it gets; made from its name if none is given
        #[arg(long)]
        id: Option<String>,
    },
    /// Hash the files of a model again and hold them against their sums
    Verify {
        /// Its id; every model that is here if none is given
        id: Option<String>,
    },
    /// Delete a model's files; of an added model only the entry
    Rm {
        /// Its id
        id: String,
    },
    /// List, add, verify and delete adapters
    #[command(subcommand)]
    Adapter(adapter::What),
    /// Print where a model is, or the folder of all
    Path {
        /// Its id
        id: Option<String>,
    },
}

/// Runs the chosen subcommand.
///
/// # Errors
/// See [`FetchError`]; or if stdout cannot be written.
pub fn run(args: &Args, cx: &Cx) -> Outcome {
    let settings = download::settings(cx)?;
    match &args.what {
        What::List { json } => list(&settings, *json, cx),
        What::Recommend { json } => cx.with_error_document(*json, recommend::run(&settings, *json, cx)),
        What::Pull { id } => {
            let card = card(&id.clone().map_or_else(|| model_in_use(cx), Ok)?, &settings)?;
            let path = download::with_fetcher(&settings, cx, |fetcher| fetch::ensure(&card, fetcher))?;
            cx.ui.data(&path.display().to_string())?;
            Ok(Exit::Success)
        }
        What::Add { file, id } => {
            let card = download::with_fetcher(&settings, cx, |fetcher| fetch::add(file, id.as_deref(), fetcher))?;
            cx.ui.note(&format!("added {}; use it with --model {}", card.name, card.id));
            cx.ui.data(&card.id)?;
            Ok(Exit::Success)
        }
        What::Verify { id } => verify(id.as_deref(), &settings, cx),
        What::Adapter(what) => adapter::run(what, &settings, cx),
        What::Rm { id } => {
            let card = card(id, &settings)?;
            let (removed, bytes) = fetch::remove(&card, &settings)?;
            for path in &removed {
                cx.ui.data(&path.display().to_string())?;
            }
            if !removed.is_empty() {
                cx.ui.note(&format!("freed {}", Size(bytes)));
            }
            // a file that the user added always stays, which needs no note
            let left = if card.is_added() { None } else { fetch::locate(&card, &settings) };
            match left {
                Some(path) => cx.ui.note(&format!("{} is of the hub's own tools, and stays", path.display())),
                None if removed.is_empty() => cx.ui.note(&format!("{id} is not here")),
                None => {}
            }
            Ok(Exit::Success)
        }
        What::Path { id: None } => {
            cx.ui.data(&settings.models.display().to_string())?;
            Ok(Exit::Success)
        }
        What::Path { id: Some(id) } => {
            let card = card(id, &settings)?;
            let path = fetch::locate(&card, &settings).ok_or_else(|| not_usable(&card, &settings))?;
            cx.ui.data(&path.display().to_string())?;
            Ok(Exit::Success)
        }
    }
}

/// The failure for a model that has no verified file.
fn not_usable(card: &Card, settings: &Settings) -> Failure {
    let id = &card.id;
    match fetch::locate_unverified(card, settings) {
        Some(path) => Failure::no(format!("{id} is at {}, and its sum was not verified", path.display()))
            .hint(format!("`caro model verify {id}` does it; else the next request does, once")),
        None => Failure::no(format!("{id} is not here")).hint(format!("`caro model pull {id}` fetches it")),
    }
}

fn list(settings: &Settings, json: bool, cx: &Cx) -> Outcome {
    let (models, broken): (Vec<_>, Vec<_>) = fetch::list(settings).into_iter().partition(Result::is_ok);
    let models: Vec<_> = models.into_iter().flatten().collect();
    for error in broken.into_iter().filter_map(Result::err) {
        cx.ui.warn(&error.to_string());
    }
    if json {
        cx.ui.document(&models)?;
        return Ok(Exit::Success);
    }
    let in_use = model_in_use(cx).unwrap_or_default();
    for model in &models {
        let card = &model.card;
        let (role, state) = match (&model.path, model.partial) {
            (Some(_), _) => (Role::Good, "here".to_string()),
            (None, _) if model.is_unverified => (Role::Caution, "not verified".to_string()),
            (None, 0) => (Role::Dim, "-".to_string()),
            (None, bytes) => (Role::Caution, format!("{} of it", Size(bytes))),
        };
        let size = card.bytes().map_or("?".into(), |bytes| Size(bytes).to_string());
        let mark = if card.id == in_use { "*" } else { " " };
        let state = cx.ui.paint(role, &format!("{state:<14}"));
        let adapter = fetch::adapter_of_card(card, settings).map(|source| format!(", adapter {}", source.name()));
        let rest = format!("{:<20} {}{}", card.licence, card.name, adapter.unwrap_or_default());
        let rest = cx.ui.entry(Role::Dim, &rest);
        cx.ui.line(&format!("{mark} {:<20} {size:>9}  {:<7} {state} {rest}", card.id, card.quant))?;
    }
    Ok(Exit::Success)
}

fn verify(id: Option<&str>, settings: &Settings, cx: &Cx) -> Outcome {
    let cards: Vec<Card> = match id {
        Some(id) => vec![card(id, settings)?],
        None => {
            // a damaged model has no path, but is just what verifying has to find
            let has_files = |card: &Card| card.files.iter().any(|f| fetch::file_path(card, f, settings).is_file());
            let here = fetch::list(settings).into_iter().flatten();
            here.filter(|model| model.path.is_some() || has_files(&model.card)).map(|model| model.card).collect()
        }
    };
    if cards.is_empty() {
        return Err(Failure::no("no model is here").hint("`caro model pull` fetches the default one"));
    }
    let mut exit = Exit::Success;
    for card in &cards {
        match download::with_fetcher(settings, cx, |fetcher| fetch::verify(card, fetcher)) {
            Ok(sums) => {
                for (path, sum) in sums {
                    cx.ui.data(&format!("{sum}  {}", path.display()))?;
                }
            }
            // the others are still verified
            Err(failure) if cards.len() > 1 && failure.exit != Exit::Interrupted => {
                cx.ui.failure(&failure);
                exit = Exit::No;
            }
            Err(failure) => return Err(failure),
        }
    }
    Ok(exit)
}

fn card(id: &str, settings: &Settings) -> Result<Card, Failure> {
    match fetch::find(id, settings)? {
        Some(card) => Ok(card),
        None => match fetch::resolve(id, settings) {
            Err(error) => Err(error.into()),
            Ok(_) => Err(Failure::usage(format!("`{id}` is not a model of the list"))
                .hint("`caro model add FILE` puts a file of yours on it")),
        },
    }
}

fn model_in_use(cx: &Cx) -> Result<String, Failure> {
    Ok(cx.settings(&[])?.model)
}

impl From<FetchError> for Failure {
    fn from(error: FetchError) -> Self {
        let hint = error.hint();
        match error {
            FetchError::Cancelled => Self::silent(Exit::Interrupted),
            FetchError::Damaged { .. } | FetchError::Changed { .. } | FetchError::NoGguf { .. } => {
                Self::no(error).hint(hint)
            }
            _ => Self::usage(error).hint(hint),
        }
    }
}
