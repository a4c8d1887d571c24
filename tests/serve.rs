//! Tests `caro serve` (rows B35 to B43): the real process on a scripted model. Hostile clients are in
//! `serve/hostile.rs`, the routes of OpenAI's protocol in `serve/openai.rs`, the Model Context Protocol in
//! `serve/mcp.rs`, runs and tasks beside each other in `serve/runs.rs`.

mod hostile;
mod mcp;
mod openai;
mod runs;

use crate::agent::{answer, by_step, step};
use crate::machine::{AMPLE, Machine, Ran, wait_for_exit};
use crate::support::model_or_skip;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

/// A running server on a machine of its own.
pub struct Server {
    pub machine: Machine,
    pub child: Child,
    pub address: String,
    pub token: String,
}

/// A response over HTTP.
#[derive(Debug)]
pub struct Response {
    pub status: u16,
    pub head: String,
    pub body: String,
}

impl Response {
    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|e| panic!("{e}: {self:#?}"))
    }

    fn read(stream: &mut impl Read) -> Self {
        let mut bytes = Vec::new();
        // a connection that breaks after the answer is no error
        let _ = stream.read_to_end(&mut bytes);
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
        let status = head.split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap_or(0);
        let chunked = head.to_lowercase().contains("transfer-encoding: chunked");
        let body = if chunked { decode_chunks(body) } else { body.to_owned() };
        Self { status, head: head.to_lowercase(), body }
    }

    /// Parses the events of a stream: name, cursor, document.
    fn events(&self) -> Vec<(String, String, Value)> {
        let field = |event: &str, name: &str| {
            let line = event.lines().find_map(|line| line.strip_prefix(name));
            line.unwrap_or_default().to_owned()
        };
        let all = self.body.split("\n\n").filter(|event| event.starts_with("event: "));
        all.map(|event| {
            let data = serde_json::from_str(&field(event, "data: ")).unwrap();
            (field(event, "event: "), field(event, "id: "), data)
        })
        .collect()
    }
}

/// Decodes a chunked body, without an incomplete last chunk.
fn decode_chunks(text: &str) -> String {
    let (mut rest, mut whole) = (text, String::new());
    while let Some((size, after)) = rest.split_once("\r\n") {
        let Ok(size @ 1..) = usize::from_str_radix(size, 16) else { break };
        let Some(chunk) = after.get(..size) else { break };
        whole.push_str(chunk);
        rest = after[size..].trim_start_matches("\r\n");
    }
    whole
}

impl Server {
    pub fn start(rules: Value, args: &[&str]) -> Self {
        Self::on(Machine::new(), rules, args)
    }

    pub fn on(machine: Machine, rules: Value, args: &[&str]) -> Self {
        let model = machine.model(rules);
        Self::with_model(machine, &model, None, args)
    }

    /// Starts a server that also has the models of a folder.
    pub fn with_models_of(machine: Machine, rules: Value, models: &Path) -> Self {
        let model = machine.model(rules);
        Self::with_model(machine, &model, Some(models), &["--port", "0"])
    }

    /// Starts a server on the real model; `None`, with a printed reason, if it is absent or this is a debug build.
    fn real() -> Option<Self> {
        let mut path = model_or_skip("model")?;
        if cfg!(debug_assertions) {
            println!("skipped: without optimisation the model takes minutes (`cargo test --release` has this test)");
            return None;
        }
        let path = Ran::of(path.args(["path", "qwen2.5-coder-1.5b"]).output().unwrap()).out;
        Some(Self::with_model(Machine::new(), path.trim_end(), None, &["--port", "0"]))
    }

    fn with_model(machine: Machine, model: &str, models: Option<&Path>, args: &[&str]) -> Self {
        let mut caro = machine.caro(&[&["serve"], args].concat());
        caro.envs(models.map(|folder| ("CARO_MODELS_DIR", folder)));
        let log = std::fs::File::create(machine.path("log")).unwrap();
        let mut child = caro.env("CARO_MODEL", model).stdout(Stdio::piped()).stderr(log).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        let token = machine.run(&["serve", "token"]).out.trim().to_owned();
        let address = line.trim().trim_start_matches("http://").to_owned();
        let server = Self { machine, child, address, token };
        assert!(!line.is_empty(), "{}", server.log());
        server.until_ready();
        server
    }

