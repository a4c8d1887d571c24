//! The transport over standard streams: one message per line, in and out. Calls run concurrently and are answered as
//! they end. Both queues are bounded; from a client that does not read its answers, nothing more is read.

use super::message::Refusal;
use super::session::{Session, Start, Step};
use super::work::{self, Stages, Toolbox};
use rmcp::model::ErrorCode;
use serde_json::Value;
use std::io::{self, BufRead};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::task::JoinSet;

/// Most bytes of a line.
pub const MAX_LINE: usize = 4 << 20;
/// Most lines read but not processed.
const MAX_LINES_AHEAD: usize = 4;
/// Most bytes of messages waiting to be written.
const MAX_UNWRITTEN: usize = 16 << 20;
/// Most stages waiting to be sent; while there are so many, further ones are dropped.
const MAX_STAGES: usize = 64;
/// Most calls that have not ended, including stopped ones; while there are so many, nothing is read.
const MAX_CALLS: usize = 512;
/// Most time for calls to end once they were stopped.
const STOP_TIMEOUT: Duration = Duration::from_secs(3);

/// A line of input.
#[derive(Debug, PartialEq, Eq)]
pub enum Line {
    /// A complete line, without its newline.
    Whole(Vec<u8>),
    /// A line above the limit, which was skipped.
    TooLong,
}

/// Reads lines until the input ends or the receiver is dropped. Blocks: runs in a thread of its own.
pub fn read(input: &mut dyn BufRead, lines: &mpsc::Sender<Line>) {
    loop {
        match next(input) {
            Ok(Some(Line::Whole(bytes))) if bytes.trim_ascii().is_empty() => {}
            Ok(Some(line)) => {
                if lines.blocking_send(line).is_err() {
                    return;
                }
            }
            Ok(None) => return,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return,
        }
    }
}

/// Creates the channel for lines of input.
pub fn lines() -> (mpsc::Sender<Line>, mpsc::Receiver<Line>) {
    mpsc::channel(MAX_LINES_AHEAD)
}

/// Reads the next line; `None` at the end of the input. Discards the bytes of a line above the limit.
fn next(input: &mut dyn BufRead) -> io::Result<Option<Line>> {
    let (mut line, mut is_too_long, mut any) = (Vec::new(), false, false);
    loop {
        let piece = match input.fill_buf() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            piece => piece?,
        };
        if piece.is_empty() {
            break;
        }
        any = true;
        let end = piece.iter().position(|byte| *byte == b'\n');
        let text = &piece[..end.unwrap_or(piece.len())];
        is_too_long |= line.len() + text.len() > MAX_LINE;
        if is_too_long {
            line = Vec::new();
        } else {
            line.extend_from_slice(text);
        }
        let used = end.map_or(piece.len(), |end| end + 1);
        input.consume(used);
        if end.is_some() {
            break;
        }
    }
    Ok(any.then_some(if is_too_long { Line::TooLong } else { Line::Whole(line) }))
}

/// A message to write. It counts toward the bytes waiting to be written until it is dropped.
#[derive(Debug)]
pub struct Outgoing {
    /// The message.
    pub text: String,
    _room: OwnedSemaphorePermit,
}

/// The sending end of the queue of messages to write.
#[derive(Debug)]
pub struct Out {
    send: mpsc::UnboundedSender<Outgoing>,
    room: Arc<Semaphore>,
}

impl Out {
    /// Creates the two ends of the queue.
    pub fn new() -> (Self, mpsc::UnboundedReceiver<Outgoing>) {
        let (send, receive) = mpsc::unbounded_channel();
        (Self { send, room: Arc::new(Semaphore::new(MAX_UNWRITTEN)) }, receive)
    }

