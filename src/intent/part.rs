//! Determines the kind of work of each part of a task, by its words alone. A wrong kind costs only a step: every
//! command is checked, every call is guarded, and the model chooses freely where the way of a part fails.

use super::said::order;
use super::targets::files_to_write;
use super::tokens::path_words;
use super::verbs::{PUTS, TELLS, THINKS, asks};
use regex::Regex;
use std::sync::LazyLock;

/// The kind of work of a part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    /// One shell command can do it.
    Command,
    /// The results so far are to be written to this file unchanged.
    Save(String),
    /// A text about the results so far is to be written to this file.
    Compose(String),
    /// The user is to be given an answer.
    Tell,
    /// Anything else: the model chooses among all tools.
    Free,
}

/// Things that one command cannot create.
const TEXTS: &[&str] = &[
    "class",
    "code",
    "email",
    "essay",
    "explanation",
    "function",
    "letter",
    "page",
    "paragraph",
    "poem",
    "program",
    "readme",
    "script",
    "sentence",
    "story",
    "test",
    "tests",
];

/// Words for a text of the model's own about the results so far.
const ABOUT: &[&str] =
    &["summary", "report", "overview", "explanation", "sentence", "sentences", "paragraph", "comparison"];

/// Returns the file of a part that asks for a text of the model's own: `translate a.txt to English and save it to
/// b.txt`, `write one sentence about each note in notes to c.md`.
pub fn composes(part: &str) -> Option<String> {
    let words = path_words(part);
    let verb = words.first()?;
    let is_text = asks(verb, PUTS) && words.iter().any(|w| ABOUT.contains(&w.as_str()))
        || asks(verb, THINKS) && !matches!(verb.as_str(), "write");
    if !is_text {
        return None;
    }
    files_to_write(part).pop()
}

/// Returns the kind of a part. A `later` part follows others, whose results it may be about.
pub fn kind(part: &str, later: bool) -> Kind {
    let words = path_words(part);
    let Some(verb) = words.first().map(String::as_str) else { return Kind::Free };
    let has = |list: &[&str]| words.iter().any(|w| list.contains(&w.as_str()));
    if asks(verb, PUTS)
        && later
        && let Some(file) = files_to_write(part).pop()
        && ends_with(part, &file)
    {
        return if has(ABOUT) || ["report", "summarise", "summarize"].contains(&verb) {
            Kind::Compose(file)
        } else {
            Kind::Save(file)
        };
    }
    if asks(verb, TELLS) && (later || verb == "tell") {
        return if later { Kind::Tell } else { Kind::Command };
    }
    let fixes = matches!(verb, "fix" | "correct") && !words.iter().any(|w| w == "to" || w == "with");
    let makes = matches!(verb, "create" | "make" | "add" | "write" | "generate") && has(TEXTS);
    // `write the names of all scripts to a.txt` asks for facts, not for a text of the model's own
    let writes_what_is = asks(verb, PUTS)
        && !has(TEXTS)
        && !has(ABOUT)
        && words.get(1).is_some_and(|w| {
            ["the", "all", "each", "every", "only", "both", "how", "which", "what", "who"].contains(&w.as_str())
        })
        && !files_to_write(part).is_empty();
    if asks(verb, THINKS) && !writes_what_is || fixes || makes {
        return Kind::Free;
    }
    Kind::Command
}

/// True if the part ends with the file name: `into plan.md as its first line` must not replace the whole file.
fn ends_with(part: &str, file: &str) -> bool {
    let part = order(part).trim_end_matches(['.', '!', '?', '"', '\'', '`', ')']);
    let behind = part.rfind(file).map(|at| part[at + file.len()..].trim());
    behind.is_some_and(|rest| ["", "alphabetically", "file", "sorted", "too"].contains(&rest))
}

/// Words that refer to earlier results.
static REFERS: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(
        r"(?i)\b(?:each(?: (?:one|of them|file|folder|of these|of those))?|them|they|it|its|those|these|both|that (?:file|folder|one)|this (?:file|one)|the (?:(?:changed|copied|created|edited|modified|moved|new|renamed|resulting|updated) )?(?:file|folder)s?|(?:all|both) of them|every one)\b",
    )
    .ok()
});

/// Most names that are inserted into a part.
const MAX_NAMES: usize = 8;
/// Most names that replace a pronoun; more of them are appended in brackets.
const MAX_INLINE: usize = 3;

