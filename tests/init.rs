//! caro in the prompt: the scripts of `caro init`, in the real shells on a real terminal.

use crate::machine::{AMPLE, Machine, PATH, Ran, have};
use crate::pty::Terminal;
use serde_json::{Value, json};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

/// A shell with a person at it.
struct Shell {
    name: &'static str,
    /// Its own file, under the home folder.
    rc: &'static str,
    /// What makes the prompt one that a test can wait for.
    prompt: &'static str,
    /// What loads the script.
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

/// The shells that are here; the others are named.
fn shells() -> impl Iterator<Item = &'static Shell> {
    SHELLS.iter().filter(|shell| {
        let is_here = have(shell.name);
        if !is_here {
            println!("skipped: no {} is here", shell.name);
        }
        is_here
    })
}

impl Shell {
    /// The shell at its first prompt, with `more` in its own file before the script is loaded.
    fn open(&self, machine: &Machine, rules: Value, more: &str) -> Terminal {
        let bin = machine.path("bin");
        std::fs::create_dir_all(&bin).unwrap();
        let _ = std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_caro"), bin.join("caro"));
        let rc = machine.path("home").join(self.rc);
        std::fs::create_dir_all(rc.parent().unwrap()).unwrap();
        let path = match self.name {
            "fish" => format!("set -gx PATH {} $PATH", bin.display()),
            _ => format!("PATH={}:$PATH", bin.display()),
        };
        std::fs::write(&rc, format!("{path}\n{}\n{more}\n{}\n", self.prompt, self.load)).unwrap();
        let terminal = Terminal::start_program(self.name, machine, rules, self.args);
        terminal.shows("here>");
        terminal
    }
}

/// Waits for a file with this text.
#[track_caller]
fn comes(file: &Path, text: &str, terminal: &Terminal) {
    let start = Instant::now();
    while std::fs::read_to_string(file).unwrap_or_default() != text {
        assert!(start.elapsed() < AMPLE, "{} has no {text:?}:\n{}", file.display(), terminal.text());
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
        assert!(!machine.path("work/answer.txt").exists(), "{}: run unasked", shell.name);
        terminal.types("\r");
        comes(&machine.path("work/answer.txt"), "6 times 7 is 42\n", &terminal);
        // the key is there again, and the command is what the shell remembers
        terminal.types("\x1b[A");
        terminal.shows("> answer.txt");
        assert!(!terminal.text().contains("zeige größe, 6 × 7 日本: "), "{}", terminal.text());
    }
}

#[test]
fn a_comment_behind_a_command_has_it_changed() {
    for shell in shells() {
        let machine = Machine::new();
        // the words alone are the request
        let rules = json!([{ "match": "echo all", "reply": "echo the whole line" }, { "reply": "echo others" }]);
        let mut terminal = shell.open(&machine, rules, "");
        terminal.types("echo all # the largest first");
        terminal.shows("largest first");
        terminal.types(ALT_E);
        terminal.shows("here> echo others");
    }
}

#[test]
fn esc_and_ctrl_c_put_back_what_was_typed() {
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
            // the shell has the terminal again once it draws its line anew
            let start = Instant::now();
            while terminal.text().contains("thinking") || !terminal.text().trim_end().ends_with(&format!("{n}.txt")) {
                assert!(start.elapsed() < AMPLE, "{} {n}: {}", shell.name, terminal.text());
                std::thread::sleep(Duration::from_millis(10));
            }
            terminal.types("\r");
            comes(&machine.path("work").join(format!("{n}.txt")), "back\n", &terminal);
        }
    }
}

#[test]
fn a_refusal_is_told_and_leaves_the_line() {
    for shell in shells() {
        let machine = Machine::new();
        let mut terminal = shell.open(&machine, json!([{ "reply": "# not a shell task" }]), "");
        terminal.types("echo hello there");
        terminal.shows("there");
        terminal.types(ALT_E);
        terminal.shows("hint:");
        terminal.types(" > said.txt\r");
        comes(&machine.path("work/said.txt"), "hello there\n", &terminal);
    }
}

#[test]
fn danger_is_told_before_anything_is_run() {
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
fn the_other_key_explains_and_leaves_the_line() {
    for shell in shells() {
        let machine = Machine::new();
        let mut terminal = shell.open(&machine, json!([]), "");
        terminal.types("touch -c seen.txt");
        terminal.shows("seen.txt");
        terminal.types(ALT_I);
        terminal.shows("file timestamps");
        terminal.types("; echo left > left.txt\r");
        comes(&machine.path("work/left.txt"), "left\n", &terminal);
    }
}

#[test]
fn options_of_a_shell_and_its_vi_keys_change_nothing() {
    for (name, more) in [
        ("bash", "set -eu; set -o vi"),
        ("zsh", "setopt ksharrays shwordsplit nounset; bindkey -v"),
        ("fish", "fish_vi_key_bindings"),
    ] {
        let Some(shell) = shells().find(|shell| shell.name == name) else { continue };
        let machine = Machine::new();
        let mut terminal = shell.open(&machine, json!([{ "reply": "echo two\\ words > vi.txt" }]), more);
        // an empty line asks nobody
        terminal.types(ALT_E);
        terminal.types("write two words");
        terminal.shows("write two words");
        terminal.types(ALT_E);
        terminal.shows("here> echo two");
        terminal.types("\r");
        comes(&machine.path("work/vi.txt"), "two words\n", &terminal);
    }
}

#[test]
fn each_script_is_sound_to_its_own_shell() {
    let machine = Machine::new();
    for shell in shells() {
        let script = machine.run(&["init", shell.name, "--key", "f12", "--explain-key", "ctrl-g"]);
        assert_eq!(script.code, Some(0), "{script:#?}");
        machine.write("script", &script.out);
        let checked =
            Command::new(shell.name).arg("-n").arg(machine.path("script")).env_clear().env("PATH", PATH).output();
        let checked = Ran::of(checked.unwrap());
        assert_eq!((checked.code, checked.err.as_str()), (Some(0), ""), "{}", shell.name);
    }
    if have("shellcheck") {
        machine.write("script", machine.run(&["init", "bash"]).out);
        let checked = Command::new("shellcheck").args(["-s", "bash"]).arg(machine.path("script")).output();
        let checked = Ran::of(checked.unwrap());
        assert_eq!((checked.code, checked.out.as_str()), (Some(0), ""));
    } else {
        println!("skipped: no shellcheck is here");
    }
}

#[test]
fn the_line_is_written_into_the_shells_own_file_and_taken_out_again() {
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
fn words_that_begin_with_init_are_a_request() {
    let machine = Machine::new();
    let ran = machine.ask(json!([{ "reply": "git init" }]), &["init", "a", "git", "repository"]);
    assert_eq!(ran.out, "git init\n", "{ran:#?}");
    let other = machine.run(&["init", "cmd"]);
    assert!(other.code == Some(2) && other.err.contains("bash, zsh, fish"), "{other:#?}");
}
