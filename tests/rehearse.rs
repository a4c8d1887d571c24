//! Tests rehearsals: the changes they report, and that attempts to escape the sandbox fail.
#![cfg(target_os = "linux")]

use crate::machine::AMPLE;
use caro::exec::rehearse::{
    Change, ChangeKind, EntryKind, Rehearsal, RehearsalError, RehearsalJob, read_only, rehearse,
};
use caro::exec::{Limits, Status};
use std::io::Read;
use std::net::TcpListener;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const BASH: &str = "/bin/bash";

fn job(script: &str, cwd: &Path) -> RehearsalJob {
    RehearsalJob {
        helper: Some(PathBuf::from(env!("CARGO_BIN_EXE_caro"))),
        ..RehearsalJob::new(Path::new(BASH), script, cwd)
    }
}

/// Rehearses a script in `cwd`; `None`, with a printed reason, if this machine cannot.
async fn rehearse_in(cwd: &Path, script: &str) -> Option<Rehearsal> {
    // the time limit has a test of its own; in the others a busy machine must not reach it
    let mut patient = job(script, cwd);
    patient.limits.wall = AMPLE;
    match rehearse(&patient).await {
        Ok(rehearsal) => Some(rehearsal),
        Err(e @ RehearsalError::Unavailable(_)) => {
            assert!(!rustix::process::geteuid().is_root(), "root cannot rehearse: {e}");
            eprintln!("skipped: {e}");
            None
        }
        Err(e) => panic!("{e}"),
    }
}

fn out(rehearsal: &Rehearsal) -> String {
    String::from_utf8_lossy(&rehearsal.stdout).into_owned()
}

/// The changes below a folder: `+path`, `~path`, `-path`.
fn changes(rehearsal: &Rehearsal, below: &Path) -> Vec<String> {
    let sign = |c: &Change| match c.kind {
        ChangeKind::Created => '+',
        ChangeKind::Changed => '~',
        ChangeKind::Deleted => '-',
    };
    let inside = |c: &&Change| c.path.starts_with(below);
    let name = |c: &Change| format!("{}{}", sign(c), c.path.strip_prefix(below).unwrap().display());
    rehearsal.changes.iter().filter(inside).map(name).collect()
}

/// Creates a folder with a few files.
fn tree() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("notes.txt"), "one\ntwo\n").unwrap();
    std::fs::write(dir.path().join("old.log"), "old\n").unwrap();
    std::fs::create_dir_all(dir.path().join("src/deep")).unwrap();
    std::fs::write(dir.path().join("src/deep/main.c"), "int main;\n").unwrap();
    symlink("notes.txt", dir.path().join("link")).unwrap();
    dir
}

/// The paths, modes, owners, times and contents of a tree, to detect any change.
fn state(dir: &Path) -> Vec<(PathBuf, u32, u32, i64, Vec<u8>)> {
    let mut all = Vec::new();
    let mut folders = vec![dir.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let meta = std::fs::symlink_metadata(&path).unwrap();
            if meta.is_dir() {
                folders.push(path.clone());
            }
            let content = if meta.is_file() { std::fs::read(&path).unwrap() } else { Vec::new() };
            all.push((path, meta.mode(), meta.uid(), meta.mtime_nsec(), content));
        }
    }
    all.sort();
    all
}

#[tokio::test]
async fn every_kind_of_change_is_reported_and_none_is_made() {
    let dir = tree();
    let before = state(dir.path());
    let script = "echo three >> notes.txt; rm old.log; mkdir -p new/sub; echo x > new/sub/file; chmod 600 src/deep/main.c; \
                  ln -s notes.txt second; touch -d 2001-01-01 link; cat notes.txt; exit 3";
    let Some(seen) = rehearse_in(dir.path(), script).await else { return };
    assert_eq!(seen.status, Status::Exited(3), "{seen:?}");
    assert_eq!(out(&seen), "one\ntwo\nthree\n");
    let expected = ["+new", "+new/sub", "+new/sub/file", "~notes.txt", "-old.log", "+second", "~src/deep/main.c"];
    assert_eq!(changes(&seen, dir.path()), expected, "{seen:#?}");
    let entry = |name: &str| seen.changes.iter().find(|c| c.path == dir.path().join(name)).unwrap().now.clone();
    assert_eq!(entry("src/deep/main.c").unwrap().mode, 0o600);
    assert_eq!(entry("second").unwrap().target.as_deref(), Some("notes.txt"));
    assert_eq!((entry("new").unwrap().kind, entry("old.log")), (EntryKind::Folder, None));
    assert_eq!(state(dir.path()), before);
}

