//! Finds commands that the names of the files here break: a name with a leading dash that a wildcard matches is taken
//! for an option, and a name with blanks that a pipe or a substitution passes on is several names.

use super::super::absent;
use super::edit::{Edits, warning};
use super::{CheckContext, names_in, starting_points};
use caro_base::wildcard::{is_pattern, name_fits};
use caro_shell::{Dialect, Finding, Invocation, Word};
use std::path::Path;

/// Most names that are looked at.
const MAX_NAMES: usize = 2000;
/// Most folders below each other that are looked into.
const MAX_DEPTH: usize = 12;
/// Most files and folders that a `find` is followed through.
const MAX_SEEN: usize = 10_000;

pub(super) fn check(cx: &CheckContext) -> Vec<Finding> {
    let Some(cwd) = cx.cwd else { return Vec::new() };
    let commands = &cx.script.commands;
    if commands.iter().any(|command| absent::changes_folder(command) || command.remote) {
        return Vec::new();
    }
    let of = |(index, command): (usize, &Invocation)| {
        dashed(cx, cwd, command).or_else(|| passed_on(cx, cwd, index)).or_else(|| substituted(cx, cwd, command))
    };
    commands.iter().enumerate().filter_map(of).collect()
}

/// `cat *`, where `*` matches `-rf`.
fn dashed(cx: &CheckContext, cwd: &Path, command: &Invocation) -> Option<Finding> {
    if command.is_builtin(cx.dialect) {
        return None;
    }
    let words = &command.words;
    let operands = words.iter().enumerate().skip(1).take_while(|(_, word)| word.text != "--");
    // the value of a test of `find` is a pattern of its own
    let is_value = |at: usize| command.name() == Some("find") && words[at - 1].text.starts_with('-');
    let mut globs = operands.filter(|(at, word)| is_open(word) && !is_value(*at)).map(|(_, word)| word).peekable();
    globs.peek()?;
    let names: Vec<String> = names_in(cwd, MAX_NAMES).into_iter().filter(|name| name.starts_with('-')).collect();
    let (word, name) = globs.find_map(|word| {
        let pattern = word.text.trim_end_matches('/');
        Some((word, names.iter().find(|name| name_fits(pattern, name))?))
    })?;
    let program = command.name()?;
    let why = format!("`{}` matches `{name}` here, which {program} takes for an option", word.raw);
    let fix = Edits::new(cx.script).insert_before(word, "./").apply();
    Some(warning("name-as-option", word, why, fix))
}

/// True for a pattern of the names in the working directory that may begin with any character.
fn is_open(word: &Word) -> bool {
    word.glob && word.raw.starts_with(['*', '?', '[']) && !word.text.trim_end_matches('/').contains('/')
}

/// `find . -type f | xargs rm`, where a name has a blank.
fn passed_on(cx: &CheckContext, cwd: &Path, index: usize) -> Option<Finding> {
    // these pass lines on as they are
    const FILTERS: [&str; 5] = ["grep", "head", "sort", "tail", "uniq"];
    let commands = &cx.script.commands;
    let xargs = &commands[index];
    let program = xargs.words.first()?;
    let splits = matches!(xargs.name(), Some("xargs" | "gxargs"))
        && [('0', "null"), ('d', "delimiter"), ('I', "replace"), ('i', ""), ('a', "arg-file")]
            .into_iter()
            .all(|(short, long)| !xargs.has_option(Some(short), long));
    if !splits {
        return None;
    }
    let feeder = |index: usize| commands.iter().position(|c| c.feeds.contains(&index));
    let first = feeder(index)?;
    let source = std::iter::successors(Some(first), |at| match commands[*at].name() {
        Some(name) if FILTERS.contains(&name) => feeder(*at),
        _ => None,
    });
    let source = source.last()?;
    let name = listed(cwd, &commands[source])?.into_iter().find(|name| is_torn_by_xargs(name))?;
    let fix = if source == first { null_separated(cx, &commands[source], program) } else { None };
    let why = format!("`{name}` is here, and xargs splits what it reads at blanks and takes quotes away");
    Some(warning("torn-name", program, why, fix))
}

