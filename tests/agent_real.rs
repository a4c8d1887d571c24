//! Tests `caro agent` on the real model, end to end.

use crate::machine::Ran;
use std::process::Stdio;

#[test]
fn the_real_model_counts_tokens() {
    let Some(mut caro) = crate::support::model_or_skip("agent") else { return };
    let dir = tempfile::tempdir().unwrap();
    caro.args(["count the lines of a.txt", "--explain"]).env("XDG_DATA_HOME", dir.path()).current_dir(dir.path());
    let ran = Ran::of(caro.stdin(Stdio::null()).output().unwrap());
    assert!(ran.code == Some(0) && !ran.err.contains("estimated"), "{ran:#?}");
    assert!(ran.out.contains("persona: "), "{ran:#?}");
}

/// The demonstration task: find three of five log files in several folders, count their errors, write a report.
#[test]
fn the_real_model_finds_counts_and_reports_within_eight_steps() {
    if cfg!(debug_assertions) {
        println!("skipped: a whole run takes minutes in a debug build");
        return;
    }
    let Some(mut caro) = crate::support::model_or_skip("agent") else { return };
    let dir = tempfile::tempdir().unwrap();
    let work = dir.path().join("work");
    std::fs::create_dir_all(work.join("logs")).unwrap();
    std::fs::create_dir_all(work.join("var/old")).unwrap();
    let log = |name: &str, lines: usize, errors: usize| {
        let line = |i: usize| {
            if i.is_multiple_of(lines / errors) && i / (lines / errors) < errors {
                "ERROR timeout"
            } else {
                "INFO served in 12 ms"
            }
        };
        let text: String = (0..lines).map(|i| format!("{}\n", line(i))).collect();
        assert_eq!(text.matches("ERROR").count(), errors);
        std::fs::write(work.join(name), text).unwrap();
    };
    for (name, lines, errors) in [
        ("logs/web.log", 900, 17),
        ("logs/worker.log", 700, 55),
        ("var/old/batch.log", 500, 42),
        ("logs/small.log", 30, 3),
        ("var/tiny.log", 10, 1),
    ] {
        log(name, lines, errors);
    }
    std::fs::write(work.join("notes.md"), "# Notes\n").unwrap();
    let task = "find the three largest log files, show how many errors each has, and write a summary to report.md";
    let out = caro
        .args([task, "--yes", "--max-steps", "8", "--json"])
        .env("XDG_DATA_HOME", dir.path().join("data"))
        .current_dir(&work)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let ran = Ran::of(out);
    let report = std::fs::read_to_string(work.join("report.md")).unwrap_or_default();
    println!("{report}\n{}", ran.out);
    assert_eq!(ran.json()["status"], "completed", "{ran:#?}");
    assert!(ran.json()["steps"].as_u64().unwrap() <= 8);
    for (name, errors) in [("web.log", "17"), ("worker.log", "55"), ("batch.log", "42")] {
        // the form of the report is free: a table, a list, or separate lists of sizes and errors
        let has_count = |line: &str| line.split(|c: char| !c.is_ascii_digit()).any(|number| number == errors);
        assert!(report.lines().any(|line| line.contains(name) && has_count(line)), "{name} has {errors}: {report}");
    }
    assert!(!report.contains("small.log") && !report.contains("tiny.log"), "{report}");
}

/// A temporary folder with a working directory `work`, for calls of the binary on the real model.
struct TestFolder(tempfile::TempDir);

impl TestFolder {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("work")).unwrap();
        Self(dir)
    }

    fn work(&self, name: &str) -> std::path::PathBuf {
        self.0.path().join("work").join(name)
    }

    /// Runs a subcommand with `input` on standard input; `None`, with a printed reason, if the model is missing.
    fn run(&self, verb: &str, args: &[&str], input: &str) -> Option<Ran> {
        if cfg!(debug_assertions) {
            println!("skipped: a whole run takes minutes in a debug build");
            return None;
        }
        let mut caro = crate::support::model_or_skip(verb)?;
        caro.args(args)
            .env("XDG_DATA_HOME", self.0.path().join("data"))
            .env("XDG_STATE_HOME", self.0.path().join("state"));
        caro.env("CARO_CONFIG_FILE", self.0.path().join("config.toml")).current_dir(self.work(""));
        let ran = crate::machine::feed(caro, input.as_bytes());
        println!("{ran:#?}");
        Some(ran)
    }
}

#[test]
fn the_real_model_remembers_a_conversation_in_another_process() {
    let place = TestFolder::new();
    let args = ["--session", "dogs"];
    let Some(first) = place.run("chat", &args, "my dog is called Rex\n") else { return };
    assert_eq!(first.code, Some(0));
    let second = place.run("chat", &args, "what is my dog called?\n").unwrap();
    assert!(second.code == Some(0) && second.out.contains("Rex"), "{second:#?}");
}

