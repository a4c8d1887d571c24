//! Tests the shell integration: the scripts of `caro init`, in real shells on a real terminal.

use crate::artifacts;
use crate::machine::{AMPLE, Machine, PATH, Ran, have};
use crate::pty::Terminal;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// An interactive shell.
struct Shell {
    name: &'static str,
    /// Its configuration file, below the home folder.
    rc: &'static str,
    /// The line that sets a prompt a test can wait for.
    prompt: &'static str,
    /// The line that loads the script.
    load: &'static str,
    args: &'static [&'static str],
}

const SHELLS: [Shell; 3] = [
    Shell { name: "bash", rc: ".bashrc", prompt: "PS1='here> '", load: "eval \"$(caro init bash)\"", args: &["-i"] },
    Shell { name: "zsh", rc: ".zshrc", prompt: "PS1='here> '", load: "eval \"$(caro init zsh)\"", args: &["-i"] },
    Shell {
        name: "fish",
        rc: ".config/fish/config.fish",
        prompt: "function fish_prompt; echo -n 'here> '; end; function fish_greeting; end",
        load: "caro init fish | source",
        args: &["-i"],
    },
];

const ALT_E: &str = "\x1be";
const ALT_I: &str = "\x1bi";
const ALT_R: &str = "\x1br";

/// The shells that are installed; prints the names of the others.
fn shells() -> impl Iterator<Item = &'static Shell> {
    SHELLS.iter().filter(|shell| {
        let is_installed = have(shell.name);
        if !is_installed {
            println!("skipped: no {} is here", shell.name);
        }
        is_installed
    })
}

impl Shell {
    /// Starts the shell and waits for its first prompt. Its configuration file has `more` before it loads the script.
    fn open(&self, machine: &Machine, rules: Value, more: &str) -> Terminal {
        self.open_with(machine, rules, more, "")
    }

    /// Like [`Shell::open`], with flags for `caro init`.
    fn open_with(&self, machine: &Machine, rules: Value, more: &str, flags: &str) -> Terminal {
        let load = self.load.replacen(self.name, &format!("{}{flags}", self.name), 1);
        let bin = machine.path("bin");
        std::fs::create_dir_all(&bin).unwrap();
        let _ = std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_caro"), bin.join("caro"));
        let rc = machine.path("home").join(self.rc);
        std::fs::create_dir_all(rc.parent().unwrap()).unwrap();
        let path = match self.name {
            "fish" => format!("set -gx PATH {} $PATH", bin.display()),
            _ => format!("PATH={}:$PATH", bin.display()),
        };
        std::fs::write(&rc, format!("{path}\n{}\n{more}\n{load}\n", self.prompt)).unwrap();
        if self.name == "fish" {
            // without this folder fish completes it from all manual pages of the machine in the background, for minutes
            for folder in ["home/.local/share/fish", "home/.cache/fish"] {
                std::fs::create_dir_all(machine.path(folder).join("generated_completions")).unwrap();
            }
        }
        let terminal = Terminal::start_program(self.name, machine, rules, self.args);
        terminal.shows("here>");
        terminal
    }
}

