//! Points in time: microseconds since 1970-01-01T00:00:00Z in the proleptic Gregorian calendar, without time zones or
//! leap seconds.

use std::fmt;
use std::str::FromStr;

pub(super) const US_PER_SECOND: i64 = 1_000_000;
pub(super) const SECONDS_PER_DAY: i64 = 86_400;

/// A point in time, to the microsecond. Shown as `2026-01-31T12:00:00.5`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DateTime(i64);

impl DateTime {
    /// The time this many microseconds after 1970-01-01T00:00:00Z.
    pub const fn from_unix_us(us: i64) -> DateTime {
        DateTime(us)
    }

    /// Microseconds since 1970-01-01T00:00:00Z.
    pub const fn unix_us(self) -> i64 {
        self.0
    }

    /// A calendar date at midnight; `None` if there is no such day or it is more than 290,000 years away.
    pub fn from_date(year: i32, month: u8, day: u8) -> Option<DateTime> {
        DateTime::of(i128::from(midnight_s(year, month, day)?) * i128::from(US_PER_SECOND))
    }

    fn of(us: i128) -> Option<DateTime> {
        us.try_into().ok().map(DateTime)
    }

    /// This time plus a time of day; `None` if an hour, minute or second is out of range.
    pub fn at(self, hour: u8, minute: u8, second: u8, us: u32) -> Option<DateTime> {
        DateTime::of(i128::from(self.0) + i128::from(us_of_day(hour, minute, second, us)?))
    }
}

/// Seconds from 1970-01-01 to the midnight a day begins with, if there is such a day.
fn midnight_s(year: i32, month: u8, day: u8) -> Option<i64> {
    let is_day = (1..=12).contains(&month) && day > 0 && day <= days_in_month(year, month);
    is_day.then(|| days_from_civil(i64::from(year), month, day) * SECONDS_PER_DAY)
}

/// Microseconds since midnight, if there is such a time.
pub(super) fn us_of_day(hour: u8, minute: u8, second: u8, us: u32) -> Option<i64> {
    let is_time = hour <= 23 && minute <= 59 && second <= 59 && i64::from(us) < US_PER_SECOND;
    let seconds = (i64::from(hour) * 60 + i64::from(minute)) * 60 + i64::from(second);
    is_time.then(|| seconds * US_PER_SECOND + i64::from(us))
}

fn is_leap(year: i32) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

pub(super) fn days_in_month(year: i32, month: u8) -> u8 {
    match month {
        2 if is_leap(year) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days from 1970-01-01 to a date. Years are counted from March, so that the leap day is a year's last.
pub(super) fn days_from_civil(year: i64, month: u8, day: u8) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let month_from_march = (i64::from(month) + 9) % 12;
    let day_of_year = (153 * month_from_march + 2) / 5 + i64::from(day) - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

/// The date that many days after 1970-01-01.
pub(super) fn civil_from_days(days: i64) -> (i64, u8, u8) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = (day_of_year - (153 * month_from_march + 2) / 5 + 1) as u8;
    let month = ((month_from_march + 2) % 12 + 1) as u8;
    let year = era * 400 + year_of_era + i64::from(month <= 2);
    let back = days_from_civil(year, month, day) + 719_468;
    debug_assert_eq!(back, days, "the day {year}-{month}-{day}");
    (year, month, day)
}

impl fmt::Display for DateTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.0.div_euclid(US_PER_SECOND);
        let us = self.0.rem_euclid(US_PER_SECOND);
        let (year, month, day) = civil_from_days(seconds.div_euclid(SECONDS_PER_DAY));
        let s = seconds.rem_euclid(SECONDS_PER_DAY);
        let sign = if year < 0 { "-" } else { "" };
        let year = year.unsigned_abs();
        write!(f, "{sign}{year:04}-{month:02}-{day:02}T")?;
        put_time(f, s, us)
    }
}

/// Shows a time of day: seconds since midnight, and microseconds beyond.
pub(super) fn put_time(f: &mut fmt::Formatter<'_>, s: i64, us: i64) -> fmt::Result {
    write!(f, "{:02}:{:02}:{:02}", s / 3600, s / 60 % 60, s % 60)?;
    if us != 0 {
        write!(f, ".{}", format!("{us:06}").trim_end_matches('0'))?;
    }
    Ok(())
}

impl FromStr for DateTime {
    type Err = String;

