//! Tests `--from last`: the last answer of the same terminal is changed by further requests, and is deleted
//! once its terminal is gone.

use crate::artifacts::{files, holds};
use crate::machine::{Machine, have};
use crate::pty::{Setting, Terminal};
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

const CARO: &str = env!("CARGO_BIN_EXE_caro");

fn rules() -> Value {
    json!([
        { "match": "the newest first", "reply": "ls -dt */" },
        { "match": "only folders", "reply": "ls -d */" },
        { "match": "log in", "reply": "curl -u me:hunter22 https://example.org" },
        { "reply": "ls -a" },
    ])
}

/// Starts a shell with these lines on a new terminal. `$0` is caro; `$S` are flags for the same answers everywhere.
fn shell(machine: &Machine, env: &[(&str, &str)], lines: &str) -> Terminal {
    let env: Vec<(&str, &str)> = env.iter().copied().chain([("S", "--shell=bash --refine=never")]).collect();
    Terminal::start_in(&Setting { env: &env, ..Setting::default() }, "/bin/sh", machine, rules(), &["-c", lines, CARO])
}

/// Runs these lines in a shell on a new terminal. Returns the text on its screen.
fn screen_after(machine: &Machine, lines: &str) -> String {
    let mut terminal = shell(machine, &[], lines);
    terminal.ends();
    terminal.text()
}

/// The stored files of last answers.
fn stored_files(machine: &Machine) -> Vec<std::path::PathBuf> {
    let folder = machine.path("run/last");
    let all = if folder.exists() { files(&folder) } else { Vec::new() };
    all.into_iter().filter(|file| file.extension().is_some_and(|e| e == "jsonl")).collect()
}

#[test]
fn the_last_answer_is_changed_repeatedly_and_the_model_gets_the_whole_history() {
    let machine = Machine::new();
    let lines = "\"$0\" 'list all files' $S; x=$(\"$0\" $S --from last 'only folders' 2>/dev/null); echo \"got <$x>\"
        \"$0\" $S --from last 'the newest first' --debug 2>debug >out; cat out
        \"$0\" $S --from last 'and with sizes' --json 2>/dev/null | grep -c '\"cmd\"'";
    let mut terminal = shell(&machine, &[], lines);
    terminal.ends();
    let text = terminal.text();
    assert!(text.contains("got <ls -d */>") && text.contains("\nls -dt */"), "{text}");
    assert!(text.trim_end().ends_with('1'), "{text}");
    let debug = std::fs::read_to_string(machine.path("work/debug")).unwrap();
    let prompt = "[user] list all files\n[assistant] ls -a\n[user] only folders\n[assistant] ls -d */\n[user] the newest first\n";
    assert!(debug.contains(prompt), "{debug}");
    // the file has the last answer and those that led to it
    let [file] = &stored_files(&machine)[..] else { panic!("{:?}", stored_files(&machine)) };
    let text = std::fs::read_to_string(file).unwrap();
    assert!(text.lines().count() == 3 && text.lines().last().unwrap().contains("and with sizes"), "{text}");
    assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(file.parent().unwrap().metadata().unwrap().permissions().mode() & 0o777, 0o700);
    assert_eq!(machine.path("run").metadata().unwrap().permissions().mode() & 0o777, 0o700);
}

#[test]
fn a_request_without_from_starts_a_new_history() {
    let machine = Machine::new();
    let text = screen_after(
        &machine,
        "\"$0\" 'only folders' $S -q; \"$0\" 'list all files' $S -q; \"$0\" $S -q --from last 'with sizes' --debug 2>debug",
    );
    let debug = std::fs::read_to_string(machine.path("work/debug")).unwrap();
    assert!(debug.contains("[user] list all files\n[assistant] ls -a\n[user] with sizes\n"), "{text}\n{debug}");
    assert!(!debug.contains("only folders"), "{debug}");
}

#[test]
fn another_terminal_has_no_last_answer_and_files_of_ended_shells_are_deleted() {
    let machine = Machine::new();
    screen_after(&machine, "\"$0\" 'list all files' $S");
    assert_eq!(stored_files(&machine).len(), 1);
    let text = screen_after(&machine, "\"$0\" $S --from last 'only folders'; echo \"ended $?\"");
    assert!(text.contains("no answer of this terminal is kept") && text.contains("--from 'COMMAND'"), "{text}");
    assert!(text.contains("ended 1"), "{text}");
    let before = stored_files(&machine);
    screen_after(&machine, "\"$0\" 'only folders' $S");
    let after = stored_files(&machine);
    assert!(after.len() == 1 && after != before, "{before:?} {after:?}");
    machine.run(&["history", "--clear"]);
    assert_eq!(stored_files(&machine).len(), 0);
}

#[test]
fn an_answer_for_another_target_is_refused_with_the_flags_that_continue_it() {
    let machine = Machine::new();
    let lines =
        "\"$0\" 'list all files' --target macos-bsd -q; \"$0\" $S -q --from last 'only folders'; echo \"ended $?\"
        \"$0\" $S --from last 'only folders' --json
        \"$0\" --target macos-bsd --shell zsh -q --from last 'only folders'";
    let text = screen_after(&machine, lines);
    let message = "the last answer is for macos-bsd in zsh, and this request is for linux-gnu in bash";
    assert!(text.replace('\n', "").matches(message).count() >= 2, "{text}");
    assert!(text.contains("ended 2") && text.contains("--target macos-bsd --shell zsh"), "{text}");
    assert!(text.contains("\"error\"") && text.trim_end().ends_with("ls -d */"), "{text}");
}

