//! `caro self uninstall`, in homes that are thrown away: what is listed, what goes, and what stays.

use crate::artifacts::files;
use crate::machine::{Machine, Ran};
use std::path::Path;
use std::process::Command;

const BLOCK: &str = "# >>> caro >>>\neval \"$(caro init bash)\"\n# <<< caro <<<\n";

fn write(file: &Path, text: &str) {
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(file, text).unwrap();
}

/// A home in which caro was used, and somebody else's files beside.
fn used() -> Machine {
    let machine = Machine::new();
    for name in [
        ".config/caro/config.toml",
        ".local/share/caro/undo/1/files/letter",
        ".local/state/caro/chat-history",
        ".cache/caro/models/m.gguf",
        ".cache/caro/manual.db",
        ".cache/other/file",
        ".local/share/other",
        "letter",
    ] {
        write(&machine.path("home").join(name), "x");
    }
    write(&machine.path("home/.bashrc"), &format!("ls\n{BLOCK}export A=1\n"));
    machine
}

/// The binary with the platform's own folders.
fn caro(machine: &Machine, args: &[&str]) -> Command {
    let mut caro = machine.caro(&[&["self", "uninstall"], args].concat());
    for name in ["CARO_CACHE_DIR", "CARO_CONFIG_FILE", "CARO_RUNTIME_DIR"] {
        caro.env_remove(name);
    }
    caro
}

fn run(machine: &Machine, args: &[&str]) -> Ran {
    Ran::of(caro(machine, args).output().unwrap())
}

/// The files below the home, by their paths from there.
fn left(machine: &Machine) -> Vec<String> {
    let home = machine.path("home");
    let mut all: Vec<String> =
        files(&home).into_iter().map(|file| file.strip_prefix(&home).unwrap().display().to_string()).collect();
    all.sort();
    all
}

#[test]
fn everything_is_listed_and_nothing_goes_unasked() {
    let machine = used();
    let before = left(&machine);
    run(&machine, &[]).fails_with_a_list(&["nobody to ask", "--yes"]);
    let ran = run(&machine, &["--dry-run"]);
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    for word in ["settings", "data", "state", "cache", ".bashrc", "2 files"] {
        assert!(ran.out.contains(word), "no {word} in {ran:#?}");
    }
    assert!(ran.err.contains("stays: the program") && ran.err.contains("removes it"), "{ran:#?}");
    assert_eq!(left(&machine), before);
}

#[test]
fn what_is_ours_goes_and_all_else_stays() {
    let machine = used();
    let ran = run(&machine, &["--yes"]);
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    assert_eq!(left(&machine), [".bashrc", ".cache/other/file", ".local/share/other", "letter"]);
    assert_eq!(std::fs::read_to_string(machine.path("home/.bashrc")).unwrap(), "ls\nexport A=1\n");
    for folder in [".config/caro", ".local/share/caro", ".local/state/caro", ".cache/caro"] {
        assert!(!machine.path("home").join(folder).exists(), "{folder}");
    }
    let again = run(&machine, &["--yes"]);
    assert!(again.code == Some(0) && again.err.contains("nothing of caro's is here"), "{again:#?}");
}

#[test]
fn data_stays_where_it_is_to() {
    let machine = used();
    let ran = run(&machine, &["--yes", "--keep-data"]);
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    let left = left(&machine);
    for kept in [".config/caro/config.toml", ".local/share/caro/undo/1/files/letter", ".local/state/caro/chat-history"]
    {
        assert!(left.iter().any(|file| file == kept), "{left:?}");
    }
    assert!(left.iter().all(|file| !file.starts_with(".cache/caro")), "{left:?}");
}

