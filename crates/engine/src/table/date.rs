//! Calendar dates and times of day, without time zones.

use super::datetime::{
    DateTime, SECONDS_PER_DAY, US_PER_SECOND, civil_from_days, days_from_civil, days_in_month, number, parse_time,
    put_time, us_of_day,
};
use std::fmt;
use std::str::FromStr;

const US_PER_DAY: i64 = SECONDS_PER_DAY * US_PER_SECOND;

/// A day of the proleptic Gregorian calendar. Shown as `2026-01-31`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Date(i32);

impl Date {
    /// The day this many days after 1970-01-01.
    pub const fn from_unix_days(days: i32) -> Date {
        Date(days)
    }

    /// Days since 1970-01-01.
    pub const fn unix_days(self) -> i32 {
        self.0
    }

    /// A day of a year and month, both from 1; `None` if there is no such day.
    ///
    /// ```
    /// use highwater::Date;
    /// assert_eq!(Date::new(2024, 2, 29).unwrap().to_string(), "2024-02-29");
    /// assert_eq!(Date::new(2026, 2, 29), None);
    /// ```
    pub fn new(year: i32, month: u8, day: u8) -> Option<Date> {
        let is_day = (1..=12).contains(&month) && day > 0 && day <= days_in_month(year, month);
        is_day.then(|| days_from_civil(i64::from(year), month, day).try_into().ok().map(Date)).flatten()
    }

    /// Year, month and day.
    pub fn to_civil(self) -> (i32, u8, u8) {
        let (year, month, day) = civil_from_days(self.0.into());
        (year as i32, month, day)
    }

    /// That time of this day; `None` if it is more than 290,000 years away.
    pub fn at(self, time: Time) -> Option<DateTime> {
        let us = i64::from(self.0).checked_mul(US_PER_DAY)?.checked_add(time.us_since_midnight() as i64)?;
        Some(DateTime::from_unix_us(us))
    }
}

impl From<DateTime> for Date {
    /// The day of a point in time.
    fn from(time: DateTime) -> Date {
        Date(time.unix_us().div_euclid(US_PER_DAY) as i32)
    }
}

impl fmt::Display for Date {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (year, month, day) = self.to_civil();
        let sign = if year < 0 { "-" } else { "" };
        write!(f, "{sign}{:04}-{month:02}-{day:02}", year.unsigned_abs())
    }
}

impl FromStr for Date {
    type Err = String;

    /// Reads `YYYY-MM-DD`.
    fn from_str(text: &str) -> Result<Date, String> {
        parse_date(text).ok_or_else(|| format!("{text:?} is not a date such as 2026-01-31"))
    }
}

fn parse_date(text: &str) -> Option<Date> {
    let (sign, date) = text.strip_prefix('-').map_or((1, text), |rest| (-1, rest));
    let mut fields = date.split('-');
    let year = fields.next()?;
    let year = number(year, year.len().clamp(4, 7))? as i32;
    let (month, day) = (number(fields.next()?, 2)? as u8, number(fields.next()?, 2)? as u8);
    if fields.next().is_some() { None } else { Date::new(sign * year, month, day) }
}

/// A time of day, to the microsecond. Shown as `12:00:00.5`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Time(u64);

impl Time {
    /// The last one.
    pub const MAX: Time = Time(US_PER_DAY as u64 - 1);

    /// The time this many microseconds after midnight; `None` if that is another day.
    pub const fn from_us(us: u64) -> Option<Time> {
        if us <= Time::MAX.0 { Some(Time(us)) } else { None }
    }

    /// Microseconds since midnight.
    pub const fn us_since_midnight(self) -> u64 {
        self.0
    }

    /// An hour (to 23), minute, second and microsecond; `None` if one is out of range.
    pub fn new(hour: u8, minute: u8, second: u8, us: u32) -> Option<Time> {
        us_of_day(hour, minute, second, us).map(|us| Time(us as u64))
    }
}

impl From<DateTime> for Time {
    /// The time of day of a point in time.
    fn from(time: DateTime) -> Time {
        Time(time.unix_us().rem_euclid(US_PER_DAY) as u64)
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        put_time(f, (self.0 / US_PER_SECOND as u64) as i64, (self.0 % US_PER_SECOND as u64) as i64)
    }
}

impl FromStr for Time {
    type Err = String;

    /// Reads `HH:MM[:SS[.ffffff]]`.
    fn from_str(text: &str) -> Result<Time, String> {
        let wrong = || format!("{text:?} is not a time of day such as 12:00:00.5");
        parse_time(text).map(|us| Time(us as u64)).ok_or_else(wrong)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn impossible_dates_and_times_are_refused() {
        for text in ["", "2026", "2026-1-31", "2026-02-30", "1900-02-29", "2026-01-01T00:00", "99999999-01-01"] {
            assert!(text.parse::<Date>().is_err(), "{text}");
        }
        for text in ["", "24:00", "12", "12:60", "12:00:00.", "12:00:00.1234567", "1:00"] {
            assert!(text.parse::<Time>().is_err(), "{text}");
        }
        assert_eq!((Time::from_us(86_400_000_000), Time::new(23, 59, 59, 999_999)), (None, Some(Time::MAX)));
        assert_eq!(Date::new(i32::MAX, 1, 1), None);
        assert_eq!(Date::new(1970, 1, 1).unwrap().at(Time::MAX).unwrap().to_string(), "1970-01-01T23:59:59.999999");
    }

    proptest! {
        #[test]
        fn dates_read_back(days in any::<i32>()) {
            let date = Date::from_unix_days(days);
            prop_assert_eq!(date.to_string().parse(), Ok(date));
            let (year, month, day) = date.to_civil();
            prop_assert_eq!(Date::new(year, month, day), Some(date));
        }

        #[test]
        fn times_read_back(us in 0..=Time::MAX.us_since_midnight()) {
            let time = Time::from_us(us).unwrap();
            prop_assert_eq!(time.to_string().parse(), Ok(time));
        }

        #[test]
        fn a_point_in_time_has_its_day_and_time(us in any::<i64>()) {
            let time = DateTime::from_unix_us(us);
            let (text, day) = (time.to_string(), Date::from(time).to_string());
            prop_assert_eq!(text.split('T').next(), Some(day.as_str()));
            prop_assert_eq!(Date::from(time).at(Time::from(time)), Some(time));
        }
    }
}
