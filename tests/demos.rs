//! The demo requests, answered by the real model and *run* in a fixture tree: graded by effect, not by string.
//! At least 10 of 12 must do the right thing.

use crate::support::{model_or_skip, run_shell};
use serde_json::{Value, json};
use std::io::Write;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, SystemTime};

const DAY: u64 = 24 * 3600;

/// A request and the judge of what its command printed and did in the fixture.
struct Demo {
    request: &'static str,
    judge: fn(&Ran) -> bool,
}

/// What running a command left.
struct Ran<'a> {
    stdout: String,
    tree: &'a Path,
    port: u16,
    busy: u32,
}

const DEMOS: [Demo; 12] = [
    Demo { request: "show git commits from last 2 weeks with author names", judge: recent_commits },
    Demo { request: "show top 5 processes by CPU usage", judge: |r| processes(r, 5) },
    Demo { request: "find all Rust files in current directory modified in the last 7 days", judge: recent_rust },
    Demo { request: "show all listening TCP ports on this system", judge: |r| r.stdout.contains(&r.port.to_string()) },
    Demo { request: "show disk usage sorted by size", judge: sorted_sizes },
    Demo { request: "find all log files in current directory and count total lines", judge: total_lines },
    Demo { request: "show how long this system has been up", judge: |r| r.stdout.contains("up ") },
    Demo { request: "show top 10 processes by CPU usage", judge: |r| processes(r, 10) },
    Demo { request: "find all Rust files modified in the last 7 days", judge: recent_rust },
    Demo { request: "create a tar archive of the current directory", judge: archive },
    Demo { request: "find all setuid files on the system", judge: setuid },
    Demo { request: "show who logged in today", judge: logins },
];

fn recent_commits(r: &Ran) -> bool {
    r.stdout.contains("Ada Example") && r.stdout.contains("Bo Example") && !r.stdout.contains("Old Author")
}

/// Exactly so many processes, the busy one among them.
fn processes(r: &Ran, count: usize) -> bool {
    let numbers = |l: &&str| l.split_whitespace().take(2).any(|w| w.parse::<u32>().is_ok());
    let rows: Vec<&str> = r.stdout.lines().filter(numbers).collect();
    rows.len() == count && rows.iter().any(|l| l.split_whitespace().any(|w| w == r.busy.to_string()))
}

fn recent_rust(r: &Ran) -> bool {
    r.stdout.contains("new.rs")
        && r.stdout.contains("deep.rs")
        && !r.stdout.contains("old.rs")
        && !r.stdout.contains(".txt")
}

/// At least three sizes, in either order. `du` and `df` are both right answers.
fn sorted_sizes(r: &Ran) -> bool {
    let size = |w: &str| {
        let number: f64 = w.trim_end_matches(|c: char| c.is_ascii_alphabetic()).parse().ok()?;
        let unit = w.chars().last().filter(char::is_ascii_alphabetic).unwrap_or('B');
        Some(number * 1024_f64.powi("BKMGT".find(unit.to_ascii_uppercase())? as i32))
    };
    // du prints the size first; df prints size, used and available, sorted by any of them
    let columns = |skip: usize| -> Vec<f64> {
        r.stdout.lines().filter_map(|l| size(l.split_whitespace().nth(skip)?.trim_end_matches('%'))).collect()
    };
    (0..5).map(columns).any(|c| c.len() >= 3 && (c.is_sorted() || c.iter().rev().is_sorted()))
}

/// 3 lines in one file, 4 in one with a space in its name in a folder.
fn total_lines(r: &Ran) -> bool {
    r.stdout.lines().last().is_some_and(|l| l.split_whitespace().next() == Some("7"))
}

/// Some new archive holds the tree's files.
fn archive(r: &Ran) -> bool {
    let beside = [r.tree, r.tree.parent().unwrap()];
    let files = beside.iter().flat_map(|d| std::fs::read_dir(d).unwrap()).map(|e| e.unwrap().path());
    let mut archives = files.filter(|p| p.to_string_lossy().contains(".t"));
    archives.any(|p| run_shell(&format!("tar -tf '{}'", p.display()), r.tree).stdout.contains("new.rs"))
}

