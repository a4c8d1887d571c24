//! Recognizes parts of a task whose form says what to do, without a model: questions about what a change did, scripts
//! to write, reports with a list of contents, and commands that prove a fix.

use super::part::{Kind, kind};
use super::said::order;
use regex::{Captures, Regex};
use std::sync::LazyLock;

/// A file name with an extension, as a regular expression.
const FILE: &str = r"[\w./~-]*\w\.\w{1,8}";

/// True if the part asks what the change before it did: `tell me how many were renamed`, `list the files that
/// changed`.
pub fn asks_what_changed(part: &str) -> bool {
    static FORM: LazyLock<Option<Regex>> = LazyLock::new(|| {
        Regex::new(
            r"(?i)^(?:tell|show|list|print|say|report|give|display|count)(?: me)?(?: \w+){0,5}? (?:(?:were|was|been) (?:\w+ed|made|written|split|set)|there were|(?:it|they|those|these) (?:were|was)|you(?: have)? \w+ed|(?:files|folders|lines|ones) changed)$",
        )
        .ok()
    });
    let part = part.trim().trim_end_matches(['.', '!', '?']);
    FORM.as_ref().is_some_and(|form| form.is_match(part))
}

/// Returns the file and the work of `write a shell script clean.sh that deletes all .tmp files`.
pub fn script(part: &str) -> Option<(String, String)> {
    static FORM: LazyLock<Option<Regex>> = LazyLock::new(|| {
        Regex::new(&format!(
            r"(?i)^(?:write|create|make|add|generate)(?: me)? an? (?:(?:small|little|short|simple|new) )?(?:(?:shell|bash|sh) script|script|bash file)(?: (?:called|named))? (?P<file>{FILE}),? (?:that|which|to) (?P<work>.+)$"
        ))
        .ok()
    });
    let found = FORM.as_ref()?.captures(part.trim())?;
    let file = &found["file"];
    // only a shell script is a command in a file
    (file.ends_with(".sh") || file.ends_with(".bash")).then(|| (file.to_owned(), found["work"].to_owned()))
}

/// Returns the part before the name of the file that it ends with: `write a poem about the sea` of `write a poem
/// about the sea to sea.txt`.
pub fn before_file<'a>(part: &'a str, file: &str) -> Option<&'a str> {
    const QUOTES: [char; 3] = ['"', '\'', '`'];
    let part = part.trim_end().trim_end_matches(['.', '!', '?']).trim_end_matches(QUOTES);
    let mut rest = part.strip_suffix(file)?.trim_end_matches(QUOTES);
    while let Some((before, word)) = rest.trim_end().rsplit_once(' ') {
        rest = before;
        match word.to_lowercase().as_str() {
            "a" | "the" | "new" | "file" | "called" | "named" => {}
            "to" | "into" | "in" | "as" => return Some(rest.trim_end()),
            _ => return None,
        }
    }
    None
}

/// Splits a report that lists its contents into one part per item, to be looked up, and the report itself. `None` for
/// anything else.
///
/// Example: `write a report about a.log with the number of lines and the first error to a.md`
pub fn report_parts(part: &str) -> Option<Vec<String>> {
    static FORM: LazyLock<Option<Regex>> = LazyLock::new(|| {
        Regex::new(&format!(
            r"(?i)^(?:write|create|make|generate) an? (?:short |small |brief )?(?:report|summary|overview) (?:about|of|on|for) (?P<about>[\w./~-]+),? (?:with|containing|including|that (?:has|shows|lists|contains)) (?P<items>.+) (?:in|into|to|as) {FILE}$"
        ))
        .ok()
    });
    static SEPARATOR: LazyLock<Option<Regex>> =
        LazyLock::new(|| Regex::new(r"(?i),? and (?:also )?(?:the|a|an|how|its|all)\b|, ").ok());
    let found: Captures = FORM.as_ref()?.captures(order(part).trim())?;
    let (about, items) = (&found["about"], &found["items"]);
    let mut pieces: Vec<&str> = Vec::new();
    let mut start = 0;
    for between in SEPARATOR.as_ref()?.find_iter(items) {
        pieces.push(&items[start..between.start()]);
        // `and the`: the article belongs to what follows
        let words = between.as_str().trim_start_matches([',', ' ']);
        let article_len =
            words.rsplit(' ').next().filter(|last| words.contains(' ') && !last.is_empty()).map_or(0, str::len);
        start = between.end() - article_len;
    }
    pieces.push(&items[start..]);
    let looked_up = pieces.iter().map(|piece| piece.trim()).filter(|piece| !piece.is_empty());
    let mut parts: Vec<String> = looked_up.map(|piece| format!("show {piece} in {about}")).collect();
    if parts.len() < 2 {
        return None;
    }
    parts.push(part.trim().to_owned());
    Some(parts)
}

