//! Runs from their words to their end, for whoever shows or answers them by itself: [`Harness::run`] is one of these.

use super::{Harness, HarnessError, WAIT, session_name};
use crate::event::{Draft, Kind, Sink};
use crate::plan;
use crate::runtime::{Approver, Driven};
use crate::state::Limits;
use crate::turn::{AgentRun, Task};
use caro_model::Cancel;
use caro_policy as policy;
use std::sync::Arc;

/// How a run is watched while it is conducted.
#[derive(Default)]
pub struct Watch {
    /// The switch that stops it.
    pub cancel: Cancel,
    /// Its limits, where they are others than the harness's own.
    pub limits: Option<Limits>,
    /// Where its events go beside the store.
    pub sinks: Vec<Arc<dyn Sink>>,
    /// Answers its questions; without one all that would be asked for is refused.
    pub approver: Option<Arc<dyn Approver>>,
}

impl Harness {
    /// The task that these words are, as one more of the session; without a name, of a new one.
    ///
    /// # Errors
    /// If it is no task, or the session cannot be named so.
    pub fn admit(&self, text: &str, session: Option<&str>) -> Result<Task, HarnessError> {
        if let Some(why) = plan::unclear(text) {
            return Err(HarnessError::Unclear(why));
        }
        policy::admit(text, self.options.guardrail)?;
        Ok(self.task(text, &session_name(session)?))
    }

    /// Works on a task to its end, or until it is stopped. It waits for a run that the session is busy with. What was said
    /// before in the session is told to the model. Needs a Tokio runtime.
    ///
    /// # Errors
    /// If it cannot be begun. A run that fails is no error: its report says why.
    pub async fn conduct(&self, task: Task, watch: Watch) -> Result<Driven, HarnessError> {
        let Watch { cancel, limits, sinks, approver } = watch;
        let _turn = self.queue.enter(&task.session).await;
        if cancel.is_cancelled() {
            return Err(HarnessError::Stopped(task.run));
        }
        let mut warnings = Vec::new();
        let mut run = self.prepare(&task, cancel, &mut |warning| warnings.push(warning.to_owned()))?;
        let mut turn = AgentRun::new(task);
        turn.limit(limits.unwrap_or(self.options.limits));
        let first = run.first(&turn);
        while run.try_begin(&first)?.is_some() {
            tokio::time::sleep(WAIT).await;
        }
        run.recall()?;
        let runtime = run.runtime(1, sinks, approver);
        for warning in warnings {
            runtime.emitter.emit(Draft::new(Kind::RuntimeError).error(warning));
        }
        Ok(runtime.run(turn).await)
    }
}
