//! Tests `caro undo` on a real terminal: what is shown before a command runs, the question if nothing can be saved,
//! and what is restored, also after a kill -9 and on a full disk.

use crate::agent::{answer, by_step, step};
use crate::machine::{AMPLE, Machine, Ran, have};
use crate::pty::Terminal;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

fn one_rule(reply: &str) -> Value {
    json!([{ "reply": reply }])
}

/// A machine with a few files.
fn machine() -> Machine {
    let machine = Machine::new();
    std::fs::create_dir_all(machine.path("work/build/deep")).unwrap();
    for (name, text) in
        [("work/build/a.o", "object a"), ("work/build/deep/b.o", "object b"), ("work/notes", "my notes\n")]
    {
        machine.write(name, text);
    }
    machine
}

fn start(machine: &Machine, command: &str, more: &[&str]) -> Terminal {
    let args: Vec<&str> =
        ["-x", "do it", "--shell", "bash", "--refine", "never"].into_iter().chain(more.iter().copied()).collect();
    Terminal::start(machine, one_rule(command), &args)
}

/// Puts a file where the folder of undo would be, so that nothing can be kept.
fn block_undo(machine: &Machine) {
    std::fs::create_dir_all(machine.path("home/.local/share/caro")).unwrap();
    machine.write("home/.local/share/caro/undo", "no folder");
}

fn text(machine: &Machine, name: &str) -> Option<String> {
    std::fs::read_to_string(machine.path(name)).ok()
}

#[test]
fn a_command_is_undone_and_listed_and_the_undo_is_undone() {
    let machine = machine();
    let mut terminal = start(&machine, "rm -r build", &[]);
    terminal.shows("run it?");
    let shown = terminal.text();
    assert!(shown.contains("deletes 2 files, 16 bytes under ./build") && shown.contains("undo covers it"), "{shown}");
    terminal.types("y\n");
    assert_eq!(terminal.ends(), 0);
    assert!(terminal.text().contains("`caro undo` takes it back"), "{}", terminal.text());
    assert_eq!(text(&machine, "work/build/a.o"), None);
    let listed = machine.run(&["undo", "--list"]);
    assert!(listed.out.contains("rm -r build") && listed.out.contains("4 paths"), "{listed:#?}");
    let undone = machine.run(&["undo"]);
    assert_eq!((undone.code, undone.out.contains("undone: rm -r build")), (Some(0), true), "{undone:#?}");
    assert_eq!(text(&machine, "work/build/deep/b.o").as_deref(), Some("object b"));
    assert!(undone.err.contains("`caro undo 2` takes that back"), "{undone:#?}");
    machine.run(&["undo"]).fails(1, &["nothing to undo"]);
    assert_eq!(machine.run(&["undo", "2"]).code, Some(0));
    assert_eq!(text(&machine, "work/build/a.o"), None);
    let rows = machine.run(&["undo", "--list", "--json"]).json();
    assert_eq!(rows.as_array().unwrap().len(), 3, "{rows:#}");
    assert_eq!((&rows[1]["undoes"], &rows[0]["state"]), (&json!(1), &json!({"undone": 2})));
    assert_eq!(machine.run(&["undo", "--clear"]).code, Some(0));
    assert_eq!(machine.run(&["undo", "--list", "--json"]).json(), json!([]));
    machine.run(&["undo", "7"]).fails(2, &["no entry 7"]);
}

#[test]
fn files_that_changed_since_are_named_and_kept() {
    let machine = machine();
    let mut terminal = start(&machine, "sed -i s/my/your/ notes", &[]);
    terminal.shows("run it?");
    terminal.types("y\n");
    assert_eq!(terminal.ends(), 0);
    assert_eq!(text(&machine, "work/notes").as_deref(), Some("your notes\n"));
    machine.write("work/notes", "written by hand\n");
    machine.run(&["undo"]).fails(1, &["changed since", "work/notes", "--force"]);
    assert_eq!(text(&machine, "work/notes").as_deref(), Some("written by hand\n"));
    assert_eq!(machine.run(&["undo", "--force"]).code, Some(0));
    assert_eq!(text(&machine, "work/notes").as_deref(), Some("my notes\n"));
    assert_eq!(machine.run(&["undo", "2"]).code, Some(0));
    assert_eq!(text(&machine, "work/notes").as_deref(), Some("written by hand\n"));
}

#[test]
fn a_command_of_unknown_effect_is_rehearsed_and_undone() {
    let machine = machine();
    let mut terminal = start(&machine, "cd build && for f in *.o; do rm \"$f\"; done; echo x > made", &[]);
    terminal.shows("run it?");
    let shown = terminal.text();
    terminal.types("y\n");
    assert_eq!(terminal.ends(), 0);
    assert_eq!(text(&machine, "work/build/made").as_deref(), Some("x\n"));
    if !shown.contains("undo covers what a rehearsal of it changed") {
        assert!(shown.contains("undo does not cover") && !rustix::process::geteuid().is_root(), "{shown}");
        return;
    }
    assert_eq!(machine.run(&["undo"]).code, Some(0));
    assert_eq!(text(&machine, "work/build/a.o").as_deref(), Some("object a"));
    assert_eq!(text(&machine, "work/build/made"), None);
}

