//! Tests of each kind of repair on invented facts; `tests/fix.rs` repairs and runs whole commands.

use super::*;
use caro_host::packages::Lookup;
use caro_manual::{Entry, OptionEntry};
use caro_shell::Dialect;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const PROGRAMS: [&str; 20] = [
    "apt",
    "bash",
    "cat",
    "cp",
    "find",
    "git",
    "grep",
    "ls",
    "mkdir",
    "npm",
    "python3",
    "rm",
    "sed",
    "sh",
    "ss",
    "sudo",
    "systemctl",
    "tee",
    "touch",
    "xargs",
];

/// A folder with files, and the facts about it.
struct Fixture {
    dir: tempfile::TempDir,
    dialect: Dialect,
    is_root: bool,
}

impl Fixture {
    fn new(files: &[&str]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        for file in files {
            let path = dir.path().join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "#!/bin/sh\necho x\n").unwrap();
        }
        Self { dir, dialect: Dialect::Bash, is_root: false }
    }

    fn repair(&self, command: &str, stderr: Option<&str>) -> Option<Repair> {
        let failed =
            Failed { command: command.into(), status: Some(1), stages: Vec::new(), stderr: stderr.map(Into::into) };
        self.with_facts(|facts| diagnose(&failed, facts))
    }

    fn with_facts<T>(&self, call: impl FnOnce(&Facts) -> T) -> T {
        let programs: BTreeMap<String, PathBuf> =
            PROGRAMS.iter().map(|name| ((*name).to_owned(), Path::new("/bin").join(name))).collect();
        let manual = |name: &str, sub: Option<&str>| {
            let entry = match (name, sub) {
                ("ls", None) => entry("ls", &["--all", "--almost-all", "--sort", "--size", "-l"], &[]),
                ("git", None) => entry("git", &["--version", "-C"], &["commit", "status", "log", "push"]),
                ("git", Some("commit")) => entry("git commit", &["--amend", "--all", "--message"], &[]),
                _ => return None,
            };
            Some(Arc::new(entry))
        };
        let package = |name: &str| match name {
            "htop" => Lookup::Found("sudo apt install htop".to_owned()),
            "systemctll" => Lookup::Unknown,
            "mkdirr" => Lookup::NoManager,
            _ => Lookup::NotFound,
        };
        let facts = Facts {
            cwd: self.dir.path(),
            home: None,
            programs: &programs,
            dialect: self.dialect,
            is_root: self.is_root,
            manual: &manual,
            package: &package,
        };
        call(&facts)
    }

    /// Returns the repaired command; empty if there is none.
    fn of(&self, command: &str, stderr: &str) -> String {
        self.repair(command, Some(stderr)).map(|repair| repair.command).unwrap_or_default()
    }

    /// Returns the repaired command if standard error is not known; empty if there is none.
    fn silent(&self, command: &str) -> String {
        self.repair(command, None).map(|repair| repair.command).unwrap_or_default()
    }
}

fn entry(command: &str, flags: &[&str], subcommands: &[&str]) -> Entry {
    let option = |flag: &&str| OptionEntry { long: Some((*flag).into()), ..OptionEntry::default() };
    Entry {
        command: command.into(),
        options: flags.iter().map(option).collect(),
        complete: true,
        delegates: !subcommands.is_empty(),
        subcommands: subcommands.iter().map(|s| (*s).to_owned()).collect(),
        ..Entry::default()
    }
}

