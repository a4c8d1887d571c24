//! What stands in a file is lost: overwritten where something was to be added to it, or moved over before it was moved
//! away, or kept when it was changed already; and what is added is glued to its last line.

use super::CheckContext;
use super::edit::{Edits, warning};
use super::words::Words;
use caro_shell::parse::Redirect;
use caro_shell::{Finding, Invocation};
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

pub(super) fn check(it: &CheckContext) -> Vec<Finding> {
    let words = Words::of(it.request);
    swapped(it)
        .or_else(|| too_late(it, &words))
        .or_else(|| replaced(it, &words))
        .or_else(|| glued(it, &words))
        .into_iter()
        .collect()
}

/// `mv a b && mv b a`: after the first, b is gone.
fn swapped(it: &CheckContext) -> Option<Finding> {
    let moves: Vec<(&str, &str, &Invocation)> = it.script.commands.iter().filter_map(pair).collect();
    let [(a, b, first), (c, d, second)] = moves[..] else { return None };
    let words = || first.operands().chain(second.operands());
    // there and back again loses nothing, and of `a || b` only one is done
    let lost = it.cwd.is_none_or(|cwd| cwd.join(b).is_file()) && it.script.commands.len() == 2;
    if (a, b) != (d, c) || !lost || it.script.text.contains("||") || words().any(|w| w.glob || w.value.is_none()) {
        return None;
    }
    let [from, to] = first.operands().collect::<Vec<_>>()[..] else { return None };
    let between = format!("mv {0} {0}.tmp && mv {1} {0} && mv {0}.tmp {1}", from.raw, to.raw);
    let whole = !from.quoted && !to.quoted;
    let program = first.words.first()?;
    let why = format!("this puts {a} in the place of {b}, whose text is lost: one of them needs a third name first");
    Some(warning("moved-over", program, why, whole.then_some(between)))
}

/// `sed -i ... f && cp f f.bak`: what is kept is not the original.
fn too_late(it: &CheckContext, words: &Words) -> Option<Finding> {
    const KEPT: [&str; 8] =
        ["backup", "backups", "back up", "original", "bak", ".bak", "old version", "previous version"];
    let [edit, copy] = it.script.commands.as_slice() else { return None };
    let edits = matches!(edit.name(), Some("sed" | "perl"))
        && edit.args().iter().any(|w| w.text == "-i" || w.text == "--in-place" || w.text == "-pi");
    let [from, to] = copy.operands().collect::<Vec<_>>()[..] else { return None };
    let same = edit.operands().last().filter(|w| w.text == from.text && w.value.is_some())?;
    let kept = copy.name() == Some("cp") && to.text.starts_with(&from.text) && to.text != from.text;
    let (first, second) = (edit.span(), copy.span());
    let between = it.script.text.get(first.end..second.start)?;
    if !edits || !kept || !words.contains_phrase(&KEPT) || !matches!(between.trim(), "&&" | ";") {
        return None;
    }
    let text = &it.script.text;
    let whole = text[..first.start].trim().is_empty() && text[second.end..].trim().is_empty();
    let fix = whole.then(|| format!("{} && {}", &text[second], &text[first]));
    let why = format!("{} is changed before it is copied: the copy is not what it was", same.text);
    Some(warning("kept-too-late", to, why, fix))
}

/// What a `mv` of one file moves, and where to.
fn pair(command: &Invocation) -> Option<(&str, &str, &Invocation)> {
    let [from, to] = command.operands().collect::<Vec<_>>()[..] else { return None };
    (command.name() == Some("mv")).then_some((from.text.as_str(), to.text.as_str(), command))
}

/// What is said where something is put beside what is there.
const ADDS: [&str; 8] =
    ["add", "append", "insert", "prepend", "new first line", "at the top of", "at the end of", "at the beginning of"];

/// `echo x > notes.txt` for "add x to notes.txt".
fn replaced(it: &CheckContext, words: &Words) -> Option<Finding> {
    let cwd = it.cwd.filter(|_| {
        words.contains_phrase(&ADDS) && !words.contains_phrase(&["replace", "overwrite", "instead", "add up"])
    })?;
    let over = |r: &&Redirect| r.writes() && !r.appends() && holds(&cwd.join(&r.target.text));
    it.script.commands.iter().find_map(|command| {
        // who reads another file makes a new one of it
        let says = matches!(command.name(), Some("date" | "echo" | "printf")) && !command.stdin_pipe;
        let redirect = command.redirects.iter().find(over).filter(|r| says && is_added_to(words, &r.target.text))?;
        // `$(cat notes.txt)` is read before the file is emptied
        if command.args().iter().any(|w| w.expands && w.text.contains(&redirect.target.text)) {
            return None;
        }
        let why = format!("this empties {} first, and something was to be added to what is in it", redirect.target.raw);
        // to its end: that is what `>>` does
        let ends = words.contains_phrase(&["append", "at the end of", "add"])
            && !words.contains_phrase(&["top", "first", "beginning"]);
        let alone = it.script.commands.len() == 1 && matches!(command.name(), Some("echo" | "printf"));
        let text = &it.script.text;
        let operator = text.get(..redirect.target.span.start).and_then(|before| before.rfind('>'));
        let fix = operator.filter(|_| ends && alone).map(|at| format!("{}>{}", &text[..at], &text[at..]));
        Some(warning("overwritten", &redirect.target, why, fix))
    })
}

