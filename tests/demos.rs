//! The demo requests of the specification, for Linux and macOS: the real model's answers are *run* in a fixture, and
//! graded by their effect, not their text. The judges themselves are tested on commands known to be right or wrong.

mod fixture;
mod judges;

use crate::support::model_or_skip;
use fixture::{System, World};
use judges::Outcome;
use serde_json::{Value, json};
use std::io::Write;
use std::process::Stdio;

/// Fewest of the twelve demos that must be answered rightly.
const MIN_RIGHT_LINUX: usize = 10;
const MIN_RIGHT_MACOS: usize = 7;

/// A request, and the judge of its command's output and effect.
struct Demo {
    request: &'static str,
    judge: fn(&Outcome) -> bool,
    /// Right and wrong commands on Linux.
    linux: (&'static [&'static str], &'static [&'static str]),
    /// Right and wrong commands on macOS.
    macos: (&'static [&'static str], &'static [&'static str]),
}

const COMMITS: (&[&str], &[&str]) = (
    &[
        "git log --since='2 weeks ago' --pretty=format:'%an %s'",
        "git log --since='2 weeks ago' --pretty=format:'%h %an'",
        "git log --since=2.weeks",
    ],
    &[
        "git log --since='2 weeks ago' --author=\"$(git config user.name)\"",
        "git log --since='2 weeks ago' --oneline",
        "git log --pretty=format:'%an %s'",
        "git shortlog -sn --since='2 weeks ago' HEAD",
        "git log -2w --author-name",
        "git log --since='1 week ago' --format='%an %s'",
    ],
);

const RUST: (&[&str], &[&str]) = (
    &[
        "find . -name '*.rs' -mtime -7",
        "find . -type f -name '*.rs' -mtime -7 -print",
        "find . -name '*.rs' -mtime -7 -exec ls -l {} +",
        "find . -name '*.rs' -newermt \"$(date +%F) -7 days\"",
    ],
    &[
        "find . -name '*.rs' -mtime -7 | wc -l",
        "find . -name '*.rs' -mtime -7 -exec grep -l mod {} +",
        "find . -name '*.rs' -mtime -7 | grep mod",
        "find . -name '*.rs' -mtime +7",
        "find . -name '*.rs'",
        "find . -mtime -7",
        "ls *.rs",
        "find . -maxdepth 1 -name '*.rs' -mtime -7",
        "find . -name '*.rs' -mtime -7 -exec ls -l {} \\; | head -n 1",
    ],
);

const LOGS: (&[&str], &[&str]) = (
    &[
        "find . -name '*.log' -type f -exec cat {} + | wc -l",
        "find . -name '*.log' -print0 | xargs -0 wc -l",
        "find . -name '*.log' -exec wc -l {} +",
        "find . -name '*.log' -exec cat {} \\; | awk 'END {print NR}'",
    ],
    &[
        "find . -name '*.log' | wc -l",
        "find . -name '*.log' | xargs wc -l",
        "find . -name '*.log' | xargs cat | wc -l",
        "wc -l *.log",
        "find . -name '*.log' -exec wc -l {} \\;",
        "cat logs/*.log | wc -l",
    ],
);

const ARCHIVE: (&[&str], &[&str]) = (
    &[
        "tar -czf ../tree.tar.gz .",
        "tar -cf archive.tar .",
        "tar -cvf archive.tar --exclude=archive.tar .",
        "tar czf \"../$(basename \"$PWD\").tgz\" -C .. tree",
    ],
    &["tar -cf archive.tar *", "tar -cf archive.tar src", "tar -tf .", "tar -xf archive.tar", "tar -cf archive.tar"],
);

const UPTIME: (&[&str], &[&str]) = (&["uptime"], &["date", "echo up", "cat /proc/version"]);

const SETUID: (&[&str], &[&str]) = (
    &["find / -type f -perm -4000 2>/dev/null", "sudo find / -perm -u=s -type f"],
    &[
        "find . -perm -4000",
        "find / -perm 4000 2>/dev/null",
        "find / -perm -2000 2>/dev/null",
        "find / -user root -maxdepth 1",
    ],
);