#[test]
fn a_mistyped_program_is_corrected_and_a_missing_one_is_installed() {
    let fixture = Fixture::new(&["deploy.sh", "scripts/backup.sh"]);
    let unknown = |name: &str| format!("bash: {name}: command not found");
    for (command, name, repaired) in [
        ("gerp x f | gti log", "gerp", "grep x f | git log"),
        ("cd..", "cd..", "cd .."),
        ("ls-l", "ls-l", "ls -l"),
        ("gitstatus -s", "gitstatus", "git status -s"),
        ("gi tstatus", "gi", "git status"),
        ("LS", "LS", "ls"),
        ("sudo gerp x", "gerp", "sudo grep x"),
        ("deploy.sh", "deploy.sh", "sh ./deploy.sh"),
        ("backup.sh -v", "backup.sh", "sh scripts/backup.sh -v"),
        ("htop -d 5", "htop", "sudo apt install htop"),
        ("x = 5", "x", "x=5"),
        ("frobnicate", "frobnicate", ""),
        ("mkdirr a", "mkdirr", "mkdir a"),
        ("systemctll status", "systemctll", ""),
        ("python x.py", "python", "python3 x.py"),
        ("cpp a b", "cpp", ""),
        ("sl data", "sl", "ls data"),
        ("dc src", "dc", "cd src"),
        ("rmd a", "rmd", ""),
        ("apt-file search x", "apt-file", ""),
    ] {
        assert_eq!(fixture.of(command, &unknown(name)), repaired, "{command}");
        assert_eq!(fixture.silent(command), repaired, "{command}: without its error");
    }
    assert_eq!(
        fixture.of("timeout 3 gerp x", "timeout: failed to run command ‘gerp’: No such file or directory"),
        "timeout 3 grep x"
    );
}

#[test]
fn a_flag_comes_from_the_manual_the_program_or_its_usage() {
    let fixture = Fixture::new(&[]);
    for (command, stderr, repaired) in [
        ("ls --siez", "ls: unrecognized option '--siez'", "ls --size"),
        ("ls --srot=size x", "ls: unrecognized option '--srot=size'", "ls --sort=size x"),
        ("ls --al", "ls: option '--al' is ambiguous; possibilities: '--all' '--almost-all'", "ls --all"),
        ("git commit --ammend", "error: unknown option `ammend'", "git commit --amend"),
        (
            "cargo build --relase",
            "error: unexpected argument '--relase' found\n\n  tip: a similar argument exists: '--release'",
            "cargo build --release",
        ),
        (
            "tool --colr",
            "tool: unrecognized option '--colr'\nusage: tool [--color] [--[no-]cache] FILE",
            "tool --color",
        ),
        ("ls --frobnicate", "ls: unrecognized option '--frobnicate'", ""),
    ] {
        assert_eq!(fixture.of(command, stderr), repaired, "{command}");
    }
    assert_eq!(fixture.silent("ls --siez"), "ls --size");
    assert_eq!(fixture.silent("ls --all"), "");
}

#[test]
fn a_subcommand_comes_from_the_program_its_manual_or_the_project() {
    let fixture = Fixture::new(&[]);
    std::fs::write(fixture.dir.path().join("Makefile"), "build:\n\techo x\ntest:\n").unwrap();
    for (command, stderr, repaired) in [
        (
            "git comit -m x",
            "git: 'comit' is not a git command.\n\nThe most similar command is\n\tcommit",
            "git commit -m x",
        ),
        ("git statsu", "git: 'statsu' is not a git command. See 'git --help'.", "git status"),
        ("make biuld", "make: *** No rule to make target 'biuld'.  Stop.", "make build"),
        (
            "npm run tset",
            "npm error Missing script: \"tset\"\nnpm error Did you mean this?\nnpm error   npm run test",
            "",
        ),
        ("pip isntall x", "ERROR: unknown command \"isntall\" - maybe you meant \"install\"", "pip install x"),
        ("git frobnicate", "git: 'frobnicate' is not a git command.", ""),
    ] {
        assert_eq!(fixture.of(command, stderr), repaired, "{command}");
    }
    assert_eq!(fixture.silent("git comit -m x"), "git commit -m x");
    assert_eq!(fixture.silent("make biuld V=1"), "make build V=1");
    assert_eq!(fixture.silent("make -C x"), "");
}