    fn until_ready(&self) {
        let begun = Instant::now();
        while !self.address.starts_with('/') && self.send("GET", "/ready", &[], "").status != 200 {
            assert!(begun.elapsed() < AMPLE, "{}", self.log());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    pub fn log(&self) -> String {
        std::fs::read_to_string(self.machine.path("log")).unwrap()
    }

    pub fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(AMPLE)).unwrap();
        stream
    }

    /// The head of a request. Its host is the server's own if `headers` has none.
    fn head(&self, method: &str, path: &str, headers: &[(&str, &str)]) -> String {
        let mut head = format!("{method} {path} HTTP/1.1\r\nConnection: close\r\n");
        if !headers.iter().any(|(name, _)| *name == "Host") {
            head += &format!("Host: {}\r\n", self.address);
        }
        headers.iter().for_each(|(name, value)| head += &format!("{name}: {value}\r\n"));
        head
    }

    /// Sends a request without reading the response.
    fn open(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> TcpStream {
        let mut stream = self.connect();
        let head = self.head(method, path, headers);
        write!(stream, "{head}Content-Length: {}\r\n\r\n{body}", body.len()).unwrap();
        stream
    }

    /// Sends a request without the token, and reads the response.
    pub fn send(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Response {
        Response::read(&mut self.open(method, path, headers, body))
    }

    fn bearer(&self) -> String {
        format!("Bearer {}", self.token)
    }

    pub fn get(&self, path: &str) -> Response {
        self.send("GET", path, &[("Authorization", &self.bearer())], "")
    }

    pub fn post(&self, path: &str, body: Value) -> Response {
        self.send("POST", path, &[("Authorization", &self.bearer())], &body.to_string())
    }

    /// Sends a request with the token, whose response is read piece by piece.
    pub fn begin(&self, path: &str, body: Value) -> TcpStream {
        self.open("POST", path, &[("Authorization", &self.bearer())], &body.to_string())
    }

    pub fn signal(&self, name: &str) {
        let pid = self.child.id().to_string();
        assert!(std::process::Command::new("kill").args([name, &pid]).status().unwrap().success());
    }

    /// Waits for the end of the server, and returns the exit code.
    pub fn wait_for_exit(&mut self) -> Option<i32> {
        let status = wait_for_exit(&mut self.child);
        status.unwrap_or_else(|| panic!("{}", self.log())).code()
    }

    /// Waits until this many requests are in progress, not counting the one that asks.
    pub fn until_active(&self, count: u64) {
        let begun = Instant::now();
        while self.get("/metrics").json()["server"]["active"] != json!(count + 1) {
            assert!(begun.elapsed() < AMPLE, "{}", self.get("/metrics").body);
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Waits until the model works on this many answers.
    pub fn until_answering(&self, count: u64) {
        let begun = Instant::now();
        while self.get("/metrics").json()["server"]["answers"]["under_way"] != count {
            assert!(begun.elapsed() < AMPLE, "{}", self.get("/metrics").body);
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // it may have ended already
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The rules of a run that counts errors and answers.
pub fn counts() -> Value {
    let count = step("count", &[("shell", json!({"command": "grep -c ERROR logs/app.log"}))]);
    by_step(&[count, answer("There are 2 errors.")])
}

/// Reads a stream until it contains `word`, and returns the text so far.
fn read_until(stream: &mut TcpStream, word: &str) -> String {
    let (mut text, mut piece) = (String::new(), [0; 4096]);
    while !text.contains(word) {
        let count = stream.read(&mut piece).unwrap();
        assert!(count > 0, "the stream ended without {word}: {text}");
        text += &String::from_utf8_lossy(&piece[..count]);
    }
    text
}

#[test]
fn a_command_is_the_document_of_the_command_line() {
    let rules = json!([{"match": "list files", "reply": "ls -l"}, {"reply": "pwd"}]);
    let machine = Machine::new();
    // on a busy machine a manual may come too late for one of the two answers
    machine.run(&["manual", "warm", "ls", "pwd"]);
    let server = Server::on(machine, rules.clone(), &["--port", "0"]);
    let asked = json!({"request": "list files", "shell": "bash"});
    let answered = server.post("/v1/command", asked.clone());
    assert_eq!(answered.status, 200, "{answered:#?}");
    let typed = server.machine.ask(rules, &["--json", "--shell", "bash", "list files"]).json();
    let without_time = |mut document: Value| {
        document.as_object_mut().unwrap().remove("timing");
        document
    };
    assert_eq!(without_time(answered.json()), without_time(typed));
    let streamed = server.send(
        "POST",
        "/v1/command",
        &[("Authorization", &server.bearer()), ("Accept", "text/event-stream")],
        &asked.to_string(),
    );
    assert!(streamed.head.contains("content-type: text/event-stream"), "{streamed:#?}");
    let events = streamed.events();
    let names: Vec<&str> = events.iter().map(|(name, ..)| name.as_str()).collect();
    assert!(names.len() > 1 && names[..names.len() - 1].iter().all(|name| *name == "stage"), "{names:?}");
    assert_eq!(names.last(), Some(&"complete"));
    assert_eq!(events.last().unwrap().2["cmd"], "ls -l");
    for (path, body, verb) in [
        ("/v1/check", json!({"command": "rm -rf /", "shell": "bash"}), "check"),
        ("/v1/explain", json!({"command": "rm -rf /", "shell": "bash"}), "explain"),
    ] {
        let served = server.post(path, body).json();
        let typed = server.machine.run(&[verb, "rm -rf /", "--json", "--shell", "bash"]);
        assert_eq!(served, typed.json(), "{path}");
    }
    for (body, status) in [
        ("{", 400),
        ("{}", 422),
        (r#"{"request": " "}"#, 422),
        (r#"{"request": "x", "target": "amiga"}"#, 422),
        (r#"{"request": "x", "cwd": "relative"}"#, 422),
        (r#"{"request": "x", "mood": 1}"#, 422),
    ] {
        let refused = server.send("POST", "/v1/command", &[("Authorization", &server.bearer())], body);
        assert_eq!(refused.status, status, "{body}: {refused:#?}");
        let document = refused.json();
        assert!(document["error"].is_string() && document["message"].is_string(), "{document}");
        assert!(document.get("detail").is_some());
    }
}

#[test]
fn a_run_is_streamed_and_can_be_read_again_from_any_cursor() {
    let server = Server::start(counts(), &["--port", "0"]);
    std::fs::create_dir(server.machine.path("work/logs")).unwrap();
    server.machine.write("work/logs/app.log", "ERROR one\nfine\nERROR two\n");
    let ran = server.post("/run", json!({"query": "count the errors in logs/app.log", "session_id": "s"}));
    let events = ran.events();
    let names: Vec<&str> = events.iter().map(|(name, ..)| name.as_str()).collect();
    assert_eq!((names[0], names[1]), ("session", "agent_start"), "{names:?}");
    assert_eq!(names[names.len() - 3..], ["agent_end", "complete", "session"], "{names:?}");
    let run = events[0].2["run_id"].as_str().unwrap();
    assert_eq!((&events[0].2["status"], &events.last().unwrap().2["status"]), (&json!("started"), &json!("ended")));
    let report = &events[events.len() - 2].2;
    assert_eq!((&report["response"], &report["session_id"]), (&json!("There are 2 errors."), &json!("s")));
    assert_eq!(report["run_id"], run);
    let cursors: Vec<&str> = events.iter().map(|(_, id, _)| id.as_str()).filter(|id| !id.is_empty()).collect();
    let wanted: Vec<String> = (1..=cursors.len()).map(|number| format!("{run}-{number}")).collect();
    assert_eq!(cursors, wanted, "no gap, no duplicate");
    // a client that reconnects at any event of the first run also follows the second run of the session
    let (middle, total) = (cursors.len() / 2, cursors.len());
    let headers = [("Authorization", server.bearer()), ("Last-Event-ID", cursors[middle - 1].to_owned())];
    let headers: Vec<(&str, &str)> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let mut follower = server.open("GET", "/events/s", &headers, "");
    let second =
        server.post("/run/sync", json!({"query": "count the errors in logs/app.log again", "session_id": "s"})).json();
    let other = second["run_id"].as_str().unwrap();
    let mut text = read_until(&mut follower, "event: agent_end\n");
    while text.matches("event: agent_end\n").count() < 2 {
        text += &read_until(&mut follower, "event: agent_end\n");
    }
    let seen: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("id: ")).collect();
    let of_first: Vec<&str> = seen.iter().copied().filter(|id| id.starts_with(run)).collect();
    assert_eq!(of_first, cursors[middle..total]);
    let of_second: Vec<&str> = seen.iter().copied().filter(|id| id.starts_with(other)).collect();
    let wanted: Vec<String> = (1..=of_second.len()).map(|number| format!("{other}-{number}")).collect();
    assert_eq!(of_second, wanted);
    // the same events as lists
    let list = server.get("/events/s/list").json();
    assert_eq!(list["count"], json!(total + of_second.len()));
    let list = server.get(&format!("/events/s/list?run_id={run}&limit=2")).json();
    assert_eq!((list["count"].as_u64(), &list["events"][1]["event_type"]), (Some(2), &json!("agent_end")));
    let trace = server.get("/events/s/trace").json();
    assert_eq!((&trace["summary"]["runs"], &trace["summary"]["tool_calls"]), (&json!(2), &json!(2)), "{trace:#}");
    assert_eq!(trace["steps"][0]["calls"][0]["input"]["tool"], "shell");
    let latest = server.get("/events/s/trace?limit=1").json();
    assert_eq!(
        (&latest["count"], &latest["total"], &latest["summary"]),
        (&json!(1), &trace["count"], &trace["summary"])
    );
    assert_eq!(latest["steps"][0], *trace["steps"].as_array().unwrap().last().unwrap());
    let history = server.get("/sessions/s/history").json();
    assert_eq!((&history["count"], &history["messages"][1]["content"]), (&json!(4), &json!("There are 2 errors.")));
    assert_eq!(server.get("/sessions").json()["sessions"][0]["session_id"], "s");
    let wrong = [("Authorization", server.bearer()), ("Last-Event-ID", "run_0-3".to_owned())];
    let wrong: Vec<(&str, &str)> = wrong.iter().map(|(name, value)| (*name, value.as_str())).collect();
    assert_eq!(server.send("GET", "/events/s", &wrong, "").status, 422);
    assert_eq!(server.send("DELETE", "/sessions/s", &[("Authorization", &server.bearer())], "").status, 200);
    for path in ["/sessions/s/history", "/events/s/list", "/events/s/trace", "/sessions/x/history"] {
        assert_eq!(server.get(path).status, 404, "{path}");
    }
}

#[test]
fn an_approval_request_of_a_run_is_answered_or_times_out() {
    let write = step("write", &[("write", json!({"path": "report.md", "content": "2 errors"}))]);
    let server = Server::start(by_step(&[write, answer("written")]), &["--port", "0"]);
    let report = server.machine.path("work/report.md");
    let mut run = server.begin("/run", json!({"query": "write `2 errors` to report.md", "session_id": "s"}));
    let text = read_until(&mut run, "event: approval_request");
    let id = text.split("\"run_id\":\"").nth(1).unwrap().split('"').next().unwrap().to_owned();
    let path = format!("/runs/{id}/approve");
    let begun = Instant::now();
    loop {
        // the event is sent a moment before the run waits for the answer
        let approved = server.post(&path, json!({"decision": "yes"}));
        if approved.status == 200 {
            assert_eq!(approved.json()["approved"], true);
            break;
        }
        assert!(approved.status == 409 && begun.elapsed() < AMPLE, "{approved:#?}");
    }
    read_until(&mut run, "\"status\":\"ended\"");
    assert_eq!(std::fs::read_to_string(&report).unwrap(), "2 errors\n");
    std::fs::remove_file(&report).unwrap();
    assert_eq!(server.post(&path, json!({"decision": "yes"})).status, 404, "the run has ended");
    assert_eq!(server.post(&path, json!({"decision": "perhaps"})).status, 422);
    // without an answer the call is denied
    let refused = server.post("/run", json!({"query": "write `2 errors` to report.md", "approval_timeout": 0.1}));
    let names: Vec<String> = refused.events().into_iter().map(|(name, ..)| name).collect();
    assert!(names.contains(&"approval_denied".to_owned()), "{names:?}");
    assert!(!report.exists());
}

#[test]
fn invalid_settings_stop_serve_and_no_other_verb() {
    let machine = Machine::new();
    for (name, value) in [
        ("CARO_SERVE_PORT", "x"),
        ("CARO_SERVE_HOST", "a b"),
        ("CARO_SERVE_TIMEOUT", "soon"),
        ("CARO_SERVE_RATE_LIMIT", "0"),
        ("CARO_SERVE_CORS_ORIGINS", "*"),
    ] {
        let ran = Ran::of(machine.caro(&["serve"]).env(name, value).output().unwrap());
        ran.fails(2, &[name, "must be"]);
        let other = Ran::of(machine.caro(&["check", "ls"]).env(name, value).output().unwrap());
        assert_eq!(other.code, Some(0), "{other:#?}");
    }
    machine.write("config.toml", "[serve]\nport = 70000\n");
    machine.run(&["serve"]).fails(2, &["config.toml:2", "a port from 0 to 65535"]);
    machine.write("config.toml", "[serve]\nprot = 1\n");
    machine.run(&["serve"]).fails(2, &["there is no setting `serve.prot`"]);
    machine.write("config.toml", "");
    let token = machine.run(&["serve", "token"]);
    assert_eq!((token.code, machine.run(&["serve", "token"]).out == token.out), (Some(0), true));
    let unit = machine.run(&["serve", "--print-service", "systemd", "--port", "9000"]);
    assert!(unit.out.contains("ExecStart=\"") && unit.out.contains("\"serve\" \"--port\" \"9000\""), "{unit:#?}");
    let plist = machine.run(&["serve", "--print-service", "launchd"]);
    assert!(plist.out.contains("<string>serve</string>"), "{plist:#?}");
    // the address is the sign that it has started
    let unknown = machine.run(&["serve", "--port", "0", "--model", "nope"]);
    unknown.fails(2, &["nope"]);
    assert_eq!(unknown.out, "");
}

#[test]
fn a_service_finds_the_settings_and_files_of_the_call() {
    let machine = Machine::new();
    let model = machine.path("work").canonicalize().unwrap().join("here.json");
    std::fs::write(&model, json!({"rules": []}).to_string()).unwrap();
    let mut caro = machine.caro(&["serve", "--quiet", "--model", "script:here.json", "--print-service", "systemd"]);
    let data = machine.path("own data");
    caro.env("CARO_SERVE_PORT", "9001").env("XDG_DATA_HOME", &data).env("CARO_API_KEY", "s3cret");
    caro.env("CARO_MEMORY_URL", "redis://:s3cret@localhost");
    let unit = Ran::of(caro.output().unwrap());
    for part in [
        format!("\"--model\" \"script:{}\"", model.display()),
        "\"--quiet\"".into(),
        "Environment=\"CARO_SERVE_PORT=9001\"\n".into(),
        format!("Environment=\"XDG_DATA_HOME={}\"\n", data.display()),
    ] {
        assert!(unit.out.contains(&part), "{part}\n{unit:#?}");
    }
    assert!(!unit.out.contains("s3cret"), "{unit:#?}");
}

#[test]
fn on_sigterm_running_requests_finish_and_new_ones_are_refused() {
    let slow = json!({"match": "slowly", "reply": "echo one two three four five six", "delay_ms": 1000});
    let rules = json!([slow, {"reply": "ls"}]);
    let mut server = Server::start(rules, &["--port", "0"]);
    let mut slow = server.begin("/v1/command", json!({"request": "say the numbers slowly"}));
    server.until_active(1);
    // new connections are accepted until the end
    server.signal("-TERM");
    let begun = Instant::now();
    loop {
        let refused = server.post("/v1/command", json!({"request": "list files"}));
        if refused.status == 503 {
            assert_eq!(refused.json()["error"], "draining");
            break;
        }
        assert!(begun.elapsed() < AMPLE, "{refused:#?}");
    }
    assert_eq!(server.send("GET", "/ready", &[], "").status, 503);
    let answered = Response::read(&mut slow);
    assert_eq!((answered.status, &answered.json()["cmd"]), (200, &json!("echo one two three four five six")));
    assert_eq!(server.wait_for_exit(), Some(0), "{}", server.log());
}

#[test]
fn answers_time_out_and_clients_have_a_rate_limit() {
    let rules = json!([
        {"match": "say the letters", "reply": answer("a b c d e f g h"), "delay_ms": 400},
        {"reply": "echo one two three four five six", "delay_ms": 400}
    ]);
    let server = Server::start(rules, &["--port", "0", "--timeout", "0.4", "--rate-limit", "4/60"]);
    let late = server.post("/v1/command", json!({"request": "say the numbers"}));
    assert_eq!((late.status, &late.json()["error"]), (504, &json!("timeout")), "{late:#?}");
    let late = server.post("/run/sync", json!({"query": "say the letters"}));
    assert_eq!(late.status, 504, "{late:#?}");
    let streamed = server.post("/run", json!({"query": "say the letters"})).events();
    let names: Vec<&str> = streamed.iter().map(|(name, ..)| name.as_str()).collect();
    assert_eq!(names[names.len() - 2..], ["error", "session"], "{names:?}");
    assert_eq!(server.get("/tools").status, 200);
    let refused = server.get("/tools");
    assert_eq!(refused.status, 429);
    assert!(refused.head.contains("retry-after: ") && refused.head.contains("x-ratelimit-limit: 4"), "{refused:#?}");
    // requests without the token have a rate of their own
    let statuses: Vec<u16> = (0..5).map(|_| server.send("GET", "/tools", &[], "").status).collect();
    assert_eq!(statuses, [401, 401, 401, 401, 429]);
    assert_eq!(server.send("GET", "/health", &[], "").status, 200, "open routes have no limit");
}

#[test]
fn a_client_that_disconnects_frees_its_place() {
    let slow = json!({"match": "slowly", "reply": "echo a b c d e f g h i j k l m n o p q r s t", "delay_ms": 2000});
    let server = Server::start(json!([slow, {"reply": "ls"}]), &["--port", "0"]);
    let gone: Vec<TcpStream> =
        (0..8).map(|_| server.begin("/v1/command", json!({"request": "say the letters slowly"}))).collect();
    server.until_active(8);
    drop(gone);
    let begun = Instant::now();
    let answered = server.post("/v1/command", json!({"request": "list files"}));
    assert_eq!((answered.status, &answered.json()["cmd"]), (200, &json!("ls")));
    assert!(begun.elapsed() < Duration::from_secs(15), "eight slow answers would take minutes");
    server.until_active(0);
    let mut run = server.begin("/run", json!({"query": "say the letters slowly", "session_id": "s"}));
    // a run that its client leaves before it begins leaves no session
    read_until(&mut run, "event: agent_start");
    drop(run);
    server.until_active(0);
    let begun = Instant::now();
    while server.get("/sessions").json()["sessions"][0]["status"] != "stopped" {
        assert!(begun.elapsed() < AMPLE, "the run goes on");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn a_socket_file_is_private_and_removed_with_the_server() {
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::net::UnixStream;
    let machine = Machine::new();
    let path = machine.path("s.sock");
    let name = path.display().to_string();
    let mut server = Server::on(machine, json!([{"reply": "ls"}]), &["--socket", &name]);
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    let ask = |request: &str| {
        let mut stream = UnixStream::connect(&path).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        Response::read(&mut stream)
    };
    let begun = Instant::now();
    while ask("GET /ready HTTP/1.1\r\nHost: caro\r\nConnection: close\r\n\r\n").status != 200 {
        assert!(begun.elapsed() < AMPLE, "{}", server.log());
        std::thread::sleep(Duration::from_millis(20));
    }
    let tools =
        format!("GET /tools HTTP/1.1\r\nHost: caro\r\nConnection: close\r\nAuthorization: {}\r\n\r\n", server.bearer());
    assert_eq!((ask(&tools).status, ask(&tools.replace("Bearer ", "Bearer x")).status), (200, 401));
    let second = Ran::of(server.machine.caro(&["serve", "--socket", &name]).output().unwrap());
    second.fails(2, &["nothing can listen at"]);
    server.signal("-INT");
    assert_eq!(server.wait_for_exit(), Some(0));
    assert!(!path.exists());
}

#[test]
fn tools_tasks_and_counters_are_listed() {
    let machine = Machine::new();
    machine.run(&["task", "add", "--at", "2020-01-01", "--name", "once", "say hello to everybody"]);
    let server = Server::on(machine, json!([{"reply": answer("hello, everybody")}]), &["--port", "0"]);
    let tools = server.get("/tools").json();
    let first = &tools["tools"][0];
    assert!(tools["total"].as_u64().unwrap() > 5 && first["inputSchema"]["type"] == "object", "{tools:#}");
    let models = server.get("/v1/models").json();
    assert!(models["data"][0]["id"].as_str().is_some_and(|id| !id.is_empty()), "{models:#}");
    assert_eq!(server.get("/v1/models/another").status, 404);
    assert_eq!(server.get("/background/tasks").json()["tasks"][0]["name"], "once");
    let begun = Instant::now();
    // it was due when the server started
    while server.get("/background/runs?task=once").json()["runs"][0]["state"] != "completed" {
        assert!(begun.elapsed() < AMPLE, "{}", server.get("/background/runs").body);
        std::thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(server.get("/background/runs?task=x").status, 404);
    let text = server.send("GET", "/prometheus", &[], "").body;
    assert!(text.contains("caro_path_requests_total{method=\"GET\",path=\"/tools\",outcome=\"success\"} 1"), "{text}");
    let health = server.send("GET", "/health", &[], "").json();
    assert_eq!((&health["status"], &health["agent_name"]), (&json!("ok"), &json!("agent")));
    let named = server.send("GET", "/health", &[("X-Request-Id", "mine-1")], "");
    assert!(named.head.contains("x-request-id: mine-1"));
    let page = server.send("GET", "/", &[], "");
    assert!(page.head.contains("content-security-policy: default-src 'none'") && page.body.contains("<h1>caro</h1>"));
}

#[test]
fn the_real_model_answers_chats_and_requests_in_parallel() {
    let Some(server) = Server::real() else { return };
    let ask = |question: &str| {
        let messages = json!([{"role": "user", "content": question}]);
        server.post("/v1/chat/completions", json!({"messages": messages, "max_tokens": 40, "temperature": 0})).json()
    };
    let answers = std::thread::scope(|scope| {
        let asked = ["France", "Italy", "Spain"]
            .map(|country| scope.spawn(move || ask(&format!("What is the capital of {country}? One word."))));
        let command = scope.spawn(|| server.post("/v1/command", json!({"request": "list all files here"})).json());
        let answers = asked.map(|asking| asking.join().unwrap());
        assert!(command.join().unwrap()["cmd"].as_str().unwrap().starts_with("ls"));
        answers
    });
    for (answer, capital) in answers.iter().zip(["Paris", "Rome", "Madrid"]) {
        assert!(answer["choices"][0]["message"]["content"].as_str().unwrap().contains(capital), "{answer:#}");
        assert!(answer["usage"]["prompt_tokens"].as_u64().unwrap() > 10, "{answer:#}");
    }
    let weather = json!({"type": "function", "function": {"name": "weather", "description": "Tells the weather of a city.",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}}});
    let called = server.post(
        "/v1/chat/completions",
        json!({"messages": [{"role": "user", "content": "Is it raining in Oslo?"}], "tools": [weather], "tool_choice": "required",
            "temperature": 0}),
    );
    let choice = &called.json()["choices"][0];
    assert_eq!(choice["finish_reason"], "tool_calls", "{choice:#}");
    let arguments = choice["message"]["tool_calls"][0]["function"]["arguments"].as_str().unwrap();
    assert_eq!(serde_json::from_str::<Value>(arguments).unwrap(), json!({"city": "Oslo"}));
}
