//! Examines standard input beside a request: data for the command. Its beginning is read without consuming it, so
//! that the command finds all of it; no more than the beginning is held in memory.
//!
//! Only a pipe or a file is examined: a terminal is for the user, and other devices may never end.

use crate::Cx;
use caro_command::{History, Input, input};
use std::thread::JoinHandle;

/// An examination of standard input in progress.
pub struct Looking(Option<JoinHandle<Seen>>);

/// The result of an examination.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Seen {
    /// No data: a terminal, a device, or input that cannot be examined.
    Nothing,
    /// A pipe without data for a while.
    Silent,
    /// The beginning of the data; empty if the input ended at once.
    Head(Vec<u8>),
}

/// Starts to examine standard input on a thread of its own: a pipe may be slow.
pub fn look() -> Looking {
    Looking(std::thread::Builder::new().name("stdin".into()).spawn(system::examine).ok())
}

impl Looking {
    /// Adds the result to the history of the request; a note says what the model does not see.
    pub fn tell(self, before: &mut History, has_jq: bool, cx: &Cx) {
        let seen = self.0.and_then(|thread| thread.join().ok()).unwrap_or(Seen::Nothing);
        let bytes = match seen {
            Seen::Nothing => return,
            Seen::Silent => {
                return cx.ui.note(
                    "nothing came through the pipe within a second: the command is written without a look at it",
                );
            }
            Seen::Head(bytes) => bytes,
        };
        match input::of(&bytes, has_jq) {
            // no note for a program that calls this with an empty pipe
            Input::Empty if cx.ui.can_ask_at_terminal() => cx.ui.note("nothing came through the pipe"),
            Input::Empty => {}
            Input::Binary { form, told } => {
                let form = form.map_or(String::new(), |form| format!(" ({form})"));
                cx.ui.note(&format!("what comes in is not text{form}: the model is told that, and nothing of it"));
                before.place.push(told);
                before.input = Some(String::new());
            }
            Input::Text { told, head } => {
                before.place.push(told);
                before.input = Some(head);
            }
        }
    }
}

#[cfg(unix)]
mod system {
    use super::Seen;
    use rustix::fs::{FileType, SeekFrom, fstat, seek};
    use rustix::io::{Errno, pread};
    use std::os::fd::{AsFd, BorrowedFd};
    use std::time::{Duration, Instant};

    /// Most bytes examined: as many as a pipe holds.
    const MAX_BYTES: usize = 64 << 10;

    /// Most time to wait for the first byte.
    const FIRST_TIMEOUT: Duration = Duration::from_secs(1);
    /// Most time to wait for further bytes.
    const MORE_TIMEOUT: Duration = Duration::from_millis(100);
    const POLL_INTERVAL: Duration = Duration::from_millis(10);

    pub(crate) fn examine() -> Seen {
        let stdin = std::io::stdin();
        let stdin = stdin.as_fd();
        match fstat(stdin).map(|stat| FileType::from_raw_mode(stat.st_mode)) {
            Ok(FileType::RegularFile) => examine_file(stdin),
            Ok(FileType::Fifo) => examine_pipe(|| peek(stdin), FIRST_TIMEOUT, MORE_TIMEOUT),
            _ => Seen::Nothing,
        }
    }

    /// Reads a file from its offset, which stays unchanged.
    fn examine_file(file: BorrowedFd<'_>) -> Seen {
        let mut bytes = vec![0; MAX_BYTES];
        let read = seek(file, SeekFrom::Current(0)).and_then(|at| pread(file, &mut bytes, at));
        read.map_or(Seen::Nothing, |read| {
            bytes.truncate(read);
            Seen::Head(bytes)
        })
    }

