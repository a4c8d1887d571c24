//! A moving line on stderr that says the program is at work.
//!
//! It is no longer than its text: a line padded to the edge of the terminal would push the `^C` that the terminal itself
//! writes onto a second line, which nobody would clear.

use std::io::Write;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

const FRAMES: &[char] = &['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏'];
/// The same where the terminal shows nothing but ASCII.
const ASCII: &[char] = &['|', '/', '-', '\\'];
const FRAME: Duration = Duration::from_millis(80);
/// What is over sooner flashes nothing.
const PATIENCE: Duration = Duration::from_millis(120);

/// The line. It moves until it is cleared.
#[derive(Debug)]
pub struct Spinner(Arc<(Mutex<State>, Condvar)>);

#[derive(Debug, Default)]
struct State {
    over: bool,
    drawn: bool,
}

impl Spinner {
    /// Starts it on a thread of its own.
    pub fn start(what: &'static str, unicode: bool) -> Self {
        let frames = if unicode { FRAMES } else { ASCII };
        let shared = Arc::new((Mutex::new(State::default()), Condvar::new()));
        let theirs = shared.clone();
        // Without the thread there is no line, and nothing else is lost.
        let _ = std::thread::Builder::new().name("spinner".into()).spawn(move || {
            let (state, wake) = &*theirs;
            let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
            let mut wait = PATIENCE;
            for frame in frames.iter().cycle() {
                state = wake.wait_timeout_while(state, wait, |s| !s.over).unwrap_or_else(PoisonError::into_inner).0;
                if state.over {
                    break;
                }
                // Under the lock: after `clear` there is no further frame.
                write(&format!("\r\x1b[2K{frame} {what}"));
                state.drawn = true;
                wait = FRAME;
            }
        });
        Self(shared)
    }

    /// Takes it off the terminal.
    pub fn clear(&self) {
        let (state, wake) = &*self.0;
        let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
        if !state.over && state.drawn {
            write("\r\x1b[2K");
        }
        state.over = true;
        wake.notify_all();
    }
}

fn write(text: &str) {
    let mut err = std::io::stderr().lock();
    let _ = err.write_all(text.as_bytes()).and_then(|()| err.flush());
}
