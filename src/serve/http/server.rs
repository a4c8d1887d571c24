//! The state that all handlers share, and the parts that it is built from.

use super::commands::Commands;
use super::embedding::Embedding;
use super::gate::Gate;
use super::lifecycle::{Event, Lifecycle, Phase};
use super::live::Runs;
use super::mcp::sessions::Sessions;
use super::metrics::Metrics;
use super::queue::{ANSWERS, Places, RUNS, WAITING};
use super::{Problem, Settings, Token};
use crate::mcp::tools::Offer;
use caro_agent::Harness;
use caro_model::{Cancel, Model};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Instant;
use tokio::sync::watch;

/// Takes a line of the request log.
pub type Log = Arc<dyn Fn(&str) + Send + Sync>;

/// The parts that a server is built from.
pub struct Parts {
    /// The agent's name, as `/health` tells it.
    pub agent: String,
    /// The person's settings.
    pub settings: Settings,
    /// The token that requests need.
    pub token: Token,
    /// The tools that are offered to clients of the Model Context Protocol.
    pub offer: Offer,
    /// Where requests are logged, if they are.
    pub log: Option<Log>,
}

/// The parts that answer, once the model is there.
pub struct Engine {
    /// The model.
    pub model: Arc<dyn Model>,
    /// Other names that it is known by, beside its id.
    pub names: Vec<String>,
    /// The model that makes vectors of texts.
    pub embedding: Embedding,
    /// Commands, and what is to be said of them.
    pub commands: Arc<dyn Commands>,
    /// Runs, sessions, tools.
    pub harness: Arc<Harness>,
}

/// The state that all handlers share.
pub struct Server {
    pub(super) parts: Parts,
    pub(super) started: Instant,
    lifecycle: Mutex<Lifecycle>,
    phase: watch::Sender<Phase>,
    engine: RwLock<Option<Arc<Engine>>>,
    pub(super) live: Arc<Runs>,
    /// Stops what nobody waits for: tasks in the background.
    pub(super) cancel: Cancel,
    pub(super) answers: Arc<Places>,
    pub(super) runs: Arc<Places>,
    pub(super) mcp: Sessions,
    pub(super) gate: Gate,
    pub(super) metrics: Metrics,
}

impl Server {
    /// A server that listens nowhere yet. `bound` is the port that it is going to be reached at, if it is one.
    pub fn new(parts: Parts, bound: Option<SocketAddr>) -> Arc<Self> {
        let lifecycle = Lifecycle::default();
        Arc::new(Self {
            started: Instant::now(),
            phase: watch::Sender::new(lifecycle.phase()),
            lifecycle: Mutex::new(lifecycle),
            engine: RwLock::default(),
            live: Arc::default(),
            cancel: Cancel::new(),
            answers: Places::new(ANSWERS, WAITING),
            runs: Places::new(RUNS, WAITING),
            mcp: Sessions::default(),
            gate: Gate::new(&parts.settings, bound),
            metrics: Metrics::default(),
            parts,
        })
    }

    /// The engine.
    ///
    /// # Errors
    /// While the model is not there yet, or not any more.
    pub fn engine(&self) -> Result<Arc<Engine>, Problem> {
        let engine = self.engine.read().unwrap_or_else(PoisonError::into_inner).clone();
        engine.ok_or_else(|| if self.phase().admits() { Problem::starting() } else { Problem::draining() })
    }

    /// Sets the engine.
    pub fn set_engine(&self, engine: Engine) {
        *self.engine.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(engine));
    }

    /// Takes it away: its runs are over.
    pub(super) fn take_engine(&self) -> Option<Arc<Engine>> {
        self.engine.write().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// How the server stands.
    pub fn phase(&self) -> Phase {
        *self.phase.borrow()
    }

    /// Waits until it stands so.
    pub async fn until(&self, holds: impl FnMut(&Phase) -> bool) {
        // the sender is ours: it cannot close
        let _ = self.phase.subscribe().wait_for(holds).await;
    }

    /// Tells the lifecycle what happened; returns how the server stands now.
    pub fn tell(&self, event: Event) -> Phase {
        let mut lifecycle = self.lifecycle.lock().unwrap_or_else(PoisonError::into_inner);
        let phase = lifecycle.apply(event);
        self.phase.send_replace(phase);
        phase
    }

    /// Requests that are under way, to the end of their bodies.
    pub fn active(&self) -> usize {
        self.metrics.active()
    }

    /// The answer, if it comes within the time that the person allows.
    pub(super) async fn in_time<T>(&self, answer: impl Future<Output = T>) -> Result<T, Problem> {
        let Some(limit) = self.parts.settings.timeout else { return Ok(answer.await) };
        tokio::time::timeout(limit, answer).await.map_err(|_| Problem::timeout(limit.as_secs_f64()))
    }

    /// Logs a line, where that is wanted.
    pub(super) fn log(&self, line: &str) {
        if let Some(log) = &self.parts.log {
            log(line);
        }
    }
}
