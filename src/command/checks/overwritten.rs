//! What stands in a file is lost: overwritten where something was to be added to it, or moved over before it was moved
//! away; and what is added is glued to its last line.

use super::Inspected;
use super::edit::{Edits, warning};
use super::words::Words;
use crate::shell::parse::Redirect;
use crate::shell::{Finding, Invocation};
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

pub(super) fn check(it: &Inspected) -> Vec<Finding> {
    let words = Words::of(it.request);
    swapped(it).or_else(|| replaced(it, &words)).or_else(|| glued(it)).into_iter().collect()
}

/// `mv a b && mv b a`: after the first, b is gone.
fn swapped(it: &Inspected) -> Option<Finding> {
    let moves: Vec<(&str, &str, &Invocation)> = it.script.commands.iter().filter_map(pair).collect();
    let [(a, b, first), (c, d, second)] = moves[..] else { return None };
    let words = || first.operands().chain(second.operands());
    if (a, b) != (d, c)
        || words().any(|w| w.glob || w.value.is_none())
        || it.cwd.is_some_and(|cwd| cwd.join(b).is_dir())
    {
        return None;
    }
    let [from, to] = first.operands().collect::<Vec<_>>()[..] else { return None };
    let between = format!("mv {0} {0}.tmp && mv {1} {0} && mv {0}.tmp {1}", from.raw, to.raw);
    let whole = it.script.commands.len() == 2 && !from.quoted && !to.quoted;
    let program = first.words.first()?;
    let why = format!("this puts {a} in the place of {b}, whose text is lost: one of them needs a third name first");
    Some(warning("moved-over", program, why, whole.then_some(between)))
}

/// What a `mv` of one file moves, and where to.
fn pair(command: &Invocation) -> Option<(&str, &str, &Invocation)> {
    let [from, to] = command.operands().collect::<Vec<_>>()[..] else { return None };
    (command.name() == Some("mv")).then_some((from.text.as_str(), to.text.as_str(), command))
}

/// `echo x > notes.txt` for "add x to notes.txt".
fn replaced(it: &Inspected, words: &Words) -> Option<Finding> {
    const ADDS: [&str; 8] = [
        "add",
        "append",
        "insert",
        "prepend",
        "new first line",
        "at the top of",
        "at the end of",
        "at the beginning of",
    ];
    let cwd = it.cwd.filter(|_| words.say(&ADDS) && !words.say(&["replace", "overwrite", "instead", "add up"]))?;
    let over = |r: &&Redirect| r.writes() && !r.appends() && holds(&cwd.join(&r.target.text));
    it.script.commands.iter().find_map(|command| {
        // who reads another file makes a new one of it
        let says = matches!(command.name(), Some("date" | "echo" | "printf")) && !command.stdin_pipe;
        let redirect = command.redirects.iter().find(over).filter(|_| says)?;
        let why = format!("this empties {} first, and something was to be added to what is in it", redirect.target.raw);
        // to its end: that is what `>>` does
        let ends = words.say(&["append", "at the end of", "add"]) && !words.say(&["top", "first", "beginning"]);
        let alone = it.script.commands.len() == 1 && matches!(command.name(), Some("echo" | "printf"));
        let fix = it.script.text.replacen("> ", ">> ", 1);
        Some(warning("overwritten", &redirect.target, why, (ends && alone).then_some(fix)))
    })
}

/// `echo x >> notes.txt`, whose last line has no end.
fn glued(it: &Inspected) -> Option<Finding> {
    let cwd = it.cwd?;
    let [command] = it.script.commands.as_slice() else { return None };
    let redirect = command.redirects.iter().find(|r| r.appends() && is_open(&cwd.join(&r.target.text)))?;
    let ([program, text], Some("echo")) = (command.words.as_slice(), command.name()) else { return None };
    let fix = (!text.text.starts_with('-')).then(|| Edits::new(it.script).replace(program, "printf '\\n%s\\n'").done());
    let why = format!("the last line of {} has no end: this is put behind it in the same line", redirect.target.raw);
    Some(warning("no-line-end", &redirect.target, why, fix.flatten()))
}

/// True for a file with something in it.
fn holds(path: &Path) -> bool {
    path.metadata().is_ok_and(|m| m.is_file() && m.len() > 0)
}

/// True for a file whose last line has no end.
fn is_open(path: &Path) -> bool {
    let last = || {
        let mut file = std::fs::File::open(path).ok().filter(|_| holds(path))?;
        file.seek(SeekFrom::End(-1)).ok()?;
        let mut byte = [0];
        file.read_exact(&mut byte).ok()?;
        Some(byte[0])
    };
    last().is_some_and(|byte| byte != b'\n')
}

#[cfg(test)]
mod tests {
    use super::super::tests::findings_in;
    use super::*;

    fn found(request: &str, command: &str) -> Option<(String, Option<String>)> {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("todo.txt"), "milk\nbread").unwrap();
        std::fs::write(dir.path().join("log.md"), "one\n").unwrap();
        findings_in(Some(dir.path()), check, request, command).into_iter().next().map(|f| (f.id, f.fix))
    }

    #[test]
    fn names_are_swapped_by_way_of_a_third() {
        let request = "swap the names of a.jpg and b.jpg";
        let right = "mv a.jpg a.jpg.tmp && mv b.jpg a.jpg && mv a.jpg.tmp b.jpg";
        assert_eq!(found(request, "mv a.jpg b.jpg && mv b.jpg a.jpg"), Some(("moved-over".into(), Some(right.into()))));
        for right in [right, "mv a.jpg b.jpg && mv c.jpg a.jpg", "mv a.jpg b.jpg"] {
            assert_eq!(found(request, right), None, "{right}");
        }
    }

    #[test]
    fn what_is_added_leaves_what_was_there() {
        let fix = |request, command| found(request, command).map(|(id, fix)| (id, fix.unwrap_or_default()));
        let over = |fix: &str| Some(("overwritten".to_owned(), fix.to_owned()));
        assert_eq!(fix("append two to log.md", "echo two > log.md"), over("echo two >> log.md"));
        assert_eq!(fix("insert the date at the top of log.md", "date +%F > log.md"), over(""));
        for (request, right) in [
            ("append two to log.md", "echo two >> log.md"),
            ("append two to new.md", "echo two > new.md"),
            ("replace what is in log.md by two", "echo two > log.md"),
            ("add up the numbers and write the sum to log.md", "echo $((1 + 2)) > log.md"),
            ("add a title to a.md and save it as log.md", "sed '1i x' a.md > log.md"),
        ] {
            assert_eq!(fix(request, right), None, "{right}");
        }
    }

    #[test]
    fn a_line_is_added_and_not_glued_to_the_last() {
        let request = "add the line eggs at the end of todo.txt";
        let right = "printf '\\n%s\\n' \"eggs\" >> todo.txt";
        assert_eq!(found(request, "echo \"eggs\" >> todo.txt"), Some(("no-line-end".into(), Some(right.into()))));
        for right in [right, "echo eggs >> log.md", "echo eggs >> new.txt", "cat a >> todo.txt"] {
            assert_eq!(found(request, right), None, "{right}");
        }
    }
}
