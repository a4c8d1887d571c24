//! `caro workspace`: shows the files that agents store for themselves, apart from the user's. Each session has its
//! own workspace.

use crate::harness::wire::workspaces;
use crate::setup::stores::no_home;
use crate::term::ui::{Role, plural};
use crate::{Cx, Exit, Failure, Outcome};
use caro_agent::observe::Artifacts;
use caro_agent::workspace::{Entry, WorkspaceError};

/// Show the files that agents keep for themselves
#[derive(Debug, clap::Args)]
#[command(after_help = "A workspace is removed with its session: `caro session rm ID`.")]
pub struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, clap::Subcommand)]
enum What {
    /// List the workspaces, or what is in a folder of one
    Ls {
        /// The session, or the beginning of its name; all of them if not given
        #[arg(value_name = "SESSION")]
        session: Option<String>,
        /// A folder of its workspace
        #[arg(value_name = "PATH", default_value = "", hide_default_value = true)]
        path: String,
        /// Print one JSON document
        #[arg(long)]
        json: bool,
    },
    /// Print a file of a workspace
    Show {
        /// The session, or the beginning of its name
        #[arg(value_name = "SESSION")]
        session: String,
        /// The file
        #[arg(value_name = "PATH")]
        path: String,
    },
}

/// A workspace as it is listed.
#[derive(serde::Serialize)]
struct Row {
    session: String,
    files: usize,
    artifacts: usize,
    artifact_bytes: usize,
}

/// Runs the chosen subcommand.
///
/// # Errors
/// If there is no such session, folder or file.
pub fn run(args: &Args, cx: &Cx) -> Outcome {
    let all = workspaces(cx, &cx.settings(&[])?)?.ok_or_else(no_home)?;
    match &args.what {
        What::Ls { session: None, json, .. } => {
            let mut rows = Vec::new();
            for session in all.names()? {
                let (_, workspace) = all.find(&session)?;
                let (files, artifacts) = (workspace.entries("")?, workspace.list()?);
                let bytes: usize = artifacts.iter().map(|artifact| artifact.bytes).sum();
                rows.push(Row { session, files: files.len(), artifacts: artifacts.len(), artifact_bytes: bytes });
            }
            cx.ui.list(*json, &rows, "no agent has kept a file yet", |row| {
                let Row { session, files, artifacts, artifact_bytes } = row;
                let head = cx.ui.entry(Role::Accent, session);
                let (files, artifacts) = (plural(*files, "file"), plural(*artifacts, "artifact"));
                cx.ui.line(&format!("{head}  {files}  {artifacts} ({artifact_bytes} bytes)"))
            })?;
        }
        What::Ls { session: Some(session), path, json } => {
            let entries = all.find(session)?.1.entries(path)?;
            cx.ui.list(*json, &entries, "there is nothing in it", |Entry { name, bytes }| {
                let size = bytes.map(|n| format!("  {n}")).unwrap_or_default();
                cx.ui.line(&format!("{}{size}", cx.ui.entry(Role::Plain, name)))
            })?;
        }
        What::Show { session, path } => {
            let text = all.find(session)?.1.text(path)?;
            // printing adds a line end
            cx.ui.data(text.strip_suffix('\n').unwrap_or(&text))?;
        }
    }
    Ok(Exit::Success)
}

impl From<WorkspaceError> for Failure {
    fn from(error: WorkspaceError) -> Self {
        let hint = match &error {
            // the hint of the error names the tool of the model; the user has a verb
            WorkspaceError::Missing(_) => "`caro workspace ls SESSION` shows what is there",
            other => other.hint(),
        };
        Self::usage(error).hint(hint)
    }
}
