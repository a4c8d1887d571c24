//! Tests that nothing leaves the machine: the program answers although the kernel kills any process that opens a
//! network socket.
//!
//! The filter is set on the thread that starts the program. All processes started from it inherit the filter, which
//! ends with the thread.

use crate::machine::{Machine, feed};
use crate::support::model_or_skip;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen::Dword, SeccompCmpOp::Ne, SeccompCondition, SeccompFilter, SeccompRule,
};
use serde_json::json;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitStatus, Output, Stdio};

/// Returns a filter that kills a process when it opens a socket of any family but AF_UNIX. Sources: socket(2),
/// seccomp(2).
fn no_network() -> BpfProgram {
    let other = SeccompCondition::new(0, Dword, Ne, u64::try_from(libc::AF_UNIX).unwrap()).unwrap();
    let rules = [(libc::SYS_socket, vec![SeccompRule::new(vec![other]).unwrap()])];
    let architecture = std::env::consts::ARCH.try_into().unwrap();
    SeccompFilter::new(rules.into(), SeccompAction::Allow, SeccompAction::KillProcess, architecture)
        .unwrap()
        .try_into()
        .unwrap()
}

/// Runs a function under the filter, in a thread of its own.
fn offline<T: Send>(act: impl FnOnce() -> T + Send) -> T {
    let filtered = || {
        seccompiler::apply_filter(&no_network()).unwrap();
        act()
    };
    std::thread::scope(|scope| scope.spawn(filtered).join().unwrap())
}

/// True if the kernel killed the process for a system call.
fn was_killed_for_a_socket(status: ExitStatus) -> bool {
    status.signal() == Some(libc::SIGSYS)
}

/// Runs a command under the filter; it may fail, but must not open a network socket.
fn run_offline(mut command: Command) -> Output {
    let output = offline(|| command.stdin(Stdio::null()).output().unwrap());
    assert!(!was_killed_for_a_socket(output.status), "{command:?} opened a socket to a network: {output:?}");
    output
}

#[test]
fn a_process_that_opens_a_network_socket_is_killed() {
    let machine = Machine::new();
    // nothing listens on that port: opening the socket is enough
    let mut pull = machine.caro(&["model", "pull", "qwen2.5-coder-0.5b"]);
    pull.env("CARO_HUB_URL", "http://127.0.0.1:9").env("CARO_PYTHON", "false");
    let unfiltered = pull.output().unwrap();
    assert_eq!(unfiltered.status.code(), Some(2), "{unfiltered:?}");
    let filtered = offline(|| pull.output().unwrap());
    assert!(was_killed_for_a_socket(filtered.status), "{filtered:?}");
}

#[test]
fn everyday_verbs_open_no_network_socket() {
    let machine = Machine::new();
    machine.write("work/notes.txt", "The backup disk is sdb1.\n");
    let model = machine.model(json!([
        { "match": "how many files", "reply": "Thought: x\nAction: answer {\"text\": \"one\"}" },
        { "reply": "ls -l" },
    ]));
    let calls: [&[&str]; 16] = [
        &["list the files here"],
        &["--json", "list the files here"],
        &["--shell", "fish", "list the files here"],
        &["check", "rm -rf /"],
        &["check", "--rehearse", "ls > names.txt"],
        &["explain", "tar -xzf a.tar.gz"],
        &["fix", "gti status"],
        &["agent", "how many files are here?"],
        &["knowledge", "ingest", "notes.txt"],
        &["knowledge", "query", "disk"],
        &["memory", "remember", "the host is box"],
        &["memory", "query", "host"],
        &["doctor"],
        &["model", "list"],
        &["config"],
        &["help", "privacy"],
    ];
    for args in calls {
        let mut caro = machine.caro(args);
        caro.env("CARO_MODEL", &model);
        let output = run_offline(caro);
        assert!(!output.stdout.is_empty() || !output.stderr.is_empty(), "{args:?} printed nothing");
    }
    let mut chat = machine.caro(&["chat"]);
    chat.env("CARO_MODEL", &model);
    let ran = offline(|| feed(chat, b"how many files are here?\n"));
    assert_eq!(ran.code, Some(0), "{ran:#?}");
}

#[test]
fn the_real_model_answers_offline() {
    let Some(mut caro) = model_or_skip("--json") else { return };
    caro.args(["--timeout", "240", "show the processes that use the most memory"]);
    let output = run_offline(caro);
    let answer: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(answer["cmd"].as_str().is_some_and(|cmd| !cmd.is_empty()), "{answer:#}");
}