#[test]
fn a_path_becomes_the_nearest_existing_one_and_names_with_blanks_are_quoted() {
    let fixture = Fixture::new(&["notes.txt", "data/people.csv", "my report.txt", "it's here"]);
    for (command, stderr, repaired) in [
        ("cat nots.txt", "cat: nots.txt: No such file or directory", "cat notes.txt"),
        ("wc -l < dtaa/people.csv", "bash: dtaa/people.csv: No such file or directory", "wc -l < data/people.csv"),
        (
            "cat my report.txt",
            "cat: my: No such file or directory\ncat: report.txt: No such file or directory",
            "cat 'my report.txt'",
        ),
        ("cat it's here", "bash: unexpected EOF while looking for matching `''", "cat \"it's\" here"),
        ("grep \"x notes.txt", "bash: unexpected EOF while looking for matching `\"'", "grep \"x\" notes.txt"),
        ("echo 'x", "bash: unexpected EOF while looking for matching `''", "echo 'x'"),
        ("cat people.csv", "cat: people.csv: No such file or directory", "cat data/people.csv"),
        ("cat \"$f\"", "cat: nots.txt: No such file or directory", ""),
        ("cat nowhere.txt", "cat: nowhere.txt: No such file or directory", ""),
        ("find . -name *.txt", "find: paths must precede expression: `b.txt'", "find . -name '*.txt'"),
        ("grep (x) notes.txt", "bash: syntax error near unexpected token `x'", "grep '(x)' notes.txt"),
    ] {
        assert_eq!(fixture.of(command, stderr), repaired, "{command}");
    }
    assert_eq!(fixture.silent("cat nots.txt"), "cat notes.txt");
    assert_eq!(fixture.silent("touch nots.txt"), "", "a new file need not exist");
    assert_eq!(fixture.silent("mkdir dta && cat dta/x"), "");
    assert_eq!(fixture.silent("echo nots.txt"), "", "a word is not a path");
    assert_eq!(fixture.silent("cat people.csv"), "", "without a complaint, no path elsewhere");
    assert_eq!(fixture.silent("cd dta && ls nots.txt"), "cd data && ls nots.txt");
    assert_eq!(fixture.silent("ls –l"), "ls -l");
    assert_eq!(fixture.silent("$ cat notes.txt"), "cat notes.txt");
    let zsh = Fixture { dialect: Dialect::Zsh, ..Fixture::new(&[]) };
    assert_eq!(
        zsh.of("curl http://x.example/?a=1", "zsh: no matches found: http://x.example/?a=1"),
        "curl 'http://x.example/?a=1'"
    );
}

#[test]
fn a_folder_is_created_entered_or_listed() {
    let fixture = Fixture::new(&["notes.txt", "data/deep/x.log"]);
    for (command, stderr, repaired) in [
        ("mkdir a/b", "mkdir: cannot create directory ‘a/b’: No such file or directory", "mkdir -p a/b"),
        ("mkdir data", "mkdir: cannot create directory ‘data’: File exists", "mkdir -p data"),
        ("touch out/x", "touch: cannot touch 'out/x': No such file or directory", "mkdir -p out && touch out/x"),
        ("echo x > out/x", "bash: out/x: No such file or directory", "mkdir -p out && echo x > out/x"),
        ("touch dta/x", "touch: cannot touch 'dta/x': No such file or directory", "touch data/x"),
        ("cp data copy", "cp: -r not specified; omitting directory 'data'", "cp -r data copy"),
        ("rm data", "rm: cannot remove 'data': Is a directory", "rm -r data"),
        ("grep x data", "grep: data: Is a directory", "grep -r x data"),
        ("cat data", "cat: data: Is a directory", "ls data"),
        ("cd notes.txt && ls", "bash: cd: notes.txt: Not a directory", "cd . && ls"),
        ("cd notes.txt", "bash: cd: notes.txt: Not a directory", "cat notes.txt"),
        (
            "mv notes.txt out/b",
            "mv: cannot move 'notes.txt' to 'out/b': No such file or directory",
            "mkdir -p out && mv notes.txt out/b",
        ),
        ("rmdir data/deep", "rmdir: failed to remove 'data/deep': Directory not empty", "rm -r data/deep"),
    ] {
        assert_eq!(fixture.of(command, stderr), repaired, "{command}");
    }
}

