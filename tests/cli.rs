//! Tests the command line end to end on a scripted model: stdout, stderr and exit codes.

use crate::machine::{Machine, Ran, feed};
use serde_json::{Value, json};
use std::process::Stdio;

/// Rules of a model that knows a few commands, and refuses to greet.
fn rules() -> Value {
    json!([
        { "match": "hello", "reply": "# not a shell task" },
        { "match": "clean", "reply": "rm -rf /" },
        { "match": "slow", "reply": "echo one two three four five six seven eight", "delay_ms": 300 },
        { "match": "broken", "error": "the script says so" },
        { "reply": "ls -a" },
    ])
}

// --- the answer

#[test]
fn a_pipe_gets_only_the_command() {
    let machine = Machine::new();
    for words in [&["list all files"][..], &["list", "all", "files"], &["--", "list"]] {
        let ran = machine.ask(rules(), words);
        assert_eq!((ran.code, ran.out.as_str(), ran.err.as_str()), (Some(0), "ls -a\n", ""), "{words:?}");
    }
}

#[test]
fn json_is_one_document_with_every_field() {
    let machine = Machine::new();
    let ran = machine.ask(rules(), &["list files", "--json", "--shell", "bash"]);
    let document = ran.json();
    let fields: Vec<&str> = document.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(
        fields,
        [
            "cmd",
            "confidence",
            "commands_used",
            "changes",
            "iterations",
            "candidates",
            "findings",
            "risk",
            "explanation",
            "model",
            "target",
            "shell",
            "timing"
        ]
    );
    assert_eq!((&document["cmd"], &document["commands_used"]), (&json!("ls -a"), &json!(["ls"])));
    assert_eq!((&document["model"], &document["shell"]), (&json!("script:script.json"), &json!("bash")));
    assert_eq!(document["risk"]["level"], "safe");
    let timing = document["timing"].as_object().unwrap();
    let stages: Vec<&str> = timing.keys().map(String::as_str).collect();
    assert_eq!(
        stages,
        [
            "context",
            "load",
            "prefill",
            "decode",
            "grammar",
            "tokens",
            "drafted",
            "accepted",
            "manual",
            "iteration1",
            "iteration2",
            "choice",
            "total",
        ]
    );
    assert!(timing["context"].as_f64().unwrap() > 0.0);
    assert!(timing["total"].as_f64().unwrap() >= timing["iteration1"].as_f64().unwrap());
}

#[test]
fn a_request_that_is_no_shell_task_is_refused_with_exit_code_1() {
    let machine = Machine::new();
    machine.ask(rules(), &["hello"]).fails(1, &["not a task for a shell"]);
    let ran = machine.ask(rules(), &["hello", "--json"]);
    assert_eq!(ran.code, Some(1));
    let document = ran.json();
    assert!(document["refusal"].as_str().unwrap().contains("not a task for a shell"), "{document:#}");
    assert!(document["hint"].is_string() && document["timing"].is_object(), "{document:#}");
    has_no_verdict(&document);
}

/// Checks that a document without an answer has neither a command nor a verdict.
#[track_caller]
fn has_no_verdict(document: &Value) {
    for field in ["cmd", "risk", "confidence", "findings", "commands_used", "alternatives", "explanation"] {
        assert!(document.get(field).is_none(), "{field} in {document:#}");
    }
}

#[test]
fn danger_is_reported_into_a_pipe_too_unless_quiet() {
    let machine = Machine::new();
    let ran = machine.ask(rules(), &["clean up"]);
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), "rm -rf /\n"));
    assert!(ran.err.contains("danger"), "{ran:#?}");
    assert_eq!(machine.ask(rules(), &["clean up", "-q"]).err, "");
}

