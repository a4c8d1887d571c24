//! Tests calls under unusual conditions: closed or full output, signals, an invalid home, huge commands, commands on
//! standard input, shell completion, damaged files.

use crate::machine::{AMPLE, Machine, Ran, feed};
use serde_json::json;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Runs a shell line in which `caro` is the binary.
fn by_shell(machine: &Machine, line: &str) -> Ran {
    let mut shell = Command::new("/bin/sh");
    shell.args(["-c", &line.replace("caro", "\"$0\""), env!("CARGO_BIN_EXE_caro")]);
    shell.env_clear().envs(machine.env()).env("CARO_MODEL", machine.model(json!([{ "reply": "ls -a" }])));
    Ran::of(shell.current_dir(machine.path("work")).stdin(Stdio::null()).output().unwrap())
}

/// The names of all files and folders below a folder.
fn names_below(folder: &std::path::Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        found.push(entry.file_name().to_string_lossy().into_owned());
        if entry.path().is_dir() {
            found.extend(names_below(&entry.path()));
        }
    }
    found
}

#[cfg(unix)]
#[test]
fn a_closed_output_is_an_error_and_nothing_is_done() {
    let machine = Machine::new();
    for verb in ["list files", "config", "memory remember something", "version", "--version", "check ls"] {
        let ran = by_shell(&machine, &format!("caro {verb} >&-"));
        assert_eq!(ran.code, Some(2), "{verb}: {ran:#?}");
        assert!(ran.err.starts_with("error: standard output is closed") && ran.err.contains("hint: "), "{ran:#?}");
    }
    assert_eq!(names_below(&machine.path("home")), [""; 0], "no note is stored, since its id cannot be printed");
    // /dev/null is an output, and stdin and stderr may be closed
    for line in ["caro list files >/dev/null", "caro list files <&- 2>&-", "caro config <>/dev/null >&0"] {
        let ran = by_shell(&machine, line);
        assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""), "{line}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_output_is_an_error_and_a_closed_pipe_is_not() {
    let machine = Machine::new();
    for verb in ["config", "--help", "-V", "undo --help"] {
        let ran = by_shell(&machine, &format!("caro {verb} >/dev/full"));
        assert_eq!(ran.code, Some(2), "{verb}: {ran:#?}");
        assert!(ran.err.contains("No space left"), "{verb}: {ran:#?}");
        // the reader has ended before the first write
        let ran = by_shell(&machine, &format!("{{ sleep 0.2; caro {verb}; echo $? >code; }} | :; cat code"));
        assert_eq!((ran.out.as_str(), ran.err.as_str()), ("0\n", ""), "{verb}: {ran:#?}");
    }
}

/// Sends a signal to a call that waits for its model.
#[cfg(unix)]
fn send_signal(args: &[&str], input: &[u8], signal: rustix::process::Signal) -> Ran {
    use std::io::Write;
    let machine = Machine::new();
    let mut caro = machine.caro(args);
    caro.env("CARO_MODEL", machine.model(json!([{ "reply": "echo one two three four", "delay_ms": 2000 }])));
    let mut child = caro.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(input).unwrap();
    let pid = rustix::process::Pid::from_child(&child);
    // wait until it has a handler for the signal
    let handles_signal = || {
        let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap_or_default();
        let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap_or("0").trim().to_owned();
        u64::from_str_radix(&caught, 16).unwrap_or_default() & (1 << (signal.as_raw() - 1)) != 0
    };
    let started = Instant::now();
    while !handles_signal() {
        assert!(started.elapsed() < AMPLE, "{args:?} never handles the signal");
        std::thread::sleep(Duration::from_millis(5));
    }
    std::thread::sleep(Duration::from_millis(200));
    rustix::process::kill_process(pid, signal).unwrap();
    let ran = Ran::of(child.wait_with_output().unwrap());
    drop(stdin);
    ran
}

#[cfg(target_os = "linux")]
#[test]
fn the_exit_code_has_the_signal() {
    use rustix::process::Signal;
    let line = &b"{\"request\": \"list files\"}\n"[..];
    for (args, input) in [(&["list files"][..], &b""[..]), (&["--json", "list files"], b""), (&["batch"], line)] {
        for (signal, code) in [(Signal::TERM, 143), (Signal::INT, 130)] {
            assert_eq!(send_signal(args, input, signal).code, Some(code), "{args:?}");
        }
    }
}

