//! Workers that do parts of a task in parallel: the tool `spawn_subagents`, absent unless a run is [`equip`]ped with
//! it.
//!
//! A worker is a run of its own on the lead's [`Runtime`]: the same loop, model, tools, guards, approver and
//! workspace, but without this tool, so that no worker has workers. It leaves its result in the workspace, where the
//! lead reads it; a worker that leaves nothing has failed, whatever it answers. The usage of all of them counts
//! against the lead's limits and is charged to it ([`budget`]); cancelling the lead cancels them. [`pool`] starts them
//! and waits for them.

mod budget;
mod guard;
mod order;
mod pool;

use super::observe::Raw;
use super::plan::unclear;
use super::runtime::Runtime;
use super::tool::{Args, Effects, Provider, RegistryError, Tool, ToolCx, ToolError, ToolSpec};
use super::tools::workspace_tools;
use super::workspace::Workspace;
use budget::{LeadGuard, SharedBudget};
pub use order::{Hire, Hired};
use order::{Order, VIEW, show};
use pool::WorkerPool;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Handle;

/// The tool's name.
pub const SPAWN: &str = "spawn_subagents";
/// Most workers of one call.
const MAX_WORKERS: usize = 4;
/// Timeout of one call with all its workers.
const TIMEOUT: Duration = Duration::from_secs(30 * 60);

/// The tasks of the workers in the tool's example. Both name the file they are about, because small models imitate the
/// form. Workers with exactly these tasks are refused: models sometimes copy the example.
const SAMPLES: [&str; 2] = [
    "how many houses are north of the river? Look into north.txt",
    "how many houses are south of the river? Look into south.txt",
];

/// Returns the runtime with workers. It gets a workspace if it had none, since workers leave their results there.
///
/// # Errors
/// If one of the tools' names is taken.
pub fn equip(lead: Runtime, workspace: Arc<Workspace>, hire: Arc<dyn Hire>) -> Result<Runtime, RegistryError> {
    equip_for(TIMEOUT, lead, workspace, hire)
}

/// Does the work of [`equip`] with a given timeout of one call.
fn equip_for(
    time: Duration,
    mut lead: Runtime,
    workspace: Arc<Workspace>,
    hire: Arc<dyn Hire>,
) -> Result<Runtime, RegistryError> {
    for tool in workspace_tools(workspace.clone()) {
        if lead.registry.get(&tool.spec().name).is_err() {
            lead.registry.add(tool)?;
        }
    }
    let budget = Arc::new(SharedBudget::default());
    // workers inherit the lead without this tool
    let pool = WorkerPool::new(lead.clone(), workspace.clone(), hire, budget.clone());
    lead.registry.add(Arc::new(Spawn::new(pool, workspace, time)))?;
    lead.guards = lead.guards.and(Arc::new(LeadGuard(budget.clone())));
    lead.usage_ledger = Some(budget);
    show(&mut lead, &[VIEW], 2);
    Ok(lead)
}

/// The tool `spawn_subagents`.
struct Spawn {
    spec: ToolSpec,
    pool: WorkerPool,
    workspace: Arc<Workspace>,
}

impl Spawn {
    fn new(pool: WorkerPool, workspace: Arc<Workspace>, time: Duration) -> Self {
        let string = || json!({"type": "string"});
        let fields = json!({"name": string(), "role": string(), "task": string(), "output_path": string()});
        let worker = json!({
            "type": "object", "properties": fields, "required": ["name", "role", "task", "output_path"],
            "additionalProperties": false
        });
        let mut spec = ToolSpec::new(
            SPAWN,
            "has helpers work on separate parts of the task side by side, and shows what each has found. Each knows only \
             what its task says, and leaves its result in a workspace file.",
            json!({"workers": {"type": "array", "items": worker, "minItems": 1, "maxItems": MAX_WORKERS}}),
            &["workers"],
        );
        spec.example = json!({"workers": [
            {"name": "north", "role": "researcher", "task": SAMPLES[0], "output_path": "north.md"},
            {"name": "south", "role": "researcher", "task": SAMPLES[1], "output_path": "south.md"}
        ]});
        (spec.core, spec.parallel, spec.timeout, spec.provider) = (true, false, time, Provider::Subagent);
        Self { spec, pool, workspace }
    }

    /// Parses and checks the workers of a call.
    ///
    /// # Errors
    /// If any of them is not valid.
    fn orders(&self, args: &Args) -> Result<Vec<Order>, ToolError> {
        let wrong =
            |what: String| ToolError::Arguments(format!("Argument Validation Error: {what} (Check tool schema)"));
        let given = args.get("workers").cloned().unwrap_or_default();
        let orders: Vec<Order> = serde_json::from_value(given).map_err(|e| wrong(format!("`workers`: {e}")))?;
        if orders.is_empty() || orders.len() > MAX_WORKERS {
            return Err(wrong(format!("`workers` must be a list of 1 to {MAX_WORKERS}")));
        }
        let mut files: Vec<PathBuf> = Vec::new();
        for (at, order) in orders.iter().enumerate() {
            let Order { name, task, output_path: path, .. } = order;
            let fine = |c: char| c.is_alphanumeric() || "_- ".contains(c);
            if name.trim().is_empty() || name.chars().count() > 40 || !name.chars().all(fine) {
                return Err(wrong(format!("`{name}` is not a name: use up to 40 letters, digits, _ and -")));
            }
            if orders[..at].iter().any(|other| other.name == *name) {
                return Err(wrong(format!("two workers are named `{name}`")));
            }
            if let Some(why) = unclear(task) {
                return Err(wrong(format!("the task of `{name}`: {why}")));
            }
            if SAMPLES.contains(&task.trim()) {
                return Err(wrong(format!("the task of `{name}` is the example's: give it a part of your own task")));
            }
            let file = self.workspace.file(path).map_err(|e| wrong(e.to_string()))?;
            if file == self.workspace.files() || path.chars().any(char::is_control) {
                return Err(wrong(format!("`{path}` names no file")));
            }
            // an existing file would be taken for the worker's output
            if file.exists() {
                return Err(wrong(format!("`{path}` is in the workspace already: give `{name}` another output_path")));
            }
            if files.contains(&file) {
                return Err(wrong(format!("two workers have the output_path `{path}`")));
            }
            files.push(file);
        }
        Ok(orders)
    }
}

impl Tool for Spawn {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    /// The call itself only writes into the workspace; each worker's calls are guarded separately.
    fn effects(&self, args: &Args, _: &ToolCx) -> Effects {
        let workers = args.get("workers").and_then(Value::as_array).into_iter().flatten();
        let paths = workers.filter_map(|worker| worker.get("output_path")?.as_str());
        let writes: Vec<PathBuf> = paths.filter_map(|path| self.workspace.file(path).ok()).collect();
        // never empty, or a resumed run would repeat the call as read-only
        Effects { writes: if writes.is_empty() { vec![self.workspace.files()] } else { writes }, ..Effects::default() }
    }

    fn call(&self, args: &Args, cx: &ToolCx) -> Result<Raw, ToolError> {
        let orders = self.orders(args)?;
        let runtime = Handle::try_current().map_err(|e| ToolError::Failed(e.to_string()))?;
        let results = runtime.block_on(self.pool.work(&orders, &cx.cancel));
        let text = results.iter().map(|result| result.text.as_str()).collect::<Vec<_>>().join("\n");
        if results.iter().any(|result| result.done) { Ok(Raw::text(text)) } else { Err(ToolError::Failed(text)) }
    }
}

#[cfg(test)]
mod tests;
