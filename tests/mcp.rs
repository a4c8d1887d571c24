//! Tests MCP servers: a fake one with many faults, real ones from the Python package index, and servers over HTTP.

mod http;
#[cfg(unix)]
mod own;
mod real;
mod sse;

use crate::machine::{AMPLE, Machine, Ran, have};
use caro::agent::mcp::{Config, Hub, Origin, Place, Reach};
use caro::agent::tool::{Hazard, Provider, ToolCx, ToolError};
use caro::agent::{Args, Tool};
use caro::model::Cancel;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Path of the fake server's script.
pub fn script() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/mcp/server.py")
}

/// True if the fake server can run; prints a message if not.
pub fn python() -> bool {
    let found = have("python3");
    if !found {
        println!("skipped: there is no python3 on {}", crate::machine::PATH);
    }
    found
}

/// The configuration of the fake server under a name, with these variables.
pub fn fake(name: &str, env: &[(&str, &str)]) -> Config {
    Config {
        name: name.into(),
        reach: Reach::Stdio {
            command: "python3".into(),
            args: vec![script().display().to_string()],
            env: env.iter().map(|(n, v)| (n.to_string(), v.to_string())).collect(),
            cwd: None,
        },
        timeout: AMPLE,
        disabled: false,
        approved: ["echo", "read", "grow", "extra"].map(String::from).to_vec(),
        origin: Origin::User,
        written: Default::default(),
    }
}

/// A hub of servers with a folder of its own.
struct Bench {
    dir: tempfile::TempDir,
    hub: Hub,
}

impl Bench {
    fn new(configs: Vec<Config>) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let place = Place { root: dir.path().into(), search: Some(crate::machine::PATH.into()), authorities: None };
        let hub = Hub::open(configs, &place, AMPLE, &Cancel::new()).unwrap();
        Self { dir, hub }
    }

    fn tools(&self) -> Vec<Arc<dyn Tool>> {
        self.hub.tools(&|name| name == "taken")
    }

    fn names(&self) -> Vec<String> {
        self.tools().iter().map(|t| t.spec().name.clone()).collect()
    }

    fn tool(&self, name: &str) -> Arc<dyn Tool> {
        self.tools().into_iter().find(|t| t.spec().name == name).unwrap_or_else(|| panic!("{name}: {:?}", self.names()))
    }

    /// Calls a tool and returns the size of its result: only `observe` may read the text.
    fn call(&self, name: &str, args: Value) -> Result<String, ToolError> {
        self.call_within(name, args, AMPLE)
    }

    fn call_within(&self, name: &str, args: Value, timeout: Duration) -> Result<String, ToolError> {
        let Value::Object(args) = args else { unreachable!() };
        let cancel = Cancel::new().with_deadline(Instant::now() + timeout);
        let cx = ToolCx { root: self.dir.path().into(), cancel, timeout };
        self.tool(name).call(&args, &cx).map(|raw| format!("{raw:?}"))
    }
}

#[test]
fn tools_are_added_with_their_names_schemas_and_effects() {
    if !python() {
        return;
    }
    let mut second = fake("two words", &[]);
    second.approved = Vec::new();
    let bench = Bench::new(vec![fake("one", &[]), second]);
    assert_eq!(bench.hub.warnings().len(), 2, "{:?}", bench.hub.warnings());
    assert!(bench.hub.warnings()[0].contains("the tool `odd` of `one` is left out: its argument `a b`"));
    // both have the same tools, so the server's name is part of each name
    let names = bench.names();
    assert!(names.contains(&"one.echo".into()) && names.contains(&"two_words.echo".into()), "{names:?}");
    assert_eq!(names.len(), 30);
    let echo = bench.tool("one.echo");
    assert_eq!(echo.spec().provider, Provider::Mcp("one".into()));
    assert_eq!(echo.spec().parameters["required"], json!(["text"]));
    assert!(bench.tool("one.lure").spec().description.contains("withheld"));
    let cx = ToolCx { root: "/".into(), cancel: Cancel::new(), timeout: Duration::from_secs(1) };
    assert!(echo.effects(&Args::new(), &cx).is_read_only() && echo.spec().parallel);
    // the same tool of a server whose entry does not approve it
    let other = bench.tool("two_words.echo").effects(&Args::new(), &cx);
    assert!(other.opaque && other.hazard == Hazard::Change && !other.reasons.is_empty());
    assert_eq!(bench.call("one.echo", json!({"text": "hello"})).unwrap(), "Raw(5 bytes)");
    let alone = Bench::new(vec![fake("one", &[])]);
    assert!(alone.names().contains(&"echo".into()) && alone.names().contains(&"read".into()));
    let taken = alone.hub.tools(&|name| name == "read");
    assert!(taken.iter().any(|t| t.spec().name == "one.read"), "a taken name gets the server as a prefix");
}

