//! Reads suites of tasks: TOML files with fixtures and tasks, or JSON Lines with one task each.

use crate::Failure;
use crate::answer::ask;
use caro_base::files::read_text;
use caro_shell::Target;
use regex::Regex;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::Path;

/// Most bytes of a suite.
const MAX_FILE: u64 = 16 << 20;

/// A TOML suite.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    /// Target of tasks that name none.
    target: Option<String>,
    #[serde(default)]
    fixture: BTreeMap<String, Fixture>,
    #[serde(default)]
    task: Vec<TaskText>,
}

/// A file tree to run in.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Fixture {
    /// Text files.
    pub files: BTreeMap<String, String>,
    /// Files with the given number of filler bytes.
    pub sizes: BTreeMap<String, u64>,
    /// Folders; those above files are made anyway.
    pub dirs: Vec<String>,
    /// Symbolic links and their targets.
    pub links: BTreeMap<String, String>,
    /// Permissions in octal. By default files have 644, folders 755.
    pub modes: BTreeMap<String, String>,
    /// Days since the last change; 1 hour if not given.
    pub ages: BTreeMap<String, f64>,
    /// A shell line that makes the rest (archives, repositories). It writes only in the fixture.
    pub setup: String,
}

/// The way in which outputs are compared.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Output {
    /// Lines must be equal, in the same order.
    #[default]
    Exact,
    /// Lines must be equal, in any order.
    Sorted,
    /// Paths must be equal, in any order, whatever precedes them on their lines.
    Paths,
    /// As `Paths`, but in the same order.
    OrderedPaths,
    /// Cells must be equal, whatever separates them; lines in any order, with or without a first line of names.
    Table,
    /// As `Table`, but in the same order.
    OrderedTable,
    /// One line whose first number is the same.
    Number,
    /// Any output.
    Any,
}

/// The way in which changes to files are compared.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Files {
    /// Paths must agree in kind, content, mode, owner and target.
    #[default]
    Same,
    /// As `Same`, and the modification time to within two seconds.
    Times,
    /// Paths must agree in kind only: for archives, whose bytes may differ.
    Names,
    /// Any changes.
    Any,
}

