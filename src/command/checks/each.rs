//! "How often each word occurs", and one number comes out; the files of an archive, and its folders are counted with them.

use super::edit::{Edits, warning};
use super::order::line_count;
use super::words::Words;
use super::{CheckContext, starting_points};
use crate::shell::{Dialect, Finding};

pub(super) fn check(it: &CheckContext) -> Vec<Finding> {
    let words = Words::of(it.request);
    let of_files = per_folder(it, &words).or_else(|| one_number(it, &words)).or_else(|| folders_too(it, &words));
    of_files.or_else(|| one_line(it, &words)).into_iter().collect()
}

/// `head -n 1 a.txt | cut -c1` for "the first character of each line".
fn one_line(it: &CheckContext, words: &Words) -> Option<Finding> {
    let asked = words.say(&["each line", "every line", "all lines"]) && !words.say(&["first line", "line 1"]);
    let [head, reader] = it.script.commands.as_slice() else { return None };
    let one = head.name() == Some("head") && line_count(head).is_some_and(|(_, n)| n == 1) && head.feeds == [1];
    let takes = matches!(reader.name(), Some("cut" | "awk" | "sed")) && head.operands().count() <= 2;
    let file = head.words.last().filter(|w| asked && one && takes && !w.text.starts_with('-'))?;
    let program = head.words.first()?;
    let fix = Edits::new(it.script).span(&head.words, &format!("cat {}", file.raw)).done();
    let is_file = file.value.as_deref().is_some_and(|name| name.parse::<u64>().is_err());
    is_file.then(|| warning("one-line", program, "each line is asked for, and head takes the first one", fix))
}

/// `find . -type f | wc -l` for "how many files are in each subfolder".
fn per_folder(it: &CheckContext, words: &Words) -> Option<Finding> {
    const EACH: [&str; 3] = ["each", "every", "per"];
    const FOLDERS: [&str; 5] = ["subfolder", "subdirectory", "folder", "directory", "subdir"];
    let phrases = EACH.iter().flat_map(|each| FOLDERS.map(|folder| format!("{each} {folder}")));
    let asked = phrases.into_iter().any(|phrase| words.say(&[&phrase]));
    let counts = words.say(&["count", "how many", "number of"]) && words.say(&["files"]) && !words.negate();
    const OTHERWISE: [&str; 10] =
        ["lines", "size", "type", "extension", "named", "called", "containing", "larger", "older", "total"];
    let plain = !words.say(&OTHERWISE);
    let search = it.script.commands.first().filter(|c| c.name() == Some("find") && c.inside.is_none())?;
    let last = it.script.commands.last().filter(|c| c.name() == Some("wc") && c.stdin_pipe)?;
    let by_name = search.args().iter().any(|w| matches!(w.text.as_str(), "-name" | "-iname" | "-regex" | "-path"));
    // a loop counts for each already
    let looped = ["for ", "while ", "read ", "xargs"].iter().any(|word| it.script.text.contains(word));
    // fish writes its loops otherwise
    if !(asked && counts && plain) || by_name || looped || it.dialect == Dialect::Fish {
        return None;
    }
    let mut places = starting_points(search);
    let place = match (places.next(), places.next()) {
        (None, _) => String::new(),
        (Some(one), None) if matches!(one.text.as_str(), "." | "./") => String::new(),
        (Some(one), None) if !one.expands && !one.glob => format!("{}/", one.raw.trim_end_matches('/')),
        _ => return None,
    };
    let fix = format!(r#"for d in {place}*/; do echo "$(find "$d" -type f | wc -l) $d"; done"#);
    let why = "a number for each folder is asked for, and this prints one number for all";
    Some(warning("one-number", last.words.first()?, why, Some(fix)))
}

/// `grep -o x a.txt | wc -l` for "count how often each word occurs".
fn one_number(it: &CheckContext, words: &Words) -> Option<Finding> {
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
fn folders_too(it: &CheckContext, words: &Words) -> Option<Finding> {
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
    fn a_number_for_each_folder_and_all_of_the_lines() {
        let fix =
            |request: &str, command: &str| findings(check, request, command).into_iter().next().and_then(|f| f.fix);
        let each = "count the number of files in each subdirectory";
        let right = |place: &str| format!(r#"for d in {place}*/; do echo "$(find "$d" -type f | wc -l) $d"; done"#);
        for wrong in [
            "find . -mindepth 2 -type f | wc -l",
            "find . -type d | wc -l",
            "find . -type d -exec find {} -type f | wc -l \\;",
        ] {
            assert_eq!(fix(each, wrong), Some(right("")), "{wrong}");
        }
        assert_eq!(
            fix("how many files are in each folder below data", "find data -type f | wc -l"),
            Some(right("data/"))
        );
        for (request, command) in [
            ("how many files are there", "find . -type f | wc -l"),
            ("how many python files are in each folder", "find . -name '*.py' | wc -l"),
            (each, "for d in */; do find \"$d\" -type f | wc -l; done"),
            (each, "find . -type f -printf '%h\\n' | sort | uniq -c"),
        ] {
            assert_eq!(fix(request, command).filter(|fix| fix.starts_with("for d")), None, "{request}: {command}");
        }
        let first = "print the first character of each line in a.txt";
        assert_eq!(fix(first, "head -n 1 a.txt | cut -c1").as_deref(), Some("cat a.txt | cut -c1"));
        assert_eq!(fix("print the first character of a.txt", "head -n 1 a.txt | cut -c1"), None);
    }

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
