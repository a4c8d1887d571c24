//! "How often each word occurs", and one number comes out; the files of an archive, and its folders are counted with them.

use super::Inspected;
use super::edit::{Edits, warning};
use super::words::Words;
use crate::shell::Finding;

pub(super) fn check(it: &Inspected) -> Vec<Finding> {
    let words = Words::of(it.request);
    one_number(it, &words).or_else(|| folders_too(it, &words)).into_iter().collect()
}

/// `grep -o x a.txt | wc -l` for "count how often each word occurs".
fn one_number(it: &Inspected, words: &Words) -> Option<Finding> {
    const COUNTS: [&str; 6] = ["count", "how many", "how often", "number of", "occurrences", "frequency"];
    const EACH: [&str; 3] = ["each", "per", "respectively"];
    const WHOLE: [&str; 8] = ["total", "altogether", "combined", "overall", "sum", "in all", "together", "each other"];
    let asked = words.say(&COUNTS) && words.say(&EACH) && !words.say(&WHOLE) && !words.negate() && !describes(words);
    let commands = &it.script.commands;
    // what runs in a loop, or for each line, runs often
    let once = commands.iter().all(|c| c.inside.is_none() && c.via.is_empty());
    let looped = ["for ", "while ", "until ", "read "].iter().any(|word| it.script.text.contains(word));
    let last = commands.last().filter(|c| asked && once && !looped && c.name() == Some("wc") && c.stdin_pipe)?;
    let alone = commands.iter().filter(|c| matches!(c.name(), Some("wc"))).count() == 1;
    let one = alone && last.operands().next().is_none() && last.pipe.is_some_and(|p| p.index + 1 == p.length);
    // who has counted before counts the groups
    let grouped = commands.iter().any(|c| matches!(c.name(), Some("uniq" | "awk" | "sort")));
    let program = last.words.first().filter(|_| one && !grouped)?;
    Some(warning("one-number", program, "a number for each is asked for, and this prints one number for all", None))
}

/// True where "each" or "per" says how things are, and not how they are to be counted: one address per line, 10 MB each.
fn describes(words: &Words) -> bool {
    let list = words.list();
    let word = |at: Option<usize>| at.and_then(|at| list.get(at)).map_or("", String::as_str);
    list.iter().enumerate().any(|(at, w)| match w.as_str() {
        "per" => {
            matches!(word(Some(at + 1)), "line" | "row")
                && matches!(word(at.checked_sub(2)), "one" | "a" | "1" | "each" | "files" | "")
                || word(at.checked_sub(1)) == "one"
        }
        "each" => {
            let before = word(at.checked_sub(1));
            matches!(before, "mb" | "gb" | "kb" | "bytes" | "lines" | "characters" | "megabytes" | "kilobytes")
                || before.starts_with(|c: char| c.is_ascii_digit())
        }
        _ => false,
    })
}

/// `tar -tf a.tgz | wc -l` for "how many files are in it".
fn folders_too(it: &Inspected, words: &Words) -> Option<Finding> {
    let [tar, wc] = it.script.commands.as_slice() else { return None };
    let lists = tar.name() == Some("tar")
        && tar.args().iter().any(|w| {
            w.text == "--list"
                || !w.text.starts_with("--") && !w.text.contains(['.', '/', 'x', 'c']) && w.text.contains('t')
        });
    let lines = wc.name() == Some("wc") && wc.args().iter().map(|w| w.text.as_str()).eq(["-l"]);
    let files = words.say(&["files"])
        && !words.say(&[
            "folders",
            "folder",
            "directories",
            "directory",
            "dirs",
            "subfolders",
            "subdirectories",
            "entries",
            "items",
            "members",
            "everything",
            "lines",
        ]);
    let program = wc.words.first().filter(|_| lists && lines && files && tar.feeds == [1])?;
    let fix = Edits::new(it.script).span(&wc.words, "grep -vc '/$'").done();
    Some(warning("folders-counted", program, "tar lists folders, too: they end with a slash", fix))
}

#[cfg(test)]
mod tests {
    use super::super::tests::findings;
    use super::*;

    #[test]
    fn each_has_a_number_of_its_own() {
        let found = |request, command| findings(check, request, command).into_iter().next().map(|f| f.id);
        let request = "count how often each word occurs in a.txt";
        assert_eq!(found(request, "grep -o 'we' a.txt | wc -l").as_deref(), Some("one-number"));
        assert_eq!(found("number of files per folder", "find . -type f | wc -l").as_deref(), Some("one-number"));
        for (request, right) in [
            (request, "tr -s ' ' '\\n' < a.txt | sort | uniq -c"),
            ("how many lines does each file have", "wc -l *.txt"),
            ("how many lines does each file have", "for f in *; do echo \"$f $(cat \"$f\" | wc -l)\"; done"),
            ("how many lines do the files have, each counted, in total", "cat * | wc -l"),
            ("how many users have a file each", "sort -u a | wc -l"),
            ("how many lines", "cat a | wc -l"),
            ("emails.txt has one address per line, how many are from gmail.com", "grep gmail.com emails.txt | wc -l"),
            ("list the files one per line and count them", "ls -1 | wc -l"),
            ("how many files of at least 10 MB each are there", "find . -type f -size +10M | wc -l"),
            ("number of lines per file", "find . -type f -exec sh -c 'cat \"$1\" | wc -l' _ {} \\;"),
        ] {
            assert_eq!(found(request, right), None, "{right}");
        }
    }

    #[test]
    fn folders_of_an_archive_are_no_files() {
        let fix =
            |request: &str, command: &str| findings(check, request, command).into_iter().next().and_then(|f| f.fix);
        let request = "how many files are in a.tar.gz";
        for list in ["tar -tf a.tar.gz", "tar tzf a.tar.gz", "tar --list -f a.tar.gz"] {
            let counted = format!("{list} | wc -l");
            assert_eq!(fix(request, &counted), Some(format!("{list} | grep -vc '/$'")));
        }
        assert_eq!(fix(request, "tar -tf a.tar.gz | grep -vc '/$'"), None);
        assert_eq!(fix("how many files and folders are in a.tar", "tar -tf a.tar | wc -l"), None);
        assert_eq!(fix(request, "ls | wc -l"), None);
    }
}
