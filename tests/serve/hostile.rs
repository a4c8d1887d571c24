//! Tests `caro serve` against hostile clients and a kill in the middle of a run.

use super::{Response, Server, counts, read_until};
use crate::machine::Machine;
use caro::serve::http::route::Access;
use caro::serve::http::routes::ROUTES;
use serde_json::json;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// Tries each route without the token, from a foreign page and under a foreign host name. Nothing is computed:
/// afterwards the first reply of the script is still unused.
#[test]
fn nothing_is_computed_for_unauthorized_requests() {
    let server = Server::start(json!([{"replies": ["echo first", "echo second"]}]), &["--port", "0"]);
    let (bearer, wrong) = (format!("Bearer {}", server.token), format!("Bearer {}0", &server.token[1..]));
    let body = json!({"request": "x y", "command": "ls", "query": "list the files", "prompt": "x", "messages": []})
        .to_string();
    let mut guarded = 0;
    for route in ROUTES {
        let method = route.method;
        let path = route.path.replace("{session}", "s").replace("{id}", "s");
        let status = |headers: &[(&str, &str)]| server.send(method, &path, headers, &body).status;
        let open = route.access == Access::Open;
        for headers in [
            &[][..],
            &[("Authorization", "")],
            &[("Authorization", "Bearer ")],
            &[("Authorization", &wrong)],
            &[("Authorization", &server.token)],
            &[("Authorization", &format!("Basic {}", server.token))],
            &[("Cookie", &format!("token={}", server.token))],
        ] {
            let status = status(headers);
            assert_eq!(status == 401, !open, "{route:?} {headers:?}: {status}");
        }
        for foreign in
            [("Host", "evil.org"), ("Host", "localhost.evil.org:80"), ("Origin", "http://evil.org"), ("Origin", "null")]
        {
            assert_eq!(status(&[("Authorization", &bearer), foreign]), 403, "{route:?} {foreign:?}");
        }
        guarded += usize::from(!open);
    }
    assert!(guarded > 15, "{guarded}");
    for path in ["/v1/command/", "//v1/command", "/v1%2fcommand", "/health/../v1/command", "/V1/COMMAND", "/x"] {
        assert_eq!(server.send("POST", path, &[], &body).status, 401, "{path}");
    }
    let with_token = server.post("/v1/command", json!({"request": "say which one"}));
    assert_eq!(with_token.json()["cmd"], "echo first", "{with_token:#?}");
    let log = server.log();
    assert!(!log.contains(&server.token) && !log.contains("list the files"), "{log}");
}

