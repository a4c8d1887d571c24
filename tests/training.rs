//! Tests that the trainer's prompt is the same as the program's.

use caro::command::{FewShot, History, View, prompt};
use caro::model::Role;
use caro::shell::{Dialect, Target};

/// The targets of `benches/training/data.py`: the name there, the target and the dialect here.
const TARGETS: [(&str, &str, Dialect); 6] = [
    ("linux-gnu", "linux-gnu", Dialect::Bash),
    ("linux-busybox", "linux-busybox", Dialect::Sh),
    ("macos-bsd", "macos-bsd", Dialect::Zsh),
    ("freebsd", "freebsd", Dialect::Sh),
    ("windows", "windows", Dialect::PowerShell),
    ("fish", "linux-gnu", Dialect::Fish),
];

/// The text after `NAME = ` on its line in the trainer's file.
fn assigned<'a>(file: &'a str, name: &str) -> &'a str {
    let line = file.lines().find(|line| line.starts_with(&format!("{name} = "))).unwrap();
    line.split_once(" = ").unwrap().1
}

#[test]
fn the_persona_of_the_trainer_is_that_of_the_program() {
    let file = include_str!("../benches/training/data.py");
    let refusal = assigned(file, "REFUSAL").trim_matches('"');
    let persona = assigned(file, "PERSONA").strip_suffix(" + REFUSAL").unwrap().trim_matches('"');
    for (name, target, dialect) in TARGETS {
        let row = file.lines().find(|line| line.trim().starts_with(&format!("\"{name}\": (\""))).unwrap();
        let mut texts = row.split('"').skip(3).step_by(2);
        let (shell, system) = (texts.next().unwrap(), texts.next().unwrap());
        let expected = persona.replace("{shell}", shell).replace("{system}", system) + refusal;
        let target = Target::named(target).unwrap();
        let prompt = prompt::first("list files", target, dialect, View::Adapted, FewShot::Alike, &History::default());
        // only the persona and the request
        assert_eq!(prompt.messages.len(), 2);
        assert_eq!((prompt.messages[0].role, prompt.messages[1].role), (Role::System, Role::User));
        assert_eq!(prompt.messages[0].text, expected, "{name}");
    }
}
