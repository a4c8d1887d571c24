//! Decides whether a build runs only the project's own files.

use super::table;
use super::{Kind, Place, canonical, place_of};
use crate::effects::parsed_args::ParsedArgs;
use crate::parse::{Invocation, Script, Word};

/// Characters in the value of a variable that may give a build another program, or that only the shell can expand.
const SUSPICIOUS: [char; 8] = ['/', '$', '`', ';', '|', '&', '<', '('];

/// True if a build uses files that were in the folder before the script. False after the script has fetched, unpacked
/// or written files itself, or has changed to a folder for temporary files.
pub(super) fn is_own(script: &Script, index: usize) -> bool {
    let command = &script.commands[index];
    let before = || script.commands[..index].iter();
    !command.assignments.iter().any(|a| a.value.text.contains(SUSPICIOUS))
        && !before().any(|c| may_write(script, c) || enters_temporary(c))
        && !script.redirects.iter().any(|r| r.writes() && place_of(&r.target.text) != Place::Sink)
}

/// Folders where package managers install the programs of a project.
const INSTALLED: [&str; 5] = ["node_modules/.bin/", "vendor/bin/", ".venv/bin/", "venv/bin/", "env/bin/"];

/// True for a program installed in the project by a package manager: `node_modules/.bin/eslint`.
pub(super) fn is_installed(program: &Word) -> bool {
    let path = program.value.as_deref().unwrap_or_default();
    let inside = path.strip_prefix("./").unwrap_or(path);
    INSTALLED.iter().any(|folder| inside.strip_prefix(folder).is_some_and(|name| !name.contains('/')))
}

/// True for a program in a usual place of a project: `./gradlew`, `bin/rails`, or an installed one.
pub(super) fn is_tool(program: &Word) -> bool {
    let path = program.value.as_deref().unwrap_or_default();
    let own = path.strip_prefix("./").unwrap_or_default();
    let name = path.strip_prefix("bin/").or_else(|| own.strip_prefix("bin/")).unwrap_or(own);
    is_installed(program) || !name.is_empty() && !name.contains('/')
}

/// True for a command that may create files here.
fn may_write(script: &Script, command: &Invocation) -> bool {
    let writes = |kind: Option<Kind>| matches!(kind, Some(Kind::Overwrite | Kind::Append | Kind::Move));
    if command.redirects.iter().any(|r| r.writes() && place_of(&r.target.text) != Place::Sink) {
        return true;
    }
    let dialect = script.dialect_of(command);
    let Some(program) = command.key().and_then(|key| table::program(&canonical(&key, dialect), dialect)) else {
        return false;
    };
    let read = ParsedArgs::parse(command, program);
    let kinds = program.does(&read);
    kinds.contains(&Kind::Create) && !program.only_makes(&read)
        || !read.operands.is_empty() && (writes(Some(program.operand(&read))) || writes(program.last(&read)))
        || read.values.iter().any(|v| writes(program.value_of(&v.of, &read)))
}

/// True for a `cd` to a folder where anyone may create files.
fn enters_temporary(command: &Invocation) -> bool {
    let open = |text: &str| place_of(text) == Place::Temporary || matches!(text, "/tmp" | "/var/tmp");
    matches!(command.name(), Some("cd" | "pushd")) && command.operands().any(|w| open(&w.text))
}
