//! `caro check`: findings and risk of any command, without a model.

use crate::machine::{AMPLE, Machine, PATH};
use serde_json::Value;

fn report(args: &[&str]) -> (Option<i32>, Value) {
    let mut all = vec!["check", "--json"];
    all.extend(args);
    let ran = Machine::new().run(&all);
    (ran.code, ran.json())
}

fn ids(report: &Value) -> Vec<&str> {
    report["findings"].as_array().unwrap().iter().map(|f| f["id"].as_str().unwrap()).collect()
}

#[test]
fn a_good_command_has_nothing_against_it() {
    let ran = Machine::new().run(&["check", "--shell", "bash", "ls -la | head -n 3"]);
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), "nothing against it\n"), "{ran:#?}");
}

#[test]
fn a_wrong_flag_is_named_with_the_manuals_line() {
    let ran = Machine::new().run(&["check", "--shell", "bash", "sort --reversed-order names.txt"]);
    assert_eq!(ran.code, Some(1));
    assert!(ran.out.contains("[unknown-flag]") && ran.out.contains("--reverse"), "{ran:#?}");
}

#[test]
fn danger_fails_and_caution_does_not() {
    let (code, danger) = report(&["--shell", "bash", "rm -rf /"]);
    assert_eq!((code, danger["risk"]["level"].as_str()), (Some(1), Some("danger")), "{danger:#}");
    let (code, caution) = report(&["--shell", "bash", "rm notes.txt"]);
    assert_eq!((code, caution["risk"]["level"].as_str()), (Some(0), Some("caution")), "{caution:#}");
}

#[test]
fn what_is_dangerous_is_no_better_without_sudo() {
    let (_, danger) = report(&["--shell", "bash", "sudo rm -rf /"]);
    let fixes: Vec<&Value> = danger["findings"].as_array().unwrap().iter().map(|f| &f["fix"]).collect();
    assert!(fixes.iter().all(|fix| fix.is_null()), "{danger:#}");
}

#[test]
fn another_machine_has_its_own_rules() {
    let (code, mac) = report(&["--target", "macos-bsd", "--shell", "zsh", "sed -i 's/a/b/' notes.txt"]);
    assert_eq!((code, mac["target"].as_str(), mac["shell"].as_str()), (Some(1), Some("macos-bsd"), Some("zsh")));
    assert_eq!(mac["findings"][0]["fix"], "sed -i '' 's/a/b/' notes.txt", "{mac:#}");
    let (_, linux) = report(&["--target", "linux-gnu", "--shell", "bash", "sed -i 's/a/b/' notes.txt"]);
    assert_eq!(ids(&linux), [""; 0], "{linux:#}");
}

/// `set`, `read` and `type` are builtins of bash, too, with other flags.
#[test]
fn a_builtin_is_looked_up_in_the_shell_that_is_written_for() {
    for command in ["set -gx A b", "set -q x", "read -l x", "read -P '> ' x", "type -q ls", "history --search x"] {
        let (_, fish) = report(&["--shell", "fish", command]);
        assert_eq!(ids(&fish), [""; 0], "{command}: {fish:#}");
    }
}

/// However it ends: by itself while look-ups are still under way, or by a signal in the middle of them.
#[cfg(unix)]
#[test]
fn nothing_is_left_in_the_folder_for_temporary_files() {
    use std::os::unix::fs::PermissionsExt;
    for by_signal in [false, true] {
        let machine = Machine::new();
        for folder in ["bin", "tmp"] {
            std::fs::create_dir(machine.path(folder)).unwrap();
        }
        for program in ["bin/slow1", "bin/slow2", "bin/slow3"] {
            machine.write(program, "#!/bin/sh\nsleep 300\n");
            std::fs::set_permissions(machine.path(program), std::fs::Permissions::from_mode(0o755)).unwrap();
        }
        let path = format!("{}:{PATH}", machine.path("bin").display());
        let mut caro = machine.caro(&["check", "slow1 --a x | slow2 --b y | slow3 --c z"]);
        let mut child = caro.env("PATH", path).env("TMPDIR", machine.path("tmp")).spawn().unwrap();
        let all = || std::fs::read_dir(machine.path("tmp")).unwrap().map(|e| e.unwrap().path()).collect::<Vec<_>>();
        let left = || all().len();
        if by_signal {
            let begun = std::time::Instant::now();
            while left() == 0 && begun.elapsed() < AMPLE {
                std::thread::sleep(std::time::Duration::from_millis(5));
            }
            assert!(left() > 0, "no look-up has begun");
            let pid = rustix::process::Pid::from_child(&child);
            rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
        }
        child.wait().unwrap();
        assert_eq!(all(), Vec::<std::path::PathBuf>::new(), "by a signal: {by_signal}");
    }
}

