//! The house keeps its shape: which module may name which, who spawns, who opens sockets, who prints, who asks the model.
//!
//! Reads the source as text. Test modules (`#[cfg(test)]` to the end of the file) may do what they like.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// A source file without its tests and comments.
struct Source {
    /// Path below `src`, with forward slashes.
    path: String,
    code: String,
    lines: usize,
}

impl Source {
    /// The top-level module that the file belongs to.
    fn module(&self) -> &str {
        self.path.split('/').next().unwrap().trim_end_matches(".rs")
    }

    /// Every `crate::NAME` it mentions.
    fn uses(&self) -> BTreeSet<&str> {
        self.code
            .match_indices("crate::")
            .map(|(at, found)| &self.code[at + found.len()..])
            .map(|rest| &rest[..rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len())])
            .collect()
    }
}

fn sources() -> Vec<Source> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    let mut folders = vec![root.clone()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path: PathBuf = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|e| e == "rs") {
                let text = std::fs::read_to_string(&path).unwrap();
                let code = text.split("#[cfg(test)]\nmod ").next().unwrap();
                let code: String = code
                    .lines()
                    .filter(|l| !l.trim_start().starts_with("//"))
                    .flat_map(|l| [l.split(" // ").next().unwrap(), "\n"])
                    .collect();
                // modules that are only compiled for tests
                let name = path.file_name().unwrap().to_string_lossy();
                if ["tests.rs", "testing.rs"].contains(&&*name) || name.ends_with("_tests.rs") {
                    continue;
                }
                let path = path.strip_prefix(&root).unwrap().to_string_lossy().replace('\\', "/");
                files.push(Source { path, code, lines: text.lines().count() });
            }
        }
    }
    assert!(files.len() > 20, "the test does not see the source");
    files
}

/// Files outside `allowed` (path prefixes) whose code holds one of `words`.
fn offenders(allowed: &[&str], words: &[&str]) -> Vec<String> {
    sources()
        .iter()
        .filter(|s| !allowed.iter().any(|a| s.path.starts_with(a)))
        .flat_map(|s| words.iter().filter(|w| s.code.contains(**w)).map(|w| format!("{} has {w}", s.path)))
        .collect()
}

#[test]
fn arrows_point_one_way() {
    let may = |module: &str| -> &[&str] {
        match module {
            "exec" | "shell" => &[],
            "host" => &["exec", "shell"],
            "manual" => &["exec", "shell"],
            // a model file comes through a package client, which is a child process
            "model" => &["exec"],
            "agent" => &["exec", "model", "shell"],
            // the resident is a child process of the first caller
            "serve" => &["exec", "model"],
            "command" => &["agent", "exec", "host", "manual", "model", "shell"],
            "cli" => &["agent", "command", "exec", "host", "manual", "model", "serve", "shell"],
            "lib" => &["agent", "cli", "command", "exec", "host", "manual", "model", "serve", "shell"],
            "main" => &[],
            other => panic!("{other} is no module of the design: give it its arrows here"),
        }
    };
    let mut wrong = Vec::new();
    for source in sources() {
        let module = source.module().to_owned();
        for name in source.uses() {
            if name != module && name.chars().next().is_some_and(char::is_lowercase) && !may(&module).contains(&name) {
                wrong.push(format!("{} names {name}", source.path));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn one_call_site_of_the_model() {
    let calls: Vec<String> = sources()
        .iter()
        .filter(|s| !s.path.starts_with("model/"))
        .flat_map(|s| s.code.matches(".generate(").map(|_| s.path.clone()))
        .collect();
    // `serve` is a model that hands each call on, to the other process and there to the weights: it asks nothing itself.
    let (mut relays, calls): (Vec<_>, Vec<_>) = calls.into_iter().partition(|path| path.starts_with("serve/"));
    relays.sort();
    relays.dedup();
    assert_eq!(calls, ["agent/runtime/generate.rs"]);
    assert_eq!(relays, ["serve/resident/client.rs", "serve/resident/worker.rs"]);
}

#[test]
fn one_loop_drives_every_recipe() {
    let sources = sources();
    let of = |word: &str| -> Vec<&str> {
        sources.iter().filter(|s| s.code.contains(word)).map(|s| s.path.as_str()).collect()
    };
    let mut machines = of("impl Machine for");
    machines.sort_unstable();
    assert_eq!(machines, ["agent/runtime/mod.rs", "command/recipe.rs"]);
    let mut drivers = of(" drive(&mut ");
    drivers.sort_unstable();
    assert_eq!(drivers, machines, "each is driven by the loop");
    assert_eq!(of("machine.due()"), ["agent/runtime/drive.rs"], "and nobody else drives");
    let loops: Vec<&str> = of("loop {").into_iter().filter(|path| machines.contains(path)).collect();
    assert_eq!(loops, [""; 0], "no recipe has a loop of its own");
}

#[test]
fn one_call_site_of_a_tool() {
    let calls: Vec<String> = sources()
        .iter()
        .filter(|s| s.path.starts_with("agent/") || s.path.starts_with("cli/"))
        .flat_map(|s| s.code.matches(".call(").map(|_| s.path.clone()))
        .collect();
    assert_eq!(calls, ["agent/runtime/batch.rs"]);
}

#[test]
fn only_the_pipeline_opens_what_a_tool_returned() {
    let opens: Vec<String> = sources()
        .iter()
        .filter(|s| s.path.starts_with("agent/") || s.path.starts_with("cli/"))
        .flat_map(|s| s.code.matches("raw.open()").map(|_| s.path.clone()))
        .collect();
    assert_eq!(opens, ["agent/observe/mod.rs"]);
}

#[test]
fn only_exec_spawns() {
    assert_eq!(offenders(&["exec/"], &["Command::new", "process::Command", "fork(", "posix_spawn"]), [""; 0]);
}

#[test]
fn only_the_fetcher_the_remote_model_tool_servers_and_the_resident_open_sockets() {
    let words = ["TcpStream", "TcpListener", "UdpSocket", "ureq::", "hf_hub::", "reqwest"];
    // `agent/mcp/http.rs`: servers of tools that the person named by their address, through the fetcher's own client
    assert_eq!(offenders(&["model/fetch", "model/remote", "agent/mcp/http.rs"], &words), [""; 0]);
    // these do not leave the machine
    assert_eq!(offenders(&["serve/resident/"], &["UnixStream", "UnixListener", "UnixDatagram"]), [""; 0]);
}

#[test]
fn only_the_engine_names_candle() {
    assert_eq!(offenders(&["model/engine/"], &["candle_core", "candle_nn", "candle_transformers"]), [""; 0]);
}

#[test]
fn only_the_terminal_prints() {
    assert_eq!(offenders(&["cli/"], &["println!", "eprintln!", "print!(", "io::stdout", "io::stderr"]), [""; 0]);
}

#[test]
fn no_file_is_too_long_to_read() {
    let long: Vec<String> =
        sources().iter().filter(|s| s.lines > 800).map(|s| format!("{} ({})", s.path, s.lines)).collect();
    assert_eq!(long, [""; 0]);
}

#[test]
fn nothing_is_left_unfinished() {
    assert_eq!(offenders(&[], &["todo!(", "unimplemented!(", "TODO", "FIXME"]), [""; 0]);
}
