//! Tests how `caro config set`, `unset` and `edit` change a file of settings.

use crate::machine::{Machine, Ran};
use std::path::Path;

const FILE: &str = "# mine\ntimeout = 9   # slow\n\n[serve]\nport = 9000\n";

fn text(file: &Path) -> String {
    std::fs::read_to_string(file).unwrap()
}

#[test]
fn set_changes_only_the_value() {
    let machine = Machine::new();
    let file = machine.path("config.toml");
    machine.write("config.toml", FILE);
    let ran = machine.run(&["config", "set", "timeout", "90"]);
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), ""), "{ran:#?}");
    assert_eq!(text(&file), FILE.replace("= 9 ", "= 90 "));
    for (key, value) in [("serve.port", "9001"), ("shell", "fish"), ("rehearse", "false"), ("budget", "2.5")] {
        let ran = machine.run(&["config", "set", key, value]);
        assert_eq!(ran.code, Some(0), "{ran:#?}");
        let got = machine.run(&["config", "get", key]).out;
        assert_eq!(got.trim(), if value == "false" { "off" } else { value });
    }
    assert!(text(&file).starts_with("# mine\ntimeout = 90   # slow\n") && text(&file).ends_with("port = 9001\n"));
    for key in ["timeout", "serve.port", "shell", "rehearse", "budget"] {
        assert_eq!(machine.run(&["config", "unset", key]).code, Some(0));
    }
    assert_eq!(text(&file).trim(), "# mine\n\n[serve]");
    let ran = machine.run(&["config", "unset", "timeout"]);
    assert!(ran.code == Some(0) && ran.err.contains("does not set timeout"), "{ran:#?}");
}

#[test]
fn calls_that_overlap_lose_no_setting() {
    let machine = Machine::new();
    let settings = [("timeout", "90"), ("budget", "2.5"), ("shell", "fish"), ("serve.port", "9001"), ("undo", "off")];
    for _ in 0..3 {
        let _ = std::fs::remove_file(machine.path("config.toml"));
        let calls: Vec<_> =
            settings.iter().map(|(key, value)| machine.caro(&["config", "set", key, value]).spawn().unwrap()).collect();
        for mut call in calls {
            assert!(call.wait().unwrap().success());
        }
        for (key, value) in settings {
            assert_eq!(
                machine.run(&["config", "get", key]).out.trim(),
                value,
                "{}",
                text(&machine.path("config.toml"))
            );
        }
    }
}

#[test]
fn a_new_file_can_only_be_read_by_its_owner() {
    let machine = Machine::new();
    assert_eq!(machine.run(&["config", "set", "memory_url", "redis://:hunter2@host"]).code, Some(0));
    let message = machine.run(&["config", "set", "memory_url", "redis://:hunter2@host"]).err;
    assert!(!message.contains("hunter2"), "{message}");
    assert_eq!(text(&machine.path("config.toml")), "memory_url = \"redis://:hunter2@host\"\n");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = || machine.path("config.toml").metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(), 0o600);
        std::fs::set_permissions(machine.path("config.toml"), std::fs::Permissions::from_mode(0o644)).unwrap();
        machine.run(&["config", "set", "timeout", "5"]);
        assert_eq!(mode(), 0o644);
    }
}

#[test]
fn invalid_values_are_refused_and_the_file_is_unchanged() {
    let machine = Machine::new();
    machine.write("config.toml", FILE);
    for (key, value, error) in [
        ("timeout", "soon", "`timeout` must be seconds"),
        ("refine", "often", "must be one of never, evidence, always"),
        ("serve.port", "99999", "serve.port"),
        ("model", "qwen2.5-codr-1.5b", "qwen2.5-coder-1.5b"),
        ("adapter", "nosuch", "nosuch"),
        ("memory_url", "http://x", "must be redis://"),
        ("memory_url", "redis://", "must be redis://"),
    ] {
        machine.run(&["config", "set", key, value]).fails(2, &[error]);
    }
    let misspelt = machine.run(&["config", "set", "timout", "5"]);
    assert!(misspelt.code == Some(2) && misspelt.err.contains("'timeout'"), "{misspelt:#?}");
    assert_eq!(text(&machine.path("config.toml")), FILE);
    machine.write("config.toml", "timeout = 5\nshell = = \n");
    machine.run(&["config", "set", "timeout", "6"]).fails(2, &["config.toml:2", "`caro config edit` opens it"]);
    assert_eq!(text(&machine.path("config.toml")), "timeout = 5\nshell = = \n");
}

