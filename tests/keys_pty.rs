//! Tests the keys offered after an answer, on a real terminal: what each does, what never runs, and that the terminal
//! is restored.

use crate::machine::{AMPLE, Machine};
use crate::pty::{Setting, Terminal};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

const CARO: &str = env!("CARGO_BIN_EXE_caro");
const ON: &[(&str, &str)] = &[("CARO_KEYS", "on")];
/// The last of the keys: once it is shown, all are.
const KEYS: &str = "q quit";

fn start(machine: &Machine, rules: Value, args: &[&str]) -> Terminal {
    let args: Vec<&str> = args.iter().copied().chain(["--shell", "bash"]).collect();
    Terminal::start_in(&Setting { env: ON, ..Setting::default() }, CARO, machine, rules, &args)
}

/// Starts a request with this answer and waits for the keys.
fn at_keys(machine: &Machine, reply: &str) -> Terminal {
    let terminal = start(machine, json!([{ "reply": reply }]), &["do it", "--refine", "never"]);
    terminal.shows(KEYS);
    terminal
}

/// Waits until the text on the screen satisfies a condition; `what` names it in the failure message.
#[track_caller]
fn wait_until(terminal: &Terminal, what: &str, is_so: impl Fn(&str) -> bool) {
    let begun = Instant::now();
    while !is_so(terminal.text().trim_end()) {
        assert!(begun.elapsed() < AMPLE, "{what}:\n{}", terminal.text());
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn the_keys_are_shown_below_the_answer_and_vanish_at_the_end() {
    for (key, code) in [("q", 0), ("\x1b", 0), ("\r", 0), ("\x04", 0), ("\x03", 130)] {
        let machine = Machine::new();
        let mut terminal = at_keys(&machine, "ls -a");
        let text = terminal.text();
        assert!(text.starts_with("ls -a\n") && text.contains("\n  safe"), "{text}");
        assert!(text.ends_with("  r run  e edit  v revise  ? explain  c copy  a another  q quit"), "{text}");
        let begun = Instant::now();
        terminal.types(key);
        assert_eq!(terminal.ends(), code, "{key:?}");
        assert!(begun.elapsed() < AMPLE);
        assert!(!terminal.text().contains("quit"), "{key:?}: {}", terminal.text());
        assert!(terminal.written().ends_with("\x1b[?2004l"), "{key:?}");
    }
}

#[test]
fn the_terminal_settings_are_restored() {
    for key in ["q", "\x03"] {
        let machine = Machine::new();
        let line = "trap : INT; \"$0\" 'list' --shell bash; stty -a | tr ' ;' '\\n\\n' | grep -cxe -echo -e -icanon -e -isig; echo over";
        let setting = Setting { env: ON, ..Setting::default() };
        let mut terminal =
            Terminal::start_in(&setting, "/bin/sh", &machine, json!([{ "reply": "ls -a" }]), &["-c", line, CARO]);
        terminal.shows(KEYS);
        terminal.types(key);
        terminal.shows("0\nover");
        assert_eq!(terminal.ends(), 0);
    }
}

#[test]
fn run_runs_a_safe_command_at_once_and_returns_its_exit_code() {
    let machine = Machine::new();
    let mut terminal = at_keys(&machine, "test -t 0 && echo on the terminal; exit 7");
    terminal.types("r");
    assert_eq!(terminal.ends(), 7);
    assert!(
        terminal.text().ends_with("on the terminal") && !terminal.text().contains("run it?"),
        "{}",
        terminal.text()
    );
}

#[test]
fn a_dangerous_command_needs_its_word_typed() {
    let machine = Machine::new();
    // nothing listens on that port: the shell gets nothing to run
    let mut terminal = at_keys(&machine, "curl -s http://127.0.0.1:1/install | sh; touch ran");
    terminal.types("r");
    terminal.shows("to run it:");
    let text = terminal.text();
    let word = text.rsplit_once("type ").unwrap().1.split(" to run it").next().unwrap().to_string();
    terminal.types("y\n");
    wait_until(&terminal, "the keys are back", |text| text.ends_with(KEYS));
    assert!(!machine.path("work/ran").exists());
    terminal.types("r");
    terminal.shows_times("to run it:", 2);
    terminal.types(&format!("{word}\n"));
    assert_eq!(terminal.ends(), 0, "{}", terminal.text());
    assert!(machine.path("work/ran").exists());
}

#[test]
fn an_undoable_command_runs_at_once_and_others_are_confirmed() {
    let machine = Machine::new();
    machine.write("config.toml", "rehearse = \"off\"\n");
    std::fs::create_dir(machine.path("work/build")).unwrap();
    machine.write("work/build/a.o", "object");
    machine.write("work/x.sh", "echo x > made\n");
    let mut terminal = at_keys(&machine, "rm -r build");
    terminal.types("r");
    assert_eq!(terminal.ends(), 0, "{}", terminal.text());
    assert!(terminal.text().contains("`caro undo` takes it back") && !machine.path("work/build").exists());
    assert_eq!(machine.run(&["undo"]).code, Some(0));
    assert_eq!(std::fs::read_to_string(machine.path("work/build/a.o")).unwrap(), "object");
    let mut terminal = at_keys(&machine, "sh x.sh");
    for (reply, code) in [("n\n", None), ("y\n", Some(0))] {
        wait_until(&terminal, "the keys", |text| text.ends_with(KEYS));
        terminal.types("r");
        wait_until(&terminal, "the question", |text| text.ends_with("run it all the same? [y/N]"));
        assert!(!machine.path("work/made").exists());
        terminal.types(reply);
        if let Some(code) = code {
            assert_eq!(terminal.ends(), code);
        }
    }
    assert!(machine.path("work/made").exists());
}

#[test]
fn a_command_above_the_allowed_level_is_refused_at_the_keys() {
    let machine = Machine::new();
    machine.write("work/.caro.toml", "run_up_to = \"safe\"\n");
    machine.write("work/notes", "");
    let mut terminal = at_keys(&machine, "rm notes");
    terminal.types("r");
    terminal.shows("nothing beyond `safe`");
    wait_until(&terminal, "the keys are back", |text| text.ends_with(KEYS));
    terminal.types("q");
    assert_eq!(terminal.ends(), 0);
    assert!(machine.path("work/notes").exists());
}

#[test]
fn what_is_overwritten_is_shown_before_what_is_moved() {
    let machine = Machine::new();
    machine.write("work/a.txt", "a");
    machine.write("work/big.bin", vec![7u8; 3 << 20]);
    let mut terminal = at_keys(&machine, "mv a.txt big.bin");
    let text = terminal.text();
    let at = |words: &str| text.find(words).unwrap_or_else(|| panic!("no {words:?} in {text}"));
    assert!(
        at("caution: it overwrites big.bin (3.1 MB there now)") < at("caution: it moves or renames a.txt"),
        "{text}"
    );
    terminal.types("q");
    assert_eq!(terminal.ends(), 0);
}

#[test]
fn a_command_for_the_shell_itself_is_not_offered_to_be_run() {
    let machine = Machine::new();
    let mut terminal = at_keys(&machine, "cd /tmp && export FOO=1");
    let text = terminal.text();
    assert!(text.contains("it changes only the shell that runs it") && !text.contains("r run"), "{text}");
    terminal.types("q");
    assert_eq!(terminal.ends(), 0);
}

#[test]
fn a_command_with_control_characters_is_not_edited() {
    let machine = Machine::new();
    let mut terminal = at_keys(&machine, "printf '\u{1b}[8mhidden'");
    terminal.types("e");
    terminal.shows("the command cannot be edited");
    wait_until(&terminal, "the keys are back", |text| text.ends_with(KEYS));
    assert!(!terminal.written().contains("\u{1b}[8m"), "{:?}", terminal.written());
    terminal.types("q");
    assert_eq!(terminal.ends(), 0);
}

#[test]
fn notes_are_broken_between_words_on_a_wide_terminal() {
    let machine = Machine::new();
    let folder = "a-folder-with-a-long-name/another-one-below-it";
    std::fs::create_dir_all(machine.path("work").join(folder)).unwrap();
    let command = format!("rm -r {folder}/one {folder}/two");
    let mut terminal = at_keys(&machine, &command);
    for row in terminal.screen().rows(0, 100) {
        let is_broken = row.trim_end().chars().count() == 100 && !row.starts_with("rm ");
        assert!(!is_broken, "{}", terminal.text());
    }
    assert!(!terminal.text().lines().any(|line| line.chars().count() > 99 && !line.starts_with("rm ")));
    terminal.types("q");
    assert_eq!(terminal.ends(), 0);
}

#[test]
fn a_command_is_edited_in_place_checked_again_and_run() {
    let machine = Machine::new();
    let mut terminal = at_keys(&machine, "echo one");
    terminal.types("e");
    terminal.shows("> echo one");
    terminal.types(" --no-such-flag | sort --no-such-flag\r");
    wait_until(&terminal, "it is checked", |text| text.ends_with(KEYS));
    assert!(terminal.text().contains("sort has no option"), "{}", terminal.text());
    // an edit ended with Ctrl-C keeps the command
    terminal.types("e");
    terminal.shows_times("> echo one", 2);
    terminal.types(" lost\x03");
    wait_until(&terminal, "the keys are back", |text| text.ends_with(KEYS));
    terminal.types("e");
    terminal.shows_times("> echo one", 3);
    terminal.types("\x15echo two\r");
    wait_until(&terminal, "it is checked", |text| text.contains("\necho two\n") && text.ends_with(KEYS));
    terminal.types("r");
    assert_eq!(terminal.ends(), 0);
    assert!(terminal.text().ends_with("\ntwo"), "{}", terminal.text());
}

#[test]
fn a_command_is_revised_by_words_again_and_again() {
    let machine = Machine::new();
    let rules = json!([
        { "match": "the newest first", "reply": "ls -dt */" },
        { "match": "only folders", "reply": "ls -d */" },
        { "reply": "ls -a" },
    ]);
    let mut terminal = start(&machine, rules, &["list all files", "--refine", "never"]);
    for (words, command) in [("only folders", "ls -d */"), ("the newest first", "ls -dt */")] {
        wait_until(&terminal, "the keys", |text| text.ends_with(KEYS));
        terminal.types("v");
        wait_until(&terminal, "the question", |text| text.ends_with("how is it to be changed?"));
        terminal.types(&format!("{words}\r"));
        wait_until(&terminal, command, |text| text.contains(&format!("\n{command}\n")) && text.ends_with(KEYS));
    }
    terminal.types("q");
    assert_eq!(terminal.ends(), 0);
}

#[test]
fn another_offers_a_different_command_or_reports_that_there_is_none() {
    let machine = Machine::new();
    let rules = json!([{ "replies": ["ls -a", "ls -a", "ls -A", "ls -A", "ls -A", "ls -a", "ls -A", "ls -a"] }]);
    let mut terminal = start(&machine, rules, &["list all files"]);
    terminal.shows(KEYS);
    terminal.types("a");
    wait_until(&terminal, "another", |text| text.contains("\nls -A\n") && text.ends_with(KEYS));
    terminal.types("a");
    terminal.shows("no other command came up");
    wait_until(&terminal, "the keys", |text| text.ends_with(KEYS));
    terminal.types("q");
    assert_eq!(terminal.ends(), 0);
    assert_eq!(terminal.text().matches("ls -a").count(), 1, "{}", terminal.text());
}

#[test]
fn ctrl_c_while_the_model_works_returns_to_the_keys() {
    let machine = Machine::new();
    let rules = json!([{ "match": "slowly", "reply": "ls -d */", "delay_ms": 30_000 }, { "reply": "ls -a" }]);
    let mut terminal = start(&machine, rules, &["list", "--refine", "never", "--timeout", "300"]);
    for _ in 0..2 {
        wait_until(&terminal, "the keys", |text| text.ends_with(KEYS));
        terminal.types("v");
        wait_until(&terminal, "the question", |text| text.ends_with("how is it to be changed?"));
        terminal.types("slowly\r");
        terminal.shows("thinking");
        terminal.types("\x03");
        wait_until(&terminal, "stopped", |text| text.contains("stopped"));
    }
    wait_until(&terminal, "the keys", |text| text.ends_with(KEYS));
    terminal.types("q");
    assert_eq!(terminal.ends(), 0);
}

#[test]
fn explain_and_copy_keep_the_command() {
    let machine = Machine::new();
    let mut terminal = at_keys(&machine, "ls -a");
    terminal.types("?");
    // the answer itself has its explanation in another form
    terminal.shows("ls  list directory contents");
    wait_until(&terminal, "the keys", |text| text.ends_with(KEYS));
    terminal.types("c");
    terminal.shows("copied through the terminal");
    assert!(terminal.written().contains("\x1b]52;c;bHMgLWE=\x07"));
    wait_until(&terminal, "the keys", |text| text.ends_with(KEYS));
    terminal.types("q");
    assert_eq!(terminal.ends(), 0);
}

#[test]
fn a_program_for_the_clipboard_takes_the_command() {
    use std::os::unix::fs::PermissionsExt;
    let machine = Machine::new();
    std::fs::create_dir(machine.path("bin")).unwrap();
    let program = machine.path("bin/xclip");
    std::fs::write(&program, "#!/bin/sh\ncat > \"$HOME/clipboard\"; echo \"$*\" >> \"$HOME/clipboard\"\n").unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", machine.path("bin").display(), crate::machine::PATH);
    let env = [("CARO_KEYS", "on"), ("DISPLAY", ":99"), ("PATH", path.as_str())];
    let setting = Setting { env: &env, ..Setting::default() };
    let rules = json!([{ "reply": "ls -a" }]);
    let mut terminal = Terminal::start_in(&setting, CARO, &machine, rules, &["list", "--shell", "bash"]);
    terminal.shows(KEYS);
    terminal.types("c");
    terminal.shows("copied (xclip)");
    wait_until(&terminal, "the keys", |text| text.ends_with(KEYS));
    terminal.types("q");
    assert_eq!(terminal.ends(), 0);
    assert_eq!(std::fs::read_to_string(machine.path("home/clipboard")).unwrap(), "ls -a-selection clipboard\n");
}

#[test]
fn one_of_several_is_chosen_by_its_number() {
    let machine = Machine::new();
    let rules = json!([{ "replies": ["echo first", "echo second", "echo third", "echo fourth"] }]);
    let mut terminal = start(&machine, rules, &["-n", "2", "say something", "--refine", "never"]);
    terminal.shows("1-2 choose");
    terminal.types("2");
    terminal.shows_times("echo second", 2);
    terminal.types("r");
    assert_eq!(terminal.ends(), 0);
    assert!(terminal.text().ends_with("\nsecond"), "{}", terminal.text());
}

#[test]
fn pasted_text_is_no_key() {
    for paste in ["\x1b[200~rm x\nr\n\x1b[201~", "rm x\nr\n"] {
        let machine = Machine::new();
        let mut terminal = at_keys(&machine, "touch ran");
        terminal.types(paste);
        terminal.shows("pasted text is not taken for keys");
        wait_until(&terminal, "the keys", |text| text.ends_with(KEYS));
        // keys that follow without a pause are part of the paste
        std::thread::sleep(Duration::from_secs(2));
        terminal.types("q");
        assert_eq!(terminal.ends(), 0);
        assert!(!machine.path("work/ran").exists());
    }
}

#[test]
fn input_typed_before_the_answer_is_left_for_the_shell() {
    let machine = Machine::new();
    let rules = json!([{ "reply": "touch ran", "delay_ms": 4000 }]);
    let line = "\"$0\" 'make a file' --shell bash --refine never; read line; echo \"read: $line\"";
    let setting = Setting { env: ON, ..Setting::default() };
    let mut terminal = Terminal::start_in(&setting, "/bin/sh", &machine, rules, &["-c", line, CARO]);
    terminal.shows("thinking");
    terminal.types("r and more\n");
    terminal.shows("read: r and more");
    assert_eq!(terminal.ends(), 0);
    assert!(!machine.path("work/ran").exists());
}

#[test]
fn lines_wrap_between_words_and_are_redrawn_after_a_resize() {
    let machine = Machine::new();
    let setting = Setting { env: ON, cols: 40 };
    let rules = json!([{ "reply": "ls --all --human-readable" }]);
    let mut terminal = Terminal::start_in(&setting, CARO, &machine, rules, &["list", "--shell", "bash"]);
    terminal.shows(KEYS);
    let text = terminal.text();
    assert!(text.ends_with("  r run  e edit  v revise  ? explain\n  c copy  a another  q quit"), "{text}");
    let words = "list directory contents (--all: do not ignore entries starting with .)";
    assert!(text.lines().skip(1).all(|line| line.starts_with("  ") && line.chars().count() < 40), "{text}");
    assert!(!text.contains(words), "{text}");
    terminal.resize(90);
    wait_until(&terminal, "one row", |text| {
        text.ends_with("  r run  e edit  v revise  ? explain  c copy  a another  q quit")
            && text.matches("quit").count() == 1
    });
    terminal.types("q");
    assert_eq!(terminal.ends(), 0);
    assert!(!terminal.text().contains("quit"), "{}", terminal.text());
}

#[test]
fn ctrl_z_gives_the_terminal_to_the_shell_and_fg_brings_the_keys_back() {
    let machine = Machine::new();
    let line = "set -m; \"$0\" 'list' --shell bash --refine never; echo stopped; stty -a | grep -o ' icanon'; fg; echo ended $?";
    let setting = Setting { env: ON, ..Setting::default() };
    let mut terminal =
        Terminal::start_in(&setting, "bash", &machine, json!([{ "reply": "ls -a" }]), &["-c", line, CARO]);
    terminal.shows(KEYS);
    terminal.types("\x1a");
    terminal.shows("stopped\n icanon");
    wait_until(&terminal, "the keys are back", |text| text.ends_with(KEYS));
    terminal.types("q");
    terminal.shows("ended 0");
    assert_eq!(terminal.ends(), 0);
}

#[test]
fn plain_mode_reads_lines_and_draws_nothing() {
    for (env, args) in [(&[("CARO_KEYS", "on")][..], &["--plain"][..]), (&[("CARO_KEYS", "on"), ("TERM", "dumb")], &[])]
    {
        let machine = Machine::new();
        let setting = Setting { env, ..Setting::default() };
        let rules = json!([{ "match": "only folders", "reply": "echo folders" }, { "reply": "ls -a" }]);
        let args: Vec<&str> = ["list", "--shell", "bash", "--refine", "never"].iter().chain(args).copied().collect();
        let mut terminal = Terminal::start_in(&setting, CARO, &machine, rules, &args);
        terminal.shows("a another, q quit?");
        terminal.types("what\n");
        terminal.shows("Enter alone leaves");
        terminal.types("revise\n");
        terminal.shows("how is it to be changed?");
        terminal.types("only folders\n");
        terminal.shows("\necho folders\n");
        terminal.shows_times("q quit?", 3);
        terminal.types("edit\n");
        terminal.shows("Enter alone keeps it");
        terminal.types("echo changed\n");
        terminal.shows_times("q quit?", 4);
        terminal.types("c\n");
        terminal.shows("not copied");
        // what is typed before the keys are shown again is dropped
        terminal.shows_times("q quit?", 5);
        terminal.types("run\n");
        assert_eq!(terminal.ends(), 0);
        assert!(terminal.text().ends_with("\nchanged"), "{}", terminal.text());
        assert!(!terminal.written().contains('\x1b'), "{:?}", terminal.written());
    }
}

#[test]
fn a_locale_without_unicode_and_no_color_are_respected() {
    let machine = Machine::new();
    let env = [("CARO_KEYS", "on"), ("LANG", "C"), ("NO_COLOR", "1")];
    let setting = Setting { env: &env, ..Setting::default() };
    let rules = json!([{ "reply": "ls -a", "delay_ms": 800 }]);
    let mut terminal = Terminal::start_in(&setting, CARO, &machine, rules, &["list", "--shell", "bash"]);
    terminal.shows(KEYS);
    terminal.types("q");
    assert_eq!(terminal.ends(), 0);
    let written = terminal.written();
    assert!(written.is_ascii() && written.contains("thinking"), "{written:?}");
    // moving the cursor is no colour
    assert!(
        !written.contains('m')
            || !written.split('\x1b').skip(1).any(|part| part.split('m').next().is_some_and(|code| {
                code.starts_with('[')
                    && code[1..].chars().all(|c| c.is_ascii_digit() || c == ';')
                    && part.len() > code.len()
            })),
        "{written:?}"
    );
}

#[test]
fn there_are_no_keys_without_interaction() {
    for args in [&["--json"][..], &["-q"], &["--no-keys"]] {
        let machine = Machine::new();
        let args: Vec<&str> = ["list"].iter().chain(args).copied().collect();
        let mut terminal = start(&machine, json!([{ "reply": "ls -a" }]), &args);
        assert_eq!(terminal.ends(), 0, "{args:?}");
        assert!(!terminal.text().contains("quit"), "{args:?}: {}", terminal.text());
    }
    let machine = Machine::new();
    let line = "\"$0\" list --shell bash | cat; x=$(\"$0\" list --shell bash); echo \"got $x\"";
    let setting = Setting { env: ON, ..Setting::default() };
    let mut terminal =
        Terminal::start_in(&setting, "/bin/sh", &machine, json!([{ "reply": "ls -a" }]), &["-c", line, CARO]);
    assert_eq!(terminal.ends(), 0);
    assert!(terminal.text().ends_with("ls -a\ngot ls -a") && !terminal.text().contains("quit"), "{}", terminal.text());
    machine.write("config.toml", "keys = false\n");
    let setting = Setting::default();
    let args = ["-c", "unset CARO_KEYS; \"$0\" list --shell bash", CARO];
    let mut terminal = Terminal::start_in(&setting, "/bin/sh", &machine, json!([{ "reply": "ls -a" }]), &args);
    assert_eq!(terminal.ends(), 0);
    machine.write("config.toml", "");
    let mut terminal = Terminal::start_in(&setting, "/bin/sh", &machine, json!([{ "reply": "ls -a" }]), &args);
    terminal.shows(KEYS);
    terminal.types("q");
    assert_eq!(terminal.ends(), 0);
}

/// Starts `caro fix` on a command that a rule repairs, with `rules` for the model, and waits for the keys.
fn at_fix(machine: &Machine, rules: Value, command: &str, error: &str, args: &[&str]) -> Terminal {
    machine.write("error.txt", error);
    let error = machine.path("error.txt").display().to_string();
    let args: Vec<&str> =
        ["fix", command, "--stderr", &error, "--refine", "never"].iter().chain(args).copied().collect();
    let terminal = start(machine, rules, &args);
    terminal.shows(KEYS);
    terminal
}

#[test]
fn a_repaired_command_has_the_keys_of_an_answer_and_runs() {
    let machine = Machine::new();
    machine.write("work/notes.txt", "milk\n");
    // the rules alone repair it: no model is opened until a key needs one
    let broken = json!([{ "reply": 7 }]);
    let mut terminal = at_fix(&machine, broken, "cat nots.txt", "cat: nots.txt: No such file or directory\n", &[]);
    let text = terminal.text();
    assert!(text.contains("cat notes.txt\n"), "{text}");
    assert!(text.ends_with("  r run  e edit  v revise  ? explain  c copy  a another  q quit"), "{text}");
    terminal.types("?");
    // once in the answer, once in its explanation
    terminal.shows_times("concatenate files", 2);
    wait_until(&terminal, "the keys", |text| text.ends_with(KEYS));
    terminal.types("r");
    assert_eq!(terminal.ends(), 0);
    assert!(terminal.text().ends_with("\nmilk"), "{}", terminal.text());
}

#[test]
fn the_model_that_revises_a_repair_gets_the_failed_command_and_its_error() {
    let machine = Machine::new();
    machine.write("work/notes.txt", "milk\n");
    let rules = json!([{ "match": "with numbers", "reply": "cat -n notes.txt" }, { "reply": "head notes.txt" }]);
    let error = "cat: nots.txt: No such file or directory\n";
    let mut terminal = at_fix(&machine, rules, "cat nots.txt", error, &["--debug"]);
    terminal.types("v");
    wait_until(&terminal, "the question", |text| text.ends_with("how is it to be changed?"));
    terminal.types("with numbers\r");
    wait_until(&terminal, "it is changed", |text| text.contains("\ncat -n notes.txt\n") && text.ends_with(KEYS));
    let written = terminal.written();
    assert!(written.contains("[assistant] cat nots.txt") && written.contains("No such file"), "{written}");
    assert!(written.contains("[assistant] cat notes.txt"), "{written}");
    terminal.types("q");
    assert_eq!(terminal.ends(), 0);
    let mut terminal = at_fix(&machine, json!([{ "reply": "head notes.txt" }]), "cat nots.txt", error, &[]);
    terminal.types("a");
    wait_until(&terminal, "another", |text| text.contains("\nhead notes.txt\n") && text.ends_with(KEYS));
    terminal.types("q");
    assert_eq!(terminal.ends(), 0);
}

#[test]
fn a_repair_without_a_model_lacks_its_keys_and_scripted_output_has_none() {
    let machine = Machine::new();
    machine.write("work/notes.txt", "milk\n");
    let error = "cat: nots.txt: No such file or directory\n";
    let mut terminal = at_fix(&machine, json!([]), "cat nots.txt", error, &["--no-model"]);
    assert!(terminal.text().ends_with("  r run  e edit  ? explain  c copy  q quit"), "{}", terminal.text());
    terminal.types("va");
    std::thread::sleep(Duration::from_secs(2));
    terminal.types("q");
    assert_eq!(terminal.ends(), 0);
    // the failed command has a secret, so no model may see it
    let command = "cat nots.txt --password=hunter22hunter22";
    let mut terminal = at_fix(&machine, json!([]), command, error, &[]);
    assert!(!terminal.text().contains("revise"), "{}", terminal.text());
    terminal.types("q");
    assert_eq!(terminal.ends(), 0);
    for flag in ["--json", "-q", "--no-keys"] {
        let error = machine.path("error.txt").display().to_string();
        let mut terminal = start(&machine, json!([]), &["fix", "cat nots.txt", "--stderr", &error, flag]);
        assert_eq!(terminal.ends(), 0, "{flag}");
        assert!(!terminal.text().contains("quit"), "{flag}: {}", terminal.text());
    }
}

#[test]
fn a_command_a_policy_forbids_is_refused_at_the_keys_with_the_reason() {
    let machine = Machine::new();
    machine.write(
        "work/.caro-policy.toml",
        "[[deny]]\nprogram = \"touch\"\nwhy = \"files are made by the build alone\"\nmatches = [\"touch x\"]\n",
    );
    let rules = json!([{ "match": "something else", "reply": "touch other" }, { "reply": "touch ran" }]);
    let mut terminal = start(&machine, rules, &["make a file", "--refine", "never"]);
    terminal.shows(KEYS);
    terminal.types("r");
    terminal.shows("error: ");
    wait_until(&terminal, "the keys are back", |text| text.ends_with(KEYS));
    let text = terminal.text();
    let refusal = text.split("error: ").nth(1).unwrap();
    assert!(
        refusal.replace('\n', " ").contains(".caro-policy.toml:1 denies it: files are made by the build alone"),
        "{text}"
    );
    assert!(refusal.contains("a policy forbids it"), "{text}");
    // neither a revised command nor an edited one
    terminal.types("v");
    wait_until(&terminal, "the question", |text| text.ends_with("how is it to be changed?"));
    terminal.types("something else\r");
    wait_until(&terminal, "it is changed", |text| text.contains("touch other") && text.ends_with(KEYS));
    terminal.types("r");
    terminal.shows_times("error: ", 2);
    wait_until(&terminal, "the keys are back", |text| text.ends_with(KEYS));
    terminal.types("e");
    terminal.shows("> touch other");
    terminal.types("\x15echo one && touch third\r");
    wait_until(&terminal, "it is checked", |text| text.contains("touch third") && text.ends_with(KEYS));
    terminal.types("r");
    terminal.shows_times("error: ", 3);
    wait_until(&terminal, "the keys are back", |text| text.ends_with(KEYS));
    terminal.types("q");
    assert_eq!(terminal.ends(), 0);
    for file in ["ran", "other", "third"] {
        assert!(!machine.path("work").join(file).exists(), "{file}");
    }
}
