//! Tests the routes of OpenAI's protocol as its clients use them.

use super::{Response, Server, read_until};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

const CHAT: &str = "/v1/chat/completions";

/// The messages of a chat with one message of the user.
fn user(text: &str) -> Value {
    json!([{"role": "user", "content": text}])
}

/// Adds fields to a body.
fn with(mut body: Value, more: Value) -> Value {
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    body
}

/// Parses the chunks of a stream; asserts that it ends with `[DONE]`.
#[track_caller]
fn chunks(response: &Response) -> Vec<Value> {
    assert_eq!(response.status, 200, "{response:#?}");
    assert!(response.head.contains("content-type: text/event-stream"), "{response:#?}");
    let lines: Vec<&str> = response.body.split("\n\n").filter_map(|event| event.strip_prefix("data: ")).collect();
    assert_eq!(lines.last(), Some(&"[DONE]"), "{response:#?}");
    assert!(!response.body.contains("event: "), "events must have no names: {response:#?}");
    lines[..lines.len() - 1].iter().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The deltas of a choice in order, and its finish reasons.
fn deltas(chunks: &[Value], index: u64) -> (Vec<&Value>, Vec<&str>) {
    assert!(chunks.iter().all(|chunk| chunk["object"] == "chat.completion.chunk"), "{chunks:#?}");
    let choices = chunks.iter().filter_map(|chunk| chunk["choices"].get(0)).filter(|choice| choice["index"] == index);
    let ends = choices.clone().filter_map(|choice| choice["finish_reason"].as_str()).collect();
    (choices.map(|choice| &choice["delta"]).collect(), ends)
}

fn content(deltas: &[&Value]) -> String {
    deltas.iter().filter_map(|delta| delta["content"].as_str()).collect()
}

/// Asserts the status and the code of an error, and returns its document.
#[track_caller]
fn error(response: &Response, status: u16, code: &str) -> Value {
    let document = response.json();
    assert_eq!((response.status, &document["error"]["code"]), (status, &json!(code)), "{response:#?}");
    assert!(document["error"]["message"].is_string() && document["error"]["type"].is_string(), "{document}");
    document["error"].clone()
}

#[test]
fn a_chat_is_answered_at_once_or_as_a_stream() {
    let rules = json!([
        {"match": "hello", "system": "Be brief.", "reply": "Hello to you, dear friend. END and more"},
        {"match": "choices", "replies": ["one", "two"]},
        {"reply": "who?"}
    ]);
    let server = Server::start(rules, &["--port", "0"]);
    let messages = json!([{"role": "developer", "content": "Be brief."}, {"role": "user", "content": [{"type": "text", "text": "hello"}]}]);
    let body = json!({"model": "script.json", "messages": messages, "stop": " END", "temperature": 0, "user": "ann", "mood": 1});
    let whole = server.post(CHAT, body.clone()).json();
    assert_eq!(
        (&whole["object"], &whole["model"]),
        (&json!("chat.completion"), &json!("script:script.json")),
        "{whole:#}"
    );
    let choice = &whole["choices"][0];
    assert_eq!(
        choice["message"],
        json!({"role": "assistant", "content": "Hello to you, dear friend.", "refusal": null})
    );
    assert_eq!((&choice["index"], &choice["finish_reason"]), (&json!(0), &json!("stop")));
    let usage = &whole["usage"];
    assert_eq!(
        (&usage["prompt_tokens"], &usage["completion_tokens"], &usage["total_tokens"]),
        (&json!(3), &json!(5), &json!(8))
    );
    assert!(whole["id"].as_str().unwrap().starts_with("chatcmpl"), "{whole:#}");
    // the same as a stream
    let streamed =
        server.post(CHAT, with(body.clone(), json!({"stream": true, "stream_options": {"include_usage": true}})));
    let all = chunks(&streamed);
    let (parts, ends) = deltas(&all, 0);
    assert_eq!(
        (&parts[0]["role"], content(&parts).as_str(), ends),
        (&json!("assistant"), "Hello to you, dear friend.", vec!["stop"])
    );
    assert!(parts.len() > 4, "in pieces: {parts:?}");
    assert_eq!((&all.last().unwrap()["usage"], &all.last().unwrap()["choices"]), (usage, &json!([])));
    assert!(all[..all.len() - 1].iter().all(|chunk| chunk["usage"].is_null() && chunk["id"] == all[0]["id"]));
    let without = chunks(&server.post(CHAT, with(body.clone(), json!({"stream": true}))));
    assert!(without.iter().all(|chunk| chunk.get("usage").is_none()), "{without:#?}");
    // cut off by a limit
    let short = server.post(CHAT, with(body, json!({"max_completion_tokens": 2, "max_tokens": 4}))).json();
    assert_eq!(short["choices"][0]["message"]["content"], "Hello to");
    assert_eq!(
        (&short["choices"][0]["finish_reason"], &short["usage"]["completion_tokens"]),
        (&json!("length"), &json!(2))
    );
    // probabilities of the tokens in the text
    let asked = json!({"messages": user("hello"), "logprobs": true, "stop": " END"});
    let likely =
        server.post(CHAT, with(asked, json!({"messages": messages}))).json()["choices"][0]["logprobs"]["content"]
            .clone();
    let tokens: String = likely.as_array().unwrap().iter().map(|token| token["token"].as_str().unwrap()).collect();
    assert_eq!(
        (tokens.as_str(), likely[0]["bytes"][0].as_u64()),
        ("Hello to you, dear friend.", Some(u64::from(b'H')))
    );
    assert!((likely[0]["logprob"].as_f64().unwrap() + 0.05).abs() < 1e-6, "{likely}");
    // several choices
    let several = server.post(CHAT, json!({"messages": user("choices"), "n": 3, "seed": 7})).json();
    let texts: Vec<&Value> = several["choices"].as_array().unwrap().iter().map(|c| &c["message"]["content"]).collect();
    assert_eq!(texts, ["one", "two", "two"]);
    assert_eq!((&several["usage"]["prompt_tokens"], &several["usage"]["completion_tokens"]), (&json!(1), &json!(3)));
    let all = chunks(&server.post(CHAT, json!({"messages": user("choices"), "n": 2, "stream": true})));
    for index in 0..2 {
        let (parts, ends) = deltas(&all, index);
        assert_eq!((content(&parts).as_str(), ends), ("two", vec!["stop"]), "{index}");
    }
}

#[test]
fn a_json_answer_follows_its_schema() {
    let rules = json!([
        {"match": "person", "reply": "{\"name\": \"Ann\", \"age\": 7}"},
        {"match": "words", "reply": "no document"},
        {"reply": "{\"any\": []}"}
    ]);
    let server = Server::start(rules, &["--port", "0"]);
    let schema = json!({"type": "object", "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
                        "required": ["name", "age"], "additionalProperties": false});
    let format = json!({"type": "json_schema", "json_schema": {"name": "person", "strict": true, "schema": schema}});
    let ask =
        |text: &str, format: &Value| server.post(CHAT, json!({"messages": user(text), "response_format": format}));
    let answered = ask("a person", &format).json();
    let content = answered["choices"][0]["message"]["content"].as_str().unwrap();
    assert_eq!(serde_json::from_str::<Value>(content).unwrap(), json!({"name": "Ann", "age": 7}));
    // a scripted model cannot be constrained: that it fails shows that the format was requested
    for format in [&format, &json!({"type": "json_object"})] {
        let failed = ask("words", format);
        assert!(
            error(&failed, 500, "internal")["message"].as_str().unwrap().contains("breaks the shape"),
            "{failed:#?}"
        );
    }
    assert_eq!(ask("anything", &json!({"type": "json_object"})).status, 200);
    assert_eq!(ask("words", &json!({"type": "text"})).status, 200);
    for (format, param) in [
        (json!({"type": "xml"}), "response_format.type"),
        (json!({"type": "json_schema"}), "response_format.json_schema"),
        (json!({"type": "json_schema", "json_schema": {"name": "x"}}), "response_format.json_schema.schema"),
        (json!("json"), "response_format"),
    ] {
        let refused = ask("words", &format);
        assert_eq!((refused.status, &refused.json()["error"]["param"]), (400, &json!(param)), "{refused:#?}");
    }
    let stopped =
        server.post(CHAT, json!({"messages": user("x"), "response_format": {"type": "json_object"}, "stop": "}"}));
    assert_eq!(error(&stopped, 400, "unsupported_parameter")["param"], "stop");
}

#[test]
fn the_model_calls_functions_and_reads_their_results() {
    let weather = json!({"type": "function", "function": {"name": "weather", "description": "Tells the weather.", "parameters": {
        "type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"], "additionalProperties": false}}});
    let now = json!({"type": "function", "function": {"name": "now"}});
    let call = "{\"name\": \"weather\", \"arguments\": {\"city\": \"Oslo\"}}\n</tool_call>";
    let second = "{\"name\": \"now\", \"arguments\": {}}\n</tool_call>";
    let rules = json!([
        {"match": "<tool_response>\n4 degrees\n</tool_response>\n<tool_response>\n12:00\n</tool_response>", "system": "\"name\": \"weather\"", "reply": "It is 4 degrees."},
        {"match": "at once", "reply": call},
        {"match": "in Oslo", "system": "<tools>", "reply": format!("Let me see.\n<tool_call>\n{call}\n<tool_call>\n{second}")},
        {"match": "hello", "reply": "Hello."},
        {"match": "in Rome", "reply": "```json\n{\"name\": \"weather\", \"arguments\": {\"city\": \"Rome\"}}\n```"},
        {"reply": "<tool_call>\nnothing"}
    ]);
    let server = Server::start(rules, &["--port", "0"]);
    let tools = json!([weather, now]);
    let ask = |text: &str, more: Value| server.post(CHAT, with(json!({"messages": user(text), "tools": tools}), more));
    let answered = ask("What is it like in Oslo?", json!({})).json();
    let (message, reason) = (&answered["choices"][0]["message"], &answered["choices"][0]["finish_reason"]);
    assert_eq!((&message["content"], reason), (&json!("Let me see."), &json!("tool_calls")), "{answered:#}");
    let calls = message["tool_calls"].as_array().unwrap();
    assert_eq!(calls[0]["function"], json!({"name": "weather", "arguments": "{\"city\": \"Oslo\"}"}));
    assert_eq!((calls.len(), &calls[1]["function"]["name"], &calls[1]["type"]), (2, &json!("now"), &json!("function")));
    let id = |i: usize| calls[i]["id"].as_str().unwrap();
    assert!(id(0).starts_with("call") && id(0) != id(1), "{calls:?}");
    // the results are sent back
    let history = json!([
        {"role": "user", "content": "What is it like in Oslo?"},
        message,
        {"role": "tool", "tool_call_id": id(0), "content": "4 degrees"},
        {"role": "tool", "tool_call_id": id(1), "content": [{"type": "text", "text": "12:00"}]},
    ]);
    let last = server.post(CHAT, json!({"messages": history, "tools": tools})).json();
    assert_eq!(last["choices"][0]["message"]["content"], "It is 4 degrees.", "{last:#}");
    assert_eq!(last["choices"][0]["finish_reason"], "stop");
    // as a stream
    let all = chunks(&ask("What is it like in Oslo?", json!({"stream": true})));
    let (parts, ends) = deltas(&all, 0);
    assert_eq!((content(&parts).as_str(), ends), ("Let me see.", vec!["tool_calls"]));
    let mut streamed = vec![(String::new(), String::new()); 2];
    for part in parts.iter().filter_map(|delta| delta["tool_calls"].get(0)) {
        let call = &mut streamed[part["index"].as_u64().unwrap() as usize];
        call.0 += part["function"]["name"].as_str().unwrap_or_default();
        call.1 += part["function"]["arguments"].as_str().unwrap_or_default();
    }
    assert_eq!(streamed, [("weather".into(), "{\"city\": \"Oslo\"}".into()), ("now".into(), "{}".into())]);
    // a call without marks is the whole answer
    let bare = ask("What is it like in Rome?", json!({})).json();
    let choice = &bare["choices"][0];
    let function = json!({"name": "weather", "arguments": "{\"city\":\"Rome\"}"});
    assert_eq!(
        (&choice["message"]["content"], &choice["finish_reason"]),
        (&Value::Null, &json!("tool_calls")),
        "{bare:#}"
    );
    assert_eq!(choice["message"]["tool_calls"][0]["function"], function, "{bare:#}");
    let all = chunks(&ask("What is it like in Rome?", json!({"stream": true})));
    let (parts, ends) = deltas(&all, 0);
    assert_eq!((content(&parts).as_str(), ends), ("", vec!["tool_calls"]), "{all:#?}");
    let calls: Vec<&Value> = parts.iter().filter_map(|delta| delta["tool_calls"].get(0)).collect();
    assert_eq!(
        (&calls[0]["function"]["name"], &calls[1]["function"]["arguments"]),
        (&function["name"], &function["arguments"])
    );
    let document = ask("What is it like in Rome?", json!({"tool_choice": "none"})).json();
    assert!(document["choices"][0]["message"]["content"].is_string(), "{document:#}");
    // a required call
    for choice in [json!("required"), json!({"type": "function", "function": {"name": "weather"}})] {
        let made = ask("at once", json!({"tool_choice": choice})).json();
        let message = &made["choices"][0]["message"];
        assert_eq!(
            (&message["content"], &message["tool_calls"][0]["function"]["name"]),
            (&Value::Null, &json!("weather")),
            "{made:#}"
        );
        let refused = ask("hello", json!({"tool_choice": choice}));
        assert_eq!(refused.status, 500, "words are no call: {refused:#?}");
    }
    assert_eq!(ask("hello", json!({})).json()["choices"][0]["message"]["content"], "Hello.");
    let free = ask("nonsense", json!({"tool_choice": "none"})).json();
    assert_eq!(free["choices"][0]["message"]["content"], "<tool_call>\nnothing", "without tools it is text");
    assert_eq!(ask("nonsense", json!({})).status, 500, "an invalid call is an error");
}