#[test]
fn what_undo_does_not_cover_is_shown_before_the_command_runs() {
    let machine = machine();
    machine.write("config.toml", "rehearse = \"off\"\nundo_copies = \"4\"\n");
    machine.write("work/x.sh", "echo x >> notes\n");
    for (command, message) in [
        ("sh x.sh", "undo does not cover it: "),
        ("sed -i s/my/your/ notes", "undo does not cover it: "),
        ("rm notes; sh x.sh", "undo does not cover"),
    ] {
        let mut terminal = start(&machine, command, &[]);
        terminal.shows("run it?");
        assert!(terminal.text().contains(message), "{command}: {}", terminal.text());
        terminal.types("n\n");
        assert_eq!(terminal.ends(), 1);
    }
    machine.write("config.toml", "undo = \"off\"\n");
    let mut terminal = start(&machine, "rm notes", &[]);
    terminal.shows("run it?");
    assert!(!terminal.text().contains("undo covers"), "{}", terminal.text());
    terminal.types("y\n");
    assert_eq!(terminal.ends(), 0);
    assert_eq!(machine.run(&["undo", "--list", "--json"]).json(), json!([]));
}

#[test]
fn a_preview_shows_a_tree_with_sizes_and_changes_nothing() {
    let machine = machine();
    let command = "mkdir -p out/sub && cp notes out/sub/n && rm -r build && echo more >> notes";
    let mut terminal = start(&machine, command, &["--preview"]);
    terminal.shows("run it?");
    let shown = terminal.text();
    if !shown.contains("as a rehearsal showed it") {
        assert!(shown.contains("not rehearsed") && !rustix::process::geteuid().is_root(), "{shown}");
        return;
    }
    for line in
        ["- build/  2 files, 16 bytes", "~ notes  9 bytes to 14 bytes", "+ out/", "+   sub/", "+     n  9 bytes"]
    {
        assert!(shown.contains(line), "no {line:?} in {shown}");
    }
    terminal.types("n\n");
    assert_eq!(terminal.ends(), 1);
    assert!(text(&machine, "work/build/a.o").is_some() && text(&machine, "work/out/sub/n").is_none());
    let alone = machine.run(&["--preview", "list files"]);
    assert_eq!(alone.code, Some(2), "{alone:#?}");
}

#[test]
fn with_trash_deleted_files_are_moved_to_the_trash() {
    let machine = machine();
    let mut terminal = start(&machine, "rm -r build 'notes'", &["--trash"]);
    terminal.shows("run it?");
    terminal.types("y\n");
    assert_eq!(terminal.ends(), 0);
    assert!(terminal.text().contains("2 things in the trash"), "{}", terminal.text());
    let trash = "home/.local/share/Trash";
    assert_eq!(text(&machine, &format!("{trash}/files/build/deep/b.o")).as_deref(), Some("object b"));
    let info = text(&machine, &format!("{trash}/info/notes.trashinfo")).unwrap();
    let path = machine.path("work/notes").canonicalize().unwrap_or(machine.path("work/notes"));
    assert!(info.contains(&format!("Path={}\n", path.display())), "{info}");
    assert_eq!(machine.run(&["undo"]).code, Some(0));
    assert_eq!(text(&machine, "work/notes").as_deref(), Some("my notes\n"));
    assert_eq!(text(&machine, &format!("{trash}/files/notes")), None, "it is not in the trash any more");
    assert_eq!(std::fs::read_dir(machine.path(&format!("{trash}/info"))).unwrap().count(), 0);
    let mut terminal = start(&machine, "ls", &["--trash"]);
    terminal.shows("run it?");
    terminal.types("n\n");
    assert_eq!(terminal.ends(), 1);
}

