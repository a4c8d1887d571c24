//! Repairs names of programs that do not exist.

use super::complaint::Kind;
use super::near::{is_program_name, is_sure};
use super::{Case, Class, Repair, repair};
use caro_host::packages::Lookup;
use caro_shell::{Invocation, Word};

/// Finds the command whose program does not exist, with its word. A program called by its path is left to `path`.
pub(super) fn missing<'c>(case: &'c Case) -> Option<(&'c Invocation, &'c Word)> {
    case.commands().find_map(|command| {
        let word = command.words.first()?;
        let name = word.value.as_deref()?;
        let is_own = case.script.functions.iter().any(|function| function.name == name);
        if name.is_empty() || name.contains('/') || is_own || case.facts.has_program(name) {
            return None;
        }
        let named = |kind| case.all(kind).any(|complaint| complaint.name == name);
        (case.is_silent || named(Kind::NoProgram) || named(Kind::NoFile)).then_some((command, word))
    })
}

/// `cd..`, `ls-a`, `gi tlog`: the blank is missing or one letter off.
pub(super) fn misplaced_blank(case: &Case) -> Option<Repair> {
    let (command, word) = missing(case)?;
    let name = word.value.as_deref()?;
    if is_program_name(name, case.facts.dialect) || sure(case, name).is_some() {
        return None;
    }
    let why = |left: &str| format!("the blank behind `{left}` is missing");
    for (at, _) in name.char_indices().skip(2) {
        let (left, right) = name.split_at(at);
        if !case.facts.has_program(left) {
            continue;
        }
        let is_argument = right.starts_with(['-', '/', '~']) || right == ".." || right.starts_with("../");
        if is_argument || has_verb(case, left, right) {
            return repair(Class::Program, case.edits().replace(word, &format!("{left} {right}")), why(left));
        }
    }
    // `gi tstatus`, `gits tatus`
    let next = command.args().first().filter(|next| !next.quoted)?;
    let joined = format!("{name}{}", next.text);
    let moved = joined.char_indices().skip(2).map(|(at, _)| joined.split_at(at)).find(|(left, right)| {
        case.facts.has_program(left) && left.len().abs_diff(name.len()) == 1 && has_verb(case, left, right)
    });
    let (left, right) = moved?;
    let edits = case.edits().replace(word, left).replace(next, right);
    repair(Class::Program, edits, "the blank stands one letter off")
}

fn has_verb(case: &Case, program: &str, verb: &str) -> bool {
    verb.len() > 1
        && (case.facts.manual)(program, None).is_some_and(|entry| entry.subcommands.iter().any(|s| s == verb))
}

/// `gerp`: the nearest program, a script in the folder, or the package to install.
pub(super) fn unknown(case: &Case) -> Option<Repair> {
    let (command, word) = missing(case)?;
    let name = word.value.as_deref()?;
    if let Some(repair) = script(case, command, word, name) {
        return Some(repair);
    }
    let renamed = |near: &str| {
        repair(
            Class::Program,
            case.edits().replace(word, near),
            format!("there is no `{name}` here, there is `{near}`"),
        )
    };
    if let Some(near) = sure(case, name) {
        return renamed(near);
    }
    // a package with exactly this program is likelier than a program with a similar name
    match (case.facts.package)(name) {
        Lookup::Found(install) => {
            let why = format!("`{name}` is not installed: this brings it, then run `{}` again", case.text());
            return Some(Repair { command: install, why, class: Class::Package });
        }
        Lookup::NotFound | Lookup::NoManager => {
            if let Some(near) = case.facts.nearest_program(name) {
                return renamed(near);
            }
        }
        // it may be a program that is not installed
        Lookup::Unknown => {}
    }
    // `x = 5`, an assignment of other languages
    if let [equals, value] = command.args()
        && equals.text == "="
    {
        let edits = case.edits().replace_span(&command.words, &format!("{name}={}", value.raw));
        return repair(Class::Typing, edits, "a shell has no blanks around `=`");
    }
    None
}

/// Returns the program that was meant for certain.
fn sure<'c>(case: &'c Case, name: &str) -> Option<&'c str> {
    case.facts.nearest_program(name).filter(|near| is_sure(name, near))
}

/// Calls a script of that name, in the folder or near by, by its path.
fn script(case: &Case, command: &Invocation, word: &Word, name: &str) -> Option<Repair> {
    let path = if case.facts.is_file(name) { format!("./{name}") } else { case.facts.elsewhere(name)? };
    if !case.facts.is_file(&path) {
        return None;
    }
    let called = case.quoted(&path);
    let why = format!("`{name}` is not on PATH, it is {path}");
    if super::permission::is_executable(&case.facts.path(&path)) {
        return repair(Class::Program, case.edits().replace(word, &called), why);
    }
    let interpreter = super::permission::interpreter(case, &path)?;
    if !command.via.is_empty() {
        return None;
    }
    repair(Class::Program, case.edits().replace(word, &format!("{interpreter} {called}")), why)
}