#[test]
fn a_command_with_a_secret_is_not_stored_and_deletes_the_last_answer() {
    let machine = Machine::new();
    let lines = "\"$0\" 'list all files' $S -q; \"$0\" 'log in' $S -q; \"$0\" --from last 'quietly' $S -q";
    let text = screen_after(&machine, lines);
    assert!(text.contains("no answer of this terminal is kept"), "{text}");
    assert_eq!(stored_files(&machine).len(), 0);
    // a secret in the request is redacted
    let token = format!("ghp_{}", "a1".repeat(18));
    screen_after(&machine, &format!("\"$0\" 'list all files of {token}' $S -q"));
    let [file] = &stored_files(&machine)[..] else { panic!("{:?}", stored_files(&machine)) };
    assert!(!holds(file, &token) && holds(file, "list all files of"), "{file:?}");
}

#[test]
fn turned_off_nothing_is_stored_and_stored_answers_are_deleted() {
    let machine = Machine::new();
    let lines = "\"$0\" 'list all files' $S -q; CARO_LAST_ANSWER=off; export CARO_LAST_ANSWER
        ls \"$CARO_RUNTIME_DIR/last\" | grep -c jsonl; \"$0\" 'only folders' $S -q; ls \"$CARO_RUNTIME_DIR/last\" | grep -c jsonl
        \"$0\" --from last 'quietly' $S; echo \"ended $?\"";
    let text = screen_after(&machine, lines);
    assert!(text.contains("ls -a\n1\nls -d */\n0\n"), "{text}");
    assert!(text.contains("last_answer = off") && text.contains("ended 2"), "{text}");
    assert_eq!(stored_files(&machine).len(), 0);
}

#[test]
fn an_edited_command_that_was_run_is_the_last_answer() {
    let machine = Machine::new();
    let lines = "\"$0\" -x 'list all files' $S; \"$0\" $S -q --from last 'only folders' --debug 2>debug";
    let mut terminal = shell(&machine, &[], lines);
    terminal.shows("run it?");
    terminal.types("e\n");
    terminal.shows("> ls -a");
    terminal.types(" -1\r");
    terminal.shows_times("run it?", 2);
    terminal.types("y\n");
    assert_eq!(terminal.ends(), 0);
    let debug = std::fs::read_to_string(machine.path("work/debug")).unwrap();
    assert!(debug.contains("[assistant] ls -a -1\n[user] only folders\n"), "{debug}");
}

#[test]
fn keys_and_the_flag_share_one_history() {
    let machine = Machine::new();
    let lines = "\"$0\" 'list all files' $S; \"$0\" $S --no-keys -q --from last 'the newest first' --debug 2>debug";
    let mut terminal = shell(&machine, &[("CARO_KEYS", "on")], lines);
    terminal.shows("q quit");
    terminal.types("v");
    terminal.shows("how is it to be changed?");
    terminal.types("only folders\r");
    terminal.shows("\nls -d */\n");
    terminal.shows("q quit");
    terminal.types("q");
    assert_eq!(terminal.ends(), 0);
    let debug = std::fs::read_to_string(machine.path("work/debug")).unwrap();
    let prompt = "[user] list all files\n[assistant] ls -a\n[user] only folders\n[assistant] ls -d */\n[user] the newest first\n";
    assert!(debug.contains(prompt), "{debug}");
}

#[test]
fn a_folder_that_others_may_write_is_not_used() {
    let machine = Machine::new();
    std::fs::create_dir(machine.path("run")).unwrap();
    std::fs::set_permissions(machine.path("run"), std::fs::Permissions::from_mode(0o777)).unwrap();
    let lines = "\"$0\" 'list all files' $S -q; \"$0\" --from last 'only folders' $S; echo \"ended $?\"";
    let text = screen_after(&machine, lines);
    let text = text.replace('\n', " ");
    assert!(text.starts_with("ls -a") && text.contains("others may use it") && text.contains("ended 2"), "{text}");
    assert_eq!(stored_files(&machine).len(), 0);
}

#[test]
fn without_a_terminal_nothing_is_stored_and_from_last_is_refused() {
    if !have("setsid") {
        println!("skipped: there is no setsid");
        return;
    }
    let machine = Machine::new();
    let ask = |args: &[&str]| {
        let mut caro = Command::new("setsid");
        caro.arg("-w").arg(CARO).args(args).env_clear().envs(machine.env()).env("CARO_MODEL", machine.model(rules()));
        crate::machine::Ran::of(
            caro.current_dir(machine.path("work")).stdin(std::process::Stdio::null()).output().unwrap(),
        )
    };
    assert_eq!(ask(&["list all files", "--shell", "bash"]).code, Some(0));
    assert_eq!(stored_files(&machine).len(), 0);
    let ran = ask(&["--from", "last", "only folders"]);
    ran.fails(2, &["there is no terminal here", "--from 'COMMAND'"]);
    let ran = ask(&["--from", "last", "only folders", "--json"]);
    assert!(ran.code == Some(2) && ran.json()["error"]["hint"].is_string(), "{ran:#?}");
}
