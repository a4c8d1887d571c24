//! Tests models behind Anthropic's protocol, on a small server.

use super::{request, text};
use crate::http_server::{Req, Server, answer, head};
use crate::machine::Machine;
use caro::model::remote::{Options, Remote};
use caro::model::{Completion, Finish, Flow, Model, ModelError, Request, Shape};
use serde_json::{Value, json};
use std::io::Write;
use std::net::TcpStream;
use std::sync::{Arc, Mutex};
use std::time::Duration;

fn ask(server: &Server, request: &Request) -> Result<(Completion, Vec<String>), ModelError> {
    let options = Options {
        api_key: Some("key".into()),
        connect: Duration::from_secs(3),
        silence: Duration::from_secs(3),
        ..Options::default()
    };
    let mut pieces = Vec::new();
    let done = Remote::anthropic(Some(&server.url), "tiny", options).generate(request, &mut |piece| {
        pieces.push(piece.to_string());
        Flow::Continue
    });
    done.map(|done| (done, pieces))
}

fn event(data: Value) -> String {
    format!("event: {}\ndata: {data}\n\n", data["type"].as_str().unwrap())
}

fn word(text: &str) -> String {
    event(json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}}))
}

/// The events of a whole answer with these words.
fn answer_of(words: &[&str], reason: &str) -> Vec<String> {
    let usage = json!({"input_tokens": 9, "cache_read_input_tokens": 4, "output_tokens": 1});
    let mut events = vec![
        event(json!({"type": "message_start", "message": {"type": "message", "content": [], "usage": usage}})),
        event(json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}})),
        event(json!({"type": "ping"})),
    ];
    events.extend(words.iter().map(|text| word(text)));
    events.extend([
        event(json!({"type": "content_block_stop", "index": 0})),
        event(json!({"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {"output_tokens": 5}})),
        event(json!({"type": "message_stop"})),
    ]);
    events
}

fn stream(socket: &mut TcpStream, events: &[String]) {
    head(socket, 200, &[("Content-Type", "text/event-stream; charset=utf-8")], None);
    for event in events {
        let _ = socket.write_all(event.as_bytes());
    }
}

fn send_error(socket: &mut TcpStream, status: u16, kind: &str, message: &str) {
    let body = json!({"type": "error", "error": {"type": kind, "message": message}});
    answer(socket, status, &[("Content-Type", "application/json")], body.to_string().as_bytes());
}

#[test]
fn text_streams_in_with_its_usage() {
    let server = Server::start(|_, socket| stream(socket, &answer_of(&["ls", " -l", "a", "\n", "more"], "end_turn")));
    let (done, pieces) = ask(&server, &request("list", text())).unwrap();
    assert_eq!((done.text.as_str(), done.finish), ("ls -la", Finish::Stop));
    assert_eq!(pieces, ["ls", " -l", "a"]);
    let seen = &server.seen()[0];
    assert_eq!((seen.method.as_str(), seen.path.as_str()), ("POST", "/v1/messages"));
    assert_eq!((seen.headers["x-api-key"].as_str(), seen.headers["anthropic-version"].as_str()), ("key", "2023-06-01"));
    assert!(!seen.headers.contains_key("authorization"));
    let body: Value = serde_json::from_str(&seen.body).unwrap();
    assert_eq!((&body["model"], &body["stream"], &body["max_tokens"]), (&json!("tiny"), &json!(true), &json!(16)));
    assert_eq!(body["system"], "You write shell commands.");
    assert_eq!(body["messages"], json!([{"role": "user", "content": "list"}]));

    let server = Server::start(|_, socket| stream(socket, &answer_of(&["ls"], "max_tokens")));
    let (done, _) = ask(&server, &request("list", text())).unwrap();
    assert_eq!(done.finish, Finish::Length);
    let usage = done.usage;
    assert_eq!((usage.prompt_tokens, usage.cached_tokens, usage.completion_tokens), (13, 4, 5));
}

#[test]
fn a_schema_is_sent_and_the_answer_checked_against_it() {
    let server = Server::start(|request, socket| {
        let body: Value = serde_json::from_str(&request.body).unwrap();
        assert_eq!(body["output_config"]["format"]["schema"]["required"], json!(["cmd"]));
        let first = body["messages"].as_array().unwrap().len() == 1;
        let words: &[&str] = if first { &["[]"] } else { &["{\"cmd\": ", "\"ls\"}"] };
        stream(socket, &answer_of(words, "end_turn"));
    });
    let schema = Shape::Json(json!({"type": "object", "required": ["cmd"]}));
    assert_eq!(ask(&server, &request("x", schema)).unwrap().0.text, r#"{"cmd": "ls"}"#);
    let second: Value = serde_json::from_str(&server.seen()[1].body).unwrap();
    assert_eq!(second["messages"][1], json!({"role": "assistant", "content": "[]"}));
}

#[test]
fn parameters_a_model_rejects_are_left_out() {
    let bodies = Arc::<Mutex<Vec<Value>>>::default();
    let received = bodies.clone();
    let server = Server::start(move |request, socket| {
        let body: Value = serde_json::from_str(&request.body).unwrap();
        received.lock().unwrap().push(body.clone());
        let last = body["messages"].as_array().unwrap().last().unwrap().clone();
        if body.get("temperature").is_some() {
            send_error(socket, 400, "invalid_request_error", "`temperature` is deprecated for this model.");
        } else if last["role"] == "assistant" {
            send_error(socket, 400, "invalid_request_error", "This model does not support assistant message prefill.");
        } else {
            stream(socket, &answer_of(&["ls -la"], "end_turn"));
        }
    });
    let mut wanted = request("x", text());
    wanted.prompt.prefill = "ls ".into();
    assert_eq!(ask(&server, &wanted).unwrap().0.text, "-la", "what it repeats is not a part of the answer");
    assert_eq!(bodies.lock().unwrap().len(), 3);
}

#[test]
fn each_error_has_its_own_message() {
    type Behaviour = fn(&Req, &mut TcpStream);
    let cases: [(Behaviour, &str, usize); 8] = [
        (|_, s| send_error(s, 401, "authentication_error", "invalid x-api-key"), "ANTHROPIC_API_KEY", 1),
        (|_, s| send_error(s, 404, "not_found_error", "model: tiny"), "knows no model `tiny`", 1),
        (|_, s| send_error(s, 429, "rate_limit_error", "slow down"), "too many requests: slow down", 1),
        (|_, s| send_error(s, 400, "invalid_request_error", "prompt is too long"), "prompt is too long", 1),
        // retried, then sent with fewer parameters
        (|_, s| send_error(s, 529, "overloaded_error", "Overloaded"), "HTTP status 529: Overloaded", 4),
        (|_, s| stream(s, &answer_of(&["ls"], "end_turn")[..4]), "cut off", 1),
        (|_, s| stream(s, &answer_of(&[], "refusal")), "refuses", 1),
        (
            |_, s| {
                let error = json!({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}});
                stream(s, &[word("ls"), event(error)]);
            },
            "Overloaded",
            1,
        ),
    ];
    for (behaviour, message, times) in cases {
        let server = Server::start(behaviour);
        let error = ask(&server, &request("x", text())).unwrap_err();
        assert!(error.to_string().contains(message), "{message}: {error}");
        assert!(error.to_string().contains(&server.url) && !error.hint().is_empty());
        assert_eq!(server.seen().len(), times, "{message}");
    }
}

#[test]
fn the_binary_sends_the_key_of_anthropic() {
    let server = Server::start(|_, socket| stream(socket, &answer_of(&["ls -l"], "end_turn")));
    let machine = Machine::new();
    let spec = format!("anthropic:{}#tiny", server.url);
    let mut caro = machine.caro(&["--json", "--shell", "bash", "--model", &spec, "list files"]);
    caro.env("ANTHROPIC_API_KEY", "sk-of-anthropic").env("CARO_API_KEY", "another");
    let ran = crate::machine::Ran::of(caro.output().unwrap());
    assert_eq!(ran.json()["cmd"], "ls -l", "{ran:#?}");
    assert_eq!(ran.json()["model"], "anthropic:tiny");
    let seen = server.seen();
    assert!(
        !seen.is_empty() && seen.iter().all(|request| request.headers["x-api-key"] == "sk-of-anthropic"),
        "{seen:#?}"
    );
    assert!(!ran.err.contains("sk-of-anthropic"));
    let wrong = machine.run(&["--model", "anthropic:", "list files"]);
    wrong.fails(2, &["anthropic:NAME"]);
}
