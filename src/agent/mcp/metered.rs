//! A server's output on its way to the protocol: how much there is of it, and what of it the protocol drops without a word.

use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, ReadBuf};
use tokio::sync::Notify;

/// The longest line that a server may write, bytes: one message.
pub(super) const LINE: usize = 4 << 20;
/// Bytes that a server may write between two calls of ours; one that writes more never ceases.
const FLOOD: u64 = 64 << 20;

/// What was heard of a server.
#[derive(Default)]
pub(super) struct Heard {
    /// Bytes since the last call.
    bytes: AtomicU64,
    /// What was wrong with the last message that was dropped.
    fault: Mutex<&'static str>,
    dropped: Notify,
}

impl Heard {
    /// A call begins.
    pub(super) fn begin(&self) {
        self.bytes.store(0, Ordering::Relaxed);
    }

    /// It has written so many bytes more.
    pub(super) fn hear(&self, bytes: usize) {
        self.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// True if it writes without end.
    pub(super) fn is_flood(&self) -> bool {
        self.bytes.load(Ordering::Relaxed) > FLOOD
    }

    /// The answer, or what is wrong with a message that was dropped meanwhile: which call it was for nobody knows.
    pub(super) async fn or_dropped<T>(&self, answer: impl Future<Output = T>) -> Result<T, &'static str> {
        let dropped = self.dropped.notified();
        tokio::select! {
            // who waits is noted before the request is sent
            biased;
            () = dropped => Err(*self.fault.lock().unwrap_or_else(PoisonError::into_inner)),
            answer = answer => Ok(answer),
        }
    }

    fn drop_message(&self, fault: &'static str) {
        *self.fault.lock().unwrap_or_else(PoisonError::into_inner) = fault;
        self.dropped.notify_waiters();
    }
}

/// A stream that ends where a server writes without end.
pub(super) struct Metered<R> {
    inner: R,
    heard: Arc<Heard>,
    line: Line,
}

impl<R> Metered<R> {
    pub(super) fn new(inner: R, heard: Arc<Heard>) -> Self {
        Self { inner, heard, line: Line::default() }
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for Metered<R> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<std::io::Result<()>> {
        if self.heard.is_flood() {
            return Poll::Ready(Ok(()));
        }
        let before = buf.filled().len();
        let polled = Pin::new(&mut self.inner).poll_read(cx, buf);
        let new = &buf.filled()[before..];
        self.heard.hear(new.len());
        for part in new.split_inclusive(|b| *b == b'\n') {
            if let Some(fault) = self.line.take(part) {
                self.heard.drop_message(fault);
            }
        }
        polled
    }
}

/// The line that is being read.
#[derive(Default)]
struct Line {
    length: usize,
    /// False where a server writes what is no message anyway.
    is_message: bool,
    is_dropped: bool,
    /// What may yet become a character.
    rest: Vec<u8>,
}

impl Line {
    /// Takes up a part of it, which may be its end; why it will be dropped, said once.
    fn take(&mut self, part: &[u8]) -> Option<&'static str> {
        if self.length == 0 {
            self.is_message = part.starts_with(b"{");
        }
        self.length += part.len();
        let ends = part.ends_with(b"\n");
        let mut fault = None;
        if self.is_message && !self.is_dropped {
            self.rest.extend_from_slice(part);
            let (read, is_text) = match std::str::from_utf8(&self.rest) {
                Ok(_) => (self.rest.len(), true),
                Err(e) => (e.valid_up_to(), e.error_len().is_none()),
            };
            self.rest.drain(..read);
            if self.length > LINE {
                fault = Some("its answer is larger than 4 MiB");
            } else if !is_text {
                fault = Some("its answer is not UTF-8");
            }
            self.is_dropped = fault.is_some();
        }
        if ends {
            *self = Self::default();
        }
        fault
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is said of a text that comes in pieces of this size.
    fn said(text: &[u8], size: usize) -> Vec<&'static str> {
        let mut line = Line::default();
        let pieces = text.chunks(size).flat_map(|piece| piece.split_inclusive(|b| *b == b'\n'));
        pieces.filter_map(|part| line.take(part)).collect()
    }

    #[test]
    fn what_is_dropped_is_known_however_it_comes() {
        for size in [1, 2, 3, 7, 999] {
            assert_eq!(said("no message \n{\"a\": \"naïve 日本 👩\"}\n{}\n".as_bytes(), size), [""; 0], "{size}");
            assert_eq!(said(b"caf\xe9\n{\"a\": \"caf\xe9\xe9\"}\n{\"a\": \"\xe9\"}\n{}\n", size).len(), 2, "{size}");
        }
        let long = |length: usize| format!("{{{}\n{{}}\n", "x".repeat(length - 2));
        assert_eq!(said(long(LINE).as_bytes(), 8192), [""; 0]);
        assert_eq!(said(long(LINE + 1).as_bytes(), 8192), ["its answer is larger than 4 MiB"]);
    }
}