const DEMOS: [Demo; 12] = [
    Demo {
        request: "show git commits from last 2 weeks with author names",
        judge: judges::recent_commits,
        linux: COMMITS,
        macos: COMMITS,
    },
    Demo {
        request: "show top 5 processes by CPU usage",
        judge: |ran| judges::processes(ran, 5),
        linux: (
            &["ps aux --sort=-%cpu | head -n 6", "ps -eo pid,comm,%cpu --sort=-%cpu --no-headers | head -n 5"],
            &[
                "ps aux --sort=-%cpu | head -n 5",
                "ps aux -r | head -n 5",
                "ps aux --sort=-%mem | head -n 6",
                "ps aux | head -n 6",
                "ps aux --sort=%cpu | head -n 6",
            ],
        ),
        macos: (
            &[
                "ps aux -r | head -n 6",
                "ps -Ao pid,%cpu,comm -r | head -6",
                "ps aux | tail -n +2 | sort -nrk 3,3 | head -5",
                "ps -Arco pid,pcpu,comm | head -n 6",
            ],
            &[
                "ps aux -r | head -n 5",
                "ps aux --sort=-%cpu | head -n 6",
                "ps aux | sort -rk 3,3 | head -n 6",
                "ps aux -m | head -n 6",
                "ps -r | head -n 6",
                "ps aux | sort -nrk 4,4 | head -n 5",
                "ps -eo pid,comm,%cpu --no-headers -r | head -n 5",
                "top -b -n 1 | head -n 12",
            ],
        ),
    },
    Demo {
        request: "find all Rust files in current directory modified in the last 7 days",
        judge: judges::recent_rust,
        linux: RUST,
        macos: RUST,
    },
    Demo {
        request: "show all listening TCP ports on this system",
        judge: judges::listening,
        linux: (
            &["ss -tln", "ss -ltnp", "netstat -tln"],
            &["ss -tuln", "ss -tan", "ss -uln", "ss -tn", "ss -tl4 sport = :1"],
        ),
        macos: (
            &[
                "lsof -iTCP -sTCP:LISTEN -n -P",
                "sudo lsof -nP -iTCP -sTCP:LISTEN",
                "netstat -an -p tcp | grep LISTEN",
                "lsof -i -P | grep LISTEN",
                "netstat -an | grep LISTEN",
            ],
            &[
                "ss -tln",
                "netstat -tuln",
                "netstat -tulpn",
                "lsof -i",
                "lsof -iTCP",
                "netstat -an",
                "netstat -an -p tcp",
                "lsof -iTCP:8080 -sTCP:LISTEN",
            ],
        ),
    },
    Demo {
        request: "show disk usage sorted by size",
        judge: judges::sorted_sizes,
        linux: (
            &["du -h -d 1 | sort -hr", "du -sk * | sort -n", "du -sh * | sort -h", "du -a | sort -n -r"],
            &["du -sh *", "du -sh * | sort -n", "du -h -d 1 | sort -r", "du -sh", "du -sh -d 1 | sort -h", "ls -l"],
        ),
        macos: (
            &[
                "du -h -d 1 | sort -hr",
                "du -sk * | sort -n",
                "du -sh * | sort -h",
                "du -ah . | sort -rh",
                "df -h | sort -hr -k 2",
                "df -k | tail -n +2 | sort -n -k 3",
            ],
            &[
                "df -h",
                "du -sh -d 1 | sort -h",
                "du -h --max-depth=1 | sort -hr",
                "du -sh *",
                "du -sh * | sort -nr",
                "df -h --output=size | sort -h",
                "du -a -h -s . | sort -h",
            ],
        ),
    },
    Demo {
        request: "find all log files in current directory and count total lines",
        judge: judges::total_lines,
        linux: LOGS,
        macos: LOGS,
    },
    Demo {
        request: "show how long this system has been up",
        judge: judges::uptime,
        linux: (&["uptime", "uptime -p", "w | head -n 1"], UPTIME.1),
        macos: (UPTIME.0, &["uptime -p", "cat /proc/uptime", "date"]),
    },
    Demo {
        request: "show top 10 processes by CPU usage",
        judge: |ran| judges::processes(ran, 10),
        linux: (
            &["ps aux --sort=-%cpu | head -n 11", "ps -eo pid,pcpu,args --sort=-pcpu | sed -n '2,11p'"],
            &["ps aux --sort=-%cpu | head -n 10", "ps aux --sort=-%cpu | head", "ps aux | sort -k 3 | head -n 11"],
        ),
        macos: (
            &["ps aux -r | head -n 11", "ps -A -o %cpu,comm -r | head -11", "ps aux | sort -nrk 3,3 | head -10"],
            &[
                "ps aux -r | head -n 10",
                "ps aux | sort -rk 3,3 | head -n 11",
                "ps aux | head -n 11",
                "ps -aux -r | head -n 11",
            ],
        ),
    },
    Demo {
        request: "find all Rust files modified in the last 7 days",
        judge: judges::recent_rust,
        linux: RUST,
        macos: RUST,
    },
    Demo {
        request: "create a tar archive of the current directory",
        judge: judges::archive,
        linux: ARCHIVE,
        macos: ARCHIVE,
    },
    Demo {
        request: "find all setuid files on the system",
        judge: judges::setuid,
        linux: (SETUID.0, &["find . -perm -4000", "find / -perm -2000 2>/dev/null", "find / -perm /6000 2>/dev/null"]),
        macos: (SETUID.0, SETUID.1),
    },
    Demo {
        request: "show who logged in today",
        judge: judges::logins,
        linux: (
            &[
                "last -s today",
                "last --since today",
                "last | grep \"$(date '+%a %b %e')\"",
                "last --time-format iso | grep \"$(date +%F)\"",
            ],
            &[
                "who",
                "last",
                "w",
                "last | grep $(date +%F)",
                "last -n 1",
                "last -d today",
                "who | grep \"$(date +%F)\"",
            ],
        ),
        macos: (
            &["last | grep \"$(date '+%b %e')\"", "last | grep \"$(date +'%a %b %e')\""],
            &[
                "last -s today",
                "last --since today",
                "last | grep $(date +%F)",
                "who",
                "last",
                "last | grep \"$(date -d today '+%b %e')\"",
                "last -1 today",
            ],
        ),
    },
];

