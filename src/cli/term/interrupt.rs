//! Handles Ctrl-C: the first cancels the work in progress, the second ends the process, and the terminal stays clean
//! either way. SIGTERM and SIGHUP do both without a second signal. No child is left running.

use crate::Exit;
use caro_exec as exec;
use caro_model::Cancel;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Most time for the process to end by itself after SIGTERM or SIGHUP.
const GRACE: Duration = Duration::from_secs(2);

/// The present effect of Ctrl-C.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Phase {
    /// Work checks the [`Cancel`]: the first Ctrl-C triggers it, the second ends the process.
    Cancels = 0,
    /// The program waits for the user: Ctrl-C ends the process.
    Ends = 1,
    /// A child has the terminal: Ctrl-C is left to the child.
    Child = 2,
    /// The server handles signals itself: it lets requests in progress end.
    Serves = 3,
}

/// The listener. It lives as long as the process.
#[derive(Debug)]
pub struct Interrupt {
    phase: Arc<AtomicU8>,
    cancel: Cancel,
    /// The token that Ctrl-C cancels now: `cancel`, or that of a turn of a conversation.
    current: Arc<Mutex<Cancel>>,
    turns: AtomicBool,
    /// The exit code of the signal that ends the process, 0 if there was none.
    signal_code: Arc<AtomicU8>,
}

impl Interrupt {
    /// Starts to listen, in [`Phase::Cancels`]; `clear` removes moving lines from the terminal. If listening fails,
    /// Ctrl-C ends the process as usual.
    pub fn listen(clear: impl Fn() + Send + 'static) -> Self {
        let (phase, cancel) = (Arc::new(AtomicU8::new(Phase::Cancels as u8)), Cancel::new());
        let current = Arc::new(Mutex::new(cancel.clone()));
        let signal_code = Arc::new(AtomicU8::new(0));
        let listener = Self {
            phase: phase.clone(),
            cancel,
            current: current.clone(),
            turns: AtomicBool::new(false),
            signal_code: signal_code.clone(),
        };
        let (ready, listening) = std::sync::mpsc::channel();
        let terminal = Terminal::of_process();
        let started = std::thread::Builder::new().name("interrupt".into()).spawn(move || {
            let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else { return };
            runtime.block_on(async {
                let Ok(mut signals) = Signals::new() else { return };
                let _ = ready.send(());
                while let Some(signal) = signals.recv().await {
                    let phase = phase.load(Ordering::Relaxed);
                    if phase == Phase::Child as u8 || phase == Phase::Serves as u8 {
                        continue;
                    }
                    clear();
                    if signal.is_final() {
                        signal_code.store(signal.code(), Ordering::Relaxed);
                    }
                    let cancel = current.lock().unwrap_or_else(PoisonError::into_inner).clone();
                    if phase == Phase::Ends as u8 || cancel.is_cancelled() {
                        end(signal, &terminal);
                    }
                    cancel.cancel();
                    if signal.is_final() {
                        // the work has `GRACE` to end, unless a second signal comes
                        let _ = tokio::time::timeout(GRACE, signals.recv()).await;
                        end(signal, &terminal);
                    }
                }
            });
        });
        if started.is_ok() {
            // from here on Ctrl-C is handled; without a listener the channel closes at once
            let _ = listening.recv();
        }
        listener
    }

    /// The token that Ctrl-C cancels, until [`Interrupt::fresh`] replaces it.
    pub fn cancel(&self) -> &Cancel {
        &self.cancel
    }

    /// Creates a new token for Ctrl-C to cancel in place of the one before: one for each turn of a conversation. If
    /// such a turn asks the user something, Ctrl-C ends the turn and not the process.
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

    /// Cancels the token that Ctrl-C would cancel.
    pub fn cancel_current(&self) {
        self.canceller()();
    }

    /// Returns a function that does so from another thread.
    pub fn canceller(&self) -> impl Fn() + Send + 'static {
        let current = self.current.clone();
        move || current.lock().unwrap_or_else(PoisonError::into_inner).cancel()
    }

    /// The exit code of the signal that ends this process, if there was one: SIGTERM or SIGHUP.
    pub fn signal_code(&self) -> Option<u8> {
        Some(self.signal_code.load(Ordering::Relaxed)).filter(|code| *code != 0)
    }

    /// True if the token that Ctrl-C cancels now has been cancelled.
    pub fn is_cancelled(&self) -> bool {
        self.current.lock().unwrap_or_else(PoisonError::into_inner).is_cancelled()
    }

    /// Sets the effect of Ctrl-C until the guard is dropped.
    pub fn during(&self, phase: Phase) -> During<'_> {
        During { phase: &self.phase, before: self.phase.swap(phase as u8, Ordering::Relaxed) }
    }
}

/// Restores the previous phase when it is dropped.
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

/// Ends the process at once, and every child with it; no destructor runs.
fn end(signal: EndSignal, terminal: &Terminal) -> ! {
    exec::kill_all();
    terminal.restore();
    std::process::exit(signal.code().into())
}

