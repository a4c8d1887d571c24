//! Tests `/mcp`, the Model Context Protocol over HTTP, with raw requests and with caro's own client.

use super::{Response, Server, read_until};
use crate::agent::{answer, by_step, step};
use crate::machine::AMPLE;
use caro::agent::mcp::{Config, Hub, Origin, Place, Reach};
use caro::agent::tool::ToolCx;
use caro::model::Cancel;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

const JSON: (&str, &str) = ("Accept", "application/json, text/event-stream");

fn rules() -> Value {
    json!([
        {"match": "slowly", "reply": "echo a b c d e f g h i j k l m n o p q r s t", "delay_ms": 2000},
        {"match": "list files", "reply": "ls -l"},
        {"reply": "pwd"}
    ])
}

fn request(id: u64, method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

fn call(id: u64, tool: &str, arguments: Value) -> Value {
    request(id, "tools/call", json!({"name": tool, "arguments": arguments}))
}

fn hello(version: &str) -> Value {
    request(0, "initialize", json!({"protocolVersion": version, "capabilities": {}}))
}

/// Posts a message with these headers and the token.
fn post(server: &Server, headers: &[(&str, &str)], message: &Value) -> Response {
    let bearer = server.bearer();
    let all = [&[("Authorization", bearer.as_str()), JSON], headers].concat();
    server.send("POST", "/mcp", &all, &message.to_string())
}

/// Opens a session, and returns its id.
fn open_session(server: &Server, version: &str) -> String {
    let response = post(server, &[], &hello(version));
    assert_eq!(response.status, 200, "{response:#?}");
    assert_eq!(response.json()["result"]["protocolVersion"], version);
    let line = response.head.lines().find_map(|line| line.strip_prefix("mcp-session-id: ").map(str::to_owned));
    line.unwrap_or_else(|| panic!("{response:#?}"))
}

#[test]
fn a_session_is_opened_used_and_ended() {
    let server = Server::start(rules(), &["--port", "0"]);
    let session = open_session(&server, "2025-06-18");
    let headers = [("Mcp-Session-Id", session.as_str()), ("MCP-Protocol-Version", "2025-06-18")];
    let note = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    let taken = post(&server, &headers, &note);
    assert_eq!((taken.status, taken.body.as_str()), (202, ""));
    let listed = post(&server, &headers, &request(1, "tools/list", json!({}))).json();
    assert_eq!(listed["result"]["tools"].as_array().unwrap().len(), 4, "{listed}");
    let made = post(&server, &headers, &call(2, "generate_command", json!({"request": "list files", "shell": "bash"})));
    assert!(made.head.contains("content-type: application/json"), "{made:#?}");
    assert_eq!(made.json()["result"]["structuredContent"]["cmd"], "ls -l");
    let same = server.post("/v1/check", json!({"command": "rm -rf /", "shell": "bash"})).json();
    let checked =
        post(&server, &headers, &call(3, "check_command", json!({"command": "rm -rf /", "shell": "bash"}))).json();
    assert_eq!(checked["result"]["structuredContent"], same);
    let failed = post(&server, &headers, &call(4, "check_command", json!({"command": ""}))).json();
    assert_eq!(failed["result"]["isError"], true, "{failed}");
    for (message, code) in
        [(json!([]), -32600), (call(5, "run_agent", json!({})), -32602), (request(6, "x", json!({})), -32601)]
    {
        assert_eq!(post(&server, &headers, &message).json()["error"]["code"], code, "{message}");
    }
    // a request without the session's id, or with another one, is refused
    assert_eq!(post(&server, &[], &request(7, "tools/list", json!({}))).status, 400);
    let wrong = post(&server, &[("Mcp-Session-Id", "mcp_1")], &request(7, "tools/list", json!({})));
    assert_eq!((wrong.status, wrong.json()["error"].as_str()), (404, Some("not_found")));
    let other = post(&server, &[headers[0], ("MCP-Protocol-Version", "1999-01-01")], &request(8, "ping", json!({})));
    assert_eq!((other.status, &other.json()["error"]["code"]), (400, &json!(-32022)), "{other:#?}");
    let garbage = server.send("POST", "/mcp", &[("Authorization", &server.bearer()), headers[0]], "{");
    assert_eq!((garbage.status, &garbage.json()["error"]["code"]), (400, &json!(-32700)));
    let bearer = server.bearer();
    let with = [("Authorization", bearer.as_str()), headers[0]];
    assert_eq!(server.send("GET", "/mcp", &with, "").status, 405);
    assert_eq!(server.send("DELETE", "/mcp", &with, "").status, 204);
    assert_eq!(server.send("DELETE", "/mcp", &with, "").status, 404);
    assert_eq!(post(&server, &headers, &request(9, "ping", json!({}))).status, 404);
}

#[test]
fn without_the_token_or_from_a_foreign_page_there_is_no_session() {
    let server = Server::start(rules(), &["--port", "0"]);
    let bearer = server.bearer();
    let body = hello("2025-06-18").to_string();
    for (headers, status) in [
        (vec![], 401),
        (vec![("Authorization", "Bearer x")], 401),
        (vec![("Authorization", bearer.as_str()), ("Origin", "https://example.org")], 403),
        (vec![("Authorization", bearer.as_str()), ("Host", "example.org")], 403),
    ] {
        let refused = server.send("POST", "/mcp", &headers, &body);
        assert_eq!(refused.status, status, "{refused:#?}");
        assert!(!refused.head.contains("mcp-session-id"), "{refused:#?}");
    }
}

#[test]
fn the_progress_of_a_call_is_streamed() {
    let server = Server::start(rules(), &["--port", "0"]);
    let session = open_session(&server, "2025-11-25");
    let mut message = call(1, "generate_command", json!({"request": "list files", "shell": "bash"}));
    message["params"]["_meta"] = json!({"progressToken": "p"});
    let streamed = post(&server, &[("Mcp-Session-Id", &session)], &message);
    assert!(streamed.head.contains("content-type: text/event-stream"), "{streamed:#?}");
    let messages: Vec<Value> = streamed
        .events()
        .into_iter()
        .map(|(name, _, data)| {
            assert_eq!(name, "message");
            data
        })
        .collect();
    let (last, before) = messages.split_last().unwrap();
    assert_eq!((&last["id"], &last["result"]["structuredContent"]["cmd"]), (&json!(1), &json!("ls -l")));
    let numbers: Vec<u64> = before.iter().map(|note| note["params"]["progress"].as_u64().unwrap()).collect();
    assert!(!numbers.is_empty() && numbers.is_sorted(), "{before:#?}");
    assert!(before.iter().all(|note| note["params"]["progressToken"] == "p"));
    // a client that does not accept a stream gets plain JSON
    let bearer = server.bearer();
    let headers = [("Authorization", bearer.as_str()), ("Mcp-Session-Id", &session), ("Accept", "application/json")];
    let whole = server.send("POST", "/mcp", &headers, &message.to_string());
    assert_eq!(whole.json()["result"]["structuredContent"]["cmd"], "ls -l", "{whole:#?}");
}

#[test]
fn a_call_stops_when_cancelled_or_its_session_ends_or_its_client_disconnects() {
    let server = Server::start(rules(), &["--port", "0"]);
    let slow = call(1, "generate_command", json!({"request": "say the letters slowly"}));
    let begin = |session: &str| {
        let bearer = server.bearer();
        let headers = [("Authorization", bearer.as_str()), JSON, ("Mcp-Session-Id", session)];
        let stream = server.open("POST", "/mcp", &headers, &slow.to_string());
        server.until_active(1);
        stream
    };
    let begun = Instant::now();
    let session = open_session(&server, "2025-06-18");
    let mut stream = begin(&session);
    let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}});
    // the call may not have been accepted yet
    while server.get("/metrics").json()["server"]["active"] != 1 {
        assert_eq!(post(&server, &[("Mcp-Session-Id", &session)], &cancel).status, 202);
        std::thread::sleep(Duration::from_millis(20));
        assert!(begun.elapsed() < AMPLE);
    }
    assert_eq!(Response::read(&mut stream).json()["error"]["code"], -32800);
    let mut stream = begin(&session);
    let bearer = server.bearer();
    server.until_answering(1);
    let with = [("Authorization", bearer.as_str()), ("Mcp-Session-Id", session.as_str())];
    assert_eq!(server.send("DELETE", "/mcp", &with, "").status, 204);
    assert_eq!(Response::read(&mut stream).json()["result"]["isError"], true);
    let session = open_session(&server, "2025-06-18");
    drop(begin(&session));
    server.until_active(0);
    assert!(begun.elapsed() < Duration::from_secs(30), "three slow answers would take minutes: {:?}", begun.elapsed());
    // the session still works
    let made =
        post(&server, &[("Mcp-Session-Id", &session)], &call(1, "generate_command", json!({"request": "list files"})));
    assert_eq!(made.json()["result"]["isError"], false, "{made:#?}");
}

