//! Tests of the session without a transport.

use super::*;

fn plain() -> Session {
    Session::new(Offer { agent: false })
}

fn opened(version: &str) -> Session {
    let mut session = plain();
    let answer = answer_to(
        &mut session,
        json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": version}}),
    );
    assert_eq!(answer["result"]["protocolVersion"], version, "{answer}");
    session
}

fn take(session: &mut Session, message: Value) -> Vec<Step> {
    session.take(message.to_string().as_bytes())
}

/// Returns the only answer to a message.
#[track_caller]
fn answer_to(session: &mut Session, message: Value) -> Value {
    let mut steps = take(session, message);
    match (steps.pop(), steps.pop()) {
        (Some(Step::Send(answer)), None) => answer,
        other => panic!("{other:?}"),
    }
}

fn code(answer: &Value) -> i64 {
    answer["error"]["code"].as_i64().unwrap_or_default()
}

fn request(id: Value, method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

fn call(id: Value) -> Value {
    request(id, "tools/call", json!({"name": "check_command", "arguments": {"command": "ls"}}))
}

#[track_caller]
fn started(session: &mut Session, message: Value) -> Start {
    match take(session, message).pop() {
        Some(Step::Start(start)) => start,
        other => panic!("{other:?}"),
    }
}

fn outcome(text: &str) -> Outcome {
    Outcome::from_iter([
        ("structuredContent".to_owned(), json!({ "text": text })),
        ("isError".to_owned(), json!(false)),
    ])
}

#[test]
fn only_a_ping_is_allowed_before_the_single_handshake() {
    let mut session = plain();
    assert_eq!(answer_to(&mut session, request(json!(1), "ping", json!({})))["result"], json!({}));
    for method in ["tools/list", "tools/call", "resources/list", ""] {
        assert_eq!(code(&answer_to(&mut session, request(json!(2), method, json!({})))), -32600, "{method}");
    }
    for params in [json!({}), json!({"protocolVersion": 3}), json!({"protocolVersion": null})] {
        assert_eq!(code(&answer_to(&mut session, request(json!(3), "initialize", params))), -32602);
        assert!(!session.is_open());
    }
    let answer = answer_to(&mut session, request(json!("a"), "initialize", json!({"protocolVersion": "3000-01-01"})));
    assert_eq!((&answer["id"], &answer["result"]["protocolVersion"]), (&json!("a"), &json!("2025-11-25")));
    assert_eq!(answer["result"]["serverInfo"]["name"], "caro");
    assert!(answer["result"]["capabilities"]["tools"].is_object());
    assert_eq!(
        code(&answer_to(&mut session, request(json!(5), "initialize", json!({"protocolVersion": "2025-11-25"})))),
        -32600
    );
    assert!(take(&mut session, json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).is_empty());
}

#[test]
fn invalid_requests_have_their_error_codes() {
    let mut session = opened("2025-06-18");
    for (method, params, wanted) in [
        ("resources/list", json!({}), -32601),
        ("logging/setLevel", json!({"level": "info"}), -32601),
        ("server/discover", json!({}), -32601),
        ("tools/list", json!({"cursor": "x"}), -32602),
        ("tools/call", json!({}), -32602),
        ("tools/call", json!({"name": 3}), -32602),
        ("tools/call", json!({"name": "rm"}), -32602),
        ("tools/call", json!({"name": "run_agent", "arguments": {"task": "x"}}), -32602),
        ("tools/call", json!({"name": "check_command", "arguments": [1]}), -32602),
        ("tools/call", json!({"name": "check_command", "_meta": {"progressToken": {}}}), -32602),
        ("tools/call", json!({"name": "check_command", "arguments": {"command": "x".repeat(MAX_CALL_BYTES)}}), -32602),
    ] {
        let answer = answer_to(&mut session, request(json!(7), method, params));
        assert_eq!((code(&answer), &answer["id"]), (wanted, &json!(7)), "{method}: {answer}");
        assert!(answer["error"]["message"].as_str().is_some_and(|why| !why.is_empty()));
    }
    assert!(!session.is_busy());
    for text in ["{", "\u{1}", &format!("{}1{}", "[".repeat(5000), "]".repeat(5000))] {
        let steps = session.take(text.as_bytes());
        assert!(matches!(&steps[..], [Step::Send(answer)] if code(answer) == -32700), "{steps:?}");
    }
    // responses and unknown notifications are ignored
    for silent in [json!({"jsonrpc": "2.0", "id": 1, "result": {}}), json!({"jsonrpc": "2.0", "method": "x"})] {
        assert!(take(&mut session, silent).is_empty());
    }
}

#[test]
fn calls_are_answered_in_the_order_in_which_they_end() {
    let mut session = opened("2025-06-18");
    let first = started(&mut session, call(json!(1)));
    // a number is not a string, so this is another id
    let second = started(&mut session, call(json!("1")));
    assert_eq!((first.tool, &first.arguments["command"]), (Name::CheckCommand, &json!("ls")));
    assert_eq!(code(&answer_to(&mut session, call(json!(1)))), -32600, "an id is used once at a time");
    let answer = session.finish(second.call, outcome("b")).unwrap();
    assert_eq!((&answer["id"], &answer["result"]["structuredContent"]["text"]), (&json!("1"), &json!("b")));
    assert_eq!(session.finish(first.call, outcome("a")).unwrap()["id"], 1);
    assert_eq!(session.finish(first.call, outcome("again")), None);
    assert!(!session.is_busy());
    // an id can be used again once its call has ended
    started(&mut session, call(json!(1)));
}

#[test]
fn a_cancelled_call_stops_and_has_no_answer() {
    let mut session = opened("2025-06-18");
    let start = started(&mut session, call(json!(1)));
    let cancelled =
        |id: Value| json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}});
    for other in [json!("1"), json!(2), json!(null), json!([1])] {
        assert!(take(&mut session, cancelled(other)).is_empty());
        assert!(!start.cancel.is_cancelled());
    }
    assert!(take(&mut session, cancelled(json!(1))).is_empty());
    assert!(start.cancel.is_cancelled() && !session.is_busy());
    assert_eq!(session.finish(start.call, outcome("late")), None);
    assert!(take(&mut session, cancelled(json!(1))).is_empty());
}

