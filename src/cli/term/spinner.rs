//! A moving line on stderr that shows that the program is at work.
//!
//! It is not padded to the edge of the terminal: that would push the `^C` that the terminal writes onto a second
//! line, which would not be cleared.

use std::io::Write;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

const FRAMES: &[char] = &['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏'];
/// The frames for a terminal that shows only ASCII.
const ASCII_FRAMES: &[char] = &['|', '/', '-', '\\'];
/// Time that a frame is shown.
const FRAME_TIME: Duration = Duration::from_millis(80);
/// Time before the first frame, so that short work shows none.
const START_DELAY: Duration = Duration::from_millis(120);

/// The line. It moves until it is cleared.
#[derive(Debug)]
pub struct Spinner(Arc<(Mutex<State>, Condvar)>);

#[derive(Debug, Default)]
struct State {
    over: bool,
    drawn: bool,
}

impl Spinner {
    /// Starts the line on a thread of its own.
    pub fn start(what: &'static str, unicode: bool) -> Self {
        let frames = if unicode { FRAMES } else { ASCII_FRAMES };
        let shared = Arc::new((Mutex::new(State::default()), Condvar::new()));
        let of_thread = shared.clone();
        // without the thread only the line is missing
        let _ = std::thread::Builder::new().name("spinner".into()).spawn(move || {
            let (state, wake) = &*of_thread;
            let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
            let mut wait = START_DELAY;
            for frame in frames.iter().cycle() {
                state = wake.wait_timeout_while(state, wait, |s| !s.over).unwrap_or_else(PoisonError::into_inner).0;
                if state.over {
                    break;
                }
                // under the lock, so that no frame follows `clear`
                write(&format!("\r\x1b[2K{frame} {what}"));
                state.drawn = true;
                wait = FRAME_TIME;
            }
        });
        Self(shared)
    }

    /// Stops the line and removes it from the terminal.
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