#[cfg(unix)]
#[test]
fn links_are_not_followed_out_of_our_folders() {
    use std::os::unix::fs::symlink;
    let machine = used();
    let outside = machine.path("outside");
    write(&outside.join("deep/letter"), "dear");
    let home = machine.path("home");
    symlink(&outside, home.join(".cache/caro/models/link")).unwrap();
    symlink(outside.join("deep/letter"), home.join(".local/share/caro/letter")).unwrap();
    // the whole folder is on another disk
    std::fs::rename(home.join(".local/state/caro"), machine.path("state")).unwrap();
    symlink(machine.path("state"), home.join(".local/state/caro")).unwrap();
    let ran = run(&machine, &["--yes"]);
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    assert_eq!(std::fs::read_to_string(outside.join("deep/letter")).unwrap(), "dear");
    assert!(machine.path("state/chat-history").exists() && ran.out.contains("the link; "), "{ran:#?}");
    assert!(home.join(".local/state/caro").symlink_metadata().is_err());
}

/// `CARO_CACHE_DIR` may name a folder that is full of other things.
#[test]
fn of_a_folder_that_a_variable_names_only_what_caro_made_goes() {
    let machine = Machine::new();
    for name in ["cache/manual.db", "cache/prefix/0123456789abcdef.state", "cache/letter", "cache/models/mine.gguf"] {
        write(&machine.path(name), "x");
    }
    machine.write("config.toml", "timeout = 5\n");
    let ran = machine.run(&["self", "uninstall", "--yes"]);
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    assert!(machine.path("cache/letter").exists() && !machine.path("cache/manual.db").exists());
    assert!(machine.path("cache/models/mine.gguf").exists(), "nobody knows whose that is");
    assert!(!machine.path("cache/prefix").exists() && !machine.path("config.toml").exists());
}

#[cfg(unix)]
#[test]
fn the_word_must_be_typed() {
    use crate::pty::Terminal;
    let machine = Machine::new();
    write(&machine.path("home/.local/share/caro/agent.db"), "x");
    let start = || Terminal::start(&machine, serde_json::json!([]), &["self", "uninstall"]);
    let mut terminal = start();
    terminal.shows("to remove all of this");
    terminal.types("y\n");
    assert_eq!(terminal.ends(), 1);
    assert!(
        terminal.text().contains("nothing was removed") && machine.path("home/.local/share/caro/agent.db").exists()
    );
    let mut terminal = start();
    terminal.shows("to remove all of this");
    terminal.types("uninstall\n");
    assert_eq!(terminal.ends(), 0);
    assert!(!machine.path("home/.local/share/caro").exists());
}

/// It would write into folders that are gone.
#[cfg(target_os = "linux")]
#[test]
fn a_resident_that_runs_is_ended_first() {
    let machine = Machine::new();
    let mut caro = machine.caro(&["list files"]);
    caro.env("CARO_RESIDENT", "on").env("CARO_MODEL", machine.model(serde_json::json!([{ "reply": "ls -a" }])));
    assert_eq!(Ran::of(caro.output().unwrap()).code, Some(0));
    let status = machine.run(&["status", "--json"]).json();
    let pid = status["residents"][0]["pid"].as_u64().unwrap_or_else(|| panic!("none runs: {status}"));
    let looked = machine.run(&["doctor"]).out;
    assert!(looked.contains(&format!("process {pid} keeps script:script.json ready")), "{looked}");
    let ran = machine.run(&["self", "uninstall", "--yes"]);
    assert!(ran.code == Some(0) && ran.out.contains("1 resident"), "{ran:#?}");
    assert!(ran.err.contains(&format!("process {pid} ended")), "{ran:#?}");
    assert_eq!(machine.run(&["status", "--json"]).json()["residents"], serde_json::json!([]));
    assert!(!machine.path("run").exists());
}

impl Ran {
    /// As [`Ran::fails`], with the list on stdout.
    #[track_caller]
    fn fails_with_a_list(&self, words: &[&str]) {
        assert_eq!(self.code, Some(1), "{self:#?}");
        assert!(!self.out.is_empty() && words.iter().all(|word| self.err.contains(word)), "{self:#?}");
    }
}
