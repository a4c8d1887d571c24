//! `comm -23 old.txt new.txt` takes both files to be sorted, and calls lines missing that stand further down.

use super::Inspected;
use super::edit::{Edits, warning};
use crate::shell::{Dialect, Finding, Invocation, Word, parse};

/// The most bytes of a file that are looked at.
const MOST: u64 = 1 << 20;
/// Programs whose output is in order, or whose order is known to whoever uses them.
const IN_ORDER: [&str; 6] = ["sort", "ls", "seq", "comm", "printf", "gsort"];

pub(super) fn check(it: &Inspected) -> Vec<Finding> {
    it.script.commands.iter().filter(|c| c.name() == Some("comm")).filter_map(|comm| of_command(it, comm)).collect()
}

fn of_command(it: &Inspected, comm: &Invocation) -> Option<Finding> {
    let lists: Vec<&Word> = comm.operands().collect();
    let [_, _] = lists[..] else { return None };
    let (list, _) = lists.iter().find_map(|list| Some((*list, sorted(it, list)?)))?;
    let can_substitute = matches!(it.dialect, Dialect::Bash | Dialect::Zsh);
    let mended = lists.iter().try_fold(Edits::new(it.script), |edits, list| {
        let text = match sorted(it, list) {
            Some(text) => text,
            // one order for both: that of a file may be another language's
            None if list.text.starts_with("<(") || list.text == "-" => return Some(edits),
            None => format!("<(sort {})", list.raw),
        };
        Some(edits.replace(list, &text))
    });
    let fix = mended.filter(|_| can_substitute).and_then(Edits::done);
    let why = format!("comm compares sorted lists, and {} is none", list.raw);
    Some(warning("unsorted", list, why, fix))
}

/// The list in order, where it is not.
fn sorted(it: &Inspected, list: &Word) -> Option<String> {
    if let Some(inner) = list.raw.strip_prefix("<(").and_then(|raw| raw.strip_suffix(')')) {
        let script = parse(inner, it.dialect);
        let ordered = script.commands.iter().any(|c| c.name().is_none_or(|name| IN_ORDER.contains(&name)));
        if ordered || script.commands.is_empty() || !script.errors.is_empty() {
            return None;
        }
        let shown = match script.commands.as_slice() {
            [cat] if cat.name() == Some("cat") && cat.redirects.is_empty() => inner.strip_prefix("cat "),
            _ => None,
        };
        return Some(shown.map_or(format!("<({inner} | sort)"), |files| format!("<(sort {files})")));
    }
    let text = super::read(&it.cwd?.join(list.value.as_deref()?), MOST)?;
    let lines: Vec<&str> = text.lines().collect();
    let lower: Vec<String> = lines.iter().map(|line| line.to_lowercase()).collect();
    (!lines.is_sorted() && !lower.is_sorted()).then(|| format!("<(sort {})", list.raw))
}

#[cfg(test)]
mod tests {
    use super::super::tests::findings_in;
    use super::*;

    #[test]
    fn comm_is_given_sorted_lists() {
        let dir = tempfile::tempdir().unwrap();
        for (name, text) in [("old", "pear\napple\n"), ("new", "apple\npear\n"), ("words", "apple\nBerry\ncherry\n")] {
            std::fs::write(dir.path().join(name), text).unwrap();
        }
        let fix = |command| {
            findings_in(Some(dir.path()), check, "", command).into_iter().next().map(|f| f.fix.unwrap_or_default())
        };
        for (wrong, right) in [
            ("comm -23 old new", "comm -23 <(sort old) <(sort new)"),
            ("comm -12 new old | wc -l", "comm -12 <(sort new) <(sort old) | wc -l"),
            ("comm -12 <(cat old) <(cat new)", "comm -12 <(sort old) <(sort new)"),
            ("comm -3 <(sort new) <(cut -f1 old)", "comm -3 <(sort new) <(cut -f1 old | sort)"),
            ("comm -3 <(find a -type f) <(ls b)", "comm -3 <(find a -type f | sort) <(ls b)"),
            ("sort old | comm -13 - old", "sort old | comm -13 - <(sort old)"),
        ] {
            assert_eq!(fix(wrong).as_deref(), Some(right), "{wrong}");
        }
        for right in [
            "comm -23 new words",
            "comm -23 <(sort old) <(sort new)",
            "comm -23 <(sort -u old) words",
            "comm -12 <(ls a) <(ls b)",
            "comm -12 missing new",
            "comm --help",
            "diff old new",
        ] {
            assert_eq!(fix(right), None, "{right}");
        }
    }
}