#[test]
fn a_batch_has_one_response_and_a_request_without_a_session_needs_all_headers() {
    let server = Server::start(rules(), &["--port", "0"]);
    let session = open_session(&server, "2025-03-26");
    let batch = json!([
        request(1, "ping", json!({})),
        call(2, "check_command", json!({"command": "ls"})),
        call(3, "generate_command", json!({"request": "list files"}))
    ]);
    let answers = post(&server, &[("Mcp-Session-Id", &session)], &batch).json();
    let mut ids: Vec<i64> = answers.as_array().unwrap().iter().map(|one| one["id"].as_i64().unwrap()).collect();
    ids.sort_unstable();
    assert_eq!(ids, [1, 2, 3], "{answers}");
    let mut message = call(4, "check_command", json!({"command": "ls"}));
    message["params"]["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let headers = [("MCP-Protocol-Version", "2026-07-28"), ("Mcp-Method", "tools/call"), ("Mcp-Name", "check_command")];
    let checked = post(&server, &headers, &message);
    assert_eq!((checked.status, &checked.json()["result"]["resultType"]), (200, &json!("complete")), "{checked:#?}");
    let differs = post(&server, &headers[..2], &message);
    assert_eq!((differs.status, &differs.json()["error"]["code"]), (400, &json!(-32020)), "{differs:#?}");
    message["method"] = "x".into();
    let unknown = post(&server, &[headers[0], ("Mcp-Method", "x")], &message);
    assert_eq!((unknown.status, &unknown.json()["error"]["code"]), (404, &json!(-32601)), "{unknown:#?}");
}

#[test]
fn a_batch_is_answered_where_it_came_from_although_one_of_its_calls_is_cancelled() {
    let server = Server::start(rules(), &["--port", "0"]);
    let session = open_session(&server, "2025-03-26");
    let slow = |id: u64| call(id, "generate_command", json!({"request": "say the letters slowly"}));
    let bearer = server.bearer();
    let headers = [("Authorization", bearer.as_str()), JSON, ("Mcp-Session-Id", session.as_str())];
    let cancel = |id: u64| {
        let note = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}});
        let taken = post(&server, &[("Mcp-Session-Id", &session)], &note);
        assert_eq!((taken.status, taken.body.as_str()), (202, ""), "{taken:#?}");
    };
    let batch = json!([call(1, "check_command", json!({"command": "ls"})), slow(2)]);
    let mut stream = server.open("POST", "/mcp", &headers, &batch.to_string());
    server.until_active(1);
    // the check has ended, the other call goes on
    std::thread::sleep(Duration::from_millis(500));
    server.until_answering(1);
    cancel(2);
    let answered = Response::read(&mut stream).json();
    let answers = answered.as_array().unwrap_or_else(|| panic!("{answered}"));
    assert_eq!((answers.len(), &answers[0]["id"], &answers[0]["result"]["isError"]), (1, &json!(1), &json!(false)));
    // without any answer left, it says so of each call
    let mut stream = server.open("POST", "/mcp", &headers, &json!([slow(3), slow(4)]).to_string());
    server.until_answering(2);
    cancel(3);
    cancel(4);
    let answered = Response::read(&mut stream).json();
    let codes: Vec<&Value> = answered.as_array().unwrap().iter().map(|one| &one["error"]["code"]).collect();
    assert_eq!(codes, [-32800, -32800], "{answered}");
}