/// Findings go to stderr, so that stdout has only the command.
#[test]
fn errors_in_the_command_are_reported_into_a_pipe_too_unless_quiet() {
    let machine = Machine::new();
    let broken = "find . -printf %s";
    let rules = || json!([{ "reply": broken }]);
    // the rules for another system need no manual of this machine
    let args = ["show the sizes", "--refine", "never", "--target", "macos-bsd", "--candidates", "1"];
    let ran = machine.ask(rules(), &args);
    assert_eq!((ran.code, ran.out.trim_end()), (Some(0), broken), "{ran:#?}");
    assert!(ran.err.contains("error: BSD find has no -printf"), "{ran:#?}");
    let ran = machine.ask(rules(), &[&args[..], &["-q"]].concat());
    assert_eq!((ran.out.trim_end(), ran.err.as_str()), (broken, ""));
}

#[test]
fn debug_verbose_and_timing_go_to_stderr() {
    let machine = Machine::new();
    let ran = machine.ask(rules(), &["list files", "--debug"]);
    assert_eq!(ran.out, "ls -a\n");
    for part in ["--- prompt of iteration 1", "--- answer of iteration 1", "--- iteration 1: confidence", "list files"]
    {
        assert!(ran.err.contains(part), "no {part:?} in {ran:#?}");
    }
    let ran = machine.ask(rules(), &["list files", "--verbose"]);
    assert!(ran.err.contains(" tokens, ") && !ran.err.contains("--- prompt"), "{ran:#?}");
    let ran = machine.ask(rules(), &["list files", "--timing"]);
    let stages: Vec<&str> = ran.err.lines().filter_map(|l| l.split_whitespace().next()).collect();
    assert_eq!(
        stages,
        [
            "context",
            "load",
            "prefill",
            "decode",
            "grammar",
            "manual",
            "iteration",
            "iteration",
            "choice",
            "total",
            "tokens"
        ]
    );
}

#[test]
fn target_and_shell_are_options() {
    let machine = Machine::new();
    let of = |flags: &[&str]| {
        let document = machine.ask(rules(), &[&["list files", "--json"], flags].concat()).json();
        (document["target"].clone(), document["shell"].clone())
    };
    assert_eq!(of(&["--target", "macos-bsd"]), (json!("macos-bsd"), json!("zsh")));
    assert_eq!(of(&["--target", "windows"]), (json!("windows"), json!("powershell")));
    assert_eq!(of(&["--target", "macos-bsd", "--shell", "fish"]), (json!("macos-bsd"), json!("fish")));
    assert_eq!(of(&["--target", "windows", "--shell", "powershell"]), (json!("windows"), json!("powershell")));
    for words in [&["list files"][..], &["check", "ls"]] {
        let args = [words, &["--target", "windows", "--shell", "bash"]].concat();
        machine.ask(rules(), &args).fails(2, &["no command is written in bash", "goes with --shell powershell"]);
    }
}

#[test]
fn a_timeout_has_exit_code_124() {
    let machine = Machine::new();
    machine.ask(rules(), &["slow", "--timeout", "0.5"]).fails(124, &["no command within 0.5 s", "--timeout 4"]);
}

// --- bad input

#[test]
fn with_json_an_error_is_a_document_too() {
    let machine = Machine::new();
    let cases = [
        (&["--json", ""][..], 2, "the request is empty"),
        (&["--json", "--model", "nosuch", "list files"], 2, "nosuch"),
        (&["--json", "--timeout", "0.1", "slow"], 124, "no command within 0.1 s"),
        (&["--json", "broken"], 2, "the script says so"),
    ];
    for (args, code, message) in cases {
        let ran = machine.ask(rules(), args);
        assert_eq!((ran.code, ran.out.lines().count()), (Some(code), 1), "{ran:#?}");
        let error = &ran.json()["error"];
        assert!(error["message"].as_str().unwrap().contains(message), "{error}");
        assert!(error["hint"].is_string() && ran.err.contains(message), "{ran:#?}");
    }
}

