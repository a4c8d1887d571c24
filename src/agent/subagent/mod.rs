//! Helpers that work on parts of a task side by side: the tool `spawn_subagents`, off unless a run is [`equip`]ped with it.
//!
//! A worker is a run of its own on the lead's [`Runtime`]: the same loop, model, tools, guards, approver and workspace, but
//! not this tool, so that no worker has workers. What it comes to it leaves in the workspace, where the lead reads it; a
//! worker that leaves nothing has failed, whatever it says. What all of them spend is held against the lead's limits and
//! charged to it ([`budget`]); what stops the lead stops them. [`pool`]: begins them, and waits for them.

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
use budget::{Lead, SharedBudget};
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
/// Workers of one call at most.
const MOST: usize = 4;
/// How long the workers of one call may take together.
const TIME: Duration = Duration::from_secs(30 * 60);

/// The tasks of the workers in the tool's example: the same about two files, in words, which is what a small model then
/// orders. Two that had nothing to do with each other were copied now and then, and are refused all the same.
const SAMPLES: [&str; 2] = [
    "how many houses are north of the river? Look into north.txt",
    "how many houses are south of the river? Look into south.txt",
];

/// The runtime with workers. It has a workspace from now on, whether it had one before or not: that is where they leave
/// what they come to.
///
/// # Errors
/// If one of the tools' names is taken.
pub fn equip(lead: Runtime, workspace: Arc<Workspace>, hire: Arc<dyn Hire>) -> Result<Runtime, RegistryError> {
    equip_for(TIME, lead, workspace, hire)
}

/// As [`equip`]; the workers of one call may take so long together.
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
    // what a worker inherits is the lead without this tool
    let pool = WorkerPool::new(lead.clone(), workspace.clone(), hire, budget.clone());
    lead.registry.add(Arc::new(Spawn::new(pool, workspace, time)))?;
    lead.guards = lead.guards.and(Arc::new(Lead(budget.clone())));
    lead.bill = Some(budget);
    show(&mut lead, &[VIEW], 2);
    Ok(lead)
}

/// The tool.
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
            json!({"workers": {"type": "array", "items": worker, "minItems": 1, "maxItems": MOST}}),
            &["workers"],
        );
        spec.example = json!({"workers": [
            {"name": "north", "role": "researcher", "task": SAMPLES[0], "output_path": "north.md"},
            {"name": "south", "role": "researcher", "task": SAMPLES[1], "output_path": "south.md"}
        ]});
        (spec.core, spec.parallel, spec.timeout, spec.provider) = (true, false, time, Provider::Subagent);
        Self { spec, pool, workspace }
    }

    /// The workers of a call, if all of them can be begun.
    fn orders(&self, args: &Args) -> Result<Vec<Order>, ToolError> {
        let wrong =
            |what: String| ToolError::Arguments(format!("Argument Validation Error: {what} (Check tool schema)"));
        let given = args.get("workers").cloned().unwrap_or_default();
        let orders: Vec<Order> = serde_json::from_value(given).map_err(|e| wrong(format!("`workers`: {e}")))?;
        if orders.is_empty() || orders.len() > MOST {
            return Err(wrong(format!("`workers` must be a list of 1 to {MOST}")));
        }
        let mut files: Vec<PathBuf> = Vec::new();
        for (at, order) in orders.iter().enumerate() {
            let Order { name, task, output_path: path, .. } = order;
            let fine = |c: char| c.is_alphanumeric() || "_- ".contains(c);
            if name.trim().is_empty() || name.chars().count() > 40 || !name.chars().all(fine) {
                return Err(wrong(format!("`{name}` is no name: use up to 40 letters, digits, _ and -")));
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
            // what is there already would pass for the worker's
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

    /// By itself it writes into the workspace alone; what a worker does beyond is its own calls, each of them guarded.
    fn effects(&self, args: &Args, _: &ToolCx) -> Effects {
        let workers = args.get("workers").and_then(Value::as_array).into_iter().flatten();
        let paths = workers.filter_map(|worker| worker.get("output_path")?.as_str());
        let writes: Vec<PathBuf> = paths.filter_map(|path| self.workspace.file(path).ok()).collect();
        // never a call that is made again on resume as if it had only looked
        Effects { writes: if writes.is_empty() { vec![self.workspace.files()] } else { writes }, ..Effects::default() }
    }

    fn call(&self, args: &Args, cx: &ToolCx) -> Result<Raw, ToolError> {
        let orders = self.orders(args)?;
        let runtime = Handle::try_current().map_err(|e| ToolError::Failed(e.to_string()))?;
        let left = runtime.block_on(self.pool.work(&orders, &cx.cancel));
        let text = left.iter().map(|left| left.text.as_str()).collect::<Vec<_>>().join("\n");
        if left.iter().any(|left| left.done) { Ok(Raw::text(text)) } else { Err(ToolError::Failed(text)) }
    }
}

#[cfg(test)]
mod tests;
