//! Where messages come from and answers go: standard input and output, files, and whatever else does what [`Channel`] says. A
//! server's channel queues what it is posted and hands it over when it is asked for it.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, TryRecvError};

/// The most bytes of a message.
pub const LONGEST_MESSAGE: usize = 64 << 10;

/// The messages since the channel was last asked.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Received {
    /// The messages, in their order.
    pub messages: Vec<String>,
    /// Where the channel stands behind them: stored with the messages, and given to it again at the next start.
    pub cursor: String,
}

/// A way to talk with the loop. It is asked for messages between two turns, and never waits for one.
pub trait Channel: Send {
    /// The messages behind the cursor; empty if there is none.
    ///
    /// # Errors
    /// If it cannot be read: that ends the loop, and nothing that was kept is lost.
    fn receive(&mut self, cursor: &str) -> io::Result<Received>;

    /// Sends a text.
    ///
    /// # Errors
    /// If it cannot be sent: that ends the loop, and the text is sent at its next start.
    fn send(&mut self, text: &str) -> io::Result<()>;

    /// Where the channel stands before a text is sent, for [`Channel::has_sent`]; empty for one that cannot tell.
    fn mark(&mut self) -> String {
        String::new()
    }

    /// True if the text was sent behind that mark, by a process that was ended before it could write that down.
    fn has_sent(&mut self, _mark: &str, _text: &str) -> bool {
        false
    }

    /// True if nothing will come in any more.
    fn is_over(&self) -> bool {
        false
    }
}

/// Lines that a thread reads (of standard input), and somebody who writes a line (to standard output).
pub struct Lines<W> {
    lines: Receiver<String>,
    write: W,
    over: bool,
}

impl<W: FnMut(&str) -> io::Result<()> + Send> Lines<W> {
    /// The channel of these lines; it is over once their sender is gone.
    pub fn new(lines: Receiver<String>, write: W) -> Self {
        Self { lines, write, over: false }
    }
}

impl<W: FnMut(&str) -> io::Result<()> + Send> Channel for Lines<W> {
    fn receive(&mut self, _: &str) -> io::Result<Received> {
        let mut received = Received::default();
        while !self.over {
            match self.lines.try_recv() {
                Ok(line) => received.messages.push(line),
                Err(TryRecvError::Empty) => break,
                Err(TryRecvError::Disconnected) => self.over = true,
            }
        }
        Ok(received)
    }

    fn send(&mut self, text: &str) -> io::Result<()> {
        (self.write)(text)
    }

    fn is_over(&self) -> bool {
        self.over
    }
}

/// Two files: a line that is added to the one is a message, and what is sent is added to the other.
#[derive(Debug)]
pub struct Files {
    from: PathBuf,
    to: PathBuf,
}

impl Files {
    /// The channel of these files, which need not be there yet.
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
        // a shorter one is another file
        if length < start {
            start = 0;
        }
        if length == start {
            return unchanged(start);
        }
        file.seek(SeekFrom::Start(start))?;
        let mut bytes = Vec::new();
        file.take(16 * LONGEST_MESSAGE as u64).read_to_end(&mut bytes)?;
        // a line without its end is still being written, unless it is too long for a message
        let whole = match bytes.iter().rposition(|byte| *byte == b'\n') {
            Some(end) => end + 1,
            None if bytes.len() > LONGEST_MESSAGE => bytes.len(),
            None => return unchanged(start),
        };
        let text = String::from_utf8_lossy(&bytes[..whole]);
        let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && line.len() <= LONGEST_MESSAGE);
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
        let mut there = vec![0; line.len()];
        file.seek(SeekFrom::Start(start)).is_ok() && file.read_exact(&mut there).is_ok() && there == line.as_bytes()
    }
}

/// The text with a line end.
fn line(text: &str) -> String {
    format!("{}\n", text.trim_end_matches('\n'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_lines_of_a_file_are_messages_once() {
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
    fn what_was_sent_behind_a_mark_is_known() {
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
    fn lines_are_over_once_their_sender_is_gone() {
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
