//! Tests the resident process end to end: the real binary, a scripted model, and failures between the processes. Each
//! test has a folder of its own and ends the processes it started.

use crate::machine::{AMPLE, Machine, Ran};
use crate::support::model_or_skip;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A machine whose calls use the resident.
struct Home {
    machine: Machine,
}

impl Home {
    fn new() -> Self {
        let home = Self { machine: Machine::new() };
        home.machine.model(json!([
            { "match": "slow", "reply": "ls one two three four five six seven eight nine ten", "delay_ms": 400 },
            { "reply": "ls -a" },
        ]));
        home
    }

    fn command(&self, args: &[&str]) -> Command {
        self.command_of(env!("CARGO_BIN_EXE_caro").into(), args)
    }

    fn command_of(&self, program: PathBuf, args: &[&str]) -> Command {
        let mut caro = Command::new(program);
        caro.args(args).env_clear().envs(self.machine.env()).current_dir(self.machine.path("work"));
        caro.stdin(Stdio::null()).env("CARO_RESIDENT", "on");
        caro.env("CARO_MODEL", format!("script:{}", self.machine.path("script.json").display()));
        caro
    }

    fn run(&self, args: &[&str]) -> Ran {
        Ran::of(self.command(args).output().unwrap())
    }

    /// Sends a request and returns the answer's document.
    #[track_caller]
    fn ask(&self, words: &str) -> Value {
        let ran = self.run(&["--json", words]);
        assert_eq!(ran.code, Some(0), "{ran:#?}");
        ran.json()
    }

    fn start(&self, args: &[&str]) -> Child {
        self.command(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }

    fn residents(&self) -> Vec<Value> {
        self.run(&["status", "--json"]).json()["residents"].as_array().unwrap().clone()
    }

    /// The process id of the only resident.
    #[track_caller]
    fn pid(&self) -> i32 {
        let all = self.residents();
        assert_eq!(all.len(), 1, "{all:#?}");
        i32::try_from(all[0]["pid"].as_i64().unwrap()).unwrap()
    }

    /// Waits until a resident has this many requests in progress.
    #[track_caller]
    fn wait_until_busy(&self, jobs: u64) {
        wait_for("a busy resident", || self.residents().iter().any(|r| r["waiting"] == jobs));
    }

    /// The ids of all resident processes of this home, from `/proc`.
    fn processes(&self) -> Vec<i32> {
        let run = self.machine.path("run").display().to_string();
        let is_ours = |pid: &i32| {
            let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            let line = String::from_utf8_lossy(&line);
            line.contains("__resident") && line.contains(&run)
        };
        let all = std::fs::read_dir("/proc").unwrap().flatten();
        all.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).filter(is_ours).collect()
    }

    fn sockets(&self) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(self.machine.path("run")).into_iter().flatten().flatten();
        entries.map(|e| e.path()).filter(|p| p.extension().is_some_and(|e| e == "sock")).collect()
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        for pid in self.processes() {
            signal(pid, rustix::process::Signal::KILL);
        }
    }
}

fn signal(pid: i32, signal: rustix::process::Signal) {
    let _ = rustix::process::kill_process(rustix::process::Pid::from_raw(pid).unwrap(), signal);
}

/// Suspends a process, and waits until it is suspended.
#[track_caller]
fn suspend(pid: i32) {
    signal(pid, rustix::process::Signal::STOP);
    let state = || {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
        stat.rsplit(')').next().unwrap().trim_start().chars().next()
    };
    wait_for("standstill", || state() == Some('T'));
}