#[test]
fn a_kill_while_the_command_runs_loses_nothing() {
    let machine = machine();
    let command = "rm -r build; echo over > notes; while test ! -e stop; do sleep 0.05; done";
    // the command waits for a file, so its rehearsal would run into the time limit
    machine.write("config.toml", "rehearse = \"off\"\n");
    let pid = machine.path("pid");
    let line = format!("echo $$ > {}; exec \"$0\" \"$@\"", pid.display());
    let caro = env!("CARGO_BIN_EXE_caro");
    let args = ["-c", &line, caro, "-x", "do it", "--shell", "bash", "--refine", "never"];
    let mut terminal = Terminal::start_program("/bin/sh", &machine, one_rule(command), &args);
    terminal.shows("run it?");
    terminal.types("y\n");
    let begun = Instant::now();
    while text(&machine, "work/notes").as_deref() != Some("over\n") {
        assert!(begun.elapsed() < AMPLE, "{}", terminal.text());
        std::thread::sleep(Duration::from_millis(10));
    }
    let process = text(&machine, "pid").unwrap().trim().parse().unwrap();
    let process = rustix::process::Pid::from_raw(process).unwrap();
    rustix::process::kill_process(process, rustix::process::Signal::KILL).unwrap();
    machine.write("work/stop", "");
    terminal.ends();
    assert!(machine.run(&["undo", "--list"]).out.contains("it was cut off"));
    let undone = machine.run(&["undo"]);
    assert_eq!(undone.code, Some(0), "{undone:#?}");
    assert_eq!(text(&machine, "work/notes").as_deref(), Some("my notes\n"));
    assert_eq!(text(&machine, "work/build/deep/b.o").as_deref(), Some("object b"));
}

/// The data folder is on a small file system of its own: the deleted file can be neither linked nor copied into it.
#[test]
fn on_a_full_disk_the_question_says_that_undo_does_not_cover_it() {
    if !have("unshare") || !rustix::process::geteuid().is_root() {
        println!("skipped: only root mounts a file system of its own");
        return;
    }
    for (keys, code, runs) in [("n\n", 1, false), ("y\n", 0, true)] {
        let machine = machine();
        std::fs::create_dir_all(machine.path("home/.local/share")).unwrap();
        machine.write("work/large", vec![7u8; 4 << 20]);
        let line = "mount -t tmpfs -o size=1m none \"$HOME/.local/share\" && exec \"$0\" \"$@\"";
        let caro = env!("CARGO_BIN_EXE_caro");
        let args = ["-m", "sh", "-c", line, caro, "-x", "do it", "--shell", "bash", "--refine", "never"];
        let mut terminal = Terminal::start_program("unshare", &machine, one_rule("rm large"), &args);
        terminal.shows("run it?");
        let text = terminal.text();
        assert!(
            text.contains("undo does not cover it: no room on the disk") && !text.contains("undo covers"),
            "{text}"
        );
        assert!(machine.path("work/large").exists());
        terminal.types(keys);
        assert_eq!(terminal.ends(), code, "{}", terminal.text());
        assert_eq!(machine.path("work/large").exists(), !runs);
    }
}

#[test]
fn if_it_cannot_be_kept_after_all_it_is_asked_again() {
    for (reply, code, runs) in [("y\n", 1, false), ("without\n", 0, true)] {
        let machine = machine();
        let mut terminal = start(&machine, "rm notes", &[]);
        terminal.shows("run it?");
        assert!(terminal.text().contains("undo covers it"), "{}", terminal.text());
        block_undo(&machine);
        terminal.types("y\n");
        terminal.shows("to run it without undo");
        terminal.types(reply);
        assert_eq!(terminal.ends(), code, "{}", terminal.text());
        assert_eq!(machine.path("work/notes").exists(), !runs);
        assert_eq!(terminal.text().contains("not run"), !runs, "{}", terminal.text());
    }
}

#[test]
fn a_command_that_would_delete_the_folder_of_undo_says_so_before_it_is_agreed_to() {
    let machine = machine();
    let mut terminal = start(&machine, "rm -rf ~", &[]);
    terminal.shows("to run it");
    let shown = terminal.text();
    assert!(shown.contains("undo does not cover it: it would delete") && !shown.contains("undo covers"), "{shown}");
    terminal.types("n\n");
    assert_eq!(terminal.ends(), 1);
    assert!(machine.path("home").exists());
}

#[test]
fn a_command_of_another_folder_is_undone_only_if_that_is_agreed_to() {
    let machine = machine();
    let mut terminal = start(&machine, "rm build/a.o", &[]);
    terminal.shows("run it?");
    assert!(
        !terminal.text().contains("brings it back"),
        "what undo covers is not said to be lost: {}",
        terminal.text()
    );
    terminal.types("y\n");
    assert_eq!(terminal.ends(), 0);
    std::fs::create_dir_all(machine.path("work/other")).unwrap();
    let elsewhere = |args: &[&str]| {
        let mut caro = machine.caro(args);
        Ran::of(caro.current_dir(machine.path("work/other")).output().unwrap())
    };
    let refused = elsewhere(&["undo"]);
    refused.fails(1, &["another folder: 1, in ", "ago: rm build/a.o", "`caro undo 1` undoes that one"]);
    assert_eq!(text(&machine, "work/build/a.o"), None);
    assert!(elsewhere(&["undo", "--list"]).out.contains(&format!("in {}", machine.path("work").display())));
    // by its number, from anywhere: the folder is named
    let undone = elsewhere(&["undo", "1"]);
    assert!(undone.out.contains("undone, in ") && undone.out.contains(": rm build/a.o"), "{undone:#?}");
    assert_eq!(text(&machine, "work/build/a.o").as_deref(), Some("object a"));
}

