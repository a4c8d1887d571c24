//! An isolated machine for the binary: empty home, small environment, scripted model. Tests neither read nor write the
//! developer's files, and do not change the environment of their own process.

use serde_json::Value;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Most time a step of a test may take, generous for a machine with a cold disk. Steps that a test expects to be cut
/// short would take five minutes, or never end.
pub const AMPLE: Duration = Duration::from_secs(60);

/// The `PATH` of the tests: the folders of the standard tools.
pub const PATH: &str = "/usr/local/bin:/usr/bin:/bin";

pub struct Machine {
    dir: TempDir,
}

impl Machine {
    pub fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        for folder in ["home", "work"] {
            std::fs::create_dir(dir.path().join(folder)).unwrap();
        }
        Self { dir }
    }

    /// A path on this machine.
    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// The whole environment of the binary.
    pub fn env(&self) -> Vec<(&'static str, PathBuf)> {
        vec![
            ("PATH", PATH.into()),
            ("HOME", self.path("home")),
            ("SHELL", "/bin/bash".into()),
            ("LANG", "C.UTF-8".into()),
            ("TERM", "xterm-256color".into()),
            ("CARO_CACHE_DIR", self.path("cache")),
            ("CARO_CONFIG_FILE", self.path("config.toml")),
            ("CARO_RUNTIME_DIR", self.path("run")),
            // no process is left behind; the tests of the resident turn it on
            ("CARO_RESIDENT", "off".into()),
            // caro exits after the answer; the tests of the keys turn them on
            ("CARO_KEYS", "off".into()),
        ]
    }

    /// Returns a command that runs the binary with these arguments on this machine.
    pub fn caro(&self, args: &[&str]) -> Command {
        let mut caro = Command::new(env!("CARGO_BIN_EXE_caro"));
        caro.args(args).env_clear().envs(self.env()).current_dir(self.path("work")).stdin(Stdio::null());
        caro
    }

    /// Runs the binary.
    pub fn run(&self, args: &[&str]) -> Ran {
        Ran::of(self.caro(args).output().unwrap())
    }

    /// Runs the binary on a scripted model with these rules.
    pub fn ask(&self, rules: Value, args: &[&str]) -> Ran {
        Ran::of(self.caro(args).env("CARO_MODEL", self.model(rules)).output().unwrap())
    }

    /// Writes a scripted model with these rules and returns its name, as `CARO_MODEL` takes it.
    pub fn model(&self, rules: Value) -> String {
        let file = self.path("script.json");
        std::fs::write(&file, serde_json::json!({ "rules": rules }).to_string()).unwrap();
        format!("script:{}", file.display())
    }

    pub fn write(&self, name: impl AsRef<Path>, text: impl AsRef<[u8]>) {
        std::fs::write(self.dir.path().join(name), text).unwrap();
    }
}

/// The result of a run: exit code, stdout and stderr.
#[derive(Debug)]
pub struct Ran {
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

impl Ran {
    pub fn of(output: Output) -> Self {
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        Self { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
    }

    /// Asserts the exit code, an empty stdout, and an error message with a hint and with all these words.
    #[track_caller]
    pub fn fails(&self, code: i32, words: &[&str]) {
        assert_eq!(self.code, Some(code), "{self:#?}");
        assert_eq!(self.out, "", "{self:#?}");
        assert!(self.err.starts_with("error: ") && self.err.contains("\n\nhint: "), "{self:#?}");
        for word in words {
            assert!(self.err.contains(word), "no {word:?} in {self:#?}");
        }
    }

    /// Parses stdout as a JSON document.
    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|e| panic!("{e}: {self:#?}"))
    }
}

/// Waits for the end of a child; `None` if it had to be killed after [`AMPLE`] time.
pub fn wait_for_exit(child: &mut Child) -> Option<ExitStatus> {
    let deadline = Instant::now() + AMPLE;
    while Instant::now() < deadline {
        if let Some(status) = child.try_wait().unwrap() {
            return Some(status);
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    None
}

/// Runs a command with `input` on stdin.
pub fn feed(mut command: Command, input: &[u8]) -> Ran {
    use std::io::Write;
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_vec();
    let writer = std::thread::spawn(move || stdin.write_all(&input));
    let ran = Ran::of(child.wait_with_output().unwrap());
    // writing fails if the command ends before it has read everything
    let _ = writer.join().unwrap();
    ran
}

/// True if a program is on the tests' PATH.
pub fn have(program: impl AsRef<OsStr>) -> bool {
    which::which_in(program, Some(PATH), "/").is_ok()
}
