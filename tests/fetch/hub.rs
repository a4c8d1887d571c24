//! A fake hub with one file: like the real one, it redirects from the metadata to the bytes.

use crate::http_server::{Req, Server, answer, head};
use sha2::{Digest, Sha256};
use std::io::Write;
use std::net::TcpStream;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// The behaviour of the hub.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Mood {
    /// Correct.
    Sound,
    /// Answers everything with this status.
    Status(u16),
    /// Closes the connection after `after` bytes, `times` times.
    Cut { after: usize, times: u32 },
    /// Sends nothing from this byte of the file on.
    Silent { after: usize },
    /// Accepts connections and never answers.
    Deaf,
    /// Sends other bytes than announced.
    Liar,
    /// Ignores ranges and sends the whole file.
    NoRanges,
    /// Sends no size; the file ends with the connection.
    NoSize,
    /// Sends slowly, so that a process can be killed during a download.
    Slow,
}

pub struct Hub {
    pub server: Server,
    mood: Arc<Mutex<Mood>>,
    sent: Arc<Mutex<usize>>,
}

impl Hub {
    pub fn of(bytes: &[u8], mood: Mood) -> Self {
        let bytes = bytes.to_vec();
        let etag: String = Sha256::digest(&bytes).iter().map(|b| format!("{b:02x}")).collect();
        let (mood, sent) = (Arc::new(Mutex::new(mood)), Arc::<Mutex<usize>>::default());
        let (now, count) = (mood.clone(), sent.clone());
        let server = Server::start(move |request, socket| {
            let mood = *now.lock().unwrap();
            match mood {
                Mood::Deaf => std::thread::sleep(Duration::from_secs(300)),
                Mood::Status(status) => answer(socket, status, &[], b"{\"error\":\"no\"}"),
                _ if request.path.starts_with("/storage/") => {
                    if let Mood::Cut { after, times } = mood {
                        let left = times.saturating_sub(1);
                        *now.lock().unwrap() = if left == 0 { Mood::Sound } else { Mood::Cut { after, times: left } };
                    }
                    storage(&bytes, mood, request, socket, &count);
                }
                _ => metadata(&bytes, &etag, mood, request, socket),
            }
        });
        Self { server, mood, sent }
    }

    pub fn set(&self, mood: Mood) {
        *self.mood.lock().unwrap() = mood;
    }

    /// Total bytes of the file sent so far.
    pub fn sent(&self) -> usize {
        *self.sent.lock().unwrap()
    }
}

fn metadata(bytes: &[u8], etag: &str, mood: Mood, request: &Req, socket: &mut TcpStream) {
    let location = format!("/storage/{}", request.path.rsplit('/').next().unwrap_or_default());
    let (etag, size) = (format!("\"{etag}\""), bytes.len().to_string());
    let mut headers =
        vec![("Location", location.as_str()), ("X-Repo-Commit", "c0ffee"), ("X-Linked-ETag", etag.as_str())];
    if mood != Mood::NoSize {
        headers.push(("X-Linked-Size", size.as_str()));
    }
    answer(socket, 302, &headers, b"");
}

fn storage(bytes: &[u8], mood: Mood, request: &Req, socket: &mut TcpStream, sent: &Mutex<usize>) {
    let range = request.headers.get("range").and_then(|r| r.strip_prefix("bytes=")?.strip_suffix('-')?.parse().ok());
    let from = if mood == Mood::NoRanges { 0 } else { range.unwrap_or(0_usize) };
    if from >= bytes.len() {
        return answer(socket, 416, &[], b"");
    }
    let mut rest = bytes[from..].to_vec();
    let content_range = format!("bytes {from}-{}/{}", bytes.len() - 1, bytes.len());
    let length = (mood != Mood::NoSize).then_some(rest.len());
    match range {
        Some(_) if mood != Mood::NoRanges => head(socket, 206, &[("Content-Range", &content_range)], length),
        _ => head(socket, 200, &[("ETag", "\"of the storage\"")], length),
    }
    match mood {
        Mood::Cut { after, .. } => rest.truncate(after),
        Mood::Silent { after } => rest.truncate(after.saturating_sub(from)),
        Mood::Liar => rest[0] ^= 1,
        _ => {}
    }
    for piece in rest.chunks(16 << 10) {
        if socket.write_all(piece).is_err() {
            return;
        }
        *sent.lock().unwrap() += piece.len();
        if mood == Mood::Slow {
            std::thread::sleep(Duration::from_millis(40));
        }
    }
    if matches!(mood, Mood::Silent { .. }) {
        std::thread::sleep(Duration::from_secs(300));
    }
}
