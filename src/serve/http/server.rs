//! The state shared by all handlers, and the parts it is built from.

use super::commands::Commands;
use super::embedding::Embedding;
use super::gate::Gate;
use super::lifecycle::{Event, Lifecycle, Phase};
use super::live::Runs;
use super::mcp::sessions::Sessions;
use super::metrics::Metrics;
use super::queue::{MAX_ANSWERS, MAX_RUNS, MAX_WAITING, Places};
use super::{Problem, Settings, Token};
use crate::mcp::tools::Offer;
use caro_agent::Harness;
use caro_model::{Cancel, Model};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Instant;
use tokio::sync::watch;

/// Writes a line of the request log.
pub type Log = Arc<dyn Fn(&str) + Send + Sync>;

/// The parts that a server is built from.
pub struct Parts {
    /// The agent's name, reported by `/health`.
    pub agent: String,
    /// The user's settings.
    pub settings: Settings,
    /// The token that requests need.
    pub token: Token,
    /// The tools offered to clients of the Model Context Protocol.
    pub offer: Offer,
    /// The request log, if requests are logged.
    pub log: Option<Log>,
}

/// The parts that answer requests, available once the model is loaded.
pub struct Engine {
    /// The model.
    pub model: Arc<dyn Model>,
    /// Other names of the model, besides its id.
    pub names: Vec<String>,
    /// The embedding model.
    pub embedding: Embedding,
    /// Commands and manuals.
    pub commands: Arc<dyn Commands>,
    /// Runs, sessions, tools.
    pub harness: Arc<Harness>,
}

/// The state shared by all handlers.
pub struct Server {
    pub(super) parts: Parts,
    pub(super) started: Instant,
    lifecycle: Mutex<Lifecycle>,
    phase: watch::Sender<Phase>,
    engine: RwLock<Option<Arc<Engine>>>,
    pub(super) live: Arc<Runs>,
    /// Stops background tasks, which belong to no request.
    pub(super) cancel: Cancel,
    /// Locked while a background task runs.
    pub(super) task: tokio::sync::Mutex<()>,
    pub(super) answers: Arc<Places>,
    pub(super) runs: Arc<Places>,
    pub(super) mcp: Sessions,
    pub(super) gate: Gate,
    pub(super) metrics: Metrics,
}

impl Server {
    /// Creates a server that does not listen yet. `bound` is the address that it will listen at; `None` for a Unix
    /// socket.
    pub fn new(parts: Parts, bound: Option<SocketAddr>) -> Arc<Self> {
        let lifecycle = Lifecycle::default();
        Arc::new(Self {
            started: Instant::now(),
            phase: watch::Sender::new(lifecycle.phase()),
            lifecycle: Mutex::new(lifecycle),
            engine: RwLock::default(),
            live: Arc::default(),
            cancel: Cancel::new(),
            task: tokio::sync::Mutex::default(),
            answers: Places::new(MAX_ANSWERS, MAX_WAITING),
            runs: Places::new(MAX_RUNS, MAX_WAITING),
            mcp: Sessions::default(),
            gate: Gate::new(&parts.settings, bound),
            metrics: Metrics::default(),
            parts,
        })
    }

    /// Returns the engine.
    ///
    /// # Errors
    /// If the server is still starting, or is ending.
    pub fn engine(&self) -> Result<Arc<Engine>, Problem> {
        let engine = self.engine.read().unwrap_or_else(PoisonError::into_inner).clone();
        engine.ok_or_else(|| if self.phase().admits() { Problem::starting() } else { Problem::draining() })
    }

    /// Sets the engine.
    pub fn set_engine(&self, engine: Engine) {
        *self.engine.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(engine));
    }

    /// Removes the engine once its runs have ended.
    pub(super) fn take_engine(&self) -> Option<Arc<Engine>> {
        self.engine.write().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// The current phase.
    pub fn phase(&self) -> Phase {
        *self.phase.borrow()
    }

    /// Waits until the phase satisfies a condition.
    pub async fn wait_for_phase(&self, holds: impl FnMut(&Phase) -> bool) {
        // fails only once the sender is dropped, which `self` owns
        let _ = self.phase.subscribe().wait_for(holds).await;
    }

    /// Applies an event to the lifecycle; returns the new phase.
    pub fn apply(&self, event: Event) -> Phase {
        let mut lifecycle = self.lifecycle.lock().unwrap_or_else(PoisonError::into_inner);
        let phase = lifecycle.apply(event);
        self.phase.send_replace(phase);
        phase
    }

    /// The number of requests in progress, counted until their response bodies have ended.
    pub fn active(&self) -> usize {
        self.metrics.active()
    }

    /// Awaits an answer, at most for the time in the settings, and until the server no longer waits for it.
    pub(super) async fn within_timeout<T>(&self, answer: impl Future<Output = T>) -> Result<T, Problem> {
        let limited = async {
            let Some(limit) = self.parts.settings.timeout else { return Ok(answer.await) };
            tokio::time::timeout(limit, answer).await.map_err(|_| Problem::timeout(limit.as_secs_f64()))
        };
        tokio::select! {
            // an answer that is ready is given in every phase
            biased;
            answered = limited => answered,
            () = self.wait_for_phase(|phase| matches!(phase, Phase::Stopping(_) | Phase::Stopped)) => {
                Err(Problem::stopped())
            }
        }
    }

    /// Logs a line, if requests are logged.
    pub(super) fn log(&self, line: &str) {
        if let Some(log) = &self.parts.log {
            log(line);
        }
    }
}
