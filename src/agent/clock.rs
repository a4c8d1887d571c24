//! Formats and parses times in the user's time zone.

use chrono::{DateTime, Local, NaiveDateTime, TimeDelta, TimeZone, Timelike};

/// The format of times.
const FORMAT: &str = "%Y-%m-%d %H:%M:%S";

/// Formats milliseconds since 1970 as local time; empty if out of range.
pub fn stamp(time: u64) -> String {
    let time = i64::try_from(time).ok().and_then(|millis| Local.timestamp_millis_opt(millis).earliest());
    time.map_or_else(String::new, |time| time.format(FORMAT).to_string())
}

/// Returns the day of a time in milliseconds since 1970, in local time.
pub fn day(millis: u64) -> String {
    stamp(millis).split(' ').next().unwrap_or_default().to_owned()
}

/// Parses a local time into milliseconds since 1970. Seconds, or the whole time of day, may be left out.
pub fn parse_time(text: &str) -> Option<u64> {
    let text = text.trim().replace('T', " ");
    let whole = ["", ":00", " 00:00:00"]
        .into_iter()
        .find_map(|rest| NaiveDateTime::parse_from_str(&format!("{text}{rest}"), FORMAT).ok())?;
    let local = first_at(&whole, &Local)?;
    u64::try_from(local.timestamp_millis()).ok()
}

/// Minutes searched for the end of a gap: a country that moves across the date line skips a day.
const MAX_GAP: i64 = 2 * 24 * 60;

/// Returns the moment at which the clocks of a time zone show a time; of two the first. A time that a change of the
/// clock skips means the end of the gap.
pub(crate) fn first_at<Z: TimeZone>(time: &NaiveDateTime, zone: &Z) -> Option<DateTime<Z>> {
    let minute = time.with_second(0)?;
    zone.from_local_datetime(time).earliest().or_else(|| {
        (1..MAX_GAP).find_map(|gap| zone.from_local_datetime(&(minute + TimeDelta::minutes(gap))).earliest())
    })
}

/// A time zone whose clocks go from 2:00 to 3:00 on 28 March 2027.
#[cfg(test)]
pub(crate) mod spring {
    use chrono::{FixedOffset, MappedLocalTime, NaiveDate, NaiveDateTime, TimeZone};

    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub(crate) struct Spring;

    fn hours(hours: i32) -> FixedOffset {
        FixedOffset::east_opt(hours * 3600).unwrap()
    }

    fn day(hour: u32) -> NaiveDateTime {
        NaiveDate::from_ymd_opt(2027, 3, 28).unwrap().and_hms_opt(hour, 0, 0).unwrap()
    }

    impl TimeZone for Spring {
        type Offset = FixedOffset;

        fn from_offset(_: &FixedOffset) -> Self {
            Self
        }

        fn offset_from_local_date(&self, _: &NaiveDate) -> MappedLocalTime<FixedOffset> {
            MappedLocalTime::None
        }

        fn offset_from_local_datetime(&self, local: &NaiveDateTime) -> MappedLocalTime<FixedOffset> {
            match local {
                local if *local < day(2) => MappedLocalTime::Single(hours(1)),
                local if *local < day(3) => MappedLocalTime::None,
                _ => MappedLocalTime::Single(hours(2)),
            }
        }

        fn offset_from_utc_date(&self, _: &NaiveDate) -> FixedOffset {
            hours(1)
        }

        fn offset_from_utc_datetime(&self, utc: &NaiveDateTime) -> FixedOffset {
            hours(if *utc < day(1) { 1 } else { 2 })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::spring::Spring;
    use super::*;

    #[test]
    fn a_time_that_the_clocks_skip_means_the_end_of_the_gap() {
        let at = |text: &str| {
            let time = NaiveDateTime::parse_from_str(text, FORMAT).unwrap();
            first_at(&time, &Spring).unwrap().format("%F %T %z").to_string()
        };
        assert_eq!(at("2027-03-28 01:59:59"), "2027-03-28 01:59:59 +0100");
        assert_eq!(at("2027-03-28 02:30:20"), "2027-03-28 03:00:00 +0200");
        assert_eq!(at("2027-03-28 03:30:00"), "2027-03-28 03:30:00 +0200");
    }

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