#[track_caller]
fn wait_for(what: &str, mut is_so: impl FnMut() -> bool) {
    let since = Instant::now();
    while !is_so() {
        assert!(since.elapsed() < AMPLE, "no {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn finish(child: Child) -> Ran {
    Ran::of(child.wait_with_output().unwrap())
}

#[test]
fn the_first_call_starts_the_resident_and_later_calls_use_it() {
    let home = Home::new();
    assert_eq!(home.run(&["stop"]).out, "no resident process was running\n");
    assert_eq!(
        (home.run(&["status"]).code, home.run(&["status"]).out),
        (Some(1), "no resident process is running\n".into())
    );
    for n in 1..=3 {
        let answer = home.ask("list files");
        assert_eq!((&answer["cmd"], &answer["resident"]), (&json!("ls -a"), &json!(true)), "{answer:#}");
        // it is counted after its answer is sent
        wait_for("count", || home.residents()[0]["served"] == n);
    }
    let pid = home.pid();
    assert_eq!(home.processes(), [pid]);
    let ran = home.run(&["-v", "list files"]);
    assert!(ran.err.contains(&format!("resident: process {pid} answered")), "{ran:#?}");
    let shown = home.run(&["status"]);
    for word in [&format!("process {pid}, caro "), "script:script.json", "4 answered, 0 under way", "in 14 min"] {
        assert!(shown.out.contains(word), "no {word:?} in {shown:#?}");
    }
    assert_eq!(home.run(&["stop"]).out, format!("process {pid} ended\n"));
    wait_for("end", || home.processes().is_empty());
    assert!(home.sockets().is_empty());
}

#[test]
fn calls_without_a_model_or_without_a_resident_start_none() {
    let home = Home::new();
    for args in [&["--version"][..], &["--help"], &["config"], &["status"], &["--resident", "off", "list files"]] {
        home.run(args);
    }
    // `auto` starts none for a scripted model, and a batch has its own model
    let ran = home.run(&["--resident", "auto", "list files"]);
    assert_eq!(ran.out, "ls -a\n");
    let mut batch = home.command(&["batch"]);
    batch.env("CARO_RESIDENT", "auto");
    let ran = crate::machine::feed(batch, b"{\"request\": \"list files\"}\n");
    assert_eq!((&ran.json()["cmd"], ran.json().get("resident")), (&json!("ls -a"), None));
    assert!(home.processes().is_empty() && !home.machine.path("run").exists());
}

/// The model file is invalid, but a resident would be started before that is found out.
#[test]
fn agent_and_chat_load_their_own_model() {
    let home = Home::new();
    let file = home.machine.path("broken.gguf");
    std::fs::write(&file, "GGUF").unwrap();
    for args in [&["agent", "list files"][..], &["chat"]] {
        let mut caro = home.command(args);
        caro.env("CARO_RESIDENT", "auto").env("CARO_MODEL", &file);
        let ran = Ran::of(caro.output().unwrap());
        assert!(ran.code != Some(0) && ran.err.contains("broken.gguf"), "{ran:#?}");
        assert!(!home.machine.path("run").exists(), "{args:?} asked for a resident");
    }
}

#[test]
fn a_call_above_the_limit_does_not_replace_the_resident() {
    let home = Home::new();
    home.ask("list files");
    let pid = home.pid();
    let mut crowd = Vec::new();
    wait_for("full house", || {
        let mut one = std::os::unix::net::UnixStream::connect(&home.sockets()[0]).unwrap();
        let greeting = br#"{"hello":{"idle_s":60.0}}"#;
        let length = u32::try_from(greeting.len()).unwrap().to_le_bytes();
        let _ = one.write_all(&[&length[..], greeting].concat());
        let mut reply = [0; 64];
        let count = one.read(&mut reply).unwrap_or(0);
        // an earlier connection may just be closing
        if String::from_utf8_lossy(&reply[..count]).contains("hello") {
            crowd.push(one);
        }
        crowd.len() == 32
    });
    let ran = home.run(&["--json", "list files"]);
    assert_eq!((&ran.json()["cmd"], ran.json().get("resident")), (&json!("ls -a"), None), "{ran:#?}");
    assert!(ran.err.contains("has as many callers as it takes"), "{ran:#?}");
    assert_eq!(home.processes(), [pid]);
    drop(crowd);
    wait_for("room", || home.ask("list files").get("resident").is_some());
    assert_eq!(home.processes(), [pid]);
}

#[test]
fn concurrent_first_calls_start_one_resident() {
    let home = Home::new();
    let calls: Vec<Child> = (0..6).map(|_| home.start(&["--json", "list files"])).collect();
    for call in calls {
        let ran = finish(call);
        assert_eq!((ran.code, &ran.json()["cmd"]), (Some(0), &json!("ls -a")), "{ran:#?}");
    }
    assert_eq!((home.processes().len(), home.sockets().len()), (1, 1));
}

#[test]
fn the_resident_inherits_nothing_of_its_caller() {
    let home = Home::new();
    let file = home.machine.path("held");
    // a descriptor that the caller inherits, as by `caro ... 9>held` in a shell
    let mut caro = Command::new("bash");
    caro.args(["-c", "exec 9>\"$1\"; shift; exec \"$@\"", "bash"]).arg(&file).arg(env!("CARGO_BIN_EXE_caro"));
    caro.args(["list files"]).env_clear().envs(home.machine.env()).current_dir(home.machine.path("work"));
    caro.env("CARO_RESIDENT", "on").env("SECRET", "hidden").stdin(Stdio::null());
    caro.env("CARO_MODEL", format!("script:{}", home.machine.path("script.json").display()));
    assert_eq!(Ran::of(caro.output().unwrap()).out, "ls -a\n");
    let pid = home.pid();
    let environ = std::fs::read(format!("/proc/{pid}/environ")).unwrap();
    let environ = String::from_utf8_lossy(&environ).into_owned();
    assert!(!environ.contains("SECRET") && !environ.contains("CARO_") && !environ.contains("PATH="), "{environ}");
    let link = |name: &str| std::fs::read_link(format!("/proc/{pid}/{name}")).unwrap();
    assert_eq!((link("cwd"), link("fd/1"), link("fd/2")), ("/".into(), "/dev/null".into(), "/dev/null".into()));
    for fd in std::fs::read_dir(format!("/proc/{pid}/fd")).unwrap().flatten() {
        assert_ne!(std::fs::read_link(fd.path()).ok().as_ref(), Some(&file), "it holds the caller's file");
    }
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
    // proc_pid_stat(5): session and terminal
    assert_eq!((fields[3], fields[4]), (&*pid.to_string(), "0"), "a session of its own, and no terminal");
}

#[test]
fn when_the_resident_is_killed_the_call_answers_itself() {
    let home = Home::new();
    home.ask("list files");
    let pid = home.pid();
    let call = home.start(&["--json", "-v", "slow"]);
    home.wait_until_busy(1);
    signal(pid, rustix::process::Signal::KILL);
    let ran = finish(call);
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    assert!(ran.out.contains("ls one two three four five six seven eight nine ten"), "{ran:#?}");
    assert!(ran.json().get("resident").is_none(), "this process answered: {ran:#?}");
    assert!(ran.err.contains("answered in this process"), "{ran:#?}");
    // its socket is left, and does not prevent a new resident
    assert_eq!(home.sockets().len(), 1);
    assert_eq!(home.ask("list files")["resident"], true);
    assert_ne!(home.pid(), pid);
}

#[test]
fn when_the_resident_is_suspended_the_call_answers_itself() {
    let home = Home::new();
    home.ask("list files");
    let pid = home.pid();
    let call = home.start(&["--json", "slow"]);
    home.wait_until_busy(1);
    suspend(pid);
    let since = Instant::now();
    let ran = finish(call);
    assert_eq!((ran.code, ran.json().get("resident")), (Some(0), None), "{ran:#?}");
    assert!(since.elapsed() < AMPLE, "{:?}", since.elapsed());
    // its socket is gone, but it is still listed
    assert!(home.run(&["status"]).out.contains(&format!("process {pid} does not answer")));
    // the next call starts a new one, and the suspended one is killed
    assert_eq!(home.ask("list files")["resident"], true);
    let second = home.pid();
    assert_ne!(second, pid);
    assert_eq!(home.processes(), [second]);

    suspend(second);
    let since = Instant::now();
    let ran = home.run(&["--json", "list files"]);
    assert_eq!((ran.code, ran.json().get("resident")), (Some(0), None), "{ran:#?}");
    assert!(ran.err.contains("does not answer"), "with `on` it is reported: {ran:#?}");
    assert!(since.elapsed() < AMPLE, "{:?}", since.elapsed());
    assert_eq!(home.ask("list files")["resident"], true);
}

#[test]
fn a_resident_that_does_not_answer_is_listed_and_killed_by_stop() {
    let home = Home::new();
    home.ask("list files");
    let pid = home.pid();
    suspend(pid);
    assert!(home.run(&["status"]).out.contains(&format!("process {pid} does not answer")));
    assert_eq!(home.run(&["stop"]).out, format!("process {pid} did not answer and was killed\n"));
    wait_for("end", || home.processes().is_empty());
    assert!(home.sockets().is_empty());
}

/// As after a call that gave up on it, or after temporary files were deleted.
#[test]
fn a_suspended_resident_without_a_socket_is_listed_and_killed_by_stop() {
    let home = Home::new();
    home.ask("list files");
    let pid = home.pid();
    suspend(pid);
    for socket in home.sockets() {
        std::fs::remove_file(socket).unwrap();
    }
    let shown = home.run(&["status", "--json"]);
    assert_eq!((shown.code, &shown.json()["residents"]), (Some(0), &json!([{ "pid": pid, "answers": false }])));
    assert_eq!(home.run(&["stop", "--json"]).json(), json!({ "stopped": [{ "pid": pid, "killed": true }] }));
    assert!(home.processes().is_empty());
    assert_eq!(home.run(&["stop"]).out, "no resident process was running\n");
    let files = std::fs::read_dir(home.machine.path("run")).unwrap().flatten().map(|e| e.file_name());
    assert_eq!(files.collect::<Vec<_>>(), ["lock"], "no record is left either");
}

/// The process id in a record may belong to another process by now.
#[test]
fn stop_kills_no_other_process_of_the_recorded_id() {
    let home = Home::new();
    home.ask("list files");
    let record = |pid: u32| {
        let files = std::fs::read_dir(home.machine.path("run")).unwrap().flatten().map(|e| e.path());
        let file = files.into_iter().find(|p| p.extension().is_some_and(|e| e == "json")).unwrap();
        let mut record: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
        record["pid"] = pid.into();
        std::fs::write(file, record.to_string()).unwrap();
    };
    let mut bystander = Command::new("sleep").arg("600").spawn().unwrap();
    record(bystander.id());
    assert_eq!(home.residents().len(), 1);
    assert!(home.run(&["stop"]).out.ends_with(" ended\n"));
    assert!(bystander.try_wait().unwrap().is_none(), "another process was killed");
    bystander.kill().unwrap();
    bystander.wait().unwrap();
}

#[test]
fn a_call_is_answered_whatever_listens_at_the_socket() {
    let home = Home::new();
    home.ask("list files");
    let socket = home.sockets().remove(0);
    for (name, reply) in [
        ("garbage", &b"HTTP/1.1 400 Bad Request\r\n\r\n"[..]),
        ("a frame of four gigabytes", b"\xff\xff\xff\xff"),
        ("an answer to another question", b"\x0b\0\0\0{\"count\":1}"),
        ("another protocol", b"\x3e\0\0\0{\"hello\":{\"protocol\":9,\"program\":\"\",\"model\":\"\",\"pid\":1}}      "),
        ("the end", b""),
    ] {
        home.run(&["stop"]);
        let listener = UnixListener::bind(&socket).unwrap();
        let thread = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let _ = stream.read(&mut [0; 64]);
            let _ = stream.write_all(reply);
        });
        let since = Instant::now();
        let answer = home.ask("list files");
        assert_eq!((&answer["cmd"], &answer["resident"]), (&json!("ls -a"), &json!(true)), "{name}: it is replaced");
        assert!(since.elapsed() < AMPLE, "{name}: {:?}", since.elapsed());
        thread.join().unwrap();
    }
    // one that greets correctly, and then sends nonsense
    home.run(&["stop"]);
    let hello = record_greeting(&home, &socket);
    let listener = UnixListener::bind(&socket).unwrap();
    let thread = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let _ = stream.read(&mut [0; 64]);
        stream.write_all(&hello).unwrap();
        let _ = stream.read(&mut [0; 4096]);
        let _ = stream.write_all(b"\x04\0\0\0nope");
    });
    let answer = home.ask("list files");
    assert_eq!((&answer["cmd"], answer.get("resident")), (&json!("ls -a"), None), "{answer:#}");
    thread.join().unwrap();
}

