//! Compares what an answer did with what was to be done. Pure: outputs and changes in, a verdict out.

use super::suite::{Expect, Files, Output, Task};
use caro_exec::Status;
use caro_exec::rehearse::{Change, ChangeKind, Entry};
use regex::Regex;
use std::collections::BTreeMap;
use std::path::Path;

/// The outcome of a run, relative to its fixture.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// Its exit status.
    pub status: Status,
    /// Its standard output.
    pub stdout: String,
    /// The output of the task's `then`.
    pub afterwards: String,
    /// The files that it changed.
    pub changes: Vec<Change>,
}

/// The verdict on an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// It did what was asked.
    Passed,
    /// It printed something else.
    WrongOutput,
    /// It left other files.
    WrongFiles,
    /// It failed, or should have failed and did not.
    WrongExit,
    /// A program or builtin does not exist (exit status 127).
    NotFound,
    /// It did not end in time.
    TimedOut,
    /// It was stopped because it wrote without end.
    Flooded,
    /// A signal ended it.
    Killed,
    /// It is dangerous, and was not run.
    Dangerous,
    /// There was no command.
    NoCommand,
}

/// Judges an outcome. It must match one of the references, and the expectation if there is one.
pub fn verdict(task: &Task, got: &Outcome, references: &[Outcome]) -> Verdict {
    match got.status {
        Status::TimedOut => return Verdict::TimedOut,
        Status::Flooded => return Verdict::Flooded,
        Status::Signaled(_) => return Verdict::Killed,
        Status::Exited(127) => return Verdict::NotFound,
        Status::Exited(_) => {}
    }
    let mut verdicts: Vec<Verdict> = references.iter().map(|want| by_reference(task, got, want)).collect();
    if let Some(expect) = &task.expect {
        let expected = by_expectation(task, got, expect);
        if references.is_empty() || expected != Verdict::Passed {
            verdicts = vec![expected];
        }
    }
    // if none matches, the verdict by the first reference is reported
    verdicts
        .iter()
        .copied()
        .find(|v| *v == Verdict::Passed)
        .or(verdicts.first().copied())
        .unwrap_or(Verdict::WrongOutput)
}

fn by_reference(task: &Task, got: &Outcome, want: &Outcome) -> Verdict {
    if !same_output(task.output, &got.stdout, &want.stdout)
        || normalized_lines(&got.afterwards) != normalized_lines(&want.afterwards)
    {
        return Verdict::WrongOutput;
    }
    if !same_changes(task.files, &got.changes, &want.changes) {
        return Verdict::WrongFiles;
    }
    if got.status.success() != want.status.success() {
        return Verdict::WrongExit;
    }
    Verdict::Passed
}

fn by_expectation(task: &Task, got: &Outcome, expect: &Expect) -> Verdict {
    let fits = |pattern: &String| Regex::new(pattern).is_ok_and(|p| p.is_match(&got.stdout));
    let printed = expect.stdout.as_ref().is_none_or(|want| same_output(task.output, &got.stdout, want));
    if !printed || !expect.regex.iter().all(fits) {
        return Verdict::WrongOutput;
    }
    let named = |kind: ChangeKind, names: &[String]| {
        let mut found: Vec<&Path> =
            got.changes.iter().filter(|c| c.kind == kind && !c.time_only).map(|c| c.path.as_path()).collect();
        let mut wanted: Vec<&Path> = names.iter().map(Path::new).collect();
        found.sort();
        wanted.sort();
        found == wanted
    };
    let kinds = [
        (ChangeKind::Created, &expect.created),
        (ChangeKind::Changed, &expect.changed),
        (ChangeKind::Deleted, &expect.deleted),
    ];
    // with references, an expectation that names no file leaves files to them
    let names_none = kinds.iter().all(|(_, names)| names.is_empty()) && !task.references.is_empty();
    if task.files != Files::Any && !names_none && !kinds.iter().all(|(kind, names)| named(*kind, names)) {
        return Verdict::WrongFiles;
    }
    if got.status.success() == expect.fails {
        return Verdict::WrongExit;
    }
    Verdict::Passed
}