/// The terminal with the modes it was found in. A line editor changes them, and restores them only if it ends by
/// itself.
#[cfg(unix)]
#[derive(Debug)]
pub(crate) struct Terminal(Option<(std::fs::File, rustix::termios::Termios)>);

#[cfg(unix)]
impl Terminal {
    pub(crate) fn of_process() -> Self {
        let found = std::fs::File::open("/dev/tty").ok();
        Self(found.and_then(|tty| rustix::termios::tcgetattr(&tty).ok().map(|modes| (tty, modes))))
    }

    /// The terminal and its modes, if this process is in its foreground: in the background, changing them would stop
    /// the process.
    pub(crate) fn in_foreground(&self) -> Option<&(std::fs::File, rustix::termios::Termios)> {
        let found = self.0.as_ref()?;
        let is_ours = rustix::termios::tcgetpgrp(&found.0).is_ok_and(|group| group == rustix::process::getpgrp());
        if is_ours { Some(found) } else { None }
    }

    pub(crate) fn restore(&self) {
        if let Some((tty, modes)) = self.in_foreground() {
            let _ = rustix::termios::tcsetattr(tty, rustix::termios::OptionalActions::Now, modes);
        }
    }

    /// Reads the next line typed at it; `None` at the end of the input, and without a terminal.
    fn line(&self) -> std::io::Result<Option<String>> {
        use std::io::{BufRead, Read};
        let Some((tty, _)) = self.in_foreground() else { return Ok(None) };
        let mut line = Vec::new();
        // the terminal returns one line at a time, so the buffer holds nothing of a next one
        std::io::BufReader::new(tty.take(MAX_LINE)).read_until(b'\n', &mut line)?;
        let is_end = line.is_empty();
        Ok(if is_end { None } else { Some(String::from_utf8_lossy(&line).trim().to_owned()) })
    }
}

/// Most bytes of a line typed at a terminal; systems accept no more.
#[cfg(unix)]
const MAX_LINE: u64 = 4096;

/// True if this process is in the foreground of a terminal, whatever its streams are.
#[cfg(unix)]
pub(crate) fn has_terminal() -> bool {
    Terminal::of_process().in_foreground().is_some()
}

#[cfg(not(unix))]
pub(crate) fn has_terminal() -> bool {
    false
}

/// Reads the next line typed at the terminal itself.
///
/// # Errors
/// If it cannot be read.
#[cfg(unix)]
pub(crate) fn read_terminal_line() -> std::io::Result<Option<String>> {
    Terminal::of_process().line()
}

#[cfg(not(unix))]
pub(crate) fn read_terminal_line() -> std::io::Result<Option<String>> {
    Ok(None)
}

#[cfg(not(unix))]
struct Terminal;

#[cfg(not(unix))]
impl Terminal {
    fn of_process() -> Self {
        Self
    }

    fn restore(&self) {}
}

/// A signal that ends the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum EndSignal {
    /// Ctrl-C.
    Interrupt,
    /// Another signal, by its number: SIGTERM or SIGHUP.
    #[cfg(unix)]
    Signal(i32),
}

impl EndSignal {
    /// True if it needs no second signal to end the process.
    fn is_final(self) -> bool {
        self != Self::Interrupt
    }

    /// The exit code, as a shell reports it.
    fn code(self) -> u8 {
        match self {
            Self::Interrupt => Exit::Interrupted.code(),
            #[cfg(unix)]
            Self::Signal(number) => 128 + number as u8,
        }
    }
}

/// The listeners for the signals that end the process.
#[cfg(unix)]
struct Signals {
    interrupt: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
    /// `None` under `nohup`, where the process goes on without its terminal.
    hangup: Option<tokio::signal::unix::Signal>,
}

#[cfg(unix)]
impl Signals {
    fn new() -> std::io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        let hangup = if exec::hangup_is_ignored() { None } else { Some(signal(SignalKind::hangup())?) };
        Ok(Self { interrupt: signal(SignalKind::interrupt())?, terminate: signal(SignalKind::terminate())?, hangup })
    }

    async fn recv(&mut self) -> Option<EndSignal> {
        use tokio::signal::unix::SignalKind;
        let hangup = async {
            match &mut self.hangup {
                Some(hangup) => hangup.recv().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            received = self.interrupt.recv() => received.map(|()| EndSignal::Interrupt),
            received = self.terminate.recv() => {
                received.map(|()| EndSignal::Signal(SignalKind::terminate().as_raw_value()))
            }
            received = hangup => received.map(|()| EndSignal::Signal(SignalKind::hangup().as_raw_value())),
        }
    }
}

/// The listener for Ctrl-C.
#[cfg(windows)]
struct Signals(tokio::signal::windows::CtrlC);

#[cfg(windows)]
impl Signals {
    fn new() -> std::io::Result<Self> {
        tokio::signal::windows::ctrl_c().map(Self)
    }

    async fn recv(&mut self) -> Option<EndSignal> {
        self.0.recv().await.map(|()| EndSignal::Interrupt)
    }
}