/// Inserts the names that the pronoun of a part refers to: `show how many lines each has` becomes `show how many
/// lines each of a.txt and b.txt has`. Returns the part unchanged if there is nothing to refer to, or too much.
pub fn refer(part: &str, names: &[String]) -> String {
    let Some(found) =
        REFERS.as_ref().and_then(|form| form.find_iter(part).find(|f| !is_described(f.as_str(), &part[f.end()..])))
    else {
        return part.to_owned();
    };
    if names.is_empty() || names.len() > MAX_NAMES || names.iter().any(|name| part.contains(name.as_str())) {
        return part.to_owned();
    }
    // a name with blanks in it could be read as several words of the request
    let quoted = |name: &String| if name.contains(char::is_whitespace) { format!("\"{name}\"") } else { name.clone() };
    let names: Vec<String> = names.iter().map(quoted).collect();
    let all = match names.as_slice() {
        [one] => one.clone(),
        [before @ .., last] => format!("{} and {last}", before.join(", ")),
        [] => return part.to_owned(),
    };
    let word = found.as_str().to_lowercase();
    let (before, behind) = (&part[..found.start()], &part[found.end()..]);
    if word.starts_with("each") && names.len() > 1 {
        return format!("{before}each of {all}{behind}");
    }
    // a few names replace the word; `its`, `they` and `each` stay, as the sentence needs them
    let inline = !matches!(word.as_str(), "its" | "they") && !word.starts_with("each") && names.len() <= MAX_INLINE;
    if inline { format!("{before}{all}{behind}") } else { format!("{part} ({})", names.join(", ")) }
}

/// Replaces `them` by the object of the part before, for when no names are known: after `count the logs in old`,
/// `delete them` becomes `delete the logs in old`.
pub fn stand_in(part: &str, before: &str) -> String {
    let Some((_, thing)) = before.trim().split_once(' ') else { return part.to_owned() };
    let is_known =
        ["the ", "all ", "every "].iter().any(|begin| thing.to_lowercase().starts_with(begin)) && !refers(thing);
    let mut words: Vec<&str> = part.split(' ').collect();
    match words.iter_mut().find(|word| word.eq_ignore_ascii_case("them")) {
        Some(word) if is_known => *word = thing,
        _ => return part.to_owned(),
    }
    words.join(" ")
}

/// True if the part has a word that refers to earlier results.
pub fn refers(part: &str) -> bool {
    REFERS.as_ref().is_some_and(|form| form.find_iter(part).any(|f| !is_described(f.as_str(), &part[f.end()..])))
}

/// True if the part only asks for the number of things that the one before has found.
pub fn tallies(part: &str) -> bool {
    static FORM: LazyLock<Option<Regex>> = LazyLock::new(|| {
        Regex::new(r"(?i)^(?:count|show how many|print how many) (?:(?:all of )?(?:them|these|those)(?: all)?|there are)[.!]?$").ok()
    });
    FORM.as_ref().is_some_and(|form| form.is_match(part.trim()))
}

/// Things that are found in folders.
const IN_FOLDERS: &[&str] = &[
    "config",
    "configs",
    "csv",
    "directories",
    "directory",
    "document",
    "documents",
    "file",
    "files",
    "folder",
    "folders",
    "image",
    "images",
    "log",
    "logs",
    "note",
    "notes",
    "photo",
    "photos",
    "picture",
    "pictures",
    "script",
    "scripts",
    "source",
    "sources",
    "text",
    "texts",
];

/// Appends `below .` to a part about files that names no place. Without a place it is easily understood as about the
/// whole system.
pub fn locate(part: &str) -> String {
    let words = path_words(part);
    let placed = |w: &String| {
        w.contains('/') || ["in", "below", "under", "inside", "here", "within", "from", "of"].contains(&w.as_str())
    };
    // something to be created has no place yet: `create a folder backup below .` would be read as `.backup`
    let makes =
        words.first().is_some_and(|verb| ["add", "create", "generate", "make", "touch"].contains(&verb.as_str()));
    let about = !makes && words.iter().any(|w| IN_FOLDERS.contains(&w.as_str()));
    let named =
        words.iter().skip(1).any(|w| w.split_once('.').is_some_and(|(stem, ext)| !stem.is_empty() && !ext.is_empty()));
    if about && !named && !words.iter().any(placed) { format!("{part} below .") } else { part.to_owned() }
}