/// The lines of a text without colours, runs of blanks, `./` before words and empty lines at the end.
fn normalized_lines(text: &str) -> Vec<String> {
    let mut lines: Vec<String> = without_escapes(text)
        .lines()
        .map(|line| {
            let words: Vec<&str> =
                line.split_whitespace().map(|w| w.strip_prefix("./").filter(|w| !w.is_empty()).unwrap_or(w)).collect();
            words.join(" ")
        })
        .collect();
    while lines.last().is_some_and(String::is_empty) {
        lines.pop();
    }
    lines
}

/// The text without terminal escapes of the kind `ESC [ ... letter`.
fn without_escapes(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("\u{1b}[") {
        out.push_str(before);
        let end = after.find(|c: char| c.is_ascii_alphabetic()).map_or(after.len(), |at| at + 1);
        rest = &after[end..];
    }
    out.push_str(rest);
    out
}

/// True if the outputs are the same in the given way.
pub fn same_output(how: Output, got: &str, want: &str) -> bool {
    let (mut got, mut want) = (normalized_lines(got), normalized_lines(want));
    match how {
        Output::Any => true,
        Output::Exact => got == want,
        Output::Sorted => {
            got.sort();
            want.sort();
            got == want
        }
        Output::Paths | Output::OrderedPaths => {
            let want: Vec<String> = want.iter().map(|line| line.trim_end_matches('/').to_owned()).collect();
            let Some(mut got) = matched_paths(&got, &want) else { return false };
            let mut want: Vec<&String> = want.iter().collect();
            if how == Output::Paths {
                got.sort();
                want.sort();
            }
            got == want
        }
        Output::Table | Output::OrderedTable => same_table(&cells(&got), &cells(&want), how == Output::OrderedTable),
        Output::Number => {
            let (got, want) = (one_number(&got), one_number(&want));
            got.is_some() && got == want
        }
    }
}

/// Finds the wanted path that each line names: as the whole line, as its end after a blank, or by a base name that is
/// unique. `None` if a line names none. The total and the targets of links that `ls -l` prints are ignored.
fn matched_paths<'w>(got: &[String], want: &'w [String]) -> Option<Vec<&'w String>> {
    let base = |path: &'w str| path.rsplit('/').next().unwrap_or(path);
    let is_unique = |name: &str| want.iter().filter(|w| base(w) == name).count() == 1;
    let ends =
        |line: &str, name: &str| line == name || line.strip_suffix(name).is_some_and(|before| before.ends_with(' '));
    let mut found = Vec::new();
    for line in got.iter().filter(|line| !line.is_empty()) {
        let line = line.split(" -> ").next().unwrap_or(line).trim_end_matches('/');
        if line.strip_prefix("total ").is_some_and(|n| n.chars().all(|c| c.is_ascii_digit() || ".KMGT".contains(c))) {
            continue;
        }
        let whole = want.iter().filter(|w| ends(line, w)).max_by_key(|w| w.len());
        let short = || want.iter().filter(|w| is_unique(base(w)) && ends(line, base(w))).max_by_key(|w| w.len());
        found.push(whole.or_else(short)?);
    }
    Some(found)
}

/// The cells of each line that has any.
fn cells(lines: &[String]) -> Vec<Vec<&str>> {
    lines.iter().map(|line| cells_of(line)).filter(|cells| !cells.is_empty()).collect()
}

fn cells_of(line: &str) -> Vec<&str> {
    let between = |c: char| c.is_whitespace() || matches!(c, ',' | ';' | '|');
    let is_number = |cell: &&str| cell.parse::<f64>().is_ok();
    let mut cells: Vec<&str> = line.split(between).filter(|cell| !cell.is_empty()).collect();
    // `uniq -c` prints the count first
    if cells.first().is_some_and(is_number) && !cells.iter().skip(1).any(is_number) {
        cells.rotate_left(1);
    }
    cells
}

