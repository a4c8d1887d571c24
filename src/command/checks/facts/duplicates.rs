//! Files with the same content: `md5sum * | sort | uniq -d` compares whole lines, and each ends in another name.

use super::edit::{Edits, warning};
use super::{CheckContext, only};
use caro_shell::{Finding, Invocation, Userland, Word};

/// Programs that write a checksum before each name, and how many characters it has.
const SUMS: [(&str, u32); 5] =
    [("md5sum", 32), ("sha1sum", 40), ("sha224sum", 56), ("sha256sum", 64), ("sha512sum", 128)];

pub(super) fn check(it: &CheckContext) -> Vec<Finding> {
    check_script(it).into_iter().collect()
}

fn check_script(it: &CheckContext) -> Option<Finding> {
    let commands = &it.script.commands;
    let sums = commands.iter().filter_map(|c| SUMS.iter().find(|(name, _)| c.name() == Some(name)));
    let (name, length) = only(sums)?;
    let at = commands.iter().position(|c| c.name() == Some("uniq"))?;
    let uniq = &commands[at];
    // `-f` and `-s` skip what stands first, `-u` alone is another question
    let told = |w: &Word| {
        w.text.starts_with("--") || w.text.strip_prefix('-').is_some_and(|l| l.contains(['w', 'f', 's', 'u']))
    };
    let between = commands[..at]
        .iter()
        .filter(|c| !matches!(c.name(), Some("find" | "xargs" | "sort")) && c.name() != Some(name));
    if uniq.args().iter().any(told) || between.count() > 0 {
        return None;
    }
    let (program, sort) = (uniq.words.first()?, commands.iter().find(|c| c.name() == Some("sort")));
    let edits = Edits::new(it.script).after(program, &format!(" -w{length}"));
    // what is compared has to stand together
    let fix = match sort.map(|sort| (sort, by_name(sort))) {
        Some((sort, Some(_))) => edits.span(&sort.words, "sort"),
        _ => edits,
    };
    let able = it.target.userland == Userland::Gnu;
    let why = format!("every line ends in another name, so no two are the same: compare the first {length} characters");
    Some(warning("never-alike", program, why, fix.done().filter(|_| able && sort.is_some())))
}

/// The option with which it sorts by the name behind the sum.
fn by_name(sort: &Invocation) -> Option<&Word> {
    sort.args().iter().find(|w| w.text.starts_with("-k") || w.text.starts_with("--key"))
}

#[cfg(test)]
mod tests {
    use super::super::tests::findings;
    use super::*;

    #[test]
    fn sums_are_compared_without_the_names() {
        let fix = |command: &str| findings(check, "", command).into_iter().next().and_then(|f| f.fix);
        for (wrong, right) in [
            ("md5sum * | sort | uniq -d", "md5sum * | sort | uniq -w32 -d"),
            (
                "find . -type f -exec sha256sum {} + | sort -k 2 | uniq -D",
                "find . -type f -exec sha256sum {} + | sort | uniq -w64 -D",
            ),
            (
                "find . -type f -print0 | xargs -0 md5sum | sort | uniq -d | cut -d' ' -f1",
                "find . -type f -print0 | xargs -0 md5sum | sort | uniq -w32 -d | cut -d' ' -f1",
            ),
        ] {
            assert_eq!(fix(wrong).as_deref(), Some(right));
            assert_eq!(fix(right), None);
        }
        for right in [
            "md5sum * | awk '{print $1}' | sort | uniq -d",
            "md5sum * | cut -c1-32 | sort | uniq -c",
            "md5sum * | sort",
            "sort a | uniq -d",
        ] {
            assert_eq!(fix(right), None, "{right}");
        }
    }
}