/// Records the greeting of a real resident.
fn record_greeting(home: &Home, socket: &std::path::Path) -> Vec<u8> {
    home.ask("list files");
    let mut stream = std::os::unix::net::UnixStream::connect(socket).unwrap();
    let call = br#"{"hello":{"idle_s":900.0}}"#;
    stream.write_all(&[&(call.len() as u32).to_le_bytes()[..], call].concat()).unwrap();
    let mut bytes = vec![0; 4];
    stream.read_exact(&mut bytes).unwrap();
    let length = u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]) as usize;
    bytes.resize(4 + length, 0);
    stream.read_exact(&mut bytes[4..]).unwrap();
    home.run(&["stop"]);
    bytes
}

#[test]
fn a_runtime_folder_open_to_others_is_not_used() {
    let home = Home::new();
    let run = home.machine.path("run");
    std::fs::create_dir(&run).unwrap();
    std::fs::set_permissions(&run, std::fs::Permissions::from_mode(0o755)).unwrap();
    let ran = home.run(&["list files"]);
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), "ls -a\n"));
    assert!(ran.err.contains("others may use it (mode 755)") && ran.err.contains("CARO_RUNTIME_DIR"), "{ran:#?}");
    home.run(&["status"]).fails(1, &["others may use it"]);
    home.run(&["stop"]).fails(1, &["others may use it"]);
    // a link to a folder that would be suitable
    std::fs::set_permissions(&run, std::fs::Permissions::from_mode(0o700)).unwrap();
    std::fs::rename(&run, home.machine.path("other")).unwrap();
    std::os::unix::fs::symlink(home.machine.path("other"), &run).unwrap();
    let ran = home.run(&["list files"]);
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), "ls -a\n"));
    assert!(ran.err.contains("it is not a folder"), "{ran:#?}");
    assert!(home.processes().is_empty());
}