#[test]
fn a_second_signal_ends_a_stream_with_an_error() {
    let rules = json!([{"reply": "word ".repeat(400), "delay_ms": 100}]);
    let mut server = Server::start(rules, &["--port", "0"]);
    let mut stream = server.begin(CHAT, json!({"messages": user("hello"), "stream": true}));
    // it has begun when its first pieces are there
    let begun = super::read_until(&mut stream, "\"content\":\"word\"");
    assert!(begun.contains("200 OK"), "{begun}");
    server.signal("-TERM");
    let since = Instant::now();
    while server.get("/tools").status != 503 {
        assert!(since.elapsed() < crate::machine::AMPLE);
    }
    server.signal("-TERM");
    let mut rest = String::new();
    std::io::Read::read_to_string(&mut stream, &mut rest).unwrap();
    assert!(rest.contains("data: {\"error\":") && rest.trim_end().ends_with('0'), "{rest}");
    assert_eq!(server.wait_for_exit(), Some(0), "{}", server.log());
}

#[test]
fn a_plain_prompt_is_continued() {
    let rules = json!([
        {"regex": "^Once upon$", "reply": " a time, long ago"},
        {"regex": "^Twice$", "reply": " as nice"}
    ]);
    let server = Server::start(rules, &["--port", "0"]);
    let path = "/v1/completions";
    let one = server.post(path, json!({"model": "script:script.json", "prompt": "Once upon", "max_tokens": 3})).json();
    assert_eq!(
        one["choices"],
        json!([{"index": 0, "text": " a time, long", "logprobs": null, "finish_reason": "length"}]),
        "{one:#}"
    );
    assert_eq!((&one["object"], &one["usage"]["total_tokens"]), (&json!("text_completion"), &json!(5)));
    let two = server.post(path, json!({"prompt": ["Once upon", "Twice"], "n": 2})).json();
    let texts: Vec<&str> = two["choices"].as_array().unwrap().iter().map(|c| c["text"].as_str().unwrap()).collect();
    assert_eq!(texts, [" a time, long ago", " a time, long ago", " as nice", " as nice"]);
    assert_eq!(two["usage"]["prompt_tokens"], 3, "each prompt once");
    let streamed = chunks(&server.post(path, json!({"prompt": "Twice", "stream": true})));
    let text: String = streamed.iter().map(|chunk| chunk["choices"][0]["text"].as_str().unwrap()).collect();
    assert_eq!((text.as_str(), &streamed.last().unwrap()["choices"][0]["finish_reason"]), (" as nice", &json!("stop")));
    for (body, param) in [
        (json!({"prompt": "x", "echo": true}), "echo"),
        (json!({"prompt": "x", "suffix": "y"}), "suffix"),
        (json!({"prompt": [[1, 2]]}), "prompt"),
        (json!({}), "prompt"),
    ] {
        let refused = server.post(path, body.clone());
        assert_eq!((refused.status, &refused.json()["error"]["param"]), (400, &json!(param)), "{body}");
    }
}

