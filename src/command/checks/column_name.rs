//! `grep -v paid invoices.csv`, where "paid" is the name of a column: only the first line has that word.

use super::Inspected;
use super::csv::{begin, is_csv, separated_by};
use super::edit::warning;
use crate::shell::{Finding, Invocation};

pub(super) fn check(it: &Inspected) -> Vec<Finding> {
    let greps = it.script.commands.iter().filter(|c| matches!(c.name(), Some("grep" | "egrep" | "fgrep")));
    greps.filter_map(|grep| named(it, grep)).collect()
}

fn named(it: &Inspected, grep: &Invocation) -> Option<Finding> {
    let [pattern, file] = grep.operands().collect::<Vec<_>>()[..] else { return None };
    let lines = begin(&it.cwd?.join(file.value.as_deref().filter(|_| is_csv(file))?));
    let (header, rows) = lines.split_first().filter(|(_, rows)| !rows.is_empty())?;
    let word = pattern.value.as_deref()?.to_lowercase();
    let plain = |text: &str| text.trim().trim_matches('"').to_lowercase();
    let column = header.split(separated_by(&lines)?).position(|name| plain(name) == word)?;
    // a value of the rows, or a wish to see that line
    if rows.iter().any(|row| row.to_lowercase().contains(&word)) || it.request.to_lowercase().contains("header") {
        return None;
    }
    let why = format!("{} is the name of column {} of {}, and no row has that word", pattern.raw, column + 1, file.raw);
    let mut finding = warning("column-name", pattern, why, None);
    finding.evidence = lines.iter().take(3).cloned().collect();
    Some(finding)
}

#[cfg(test)]
mod tests {
    use super::super::tests::findings_in;
    use super::*;

    #[test]
    fn the_name_of_a_column_is_no_value() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("invoices.csv"), "who,amount,\"Paid\"\nIda,120,yes\nMoss,80,no\n").unwrap();
        let found = |request, command| findings_in(Some(dir.path()), check, request, command).into_iter().next();
        let request = "invoices in invoices.csv that are not paid";
        let finding = found(request, "grep -v 'paid' invoices.csv").unwrap();
        assert!(finding.why.contains("column 3 of invoices.csv"), "{}", finding.why);
        assert_eq!(finding.evidence[1], "Ida,120,yes");
        for right in
            ["grep -v ',yes$' invoices.csv", "grep no invoices.csv", "grep paid other.csv", "grep paid notes.txt"]
        {
            assert!(found(request, right).is_none(), "{right}");
        }
        assert!(found("the header with paid", "grep paid invoices.csv").is_none());
    }
}
