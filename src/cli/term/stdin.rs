//! Standard input beside a request: data for the command that is written. Its beginning is looked at and nothing of it is taken,
//! so that the command, or whoever reads next, finds all of it; however much comes, no more than the beginning is held.
//!
//! Only a pipe or a file is looked at. A terminal is a person's, and of anything else nobody knows that it ever ends.

use crate::Cx;
use caro_command::{History, Input, input};
use std::thread::JoinHandle;

/// The beginning of it as it is being looked at.
pub struct Looking(Option<JoinHandle<Seen>>);

/// The outcome of a look.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Seen {
    /// No data is there: a terminal, a device, or nothing that can be looked at.
    Nothing,
    /// A pipe into which nothing was written for a while.
    Silent,
    /// The beginning; empty if it ended at once.
    Head(Vec<u8>),
}

/// Begins to look, on a thread of its own: a pipe may take its time.
pub fn look() -> Looking {
    Looking(std::thread::Builder::new().name("stdin".into()).spawn(system::seen).ok())
}

impl Looking {
    /// Adds what was seen to what the model is told before the request; the person is told what it does not show.
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
            // a program that was started with an empty pipe need not hear of it
            Input::Empty if cx.ui.can_ask_at_terminal() => cx.ui.note("nothing came through the pipe"),
            Input::Empty => {}
            Input::Binary { form, told } => {
                let form = form.map_or(String::new(), |form| format!(" ({form})"));
                cx.ui.note(&format!("what comes in is no text{form}: the model is told that, and nothing of it"));
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

    /// Bytes that are looked at: as much as a pipe holds.
    const MOST: usize = 64 << 10;

    /// How long the first byte is waited for, and how long one more.
    const FIRST: Duration = Duration::from_secs(1);
    const MORE: Duration = Duration::from_millis(100);
    const LOOK: Duration = Duration::from_millis(10);

    pub(crate) fn seen() -> Seen {
        let stdin = std::io::stdin();
        let stdin = stdin.as_fd();
        match fstat(stdin).map(|stat| FileType::from_raw_mode(stat.st_mode)) {
            Ok(FileType::RegularFile) => of_file(stdin),
            Ok(FileType::Fifo) => of_pipe(|| peek(stdin), FIRST, MORE),
            _ => Seen::Nothing,
        }
    }

    /// The beginning of what is left of a file; its offset stays.
    fn of_file(file: BorrowedFd<'_>) -> Seen {
        let mut bytes = vec![0; MOST];
        let read = seek(file, SeekFrom::Current(0)).and_then(|at| pread(file, &mut bytes, at));
        read.map_or(Seen::Nothing, |read| {
            bytes.truncate(read);
            Seen::Head(bytes)
        })
    }

    /// The beginning of a pipe, as soon as there is enough of it or no more comes.
    pub(crate) fn of_pipe(mut peek: impl FnMut() -> Result<Vec<u8>, Errno>, first: Duration, more: Duration) -> Seen {
        let (mut since, mut length) = (Instant::now(), 0);
        loop {
            match peek() {
                Ok(bytes) if bytes.is_empty() || bytes.len() >= MOST / 2 => return Seen::Head(bytes),
                Ok(bytes) if bytes.len() > length => (since, length) = (Instant::now(), bytes.len()),
                Ok(bytes) if since.elapsed() >= more => return Seen::Head(bytes),
                Err(Errno::AGAIN) if since.elapsed() >= first => return Seen::Silent,
                Ok(_) | Err(Errno::AGAIN | Errno::INTR) => {}
                Err(_) => return Seen::Nothing,
            }
            std::thread::sleep(LOOK);
        }
    }

    /// The bytes that are in a pipe now, without taking them out; none at its end.
    #[cfg(target_os = "linux")]
    fn peek(pipe: BorrowedFd<'_>) -> Result<Vec<u8>, Errno> {
        use rustix::pipe::{PipeFlags, SpliceFlags, pipe_with, tee};
        let (out, into) = pipe_with(PipeFlags::CLOEXEC)?;
        let there = tee(pipe, &into, MOST, SpliceFlags::NONBLOCK)?;
        drop(into);
        let mut bytes = vec![0; there];
        let mut read = 0;
        while read < there {
            match rustix::io::read(&out, &mut bytes[read..])? {
                0 => break,
                n => read += n,
            }
        }
        bytes.truncate(read);
        Ok(bytes)
    }

    /// Other systems show nothing of a pipe without giving it away.
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
        fn a_pipe_is_looked_at_and_keeps_all_that_is_in_it() {
            let (out, into) = pipe_with(PipeFlags::CLOEXEC).unwrap();
            for part in [&b"one\n"[..], b"two\n"] {
                rustix::io::write(&into, part).unwrap();
            }
            for _ in 0..2 {
                assert_eq!(of_pipe(|| peek(out.as_fd()), SHORT, SHORT), Seen::Head(b"one\ntwo\n".to_vec()));
            }
            drop(into);
            let mut all = [0; 64];
            assert_eq!(rustix::io::read(&out, &mut all[..]).unwrap(), 8);
            assert_eq!(of_pipe(|| peek(out.as_fd()), SHORT, SHORT), Seen::Head(Vec::new()));
        }

        #[test]
        fn one_that_is_silent_is_not_waited_for_and_one_that_is_full_is_enough() {
            let (out, into) = pipe_with(PipeFlags::CLOEXEC).unwrap();
            assert_eq!(of_pipe(|| peek(out.as_fd()), SHORT, SHORT), Seen::Silent);
            rustix::io::write(&into, &vec![b'x'; MOST]).unwrap();
            let begun = Instant::now();
            let Seen::Head(bytes) = of_pipe(|| peek(out.as_fd()), SHORT, Duration::from_secs(60)) else { panic!() };
            assert!(bytes.len() >= MOST / 2 && begun.elapsed() < Duration::from_secs(30));
        }

        #[test]
        fn a_file_is_looked_at_from_where_it_stands_and_stays_there() {
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().join("data");
            std::fs::write(&path, "one\ntwo\n").unwrap();
            let file = std::fs::File::open(&path).unwrap();
            seek(&file, SeekFrom::Start(4)).unwrap();
            assert_eq!(of_file(file.as_fd()), Seen::Head(b"two\n".to_vec()));
            assert_eq!(seek(&file, SeekFrom::Current(0)).unwrap(), 4);
        }
    }
}

#[cfg(not(unix))]
mod system {
    pub(crate) fn seen() -> super::Seen {
        super::Seen::Nothing
    }
}
