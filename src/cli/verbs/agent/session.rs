//! `caro session`: lists, shows, repairs and removes sessions.

use crate::harness::removal::remove;
use crate::harness::wire::{existing_store, failure};
use crate::setup::repair;
use crate::setup::stores::no_home;
use crate::term::ui::{Role, plural};
use crate::{Cx, Exit, Failure, Outcome};
use caro_agent::store::{FILE, Store, StoreError};
use caro_base::id;
use std::time::{Duration, UNIX_EPOCH};

/// List, show and remove sessions
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, clap::Subcommand)]
enum What {
    /// List sessions, the latest first: when and how often they were used, and the last run of each
    List {
        /// Print one JSON document
        #[arg(long)]
        json: bool,
        /// The most sessions
        #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..))]
        limit: u32,
    },
    /// Show the runs of a session
    Show {
        /// The session or one of its runs, or the beginning of its id
        #[arg(value_name = "ID")]
        id: String,
        /// Print one JSON document
        #[arg(long)]
        json: bool,
    },
    /// Save what can be read of a damaged file; that one is kept beside the new one
    Repair {
        /// Print one JSON document
        #[arg(long)]
        json: bool,
    },
    /// Remove a session with its runs, events and files
    Rm {
        /// The session; of one that nobody has named, the beginning of its id will do
        #[arg(value_name = "ID")]
        id: String,
    },
}

/// Runs the chosen subcommand.
///
/// # Errors
/// If there is no such session.
pub fn run(args: &Args, cx: &Cx) -> Outcome {
    if let What::Repair { json } = args.what {
        let file = cx.dirs.data.as_ref().map(|data| data.join(FILE)).ok_or_else(no_home)?;
        let repaired = Store::repair(&file).map_err(failure)?;
        return repair::tell(cx, json, &[("runs", "run"), ("events", "event")], &[(file, repaired)]);
    }
    let store = existing_store(cx)?;
    match &args.what {
        // handled above, before anything is opened
        What::Repair { .. } => {}
        What::List { json, limit } => {
            let sessions = store.sessions(*limit as usize).map_err(failure)?;
            cx.ui.list(*json, &sessions, "no session has been kept yet", |session| {
                let time = id::stamp(UNIX_EPOCH + Duration::from_millis(session.updated));
                let last = session.runs.last().map_or(String::new(), |run| {
                    let task: String = run.task.chars().take(70).collect();
                    format!("{}  {}  {task}", run.id, run.status)
                });
                let count = session.runs.len();
                let head = cx.ui.entry(Role::Accent, &session.id);
                cx.ui.line(&format!("{head}  {time}  {count}  {}", cx.ui.entry(Role::Plain, &last)))
            })?;
        }
        What::Show { id, json } => {
            let session = store.session(id).map_err(failure)?;
            if *json {
                cx.ui.document(&session)?;
                return Ok(Exit::Success);
            }
            if !session.summary.is_empty() {
                cx.ui.line(&cx.ui.paint(Role::Dim, "remembered of what is inactive:"))?;
                cx.ui.data(&format!("{}\n", session.summary))?;
            }
            for run in &session.runs {
                let head = cx.ui.paint(Role::Accent, &run.id);
                let inactive = if run.active { "" } else { ", inactive: the model is not told any more" };
                cx.ui.line(&format!("{head}  {}", cx.ui.paint(Role::Dim, &format!("{}{inactive}", run.status))))?;
                cx.ui.data(&format!("> {}\n{}\n", run.task, run.answer))?;
            }
        }
        What::Rm { id } => remove_named(id, &store, cx)?,
    }
    Ok(Exit::Success)
}

/// Removes the session that the user names.
fn remove_named(id: &str, store: &Store, cx: &Cx) -> Result<(), Failure> {
    let found = store.session(id);
    let is_named = found.as_ref().is_ok_and(|session| session.id == id || session.runs.iter().any(|run| run.id == id));
    let is_begun = found.as_ref().is_ok_and(|session| id::is_fresh("session", &session.id));
    // the store may have been repaired, and the conversation is in another file
    let may_be_left = matches!(found, Ok(_) | Err(StoreError::Missing { .. }));
    if may_be_left && !is_named && !is_begun && remove(id, store, cx)? {
        cx.ui.note(&format!("removed what was left of {id}: its conversation and files"));
        return Ok(());
    }
    let session = found.map_err(failure)?;
    let runs = plural(session.runs.len(), "run");
    if !session.id.starts_with(id) {
        // the id of one run must not remove the whole session
        return Err(Failure::usage(format!("{id} is a run of {}, and a session goes as a whole", session.id))
            .hint(format!("`caro session rm {}` removes it with its {runs}", session.id)));
    }
    if session.id != *id && !id::is_fresh("session", &session.id) {
        // the beginning of a name that a user gave may be meant as another name
        return Err(Failure::usage(format!("there is no session `{id}`"))
            .hint(format!("`caro session rm {}` removes the one that is called so", session.id)));
    }
    remove(&session.id, store, cx)?;
    cx.ui.note(&format!("removed {} with {runs}", session.id));
    Ok(())
}
