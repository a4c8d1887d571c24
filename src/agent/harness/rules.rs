//! The guards of a run, and of the runs that work for it: what the person has allowed holds in all of them.

use crate::guard::{ActionGuard, Budget, GoalGuard, GroundGuard, Guard, Guards, LoopGuard, LoopLimits, Policy, Rights};
use crate::plan::Plan;
use crate::store::{Store, is_alive};
use crate::subagent::{Hire, Hired};
use crate::turn::Task;
use caro_intent::orders_removal;
use caro_policy::Redactor;
use std::path::PathBuf;
use std::sync::Arc;

/// What holds in every run.
pub(super) struct Rules {
    /// The person's working folder.
    pub(super) root: PathBuf,
    /// Where the agent's own files are.
    pub(super) own: Option<PathBuf>,
    /// True if changes below the working folder are not asked for.
    pub(super) yes: bool,
    /// When a repetition is a loop.
    pub(super) loops: LoopLimits,
    /// Names of the guards that are left out.
    pub(super) without: Vec<String>,
    /// Guards that whoever uses the harness has beside ours.
    pub(super) more: Vec<Arc<dyn Guard>>,
}

impl Rules {
    /// The guards for a task.
    pub(super) fn guards(&self, task: &Task) -> Guards {
        let mut guards: Vec<Arc<dyn Guard>> = vec![
            Arc::new(ActionGuard),
            Arc::new(LoopGuard { limits: self.loops }),
            Arc::new(Budget::default()),
            Arc::new(GoalGuard::new(&task.text, &self.root)),
            // by the words of the task, whoever made the plan: no model's word changes a guard
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

/// Where workers are written down and given their guards.
pub(super) struct Office {
    pub(super) store: Arc<Store>,
    pub(super) rules: Rules,
    pub(super) redactor: Redactor,
}

impl Hire for Office {
    fn hire(&self, task: &Task) -> Result<Hired, String> {
        let text = self.redactor.text(&task.text);
        // a worker ends with its lead, and is not gone on with
        self.store.begin(task, &text, "", &self.rules.root, is_alive).map_err(|e| e.to_string())?;
        Ok(Hired { guards: self.rules.guards(task), sinks: vec![self.store.clone()] })
    }
}