#[test]
fn invalid_requests_have_a_hint() {
    let machine = Machine::new();
    machine.run(&[]).fails(2, &["the request is empty", "caro \"show top processes\""]);
    machine.run(&["  "]).fails(2, &["the request is empty"]);
    machine.run(&[&"x ".repeat(50_000)]).fails(2, &["100000 bytes, and 1024 tokens"]);
    machine.ask(rules(), &[&"x ".repeat(5_000)]).fails(2, &[" tokens, and 1024 tokens"]);
    machine.ask(rules(), &["broken"]).fails(2, &["the script says so"]);
}

#[cfg(unix)]
#[test]
fn a_request_that_is_no_utf8_is_refused() {
    use std::os::unix::ffi::OsStringExt;
    let machine = Machine::new();
    let mut caro = machine.caro(&["list"]);
    caro.arg(std::ffi::OsString::from_vec(b"fil\xffes".to_vec()));
    Ran::of(caro.output().unwrap()).fails(2, &["not valid UTF-8"]);
}

#[test]
fn wrong_flags_are_usage_errors() {
    let machine = Machine::new();
    for args in [&["--refine", "often", "x"][..], &["--nope"], &["config", "get", "colour"], &["-x", "--json", "x"]] {
        let ran = machine.run(args);
        assert_eq!((ran.code, ran.out.as_str()), (Some(2), ""), "{ran:#?}");
        assert!(ran.err.starts_with("error: "), "{ran:#?}");
    }
    machine.run(&["--max-iterations", "9", "x"]).fails(2, &["--max-iterations", "a number from 1 to 3"]);
    machine.run(&["--timeout", "soon", "x"]).fails(2, &["--timeout", "seconds"]);
}

#[test]
fn a_request_that_begins_with_a_verb_has_a_hint_about_quotes() {
    let machine = Machine::new();
    let ran = machine.run(&["config", "files", "of", "git"]);
    assert_eq!(ran.code, Some(2));
    assert!(ran.err.contains("hint: `config` is a verb") && ran.err.contains("\"config files of git\""), "{ran:#?}");
    assert_eq!(machine.ask(rules(), &["config files of git"]).out, "ls -a\n");
}

#[test]
fn a_missing_model_is_an_error_with_a_hint() {
    let machine = Machine::new();
    machine.run(&["list files", "--model", "/nowhere/m.gguf"]).fails(2, &["/nowhere/m.gguf"]);
    let script = machine.run(&["list files", "--model", "script:/nope.json"]);
    script.fails(2, &["there is no file /nope.json", "canned replies"]);
    assert!(!script.err.contains("GGUF"), "{script:#?}");
    machine.run(&["list files", "--model", "qwen2.5-coder-1.5"]).fails(2, &["qwen2.5-coder-1.5b"]);
    machine.write("half.gguf", "GGUF\u{3}\0\0\0");
    let half = machine.path("half.gguf");
    machine
        .run(&["list files", "--model", half.to_str().unwrap()])
        .fails(2, &["half.gguf", "not a usable model", "where it came from"]);
}

#[test]
fn without_a_home_a_cache_or_a_path_there_is_still_an_answer() {
    let machine = Machine::new();
    let bare = |vars: &[(&str, &str)]| {
        let mut caro = machine.caro(&["list files"]);
        caro.env_clear().env("CARO_MODEL", machine.model(rules())).envs(vars.iter().copied());
        Ran::of(caro.output().unwrap())
    };
    for vars in [&[][..], &[("HOME", "/proc/nowhere")], &[("PATH", "/nowhere")], &[("CARO_CACHE_DIR", "/proc/nowhere")]]
    {
        let ran = bare(vars);
        assert_eq!((ran.code, ran.out.as_str()), (Some(0), "ls -a\n"), "{vars:?} {ran:#?}");
    }
}

#[test]
fn a_closed_pipe_is_no_error() {
    let machine = Machine::new();
    for args in [&["context", "--json"][..], &["--help"], &["completions", "bash"], &["list files"]] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let mut caro = machine.caro(args);
        caro.env("CARO_MODEL", machine.model(rules())).stdout(writer).stderr(Stdio::piped());
        let ran = Ran::of(caro.output().unwrap());
        assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""), "{args:?}");
    }
}

