//! Names of runs, sessions, calls and artifacts, which sort by time and cannot be guessed from one another; hashes.

use std::time::{SystemTime, UNIX_EPOCH};

/// Formats a point in time in UTC: `20261121_030405`.
pub fn stamp(time: SystemTime) -> String {
    let seconds = time.duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs());
    let (year, month, day) = civil(seconds / 86_400);
    let (hour, minute, second) = (seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
    format!("{year:04}{month:02}{day:02}_{hour:02}{minute:02}{second:02}")
}

/// Returns the milliseconds since 1970, UTC.
pub fn millis(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH).map_or(0, |d| u64::try_from(d.as_millis()).unwrap_or(u64::MAX))
}

/// Generates a name, `PREFIX_20261121_030405_1a2b3c4d`.
pub fn fresh(prefix: &str) -> String {
    let mut noise = [0u8; 4];
    if getrandom::fill(&mut noise).is_err() {
        // without a source of randomness, two names of one process still differ
        let nanos = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.subsec_nanos());
        noise = (nanos ^ std::process::id()).to_le_bytes();
    }
    format!("{prefix}_{}_{}", stamp(SystemTime::now()), hex(&noise))
}

/// True if `name` has the form that [`fresh`] generates for `prefix`.
pub fn is_fresh(prefix: &str, name: &str) -> bool {
    let rest = name.strip_prefix(prefix).and_then(|rest| rest.strip_prefix('_')).unwrap_or_default();
    let digits = |part: &str, count: usize| part.len() == count && part.bytes().all(|b| b.is_ascii_digit());
    let parts: Vec<&str> = rest.split('_').collect();
    matches!(parts[..], [day, time, noise] if digits(day, 8)
        && digits(time, 6)
        && noise.len() == 8
        && noise.bytes().all(|b| b.is_ascii_hexdigit()))
}

/// The result of looking up an item by a prefix of its name.
#[derive(Debug, PartialEq, Eq)]
pub enum PrefixMatch<T> {
    /// The only match.
    One(T),
    /// No match.
    None,
    /// The names of several matches.
    Several(Vec<String>),
}

/// Finds the item with exactly this name, else the only one whose name starts with `prefix`. An empty prefix matches
/// nothing: it is the value of a variable that was never set.
pub fn find_by_prefix<T>(mut all: Vec<T>, prefix: &str, name: impl Fn(&T) -> &str) -> PrefixMatch<T> {
    if let Some(exact) = all.iter().position(|one| !prefix.is_empty() && name(one) == prefix) {
        return PrefixMatch::One(all.swap_remove(exact));
    }
    all.retain(|one| !prefix.is_empty() && name(one).starts_with(prefix));
    if all.len() > 1 {
        return PrefixMatch::Several(all.iter().map(|one| name(one).to_owned()).collect());
    }
    all.pop().map_or(PrefixMatch::None, PrefixMatch::One)
}

/// Formats bytes as lower-case hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

/// Returns the SHA-256 of a text, as hexadecimal digits.
pub fn hash(text: impl AsRef<[u8]>) -> String {
    use sha2::Digest;
    hex(&sha2::Sha256::digest(text.as_ref()))
}

/// Converts a number of days since 1970-01-01 to year, month and day of the Gregorian calendar, counted in eras of
/// 400 years that begin on the first of March.
fn civil(days: u64) -> (u64, u64, u64) {
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (era * 400 + year_of_era + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_prefix_finds_one_item_and_an_empty_one_none() {
        let find = |prefix| find_by_prefix(vec!["run_1", "run_12", "other"], prefix, |name| name);
        assert_eq!(find("o"), PrefixMatch::One("other"));
        assert_eq!(find("run_1"), PrefixMatch::One("run_1"), "its whole name");
        assert_eq!(find("run"), PrefixMatch::Several(vec!["run_1".into(), "run_12".into()]));
        assert_eq!((find("x"), find("")), (PrefixMatch::None, PrefixMatch::None));
        assert_eq!(find_by_prefix(vec!["alone"], "", |name| name), PrefixMatch::None);
    }

    #[test]
    fn stamps_follow_the_gregorian_calendar() {
        let at = |seconds| stamp(UNIX_EPOCH + Duration::from_secs(seconds));
        assert_eq!(at(0), "19700101_000000");
        assert_eq!(at(951_782_400), "20000229_000000");
        assert_eq!(at(1_795_230_245), "20261121_030405");
        assert_eq!(at(4_107_542_399), "21000228_235959");
        assert_eq!(at(4_107_542_400), "21000301_000000");
    }

    #[test]
    fn fresh_names_differ_and_are_recognized() {
        let (a, b) = (fresh("run"), fresh("run"));
        assert_ne!(a, b);
        assert!(a.starts_with("run_2") && a.len() == "run_20261121_030405_1a2b3c4d".len());
        assert!(is_fresh("run", &a) && !is_fresh("session", &a));
        for other in ["run", "run_", "run_notes", "run_20261121_030405_1a2b3c4d_2", "run_20261121_030405_nothex12"] {
            assert!(!is_fresh("run", other), "{other}");
        }
    }
}