#[test]
fn a_relative_home_creates_no_folder_in_the_current_directory() {
    let machine = Machine::new();
    let run = |args: &[&str], name: &str, value: &str| {
        let mut caro = machine.caro(args);
        for own in ["CARO_CACHE_DIR", "CARO_CONFIG_FILE", "CARO_RUNTIME_DIR"] {
            caro.env_remove(own);
        }
        let script = machine.model(json!([{ "reply": "ls -a" }]));
        Ran::of(caro.env("CARO_MODEL", script).env(name, value).output().unwrap())
    };
    for args in [&["config"][..], &["check", "ls -l"], &["list files"], &["memory", "remember", "it"], &["context"]] {
        let ran = run(args, "HOME", "relative");
        assert!(ran.err.contains("warning: HOME is `relative`, which is not an absolute path"), "{ran:#?}");
        assert_eq!(names_below(&machine.path("work")), [""; 0], "{args:?}: {ran:#?}");
        for name in ["XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_RUNTIME_DIR"] {
            run(args, name, "relative");
            assert_eq!(names_below(&machine.path("work")), [""; 0], "{args:?}: {name}");
        }
    }
    let ran = run(&["memory", "remember", "it"], "HOME", "relative");
    assert!(ran.code == Some(2) && ran.err.contains("no home folder"), "{ran:#?}");
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_leaves_no_partial_skill() {
    let machine = Machine::new();
    // a limit on the file size makes a write fail, as on a full disk
    let line = "ulimit -f 0; trap '' XFSZ; caro skills new notes --description 'Writes notes.'";
    let ran = by_shell(&machine, line);
    assert_eq!(ran.code, Some(2), "{ran:#?}");
    assert!(ran.err.contains("could not make"), "{ran:#?}");
    assert_eq!(names_below(&machine.path("skills")), [""; 0]);
    let ran = by_shell(&machine, "caro skills new notes --description 'Writes notes.'");
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    assert_eq!(names_below(&machine.path("skills")), ["notes", "SKILL.md"]);
}

#[test]
fn commands_nested_too_deep_are_reported() {
    let machine = Machine::new();
    let deep =
        ["(".repeat(10_000), "(".repeat(5_000) + "ls" + &")".repeat(5_000), "$(".repeat(4_000) + &")".repeat(4_000)];
    for command in &deep {
        let ran = machine.run(&["check", "--shell", "bash", command]);
        assert_eq!(ran.code, Some(1), "{ran:#?}");
        assert!(ran.out.contains("too deep") && !ran.out.contains("quote") && ran.out.len() < 1_000, "{ran:#?}");
        let document = machine.run(&["check", "--json", "--shell", "bash", command]).json();
        assert_eq!(document["findings"][0]["id"], "too-deep", "{document:#}");
        let ran = machine.run(&["explain", command]);
        assert_eq!(ran.code, Some(1));
        assert!(ran.out.contains("too deep") && ran.out.len() < 20_000, "{ran:#?}");
    }
}

#[test]
fn the_output_for_a_huge_command_is_limited() {
    let machine = Machine::new();
    let many = (0..700).map(|i| format!("ls --no{i}")).collect::<Vec<_>>().join("; ");
    let dangers = vec!["rm -rf /"; 1_500].join("; ");
    let long = format!("nosuchprogram{}", "x".repeat(15_000));
    for command in [&many, &dangers, &long] {
        let ran = machine.run(&["check", "--shell", "bash", command]);
        assert_eq!(ran.code, Some(1));
        assert!(ran.out.len() < 40_000, "{} bytes of {command:.40}", ran.out.len());
        let ran = machine.run(&["check", "--json", "--shell", "bash", command]);
        assert!(ran.out.len() < 200_000, "{} bytes of {command:.40}", ran.out.len());
        ran.json();
    }
    let document = machine.run(&["check", "--json", "--shell", "bash", &many]).json();
    assert!(document["unlisted"].as_u64().unwrap() > 0);
    assert!(machine.run(&["check", "--shell", "bash", &many]).out.contains("more; look at its commands one by one"));
}

#[test]
fn a_command_may_come_on_standard_input() {
    let machine = Machine::new();
    let feed_caro = |args: &[&str], input: &[u8]| feed(machine.caro(args), input);
    for args in [&["check", "-", "--json"][..], &["check", "--json", "-"], &["--json", "check", "-"]] {
        let document = feed_caro(args, b"rm -rf /\n").json();
        assert_eq!((&document["cmd"], &document["risk"]["level"]), (&json!("rm -rf /"), &json!("danger")), "{args:?}");
    }
    let explained = feed_caro(&["explain", "-", "--json"], b"ls -l\n").json();
    assert_eq!(explained["cmd"], "ls -l");
    let script = feed_caro(&["check", "--json", "-"], b"cd /tmp\nls -l\n").json();
    assert_eq!(script["commands_used"], json!(["cd", "ls"]));
    for verb in ["check", "explain"] {
        feed_caro(&[verb, "-"], b"").fails(2, &["no command", "standard input"]);
        feed_caro(&[verb, "-"], b"\xff\xfe").fails(2, &["not valid UTF-8"]);
        // input longer than any argument, and endless input
        feed_caro(&[verb, "-"], "a | ".repeat(100_000).as_bytes()).fails(2, &["more than 16384 bytes"]);
        if cfg!(unix) {
            by_shell(&machine, &format!("caro {verb} - </dev/zero")).fails(2, &["more than 16384 bytes"]);
        }
    }
}

#[test]
fn words_after_a_verb_get_a_fitting_hint() {
    let machine = Machine::new();
    let ran = machine.run(&["check", "smart", "health", "of", "/dev/sda"]);
    assert_eq!(ran.code, Some(2));
    assert!(ran.err.contains("caro \"check smart health of /dev/sda\""), "{ran:#?}");
    let ran = machine.run(&["check", "ls", "-l", "/tmp"]);
    assert!(ran.err.contains("caro check 'ls -l /tmp'"), "{ran:#?}");
}

/// Unknown settings of a project (of a newer version, or misspelt) stop no call in its folder.
#[cfg(unix)]
#[test]
fn an_invalid_setting_of_a_project_is_reported_once_and_skipped() {
    let machine = Machine::new();
    machine.write("work/.caro.toml", "glow = true\nshell = \"fish\"\n");
    let ran = machine.ask(json!([{ "reply": "ls -a" }]), &["list files", "--json"]);
    assert_eq!((ran.code, &ran.json()["shell"]), (Some(0), &json!("fish")), "{ran:#?}");
    assert_eq!(ran.err.matches("glow").count(), 1, "{ran:#?}");
    let ran = machine.ask(json!([{ "reply": "ls -a" }]), &["list files", "-q"]);
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""));
    let endless = |verb: &[&str]| Ran::of(machine.caro(verb).env("CARO_CONFIG_FILE", "/dev/zero").output().unwrap());
    for verb in [&["config"][..], &["list files"], &["check", "ls"], &["agent", "count the files"]] {
        endless(verb).fails(2, &["/dev/zero cannot be read: it has more than"]);
    }
}

