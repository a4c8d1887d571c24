//! A number was asked for and names are printed; names were asked for and lines are printed.

use super::edit::{Edits, warning};
use super::words::Words;
use super::{CheckContext, only};
use caro_shell::{Finding, Invocation};

pub(super) fn check(it: &CheckContext) -> Vec<Finding> {
    let words = Words::of(it.request);
    if words.has_negation() || words.contains_phrase(&["each", "per", "every", "by", "respectively"]) {
        return Vec::new();
    }
    let found = number(it, &words).or_else(|| contents(it, &words)).or_else(|| names(it, &words));
    found.or_else(|| lines(it, &words)).or_else(|| wrong_field(it, &words)).into_iter().collect()
}

/// True if the request asks for one number: it is there, if only as a 0, whatever is counted.
pub(crate) fn asks_for_number(request: &str) -> bool {
    counted(&Words::of(request)).is_some()
}

/// What follows "how many" at the request's beginning, a few words of it.
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
    let length = BEGINNINGS.iter().filter(|b| words.at(b) == Some(0)).map(|b| b.split(' ').count()).max()?;
    let rest = &words.list()[length..];
    // "count them and print their names" wants both
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

/// What files and the like are called.
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

fn number(it: &CheckContext, words: &Words) -> Option<Finding> {
    let noun = counted(words)?;
    let about = |nouns: &[&str]| noun.iter().any(|w| nouns.contains(&w.as_str()));
    let last = last_of_pipeline(it)?;
    let end = it.script.text.trim_end();
    if end.ends_with([';', '&', ')', '`']) || last.redirects.iter().any(|r| r.writes()) {
        return None;
    }
    let program = last.words.first()?;
    let has = |options: &[&str]| last.args().iter().any(|w| options.contains(&w.text.as_str()));
    let letter = |l: &[char]| {
        last.args().iter().any(|w| w.text.starts_with('-') && !w.text.starts_with("--") && w.text.contains(l))
    };
    let lists = match last.name()? {
        "find" => last.args().iter().all(|w| {
            !w.text.starts_with("-exec") && !w.text.starts_with("-print") && !has(&["-delete", "-ls", "-ok", "-quit"])
        }),
        "ls" => !letter(&['l', 'a', 's', 'R']) && !last.args().iter().any(|w| w.text.starts_with("--")),
        "grep" => letter(&['l', 'L']),
        _ => return None,
    };
    if about(&FILES) && !words.contains_phrase(&["lines"]) && lists {
        let fix = format!("{end} | wc -l");
        return Some(warning("count-asked", program, "a number is asked for, and this prints names", Some(fix)));
    }
    let one_input = last.operands().count() <= 2 && !last.args().iter().any(|w| w.glob && !w.quoted);
    let plain = last.name() == Some("grep")
        && !letter(&['c', 'l', 'L', 'o', 'q', 'r', 'R', 'e', 'f', 'A', 'B', 'C', 'n'])
        && !last.args().iter().any(|w| w.text.starts_with("--"))
        && last.via.is_empty();
    let fix = Edits::new(it.script).after(program, " -c").done();
    (about(&["lines", "line"]) && plain && one_input)
        .then(|| warning("count-asked", program, "a number is asked for, and this prints the lines", fix))
}

/// `find ... -exec wc -l {} +` for "count the text files".
fn contents(it: &CheckContext, words: &Words) -> Option<Finding> {
    let noun = counted(words)?;
    // words, characters and bytes are no count of files already
    const INSIDE: [&str; 9] = ["line", "lines", "row", "rows", "record", "records", "word", "entries", "character"];
    if !noun.iter().any(|w| FILES.contains(&w.as_str())) || words.contains_phrase(&INSIDE) {
        return None;
    }
    let search = super::find(it.script).filter(|c| c.inside.is_none())?;
    let counter = it.script.commands.iter().find(|c| c.name() == Some("wc") && c.via == ["find"])?;
    let (start, exec) = (search.words.first()?, search.words.iter().find(|w| w.text == "-exec")?);
    let fix = it.script.text.get(start.span.start..exec.span.start).map(|text| format!("{} | wc -l", text.trim_end()));
    Some(warning(
        "count-asked",
        counter.words.first()?,
        "files are to be counted, and this counts what is in them",
        fix,
    ))
}