fn is_torn_by_xargs(name: &str) -> bool {
    name.contains(|c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '\\'))
}

/// Separates the listed names by a zero byte.
fn null_separated(cx: &CheckContext, source: &Invocation, xargs: &Word) -> Option<String> {
    let edits = Edits::new(cx.script).insert_after(xargs, " -0");
    match source.name()? {
        "find" => match source.args().iter().find(|word| word.text == "-print") {
            Some(print) => edits.replace(print, "-print0").apply(),
            None => edits.insert_after(source.words.last()?, " -print0").apply(),
        },
        _ => edits.replace_span(&source.words, &format!("printf '%s\\0' {}", globs_of(source)?)).apply(),
    }
}

/// Returns the patterns that match what a plain `ls` lists; `None` if it is given options or other names.
fn globs_of(ls: &Invocation) -> Option<String> {
    let args: Vec<&Word> = ls.args().iter().filter(|word| word.text != "-1").collect();
    if ls.name() != Some("ls") || !args.iter().all(|word| word.glob && !word.text.starts_with('-')) {
        return None;
    }
    let globs: Vec<&str> = args.iter().map(|word| word.raw.as_str()).collect();
    Some(if globs.is_empty() { "*".to_owned() } else { globs.join(" ") })
}

/// `for f in $(ls); do cat $f; done` and `cat $(find . -name '*.txt')`, where a name has a blank.
fn substituted(cx: &CheckContext, cwd: &Path, command: &Invocation) -> Option<Finding> {
    let program = command.words.first()?;
    if cx.dialect == Dialect::Fish || !command.feeds.is_empty() || !matches!(command.name(), Some("ls" | "find")) {
        return None;
    }
    let before = cx.script.text.get(..program.span.start)?.trim_end();
    let before = before.strip_suffix("$(").or_else(|| before.strip_suffix('`'))?;
    // in quotes and in an assignment the text stays one
    if before.ends_with(['"', '=']) {
        return None;
    }
    let variable = loop_variable(before);
    let outer = command.inside.map(|inside| &cx.script.commands[inside.command]);
    if variable.is_none() && outer.is_none_or(|outer| outer.is_builtin(cx.dialect)) {
        return None;
    }
    let name = listed(cwd, command)?.into_iter().find(|name| name.contains(char::is_whitespace))?;
    let fix = variable.and_then(|variable| as_glob(cx, cwd, command, before.len(), variable));
    let why = format!("`{name}` is here, and the shell splits what is put in at blanks");
    Some(warning("torn-name", program, why, fix))
}

/// Returns the variable of a loop whose list begins behind the text: `f` of `for f in`.
fn loop_variable(before: &str) -> Option<&str> {
    let mut words = before.split_whitespace().rev();
    let (last, variable, first) = (words.next()?, words.next()?, words.next()?);
    (last == "in" && first == "for").then_some(variable)
}

/// Replaces `$(ls)`, which begins at `open`, by `*`, and quotes the variable of the loop.
fn as_glob(cx: &CheckContext, cwd: &Path, ls: &Invocation, open: usize, variable: &str) -> Option<String> {
    let text = &cx.script.text;
    let globs = globs_of(ls)?;
    let end = ls.words.last()?.span.end;
    let close = end + text.get(end..)?.find([')', '`'])? + 1;
    if !text[end..close - 1].trim().is_empty() {
        return None;
    }
    let has_dash = globs == "*" && names_in(cwd, MAX_NAMES).iter().any(|name| name.starts_with('-'));
    let globs = if has_dash { "./*".to_owned() } else { globs };
    let uses = |word: &&Word| !word.quoted && [format!("${variable}"), format!("${{{variable}}}")].contains(&word.raw);
    let mut changes: Vec<(std::ops::Range<usize>, String)> = absent::words(cx.script)
        .filter(uses)
        .filter(|word| text.get(word.span.clone()) == Some(word.raw.as_str()))
        .map(|word| (word.span.clone(), format!("\"{}\"", word.raw)))
        .collect();
    changes.push((open..close, globs));
    changes.sort_by_key(|(range, _)| std::cmp::Reverse(range.start));
    let mut fixed = text.clone();
    for (range, new) in changes {
        fixed.replace_range(range, &new);
    }
    Some(fixed)
}