#[test]
fn a_new_binary_replaces_the_resident_of_the_old_one() {
    let home = Home::new();
    let program = home.machine.path("caro");
    let install = || {
        let new = home.machine.path("caro.new");
        // written by a child: no other thread's child inherits the open file, which would keep it from being run
        let copied = std::process::Command::new("cp").arg(env!("CARGO_BIN_EXE_caro")).arg(&new).status();
        assert!(copied.unwrap().success());
        std::fs::rename(new, &program).unwrap();
    };
    let ask = |words: &str| {
        let mut command = home.command_of(program.clone(), &["--json", words]);
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        child.unwrap()
    };
    install();
    assert_eq!(finish(ask("list files")).json()["resident"], true);
    let old = home.pid();
    // the old one finishes its request
    let slow = ask("slow");
    home.wait_until_busy(1);
    install();
    assert_eq!(finish(ask("list files")).json()["resident"], true);
    let ran = finish(slow);
    assert_eq!((ran.code, &ran.json()["resident"]), (Some(0), &json!(true)), "{ran:#?}");
    let new = home.pid();
    assert_ne!(new, old);
    wait_for("end of the old one", || home.processes() == [new]);
}

#[test]
fn a_resident_ends_when_its_model_file_is_replaced_or_deleted() {
    let home = Home::new();
    home.ask("list files");
    let old = home.pid();
    home.machine.model(json!([{ "reply": "ls -l" }]));
    let answer = home.ask("list files");
    assert_eq!((&answer["cmd"], &answer["resident"]), (&json!("ls -l"), &json!(true)));
    wait_for("end of the old one", || !home.processes().contains(&old));
    std::fs::remove_file(home.machine.path("script.json")).unwrap();
    wait_for("end without a model", || home.processes().is_empty());
    assert!(home.sockets().is_empty());
}

