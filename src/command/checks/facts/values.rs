//! `$7 == "Paid"`, where the column has `paid`: nothing is equal to that.

use super::csv::is_csv;
use super::edit::{Edits, warning};
use super::separator::separated_by;
use super::{CheckContext, read};
use caro_shell::{Finding, Invocation, Word};
use regex::Regex;
use std::sync::LazyLock;

pub(super) fn check(it: &CheckContext) -> Vec<Finding> {
    let is_awk = |c: &&Invocation| matches!(c.name(), Some("awk" | "gawk" | "mawk"));
    it.script.commands.iter().filter(is_awk).filter_map(|awk| other_case(it, awk)).collect()
}

/// `$7 == "Paid"`.
static EQUAL: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r#"\$(\d{1,2})\s*[!=]=\s*"([^"\\]+)""#).ok());

/// Bytes of a file in which a value is looked for.
const LOOK: u64 = 1 << 20;

/// Comparisons of one program that are looked at.
const MOST: usize = 16;

/// The program of an awk: its first word in quotes that has a block or a comparison.
fn program(awk: &Invocation) -> Option<&Word> {
    awk.args().iter().find(|w| w.raw.starts_with('\'') && w.text.contains(['{', '=', '<', '>', '~']))
}

fn other_case(it: &CheckContext, awk: &Invocation) -> Option<Finding> {
    let (program, file) = (program(awk)?, awk.operands().find(|w| is_csv(w))?);
    // who has said otherwise what separates the columns means others
    let says = awk.args().iter().any(|w| w.text.starts_with("-F"));
    let whole = program.raw == format!("'{}'", program.text) && !program.text.contains("IGNORECASE");
    let compares = EQUAL.as_ref().filter(|form| says && whole && form.is_match(&program.text))?;
    let text = read(&it.cwd?.join(&file.text), LOOK)?;
    let by = separated_by(&[text.lines().next()?.to_owned()])?;
    let (said, there) = compares.captures_iter(&program.text).take(MOST).find_map(|c| {
        let (column, said) = (c[1].parse::<usize>().ok()?.checked_sub(1)?, c.get(2)?);
        // the first line has the names
        let cells = || text.lines().skip(1).filter_map(|line| line.split(by).nth(column));
        let is_there = cells().any(|cell| cell == said.as_str());
        let other = cells().find(|cell| cell.to_lowercase() == said.as_str().to_lowercase());
        Some((said, other.filter(|_| !is_there)?))
    })?;
    let (before, behind) = (&program.text[..said.start()], &program.text[said.end()..]);
    let plain = !there.contains(['\'', '"', '\\']);
    let fix = Edits::new(it.script).replace(program, &format!("'{before}{there}{behind}'")).done().filter(|_| plain);
    Some(warning("other-case", program, format!("{} has `{there}` and no `{}`", file.text, said.as_str()), fix))
}

#[cfg(test)]
mod tests {
    use super::super::tests::findings_in;
    use super::*;

    fn fix(command: &str) -> Option<String> {
        fixed("average of the paid ones", command)
    }

    fn fixed(request: &str, command: &str) -> Option<String> {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("a.csv"), "id,status,Paid\n1,paid,Yes\n2,open,No\n").unwrap();
        findings_in(Some(dir.path()), check, request, command).into_iter().next().and_then(|f| f.fix)
    }

    #[test]
    fn a_value_is_written_as_the_file_has_it() {
        assert_eq!(
            fix("awk -F, '$2 == \"Paid\" {print $1}' a.csv").as_deref(),
            Some("awk -F, '$2 == \"paid\" {print $1}' a.csv")
        );
        assert_eq!(fix("awk -F, 'NR>1 && $3!=\"yes\"' a.csv").as_deref(), Some("awk -F, 'NR>1 && $3!=\"Yes\"' a.csv"));
        assert_eq!(
            fix("awk -F, '$2 == \"Paid\" {s += $1} END {print \"Paid\", s}' a.csv").as_deref(),
            Some("awk -F, '$2 == \"paid\" {s += $1} END {print \"Paid\", s}' a.csv")
        );
        for right in [
            "awk -F, '$2 == \"paid\"' a.csv",
            "awk -F, '$2 == \"late\"' a.csv",
            "awk -F, 'tolower($2) == \"Paid\"' b.csv",
            "awk '$2 == \"Paid\"' a.csv",
            "awk -F, '$2 == \"Status\"' a.csv",
            "awk -F, 'BEGIN {IGNORECASE = 1} $2 == \"Paid\"' a.csv",
        ] {
            assert_eq!(fix(right), None, "{right}");
        }
    }
}
