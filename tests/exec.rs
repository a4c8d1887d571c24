//! Tests child processes: limits, the sandbox, the foreground. The programs are short shell scripts.
#![cfg(unix)]

use crate::machine::AMPLE;
use caro::exec::{
    ExecError, Job, Limits, Output, Sandbox, Status, capture, capture_blocking, capture_ends, foreground, support,
};
use std::net::TcpListener;
use std::path::Path;
use std::time::{Duration, Instant};

/// A sandboxed job of `/bin/sh`.
fn sh(script: &str) -> Job {
    Job::new("/bin/sh").args(["-c", script])
}

/// A job of `/bin/sh` without a sandbox.
fn free(script: &str) -> Job {
    Job { sandbox: Sandbox::None, ..sh(script) }
}

fn text(output: &Output) -> (String, String) {
    (String::from_utf8_lossy(&output.stdout).into_owned(), String::from_utf8_lossy(&output.stderr).into_owned())
}

/// Waits for a condition, at most `limit`. Returns whether it holds.
fn within(limit: Duration, condition: impl Fn() -> bool) -> bool {
    let started = Instant::now();
    while started.elapsed() < limit {
        if condition() {
            return true;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    condition()
}

/// True if a process runs whose command line contains `mark`.
#[cfg(target_os = "linux")]
pub fn runs(mark: &str) -> bool {
    std::fs::read_dir("/proc").unwrap().flatten().any(|process| {
        let stat = std::fs::read_to_string(process.path().join("stat")).unwrap_or_default();
        let dead = stat.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with('Z'));
        let line = std::fs::read(process.path().join("cmdline")).unwrap_or_default();
        !dead && String::from_utf8_lossy(&line).contains(mark)
    })
}

#[tokio::test]
async fn both_streams_and_the_exit_code_are_returned() {
    let output = capture(&sh("echo out; echo err >&2; exit 3")).await.unwrap();
    assert_eq!(output.status, Status::Exited(3));
    assert_eq!(text(&output), ("out\n".into(), "err\n".into()));
}

#[tokio::test]
async fn the_whole_input_is_fed_and_then_closed() {
    let input: Vec<u8> = (0..200_000u32).map(|n| n.to_le_bytes()[0]).collect();
    let job = Job { stdin: input.clone(), limits: Limits { output: 1 << 20, ..Limits::default() }, ..sh("cat") };
    assert_eq!(capture(&job).await.unwrap().stdout, input);
    assert_eq!(capture(&sh("cat; echo end")).await.unwrap().stdout, b"end\n");
}

#[tokio::test]
async fn a_child_that_does_not_read_its_input_is_no_error() {
    let job = Job { stdin: vec![b'x'; 1 << 20], ..sh("exit 0") };
    assert_eq!(capture(&job).await.unwrap().status, Status::Exited(0));
}

#[tokio::test]
async fn a_hanging_child_is_stopped_and_its_output_is_returned() {
    let job = Job { limits: Limits { wall: Duration::from_secs(1), output: 1000 }, ..sh("echo said; sleep 300") };
    let output = capture(&job).await.unwrap();
    assert_eq!(output.status, Status::TimedOut);
    assert_eq!(output.stdout, b"said\n");
    assert!(output.took < AMPLE, "{:?}", output.took);
}

#[tokio::test]
async fn a_child_that_ignores_signals_is_stopped_too() {
    let job = Job {
        limits: Limits { wall: Duration::from_millis(300), output: 1000 },
        ..sh("trap '' TERM INT HUP PIPE; exec >&-; while :; do :; done")
    };
    let output = capture(&job).await.unwrap();
    assert_eq!(output.status, Status::TimedOut);
    assert!(output.took < AMPLE, "{:?}", output.took);
}

#[tokio::test]
async fn endless_output_is_truncated_and_stopped() {
    let job = Job {
        limits: Limits { wall: Duration::from_secs(300), output: 4096 },
        ..sh("while :; do echo flooooood; done")
    };
    let output = capture(&job).await.unwrap();
    assert_eq!(output.status, Status::Flooded);
    assert_eq!(output.stdout.len(), 4096);
    assert!(output.took < AMPLE, "{:?}", output.took);
}

#[tokio::test]
async fn long_output_is_truncated_but_not_stopped() {
    let job = Job { limits: Limits { wall: AMPLE, output: 4096 }, ..sh("head -c 100000 /dev/zero") };
    let output = capture(&job).await.unwrap();
    assert_eq!((output.status, output.stdout.len()), (Status::Exited(0), 4096));
    let cut = output.stdout_cut.unwrap();
    assert_eq!((cut.at, cut.bytes, cut.of_bytes), (4096, 100_000 - 4096, 100_000));
    assert_eq!((output.stderr_cut, capture(&sh("echo short")).await.unwrap().stdout_cut), (None, None));
}

#[tokio::test]
async fn both_ends_of_long_output_are_returned_and_later_commands_run() {
    let limits = Limits { wall: AMPLE, output: 4096 };
    // more output than `capture`, which returns only the beginning, allows
    let job = Job { limits, ..sh("seq 1 400000; seq 1 400000 >&2; echo behind") };
    let output = capture_ends(&job, 64 << 20).await.unwrap();
    let (out, err) = text(&output);
    assert_eq!(output.status, Status::Exited(0));
    assert!(out.starts_with("1\n2\n") && out.ends_with("399999\n400000\nbehind\n"), "{out}");
    assert!(err.starts_with("1\n2\n") && err.ends_with("399999\n400000\n"), "{err}");
    assert!(out.len() <= 4096 && err.len() <= 4096);
    for (text, cut, lines) in [(&out, output.stdout_cut, 400_001), (&err, output.stderr_cut, 400_000)] {
        let cut = cut.unwrap();
        assert_eq!((text.lines().count() + cut.lines, cut.of_lines), (lines, lines));
        assert_eq!(text.len() + cut.bytes, cut.of_bytes);
    }
    assert_eq!(capture(&job).await.unwrap().status, Status::Flooded);
}

#[tokio::test]
async fn endless_output_is_stopped_with_both_ends_too() {
    let job = Job {
        limits: Limits { wall: Duration::from_secs(300), output: 4096 },
        ..sh("while :; do echo flooooood; done")
    };
    let output = capture_ends(&job, 100_000).await.unwrap();
    assert_eq!(output.status, Status::Flooded);
    assert!(output.stdout.len() <= 4096 && output.stdout_cut.unwrap().of_bytes > 100_000, "{:?}", output.stdout_cut);
    assert!(output.took < AMPLE, "{:?}", output.took);
}

#[tokio::test]
async fn a_killed_child_has_its_signal_as_status() {
    assert_eq!(capture(&sh("kill -TERM $$")).await.unwrap().status, Status::Signaled(15));
}

#[tokio::test]
async fn a_child_has_no_terminal() {
    let output = capture(&sh("read answer < /dev/tty && echo got")).await.unwrap();
    assert!(!output.status.success());
    assert_eq!(output.stdout, b"");
}

#[tokio::test]
async fn output_may_be_binary() {
    let output = capture(&sh(r"printf '\377\376\000ok'")).await.unwrap();
    assert_eq!(output.stdout, b"\xff\xfe\0ok");
}

#[tokio::test]
async fn a_program_that_cannot_be_started_is_an_error_with_a_hint() {
    let text = tempfile::NamedTempFile::new().unwrap();
    for program in [Path::new("/nonexistent/program"), Path::new("/"), text.path()] {
        let error = capture(&Job::new(program)).await.unwrap_err();
        assert!(matches!(error, ExecError::Start { .. }), "{error:?}");
        assert!(error.to_string().contains(&program.display().to_string()));
        assert!(!error.hint().is_empty());
    }
}

#[tokio::test]
async fn the_working_directory_is_empty_and_removed_afterwards() {
    let output = capture(&sh("pwd; ls -A | wc -l; echo x > here; echo $TMPDIR")).await.unwrap();
    let (out, err) = text(&output);
    let lines: Vec<&str> = out.lines().collect();
    assert_eq!(lines[1].trim(), "0", "{out} {err}");
    assert_eq!(err, "", "its own directory can be written to");
    assert!(!Path::new(lines[0]).exists(), "{} is left", lines[0]);
}

#[tokio::test]
async fn the_environment_is_clean() {
    let output = capture(&sh("env").env("EXTRA", "yes")).await.unwrap();
    let (out, _) = text(&output);
    for line in ["LC_ALL=C.UTF-8", "TERM=dumb", "NO_COLOR=1", "PAGER=cat", "EXTRA=yes"] {
        assert!(cfg!(target_os = "macos") || out.lines().any(|l| l == line), "{line} is missing in {out}");
    }
    assert!(!out.contains("CARGO_MANIFEST_DIR"), "cargo's variables were passed on: {out}");
}

/// As in `exec 3>>notes; caro ...`: the sandbox does not stop writes into an inherited open file.
#[tokio::test]
async fn inherited_files_are_not_passed_on() {
    use std::os::fd::AsRawFd;
    let notes = tempfile::NamedTempFile::new().unwrap();
    rustix::io::fcntl_setfd(notes.as_file(), rustix::io::FdFlags::empty()).unwrap();
    let script = format!("test -e /dev/fd/2 && echo looked; echo leak > /dev/fd/{}", notes.as_file().as_raw_fd());
    let output = capture(&free(&script)).await.unwrap();
    assert_eq!((output.stdout.as_slice(), output.status.success()), (&b"looked\n"[..], false));
    assert_eq!(std::fs::read_to_string(notes.path()).unwrap(), "");
}

#[tokio::test]
async fn a_background_child_dies_with_its_parent() {
    let mark = format!("302.{}", std::process::id());
    let job = free(&format!("sleep {mark} & echo started"));
    let output = capture(&job).await.unwrap();
    assert_eq!((output.status, text(&output).0.as_str()), (Status::Exited(0), "started\n"));
    assert!(within(AMPLE, || !runs(&mark)), "the background child still runs");
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_daemon_in_a_session_of_its_own_dies_too() {
    if !Path::new("/usr/bin/setsid").exists() {
        eprintln!("skipped: no setsid here");
        return;
    }
    for (name, sandbox) in [("free", Sandbox::None), ("fenced", Sandbox::ReadOnly)] {
        let mark = format!("300.{}{}", std::process::id(), u8::from(sandbox == Sandbox::ReadOnly));
        let job = Job { sandbox, ..sh(&format!("setsid -f sleep {mark}; sleep 0.1; echo done")) };
        let output = capture(&job).await.unwrap();
        assert_eq!(text(&output).0, "done\n", "{name}: {output:?}");
        assert!(within(AMPLE, || !runs(&mark)), "{name}: the daemon still runs");
    }
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_dropped_capture_leaves_no_process() {
    let mark = format!("301.{}", std::process::id());
    let job =
        Job { limits: Limits { wall: Duration::from_secs(300), output: 100 }, ..free(&format!("sleep {mark}; :")) };
    tokio::select! {
        _ = capture(&job) => panic!("it cannot have ended"),
        () = async {
            let deadline = Instant::now() + AMPLE;
            while !runs(&mark) {
                assert!(Instant::now() < deadline, "it never ran");
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        } => {}
    }
    assert!(within(AMPLE, || !runs(&mark)), "it still runs");
}

#[tokio::test]
async fn the_sandbox_stops_writes() {
    if !support().writes {
        eprintln!("skipped: this system cannot fence writes");
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let here = dir.path().display();
    std::fs::write(dir.path().join("old"), "old").unwrap();
    let script = format!(
        "echo x > {here}/new; rm {here}/old; mkdir {here}/dir; ln -s a {here}/link; chmod 777 {here}/old; \
         touch -d 2000-01-01 {here}/old; mv {here}/old {here}/older; echo fine > /dev/null && echo null",
    );
    let output = capture(&sh(&script)).await.unwrap();
    let names: Vec<_> = std::fs::read_dir(dir.path()).unwrap().flatten().map(|entry| entry.file_name()).collect();
    assert_eq!(names, ["old"], "{}", text(&output).1);
    let meta = std::fs::metadata(dir.path().join("old")).unwrap();
    assert!(meta.modified().unwrap().elapsed().unwrap() < Duration::from_secs(60), "its time was changed");
    assert_ne!(std::os::unix::fs::PermissionsExt::mode(&meta.permissions()) & 0o777, 0o777, "its mode was changed");
    assert_eq!(text(&output).0, "null\n", "/dev/null can be written to");

    // without the sandbox the script succeeds, so the test can fail
    capture(&free(&script)).await.unwrap();
    assert!(dir.path().join("new").exists() && dir.path().join("older").exists());
}

#[tokio::test]
async fn the_sandbox_stops_the_network() {
    let Some(bash) = ["/bin/bash", "/usr/bin/bash"].into_iter().find(|path| Path::new(path).exists()) else {
        eprintln!("skipped: no bash here to open a socket with");
        return;
    };
    if !support().network {
        eprintln!("skipped: this system cannot fence the network");
        return;
    }
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let script = format!("echo hello > /dev/tcp/127.0.0.1/{} && echo sent", listener.local_addr().unwrap().port());
    let fenced = Job::new(bash).args(["-c", &script]);
    assert_eq!(text(&capture(&fenced).await.unwrap()).0, "", "a socket was opened");
    let free = Job { sandbox: Sandbox::None, ..fenced };
    assert_eq!(text(&capture(&free).await.unwrap()).0, "sent\n");
}

/// A command such as `tail /dev/zero` stores all that it reads.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_sandboxed_child_has_a_memory_limit_and_is_killed_first() {
    let script = "cat /proc/self/oom_score_adj; sed -n 's/^Max data size *\\([0-9]*\\) .*/\\1/p' /proc/self/limits";
    let output = text(&capture(&sh(script)).await.unwrap()).0;
    let [score, most] = output.lines().collect::<Vec<_>>()[..] else { panic!("{output}") };
    let meminfo = std::fs::read_to_string("/proc/meminfo").unwrap();
    let total: u64 = meminfo.split_whitespace().nth(1).unwrap().parse().unwrap();
    let most: u64 = most.parse().unwrap();
    assert_eq!(score, "1000");
    assert!(most >= 1 << 30 && most <= (1 << 30).max(total * 1024 / 8), "{most}");
    let own = std::fs::read_to_string("/proc/self/oom_score_adj").unwrap();
    assert_eq!(text(&capture(&free("cat /proc/self/oom_score_adj")).await.unwrap()).0, own);
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn the_sandbox_stops_signals_to_others() {
    if !support().processes {
        eprintln!("skipped: this system cannot fence signals");
        return;
    }
    let script = "kill -0 1 2>/dev/null && echo one; kill -0 -1 2>/dev/null && echo all; kill -0 $$ && echo self";
    assert_eq!(text(&capture(&sh(script)).await.unwrap()).0, "self\n");
}

#[test]
fn a_caller_without_a_runtime_can_capture() {
    assert_eq!(capture_blocking(&sh("echo hi")).unwrap().stdout, b"hi\n");
    assert!(capture_blocking(&Job::new("/nonexistent/program")).is_err());
}

#[tokio::test]
async fn the_foreground_returns_the_exit_code() {
    let shell = Path::new("/bin/sh");
    assert_eq!(foreground(shell, "exit 7", None).await.unwrap(), 7);
    assert_eq!(foreground(shell, "kill -KILL $$", None).await.unwrap(), 137);
    assert_eq!(foreground(shell, "no-such-program-at-all 2>/dev/null", None).await.unwrap(), 127);
    let dir = tempfile::tempdir().unwrap();
    assert_eq!(foreground(shell, "echo x > made", Some(dir.path())).await.unwrap(), 0);
    assert_eq!(std::fs::read_to_string(dir.path().join("made")).unwrap(), "x\n");
    assert!(foreground(Path::new("/nonexistent/shell"), "true", None).await.is_err());
}