/// An explicit expectation, instead of reference commands or beside them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Expect {
    /// The output.
    pub stdout: Option<String>,
    /// Patterns that the output must match.
    pub regex: Vec<String>,
    /// True if the command must fail.
    pub fails: bool,
    /// The paths that must be created, and no others.
    pub created: Vec<String>,
    /// The paths that must be changed, and no others.
    pub changed: Vec<String>,
    /// The paths that must be deleted, and no others.
    pub deleted: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum OneOrMore {
    One(String),
    More(Vec<String>),
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum FixtureText {
    Name(String),
    Inline(Box<Fixture>),
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct TaskText {
    id: String,
    request: String,
    fixture: Option<FixtureText>,
    reference: Option<OneOrMore>,
    expect: Option<Expect>,
    #[serde(default)]
    output: Output,
    #[serde(default)]
    files: Files,
    #[serde(default)]
    then: String,
    #[serde(default)]
    cwd: String,
    target: Option<String>,
}

/// A task.
#[derive(Debug, Clone)]
pub struct Task {
    /// Its name, unique in all suites.
    pub id: String,
    /// The request.
    pub request: String,
    /// Its file tree, as an index of [`Suite::fixtures`].
    pub fixture: usize,
    /// Commands that do it; each of them is right.
    pub references: Vec<String>,
    /// The expectation instead of the references or beside them.
    pub expect: Option<Expect>,
    /// The way in which outputs are compared.
    pub output: Output,
    /// The way in which changes are compared.
    pub files: Files,
    /// A line run afterwards in the same sandbox; its output is compared, too, line by line.
    pub then: String,
    /// The folder of the fixture in which the command runs.
    pub cwd: String,
    /// The machine it is for; `None` for this one.
    pub target: Option<Target>,
}

/// Tasks and the trees they run in.
#[derive(Debug, Clone, Default)]
pub struct Suite {
    /// The trees.
    pub fixtures: Vec<Fixture>,
    /// The tasks, in order.
    pub tasks: Vec<Task>,
}

impl Suite {
    /// Reads suites into one.
    ///
    /// # Errors
    /// If a file cannot be read, is no suite, or repeats a task's id.
    pub fn read(files: &[impl AsRef<Path>]) -> Result<Self, Failure> {
        let mut suite = Self { fixtures: vec![Fixture::default()], tasks: Vec::new() };
        for file in files.iter().map(AsRef::as_ref) {
            let wrong = |e: &dyn std::fmt::Display| {
                Failure::usage(format!("{}: {e}", file.display()))
                    .hint("`caro eval --help` shows what a suite looks like")
            };
            let text = read_text(file, MAX_FILE).map_err(|e| wrong(&e))?;
            let is_json_lines = file.extension().is_some_and(|e| e == "jsonl" || e == "ndjson");
            let document =
                if is_json_lines { parse_lines(&text) } else { toml::from_str(&text).map_err(|e| e.to_string()) };
            document.and_then(|document| suite.add(document)).map_err(|e| wrong(&e))?;
        }
        Ok(suite)
    }

    fn add(&mut self, document: Document) -> Result<(), String> {
        let mut indices = BTreeMap::new();
        for (name, fixture) in document.fixture {
            indices.insert(name, self.fixtures.len());
            self.fixtures.push(fixture);
        }
        for text in document.task {
            let error = |what: &str| format!("task `{}`: {what}", text.id);
            if self.tasks.iter().any(|task| task.id == text.id) {
                return Err(error("this id stands twice"));
            }
            ask::check(&text.request).map_err(|e| error(&e))?;
            let fixture = match text.fixture {
                None => 0,
                Some(FixtureText::Name(ref name)) => {
                    *indices.get(name).ok_or_else(|| error(&format!("there is no fixture `{name}`")))?
                }
                Some(FixtureText::Inline(fixture)) => {
                    self.fixtures.push(*fixture);
                    self.fixtures.len() - 1
                }
            };
            let references = match text.reference {
                None => Vec::new(),
                Some(OneOrMore::One(ref one)) => vec![one.clone()],
                Some(OneOrMore::More(ref more)) => more.clone(),
            };
            if references.is_empty() && text.expect.is_none() {
                return Err(error("neither `reference` nor `expect` says what is right"));
            }
            for pattern in text.expect.iter().flat_map(|e| &e.regex) {
                Regex::new(pattern).map_err(|e| error(&e.to_string()))?;
            }
            let name = text.target.as_ref().or(document.target.as_ref());
            let named =
                |name: &String| Target::named(name).ok_or_else(|| error(&format!("there is no target `{name}`")));
            self.tasks.push(Task {
                target: name.map(named).transpose()?,
                id: text.id.clone(),
                request: text.request,
                fixture,
                references,
                expect: text.expect,
                output: text.output,
                files: text.files,
                then: text.then,
                cwd: text.cwd,
            });
        }
        Ok(())
    }
}

fn parse_lines(text: &str) -> Result<Document, String> {
    let mut document = Document::default();
    for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        document.task.push(serde_json::from_str(line).map_err(|e| format!("line {}: {e}", number + 1))?);
    }
    Ok(document)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn suite(name: &str, text: &str) -> Result<Suite, String> {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join(name);
        std::fs::write(&file, text).unwrap();
        Suite::read(&[file]).map_err(|f| f.message)
    }

    #[test]
    fn toml_has_named_fixtures_and_defaults() {
        let read = suite(
            "s.toml",
            "target = 'linux-busybox'\n[fixture.a.files]\n'x' = 'text'\n[[task]]\nid = '1'\nrequest = 'list'\nfixture = 'a'\nreference = 'ls'\n\
             [[task]]\nid = '2'\nrequest = 'two'\nreference = ['a', 'b']\ntarget = 'linux-gnu'\noutput = 'ordered-paths'\n",
        )
        .unwrap();
        assert_eq!(read.fixtures[read.tasks[0].fixture].files["x"], "text");
        assert_eq!((read.tasks[1].fixture, read.tasks[1].references.len()), (0, 2));
        let targets: Vec<_> = read.tasks.iter().map(|t| t.target.unwrap().name()).collect();
        assert_eq!(targets, ["linux-busybox", "linux-gnu"]);
        assert_eq!((read.tasks[0].output, read.tasks[1].output), (Output::Exact, Output::OrderedPaths));
    }

    #[test]
    fn json_lines_have_their_fixtures_inside() {
        let read = suite(
            "s.jsonl",
            "{\"id\":\"1\",\"request\":\"r\",\"fixture\":{\"sizes\":{\"big\":10}},\"expect\":{\"stdout\":\"x\"}}\n\n",
        )
        .unwrap();
        assert_eq!(read.fixtures[read.tasks[0].fixture].sizes["big"], 10);
        assert_eq!(read.tasks[0].expect.as_ref().unwrap().stdout.as_deref(), Some("x"));
    }

    #[test]
    fn errors_name_the_file_and_the_task() {
        let task = "[[task]]\nid = 'a'\nrequest = 'r'\n";
        for (text, words) in [
            (task.to_string(), "task `a`: neither"),
            (format!("{task}reference = 'x'\nfixture = 'no'\n"), "there is no fixture `no`"),
            (format!("{task}reference = 'x'\ntarget = 'amiga'\n"), "there is no target `amiga`"),
            (format!("{task}reference = 'x'\n{task}reference = 'x'\n"), "this id stands twice"),
            (format!("{task}expect = {{ regex = ['('] }}\n"), "task `a`: regex"),
            ("[[task]]\nid = 'a'\nrequest = ' '\nreference = 'x'\n".into(), "task `a`: the request is empty"),
            (format!("{task}reference = 'x'\nmood = 1\n"), "unknown field `mood`"),
        ] {
            let error = suite("s.toml", &text).unwrap_err();
            assert!(error.contains("s.toml") && error.contains(words), "{error}");
        }
        assert!(suite("s.jsonl", "{}\n{").unwrap_err().contains("line 1"));
    }
}
