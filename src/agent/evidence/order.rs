//! Checks parts that sort: the rows are in order by the named column, and no row is new or missing.

use super::{Claim, words};
use std::cmp::Ordering;

/// Least number of rows that have an order.
const MIN_ROWS: usize = 3;

/// Reports sorted rows that are not the rows shown before.
pub(super) fn check_same_rows(claim: &Claim) -> Option<String> {
    let lower: Vec<String> = words(claim.part).iter().map(|w| w.to_lowercase()).collect();
    // the key was not shown before, so it was added to the lines
    if lower.iter().any(|w| matches!(w.as_str(), "size" | "date" | "time" | "age" | "length" | "modification")) {
        return None;
    }
    let object = lower.get(1)?;
    if lower[0] != "sort" || !claim.whole {
        return None;
    }
    if !matches!(object.as_str(), "them" | "it" | "these" | "those") || !claim.names.is_empty() {
        return None;
    }
    fn rows(text: &str) -> Vec<&str> {
        let mut rows: Vec<&str> = text.lines().map(str::trim).filter(|row| !row.is_empty()).collect();
        rows.sort_unstable();
        rows
    }
    let (before, now) = (rows(claim.earlier.last()?), rows(claim.printed));
    let same = before == now;
    (before.len() > 1 && !same).then(|| {
        format!(
            "It has to show the {} lines that were shown before, sorted, and no others: pipe that command into sort.",
            before.len()
        )
    })
}

/// Reports rows of a table that are not in order.
pub(super) fn finding(part: &str, printed: &str, whole: bool) -> Option<String> {
    let lower: Vec<String> = words(part).iter().map(|w| w.to_lowercase()).collect();
    if lower.first().is_none_or(|verb| verb != "sort") || !whole {
        return None;
    }
    let column = column(&lower)?;
    let rows: Vec<&str> = printed.lines().filter(|line| !line.trim().is_empty()).collect();
    if rows.len() < MIN_ROWS {
        return None;
    }
    let separator = [',', ';', '\t'].into_iter().find(|c| rows.iter().all(|row| row.contains(*c)))?;
    let table: Vec<Vec<&str>> = rows.iter().map(|row| row.split(separator).map(str::trim).collect()).collect();
    let at = |row: &[&str]| row.iter().position(|field| field.eq_ignore_ascii_case(&column));
    let header = table.iter().position(|row| at(row).is_some())?;
    if header != 0 {
        return Some(format!(
            "The line with the names of the columns is no longer the first; fields are separated by `{separator}`."
        ));
    }
    let index = at(&table[0])?;
    let values: Vec<&str> = table.iter().skip(1).filter_map(|row| row.get(index).copied()).collect();
    let says = |list: &[&str]| lower.iter().any(|w| list.contains(&w.as_str()));
    let down = says(&["largest", "descending", "highest", "biggest", "newest", "reverse", "most", "decreasing"]);
    let up = says(&["smallest", "ascending", "lowest", "oldest", "increasing", "alphabetically"]);
    let sorted = |want: Ordering| values.windows(2).all(|pair| compare(pair[0], pair[1]) != want.reverse());
    let in_order = match (down, up) {
        (true, false) => sorted(Ordering::Greater),
        (false, true) => sorted(Ordering::Less),
        _ => sorted(Ordering::Greater) || sorted(Ordering::Less),
    };
    (!in_order).then(|| {
        format!(
            "The rows are not in the order of column {} ({column}); fields are separated by `{separator}`.",
            index + 1
        )
    })
}

/// Returns the name of the column in `by the amount column` or `by amount`.
fn column(words: &[String]) -> Option<String> {
    let at = words.iter().position(|w| w == "by")?;
    let name = words.get(at + 1..)?.iter().find(|w| !matches!(w.as_str(), "the" | "its" | "their" | "column"))?;
    Some(name.clone())
}

/// Compares two fields as numbers if both are, else as text.
fn compare(a: &str, b: &str) -> Ordering {
    match (a.parse::<f64>(), b.parse::<f64>()) {
        (Ok(a), Ok(b)) => a.total_cmp(&b),
        _ => a.cmp(b),
    }
}