    /// Adds a message, once there is room; false if the receiver is dropped.
    async fn send(&self, message: &Value) -> bool {
        let text = message.to_string();
        // a message above the limit waits until the queue is empty
        let bytes = u32::try_from(text.len().min(MAX_UNWRITTEN)).unwrap_or(u32::MAX);
        let room = tokio::select! {
            room = self.room.clone().acquire_many_owned(bytes) => room,
            () = self.send.closed() => return false,
        };
        room.is_ok_and(|_room| self.send.send(Outgoing { text, _room }).is_ok())
    }
}

/// The reason that the server ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// The input ended, and then all calls.
    Input,
    /// `stop` was notified.
    Stopped,
    /// The receiver of the answers was dropped.
    OutputClosed,
}

/// Serves one client until its input and all calls have ended, the receiver of the answers is dropped, or `stop` is
/// notified.
pub async fn serve(
    mut session: Session,
    toolbox: Arc<dyn Toolbox>,
    mut lines: mpsc::Receiver<Line>,
    out: Out,
    stop: Arc<Notify>,
) -> End {
    let mut calls = JoinSet::new();
    let (send_stage, mut stages) = mpsc::channel::<(u64, String)>(MAX_STAGES);
    let (mut input_ended, mut end) = (false, End::Input);
    while !(input_ended && calls.is_empty()) {
        let mut messages = Vec::new();
        tokio::select! {
            line = lines.recv(), if !input_ended && calls.len() < MAX_CALLS => {
                let steps = match line {
                    Some(Line::Whole(bytes)) => session.take(&bytes),
                    Some(Line::TooLong) => vec![Step::Send(too_long())],
                    None => {
                        input_ended = true;
                        Vec::new()
                    }
                };
                for step in steps {
                    match step {
                        Step::Send(message) => messages.push(message),
                        Step::Start(start) => spawn_call(&mut calls, toolbox.clone(), start, &send_stage),
                    }
                }
            }
            Some((call, text)) = stages.recv() => messages.extend(session.progress(call, &text)),
            Some(ended) = calls.join_next() => {
                // a call's progress is sent before its result
                while let Ok((call, text)) = stages.try_recv() {
                    messages.extend(session.progress(call, &text));
                }
                if let Ok((call, outcome)) = ended {
                    messages.extend(session.finish(call, outcome));
                }
            }
            () = stop.notified() => {
                end = End::Stopped;
                break;
            }
            () = out.send.closed() => {
                end = End::OutputClosed;
                break;
            }
        }
        if let Some(reason) = send_all(&out, messages, &stop).await {
            end = reason;
            break;
        }
    }
    session.stop();
    // an agent run that is stopped writes a checkpoint, so that it can be resumed
    let ends = async { while calls.join_next().await.is_some() {} };
    let _ = tokio::time::timeout(STOP_TIMEOUT, ends).await;
    end
}

/// Queues messages to write; returns the reason to end, if one occurs meanwhile.
async fn send_all(out: &Out, messages: Vec<Value>, stop: &Notify) -> Option<End> {
    for message in messages {
        tokio::select! {
            is_sent = out.send(&message) => {
                if !is_sent {
                    return Some(End::OutputClosed);
                }
            }
            () = stop.notified() => return Some(End::Stopped),
        }
    }
    None
}

fn spawn_call(
    calls: &mut JoinSet<(u64, super::session::Outcome)>,
    toolbox: Arc<dyn Toolbox>,
    start: Start,
    send_stage: &mpsc::Sender<(u64, String)>,
) {
    let (call, send_stage, is_wanted) = (start.call, send_stage.clone(), start.wants_progress);
    let stages: Stages = Arc::new(move |text: &str| {
        if is_wanted {
            // if the queue is full the stage is dropped
            let _ = send_stage.try_send((call, text.to_owned()));
        }
    });
    calls.spawn(async move { (call, work::run_call(&*toolbox, start, stages).await) });
}

fn too_long() -> Value {
    let why = format!("a line has at most {MAX_LINE} bytes; this one was passed over");
    Refusal::new(Value::Null, ErrorCode::PARSE_ERROR, why).answer()
}

#[cfg(test)]
#[path = "stdio_tests.rs"]
mod tests;