#[test]
fn errors_have_the_form_of_the_protocol() {
    let slow = json!({"match": "slowly", "reply": "a b c d e f", "delay_ms": 1000});
    let server = Server::start(json!([slow, {"reply": "fine"}]), &["--port", "0", "--timeout", "3"]);
    let body = json!({"model": "gpt-4o", "messages": user("x")});
    let other = error(&server.post(CHAT, body.clone()), 404, "model_not_found");
    assert!(
        other["param"] == "model" && other["message"].as_str().unwrap().contains("this server has script:script.json"),
        "{other}"
    );
    assert_eq!(error(&server.get("/v1/models/gpt-4o"), 404, "model_not_found")["type"], "invalid_request_error");
    assert_eq!(server.get("/v1/models/script.json").json()["id"], "script:script.json");
    let stranger = server.send("POST", CHAT, &[], &body.to_string());
    assert_eq!(error(&stranger, 401, "unauthorized")["type"], "authentication_error");
    let long = server.post(CHAT, json!({"messages": user(&"word ".repeat(5000))}));
    let message = error(&long, 400, "context_length_exceeded")["message"].as_str().unwrap().to_owned();
    assert!(message.contains("4096") && message.contains("5001"), "{message}");
    let long = server.post(CHAT, json!({"messages": user(&"word ".repeat(5000)), "stream": true}));
    error(&long, 400, "context_length_exceeded");
    for body in ["", "{", "[]", "\"x\"", "{} {}", "\u{0}"] {
        let refused = server.send("POST", CHAT, &[("Authorization", &format!("Bearer {}", server.token))], body);
        error(&refused, 400, "bad_request");
    }
    let image = json!([{"type": "image_url", "image_url": {"url": "data:,"}}]);
    let refused = server.post(CHAT, json!({"messages": [{"role": "user", "content": image}]}));
    assert_eq!(error(&refused, 400, "unsupported_parameter")["param"], "messages[0].content[0].type");
    let refused = server.post(CHAT, json!({"messages": user("x"), "logit_bias": {"1": 5}}));
    assert_eq!(error(&refused, 400, "unsupported_parameter")["param"], "logit_bias");
    let late = server.post(CHAT, json!({"messages": user("slowly")}));
    assert_eq!(error(&late, 504, "timeout")["type"], "server_error");
    assert!(late.head.contains("x-should-retry: false"), "{late:#?}");
    let odd = json!([{"type": "function", "function": {"name": "f", "parameters": {"type": "nonsense"}}}]);
    error(&server.post(CHAT, json!({"messages": user("x"), "tools": odd})), 400, "invalid_schema");
    let streamed = server.post(CHAT, json!({"messages": user("slowly"), "stream": true}));
    let last = streamed.body.trim_end().rsplit("data: ").next().unwrap();
    let last: Value = serde_json::from_str(last).unwrap();
    assert_eq!((streamed.status, &last["error"]["code"]), (200, &json!("timeout")), "{streamed:#?}");
    // other routes keep their own form
    assert_eq!(server.post("/v1/command", json!({})).json()["error"], "unprocessable");
    let limited = Server::start(json!([{"reply": "fine"}]), &["--port", "0", "--rate-limit", "1/60"]);
    assert_eq!(limited.post(CHAT, json!({"messages": user("x")})).status, 200);
    let refused = limited.post(CHAT, json!({"messages": user("x")}));
    assert_eq!(error(&refused, 429, "busy")["type"], "rate_limit_error");
    assert!(refused.head.contains("retry-after: "), "{refused:#?}");
}

