//! Ctrl-C: the first ends what can be ended well, the second ends the process, and the terminal stays clean either way.

use super::Exit;
use crate::model::Cancel;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// What a Ctrl-C means right now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Phase {
    /// Something runs that looks at the [`Cancel`]: the first pulls it, the second ends the process.
    Cancels = 0,
    /// We wait for the person: it ends the process.
    Ends = 1,
    /// A child has the terminal: it is the child's.
    Child = 2,
}

/// The listener. It lives as long as the process.
#[derive(Debug)]
pub struct Interrupt {
    phase: Arc<AtomicU8>,
    cancel: Cancel,
    /// What Ctrl-C pulls now: the first one, or that of the turn of a conversation.
    current: Arc<Mutex<Cancel>>,
    turns: AtomicBool,
}

impl Interrupt {
    /// Starts to listen, in [`Phase::Cancels`]; `clear` takes moving lines off the terminal. Where the system lets nobody
    /// listen, Ctrl-C ends the process as it always does.
    pub fn listen(clear: impl Fn() + Send + 'static) -> Self {
        let (phase, cancel) = (Arc::new(AtomicU8::new(Phase::Cancels as u8)), Cancel::new());
        let current = Arc::new(Mutex::new(cancel.clone()));
        let listener = Self { phase: phase.clone(), cancel, current: current.clone(), turns: AtomicBool::new(false) };
        let (ready, listening) = std::sync::mpsc::channel();
        let started = std::thread::Builder::new().name("interrupt".into()).spawn(move || {
            let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_io().build() else { return };
            runtime.block_on(async {
                let Ok(mut signals) = Signals::new() else { return };
                let _ = ready.send(());
                while signals.recv().await {
                    let phase = phase.load(Ordering::Relaxed);
                    if phase == Phase::Child as u8 {
                        continue;
                    }
                    clear();
                    let cancel = current.lock().unwrap_or_else(PoisonError::into_inner).clone();
                    if phase == Phase::Ends as u8 || cancel.is_cancelled() {
                        std::process::exit(Exit::Interrupted.code().into());
                    }
                    cancel.cancel();
                }
            });
        });
        if started.is_ok() {
            // A Ctrl-C from here on is heard; without a listener the channel closes at once.
            let _ = listening.recv();
        }
        listener
    }

    /// What Ctrl-C pulls.
    pub fn cancel(&self) -> &Cancel {
        &self.cancel
    }

    /// A new switch for Ctrl-C to pull, in the place of the one before: one for each turn of a conversation. Who asks the
    /// person something in such a turn has Ctrl-C end the turn and not the process.
    pub fn fresh(&self) -> Cancel {
        let cancel = Cancel::new();
        *self.current.lock().unwrap_or_else(PoisonError::into_inner) = cancel.clone();
        self.turns.store(true, Ordering::Relaxed);
        cancel
    }

    /// True in a conversation, see [`Interrupt::fresh`].
    pub fn has_turns(&self) -> bool {
        self.turns.load(Ordering::Relaxed)
    }

    /// Pulls what Ctrl-C would pull.
    pub fn pull(&self) {
        self.current.lock().unwrap_or_else(PoisonError::into_inner).cancel();
    }

    /// Says what Ctrl-C means until the guard is dropped.
    pub fn during(&self, phase: Phase) -> During<'_> {
        During { phase: &self.phase, before: self.phase.swap(phase as u8, Ordering::Relaxed) }
    }
}

/// Puts the phase back that was before.
#[derive(Debug)]
pub struct During<'a> {
    phase: &'a AtomicU8,
    before: u8,
}

impl Drop for During<'_> {
    fn drop(&mut self) {
        self.phase.store(self.before, Ordering::Relaxed);
    }
}

/// Ctrl-C as the system tells it.
#[cfg(unix)]
struct Signals(tokio::signal::unix::Signal);

#[cfg(unix)]
impl Signals {
    fn new() -> std::io::Result<Self> {
        tokio::signal::unix::signal(tokio::signal::unix::SignalKind::interrupt()).map(Self)
    }

    async fn recv(&mut self) -> bool {
        self.0.recv().await.is_some()
    }
}

#[cfg(windows)]
struct Signals(tokio::signal::windows::CtrlC);

#[cfg(windows)]
impl Signals {
    fn new() -> std::io::Result<Self> {
        tokio::signal::windows::ctrl_c().map(Self)
    }

    async fn recv(&mut self) -> bool {
        self.0.recv().await.is_some()
    }
}