/// True if two tables have the same cells. If one has an additional first line without digits, that is taken for the
/// names of the columns.
fn same_table(got: &[Vec<&str>], want: &[Vec<&str>], in_order: bool) -> bool {
    let same_cell = |(a, b): (&&str, &&str)| a == b || same_number(a, b);
    let same_line = |(a, b): (&Vec<&str>, &Vec<&str>)| a.len() == b.len() && a.iter().zip(b).all(same_cell);
    let same = |got: &[Vec<&str>], want: &[Vec<&str>]| {
        let (mut got, mut want) = (got.to_vec(), want.to_vec());
        if !in_order {
            got.sort();
            want.sort();
        }
        got.len() == want.len() && got.iter().zip(&want).all(same_line)
    };
    let are_names = |line: &Vec<&str>| line.iter().all(|cell| !cell.contains(|c: char| c.is_ascii_digit()));
    match (got, want) {
        ([names, rest @ ..], _) if got.len() == want.len() + 1 && !rest.is_empty() => {
            are_names(names) && same(rest, want)
        }
        (_, [names, rest @ ..]) if want.len() == got.len() + 1 && !rest.is_empty() => {
            are_names(names) && same(got, rest)
        }
        _ => same(got, want),
    }
}

/// True if two numbers are equal; if one of them has a decimal point, to within half a percent, since it may be
/// rounded.
fn same_number(a: &str, b: &str) -> bool {
    let (Ok(x), Ok(y)) = (a.parse::<f64>(), b.parse::<f64>()) else { return false };
    let off = (x - y).abs();
    if a.contains('.') || b.contains('.') { off <= 0.005 * y.abs() } else { off == 0.0 }
}

/// The first number of the only line.
fn one_number(lines: &[String]) -> Option<f64> {
    let [line] = lines else { return None };
    line.split(|c: char| !(c.is_ascii_digit() || c == '.' || c == '-')).find_map(|word| word.parse().ok())
}

/// True if the changes are the same in the given way, in any order.
pub fn same_changes(how: Files, got: &[Change], want: &[Change]) -> bool {
    if how == Files::Any {
        return true;
    }
    let index = |changes: &[Change]| -> BTreeMap<std::path::PathBuf, (ChangeKind, Option<Entry>)> {
        changes
            .iter()
            .filter(|c| how == Files::Times || !c.time_only)
            .map(|c| (c.path.clone(), (c.kind, c.now.clone())))
            .collect()
    };
    let (got, want) = (index(got), index(want));
    let same = |a: &Option<Entry>, b: &Option<Entry>| match (a, b) {
        (None, None) => true,
        (Some(a), Some(b)) => same_entry(how, a, b),
        _ => false,
    };
    got.len() == want.len()
        && got.iter().all(|(path, (kind, now))| want.get(path).is_some_and(|(k, n)| k == kind && same(now, n)))
}