#[test]
fn a_chat_ends_when_its_client_disconnects() {
    let slow = json!({"match": "slowly", "reply": "a b c d e f g h i j k l m n o p q r s t", "delay_ms": 2000});
    let server = Server::start(json!([slow, {"reply": "fine"}]), &["--port", "0"]);
    let ask = |more: Value| server.begin(CHAT, with(json!({"messages": user("slowly")}), more));
    let mut streamed = ask(json!({"stream": true}));
    read_until(&mut streamed, "\"content\":\"a\"");
    let gone =
        [ask(json!({})), ask(json!({"n": 16})), ask(json!({"stream": true})), ask(json!({"stream": true})), streamed];
    server.until_active(5);
    drop(gone);
    let begun = Instant::now();
    let answered = server.post(CHAT, json!({"messages": user("hello")})).json();
    assert_eq!(answered["choices"][0]["message"]["content"], "fine");
    assert!(begun.elapsed() < Duration::from_secs(15), "five slow answers would take minutes");
    server.until_active(0);
}

#[test]
fn concurrent_clients_get_their_own_answers() {
    let mut rules: Vec<Value> = (0..24)
        .map(|n| json!({"match": format!("item{n}x"), "reply": format!("this is item{n}x indeed"), "delay_ms": 1}))
        .collect();
    rules.push(json!({"reply": "nobody"}));
    let server = Server::start(json!(rules), &["--port", "0"]);
    std::thread::scope(|scope| {
        for n in 0..24 {
            let server = &server;
            scope.spawn(move || {
                let body = json!({"messages": user(&format!("item{n}x")), "stream": n % 2 == 0});
                let answered = server.post(CHAT, body);
                let text = if n % 2 == 0 {
                    content(&deltas(&chunks(&answered), 0).0)
                } else {
                    answered.json()["choices"][0]["message"]["content"].as_str().unwrap().to_owned()
                };
                assert_eq!(text, format!("this is item{n}x indeed"));
            });
        }
    });
}

