//! `$7 == "Paid"`, where the column has `paid`: nothing is equal to that. And an average of some lines that is divided by the
//! number of all.

use super::Inspected;
use super::csv::{is_csv, names};
use super::edit::{Edits, warning};
use super::separator::separated_by;
use crate::shell::{Finding, Invocation, Word};
use regex::Regex;
use std::io::Read;
use std::path::Path;
use std::sync::LazyLock;

pub(super) fn check(it: &Inspected) -> Vec<Finding> {
    let is_awk = |c: &&Invocation| matches!(c.name(), Some("awk" | "gawk" | "mawk"));
    it.script.commands.iter().filter(is_awk).filter_map(|awk| other_case(it, awk).or_else(|| of_all(it, awk))).collect()
}

/// `$7 == "Paid"`.
static EQUAL: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r#"\$(\d{1,2})\s*[!=]=\s*"([^"\\]+)""#).ok());

/// Bytes of a file in which a value is looked for.
const LOOK: u64 = 1 << 20;

/// The program of an awk: its first word in quotes that has a block or a comparison.
fn program(awk: &Invocation) -> Option<&Word> {
    awk.args().iter().find(|w| w.raw.starts_with('\'') && w.text.contains(['{', '=', '<', '>', '~']))
}

fn other_case(it: &Inspected, awk: &Invocation) -> Option<Finding> {
    let (program, file) = (program(awk)?, awk.operands().find(|w| is_csv(w))?);
    let text = read(&it.cwd?.join(&file.text))?;
    let lines: Vec<&str> = text.lines().collect();
    let by = separated_by(&[(*lines.first()?).to_owned()])?;
    // who has said otherwise what separates the columns means others
    let says = awk.args().iter().any(|w| w.text.starts_with("-F"));
    let found = EQUAL.as_ref()?.captures_iter(&program.text).find_map(|c| {
        let column: usize = c[1].parse().ok().filter(|n| *n > 0)?;
        let cells = || lines.iter().filter_map(|line| line.split(by).nth(column - 1));
        let is_there = cells().any(|cell| cell == &c[2]);
        let other = cells().find(|cell| cell.to_lowercase() == c[2].to_lowercase()).filter(|_| !is_there)?;
        Some((c[2].to_owned(), other.to_owned()))
    });
    let (said, there) = found.filter(|_| says)?;
    let mended = program.raw.replace(&format!("\"{said}\""), &format!("\"{there}\""));
    let fix = Edits::new(it.script).replace(program, &mended).done().filter(|_| !there.contains('\''));
    Some(warning("other-case", program, format!("{} has `{there}` and no `{said}`", file.text), fix))
}

fn read(file: &Path) -> Option<String> {
    let meta = file.metadata().ok().filter(|meta| meta.is_file() && meta.len() <= LOOK)?;
    let mut text = String::with_capacity(meta.len() as usize);
    std::fs::File::open(file).ok()?.take(LOOK).read_to_string(&mut text).ok()?;
    Some(text)
}

/// `$4 == "x" {s += $5} END {print s/NR}`: a sum of some lines, by the number of all.
fn of_all(it: &Inspected, awk: &Invocation) -> Option<Finding> {
    let program = program(awk)?;
    let (lines, end) = program.text.split_once("END")?;
    let (pattern, block) = lines.split_once('{')?;
    let pattern = pattern.trim();
    let compact: String = end.chars().filter(|c| !c.is_whitespace()).collect();
    // of the lines by their numbers it is known how many they are
    let some = !pattern.is_empty() && !pattern.contains("NR") && !pattern.contains("BEGIN");
    let one_block = lines.matches('{').count() == 1 && block.contains("+=") && !block.contains("++");
    if !some || !one_block || !compact.contains("/NR") || compact.contains("NR-") {
        return None;
    }
    let name = ["n", "count", "lines"].into_iter().find(|name| !uses(&program.text, name))?;
    let (head, tail) = program.raw.split_once("END")?;
    let mended = format!("{}END{}", head.replacen('{', &format!("{{{name}++; "), 1), tail.replace("NR", name));
    let fix = Edits::new(it.script).replace(program, &mended).done();
    Some(warning("average-of-all", program, "NR counts all lines, and the sum is of some of them", fix))
}

/// True if a program has a variable of that name.
fn uses(program: &str, name: &str) -> bool {
    names(&program.replace(|c: char| !c.is_alphanumeric() && c != '_', ","), ',').any(|word| word == name)
}

#[cfg(test)]
mod tests {
    use super::super::tests::findings_in;
    use super::*;

    fn fix(command: &str) -> Option<String> {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("a.csv"), "id,status,Paid\n1,paid,Yes\n2,open,No\n").unwrap();
        findings_in(Some(dir.path()), check, "", command).into_iter().next().and_then(|f| f.fix)
    }

    #[test]
    fn a_value_is_written_as_the_file_has_it() {
        assert_eq!(
            fix("awk -F, '$2 == \"Paid\" {print $1}' a.csv").as_deref(),
            Some("awk -F, '$2 == \"paid\" {print $1}' a.csv")
        );
        assert_eq!(fix("awk -F, 'NR>1 && $3!=\"yes\"' a.csv").as_deref(), Some("awk -F, 'NR>1 && $3!=\"Yes\"' a.csv"));
        for right in [
            "awk -F, '$2 == \"paid\"' a.csv",
            "awk -F, '$2 == \"late\"' a.csv",
            "awk -F, 'tolower($2) == \"Paid\"' b.csv",
            "awk '$2 == \"Paid\"' a.csv",
        ] {
            assert_eq!(fix(right), None, "{right}");
        }
    }

    #[test]
    fn an_average_is_of_the_lines_that_are_summed() {
        assert_eq!(
            fix("awk -F, '$2 == \"paid\" {s += $1} END {print s/NR}' a.csv").as_deref(),
            Some("awk -F, '$2 == \"paid\" {n++; s += $1} END {print s/n}' a.csv")
        );
        assert_eq!(
            fix("awk '/x/ {n += $1; m += $2} END {print n / NR, m / NR}' f").as_deref(),
            Some("awk '/x/ {count++; n += $1; m += $2} END {print n / count, m / count}' f")
        );
        for right in [
            "awk -F, '{s += $1} END {print s/NR}' a.csv",
            "awk -F, 'NR>1 {s += $1} END {print s/(NR-1)}' a.csv",
            "awk -F, '$2 == \"paid\" {s += $1; c++} END {print s/c}' a.csv",
            "awk -F, '$2 == \"paid\" {s += $1} END {print s}' a.csv",
        ] {
            assert_eq!(fix(right), None, "{right}");
        }
    }
}