#[test]
fn nothing_is_run_without_a_terminal() {
    let machine = Machine::new();
    let model = json!([{ "reply": "touch ran" }]);
    machine.ask(model, &["make a file", "-x"]).fails(1, &["nobody to ask", "without -x"]);
    assert!(!machine.path("work/ran").exists());
}

// --- colour

#[test]
fn pipes_are_plain_unless_colour_is_forced() {
    let machine = Machine::new();
    let colours = |flags: &[&str], vars: &[(&str, &str)]| {
        let mut caro = machine.caro(&[&["config"], flags].concat());
        Ran::of(caro.envs(vars.iter().copied()).output().unwrap()).out.contains('\x1b')
    };
    assert!(!colours(&[], &[]));
    assert!(colours(&["--color", "always"], &[("NO_COLOR", "1")]));
    assert!(colours(&[], &[("CLICOLOR_FORCE", "1")]));
    assert!(!colours(&[], &[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")]));
    assert!(!colours(&["--color", "never"], &[("CLICOLOR_FORCE", "1")]));
}

// --- batch

#[test]
fn batch_answers_each_line_and_survives_invalid_ones() {
    let machine = Machine::new();
    let mut caro = machine.caro(&["batch", "--refine", "never"]);
    caro.env("CARO_MODEL", machine.model(rules()));
    let mut input = Vec::new();
    input.extend(b"{\"id\": 1, \"request\": \"list files\", \"extra\": true}\n");
    input.extend(b"not json\n");
    input.extend(b"{\"id\": \"three\"}\n\n");
    input.extend(b"{\"id\": 4, \"request\": \"\xff\"}\n");
    input.extend(format!("{{\"id\": 5, \"request\": \"{}\"}}\n", "x".repeat(300_000)).bytes());
    input.extend(b"{\"id\": 6, \"request\": \"hello\"}\n");
    input.extend(b"{\"id\": 7, \"request\": \"broken\"}\n");
    input.extend(b"{\"id\": 8, \"request\": \"list\", \"cwd\": \"/\", \"target\": \"macos-bsd\", \"shell\": \"fish\"}");
    let ran = feed(caro, &input);
    assert_eq!((ran.code, ran.err.as_str()), (Some(1), ""), "the exit code tells that a line has no command");
    let lines: Vec<Value> = ran.out.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    let ids: Vec<&Value> = lines.iter().map(|l| &l["id"]).collect();
    assert_eq!(json!(ids), json!([1, null, "three", null, null, 6, 7, 8]));
    assert_eq!(
        (&lines[0]["cmd"], lines[0].as_object().unwrap().keys().next().unwrap().as_str()),
        (&json!("ls -a"), "id")
    );
    for (i, words) in
        [(1, "not a JSON object"), (2, "no `request`"), (3, "UTF-8"), (4, "300024 bytes"), (6, "the script says so")]
    {
        let error = &lines[i]["error"];
        assert!(error["message"].as_str().unwrap().contains(words), "{error}");
        assert!(error["hint"].is_string());
    }
    assert!(lines[5]["refusal"].is_string());
    (1..7).for_each(|i| has_no_verdict(&lines[i]));
    assert_eq!((&lines[7]["target"], &lines[7]["shell"]), (&json!("macos-bsd"), &json!("fish")));
}

/// A caller may wait for each answer before it sends the next request.
#[test]
fn batch_answers_before_it_reads_the_next_line() {
    use std::io::{BufRead, BufReader, Write};
    let machine = Machine::new();
    let mut caro = machine.caro(&["batch"]);
    caro.env("CARO_MODEL", machine.model(rules())).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = caro.spawn().unwrap();
    let (mut to, mut from) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
    for id in 0..3 {
        writeln!(to, "{}", json!({ "id": id, "request": "list files" })).unwrap();
        let mut line = String::new();
        from.read_line(&mut line).unwrap();
        assert_eq!(serde_json::from_str::<Value>(&line).unwrap()["id"], id);
    }
    drop(to);
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

// --- the small verbs

#[test]
fn version_and_help_are_printed() {
    let machine = Machine::new();
    let version = machine.run(&["--version"]);
    assert_eq!((version.code, version.out.as_str()), (Some(0), concat!("caro ", env!("CARGO_PKG_VERSION"), "\n")));
    assert_eq!(machine.run(&["version", "--json"]).json()["version"], env!("CARGO_PKG_VERSION"));
    for help in [machine.run(&["--help"]), machine.run(&["help"])] {
        assert_eq!(help.code, Some(0));
        for part in ["Verbs:", "batch", "--refine", "Exit codes:"] {
            assert!(help.out.contains(part), "no {part:?} in {help:#?}");
        }
    }
}

/// Blocks their output to inspect the process: it has one thread, and opens or creates no file of this machine.
#[cfg(target_os = "linux")]
#[test]
fn version_and_help_start_no_thread_and_open_no_file() {
    use crate::machine::AMPLE;
    use std::io::{Read, Write};
    use std::time::{Duration, Instant};
    for flag in ["--version", "--help"] {
        let machine = Machine::new();
        // a process that opens one of these pipes blocks
        let (script, config) = (machine.path("script"), machine.path("config.toml"));
        for file in [&script, &config] {
            assert!(std::process::Command::new("mkfifo").arg(file).status().unwrap().success());
        }
        std::fs::remove_dir(machine.path("home")).unwrap();
        let (mut reader, mut writer) = std::io::pipe().unwrap();
        let capacity = rustix::pipe::fcntl_getpipe_size(&writer).unwrap();
        writer.write_all(&vec![b'.'; capacity]).unwrap();
        let mut caro = machine.caro(&[flag]);
        let mut child = caro.env("CARO_MODEL", format!("script:{}", script.display())).stdout(writer).spawn().unwrap();
        drop(caro);
        let proc = std::path::PathBuf::from(format!("/proc/{}", child.id()));
        let sleeps = || {
            let stat = std::fs::read_to_string(proc.join("stat")).unwrap();
            stat.rsplit(')').next().unwrap().trim_start().starts_with('S')
        };
        let (started, mut sleeping) = (Instant::now(), 0);
        while sleeping < 20 {
            assert!(started.elapsed() < AMPLE, "{flag} never prints");
            std::thread::sleep(Duration::from_millis(5));
            sleeping = if sleeps() { sleeping + 1 } else { 0 };
        }
        assert_eq!(std::fs::read_dir(proc.join("task")).unwrap().count(), 1, "{flag} has a second thread");
        let open = std::fs::read_dir(proc.join("fd")).unwrap().flatten();
        let open: Vec<_> = open.filter_map(|fd| std::fs::read_link(fd.path()).ok()).collect();
        assert!(!open.iter().any(|file| file.starts_with(machine.path(""))), "{flag}: {open:?}");
        let mut text = String::new();
        let reader = std::thread::spawn(move || reader.read_to_string(&mut text).map(|_| text));
        let status = loop {
            match child.try_wait().unwrap() {
                Some(status) => break status,
                None if started.elapsed() > AMPLE * 2 => {
                    child.kill().unwrap();
                    panic!("{flag} does not end");
                }
                None => std::thread::sleep(Duration::from_millis(5)),
            }
        };
        assert!(status.success() && reader.join().unwrap().unwrap().contains("caro"), "{flag}");
        let mut files: Vec<_> = std::fs::read_dir(machine.path("")).unwrap().map(|e| e.unwrap().file_name()).collect();
        files.sort_unstable();
        assert_eq!(files, ["config.toml", "script", "work"], "{flag}");
    }
}

#[test]
fn completions_have_verbs_and_values() {
    let machine = Machine::new();
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let script = machine.run(&["completions", shell]);
        assert_eq!(script.code, Some(0));
        assert!(script.out.contains("context") && script.out.contains("refine"), "{shell}");
        let values = matches!(shell, "bash" | "zsh" | "fish");
        assert!(!values || script.out.contains("macos-bsd"), "{shell}");
    }
}

#[test]
fn config_shows_values_and_where_they_come_from() {
    let machine = Machine::new();
    machine.write("config.toml", "timeout = 7\n");
    machine.write("work/.caro.toml", "shell = \"fish\"\n");
    let mut caro = machine.caro(&["config", "--json"]);
    let settings = Ran::of(caro.env("CARO_REFINE", "never").output().unwrap()).json();
    let origin = |name: &str| settings[name]["origin"].as_str().unwrap().to_string();
    assert!(origin("timeout").ends_with("config.toml:1") && origin("shell").ends_with(".caro.toml:1"), "{settings}");
    assert_eq!((origin("refine").as_str(), origin("device").as_str()), ("CARO_REFINE", "default"));
    assert_eq!(machine.run(&["config", "get", "timeout"]).out, "7\n");
    assert_eq!(machine.run(&["config", "path"]).out.trim(), machine.path("config.toml").to_str().unwrap());
    // the output is a valid file with the same settings
    machine.write("config.toml", machine.run(&["config"]).out);
    assert_eq!(machine.run(&["config", "get", "timeout"]).out, "7\n");
    // an invalid value is shown too, with its origin
    machine.write("config.toml", "timeout = \"soon\"\n");
    let wrong = machine.run(&["config", "--origin"]);
    assert!(wrong.out.contains("timeout = \"soon\"") && wrong.out.contains("config.toml:1"), "{wrong:#?}");
    assert!(wrong.code == Some(2) && wrong.err.contains("`timeout` must be seconds"), "{wrong:#?}");
}

#[test]
fn one_setting_is_a_document_too() {
    let machine = Machine::new();
    machine.write("config.toml", "timeout = 9\n");
    let get = |flags: &[&str]| machine.run(&[&["config", "get", "timeout"], flags].concat());
    assert_eq!(get(&[]).out, "9\n");
    let document = get(&["--json"]).json();
    assert_eq!(document["value"], "9");
    let origin = document["origin"].as_str().unwrap();
    assert!(origin.ends_with("config.toml:1"), "{document}");
    assert_eq!(get(&["--origin"]).out.trim_end(), origin);
    assert_eq!(machine.run(&["config", "--json", "get", "timeout"]).json(), document);
    assert!(machine.run(&["config", "path", "--json"]).json().as_str().unwrap().ends_with("config.toml"));
}

#[test]
fn errors_in_a_config_file_name_the_line() {
    let machine = Machine::new();
    machine.write("config.toml", "\nmodle = \"x\"\n");
    machine.run(&["list files"]).fails(2, &["config.toml:2: there is no setting `modle`", "`model`"]);
    machine.write("config.toml", "");
    machine.write("work/.caro.toml", "model = \"openai:http://203.0.113.1#m\"");
    let ran = machine.run(&["config", "get", "model"]);
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), "qwen2.5-coder-1.5b\n"), "{ran:#?}");
    assert!(ran.err.contains(".caro.toml:1: a project may not set `model`; it is passed over"), "{ran:#?}");
}