#[test]
fn embeddings_need_their_model_and_never_download_it() {
    let server = Server::start(json!([{"reply": "fine"}]), &["--port", "0"]);
    let path = "/v1/embeddings";
    let missing = error(&server.post(path, json!({"model": "all-minilm-l6-v2", "input": "x"})), 404, "model_not_found");
    assert!(missing["message"].as_str().unwrap().contains("caro model pull all-minilm-l6-v2"), "{missing}");
    assert!(!server.machine.path("cache/models/all-minilm-l6-v2").exists());
    for (body, code, param) in [
        (json!({"model": "text-embedding-3-small", "input": "x"}), "model_not_found", "model"),
        (json!({"input": ""}), "invalid_value", "input"),
        (json!({"input": [1, 2]}), "unsupported_parameter", "input"),
        (json!({"input": {"a": 1}}), "invalid_value", "input"),
        (json!({}), "missing_required_parameter", "input"),
        (json!({"input": "x", "encoding_format": "hex"}), "invalid_value", "encoding_format"),
    ] {
        let refused = server.post(path, body.clone());
        let reason = &refused.json()["error"];
        assert_eq!((&reason["code"], &reason["param"]), (&json!(code), &json!(param)), "{body}: {refused:#?}");
    }
    let listed = server.get("/v1/models").json();
    assert_eq!(listed["data"].as_array().map(Vec::len), Some(1), "an absent model is not listed: {listed:#}");
}

