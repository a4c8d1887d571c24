//! Requests, checks, explanations and manuals as the verbs give them, for other programs: over HTTP or over a pipe.
//!
//! - [`commands`]: those four. [`stdio`]: a server of tools on standard input and output. Here: the threads of either, and the
//!   signals that end it.

pub mod commands;
pub mod stdio;

use crate::term::interrupt::{During, Phase};
use crate::{Cx, Failure};
use std::sync::Arc;
use tokio::runtime::Runtime;
use tokio::sync::Notify;

/// The threads of a server, and what tells it of signals: from here on it ends by itself.
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
    let listens = {
        let _entered = runtime.enter();
        signals(stop.clone())
    };
    // only now: a signal that neither this process nor the server hears would be lost
    let phase = cx.interrupt().during(Phase::Serves);
    Ok((runtime, stop, listens, phase))
}

/// Rings whenever the system or the person wants an end. It is heard from the call on, not only once the future runs.
/// Needs a Tokio runtime.
#[cfg(unix)]
fn signals(stop: Arc<Notify>) -> impl Future<Output = ()> + Send + 'static {
    use tokio::signal::unix::{SignalKind, signal};
    let heard = (signal(SignalKind::interrupt()), signal(SignalKind::terminate()));
    async move {
        let (Ok(mut interrupt), Ok(mut terminate)) = heard else { return };
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