// --- the environment

/// Variables for settings are read in one file; those that describe the system in few others.
#[test]
fn the_environment_is_read_in_few_places() {
    let allowed = [
        "cli/env.rs",                      // settings
        "host/ambient.rs",                 // facts about the system
        "exec/environment.rs",             // the environment of children
        "exec/fence/windows.rs",           // the folder of Windows
        "model/fetch/net.rs",              // hosts without a proxy; ureq itself reads the proxies
        "model/engine/mod.rs",             // sets candle's number of threads
        "model/engine/testing.rs",         // tests on a real model
        "model/engine/agreement_tests.rs", // options of the reference implementation
    ];
    let src = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let (mut folders, mut found) = (vec![src.clone()], Vec::new());
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let text = std::fs::read_to_string(&path).unwrap();
            let code = text.split("#[cfg(test)]\nmod ").next().unwrap();
            let name = path.strip_prefix(&src).unwrap().to_string_lossy().replace('\\', "/");
            if ["env::var", "env::set_var", "env::remove_var"].iter().any(|word| code.contains(word)) {
                found.push(name);
            }
        }
    }
    assert!(found.iter().any(|name| name == allowed[0]), "the test does not see the source: {found:?}");
    found.retain(|name| !allowed.contains(&name.as_str()));
    assert!(found.is_empty(), "{found:?} read the environment");
}

