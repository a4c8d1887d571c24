//! `caro model adapter`: lists, adds, verifies and deletes adapters.

use crate::term::ui::Role;
use crate::{Cx, Exit, Failure, Outcome};
use caro_model::adapter::AdapterSource;
use caro_model::fetch::{self, ListedAdapter, Settings, Size};
use std::path::PathBuf;

/// What to do with adapters.
#[derive(Debug, clap::Subcommand)]
pub enum What {
    /// List the adapters that are here
    List {
        /// Print a JSON document
        #[arg(long)]
        json: bool,
    },
    /// Add an adapter of yours, a GGUF file; it is copied beside the models
    Add {
        /// The file
        file: PathBuf,
    },
    /// Hash adapters and hold them against their models
    Verify {
        /// A name of `caro model adapter list`, or a file; all that are here if none is given
        file: Option<String>,
    },
    /// Delete an adapter that you added
    Rm {
        /// Its name
        name: String,
    },
}

/// Runs the chosen subcommand.
///
/// # Errors
/// See [`fetch::FetchError`]; or if stdout cannot be written.
pub fn run(what: &What, settings: &Settings, cx: &Cx) -> Outcome {
    match what {
        What::List { json } => list(settings, *json, cx),
        What::Add { file } => {
            let added = fetch::add_adapter(file, settings)?;
            let name = &added.info.name;
            cx.ui.note(&format!("added {name}{}; use it with --adapter {name}", for_model(&added)));
            cx.ui.data(name)?;
            Ok(Exit::Success)
        }
        What::Verify { file } => verify(file.as_deref(), settings, cx),
        What::Rm { name } => {
            let (path, bytes) = fetch::remove_adapter(name, settings)?;
            cx.ui.data(&path.display().to_string())?;
            cx.ui.note(&format!("freed {}", Size(bytes)));
            Ok(Exit::Success)
        }
    }
}

fn list(settings: &Settings, json: bool, cx: &Cx) -> Outcome {
    let mut here = Vec::new();
    for adapter in fetch::list_adapters(settings) {
        match adapter {
            Ok(adapter) => here.push(adapter),
            Err(error) => cx.ui.warn(&error.to_string()),
        }
    }
    if json {
        cx.ui.document(&here)?;
        return Ok(Exit::Success);
    }
    for adapter in &here {
        let ListedAdapter { info, source, bytes, .. } = adapter;
        let place = match source {
            AdapterSource::Embedded(_) => "comes with caro".to_owned(),
            AdapterSource::File(path) => path.display().to_string(),
        };
        let size = Size(*bytes).to_string();
        let rest = cx.ui.entry(Role::Dim, &format!("{place}{}", for_model(adapter)));
        cx.ui.line(&format!("{:<20} {size:>9}  rank {:<4} {rest}", info.name, info.rank))?;
    }
    Ok(Exit::Success)
}

/// Says after the name of an adapter which model it belongs to.
fn for_model(adapter: &ListedAdapter) -> String {
    match (&adapter.model, &adapter.info.base_sha256) {
        (Some(model), _) if adapter.is_checked => format!(", for {model}"),
        (Some(model), _) if adapter.is_model_unverified => {
            format!(", for {model}, whose file is here and not verified: `caro model verify {model}`")
        }
        (Some(model), _) => format!(", for {model}, which is not here"),
        (None, Some(sum)) => format!(", for a model that is not on the list (SHA-256 {sum})"),
        (None, None) => ", for a model that it does not name".into(),
    }
}

fn verify(file: Option<&str>, settings: &Settings, cx: &Cx) -> Outcome {
    let sources = match file {
        Some(spec) => vec![fetch::adapter_of_spec(spec, settings)?],
        None => fetch::adapter_sources(settings),
    };
    if sources.is_empty() {
        return Err(Failure::no("no adapter is here").hint("`caro model adapter add FILE` adds one"));
    }
    let mut exit = Exit::Success;
    for source in &sources {
        match fetch::verify_adapter(source.clone(), settings) {
            Ok((adapter, sum)) => {
                cx.ui.data(&format!("{sum}  {}", source.path().display()))?;
                if !adapter.is_checked {
                    cx.ui.note(&format!("{} was not held against its model{}", adapter.info.name, for_model(&adapter)));
                }
            }
            // the others are still verified
            Err(error) if sources.len() > 1 => {
                cx.ui.failure(&error.into());
                exit = Exit::No;
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(exit)
}
