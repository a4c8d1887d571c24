//! `caro artifacts`: lists, shows and removes results of tools that were too long for a prompt. They are stored
//! beside their sessions for a week.

use crate::harness::wire::workspaces;
use crate::setup::stores::no_home;
use crate::term::ui::{Role, plural};
use crate::{Cx, Exit, Failure, Outcome};
use caro_agent::observe::Artifacts;
use caro_agent::workspace::{Kept, LookupError};

/// List, show and remove results that were too long for a prompt
#[derive(Debug, clap::Args)]
#[command(
    after_help = "They are deleted with their session, and after 7 days: by the next agent or chat, or when they are \
                        listed. In a bucket its own rules say what is old."
)]
pub struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, clap::Subcommand)]
enum What {
    /// List them, the oldest first
    List {
        /// Only those of this session, or of the one whose name begins so
        #[arg(long, value_name = "ID")]
        session: Option<String>,
        /// Print one JSON document
        #[arg(long)]
        json: bool,
    },
    /// Print one, whole
    Show {
        /// Its id, or the beginning of it
        #[arg(value_name = "ID")]
        id: String,
    },
    /// Remove some
    #[command(override_usage = "caro artifacts rm [OPTIONS] <ID>...\n       caro artifacts rm [OPTIONS] --all")]
    Rm {
        /// Their ids, or the beginnings of them
        #[arg(value_name = "ID", required_unless_present = "all", conflicts_with = "all")]
        ids: Vec<String>,
        /// All of them
        #[arg(long)]
        all: bool,
    },
}

/// Runs the chosen subcommand.
///
/// # Errors
/// If there is no artifact with that id.
pub fn run(args: &Args, cx: &Cx) -> Outcome {
    let all = workspaces(cx, &cx.settings(&[])?)?.ok_or_else(no_home)?;
    match &args.what {
        What::List { session, json } => {
            all.sweep_old();
            let kept = all.artifacts(session.as_deref())?;
            cx.ui.list(*json, &kept, "no result has been too long for a prompt in the last 7 days", |kept| {
                let (head, artifact) = (cx.ui.entry(Role::Accent, &kept.artifact.id), &kept.artifact);
                let size = format!("{}  {}", plural(artifact.bytes, "byte"), plural(artifact.lines, "line"));
                cx.ui.line(&format!("{head}  {size}  {}", cx.ui.entry(Role::Dim, &kept.session)))
            })?;
        }
        What::Show { id } => {
            let (kept, workspace) = all.artifact(id)?;
            let text = workspace.get(&kept.artifact.id).map_err(|e| unusable(&kept.artifact.id, &e))?;
            // printing adds a line end
            cx.ui.data(text.strip_suffix('\n').unwrap_or(&text))?;
        }
        What::Rm { ids, all: every } => {
            let remove = |kept: &Kept| all.remove(kept).map_err(|e| unusable(&kept.artifact.id, &e));
            let count = if *every {
                let kept = all.artifacts(None)?;
                kept.iter().try_for_each(remove)?;
                kept.len()
            } else {
                ids.iter().try_for_each(|id| remove(&all.artifact(id)?.0))?;
                ids.len()
            };
            cx.ui.note(&format!("removed {}", plural(count, "artifact")));
        }
    }
    Ok(Exit::Success)
}

/// The failure of an artifact whose file cannot be read or removed.
fn unusable(id: &str, error: &std::io::Error) -> Failure {
    Failure::internal(format!("the artifact {id}: {error}")).hint("`caro artifacts list` shows those there are")
}

impl From<LookupError> for Failure {
    fn from(error: LookupError) -> Self {
        let hint = error.hint();
        Self::usage(error).hint(hint)
    }
}
