//! `caro config set`, `unset`, `edit`: what is changed in a file, and what is not.

use crate::machine::{Machine, Ran};
use std::path::Path;

const FILE: &str = "# mine\ntimeout = 9   # slow\n\n[serve]\nport = 9000\n";

fn text(file: &Path) -> String {
    std::fs::read_to_string(file).unwrap()
}

#[test]
fn a_value_is_set_in_its_place_with_everything_around_it() {
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
fn a_file_that_is_not_there_is_made_for_its_owner_alone() {
    let machine = Machine::new();
    assert_eq!(machine.run(&["config", "set", "memory_url", "redis://:hunter2@host"]).code, Some(0));
    let told = machine.run(&["config", "set", "memory_url", "redis://:hunter2@host"]).err;
    assert!(!told.contains("hunter2"), "{told}");
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
fn what_does_not_fit_is_refused_and_the_file_stays() {
    let machine = Machine::new();
    machine.write("config.toml", FILE);
    for (key, value, said) in [
        ("timeout", "soon", "`timeout` must be seconds"),
        ("refine", "often", "must be one of never, evidence, always"),
        ("serve.port", "99999", "serve.port"),
        ("model", "qwen2.5-codr-1.5b", "qwen2.5-coder-1.5b"),
        ("adapter", "nosuch", "nosuch"),
    ] {
        machine.run(&["config", "set", key, value]).fails(2, &[said]);
    }
    let slip = machine.run(&["config", "set", "timout", "5"]);
    assert!(slip.code == Some(2) && slip.err.contains("'timeout'"), "{slip:#?}");
    assert_eq!(text(&machine.path("config.toml")), FILE);
    machine.write("config.toml", "timeout = 5\nshell = = \n");
    machine.run(&["config", "set", "timeout", "6"]).fails(2, &["config.toml:2", "`caro config edit` opens it"]);
    assert_eq!(text(&machine.path("config.toml")), "timeout = 5\nshell = = \n");
}

#[test]
fn a_projects_file_takes_what_a_project_may_say() {
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
fn what_has_more_to_say_is_told() {
    let machine = Machine::new();
    let ran = Ran::of(machine.caro(&["config", "set", "timeout", "5"]).env("CARO_TIMEOUT", "7").output().unwrap());
    assert!(ran.code == Some(0) && ran.err.contains("CARO_TIMEOUT has more to say here: timeout = 7"), "{ran:#?}");
    let ran = machine.run(&["config", "unset", "timeout"]);
    assert!(ran.err.contains("timeout = 60 now (default)"), "{ran:#?}");
}

#[cfg(unix)]
#[test]
fn a_link_to_a_file_of_settings_stays_one() {
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
fn an_editor_works_on_a_copy_until_that_can_be_read() {
    use crate::pty::Terminal;
    use std::os::unix::fs::PermissionsExt;
    let machine = Machine::new();
    machine.write("config.toml", FILE);
    // spoils it first, and mends it the second time
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
