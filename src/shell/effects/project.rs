//! Builds of a project: whose files they follow.

use super::table;
use super::{Kind, Place, canonical, place_of};
use crate::effects::reading::Reading;
use crate::parse::{Invocation, Script, Word};

/// Signs in the value of a variable with which a build may be told another program, or what only the shell knows.
const TELLING: [char; 8] = ['/', '$', '`', ';', '|', '&', '<', '('];

/// True if the files that a build follows lay in the folder before: where the script has fetched, unpacked or written some
/// itself, or has gone to a folder for temporary files, what is built is whatever came.
pub(super) fn is_own(script: &Script, index: usize) -> bool {
    let command = &script.commands[index];
    let before = || script.commands[..index].iter();
    !command.assignments.iter().any(|a| a.value.text.contains(TELLING))
        && !before().any(|c| brings(script, c) || is_left(c))
        && !script.redirects.iter().any(|r| r.writes() && place_of(&r.target.text) != Place::Sink)
}

/// Where package managers put the programs of a project.
const INSTALLED: [&str; 5] = ["node_modules/.bin/", "vendor/bin/", ".venv/bin/", "venv/bin/", "env/bin/"];

/// True for a program that a package manager put into the project: `node_modules/.bin/eslint`.
pub(super) fn is_installed(program: &Word) -> bool {
    let path = program.value.as_deref().unwrap_or_default();
    let inside = path.strip_prefix("./").unwrap_or(path);
    INSTALLED.iter().any(|folder| inside.strip_prefix(folder).is_some_and(|name| !name.contains('/')))
}

/// True for a program that lies where projects keep theirs: `./gradlew`, `bin/rails`, and what is installed in it.
pub(super) fn is_tool(program: &Word) -> bool {
    let path = program.value.as_deref().unwrap_or_default();
    let own = path.strip_prefix("./").unwrap_or_default();
    let name = path.strip_prefix("bin/").or_else(|| own.strip_prefix("bin/")).unwrap_or(own);
    is_installed(program) || !name.is_empty() && !name.contains('/')
}

/// True for a command that may put files here.
fn brings(script: &Script, command: &Invocation) -> bool {
    let writes = |kind: Option<Kind>| matches!(kind, Some(Kind::Overwrite | Kind::Append | Kind::Move));
    if command.redirects.iter().any(|r| r.writes() && place_of(&r.target.text) != Place::Sink) {
        return true;
    }
    let dialect = script.dialect_of(command);
    let Some(program) = command.key().and_then(|key| table::program(&canonical(&key, dialect), dialect)) else {
        return false;
    };
    let read = Reading::of(command, program);
    let done = program.does(&read);
    done.contains(&Kind::Create) && !program.only_makes(&read)
        || !read.operands.is_empty() && (writes(Some(program.operand(&read))) || writes(program.last(&read)))
        || read.values.iter().any(|v| writes(program.value_of(&v.of, &read)))
}

/// True for a `cd` to where anybody may have put files.
fn is_left(command: &Invocation) -> bool {
    let open = |text: &str| place_of(text) == Place::Temporary || matches!(text, "/tmp" | "/var/tmp");
    matches!(command.name(), Some("cd" | "pushd")) && command.operands().any(|w| open(&w.text))
}