    /// Reads `YYYY-MM-DD`, optionally followed by `T` or a space and `HH:MM[:SS[.ffffff]]`, optionally by `Z`.
    fn from_str(text: &str) -> Result<DateTime, String> {
        parse(text).ok_or_else(|| format!("{text:?} is not a date and time such as 2026-01-31T12:00:00.5"))
    }
}

fn parse(text: &str) -> Option<DateTime> {
    let text = text.strip_suffix('Z').unwrap_or(text);
    let (date, time) = match text.split_once(['T', ' ']) {
        Some((date, time)) => (date, Some(time)),
        None => (text, None),
    };
    let (negative, date) = match date.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, date),
    };
    let mut fields = date.split('-');
    let year = fields.next()?;
    let year = number(year, year.len().clamp(4, 6))? as i32;
    let (month, day) = (number(fields.next()?, 2)? as u8, number(fields.next()?, 2)? as u8);
    if fields.next().is_some() {
        return None;
    }
    // The first midnight may be too early for what comes after it.
    let midnight_s = midnight_s(if negative { -year } else { year }, month, day)?;
    let us = time.map_or(Some(0), parse_time)?;
    DateTime::of(i128::from(midnight_s) * i128::from(US_PER_SECOND) + i128::from(us))
}

/// Microseconds since midnight.
pub(super) fn parse_time(time: &str) -> Option<i64> {
    let (clock, fraction) = time.split_once('.').unwrap_or((time, "0"));
    let mut fields = clock.split(':');
    let (hour, minute) = (number(fields.next()?, 2)? as u8, number(fields.next()?, 2)? as u8);
    let second = fields.next().map_or(Some(0), |s| number(s, 2))? as u8;
    if fields.next().is_some() || fraction.is_empty() || fraction.len() > 6 {
        return None;
    }
    let us = number(fraction, fraction.len())? * 10u32.pow(6 - fraction.len() as u32);
    us_of_day(hour, minute, second, us)
}

/// Exactly `digits` decimal digits.
pub(super) fn number(text: &str, digits: usize) -> Option<u32> {
    (text.len() == digits && text.bytes().all(|b| b.is_ascii_digit())).then(|| text.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn known_dates() {
        let cases = [
            ("1970-01-01T00:00:00", 0),
            ("2000-02-29T00:00:00", 951_782_400_000_000),
            ("1969-12-31T23:59:59.999999", -1),
            ("2026-01-31T12:00:00.5", 1_769_860_800_500_000),
        ];
        for (text, us) in cases {
            assert_eq!(text.parse::<DateTime>().unwrap().unix_us(), us, "{text}");
            assert_eq!(DateTime::from_unix_us(us).to_string(), text);
        }
        assert_eq!("2026-01-31 12:30Z".parse::<DateTime>().unwrap().to_string(), "2026-01-31T12:30:00");
        assert_eq!("2026-01-31".parse::<DateTime>().unwrap().to_string(), "2026-01-31T00:00:00");
    }

    #[test]
    fn the_first_and_the_last_read_back() {
        for us in [i64::MIN, i64::MIN + 1, i64::MAX] {
            assert_eq!(DateTime::from_unix_us(us).to_string().parse::<DateTime>().unwrap().unix_us(), us);
        }
        let first = DateTime::from_unix_us(i64::MIN).to_string();
        let earlier = first.replace(".224192", ".224191");
        assert!(earlier != first && earlier.parse::<DateTime>().is_err(), "{first}");
    }

    #[test]
    fn impossible_dates_are_refused() {
        for text in [
            "",
            "2026",
            "2026-1-31",
            "2026-02-30",
            "1900-02-29",
            "2026-13-01",
            "2026-01-01T24:00",
            "2026-01-01T",
            "2026-01-01T1:2:3.1234567",
        ] {
            assert!(text.parse::<DateTime>().is_err(), "{text}");
        }
        assert_eq!(DateTime::from_date(300_000, 1, 1), None);
    }

    proptest! {
        #[test]
        fn text_round_trips(us in i64::MIN / 100 * 99..=i64::MAX) {
            let t = DateTime::from_unix_us(us);
            prop_assert_eq!(t.to_string().parse::<DateTime>(), Ok(t));
        }

        #[test]
        fn any_time_prints(us in any::<i64>()) {
            prop_assert!(!DateTime::from_unix_us(us).to_string().is_empty());
        }
    }
}
