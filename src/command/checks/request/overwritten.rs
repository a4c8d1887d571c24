//! Finds commands that lose the content of a file: overwritten instead of appended to, replaced by `mv` before it is
//! moved away, or backed up after it was changed; and text that is appended to an unfinished last line.

use super::CheckContext;
use super::edit::{Edits, warning};
use super::words::{Words, is_in};
use caro_shell::parse::Redirect;
use caro_shell::{Finding, Invocation};
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

pub(super) fn check(cx: &CheckContext) -> Option<Finding> {
    let words = Words::of(cx.request);
    swapped(cx)
        .or_else(|| late_backup(cx, &words))
        .or_else(|| overwritten(cx, &words))
        .or_else(|| unfinished_line(cx, &words))
}

/// `mv a b && mv b a`: the first `mv` replaces b.
fn swapped(cx: &CheckContext) -> Option<Finding> {
    let moves: Vec<(&str, &str, &Invocation)> = cx.script.commands.iter().filter_map(move_of).collect();
    let [(a, b, first), (c, d, second)] = moves[..] else { return None };
    let words = || first.operands().chain(second.operands());
    // without a file b nothing is lost; with commands between, the file may be moved back on purpose
    let loses = cx.cwd.is_none_or(|cwd| cwd.join(b).is_file()) && cx.script.commands.len() == 2;
    if (a, b) != (d, c) || !loses || cx.script.text.contains("||") || words().any(|w| w.glob || w.value.is_none()) {
        return None;
    }
    let [from, to] = first.operands().collect::<Vec<_>>()[..] else { return None };
    let fixed = format!("mv {0} {0}.tmp && mv {1} {0} && mv {0}.tmp {1}", from.raw, to.raw);
    let is_fixable = !from.quoted && !to.quoted;
    let program = first.words.first()?;
    let why = format!("this puts {a} in the place of {b}, whose text is lost: one of them needs a third name first");
    Some(warning("moved-over", program, why, is_fixable.then_some(fixed)))
}

/// `sed -i ... f && cp f f.bak`: the backup is not the original.
fn late_backup(cx: &CheckContext, words: &Words) -> Option<Finding> {
    const BACKUP: &str = "backup|backups|back up|original|bak|.bak|old version|previous version";
    let [edit, copy] = cx.script.commands.as_slice() else { return None };
    let edits = matches!(edit.name(), Some("sed" | "perl"))
        && edit.args().iter().any(|w| w.text == "-i" || w.text == "--in-place" || w.text == "-pi");
    let [from, to] = copy.operands().collect::<Vec<_>>()[..] else { return None };
    let edited = edit.operands().last().filter(|w| w.text == from.text && w.value.is_some())?;
    let is_backup = copy.name() == Some("cp") && to.text.starts_with(&from.text) && to.text != from.text;
    let (first, second) = (edit.span(), copy.span());
    let between = cx.script.text.get(first.end..second.start)?;
    if !edits || !is_backup || !words.contains_phrase(BACKUP) || !matches!(between.trim(), "&&" | ";") {
        return None;
    }
    let text = &cx.script.text;
    let is_whole = text[..first.start].trim().is_empty() && text[second.end..].trim().is_empty();
    let fix = is_whole.then(|| format!("{} && {}", &text[second], &text[first]));
    let why = format!("{} is changed before it is copied: the copy is not what it was", edited.text);
    Some(warning("kept-too-late", to, why, fix))
}

/// Returns the source and the target of a `mv` of one file.
fn move_of(command: &Invocation) -> Option<(&str, &str, &Invocation)> {
    let [from, to] = command.operands().collect::<Vec<_>>()[..] else { return None };
    (command.name() == Some("mv")).then_some((from.text.as_str(), to.text.as_str(), command))
}

/// Words for adding to the content of a file.
const ADDS: &str = "add|append|insert|prepend|new first line|at the top of|at the end of|at the beginning of";