    /// Reads the beginning of a pipe until there is enough of it or no more arrives.
    pub(crate) fn examine_pipe(
        mut peek: impl FnMut() -> Result<Vec<u8>, Errno>,
        first: Duration,
        more: Duration,
    ) -> Seen {
        let (mut since, mut length) = (Instant::now(), 0);
        loop {
            match peek() {
                Ok(bytes) if bytes.is_empty() || bytes.len() >= MAX_BYTES / 2 => return Seen::Head(bytes),
                Ok(bytes) if bytes.len() > length => (since, length) = (Instant::now(), bytes.len()),
                Ok(bytes) if since.elapsed() >= more => return Seen::Head(bytes),
                Err(Errno::AGAIN) if since.elapsed() >= first => return Seen::Silent,
                Ok(_) | Err(Errno::AGAIN | Errno::INTR) => {}
                Err(_) => return Seen::Nothing,
            }
            std::thread::sleep(POLL_INTERVAL);
        }
    }

    /// Copies the bytes that are in a pipe now, without consuming them; none at its end.
    #[cfg(target_os = "linux")]
    fn peek(pipe: BorrowedFd<'_>) -> Result<Vec<u8>, Errno> {
        use rustix::pipe::{PipeFlags, SpliceFlags, pipe_with, tee};
        let (out, into) = pipe_with(PipeFlags::CLOEXEC)?;
        let count = tee(pipe, &into, MAX_BYTES, SpliceFlags::NONBLOCK)?;
        drop(into);
        let mut bytes = vec![0; count];
        let mut read = 0;
        while read < count {
            match rustix::io::read(&out, &mut bytes[read..])? {
                0 => break,
                n => read += n,
            }
        }
        bytes.truncate(read);
        Ok(bytes)
    }

    /// Other systems cannot read a pipe without consuming it.
    #[cfg(not(target_os = "linux"))]
    fn peek(_: BorrowedFd<'_>) -> Result<Vec<u8>, Errno> {
        Err(Errno::NOSYS)
    }

    #[cfg(all(test, target_os = "linux"))]
    mod tests {
        use super::*;
        use rustix::pipe::{PipeFlags, pipe_with};

        const SHORT: Duration = Duration::from_millis(30);

        #[test]
        fn a_pipe_is_examined_and_not_consumed() {
            let (out, into) = pipe_with(PipeFlags::CLOEXEC).unwrap();
            for part in [&b"one\n"[..], b"two\n"] {
                rustix::io::write(&into, part).unwrap();
            }
            for _ in 0..2 {
                assert_eq!(examine_pipe(|| peek(out.as_fd()), SHORT, SHORT), Seen::Head(b"one\ntwo\n".to_vec()));
            }
            drop(into);
            let mut all = [0; 64];
            assert_eq!(rustix::io::read(&out, &mut all[..]).unwrap(), 8);
            assert_eq!(examine_pipe(|| peek(out.as_fd()), SHORT, SHORT), Seen::Head(Vec::new()));
        }

        #[test]
        fn a_silent_pipe_times_out_and_a_full_one_returns_at_once() {
            let (out, into) = pipe_with(PipeFlags::CLOEXEC).unwrap();
            assert_eq!(examine_pipe(|| peek(out.as_fd()), SHORT, SHORT), Seen::Silent);
            rustix::io::write(&into, &vec![b'x'; MAX_BYTES]).unwrap();
            let start = Instant::now();
            let Seen::Head(bytes) = examine_pipe(|| peek(out.as_fd()), SHORT, Duration::from_secs(60)) else {
                panic!()
            };
            assert!(bytes.len() >= MAX_BYTES / 2 && start.elapsed() < Duration::from_secs(30));
        }

        #[test]
        fn a_file_is_examined_from_its_offset_which_stays() {
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().join("data");
            std::fs::write(&path, "one\ntwo\n").unwrap();
            let file = std::fs::File::open(&path).unwrap();
            seek(&file, SeekFrom::Start(4)).unwrap();
            assert_eq!(examine_file(file.as_fd()), Seen::Head(b"two\n".to_vec()));
            assert_eq!(seek(&file, SeekFrom::Current(0)).unwrap(), 4);
        }
    }
}

#[cfg(not(unix))]
mod system {
    pub(crate) fn examine() -> super::Seen {
        super::Seen::Nothing
    }
}