#[test]
fn runs_are_offered_on_request_and_calls_that_need_approval_are_denied() {
    let write = step("write", &[("write", json!({"path": "report.md", "content": "2 errors"}))]);
    let server = Server::start(by_step(&[write, answer("it could not be written")]), &["--port", "0", "--allow-agent"]);
    let session = open_session(&server, "2025-06-18");
    let mut message = call(1, "run_agent", json!({"task": "write `2 errors` to report.md", "session_id": "s"}));
    message["params"]["_meta"] = json!({"progressToken": 1});
    let bearer = server.bearer();
    let headers = [("Authorization", bearer.as_str()), JSON, ("Mcp-Session-Id", session.as_str())];
    let mut stream = server.open("POST", "/mcp", &headers, &message.to_string());
    let text = read_until(&mut stream, "\"structuredContent\"");
    assert!(text.contains("a call is denied") && text.contains("incomplete"), "{text}");
    assert!(!server.machine.path("work/report.md").exists());
    assert_eq!(server.get("/sessions").json()["sessions"][0]["session_id"], "s");
}

#[test]
fn caros_own_client_can_use_it() {
    let server = Server::start(rules(), &["--port", "0"]);
    let config = Config {
        name: "caro".into(),
        reach: Reach::Http {
            url: format!("http://{}/mcp", server.address),
            headers: vec![("Authorization".into(), server.bearer())],
        },
        timeout: AMPLE,
        disabled: false,
        approved: Vec::new(),
        origin: Origin::User,
        written: Default::default(),
    };
    let place = Place { root: "/".into(), search: None, authorities: None };
    let hub = Hub::open(vec![config], &place, AMPLE, &Cancel::new()).unwrap();
    assert!(hub.warnings().is_empty(), "{:?}", hub.warnings());
    let tools = hub.tools(&|_| false);
    assert_eq!(tools.len(), 4);
    let tool = tools.iter().find(|tool| tool.spec().name == "generate_command").unwrap();
    let cancel = Cancel::new().with_deadline(Instant::now() + AMPLE);
    let cx = ToolCx { root: "/".into(), cancel, timeout: AMPLE };
    let Value::Object(args) = json!({"request": "list files"}) else { unreachable!() };
    assert!(tool.call(&args, &cx).is_ok());
}
