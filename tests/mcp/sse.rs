//! Tests MCP servers of the older transport (SSE): a GET opens a stream of events, whose first event names the address
//! for messages. The small server here answers correctly or not.

use super::Bench;
use crate::http_server::{Req, Server, answer, head};
use crate::machine::AMPLE;
use caro::agent::Args;
use caro::agent::mcp::{Config, Origin, Reach};
use caro::agent::tool::{ToolCx, ToolError};
use caro::model::Cancel;
use serde_json::{Value, json};
use std::io::Write;
use std::net::TcpStream;
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

fn config(url: &str) -> Config {
    Config {
        name: "old".into(),
        reach: Reach::Sse {
            url: format!("{url}/sse"),
            headers: vec![("Authorization".into(), "Bearer key-123456".into())],
        },
        timeout: AMPLE,
        disabled: false,
        approved: Vec::new(),
        origin: Origin::User,
        written: Default::default(),
    }
}

/// The sender of the open stream: each text is written to it unchanged, and `None` ends it.
type Streams = Arc<Mutex<Option<Sender<Option<String>>>>>;

/// Starts a server whose stream begins with this text.
fn serve(beginning: &'static str) -> Server {
    let streams = Streams::default();
    Server::start(move |request, socket| match request.method.as_str() {
        "GET" => {
            let (sender, receiver) = mpsc::channel();
            *streams.lock().unwrap() = Some(sender);
            stream(socket, beginning, &receiver);
        }
        _ => {
            let sender = streams.lock().unwrap().clone().unwrap();
            message(request, socket, &sender);
        }
    })
}

fn stream(socket: &mut TcpStream, beginning: &str, receiver: &Receiver<Option<String>>) {
    head(socket, 200, &[("Content-Type", "text/event-stream; charset=utf-8")], None);
    let mut next = Some(beginning.to_owned());
    while let Some(text) = next {
        if socket.write_all(text.as_bytes()).is_err() {
            return;
        }
        next = receiver.recv().ok().flatten();
    }
}

/// Handles a message; the answer goes over the stream.
fn message(request: &Req, socket: &mut TcpStream, sender: &Sender<Option<String>>) {
    let message: Value = serde_json::from_str(&request.body).unwrap();
    let id = &message["id"];
    let event = |document: Value| format!("event: message\r\ndata: {document}\r\n\r\n");
    let result = |result: Value| event(json!({"jsonrpc": "2.0", "id": id, "result": result}));
    let tool = |name: &str| json!({"name": name, "description": name, "inputSchema": {"type": "object"}});
    let reply = match message["method"].as_str().unwrap() {
        "initialize" => result(json!({
            "protocolVersion": "2024-11-05", "capabilities": {"tools": {"listChanged": true}},
            "serverInfo": {"name": "old", "version": "1"}
        })),
        "tools/list" => {
            let tools: Vec<Value> = ["say", "refuse", "end", "silent", "odd"].map(tool).to_vec();
            result(json!({ "tools": tools }))
        }
        "tools/call" => match message["params"]["name"].as_str().unwrap() {
            "refuse" => return answer(socket, 403, &[], b"not for you"),
            "end" => {
                sender.send(None).unwrap();
                return answer(socket, 202, &[], b"Accepted");
            }
            "silent" => return answer(socket, 202, &[], b"Accepted"),
            name => {
                let odd = if name == "odd" { "data: no message\n\nevent: other\ndata: {}\n\n: ping\n\n" } else { "" };
                format!("{odd}{}", result(json!({"content": [{"type": "text", "text": "over the stream"}]})))
            }
        },
        // a notification, or a request unknown in this revision
        _ if id.is_null() => return answer(socket, 202, &[], b"Accepted"),
        _ => event(json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32601, "message": "Method not found"}})),
    };
    answer(socket, 202, &[], b"Accepted");
    sender.send(Some(reply)).unwrap();
}

const VALID_START: &str = ": hello\r\n\r\nevent: endpoint\r\ndata: /messages/?session=7\r\n\r\n";

