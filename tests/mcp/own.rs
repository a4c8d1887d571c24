//! Tests caro as an MCP server over stdio: the real process on a scripted model, and caro's own client against it.

use super::Bench;
use crate::agent::{answer, by_step, step};
use crate::machine::{AMPLE, Machine, Ran, feed};
use caro::agent::mcp::{Config, Origin, Reach};
use caro::agent::tool::ToolError;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Instant;

/// A running `caro mcp serve`, driven line by line.
struct Peer {
    machine: Machine,
    child: Child,
    input: Option<ChildStdin>,
    output: Receiver<String>,
}

impl Peer {
    fn start(rules: Value, args: &[&str]) -> Self {
        let machine = Machine::new();
        let mut caro = machine.caro(&[&["mcp", "serve"], args].concat());
        caro.env("CARO_MODEL", machine.model(rules)).stdin(Stdio::piped()).stdout(Stdio::piped());
        caro.stderr(std::fs::File::create(machine.path("log")).unwrap());
        let mut child = caro.spawn().unwrap();
        let (sender, output) = channel();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        std::thread::spawn(move || lines.map_while(Result::ok).for_each(|line| drop(sender.send(line))));
        let mut peer = Self { input: child.stdin.take(), machine, child, output };
        let hello =
            peer.ask(json!("hello"), "initialize", json!({"protocolVersion": "2025-06-18", "capabilities": {}}));
        assert_eq!(hello["result"]["protocolVersion"], "2025-06-18", "{hello}");
        peer.send(json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        peer
    }

    fn send(&mut self, message: Value) {
        writeln!(self.input.as_mut().unwrap(), "{message}").unwrap();
    }

    /// Receives the next message; asserts that every line of the process is one.
    #[track_caller]
    fn receive(&self) -> Value {
        let line = self.output.recv_timeout(AMPLE).unwrap_or_else(|_| panic!("no message: {}", self.log()));
        let message: Value = serde_json::from_str(&line).unwrap_or_else(|e| panic!("{e}: {line}"));
        assert_eq!(message["jsonrpc"], "2.0", "{message}");
        message
    }

    /// Receives the answer to this id; skips the messages before it.
    fn receive_answer(&self, id: &Value) -> Value {
        loop {
            let message = self.receive();
            if message["id"] == *id {
                return message;
            }
        }
    }

    fn ask(&mut self, id: Value, method: &str, params: Value) -> Value {
        self.send(json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        self.receive_answer(&id)
    }

    /// Calls a tool and returns its result.
    fn call(&mut self, tool: &str, arguments: Value) -> Value {
        self.ask(json!(tool), "tools/call", json!({"name": tool, "arguments": arguments}))["result"].clone()
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.machine.path("log")).unwrap_or_default()
    }

    /// Closes the input, waits for the end and returns the exit code.
    fn end(&mut self) -> Option<i32> {
        drop(self.input.take());
        self.wait_for_exit()
    }

    fn wait_for_exit(&mut self) -> Option<i32> {
        let begun = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status.code();
            }
            assert!(begun.elapsed() < AMPLE, "{}", self.log());
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        // it may have ended already
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn files() -> Value {
    json!([{"match": "list files", "reply": "ls -l"}, {"reply": "pwd"}])
}

/// Returns the text of a failed call; asserts that it says what to do next.
#[track_caller]
fn error_text(result: &Value) -> String {
    assert_eq!(result["isError"], true, "{result}");
    let text = result["content"][0]["text"].as_str().unwrap();
    let (_, next) = text.split_once("\nWhat to do next: ").unwrap_or_else(|| panic!("{text}"));
    assert!(next.len() > 8, "{text}");
    text.to_owned()
}

#[test]
fn the_tools_return_the_documents_of_the_command_line() {
    let mut peer = Peer::start(files(), &[]);
    let listed = peer.ask(json!(1), "tools/list", json!({}))["result"]["tools"].clone();
    let names: Vec<&str> = listed.as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["generate_command", "check_command", "explain_command", "search_manual"]);
    let made = peer.call("generate_command", json!({"request": "list files", "shell": "bash"}));
    assert_eq!((&made["isError"], &made["structuredContent"]["cmd"]), (&json!(false), &json!("ls -l")), "{made}");
    let as_text: Value = serde_json::from_str(made["content"][0]["text"].as_str().unwrap()).unwrap();
    assert_eq!(as_text, made["structuredContent"]);
    let dangerous = json!({"command": "rm -rf /", "shell": "bash"});
    for (tool, verb) in [("check_command", "check"), ("explain_command", "explain")] {
        let served = peer.call(tool, dangerous.clone());
        let typed = peer.machine.run(&[verb, "rm -rf /", "--json", "--shell", "bash"]).json();
        assert_eq!(served["structuredContent"], typed, "{tool}");
    }
    let found = peer.call("search_manual", json!({"program": "ls", "query": "sort by size", "limit": 3}));
    let hits = found["structuredContent"]["hits"].as_array().unwrap();
    assert!(hits.len() <= 3 && hits.iter().any(|hit| hit["option"].as_str().unwrap().contains("-S")), "{found}");
    // a manual that was read before is found without the program's name
    let again = peer.call("search_manual", json!({"query": "sort by size"}));
    assert_eq!(again["structuredContent"]["hits"][0]["command"], "ls", "{again}");
    // each result has all members that its schema requires
    let results = [
        ("generate_command", made),
        ("check_command", peer.call("check_command", dangerous)),
        ("search_manual", found),
    ];
    for (name, result) in results {
        let tool = listed.as_array().unwrap().iter().find(|tool| tool["name"] == name).unwrap();
        for member in tool["outputSchema"]["required"].as_array().unwrap() {
            assert!(result["structuredContent"].get(member.as_str().unwrap()).is_some(), "{name} without {member}");
        }
    }
    assert_eq!(peer.end(), Some(0), "{}", peer.log());
}

#[test]
fn a_tool_that_fails_says_what_to_do_next() {
    let mut peer = Peer::start(json!([{"reply": ""}]), &[]);
    for (tool, arguments, word) in [
        ("generate_command", json!({}), "missing field `request`"),
        ("generate_command", json!({"request": " "}), "request"),
        ("generate_command", json!({"request": 3}), "do not fit"),
        ("generate_command", json!({"request": "list files", "target": "amiga"}), "`target` must be"),
        ("generate_command", json!({"request": "list files", "cwd": "relative"}), "`cwd` must be"),
        ("generate_command", json!({"request": "list files"}), ""),
        ("check_command", json!({"command": ""}), "there is no command"),
        ("check_command", json!({"command": "x".repeat(100_000)}), "bytes"),
        ("check_command", json!({"command": "ls", "mood": 1}), "unknown field `mood`"),
        ("explain_command", json!({"command": "ls", "shell": "tcsh"}), "`shell` must be"),
        ("search_manual", json!({"query": " "}), "a few words"),
        ("search_manual", json!({"query": "x", "limit": 0}), "from 1 to 100"),
        ("search_manual", json!({"query": "x", "program": "no-such-program"}), "no program called no-such-program"),
        ("search_manual", json!({"query": "x", "program": ""}), "no program"),
    ] {
        let text = error_text(&peer.call(tool, arguments.clone()));
        assert!(text.contains(word), "{tool} {arguments}: {text}");
    }
    // the server goes on
    assert_eq!(peer.ask(json!(9), "ping", json!({}))["result"], json!({}));
    assert_eq!(peer.end(), Some(0));
}

#[test]
fn calls_run_in_parallel_and_stop_when_cancelled() {
    let slow = json!({"match": "slowly", "reply": "echo a b c d e f g h i j k l m n o p q r s t", "delay_ms": 2000});
    let mut peer = Peer::start(json!([slow, {"reply": "ls"}]), &[]);
    let begun = Instant::now();
    peer.send(json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
        "name": "generate_command", "arguments": {"request": "say the letters slowly"}, "_meta": {"progressToken": "p"}
    }}));
    // it reports its progress, so it is running
    let progress = peer.receive();
    assert_eq!(
        (&progress["method"], &progress["params"]["progressToken"]),
        (&json!("notifications/progress"), &json!("p")),
        "{progress}"
    );
    assert_eq!(peer.call("check_command", json!({"command": "ls"}))["isError"], false);
    peer.send(json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}));
    let made = peer.call("generate_command", json!({"request": "list files"}));
    assert_eq!(made["structuredContent"]["cmd"], "ls");
    assert_eq!(peer.end(), Some(0), "{}", peer.log());
    assert!(begun.elapsed().as_secs() < 30, "twenty slow words would take longer: {:?}", begun.elapsed());
    let rest: Vec<String> = peer.output.iter().collect();
    assert!(rest.iter().all(|line| !line.contains("\"id\":1,")), "a cancelled call has no answer: {rest:?}");
}