#[tokio::test]
async fn a_replaced_folder_and_a_moved_file_are_reported() {
    let dir = tree();
    let script = "rm -r src && mkdir src && echo new > src/other; mv notes.txt renamed.txt; rm link; mkdir link; true > tmp; rm tmp";
    let Some(seen) = rehearse_in(dir.path(), script).await else { return };
    assert_eq!(seen.status, Status::Exited(0), "{seen:?}");
    let expected = ["~link", "-notes.txt", "+renamed.txt", "-src/deep", "+src/other"];
    assert_eq!(changes(&seen, dir.path()), expected, "{seen:#?}");
}

#[tokio::test]
async fn a_file_with_the_same_content_and_mode_counts_as_unchanged() {
    let dir = tree();
    let Some(seen) = rehearse_in(dir.path(), "exec 3>>notes.txt; chmod 644 old.log; ls -R").await else { return };
    let real: Vec<&Change> = seen.changes.iter().filter(|c| !c.time_only).collect();
    assert!(real.is_empty(), "{real:#?}");
    let mut rewriting = job("sed -i 's/absent/x/' notes.txt; touch old.log", dir.path());
    rewriting.digests = true;
    let seen = rehearse(&rewriting).await.unwrap();
    assert_eq!(changes(&seen, dir.path()), ["~notes.txt", "~old.log"]);
    assert!(seen.changes.iter().all(|c| c.time_only), "{seen:#?}");
    let digest = seen.changes[0].now.clone().unwrap().digest.unwrap();
    assert_eq!(digest, "c3f9c8c283a2b1f2f1896f27a01cbe3cddc0c9d93f752e4639035a0f5b36f6e8");
}

#[tokio::test]
async fn errors_of_the_script_are_in_the_result() {
    let dir = tree();
    let Some(seen) = rehearse_in(dir.path(), "ls --no-such-flag").await else { return };
    assert_eq!(seen.status, Status::Exited(2));
    assert!(String::from_utf8_lossy(&seen.stderr).contains("--no-such-flag"), "{seen:?}");
    assert_eq!(rehearse_in(dir.path(), "kill -TERM $$").await.unwrap().status, Status::Signaled(15));
    assert_eq!(rehearse_in(dir.path(), "no-such-program-at-all").await.unwrap().status, Status::Exited(127));
    let error = rehearse(&job("true", Path::new("/no/such/folder"))).await.unwrap_err();
    assert!(error.to_string().contains("working directory"), "{error}");
}

#[tokio::test]
async fn limits_end_the_script_and_its_changes_until_then_are_reported() {
    let dir = tree();
    let mut slow = job("echo began; touch made; sleep 300", dir.path());
    slow.limits.wall = Duration::from_secs(5);
    let started = Instant::now();
    let seen = match rehearse(&slow).await {
        Ok(seen) => seen,
        Err(e) => return eprintln!("skipped: {e}"),
    };
    assert!(seen.timed_out() && started.elapsed() < AMPLE, "{seen:?}");
    assert_eq!((out(&seen).as_str(), changes(&seen, dir.path())), ("began\n", vec!["+made".to_string()]));
    let mut flood = job("yes", dir.path());
    flood.limits = Limits { wall: Duration::from_secs(300), output: 1000 };
    let seen = rehearse(&flood).await.unwrap();
    assert_eq!((seen.status, seen.stdout.len()), (Status::Flooded, 1000));
    assert!(seen.took < AMPLE, "{:?}", seen.took);
}

// --- attempts to escape