#[test]
fn a_call_returns_whatever_the_server_does() {
    if !python() {
        return;
    }
    let server = || Bench::new(vec![fake("s", &[("SECRET", "shown")])]);
    let failed = |result: Result<String, ToolError>| match result {
        Err(ToolError::Failed(why)) => why,
        other => panic!("{other:?}"),
    };
    let bench = server();
    assert_eq!(failed(bench.call("fail", json!({}))), "no such row");
    assert!(failed(bench.call("nonsense", json!({}))).contains("something else"));
    assert_eq!(bench.call("big", json!({})).unwrap(), "Raw(1000000 bytes)");
    assert!(failed(bench.call("huge", json!({}))).contains("its answer is larger than 4 MiB"));
    // the server gets the variables of its entry and none of this process
    assert_eq!(bench.call("variable", json!({"name": "SECRET"})).unwrap(), "Raw(5 bytes)");
    for ours in ["CARGO_MANIFEST_DIR", "CARGO_BIN_EXE_caro", "LD_LIBRARY_PATH"] {
        assert_eq!(bench.call("variable", json!({ "name": ours })).unwrap(), "Raw(9 bytes)", "{ours} is passed on");
    }
    assert!(failed(server().call("latin1", json!({}))).contains("its answer is not UTF-8"));
    let begun = Instant::now();
    let hung = bench.call_within("hang", json!({}), Duration::from_millis(300));
    assert!(matches!(hung, Err(ToolError::TimedOut(_))) && begun.elapsed() < AMPLE, "{hung:?}");
    drop(bench);
    assert!(begun.elapsed() < AMPLE, "a hanging server blocks nothing: {:?}", begun.elapsed());

    let bench = server();
    let died = failed(bench.call("die", json!({})));
    assert!(died.contains("with exit code 3; it says: out of coffee"), "{died}");
    let again = failed(bench.call("echo", json!({"text": "x"})));
    assert!(again.contains("has ended"), "{again}");
    assert!(bench.hub.warnings().iter().any(|w| w.contains("out of coffee")), "{:?}", bench.hub.warnings());

    let bench = server();
    let begun = Instant::now();
    let flooded = failed(bench.call_within("flood", json!({}), Duration::from_secs(300)));
    assert!(flooded.contains("never ceased to write"), "{flooded} after {:?}", begun.elapsed());
}