#[test]
fn requests_before_the_end_of_input_are_answered() {
    let machine = Machine::new();
    let mut caro = machine.caro(&["mcp", "serve"]);
    caro.env("CARO_MODEL", machine.model(files()));
    let request =
        |id: u64, method: &str, params: Value| json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
    let mut input = vec![request(0, "initialize", json!({"protocolVersion": "2025-11-25"})).to_string()];
    let call = json!({"name": "generate_command", "arguments": {"request": "list files"}});
    input.extend((1..=3).map(|id| request(id, "tools/call", call.clone()).to_string()));
    input.extend(["{".into(), "[".repeat(10_000), "\u{0}".into(), "x".repeat(5 << 20)]);
    let ran: Ran = feed(caro, input.join("\n").as_bytes());
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    let messages: Vec<Value> = ran.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    for id in 0..=3 {
        assert!(messages.iter().any(|message| message["id"] == id && message["result"].is_object()), "{ran:#?}");
    }
    assert_eq!(messages.iter().filter(|message| message["error"]["code"] == -32700).count(), 4, "{ran:#?}");
}

#[test]
fn a_missing_model_affects_no_other_tool() {
    let mut peer = Peer::start(files(), &["--model", "/no/such/file.gguf"]);
    assert_eq!(peer.call("check_command", json!({"command": "ls"}))["isError"], false);
    let text = error_text(&peer.call("generate_command", json!({"request": "list files"})));
    assert!(text.contains("/no/such/file.gguf"), "{text}");
    assert_eq!(peer.call("explain_command", json!({"command": "ls -l"}))["isError"], false);
    assert_eq!(peer.end(), Some(0));
}

