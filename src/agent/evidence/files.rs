//! Finds the files that a part asks for a second time, without a model, to check a result. Handles only parts of which
//! every word is understood; where a part is ambiguous (hidden files, subfolders, bytes or blocks) any reading counts.

use super::{number, numbers, shown, trim_path, words};
use std::time::SystemTime;

/// A file below the working folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Measured {
    /// Its path, relative to the working folder.
    pub path: String,
    /// Its length in bytes.
    pub bytes: u64,
    /// Its size on disk in bytes; the length if the system does not report it.
    pub taken: u64,
    /// The time of its last modification.
    pub modified: SystemTime,
}

/// A parsed part that asks for files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Query {
    /// The extensions, each with its dot; empty for all files.
    extensions: Vec<String>,
    /// True if the extensions are only the usual ones of a kind of files, which may have others too.
    usual: bool,
    empty: bool,
    /// A folder, relative to the working folder; empty for the working folder.
    folder: String,
    /// True if the part asks for subfolders.
    deep: bool,
    pick: Pick,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pick {
    All,
    Count,
    /// This number of greatest (true) or least (false) files.
    Most(usize, By, bool),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum By {
    Size,
    Time,
}

/// Most file names that are read from a result.
pub const MAX_NAMED: usize = 40;

/// Words for kinds of files, with their extensions.
const KINDS: &[(&str, &[&str])] = &[
    ("log", &[".log"]),
    ("csv", &[".csv"]),
    ("text", &[".txt"]),
    ("txt", &[".txt"]),
    ("markdown", &[".md"]),
    ("python", &[".py"]),
    ("rust", &[".rs"]),
    ("json", &[".json"]),
    ("yaml", &[".yaml", ".yml"]),
    ("html", &[".html", ".htm"]),
    ("css", &[".css"]),
    ("pdf", &[".pdf"]),
    ("png", &[".png"]),
    ("zip", &[".zip"]),
    ("xml", &[".xml"]),
];

impl Query {
    /// Parses a part; `None` unless every word is understood.
    pub fn of(part: &str) -> Option<Self> {
        const NEUTRAL: &[&str] = &[
            "find",
            "show",
            "list",
            "get",
            "print",
            "display",
            "give",
            "name",
            "what",
            "whats",
            "what's",
            "which",
            "is",
            "are",
            "me",
            "us",
            "the",
            "all",
            "every",
            "of",
            "there",
            "here",
            "in",
            "below",
            "under",
            "inside",
            "within",
            "this",
            "current",
            "folder",
            "directory",
            "do",
            "i",
            "we",
            "have",
            "by",
            "size",
            "with",
            "their",
            "its",
            "sizes",
        ];
        let all = words(part);
        let lower: Vec<String> = all.iter().map(|w| w.to_lowercase()).collect();
        let mut query = Self {
            extensions: Vec::new(),
            usual: false,
            empty: false,
            folder: String::new(),
            deep: false,
            pick: Pick::All,
        };
        let (mut most, mut how_many, mut counts, mut files) = (None, None, false, false);
        let mut rest = lower.iter().map(String::as_str).zip(&all).peekable();
        while let Some((word, written)) = rest.next() {
            match word {
                "how" if rest.next_if(|(next, _)| *next == "many").is_some() => counts = true,
                "number" if rest.next_if(|(next, _)| *next == "of").is_some() => counts = true,
                "count" => counts = true,
                "largest" | "biggest" => most = Some((By::Size, true)),
                "smallest" => most = Some((By::Size, false)),
                "newest" | "latest" => most = Some((By::Time, true)),
                "oldest" => most = Some((By::Time, false)),
                "empty" => query.empty = true,
                "file" | "files" => {
                    how_many = how_many.or((word == "file" && !counts).then_some(1));
                    files = true;
                }
                "recursively" => query.deep = true,
                _ if NEUTRAL.contains(&word) => {}
                _ if number(word).is_some() => how_many = number(word),
                _ if word.starts_with("./") || word.ends_with('/') => {
                    // only below the working folder; the name is compared with its case
                    let inside = !word.starts_with(['/', '~']) && !word.contains("..") && query.folder.is_empty();
                    query.folder = Some(trim_path(written)).filter(|name| inside && !name.is_empty())?.to_owned();
                }
                _ => {
                    let kind = KINDS.iter().find(|(name, _)| *name == word);
                    let extension = word.trim_start_matches('*');
                    // after `files in`, a word such as `.github` is a folder
                    let is_extension = !files
                        && extension
                            .strip_prefix('.')
                            .is_some_and(|end| !end.is_empty() && end.chars().all(char::is_alphanumeric));
                    if !query.extensions.is_empty() || kind.is_none() && !is_extension {
                        return None;
                    }
                    query.usual = kind.is_some();
                    query.extensions = kind.map_or_else(
                        || vec![extension.to_owned()],
                        |(_, extensions)| extensions.iter().map(|e| (*e).to_owned()).collect(),
                    );
                }
            }
        }
        query.pick = match most {
            Some((by, up)) if !counts => Pick::Most(how_many?, by, up),
            None if counts && how_many.is_none() => Pick::Count,
            None if how_many.is_none() => Pick::All,
            _ => return None,
        };
        files.then_some(query)
    }

    /// Judges an output and the files it names: true if they are right under some reading of the part, false if they
    /// are wrong under all, `None` if that cannot be decided.
    pub fn judge(&self, files: &[Measured], printed: &str, names: &[String]) -> Option<bool> {
        let names: Vec<&str> = names.iter().map(|name| trim_path(name)).collect();
        let readings = [(true, true), (true, false), (false, true), (false, false)];
        let readings = readings.iter().filter(|(deep, _)| *deep || !self.deep);
        let sets: Vec<Vec<&Measured>> = readings
            .map(|(deep, hidden)| files.iter().filter(|file| self.takes(file, *deep, *hidden)).collect())
            .collect();
        let right = match self.pick {
            Pick::Count => {
                let [printed_count] = numbers(printed)[..] else { return None };
                let printed_count: usize = printed_count.parse().ok()?;
                let (least, most) = (sets.iter().map(Vec::len).min()?, sets.iter().map(Vec::len).max()?);
                // 0 is right only if no reading finds a file; a number in between may count some of the hidden files
                match printed_count {
                    0 => most == 0,
                    _ if sets.iter().any(|set| set.len() == printed_count) => true,
                    _ if (least..=most).contains(&printed_count) => return None,
                    _ => false,
                }
            }
            // a line that names no file or two files may mean something else
            _ if names.is_empty() || names.len() >= MAX_NAMED || names.len() != rows(printed) => return None,
            Pick::All => {
                sets.iter().any(|set| set.len() == names.len() && set.iter().all(|f| names.contains(&f.path.as_str())))
            }
            Pick::Most(count, by, up) => sets.iter().any(|set| best(set, &names, count, by, up)),
        };
        // a name that is not listed may be a link, and other extensions may be meant too
        let known = |name: &&str| files.iter().any(|file| file.path == **name);
        let is_open = self.usual
            && names.iter().any(|name| !self.extensions.iter().any(|end| name.to_lowercase().ends_with(end.as_str())));
        let some_hidden = self.pick == Pick::All && names.iter().any(|name| is_hidden(name));
        if !right && (is_open || some_hidden || !names.iter().all(known)) {
            return None;
        }
        Some(right)
    }

    /// Describes what is wrong with a result.
    pub fn explain(&self, files: &[Measured], names: &[String]) -> String {
        let set: Vec<&Measured> = files.iter().filter(|file| self.takes(file, true, false)).collect();
        let named = |file: &Measured| names.iter().any(|name| trim_path(name) == file.path);
        match self.pick {
            Pick::Count => "It is another number of files: the disk was looked at.".into(),
            Pick::All => {
                let other = set.iter().find(|file| !named(file));
                other.map_or_else(
                    || "It names files that are not meant.".into(),
                    |file| format!("It does not name {}, which is meant, too.", shown(&file.path)),
                )
            }
            Pick::Most(..) => "These are not the ones: the disk was looked at.".into(),
        }
    }

    /// True if the part asks for this file, with or without subfolders and hidden files.
    fn takes(&self, file: &Measured, deep: bool, hidden: bool) -> bool {
        let below = match self.folder.as_str() {
            "" => Some(file.path.as_str()),
            folder => file.path.strip_prefix(folder).and_then(|rest| rest.strip_prefix('/')),
        };
        let Some(path) = below else { return false };
        let lower = path.to_lowercase();
        let fits = self.extensions.is_empty() || self.extensions.iter().any(|end| lower.ends_with(end.as_str()));
        let shows = hidden || !is_hidden(path);
        fits && shows && (deep || !path.contains('/')) && (!self.empty || file.bytes == 0)
    }
}

fn is_hidden(path: &str) -> bool {
    path.split('/').any(|name| name.starts_with('.'))
}

fn rows(printed: &str) -> usize {
    printed.lines().filter(|line| !line.trim().is_empty()).count()
}

/// True if the names are the `count` greatest (or least) files of the set by one of the measures, whichever of equal
/// ones they are.
fn best(set: &[&Measured], names: &[&str], count: usize, by: By, up: bool) -> bool {
    let named: Vec<&Measured> = set.iter().copied().filter(|file| names.contains(&file.path.as_str())).collect();
    if named.len() != names.len() || named.len() != count.min(set.len()) {
        return false;
    }
    let right = |measure: &dyn Fn(&Measured) -> i128| {
        let sorted = |files: &[&Measured]| {
            let mut all: Vec<i128> = files.iter().map(|file| measure(file)).collect();
            all.sort_unstable_by_key(|value| if up { -value } else { *value });
            all
        };
        sorted(set).starts_with(&sorted(&named))
    };
    match by {
        By::Size => right(&|file| i128::from(file.bytes)) || right(&|file| i128::from(file.taken)),
        By::Time => {
            let since = |file: &Measured| file.modified.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
            // printed times are often in whole seconds
            right(&|file| since(file).as_nanos().cast_signed()) || right(&|file| i128::from(since(file).as_secs()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn files() -> Vec<Measured> {
        let file = |(path, bytes, age): (&str, u64, u64)| Measured {
            path: path.into(),
            bytes,
            taken: bytes.next_multiple_of(4096),
            modified: SystemTime::UNIX_EPOCH + Duration::from_hours(1000 - age),
        };
        let all = [
            ("logs/web.log", 20_000, 1),
            ("logs/worker.log", 15_000, 5),
            ("var/old/batch.log", 12_000, 9),
            ("var/tiny.log", 40, 2),
            ("notes.md", 25_000, 3),
            (".hidden.log", 90_000, 20),
            ("empty.txt", 0, 4),
        ];
        all.map(file).to_vec()
    }

    fn judge(part: &str, printed: &str, names: &[&str]) -> Option<bool> {
        let names: Vec<String> = names.iter().map(|n| n.to_string()).collect();
        let printed = if printed.is_empty() { names.join("\n") } else { printed.to_owned() };
        Query::of(part).unwrap().judge(&files(), &printed, &names)
    }

    #[test]
    fn only_parts_that_are_fully_understood_are_parsed() {
        for open in [
            "find the three largest log files of the last week",
            "find the largest files",
            "the newest release",
            "list the users",
            "the three largest files that are not in logs",
            "find files called web",
            "count the lines of all log files",
            "find the two oldest files in archive and move them",
            "count the files in .github",
            "count the files in /etc/",
            "how many files are in ~/Downloads/",
            "list the files in ../x/",
            "how many files of size 0 are there",
            "list all files (also hidden ones) that have more than 100 lines",
            "find the largest log file (without app.log)",
        ] {
            assert_eq!(Query::of(open), None, "{open}");
        }
    }

    #[test]
    fn the_greatest_files_are_checked() {
        let (web, worker, batch) = ("./logs/web.log", "./logs/worker.log", "./var/old/batch.log");
        let largest = "find the three largest log files";
        assert_eq!(judge(largest, "", &[web, worker, batch]), Some(true));
        assert_eq!(judge(largest, "", &["./.hidden.log", web, worker]), Some(true), "hidden files may be meant");
        assert_eq!(judge(largest, "", &[web, worker, "var/tiny.log"]), Some(false));
        assert_eq!(judge(largest, "", &[web, worker]), Some(false), "three were asked for");
        assert_eq!(judge(largest, "", &[]), None, "nothing is named");
        assert_eq!(judge("show the oldest .log file in ./logs", "", &[worker]), Some(true));
        assert_eq!(judge("show the oldest .log file in ./logs", "", &[web]), Some(false));
        assert_eq!(judge("which is the newest file?", "", &[web]), Some(true));
        assert_eq!(judge("whats the biggest file in here?", "", &["empty.txt"]), Some(false));
        assert_eq!(judge("what's the biggest file in here?", "", &["notes.md"]), Some(true));
        assert_eq!(judge("which is the newest file?", "", &["notes.md"]), Some(true), "of this folder alone");
    }

    #[test]
    fn lists_and_counts_are_checked() {
        assert_eq!(judge("list all empty files", "", &["empty.txt"]), Some(true));
        assert_eq!(judge("list all empty files", "", &["empty.txt", "notes.md"]), Some(false));
        assert_eq!(judge("list all empty files", "notes.md empty.txt\n\nthese\n", &["notes.md"]), None);
        assert_eq!(judge("list all files in ./logs", "", &["logs/web.log", "logs/worker.log"]), Some(true));
        assert_eq!(judge("list all yaml files", "", &["a.yml"]), None, "none of those that were measured");
        assert_eq!(judge("list all files in ./Logs", "", &["logs/web.log"]), Some(false), "another folder");
        assert_eq!(judge("how many json files are there", "0\n", &[]), Some(true));
        assert_eq!(judge("how many log files are there?", "4\n", &[]), Some(true));
        assert_eq!(judge("how many log files are there?", "0\n", &[]), Some(false));
        assert_eq!(judge("count the *.log files in logs/", "2\n", &[]), Some(true));
        assert_eq!(judge("count the *.log files in logs/", "7\n", &[]), Some(false));
        assert_eq!(judge("count the *.log files in logs/", "2 of 7\n", &[]), None);
    }
}
