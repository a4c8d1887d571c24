//! `cat jan.csv feb.csv > all.csv`: each file begins with the names of the columns, and they stand in the middle then.

use super::CheckContext;
use super::csv::{begin, is_csv};
use super::edit::{Edits, warning};
use super::separator::{names, separated_by};
use super::words::Words;
use caro_shell::{Finding, Word};
use std::path::Path;

/// Files of a folder that a pattern is taken to name at most.
const MANY: usize = 50;

pub(super) fn check(it: &CheckContext) -> Vec<Finding> {
    check_script(it).into_iter().collect()
}

fn check_script(it: &CheckContext) -> Option<Finding> {
    let (cat, rest) = it.script.commands.split_first()?;
    // one file of several; what is counted, compared or shown has all of their lines
    let words = Words::of(it.request);
    const JOINS: [&str; 13] = [
        "append",
        "combine",
        "combined",
        "concatenate",
        "into one",
        "in one file",
        "join",
        "joined",
        "merge",
        "merged",
        "one csv",
        "one file",
        "single file",
    ];
    let is_order =
        words.contains_phrase(&JOINS) && !words.contains_phrase(&["count", "how many", "checksum", "size", "compare"]);
    let keeps_all = rest.iter().all(|c| matches!(c.name(), Some("sort" | "uniq" | "tee")));
    let plain = cat.name() == Some("cat") && keeps_all && is_order && cat.args().iter().all(is_csv);
    let files = heads(cat.args(), it.cwd.filter(|_| plain)?)?;
    let [first, others @ ..] = files.as_slice() else { return None };
    let header = first.first()?;
    let by = separated_by(first)?;
    // names are words, and rows are not only words
    let is_header = names(header, by).all(|name| name.starts_with(|c: char| c.is_alphabetic()))
        && first.get(1).is_some_and(|row| row.contains(|c: char| c.is_ascii_digit()));
    let as_is = words.contains_phrase(&[
        "as they are",
        "as is",
        "keep the headers",
        "keep both headers",
        "with headers",
        "unchanged",
        "including the headers",
    ]);
    if others.is_empty() || !is_header || as_is || others.iter().any(|lines| lines.first() != Some(header)) {
        return None;
    }
    let program = cat.words.first()?;
    let fix = Edits::new(it.script).replace(program, "awk 'FNR > 1 || NR == 1'").done();
    let why = format!("each of the files begins with the line {header}: once is enough");
    Some(warning("headers-repeated", program, why, fix))
}

/// How each of the files begins; `None` if there is no telling which they are.
fn heads(words: &[Word], cwd: &Path) -> Option<Vec<Vec<String>>> {
    let mut files = Vec::new();
    for word in words {
        match word.value.as_deref() {
            Some(name) if !word.glob => files.push(cwd.join(name)),
            _ => {
                // one star, in the last place of the path
                let (folder, pattern) = word.text.rsplit_once('/').unwrap_or((".", &word.text));
                let (start, end) = pattern.split_once('*').filter(|(start, end)| is_plain(start) && is_plain(end))?;
                let named = |path: &std::path::PathBuf| {
                    let name = path.file_name().and_then(|n| n.to_str());
                    name.is_some_and(|n| n.starts_with(start) && n.ends_with(end) && !n.starts_with('.'))
                };
                let entries = std::fs::read_dir(cwd.join(folder).as_path()).ok()?;
                files.extend(entries.filter_map(|e| Some(e.ok()?.path())).filter(named).take(MANY + 1));
            }
        }
    }
    if files.len() > MANY {
        return None;
    }
    files.sort_unstable();
    Some(files.iter().map(|file| begin(file)).collect())
}

/// True for a piece of a name that the shell takes as it is.
fn is_plain(text: &str) -> bool {
    !text.contains(['*', '?', '[', '{', '$', '\\'])
}

#[cfg(test)]
mod tests {
    use super::super::tests::findings_in;
    use super::*;

    #[test]
    fn one_header_is_enough() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("data")).unwrap();
        for (name, text) in [
            ("a.csv", "day,sum\n1,5\n"),
            ("b.csv", "day,sum\n2,6\n"),
            ("c.csv", "Ida,sea\nPer,oak\n"),
            ("data/x.csv", "a,b\nx,2\n"),
            ("data/y.csv", "a,b\n"),
        ] {
            std::fs::write(dir.path().join(name), text).unwrap();
        }
        let fix = |request, command| {
            findings_in(Some(dir.path()), check, request, command).into_iter().next().and_then(|f| f.fix)
        };
        let request = "merge a.csv and b.csv into all.csv";
        let right = "awk 'FNR > 1 || NR == 1' a.csv b.csv > all.csv";
        assert_eq!(fix(request, "cat a.csv b.csv > all.csv").as_deref(), Some(right));
        assert_eq!(
            fix(request, "cat data/*.csv | sort").as_deref(),
            Some("awk 'FNR > 1 || NR == 1' data/*.csv | sort")
        );
        for right in [
            right,
            "cat a.csv",
            "cat a.csv c.csv > all.csv",
            "cat *.csv",
            "cat a.csv none.csv",
            "cat a.csv b.csv | grep -v day",
            "cat c.csv c.csv",
        ] {
            assert_eq!(fix(request, right), None, "{right}");
        }
        for (request, right) in [
            ("merge them as they are", "cat a.csv b.csv"),
            ("how many lines do a.csv and b.csv have together", "cat a.csv b.csv | wc -l"),
            ("checksum of a.csv and b.csv joined", "cat a.csv b.csv | md5sum"),
            ("show a.csv and b.csv", "cat a.csv b.csv"),
        ] {
            assert_eq!(fix(request, right), None, "{right}");
        }
    }
}
