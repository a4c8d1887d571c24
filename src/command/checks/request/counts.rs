//! Finds commands that print names where a number is asked for, or lines where names are, and the other way round.

use super::edit::{Edits, warning};
use super::words::Words;
use super::{CheckContext, only};
use caro_shell::{Finding, Invocation};

pub(super) fn check(cx: &CheckContext) -> Vec<Finding> {
    let words = Words::of(cx.request);
    if words.has_negation() || words.contains_phrase(&["each", "per", "every", "by", "respectively"]) {
        return Vec::new();
    }
    let found = no_number(cx, &words).or_else(|| counts_content(cx, &words)).or_else(|| no_names(cx, &words));
    found.or_else(|| no_lines(cx, &words)).or_else(|| wrong_field(cx, &words)).into_iter().collect()
}

/// True if the request asks for a single number, so that some output is certain, even if it is a 0.
pub(crate) fn asks_for_number(request: &str) -> bool {
    counted(&Words::of(request)).is_some()
}

/// Returns up to five words after "how many" or a similar phrase at the beginning of the request.
fn counted(words: &Words) -> Option<&[String]> {
    const BEGINNINGS: [&str; 12] = [
        "how many",
        "count how many",
        "count",
        "number of",
        "tell me how many",
        "what is the number of",
        "print the number of",
        "show the number of",
        "give me the number of",
        "find how many",
        "find out how many",
        "find the number of",
    ];
    let length = BEGINNINGS.iter().filter(|b| words.position_of(b) == Some(0)).map(|b| b.split(' ').count()).max()?;
    let rest = &words.list()[length..];
    // "count them and print their names" asks for both
    const BOTH: [&str; 12] = [
        "and list",
        "and print",
        "and show",
        "list",
        "names",
        "which",
        "total size",
        "bytes",
        "characters",
        "words",
        "times",
        "occurrences",
    ];
    (!words.contains_phrase(&BOTH)).then(|| &rest[..rest.len().min(5)])
}

/// Words for files and folders.
const FILES: [&str; 17] = [
    "file",
    "files",
    "folders",
    "directories",
    "subfolders",
    "subdirectories",
    "symlinks",
    "links",
    "entries",
    "items",
    "images",
    "pictures",
    "photos",
    "videos",
    "logs",
    "documents",
    "scripts",
];

/// `find ...` for "how many files", `grep ...` for "how many lines".
fn no_number(cx: &CheckContext, words: &Words) -> Option<Finding> {
    let noun = counted(words)?;
    let about = |nouns: &[&str]| noun.iter().any(|w| nouns.contains(&w.as_str()));
    let last = last_of_pipeline(cx)?;
    let end = cx.script.text.trim_end();
    if end.ends_with([';', '&', ')', '`']) || last.redirects.iter().any(|r| r.writes()) {
        return None;
    }
    let program = last.words.first()?;
    let has_any = |options: &[&str]| last.args().iter().any(|w| options.contains(&w.text.as_str()));
    let has_letter = |l: &[char]| {
        last.args().iter().any(|w| w.text.starts_with('-') && !w.text.starts_with("--") && w.text.contains(l))
    };
    let prints_names = match last.name()? {
        "find" => {
            !has_any(&["-delete", "-ls", "-ok", "-quit"])
                && !last.args().iter().any(|w| w.text.starts_with("-exec") || w.text.starts_with("-print"))
        }
        "ls" => !has_letter(&['l', 'a', 's', 'R']) && !last.args().iter().any(|w| w.text.starts_with("--")),
        "grep" => has_letter(&['l', 'L']),
        _ => return None,
    };
    if about(&FILES) && !words.contains_phrase(&["lines"]) && prints_names {
        let fix = format!("{end} | wc -l");
        return Some(warning("count-asked", program, "a number is asked for, and this prints names", Some(fix)));
    }
    let has_one_input = last.operands().count() <= 2 && !last.args().iter().any(|w| w.glob && !w.quoted);
    let prints_lines = last.name() == Some("grep")
        && !has_letter(&['c', 'l', 'L', 'o', 'q', 'r', 'R', 'e', 'f', 'A', 'B', 'C', 'n'])
        && !last.args().iter().any(|w| w.text.starts_with("--"))
        && last.via.is_empty();
    let fix = Edits::new(cx.script).insert_after(program, " -c").apply();
    (about(&["lines", "line"]) && prints_lines && has_one_input)
        .then(|| warning("count-asked", program, "a number is asked for, and this prints the lines", fix))
}

/// `find ... -exec wc -l {} +` for "count the text files".
fn counts_content(cx: &CheckContext, words: &Words) -> Option<Finding> {
    let noun = counted(words)?;
    // the request asks for the content to be counted
    const CONTENT: [&str; 9] = ["line", "lines", "row", "rows", "record", "records", "word", "entries", "character"];
    if !noun.iter().any(|w| FILES.contains(&w.as_str())) || words.contains_phrase(&CONTENT) {
        return None;
    }
    let search = super::single_find(cx.script).filter(|c| c.inside.is_none())?;
    let counter = cx.script.commands.iter().find(|c| c.name() == Some("wc") && c.via == ["find"])?;
    let (start, exec) = (search.words.first()?, search.words.iter().find(|w| w.text == "-exec")?);
    let fix = cx.script.text.get(start.span.start..exec.span.start).map(|text| format!("{} | wc -l", text.trim_end()));
    Some(warning(
        "count-asked",
        counter.words.first()?,
        "files are to be counted, and this counts what is in them",
        fix,
    ))
}