#[test]
fn a_projects_file_takes_only_settings_of_a_project() {
    let machine = Machine::new();
    std::fs::create_dir_all(machine.path("work/.git")).unwrap();
    std::fs::create_dir_all(machine.path("work/deep")).unwrap();
    let run = |args: &[&str]| Ran::of(machine.caro(args).current_dir(machine.path("work/deep")).output().unwrap());
    assert_eq!(run(&["config", "set", "--project", "target", "macos-bsd"]).code, Some(0));
    assert_eq!(text(&machine.path("work/.caro.toml")), "target = \"macos-bsd\"\n");
    let origin = run(&["config", "get", "target", "--origin"]).out;
    assert!(origin.trim().ends_with("work/.caro.toml:1"), "{origin}");
    run(&["config", "set", "--project", "model", "x"])
        .fails(2, &["a project may not set `model`", "without --project"]);
    assert_eq!(run(&["config", "unset", "--project", "target"]).code, Some(0));
    assert_eq!(run(&["config", "get", "target", "--origin"]).out, "default\n");
    assert!(!machine.path("config.toml").exists());
}

#[test]
fn a_value_with_higher_priority_is_reported() {
    let machine = Machine::new();
    let ran = Ran::of(machine.caro(&["config", "set", "timeout", "5"]).env("CARO_TIMEOUT", "7").output().unwrap());
    assert!(ran.code == Some(0) && ran.err.contains("CARO_TIMEOUT has more to say here: timeout = 7"), "{ran:#?}");
    let ran = machine.run(&["config", "unset", "timeout"]);
    assert!(ran.err.contains("timeout = 60 now (default)"), "{ran:#?}");
}

#[cfg(unix)]
#[test]
fn a_linked_file_of_settings_stays_a_link() {
    let machine = Machine::new();
    machine.write("dotfiles.toml", FILE);
    std::os::unix::fs::symlink(machine.path("dotfiles.toml"), machine.path("config.toml")).unwrap();
    assert_eq!(machine.run(&["config", "set", "timeout", "90"]).code, Some(0));
    assert!(machine.path("config.toml").symlink_metadata().unwrap().is_symlink());
    assert!(text(&machine.path("dotfiles.toml")).contains("timeout = 90"));
}

#[test]
fn an_editor_needs_a_terminal() {
    Machine::new().run(&["config", "edit"]).fails(1, &["needs a terminal", "caro config set"]);
}

#[cfg(unix)]
#[test]
fn an_editor_works_on_a_copy_until_it_is_valid() {
    use crate::pty::Terminal;
    use std::os::unix::fs::PermissionsExt;
    let machine = Machine::new();
    machine.write("config.toml", FILE);
    // this editor first writes an invalid value, and the second time a valid one
    machine.write("editor", "#!/bin/sh\nif grep -q soon \"$2\"; then echo 'timeout = 90' > \"$2\"; else echo 'timeout = \"soon\"' > \"$2\"; fi\n");
    std::fs::set_permissions(machine.path("editor"), std::fs::Permissions::from_mode(0o755)).unwrap();
    // an editor may have options of its own
    let editor = format!("EDITOR={} --wait", machine.path("editor").display());
    let start = || {
        let args = [editor.as_str(), env!("CARGO_BIN_EXE_caro"), "config", "edit"];
        Terminal::start_program("/usr/bin/env", &machine, serde_json::json!([]), &args)
    };
    let mut terminal = start();
    terminal.shows("edit it again?");
    assert!(terminal.text().contains("`timeout` must be seconds"), "{}", terminal.text());
    assert_eq!(text(&machine.path("config.toml")), FILE, "nothing is written yet");
    terminal.types("n\n");
    assert_eq!(terminal.ends(), 1);
    assert_eq!(text(&machine.path("config.toml")), FILE);
    let mut terminal = start();
    terminal.shows("edit it again?");
    terminal.types("\n");
    assert_eq!(terminal.ends(), 0);
    assert_eq!(text(&machine.path("config.toml")), "timeout = 90\n");
}

#[cfg(unix)]
#[test]
fn a_setting_that_is_made_while_the_editor_is_open_is_not_lost_and_neither_is_the_edit() {
    use crate::pty::Terminal;
    let machine = Machine::new();
    machine.write("config.toml", FILE);
    let caro = env!("CARGO_BIN_EXE_caro");
    // this editor sets another setting before it saves its text
    machine.write("editor", format!("'{caro}' config set timeout 90; echo 'budget = 7' > \"$1\"\n"));
    let editor = format!("EDITOR=sh {}", machine.path("editor").display());
    let args = [editor.as_str(), caro, "config", "edit"];
    let mut terminal = Terminal::start_program("/usr/bin/env", &machine, serde_json::json!([]), &args);
    assert_eq!(terminal.ends(), 1);
    assert!(text(&machine.path("config.toml")).contains("timeout = 90"));
    let shown = terminal.text().split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(shown.contains("was changed while the editor was open"), "{shown}");
    let (_, kept) = shown.split_once("your text is in ").unwrap();
    let kept = std::path::Path::new(kept.split(';').next().unwrap());
    assert_eq!(text(kept), "budget = 7\n");
    std::fs::remove_dir_all(kept.parent().unwrap()).unwrap();
}