#[test]
fn a_misspelt_verb_starts_no_model() {
    let machine = Machine::new();
    // words after `--` are no verb, however similar they are to one
    let ran = machine.ask(json!([{ "reply": "top" }]), &["--rehearse", "off", "--", "top"]);
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), "top\n"), "{ran:#?}");
    machine.run(&["top"]).fails(2, &["`caro stop`", "caro -- top"]);
    for verbs in [&["model", "pull", "--force", "qwen2.5-coder-0.5b"][..], &["explain"]] {
        let ran = machine.run(verbs);
        assert!(ran.code == Some(2) && !ran.err.contains("hint:"), "{ran:#?}");
    }
    let ran = machine.ask(json!([{ "reply": "ls" }]), &["statu"]);
    assert_eq!((ran.code, ran.out.as_str()), (Some(2), ""), "{ran:#?}");
    assert!(ran.err.contains("`caro status`"), "{ran:#?}");
    for (args, message) in [
        (&["events"][..], "no run has been kept yet"),
        (&["resume"], "no run has been kept yet"),
        (&["session", "list"], "no session has been kept yet"),
        (&["memory", "list"], "no note has been taken yet"),
        (&["check", "ls", "-l"], "caro check 'ls -l'"),
    ] {
        let ran = machine.run(args);
        assert!(ran.err.contains(message), "{args:?}: {ran:#?}");
    }
}