/// Waits until a file has exactly this text.
#[track_caller]
fn wait_for_file(file: &Path, text: &str, terminal: &Terminal) {
    let start = Instant::now();
    while std::fs::read_to_string(file).unwrap_or_default() != text {
        assert!(start.elapsed() < AMPLE, "{} has no {text:?}:\n{}", file.display(), terminal.text());
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Waits until `words` are shown and the shell has redrawn `line` below them. Keys typed earlier go to the program that
/// has the terminal, and may be lost.
fn wait_for_redraw(terminal: &Terminal, words: &str, line: &str) {
    terminal.shows(words);
    let start = Instant::now();
    while !terminal.text().trim_end().ends_with(line) {
        assert!(start.elapsed() < AMPLE, "no {line:?} at the end of {}", terminal.text());
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn a_key_puts_the_command_into_the_line_and_enter_runs_it() {
    for shell in shells() {
        let machine = Machine::new();
        let rules = json!([{ "reply": "echo 6 times 7 is $(expr 6 '*' 7) > answer.txt" }]);
        let mut terminal = shell.open(&machine, rules, "");
        terminal.types("zeige größe, 6 × 7 日本");
        terminal.shows("日本");
        terminal.types(ALT_E);
        terminal.shows("here> echo 6 times 7");
        assert!(!machine.path("work/answer.txt").exists(), "{}: ran without Enter", shell.name);
        terminal.types("\r");
        wait_for_file(&machine.path("work/answer.txt"), "6 times 7 is 42\n", &terminal);
        // the shell handles keys again, and its history has the command
        terminal.types("\x1b[A");
        terminal.shows("> answer.txt");
        assert!(!terminal.text().contains("zeige größe, 6 × 7 日本: "), "{}", terminal.text());
    }
}

#[test]
fn the_key_gives_the_words_back_on_its_own_answer_and_asks_again_after_that() {
    for shell in shells() {
        let machine = Machine::new();
        // a command that fish suggests nothing behind
        let mut terminal = shell.open(&machine, json!([{ "reply": "whoami" }]), "");
        terminal.types("count my files");
        terminal.shows("my files");
        terminal.types(ALT_E);
        wait_for_redraw(&terminal, "here>", "whoami");
        terminal.types(ALT_E);
        wait_for_redraw(&terminal, "here>", "count my files");
        terminal.types(ALT_E);
        wait_for_redraw(&terminal, "here>", "whoami");
        // a changed command is a request of its own
        terminal.types(" all");
        wait_for_redraw(&terminal, "here>", "whoami all");
        terminal.types(ALT_E);
        wait_for_redraw(&terminal, "here>", "whoami");
    }
}

#[test]
fn a_comment_after_a_command_is_a_request_to_change_it() {
    for shell in shells() {
        let machine = Machine::new();
        // the request is the comment alone
        let rules = json!([{ "match": "echo all", "reply": "echo the whole line" }, { "reply": "echo others" }]);
        let mut terminal = shell.open(&machine, rules, "");
        terminal.types("echo all # the largest first");
        terminal.shows("largest first");
        terminal.types(ALT_E);
        terminal.shows("here> echo others");
    }
}

#[test]
fn esc_and_ctrl_c_restore_the_typed_line() {
    for shell in shells() {
        for (n, key) in ["\x1b", "\x03"].into_iter().enumerate() {
            let machine = Machine::new();
            let rules = json!([{ "reply": "rm -r .", "delay_ms": 300_000 }]);
            let mut terminal = shell.open(&machine, rules, "");
            terminal.types(&format!("echo back > {n}.txt"));
            terminal.shows(&format!("{n}.txt"));
            terminal.types(ALT_E);
            terminal.shows("thinking");
            terminal.types(key);
            // the shell has the terminal again once it has redrawn its line
            let start = Instant::now();
            while terminal.text().contains("thinking") || !terminal.text().trim_end().ends_with(&format!("{n}.txt")) {
                assert!(start.elapsed() < AMPLE, "{} {n}: {}", shell.name, terminal.text());
                std::thread::sleep(Duration::from_millis(10));
            }
            terminal.types("\r");
            wait_for_file(&machine.path("work").join(format!("{n}.txt")), "back\n", &terminal);
        }
    }
}

#[test]
fn a_refusal_is_reported_and_keeps_the_line() {
    for shell in shells() {
        let machine = Machine::new();
        let mut terminal = shell.open(&machine, json!([{ "reply": "# not a shell task" }]), "");
        terminal.types("echo hello there");
        terminal.shows("there");
        terminal.types(ALT_E);
        wait_for_redraw(&terminal, "hint:", "echo hello there");
        assert!(!terminal.text().contains("thereerror:"), "{}: {}", shell.name, terminal.text());
        terminal.types(" > said.txt\r");
        wait_for_file(&machine.path("work/said.txt"), "hello there\n", &terminal);
    }
}

#[test]
fn danger_is_reported_before_anything_runs() {
    for shell in shells() {
        let machine = Machine::new();
        machine.write("work/kept.txt", "kept");
        let mut terminal = shell.open(&machine, json!([{ "reply": "rm -rf ../work" }]), "");
        terminal.types("remove the folder");
        terminal.shows("folder");
        terminal.types(ALT_E);
        terminal.shows("here> rm -rf ../work");
        assert!(terminal.text().contains("danger") || terminal.text().contains("caution"), "{}", terminal.text());
        assert!(machine.path("work/kept.txt").exists());
    }
}

#[test]
fn the_explain_key_explains_and_keeps_the_line() {
    for shell in shells() {
        let machine = Machine::new();
        let mut terminal = shell.open(&machine, json!([]), "");
        terminal.types("touch -c seen.txt");
        terminal.shows("seen.txt");
        terminal.types(ALT_I);
        wait_for_redraw(&terminal, "file timestamps", "touch -c seen.txt");
        terminal.types("; echo left > left.txt\r");
        wait_for_file(&machine.path("work/left.txt"), "left\n", &terminal);
    }
}

#[test]
fn the_fix_key_repairs_a_failed_command_and_enter_runs_it() {
    for shell in shells() {
        let machine = Machine::new();
        machine.write("work/notes.txt", "milk\n");
        let mut terminal = shell.open_with(&machine, json!([]), "", " --fix");
        terminal.types("cat nots.txt > \"said.txt\"\r");
        terminal.shows("nots.txt: No such");
        terminal.types(ALT_R);
        terminal.shows("here> cat notes.txt");
        terminal.types("\r");
        wait_for_file(&machine.path("work/said.txt"), "milk\n", &terminal);
        // a command still on the line is repaired in place
        terminal.types("gerp milk notes.txt > found.txt");
        terminal.shows("found.txt");
        terminal.types(ALT_R);
        terminal.shows("here> grep milk");
        terminal.types("\r");
        wait_for_file(&machine.path("work/found.txt"), "milk\n", &terminal);
    }
}

#[test]
fn caro_fix_gets_the_last_command_and_a_failure_hidden_by_a_pipe() {
    for shell in shells() {
        let machine = Machine::new();
        machine.write("work/notes.txt", "milk\n");
        let mut terminal = shell.open_with(&machine, json!([]), "", " --fix");
        terminal.types("cat nots.txt | wc -l\r");
        terminal.shows("nots.txt: No such");
        terminal.types("caro fix --json > told.json\r");
        let report = machine.path("work/told.json");
        let start = Instant::now();
        let document: Value = loop {
            if let Ok(document) = serde_json::from_str(&std::fs::read_to_string(&report).unwrap_or_default()) {
                break document;
            }
            assert!(start.elapsed() < AMPLE, "{}:\n{}", shell.name, terminal.text());
            std::thread::sleep(Duration::from_millis(10));
        };
        assert_eq!(document["fix"]["failed"], "cat nots.txt | wc -l", "{}: {document:#}", shell.name);
        assert_eq!(document["cmd"], "cat notes.txt | wc -l", "{}: {document:#}", shell.name);
        assert_eq!(document["fix"]["masked_stage"], 1, "{}: {document:#}", shell.name);
        // an empty line and another `caro fix` do not replace the last command
        terminal.types("\rcaro fix --no-model > again.txt\r");
        wait_for_file(&machine.path("work/again.txt"), "cat notes.txt | wc -l\n", &terminal);
        // a successful command is not repaired
        terminal.types("true\rcaro fix\r");
        terminal.shows("did not fail");
        // other programs do not get the hook's variables
        terminal.types("env > env.txt; echo over > over.txt\r");
        wait_for_file(&machine.path("work/over.txt"), "over\n", &terminal);
        assert!(!std::fs::read_to_string(machine.path("work/env.txt")).unwrap().contains("FAILED"), "{}", shell.name);
        // the hook writes nothing; only the repair is stored, as this terminal's last answer, without the error message
        let stored = artifacts::files(&machine.path("run"));
        let is_last = |file: &PathBuf| file.parent().is_some_and(|folder| folder.ends_with("run/last"));
        assert!(stored.iter().all(|file| is_last(file) && !artifacts::holds(file, "No such")), "{stored:?}");
    }
}

#[test]
fn the_hook_works_with_other_hooks_and_strict_options() {
    for (name, more) in [
        ("bash", "set -u; PROMPT_COMMAND='true; other=$?'"),
        ("zsh", "setopt ksharrays nounset; precmd() { other=$?; }"),
        ("fish", "function other_ended --on-event fish_postexec; set -g other $status; end"),
    ] {
        let Some(shell) = shells().find(|shell| shell.name == name) else { continue };
        let machine = Machine::new();
        machine.write("work/notes.txt", "milk\n");
        let mut terminal = shell.open_with(&machine, json!([]), more, " --fix");
        terminal.types("cat nots.txt\r");
        terminal.shows("nots.txt: No such");
        terminal.types("caro fix > told.txt\r");
        wait_for_file(&machine.path("work/told.txt"), "cat notes.txt\n", &terminal);
    }
}

#[test]
fn with_fix_tries_the_fix_key_rehearses_the_command() {
    for shell in shells().filter(|_| cfg!(target_os = "linux")) {
        let machine = Machine::new();
        std::fs::create_dir(machine.path("work/data")).unwrap();
        machine.write("work/data/x", "x");
        let mut terminal = shell.open_with(&machine, json!([]), "", " --fix --fix-tries");
        terminal.types("cp data copy\r");
        terminal.shows("omitting directory");
        terminal.types(ALT_R);
        terminal.shows("here> cp -r data copy");
        assert!(!machine.path("work/copy").exists());
    }
}

#[test]
fn the_keys_work_with_strict_options_and_vi_keys() {
    for (name, more) in [
        ("bash", "set -eu; set -o vi"),
        ("zsh", "setopt ksharrays shwordsplit nounset; bindkey -v"),
        ("fish", "fish_vi_key_bindings"),
    ] {
        let Some(shell) = shells().find(|shell| shell.name == name) else { continue };
        let machine = Machine::new();
        let mut terminal = shell.open(&machine, json!([{ "reply": "echo two\\ words > vi.txt" }]), more);
        // an empty line sends no request
        terminal.types(ALT_E);
        terminal.types("write two words");
        terminal.shows("write two words");
        terminal.types(ALT_E);
        terminal.shows("here> echo two");
        terminal.types("\r");
        wait_for_file(&machine.path("work/vi.txt"), "two words\n", &terminal);
    }
}

#[test]
fn each_script_passes_the_syntax_check_of_its_shell() {
    let machine = Machine::new();
    for shell in shells() {
        let keys = ["--key", "f12", "--explain-key", "ctrl-g", "--fix", "--fix-tries"];
        let history: &[&str] = if shell.name == "fish" { &[] } else { &["--history"] };
        for more in [&keys[..], history, &[&keys[..], history].concat()] {
            let script = machine.run(&[&["init", shell.name][..], more].concat());
            assert_eq!(script.code, Some(0), "{script:#?}");
            machine.write("script", &script.out);
            let checked =
                Command::new(shell.name).arg("-n").arg(machine.path("script")).env_clear().env("PATH", PATH).output();
            let checked = Ran::of(checked.unwrap());
            assert_eq!((checked.code, checked.err.as_str()), (Some(0), ""), "{} {more:?}", shell.name);
        }
    }
    if have("shellcheck") {
        for more in [&["--fix"][..], &["--history"], &["--fix", "--history"]] {
            machine.write("script", machine.run(&[&["init", "bash"][..], more].concat()).out);
            let checked = Command::new("shellcheck").args(["-s", "bash"]).arg(machine.path("script")).output();
            let checked = Ran::of(checked.unwrap());
            assert_eq!((checked.code, checked.out.as_str()), (Some(0), ""), "{more:?}");
        }
    } else {
        println!("skipped: no shellcheck is here");
    }
}

#[test]
fn the_line_is_added_to_the_configuration_file_and_removed_again() {
    let machine = Machine::new();
    let rc = machine.path("home/dotfiles/bashrc");
    std::fs::create_dir(rc.parent().unwrap()).unwrap();
    std::fs::write(&rc, "alias ll='ls -l'").unwrap();
    std::os::unix::fs::symlink(&rc, machine.path("home/.bashrc")).unwrap();
    machine.run(&["init", "bash", "--install"]).fails(1, &["nobody to ask", "--yes"]);
    let installed = machine.run(&["init", "bash", "--install", "--yes", "--key", "f2"]);
    assert!(
        installed.code == Some(0) && installed.err.contains("+ eval \"$(caro init bash --key f2)\""),
        "{installed:#?}"
    );
    let text = std::fs::read_to_string(&rc).unwrap();
    assert!(text.starts_with("alias ll='ls -l'\n# >>> caro >>>\n"), "{text}");
    let again = machine.run(&["init", "bash", "--install", "--yes", "--key", "f2"]);
    assert!(again.err.contains("has the line already"), "{again:#?}");
    let other = machine.run(&["init", "bash", "--install", "--yes"]);
    assert!(other.err.contains("- eval \"$(caro init bash --key f2)\"\n"), "{other:#?}");
    assert_eq!(machine.run(&["init", "bash", "--uninstall", "--yes"]).code, Some(0));
    assert_eq!(std::fs::read_to_string(&rc).unwrap(), "alias ll='ls -l'\n");
    assert!(machine.path("home/.bashrc").is_symlink());
    std::fs::write(&rc, "# >>> caro >>>\nhalf").unwrap();
    machine.run(&["init", "bash", "--install", "--yes"]).fails(1, &["do not stand in pairs"]);
    assert_eq!(std::fs::read_to_string(&rc).unwrap(), "# >>> caro >>>\nhalf");
}

#[test]
fn a_line_written_by_hand_is_named_and_left() {
    let machine = Machine::new();
    let rc = machine.path("home/.bashrc");
    let text = "ls\neval \"$(caro init bash)\"\n";
    std::fs::write(&rc, text).unwrap();
    let installed = machine.run(&["init", "bash", "--install", "--yes"]);
    assert!(installed.code == Some(0) && installed.err.contains(".bashrc:2 has a line already"), "{installed:#?}");
    let other = machine.run(&["init", "bash", "--install", "--yes", "--fix"]);
    assert!(other.code == Some(0) && other.err.contains("`eval \"$(caro init bash --fix)\"`"), "{other:#?}");
    machine.run(&["init", "bash", "--uninstall", "--yes"]).fails(1, &[".bashrc:2", "by hand", "caro init bash"]);
    assert_eq!(std::fs::read_to_string(&rc).unwrap(), text);
    // beside a line between the marks
    std::fs::write(&rc, format!("# >>> caro >>>\neval \"$(caro init bash)\"\n# <<< caro <<<\n{text}")).unwrap();
    let half = machine.run(&["init", "bash", "--uninstall", "--yes"]);
    assert!(half.code == Some(1) && half.err.contains(".bashrc:2") && !half.err.contains("it is gone"), "{half:#?}");
    assert_eq!(std::fs::read_to_string(&rc).unwrap(), text);
}

#[cfg(target_os = "linux")]
#[test]
fn the_copy_that_nushell_loads_is_removed_if_it_is_ours() {
    let machine = Machine::new();
    let copy = machine.path("home/.local/share/nushell/vendor/autoload/caro.nu");
    std::fs::create_dir_all(copy.parent().unwrap()).unwrap();
    assert_eq!(machine.run(&["init", "nu", "--install", "--yes"]).code, Some(0));
    std::fs::write(&copy, machine.run(&["init", "nu"]).out).unwrap();
    let removed = machine.run(&["init", "nu", "--uninstall", "--yes"]);
    assert!(removed.code == Some(0) && removed.err.contains("autoload/caro.nu"), "{removed:#?}");
    assert!(!copy.exists());
    std::fs::write(&copy, machine.run(&["init", "nu"]).out).unwrap();
    let listed = machine.run(&["self", "uninstall", "--dry-run"]);
    assert!(listed.out.contains("autoload/caro.nu") && copy.exists(), "{listed:#?}");
    assert_eq!(machine.run(&["self", "uninstall", "--yes"]).code, Some(0));
    assert!(!copy.exists());
    std::fs::write(&copy, "# mine\n").unwrap();
    let none = machine.run(&["init", "nu", "--uninstall", "--yes"]);
    assert!(none.err.contains("has no line of caro's") && copy.exists(), "{none:#?}");
}

#[test]
fn commands_run_or_accepted_at_the_keys_are_in_the_shell_history() {
    for shell in shells().filter(|shell| shell.name != "fish") {
        for (flags, key) in [(" --history", "r"), (" --history --fix", "\r")] {
            let machine = Machine::new();
            let rules = json!([{ "reply": "echo from the keys" }]);
            let mut terminal = shell.open_with(&machine, rules, "export CARO_KEYS=on", flags);
            terminal.types("caro say something\r");
            terminal.shows("q quit");
            terminal.types(key);
            terminal.shows_times("here>", 2);
            terminal.types("\x1b[A");
            terminal.shows("here> echo from the keys");
            terminal.types("\x1b[A");
            terminal.shows("here> caro say something");
            assert!(
                std::fs::read_dir(std::env::temp_dir())
                    .unwrap()
                    .flatten()
                    // opening a pipe of another program would block
                    .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_file()))
                    .all(|entry| { std::fs::read_to_string(entry.path()).unwrap_or_default() != "echo from the keys" })
            );
        }
    }
}

/// nushell cannot evaluate generated text, so its configuration saves the script into a folder that nushell loads; the
/// commands run in bash.
#[test]
fn in_nushell_the_key_puts_a_bash_command_into_the_line() {
    if !have("nu") {
        println!("skipped: no nu is here");
        return;
    }
    let machine = Machine::new();
    let bin = machine.path("bin");
    std::fs::create_dir_all(&bin).unwrap();
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_caro"), bin.join("caro")).unwrap();
    let config = machine.path("home/.config/nushell/config.nu");
    std::fs::create_dir_all(config.parent().unwrap()).unwrap();
    let own = format!(
        "$env.config.show_banner = false\n$env.PATH = ($env.PATH | prepend '{}')\n$env.PROMPT_COMMAND = {{|| 'here' }}\n\
         $env.PROMPT_COMMAND_RIGHT = ''\n",
        bin.display()
    );
    std::fs::write(&config, &own).unwrap();
    for _ in 0..2 {
        let installed = machine.run(&["init", "nu", "--install", "--yes"]);
        assert_eq!(installed.code, Some(0), "{installed:#?}");
    }
    assert_eq!(std::fs::read_to_string(&config).unwrap().matches(">>> caro").count(), 1);
    let rules =
        json!([{ "match": "largest", "reply": "echo changed" }, { "reply": "echo \"it's $((6*7))\" > answer.txt" }]);
    let mut terminal = Terminal::start_program("nu", &machine, rules, &[]);
    terminal.shows("here>");
    terminal.types("six times seven");
    terminal.shows("seven");
    terminal.types(ALT_E);
    terminal.shows("> ^bash -c r#'echo \"it's $((6*7))\" > answer.txt'#");
    assert!(!machine.path("work/answer.txt").exists(), "ran without Enter");
    terminal.types(ALT_I);
    terminal.shows("arguments to the standard output");
    terminal.types("\r");
    wait_for_file(&machine.path("work/answer.txt"), "it's 42\n", &terminal);
    // a comment after the command requests a change there too
    terminal.types("\x1b[A # the largest first");
    terminal.shows("largest first");
    terminal.types(ALT_E);
    terminal.shows("> ^bash -c r#'echo changed'#");
    let gone = machine.run(&["init", "nu", "--uninstall", "--yes"]);
    assert_eq!((gone.code, std::fs::read_to_string(&config).unwrap()), (Some(0), own), "{gone:#?}");
}

#[test]
fn unsupported_options_of_nushell_and_powershell_are_refused() {
    let machine = Machine::new();
    for shell in ["nu", "pwsh"] {
        machine.run(&["init", shell, "--fix"]).fails(2, &["no key that repairs"]);
    }
    machine.run(&["init", "nu", "--history"]).fails(2, &["takes no line"]);
    let script = machine.run(&["init", "pwsh", "--key", "f2"]);
    assert!(script.out.contains("-Chord 'F2'") && script.out.contains("caro init pwsh --key f2"), "{script:#?}");
    assert_eq!(machine.run(&["init", "pwsh", "--install", "--yes"]).code, Some(0));
    let profile = machine.path("home/.config/powershell/Microsoft.PowerShell_profile.ps1");
    assert!(std::fs::read_to_string(profile).unwrap().contains("caro init pwsh | Out-String | Invoke-Expression"));
}

#[test]
fn words_that_begin_with_init_are_a_request() {
    let machine = Machine::new();
    let ran = machine.ask(json!([{ "reply": "git init" }]), &["init", "a", "git", "repository"]);
    assert_eq!(ran.out, "git init\n", "{ran:#?}");
    let other = machine.run(&["init", "cmd"]);
    assert!(other.code == Some(2) && other.err.contains("bash, zsh, fish, nu, pwsh"), "{other:#?}");
}
