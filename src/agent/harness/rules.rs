//! Creates the guards of a run and of its workers. The permissions given by the user hold in all of them.

use crate::guard::{ActionGuard, Budget, GoalGuard, GroundGuard, Guard, Guards, LoopGuard, LoopLimits, Policy, Rights};
use crate::plan::Plan;
use crate::store::{Store, is_alive};
use crate::subagent::{Hire, Hired};
use crate::turn::Task;
use caro_intent::orders_removal;
use caro_policy::Redactor;
use std::path::PathBuf;
use std::sync::Arc;

/// The settings of the guards, the same for every run.
pub(super) struct Rules {
    /// The user's working folder.
    pub(super) root: PathBuf,
    /// The folder of the agent's own files.
    pub(super) own: Option<PathBuf>,
    /// True if changes below the working folder need no permission.
    pub(super) yes: bool,
    /// The limits at which a repetition counts as a loop.
    pub(super) loops: LoopLimits,
    /// Names of the guards that are left out.
    pub(super) without: Vec<String>,
    /// Additional guards of the caller.
    pub(super) more: Vec<Arc<dyn Guard>>,
}

impl Rules {
    /// Creates the guards for a task.
    pub(super) fn guards(&self, task: &Task) -> Guards {
        let mut guards: Vec<Arc<dyn Guard>> = vec![
            Arc::new(ActionGuard),
            Arc::new(LoopGuard { limits: self.loops }),
            Arc::new(Budget::default()),
            Arc::new(GoalGuard::new(&task.text, &self.root)),
            // the plan is made here from the words of the task, as a plan of the model must not influence a guard
            Arc::new(GroundGuard::new(&task.text, &Plan::heuristic(&task.text))),
            Arc::new(Policy {
                root: self.root.clone(),
                own: self.own.iter().cloned().collect(),
                rights: Rights { changes: self.yes, removals: orders_removal(&task.text) },
            }),
        ];
        guards.extend(self.more.iter().cloned());
        Guards::new(guards, &self.without)
    }
}

/// Registers workers in the store and gives them their guards.
pub(super) struct WorkerSetup {
    pub(super) store: Arc<Store>,
    pub(super) rules: Rules,
    pub(super) redactor: Redactor,
}

impl Hire for WorkerSetup {
    fn hire(&self, task: &Task) -> Result<Hired, String> {
        let text = self.redactor.text(&task.text);
        // no checkpoint: a worker ends with its lead, and is never resumed
        self.store.begin(task, &text, "", &self.rules.root, is_alive).map_err(|e| e.to_string())?;
        Ok(Hired { guards: self.rules.guards(task), sinks: vec![self.store.clone()] })
    }
}