#[test]
fn a_relative_runtime_folder_is_relative_to_the_callers_folder() {
    let home = Home::new();
    let mut caro = home.command(&["--json", "list files"]);
    let ran = Ran::of(caro.current_dir(home.machine.path("")).env("CARO_RUNTIME_DIR", "run").output().unwrap());
    assert_eq!(ran.json()["resident"], true, "{ran:#?}");
    assert_eq!(home.processes().len(), 1, "its socket is in that folder");
    assert!(home.processes().contains(&home.pid()));
}

#[test]
fn an_idle_resident_ends() {
    let home = Home::new();
    let ran = Ran::of(home.command(&["--json", "list files"]).env("CARO_RESIDENT_IDLE", "0.5").output().unwrap());
    assert_eq!(ran.json()["resident"], true);
    wait_for("end", || home.processes().is_empty());
    assert!(home.sockets().is_empty());
}

#[test]
fn ctrl_c_and_the_timeout_stop_the_residents_work() {
    let home = Home::new();
    home.ask("list files");
    let pid = home.pid();
    let call = home.start(&["slow"]);
    home.wait_until_busy(1);
    signal(i32::try_from(call.id()).unwrap(), rustix::process::Signal::INT);
    let ran = finish(call);
    assert_eq!((ran.code, ran.out.as_str()), (Some(130), ""), "{ran:#?}");
    home.wait_until_busy(0);
    let ran = home.run(&["--timeout", "0.7", "slow"]);
    assert_eq!(ran.code, Some(124), "{ran:#?}");
    home.wait_until_busy(0);
    // a killed caller cannot cancel its request
    let mut call = home.start(&["slow"]);
    home.wait_until_busy(1);
    call.kill().unwrap();
    call.wait().unwrap();
    home.wait_until_busy(0);
    assert_eq!(home.pid(), pid);
}

