//! A child process of a tool: waited for, and killed with all it started when the call is stopped.

use crate::agent::tool::ToolError;
use crate::exec::{self, Job, Output};
use crate::model::Cancel;
use std::time::Duration;

/// How often the switch is looked at.
const LOOK: Duration = Duration::from_millis(10);

/// Runs the job; `None` if `cancel` was pulled meanwhile.
///
/// # Errors
/// If it cannot be started.
pub(in crate::agent) fn run(job: &Job, cancel: &Cancel) -> Result<Option<Output>, ToolError> {
    let work = async {
        let stopped = async {
            while !cancel.is_cancelled() {
                tokio::time::sleep(LOOK).await;
            }
        };
        tokio::select! {
            done = exec::capture(job) => Some(done),
            // dropping the job kills all of it
            () = stopped => None,
        }
    };
    let failed = |e: std::io::Error| ToolError::Failed(format!("no runtime: {e}"));
    let done = match tokio::runtime::Handle::try_current() {
        Ok(handle) => handle.block_on(work),
        Err(_) => tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?.block_on(work),
    };
    done.transpose().map_err(|e| ToolError::Failed(format!("{e}: {}", e.hint())))
}