/// The command whose output is seen, if the script is one pipeline.
fn last_of_pipeline<'a>(it: &CheckContext<'a>) -> Option<&'a Invocation> {
    let commands = &it.script.commands;
    match commands.as_slice() {
        [one] if one.inside.is_none() => Some(one),
        _ => {
            let stages = commands.iter().filter(|c| c.inside.is_none()).count();
            let last = commands.iter().rfind(|c| c.inside.is_none())?;
            let stage = last.pipe?;
            let whole = commands
                .iter()
                .filter(|c| c.inside.is_none())
                .all(|c| c.pipe.is_some_and(|p| p.pipeline == stage.pipeline));
            // what xargs and -exec run prints too
            let plain = commands.iter().all(|c| c.inside.is_none());
            (whole && plain && stages == stage.length).then_some(last)
        }
    }
}

fn names(it: &CheckContext, words: &Words) -> Option<Finding> {
    const SAID: [&str; 13] = [
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
    if !words.contains_phrase(&SAID) || words.contains_phrase(&LINES) {
        return None;
    }
    let greps = it.script.commands.iter().filter(|c| c.name() == Some("grep"));
    let grep = only(greps)?;
    let told = grep.args().iter().any(|w| {
        w.text.starts_with('-')
            && !w.text.starts_with("--")
            && w.text.contains(['l', 'L', 'c', 'o', 'q', 'n', 'h', 'H', 'A', 'B', 'C', 'e', 'f', 'v', 'm'])
            || w.text.starts_with("--")
                && !w.text.starts_with("--include")
                && !w.text.starts_with("--exclude")
                && w.text != "--"
    });
    let wrapped = grep.inside.is_some();
    let last = grep.feeds.is_empty() && (wrapped || !grep.stdin_pipe) && !grep.stdout_pipe;
    let others = it.script.commands.iter().all(|c| matches!(c.name(), Some("grep" | "find" | "xargs")));
    let program = grep.words.first()?;
    let fix = Edits::new(it.script).after(program, " -l").done();
    (!told && last && others).then(|| {
        warning("names-asked", program, "names of files are asked for, and this prints the lines: grep -l", fix)
    })
}

/// `grep -r x . | awk -F: '{print $2}'` for "only their names": those are in the first field, and `grep -l` has them alone.
fn wrong_field(it: &CheckContext, words: &Words) -> Option<Finding> {
    const SAID: [&str; 9] = [
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
    let (grep, rest) = it.script.commands.split_first()?;
    let (field, after) = rest.split_first()?;
    let named = grep.name() == Some("grep") && grep.has_option(Some('r'), "recursive") && words.contains_phrase(&SAID);
    let content = field.name() == Some("awk") && field.args().iter().any(|w| w.text == "{print $2}")
        || field.name() == Some("cut") && field.args().iter().any(|w| matches!(w.text.as_str(), "-f2" | "-f2-"));
    let sorted = after.iter().all(|c| matches!(c.name(), Some("sort" | "uniq")));
    let (program, last) = (grep.words.first()?, grep.words.last()?);
    let whole = it.script.text.get(program.span.end..last.span.end)?;
    let fix = Some(format!("grep -l{whole}"));
    (named && content && sorted)
        .then(|| warning("names-asked", program, "names of files are asked for, and this prints what is in them", fix))
}

/// `grep -l` for "show the matching lines".
fn lines(it: &CheckContext, words: &Words) -> Option<Finding> {
    const VERBS: [&str; 6] = ["show", "print", "display", "list", "output", "see"];
    const BETWEEN: [&str; 5] = ["the", "all", "only", "matching", "matched"];
    let list = words.list();
    let asked = list.iter().enumerate().any(|(i, w)| {
        let verb = list[..i].iter().rposition(|w| !BETWEEN.contains(&w.as_str()));
        w == "lines" && verb.is_some_and(|at| VERBS.contains(&list[at].as_str()))
    });
    let mut greps = it.script.commands.iter().filter(|c| c.name() == Some("grep"));
    let grep = greps
        .next()
        .filter(|_| greps.next().is_none() && asked && !words.contains_phrase(&["file names only", "number of"]))?;
    let flag = super::edit::cluster_with(grep.args(), 'l').filter(|_| grep.feeds.is_empty())?;
    let fix = Edits::new(it.script).replace(flag, &super::edit::without(&flag.raw, 'l')).done();
    Some(warning("lines-asked", flag, "the lines are asked for, and grep -l prints names only", fix))
}