#[test]
fn a_call_that_would_wait_too_long_answers_itself() {
    let home = Home::new();
    home.ask("list files");
    let calls: Vec<Child> = (0..4).map(|_| home.start(&["--json", "slow"])).collect();
    let answers: Vec<Ran> = calls.into_iter().map(finish).collect();
    assert!(answers.iter().all(|ran| ran.code == Some(0)), "{answers:#?}");
    let there = answers.iter().filter(|ran| ran.json()["resident"] == true).count();
    // each takes 1.6 s in the resident, and a call waits for at most a second
    assert!((1..=3).contains(&there), "{there} of 4 were answered there");
}

#[test]
fn the_real_model_gives_the_same_answers_in_the_resident() {
    if cfg!(debug_assertions) {
        println!("skipped: a whole prompt takes minutes in a debug build");
        return;
    }
    let Some(mut models) = model_or_skip("model") else { return };
    let models = String::from_utf8(models.arg("path").output().unwrap().stdout).unwrap();
    let home = Home::new();
    let ask = |resident: &str, words: &str| {
        let mut caro = home.command(&["--json", "--shell", "bash", "--resident", resident, words]);
        // the number of candidates and iterations depends on the load of the machine
        caro.env_remove("CARO_MODEL").env("CARO_MODELS_DIR", models.trim()).env("CARO_CANDIDATES", "1");
        caro.env("CARO_BUDGET", "120").env("CARO_TIMEOUT", "240");
        let ran = Ran::of(caro.output().unwrap());
        assert_eq!(ran.code, Some(0), "{ran:#?}");
        ran.json()
    };
    // on a busy machine a manual may come too late for one of the two answers
    home.run(&["manual", "warm", "ls", "find", "sort", "head", "wc", "whoami"]);
    for words in ["count files here", "show the five largest files", "who am i"] {
        let (here, there) = (ask("off", words), ask("auto", words));
        assert_eq!((here.get("resident"), &there["resident"]), (None, &json!(true)), "{words}");
        for field in ["cmd", "confidence", "iterations", "findings", "risk", "explanation", "model"] {
            assert_eq!(here[field], there[field], "{words}: {field}");
        }
    }
    let status = &home.residents()[0];
    assert!(status["memory"].as_u64().unwrap() <= 1_250_000_000, "{status:#}");
    home.run(&["stop"]);
}

#[test]
fn a_server_is_the_resident_of_other_calls_and_is_not_ended_by_stop() {
    let home = Home::new();
    home.ask("list files");
    let before = home.pid();
    let mut server = home.start(&["serve", "--port", "0"]);
    wait_for("the server in the resident's place", || {
        home.residents().iter().any(|r| r["pid"].as_u64() == Some(server.id().into()))
    });
    wait_for("the end of the one before", || !home.processes().contains(&before));
    let answer = home.ask("list files");
    assert_eq!((&answer["resident"], home.processes()), (&json!(true), vec![]), "{answer:#?}");
    assert_eq!(home.residents()[0]["ends_in_s"], Value::Null, "it has no idle time");
    assert!(home.run(&["status"]).out.contains("with the server"));

    // after `stop` calls start a resident of their own, and the server goes on
    let stopped = home.run(&["stop"]);
    assert_eq!(stopped.code, Some(0), "{stopped:#?}");
    assert_eq!(home.sockets(), Vec::<PathBuf>::new());
    home.ask("list files");
    assert_ne!(home.pid(), i32::try_from(server.id()).unwrap());
    assert!(server.try_wait().unwrap().is_none(), "the server has not ended");

    signal(server.id().try_into().unwrap(), rustix::process::Signal::TERM);
    assert!(server.wait().unwrap().success());
}

#[test]
fn a_server_removes_its_socket_and_without_a_resident_makes_none() {
    for (resident, hosts) in [("on", 1), ("off", 0)] {
        let home = Home::new();
        let mut command = home.command(&["serve", "--port", "0"]);
        let mut server = command.env("CARO_RESIDENT", resident).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(server.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        let address = line.trim().trim_start_matches("http://");
        let ready = || {
            let mut stream = std::net::TcpStream::connect(address).unwrap();
            stream.write_all(b"GET /ready HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n").unwrap();
            let mut response = String::new();
            stream.read_to_string(&mut response).is_ok() && response.starts_with("HTTP/1.1 200")
        };
        wait_for("a server that is ready", ready);
        assert_eq!(home.sockets().len(), hosts, "{resident}");
        signal(server.id().try_into().unwrap(), rustix::process::Signal::TERM);
        assert!(server.wait().unwrap().success());
        assert_eq!(home.sockets(), Vec::<PathBuf>::new());
    }
}
