//! Forms of a part that need no model to be understood: who asks what a change did, which script is to do what, what a
//! report is to hold, and how it is found out whether something works.

use super::part::{Kind, kind};
use regex::{Captures, Regex};
use std::sync::LazyLock;

/// The last parts of a path that is to hold a text, as tasks name it.
const FILE: &str = r"[\w./~-]*\w\.\w{1,8}";

/// True for a part that asks what the change before it did: `tell me how many were renamed`, `list the files that changed`.
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

/// The file and the work of `write a shell script clean.sh that deletes all .tmp files`.
pub fn script(part: &str) -> Option<(String, String)> {
    static FORM: LazyLock<Option<Regex>> = LazyLock::new(|| {
        Regex::new(&format!(
            r"(?i)^(?:write|create|make|add|generate)(?: me)? an? (?:(?:small|little|short|simple|new) )?(?:(?:shell|bash|sh) script|script|bash file)(?: (?:called|named))? (?P<file>{FILE}),? (?:that|which|to) (?P<work>.+)$"
        ))
        .ok()
    });
    let found = FORM.as_ref()?.captures(part.trim())?;
    let file = &found["file"];
    // a script in another language is not one command
    (file.ends_with(".sh") || file.ends_with(".bash")).then(|| (file.to_owned(), found["work"].to_owned()))
}

