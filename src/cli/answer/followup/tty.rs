//! Reads keys from the terminal device itself, whatever standard input is. The terminal's modes are restored
//! afterwards.

use super::decode::Decoder;
use super::machine::{Event, Key};
use crate::term::interrupt::Terminal;
use rustix::io::ioctl_fionread;
use rustix::process::{Signal, kill_current_process_group};
use rustix::termios::{
    LocalModes, OptionalActions, QueueSelector, SpecialCodeIndex, Termios, tcflush, tcgetwinsize, tcsetattr,
};
use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::time::{Duration, Instant};

/// Most consecutive reads that return no data at once; after more of them the terminal counts as closed.
const MAX_EMPTY_READS: u32 = 20;

/// The terminal of this process.
#[derive(Debug)]
pub struct Tty(Terminal);

impl Tty {
    /// Opens the terminal; `None` if there is none, or this process is in its background.
    pub fn open() -> Option<Self> {
        let terminal = Terminal::of_process();
        terminal.in_foreground()?;
        Some(Self(terminal))
    }

    fn parts(&self) -> io::Result<(&File, &Termios)> {
        let (file, modes) = self.0.in_foreground().ok_or_else(|| io::Error::from(ErrorKind::NotConnected))?;
        Ok((file, modes))
    }

    /// Makes the terminal pass its keys on as bytes until the guard is dropped.
    ///
    /// # Errors
    /// If the terminal is closed.
    pub fn keys(&self) -> io::Result<Keys<'_>> {
        let keys = Keys { tty: self, decoder: Decoder::default(), columns: self.columns() };
        keys.enter()?;
        Ok(keys)
    }

    /// True if there is unread input: any bytes while keys are passed on as bytes, else whole lines.
    pub fn has_typed(&self) -> bool {
        self.parts().is_ok_and(|(file, _)| ioctl_fionread(file).is_ok_and(|waiting| waiting > 0))
    }

    /// Discards unread input.
    pub fn discard(&self) {
        if let Ok((file, _)) = self.parts() {
            let _ = tcflush(file, QueueSelector::IFlush);
        }
    }

    /// The number of columns; 80 if it is unknown.
    pub fn columns(&self) -> usize {
        let size = self.parts().ok().and_then(|(file, _)| tcgetwinsize(file).ok());
        size.map_or(80, |size| if size.ws_col == 0 { 80 } else { usize::from(size.ws_col) })
    }
}

/// The terminal while it passes its keys on as bytes.
#[derive(Debug)]
pub struct Keys<'a> {
    tty: &'a Tty,
    decoder: Decoder,
    columns: usize,
}

impl Keys<'_> {
    fn enter(&self) -> io::Result<()> {
        let (file, found) = self.tty.parts()?;
        let mut bytes = found.clone();
        bytes.local_modes -= LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG | LocalModes::IEXTEN;
        // a read ends after a tenth of a second, with or without a key
        bytes.special_codes[SpecialCodeIndex::VMIN] = 0;
        bytes.special_codes[SpecialCodeIndex::VTIME] = 1;
        Ok(tcsetattr(file, OptionalActions::Now, &bytes)?)
    }

    /// Waits for the next event. A closed terminal is `Key::End`.
    pub fn next(&mut self) -> Event {
        let mut empty = 0;
        let mut typed = [0; 256];
        loop {
            let columns = self.tty.columns();
            if columns != self.columns {
                self.columns = columns;
                return Event::Resized;
            }
            let start = Instant::now();
            let Ok((mut file, _)) = self.tty.parts() else { return Event::Key(Key::End) };
            match file.read(&mut typed) {
                // a closed terminal returns no data at once
                Ok(0) if start.elapsed() < Duration::from_millis(20) => empty += 1,
                Ok(n) => {
                    empty = 0;
                    if let Some(event) = self.decoder.read(&typed[..n]) {
                        return event;
                    }
                }
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(_) => return Event::Key(Key::End),
            }
            if empty > MAX_EMPTY_READS {
                return Event::Key(Key::End);
            }
        }
    }

    /// Suspends the process, as Ctrl-Z does, and goes on when it is resumed.
    pub fn suspend(&mut self) {
        self.tty.0.restore();
        let _ = kill_current_process_group(Signal::TSTP);
        // if resumed in the background, this stops the process until it is in the foreground
        let _ = self.enter();
    }
}

impl Drop for Keys<'_> {
    fn drop(&mut self) {
        self.tty.0.restore();
    }
}
