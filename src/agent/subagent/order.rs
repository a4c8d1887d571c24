//! A worker as it is ordered, and what it is given.

use crate::event::Sink;
use crate::guard::Guards;
use crate::runtime::Runtime;
use crate::turn::Task;
use serde::Deserialize;
use std::sync::Arc;

/// The tool that shows what a worker has left.
pub(super) const VIEW: &str = "workspace_view";
/// The tool that a worker leaves it with.
pub(super) const WRITE: &str = "workspace_write";

/// Gives a worker the parts that only the builder of the lead has.
pub trait Hire: Send + Sync {
    /// Writes the worker's run down, and gives it guards for its task and a place for its events.
    ///
    /// # Errors
    /// In words, if it cannot be begun.
    fn hire(&self, task: &Task) -> Result<Hired, String>;
}

/// The parts that a worker is given.
pub struct Hired {
    /// The lead's guards, as they are for the worker's task.
    pub guards: Guards,
    /// Where its events go.
    pub sinks: Vec<Arc<dyn Sink>>,
}

/// One worker as the lead wants it.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Order {
    pub(super) name: String,
    pub(super) role: String,
    pub(super) task: String,
    pub(super) output_path: String,
}

/// Has tools shown whatever the task, `more` beside those that are shown anyway.
pub(super) fn show(runtime: &mut Runtime, always: &[&str], more: usize) {
    runtime.config.always.extend(always.iter().map(|name| name.to_string()));
    runtime.config.tools += more;
}
