//! The fixture of the demos: a tree of files on which wrong commands show, and the programs of two systems.

use crate::support::{Ran, run_shell, run_shell_on};
use std::ffi::OsString;
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};
use tempfile::TempDir;

const DAY: u64 = 24 * 3600;

/// The system whose programs a command runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum System {
    /// This machine's programs, with stand-ins for those that list users and processes (`tests/gnu`).
    Linux,
    /// Stand-ins with the options of BSD's programs (`tests/bsd`).
    Macos,
}

/// The programs of a system, and the sockets that they can list.
pub struct World {
    pub system: System,
    path: OsString,
    _programs: TempDir,
    listener: TcpListener,
    datagrams: UdpSocket,
    open: TcpStream,
}

impl World {
    pub fn new(system: System) -> Self {
        let programs = tempfile::tempdir().unwrap();
        let path = match system {
            System::Linux => {
                copy_stand_ins("gnu", programs.path());
                let shared = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/bsd/lib.sh");
                std::fs::copy(shared, programs.path().join("lib.sh")).unwrap();
                let rest = std::env::var_os("PATH").unwrap_or_default();
                std::env::join_paths([programs.path().to_owned()].into_iter().chain(std::env::split_paths(&rest)))
                    .unwrap()
            }
            System::Macos => {
                copy_stand_ins("bsd", programs.path());
                add_common_programs(programs.path());
                programs.path().into()
            }
        };
        std::fs::write(programs.path().join("sudo"), "#!/bin/sh\nexec \"$@\"\n").unwrap();
        make_executable(&programs.path().join("sudo"));
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let open = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let datagrams = UdpSocket::bind("127.0.0.1:0").unwrap();
        Self { system, path, _programs: programs, listener, datagrams, open }
    }

    /// Runs a shell line in a new tree below `home`. Returns the tree and the output.
    pub fn run(&self, line: &str, home: &Path) -> (PathBuf, Ran) {
        let tree = home.join("tree");
        create_tree(&tree);
        let ran = run_shell_on(line, &tree, Some((&self.path, home)));
        (tree, ran)
    }

    /// The listening TCP ports, each with its alternative names.
    pub fn listening(&self) -> Vec<Vec<String>> {
        match self.system {
            System::Linux => vec![vec![port(self.listener.local_addr().unwrap())]],
            System::Macos => vec![vec!["5432".into(), "postgresql".into()], vec!["8080".into(), "http-alt".into()]],
        }
    }

    /// Ports in use that are not listening TCP ports.
    pub fn other_ports(&self) -> Vec<String> {
        match self.system {
            System::Linux => vec![port(self.open.local_addr().unwrap()), port(self.datagrams.local_addr().unwrap())],
            System::Macos => vec!["50123".into(), "5353".into(), "mdns".into()],
        }
    }
}

fn port(address: SocketAddr) -> String {
    address.port().to_string()
}

/// Copies the stand-in programs of a system.
fn copy_stand_ins(system: &str, to: &Path) {
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(system);
    for entry in std::fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let copy = to.join(path.file_name().unwrap());
        std::fs::copy(&path, &copy).unwrap();
        make_executable(&copy);
    }
}

fn make_executable(program: &Path) {
    std::fs::set_permissions(program, std::fs::Permissions::from_mode(0o755)).unwrap();
}

/// Adds the other programs of macOS: those that only lack the long options of GNU, and those that are the same.
fn add_common_programs(programs: &Path) {
    const PLAIN: [&str; 15] = [
        "basename", "cat", "comm", "cut", "dirname", "ls", "nl", "paste", "rev", "split", "tail", "tee", "tr", "uniq",
        "wc",
    ];
    const SAME: [&str; 34] = [
        "[", "awk", "bash", "bzip2", "chmod", "chown", "cmp", "cp", "diff", "echo", "env", "expr", "false", "git",
        "gzip", "hostname", "id", "ln", "mkdir", "mv", "perl", "printf", "pwd", "rm", "seq", "sh", "sleep", "sort",
        "test", "touch", "true", "whoami", "xz", "zip",
    ];
    for name in PLAIN {
        symlink("plain", programs.join(name)).unwrap();
    }
    for program in SAME.iter().filter_map(|name| which::which(name).ok()) {
        symlink(&program, programs.join(program.file_name().unwrap())).unwrap();
    }
}

/// Creates files of known age, size and mode, a repository with known commits, and logs with known lines.
fn create_tree(tree: &Path) {
    let file = |name: &str, text: &[u8], days: u64| {
        let path = tree.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        let when = SystemTime::now() - Duration::from_secs(days * DAY);
        std::fs::File::options().write(true).open(&path).unwrap().set_modified(when).unwrap();
    };
    // `mod` occurs in one recent file and in one old file
    file("src/new.rs", b"mod inner;\nfn main() {}\n", 1);
    file("src/inner/deep.rs", b"pub fn deep() {}\n", 3);
    file("src/old.rs", b"mod gone;\n", 60);
    file("notes.txt", b"a note\n", 1);
    file(".settings", b"hidden\n", 1);
    file("app.log", b"one\ntwo\nthree\n", 1);
    file("logs/web server.log", b"1\n2\n3\n4\n", 2);
    file("logs/old/boot.log", b"a\nb\nc\nd\ne\n", 90);
    file("raised-program", b"#!/bin/sh\n", 1);
    file("group-program", b"#!/bin/sh\n", 1);
    file("../elsewhere/raised-too", b"#!/bin/sh\n", 1);
    // the order by size differs from that by name and by the digits of the size
    file("assets/b.bin", &[b'x'; 900 << 10], 1);
    file("build/a.bin", &[b'x'; 3 << 20], 1);
    file("cache/c.bin", &[b'x'; 100 << 10], 1);
    let script = "chmod 4755 raised-program ../elsewhere/raised-too; chmod 2755 group-program
        git init -q . && git config user.email me@example.org && git config user.name 'Me Myself'
        commit() {
            export GIT_AUTHOR_DATE=\"@$(($(date +%s) - $2 * 86400)) +0000\"
            export GIT_COMMITTER_DATE=$GIT_AUTHOR_DATE
            git commit -q --allow-empty --author \"$1 <a@example.org>\" -m \"$3\"
        }
        commit 'Old Author' 40 first; commit 'Ada Example' 9 second; commit 'Me Myself' 3 third; commit 'Bo Example' 1 fourth";
    let made = run_shell(script, tree);
    assert!(made.ok, "{}", made.stderr);
}