#[test]
fn progress_is_sent_on_request_and_never_after_the_answer() {
    let mut session = opened("2025-06-18");
    let silent = started(&mut session, call(json!(1)));
    assert!(!silent.wants_progress && session.progress(silent.call, "x").is_none());
    let mut wanted = call(json!(2));
    wanted["params"]["_meta"] = json!({"progressToken": "t"});
    let start = started(&mut session, wanted);
    assert!(start.wants_progress);
    for number in 1..3 {
        let note = session.progress(start.call, "half").unwrap();
        assert_eq!(note["method"], "notifications/progress");
        assert_eq!(note["params"], json!({"progressToken": "t", "progress": number, "message": "half"}));
    }
    session.finish(start.call, outcome("x")).unwrap();
    assert_eq!(session.progress(start.call, "late"), None);
}

#[test]
fn the_number_of_stored_calls_is_bounded() {
    let mut session = opened("2025-11-25");
    let mut refused = 0;
    for id in 0..10_000 {
        match take(&mut session, call(json!(id))).pop() {
            Some(Step::Start(_)) => {}
            Some(Step::Send(answer)) => {
                assert_eq!(code(&answer), -32000);
                refused += 1;
            }
            None => panic!("no answer to {id}"),
        }
    }
    assert_eq!((refused, session.live.len(), session.ids.len()), (10_000 - MAX_CALLS, MAX_CALLS, MAX_CALLS));
    session.stop();
    assert!(session.live.values().all(|live| live.cancel.is_cancelled()));
}

#[test]
fn batches_are_answered_as_one_and_only_in_their_revision() {
    let ping = |id: u64| request(json!(id), "ping", json!({}));
    for version in ["2024-11-05", "2025-06-18", "2025-11-25"] {
        assert_eq!(code(&answer_to(&mut opened(version), json!([ping(1)]))), -32600, "{version}");
    }
    assert_eq!(code(&answer_to(&mut plain(), json!([ping(1)]))), -32600);
    let mut session = opened("2025-03-26");
    assert_eq!(code(&answer_to(&mut session, json!([]))), -32600);
    assert_eq!(code(&answer_to(&mut session, Value::Array((0..101).map(ping).collect()))), -32600);
    let note = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    assert!(take(&mut session, json!([note, note])).is_empty());
    let handshake = request(json!(2), "initialize", json!({"protocolVersion": "x"}));
    let all = answer_to(&mut session, json!([ping(1), 3, note, handshake]));
    let codes: Vec<i64> = all.as_array().unwrap().iter().map(code).collect();
    assert_eq!(codes, [0, -32600, -32600]);
    let steps = take(&mut session, json!([ping(1), call(json!(2)), call(json!(3))]));
    let calls: Vec<u64> =
        steps.iter().map(|step| if let Step::Start(start) = step { start.call } else { panic!("{step:?}") }).collect();
    assert_eq!(session.finish(calls[1], outcome("b")), None);
    let all = session.finish(calls[0], outcome("a")).unwrap();
    let ids: Vec<i64> = all.as_array().unwrap().iter().map(|answer| answer["id"].as_i64().unwrap()).collect();
    assert_eq!(ids, [1, 3, 2]);
    // one of two calls is stopped, by a later message and by one in the batch itself
    let stop = |id: u64| json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}});
    let steps = take(&mut session, json!([call(json!(4)), call(json!(5))]));
    let [Step::Start(first), Step::Start(last)] = &steps[..] else { panic!() };
    assert!(take(&mut session, stop(4)).is_empty());
    assert_eq!(session.finish(last.call, outcome("x")), None, "the stopped call has not ended");
    assert_eq!(session.finish(first.call, outcome("late")).unwrap().as_array().unwrap().len(), 1);
    let Some(Step::Start(stopped)) = take(&mut session, json!([call(json!(6)), stop(6)])).pop() else { panic!() };
    assert_eq!(session.finish(stopped.call, outcome("late")), None, "the call is stopped and has no answer");
    // the last call of a batch is stopped: the answers are not those of the message that stops it
    let steps = take(&mut session, json!([call(json!(7)), call(json!(8))]));
    let [Step::Start(first), Step::Start(last)] = &steps[..] else { panic!() };
    assert_eq!(session.finish(first.call, outcome("x")), None);
    assert!(take(&mut session, stop(8)).is_empty());
    assert_eq!(session.finish(last.call, outcome("late")).unwrap()[0]["id"], 7);
    // the request of a batch is gone
    let steps = take(&mut session, json!([call(json!(9)), call(json!(10))]));
    let [Step::Start(first), Step::Start(last)] = &steps[..] else { panic!() };
    take(&mut session, stop(9));
    session.forget(first.call);
    session.forget(last.call);
    assert!(session.batches.is_empty() && session.live.is_empty() && session.ids.is_empty());
    assert!(session.stopped.is_empty());
}