#[tokio::test]
async fn no_file_outside_is_written_by_any_path() {
    let (dir, other) = (tree(), tree());
    symlink(other.path(), dir.path().join("out")).unwrap();
    let home = std::env::home_dir().unwrap();
    let mark = format!("caro-rehearsal-{}", std::process::id());
    let before = (state(dir.path()), state(other.path()));
    let places = [
        home.join(&mark),
        Path::new("/etc").join(&mark),
        Path::new("/tmp").join(&mark),
        Path::new("/var/tmp").join(&mark),
        Path::new("/dev/shm").join(&mark),
        Path::new("/run").join(&mark),
        Path::new("/").join(&mark),
    ];
    let mut script = format!("echo x > out/notes.txt; rm -rf out/src; cd {}; rm -rf ./*; ", other.path().display());
    for place in &places {
        script += &format!("echo x > {}; ", place.display());
    }
    script += &format!(
        "echo x > /proc/1/root/tmp/{mark}; echo x > /proc/self/root/tmp/{mark}; cd /; rm -rf {}; echo end",
        other.path().display()
    );
    let Some(seen) = rehearse_in(dir.path(), &script).await else { return };
    assert_eq!(out(&seen), "end\n", "{seen:?}");
    assert!(
        !changes(&seen, other.path()).is_empty() || seen.changes.iter().any(|c| c.path == other.path()),
        "the rehearsal reports no writes"
    );
    for place in &places {
        assert!(!place.exists(), "{} was written", place.display());
    }
    assert_eq!((state(dir.path()), state(other.path())), before);
}

#[tokio::test]
async fn mounting_tracing_and_new_namespaces_are_refused() {
    let dir = tree();
    let script = "for a in 'mount -t tmpfs none /mnt' 'umount /proc' 'mount -o remount,rw /' 'mount --bind / /mnt' \
                  'unshare -r true' 'unshare -m true' 'unshare -Urm true' 'nsenter -t 1 -m true' 'chroot / true' \
                  'mknod /tmp/disk b 254 0' 'strace -p 1' 'hostname other' 'dmesg' 'date -s 2001-01-01' \
                  'sysctl -w kernel.hostname=x' \
                  'losetup -f /tmp/x' 'modprobe loop' 'ip link set lo up'; do \
                  $a >/dev/null 2>&1 && echo \"$a\"; done; echo end";
    let Some(seen) = rehearse_in(dir.path(), script).await else { return };
    assert_eq!(out(&seen), "end\n", "something worked: {seen:?}");
}

#[tokio::test]
async fn system_files_of_the_kernel_cannot_be_written() {
    let dir = tree();
    let pattern = std::fs::read_to_string("/proc/sys/kernel/core_pattern").unwrap();
    let limits = std::fs::read_to_string("/proc/sys/kernel/pid_max").unwrap();
    let script = "for f in /proc/sys/kernel/core_pattern /proc/sysrq-trigger /proc/sys/kernel/pid_max /sys/kernel/mm/ksm/run \
                  /sys/power/state /proc/sys/vm/drop_caches /sys/fs/cgroup/cgroup.procs /dev/kmsg /dev/mem /dev/sda /dev/vda; do \
                  (echo 0 > $f) 2>/dev/null && [ ${f#/dev} = $f ] && echo $f; done; ls /dev | sort | tr '\\n' ' '";
    let Some(seen) = rehearse_in(dir.path(), script).await else { return };
    // writes below /dev create files of the sandbox
    let names: Vec<String> = out(&seen).split_whitespace().map(str::to_owned).collect();
    assert!(names.iter().all(|n| !n.starts_with("/proc") && !n.starts_with("/sys")), "{names:?}");
    assert_eq!(std::fs::read_to_string("/proc/sys/kernel/core_pattern").unwrap(), pattern);
    assert_eq!(std::fs::read_to_string("/proc/sys/kernel/pid_max").unwrap(), limits);
}

