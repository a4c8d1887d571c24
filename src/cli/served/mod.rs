//! Serves requests, checks, explanations and manuals to other programs: over HTTP or standard input and output.
//!
//! - [`commands`]: those four. [`stdio`]: the MCP server on standard input and output. Here: the threads and signals of
//!   both.

pub mod commands;
pub mod stdio;

use crate::term::interrupt::{During, Phase};
use crate::{Cx, Failure};
use std::sync::Arc;
use tokio::runtime::Runtime;
use tokio::sync::Notify;

/// Starts the threads of a server, and the listener that passes signals on to it: from here on the server ends itself.
///
/// # Errors
/// If the system gives no threads.
pub fn begin(cx: &Cx) -> Result<(Runtime, Arc<Notify>, impl Future<Output = ()> + Send + use<>, During<'_>), Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(|e| Failure::internal(format!("no async runtime: {e}")))?;
    let stop = Arc::new(Notify::new());
    let listener = {
        let _entered = runtime.enter();
        signals(stop.clone())
    };
    // only now, so that no signal is missed by both this process and the server
    let phase = cx.interrupt().during(Phase::Serves);
    Ok((runtime, stop, listener, phase))
}

/// Notifies `stop` of each SIGINT and SIGTERM. Signals are received from the call on, not only once the future runs.
/// Needs a Tokio runtime.
#[cfg(unix)]
fn signals(stop: Arc<Notify>) -> impl Future<Output = ()> + Send + 'static {
    use tokio::signal::unix::{SignalKind, signal};
    let listeners = (signal(SignalKind::interrupt()), signal(SignalKind::terminate()));
    async move {
        let (Ok(mut interrupt), Ok(mut terminate)) = listeners else { return };
        loop {
            tokio::select! {
                _ = interrupt.recv() => stop.notify_one(),
                _ = terminate.recv() => stop.notify_one(),
            }
        }
    }
}

#[cfg(not(unix))]
async fn signals(stop: Arc<Notify>) {
    while tokio::signal::ctrl_c().await.is_ok() {
        stop.notify_one();
    }
}
