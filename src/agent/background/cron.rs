//! Parses schedules in the notation of `cron`, `MINUTE HOUR DAY MONTH WEEKDAY`, and finds their next time in the user's
//! time zone.
//!
//! A field is `*`, a number, a range `1-5`, any of these with a step `/2`, or a list of them; months and weekdays may
//! be given by name. If both DAY and WEEKDAY are restricted, a day that matches either of them counts, as in other
//! crons.

use crate::clock::first_at;
use chrono::{DateTime, Datelike, Local, NaiveDateTime, NaiveTime, TimeDelta, TimeZone, Timelike};

/// The fields: name, first and last number, and the names of the numbers if there are any.
const FIELDS: [(&str, u32, u32, &[&str]); 5] = [
    ("minute", 0, 59, &[]),
    ("hour", 0, 23, &[]),
    ("day", 1, 31, &[]),
    ("month", 1, 12, &["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]),
    ("weekday", 0, 7, &["sun", "mon", "tue", "wed", "thu", "fri", "sat"]),
];

/// Most days searched for the next time: the next 29 February may be eight years away.
const MAX_DAYS: usize = 9 * 366;

/// A parsed schedule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cron {
    /// A bit for each number of each field.
    fields: [u64; 5],
    /// True if DAY is restricted, and true if WEEKDAY is.
    is_restricted: [bool; 2],
}

impl std::str::FromStr for Cron {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let words: Vec<&str> = text.split_whitespace().collect();
        let Ok(words) = <[&str; 5]>::try_from(words) else {
            return Err("five fields, MINUTE HOUR DAY MONTH WEEKDAY, as in `0 8 * * 1-5`".into());
        };
        let mut fields = [0; 5];
        for (at, word) in words.into_iter().enumerate() {
            fields[at] = field(word, FIELDS[at])?;
        }
        // 7 is Sunday too, like 0
        fields[4] |= fields[4] >> 7 & 1;
        let cron = Self { fields, is_restricted: [is_restricted(words[2]), is_restricted(words[4])] };
        match cron.after(Local::now()) {
            Some(_) => Ok(cron),
            None => Err("a day that there is".into()),
        }
    }
}

fn is_restricted(word: &str) -> bool {
    !word.starts_with('*')
}

/// Parses a field into a bit for each of its numbers.
fn field(word: &str, (what, first, last, names): (&str, u32, u32, &[&str])) -> Result<u64, String> {
    let wrong = || format!("a {what} from {first} to {last}, `*`, ranges, steps and lists of them, and not `{word}`");
    let number = |text: &str| -> Option<u32> {
        let named = names.iter().position(|name| name.eq_ignore_ascii_case(text));
        let offset = u32::from(first == 1);
        match named {
            Some(at) => Some(u32::try_from(at).ok()? + offset),
            None => text.parse().ok().filter(|n| (first..=last).contains(n)),
        }
    };
    let mut bits = 0u64;
    for part in word.split(',') {
        let (range, step) = part.split_once('/').map_or((part, None), |(range, step)| (range, Some(step)));
        let step = step.map_or(Some(1), |step| step.parse::<usize>().ok().filter(|n| *n > 0)).ok_or_else(wrong)?;
        let (from, to) = match range.split_once('-') {
            _ if range == "*" => (first, last),
            Some((from, to)) => (number(from).ok_or_else(wrong)?, number(to).ok_or_else(wrong)?),
            // `5/10` is a range up to the last number
            None => {
                let only = number(range).ok_or_else(wrong)?;
                (only, if part.contains('/') { last } else { only })
            }
        };
        if from > to {
            return Err(wrong());
        }
        (from..=to).step_by(step).for_each(|n| bits |= 1 << n);
    }
    Ok(bits)
}

impl Cron {
    fn has(&self, field: usize, number: u32) -> bool {
        self.fields[field] >> number & 1 == 1
    }

    fn is_day(&self, day: &impl Datelike) -> bool {
        let of_month = self.has(2, day.day());
        let of_week = self.has(4, day.weekday().num_days_from_sunday());
        let fits = match self.is_restricted {
            [true, true] => of_month || of_week,
            _ => of_month && of_week,
        };
        fits && self.has(3, day.month())
    }

    /// True if a change of the clock has skipped a matching time from `begin` up to `end`. What runs every hour is not
    /// made up for.
    fn is_skipped(&self, begin: NaiveDateTime, end: NaiveDateTime) -> bool {
        let minutes = if self.fields[1].count_ones() < 24 { (end - begin).num_minutes() } else { 0 };
        let mut skipped = (0..minutes).map(|minute| begin + TimeDelta::minutes(minute));
        skipped.any(|time| self.is_day(&time) && self.has(1, time.hour()) && self.has(0, time.minute()))
    }

