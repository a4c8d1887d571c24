//! Ctrl-C: the first ends what can be ended well, the second ends the process, and the terminal stays clean either way.
//! SIGTERM and SIGHUP do the same with no second one needed. No child is left running in any of these.

use crate::Exit;
use caro_exec as exec;
use caro_model::Cancel;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// How long the process may take to end well after it was told to end.
const GRACE: Duration = Duration::from_secs(2);

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
    /// The server listens by itself: it lets what is under way end.
    Serves = 3,
}

/// The listener. It lives as long as the process.
#[derive(Debug)]
pub struct Interrupt {
    phase: Arc<AtomicU8>,
    cancel: Cancel,
    /// What Ctrl-C pulls now: the first one, or that of the turn of a conversation.
    current: Arc<Mutex<Cancel>>,
    turns: AtomicBool,
    /// The exit code of the signal that told us to end, 0 if none has.
    told: Arc<AtomicU8>,
}

impl Interrupt {
    /// Starts to listen, in [`Phase::Cancels`]; `clear` takes moving lines off the terminal. Where the system lets nobody
    /// listen, Ctrl-C ends the process as it always does.
    pub fn listen(clear: impl Fn() + Send + 'static) -> Self {
        let (phase, cancel) = (Arc::new(AtomicU8::new(Phase::Cancels as u8)), Cancel::new());
        let current = Arc::new(Mutex::new(cancel.clone()));
        let told = Arc::new(AtomicU8::new(0));
        let listener = Self {
            phase: phase.clone(),
            cancel,
            current: current.clone(),
            turns: AtomicBool::new(false),
            told: told.clone(),
        };
        let (ready, listening) = std::sync::mpsc::channel();
        let terminal = Terminal::of_process();
        let started = std::thread::Builder::new().name("interrupt".into()).spawn(move || {
            let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else { return };
            runtime.block_on(async {
                let Ok(mut signals) = Signals::new() else { return };
                let _ = ready.send(());
                while let Some(heard) = signals.recv().await {
                    let phase = phase.load(Ordering::Relaxed);
                    if phase == Phase::Child as u8 || phase == Phase::Serves as u8 {
                        continue;
                    }
                    clear();
                    if heard.is_final() {
                        told.store(heard.code(), Ordering::Relaxed);
                    }
                    let cancel = current.lock().unwrap_or_else(PoisonError::into_inner).clone();
                    if phase == Phase::Ends as u8 || cancel.is_cancelled() {
                        end(heard, &terminal);
                    }
                    cancel.cancel();
                    if heard.is_final() {
                        // nobody is there to say it again
                        let _ = tokio::time::timeout(GRACE, signals.recv()).await;
                        end(heard, &terminal);
                    }
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
        self.puller()();
    }

    /// The same, for another thread.
    pub fn puller(&self) -> impl Fn() + Send + 'static {
        let current = self.current.clone();
        move || current.lock().unwrap_or_else(PoisonError::into_inner).cancel()
    }

    /// The exit code of the signal that told this process to end, if one has: SIGTERM or SIGHUP.
    pub fn told(&self) -> Option<u8> {
        Some(self.told.load(Ordering::Relaxed)).filter(|code| *code != 0)
    }

    /// True once that has been pulled.
    pub fn is_pulled(&self) -> bool {
        self.current.lock().unwrap_or_else(PoisonError::into_inner).is_cancelled()
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

/// Ends the process now, and every child with it: no destructor runs.
fn end(heard: Heard, terminal: &Terminal) -> ! {
    exec::kill_all();
    terminal.restore();
    std::process::exit(heard.code().into())
}

/// The terminal as it was found. A line editor takes echo and line ends away while the person types, and gives them back
/// only where it ends by itself.
#[cfg(unix)]
#[derive(Debug)]
pub(crate) struct Terminal(Option<(std::fs::File, rustix::termios::Termios)>);

#[cfg(unix)]
impl Terminal {
    pub(crate) fn of_process() -> Self {
        let found = std::fs::File::open("/dev/tty").ok();
        Self(found.and_then(|tty| rustix::termios::tcgetattr(&tty).ok().map(|modes| (tty, modes))))
    }

    /// The terminal and how it was found, where it may be touched: in the background it is somebody else's, and who touches it
    /// is stopped.
    pub(crate) fn ours(&self) -> Option<&(std::fs::File, rustix::termios::Termios)> {
        let found = self.0.as_ref()?;
        let is_ours = rustix::termios::tcgetpgrp(&found.0).is_ok_and(|group| group == rustix::process::getpgrp());
        if is_ours { Some(found) } else { None }
    }

    pub(crate) fn restore(&self) {
        if let Some((tty, modes)) = self.ours() {
            let _ = rustix::termios::tcsetattr(tty, rustix::termios::OptionalActions::Now, modes);
        }
    }

    /// The next line that is typed at it; `None` at the end of the input, and where there is none.
    fn line(&self) -> std::io::Result<Option<String>> {
        use std::io::{BufRead, Read};
        let Some((tty, _)) = self.ours() else { return Ok(None) };
        let mut line = Vec::new();
        // the terminal gives a line at a time: no other one is read with it
        std::io::BufReader::new(tty.take(LONGEST_LINE)).read_until(b'\n', &mut line)?;
        let is_end = line.is_empty();
        Ok(if is_end { None } else { Some(String::from_utf8_lossy(&line).trim().to_owned()) })
    }
}

/// The longest line that is typed at a terminal, bytes; systems take no more than this.
#[cfg(unix)]
const LONGEST_LINE: u64 = 4096;

/// True if this process has a terminal of its own, whatever its streams are.
#[cfg(unix)]
pub(crate) fn has_terminal() -> bool {
    Terminal::of_process().ours().is_some()
}

#[cfg(not(unix))]
pub(crate) fn has_terminal() -> bool {
    false
}

/// The next line that is typed at the terminal itself.
///
/// # Errors
/// If it cannot be read.
#[cfg(unix)]
pub(crate) fn line_of_terminal() -> std::io::Result<Option<String>> {
    Terminal::of_process().line()
}

#[cfg(not(unix))]
pub(crate) fn line_of_terminal() -> std::io::Result<Option<String>> {
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

/// What told us to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Heard {
    /// Ctrl-C.
    Interrupt,
    /// Another signal, by its number: SIGTERM or SIGHUP.
    #[cfg(unix)]
    Signal(i32),
}

impl Heard {
    /// True if whoever sent it does not ask but tell.
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

/// What tells us to end, as the system tells it.
#[cfg(unix)]
struct Signals {
    interrupt: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
    /// `None` under `nohup`, which is to go on without its terminal.
    hangup: Option<tokio::signal::unix::Signal>,
}

#[cfg(unix)]
impl Signals {
    fn new() -> std::io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        let hangup = if exec::hangup_is_ignored() { None } else { Some(signal(SignalKind::hangup())?) };
        Ok(Self { interrupt: signal(SignalKind::interrupt())?, terminate: signal(SignalKind::terminate())?, hangup })
    }

    async fn recv(&mut self) -> Option<Heard> {
        use tokio::signal::unix::SignalKind;
        let hangup = async {
            match &mut self.hangup {
                Some(hangup) => hangup.recv().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            heard = self.interrupt.recv() => heard.map(|()| Heard::Interrupt),
            heard = self.terminate.recv() => heard.map(|()| Heard::Signal(SignalKind::terminate().as_raw_value())),
            heard = hangup => heard.map(|()| Heard::Signal(SignalKind::hangup().as_raw_value())),
        }
    }
}

/// Ctrl-C.
#[cfg(windows)]
struct Signals(tokio::signal::windows::CtrlC);

#[cfg(windows)]
impl Signals {
    fn new() -> std::io::Result<Self> {
        tokio::signal::windows::ctrl_c().map(Self)
    }

    async fn recv(&mut self) -> Option<Heard> {
        self.0.recv().await.map(|()| Heard::Interrupt)
    }
}
