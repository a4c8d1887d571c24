//! Counts a server's output before the protocol layer reads it, and detects messages which that layer drops silently.

use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, ReadBuf};
use tokio::sync::Notify;

/// Longest line that a server may write, bytes. A line is one message.
pub(super) const MAX_LINE: usize = 4 << 20;
/// Most bytes that a server may write between two calls; one that writes more counts as flooding.
const MAX_BYTES_PER_CALL: u64 = 64 << 20;

/// The amount of a server's output, and its dropped messages.
#[derive(Default)]
pub(super) struct OutputMeter {
    /// Bytes since the last call began.
    bytes: AtomicU64,
    /// The reason why the last dropped message was dropped.
    fault: Mutex<&'static str>,
    dropped: Notify,
}

impl OutputMeter {
    /// Starts counting for a new call.
    pub(super) fn start_call(&self) {
        self.bytes.store(0, Ordering::Relaxed);
    }

    /// Adds bytes written by the server.
    pub(super) fn add(&self, bytes: usize) {
        self.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// True if the server has written more than the limit since the last call began.
    pub(super) fn is_flood(&self) -> bool {
        self.bytes.load(Ordering::Relaxed) > MAX_BYTES_PER_CALL
    }

    /// Waits for the answer, or for a message to be dropped, and returns the reason for the drop as error. A dropped
    /// message cannot be attributed to a call, so every waiting call fails.
    pub(super) async fn or_dropped<T>(&self, answer: impl Future<Output = T>) -> Result<T, &'static str> {
        let dropped = self.dropped.notified();
        tokio::select! {
            // polled first, so that the waiter is registered before the request is sent
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

/// A reader that reports the end of the stream once the server floods.
pub(super) struct MeteredReader<R> {
    inner: R,
    meter: Arc<OutputMeter>,
    line: LineState,
}

impl<R> MeteredReader<R> {
    pub(super) fn new(inner: R, meter: Arc<OutputMeter>) -> Self {
        Self { inner, meter, line: LineState::default() }
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for MeteredReader<R> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<std::io::Result<()>> {
        if self.meter.is_flood() {
            return Poll::Ready(Ok(()));
        }
        let before = buf.filled().len();
        let polled = Pin::new(&mut self.inner).poll_read(cx, buf);
        let new = &buf.filled()[before..];
        self.meter.add(new.len());
        for part in new.split_inclusive(|b| *b == b'\n') {
            if let Some(fault) = self.line.feed(part) {
                self.meter.drop_message(fault);
            }
        }
        polled
    }
}

/// The state of the line that is being read.
#[derive(Default)]
struct LineState {
    length: usize,
    /// True if the line starts like a message; the protocol layer ignores other lines.
    is_message: bool,
    is_dropped: bool,
    /// The bytes of an incomplete UTF-8 character at the end.
    pending: Vec<u8>,
}

impl LineState {
    /// Adds a part of the line, which may be its end. Returns once per line why it will be dropped.
    fn feed(&mut self, part: &[u8]) -> Option<&'static str> {
        if self.length == 0 {
            self.is_message = part.starts_with(b"{");
        }
        self.length += part.len();
        let ends = part.ends_with(b"\n");
        let mut fault = None;
        if self.is_message && !self.is_dropped {
            self.pending.extend_from_slice(part);
            let (read, is_text) = match std::str::from_utf8(&self.pending) {
                Ok(_) => (self.pending.len(), true),
                Err(e) => (e.valid_up_to(), e.error_len().is_none()),
            };
            self.pending.drain(..read);
            if self.length > MAX_LINE {
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

    /// Returns the faults found in a text that arrives in pieces of `size` bytes.
    fn faults(text: &[u8], size: usize) -> Vec<&'static str> {
        let mut line = LineState::default();
        let pieces = text.chunks(size).flat_map(|piece| piece.split_inclusive(|b| *b == b'\n'));
        pieces.filter_map(|part| line.feed(part)).collect()
    }

    #[test]
    fn dropped_messages_are_detected_for_any_piece_size() {
        for size in [1, 2, 3, 7, 999] {
            assert_eq!(faults("no message \n{\"a\": \"naïve 日本 👩\"}\n{}\n".as_bytes(), size), [""; 0], "{size}");
            assert_eq!(faults(b"caf\xe9\n{\"a\": \"caf\xe9\xe9\"}\n{\"a\": \"\xe9\"}\n{}\n", size).len(), 2, "{size}");
        }
        let long = |length: usize| format!("{{{}\n{{}}\n", "x".repeat(length - 2));
        assert_eq!(faults(long(MAX_LINE).as_bytes(), 8192), [""; 0]);
        assert_eq!(faults(long(MAX_LINE + 1).as_bytes(), 8192), ["its answer is larger than 4 MiB"]);
    }
}
