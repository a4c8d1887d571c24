//! Parts that sort: rows are in order, by the column that was named.

use super::{Claim, words};
use std::cmp::Ordering;

/// Rows that are needed to speak of an order.
const LEAST: usize = 3;

/// The rows that were to be sorted are not those that were shown before.
pub(super) fn others(claim: &Claim) -> Option<String> {
    let lower: Vec<String> = words(claim.part).iter().map(|w| w.to_lowercase()).collect();
    // by something that was not shown: it stands beside the lines now
    if lower.iter().any(|w| matches!(w.as_str(), "size" | "date" | "time" | "age" | "length" | "modification")) {
        return None;
    }
    let what = lower.get(1).filter(|_| lower[0] == "sort" && claim.whole)?;
    if !matches!(what.as_str(), "them" | "it" | "these" | "those") || !claim.names.is_empty() {
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

/// What of the rows is not in order.
pub(super) fn finding(part: &str, printed: &str, whole: bool) -> Option<String> {
    let lower: Vec<String> = words(part).iter().map(|w| w.to_lowercase()).collect();
    if lower.first().is_none_or(|verb| verb != "sort") || !whole {
        return None;
    }
    let column = column(&lower)?;
    let rows: Vec<&str> = printed.lines().filter(|line| !line.trim().is_empty()).collect();
    if rows.len() < LEAST {
        return None;
    }
    let between = [',', ';', '\t'].into_iter().find(|c| rows.iter().all(|row| row.contains(*c)))?;
    let table: Vec<Vec<&str>> = rows.iter().map(|row| row.split(between).map(str::trim).collect()).collect();
    let at = |row: &[&str]| row.iter().position(|field| field.eq_ignore_ascii_case(&column));
    let header = table.iter().position(|row| at(row).is_some())?;
    if header != 0 {
        return Some(format!(
            "The line with the names of the columns is no longer the first; fields are separated by `{between}`."
        ));
    }
    let index = at(&table[0])?;
    let values: Vec<&str> = table.iter().skip(1).filter_map(|row| row.get(index).copied()).collect();
    let says = |list: &[&str]| lower.iter().any(|w| list.contains(&w.as_str()));
    let down = says(&["largest", "descending", "highest", "biggest", "newest", "reverse", "most", "decreasing"]);
    let up = says(&["smallest", "ascending", "lowest", "oldest", "increasing", "alphabetically"]);
    let sorted = |want: Ordering| values.windows(2).all(|pair| compare(pair[0], pair[1]) != want.reverse());
    let right = match (down, up) {
        (true, false) => sorted(Ordering::Greater),
        (false, true) => sorted(Ordering::Less),
        _ => sorted(Ordering::Greater) || sorted(Ordering::Less),
    };
    (!right).then(|| {
        format!(
            "The rows are not in the order of column {} ({column}); fields are separated by `{between}`.",
            index + 1
        )
    })
}

/// `by the amount column`, `by amount`: the name.
fn column(words: &[String]) -> Option<String> {
    let at = words.iter().position(|w| w == "by")?;
    let name = words.get(at + 1..)?.iter().find(|w| !matches!(w.as_str(), "the" | "its" | "their" | "column"))?;
    Some(name.clone())
}

fn compare(a: &str, b: &str) -> Ordering {
    match (a.parse::<f64>(), b.parse::<f64>()) {
        (Ok(a), Ok(b)) => a.total_cmp(&b),
        _ => a.cmp(b),
    }
}