/// The same vectors as the embedder's own, in both forms.
#[test]
fn real_embeddings_are_numbers_or_base64() {
    use caro::model::embed::Embedder;
    let Some(folder) = crate::support::embedding_model_or_skip() else { return };
    let encoder = caro::model::engine::SentenceEncoder::new(&folder, "all-minilm-l6-v2");
    let wanted = encoder.embed(&["one text", "another"]).unwrap();
    let models = folder.parent().unwrap();
    let server = Server::with_models_of(crate::machine::Machine::new(), json!([{"reply": "fine"}]), models);
    let response = server.post("/v1/embeddings", json!({"input": ["one text", "another"]})).json();
    for (item, wanted) in response["data"].as_array().unwrap().iter().zip(&wanted) {
        let vector: Vec<f32> = serde_json::from_value(item["embedding"].clone()).unwrap();
        assert!(vector.iter().zip(wanted).all(|(a, b)| (a - b).abs() < 1e-5) && vector.len() == 384, "{item}");
    }
    assert!(response["usage"]["prompt_tokens"].as_u64().unwrap() >= 7, "{}", response["usage"]);
    let text = server.post("/v1/embeddings", json!({"input": "one text", "encoding_format": "base64"})).json();
    assert_eq!(text["data"][0]["embedding"].as_str().map(str::len), Some(2048), "384 numbers of 4 bytes");
}
