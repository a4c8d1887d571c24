//! Helpers shared by several test files: running a shell line, finding the real models, reading a list.

use crate::machine::wait_for_exit;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

/// The result of a shell line.
pub struct Ran {
    pub ok: bool,
    pub stdout: String,
    pub stderr: String,
}

/// Runs a line in bash in `dir`, for at most `AMPLE` time.
pub fn run_shell(line: &str, dir: &Path) -> Ran {
    run_shell_on(line, dir, None)
}

/// Runs a line in bash in `dir`, for at most `AMPLE` time, with the `PATH` and `HOME` of `place` if given.
pub fn run_shell_on(line: &str, dir: &Path, place: Option<(&OsStr, &Path)>) -> Ran {
    let files = tempfile::tempdir().unwrap();
    // files, not pipes: a background process that keeps a pipe open would block the test
    let (out, err) = (files.path().join("out"), files.path().join("err"));
    let mut bash = Command::new(which::which("bash").unwrap());
    if let Some((path, home)) = place {
        bash.env("PATH", path).env("HOME", home);
    }
    let mut child = bash
        .args(["-c", line])
        .current_dir(dir)
        .stdin(Stdio::null())
        .stdout(std::fs::File::create(&out).unwrap())
        .stderr(std::fs::File::create(&err).unwrap())
        .spawn()
        .unwrap();
    let status = wait_for_exit(&mut child);
    let text = |p| String::from_utf8_lossy(&std::fs::read(p).unwrap()).into_owned();
    Ran { ok: status.is_some_and(|s| s.success()), stdout: text(&out), stderr: text(&err) }
}

/// Returns a command that runs a verb of the caro binary on this machine's real model; `None`, with a printed reason,
/// if the model is absent. With `CARO_REQUIRE_MODEL=1` a missing model is a failure.
pub fn model_or_skip(verb: &str) -> Option<Command> {
    let mut caro = Command::new(env!("CARGO_BIN_EXE_caro"));
    // neither use nor leave a resident process, and do not search the developer's own documents
    caro.arg(verb).env("CARO_RESIDENT", "off").env("CARO_KNOWLEDGE", "off").env("CARO_TIMEOUT", "300");
    let path = Command::new(env!("CARGO_BIN_EXE_caro")).args(["model", "path", "qwen2.5-coder-1.5b"]).output().unwrap();
    if path.status.success() {
        return Some(caro);
    }
    assert!(std::env::var_os("CARO_REQUIRE_MODEL").is_none(), "{}", String::from_utf8_lossy(&path.stderr));
    println!("skipped: the default model is not on this machine (`caro model pull` fetches it)");
    None
}

/// Returns the folder of the embedding model on this machine; `None`, with a printed reason, if it is absent or this is
/// a debug build. With `CARO_REQUIRE_MODEL=1` it is downloaded (91 MB, once).
pub fn embedding_model_or_skip() -> Option<PathBuf> {
    static FOLDER: OnceLock<Option<PathBuf>> = OnceLock::new();
    if cfg!(debug_assertions) {
        println!("skipped: without optimisation the embedder takes minutes (`cargo test --release` has this test)");
        return None;
    }
    let caro = |verb: &str| {
        let output =
            Command::new(env!("CARGO_BIN_EXE_caro")).args(["model", verb, "all-minilm-l6-v2"]).output().unwrap();
        let folder = PathBuf::from(String::from_utf8(output.stdout).unwrap().trim_end());
        output.status.success().then_some(folder).ok_or(String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let locate = || match caro("path") {
        Ok(folder) => Some(folder),
        Err(_) if std::env::var_os("CARO_REQUIRE_MODEL").is_some() => Some(caro("pull").unwrap()),
        Err(_) => {
            println!("skipped: the embedding model is not here (`caro model pull all-minilm-l6-v2` fetches it)");
            None
        }
    };
    FOLDER.get_or_init(locate).clone()
}

/// Splits each line of a list into its columns at ` => `, without empty lines and comments.
pub fn rows(list: &str) -> Vec<Vec<&str>> {
    let lines = list.lines().filter(|l| !l.is_empty() && !l.starts_with('#'));
    lines.map(|l| l.split(" => ").map(str::trim).collect()).collect()
}