/// True if what is said about the file is that something is added to it, and not that it is written.
fn is_added_to(words: &Words, file: &str) -> bool {
    const OTHER: [&str; 10] = ["change", "create", "git", "make", "put", "save", "set", "store", "update", "write"];
    let list = words.list();
    let name = file.trim_start_matches("./").to_lowercase();
    let Some(at) = list.iter().position(|w| w.trim_start_matches("./") == name) else { return true };
    let verb = list[..at].iter().rev().find(|w| OTHER.contains(&w.as_str()) || ADDS.contains(&w.as_str()));
    verb.is_none_or(|verb| ADDS.contains(&verb.as_str()))
        && !words.contains_phrase(&["to git", "git add", "save it as", "save as", "and save it"])
}

/// `echo x >> notes.txt`, whose last line has no end.
fn glued(it: &CheckContext, words: &Words) -> Option<Finding> {
    // who wants the line continued or ended
    let open = words.contains_phrase(&[
        "newline",
        "line break",
        "last line",
        "same line",
        "to the line",
        "to that line",
        "no newline",
    ]);
    let cwd = it.cwd.filter(|_| !open)?;
    let [command] = it.script.commands.as_slice() else { return None };
    let redirect = command.redirects.iter().find(|r| r.appends() && is_open(&cwd.join(&r.target.text)))?;
    let ([program, text], Some("echo")) = (command.words.as_slice(), command.name()) else { return None };
    if text.text.trim().is_empty() {
        return None;
    }
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
        // opening a pipe waits for somebody at its other end
        let mut file = holds(path).then(|| std::fs::File::open(path).ok()).flatten()?;
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

    #[cfg(target_os = "linux")]
    #[test]
    fn a_pipe_is_not_waited_for() {
        let dir = tempfile::tempdir().unwrap();
        let pipe = dir.path().join("pipe");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let (tell, told) = std::sync::mpsc::channel();
        std::thread::spawn(move || tell.send(is_open(&pipe)));
        assert_eq!(told.recv_timeout(std::time::Duration::from_secs(10)), Ok(false));
    }

    fn found(request: &str, command: &str) -> Option<(String, Option<String>)> {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("todo.txt"), "milk\nbread").unwrap();
        for name in ["log.md", "a.jpg", "b.jpg", ".env"] {
            std::fs::write(dir.path().join(name), "one\n").unwrap();
        }
        findings_in(Some(dir.path()), check, request, command).into_iter().next().map(|f| (f.id, f.fix))
    }

    #[test]
    fn names_are_swapped_by_way_of_a_third() {
        let request = "swap the names of a.jpg and b.jpg";
        let right = "mv a.jpg a.jpg.tmp && mv b.jpg a.jpg && mv a.jpg.tmp b.jpg";
        assert_eq!(found(request, "mv a.jpg b.jpg && mv b.jpg a.jpg"), Some(("moved-over".into(), Some(right.into()))));
        for right in [
            right,
            "mv a.jpg b.jpg && mv c.jpg a.jpg",
            "mv a.jpg b.jpg",
            "mv .env .env.bak && npm test; mv .env.bak .env",
            "mv .env .env.bak && mv .env.bak .env",
            "mv a.jpg b.jpg || mv b.jpg a.jpg",
        ] {
            assert_eq!(found(request, right), None, "{right}");
        }
    }

    #[test]
    fn the_original_is_kept_before_it_is_changed() {
        let fix = |request, command| found(request, command).and_then(|(_, fix)| fix);
        let right = "cp log.md log.md.bak && sed -i 's/one/two/' log.md";
        let request = "change one to two in log.md and keep a .bak of the original";
        assert_eq!(fix(request, "sed -i 's/one/two/' log.md && cp log.md log.md.bak").as_deref(), Some(right));
        assert_eq!(fix(request, right), None);
        assert_eq!(
            fix(
                "change one to two in log.md, then copy it to log.md2",
                "sed -i 's/one/two/' log.md; cp log.md log.md2"
            ),
            None
        );
    }

    #[test]
    fn what_is_added_leaves_what_was_there() {
        let fix = |request, command| found(request, command).map(|(id, fix)| (id, fix.unwrap_or_default()));
        let over = |fix: &str| Some(("overwritten".to_owned(), fix.to_owned()));
        assert_eq!(fix("append two to log.md", "echo two > log.md"), over("echo two >> log.md"));
        assert_eq!(fix("append an arrow to log.md", "echo 'a -> b' >log.md"), over("echo 'a -> b' >>log.md"));
        assert_eq!(fix("insert the date at the top of log.md", "date +%F > log.md"), over(""));
        for (request, right) in [
            ("append two to log.md", "echo two >> log.md"),
            ("insert the date at the top of log.md", "printf '%s\\n%s\\n' \"$(date +%F)\" \"$(cat log.md)\" > log.md"),
            ("set the content of log.md to 1.2 and add it to git", "echo 1.2 > log.md && git add log.md"),
            ("add 3 and 4 and write the sum to log.md", "echo $((3 + 4)) > log.md"),
            ("add 5 days to today and write it to log.md", "date -d '+5 days' +%F > log.md"),
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
        assert_eq!(found("add a newline at the end of todo.txt", "echo '' >> todo.txt"), None);
        assert_eq!(found("append ' world' to the last line of todo.txt", "echo ' world' >> todo.txt"), None);
        for right in [right, "echo eggs >> log.md", "echo eggs >> new.txt", "cat a >> todo.txt"] {
            assert_eq!(found(request, right), None, "{right}");
        }
    }
}