#[tokio::test]
async fn neither_network_nor_local_services_are_reached() {
    let dir = tree();
    let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
    tcp.set_nonblocking(true).unwrap();
    let socket = dir.path().join("service");
    let local = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    local.set_nonblocking(true).unwrap();
    let pipe = dir.path().join("pipe");
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, 0o666.into(), 0).unwrap();
    let mut reader = std::fs::OpenOptions::new().read(true).write(true).open(&pipe).unwrap();
    let script = format!(
        "(echo hi > /dev/tcp/127.0.0.1/{port}) 2>/dev/null && echo tcp; \
         timeout 0.2 bash -c 'echo hi > pipe'; \
         python3 -c 'import socket; s = socket.socket(socket.AF_UNIX); s.connect(\"service\"); print(\"unix\")' 2>/dev/null; \
         python3 -c 'import socket; s = socket.socket(40, socket.SOCK_STREAM); print(\"vsock\")' 2>/dev/null; \
         grep -c : /proc/net/dev; echo end",
        port = tcp.local_addr().unwrap().port(),
    );
    let Some(seen) = rehearse_in(dir.path(), &script).await else { return };
    assert_eq!(out(&seen), "1\nend\n", "{seen:?}");
    assert!(tcp.accept().is_err() && local.accept().is_err(), "the script connected");
    // reading the empty pipe would block, so the test writes into it first
    std::fs::OpenOptions::new().write(true).open(&pipe).unwrap();
    std::io::Write::write_all(&mut reader, b"end").unwrap();
    let mut first = [0; 3];
    reader.read_exact(&mut first).unwrap();
    assert_eq!(&first, b"end", "the script wrote into the pipe");
}

#[tokio::test]
async fn other_processes_are_hidden_and_background_processes_are_killed() {
    let dir = tree();
    let mark = format!("77.{}", std::process::id());
    let script = format!(
        "kill -9 {me} 2>/dev/null && echo killed; kill -9 -1 2>/dev/null; \
         (setsid sleep {mark} &) ; (nohup sleep {mark} >/dev/null 2>&1 &); ls -d /proc/[0-9]* | wc -l; echo end",
        me = std::process::id(),
    );
    let Some(seen) = rehearse_in(dir.path(), &script).await else { return };
    let text = out(&seen);
    let lines: Vec<&str> = text.lines().collect();
    // `kill -1` reaches all processes of the namespace except process 1 and the sender
    assert!(lines.len() == 2 && lines[0].parse::<u32>().unwrap() < 10 && lines[1] == "end", "{seen:?}");
    let alive = std::fs::read_dir("/proc").unwrap().flatten().any(|process| {
        std::fs::read(process.path().join("cmdline")).is_ok_and(|line| String::from_utf8_lossy(&line).contains(&mark))
    });
    assert!(!alive, "a background process lives on");
}

#[tokio::test]
async fn a_fork_bomb_ends_at_the_time_limit() {
    let dir = tree();
    let started = Instant::now();
    let seen = match rehearse(&job("bomb() { bomb | bomb & }; bomb; sleep 300", dir.path())).await {
        Ok(seen) => seen,
        Err(e) => return eprintln!("skipped: {e}"),
    };
    assert!(started.elapsed() < AMPLE, "{:?}", started.elapsed());
    assert_ne!(seen.status, Status::Exited(0), "{seen:?}");
    let left = std::fs::read_dir("/proc").unwrap().flatten().filter(|process| {
        std::fs::read(process.path().join("cmdline")).is_ok_and(|l| String::from_utf8_lossy(&l).contains("bomb | bomb"))
    });
    assert_eq!(left.count(), 0);
    // the machine can still start processes
    assert!(std::process::Command::new("true").status().unwrap().success());
}

#[tokio::test]
async fn disk_and_memory_run_out_inside_only() {
    let dir = tree();
    let script = "head -c 100m /dev/zero > one; ls -l one | cut -d' ' -f5; \
                  for i in 1 2 3; do head -c 60m /dev/zero > part$i 2>/dev/null || echo full; done; \
                  python3 -c 'x = bytearray(3 << 30)' 2>/dev/null || echo memory; echo end";
    let mut big = job(script, dir.path());
    big.limits.wall = AMPLE;
    let seen = match rehearse(&big).await {
        Ok(seen) => seen,
        Err(e) => return eprintln!("skipped: {e}"),
    };
    let text = out(&seen);
    assert!(text.starts_with(&format!("{}\n", 64 << 20)), "{text}");
    assert!(text.contains("full\n") && text.ends_with("memory\nend\n"), "{text}");
    assert!(!dir.path().join("one").exists());
}