/// Splits two questions in one part: `tell me its size and the largest file in it`.
pub fn split_questions(part: &str) -> Option<Vec<String>> {
    static FORM: LazyLock<Option<Regex>> = LazyLock::new(|| {
        Regex::new(
            r"(?i)^(?P<tell>tell me|show me|say) (?P<one>(?:its|how|which|what) [^,]+?) and (?P<other>(?:its|the|how|which|what) [^,]+)$",
        )
        .ok()
    });
    let found = FORM.as_ref()?.captures(part.trim())?;
    // the first half must be a whole question: `what the old and the new version have in common` is one question
    let one = found["one"].to_lowercase();
    let is_whole = ["its "].iter().any(|begin| one.starts_with(begin))
        || one.split(' ').any(|w| matches!(w, "is" | "are" | "was" | "were" | "has" | "have" | "there" | "it"));
    if !is_whole {
        return None;
    }
    Some(["one", "other"].map(|name| format!("{} {}", &found["tell"], &found[name])).into())
}

/// True if the part writes the text made by the part before it to a file: `save it to en.txt` after `translate
/// de.txt`.
pub fn saves_text(part: &str, before: &str) -> bool {
    static FORM: LazyLock<Option<Regex>> = LazyLock::new(|| {
        Regex::new(&format!(
            r"(?i)^(?:save|write|put|store) (?:it|that|this|the (?:translation|result|summary|text|explanation|description)) (?:in|into|to|as) {FILE}$"
        ))
        .ok()
    });
    const TEXTS: &[&str] =
        &["describe", "explain", "paraphrase", "rephrase", "shorten", "summarise", "summarize", "translate"];
    let verb = before.split_whitespace().next().unwrap_or_default().to_lowercase();
    TEXTS.contains(&verb.as_str()) && FORM.as_ref().is_some_and(|form| form.is_match(order(part).trim()))
}

