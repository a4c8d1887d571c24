//! A runtime for what is no run of an agent, on the same model, tools, store and memory: the perpetual loop.

use super::{Harness, HarnessError};
use crate::blueprint::Blueprint;
use crate::event::{Emitter, Sink};
use crate::guard::{Guard, Guards, Policy, Rights};
use crate::memory::Memory;
use crate::runtime::{Approver, Config, DenyAll, NoCheckpoints, Runtime};
use crate::store::is_alive;
use crate::tools::Append;
use crate::turn::Task;
use crate::workspace::Workspaces;
use caro_intent::orders_removal;
use caro_model::Cancel;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

impl Harness {
    /// Writes it down as begun, and makes the runtime for it. A call takes `call_limit` at most.
    ///
    /// # Errors
    /// If another process is at work in the session, or it cannot be written down.
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
        registry.add(Arc::new(Append::default()))?;
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
            bill: None,
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

    /// The guards of whoever works on these words of a person: what may be done, and no loop, as turns repeat by nature.
    pub(crate) fn policy(&self, text: &str) -> Guards {
        let rights = Rights { changes: self.options.unasked, removals: orders_removal(text) };
        let policy: Arc<dyn Guard> = Arc::new(Policy { root: self.root.clone(), own: Vec::new(), rights });
        Guards::new(std::iter::once(policy).chain(self.guards.iter().cloned()).collect(), &[])
    }

    /// The folder that runs work in.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// Notes and conversations.
    pub(crate) fn memory(&self) -> &Memory {
        &self.memory
    }

    /// Where the agents' own files are.
    pub(crate) fn workspaces(&self) -> Option<&Workspaces> {
        self.workspaces.as_ref()
    }
}