#[test]
fn root_is_used_only_where_it_helps() {
    let fixture = Fixture::new(&["run.sh", "note"]);
    std::fs::write(fixture.dir.path().join("note"), "plain").unwrap();
    let root = Fixture { is_root: true, ..Fixture::new(&[]) };
    for (command, stderr, repaired) in [
        ("./run.sh -v", "bash: ./run.sh: Permission denied", "chmod +x ./run.sh && ./run.sh -v"),
        ("./note", "bash: ./note: Permission denied", ""),
        ("cat /etc/shadow", "cat: /etc/shadow: Permission denied", "sudo cat /etc/shadow"),
        ("sudo cat /etc/shadow", "cat: /etc/shadow: Permission denied", ""),
        ("cat note", "cat: note: Permission denied", ""),
        ("cd /root", "bash: cd: /root: Permission denied", ""),
        ("echo x >> /etc/hosts", "bash: /etc/hosts: Permission denied", "echo x | sudo tee -a /etc/hosts >/dev/null"),
        (
            "apt install x",
            "E: Could not open lock file /var/lib/dpkg/lock - open (13: Permission denied)",
            "sudo apt install x",
        ),
        ("git clone git@box:x", "git@box: Permission denied (publickey).", ""),
    ] {
        assert_eq!(fixture.of(command, stderr), repaired, "{command}");
        if repaired.contains("sudo") {
            assert_eq!(root.of(command, stderr), "", "{command}: of root");
        }
    }
}

#[test]
fn advice_of_the_program_and_names_of_the_repository_are_used() {
    let fixture = Fixture::new(&["README.md"]);
    let git = fixture.dir.path().join(".git/refs/heads");
    std::fs::create_dir_all(&git).unwrap();
    std::fs::write(git.join("main"), "0").unwrap();
    std::fs::write(fixture.dir.path().join(".git/config"), "[remote \"origin\"]\n").unwrap();
    for (command, stderr, repaired) in [
        ("git checkout mian", "error: pathspec 'mian' did not match any file(s) known to git", "git checkout main"),
        ("git add READEM.md", "fatal: pathspec 'READEM.md' did not match any files", "git add README.md"),
        ("git push orgin main", "fatal: 'orgin' does not appear to be a git repository", "git push origin main"),
        (
            "git push",
            "fatal: The current branch t has no upstream branch.\nTo push the current branch and set the remote as upstream, use\n\n    git push --set-upstream origin t\n",
            "git push --set-upstream origin t",
        ),
        (
            "git push",
            "hint: If you want to integrate the remote changes, use\nhint: 'git pull' before pushing again.",
            "git pull && git push",
        ),
    ] {
        assert_eq!(fixture.of(command, stderr), repaired, "{command}");
    }
    let above = Fixture::new(&["web/package.json"]);
    assert_eq!(
        above.of("npm test", "npm error enoent Could not read package.json: Error: ENOENT"),
        "cd web && npm test"
    );
}

#[test]
fn invalid_values_pipes_and_used_ports_are_repaired() {
    let fixture = Fixture::new(&[]);
    for (command, stderr, repaired) in [
        (
            "ls --sort=siez",
            "ls: invalid argument ‘siez’ for ‘--sort’\nValid arguments are:\n  - ‘none’\n  - ‘size’\nTry",
            "ls --sort=size",
        ),
        ("sed 's/a/b' f", "sed: -e expression #1, char 5: unterminated `s' command", "sed 's/a/b/' f"),
        ("tar xzf a.tar.bz2", "gzip: stdin: not in gzip format", "tar xf a.tar.bz2"),
        ("ls | rm -f", "rm: missing operand", "ls | xargs rm -f"),
        ("chown roto:root f", "chown: invalid user: ‘roto:root’", "chown root:root f"),
        ("[ 1 -eq 1", "bash: [: missing `]'", "[ 1 -eq 1 ]"),
        ("python3 -m http.server 8000", "OSError: [Errno 98] Address already in use", "ss -ltnp 'sport = :8000'"),
        ("node app.js", "Error: listen EADDRINUSE: address already in use :::3000", "ss -ltnp 'sport = :3000'"),
        ("cp ../a/x", "cp: missing destination file operand after '../a/x'", "cp ../a/x ."),
    ] {
        assert_eq!(fixture.of(command, stderr), repaired, "{command}");
    }
}