fn setuid(r: &Ran) -> bool {
    r.stdout.contains("raised-program") && !r.stdout.contains("new.rs")
}

/// The same as one of the ways to ask the system itself.
fn logins(r: &Ran) -> bool {
    ["who", "last", "last -s today", "last --since today", "w"].iter().any(|c| run_shell(c, r.tree).stdout == r.stdout)
}

/// Files of known age, a repository with known commits, logs with known lines.
fn fixture(tree: &Path) {
    let file = |name: &str, text: &str, days: u64| {
        let path = tree.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        let when = SystemTime::now() - Duration::from_secs(days * DAY);
        std::fs::File::options().write(true).open(&path).unwrap().set_modified(when).unwrap();
    };
    file("src/new.rs", "fn main() {}\n", 1);
    file("src/inner/deep.rs", "pub fn deep() {}\n", 3);
    file("src/old.rs", "pub fn old() {}\n", 60);
    file("notes.txt", "a note\n", 1);
    file("app.log", "one\ntwo\nthree\n", 1);
    file("logs/web server.log", "1\n2\n3\n4\n", 2);
    file("raised-program", "#!/bin/sh\n", 1);
    let script = "chmod 4755 raised-program
        git init -q . && git config user.email t@example.org && git config user.name T
        commit() {
            export GIT_AUTHOR_DATE=\"@$(($(date +%s) - $2 * 86400)) +0000\"
            export GIT_COMMITTER_DATE=$GIT_AUTHOR_DATE
            git commit -q --allow-empty --author \"$1 <a@example.org>\" -m \"$3\"
        }
        commit 'Old Author' 40 first; commit 'Ada Example' 3 second; commit 'Bo Example' 1 third";
    let made = run_shell(script, tree);
    assert!(made.ok, "{}", made.stderr);
}

/// A process that keeps a core busy; it ends with the test, however that ends.
struct Busy(Child);

impl Drop for Busy {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn ten_of_twelve_demos_do_the_right_thing() {
    let Some(mut caro) = model_or_skip("batch") else { return };
    let mut child = caro.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let home = tempfile::tempdir().unwrap();
    let trees: Vec<_> = (0..DEMOS.len()).map(|i| home.path().join(format!("demo{i}/tree"))).collect();
    let mut stdin = child.stdin.take().unwrap();
    for (i, (demo, tree)) in DEMOS.iter().zip(&trees).enumerate() {
        std::fs::create_dir_all(tree).unwrap();
        fixture(tree);
        writeln!(stdin, "{}", json!({"id": i, "request": demo.request, "cwd": tree})).unwrap();
    }
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    let answers: Vec<Value> =
        String::from_utf8(output.stdout).unwrap().lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    assert_eq!(answers.len(), DEMOS.len());

    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let busy = Busy(Command::new("sh").args(["-c", "while :; do :; done"]).spawn().unwrap());
    std::thread::sleep(Duration::from_secs(2));
    let mut right = 0;
    for ((demo, tree), answer) in DEMOS.iter().zip(&trees).zip(&answers) {
        let cmd = answer["cmd"].as_str().unwrap_or_default();
        let stdout = run_shell(cmd, tree).stdout;
        let ran = Ran { stdout, tree, port: listener.local_addr().unwrap().port(), busy: busy.0.id() };
        let ok = (demo.judge)(&ran);
        right += usize::from(ok);
        println!("{} {}: {cmd}", if ok { "ok   " } else { "WRONG" }, demo.request);
        if !ok {
            println!("{}", ran.stdout.lines().take(12).collect::<Vec<_>>().join("\n"));
        }
    }
    drop(busy);
    assert!(right >= 10, "only {right} of {} demos did the right thing", DEMOS.len());
}