#[test]
fn a_timeout_of_the_project_is_reported_with_its_file() {
    let machine = Machine::new();
    machine.write("work/.caro.toml", "timeout = 0.05\n");
    let ran = machine.ask(json!([{ "reply": "ls -l", "delay_ms": 400 }]), &["list files"]);
    assert_eq!(ran.code, Some(124), "{ran:#?}");
    assert!(ran.err.contains(".caro.toml:1"), "{ran:#?}");
}

#[cfg(unix)]
#[test]
fn a_limit_on_file_sizes_does_not_prevent_an_answer() {
    let machine = Machine::new();
    let mut shell = std::process::Command::new("/bin/sh");
    shell.args(["-c", "ulimit -f 1; exec \"$0\" list files"]).arg(machine.caro(&[]).get_program());
    shell.env_clear().envs(machine.env()).env("CARO_MODEL", machine.model(rules()));
    let ran = Ran::of(shell.current_dir(machine.path("work")).stdin(Stdio::null()).output().unwrap());
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), "ls -a\n"), "{ran:#?}");
}

#[test]
fn from_changes_a_command_as_requested() {
    let machine = Machine::new();
    let rules = json!([{ "match": "largest first", "reply": "du -sh * | sort -rh" }]);
    let ran = machine.ask(rules.clone(), &["--debug", "--from", "du -sh *", "the largest first"]);
    assert_eq!((ran.code, ran.out.trim()), (Some(0), "du -sh * | sort -rh"), "{ran:#?}");
    let prompt = "[assistant] du -sh *\n[user] the largest first\n";
    assert!(ran.err.contains(prompt), "{ran:#?}");
    let ran = machine.ask(rules, &["--from", "  ", "the largest first"]);
    assert!(ran.code == Some(2) && ran.err.contains("--from has no command"), "{ran:#?}");
}