#[test]
fn a_server_that_does_not_start_affects_no_other() {
    if !python() {
        return;
    }
    let mut hangs = fake("hangs", &[("FAULT", "hang")]);
    hangs.timeout = Duration::from_millis(500);
    let mut garbage = fake("garbage", &[("FAULT", "garbage")]);
    garbage.timeout = Duration::from_millis(500);
    let mut missing = fake("missing", &[]);
    missing.reach = Reach::Stdio { command: "no-such-server".into(), args: vec![], env: vec![], cwd: None };
    let mut astray = fake("astray", &[]);
    if let Reach::Stdio { cwd, .. } = &mut astray.reach {
        *cwd = Some("no-such-folder".into());
    }
    let mut off = fake("off", &[]);
    off.disabled = true;
    let mut configs = vec![fake("dies", &[("FAULT", "die")]), hangs, garbage, missing, astray, off, fake("good", &[])];
    configs.extend(["toolless", "unlisted"].map(|fault| fake(fault, &[("FAULT", fault)])));
    let bench = Bench::new(configs);
    assert_eq!(bench.call("echo", json!({"text": "x"})).unwrap(), "Raw(1 bytes)");
    let standing = bench.hub.standing();
    let error = |name: &str| standing.iter().find(|s| s.name == name).unwrap().error.as_ref().unwrap().to_string();
    assert_eq!(standing.len(), 8, "a disabled server is not started");
    assert!(error("astray").contains("no-such-folder is not a folder"), "{}", error("astray"));
    // a server without tools is fine; one that does not list its tools is an error
    let toolless = standing.iter().find(|s| s.name == "toolless").unwrap();
    assert!(toolless.error.is_none() && toolless.took.is_some() && toolless.tools.is_empty(), "{toolless:?}");
    assert!(error("unlisted").contains("`unlisted` could not be started: it does not list its tools: tools/list"));
    assert!(error("dies").contains("it says: cannot find my database"), "{}", error("dies"));
    assert!(error("hangs").contains("did not answer within"), "{}", error("hangs"));
    assert!(error("garbage").contains("did not answer within"), "{}", error("garbage"));
    assert!(error("missing").contains("there is no program `no-such-server`"), "{}", error("missing"));
}