    /// Returns the first matching time after `time`; `None` if there is none in the next nine years. A time that a
    /// change of the clock skips is the end of the gap.
    pub fn after<Z: TimeZone>(&self, time: DateTime<Z>) -> Option<DateTime<Z>> {
        let minute = TimeDelta::minutes(1);
        let mut expected = time.naive_local().with_second(0)?.with_nanosecond(0)? + minute;
        let mut next = (time + minute).with_second(0)?.with_nanosecond(0)?;
        let mut days = 0;
        while days < MAX_DAYS {
            if self.is_skipped(expected, next.naive_local()) {
                return Some(next);
            }
            if !self.is_day(&next) {
                // a change of the clock may skip midnight
                expected = next.date_naive().succ_opt()?.and_time(NaiveTime::MIN);
                next = first_at(&expected, &next.timezone())?;
                days += 1;
                continue;
            }
            if self.has(1, next.hour()) && self.has(0, next.minute()) {
                return Some(next);
            }
            let day = next.date_naive();
            expected = next.naive_local() + minute;
            next += minute;
            days += usize::from(next.date_naive() != day);
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::spring::Spring;

    /// Formats the next times after `2026-11-26 19:30`, a Thursday.
    fn next(cron: &str, many: usize) -> Vec<String> {
        let cron: Cron = cron.parse().unwrap();
        let mut time = Local.with_ymd_and_hms(2026, 11, 26, 19, 30, 0).unwrap();
        let mut step = || {
            time = cron.after(time).unwrap();
            time.format("%Y-%m-%d %H:%M").to_string()
        };
        (0..many).map(|_| step()).collect()
    }

    #[test]
    fn the_next_times_match_the_fields() {
        assert_eq!(next("* * * * *", 2), ["2026-11-26 19:31", "2026-11-26 19:32"]);
        assert_eq!(next("*/20 * * * *", 3), ["2026-11-26 19:40", "2026-11-26 20:00", "2026-11-26 20:20"]);
        assert_eq!(next("0 8 * * 1-5", 3), ["2026-11-27 08:00", "2026-11-30 08:00", "2026-12-01 08:00"]);
        assert_eq!(next("30 19 * * thu", 1), ["2026-12-03 19:30"]);
        assert_eq!(next("0 0 1 jan,jul *", 2), ["2027-01-01 00:00", "2027-07-01 00:00"]);
        assert_eq!(next("0 12 29 2 *", 1), ["2028-02-29 12:00"]);
        assert_eq!(next("0 12 * * 7", 1), next("0 12 * * sun", 1));
        assert_eq!(next("0 0 13 * fri", 2), ["2026-11-27 00:00", "2026-12-04 00:00"], "either day will do");
        assert_eq!(next("5/30 9-10 * * *", 4).last().unwrap(), "2026-11-27 10:35");
    }

    #[test]
    fn a_time_that_the_clocks_skip_is_the_end_of_the_gap() {
        let next = |cron: &str| {
            let time = Spring.with_ymd_and_hms(2027, 3, 27, 12, 0, 0).unwrap();
            cron.parse::<Cron>().unwrap().after(time).unwrap().format("%Y-%m-%d %H:%M").to_string()
        };
        assert_eq!(next("30 2 28 3 *"), "2027-03-28 03:00");
        assert_eq!(next("15 2 * * sun"), "2027-03-28 03:00");
        assert_eq!(next("30 2 * * *"), "2027-03-28 03:00");
        assert_eq!(next("30 3 28 3 *"), "2027-03-28 03:30");
        let before = Spring.with_ymd_and_hms(2027, 3, 28, 1, 59, 0).unwrap();
        let hourly: Cron = "30 * * * *".parse().unwrap();
        assert_eq!(hourly.after(before).unwrap().format("%H:%M").to_string(), "03:30", "it is made up for by the next");
    }

    #[test]
    fn an_invalid_schedule_is_refused_with_the_reason() {
        for (wrong, why) in [
            ("", "five fields"),
            ("0 8 * *", "five fields"),
            ("60 8 * * *", "a minute from 0 to 59"),
            ("0 24 * * *", "hour from 0 to 23"),
            ("0 8 0 * *", "a day from 1 to 31"),
            ("0 8 * foo *", "a month"),
            ("0 8 * * 5-1", "a weekday"),
            ("*/0 8 * * *", "a minute"),
            ("0 0 30 2 *", "a day that there is"),
        ] {
            let error = wrong.parse::<Cron>().unwrap_err();
            assert!(error.contains(why), "{wrong}: {error}");
        }
    }

    proptest::proptest! {
        #[test]
        fn the_next_time_is_later_and_fits(minute in 0u32..60, hour in 0u32..24, start in 0i64..2_000_000_000) {
            let cron: Cron = format!("{minute} {hour} * * *").parse().unwrap();
            let time = Local.timestamp_opt(start, 0).unwrap();
            let next = cron.after(time).unwrap();
            proptest::prop_assert!(next > time && next.minute() == minute && next.hour() == hour);
            proptest::prop_assert!(next - time <= TimeDelta::hours(49));
        }
    }
}
