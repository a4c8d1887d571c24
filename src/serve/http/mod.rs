//! `caro serve`: the local model, the command recipe and the agent over HTTP, for programs of this machine.
//!
//! It wraps what there is ([`caro_agent::harness`], and what the verb hands over) and adds no loop, no
//! event type and no prompt. It prints nothing.
//!
//! - [`routes`]: every route, in one table. [`gate`]: what is looked at before anything else: host, origin, token, rate.
//! - [`lifecycle`]: how the server begins and ends, as a pure state machine. [`listen`]: connections, and their limits.
//! - [`queue`]: who is answered next. [`body`]: bodies within their limits. [`problem`]: errors as JSON.
//! - [`health`], [`command`], [`runs`], [`events`], [`sessions`], [`openapi`], [`models`], [`missing`]: handlers, a file a topic. [`openai`]: the
//!   doors of OpenAI's protocol. [`mod@mcp`]: the Model Context Protocol, with the tools that [`toolbox`] has. [`sse`]: streams of events.
//!   `page`: the page to ask with, and the one that shows the interface.
//! - [`settings`], [`token`]: what the person decides.

pub mod body;
pub mod command;
pub mod events;
pub mod gate;
pub mod health;
pub mod lifecycle;
pub mod listen;
pub mod mcp;
pub mod metrics;
pub mod missing;
pub mod models;
pub mod openai;
pub mod openapi;
pub mod problem;
pub mod queue;
pub mod routes;
pub mod runs;
pub mod sessions;
pub mod settings;
pub mod sse;
pub mod token;
pub mod toolbox;

pub use command::Commands;
pub use problem::Problem;
pub use settings::Settings;
pub use token::Token;

use crate::mcp::tools::Offer;
use axum::Router;
use axum::middleware::from_fn_with_state;
use caro_agent::Harness;
use caro_model::{Cancel, Model};
use lifecycle::{Event, Lifecycle, Phase};
use metrics::Metrics;
use queue::Places;
use routes::{Load, ROUTES};
use runs::Runs;
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
    pub embedding: openai::embeddings::Embedding,
    /// Commands, and what is to be said of them.
    pub commands: Arc<dyn Commands>,
    /// Runs, sessions, tools.
    pub harness: Arc<Harness>,
}

/// The state that all handlers share.
pub struct Server {
    parts: Parts,
    started: Instant,
    lifecycle: Mutex<Lifecycle>,
    phase: watch::Sender<Phase>,
    engine: RwLock<Option<Arc<Engine>>>,
    live: Arc<Runs>,
    /// Stops what nobody waits for: tasks in the background.
    cancel: Cancel,
    answers: Arc<Places>,
    runs: Arc<Places>,
    mcp: mcp::Sessions,
    gate: gate::Gate,
    metrics: Metrics,
}

impl Server {
    /// A server that listens nowhere yet. `bound` is the port that it is going to be reached at, if it is one.
    pub fn new(parts: Parts, bound: Option<std::net::SocketAddr>) -> Arc<Self> {
        let lifecycle = Lifecycle::default();
        Arc::new(Self {
            started: Instant::now(),
            phase: watch::Sender::new(lifecycle.phase()),
            lifecycle: Mutex::new(lifecycle),
            engine: RwLock::default(),
            live: Arc::default(),
            cancel: Cancel::new(),
            answers: Places::new(queue::ANSWERS, queue::WAITING),
            runs: Places::new(queue::RUNS, queue::WAITING),
            mcp: mcp::Sessions::default(),
            gate: gate::Gate::new(&parts.settings, bound),
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

    fn take_engine(&self) -> Option<Arc<Engine>> {
        self.engine.write().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Runs that are under way.
    pub fn live(&self) -> &Arc<Runs> {
        &self.live
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
    async fn in_time<T>(&self, answer: impl Future<Output = T>) -> Result<T, Problem> {
        let Some(limit) = self.parts.settings.timeout else { return Ok(answer.await) };
        tokio::time::timeout(limit, answer).await.map_err(|_| Problem::timeout(limit.as_secs_f64()))
    }

    fn log(&self, line: &str) {
        if let Some(log) = &self.parts.log {
            log(line);
        }
    }
}

/// All routes behind the guard.
pub fn app(server: &Arc<Server>) -> Router {
    let mut router = Router::new();
    for route in ROUTES {
        let handler = (route.handler)();
        let queued = |places: &Arc<Places>| {
            handler.clone().layer(from_fn_with_state((server.clone(), places.clone()), queue::enter))
        };
        router = router.route(
            route.path,
            match route.load {
                Load::Light => handler,
                Load::Answer => queued(&server.answers),
                Load::Run => queued(&server.runs),
            },
        );
    }
    router
        .fallback(missing::nothing)
        .method_not_allowed_fallback(missing::wrong_method)
        .with_state(server.clone())
        .layer(from_fn_with_state(server.clone(), gate::guard))
}
