//! The channels that messages arrive and answers leave by: standard input and output, files, and other implementations
//! of [`Channel`]. A server's channel queues what is posted until the loop asks for it.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, TryRecvError};

/// Longest message, bytes.
pub const MAX_MESSAGE_BYTES: usize = 64 << 10;

/// The messages since the last call of [`Channel::receive`].
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Received {
    /// The messages, in order.
    pub messages: Vec<String>,
    /// The channel's position after them; stored with the messages, and passed back at the next start.
    pub cursor: String,
}

/// A way to talk with the loop. It is polled for messages between two turns, and never waits for one.
pub trait Channel: Send {
    /// Returns the messages after the cursor; empty if there are none.
    ///
    /// # Errors
    /// If it cannot be read. This ends the loop; nothing stored is lost.
    fn receive(&mut self, cursor: &str) -> io::Result<Received>;

    /// Sends a text.
    ///
    /// # Errors
    /// If it cannot be sent. This ends the loop, and the text is sent at its next start.
    fn send(&mut self, text: &str) -> io::Result<()>;

    /// Returns the position before a text is sent, for [`Channel::has_sent`]; empty if the channel has none.
    fn mark(&mut self) -> String {
        String::new()
    }

    /// True if the text was sent after that mark, by a process that was killed before it could record it.
    fn has_sent(&mut self, _mark: &str, _text: &str) -> bool {
        false
    }

    /// True if no more messages will arrive.
    fn is_over(&self) -> bool {
        false
    }
}

/// A channel of lines that a thread reads (from standard input) and a function writes (to standard output).
pub struct Lines<W> {
    lines: Receiver<String>,
    write: W,
    closed: bool,
}

impl<W: FnMut(&str) -> io::Result<()> + Send> Lines<W> {
    /// Creates the channel; it is over once the sender of `lines` is dropped.
    pub fn new(lines: Receiver<String>, write: W) -> Self {
        Self { lines, write, closed: false }
    }
}

impl<W: FnMut(&str) -> io::Result<()> + Send> Channel for Lines<W> {
    fn receive(&mut self, _: &str) -> io::Result<Received> {
        let mut received = Received::default();
        while !self.closed {
            match self.lines.try_recv() {
                Ok(line) => received.messages.push(line),
                Err(TryRecvError::Empty) => break,
                Err(TryRecvError::Disconnected) => self.closed = true,
            }
        }
        Ok(received)
    }

    fn send(&mut self, text: &str) -> io::Result<()> {
        (self.write)(text)
    }

    fn is_over(&self) -> bool {
        self.closed
    }
}

/// A channel of two files: lines appended to one are messages, and answers are appended to the other.
#[derive(Debug)]
pub struct Files {
    from: PathBuf,
    to: PathBuf,
}

impl Files {
    /// Creates the channel; the files need not exist yet.
    pub fn new(from: PathBuf, to: PathBuf) -> Self {
        Self { from, to }
    }
}

impl Channel for Files {
    fn receive(&mut self, cursor: &str) -> io::Result<Received> {
        let mut start: u64 = cursor.parse().unwrap_or(0);
        let unchanged = |start: u64| Ok(Received { messages: Vec::new(), cursor: start.to_string() });
        let mut file = match File::open(&self.from) {
            Ok(file) => file,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return unchanged(0),
            Err(e) => return Err(e),
        };
        let length = file.metadata()?.len();
        // a file that has become shorter was replaced
        if length < start {
            start = 0;
        }
        if length == start {
            return unchanged(start);
        }
        file.seek(SeekFrom::Start(start))?;
        let mut bytes = Vec::new();
        file.take(16 * MAX_MESSAGE_BYTES as u64).read_to_end(&mut bytes)?;
        // a line without end is still being written, unless it is too long for a message
        let whole = match bytes.iter().rposition(|byte| *byte == b'\n') {
            Some(end) => end + 1,
            None if bytes.len() > MAX_MESSAGE_BYTES => bytes.len(),
            None => return unchanged(start),
        };
        let text = String::from_utf8_lossy(&bytes[..whole]);
        let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && line.len() <= MAX_MESSAGE_BYTES);
        Ok(Received { messages: lines.map(str::to_owned).collect(), cursor: (start + whole as u64).to_string() })
    }

    fn send(&mut self, text: &str) -> io::Result<()> {
        let mut file = OpenOptions::new().create(true).append(true).open(&self.to)?;
        file.write_all(line(text).as_bytes())?;
        file.flush()
    }

    fn mark(&mut self) -> String {
        std::fs::metadata(&self.to).map_or(0, |meta| meta.len()).to_string()
    }

    fn has_sent(&mut self, mark: &str, text: &str) -> bool {
        let (Ok(start), Ok(mut file)) = (mark.parse(), File::open(&self.to)) else { return false };
        let line = line(text);
        let mut sent = vec![0; line.len()];
        file.seek(SeekFrom::Start(start)).is_ok() && file.read_exact(&mut sent).is_ok() && sent == line.as_bytes()
    }
}

/// Returns the text with one newline at its end.
fn line(text: &str) -> String {
    format!("{}\n", text.trim_end_matches('\n'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn complete_lines_of_a_file_are_received_once() {
        let dir = tempfile::tempdir().unwrap();
        let (from, to) = (dir.path().join("in"), dir.path().join("out"));
        let mut files = Files::new(from.clone(), to.clone());
        let of = |received: Received| (received.messages, received.cursor);
        assert_eq!(of(files.receive("").unwrap()), (vec![], "0".into()), "it is not there yet");
        std::fs::write(&from, "one\n\ntwo\nthr").unwrap();
        assert_eq!(of(files.receive("0").unwrap()), (vec!["one".into(), "two".into()], "9".into()));
        assert_eq!(of(files.receive("9").unwrap()), (vec![], "9".into()));
        std::fs::write(&from, "one\n\ntwo\nthree\n").unwrap();
        assert_eq!(of(files.receive("9").unwrap()), (vec!["three".into()], "15".into()));
        std::fs::write(&from, "anew\n").unwrap();
        assert_eq!(of(files.receive("15").unwrap()), (vec!["anew".into()], "5".into()));
    }

    #[test]
    fn texts_sent_after_a_mark_are_recognised() {
        let dir = tempfile::tempdir().unwrap();
        let mut files = Files::new(dir.path().join("in"), dir.path().join("out"));
        files.send("first").unwrap();
        let mark = files.mark();
        assert!(!files.has_sent(&mark, "second"));
        files.send("second").unwrap();
        assert!(files.has_sent(&mark, "second") && !files.has_sent(&mark, "third") && !files.has_sent("", "first"));
        assert_eq!(std::fs::read_to_string(dir.path().join("out")).unwrap(), "first\nsecond\n");
    }

    #[test]
    fn lines_are_over_once_the_sender_is_dropped() {
        let (send, receive) = std::sync::mpsc::channel();
        let mut lines = Lines::new(receive, |_: &str| Ok(()));
        assert_eq!(lines.receive("").unwrap().messages, [""; 0]);
        send.send("a".to_owned()).unwrap();
        drop(send);
        assert!(!lines.is_over());
        assert_eq!(lines.receive("").unwrap().messages, ["a"]);
        assert!(lines.is_over());
    }
}
