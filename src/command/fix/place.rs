//! Repairs calls of programs that have to run in a project's folder.

use super::complaint::Kind;
use super::{Case, Class, Repair};

/// The files that mark the root of a project, by program. Source: their manuals.
const MARKS: [(&str, &[&str]); 14] = [
    ("git", &[".git"]),
    ("cargo", &["Cargo.toml"]),
    ("npm", &["package.json"]),
    ("npx", &["package.json"]),
    ("yarn", &["package.json"]),
    ("pnpm", &["package.json"]),
    ("make", &["Makefile", "makefile", "GNUmakefile"]),
    ("go", &["go.mod"]),
    ("docker", &["compose.yaml", "compose.yml", "docker-compose.yml", "docker-compose.yaml"]),
    ("docker-compose", &["compose.yaml", "compose.yml", "docker-compose.yml", "docker-compose.yaml"]),
    ("mvn", &["pom.xml"]),
    ("gradle", &["build.gradle", "build.gradle.kts"]),
    ("terraform", &["main.tf"]),
    ("bundle", &["Gemfile"]),
];

/// Calls the program in the folder of the only project near by.
pub(super) fn project(case: &Case) -> Option<Repair> {
    case.first(Kind::NoProject)?;
    let (program, marks) =
        case.commands().find_map(|command| MARKS.iter().find(|(name, _)| command.name() == Some(name)))?;
    // this folder is a project, so the complaint is about something else
    if marks.iter().any(|mark| case.facts.exists(mark)) {
        return None;
    }
    let folder = case.facts.project(marks)?;
    let command = format!("cd {} && {}", case.quoted(&folder), case.text());
    Some(Repair {
        command,
        why: format!("{program} wants {} here, and it is in {folder}", marks[0]),
        class: Class::Place,
    })
}
