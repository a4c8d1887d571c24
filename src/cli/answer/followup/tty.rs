//! The terminal that the keys are read from: its own device, whatever standard input is. It is given back as it was found.

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

/// Reads that give nothing at once, one after the other, until the terminal counts as gone.
const MOST_EMPTY: u32 = 20;

/// The terminal of this process.
#[derive(Debug)]
pub struct Tty(Terminal);

impl Tty {
    /// Opens it, where it is there and not somebody else's.
    pub fn open() -> Option<Self> {
        let terminal = Terminal::of_process();
        terminal.ours()?;
        Some(Self(terminal))
    }

    fn parts(&self) -> io::Result<(&File, &Termios)> {
        let (file, modes) = self.0.ours().ok_or_else(|| io::Error::from(ErrorKind::NotConnected))?;
        Ok((file, modes))
    }

    /// Takes its keys as bytes until the guard is dropped.
    ///
    /// # Errors
    /// If it is gone.
    pub fn keys(&self) -> io::Result<Keys<'_>> {
        let keys = Keys { tty: self, decoder: Decoder::default(), columns: self.columns() };
        keys.enter()?;
        Ok(keys)
    }

    /// True if something was typed that nobody has read: while its keys are bytes any, else whole lines.
    pub fn has_typed(&self) -> bool {
        self.parts().is_ok_and(|(file, _)| ioctl_fionread(file).is_ok_and(|waiting| waiting > 0))
    }

    /// Drops what was typed and not read.
    pub fn discard(&self) {
        if let Ok((file, _)) = self.parts() {
            let _ = tcflush(file, QueueSelector::IFlush);
        }
    }

    /// Its columns, 80 if it does not tell.
    pub fn columns(&self) -> usize {
        let size = self.parts().ok().and_then(|(file, _)| tcgetwinsize(file).ok());
        size.map_or(80, |size| if size.ws_col == 0 { 80 } else { usize::from(size.ws_col) })
    }
}

/// The terminal in the state in which its keys are bytes.
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

    /// Waits for the next event. A terminal that is gone is the end of the keys.
    pub fn next(&mut self) -> Event {
        let mut empty = 0;
        let mut typed = [0; 256];
        loop {
            let columns = self.tty.columns();
            if columns != self.columns {
                self.columns = columns;
                return Event::Resized;
            }
            let begun = Instant::now();
            let Ok((mut file, _)) = self.tty.parts() else { return Event::Key(Key::End) };
            match file.read(&mut typed) {
                // one that is gone gives nothing at once
                Ok(0) if begun.elapsed() < Duration::from_millis(20) => empty += 1,
                Ok(n) => {
                    empty = 0;
                    if let Some(event) = self.decoder.read(&typed[..n]) {
                        return event;
                    }
                }
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(_) => return Event::Key(Key::End),
            }
            if empty > MOST_EMPTY {
                return Event::Key(Key::End);
            }
        }
    }

    /// Gives the terminal to the shell, as Ctrl-Z does, and goes on when the person comes back.
    pub fn suspend(&mut self) {
        self.tty.0.restore();
        let _ = kill_current_process_group(Signal::TSTP);
        // whoever is put into the background here is stopped until it is in front again
        let _ = self.enter();
    }
}

impl Drop for Keys<'_> {
    fn drop(&mut self) {
        self.tty.0.restore();
    }
}