fn examples(demo: &Demo, system: System) -> (&'static [&'static str], &'static [&'static str]) {
    match system {
        System::Linux => demo.linux,
        System::Macos => demo.macos,
    }
}

/// Runs a command. Returns whether it does the right thing, and the beginning of its output.
fn judged(world: &World, demo: &Demo, cmd: &str) -> (bool, String) {
    let home = tempfile::tempdir().unwrap();
    let (tree, ran) = world.run(cmd, home.path());
    let outcome = Outcome { stdout: ran.stdout, tree: &tree, world };
    let is_right = !cmd.is_empty() && (demo.judge)(&outcome);
    let heads = outcome.stdout.lines().take(12).chain(ran.stderr.lines().take(2));
    (is_right, heads.collect::<Vec<_>>().join("\n"))
}

fn judges_tell_right_from_wrong(system: System) {
    let world = World::new(system);
    let mut misjudged = Vec::new();
    for demo in &DEMOS {
        let (right, wrong) = examples(demo, system);
        for (cmd, want) in right.iter().map(|cmd| (cmd, true)).chain(wrong.iter().map(|cmd| (cmd, false))) {
            let (is_right, printed) = judged(&world, demo, cmd);
            if is_right != want {
                let verdict = if want { "is right" } else { "is wrong" };
                misjudged.push(format!("{}: `{cmd}` {verdict}, but judged otherwise:\n{printed}", demo.request));
            }
        }
    }
    assert!(misjudged.is_empty(), "{}", misjudged.join("\n\n"));
}

#[test]
fn judges_tell_right_from_wrong_on_linux() {
    judges_tell_right_from_wrong(System::Linux);
}

#[test]
fn judges_tell_right_from_wrong_on_macos() {
    judges_tell_right_from_wrong(System::Macos);
}

/// Judges the model's answers to all demos; the number of right ones. `None` without the model.
fn count_right(system: System) -> Option<usize> {
    let mut caro = model_or_skip("batch")?;
    if system == System::Macos {
        caro.args(["--target", "macos-bsd"]);
    }
    // generous limits: the answer is graded, not the speed of the machine
    caro.args(["--budget", "20", "--timeout", "120"]);
    let mut child = caro.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let world = World::new(system);
    let homes: Vec<_> = DEMOS.iter().map(|_| tempfile::tempdir().unwrap()).collect();
    let mut stdin = child.stdin.take().unwrap();
    for (i, (demo, home)) in DEMOS.iter().zip(&homes).enumerate() {
        // each request has its own copy of the fixture
        let (tree, _) = world.run("true", home.path());
        writeln!(stdin, "{}", json!({"id": i, "request": demo.request, "cwd": tree})).unwrap();
    }
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    let answers: Vec<Value> =
        String::from_utf8(output.stdout).unwrap().lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    assert_eq!(answers.len(), DEMOS.len());
    let mut right = 0;
    for (demo, answer) in DEMOS.iter().zip(&answers) {
        let cmd = answer["cmd"].as_str().unwrap_or_default();
        let (is_right, printed) = judged(&world, demo, cmd);
        right += usize::from(is_right);
        println!("{} {}: {cmd}", if is_right { "ok   " } else { "WRONG" }, demo.request);
        if !is_right {
            println!("{printed}");
        }
    }
    Some(right)
}

#[test]
fn demos_are_right_on_linux() {
    let Some(right) = count_right(System::Linux) else { return };
    assert!(right >= MIN_RIGHT_LINUX, "only {right} of {} demos did the right thing", DEMOS.len());
}

#[test]
#[ignore = "a minute: benches/full.sh runs it, and tests/targets.rs a sample for macOS"]
fn demos_are_right_on_macos() {
    let Some(right) = count_right(System::Macos) else { return };
    assert!(right >= MIN_RIGHT_MACOS, "only {right} of {} demos did the right thing", DEMOS.len());
}
