//! The transport with a toolbox that waits on request.

use super::*;
use crate::mcp::tools::{Name, Offer};
use crate::mcp::work::Trouble;
use caro_model::Cancel;
use futures::future::BoxFuture;
use serde_json::{Map, json};

/// Answers at once, or when it is stopped: a command `wait`.
struct Echo;

impl Toolbox for Echo {
    fn work(
        &self,
        _: Name,
        arguments: Map<String, Value>,
        cancel: Cancel,
        stages: Stages,
    ) -> BoxFuture<'_, Result<Value, Trouble>> {
        Box::pin(async move {
            stages("begun");
            if arguments["command"] != "wait" {
                return Ok(Value::Object(arguments));
            }
            while !cancel.is_cancelled() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            Err(Trouble::stopped())
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

/// The answers to these lines, up to the end of the input.
async fn conversation(input: &str) -> Vec<Value> {
    let (send, receive) = lines();
    let text = input.to_owned();
    std::thread::spawn(move || read(&mut text.as_bytes(), &send));
    let (out, mut said) = Out::new();
    let served = serve(Session::new(Offer { agent: false }), Arc::new(Echo), receive, out, Arc::default());
    let hears = async {
        let mut all = Vec::new();
        while let Some(message) = said.recv().await {
            all.push(serde_json::from_str(&message.text).unwrap());
        }
        all
    };
    let (end, all) =
        tokio::time::timeout(Duration::from_secs(30), async { tokio::join!(served, hears) }).await.unwrap();
    assert_eq!(end, End::Input);
    all
}

fn text(messages: &[Value]) -> String {
    messages.iter().map(|message| format!("{message}\n")).collect()
}

#[tokio::test]
async fn what_was_asked_before_the_end_is_answered() {
    let said = conversation(&text(&[hello(), call(1, "a"), call(2, "b")])).await;
    let of = |id: u64| said.iter().find(|m| m["id"] == id && m.get("result").is_some()).unwrap();
    assert_eq!(of(0)["result"]["protocolVersion"], "2025-06-18");
    assert_eq!(of(2)["result"]["structuredContent"]["command"], "b");
    for id in [1, 2] {
        let told = said.iter().position(|m| m["params"]["progressToken"] == id).unwrap();
        let ended = said.iter().position(|m| m["id"] == id).unwrap();
        assert!(told < ended, "{said:#?}");
    }
}

#[tokio::test]
async fn a_slow_call_keeps_nobody_waiting_and_ends_when_it_is_cancelled() {
    let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}});
    let said = conversation(&text(&[hello(), call(1, "wait"), call(2, "b"), cancel])).await;
    let ids: Vec<&Value> = said.iter().filter_map(|message| message.get("id")).collect();
    assert_eq!(ids, [0, 2], "{said:#?}");
}

#[tokio::test]
async fn a_line_that_is_too_long_is_passed_over_and_the_next_one_is_read() {
    let long = "x".repeat(LONGEST + 1);
    let said = conversation(&format!("{long}\n\n  \n\r\n{}\r\n{{\n{}", hello(), call(1, "last"))).await;
    let codes: Vec<&Value> = said.iter().map(|message| &message["error"]["code"]).collect();
    assert_eq!(codes[0], -32700, "{said:#?}");
    assert_eq!(said[1]["id"], 0);
    assert_eq!(said[2]["error"]["code"], -32700);
    assert_eq!(said.last().unwrap()["id"], 1, "a last line needs no end");
}

#[tokio::test]
async fn ten_thousand_requests_at_once_are_each_answered_or_refused() {
    let mut all = vec![hello()];
    all.extend((1..=10_000).map(|id| call(id, "a")));
    let said = conversation(&text(&all)).await;
    let mut ids: Vec<u64> = said.iter().filter_map(|message| message["id"].as_u64()).collect();
    ids.sort_unstable();
    assert_eq!(ids, (0..=10_000).collect::<Vec<_>>());
}

#[tokio::test]
async fn it_ends_when_it_is_told_to_or_nobody_reads() {
    for is_told in [true, false] {
        let (send, receive) = lines();
        let (out, said) = Out::new();
        for message in [hello(), call(1, "wait")] {
            send.send(Line::Whole(message.to_string().into_bytes())).await.unwrap();
        }
        let stop = Arc::new(Notify::new());
        let server =
            tokio::spawn(serve(Session::new(Offer { agent: false }), Arc::new(Echo), receive, out, stop.clone()));
        let mut said = Some(said);
        if is_told {
            stop.notify_one();
        } else {
            drop(said.take());
        }
        let end = tokio::time::timeout(Duration::from_secs(20), server).await.unwrap().unwrap();
        assert_eq!(end, if is_told { End::Told } else { End::Unread });
        drop((send, said));
    }
}

#[test]
fn lines_are_cut_where_they_end() {
    let mut input = &b"a\nb\r\n\nlast"[..];
    let mut all = Vec::new();
    while let Some(Line::Whole(line)) = next(&mut input).unwrap() {
        all.push(String::from_utf8(line).unwrap());
    }
    assert_eq!(all, ["a", "b\r", "", "last"]);
}