fn same_entry(how: Files, a: &Entry, b: &Entry) -> bool {
    if a.kind != b.kind {
        return false;
    }
    let whole = |e: &Entry| (e.mode, e.user, e.group, e.size, e.target.clone(), e.digest.clone());
    match how {
        Files::Any | Files::Names => true,
        Files::Same => whole(a) == whole(b),
        Files::Times => whole(a) == whole(b) && (a.modified - b.modified).abs() <= 2,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use caro_exec::rehearse::EntryKind;

    #[test]
    fn order_matters_only_in_exact_outputs() {
        assert!(same_output(Output::Exact, "b\na\n", "b\na"));
        assert!(!same_output(Output::Exact, "a\nb\n", "b\na\n"));
        assert!(same_output(Output::Sorted, "a\nb\n", "b\na\n"));
        assert!(!same_output(Output::Sorted, "a\na\nb\n", "b\na\n"), "how often counts");
        assert!(same_output(Output::Any, "x", ""));
    }

    #[test]
    fn colours_and_blanks_do_not_matter() {
        assert!(same_output(Output::Exact, "\u{1b}[31m  3\t./x\u{1b}[0m \n\n", "3 x"));
        assert!(!same_output(Output::Exact, "\n3 x", "3 x"), "an empty line before it does");
        assert!(!same_output(Output::Exact, "", "3"));
    }

    #[test]
    fn paths_are_found_in_their_lines() {
        let want = "./src/a.c\n./b c.txt\n";
        for got in [
            "b c.txt\nsrc/a.c\n",
            "total 8\n-rw-r--r-- 1 me me 3 Jan 1 10:00 ./b c.txt\n-rw-r--r-- 1 me me 3 Jan 1 10:00 src/a.c\n",
            "a.c\nb c.txt\n",
            "12 src/a.c\n4 b c.txt",
        ] {
            assert!(same_output(Output::Paths, got, want), "{got}");
        }
        for got in ["src/a.c\n", "src/a.c\nb c.txt\nother\n", "src/a.c\nsrc/a.c\nb c.txt\n", "xsrc/a.c\nb c.txt\n"] {
            assert!(!same_output(Output::Paths, got, want), "{got}");
        }
        assert!(!same_output(Output::Paths, "x\nx\n", "a/x\nb/x\n"), "a base name that two have says nothing");
        assert!(same_output(Output::OrderedPaths, "b\na\n", "./b\n./a\n"));
        assert!(!same_output(Output::OrderedPaths, "a\nb\n", "./b\n./a\n"));
        assert!(same_output(Output::Paths, "d/\nl -> d\n", "d\nl\n"));
    }

    #[test]
    fn tables_are_compared_by_their_cells() {
        let want = "Ada,36\nBob,41\n";
        for got in [
            "Bob 41\nAda 36\n",
            "     36 Ada\n     41 Bob\n",
            "name,age\nAda,36\nBob,41\n",
            "Ada; 36\nBob\t41\n",
            "Ada | 36.0\nBob | 41.1\n",
        ] {
            assert!(same_output(Output::Table, got, want), "{got}");
        }
        for got in ["Ada,36\n", "Ada,36\nBob,42\n", "Ada,36\nBob,41\nname 1,2\n", "1,2\nAda,36\nBob,41\n", ""] {
            assert!(!same_output(Output::Table, got, want), "{got}");
        }
        assert!(same_output(Output::Table, want, &format!("name,age\n{want}")));
        assert!(!same_output(Output::OrderedTable, "Bob,41\nAda,36\n", want));
        assert!(same_output(Output::OrderedTable, "name age\nAda 36\nBob 41\n", want));
        assert!(same_output(Output::Table, "5012.3", "5012.345") && !same_output(Output::Table, "5012", "5013"));
    }

    #[test]
    fn a_number_stands_alone_on_its_line() {
        assert!(same_output(Output::Number, "12 notes.txt\n", "12\n"));
        assert!(same_output(Output::Number, "total: 12.0", "12"));
        for got in ["13\n", "", "12\n13\n", "twelve", "112"] {
            assert!(!same_output(Output::Number, got, "12"), "{got}");
        }
    }

    fn change(kind: ChangeKind, path: &str, digest: &str, mode: u32) -> Change {
        let entry = Entry {
            kind: EntryKind::File,
            mode,
            user: 0,
            group: 0,
            size: 1,
            modified: 100,
            target: None,
            digest: Some(digest.into()),
        };
        Change {
            kind,
            path: path.into(),
            raw: None,
            now: (kind != ChangeKind::Deleted).then_some(entry),
            time_only: false,
        }
    }

    #[test]
    fn changes_are_compared_by_path() {
        use ChangeKind::{Changed, Created, Deleted};
        let one = [change(Created, "a", "1", 0o644), change(Deleted, "b", "", 0)];
        let other = [change(Deleted, "b", "", 0), change(Created, "a", "1", 0o644)];
        assert!(same_changes(Files::Same, &one, &other));
        for wrong in
            [change(Created, "a", "2", 0o644), change(Created, "a", "1", 0o600), change(Changed, "a", "1", 0o644)]
        {
            assert!(!same_changes(Files::Same, &[wrong, other[0].clone()], &one));
        }
        assert!(same_changes(Files::Names, &[change(Created, "a", "2", 0o600), other[0].clone()], &one));
        assert!(!same_changes(Files::Names, &one[..1], &one));
        assert!(same_changes(Files::Any, &[], &one));
        let mut touched = change(Changed, "t", "1", 0o644);
        touched.time_only = true;
        assert!(same_changes(Files::Same, std::slice::from_ref(&touched), &[]));
        assert!(!same_changes(Files::Times, std::slice::from_ref(&touched), &[]));
        let mut later = touched.clone();
        later.now.as_mut().unwrap().modified += 60;
        assert!(!same_changes(Files::Times, &[touched], &[later]));
    }

    fn outcome(stdout: &str, code: i32) -> Outcome {
        Outcome { status: Status::Exited(code), stdout: stdout.into(), afterwards: String::new(), changes: vec![] }
    }

    fn task(expect: Option<Expect>, references: usize) -> Task {
        Task {
            id: "t".into(),
            request: "r".into(),
            fixture: 0,
            references: vec!["x".into(); references],
            expect,
            output: Output::Exact,
            files: Files::Same,
            then: String::new(),
            cwd: String::new(),
            target: None,
        }
    }

    #[test]
    fn any_reference_will_do_and_every_part_counts() {
        let wants = [outcome("a", 0), outcome("b", 0)];
        let judge = |got: &Outcome| verdict(&task(None, 2), got, &wants);
        assert_eq!(judge(&outcome("b", 0)), Verdict::Passed);
        assert_eq!(judge(&outcome("c", 0)), Verdict::WrongOutput);
        assert_eq!(judge(&outcome("a", 1)), Verdict::WrongExit);
        assert_eq!(judge(&outcome("a", 127)), Verdict::NotFound);
        assert_eq!(judge(&Outcome { status: Status::TimedOut, ..outcome("a", 0) }), Verdict::TimedOut);
        assert_eq!(
            judge(&Outcome { changes: vec![change(ChangeKind::Created, "x", "", 0)], ..outcome("a", 0) }),
            Verdict::WrongFiles
        );
        assert_eq!(judge(&Outcome { afterwards: "y".into(), ..outcome("a", 0) }), Verdict::WrongOutput);
    }

    #[test]
    fn an_expectation_stands_alone_or_narrows_the_references() {
        let expect = Expect { regex: vec!["^[0-9]+ files$".into()], created: vec!["n".into()], ..Expect::default() };
        let made = Outcome { changes: vec![change(ChangeKind::Created, "n", "", 0)], ..outcome("3 files", 0) };
        assert_eq!(verdict(&task(Some(expect.clone()), 0), &made, &[]), Verdict::Passed);
        assert_eq!(verdict(&task(Some(expect.clone()), 0), &outcome("3 files", 0), &[]), Verdict::WrongFiles);
        assert_eq!(
            verdict(&task(Some(expect), 0), &Outcome { stdout: "no".into(), ..made }, &[]),
            Verdict::WrongOutput
        );
        let fails = Expect { fails: true, ..Expect::default() };
        assert_eq!(verdict(&task(Some(fails.clone()), 0), &outcome("", 1), &[]), Verdict::Passed);
        assert_eq!(verdict(&task(Some(fails), 0), &outcome("", 0), &[]), Verdict::WrongExit);
        let narrow = Expect { regex: vec!["a".into()], ..Expect::default() };
        assert_eq!(verdict(&task(Some(narrow.clone()), 1), &outcome("a", 0), &[outcome("a", 0)]), Verdict::Passed);
        assert_eq!(verdict(&task(Some(narrow), 1), &outcome("b", 0), &[outcome("b", 0)]), Verdict::WrongOutput);
    }
}
