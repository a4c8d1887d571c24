//! `caro stop`: ends the resident processes of this user.

use crate::{Cx, Exit, Failure, Outcome};
use caro_serve::resident::{self, Ended};

/// Arguments of `caro stop`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Print a JSON document
    #[arg(long)]
    json: bool,
}

/// Ends the resident processes and prints each. It is no error if there are none.
///
/// # Errors
/// If the folder of their sockets is not safe, or stdout cannot be written.
pub fn run(args: &Args, cx: &Cx) -> Outcome {
    let ended = match &cx.dirs.runtime {
        Some(folder) => resident::stop(folder).map_err(|e| Failure::no(&e).hint(e.hint()))?,
        None => Vec::new(),
    };
    let pid_and_killed = |one: &Ended| match one {
        Ended::Asked(pid) => (*pid, false),
        Ended::Killed(pid) => (*pid, true),
    };
    if args.json {
        let all: Vec<_> = ended
            .iter()
            .map(pid_and_killed)
            .map(|(pid, killed)| serde_json::json!({ "pid": pid, "killed": killed }))
            .collect();
        cx.ui.document(&serde_json::json!({ "stopped": all }))?;
        return Ok(Exit::Success);
    }
    if ended.is_empty() {
        cx.ui.data("no resident process was running")?;
    }
    for (pid, killed) in ended.iter().map(pid_and_killed) {
        let how = if killed { "did not answer and was killed" } else { "ended" };
        cx.ui.data(&format!("process {pid} {how}"))?;
    }
    Ok(Exit::Success)
}
