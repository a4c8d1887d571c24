//! Several sizes where one sum was asked for; file systems without their types; a folder that is counted and then not shown.

use super::edit::{Edits, cluster_with, is_cluster, warning};
use super::words::Words;
use super::{CheckContext, only};
use crate::shell::{Finding, Invocation, Userland, quote};

pub(super) fn check(it: &CheckContext) -> Vec<Finding> {
    let words = Words::of(it.request);
    let found = sum(it, &words).or_else(|| types(it, &words)).or_else(|| kind(it, &words)).or_else(|| counted(it));
    found.into_iter().collect()
}

/// The one command of a script that is this program.
fn named<'a>(it: &CheckContext<'a>, name: &str) -> Option<&'a Invocation> {
    let all = it.script.commands.iter().filter(|c| c.name() == Some(name) && c.inside.is_none());
    only(all)
}

/// `du -sb *.csv` for "the total size of the csv files".
fn sum(it: &CheckContext, words: &Words) -> Option<Finding> {
    const SUM: [&str; 9] = [
        "add up",
        "total size",
        "sum of the sizes",
        "in total",
        "all together",
        "altogether",
        "combined size",
        "sum up",
        "summed",
    ];
    const BOTH: [&str; 7] = [
        "and in total",
        "and the total",
        "and total",
        "with a total",
        "with the total",
        "and altogether",
        "and together",
    ];
    const EACH: [&str; 4] = ["each", "every", "per", "individual"];
    let du = named(it, "du").filter(|du| du.feeds.is_empty())?;
    let several = du.operands().any(|w| w.glob) || du.operands().count() > 1;
    let has = du.has_option(Some('c'), "total");
    // the word behind such a letter is its value, and no file
    let valued = du.args().iter().any(|w| is_cluster(w) && w.raw.ends_with(['d', 't', 'B', 'X']));
    if !words.say(&SUM) || words.say(&EACH) || has || valued || !several {
        return None;
    }
    let (program, last) = (du.words.first()?, du.words.last()?);
    let edits = Edits::new(it.script).after(program, " -c");
    let fix = if words.say(&BOTH) { edits.done() } else { edits.after(last, " | tail -n 1").done() };
    Some(warning("no-sum", program, "one sum is asked for, and this prints a size for each", fix))
}

/// `df -h` for "the file systems and their types".
fn types(it: &CheckContext, words: &Words) -> Option<Finding> {
    let df = named(it, "df").filter(|_| it.target.userland != Userland::Bsd)?;
    let asked = words.say(&["type", "types", "kind of file system", "kinds of file systems"]);
    let shown = df.args().iter().any(|w| w.text == "--print-type" || w.text.starts_with("--output"));
    if !asked || shown || cluster_with(df.args(), 'T').is_some() || df.has_option(Some('t'), "type") {
        return None;
    }
    let program = df.words.first()?;
    let fix = Edits::new(it.script).after(program, " -T").done();
    // the fields stand one further behind then
    let fix = fix.filter(|_| df.feeds.is_empty());
    Some(warning("no-types", program, "types are asked for: df -T shows them", fix))
}

/// `lsblk -o NAME,TYPE` for "the file system type of each partition": TYPE is disk or part.
fn kind(it: &CheckContext, words: &Words) -> Option<Finding> {
    let lsblk = named(it, "lsblk")?;
    let asked = words.say(&["filesystem", "filesystems", "file system", "file systems"])
        && words.say(&["type", "types", "which"]);
    let columns = lsblk.args().iter().find(|w| w.raw.split([',', '=']).any(|column| column == "TYPE"))?;
    let shown = lsblk.args().iter().any(|w| w.raw.contains("FSTYPE"));
    let fix = Edits::new(it.script).replace(columns, &columns.raw.replace("TYPE", "FSTYPE")).done();
    (asked && !shown).then(|| warning("no-types", columns, "TYPE is disk or partition: FSTYPE is the file system", fix))
}

