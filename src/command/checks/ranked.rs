//! "The largest files", and `du`, which adds up folders and names no file.

use super::Inspected;
use super::edit::{Edits, is_cluster, warning, without};
use super::words::Words;
use crate::shell::{Finding, Invocation, Word};

pub(super) fn check(it: &Inspected) -> Vec<Finding> {
    of_script(it).into_iter().collect()
}

fn of_script(it: &Inspected) -> Option<Finding> {
    const FOLDERS: [&str; 6] = ["folder", "folders", "directory", "directories", "subfolders", "subdirectories"];
    let words = Words::of(it.request);
    let list = words.list();
    let rank = list.iter().position(|w| matches!(w.as_str(), "largest" | "biggest" | "smallest" | "heaviest"))?;
    // "largest files", "largest log files", not "the largest folder with files"
    let files = list.iter().skip(rank + 1).take(3).any(|w| matches!(w.as_str(), "file" | "files"));
    let ranked = list.iter().skip(rank + 1).take(3).any(|w| FOLDERS.contains(&w.as_str()));
    let du = it.script.commands.first().filter(|c| c.name() == Some("du") && files && !ranked)?;
    let lists_files = du.has_option(Some('a'), "all") || du.operands().any(|w| w.glob || w.expands);
    if lists_files || du.feeds.len() != 1 {
        return None;
    }
    let program = du.words.first()?;
    // who skips a line skips the folder itself, which has the largest sum: among files that is the largest of them
    let skips = |c: &Invocation| match c.name() {
        Some("sed") => c.args().iter().any(|w| w.text == "1d"),
        Some("tail") => c.args().iter().any(|w| w.text.contains('+')),
        _ => false,
    };
    let whole = !it.script.commands.iter().any(skips);
    let fix = by_file(du.args()).filter(|_| whole).and_then(|text| Edits::new(it.script).span(&du.words, &text).done());
    Some(warning("folders-ranked", program, "du adds up folders: it names no file without -a", fix))
}

/// The same sizes, of each file; `None` for arguments that are not known.
fn by_file(args: &[Word]) -> Option<String> {
    let (mut folders, mut flags) = (Vec::new(), Vec::new());
    let mut args = args.iter();
    while let Some(word) = args.next() {
        match word.text.as_str() {
            "-d" | "--max-depth" => drop(args.next()),
            "-s" | "--summarize" => {}
            text if text.starts_with("--max-depth=")
                || text.strip_prefix("-d").is_some_and(|n| n.parse::<u32>().is_ok()) => {}
            _ if is_cluster(word) => flags.push(without(&word.raw, 's')),
            text if !text.starts_with('-') => folders.push(word.raw.clone()),
            "--human-readable" | "--bytes" | "--apparent-size" => flags.push(word.raw.clone()),
            _ => return None,
        }
    }
    let from = if folders.is_empty() { ".".to_owned() } else { folders.join(" ") };
    let flags: String = flags.iter().filter(|f| !f.is_empty()).map(|f| format!(" {f}")).collect();
    Some(format!("find {from} -type f -exec du{flags} {{}} +"))
}

#[cfg(test)]
mod tests {
    use super::super::tests::findings;
    use super::*;

    #[test]
    fn the_largest_files_are_no_folders() {
        let fix = |request, command| findings(check, request, command).into_iter().next().and_then(|f| f.fix);
        let files = "the three largest files below media";
        for (wrong, right) in [
            (
                "du -h --max-depth=1 media | sort -rh | head -n 3",
                "find media -type f -exec du -h {} + | sort -rh | head -n 3",
            ),
            ("du -sb media | sort -nr | head -n 3", "find media -type f -exec du -b {} + | sort -nr | head -n 3"),
            ("du -d 1 | sort -nr | head -n 3", "find . -type f -exec du {} + | sort -nr | head -n 3"),
        ] {
            assert_eq!(fix(files, wrong).as_deref(), Some(right));
            assert_eq!(fix(files, right), None);
        }
        let skipped = findings(check, files, "du -d 1 . | sort -rn | sed 1d | head -n 3");
        assert!(skipped.len() == 1 && skipped[0].fix.is_none(), "{skipped:?}");
        for right in ["du -ah media | sort -rh | head -n 3", "du -b media/* | sort -nr", "du -sh media"] {
            assert_eq!(fix(files, right), None, "{right}");
        }
        for folders in ["the largest folders in media", "biggest directories with files", "disk usage of files"] {
            assert_eq!(fix(folders, "du -h --max-depth=1 media | sort -rh"), None, "{folders}");
        }
    }
}