#[test]
fn tools_added_later_are_found() {
    if !python() {
        return;
    }
    let bench = Bench::new(vec![fake("s", &[])]);
    assert!(!bench.names().contains(&"extra".into()));
    bench.call("grow", json!({})).unwrap();
    let begun = Instant::now();
    while !bench.names().contains(&"extra".into()) {
        assert!(begun.elapsed() < AMPLE, "{:?}", bench.names());
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(bench.call("extra", json!({})).unwrap(), "Raw(14 bytes)");
}

#[test]
fn invalid_tools_affect_no_other_and_an_endless_list_is_cut() {
    if !python() {
        return;
    }
    let bench = Bench::new(vec![fake("s", &[("FAULT", "sloppy")])]);
    let left_out = |tool: &str| format!("the tool `{tool}` of `s` is left out: ");
    let warnings = bench.hub.warnings();
    assert_eq!((bench.names().len(), warnings.len()), (15, 4), "{warnings:?}");
    for (warning, tool) in warnings.iter().zip(["odd", "formless", "(no name)", "(no name)"]) {
        assert!(warning.starts_with(&left_out(tool)), "{warnings:?}");
    }
    assert_eq!(bench.call("echo", json!({"text": "x"})).unwrap(), "Raw(1 bytes)");
}

#[cfg(target_os = "linux")]
#[test]
fn no_server_outlives_the_hub() {
    if !python() {
        return;
    }
    let mark = format!("caro-test-outlives-{}", std::process::id());
    let bench = Bench::new(vec![fake("s", &[("MARK", &mark)])]);
    assert_eq!(living(&mark), 1);
    drop(bench);
    assert_eq!(living(&mark), 0);
}

/// The number of processes with this text in their environment.
#[cfg(target_os = "linux")]
pub fn living(mark: &str) -> usize {
    let marked = |entry: std::fs::DirEntry| {
        let environ = std::fs::read(entry.path().join("environ")).unwrap_or_default();
        environ.windows(mark.len()).any(|w| w == mark.as_bytes())
    };
    std::fs::read_dir("/proc").map_or(0, |all| all.flatten().filter_map(|e| marked(e).then_some(())).count())
}

// --- the binary

/// A machine whose `mcp.json` names the fake server.
fn machine(extra: Value) -> Machine {
    let machine = Machine::new();
    let mut entry = json!({"command": "python3", "args": [script()], "autoApprove": ["echo"]});
    if let (Value::Object(entry), Value::Object(extra)) = (&mut entry, extra) {
        entry.extend(extra);
    }
    machine.write("mcp.json", json!({"mcpServers": {"fake": entry}}).to_string());
    machine
}

fn step(tool: &str, args: &str) -> String {
    format!("Thought: x\nAction: {tool} {args}")
}

/// Runs an agent on a model that takes these steps.
fn agent(machine: &Machine, steps: &[String], args: &[&str]) -> Ran {
    let mut rules: Vec<Value> = steps
        .iter()
        .enumerate()
        .map(|(i, reply)| match i {
            0 => json!({ "reply": reply }),
            _ => json!({"match": format!("\nStep {} of ", i + 1), "reply": reply}),
        })
        .collect();
    rules.rotate_left(1);
    let args: Vec<&str> = ["agent"].into_iter().chain(args.iter().copied()).collect();
    machine.ask(json!(rules), &args)
}

fn events(machine: &Machine) -> Vec<Value> {
    let ran = machine.run(&["events", "--json"]);
    ran.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn a_run_uses_a_servers_tools_as_its_own() {
    if !python() {
        return;
    }
    let machine = machine(json!({}));
    let task = ["use echo to repeat the text hello, and answer with it", "--no-guard", "ground"];
    let steps = [step("echo", r#"{"text": "hello"}"#), step("answer", r#"{"text": "hello"}"#)];
    let ran = agent(&machine, &steps, &task);
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), "hello\n"), "{ran:#?}");
    let events = events(&machine);
    let call = events.iter().find(|e| e["event_type"] == "tool_call").unwrap();
    assert_eq!(call["metadata"]["provider"], json!({"mcp": "fake"}));
    let prompts: String =
        events.iter().filter(|e| e["event_type"] == "model_call").map(|e| e["input"].to_string()).collect();
    assert!(
        prompts.contains("- echo: Repeats a text.") && !prompts.contains("mcp"),
        "the prompt does not name the source"
    );
    // the built-in `read` keeps its name
    let tools = machine.run(&["tools", "--json"]).json();
    let of =
        |name: &str| tools["tools"].as_array().unwrap().iter().find(|t| t["name"] == name).unwrap()["type"].clone();
    assert_eq!((of("read"), of("fake.read")), (json!("built in"), json!("mcp: fake")));
    let off = agent(&machine, &[step("answer", r#"{"text": "x"}"#)], &[task[0], "--no-mcp"]);
    assert_eq!(off.code, Some(0), "{off:#?}");
}

#[test]
fn a_servers_tool_replaces_no_built_in_one_and_an_odd_name_gets_an_alias() {
    if !python() {
        return;
    }
    let machine = machine(json!({"env": {"FAULT": "helpers"}, "autoApprove": ["getForecast-v2"]}));
    let task = "tell the weather forecast of the city Oslo";
    let explained = agent(&machine, &[step("answer", "{}")], &[task, "--explain", "--subagents"]);
    let tools = explained.out.lines().find(|line| line.starts_with("tools: ")).unwrap();
    assert!(tools.contains(" spawn_subagents,") && !tools.contains("fake.spawn_subagents"), "{explained:#?}");
    assert!(explained.err.contains("`spawn_subagents` is this program's own tool"), "{explained:#?}");
    let all = machine.run(&["tools", "--json"]).json();
    let names: Vec<&str> = all["tools"].as_array().unwrap().iter().filter_map(|t| t["name"].as_str()).collect();
    assert!(names.contains(&"fake.spawn_subagents"), "{names:?}");
    // a name that small models mistype has an alias, and a call of the alias calls the tool
    let steps = [step("get_forecast_v2", r#"{"city": "Oslo"}"#), step("answer", r#"{"text": "rain"}"#)];
    let ran = agent(&machine, &steps, &[task, "--no-guard", "ground"]);
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), "rain\n"), "{ran:#?}");
    let events = events(&machine);
    let of = |kind: &str| events.iter().find(|e| e["event_type"] == kind).unwrap();
    assert_eq!(of("tool_call")["input"]["tool"], "getForecast-v2");
    assert!(of("tool_result")["output"].to_string().contains("rain in Oslo"));
}

#[test]
fn results_of_a_server_change_neither_tools_nor_policy() {
    if !python() {
        return;
    }
    let machine = machine(json!({"autoApprove": ["orders"]}));
    // the page's orders are withheld; calls that obey them need approval, and are denied without a terminal
    let steps = [
        step("orders", "{}"),
        step("store", r#"{"text": "owned"}"#),
        step("shell", r#"{"command": "rm -rf ."}"#),
        step("answer", r#"{"text": "done"}"#),
    ];
    machine.write("work/precious.txt", "x");
    let task = "use orders to get the page it returns, and store the text that stores it";
    let ran = agent(&machine, &steps, &[task, "--no-guard", "ground"]);
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    let events = events(&machine);
    let kinds: Vec<&str> = events.iter().map(|e| e["event_type"].as_str().unwrap()).collect();
    assert!(kinds.contains(&"guardrail_violation"), "{kinds:?}");
    assert_eq!(kinds.iter().filter(|k| **k == "approval_denied").count(), 2, "{kinds:?}");
    assert!(!serde_json::to_string(&events).unwrap().contains("OWNED-CANARY"));
    assert!(!machine.path("work/stored.txt").exists() && machine.path("work/precious.txt").exists());
    // no later step offers a tool that the first one did not
    let of = |e: &Value| e["metadata"]["actions"].as_array().unwrap().clone();
    let shown: Vec<Vec<Value>> = events.iter().filter(|e| e["event_type"] == "agent_step").map(of).collect();
    assert!(shown.len() == 4 && shown.iter().flatten().all(|tool| shown[0].contains(tool)), "{shown:?}");
}

#[test]
fn a_server_that_dies_is_a_warning_and_the_run_goes_on() {
    if !python() {
        return;
    }
    let machine = machine(json!({"autoApprove": ["die", "echo"], "env": {"TOKEN": "s3cret-value"}}));
    let steps = [
        step("die", "{}"),
        step("echo", r#"{"text": "are you there, s3cret-value"}"#),
        step("answer", r#"{"text": "it died"}"#),
    ];
    let ran = agent(&machine, &steps, &["use die to end the server and echo to repeat a text", "--no-guard", "ground"]);
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), "it died\n"), "{ran:#?}");
    let log = serde_json::to_string(&events(&machine)).unwrap();
    assert!(log.contains("out of coffee") && !log.contains("s3cret-value"), "secrets of an entry are not recorded");
    // a server that does not start
    machine.write("mcp.json", json!({"mcpServers": {"gone": {"command": "no-such-server"}}}).to_string());
    let ran = agent(&machine, &[step("answer", r#"{"text": "alone"}"#)], &["say that you are alone here"]);
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    assert!(ran.err.contains("the MCP server `gone` could not be started"), "{ran:#?}");
}

#[test]
fn servers_are_listed_and_checked() {
    let machine = Machine::new();
    let none = machine.run(&["mcp", "list"]);
    assert!(none.code == Some(0) && none.err.contains("no servers; they are named in"), "{none:#?}");
    machine.write("mcp.json", "{");
    let broken = machine.run(&["mcp", "list"]);
    assert!(broken.err.contains("is not a list of MCP servers") && broken.err.contains("mcpServers"), "{broken:#?}");
    let unknown = machine.run(&["mcp", "check", "nobody"]);
    assert!(unknown.code == Some(2) && unknown.err.contains("there is no MCP server `nobody`"), "{unknown:#?}");
    if !python() {
        return;
    }
    let fake = json!({"command": "python3", "args": [script()], "env": {"KEY": "s3cret-value"}});
    machine.write("mcp.json", json!({"mcpServers": {"fake": fake, "bad": {"command": "no-such-server"}}}).to_string());
    let list = machine.run(&["mcp", "list"]);
    assert!(list.out.contains("fake  user  KEY=... python3") && !list.out.contains("s3cret"), "{list:#?}");
    let check = machine.run(&["mcp", "check"]);
    assert_eq!(check.code, Some(1), "{check:#?}");
    assert!(
        check.out.contains("fake  15 tools, 1 left out, ")
            && check.out.contains("there is no program `no-such-server`"),
        "{check:#?}"
    );
    let check = machine.run(&["mcp", "check", "fake", "--json"]);
    assert_eq!(check.code, Some(0), "{check:#?}");
    assert_eq!((&check.json()[0]["title"], &check.json()[0]["left_out"][0]["name"]), (&json!("fake 1"), &json!("odd")));
    let found = machine.run(&["tools", "search", "repeat a text", "--json"]).json();
    assert_eq!(found["tools"][0]["name"], "echo", "{found:#?}");
}

#[test]
fn a_projects_servers_need_the_users_approval() {
    if !python() {
        return;
    }
    let machine = Machine::new();
    let entry = |text: &str| json!({"mcpServers": {"theirs": {"command": "python3", "args": [script(), text], "autoApprove": ["store"]}}});
    machine.write("work/.mcp.json", entry("").to_string());
    let tools = |machine: &Machine| machine.run(&["tools", "--json"]);
    let before = tools(&machine);
    assert!(!before.out.contains("theirs") && before.err.contains("caro mcp trust"), "{before:#?}");
    machine.run(&["mcp", "check", "theirs"]).fails(1, &["have not agreed"]);
    assert!(machine.run(&["mcp", "check"]).err.contains("that you have not agreed to"), "there is no warning");
    let asked = machine.run(&["mcp", "trust"]);
    assert!(asked.code == Some(1) && asked.err.contains("nobody to ask"), "{asked:#?}");
    let agreed = machine.run(&["mcp", "trust", "--yes"]);
    assert!(agreed.code == Some(0) && agreed.err.contains("theirs  python3"), "{agreed:#?}");
    assert!(tools(&machine).out.contains("mcp: theirs"));
    // everything is shown, except the values of the user's variables
    let sly = json!({"mcpServers": {"sly": {"command": "node", "args": ["--key", "${SECRET}"], "cwd": "sub", "env": {"LD_PRELOAD": "./x.so"}},
                                    "far": {"url": "https://far.example/?k=${SECRET}", "headers": {"X": "${SECRET}"}}}});
    machine.write("work/.mcp.json", sly.to_string());
    for verb in [&["mcp", "trust"][..], &["mcp", "list"], &["mcp", "list", "--json"]] {
        let ran = Ran::of(machine.caro(verb).env("SECRET", "sekrit-123456").output().unwrap());
        let all = ran.out + &ran.err;
        assert!(!all.contains("sekrit"), "{verb:?}: {all}");
        for shown in ["LD_PRELOAD=./x.so", "(in sub)", "X: ${SECRET}"] {
            assert!(all.contains(shown), "{verb:?} hides {shown}: {all}");
        }
        assert!(verb[1] == "list" || all.contains("is given your variables SECRET"), "{all}");
    }
    machine.write("work/.mcp.json", entry("").to_string());
    // the project's own `autoApprove` does not count
    let list = machine.run(&["mcp", "list", "--json"]).json();
    assert_eq!((&list[0]["from"], &list[0]["auto_approve"]), (&json!("project"), &json!([])));
    // a changed entry needs approval again
    machine.write("work/.mcp.json", entry("changed").to_string());
    assert!(!tools(&machine).out.contains("theirs"));
    machine.run(&["mcp", "trust", "--yes"]);
    assert!(tools(&machine).out.contains("theirs"));
    machine.run(&["mcp", "trust", "--revoke"]);
    assert!(!tools(&machine).out.contains("theirs"));
}

#[test]
fn only_a_projects_entries_that_can_be_shown_can_be_approved() {
    let machine = Machine::new();
    let write = |servers: Value| machine.write("work/.mcp.json", json!({ "mcpServers": servers }).to_string());
    // a variable that is not set now may be set later
    let evil = json!({"command": "sh", "args": ["-c", "exit 1", "${CARO_TEST_UNSET}"]});
    write(json!({"good": {"command": "true"}, "evil": evil, "far": {"url": "${CARO_TEST_URL}"}}));
    let agreed = machine.run(&["mcp", "trust", "--yes"]);
    for shown in ["evil  sh -c 'exit 1' ${CARO_TEST_UNSET}", "variables CARO_TEST_UNSET", "far  ${CARO_TEST_URL}"] {
        assert!(agreed.code == Some(0) && agreed.err.contains(shown), "{shown}: {agreed:#?}");
    }
    // an entry that this version cannot read may be valid in another version
    write(json!({"good": {"command": "true"}, "odd": {"command": "sh", "type": "new"}}));
    machine.run(&["mcp", "trust", "--yes"]).fails(1, &["the MCP server `odd`", "that cannot be shown"]);
    let list = machine.run(&["mcp", "list", "--json"]).json();
    assert_eq!((&list[0]["name"], &list[0]["trusted"]), (&json!("good"), &json!(false)));
    // errors in an unapproved file are reported, but do not fail the check
    let check = machine.run(&["mcp", "check"]);
    assert!(check.code == Some(0) && check.err.contains("the MCP server `odd`"), "{check:#?}");
}

#[test]
fn variables_of_a_disabled_server_are_filled_in_when_it_is_checked() {
    if !python() {
        return;
    }
    let machine = Machine::new();
    let off = json!({"command": "python3", "args": [script(), "${CARO_TEST_KEY}"], "disabled": true});
    let away = json!({"url": "${CARO_TEST_URL}", "disabled": true});
    machine.write("mcp.json", json!({"mcpServers": {"off": off, "away": away}}).to_string());
    let list = machine.run(&["mcp", "list"]);
    assert!(
        list.out.contains("away  user  ${CARO_TEST_URL}  (disabled)") && !list.err.contains("left out"),
        "{list:#?}"
    );
    assert_eq!(machine.run(&["mcp", "check"]).code, Some(0));
    let unset = machine.run(&["mcp", "check", "off"]);
    assert!(unset.code == Some(1) && unset.err.contains("the variable CARO_TEST_KEY is not set"), "{unset:#?}");
    assert!(!unset.err.contains("there is no MCP server"), "{unset:#?}");
    let tried = Ran::of(machine.caro(&["mcp", "check", "off"]).env("CARO_TEST_KEY", "k").output().unwrap());
    assert!(tried.code == Some(0) && tried.out.contains("off  15 tools, 1 left out"), "{tried:#?}");
}

#[cfg(unix)]
#[test]
fn a_projects_programs_are_found_from_any_folder_below_it() {
    use std::os::unix::fs::PermissionsExt;
    if !python() {
        return;
    }
    let machine = Machine::new();
    std::fs::create_dir_all(machine.path("work/.git")).unwrap();
    std::fs::create_dir_all(machine.path("work/sub")).unwrap();
    machine.write("work/srv.sh", format!("#!/bin/sh\nexec python3 {}\n", script().display()));
    std::fs::set_permissions(machine.path("work/srv.sh"), std::fs::Permissions::from_mode(0o755)).unwrap();
    machine.write("work/.mcp.json", json!({"mcpServers": {"theirs": {"command": "./srv.sh"}}}).to_string());
    machine.run(&["mcp", "trust", "--yes"]);
    let mut caro = machine.caro(&["mcp", "check", "theirs"]);
    let check = Ran::of(caro.current_dir(machine.path("work/sub")).output().unwrap());
    assert!(check.code == Some(0) && check.out.contains("theirs  15 tools, 1 left out"), "{check:#?}");
}
