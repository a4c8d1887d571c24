//! Tests MCP servers by others, from the Python package index: one over stdio, and one of the protocol's official SDK
//! over HTTP. They are installed once into the build folder; if that fails, the tests are skipped with the reason.

use super::Bench;
use crate::machine::{Machine, Ran};
use caro::agent::mcp::{Config, Origin, Reach};
use serde_json::json;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// The packages, with fixed versions so that a later one cannot break the tests.
const PACKAGES: [&str; 2] = ["mcp-server-time==2026.10.19", "mcp==2.3.0"];

/// Installs the packages if necessary and returns their folder; `None`, with a printed reason, if that fails.
fn install_packages() -> Option<PathBuf> {
    static FOLDER: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    let folder = FOLDER.get_or_init(|| {
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("mcp-servers");
        if !folder.join("mcp_server_time").is_dir() {
            let mut pip = Command::new("python3");
            // the Python that also runs the servers
            pip.env("PATH", crate::machine::PATH);
            pip.args([
                "-m",
                "pip",
                "install",
                "--quiet",
                "--disable-pip-version-check",
                "--only-binary=:all:",
                "--target",
            ]);
            let out = pip.arg(&folder).args(PACKAGES).stdin(Stdio::null()).output().map_err(|e| e.to_string())?;
            if !out.status.success() {
                let errors = String::from_utf8_lossy(&out.stderr);
                return Err(errors.lines().last().unwrap_or("no word from pip").to_owned());
            }
        }
        Ok(folder)
    });
    if let Err(why) = folder {
        println!("skipped: {} cannot be installed: {why}", PACKAGES.join(" "));
    }
    folder.as_ref().ok().cloned()
}

/// Runs the script that users can run too.
#[test]
fn the_official_sdk_uses_caro_over_both_transports() {
    let Some(packages) = install_packages() else { return };
    let machine = Machine::new();
    let model = machine.model(json!([{"match": "list files", "reply": "ls -l"}, {"reply": "pwd"}]));
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/clients/mcp_python.py");
    let mut python = Command::new("python3");
    python.arg(script).args(["--caro", env!("CARGO_BIN_EXE_caro"), "--model", &model]);
    python.env_clear().envs(machine.env()).env("PYTHONPATH", packages).current_dir(machine.path("work"));
    let ran = Ran::of(python.output().unwrap());
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    for mode in ["stdio, legacy", "stdio, auto", "http, legacy", "http, auto"] {
        let passed = ran.out.lines().filter(|line| line.starts_with(&format!("ok     {mode}: "))).count();
        assert_eq!(passed, 11, "{mode}: {ran:#?}");
    }
}

#[test]
fn an_agent_calls_a_real_server_over_stdio() {
    let Some(packages) = install_packages() else { return };
    let machine = Machine::new();
    let entry = json!({
        "command": "python3", "args": ["-m", "mcp_server_time", "--local-timezone", "Europe/Berlin"],
        "env": {"PYTHONPATH": packages}, "autoApprove": ["convert_time", "get_current_time"]
    });
    machine.write("mcp.json", json!({"mcpServers": {"time": entry}}).to_string());
    let check = machine.run(&["mcp", "check"]);
    assert!(check.code == Some(0) && check.out.contains("\n  convert_time\n"), "{check:#?}");
    let call = r#"{"source_timezone": "Europe/Berlin", "time": "12:00", "target_timezone": "Asia/Kolkata"}"#;
    let replies = json!([
        {"match": "\nStep 2 of ", "reply": "Thought: told\nAction: answer {\"text\": \"done\"}"},
        {"reply": format!("Thought: ask\nAction: convert_time {call}")}
    ]);
    let task = "convert the time 12:00 from the timezone Europe/Berlin to the timezone Asia/Kolkata";
    // with --yes, because calls need approval if the package does not mark its tools as read-only
    let ran = machine.ask(replies, &["agent", task, "--yes", "--no-guard", "ground", "--json"]);
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    let events = machine.run(&["events", "--json"]).out;
    assert!(events.contains("Asia/Kolkata") && (events.contains("15:30") || events.contains("16:30")), "{events}");
}

/// A running server of the official SDK, killed when dropped.
struct Served(Child);

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_real_server_is_called_over_http() {
    let at = |port| Reach::Http { url: format!("http://127.0.0.1:{port}/mcp"), headers: Vec::new() };
    check_call_of_sum("streamable-http", at);
}

#[test]
fn b29_a_real_server_of_the_older_transport_is_called() {
    let at = |port| Reach::Sse { url: format!("http://127.0.0.1:{port}/sse"), headers: Vec::new() };
    check_call_of_sum("sse", at);
}

fn check_call_of_sum(transport: &str, reach: impl Fn(u16) -> Reach) {
    let Some(packages) = install_packages() else { return };
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let program = format!(
        "from mcp.server.mcpserver import MCPServer\n\
         server = MCPServer('sums')\n\
         @server.tool()\n\
         def add(a: int, b: int) -> str:\n    'Adds two numbers.'\n    return f'the sum is {{a + b}}'\n\
         server.run(transport='{transport}', host='127.0.0.1', port={port})\n"
    );
    let mut python = Command::new("python3");
    python.args(["-c", &program]).env("PATH", crate::machine::PATH).env("PYTHONPATH", &packages).stdin(Stdio::null());
    let mut running = Served(python.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
    let begun = Instant::now();
    while std::net::TcpStream::connect(("127.0.0.1", port)).is_err() {
        assert!(running.0.try_wait().unwrap().is_none(), "the SDK's server does not run");
        assert!(begun.elapsed() < Duration::from_secs(60), "the SDK's server does not listen");
        std::thread::sleep(Duration::from_millis(50));
    }
    let bench = Bench::new(vec![Config {
        name: "sums".into(),
        reach: reach(port),
        timeout: Duration::from_secs(20),
        disabled: false,
        approved: Vec::new(),
        origin: Origin::User,
        written: Default::default(),
    }]);
    assert!(bench.hub.warnings().is_empty(), "{:?}", bench.hub.warnings());
    assert_eq!(bench.tool("add").spec().parameters["properties"]["a"]["type"], "integer");
    assert_eq!(bench.call("add", json!({"a": 20, "b": 22})).unwrap(), format!("Raw({} bytes)", "the sum is 42".len()));
    assert!(bench.call("add", json!({"a": "x"})).is_err());
}