/// True if the text after a referring word identifies the thing: `the files in notes` and `the file a.txt` are not
/// those found before.
fn is_described(word: &str, rest: &str) -> bool {
    const SAYS_WHICH: &[&str] = &[
        "in", "of", "from", "with", "named", "called", "that", "which", "older", "newer", "ending", "whose", "under",
        "below",
    ];
    // words that continue the sentence after `the file`; any other word is its name
    const CONTINUES: &[&str] = &[
        "a",
        "afterwards",
        "again",
        "all",
        "alphabetically",
        "and",
        "are",
        "as",
        "at",
        "back",
        "be",
        "because",
        "behind",
        "by",
        "each",
        "for",
        "has",
        "have",
        "holds",
        "how",
        "into",
        "is",
        "it",
        "on",
        "or",
        "over",
        "so",
        "starts",
        "then",
        "there",
        "to",
        "together",
        "too",
        "was",
        "were",
        "what",
        "will",
        "you",
    ];
    let next = rest.split_whitespace().next().unwrap_or_default().to_lowercase();
    let thing = word.to_lowercase();
    let is_thing =
        thing.starts_with("the ") && ["file", "folder", "files", "folders"].iter().any(|end| thing.ends_with(end));
    rest.starts_with(' ')
        && (SAYS_WHICH.contains(&next.as_str())
            || is_thing && !next.starts_with('(') && !CONTINUES.contains(&next.trim_end_matches([',', '.', ';'])))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counting_parts_are_recognized() {
        for part in ["count them", "Count them all.", "show how many there are", "count all of those"] {
            assert!(tallies(part), "{part}");
        }
        for part in ["count their lines", "count the errors in them", "count the files", "show them"] {
            assert!(!tallies(part), "{part}");
        }
    }

    #[test]
    fn the_kind_depends_on_the_verb() {
        for (part, later, want) in [
            ("find the three largest log files", false, Kind::Command),
            ("show how many errors each has", true, Kind::Command),
            ("write a summary to report.md", true, Kind::Compose("report.md".into())),
            ("save the list in names.txt", true, Kind::Save("names.txt".into())),
            ("save the five largest files in big.txt", false, Kind::Command),
            ("put the number in plan.md as the first line", true, Kind::Command),
            ("write the total into a.csv as a new row", true, Kind::Command),
            ("write their names into README.md under the heading Logs", true, Kind::Free),
            ("save the list in names.txt (it is not there yet)", true, Kind::Save("names.txt".into())),
            ("tell me the total", true, Kind::Tell),
            ("tell me how many files there are", false, Kind::Command),
            ("summarize README.md", false, Kind::Free),
            ("fix the bug in main.py", false, Kind::Free),
            ("fix teh to the in notes.md", false, Kind::Command),
            ("create a script hello.sh that prints a line", false, Kind::Free),
            ("create a folder backup", false, Kind::Command),
            ("write a poem to sea.txt", false, Kind::Free),
            ("write the sha256 sums of all files in release to SUMS.txt", false, Kind::Command),
            ("write all names to names.txt", false, Kind::Command),
            ("write the story of a boat", false, Kind::Free),
        ] {
            assert_eq!(kind(part, later), want, "{part}");
        }
    }

    #[test]
    fn texts_about_files_are_composed() {
        for (part, file) in [
            ("translate de.txt to English and save it to en.txt", Some("en.txt")),
            ("write one sentence about each of the notes in notes to summary.md", Some("summary.md")),
            ("write the names to names.txt", None),
            ("summarize notes.txt", None),
            ("find the logs", None),
        ] {
            assert_eq!(composes(part).as_deref(), file, "{part}");
        }
    }

    #[test]
    fn a_pronoun_is_replaced_by_the_object_before() {
        let count = "count the .tmp files below build";
        assert_eq!(stand_in("delete them", count), "delete the .tmp files below build");
        assert_eq!(stand_in("move them to old", count), "move the .tmp files below build to old");
        for (part, before) in
            [("delete it", count), ("delete them", "count a few"), ("delete them", "show them"), ("show them", "")]
        {
            assert_eq!(stand_in(part, before), part);
        }
    }

    #[test]
    fn parts_about_files_get_a_place() {
        for (part, want) in [
            ("find the three largest log files", "find the three largest log files below ."),
            ("list the files in notes", "list the files in notes"),
            ("delete the file a.txt", "delete the file a.txt"),
            ("show the top processes", "show the top processes"),
            ("find logs under /var/log", "find logs under /var/log"),
            ("create a folder backup", "create a folder backup"),
        ] {
            assert_eq!(locate(part), want);
        }
    }

    #[test]
    fn a_pronoun_gets_its_names() {
        let names = |list: &[&str]| list.iter().map(|n| n.to_string()).collect::<Vec<_>>();
        for (part, list, want) in [
            (
                "show how many lines each has",
                &["a.txt", "b.txt"][..],
                "show how many lines each of a.txt and b.txt has",
            ),
            ("delete it", &["x/big.bin"], "delete x/big.bin"),
            ("count its lines", &["x and delete the rest.txt"], "count its lines (\"x and delete the rest.txt\")"),
            ("show the changed file", &["app.ini"], "show app.ini"),
            ("count its lines", &["x.txt"], "count its lines (x.txt)"),
            ("move them to old", &["a.c", "b.c"], "move a.c and b.c to old"),
            ("delete them", &["w", "x", "y", "z"], "delete them (w, x, y, z)"),
            ("delete the folder tmp", &[], "delete the folder tmp"),
            ("delete the file tmp.txt", &["logs/web.log"], "delete the file tmp.txt"),
            ("delete the folder tmp", &["logs/web.log"], "delete the folder tmp"),
            ("copy the report to the folder old", &["a.log"], "copy the report to the folder old"),
            ("delete all .tmp files in this folder", &["a.log"], "delete all .tmp files in this folder"),
            ("copy the files to old", &["a.c"], "copy a.c to old"),
            ("delete the new file", &["a.c"], "delete a.c"),
            ("list the files in notes", &["a.txt"], "list the files in notes"),
            ("sort items by price", &["a"], "sort items by price"),
        ] {
            assert_eq!(refer(part, &names(list)), want);
        }
        let many: Vec<String> = (0..20).map(|i| format!("f{i}")).collect();
        assert_eq!(refer("delete them", &many), "delete them");
    }
}
