//! Times as the person's clock has them.

use chrono::{Local, LocalResult, NaiveDateTime, TimeZone};

/// How times are written.
const FORM: &str = "%Y-%m-%d %H:%M:%S";

/// A time as the person's clock has it.
pub fn stamp(time: u64) -> String {
    let time = i64::try_from(time).ok().and_then(|millis| Local.timestamp_millis_opt(millis).earliest());
    time.map_or_else(String::new, |time| time.format(FORM).to_string())
}

/// The milliseconds of a time that is written so; seconds or the whole time of day may be left out.
pub fn parse_time(text: &str) -> Option<u64> {
    let text = text.trim().replace('T', " ");
    let whole = ["", ":00", " 00:00:00"]
        .into_iter()
        .find_map(|rest| NaiveDateTime::parse_from_str(&format!("{text}{rest}"), FORM).ok())?;
    let local = match Local.from_local_datetime(&whole) {
        LocalResult::Single(time) | LocalResult::Ambiguous(time, _) => time,
        // an hour that a change of the clock leaves out
        LocalResult::None => whole.and_utc().with_timezone(&Local),
    };
    u64::try_from(local.timestamp_millis()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_written_and_read_back() {
        for time in [0, 1_795_230_245_000, 951_782_400_000] {
            assert_eq!(parse_time(&stamp(time)), Some(time), "{}", stamp(time));
        }
        let day = parse_time("2026-11-21").unwrap();
        assert_eq!(parse_time("2026-11-21 00:01"), Some(day + 60_000));
        assert_eq!(parse_time("2026-11-21T00:01:00"), Some(day + 60_000));
        assert_eq!(parse_time("yesterday"), None);
    }
}
