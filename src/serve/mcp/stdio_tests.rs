//! Tests of the transport with a toolbox that waits on request.

use super::*;
use crate::mcp::tools::{Name, Offer};
use crate::mcp::work::ToolError;
use caro_model::Cancel;
use futures::future::BoxFuture;
use serde_json::{Map, json};

/// Answers at once; for a command `wait`, only when it is stopped.
struct Echo;

impl Toolbox for Echo {
    fn work(
        &self,
        _: Name,
        arguments: Map<String, Value>,
        cancel: Cancel,
        stages: Stages,
    ) -> BoxFuture<'_, Result<Value, ToolError>> {
        Box::pin(async move {
            stages("begun");
            if arguments["command"] != "wait" {
                return Ok(Value::Object(arguments));
            }
            while !cancel.is_cancelled() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            Err(ToolError::stopped())
        })
    }
}

fn call(id: u64, command: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {
        "name": "check_command", "arguments": {"command": command}, "_meta": {"progressToken": id},
    }})
}

fn hello() -> Value {
    json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": "2025-06-18"}})
}

/// Serves the input to its end, and returns the messages sent.
async fn conversation(input: &str) -> Vec<Value> {
    let (send, receive) = lines();
    let text = input.to_owned();
    std::thread::spawn(move || read(&mut text.as_bytes(), &send));
    let (out, mut sent) = Out::new();
    let served = serve(Session::new(Offer { agent: false }), Arc::new(Echo), receive, out, Arc::default());
    let collect = async {
        let mut all = Vec::new();
        while let Some(message) = sent.recv().await {
            all.push(serde_json::from_str(&message.text).unwrap());
        }
        all
    };
    let (end, all) =
        tokio::time::timeout(Duration::from_secs(30), async { tokio::join!(served, collect) }).await.unwrap();
    assert_eq!(end, End::Input);
    all
}

fn text(messages: &[Value]) -> String {
    messages.iter().map(|message| format!("{message}\n")).collect()
}

#[tokio::test]
async fn requests_before_the_end_of_input_are_answered() {
    let sent = conversation(&text(&[hello(), call(1, "a"), call(2, "b")])).await;
    let of = |id: u64| sent.iter().find(|m| m["id"] == id && m.get("result").is_some()).unwrap();
    assert_eq!(of(0)["result"]["protocolVersion"], "2025-06-18");
    assert_eq!(of(2)["result"]["structuredContent"]["command"], "b");
    for id in [1, 2] {
        let notified = sent.iter().position(|m| m["params"]["progressToken"] == id).unwrap();
        let ended = sent.iter().position(|m| m["id"] == id).unwrap();
        assert!(notified < ended, "{sent:#?}");
    }
}

#[tokio::test]
async fn a_slow_call_does_not_block_others_and_ends_when_cancelled() {
    let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}});
    let sent = conversation(&text(&[hello(), call(1, "wait"), call(2, "b"), cancel])).await;
    let ids: Vec<&Value> = sent.iter().filter_map(|message| message.get("id")).collect();
    assert_eq!(ids, [0, 2], "{sent:#?}");
}

#[tokio::test]
async fn an_overlong_line_is_skipped_and_the_next_one_is_read() {
    let long = "x".repeat(MAX_LINE + 1);
    let sent = conversation(&format!("{long}\n\n  \n\r\n{}\r\n{{\n{}", hello(), call(1, "last"))).await;
    let codes: Vec<&Value> = sent.iter().map(|message| &message["error"]["code"]).collect();
    assert_eq!(codes[0], -32700, "{sent:#?}");
    assert_eq!(sent[1]["id"], 0);
    assert_eq!(sent[2]["error"]["code"], -32700);
    assert_eq!(sent.last().unwrap()["id"], 1, "a last line needs no end");
}

#[tokio::test]
async fn ten_thousand_requests_at_once_are_each_answered_or_refused() {
    let mut all = vec![hello()];
    all.extend((1..=10_000).map(|id| call(id, "a")));
    let sent = conversation(&text(&all)).await;
    let mut ids: Vec<u64> = sent.iter().filter_map(|message| message["id"].as_u64()).collect();
    ids.sort_unstable();
    assert_eq!(ids, (0..=10_000).collect::<Vec<_>>());
}

#[tokio::test]
async fn the_server_ends_when_stopped_or_when_its_output_is_closed() {
    for is_stopped in [true, false] {
        let (send, receive) = lines();
        let (out, sent) = Out::new();
        for message in [hello(), call(1, "wait")] {
            send.send(Line::Whole(message.to_string().into_bytes())).await.unwrap();
        }
        let stop = Arc::new(Notify::new());
        let server =
            tokio::spawn(serve(Session::new(Offer { agent: false }), Arc::new(Echo), receive, out, stop.clone()));
        let mut sent = Some(sent);
        if is_stopped {
            stop.notify_one();
        } else {
            drop(sent.take());
        }
        let end = tokio::time::timeout(Duration::from_secs(20), server).await.unwrap().unwrap();
        assert_eq!(end, if is_stopped { End::Stopped } else { End::OutputClosed });
        drop((send, sent));
    }
}

#[test]
fn lines_are_split_at_newlines() {
    let mut input = &b"a\nb\r\n\nlast"[..];
    let mut all = Vec::new();
    while let Some(Line::Whole(line)) = next(&mut input).unwrap() {
        all.push(String::from_utf8(line).unwrap());
    }
    assert_eq!(all, ["a", "b\r", "", "last"]);
}
