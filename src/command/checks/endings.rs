//! "The log files", and every file is taken; "the lines", and only those of `*.py`.

use super::edit::{Edits, warning};
use super::words::Words;
use super::{CheckContext, find, only};
use crate::shell::{Finding, Userland, Word};

/// Endings that are said as kinds of files: "csv files".
const ENDINGS: [&str; 36] = [
    "avi", "bak", "bmp", "c", "cfg", "conf", "cpp", "css", "csv", "flac", "gif", "go", "gz", "h", "htm", "html", "ini",
    "java", "jpeg", "jpg", "js", "json", "log", "md", "mp3", "mp4", "pdf", "php", "png", "py", "svg", "tmp", "txt",
    "xml", "yaml", "zip",
];

/// Beginnings of words for kinds of files, each with endings of its own.
const KINDS: [&str; 52] = [
    "archiv",
    "audio",
    "back",
    "bash",
    "book",
    "cach",
    "cert",
    "class",
    "code",
    "compress",
    "config",
    "cpp",
    "c++",
    "data",
    "doc",
    "dump",
    "font",
    "header",
    "image",
    "java",
    "javascript",
    "key",
    "lib",
    "log",
    "markdown",
    "modul",
    "movie",
    "music",
    "note",
    "object",
    "page",
    "perl",
    "photo",
    "pic",
    "present",
    "program",
    "project",
    "python",
    "ruby",
    "rust",
    "script",
    "setting",
    "shell",
    "song",
    "sound",
    "sourc",
    "spread",
    "table",
    "temp",
    "text",
    "video",
    "web",
];

/// What is of a kind: "text files".
const DOCUMENTS: [&str; 6] = ["file", "files", "document", "documents", "format", "type"];

pub(super) fn check(it: &CheckContext) -> Vec<Finding> {
    missing(it).or_else(|| invented(it)).or_else(|| anywhere(it)).into_iter().collect()
}

/// `find . -type f` for "the log files".
fn missing(it: &CheckContext) -> Option<Finding> {
    let words = Words::of(it.request);
    let list = words.list();
    let mut said = list.iter().enumerate().filter_map(|(i, w)| {
        let ending = w.strip_prefix("*.").or_else(|| w.strip_prefix('.')).unwrap_or(w);
        let is_kind =
            ENDINGS.contains(&ending) && matches!(list.get(i + 1).map(String::as_str), Some("file" | "files"));
        is_kind.then_some(ending)
    });
    let ending = said.next().filter(|_| said.next().is_none() && !words.negate())?;
    let search = find(it.script)?;
    const NAMES: [&str; 7] = ["-name", "-iname", "-path", "-ipath", "-regex", "-iregex", "-wholename"];
    let told = search.words.iter().any(|w| NAMES.contains(&w.text.as_str()));
    // a folder called so holds nothing else, and what filters afterwards filters, too
    let elsewhere = it
        .script
        .commands
        .iter()
        .flat_map(|c| c.args())
        .any(|w| w.text.contains(ending) && w.text.len() > ending.len() + 1)
        || search.words.iter().any(|w| w.text.contains(ending) && ending.len() > 1);
    let at = search.words.windows(2).position(|w| w[0].text == "-type" && w[1].text == "f")?;
    let fix = Edits::new(it.script).after(&search.words[at + 1], &format!(" -name '*.{ending}'")).done();
    (!told && !elsewhere).then(|| {
        warning("any-kind", &search.words[at + 1], format!("{ending} files are asked for, and this takes all"), fix)
    })
}

/// What files in a language end in.
const LANGUAGES: [(&str, &str); 12] = [
    ("python", "py"),
    ("javascript", "js"),
    ("typescript", "ts"),
    ("java", "java"),
    ("rust", "rs"),
    ("ruby", "rb"),
    ("php", "php"),
    ("perl", "pl"),
    ("markdown", "md"),
    ("html", "html"),
    ("css", "css"),
    ("csv", "csv"),
];

