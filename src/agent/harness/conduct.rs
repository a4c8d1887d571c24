//! Conducts a run from its text to its end, for callers that show its events and answer its questions themselves.

use super::{Harness, HarnessError, SessionTurn, session_name};
use crate::event::{Draft, Kind, Sink};
use crate::plan;
use crate::runtime::{Approver, Driven};
use crate::state::Limits;
use crate::turn::{AgentRun, Task};
use caro_model::Cancel;
use caro_policy as policy;
use std::sync::Arc;

/// The ways in which a caller watches and controls a run.
#[derive(Default)]
pub struct Watch {
    /// Stops the run.
    pub cancel: Cancel,
    /// The limits of the run; `None` for those of the harness.
    pub limits: Option<Limits>,
    /// Receivers of its events in addition to the store.
    pub sinks: Vec<Arc<dyn Sink>>,
    /// Answers its requests for permission; without an approver all of them are refused.
    pub approver: Option<Arc<dyn Approver>>,
}

impl Harness {
    /// Makes a task of a text, in the named session or in a new one.
    ///
    /// # Errors
    /// If the text is no task, or the name of the session is invalid.
    pub fn admit(&self, text: &str, session: Option<&str>) -> Result<Task, HarnessError> {
        if let Some(why) = plan::unclear(text) {
            return Err(HarnessError::Unclear(why));
        }
        policy::admit(text, self.options.guardrail)?;
        Ok(self.task(text, &session_name(session)?))
    }

    /// Waits until no other run of this process is active in a session, which is then reserved for the caller.
    pub(crate) async fn enter(&self, session: &str) -> SessionTurn {
        self.queue.enter(session).await
    }

    /// Reserves a session, unless a run of this process is active in it.
    pub fn try_enter(&self, session: &str) -> Option<SessionTurn> {
        self.queue.try_enter(session)
    }

    /// Works on a task to its end, or until it is stopped. Waits while another run of the session is active. The
    /// model is shown the earlier messages of the session. Needs a Tokio runtime.
    ///
    /// # Errors
    /// If the run cannot be started. A failed run is no error: its report says why.
    pub async fn conduct(&self, task: Task, watch: Watch) -> Result<Driven, HarnessError> {
        let Watch { cancel, limits, sinks, approver } = watch;
        let _turn = self.enter(&task.session).await;
        if cancel.is_cancelled() {
            return Err(HarnessError::Stopped(task.run));
        }
        let mut warnings = Vec::new();
        let mut run = self.prepare(&task, cancel, &mut |warning| warnings.push(warning.to_owned()))?;
        let mut turn = AgentRun::new(task);
        turn.limit(limits.unwrap_or(self.options.limits));
        run.begin_in_turn(&turn).await?;
        run.recall()?;
        let runtime = run.runtime(1, sinks, approver);
        for warning in warnings {
            runtime.emitter.emit(Draft::new(Kind::RuntimeError).error(warning));
        }
        Ok(runtime.run(turn).await)
    }
}