#[test]
fn the_real_model_answers_from_documents_files_and_notes() {
    let place = TestFolder::new();
    let docs = place.0.path().join("docs");
    std::fs::create_dir(&docs).unwrap();
    std::fs::write(docs.join("net.md"), "# Network\n\nThe guest network of the office is called Heron.\n").unwrap();
    std::fs::write(docs.join("fire.md"), "# Fire\n\nIn a fire everyone leaves the office at once.\n").unwrap();
    let line = |i: usize| format!("Entry {i}: nothing happened on this day at sea.\n");
    let (before, after): (String, String) = ((0..300).map(line).collect(), (300..600).map(line).collect());
    std::fs::write(place.work("log.txt"), format!("{before}The mate Odile found the key.\n{after}")).unwrap();
    let Some(ingested) = place.run("knowledge", &["ingest", docs.to_str().unwrap()], "") else { return };
    let remembered = place.run("memory", &["remember", "the staging host is gopher-12"], "").unwrap();
    assert_eq!((ingested.code, remembered.code), (Some(0), Some(0)), "{ingested:#?} {remembered:#?}");
    for (question, words) in [
        ("what is the guest network of the office called?", &["Heron", "net.md:1-3"][..]),
        ("read log.txt and tell me who found the key", &["Odile"]),
        ("what is the staging host called?", &["gopher-12"]),
        ("who wrote Hamlet?", &["Shakespeare"]),
    ] {
        let ran = place.run("agent", &[question, "--yes"], "").unwrap();
        assert_eq!(ran.code, Some(0), "{question}: {ran:#?}");
        assert!(words.iter().all(|word| ran.out.contains(word)) && ran.err.contains("1 step,"), "{question}: {ran:#?}");
    }
}

#[test]
fn the_real_model_follows_a_skill() {
    let place = TestFolder::new();
    let skill = place.work(".agents/skills/changelog");
    std::fs::create_dir_all(&skill).unwrap();
    let text = "---\nname: changelog\ndescription: How changelog entries are written here\n---\n\
                Every changelog entry is one line. It begins with `CHG:` and ends with the word `(team web)`.\n";
    std::fs::write(skill.join("SKILL.md"), text).unwrap();
    let task = "write a changelog entry about the new login page to entry.txt";
    let Some(ran) = place.run("agent", &[task, "--yes", "--max-steps", "6"], "") else { return };
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    let entry = std::fs::read_to_string(place.work("entry.txt")).unwrap();
    assert!(entry.starts_with("CHG:") && entry.trim_end().ends_with("(team web)"), "{entry}");
    assert!(entry.contains("login") && entry.lines().count() == 1, "{entry}");
}

#[test]
fn the_real_model_calls_the_server_that_the_task_names() {
    if !crate::machine::have("python3") {
        println!("skipped: there is no python3 on {}", crate::machine::PATH);
        return;
    }
    let place = TestFolder::new();
    let server = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/mcp/server.py");
    let entry = serde_json::json!({"command": "python3", "args": [server], "env": {"SHELF": "lantern-74"}});
    let servers = serde_json::json!({"mcpServers": {"archive": entry}});
    std::fs::write(place.0.path().join("mcp.json"), servers.to_string()).unwrap();
    let task = "show the variable SHELF with the archive server";
    let Some(ran) = place.run("agent", &[task, "--yes", "--max-steps", "6", "--json"], "") else { return };
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    let report = ran.json();
    // only the server has this value
    assert!(report["response"].as_str().unwrap().contains("lantern-74"), "{report:#}");
    assert_eq!(report["status"], "completed");
}

#[test]
#[ignore = "a minute and more: benches/full.sh runs it"]
fn the_real_model_delegates_to_helpers() {
    let place = TestFolder::new();
    std::fs::write(place.work("one.log"), "ERROR a\nfine\nERROR b\nERROR c\n").unwrap();
    std::fs::write(place.work("two.log"), "ERROR a\nfine\n").unwrap();
    let task = "have two helpers count the errors in one.log and in two.log, and tell me which has more";
    let args = [task, "--subagents", "--yes", "--max-steps", "8", "--events", "jsonl"];
    let Some(ran) = place.run("agent", &args, "") else { return };
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    let events: Vec<serde_json::Value> = ran.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let of = |kind: &str| events.iter().filter(|e| e["event_type"] == kind).collect::<Vec<_>>();
    let outputs: Vec<_> =
        of("subagent_result").into_iter().filter(|e| e["metadata"]["bytes"].as_u64() > Some(0)).collect();
    assert_eq!(outputs.len(), 2, "each helper leaves its result: {outputs:#?}");
    let report = &of("agent_end")[0]["output"];
    // the wording is free: "one log has 3 errors" is right too
    let response = report["response"].as_str().unwrap().to_lowercase();
    assert!(response.contains("one") && response.contains('3'), "{response}");
}