/// `echo x > notes.txt` for "add x to notes.txt".
fn overwritten(cx: &CheckContext, words: &Words) -> Option<Finding> {
    if !words.contains_phrase(ADDS) || words.contains_phrase("replace|overwrite|instead|add up") {
        return None;
    }
    let cwd = cx.cwd?;
    let overwrites = |r: &&Redirect| r.writes() && !r.appends() && has_content(&cwd.join(&r.target.text));
    cx.script.commands.iter().find_map(|command| {
        // a command that reads a file may write its whole new content
        if !matches!(command.name(), Some("date" | "echo" | "printf")) || command.stdin_pipe {
            return None;
        }
        let redirect = command.redirects.iter().find(overwrites).filter(|r| is_added_to(words, &r.target.text))?;
        // `$(cat notes.txt)` is read before the file is emptied
        if command.args().iter().any(|w| w.expands && w.text.contains(&redirect.target.text)) {
            return None;
        }
        let why = format!("this empties {} first, and something was to be added to what is in it", redirect.target.raw);
        // `>>` appends to the end
        let is_at_end =
            words.contains_phrase("append|at the end of|add") && !words.contains_phrase("top|first|beginning");
        let is_alone = cx.script.commands.len() == 1 && matches!(command.name(), Some("echo" | "printf"));
        let text = &cx.script.text;
        let fix = if is_at_end && is_alone {
            let operator = text.get(..redirect.target.span.start).and_then(|before| before.rfind('>'));
            operator.map(|at| format!("{}>{}", &text[..at], &text[at..]))
        } else {
            None
        };
        Some(warning("overwritten", &redirect.target, why, fix))
    })
}

/// True if the request says that something is added to the file, and not that it is written.
fn is_added_to(words: &Words, file: &str) -> bool {
    const OTHER: &str = "change create git make put save set store update write";
    let adds = |word: &String| ADDS.split('|').any(|phrase| phrase == word);
    let list = words.list();
    let name = file.trim_start_matches("./").to_lowercase();
    let Some(at) = list.iter().position(|w| w.trim_start_matches("./") == name) else { return true };
    let verb = list[..at].iter().rev().find(|w| is_in(OTHER, w) || adds(w));
    verb.is_none_or(adds) && !words.contains_phrase("to git|git add|save it as|save as|and save it")
}

/// `echo x >> notes.txt`, where the last line of the file has no line break.
fn unfinished_line(cx: &CheckContext, words: &Words) -> Option<Finding> {
    // the request wants the last line to be continued or ended
    let is_about_last_line =
        words.contains_phrase("newline|line break|last line|same line|to the line|to that line|no newline");
    if is_about_last_line {
        return None;
    }
    let cwd = cx.cwd?;
    let [command] = cx.script.commands.as_slice() else { return None };
    let redirect = command.redirects.iter().find(|r| r.appends() && has_unfinished_line(&cwd.join(&r.target.text)))?;
    let ([program, text], Some("echo")) = (command.words.as_slice(), command.name()) else { return None };
    if text.text.trim().is_empty() {
        return None;
    }
    let fix = if text.text.starts_with('-') {
        None
    } else {
        Edits::new(cx.script).replace(program, "printf '\\n%s\\n'").apply()
    };
    let why = format!("the last line of {} has no end: this is put behind it in the same line", redirect.target.raw);
    Some(warning("no-line-end", &redirect.target, why, fix))
}

/// True for a regular file that is not empty.
fn has_content(path: &Path) -> bool {
    path.metadata().is_ok_and(|m| m.is_file() && m.len() > 0)
}

/// True for a file whose last line has no line break.
fn has_unfinished_line(path: &Path) -> bool {
    let last = || {
        // opening a named pipe would block
        if !has_content(path) {
            return None;
        }
        let mut file = std::fs::File::open(path).ok()?;
        file.seek(SeekFrom::End(-1)).ok()?;
        let mut byte = [0];
        file.read_exact(&mut byte).ok()?;
        Some(byte[0])
    };
    last().is_some_and(|byte| byte != b'\n')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(target_os = "linux")]
    #[test]
    fn a_named_pipe_does_not_block() {
        let dir = tempfile::tempdir().unwrap();
        let pipe = dir.path().join("pipe");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let (sender, receiver) = std::sync::mpsc::channel();
        std::thread::spawn(move || sender.send(has_unfinished_line(&pipe)));
        assert_eq!(receiver.recv_timeout(std::time::Duration::from_secs(10)), Ok(false));
    }
}
