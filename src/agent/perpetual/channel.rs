//! The channels that messages arrive and answers leave by: standard input and output, files, and other implementations
//! of [`Channel`]. A server's channel queues what is posted until the loop asks for it.

use caro_base::id;
use std::fs::{File, OpenOptions};
use std::io::{self, BufReader, Read, Seek, SeekFrom, Write};
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, TryRecvError};

/// Longest message, bytes.
pub const MAX_MESSAGE_BYTES: usize = 64 << 10;

/// Returns the warning about a line that is longer.
pub fn too_long() -> String {
    format!("a line of more than {MAX_MESSAGE_BYTES} bytes is not a message: it is not read")
}

/// The messages since the last call of [`Channel::receive`].
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Received {
    /// The messages, in order.
    pub messages: Vec<String>,
    /// The position after them in the channel's source; stored with the messages, and passed back at the next start.
    pub cursor: String,
}

/// A way to talk with the loop. It is polled for messages between two turns, and never waits for one.
pub trait Channel: Send {
    /// Returns the name of what it reads from. Each source of a session has a cursor of its own; empty if the channel
    /// has no positions, so that none is stored.
    fn source(&self) -> String {
        String::new()
    }

    /// Returns the messages after the source's cursor; empty if there are none.
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
pub struct Files {
    from: PathBuf,
    to: PathBuf,
    warn: Box<dyn Fn(&str) + Send>,
}

impl Files {
    /// Creates the channel; the files need not exist yet. `warn` takes the warnings about lines that are not read.
    pub fn new(from: PathBuf, to: PathBuf, warn: impl Fn(&str) + Send + 'static) -> Self {
        Self { from, to, warn: Box::new(warn) }
    }

    /// Checks that messages can be appended to what it reads from.
    ///
    /// # Errors
    /// If that exists and is not a regular file: reading a FIFO waits for its writer, and it has no positions.
    pub fn check(&self) -> io::Result<()> {
        match std::fs::metadata(&self.from) {
            Ok(meta) if !meta.is_file() => {
                let text = format!("{} is not a regular file", self.from.display());
                Err(io::Error::new(io::ErrorKind::InvalidInput, text))
            }
            _ => Ok(()),
        }
    }
}

/// The warning about a file with edited lines before the position.
const EDITED: &str = "lines of the file that were read before have changed: they are not read again";

/// The number of bytes before a position, and at most at the start of a file, that are compared.
const COMPARED_BYTES: u64 = 256;

/// A position in a file, stored as a cursor: `OFFSET TAIL HEAD LINES`, and ` long` within a line that is too long. Older
/// versions stored the offset alone, or with the tail.
///
/// A file is unchanged as long as the text before the position (the tail) is: its inode changes when an editor saves it,
/// and stays when it is written anew. If only its first line (the head) is the same it was edited, and the position is
/// behind as many lines as before: orders must not be followed twice because one of them was corrected.
#[derive(Debug, Default, PartialEq, Eq)]
struct Position {
    offset: u64,
    /// The number of line ends before the offset.
    lines: u64,
    is_in_long_line: bool,
}

impl Position {
    /// Returns the stored position in the file, or the start of a file that is another one. `warn` is called if lines
    /// before the position were edited.
    fn find(cursor: &str, file: &mut File, warn: impl FnOnce()) -> io::Result<Self> {
        let (cursor, is_in_long_line) = match cursor.strip_suffix(" long") {
            Some(cursor) => (cursor, true),
            None => (cursor, false),
        };
        let mut words = cursor.split(' ');
        let offset = words.next().and_then(|word| word.parse().ok()).unwrap_or(0);
        let (tail, head) = (words.next(), words.next());
        let lines = words.next().and_then(|word| word.parse().ok());
        let is_unchanged = file.metadata()?.len() >= offset
            && match tail {
                Some(tail) => tail == tail_of(file, offset)?,
                None => true,
            };
        if is_unchanged {
            let lines = match lines {
                Some(lines) => lines,
                None => skip_lines(file, offset, u64::MAX)?.1,
            };
            return Ok(Self { offset, lines, is_in_long_line });
        }
        match (head, lines) {
            (Some(head), Some(lines)) if head == head_of(file, offset)? => {
                warn();
                let (offset, skipped) = skip_lines(file, u64::MAX, lines)?;
                Ok(Self { offset, lines: skipped, is_in_long_line: is_in_long_line && skipped == lines })
            }
            _ => Ok(Self::default()),
        }
    }