#[tokio::test]
async fn no_privileges_are_gained() {
    let dir = tree();
    let script = "cp /bin/bash ./sh 2>/dev/null && chmod 4755 ./sh; grep -E '^(NoNewPrivs|CapEff|Seccomp):' /proc/self/status | tr -d '\\t'";
    let Some(seen) = rehearse_in(dir.path(), script).await else { return };
    let text = out(&seen);
    assert!(text.contains("NoNewPrivs:1\n") && text.contains("Seccomp:2\n"), "{text}");
    let caps = text.lines().find_map(|l| l.strip_prefix("CapEff:")).unwrap();
    let caps = u64::from_str_radix(caps, 16).unwrap();
    // only the capabilities 0, 1 and 3 to 7: files, own processes, user ids
    assert_eq!(caps & !0b1111_1011, 0, "{caps:x}");
}

#[tokio::test]
async fn a_working_directory_with_an_odd_name_works() {
    let dir = tempfile::tempdir().unwrap();
    let odd = dir.path().join("a, b:c \\ \"d\" 'é");
    std::fs::create_dir(&odd).unwrap();
    let Some(seen) = rehearse_in(&odd, "pwd; echo x > made").await else { return };
    assert_eq!(out(&seen), format!("{}\n", odd.display()), "{seen:?}");
    assert_eq!(changes(&seen, &odd), ["+made"]);
}

#[tokio::test]
async fn the_root_can_be_the_working_directory() {
    let Some(seen) = rehearse_in(
        Path::new("/"),
        "find / -xdev -maxdepth 2 -name passwd; ls -d /tmp; df / >/dev/null; rm -rf /etc/passwd; ls /etc/passwd",
    )
    .await
    else {
        return;
    };
    assert!(out(&seen).starts_with("/etc/passwd\n/tmp\n"), "{seen:?}");
    assert!(Path::new("/etc/passwd").exists());
    if rustix::process::geteuid().is_root() {
        assert_eq!(out(&seen), "/etc/passwd\n/tmp\n", "{seen:?}");
        assert!(seen.changes.iter().any(|c| c.kind == ChangeKind::Deleted && c.path == Path::new("/etc/passwd")));
    }
}

#[tokio::test]
async fn changes_in_the_writable_folder_are_real() {
    let dir = tree();
    let mut making = job("echo made > made.txt; touch /var/tmp/not-made-$$", dir.path());
    making.writable = Some(dir.path().to_path_buf());
    match rehearse(&making).await {
        Ok(seen) => assert_eq!(seen.status, Status::Exited(0), "{seen:?}"),
        Err(e) => return eprintln!("skipped: {e}"),
    }
    assert_eq!(std::fs::read_to_string(dir.path().join("made.txt")).unwrap(), "made\n");
}

#[tokio::test]
async fn the_script_is_killed_first_when_memory_is_short() {
    let dir = tree();
    let Some(seen) = rehearse_in(dir.path(), "cat /proc/self/oom_score_adj").await else { return };
    assert_eq!(out(&seen), "1000\n", "{seen:?}");
}

#[tokio::test]
async fn without_namespaces_reading_scripts_can_still_be_rehearsed() {
    let dir = tree();
    let seen = match read_only(&job("cat notes.txt; echo x > made || echo refused", dir.path())).await {
        Ok(seen) => seen,
        Err(e) => return eprintln!("skipped: {e}"),
    };
    assert_eq!((out(&seen).as_str(), dir.path().join("made").exists()), ("one\ntwo\nrefused\n", false));
}

