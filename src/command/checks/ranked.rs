//! "The largest files", and `du`, which adds up folders and names no file; "the largest folder", and the first one is that
//! which they are all in.

use super::CheckContext;
use super::edit::{Edits, is_cluster, warning, without};
use super::words::Words;
use crate::shell::{Finding, Invocation, Word};

pub(super) fn check(it: &CheckContext) -> Vec<Finding> {
    of_script(it).into_iter().collect()
}

fn of_script(it: &CheckContext) -> Option<Finding> {
    const FOLDERS: [&str; 8] =
        ["folder", "folders", "directory", "directories", "subfolder", "subfolders", "subdirectory", "subdirectories"];
    let words = Words::of(it.request);
    let list = words.list();
    let rank = list.iter().position(|w| matches!(w.as_str(), "largest" | "biggest" | "smallest" | "heaviest"))?;
    // "largest files", "largest log files", not "the largest folder with files"
    let said = |nouns: &[&str]| list.iter().skip(rank + 1).take(3).any(|w| nouns.contains(&w.as_str()));
    let (files, ranked) = (said(&["file", "files"]), said(&FOLDERS));
    let du = it.script.commands.first().filter(|c| c.name() == Some("du"))?;
    if ranked && !files && list[rank] != "smallest" {
        return itself(it, du);
    }
    let lists_files = du.has_option(Some('a'), "all") || du.operands().any(|w| w.glob || w.expands);
    if !files || ranked || lists_files || du.feeds.len() != 1 {
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

/// `du -d 1 store | sort -rh | head -n 1` for "the largest folder in store": that is store itself.
fn itself(it: &CheckContext, du: &Invocation) -> Option<Finding> {
    let [du_too, sort, head] = it.script.commands.as_slice() else { return None };
    let falls = sort.name() == Some("sort") && sort.args().iter().any(|w| is_cluster(w) && w.raw.contains('r'));
    let one_level = |w: &Word| matches!(w.text.as_str(), "--max-depth=1" | "-d1");
    let separate = du.args().windows(2).any(|w| matches!(w[0].text.as_str(), "-d" | "--max-depth") && w[1].text == "1");
    let by_level = separate || du.args().iter().any(one_level);
    if !std::ptr::eq(du, du_too)
        || !falls
        || head.name() != Some("head")
        || !by_level
        || du.has_option(Some('a'), "all")
    {
        return None;
    }
    let program = du.words.first()?;
    // of what a pattern names nothing holds the rest
    let (folders, flags) = parted(du.args()).filter(|_| !du.operands().any(|w| w.glob))?;
    let place = match folders.as_slice() {
        [] => ".",
        [one] => one.as_str(),
        _ => return None,
    };
    // hidden ones, too, and none that are only linked
    let own = format!("find {place} -mindepth 1 -maxdepth 1 -type d -exec du -s{flags} {{}} +");
    let fix = Edits::new(it.script).span(&du.words, &own).done();
    const WHY: &str = "the folder that they are in is listed with them, and is the largest";
    Some(warning("folder-itself", program, WHY, fix))
}

/// The same sizes, of each file; `None` for arguments that are not known.
fn by_file(args: &[Word]) -> Option<String> {
    let (folders, flags) = parted(args)?;
    let from = if folders.is_empty() { ".".to_owned() } else { folders.join(" ") };
    Some(format!("find {from} -type f -exec du{flags} {{}} +"))
}

/// The folders of `du`, and its flags but for those that say how deep it goes; `None` for arguments that are not known.
fn parted(args: &[Word]) -> Option<(Vec<String>, String)> {
    let (mut folders, mut flags) = (Vec::new(), String::new());
    let mut args = args.iter();
    while let Some(word) = args.next() {
        let flag = match word.text.as_str() {
            "-d" | "--max-depth" => {
                args.next();
                continue;
            }
            "-s" | "--summarize" => continue,
            text if text.starts_with("--max-depth=")
                || text.strip_prefix("-d").is_some_and(|n| n.parse::<u32>().is_ok()) =>
            {
                continue;
            }
            _ if is_cluster(word) => without(&word.raw, 's'),
            "-t" | "--threshold" | "--exclude" => return None,
            "--human-readable" | "--bytes" | "--apparent-size" => word.raw.clone(),
            text if !text.starts_with('-') => {
                folders.push(word.raw.clone());
                continue;
            }
            _ => return None,
        };
        if !flag.is_empty() {
            flags.push(' ');
            flags.push_str(&flag);
        }
    }
    Some((folders, flags))
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
        let folders = "the largest folder in media";
        for (wrong, right) in [
            (
                "du -h --max-depth=1 media | sort -rh | head -n 1",
                "find media -mindepth 1 -maxdepth 1 -type d -exec du -s -h {} + | sort -rh | head -n 1",
            ),
            (
                "du -d 1 | sort -nr | head -n 1",
                "find . -mindepth 1 -maxdepth 1 -type d -exec du -s {} + | sort -nr | head -n 1",
            ),
        ] {
            assert_eq!(fix(folders, wrong).as_deref(), Some(right));
            assert_eq!(fix(folders, right), None);
        }
        assert_eq!(fix(folders, "du -d 1 media/* | sort -nr | head -n 1"), None);
        assert_eq!(fix(folders, "du -d 1 media | sort -nr | tail -n +2 | head -n 1"), None);
        for folders in ["the largest folders in media", "biggest directories with files", "disk usage of files"] {
            assert_eq!(fix(folders, "du -h --max-depth=1 media | sort -rh"), None, "{folders}");
        }
    }
}