/// `du -sh . | grep -v .git`: one line for all is printed, and the folder is in it.
fn counted(it: &CheckContext) -> Option<Finding> {
    let du = named(it, "du").filter(|du| cluster_with(du.args(), 's').is_some() || du.has_option(None, "summarize"))?;
    let grep = it.script.reader(du).filter(|c| c.name() == Some("grep"))?;
    let [flag, pattern] = grep.args() else { return None };
    let one = du.operands().all(|w| !w.glob) && du.operands().count() < 2;
    if flag.text != "-v" || !one || du.args().iter().any(|w| w.text.starts_with("--exclude")) {
        return None;
    }
    let name = pattern.value.as_deref()?.trim_matches('/').replace("\\.", ".");
    let plain = !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || "._-".contains(c));
    let (start, end) = (du.words.last()?.span.end, grep.words.last()?.span.end);
    let between = it.script.text.get(start..grep.words.first()?.span.start)?.trim();
    let (before, behind) = (it.script.text.get(..start)?, it.script.text.get(end..)?);
    let is_here = it.cwd.is_none_or(|cwd| cwd.join(&name).is_dir());
    if !plain || !is_here || name == "total" || between != "|" || it.target.userland == Userland::Busybox {
        return None;
    }
    let name = quote(&name, it.dialect);
    let option = if it.target.userland == Userland::Bsd { format!("-I {name}") } else { format!("--exclude={name}") };
    let at = du.words.first()?.span.end;
    let fix = format!("{} {option}{}{behind}", before.get(..at)?, before.get(at..)?);
    Some(warning("counted-in", pattern, "one size for all is printed, and what grep leaves out is in it", Some(fix)))
}

#[cfg(test)]
mod tests {
    use super::super::tests::findings;
    use super::*;

    fn fix(request: &str, command: &str) -> Option<String> {
        findings(check, request, command).into_iter().next().and_then(|f| f.fix)
    }

    #[test]
    fn a_file_system_has_a_type_of_its_own() {
        let request = "which filesystem type is /dev/sda1";
        assert_eq!(fix(request, "lsblk -o TYPE /dev/sda1").as_deref(), Some("lsblk -o FSTYPE /dev/sda1"));
        assert_eq!(fix(request, "lsblk -no FSTYPE /dev/sda1"), None);
        assert_eq!(fix("type of each block device", "lsblk -o NAME,TYPE"), None);
        assert_eq!(fix("file systems and what they are on", "lsblk -o NAME,TYPE,FSTYPE"), None);
    }

    #[test]
    fn one_sum_is_one_line() {
        let request = "total size of all csv files in data, in bytes";
        assert_eq!(fix(request, "du -sb data/*.csv").as_deref(), Some("du -c -sb data/*.csv | tail -n 1"));
        assert_eq!(fix("add up the sizes of a and b", "du a b").as_deref(), Some("du -c a b | tail -n 1"));
        for right in [
            "du -cb data/*.csv",
            "cat data/*.csv | wc -c",
            "du -sh data",
            "du -b data/*.csv | awk '{s+=$1} END {print s}'",
        ] {
            assert_eq!(fix(request, right), None, "{right}");
        }
        assert_eq!(fix("size of a and b, and in total", "du -sh a b").as_deref(), Some("du -c -sh a b"));
        assert_eq!(fix("sizes of the folders in data, and in total", "du -hd 1 data"), None);
        assert_eq!(fix("types of file systems but tmpfs", "df -x tmpfs").as_deref(), Some("df -T -x tmpfs"));
        assert_eq!(fix("total size of each folder", "du -sh */"), None);
    }

    #[test]
    fn file_systems_have_types() {
        let request = "what file systems are mounted and of which type";
        assert_eq!(fix(request, "df -h").as_deref(), Some("df -T -h"));
        assert_eq!(fix(request, "df").as_deref(), Some("df -T"));
        for right in ["df -hT", "df --output=source,fstype", "df -t ext4", "lsblk -f"] {
            assert_eq!(fix(request, right), None, "{right}");
        }
        assert_eq!(fix("free space", "df -h"), None);
    }

    #[test]
    fn what_is_left_out_is_not_counted() {
        assert_eq!(
            fix("", "du -sh . | grep -v .git | sort -rh").as_deref(),
            Some("du --exclude=.git -sh . | sort -rh")
        );
        assert_eq!(fix("", "du -s | grep -v '\\.git'").as_deref(), Some("du --exclude=.git -s"));
        for right in [
            "du -sh * | grep -v tmp",
            "du -h . | grep -v .git",
            "du -sh --exclude=.git . | grep -v x",
            "du -sh /root 2>&1 | grep -v 'Permission denied'",
            "du -shc . | grep -v total",
        ] {
            assert_eq!(fix("", right), None, "{right}");
        }
    }
}