#[test]
fn answers_to_older_revisions_have_only_their_fields() {
    let mut wanted = call(json!(1));
    wanted["params"]["_meta"] = json!({"progressToken": 3});
    for (version, structured, message) in [
        ("2024-11-05", false, false),
        ("2025-03-26", false, true),
        ("2025-06-18", true, true),
        ("2025-11-25", true, true),
    ] {
        let mut session = opened(version);
        let start = started(&mut session, wanted.clone());
        let note = session.progress(start.call, "x").unwrap();
        assert_eq!(note["params"]["message"].is_string(), message, "{version}");
        let answer = session.finish(start.call, outcome("x")).unwrap();
        assert_eq!(answer["result"]["structuredContent"].is_object(), structured, "{version}");
        assert!(answer["result"].get("resultType").is_none());
        let listed = answer_to(&mut session, request(json!(9), "tools/list", json!({})));
        assert_eq!(listed["result"]["tools"][0]["outputSchema"].is_object(), structured, "{version}");
    }
}

#[test]
fn a_request_that_declares_its_revision_needs_no_handshake() {
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let mut session = plain();
    let ask = |method: &str| request(json!(1), method, json!({ "_meta": meta }));
    let found = answer_to(&mut session, ask("server/discover"));
    let versions = found["result"]["supportedVersions"].as_array().unwrap();
    assert!(versions.contains(&json!("2026-07-28")) && versions.contains(&json!("2024-11-05")), "{found}");
    let listed = answer_to(&mut session, ask("tools/list"))["result"].clone();
    assert_eq!((&listed["resultType"], &listed["cacheScope"]), (&json!("complete"), &json!("public")));
    assert!(listed["ttlMs"].is_u64() && listed["tools"][0]["outputSchema"].is_object());
    // that revision has no ping
    assert_eq!(code(&answer_to(&mut session, ask("ping"))), -32601);
    let mut one = call(json!(2));
    one["params"]["_meta"] = meta.clone();
    let start = started(&mut session, one);
    let answer = session.finish(start.call, outcome("x")).unwrap();
    assert_eq!((&answer["result"]["resultType"], &answer["result"]["isError"]), (&json!("complete"), &json!(false)));
    let mut other = meta.clone();
    other["io.modelcontextprotocol/protocolVersion"] = "2099-01-01".into();
    let refused = answer_to(&mut session, request(json!(3), "tools/list", json!({ "_meta": other })));
    assert_eq!((code(&refused), &refused["error"]["data"]["requested"]), (-32022, &json!("2099-01-01")));
    assert!(!session.is_open());
}

proptest::proptest! {
    /// Any input causes no panic, and each answer is a JSON-RPC message.
    #[test]
    fn any_bytes_are_answered_or_ignored(
        bytes in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..200),
        cut in 0_usize..200,
    ) {
        let mut session = opened("2025-03-26");
        let whole = json!([call(json!(1)), {"jsonrpc": "2.0", "id": 2, "method": "ping"}]).to_string();
        for bytes in [&bytes[..], &whole.as_bytes()[..cut.min(whole.len())]] {
            for step in session.take(bytes) {
                if let Step::Send(answer) = step {
                    proptest::prop_assert_eq!(&answer["jsonrpc"], "2.0");
                }
            }
        }
    }
}
