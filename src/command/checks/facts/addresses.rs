//! Finds `sort -n` on IP addresses: it reads 10.0.0.101 as the number 10.0, while addresses have to be compared by
//! all four numbers.

use super::CheckContext;
use super::csv::first_lines;
use super::edit::{Edits, is_cluster, warning, without_letter};
use caro_shell::{Finding, Invocation, Userland, Word};
use std::net::Ipv4Addr;

pub(super) fn check(cx: &CheckContext) -> Option<Finding> {
    // files are read only if something is sorted by numbers
    let by_number = |sort: &Invocation| sort.args().iter().any(|w| is_cluster(w) && w.raw.contains('n'));
    if !cx.script.commands.iter().any(|c| c.name() == Some("sort") && by_number(c)) {
        return None;
    }
    let cwd = cx.cwd?;
    let are_addresses = |word: &Word| {
        let lines = first_lines(&cwd.join(&word.text));
        let mut lines = lines.iter().map(|line| line.trim()).filter(|line| !line.is_empty()).peekable();
        lines.peek().is_some() && lines.all(|line| line.parse::<Ipv4Addr>().is_ok())
    };
    let reads = |c: &&Invocation| {
        c.operands().any(are_addresses) || c.redirects.iter().any(|r| !r.writes() && are_addresses(&r.target))
    };
    let source = cx.script.commands.iter().find(reads)?;
    let readers = source.feeds.iter().filter_map(|at| cx.script.commands.get(*at));
    let sort = std::iter::once(source).chain(readers).find(|c| c.name() == Some("sort"))?;
    // other programs and options, such as `uniq -c`, print more than the addresses
    let passes_addresses = source.name() == Some("sort")
        || matches!(source.name(), Some("cat" | "grep" | "uniq" | "head" | "tail"))
            && source.args().iter().all(|w| !w.text.starts_with('-'));
    let options = sort.args();
    let has_key =
        options.iter().any(|w| w.text.starts_with("-k") || w.text.starts_with("--key") || w.text.contains('V'));
    if !passes_addresses || has_key {
        return None;
    }
    let numeric = options.iter().find(|w| is_cluster(w) && w.raw.contains('n'))?;
    let fixed = match cx.target.userland {
        Userland::Gnu => numeric.raw.replace('n', "V"),
        // a key with letters of its own ignores the global ones
        _ => {
            let is_reversed = numeric.raw.contains('r');
            let letters = if is_reversed { "nr" } else { "n" };
            let left = if is_reversed { without_letter(&numeric.raw, 'r') } else { numeric.raw.clone() };
            let keys: String = (1..=4).map(|key| format!(" -k{key},{key}{letters}")).collect();
            format!("{} -t.{keys}", without_letter(&left, 'n')).trim_start().to_owned()
        }
    };
    let fix = Edits::new(cx.script).replace(numeric, &fixed).apply();
    Some(warning("addresses", numeric, "-n compares the first two numbers of an address alone", fix))
}