/// Returns the command whose output is seen, if the script is a single pipeline.
fn last_of_pipeline<'a>(cx: &CheckContext<'a>) -> Option<&'a Invocation> {
    let commands = &cx.script.commands;
    match commands.as_slice() {
        [one] if one.inside.is_none() => Some(one),
        _ => {
            let stages = commands.iter().filter(|c| c.inside.is_none()).count();
            let last = commands.iter().rfind(|c| c.inside.is_none())?;
            let stage = last.pipe?;
            let is_whole = commands
                .iter()
                .filter(|c| c.inside.is_none())
                .all(|c| c.pipe.is_some_and(|p| p.pipeline == stage.pipeline));
            // commands run by xargs and -exec print as well
            let is_plain = commands.iter().all(|c| c.inside.is_none());
            (is_whole && is_plain && stages == stage.length).then_some(last)
        }
    }
}

/// `grep x *` for "which files contain x".
fn no_names(cx: &CheckContext, words: &Words) -> Option<Finding> {
    const PHRASES: [&str; 13] = [
        "which files contain",
        "which files mention",
        "which files have",
        "which files use",
        "what files contain",
        "names of files that contain",
        "names of files containing",
        "names of all files that contain",
        "names of the files that contain",
        "names of the files containing",
        "names of all files containing",
        "file names that contain",
        "filenames of files containing",
    ];
    const LINES: [&str; 8] = ["lines", "line", "matches", "matching", "where", "context", "show the", "and the"];
    if !words.contains_phrase(&PHRASES) || words.contains_phrase(&LINES) {
        return None;
    }
    let greps = cx.script.commands.iter().filter(|c| c.name() == Some("grep"));
    let grep = only(greps)?;
    let has_output_option = grep.args().iter().any(|w| {
        w.text.starts_with('-')
            && !w.text.starts_with("--")
            && w.text.contains(['l', 'L', 'c', 'o', 'q', 'n', 'h', 'H', 'A', 'B', 'C', 'e', 'f', 'v', 'm'])
            || w.text.starts_with("--")
                && !w.text.starts_with("--include")
                && !w.text.starts_with("--exclude")
                && w.text != "--"
    });
    let is_wrapped = grep.inside.is_some();
    let is_last = grep.feeds.is_empty() && (is_wrapped || !grep.stdin_pipe) && !grep.stdout_pipe;
    let is_only_search = cx.script.commands.iter().all(|c| matches!(c.name(), Some("grep" | "find" | "xargs")));
    let program = grep.words.first()?;
    let fix = Edits::new(cx.script).insert_after(program, " -l").apply();
    (!has_output_option && is_last && is_only_search).then(|| {
        warning("names-asked", program, "names of files are asked for, and this prints the lines: grep -l", fix)
    })
}

/// `grep -r x . | awk -F: '{print $2}'` for "only their names", which are in the first field, or printed by
/// `grep -l`.
fn wrong_field(cx: &CheckContext, words: &Words) -> Option<Finding> {
    const PHRASES: [&str; 9] = [
        "only their names",
        "just their names",
        "only the names",
        "just the names",
        "names only",
        "only the file names",
        "just the file names",
        "only the filenames",
        "file names only",
    ];
    let (grep, rest) = cx.script.commands.split_first()?;
    let (field, after) = rest.split_first()?;
    let is_asked_for =
        grep.name() == Some("grep") && grep.has_option(Some('r'), "recursive") && words.contains_phrase(&PHRASES);
    let takes_content = field.name() == Some("awk") && field.args().iter().any(|w| w.text == "{print $2}")
        || field.name() == Some("cut") && field.args().iter().any(|w| matches!(w.text.as_str(), "-f2" | "-f2-"));
    let only_sorts = after.iter().all(|c| matches!(c.name(), Some("sort" | "uniq")));
    let (program, last) = (grep.words.first()?, grep.words.last()?);
    let args = cx.script.text.get(program.span.end..last.span.end)?;
    let fix = Some(format!("grep -l{args}"));
    (is_asked_for && takes_content && only_sorts)
        .then(|| warning("names-asked", program, "names of files are asked for, and this prints what is in them", fix))
}

/// `grep -l` for "show the matching lines".
fn no_lines(cx: &CheckContext, words: &Words) -> Option<Finding> {
    const VERBS: [&str; 6] = ["show", "print", "display", "list", "output", "see"];
    const BETWEEN: [&str; 5] = ["the", "all", "only", "matching", "matched"];
    let list = words.list();
    let asks_for_lines = list.iter().enumerate().any(|(i, w)| {
        let verb = list[..i].iter().rposition(|w| !BETWEEN.contains(&w.as_str()));
        w == "lines" && verb.is_some_and(|at| VERBS.contains(&list[at].as_str()))
    });
    if !asks_for_lines || words.contains_phrase(&["file names only", "number of"]) {
        return None;
    }
    let grep = only(cx.script.commands.iter().filter(|c| c.name() == Some("grep")))?;
    if !grep.feeds.is_empty() {
        return None;
    }
    let flag = super::edit::cluster_with(grep.args(), 'l')?;
    let fix = Edits::new(cx.script).replace(flag, &super::edit::without_letter(&flag.raw, 'l')).apply();
    Some(warning("lines-asked", flag, "the lines are asked for, and grep -l prints names only", fix))
}
