//! A command that is one pipeline: the text of its first stage, and whether it chooses lines by their place alone.

use super::checks::input_files;
use crate::shell::{Dialect, Invocation, Script, Word, quote};
use std::path::Path;

/// Lines that a lengthened file has at least: more than anybody skips.
const LINES: u32 = 20_000;
/// The largest file that is lengthened, bytes: its text has to fit into one argument.
const LARGEST: u64 = 64 << 10;
/// The exit status by which a lengthened rehearsal says that nothing could be lengthened.
pub(super) const NOT_LENGTHENED: i32 = 99;

/// One pipeline and its stages in order; a single command is one of length 1.
pub(super) struct Pipeline<'a> {
    script: &'a Script,
    stages: Vec<&'a Invocation>,
}

impl<'a> Pipeline<'a> {
    /// The pipeline that the whole script is; `None` of lists, groups and loops.
    pub(super) fn of(script: &'a Script) -> Option<Self> {
        let stages: Vec<&Invocation> = script.commands.iter().filter(|c| c.inside.is_none()).collect();
        let place = stages.first()?.pipe;
        let in_order = stages.iter().enumerate().all(|(at, stage)| match (place, stage.pipe) {
            (Some(first), Some(own)) => own.pipeline == first.pipeline && own.index == at && own.length == stages.len(),
            (None, None) => stages.len() == 1,
            _ => false,
        });
        let starts = stages.first()?.words.first()?.span.start == 0;
        (in_order && starts && script.functions.is_empty()).then_some(Self { script, stages })
    }

    /// The text of the first stage, where others follow it.
    pub(super) fn source(&self) -> Option<&'a str> {
        let second = self.stages.get(1)?.words.first()?;
        let before = self.script.text.get(..second.span.start)?.trim_end();
        let text = before.strip_suffix("|&").or_else(|| before.strip_suffix('|'))?.trim_end();
        (!text.is_empty()).then_some(text)
    }

    /// The same command where each file that its first stage reads has [`LINES`] lines of what it has now; `None` where it
    /// reads none, or where a stage chooses by what stands in a line: more of the same proves nothing then. It overwrites the
    /// files, so it may run in a view only.
    pub(super) fn lengthened(&self, cwd: &Path) -> Option<String> {
        let knows = matches!(self.script.dialect, Dialect::Bash | Dialect::Zsh | Dialect::Sh);
        if !knows || !self.stages.iter().all(|stage| chooses_by_place(stage)) {
            return None;
        }
        let first = self.stages.first()?;
        let redirected = first.redirects.iter().filter(|r| r.operator == "<").map(|r| &r.target);
        let files: Vec<&Word> = input_files(first).into_iter().flatten().chain(redirected).collect();
        if files.is_empty() || !files.iter().all(|file| has_text(file, cwd)) {
            return None;
        }
        let longer = |file: &&Word| {
            let name = quote(file.value.as_deref().unwrap_or_default(), self.script.dialect);
            format!("t=$(cat -- {name}) && yes \"$t\" | head -n {LINES} > {name} || exit {NOT_LENGTHENED}\n")
        };
        let before: String = files.iter().map(longer).collect();
        Some(format!("{before}{}", self.script.text))
    }
}

/// True for a file that is here, small enough, and not blank.
fn has_text(file: &Word, cwd: &Path) -> bool {
    let Some(path) = file.value.as_deref().map(|name| cwd.join(name)) else { return false };
    let small = path.metadata().is_ok_and(|meta| meta.is_file() && meta.len() <= LARGEST);
    small && std::fs::read_to_string(path).is_ok_and(|text| !text.trim().is_empty())
}

/// True for a stage that prints something of a text that is long enough, whatever stands in it.
fn chooses_by_place(stage: &Invocation) -> bool {
    let has = |short: char, long: &str| stage.has_option(Some(short), long);
    let program = || stage.operands().next().and_then(|w| w.value.as_deref());
    match stage.name() {
        Some("cat" | "tac" | "rev" | "nl" | "wc" | "fold" | "head" | "tail" | "paste" | "column") => true,
        Some("sort") => !has('c', "check") && !has('o', "output"),
        Some("uniq") => !has('d', "repeated") && !has('u', "unique") && !has('D', "all-repeated"),
        Some("cut") => !has('s', "only-delimited"),
        Some("sed") => !has('i', "in-place") && program().is_some_and(is_numbered),
        Some("awk" | "gawk" | "mawk") => program().is_some_and(is_counted),
        _ => false,
    }
}

/// True for a sed script of addresses by number and nothing else: `10,20p`, `$d`, `2q`.
fn is_numbered(script: &str) -> bool {
    script.chars().all(|c| c.is_ascii_digit() || c.is_whitespace() || ",$~+!;pqd".contains(c))
}

/// True for an awk program of one rule whose pattern looks at the number of the line alone.
fn is_counted(program: &str) -> bool {
    let (pattern, action) = program.split_once('{').unwrap_or((program, ""));
    let tokens = pattern.replace("FNR", "").replace("NR", "");
    let by_number = tokens.chars().all(|c| c.is_ascii_digit() || c.is_whitespace() || "<>=!&|()%+-".contains(c));
    let action = action.trim_end().strip_suffix('}').unwrap_or(action);
    by_number
        && !action.contains(['{', '/', '~', '?', '>'])
        && !["if", "next", "getline"].iter().any(|w| action.contains(w))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shell::parse;

    #[test]
    fn the_first_stage_is_told_of_one_pipeline_only() {
        let of = |line: &str| {
            let script = parse(line, Dialect::Bash);
            Pipeline::of(&script).and_then(|p| p.source().map(str::to_owned))
        };
        assert_eq!(of("cat *.log | wc -l").as_deref(), Some("cat *.log"));
        assert_eq!(of("cat 'a|b' 2>&1 |& sort | head").as_deref(), Some("cat 'a|b' 2>&1"));
        for other in ["cat a", "cat a | wc -l; ls", "a | b && c", "(a; b) | c", "a | while read x; do b; done"] {
            assert_eq!(of(other), None, "{other}");
        }
    }

    #[test]
    fn files_are_lengthened_for_what_counts_lines_alone() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("f"), "1\n2\n").unwrap();
        std::fs::write(dir.path().join("blank"), "\n\n").unwrap();
        let of = |line: &str| {
            let script = parse(line, Dialect::Bash);
            Pipeline::of(&script).is_some_and(|p| p.lengthened(dir.path()).is_some())
        };
        for by_place in [
            "tail -n 3 f | awk 'NR>3'",
            "head -n 2 f | sed -n '5,$p'",
            "cat f | awk 'NR % 2 == 0 {print $2}' | sort",
            "cut -d, -f7 f",
            "wc -l < f",
        ] {
            assert!(of(by_place), "{by_place}");
        }
        for by_content in [
            "grep x f",
            "cat f | grep x",
            "awk '/x/' f",
            "awk '$2 > 3' f",
            "awk 'NF > 3' f",
            "awk 'NR > 1 {if ($1 > 2) print}' f",
            "sed -n '/x/p' f",
            "uniq -d f",
            "sort -o f f",
            "cat blank",
            "cat missing",
            "ls | tail -n +20",
        ] {
            assert!(!of(by_content), "{by_content}");
        }
    }
}
