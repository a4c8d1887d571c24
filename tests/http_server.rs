//! A small HTTP/1.1 server in a thread. A handler writes the answer to each request, valid or not.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

/// A received request.
#[derive(Debug, Clone)]
pub struct Req {
    pub method: String,
    pub path: String,
    pub headers: BTreeMap<String, String>,
    pub body: String,
}

type Handler = dyn Fn(&Req, &mut TcpStream) + Send + Sync;

/// The server, which ends on drop.
pub struct Server {
    pub url: String,
    seen: Arc<Mutex<Vec<Req>>>,
    over: Arc<AtomicBool>,
}

impl Server {
    pub fn start(handler: impl Fn(&Req, &mut TcpStream) + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let (seen, over) = (Arc::<Mutex<Vec<Req>>>::default(), Arc::<AtomicBool>::default());
        let handler: Arc<Handler> = Arc::new(handler);
        let (log, stop) = (seen.clone(), over.clone());
        std::thread::spawn(move || {
            for socket in listener.incoming() {
                if stop.load(Ordering::Relaxed) {
                    break;
                }
                let (Ok(mut socket), handler, log) = (socket, handler.clone(), log.clone()) else { continue };
                std::thread::spawn(move || {
                    if let Some(request) = read(&socket) {
                        log.lock().unwrap().push(request.clone());
                        handler(&request, &mut socket);
                    }
                });
            }
        });
        Self { url, seen, over }
    }

    /// All requests so far.
    pub fn seen(&self) -> Vec<Req> {
        self.seen.lock().unwrap().clone()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        // a last connection wakes the thread, which then ends and frees the port
        let _ = TcpStream::connect(self.url.trim_start_matches("http://"));
    }
}

fn read(socket: &TcpStream) -> Option<Req> {
    let mut reader = BufReader::new(socket.try_clone().ok()?);
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let mut words = line.split_whitespace();
    let (method, path) = (words.next()?.to_string(), words.next()?.to_string());
    let mut headers = BTreeMap::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        headers.insert(name.to_ascii_lowercase(), value.trim().to_string());
    }
    let length = headers.get("content-length").and_then(|v| v.parse().ok()).unwrap_or(0);
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some(Req { method, path, headers, body: String::from_utf8_lossy(&body).into_owned() })
}

/// Sends a complete answer.
pub fn answer(socket: &mut TcpStream, status: u16, headers: &[(&str, &str)], body: &[u8]) {
    head(socket, status, headers, Some(body.len()));
    let _ = socket.write_all(body);
}

/// Sends the head of an answer; without a length the body ends with the connection.
pub fn head(socket: &mut TcpStream, status: u16, headers: &[(&str, &str)], length: Option<usize>) {
    let mut text = format!("HTTP/1.1 {status} X\r\nConnection: close\r\n");
    if let Some(length) = length {
        text += &format!("Content-Length: {length}\r\n");
    }
    for (name, value) in headers {
        text += &format!("{name}: {value}\r\n");
    }
    let _ = socket.write_all((text + "\r\n").as_bytes());
}
