//! The order for a worker, and the parts that it gets from the builder of its lead.

use crate::event::Sink;
use crate::guard::Guards;
use crate::runtime::Runtime;
use crate::turn::Task;
use serde::Deserialize;
use std::sync::Arc;

/// The tool that shows a worker's output.
pub(super) const VIEW: &str = "workspace_view";
/// The tool with which a worker writes its output.
pub(super) const WRITE: &str = "workspace_write";

/// Provides the parts of a worker that only the builder of the lead has.
pub trait Hire: Send + Sync {
    /// Records the worker's run, and returns guards for its task and sinks for its events.
    ///
    /// # Errors
    /// If the run cannot begin, as a sentence.
    fn hire(&self, task: &Task) -> Result<Hired, String>;
}

/// The parts of a worker that its lead's builder provides.
pub struct Hired {
    /// The lead's guards, adapted to the worker's task.
    pub guards: Guards,
    /// The sinks of its events.
    pub sinks: Vec<Arc<dyn Sink>>,
}

/// One worker as the lead ordered it.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Order {
    pub(super) name: String,
    pub(super) role: String,
    pub(super) task: String,
    pub(super) output_path: String,
}

/// Always shows these tools, and `more` tools in addition to the usual number.
pub(super) fn show(runtime: &mut Runtime, always: &[&str], more: usize) {
    runtime.config.always.extend(always.iter().map(|name| name.to_string()));
    runtime.config.tools += more;
}
