//! Tests the examples shown to the model: each passes the checks, and each that can run on this machine does in a
//! fixture what its request says.

use crate::support::run_shell;
use caro::command::checks::{CheckContext, run};
use caro::command::examples::{Example, for_target};
use caro::command::reply::REFUSAL;
#[cfg(target_os = "linux")]
use caro::shell::quote;
use caro::shell::{Dialect, Severity, Target, Userland, parse};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, SystemTime};

#[test]
fn every_example_passes_the_checks_of_its_target() {
    let mut wrong = Vec::new();
    for (name, target) in Target::ALL {
        let dialect = match target.userland {
            Userland::PowerShell => Dialect::PowerShell,
            Userland::Busybox => Dialect::Sh,
            _ => Dialect::Bash,
        };
        for Example { request, command } in for_target(target).iter().filter(|e| e.command != REFUSAL) {
            let script = parse(command, dialect);
            let manuals = BTreeMap::new();
            let it =
                CheckContext { request, script: &script, target, dialect, context: None, cwd: None, manuals: &manuals };
            let found = run(&it);
            let heavy: Vec<_> = found.iter().filter(|f| f.severity > Severity::Hint).collect();
            if !script.errors.is_empty() || !heavy.is_empty() {
                wrong.push(format!("{name}: {request} => {command}: {heavy:?} {:?}", script.errors));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The output of an example, and the tree after it.
struct Outcome<'a> {
    out: &'a str,
    root: &'a Path,
}

impl Outcome<'_> {
    fn lines(&self) -> Vec<&str> {
        self.out.lines().map(str::trim).collect()
    }

    /// The file names at the ends of the lines, sorted.
    fn names(&self) -> Vec<&str> {
        let mut names: Vec<&str> = self.lines().iter().filter_map(|l| l.rsplit('/').next()).collect();
        names.sort_unstable();
        names
    }

    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.root.join(name)).unwrap()
    }
}

/// Decides whether an example did what its request says.
type Judge = fn(&Outcome) -> bool;

/// The judge of each example. An example without one fails the test, since every example must be run.
const JUDGES: &[(&str, Judge)] = &[
    ("which folders here take the most space", |l| l.lines()[0].ends_with('.') && l.lines()[1].ends_with("/big")),
    ("ten biggest files below /srv/media, with their sizes", |l| {
        l.lines().len() == 10 && l.lines()[0].starts_with("12000 ") && l.lines()[9].starts_with("3000 ")
    }),
    ("jpg pictures changed in the last 30 minutes", |l| l.names() == ["deep.jpg", "new.jpg"]),
    ("how many lines do all the markdown files have together", |l| l.out.trim() == "7"),
    ("which config files under /etc mention proxy", |l| l.names() == ["a.conf", "b.conf"]),
    ("in every yaml file, put two spaces in place of each tab", |l| {
        l.read("a.yaml") == "a:\n  b: 1\n" && l.read("sub/c.yaml") == "c:\n    d\n" && l.read("tabs.txt") == "\tx\n"
    }),
    ("processes that use the most memory", |l| l.lines().len() > 1 && l.lines().len() <= 11),
    ("second column of prices.csv, sorted, without repeats", |l| l.lines() == ["pear", "plum"]),
    ("clear out log files older than two weeks in /opt/build/logs, not in its subfolders", |l| {
        let remains = |name| l.root.join("opt/build/logs").join(name).exists();
        !remains("old.log") && remains("new.log") && remains("old.txt") && remains("sub/old.log")
    }),
    ("pack the photos folder into photos.tar.gz", |l| {
        let listed = run_shell("tar -tzf photos.tar.gz", l.root);
        listed.ok && listed.stdout.lines().any(|name| name == "photos/one.jpg")
    }),
    ("who owns notes.md", |l| l.out == run_shell("ls -l notes.md | awk '{print $3}'", l.root).stdout),
    ("last five commits with their dates", |l| {
        l.lines().len() == 5 && l.lines()[0] == "2024-05-07 c7" && l.lines()[4] == "2024-05-03 c3"
    }),
    ("where do the python sources in src say todo, in any case, with line numbers", |l| {
        l.lines().len() == 2 && l.out.contains("src/m.py:2:# Todo") && l.out.contains("src/p/n.py:1:# TODO")
    }),
    ("newest file below ~/Downloads", |l| l.names() == ["new file.txt"]),
    ("logins since yesterday", |l| l.out.contains("wtmp")),
];