/// Rehearses as an ordinary user, by `setpriv`, with a copy of the binary that this user can read.
#[test]
fn an_ordinary_user_can_rehearse_too() {
    if !rustix::process::geteuid().is_root() {
        return eprintln!(
            "skipped: only root can become another user; as an ordinary user all the other tests show it"
        );
    }
    let dir = tempfile::tempdir().unwrap();
    std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let caro = dir.path().join("caro");
    // written by a child: no other thread's child inherits the open file, which would keep it from being run
    assert!(std::process::Command::new("cp").arg(env!("CARGO_BIN_EXE_caro")).arg(&caro).status().unwrap().success());
    let work = dir.path().join("work");
    std::fs::create_dir(&work).unwrap();
    std::fs::write(work.join("notes"), "n\n").unwrap();
    std::os::unix::fs::chown(&work, Some(65534), Some(65534)).unwrap();
    let private = work.join("private");
    std::fs::create_dir(&private).unwrap();
    std::os::unix::fs::chown(&private, Some(65534), Some(65534)).unwrap();
    // outside the overlays, one of which is /tmp: in a folder where only root creates files
    let outside = tempfile::Builder::new().prefix("caro-fifo-").tempdir_in("/opt").unwrap();
    std::fs::set_permissions(outside.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let fifo = outside.path().join("pipe");
    rustix::fs::mkfifoat(rustix::fs::CWD, &fifo, rustix::fs::Mode::from_raw_mode(0o666)).unwrap();
    std::fs::set_permissions(&fifo, std::fs::Permissions::from_mode(0o666)).unwrap();
    let mut reader = std::fs::OpenOptions::new().read(true).write(true).open(&fifo).unwrap();
    let bytes = |text: &str| text.as_bytes().to_vec();
    let script = "id -u; echo x > made; rm -f notes; (echo x > /etc/made) 2>/dev/null || echo no; ls /proc | grep -c '^[0-9]'; touch /tmp/caro-in-view && echo tmp; (echo leak >&9) 2>/dev/null; (echo leak > PIPE) 2>/dev/null".replace("PIPE", fifo.to_str().unwrap());
    let spec = serde_json::json!({
        "shell": [bytes(BASH), bytes("-c")], "script": bytes(&script), "args": [], "cwd": bytes(work.to_str().unwrap()),
        "private": bytes(private.to_str().unwrap()), "writable": null, "digests": false, "wall_micros": 2_000_000,
    });
    // an open descriptor would lead out of the sandbox, so it must not be inherited
    let mut command = std::process::Command::new("bash");
    command
        .args(["-c", "exec 9>leak; exec setpriv --reuid=65534 --regid=65534 --clear-groups ./caro __rehearse"])
        .current_dir(dir.path())
        .env("HOME", "/nonexistent");
    let ran = crate::machine::feed(command, spec.to_string().as_bytes());
    let report: serde_json::Value =
        serde_json::from_slice(&std::fs::read(private.join("report.json")).unwrap()).unwrap();
    if let Some(why) = report["end"]["Failed"].as_str() {
        return eprintln!("skipped: an ordinary user has no namespaces here: {why}");
    }
    assert!(ran.out.starts_with("65534\nno\n") && ran.out.ends_with("tmp\n"), "{ran:#?} {report}");
    assert!(work.join("notes").exists() && !work.join("made").exists() && !Path::new("/etc/made").exists());
    assert_eq!(std::fs::read_to_string(dir.path().join("leak")).unwrap(), "", "an open file was written");
    rustix::io::ioctl_fionbio(&reader, true).unwrap();
    let received = std::io::Read::read(&mut reader, &mut [0; 16]).map_err(|e| e.kind());
    assert_eq!(received, Err(std::io::ErrorKind::WouldBlock), "a pipe of the machine was written into");
    let names: Vec<String> =
        report["changes"].as_array().unwrap().iter().map(|c| format!("{} {}", c["kind"], c["path"])).collect();
    assert!(
        names.iter().any(|n| n.contains("deleted") && n.contains("notes"))
            && names.iter().any(|n| n.contains("created") && n.contains("made")),
        "{names:?}"
    );
}
