//! `search`: the lines of files that match a pattern, with ripgrep's own crates. What git ignores, what is hidden, what is
//! binary and what holds keys by its name is left out, and so is whatever would flood a prompt.

use super::{io, looked_at, shown, text};
use crate::observe::Raw;
use crate::tool::{Args, Effects, Tool, ToolCx, ToolError, ToolSpec};
use caro_model::Cancel;
use caro_policy::is_secret;
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder, Sink, SinkMatch};
use ignore::WalkBuilder;
use ignore::overrides::{Override, OverrideBuilder};
use serde_json::json;
use std::path::Path;

/// Lines shown in all.
const LINES: usize = 100;
/// Lines shown of one file, as long as there are several.
const PER_FILE: usize = 20;
/// Characters shown of a line.
const WIDTH: usize = 200;
/// Files looked into at most.
const FILES: usize = 50_000;
/// The largest file that is looked into, bytes.
const LARGEST: u64 = 256 << 20;
/// Memory for one line and what surrounds it, bytes; a file with a longer line is left out.
const HEAP: usize = 16 << 20;

/// Finds lines in files.
pub struct Search(ToolSpec);

impl Default for Search {
    fn default() -> Self {
        let parameters = json!({
            "pattern": {"type": "string"}, "path": {"type": "string"}, "glob": {"type": "string"}
        });
        let description = "searches the text of all files below a folder for a regular expression, and shows file, line \
                           number and line. An all lower-case pattern finds upper case too.";
        let mut spec = ToolSpec::new("search", description, parameters, &["pattern"]);
        spec.example = json!({"pattern": "fn parse", "path": "src", "glob": "*.rs"});
        Self(spec)
    }
}

impl Tool for Search {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    fn effects(&self, args: &Args, cx: &ToolCx) -> Effects {
        Effects { reads: vec![looked_at(args, &cx.root)], ..Effects::default() }
    }

    fn call(&self, args: &Args, cx: &ToolCx) -> Result<Raw, ToolError> {
        let pattern = text(args, "pattern");
        let matcher = matcher(pattern)?;
        let top = looked_at(args, &cx.root);
        std::fs::metadata(&top).map_err(|e| io("could not search", &top, &cx.root, e))?;
        let wanted = wanted(text(args, "glob"), &top)?;
        let mut found = Found::new(&cx.root, &cx.cancel);
        let mut searcher = searcher();
        for entry in walk(&top).flatten() {
            if cx.cancel.is_cancelled() || found.files == FILES {
                found.unfinished = true;
                break;
            }
            let (file, below) = (entry.path(), entry.path().strip_prefix(&top).unwrap_or(entry.path()));
            // what a person named is looked into; what only lies below it must not give away a key
            let named = below.as_os_str().is_empty();
            if !entry.file_type().is_some_and(|kind| kind.is_file())
                || !named
                    && (is_secret(below) || wanted.as_ref().is_some_and(|w| !w.matched(file, false).is_whitelist()))
            {
                continue;
            }
            if entry.metadata().is_ok_and(|meta| meta.len() > LARGEST) {
                found.skipped += 1;
                continue;
            }
            found.begin(file);
            let searched = searcher.search_path(&matcher, file, &mut found);
            found.end(searched.is_err());
        }
        Ok(Raw::text(found.told(pattern, wanted.is_some())))
    }
}

/// The pattern, ready to match.
fn matcher(pattern: &str) -> Result<RegexMatcher, ToolError> {
    if pattern.is_empty() {
        return Err(ToolError::Arguments("`pattern` is empty: give a word or a regular expression".into()));
    }
    RegexMatcherBuilder::new().case_smart(true).line_terminator(Some(b'\n')).build(pattern).map_err(|error| {
        // the last line of the message says what is wrong, the ones before draw where
        let why = error.to_string();
        let why = why.lines().rev().find(|l| !l.trim().is_empty()).unwrap_or("it cannot be read").trim().to_owned();
        let why = why.strip_prefix("error: ").unwrap_or(&why);
        ToolError::Arguments(format!(
            "`pattern` is no regular expression: {why}. To find the text as it stands, write \\ before each of . * + ? ( ) [ ] {{ }} | ^ $"
        ))
    })
}

