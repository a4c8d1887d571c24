//! The tool `search`: finds lines of files that match a pattern, with ripgrep's own crates. It skips files that git
//! ignores, hidden and binary files, and files whose names say that they hold keys, and limits the output.

use super::{io, read_path, shown, text};
use crate::observe::Raw;
use crate::tool::{Args, Effects, Tool, ToolCx, ToolError, ToolSpec};
use caro_base::files::open_nonblocking;
use caro_model::Cancel;
use caro_policy::is_secret;
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder, Sink, SinkMatch};
use ignore::WalkBuilder;
use ignore::overrides::{Override, OverrideBuilder};
use serde_json::json;
use std::path::Path;

/// Most lines shown.
const MAX_LINES: usize = 100;
/// Most lines shown of one file.
const MAX_PER_FILE: usize = 20;
/// Most characters shown of a line.
const MAX_WIDTH: usize = 200;
/// Most files searched.
const MAX_FILES: usize = 50_000;
/// Most bytes of a file; a larger one is skipped.
const MAX_BYTES: u64 = 256 << 20;
/// Most bytes of memory for one line with its context; a file with a longer line is skipped.
const MAX_HEAP: usize = 16 << 20;

/// The tool that finds lines in files.
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
        Effects { reads: vec![read_path(args, &cx.root)], ..Effects::default() }
    }

    fn call(&self, args: &Args, cx: &ToolCx) -> Result<Raw, ToolError> {
        let pattern = text(args, "pattern");
        let matcher = matcher(pattern)?;
        let top = read_path(args, &cx.root);
        std::fs::metadata(&top).map_err(|e| io("could not search", &top, &cx.root, e))?;
        let wanted = wanted(text(args, "glob"), &top)?;
        let mut found = Findings::new(&cx.root, &cx.cancel);
        let mut searcher = searcher();
        for entry in walk(&top).flatten() {
            if cx.cancel.is_cancelled() || found.files == MAX_FILES {
                found.unfinished = true;
                break;
            }
            let (file, below) = (entry.path(), entry.path().strip_prefix(&top).unwrap_or(entry.path()));
            // a file that was named is searched; one found below a folder must not reveal a key
            let named = below.as_os_str().is_empty();
            if !entry.file_type().is_some_and(|kind| kind.is_file())
                || !named
                    && (is_secret(below) || wanted.as_ref().is_some_and(|w| !w.matched(file, false).is_whitelist()))
            {
                continue;
            }
            if entry.metadata().is_ok_and(|meta| meta.len() > MAX_BYTES) {
                found.skipped += 1;
                continue;
            }
            found.begin(file);
            let opened = open_nonblocking(file);
            let searched = opened.and_then(|file| searcher.search_file(&matcher, &file, &mut found));
            found.end(searched.is_err());
        }
        Ok(Raw::text(found.report(pattern, wanted.is_some())))
    }
}

/// Compiles the pattern.
fn matcher(pattern: &str) -> Result<RegexMatcher, ToolError> {
    if pattern.is_empty() {
        return Err(ToolError::Arguments("`pattern` is empty: give a word or a regular expression".into()));
    }
    RegexMatcherBuilder::new().case_smart(true).line_terminator(Some(b'\n')).build(pattern).map_err(|error| {
        // the last line of the message has the reason, the ones before mark the place
        let why = error.to_string();
        let why = why.lines().rev().find(|l| !l.trim().is_empty()).unwrap_or("it cannot be read").trim().to_owned();
        let why = why.strip_prefix("error: ").unwrap_or(&why);
        ToolError::Arguments(format!(
            "`pattern` is not a regular expression: {why}. To find the text as it stands, write \\ before each of . * + ? ( ) [ ] {{ }} | ^ $"
        ))
    })
}

/// Compiles `glob`, a pattern as in a gitignore file: without a slash it matches in any folder. `None` stands for
/// every file.
fn wanted(glob: &str, top: &Path) -> Result<Option<Override>, ToolError> {
    if glob.is_empty() {
        return Ok(None);
    }
    let wrong =
        |e: ignore::Error| ToolError::Arguments(format!("`glob` is not a file pattern ({e}): write one like *.log"));
    let mut builder = OverrideBuilder::new(top);
    // a `!` would invert its meaning
    builder.add(glob.trim_start_matches('!')).map_err(wrong)?;
    builder.build().map(Some).map_err(wrong)
}

/// Walks all files below a folder that git does not ignore, sorted by path. A `.gitignore` also counts outside of a
/// repository.
fn walk(top: &Path) -> ignore::Walk {
    WalkBuilder::new(top).require_git(false).sort_by_file_path(Path::cmp).build()
}

fn searcher() -> Searcher {
    SearcherBuilder::new()
        .binary_detection(BinaryDetection::quit(b'\0'))
        .heap_limit(Some(MAX_HEAP))
        .line_number(true)
        .build()
}

/// The lines found so far, and their numbers.
struct Findings<'a> {
    root: &'a Path,
    cancel: &'a Cancel,
    text: String,
    /// The current file, as it is shown.
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

impl<'a> Findings<'a> {
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

    fn report(mut self, pattern: &str, some: bool) -> String {
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

impl Sink for Findings<'_> {
    type Error = std::io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> Result<bool, Self::Error> {
        self.lines += 1;
        self.in_file += 1;
        if self.shown < MAX_LINES && self.shown_of_file < MAX_PER_FILE {
            let line = String::from_utf8_lossy(found.bytes());
            let line = line.trim();
            let cut = line.char_indices().nth(MAX_WIDTH).map(|(at, _)| at);
            let (start, dots) = (&line[..cut.unwrap_or(line.len())], if cut.is_some() { "…" } else { "" });
            let number = found.line_number().unwrap_or_default();
            self.text.push_str(&format!("{}:{number}: {start}{dots}\n", self.file));
            self.shown += 1;
            self.shown_of_file += 1;
        }
        Ok(!self.cancel.is_cancelled())
    }
}