/// The files of the fixture: path, content, age in minutes.
const FILES: &[(&str, &str, u64)] = &[
    ("new.jpg", "x", 5),
    ("old.jpg", "x", 45),
    ("sub/deep.jpg", "x", 10),
    ("new.png", "x", 1),
    ("notes.md", "1\n2\n3\n", 9999),
    ("sub/more notes.md", "1\n2\n3\n4\n", 9999),
    ("etc/a.conf", "http proxy on\n", 9999),
    ("etc/d/b.conf", "proxy\n", 9999),
    ("etc/c.conf", "none\n", 9999),
    ("etc/e.txt", "proxy\n", 9999),
    ("a.yaml", "a:\n\tb: 1\n", 9999),
    ("sub/c.yaml", "c:\n\t\td\n", 9999),
    ("tabs.txt", "\tx\n", 9999),
    ("prices.csv", "1,plum,3\n2,pear,4\n3,plum,5\n", 9999),
    ("opt/build/logs/old.log", "x", 60 * 24 * 20),
    ("opt/build/logs/new.log", "x", 60 * 24 * 3),
    ("opt/build/logs/old.txt", "x", 60 * 24 * 20),
    ("opt/build/logs/sub/old.log", "x", 60 * 24 * 20),
    ("photos/one.jpg", "x", 9999),
    ("src/m.py", "import os\n# Todo: more\n", 9999),
    ("src/p/n.py", "# TODO\n", 9999),
    ("src/readme.txt", "todo\n", 9999),
    ("Downloads/new file.txt", "x", 2),
    ("Downloads/a/old.txt", "x", 300),
];

fn fixture(root: &Path) {
    let now = SystemTime::now();
    let write = |name: &str, content: &[u8], minutes: u64| {
        let path = root.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, content).unwrap();
        let file = std::fs::File::options().write(true).open(&path).unwrap();
        file.set_modified(now - Duration::from_secs(minutes * 60)).unwrap();
    };
    for (name, content, minutes) in FILES {
        write(name, content.as_bytes(), *minutes);
    }
    for i in 1..=12 {
        write(&format!("srv/media/d{}/{i}.bin", i % 3), &vec![b'x'; i * 1000], 9999);
    }
    write("big/file", &vec![b'x'; 400_000], 9999);
}

/// Makes seven commits, one a day; false if git cannot.
fn commits(root: &Path) -> bool {
    let line = "git init -q . && for i in 1 2 3 4 5 6 7; do \
        GIT_COMMITTER_DATE=2024-05-0${i}T12:00:00 GIT_AUTHOR_DATE=2024-05-0${i}T12:00:00 \
        git -c user.name=A -c user.email=a@example.org commit -q --allow-empty -m c$i || exit 1; done";
    run_shell(line, root).ok
}

/// Rewrites the absolute paths of a command into the fixture.
fn into_fixture(command: &str, root: &Path) -> String {
    let root = root.to_str().unwrap();
    ["/srv/media", "/opt/build/logs", "/etc"]
        .iter()
        .fold(command.replace("~/", &format!("{root}/")), |command, path| {
            command.replace(&format!(" {path}"), &format!(" {root}{path}"))
        })
}

/// Runs every example of a target. `shell` turns a command into a line of bash.
fn run_examples(target: &str, shell: impl Fn(&str) -> String) {
    let mut wrong = Vec::new();
    let examples = for_target(Target::named(target).unwrap()).iter().filter(|e| e.command != REFUSAL);
    for Example { request, command } in examples {
        let Some((_, judge)) = JUDGES.iter().find(|(r, _)| r == request) else {
            wrong.push(format!("{target}: no judge for `{request}`"));
            continue;
        };
        let program = command.split(' ').next().unwrap();
        let may_be_missing = matches!(program, "git" | "last");
        if may_be_missing && !run_shell(&format!("command -v {program}"), Path::new("/")).ok {
            println!("skipped: `{command}`, because {program} is missing");
            continue;
        }
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        fixture(&root);
        if program == "git" {
            assert!(commits(&root), "git cannot commit here");
        }
        let ran = run_shell(&shell(&into_fixture(command, &root)), &root);
        if program == "last" && ran.stderr.contains("wtmp") {
            println!("skipped: `{command}`, because this machine records no logins");
            continue;
        }
        // a judge may panic if the output is too short; then the example is wrong
        let outcome = Outcome { out: &ran.stdout, root: &root };
        let is_right = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| judge(&outcome))).unwrap_or(false);
        if !ran.ok || !is_right {
            wrong.push(format!("{target}: {command}\nprinted: {}\nerrors: {}", ran.stdout, ran.stderr));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[cfg(target_os = "linux")]
#[test]
fn every_example_for_linux_does_what_its_request_says() {
    run_examples("linux-gnu", str::to_owned);
}

#[cfg(target_os = "linux")]
#[test]
fn every_example_for_busybox_does_what_its_request_says() {
    // only busybox's own programs
    let bin = tempfile::tempdir().unwrap();
    let line = format!("busybox --install -s {}", quote(bin.path().to_str().unwrap(), Dialect::Bash));
    if !run_shell(&line, Path::new("/")).ok {
        println!("skipped: there is no busybox here");
        return;
    }
    let path = bin.path().display().to_string();
    run_examples("linux-busybox", |command| format!("PATH={path} exec {path}/sh -c {}", quote(command, Dialect::Bash)));
}