/// Returns the command that proves that the part is done: `python3 calc.py` of `fix calc.py so that python3 calc.py
/// ends without an error`.
pub fn proof_command(part: &str) -> Option<String> {
    static FORM: LazyLock<Option<Regex>> = LazyLock::new(|| {
        Regex::new(
            r"(?i)\b(?:so that|such that|until) [`']?(?P<command>(?:\./)?[a-z][\w./-]*(?: [\w./=:-]+){0,5}?)[`']? (?:ends|exits|runs|works|passes|succeeds|finishes|compiles)\b",
        )
        .ok()
    });
    let command = FORM.as_ref()?.captures(part)?["command"].to_owned();
    // `so that the script works` names no command: a command has a dot or a slash in its name, or is a known runner
    let first = command.split(' ').next().unwrap_or_default().to_lowercase();
    const RUNNERS: &[&str] = &[
        "bash", "bundle", "bun", "cargo", "cmake", "composer", "deno", "dotnet", "gcc", "go", "gradle", "java", "just",
        "make", "mvn", "ninja", "node", "npm", "npx", "perl", "php", "pip", "pnpm", "poetry", "pytest", "python",
        "python3", "ruby", "rustc", "sh", "tox", "uv", "yarn", "zsh",
    ];
    let quoted = part.contains(&format!("`{command}`"));
    let is_command = quoted || first.contains(['.', '/']) || RUNNERS.contains(&first.as_str());
    (is_command && kind(part, false) != Kind::Tell).then_some(command)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_before_the_file_is_returned() {
        for (part, file, before) in [
            ("write a poem about the sea to sea.txt", "sea.txt", Some("write a poem about the sea")),
            ("write a poem in a new file called `sea.txt`.", "sea.txt", Some("write a poem")),
            ("write in French as a.txt", "a.txt", Some("write in French")),
            ("write the file a.txt", "a.txt", None),
            ("write about a.txt", "a.txt", None),
            ("to a.txt", "a.txt", None),
            ("write to a.txt what you see", "a.txt", None),
            ("", "a.txt", None),
        ] {
            assert_eq!(before_file(part, file), before, "{part}");
        }
    }

    #[test]
    fn questions_about_a_change_are_recognized() {
        for part in [
            "tell me how many were renamed",
            "tell me how many there were",
            "tell me how many files were changed",
            "show which files changed",
            "list the files that were changed.",
            "list what was moved",
            "tell me which files you renamed",
            "say how many files have been removed",
            "tell me which ones they were",
        ] {
            assert!(asks_what_changed(part), "{part}");
        }
        for part in [
            "tell me how many there are",
            "tell me how many rows it has",
            "show the changed file",
            "list the files that were changed in March",
            "tell me which is the largest",
            "show the lines that were added to a.txt",
            "count the errors",
        ] {
            assert!(!asks_what_changed(part), "{part}");
        }
    }

    #[test]
    fn scripts_are_recognized() {
        let parts = |part| script(part).map(|(file, work)| format!("{file}: {work}"));
        assert_eq!(
            parts("write a shell script clean.sh that deletes all .tmp files in the folder").as_deref(),
            Some("clean.sh: deletes all .tmp files in the folder")
        );
        assert_eq!(
            parts("create a script called bin/up.sh to show the load").as_deref(),
            Some("bin/up.sh: show the load")
        );
        for part in
            ["write a script x.py that prints 1", "write a shell script", "run the script clean.sh that I wrote"]
        {
            assert_eq!(parts(part), None, "{part}");
        }
    }

    #[test]
    fn a_report_is_split_into_its_items() {
        let task = "write a report about a.log with the number of requests, the two most frequent addresses and the number of 404 errors to a.md";
        assert_eq!(
            report_parts(task).unwrap(),
            [
                "show the number of requests in a.log",
                "show the two most frequent addresses in a.log",
                "show the number of 404 errors in a.log",
                task
            ]
        );
        for part in [
            "write a report about a.log with the number of lines to a.md",
            "write a report about a.log to a.md",
            "write a summary to a.md",
            "show a report about a.log with x, y and the z",
        ] {
            assert_eq!(report_parts(part), None, "{part}");
        }
    }

    #[test]
    fn saving_a_text_is_recognized() {
        assert!(saves_text("save it to en.txt", "translate de.txt to English"));
        assert!(saves_text("Write the summary into a/b.md", "summarize notes.txt"));
        assert!(saves_text("Save it to en.txt (It is a letter)", "translate de.txt to English"));
        assert!(!saves_text("save it to en.txt", "find de.txt"));
        assert!(!saves_text("count it", "translate de.txt to English"));
    }

    #[test]
    fn two_questions_are_split() {
        assert_eq!(
            split_questions("tell me its size and the largest file in it").unwrap(),
            ["tell me its size", "tell me the largest file in it"]
        );
        assert_eq!(split_questions("tell me the names and the sizes"), None);
        assert_eq!(split_questions("tell me how many there are"), None);
        assert_eq!(split_questions("show me what the logs and the errors have in common"), None);
        assert_eq!(split_questions("tell me how the old and the new version differ"), None);
    }

    #[test]
    fn proof_commands_are_recognized() {
        for (part, command) in [
            ("fix calc.py so that python3 calc.py ends without an error", Some("python3 calc.py")),
            ("change a.c so that `make test` passes", Some("make test")),
            ("repair run.sh so that ./run.sh -n 3 works", Some("./run.sh -n 3")),
            ("fix it so that it runs", None),
            ("rename the files in pics so that sorting works", None),
            ("fix main.py so that our login works", None),
            ("wait until backup finishes", None),
            ("fix calc.py so that the test passes", None),
            ("sort the file so that the largest comes first", None),
        ] {
            assert_eq!(proof_command(part).as_deref(), command, "{part}");
        }
    }
}