/// The files that `glob` names, as gitignore has patterns: without a slash in any folder. `None` for every file.
fn wanted(glob: &str, top: &Path) -> Result<Option<Override>, ToolError> {
    if glob.is_empty() {
        return Ok(None);
    }
    let wrong =
        |e: ignore::Error| ToolError::Arguments(format!("`glob` is no file pattern ({e}): write one like *.log"));
    let mut builder = OverrideBuilder::new(top);
    // a `!` would turn its meaning around
    builder.add(glob.trim_start_matches('!')).map_err(wrong)?;
    builder.build().map(Some).map_err(wrong)
}

/// Every file below a folder that git does not ignore, in the order of their names. A `.gitignore` counts outside of a
/// repository too.
fn walk(top: &Path) -> ignore::Walk {
    WalkBuilder::new(top).require_git(false).sort_by_file_path(Path::cmp).build()
}

fn searcher() -> Searcher {
    SearcherBuilder::new()
        .binary_detection(BinaryDetection::quit(b'\0'))
        .heap_limit(Some(HEAP))
        .line_number(true)
        .build()
}

/// What was found so far.
struct Found<'a> {
    root: &'a Path,
    cancel: &'a Cancel,
    text: String,
    /// The file under way, as it is shown.
    file: String,
    in_file: usize,
    shown_of_file: usize,
    shown: usize,
    lines: usize,
    files: usize,
    holding: usize,
    skipped: usize,
    unfinished: bool,
}

impl<'a> Found<'a> {
    fn new(root: &'a Path, cancel: &'a Cancel) -> Self {
        Self {
            root,
            cancel,
            text: String::new(),
            file: String::new(),
            in_file: 0,
            shown_of_file: 0,
            shown: 0,
            lines: 0,
            files: 0,
            holding: 0,
            skipped: 0,
            unfinished: false,
        }
    }

    fn begin(&mut self, file: &Path) {
        self.file = shown(file, self.root);
        (self.in_file, self.shown_of_file) = (0, 0);
        self.files += 1;
    }

    fn end(&mut self, failed: bool) {
        self.skipped += usize::from(failed);
        self.holding += usize::from(self.in_file > 0);
        let more = self.in_file - self.shown_of_file;
        if more > 0 && self.shown_of_file > 0 {
            self.text.push_str(&format!("{}: {more} more\n", self.file));
        }
    }

    fn told(mut self, pattern: &str, some: bool) -> String {
        let plural = |n: usize| if n == 1 { "" } else { "s" };
        if self.lines == 0 {
            let of = if some { " of that name" } else { "" };
            let (files, s) = (self.files, plural(self.files));
            self.text = format!(
                "no line of the {files} file{s}{of} matches {pattern}; hidden files and those that git ignores were left out"
            );
        } else {
            let (lines, files) = (self.lines, self.holding);
            let shown = if self.shown < lines { format!(", {} shown", self.shown) } else { String::new() };
            self.text.push_str(&format!("[{lines} line{} in {files} file{}{shown}]", plural(lines), plural(files)));
        }
        if self.skipped > 0 {
            let (n, s) = (self.skipped, plural(self.skipped));
            self.text.push_str(&format!("\n[{n} file{s} could not be read or are too large]"));
        }
        if self.unfinished {
            self.text.push_str("\n[not everything was searched: name a folder or a glob]");
        }
        self.text
    }
}

impl Sink for Found<'_> {
    type Error = std::io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> Result<bool, Self::Error> {
        self.lines += 1;
        self.in_file += 1;
        if self.shown < LINES && self.shown_of_file < PER_FILE {
            let line = String::from_utf8_lossy(found.bytes());
            let line = line.trim();
            let cut = line.char_indices().nth(WIDTH).map(|(at, _)| at);
            let (start, dots) = (&line[..cut.unwrap_or(line.len())], if cut.is_some() { "…" } else { "" });
            let number = found.line_number().unwrap_or_default();
            self.text.push_str(&format!("{}:{number}: {start}{dots}\n", self.file));
            self.shown += 1;
            self.shown_of_file += 1;
        }
        Ok(!self.cancel.is_cancelled())
    }
}