/// No file named on the command line or found in the project is read without a limit.
#[cfg(unix)]
#[test]
fn every_file_is_read_up_to_a_limit() {
    let machine = Machine::new();
    std::os::unix::fs::symlink("/dev/zero", machine.path("work/zero.toml")).unwrap();
    std::fs::create_dir_all(machine.path("work/.agents/skills/zero")).unwrap();
    std::os::unix::fs::symlink("/dev/zero", machine.path("work/.agents/skills/zero/SKILL.md")).unwrap();
    std::os::unix::fs::symlink("/dev/zero", machine.path("work/.mcp.json")).unwrap();
    let model = ["--model", "script:/dev/zero", "x"];
    for args in [
        &["eval", "zero.toml"][..],
        &["bench", "loop", "--requests", "/dev/zero"],
        &model,
        &["skills", "list"],
        &["skills", "check", "zero"],
        &["mcp", "list"],
    ] {
        let started = Instant::now();
        let ran = machine.run(args);
        assert!(started.elapsed() < AMPLE, "{args:?}");
        assert!(ran.code.is_some_and(|code| code <= 2), "{args:?}: {ran:#?}");
    }
}

/// The completions of bash for the last of these words.
#[cfg(unix)]
fn bash_completions(machine: &Machine, words: &[&str]) -> Vec<String> {
    let script = machine.run(&["completions", "bash"]).out;
    let line = format!(
        "caro() {{ \"$BINARY\" \"$@\"; }}\n{script}\nCOMP_WORDS=(caro \"$@\")\nCOMP_CWORD=$#\n\
         _caro caro \"${{COMP_WORDS[COMP_CWORD]}}\" \"${{COMP_WORDS[COMP_CWORD-1]}}\"\n\
         printf '%s\\n' \"${{COMPREPLY[@]}}\""
    );
    let mut bash = Command::new("bash");
    bash.args(["-c", &line, "bash"]).args(words).env_clear().envs(machine.env());
    bash.env("BINARY", env!("CARGO_BIN_EXE_caro")).current_dir(machine.path("work")).stdin(Stdio::null());
    Ran::of(bash.output().unwrap()).out.lines().map(str::to_owned).collect()
}

