//! Tests the detection of the machine by `caro context`.

use crate::machine::{Machine, Ran, have};
use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use std::time::{Duration, SystemTime};

#[test]
fn json_has_every_field_of_the_specification() {
    let machine = Machine::new();
    let context = machine.run(&["context", "--json"]).json();
    let fields: Vec<&str> = context.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(
        fields,
        [
            "os",
            "arch",
            "os_version",
            "distribution",
            "cwd",
            "shell",
            "shell_path",
            "dialect",
            "user",
            "target",
            "available_commands"
        ]
    );
    let uname = |flag: &str| {
        let output = Command::new("uname").arg(flag).output().unwrap();
        String::from_utf8(output.stdout).unwrap().trim().to_string()
    };
    assert_eq!(context["os"], uname("-s"));
    assert_eq!(context["arch"], uname("-m"));
    assert_eq!(context["cwd"], machine.path("work").to_str().unwrap());
    let ls = &context["available_commands"]["ls"]["path"];
    assert!(ls == "/usr/bin/ls" || ls == "/bin/ls", "{ls}");
}

#[test]
fn the_summary_is_plain_text() {
    let ran = Machine::new().run(&["context", "--timing"]);
    assert_eq!(ran.code, Some(0));
    for name in ["system", "distribution", "shell", "target", "commands"] {
        assert!(ran.out.lines().any(|l| l.starts_with(name)), "{ran:#?}");
    }
    assert!(ran.err.starts_with("detected in ") && ran.err.ends_with(" ms\n"), "{ran:#?}");
}

/// The shell that calls caro is detected even if `$SHELL` names another.
#[test]
fn the_calling_shell_is_detected() {
    for (shell, dialect) in [("bash", "bash"), ("dash", "sh"), ("zsh", "zsh"), ("fish", "fish")] {
        if !have(shell) {
            println!("skipped: {shell} is not installed here");
            continue;
        }
        let machine = Machine::new();
        let mut command = Command::new(shell);
        // with a second command the shell does not replace itself by the first
        let line = format!("'{}' context --json; true", env!("CARGO_BIN_EXE_caro"));
        command.args(["-c", &line]).env_clear().envs(machine.env()).env("SHELL", "/bin/ksh");
        let context = Ran::of(command.output().unwrap()).json();
        assert_eq!((context["shell"].as_str(), context["dialect"].as_str()), (Some(shell), Some(dialect)));
    }
}

#[test]
fn programs_are_exactly_those_of_path() {
    let machine = Machine::new();
    for dir in ["one", "two", "work/rel"] {
        std::fs::create_dir_all(machine.path(dir)).unwrap();
    }
    for (file, mode) in
        [("one/tool", 0o755), ("one/notes", 0o644), ("two/tool", 0o755), ("two/other", 0o755), ("work/rel/mine", 0o755)]
    {
        machine.write(file, "#!/bin/sh\n");
        std::fs::set_permissions(machine.path(file), std::fs::Permissions::from_mode(mode)).unwrap();
    }
    let dir = |name: &str| machine.path(name).display().to_string();
    let path = format!("{}::rel:{}:{}:/nowhere", dir("one"), dir("two"), dir("one"));
    let context = Ran::of(machine.caro(&["context", "--json"]).env("PATH", path).output().unwrap()).json();
    assert_eq!(
        context["available_commands"],
        serde_json::json!({ "other": { "path": dir("two/other") }, "tool": { "path": dir("one/tool") } })
    );
}

#[test]
fn a_huge_directory_is_indexed_completely_and_cached() {
    let machine = Machine::new();
    let dir = machine.path("many");
    std::fs::create_dir(&dir).unwrap();
    for i in 0..5000 {
        std::os::unix::fs::symlink("/bin/sh", dir.join(format!("tool{i}"))).unwrap();
    }
    let old = SystemTime::now() - Duration::from_secs(3600);
    std::fs::File::open(&dir).unwrap().set_modified(old).unwrap();
    let count = || {
        let ran = Ran::of(machine.caro(&["context", "--json"]).env("PATH", &dir).output().unwrap());
        ran.json()["available_commands"].as_object().unwrap().len()
    };
    assert_eq!(count(), 5000);
    assert!(std::fs::read_to_string(machine.path("cache/programs-2.json")).unwrap().contains("tool4999"));
    assert_eq!(count(), 5000);
}

#[test]
fn without_path_home_and_cache_there_is_still_a_context() {
    let machine = Machine::new();
    let mut caro = machine.caro(&["context", "--json"]);
    caro.env_clear();
    let context = Ran::of(caro.output().unwrap()).json();
    assert!(context["available_commands"]["ls"]["path"].is_string());
    assert_ne!(context["user"], "");
    let mut caro = machine.caro(&["context"]);
    let ran = Ran::of(caro.env("CARO_CACHE_DIR", "/proc/nowhere").output().unwrap());
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""));
}

#[test]
fn a_deleted_working_directory_is_no_error() {
    let machine = Machine::new();
    let gone = machine.path("gone");
    std::fs::create_dir(&gone).unwrap();
    let line = format!("cd '{0}' && rmdir '{0}' && '{1}' context --json", gone.display(), env!("CARGO_BIN_EXE_caro"));
    let mut sh = Command::new("sh");
    let ran = Ran::of(sh.args(["-c", &line]).env_clear().envs(machine.env()).output().unwrap());
    assert_eq!(ran.json()["cwd"], ".");
}