    fn cursor(&self, file: &mut File) -> io::Result<String> {
        let (tail, head) = (tail_of(file, self.offset)?, head_of(file, self.offset)?);
        let long = if self.is_in_long_line { " long" } else { "" };
        Ok(format!("{} {tail} {head} {}{long}", self.offset, self.lines))
    }
}

/// Returns the short hash of the text before a position.
fn tail_of(file: &mut File, offset: u64) -> io::Result<String> {
    let start = offset.saturating_sub(COMPARED_BYTES);
    Ok(short_hash(&read(file, start, offset - start)?))
}

/// Returns the short hash of the first line that is not blank, as far as it is before a position.
fn head_of(file: &mut File, offset: u64) -> io::Result<String> {
    let bytes = read(file, 0, offset.min(COMPARED_BYTES))?;
    let line = bytes.trim_ascii_start().split(|byte| *byte == b'\n').next().unwrap_or_default();
    Ok(short_hash(line))
}

/// Reads at most that many bytes from a position on.
fn read(file: &mut File, start: u64, most: u64) -> io::Result<Vec<u8>> {
    file.seek(SeekFrom::Start(start))?;
    let mut bytes = Vec::new();
    file.take(most).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn short_hash(bytes: &[u8]) -> String {
    id::hash(bytes).chars().take(16).collect()
}

/// Returns the position after that many lines that end within the first `most` bytes, or after the last one of these if
/// there are fewer, and their number.
fn skip_lines(file: &mut File, most: u64, count: u64) -> io::Result<(u64, u64)> {
    file.rewind()?;
    let (mut end, mut lines) = (0, 0);
    for (at, byte) in (1..).zip(BufReader::new(file.take(most)).bytes()) {
        if lines == count {
            break;
        }
        if byte? == b'\n' {
            (end, lines) = (at, lines + 1);
        }
    }
    Ok((end, lines))
}

impl Channel for Files {
    fn source(&self) -> String {
        let in_folder = || Some(self.from.parent()?.canonicalize().ok()?.join(self.from.file_name()?));
        let path = self.from.canonicalize().ok().or_else(in_folder);
        path.as_ref().unwrap_or(&self.from).display().to_string()
    }

    fn receive(&mut self, cursor: &str) -> io::Result<Received> {
        let unchanged = || Ok(Received { messages: Vec::new(), cursor: cursor.to_owned() });
        self.check()?;
        let mut file = match File::open(&self.from) {
            Ok(file) => file,
            // it may be about to be written anew
            Err(e) if e.kind() == io::ErrorKind::NotFound => return unchanged(),
            Err(e) => return Err(e),
        };
        if file.metadata()?.len() == 0 {
            return unchanged();
        }
        let mut position = Position::find(cursor, &mut file, || (self.warn)(EDITED))?;
        file.seek(SeekFrom::Start(position.offset))?;
        let mut bytes = Vec::new();
        Read::by_ref(&mut file).take(16 * MAX_MESSAGE_BYTES as u64).read_to_end(&mut bytes)?;
        let warn = || (self.warn)(&too_long());
        let (mut messages, mut rest) = (Vec::new(), bytes.as_slice());
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            let line = &rest[..end];
            rest = &rest[end + 1..];
            position.lines += 1;
            if std::mem::take(&mut position.is_in_long_line) {
                continue;
            }
            if line.len() > MAX_MESSAGE_BYTES {
                warn();
                continue;
            }
            let text = String::from_utf8_lossy(line);
            if !text.trim().is_empty() {
                messages.push(text.trim().to_owned());
            }
        }
        // a line without end is still being written, unless it is too long for a message
        if !position.is_in_long_line && rest.len() > MAX_MESSAGE_BYTES {
            warn();
            position.is_in_long_line = true;
        }
        if position.is_in_long_line {
            rest = &[];
        }
        position.offset += (bytes.len() - rest.len()) as u64;
        Ok(Received { messages, cursor: position.cursor(&mut file)? })
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
    use std::path::Path;

    /// A channel in a folder, with its warnings and the cursor that it was given last.
    struct Bench {
        files: Files,
        warnings: Receiver<String>,
        cursor: String,
    }

    impl Bench {
        fn new(dir: &Path) -> Self {
            let (send, warnings) = std::sync::mpsc::channel();
            let warn = move |text: &str| send.send(text.to_owned()).unwrap();
            Self { files: Files::new(dir.join("in"), dir.join("out"), warn), warnings, cursor: String::new() }
        }

        fn receive(&mut self) -> Vec<String> {
            let received = self.files.receive(&self.cursor).unwrap();
            self.cursor = received.cursor;
            received.messages
        }
    }

    #[test]
    fn complete_lines_of_a_file_are_received_once() {
        let dir = tempfile::tempdir().unwrap();
        let (from, mut bench) = (dir.path().join("in"), Bench::new(dir.path()));
        assert_eq!(bench.receive(), [""; 0], "it is not there yet");
        std::fs::write(&from, "one\n\ntwo\nthr").unwrap();
        assert_eq!(bench.receive(), ["one", "two"]);
        assert_eq!(bench.receive(), [""; 0]);
        std::fs::write(&from, "one\n\ntwo\nthree\n").unwrap();
        assert_eq!(bench.receive(), ["three"]);
        let cursor = bench.cursor.clone();
        assert_eq!((bench.receive(), &bench.cursor), (vec![], &cursor));
        // a cursor of an older version is the offset alone
        "9".clone_into(&mut bench.cursor);
        assert_eq!((bench.receive(), &bench.cursor), (vec!["three".to_owned()], &cursor));
        // and one of a later version has the tail, too
        bench.cursor = cursor.split(' ').take(2).collect::<Vec<_>>().join(" ");
        assert_eq!((bench.receive(), &bench.cursor), (vec![], &cursor));
    }

    #[test]
    fn another_file_is_read_from_its_start_and_a_saved_one_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let (from, mut bench) = (dir.path().join("in"), Bench::new(dir.path()));
        std::fs::write(&from, "one\n").unwrap();
        assert_eq!(bench.receive(), ["one"]);
        std::fs::write(&from, "this one is longer\n").unwrap();
        assert_eq!(bench.receive(), ["this one is longer"]);
        std::fs::write(&from, "new\n").unwrap();
        assert_eq!(bench.receive(), ["new"], "it is shorter");
        // an editor renames the file, or empties it, and writes it again
        std::fs::remove_file(&from).unwrap();
        assert_eq!(bench.receive(), [""; 0]);
        std::fs::write(&from, "").unwrap();
        assert_eq!(bench.receive(), [""; 0]);
        std::fs::write(dir.path().join("saved"), "new\nlast\n").unwrap();
        std::fs::rename(dir.path().join("saved"), &from).unwrap();
        assert_eq!(bench.receive(), ["last"]);
    }

    #[test]
    fn lines_that_were_read_are_not_read_again_if_one_of_them_is_edited() {
        let long = "x".repeat(MAX_MESSAGE_BYTES + 1);
        for (before, after, later, received) in [
            ("one\ntwo\n".to_owned(), "one\n2\nthree\n".to_owned(), "four\n", ["three", "four"].as_slice()),
            ("one\nb\nc\n".into(), "one\nmuch longer\nc\n".into(), "four\n", &["four"]),
            ("one\n\ntwo\n".into(), "one\n\n2\nthr".into(), "ee\n", &["three"]),
            ("one\ntwo\nthree\n".into(), "one\nthree\n".into(), "four\n", &["four"]),
            ("\none\ntwo\n".into(), "\nother\n".into(), "four\n", &["other", "four"]),
            (format!("one\ntwo\n{long}"), format!("one\n2\n{long}"), " end\nfour\n", &["four"]),
        ] {
            let dir = tempfile::tempdir().unwrap();
            let (from, mut bench) = (dir.path().join("in"), Bench::new(dir.path()));
            std::fs::write(&from, &before).unwrap();
            bench.receive();
            bench.warnings.try_iter().for_each(drop);
            std::fs::write(&from, &after).unwrap();
            let mut seen = bench.receive();
            seen.extend(bench.receive());
            std::fs::write(&from, after.clone() + later).unwrap();
            seen.extend(bench.receive());
            assert_eq!(seen, received, "{after}");
            let warnings: &[&str] = if received.contains(&"other") { &[] } else { &[EDITED] };
            assert_eq!(bench.warnings.try_iter().collect::<Vec<_>>(), warnings, "{after}");
        }
    }

    #[test]
    fn a_line_that_is_too_long_is_told_once_and_no_part_of_it_is_a_message() {
        let dir = tempfile::tempdir().unwrap();
        let (from, mut bench) = (dir.path().join("in"), Bench::new(dir.path()));
        for length in [MAX_MESSAGE_BYTES + 1, 17 * MAX_MESSAGE_BYTES] {
            let long = "x".repeat(length);
            std::fs::write(&from, format!("one\n{long}")).unwrap();
            let mut received = bench.receive();
            std::fs::write(&from, format!("one\n{long} end")).unwrap();
            received.extend(bench.receive());
            std::fs::write(&from, format!("one\n{long} end\ntwo\n")).unwrap();
            (0..3).for_each(|_| received.extend(bench.receive()));
            assert_eq!(received, ["one", "two"], "{length}");
            assert_eq!(bench.warnings.try_iter().collect::<Vec<_>>(), [too_long()]);
            std::fs::write(&from, "another\n").unwrap();
            bench.receive();
        }
        std::fs::write(&from, format!("{}\nshort\n", "x".repeat(MAX_MESSAGE_BYTES + 1))).unwrap();
        assert_eq!((bench.receive(), bench.warnings.try_iter().count()), (vec!["short".to_owned()], 1));
        std::fs::write(&from, format!("{}\n", "y".repeat(MAX_MESSAGE_BYTES))).unwrap();
        assert_eq!((bench.receive().len(), bench.warnings.try_iter().count()), (1, 0));
    }

    #[test]
    fn a_source_is_named_by_its_file_and_only_a_regular_file_is_one() {
        let dir = tempfile::tempdir().unwrap();
        let of = |name: &str| Files::new(dir.path().join(name), dir.path().join("out"), |_| ());
        let before = of("in").source();
        std::fs::write(dir.path().join("in"), "").unwrap();
        assert_eq!([of("in").source(), of("./in").source()], [before.clone(), before.clone()]);
        assert_ne!(of("other").source(), before);
        std::fs::create_dir(dir.path().join("folder")).unwrap();
        assert!(of("in").check().is_ok() && of("none").check().is_ok());
        for error in [of("folder").check().unwrap_err(), of("folder").receive("").unwrap_err()] {
            assert!(error.to_string().ends_with("folder is not a regular file"), "{error}");
        }
    }

    #[test]
    fn texts_sent_after_a_mark_are_recognised() {
        let dir = tempfile::tempdir().unwrap();
        let mut files = Files::new(dir.path().join("in"), dir.path().join("out"), |_| ());
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