/// In a folder of this test's own: other tests kill programs in the middle of a rehearsal.
#[cfg(target_os = "linux")]
#[test]
fn a_rehearsal_leaves_no_folder() {
    let machine = Machine::new();
    std::fs::create_dir(machine.path("tmp")).unwrap();
    let mut caro = machine.caro(&["check", "--rehearse", "--shell", "bash", "seq 3 > made; exit 3"]);
    let ran = caro.env("TMPDIR", machine.path("tmp")).output().unwrap();
    let out = String::from_utf8_lossy(&ran.stdout);
    assert!(out.contains("rehearsed: exited 3") && out.contains("would create made"), "{out}");
    assert_eq!(std::fs::read_dir(machine.path("tmp")).unwrap().count(), 0);
}

#[cfg(target_os = "linux")]
#[test]
fn a_signal_in_a_rehearsal_leaves_no_folder() {
    let machine = Machine::new();
    std::fs::create_dir(machine.path("tmp")).unwrap();
    let mut caro = machine.caro(&["check", "--rehearse", "--shell", "bash", "while :; do :; done"]);
    let mut child = caro.env("TMPDIR", machine.path("tmp")).stdout(std::process::Stdio::null()).spawn().unwrap();
    let all = || std::fs::read_dir(machine.path("tmp")).unwrap().map(|e| e.unwrap().path()).collect::<Vec<_>>();
    let begun = || all().iter().any(|path| path.to_string_lossy().contains("caro-view-"));
    while !begun() && child.try_wait().unwrap().is_none() {
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    if child.try_wait().unwrap().is_none() {
        let pid = rustix::process::Pid::from_child(&child);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    }
    child.wait().unwrap();
    assert_eq!(all(), Vec::<std::path::PathBuf>::new());
}

#[test]
fn what_is_no_command_is_told() {
    Machine::new().run(&["check", " "]).fails(2, &["no command to check"]);
    for verb in ["check", "explain"] {
        let long = Machine::new().run(&[verb, &"a | ".repeat(5000)]);
        long.fails(2, &["the command has 20000 bytes, and 16384 are the most"]);
    }
    let (code, torn) = report(&["--shell", "bash", "echo 'unclosed"]);
    assert_eq!((code, ids(&torn)), (Some(1), vec!["syntax"]));
    let (code, open) = report(&["--shell", "bash", "ls |"]);
    let found = &open["findings"][0];
    assert_eq!((code, found["token"].as_str(), found["id"].as_str()), (Some(1), Some("|"), Some("syntax")));
    assert!(found["why"].as_str().unwrap().contains("nothing follows the `|`"), "{open:#}");
}

#[cfg(target_os = "linux")]
#[test]
fn a_rehearsal_tells_what_would_change_and_changes_nothing() {
    let machine = Machine::new();
    machine.write("work/notes.txt", "one\n");
    machine.write("work/old.txt", "old\n");
    let command = "echo two >> notes.txt; rm old.txt; mkdir new; cat notes.txt";
    let ran = machine.run(&["check", "--rehearse", "--shell", "bash", command]);
    for line in
        ["rehearsed: exited 0", "    two", "would change notes.txt", "would delete old.txt", "would create new/"]
    {
        assert!(ran.out.contains(line), "no {line:?} in {ran:#?}");
    }
    assert_eq!(std::fs::read_to_string(machine.path("work/notes.txt")).unwrap(), "one\n");
    assert!(machine.path("work/old.txt").exists() && !machine.path("work/new").exists());
    let document = machine.run(&["check", "--rehearse", "--json", "--shell", "bash", "cat missing"]).json();
    let done = &document["rehearsal"]["done"];
    assert_eq!((&done["status"], &done["changes"]), (&"exited 1".into(), &serde_json::json!([])), "{document:#}");
    assert!(done["stderr"].as_str().unwrap().contains("missing"));
    let outside = machine.run(&["check", "--rehearse", "--shell", "bash", "curl -s https://example.org"]);
    assert!(outside.out.contains("not rehearsed: curl: it reaches out to the network"), "{outside:#?}");
    // one for another system, and one for a shell that is not here, are checked all the same
    let mac = machine.run(&["check", "--rehearse", "--target", "macos-bsd", "sed -i '' s/one/1/ notes.txt"]);
    assert!(mac.out.contains("not rehearsed: it is for macos-bsd, and this is linux"), "{mac:#?}");
    let windows =
        machine.run(&["check", "--rehearse", "--shell", "powershell", "Get-ChildItem; rm -r x", "--json"]).json();
    assert!(windows["risk"]["level"].is_string() && windows["rehearsal"].is_object(), "{windows:#}");
}