#[test]
fn a_failure_that_a_pipeline_hides_is_found() {
    let failed = |status, stages: &[i32]| Failed { status: Some(status), stages: stages.into(), ..Failed::default() };
    assert_eq!(failed(0, &[1, 0]).masked(), Some((0, 1)));
    assert_eq!(failed(0, &[0, 2, 0]).masked(), Some((1, 2)));
    for (status, stages) in [(0, &[0, 0][..]), (0, &[141, 0]), (1, &[1, 1]), (0, &[])] {
        assert_eq!(failed(status, stages).masked(), None, "{stages:?}");
    }
}

#[test]
fn commands_without_a_known_fault_are_not_repaired() {
    let fixture = Fixture::new(&["notes.txt"]);
    for command in [
        "grep x notes.txt",
        "ls -l | grep x",
        "cat notes.txt > out.txt",
        "git log --oneline",
        "",
        "(",
        "echo $((1+",
        "'",
    ] {
        for stderr in ["", "something went wrong", "Segmentation fault (core dumped)"] {
            let repaired = fixture.of(command, stderr);
            assert!(repaired.is_empty() || command == "'", "{command}: {stderr}: {repaired}");
        }
    }
}

proptest::proptest! {
    #[test]
    fn no_input_panics(command in "[a-z./'\"$|>& –é-]{0,30}", stderr in "[a-z./'\": ‘’\n-]{0,60}") {
        let fixture = Fixture::new(&[]);
        let _ = (fixture.of(&command, &stderr), fixture.silent(&command));
        let _ = fixture.of(&command, &format!("cat: {command}: No such file or directory"));
    }
}

#[test]
fn what_is_not_here_is_named_with_the_nearest_names() {
    let fixture = Fixture::new(&["note1.txt", "note2.txt", "srca/x", "srcb/x"]);
    let absent = |command: &str, status: Option<i32>, stderr: Option<&str>| {
        fixture.with_facts(|facts| {
            let failed = Failed { command: command.into(), status, stages: Vec::new(), stderr: stderr.map(Into::into) };
            absent(&failed, facts).map(|found| (found.why(), found.near.join(" "), found.is_whole_fault))
        })
    };
    for (command, status, stderr, why, near) in [
        ("lz -la", Some(127), None, "there is no `lz` here", "ls"),
        ("lz -la", None, None, "there is no `lz` here", "ls"),
        ("lz -la", None, Some("zsh: command not found: lz"), "there is no `lz` here", "ls"),
        ("ls | frobnicate", Some(127), None, "there is no `frobnicate` here", ""),
        ("cd nowhere", Some(1), None, "there is no folder nowhere here", ""),
        ("cd srcc && ls", None, None, "there is no folder srcc here", "srca srcb"),
        ("cat nofile.tx", Some(1), None, "there is no nofile.tx here", ""),
        ("cat note3.txt", Some(1), None, "there is no note3.txt here", "note1.txt note2.txt"),
        ("wc -l gone", Some(1), Some("wc: gone: No such file or directory"), "there is no gone here", ""),
        ("ls /no/such.d/x", Some(2), None, "there is no /no/such.d/x", ""),
    ] {
        assert_eq!(absent(command, status, stderr), Some((why.into(), near.into(), true)), "{command}");
    }
    // another program may do the same, so that the model is worth asking
    assert_eq!(
        absent("netstat -t", Some(127), None),
        Some(("there is no `netstat` here".into(), String::new(), false))
    );
    for (command, status, stderr) in [
        ("ll -a", Some(1), None),
        ("ls", Some(1), None),
        ("touch new.txt", Some(1), None),
        ("f() { ls; }; f", Some(1), None),
        ("cat note1.txt", Some(1), Some("cat: note1.txt: Permission denied")),
        ("ls gone.txt", Some(1), Some("ls: something odd")),
        ("cat \"$x\"", Some(1), None),
        ("lz 'x", Some(127), None),
    ] {
        assert_eq!(absent(command, status, stderr), None, "{command}");
    }
}
