//! Formats and parses times in the user's time zone.

use chrono::{Local, LocalResult, NaiveDateTime, TimeZone};

/// The format of times.
const FORMAT: &str = "%Y-%m-%d %H:%M:%S";

/// Formats milliseconds since 1970 as local time; empty if out of range.
pub fn stamp(time: u64) -> String {
    let time = i64::try_from(time).ok().and_then(|millis| Local.timestamp_millis_opt(millis).earliest());
    time.map_or_else(String::new, |time| time.format(FORMAT).to_string())
}

/// Parses a local time into milliseconds since 1970. Seconds, or the whole time of day, may be left out.
pub fn parse_time(text: &str) -> Option<u64> {
    let text = text.trim().replace('T', " ");
    let whole = ["", ":00", " 00:00:00"]
        .into_iter()
        .find_map(|rest| NaiveDateTime::parse_from_str(&format!("{text}{rest}"), FORMAT).ok())?;
    let local = match Local.from_local_datetime(&whole) {
        LocalResult::Single(time) | LocalResult::Ambiguous(time, _) => time,
        // an hour skipped by a change of the clock
        LocalResult::None => whole.and_utc().with_timezone(&Local),
    };
    u64::try_from(local.timestamp_millis()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_formatted_time_parses_to_itself() {
        for time in [0, 1_795_230_245_000, 951_782_400_000] {
            assert_eq!(parse_time(&stamp(time)), Some(time), "{}", stamp(time));
        }
        let day = parse_time("2026-11-21").unwrap();
        assert_eq!(parse_time("2026-11-21 00:01"), Some(day + 60_000));
        assert_eq!(parse_time("2026-11-21T00:01:00"), Some(day + 60_000));
        assert_eq!(parse_time("yesterday"), None);
    }
}
