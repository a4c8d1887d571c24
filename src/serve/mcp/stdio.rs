//! The transport over standard streams: a message a line, in and out. Calls are worked on side by side and answered as they
//! end. What comes in and what waits to go out is bounded; a client that does not read is not read from either.

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

/// The most bytes of a line.
pub const LONGEST: usize = 4 << 20;
/// Lines that wait to be looked at.
const AHEAD: usize = 4;
/// The most bytes that wait to be written.
const UNSAID: usize = 16 << 20;
/// Stages that wait to be told. What comes while there are so many is left out.
const STAGES: usize = 64;
/// Calls that have not ended yet, those that were stopped counted: beyond that nothing is read.
const MOST: usize = 512;
/// The time that calls have to end once they were stopped.
const MOMENT: Duration = Duration::from_secs(3);

/// A line that came in.
#[derive(Debug, PartialEq, Eq)]
pub enum Line {
    /// A whole one, without its end.
    Whole(Vec<u8>),
    /// One that is too long; it was passed over.
    TooLong,
}

/// Reads lines until the input ends or nobody wants them any more. For a thread of its own.
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

/// The lines of an input, as they are read.
pub fn lines() -> (mpsc::Sender<Line>, mpsc::Receiver<Line>) {
    mpsc::channel(AHEAD)
}

/// The next line; nothing at the end. Of one that is too long nothing is kept.
fn next(input: &mut dyn BufRead) -> io::Result<Option<Line>> {
    let (mut line, mut long, mut any) = (Vec::new(), false, false);
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
        long |= line.len() + text.len() > LONGEST;
        if long {
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
    Ok(any.then_some(if long { Line::TooLong } else { Line::Whole(line) }))
}

/// A line that is to be written. The room that it takes is free once it is dropped.
#[derive(Debug)]
pub struct Said {
    /// The message.
    pub text: String,
    _room: OwnedSemaphorePermit,
}

/// Takes messages that are to be written.
#[derive(Debug)]
pub struct Out {
    send: mpsc::UnboundedSender<Said>,
    room: Arc<Semaphore>,
}

impl Out {
    /// The two ends: messages are put in at one and written at the other.
    pub fn new() -> (Self, mpsc::UnboundedReceiver<Said>) {
        let (send, receive) = mpsc::unbounded_channel();
        (Self { send, room: Arc::new(Semaphore::new(UNSAID)) }, receive)
    }

    /// Puts one in, once there is room; false if nobody writes any more.
    async fn say(&self, message: &Value) -> bool {
        let text = message.to_string();
        // one that is larger than all of the room waits for all of it
        let bytes = u32::try_from(text.len().min(UNSAID)).unwrap_or(u32::MAX);
        let room = tokio::select! {
            room = self.room.clone().acquire_many_owned(bytes) => room,
            () = self.send.closed() => return false,
        };
        room.is_ok_and(|_room| self.send.send(Said { text, _room }).is_ok())
    }
}

/// The reason that a server ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// Its input ended, and its calls have too.
    Input,
    /// It was told to.
    Told,
    /// The reader of the answers is gone.
    Unread,
}

/// Serves one client until its input has ended and its calls too, nobody reads the answers any more, or `stop` rings.
pub async fn serve(
    mut session: Session,
    toolbox: Arc<dyn Toolbox>,
    mut lines: mpsc::Receiver<Line>,
    out: Out,
    stop: Arc<Notify>,
) -> End {
    let mut calls = JoinSet::new();
    let (tell, mut told) = mpsc::channel::<(u64, String)>(STAGES);
    let (mut is_over, mut end) = (false, End::Input);
    while !(is_over && calls.is_empty()) {
        let mut said = Vec::new();
        tokio::select! {
            line = lines.recv(), if !is_over && calls.len() < MOST => {
                let steps = match line {
                    Some(Line::Whole(bytes)) => session.take(&bytes),
                    Some(Line::TooLong) => vec![Step::Say(too_long())],
                    None => {
                        is_over = true;
                        Vec::new()
                    }
                };
                for step in steps {
                    match step {
                        Step::Say(message) => said.push(message),
                        Step::Start(start) => begin(&mut calls, toolbox.clone(), start, &tell),
                    }
                }
            }
            Some((call, text)) = told.recv() => said.extend(session.progress(call, &text)),
            Some(ended) = calls.join_next() => {
                // how a call went is told before how it ended
                while let Ok((call, text)) = told.try_recv() {
                    said.extend(session.progress(call, &text));
                }
                if let Ok((call, outcome)) = ended {
                    said.extend(session.finish(call, outcome));
                }
            }
            () = stop.notified() => {
                end = End::Told;
                break;
            }
            () = out.send.closed() => {
                end = End::Unread;
                break;
            }
        }
        if let Some(why) = put_out(&out, said, &stop).await {
            end = why;
            break;
        }
    }
    session.stop();
    // a run writes down where it stands, so that it can be gone on with
    let ends = async { while calls.join_next().await.is_some() {} };
    let _ = tokio::time::timeout(MOMENT, ends).await;
    end
}

/// Puts messages in that are to be written; the reason to end, if there is one by then.
async fn put_out(out: &Out, said: Vec<Value>, stop: &Notify) -> Option<End> {
    for message in said {
        tokio::select! {
            is_heard = out.say(&message) => {
                if !is_heard {
                    return Some(End::Unread);
                }
            }
            () = stop.notified() => return Some(End::Told),
        }
    }
    None
}

fn begin(
    calls: &mut JoinSet<(u64, super::session::Outcome)>,
    toolbox: Arc<dyn Toolbox>,
    start: Start,
    tell: &mpsc::Sender<(u64, String)>,
) {
    let (call, tell, wanted) = (start.call, tell.clone(), start.told);
    let stages: Stages = Arc::new(move |text: &str| {
        if wanted {
            // one that is not told is no answer that is lost
            let _ = tell.try_send((call, text.to_owned()));
        }
    });
    calls.spawn(async move { (call, work::done(&*toolbox, start, stages).await) });
}

fn too_long() -> Value {
    let why = format!("a line has at most {LONGEST} bytes; this one was passed over");
    Refusal::new(Value::Null, ErrorCode::PARSE_ERROR, why).answer()
}

#[cfg(test)]
#[path = "stdio_tests.rs"]
mod tests;
