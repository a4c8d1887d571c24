//! Tests MCP servers over HTTP: a small server that answers in the forms the standard allows, and wrongly.

use super::Bench;
use crate::http_server::{Req, Server, answer, head};
use crate::machine::AMPLE;
use caro::agent::Args;
use caro::agent::mcp::{Config, Origin, Reach};
use caro::agent::tool::{Hazard, ToolCx, ToolError};
use caro::model::Cancel;
use serde_json::{Value, json};
use std::io::Write;
use std::net::TcpStream;
use std::time::{Duration, Instant};

const JSON: (&str, &str) = ("Content-Type", "application/json");
const EVENTS: (&str, &str) = ("Content-Type", "text/event-stream; charset=utf-8");

fn config(url: &str, headers: &[(&str, &str)]) -> Config {
    Config {
        name: "web".into(),
        reach: Reach::Http {
            url: format!("{url}/mcp"),
            headers: headers.iter().map(|(n, v)| (n.to_string(), v.to_string())).collect(),
        },
        timeout: AMPLE,
        disabled: false,
        approved: Vec::new(),
        origin: Origin::User,
        written: Default::default(),
    }
}

/// Handles a request: answers the list of tools as an event stream, and a call as the tool's name says.
fn serve(request: &Req, socket: &mut TcpStream) {
    if request.method != "POST" {
        return answer(socket, if request.method == "GET" { 405 } else { 200 }, &[], b"");
    }
    let message: Value = serde_json::from_str(&request.body).unwrap();
    let id = &message["id"];
    let whole = |result: Value| json!({"jsonrpc": "2.0", "id": id, "result": result}).to_string();
    match message["method"].as_str().unwrap() {
        "initialize" => {
            let result = json!({
                "protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
                "serverInfo": {"name": "web", "version": "2"}
            });
            answer(socket, 200, &[JSON, ("Mcp-Session-Id", "session-7")], whole(result).as_bytes());
        }
        "tools/list" => {
            let tool = |name: &str| json!({"name": name, "description": name, "inputSchema": {"type": "object"}});
            let tools: Vec<Value> = ["events", "slow", "refuse", "html", "reset", "error"].map(tool).to_vec();
            head(socket, 200, &[EVENTS], None);
            let _ = socket.write_all(format!(": hello\n\ndata: {}\n\n", whole(json!({ "tools": tools }))).as_bytes());
        }
        "tools/call" => match message["params"]["name"].as_str().unwrap() {
            "events" => {
                head(socket, 200, &[EVENTS], None);
                let note = json!({
                    "jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": "working"}
                });
                let result = whole(json!({"content": [{"type": "text", "text": "from events"}]}));
                let _ = socket.write_all(format!("data: {note}\n\nid: 1\ndata: {result}\n\n").as_bytes());
            }
            "slow" => std::thread::sleep(Duration::from_secs(300)),
            "refuse" => answer(socket, 403, &[], b"not for you"),
            "html" => answer(socket, 200, &[("Content-Type", "text/html")], b"<html>sign in</html>"),
            "error" => {
                let error = json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32000, "message": "row is locked"}});
                answer(socket, 400, &[JSON], error.to_string().as_bytes());
            }
            _ => {}
        },
        // a notification
        _ => answer(socket, 202, &[], b""),
    }
}

#[test]
fn answers_may_be_json_or_an_event_stream() {
    let server = Server::start(serve);
    let bench = Bench::new(vec![config(&server.url, &[("Authorization", "Bearer key-123456")])]);
    assert!(bench.hub.warnings().is_empty(), "{:?}", bench.hub.warnings());
    assert_eq!(bench.hub.standing()[0].title, "web 2");
    assert_eq!(bench.call("events", json!({})).unwrap(), "Raw(11 bytes)");
    let cx = ToolCx { root: "/".into(), cancel: Cancel::new(), timeout: Duration::from_secs(1) };
    let effects = bench.tool("events").effects(&Args::new(), &cx);
    assert!(effects.net && effects.hazard == Hazard::Change, "a server over HTTP is on the network");
    let posts: Vec<Req> = server.seen().into_iter().filter(|r| r.method == "POST").collect();
    assert!(posts.iter().all(|r| r.headers["authorization"] == "Bearer key-123456"), "{posts:#?}");
    assert!(posts.iter().all(|r| r.headers["accept"] == "application/json, text/event-stream"), "{posts:#?}");
    assert!(posts[1..].iter().all(|r| r.headers["mcp-session-id"] == "session-7"), "{posts:#?}");
    assert!(posts.iter().skip(1).all(|r| r.headers["mcp-protocol-version"] == "2025-06-18"), "{posts:#?}");
    drop(bench);
    assert!(server.seen().iter().any(|r| r.method == "DELETE"), "the session is deleted");
}

#[test]
fn a_call_returns_whatever_the_server_does() {
    let server = Server::start(serve);
    let bench = Bench::new(vec![config(&server.url, &[])]);
    let failed = |name: &str| match bench.call_within(name, json!({}), AMPLE) {
        Err(ToolError::Failed(why)) => why,
        other => panic!("{name}: {other:?}"),
    };
    assert_eq!(failed("error"), "row is locked");
    for name in ["refuse", "html", "reset"] {
        let why = failed(name);
        assert!(why.contains("do without it"), "{name}: {why}");
    }
    let begun = Instant::now();
    let slow = bench.call_within("slow", json!({}), Duration::from_millis(300));
    assert!(matches!(slow, Err(ToolError::TimedOut(_))) && begun.elapsed() < AMPLE, "{slow:?}");
    // no failure has ended the connection
    assert_eq!(bench.call("events", json!({})).unwrap(), "Raw(11 bytes)");
    let begun = Instant::now();
    drop(bench);
    assert!(begun.elapsed() < AMPLE, "{:?}", begun.elapsed());
}

#[test]
fn an_address_without_an_mcp_server_is_an_error_with_the_reason() {
    let error = |config: Config| Bench::new(vec![config]).hub.standing()[0].error.clone().unwrap().to_string();
    let closed = error(config("http://127.0.0.1:9", &[]));
    assert!(closed.contains("could not be started") && closed.to_lowercase().contains("connect"), "{closed}");
    let refuses = Server::start(|_, socket| answer(socket, 401, &[("WWW-Authenticate", "Bearer realm=x")], b""));
    assert!(
        error(config(&refuses.url, &[])).contains("authorization required"),
        "{}",
        error(config(&refuses.url, &[]))
    );
    let missing = Server::start(|_, socket| answer(socket, 404, &[], b"<h1>not found</h1>"));
    assert!(error(config(&missing.url, &[])).contains("HTTP status 404"), "{}", error(config(&missing.url, &[])));
    let silent = Server::start(|_, _| std::thread::sleep(Duration::from_secs(300)));
    let mut patient = config(&silent.url, &[]);
    patient.timeout = Duration::from_millis(500);
    assert!(error(patient).contains("did not answer within"));
}