#[cfg(unix)]
#[test]
fn bash_completes_models_and_file_names_with_spaces() {
    if !crate::machine::have("bash") {
        return println!("skipped: there is no bash here");
    }
    let machine = Machine::new();
    machine.write("work/qwen notes.txt", "");
    machine.write("work/two words.gguf", "");
    for words in
        [&["--model", ""][..], &["agent", "--model", ""], &["model", "pull", ""], &["model", "path", "qwen2.5"]]
    {
        let found = bash_completions(&machine, words);
        assert!(found.iter().any(|one| one == "qwen2.5-coder-1.5b"), "{words:?}: {found:?}");
        assert!(
            !found.iter().any(|one| one.contains(' ') && !one.ends_with(".txt") && !one.ends_with(".gguf")),
            "{found:?}"
        );
    }
    let files = bash_completions(&machine, &["--model", "two"]);
    assert_eq!(files, ["two words.gguf"]);
    assert_eq!(bash_completions(&machine, &["agent", "--model", "qwen n"]), ["qwen notes.txt"]);
}

#[cfg(unix)]
#[test]
fn fish_completes_verbs_options_and_values() {
    if !crate::machine::have("fish") {
        return println!("skipped: there is no fish here");
    }
    let machine = Machine::new();
    let script = machine.run(&["completions", "fish"]).out;
    machine.write("caro.fish", format!("function caro; $BINARY $argv; end\n{script}"));
    machine.run(&["history", "on"]);
    for (line, wanted) in [
        ("caro --target mac", "macos-bsd"),
        ("caro --model qwen2.5", "qwen2.5-coder-1.5b"),
        ("caro model pull qwen2.5", "qwen2.5-coder-1.5b"),
        ("caro model adapter verify qwen", "qwen2.5-coder-1.5b-shell"),
        ("caro config set time", "timeout"),
        ("caro help exi", "exit-codes"),
        ("caro help una", ""),
        ("caro history o", "on"),
        ("caro completions f", "fish"),
    ] {
        let mut fish = Command::new("fish");
        let ask = format!("source {}; complete -C '{line}'", machine.path("caro.fish").display());
        fish.args(["--no-config", "-c", &ask]).env_clear().envs(machine.env());
        fish.env("BINARY", env!("CARGO_BIN_EXE_caro")).current_dir(machine.path("work")).stdin(Stdio::null());
        let found = Ran::of(fish.output().unwrap()).out;
        let found: Vec<&str> = found.lines().filter_map(|line| line.split('\t').next()).collect();
        assert_eq!(found.contains(&wanted), !wanted.is_empty(), "{line}: {found:?}");
    }
}

