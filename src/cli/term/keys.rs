//! Keys that give up while the line editor of a shell waits for a command: Esc, Ctrl-C and Ctrl-G.
//!
//! The line editor would be ended by a Ctrl-C, and the line with it. So the terminal hands its keys to this process
//! as plain bytes meanwhile, and is put back as it was before the shell goes on.

use crate::Interrupt;

/// Watches until it is dropped; `None` where there is no terminal, or it is somebody else's.
#[cfg(unix)]
pub fn watch(interrupt: &Interrupt) -> Option<Watch> {
    Watch::start(interrupt)
}

/// Nothing to watch: Ctrl-C stays a signal.
#[cfg(not(unix))]
pub fn watch(_: &Interrupt) -> Option<Watch> {
    None
}

/// No watch.
#[cfg(not(unix))]
#[derive(Debug)]
pub struct Watch;

#[cfg(unix)]
pub use unix::Watch;

#[cfg(unix)]
mod unix {
    use super::{Interrupt, gives_up};
    use crate::term::interrupt::Terminal;
    use rustix::termios::{LocalModes, OptionalActions, SpecialCodeIndex, tcsetattr};
    use std::io::Read;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    /// The terminal in the state in which its keys are bytes, until this is dropped.
    #[derive(Debug)]
    pub struct Watch {
        terminal: Terminal,
        over: Arc<AtomicBool>,
    }

    impl Watch {
        pub(crate) fn start(interrupt: &Interrupt) -> Option<Self> {
            let terminal = Terminal::of_process();
            let (tty, found) = terminal.ours()?;
            let mut bytes = found.clone();
            bytes.local_modes -= LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG | LocalModes::IEXTEN;
            // a read ends after a tenth of a second, with or without a key
            bytes.special_codes[SpecialCodeIndex::VMIN] = 0;
            bytes.special_codes[SpecialCodeIndex::VTIME] = 1;
            let mut keys = tty.try_clone().ok()?;
            tcsetattr(tty, OptionalActions::Now, &bytes).ok()?;
            let watch = Self { terminal, over: Arc::default() };
            let (over, pull) = (watch.over.clone(), interrupt.puller());
            let watching = std::thread::Builder::new().name("keys".into()).spawn(move || {
                let mut typed = [0; 64];
                while !over.load(Ordering::Relaxed) {
                    match keys.read(&mut typed) {
                        Ok(n) if gives_up(&typed[..n]) => return pull(),
                        Ok(_) => {}
                        Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
                        Err(_) => return,
                    }
                }
            });
            // without the thread Ctrl-C has to be a signal again
            watching.is_ok().then_some(watch)
        }
    }

    impl Drop for Watch {
        fn drop(&mut self) {
            self.over.store(true, Ordering::Relaxed);
            self.terminal.restore();
        }
    }
}

/// True if one of these keys was typed. An Esc with more behind it, in one piece, is an arrow or another key's sequence.
#[cfg_attr(not(unix), allow(dead_code))]
fn gives_up(typed: &[u8]) -> bool {
    const ESC: u8 = 0x1b;
    typed == [ESC] || typed.iter().any(|byte| matches!(byte, 0x03 | 0x07))
}

#[cfg(test)]
mod tests {
    use super::gives_up;

    #[test]
    fn esc_and_two_ctrl_keys_give_up_and_arrows_do_not() {
        for typed in [&b"\x1b"[..], b"\x03", b"ab\x03", b"\x07"] {
            assert!(gives_up(typed), "{typed:?}");
        }
        for typed in [&b""[..], b"a", b"\x1b[A", b"\x1bOP", b"\n"] {
            assert!(!gives_up(typed), "{typed:?}");
        }
    }
}