#[test]
fn a_path_or_query_that_cannot_be_read_is_a_problem() {
    let server = Server::start(json!([{"reply": "ls"}]), &["--port", "0"]);
    let bearer = format!("Bearer {}", server.token);
    for (method, path) in [
        ("GET", "/sessions/%FF/history"),
        ("DELETE", "/sessions/%FF"),
        ("POST", "/runs/%FF/approve"),
        ("GET", "/events/%FF"),
        ("GET", "/events/s/list?limit=many"),
        ("GET", "/events/s/list?after=run_1-1"),
        ("GET", "/events/s/trace?after=run_1-1"),
        ("GET", "/events/s?run_id=run_1"),
        ("GET", "/background/runs?mood=1"),
    ] {
        let refused = server.send(method, path, &[("Authorization", &bearer)], r#"{"decision": "yes"}"#);
        assert_eq!((refused.status, &refused.json()["error"]), (400, &json!("bad_request")), "{path}: {refused:#?}");
        assert!(refused.json()["message"].is_string() && refused.json()["detail"].is_string(), "{refused:#?}");
    }
    let refused = server.get("/v1/models/%FF");
    assert_eq!((refused.status, &refused.json()["error"]["code"]), (400, &json!("bad_request")), "{refused:#?}");
}

#[test]
fn a_page_of_an_allowed_origin_may_send_headers_of_its_client() {
    let args = ["--port", "0", "--cors-origins", "https://pal.org", "--rate-limit", "1/60"];
    let server = Server::start(json!([{"reply": "ls"}]), &args);
    let asked = "authorization, content-type, x-stainless-os, x-stainless-retry-count";
    let preflight = |origin: &str| {
        let headers =
            [("Origin", origin), ("Access-Control-Request-Method", "POST"), ("Access-Control-Request-Headers", asked)];
        server.send("OPTIONS", "/v1/chat/completions", &headers, "")
    };
    let allowed = preflight("https://pal.org");
    assert_eq!(allowed.status, 204, "{allowed:#?}");
    assert!(allowed.head.contains(&format!("access-control-allow-headers: {asked}")), "{allowed:#?}");
    let foreign = preflight("https://evil.org");
    assert!(foreign.status == 403 && !foreign.head.contains("access-control-allow"), "{foreign:#?}");
    let bearer = format!("Bearer {}", server.token);
    let got = server.send("GET", "/tools", &[("Authorization", &bearer), ("Origin", "https://pal.org")], "");
    let exposed = got.head.lines().find(|line| line.starts_with("access-control-expose-headers: ")).unwrap();
    for header in got.head.lines().filter_map(|line| line.split_once(": ")).map(|(name, _)| name) {
        assert!(!header.starts_with("x-ratelimit-") || exposed.contains(header), "{header}: {got:#?}");
    }
}

#[test]
fn a_hundred_concurrent_clients_get_their_own_answers() {
    let mut rules: Vec<_> = (0..100)
        .map(|n| json!({"match": format!("item{n}x"), "reply": format!("echo item{n}x"), "delay_ms": 1}))
        .collect();
    rules.push(json!({"reply": "echo nobody"}));
    let server = Server::start(json!(rules), &["--port", "0"]);
    std::thread::scope(|scope| {
        for n in 0..100 {
            let server = &server;
            scope.spawn(move || {
                let answered = server.post("/v1/command", json!({"request": format!("print the word item{n}x")}));
                assert_eq!((answered.status, &answered.json()["cmd"]), (200, &json!(format!("echo item{n}x"))));
            });
        }
    });
    let counted = server.get("/metrics").json();
    let paths = counted["server"]["paths"].as_array().unwrap();
    let commands = paths.iter().find(|path| path["path"] == "/v1/command").unwrap();
    assert_eq!((&commands["success"], &commands["error"]), (&json!(100), &json!(0)));
}

#[test]
fn a_thousand_silent_connections_block_no_other() {
    let server = Server::start(json!([{"reply": "ls"}]), &["--port", "0"]);
    let files = rustix::process::getrlimit(rustix::process::Resource::Nofile).current.unwrap_or(u64::MAX);
    let count = files.saturating_sub(400).min(1000);
    if count < 1000 {
        println!("{count} connections: this process may have {files} files");
    }
    let silent: Vec<TcpStream> = (0..count).map(|_| server.connect()).collect();
    let begun = Instant::now();
    let answered = server.post("/v1/command", json!({"request": "list files"}));
    assert_eq!(answered.status, 200, "{answered:#?}");
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
    drop(silent);
}

#[test]
fn a_body_of_a_gigabyte_is_refused_early() {
    let server = Server::start(json!([{"reply": "ls"}]), &["--port", "0"]);
    let bearer = format!("Bearer {}", server.token);
    let head = server.head("POST", "/v1/command", &[("Authorization", &bearer)]);
    // by its announced length, before any of it is sent
    let mut announced = server.connect();
    write!(announced, "{head}Content-Length: {}\r\n\r\n", 1 << 30).unwrap();
    assert_eq!(Response::read(&mut announced).status, 413);
    // in chunks, without a length
    let mut stream = server.connect();
    write!(stream, "{head}Transfer-Encoding: chunked\r\n\r\n").unwrap();
    let mut reader = stream.try_clone().unwrap();
    let answer = std::thread::spawn(move || {
        // the answer may be followed by a broken connection
        let mut bytes = [0; 12];
        reader.read_exact(&mut bytes).map(|()| String::from_utf8_lossy(&bytes).into_owned())
    });
    let chunk = [b"10000\r\n".to_vec(), vec![b'x'; 0x10000], b"\r\n".to_vec()].concat();
    let sent = (0..1 << 14).take_while(|_| stream.write_all(&chunk).is_ok()).count();
    assert!(sent < 1 << 9, "{sent} chunks of 64 KiB went through");
    assert_eq!(answer.join().unwrap().unwrap(), "HTTP/1.1 413");
    // without the token no body is read
    let mut without = server.connect();
    write!(without, "{}Content-Length: {}\r\n\r\n", server.head("POST", "/run", &[]), 1 << 30).unwrap();
    assert_eq!(Response::read(&mut without).status, 401);
}

#[test]
fn a_head_without_an_end_is_cut_off() {
    let server = Server::start(json!([{"reply": "ls"}]), &["--port", "0"]);
    // slowly
    let mut slow = server.connect();
    let begun = Instant::now();
    let dripping = std::thread::spawn(move || {
        write!(slow, "GET /health HTTP/1.1\r\nHost: localhost\r\n").unwrap();
        let mut number = 0;
        while write!(slow, "X-{number}: x\r\n").is_ok() && begun.elapsed() < Duration::from_secs(40) {
            number += 1;
            std::thread::sleep(Duration::from_millis(500));
        }
        begun.elapsed()
    });
    // and fast
    let mut fast = server.connect();
    write!(fast, "GET /health HTTP/1.1\r\nHost: localhost\r\n").unwrap();
    let sent = (0..1 << 12).take_while(|n| write!(fast, "X-{n}: {}\r\n", "x".repeat(1000)).is_ok()).count();
    assert!(sent < 1 << 12, "{sent} KB of head went through");
    for odd in ["GET / HTTP/9\r\n\r\n", "\0\0\0\0", "GET\r\n\r\n", "POST /run HTTP/1.1\r\nContent-Length: -1\r\n\r\n"] {
        let mut stream = server.connect();
        stream.write_all(odd.as_bytes()).unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        assert!(matches!(Response::read(&mut stream).status, 0 | 400 | 403 | 505), "{odd:?}");
    }
    assert!(dripping.join().unwrap() < Duration::from_secs(25));
    assert_eq!(server.send("GET", "/health", &[], "").status, 200);
}

#[test]
fn after_a_kill_during_a_run_its_session_is_intact() {
    let mut rules = counts();
    rules.as_array_mut().unwrap().iter_mut().for_each(|rule| rule["delay_ms"] = json!(60));
    let mut server = Server::start(rules.clone(), &["--port", "0"]);
    std::fs::create_dir(server.machine.path("work/logs")).unwrap();
    server.machine.write("work/logs/app.log", "ERROR one\n");
    let mut run = server.begin("/run", json!({"query": "count the errors in logs/app.log", "session_id": "s"}));
    let shown = read_until(&mut run, "event: tool_result");
    server.signal("-KILL");
    server.wait_for_exit();
    let machine = std::mem::replace(&mut server.machine, Machine::new());
    let server = Server::on(machine, rules, &["--port", "0"]);
    let list = server.get("/events/s/list").json();
    let events = list["events"].as_array().unwrap();
    let numbers: Vec<u64> = events.iter().map(|event| event["sequence_number"].as_u64().unwrap()).collect();
    assert_eq!(numbers, (1..=numbers.len() as u64).collect::<Vec<_>>());
    for id in shown.lines().filter_map(|line| line.strip_prefix("id: ")) {
        assert!(events.iter().any(|event| event["event_id"] == id), "{id} was shown and is lost");
    }
    assert_eq!(server.get("/sessions").json()["sessions"][0]["status"], "stopped");
    let next = server.post("/run/sync", json!({"query": "count the errors in logs/app.log", "session_id": "s"}));
    assert_eq!((next.status, &next.json()["response"]), (200, &json!("There are 2 errors.")), "{next:#?}");
}