/// The parts of a report that says what it is to hold: each is looked up, and then it is written. `None` for anything else.
///
/// `write a report about a.log with the number of lines and the first error to a.md`
pub fn report(part: &str) -> Option<Vec<String>> {
    static FORM: LazyLock<Option<Regex>> = LazyLock::new(|| {
        Regex::new(&format!(
            r"(?i)^(?:write|create|make|generate) an? (?:short |small |brief )?(?:report|summary|overview) (?:about|of|on|for) (?P<about>[\w./~-]+),? (?:with|containing|including|that (?:has|shows|lists|contains)) (?P<items>.+) (?:in|into|to|as) {FILE}$"
        ))
        .ok()
    });
    static BETWEEN: LazyLock<Option<Regex>> =
        LazyLock::new(|| Regex::new(r"(?i),? and (?:also )?(?:the|a|an|how|its|all)\b|, ").ok());
    let found: Captures = FORM.as_ref()?.captures(part.trim())?;
    let (about, items) = (&found["about"], &found["items"]);
    let mut pieces: Vec<&str> = Vec::new();
    let mut start = 0;
    for between in BETWEEN.as_ref()?.find_iter(items) {
        pieces.push(&items[start..between.start()]);
        // `and the`: the article belongs to what follows
        let words = between.as_str().trim_start_matches([',', ' ']);
        let kept = words.rsplit(' ').next().filter(|last| words.contains(' ') && !last.is_empty()).map_or(0, str::len);
        start = between.end() - kept;
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

/// Two questions in one: `tell me its size and the largest file in it`.
pub fn told_apart(part: &str) -> Option<Vec<String>> {
    static FORM: LazyLock<Option<Regex>> = LazyLock::new(|| {
        Regex::new(
            r"(?i)^(?P<tell>tell me|show me|say) (?P<one>(?:its|how|which|what) [^,]+?) and (?P<other>(?:its|the|how|which|what) [^,]+)$",
        )
        .ok()
    });
    let found = FORM.as_ref()?.captures(part.trim())?;
    Some(["one", "other"].map(|name| format!("{} {}", &found["tell"], &found[name])).into())
}

/// True for a sentence that asks for nothing: `some links in tools are dead`, `it's in costs.csv`, `orders.csv has no names`.
/// Who takes it for an order does what nobody wants.
pub fn is_statement(part: &str) -> bool {
    static SUBJECT: LazyLock<Option<Regex>> = LazyLock::new(|| {
        Regex::new(
            r"(?i)^(?:i|we|you|he|she|it|its|it's|they|they're|there|there's|this|that|that's|everybody|everyone|everything|nobody|someone|somebody|look it up)\b",
        )
        .ok()
    });
    // a thing, and what is said of it
    static THING: LazyLock<Option<Regex>> = LazyLock::new(|| {
        Regex::new(
            r"(?i)^(?:(?:the|a|an|some|all|every|each|most|many|several|my|our|your|their|his|her|these|those|one|two|three)\s|[\w./~-]*\w\.\w{1,8}\s)[^?]*?\b(?:is|isn't|are|aren't|was|were|has|have|had|can|can't|cannot|could|should|must|might|will|would|needs?|do|does|don't|doesn't|lists?|contains?|belongs?|goes?|points?|splits?)\b",
        )
        .ok()
    });
    // `I want all logs in one folder`, `everything in tmp should be deleted`
    static WISH: LazyLock<Option<Regex>> = LazyLock::new(|| {
        Regex::new(
            r"(?i)^(?:i|we|you)(?:'d| would)? (?:also )?(?:want|need|like|have to|should|must|can|could)\b|\b(?:should|must|shall|has to|have to|needs? to|ought to)(?: all| both)? (?:be|get) (?:\w+ed|put|made|set|sent|split|written|cut)\b",
        )
        .ok()
    });
    let part = part.trim();
    let is = |form: &LazyLock<Option<Regex>>| form.as_ref().is_some_and(|form| form.is_match(part));
    !part.ends_with('?') && (is(&SUBJECT) || is(&THING)) && !is(&WISH)
}

/// The parts without those that are none: what they say stands behind the part that it is about, the next one, or the
/// last.
pub fn with_statements(parts: Vec<String>) -> Vec<String> {
    if parts.iter().all(|part| is_statement(part)) {
        return parts;
    }
    let mut whole: Vec<String> = Vec::new();
    let mut said: Vec<String> = Vec::new();
    for part in parts {
        if is_statement(&part) {
            said.push(part);
        } else {
            whole.push(if said.is_empty() { part } else { format!("{part} ({})", said.join("; ")) });
            said.clear();
        }
    }
    if let Some(last) = whole.last_mut().filter(|_| !said.is_empty()) {
        *last = format!("{last} ({})", said.join("; "));
    }
    whole
}

/// A part without what is said about it behind it.
pub fn order(part: &str) -> &str {
    part.split_once(" (").map_or(part, |(order, _)| order)
}

/// True for a part that puts the text of the one before it into a file: `save it to en.txt` after `translate de.txt`.
pub fn keeps_text(part: &str, before: &str) -> bool {
    static FORM: LazyLock<Option<Regex>> = LazyLock::new(|| {
        Regex::new(&format!(
            r"(?i)^(?:save|write|put|store) (?:it|that|this|the (?:translation|result|summary|text|explanation|description)) (?:in|into|to|as) {FILE}$"
        ))
        .ok()
    });
    const TEXTS: &[&str] =
        &["describe", "explain", "paraphrase", "rephrase", "shorten", "summarise", "summarize", "translate"];
    let verb = before.split_whitespace().next().unwrap_or_default().to_lowercase();
    TEXTS.contains(&verb.as_str()) && FORM.as_ref().is_some_and(|form| form.is_match(part.trim()))
}

/// The command that shows whether a part is done: `python3 calc.py` of `fix calc.py so that python3 calc.py ends without
/// an error`.
pub fn proof(part: &str) -> Option<String> {
    static FORM: LazyLock<Option<Regex>> = LazyLock::new(|| {
        Regex::new(
            r"(?i)\b(?:so that|such that|until) [`']?(?P<command>(?:\./)?[a-z][\w./-]*(?: [\w./=:-]+){0,5}?)[`']? (?:ends|exits|runs|works|passes|succeeds|finishes|compiles)\b",
        )
        .ok()
    });
    let command = FORM.as_ref()?.captures(part)?["command"].to_owned();
    // `so that the script works`, `so that it runs`
    let first = command.split(' ').next().unwrap_or_default().to_lowercase();
    let is_word = [
        "a",
        "all",
        "an",
        "each",
        "every",
        "everything",
        "he",
        "it",
        "no",
        "nothing",
        "one",
        "she",
        "that",
        "the",
        "they",
        "this",
        "we",
        "you",
    ];
    (!is_word.contains(&first.as_str()) && kind(part, false) != Kind::Tell).then_some(command)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_asks_what_a_change_did_is_known() {
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
    fn a_script_is_a_command_in_a_file() {
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
    fn a_report_is_looked_up_piece_by_piece() {
        let task = "write a report about a.log with the number of requests, the two most frequent addresses and the number of 404 errors to a.md";
        assert_eq!(
            report(task).unwrap(),
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
            assert_eq!(report(part), None, "{part}");
        }
    }

    #[test]
    fn a_text_and_where_it_goes_are_one_part() {
        assert!(keeps_text("save it to en.txt", "translate de.txt to English"));
        assert!(keeps_text("Write the summary into a/b.md", "summarize notes.txt"));
        assert!(!keeps_text("save it to en.txt", "find de.txt"));
        assert!(!keeps_text("count it", "translate de.txt to English"));
    }

    #[test]
    fn what_is_only_said_is_no_order() {
        for said in [
            "everybody on this computer can read app/secrets.env",
            "some links in the folder tools point to files that are gone",
            "it's in timesheet.csv",
            "our dates are in trip.txt",
            "orders.csv has only the customer numbers",
            "I broke config.yml",
            "every python file in app should start with a copyright line",
            "manifest.txt lists the files that should be in the folder delivery",
            "the files in scans don't sort right",
        ] {
            assert!(is_statement(said), "{said}");
        }
        for asked in [
            "the five largest files in media",
            "all python files below src",
            "I want all logs in one folder",
            "everything in tmp should be deleted",
            "the notes need to be sorted by date",
            "how many hours did each person work in total",
            "tidy up the folder desktop",
            "notes.txt",
            "is there a file with errors?",
            "what is in notes.txt",
        ] {
            assert!(!is_statement(asked), "{asked}");
        }
        let parts = |list: &[&str]| with_statements(list.iter().map(|part| part.to_string()).collect());
        assert_eq!(parts(&["some links are dead", "delete them"]), ["delete them (some links are dead)"]);
        assert_eq!(parts(&["how many are there", "it's in a.csv"]), ["how many are there (it's in a.csv)"]);
        assert_eq!(parts(&["it is late"]), ["it is late"]);
        assert_eq!(order("delete them (some links are dead)"), "delete them");
    }

    #[test]
    fn two_questions_are_two_parts() {
        assert_eq!(
            told_apart("tell me its size and the largest file in it").unwrap(),
            ["tell me its size", "tell me the largest file in it"]
        );
        assert_eq!(told_apart("tell me the names and the sizes"), None);
        assert_eq!(told_apart("tell me how many there are"), None);
    }

    #[test]
    fn what_is_to_work_is_run() {
        for (part, command) in [
            ("fix calc.py so that python3 calc.py ends without an error", Some("python3 calc.py")),
            ("change a.c so that `make test` passes", Some("make test")),
            ("repair run.sh so that ./run.sh -n 3 works", Some("./run.sh -n 3")),
            ("fix it so that it runs", None),
            ("fix calc.py so that the test passes", None),
            ("sort the file so that the largest comes first", None),
        ] {
            assert_eq!(proof(part).as_deref(), command, "{part}");
        }
    }
}
