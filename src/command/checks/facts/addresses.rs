//! `sort -n` reads 10.0.0.101 as the number 10.0: addresses are in order by each of their four numbers.

use super::CheckContext;
use super::csv::begin;
use super::edit::{Edits, is_cluster, warning, without};
use caro_shell::{Finding, Invocation, Userland, Word};
use std::net::Ipv4Addr;

pub(super) fn check(it: &CheckContext) -> Vec<Finding> {
    check_script(it).into_iter().collect()
}

fn check_script(it: &CheckContext) -> Option<Finding> {
    // files are looked into only where something is sorted by numbers
    let by_number = |sort: &Invocation| sort.args().iter().any(|w| is_cluster(w) && w.raw.contains('n'));
    let cwd = it.cwd.filter(|_| it.script.commands.iter().any(|c| c.name() == Some("sort") && by_number(c)))?;
    let are_addresses = |word: &Word| {
        let lines = begin(&cwd.join(&word.text));
        let mut whole = lines.iter().map(|line| line.trim()).filter(|line| !line.is_empty()).peekable();
        whole.peek().is_some() && whole.all(|line| line.parse::<Ipv4Addr>().is_ok())
    };
    let reads = |c: &&Invocation| {
        c.operands().any(are_addresses) || c.redirects.iter().any(|r| !r.writes() && are_addresses(&r.target))
    };
    let source = it.script.commands.iter().find(reads)?;
    let fed = || source.feeds.iter().filter_map(|at| it.script.commands.get(*at));
    let sort = std::iter::once(source).chain(fed()).find(|c| c.name() == Some("sort"))?;
    // its own output is another text, and keys say what they are
    let filters = source.name() == Some("sort")
        || matches!(source.name(), Some("cat" | "grep" | "uniq" | "head" | "tail"))
            && source.args().iter().all(|w| !w.text.starts_with('-'));
    let options = sort.args();
    let keyed = options.iter().any(|w| w.text.starts_with("-k") || w.text.starts_with("--key") || w.text.contains('V'));
    let numeric = options.iter().find(|w| is_cluster(w) && w.raw.contains('n')).filter(|_| filters && !keyed)?;
    let mended = match it.target.userland {
        Userland::Gnu => numeric.raw.replace('n', "V"),
        // a key with letters of its own does not hear of the others
        _ => {
            let (letters, left) =
                if numeric.raw.contains('r') { ("nr", without(&numeric.raw, 'r')) } else { ("n", numeric.raw.clone()) };
            let keys: String = (1..=4).map(|key| format!(" -k{key},{key}{letters}")).collect();
            format!("{} -t.{keys}", without(&left, 'n')).trim_start().to_owned()
        }
    };
    let fix = Edits::new(it.script).replace(numeric, &mended).done();
    Some(warning("addresses", numeric, "-n compares the first two numbers of an address alone", fix))
}

#[cfg(test)]
mod tests {
    use super::super::tests::findings_in;
    use super::*;

    #[test]
    fn addresses_are_sorted_by_all_their_numbers() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("ips.txt"), "10.0.0.101\n10.0.0.5\n\n9.9.9.9\n").unwrap();
        std::fs::write(dir.path().join("numbers.txt"), "10.5\n3\n").unwrap();
        let fix =
            |command: &str| findings_in(Some(dir.path()), check, "", command).into_iter().next().and_then(|f| f.fix);
        assert_eq!(fix("sort -n ips.txt").as_deref(), Some("sort -V ips.txt"));
        assert_eq!(fix("cat ips.txt | sort -nu").as_deref(), Some("cat ips.txt | sort -Vu"));
        for right in ["sort -V ips.txt", "sort -t. -k1,1n -k2,2n ips.txt", "sort ips.txt", "sort -n numbers.txt"] {
            assert_eq!(fix(right), None, "{right}");
        }
        for right in ["wc -l ips.txt | sort -n", "uniq -c ips.txt | sort -rn", "sort -n numbers.txt > ips.txt"] {
            assert_eq!(fix(right), None, "{right}");
        }
    }
}