#[test]
fn b29_a_stream_is_opened_and_messages_go_to_the_address_it_names() {
    let server = serve(VALID_START);
    let bench = Bench::new(vec![config(&server.url)]);
    assert!(bench.hub.warnings().is_empty(), "{:?}", bench.hub.warnings());
    assert_eq!(bench.hub.standing()[0].title, "old 1");
    for name in ["say", "odd"] {
        assert_eq!(bench.call(name, json!({})).unwrap(), "Raw(15 bytes)", "{name}");
    }
    let cx = ToolCx { root: "/".into(), cancel: Cancel::new(), timeout: Duration::from_secs(1) };
    assert!(bench.tool("say").effects(&Args::new(), &cx).net, "a server over HTTP is on the network");
    let seen = server.seen();
    assert_eq!((seen[0].method.as_str(), seen[0].path.as_str()), ("GET", "/sse"));
    assert_eq!(seen[0].headers["accept"], "text/event-stream");
    assert!(seen[1..].iter().all(|r| r.method == "POST" && r.path == "/messages/?session=7"), "{seen:#?}");
    assert!(seen.iter().all(|r| r.headers["authorization"] == "Bearer key-123456"), "{seen:#?}");
}

#[test]
fn b29_a_call_returns_whatever_the_stream_does() {
    let server = serve(VALID_START);
    let bench = Bench::new(vec![config(&server.url)]);
    let failed = |name: &str| match bench.call_within(name, json!({}), AMPLE) {
        Err(ToolError::Failed(why)) => why,
        other => panic!("{name}: {other:?}"),
    };
    let refused = failed("refuse");
    assert!(refused.contains("403") && refused.contains("not for you"), "{refused}");
    let slow = bench.call_within("silent", json!({}), Duration::from_millis(300));
    assert!(matches!(slow, Err(ToolError::TimedOut(_))), "{slow:?}");
    assert_eq!(bench.call("say", json!({})).unwrap(), "Raw(15 bytes)", "neither has ended the connection");
    let begun = Instant::now();
    let ended = failed("end");
    assert!(ended.contains("has ended") && begun.elapsed() < AMPLE, "{ended} after {:?}", begun.elapsed());
    let begun = Instant::now();
    drop(bench);
    assert!(begun.elapsed() < AMPLE, "{:?}", begun.elapsed());
}

#[test]
fn b29_an_invalid_stream_is_an_error_with_the_reason() {
    let error = |config: Config| Bench::new(vec![config]).hub.standing()[0].error.clone().unwrap().to_string();
    // the key would be sent to the other host
    let away = serve("event: endpoint\ndata: http://127.0.0.2:9/messages\n\n");
    let why = error(config(&away.url));
    assert!(why.contains("another host"), "{why}");
    assert!(away.seen().iter().all(|r| r.method == "GET"));
    let why = error(config(&Server::start(|_, socket| answer(socket, 404, &[], b"<h1>nothing</h1>")).url));
    assert!(why.contains("HTTP status 404"), "{why}");
    let ends = Server::start(|_, socket| {
        let (sender, receiver) = mpsc::channel();
        drop(sender);
        stream(socket, "data: {}\n\n", &receiver);
    });
    let why = error(config(&ends.url));
    assert!(why.contains("names no address"), "{why}");
    let page = Server::start(|_, socket| answer(socket, 200, &[("Content-Type", "text/html")], b"<html>"));
    let why = error(config(&page.url));
    assert!(why.contains("could not be started"), "{why}");
    let silent = serve(": hello\n\n");
    let mut patient = config(&silent.url);
    patient.timeout = Duration::from_millis(500);
    let why = error(patient);
    assert!(why.contains("did not answer within"), "{why}");
}

#[test]
fn b29_such_a_server_can_be_configured_and_its_tools_are_listed() {
    let machine = crate::machine::Machine::new();
    let server = serve(VALID_START);
    let entry = json!({"type": "sse", "url": format!("{}/sse", server.url)});
    machine.write("mcp.json", json!({"mcpServers": {"old": entry}}).to_string());
    let check = machine.run(&["mcp", "check"]);
    assert!(check.code == Some(0) && check.out.contains("\n  say\n"), "{check:#?}");
    let tools = machine.run(&["tools"]);
    assert!(tools.code == Some(0) && tools.out.contains("refuse"), "{tools:#?}");
}
