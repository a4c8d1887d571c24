//! What the trainer tells the model is what the program tells it.

use caro::command::{FewShot, History, View, prompt};
use caro::model::Role;
use caro::shell::{Dialect, Target};

/// The targets of `benches/training/data.py`, with the shell that each is asked in.
const TARGETS: [(&str, &str, Dialect); 6] = [
    ("linux-gnu", "linux-gnu", Dialect::Bash),
    ("linux-busybox", "linux-busybox", Dialect::Sh),
    ("macos-bsd", "macos-bsd", Dialect::Zsh),
    ("freebsd", "freebsd", Dialect::Sh),
    ("windows", "windows", Dialect::PowerShell),
    ("fish", "linux-gnu", Dialect::Fish),
];

/// The value of `NAME = "..."` in the trainer's file, with what stands behind it on the line.
fn assigned<'a>(file: &'a str, name: &str) -> &'a str {
    let line = file.lines().find(|line| line.starts_with(&format!("{name} = "))).unwrap();
    line.split_once(" = ").unwrap().1
}

#[test]
fn the_persona_of_the_trainer_is_the_programs() {
    let file = include_str!("../benches/training/data.py");
    let refusal = assigned(file, "REFUSAL").trim_matches('"');
    let persona = assigned(file, "PERSONA").strip_suffix(" + REFUSAL").unwrap().trim_matches('"');
    for (name, target, dialect) in TARGETS {
        let row = file.lines().find(|line| line.trim().starts_with(&format!("\"{name}\": (\""))).unwrap();
        let mut texts = row.split('"').skip(3).step_by(2);
        let (shell, system) = (texts.next().unwrap(), texts.next().unwrap());
        let told = persona.replace("{shell}", shell).replace("{system}", system) + refusal;
        let target = Target::named(target).unwrap();
        let prompt = prompt::first("list files", target, dialect, View::Adapted, FewShot::Alike, &History::default());
        // the persona and the request, and nothing between
        assert_eq!(prompt.messages.len(), 2);
        assert_eq!((prompt.messages[0].role, prompt.messages[1].role), (Role::System, Role::User));
        assert_eq!(prompt.messages[0].text, told, "{name}");
    }
}
