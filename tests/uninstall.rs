//! Tests `caro self uninstall` in temporary home folders: what is listed, removed and kept.

use crate::artifacts::files;
use crate::machine::{Machine, Ran};
use std::path::Path;
use std::process::Command;

const BLOCK: &str = "# >>> caro >>>\neval \"$(caro init bash)\"\n# <<< caro <<<\n";

fn write(file: &Path, text: &str) {
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(file, text).unwrap();
}

/// A machine whose home has the files of caro and those of others.
fn used_machine() -> Machine {
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

/// Returns a command for `self uninstall` that uses the platform's default folders.
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

/// The files below the home folder, as relative paths.
fn files_in_home(machine: &Machine) -> Vec<String> {
    let home = machine.path("home");
    let mut all: Vec<String> =
        files(&home).into_iter().map(|file| file.strip_prefix(&home).unwrap().display().to_string()).collect();
    all.sort();
    all
}

#[test]
fn everything_is_listed_and_nothing_is_removed_without_confirmation() {
    let machine = used_machine();
    let before = files_in_home(&machine);
    run(&machine, &[]).fails_with_a_list(&["nobody to ask", "--yes"]);
    let ran = run(&machine, &["--dry-run"]);
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    for word in ["settings", "data", "state", "cache", ".bashrc", "2 files"] {
        assert!(ran.out.contains(word), "no {word} in {ran:#?}");
    }
    assert!(ran.err.contains("stays: the program") && ran.err.contains("removes it"), "{ran:#?}");
    assert_eq!(files_in_home(&machine), before);
}

#[test]
fn files_of_caro_are_removed_and_all_others_kept() {
    let machine = used_machine();
    let ran = run(&machine, &["--yes"]);
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    assert_eq!(files_in_home(&machine), [".bashrc", ".cache/other/file", ".local/share/other", "letter"]);
    assert_eq!(std::fs::read_to_string(machine.path("home/.bashrc")).unwrap(), "ls\nexport A=1\n");
    for folder in [".config/caro", ".local/share/caro", ".local/state/caro", ".cache/caro"] {
        assert!(!machine.path("home").join(folder).exists(), "{folder}");
    }
    let again = run(&machine, &["--yes"]);
    assert!(again.code == Some(0) && again.err.contains("nothing of caro's is here"), "{again:#?}");
}

#[test]
fn keep_data_keeps_settings_and_data() {
    let machine = used_machine();
    let ran = run(&machine, &["--yes", "--keep-data"]);
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    let remaining = files_in_home(&machine);
    for kept in [".config/caro/config.toml", ".local/share/caro/undo/1/files/letter", ".local/state/caro/chat-history"]
    {
        assert!(remaining.iter().any(|file| file == kept), "{remaining:?}");
    }
    assert!(remaining.iter().all(|file| !file.starts_with(".cache/caro")), "{remaining:?}");
}

#[cfg(unix)]
#[test]
fn links_are_not_followed_out_of_our_folders() {
    use std::os::unix::fs::symlink;
    let machine = used_machine();
    let outside = machine.path("outside");
    write(&outside.join("deep/letter"), "dear");
    let home = machine.path("home");
    symlink(&outside, home.join(".cache/caro/models/link")).unwrap();
    symlink(outside.join("deep/letter"), home.join(".local/share/caro/letter")).unwrap();
    // the whole folder is a link, as to another disk
    std::fs::rename(home.join(".local/state/caro"), machine.path("state")).unwrap();
    symlink(machine.path("state"), home.join(".local/state/caro")).unwrap();
    let ran = run(&machine, &["--yes"]);
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    assert_eq!(std::fs::read_to_string(outside.join("deep/letter")).unwrap(), "dear");
    assert!(machine.path("state/chat-history").exists() && ran.out.contains("the link; "), "{ran:#?}");
    assert!(home.join(".local/state/caro").symlink_metadata().is_err());
}

/// `CARO_CACHE_DIR` may name a folder that has other files too.
#[test]
fn in_a_folder_named_by_a_variable_only_files_of_caro_are_removed() {
    let machine = Machine::new();
    for name in ["cache/manual.db", "cache/prefix/0123456789abcdef.state", "cache/letter", "cache/models/mine.gguf"] {
        write(&machine.path(name), "x");
    }
    machine.write("config.toml", "timeout = 5\n");
    let ran = machine.run(&["self", "uninstall", "--yes"]);
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    assert!(machine.path("cache/letter").exists() && !machine.path("cache/manual.db").exists());
    assert!(machine.path("cache/models/mine.gguf").exists(), "it may be the user's own");
    assert!(!machine.path("cache/prefix").exists() && !machine.path("config.toml").exists());
}

#[cfg(unix)]
#[test]
fn the_confirmation_word_must_be_typed() {
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

/// A running resident would write into removed folders.
#[cfg(target_os = "linux")]
#[test]
fn a_running_resident_is_ended_first() {
    let machine = Machine::new();
    let mut caro = machine.caro(&["list files"]);
    caro.env("CARO_RESIDENT", "on").env("CARO_MODEL", machine.model(serde_json::json!([{ "reply": "ls -a" }])));
    assert_eq!(Ran::of(caro.output().unwrap()).code, Some(0));
    let status = machine.run(&["status", "--json"]).json();
    let pid = status["residents"][0]["pid"].as_u64().unwrap_or_else(|| panic!("none runs: {status}"));
    let report = machine.run(&["doctor"]).out;
    assert!(report.contains(&format!("process {pid} keeps script:script.json ready")), "{report}");
    let ran = machine.run(&["self", "uninstall", "--yes"]);
    assert!(ran.code == Some(0) && ran.out.contains("1 resident"), "{ran:#?}");
    assert!(ran.err.contains(&format!("process {pid} ended")), "{ran:#?}");
    assert_eq!(machine.run(&["status", "--json"]).json()["residents"], serde_json::json!([]));
    assert!(!machine.path("run").exists());
}

impl Ran {
    /// Like [`Ran::fails`] with code 1, but with a list on stdout.
    #[track_caller]
    fn fails_with_a_list(&self, words: &[&str]) {
        assert_eq!(self.code, Some(1), "{self:#?}");
        assert!(!self.out.is_empty() && words.iter().all(|word| self.err.contains(word)), "{self:#?}");
    }
}
