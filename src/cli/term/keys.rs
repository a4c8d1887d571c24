//! Watches for keys that cancel while the line editor of a shell waits for a command: Esc, Ctrl-C and Ctrl-G.
//!
//! A Ctrl-C signal would end the line editor, too, and its line. So the terminal passes its keys to this process as
//! plain bytes meanwhile, and its modes are restored before the shell goes on.

use crate::Interrupt;

/// Watches until the guard is dropped; `None` without a terminal, or in its background.
#[cfg(unix)]
pub fn watch(interrupt: &Interrupt) -> Option<Watch> {
    Watch::start(interrupt)
}

/// Watches nothing: Ctrl-C stays a signal.
#[cfg(not(unix))]
pub fn watch(_: &Interrupt) -> Option<Watch> {
    None
}

/// The guard of a watch, which does not exist here.
#[cfg(not(unix))]
#[derive(Debug)]
pub struct Watch;

#[cfg(unix)]
pub use unix::Watch;

#[cfg(unix)]
mod unix {
    use super::{Interrupt, cancels};
    use crate::term::interrupt::Terminal;
    use rustix::termios::{LocalModes, OptionalActions, SpecialCodeIndex, tcsetattr};
    use std::io::Read;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    /// The terminal while it passes its keys on as bytes, until this is dropped.
    #[derive(Debug)]
    pub struct Watch {
        terminal: Terminal,
        over: Arc<AtomicBool>,
    }

    impl Watch {
        pub(crate) fn start(interrupt: &Interrupt) -> Option<Self> {
            let terminal = Terminal::of_process();
            let (tty, found) = terminal.in_foreground()?;
            let mut bytes = found.clone();
            bytes.local_modes -= LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG | LocalModes::IEXTEN;
            // a read ends after a tenth of a second, with or without a key
            bytes.special_codes[SpecialCodeIndex::VMIN] = 0;
            bytes.special_codes[SpecialCodeIndex::VTIME] = 1;
            let mut keys = tty.try_clone().ok()?;
            tcsetattr(tty, OptionalActions::Now, &bytes).ok()?;
            let watch = Self { terminal, over: Arc::default() };
            let (over, cancel) = (watch.over.clone(), interrupt.canceller());
            let thread = std::thread::Builder::new().name("keys".into()).spawn(move || {
                let mut typed = [0; 64];
                while !over.load(Ordering::Relaxed) {
                    match keys.read(&mut typed) {
                        Ok(n) if cancels(&typed[..n]) => return cancel(),
                        Ok(_) => {}
                        Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
                        Err(_) => return,
                    }
                }
            });
            // without the thread, dropping `watch` makes Ctrl-C a signal again
            thread.is_ok().then_some(watch)
        }
    }

    impl Drop for Watch {
        fn drop(&mut self) {
            self.over.store(true, Ordering::Relaxed);
            self.terminal.restore();
        }
    }
}

/// True if one of the cancelling keys was pressed. An Esc followed by more bytes at once is the sequence of another
/// key.
#[cfg_attr(not(unix), allow(dead_code))]
fn cancels(typed: &[u8]) -> bool {
    const ESC: u8 = 0x1b;
    typed == [ESC] || typed.iter().any(|byte| matches!(byte, 0x03 | 0x07))
}

#[cfg(test)]
mod tests {
    use super::cancels;

    #[test]
    fn esc_and_two_ctrl_keys_cancel_and_arrows_do_not() {
        for typed in [&b"\x1b"[..], b"\x03", b"ab\x03", b"\x07"] {
            assert!(cancels(typed), "{typed:?}");
        }
        for typed in [&b""[..], b"a", b"\x1b[A", b"\x1bOP", b"\n"] {
            assert!(!cancels(typed), "{typed:?}");
        }
    }
}