#[test]
fn the_server_ends_on_sigterm() {
    let mut peer = Peer::start(json!([{"reply": "echo a b c", "delay_ms": 5000}]), &[]);
    peer.send(json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
        "name": "generate_command", "arguments": {"request": "say the letters"}
    }}));
    let pid = peer.child.id().to_string();
    assert!(std::process::Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
    assert_eq!(peer.wait_for_exit(), Some(0), "{}", peer.log());
}

#[test]
fn the_server_ends_on_sigterm_though_its_client_never_reads() {
    let machine = Machine::new();
    let mut caro = machine.caro(&["mcp", "serve"]);
    caro.env("CARO_MODEL", machine.model(files())).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let child = caro.spawn().unwrap();
    let mut peer = Peer { machine, child, input: None, output: channel().1 };
    let mut input = peer.child.stdin.take().unwrap();
    let hello = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": "2025-06-18"}});
    writeln!(input, "{hello}").unwrap();
    // once it has answered, it handles signals, however busy the machine is
    let mut unread = BufReader::new(peer.child.stdout.take().unwrap());
    unread.read_line(&mut String::new()).unwrap();
    std::thread::spawn(move || {
        let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});
        while writeln!(input, "{list}").is_ok() {}
    });
    // by then its pipe is full
    std::thread::sleep(std::time::Duration::from_secs(2));
    let pid = peer.child.id().to_string();
    assert!(std::process::Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
    assert_eq!(peer.wait_for_exit(), Some(0));
}