/// `grep -rn TODO .` for "TODO in python files".
fn anywhere(it: &CheckContext) -> Option<Finding> {
    let words = Words::of(it.request);
    let of = |(name, ending): &(&str, &'static str)| {
        words.say(&[&format!("{name} files"), &format!("{name} file")]).then_some(*ending)
    };
    let ending = only(LANGUAGES.iter().filter_map(of))?;
    let [grep] = it.script.commands.as_slice() else { return None };
    let recursive = grep.has_option(Some('r'), "recursive") || grep.has_option(Some('R'), "dereference-recursive");
    let told = it.script.text.contains(&format!(".{ending}")) || it.script.text.contains("--include");
    let able = grep.name() == Some("grep") && it.target.userland != Userland::Busybox;
    let program = grep.words.first().filter(|_| able && recursive && !told)?;
    let fix = Edits::new(it.script).after(program, &format!(" --include='*.{ending}'")).done();
    Some(warning("any-kind", program, format!("{ending} files are asked for, and this looks into all"), fix))
}

/// `grep --include='*.py'` where nobody spoke of a kind of file.
fn invented(it: &CheckContext) -> Option<Finding> {
    let request = it.request.to_lowercase();
    if request.is_empty() {
        return None;
    }
    let words = Words::of(it.request);
    let list = words.list();
    // "whose text contains": what is in any file
    let whole = |i: usize| list[i] == "text" && !list.get(i + 1).is_some_and(|w| DOCUMENTS.contains(&w.as_str()));
    let kind = |i: usize| KINDS.iter().any(|k| list[i].starts_with(k)) || ENDINGS.contains(&list[i].as_str());
    if (0..list.len()).any(|i| kind(i) && !whole(i)) {
        return None;
    }
    let grep = it.script.commands.iter().find(|c| matches!(c.name(), Some("grep" | "rg")))?;
    let filters = grep.args().iter().filter(|w| w.text.starts_with("--include="));
    let filter: &Word = only(filters)?;
    let ending = filter.text.rsplit_once("*.")?.1;
    let plain = ending.chars().all(|c| c.is_ascii_alphanumeric()) && !request.contains(ending);
    // `in typescript files`: some word says the kind, though it is none that we know
    const QUANTITIES: [&str; 14] =
        ["all", "the", "every", "each", "any", "these", "those", "my", "our", "of", "in", "many", "which", "more"];
    let said =
        list.windows(2).any(|w| matches!(w[1].as_str(), "file" | "files") && !QUANTITIES.contains(&w[0].as_str()));
    let fix = Edits::new(it.script).replace(filter, "").done();
    (plain && !said)
        .then(|| warning("one-kind", filter, format!("nothing is said of {ending} files: all are meant"), fix))
}

#[cfg(test)]
mod tests {
    use super::super::tests::findings;
    use super::*;

    #[test]
    fn the_kind_of_file_is_the_one_that_was_said() {
        let fix = |request, command| findings(check, request, command).into_iter().next().and_then(|f| f.fix);
        for (request, wrong, right) in [
            (
                "number of lines in every log file",
                "find . -type f -exec wc -l {} +",
                "find . -type f -name '*.log' -exec wc -l {} +",
            ),
            ("delete all .tmp files", "find . -type f -delete", "find . -type f -name '*.tmp' -delete"),
            ("lines longer than 80 in all files", "grep -rE --include='*.py' '.{81,}' lib", "grep -rE '.{81,}' lib"),
            ("which files contain the text hello", "grep -rl --include='*.txt' hello .", "grep -rl hello ."),
        ] {
            assert_eq!(fix(request, wrong).as_deref(), Some(right));
            assert_eq!(fix(request, right), None);
        }
        for (request, right) in [
            ("number of lines in every log file", "find /var/log -type f -exec wc -l {} +"),
            ("all png files", "find . -type f | grep '\\.png$'"),
            ("files that are no log files", "find . -type f ! -name '*.log'"),
            ("log files and txt files", "find . -type f -regex '.*\\.(log|txt)'"),
            ("all files in the log", "find . -type f"),
            ("TODO in the python files", "grep -rn --include='*.py' TODO ."),
            ("TODO in the source code", "grep -rn --include='*.c' TODO ."),
            ("which text documents contain hello", "grep -rl --include='*.txt' hello ."),
            ("which text files contain the text hello", "grep -rl --include='*.txt' hello ."),
            ("TODO in all .rs files", "grep -rn --include='*.rs' TODO ."),
        ] {
            assert_eq!(fix(request, right), None, "{right}");
        }
    }
}