#[test]
fn a_command_of_the_agent_is_not_run_if_nothing_can_be_kept() {
    let machine = machine();
    block_undo(&machine);
    let delete = step("shell", &[("shell", json!({"command": "rm -r build"}))]);
    let rules = by_step(&[delete, answer("Deleted.")]);
    let mut terminal = Terminal::start(&machine, rules, &["agent", "--yes", "delete the folder build"]);
    terminal.ends();
    assert!(terminal.text().contains("could not be kept for an undo"), "{}", terminal.text());
    assert!(text(&machine, "work/build/a.o").is_some(), "{}", terminal.text());
}

#[test]
fn a_command_of_the_agent_is_undone() {
    let machine = machine();
    let delete = step("shell", &[("shell", json!({"command": "rm -r build"}))]);
    let rules = by_step(&[delete, answer("Deleted.")]);
    let mut terminal = Terminal::start(&machine, rules, &["agent", "delete the folder build"]);
    terminal.shows("allow it?");
    terminal.types("y\n");
    assert_eq!(terminal.ends(), 0, "{}", terminal.text());
    assert_eq!(text(&machine, "work/build/a.o"), None);
    let undone = machine.run(&["undo"]);
    assert_eq!(undone.code, Some(0), "{undone:#?}");
    assert_eq!(text(&machine, "work/build/deep/b.o").as_deref(), Some("object b"));
}

/// Has the agent make these calls, one a step, with `--yes`.
fn agent(machine: &Machine, calls: &[(&str, Value)], task: &str) {
    let steps = calls.iter().map(|(tool, args)| step("go", &[(*tool, args.clone())]));
    let replies: Vec<String> = steps.chain([answer("Done.")]).collect();
    let ran = machine.ask(by_step(&replies), &["agent", task, "--yes", "--no-guard", "ground"]);
    assert!(ran.err.contains("Done.") || ran.out.contains("Done."), "{ran:#?}");
}

#[test]
fn what_the_file_tools_of_the_agent_change_is_undone() {
    use std::os::unix::fs::PermissionsExt;
    let machine = machine();
    let notes = machine.path("work/notes");
    std::fs::set_permissions(&notes, std::fs::Permissions::from_mode(0o640)).unwrap();
    let calls = [
        ("shell", json!({"command": "rm build/a.o"})),
        ("write", json!({"path": "notes", "content": "OVERWRITTEN"})),
        ("edit", json!({"path": "notes", "old": "OVER", "new": "UNDER"})),
        ("write", json!({"path": "new/deep/x", "content": "x"})),
    ];
    agent(&machine, &calls, "delete build/a.o and write OVERWRITTEN to notes");
    assert_eq!(text(&machine, "work/notes").as_deref(), Some("UNDERWRITTEN\n"));
    let listed = machine.run(&["undo", "--list"]).out;
    assert!(["write notes", "edit notes", "write new/deep/x"].iter().all(|title| listed.contains(title)), "{listed}");
    let undo = |title: &str| {
        let undone = machine.run(&["undo"]);
        assert_eq!((undone.code, undone.out.contains(title)), (Some(0), true), "{undone:#?}");
    };
    undo("undone: write new/deep/x; 3 paths that it made removed");
    assert!(!machine.path("work/new").exists());
    undo("undone: edit notes; 1 path put back");
    assert_eq!(text(&machine, "work/notes").as_deref(), Some("OVERWRITTEN\n"));
    undo("undone: write notes; 1 path put back");
    assert_eq!(text(&machine, "work/notes").as_deref(), Some("my notes\n"));
    assert_eq!(std::fs::metadata(&notes).unwrap().permissions().mode() & 0o777, 0o640);
    undo("undone: rm build/a.o");
    machine.run(&["undo"]).fails(1, &["nothing to undo"]);
    // a file changed since is not written over
    agent(&machine, &calls[1..2], "write OVERWRITTEN to notes");
    machine.write("work/notes", "by hand\n");
    machine.run(&["undo"]).fails(1, &["notes"]);
    // the setting holds for these tools too, and so do its limits
    assert_eq!(machine.run(&["undo", "--clear"]).code, Some(0));
    for setting in ["undo = \"off\"\n", "undo_total = \"1\"\n"] {
        machine.write("config.toml", setting);
        agent(&machine, &calls[1..2], "write OVERWRITTEN to notes");
        assert_eq!(text(&machine, "work/notes").as_deref(), Some("OVERWRITTEN\n"), "{setting}");
        machine.run(&["undo"]).fails(1, &["nothing to undo"]);
    }
}