#[test]
fn an_agent_runs_only_if_allowed_and_calls_that_need_approval_are_denied() {
    let write = step("write", &[("write", json!({"path": "report.md", "content": "2 errors"}))]);
    let steps = by_step(&[write, answer("it could not be written")]);
    let task = json!({"task": "write `2 errors` to report.md", "session_id": "s"});
    let mut peer = Peer::start(steps.clone(), &[]);
    let refused = peer.ask(json!(1), "tools/call", json!({"name": "run_agent", "arguments": task}));
    assert_eq!(refused["error"]["code"], -32602, "{refused}");
    let mut peer = Peer::start(steps, &["--allow-agent", "--no-mcp"]);
    let params = json!({"name": "run_agent", "arguments": task, "_meta": {"progressToken": 5}});
    peer.send(json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params}));
    let mut progress = Vec::new();
    let ended = loop {
        let message = peer.receive();
        if message["id"] == 2 {
            break message["result"].clone();
        }
        progress.push(message["params"]["message"].as_str().unwrap().to_owned());
    };
    assert!(progress.iter().any(|text| text.contains("denied")), "{progress:?}");
    assert!(!peer.machine.path("work/report.md").exists(), "{ended}");
    let report = &ended["structuredContent"];
    assert_eq!(report["session_id"], "s", "{ended}");
    assert!(report["run_id"].as_str().unwrap().starts_with("run_") && report["steps"].is_u64(), "{ended}");
    // a call that only reads is made
    std::fs::write(peer.machine.path("work/a.txt"), "one\n").unwrap();
    assert_eq!(peer.end(), Some(0), "{}", peer.log());
    let count = step("count", &[("shell", json!({"command": "grep -c ERROR app.log"}))]);
    let mut peer = Peer::start(by_step(&[count, answer("There are 2 errors.")]), &["--allow-agent", "--no-mcp"]);
    peer.machine.write("work/app.log", "ERROR one\nfine\nERROR two\n");
    let ended = peer.call("run_agent", json!({"task": "count the errors in app.log"}));
    assert_eq!(ended["structuredContent"]["response"], "There are 2 errors.", "{ended}");
    assert_eq!(ended["isError"], false);
}

/// The configuration by which caro's own client starts the server on this machine.
fn client(machine: &Machine, args: &[&str]) -> Config {
    let env = machine.env().into_iter().map(|(name, value)| (name.to_owned(), value.display().to_string()));
    Config {
        name: "caro".into(),
        reach: Reach::Stdio {
            command: env!("CARGO_BIN_EXE_caro").into(),
            args: [&["mcp", "serve"], args].concat().iter().map(ToString::to_string).collect(),
            env: env.collect(),
            cwd: Some(machine.path("work")),
        },
        timeout: AMPLE,
        disabled: false,
        approved: vec!["check_command".into()],
        origin: Origin::User,
        written: Default::default(),
    }
}

#[test]
fn caros_own_client_uses_caros_own_server() {
    let machine = Machine::new();
    let model = machine.model(files());
    let bench = Bench::new(vec![client(&machine, &["--model", &model, "--allow-agent", "--no-mcp"])]);
    assert!(bench.hub.warnings().is_empty(), "{:?}", bench.hub.warnings());
    let version = env!("CARGO_PKG_VERSION");
    assert_eq!(bench.hub.standing()[0].title, format!("caro {version}"));
    let mut names = bench.names();
    names.sort_unstable();
    assert_eq!(names, ["check_command", "explain_command", "generate_command", "run_agent", "search_manual"]);
    let cx = caro::agent::tool::ToolCx { root: "/".into(), cancel: caro::model::Cancel::new(), timeout: AMPLE };
    // the annotations are understood: a read-only tool may run without approval if the user allows it, others never
    let effects = |name: &str| bench.tool(name).effects(&caro::agent::Args::new(), &cx);
    assert!(effects("check_command").is_read_only() && !effects("run_agent").is_read_only());
    assert!(bench.call("generate_command", json!({"request": "list files"})).is_ok());
    let failed = bench.call("check_command", json!({"command": ""}));
    assert!(matches!(&failed, Err(ToolError::Failed(why)) if why.contains("What to do next")), "{failed:?}");
}
