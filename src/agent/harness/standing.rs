//! Creates the runtime of the perpetual loop, which uses the harness's model, tools, store and memory without being a
//! run.

use super::{Harness, HarnessError};
use crate::blueprint::Blueprint;
use crate::event::{Emitter, Sink};
use crate::guard::{Guard, Guards, Policy, Rights};
use crate::memory::Memory;
use crate::runtime::{Approver, Config, DenyAll, NoCheckpoints, Runtime};
use crate::store::is_alive;
use crate::tools::Revise;
use crate::turn::Task;
use crate::workspace::Workspaces;
use caro_intent::orders_removal;
use caro_model::Cancel;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

impl Harness {
    /// Records the loop as started, and creates its runtime. `call_limit` is the timeout of a call.
    ///
    /// # Errors
    /// If another process is active in the session, or the start cannot be recorded.
    pub(crate) fn standing(
        &self,
        task: &Task,
        call_limit: Duration,
        sinks: Vec<Arc<dyn Sink>>,
        approver: Option<Arc<dyn Approver>>,
        cancel: Cancel,
    ) -> Result<Runtime, HarnessError> {
        self.store.begin(task, &self.redactor.text(&task.text), "", &self.root, is_alive)?;
        let mut registry = self.registry(&task.session)?;
        registry.add(Arc::new(Revise::append(self.keeper.clone())))?;
        let mut all: Vec<Arc<dyn Sink>> = vec![self.store.clone()];
        all.extend(sinks);
        Ok(Runtime {
            model: self.model.clone(),
            registry,
            guards: self.policy(&task.text),
            providers: Vec::new(),
            approver: approver.unwrap_or_else(|| Arc::new(DenyAll)),
            artifacts: None,
            checkpoints: Arc::new(NoCheckpoints),
            notes: None,
            suggester: None,
            usage_ledger: None,
            emitter: Arc::new(Emitter::new(task.run.clone(), 1, self.redactor.clone(), all)),
            cancel,
            config: Config {
                call_limit,
                guardrail: self.options.guardrail,
                blueprints: Blueprint::of_run(false, false),
                ..Config::new(self.root.clone())
            },
        })
    }

    /// Creates the guards for work on a text of the user: permissions, but no loop detection, as turns repeat by
    /// nature.
    pub(crate) fn policy(&self, text: &str) -> Guards {
        let rights = Rights { changes: self.options.unasked, removals: orders_removal(text) };
        let policy: Arc<dyn Guard> = Arc::new(Policy { root: self.root.clone(), own: Vec::new(), rights });
        Guards::new(std::iter::once(policy).chain(self.guards.iter().cloned()).collect(), &[])
    }

    /// Returns the folder in which runs work.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// Returns the store of notes and conversations.
    pub(crate) fn memory(&self) -> &Memory {
        &self.memory
    }

    /// Returns the store of the agents' own files.
    pub(crate) fn workspaces(&self) -> Option<&Workspaces> {
        self.workspaces.as_ref()
    }
}