/// Returns the names that an `ls` or a `find` lists; `None` if its words say more than where, which names and which type.
fn listed(cwd: &Path, command: &Invocation) -> Option<Vec<String>> {
    match command.name()? {
        "ls" => {
            let is_plain = |word: &Word| word.text[1..].chars().all(|c| "1artSAuUcv".contains(c));
            let (options, operands): (Vec<&Word>, Vec<&Word>) =
                command.args().iter().partition(|word| word.text.starts_with('-'));
            if !options.iter().all(|word| is_plain(word)) {
                return None;
            }
            let visible = |name: &String| !name.starts_with('.');
            let all: Vec<String> = names_in(cwd, MAX_NAMES).into_iter().filter(visible).collect();
            if operands.is_empty() {
                return Some(all);
            }
            let is_own = |word: &&Word| word.glob && !word.expands && !word.text.contains('/');
            if !operands.iter().all(is_own) {
                return None;
            }
            Some(all.into_iter().filter(|name| operands.iter().any(|word| name_fits(&word.text, name))).collect())
        }
        "find" => found(cwd, command),
        _ => None,
    }
}

/// The simple tests of a `find`.
#[derive(Default)]
struct Tests<'c> {
    /// The letter of `-type`.
    kind: Option<&'c str>,
    /// The patterns of `-name` and `-iname`, all of which have to fit, and whether their case counts.
    names: Vec<(&'c str, bool)>,
    /// The number of `-maxdepth`.
    depth: Option<usize>,
}

fn found(cwd: &Path, find: &Invocation) -> Option<Vec<String>> {
    let starts: Vec<&Word> = starting_points(find).collect();
    let tests = tests_of(&find.args()[starts.len()..])?;
    let start = match starts[..] {
        [] => ".",
        [start] => start.value.as_deref().filter(|path| !is_pattern(path))?,
        _ => return None,
    };
    let (mut names, mut seen) = (Vec::new(), 0);
    let mut open = vec![(start.to_owned(), 1)];
    while let Some((folder, depth)) = open.pop() {
        for entry in std::fs::read_dir(cwd.join(&folder)).into_iter().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let Ok(kind) = entry.file_type() else { continue };
            let path = format!("{}/{name}", folder.trim_end_matches('/'));
            if kind.is_dir() && depth < tests.depth.unwrap_or(MAX_DEPTH) {
                open.push((path.clone(), depth + 1));
            }
            if tests.fit(&name, kind) {
                names.push(path);
            }
            seen += 1;
            if seen >= MAX_SEEN || names.len() >= MAX_NAMES {
                return Some(names);
            }
        }
    }
    names.sort_unstable();
    Some(names)
}

impl Tests<'_> {
    fn fit(&self, name: &str, kind: std::fs::FileType) -> bool {
        let fits = |(pattern, counts_case): &(&str, bool)| match counts_case {
            true => name_fits(pattern, name),
            false => name_fits(&pattern.to_lowercase(), &name.to_lowercase()),
        };
        let is_kind = match self.kind {
            Some("f") => kind.is_file(),
            Some("d") => kind.is_dir(),
            _ => true,
        };
        is_kind && self.names.iter().all(fits)
    }
}

/// Parses the tests of a `find`; `None` if there are others than these.
fn tests_of(words: &[Word]) -> Option<Tests<'_>> {
    let mut tests = Tests::default();
    let mut words = words.iter();
    while let Some(test) = words.next() {
        let mut value = || words.next().and_then(|word| word.value.as_deref());
        match test.text.as_str() {
            "-print" => {}
            "-type" => tests.kind = Some(value().filter(|kind| matches!(*kind, "f" | "d"))?),
            "-name" => tests.names.push((value()?, true)),
            "-iname" => tests.names.push((value()?, false)),
            "-maxdepth" => tests.depth = Some(value()?.parse().ok().filter(|depth| *depth > 0)?),
            _ => return None,
        }
    }
    Some(tests)
}