#[cfg(unix)]
#[test]
fn completion_scripts_are_valid_in_their_shells() {
    let machine = Machine::new();
    for (shell, flag) in [("bash", "-n"), ("zsh", "-n"), ("fish", "--no-execute")] {
        if !crate::machine::have(shell) {
            println!("skipped: there is no {shell} here");
            continue;
        }
        machine.write("script", machine.run(&["completions", shell]).out);
        let mut command = Command::new(shell);
        let ran = Ran::of(command.arg(flag).arg(machine.path("script")).stdin(Stdio::null()).output().unwrap());
        assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""), "{shell}: {ran:#?}");
    }
}

/// The path of the first file with this name below a folder.
fn find(folder: &std::path::Path, name: &str) -> std::path::PathBuf {
    let mut folders = vec![folder.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for path in std::fs::read_dir(folder).unwrap().flatten().map(|e| e.path()) {
            if path.file_name().is_some_and(|found| found == name) {
                return path;
            }
            if path.is_dir() {
                folders.push(path);
            }
        }
    }
    panic!("there is no {name}");
}

#[test]
fn a_damaged_file_is_named_and_repair_saves_what_is_readable() {
    let machine = Machine::new();
    machine.write("work/tides.md", "# Tides\n\nHigh water is at noon.\n");
    let script = [&machine.run(&["memory", "remember", "the boat is white"]), &machine.run(&["knowledge", "add", "."])];
    assert!(script.iter().all(|ran| ran.code == Some(0)), "{script:#?}");
    let rules = json!([{ "reply": "Thought: done\nAction: answer {\"text\": \"hello\"}" }]);
    assert_eq!(machine.ask(rules, &["agent", "say hello"]).code, Some(0));
    for (verb, file, look) in [
        ("memory", "memory.db", &["memory", "list"][..]),
        ("knowledge", "knowledge.db", &["knowledge", "query", "tides"]),
        ("session", "agent.db", &["session", "list"]),
    ] {
        let sound = machine.run(&[verb, "repair"]);
        assert!(sound.code == Some(0) && sound.out.contains("nothing is wrong with it"), "{sound:#?}");
        let path = find(&machine.path("home"), file);
        let original = std::fs::read(&path).unwrap();
        // if its beginning is overwritten, nothing can be saved
        std::fs::write(&path, [&[0xa5; 4096][..], &original[4096.min(original.len())..]].concat()).unwrap();
        let _ = std::fs::remove_file(path.with_extension("db-wal"));
        let ran = machine.run(look);
        assert_eq!(ran.code, Some(2), "{ran:#?}");
        for word in [file, "its beginning was overwritten", &format!("hint: `caro {verb} repair`")] {
            assert!(ran.err.contains(word), "no {word:?} in {ran:#?}");
        }
        let saved = machine.run(&[verb, "repair"]);
        assert_eq!(saved.code, Some(0), "{saved:#?}");
        assert!(saved.out.contains("saved 0 ") && saved.out.contains(&format!("{file}.damaged")), "{saved:#?}");
        assert!(path.with_extension("db.damaged").exists());
        assert!(machine.run(look).code.is_some_and(|code| code < 2), "it works after the repair");
    }
    // if a later page is overwritten, most entries are saved
    for n in 0..60 {
        machine.run(&["memory", "remember", &format!("note {n}: {}", "the mast is of wood ".repeat(20))]);
    }
    let path = find(&machine.path("home"), "memory.db");
    let mut bytes = std::fs::read(&path).unwrap();
    // overwrite a page with notes
    let at = bytes.windows(8).position(|some| some == b"note 30:").unwrap() / 4096 * 4096;
    bytes[at..at + 4096].fill(0xa5);
    std::fs::write(&path, &bytes).unwrap();
    let ran = machine.run(&["memory", "list", "--limit", "100"]);
    assert!(ran.code == Some(2) && ran.err.contains("it is damaged"), "{ran:#?}");
    let document = machine.run(&["memory", "repair", "--json"]).json();
    let notes = document["repaired"][0]["entries"]["notes"].as_u64().unwrap();
    assert!((30..60).contains(&notes), "{document:#}");
    let listed = machine.run(&["memory", "list", "--limit", "100", "--json"]).json();
    assert_eq!(listed.as_array().unwrap().len() as u64, notes);
    let found = machine.run(&["memory", "query", "mast of wood", "--json"]).json();
    assert!(!found.as_array().unwrap().is_empty(), "the saved notes are searchable");
}
