//! The crate `jiff`.
//!
//! ```
//! use highwater::{Database, Schema, Type, values};
//! use jiff::{Timestamp, civil};
//!
//! let db = Database::in_memory()?;
//! let schema = Schema::new()
//!     .column("day", Type::Date)
//!     .column("at", Type::Time)
//!     .nullable("sent", Type::DateTime)
//!     .primary_key(&["day", "at"]);
//! let mails = db.create_table("mails", schema)?;
//!
//! let (day, at) = (civil::date(2026, 1, 31), civil::time(9, 30, 0, 0));
//! let sent: Timestamp = "2026-01-31T12:00:00.5+01:00".parse().unwrap();
//! let mut txn = db.begin()?;
//! txn.insert(&mails, &values![day, at, sent])?;
//! let row = txn.get(&mails, &values![day, at])?.unwrap();
//! assert_eq!(row.try_get::<civil::Date>("day")?, day);
//! assert_eq!(row.try_get::<civil::Time>("at")?, at);
//! assert_eq!(row.try_get::<Option<Timestamp>>("sent")?, Some(sent));
//! # Ok::<(), highwater::Error>(())
//! ```

use super::{outside, read_by, values_from};
use crate::error::Error;
use crate::table::{Date, DateTime, Time};
use ::jiff::civil::{Date as CivilDate, DateTime as CivilDateTime, Time as CivilTime};
use ::jiff::{Timestamp, ZonedDateTime};

const NS_PER_US: i32 = 1000;
const US_PER_SECOND: u64 = 1_000_000;
const SECONDS_PER_MINUTE: u64 = 60;
const SECONDS_PER_HOUR: u64 = 3600;

impl From<Timestamp> for DateTime {
    /// The point in time; the microsecond that it is in.
    fn from(time: Timestamp) -> DateTime {
        // A timestamp is less than 10,000 years away from the epoch, so its microseconds fit.
        DateTime::from_unix_us(time.as_nanosecond().div_euclid(i128::from(NS_PER_US)) as i64)
    }
}

impl From<&ZonedDateTime> for DateTime {
    /// The point in time, without its zone.
    fn from(time: &ZonedDateTime) -> DateTime {
        time.timestamp().into()
    }
}

impl From<CivilDateTime> for DateTime {
    /// Taken as UTC.
    fn from(time: CivilDateTime) -> DateTime {
        // It has years of four digits, so there is such a point in time.
        Date::from(time.date()).at(time.time().into()).unwrap_or_default()
    }
}

impl From<CivilDate> for Date {
    fn from(day: CivilDate) -> Date {
        let (year, month, day) = (day.year(), day.month(), day.day());
        // Each day of that calendar, which is the same, is one here.
        Date::new(year.into(), month as u8, day as u8).unwrap_or_default()
    }
}

impl From<CivilTime> for Time {
    /// The microsecond that it is in.
    fn from(time: CivilTime) -> Time {
        let us = (time.subsec_nanosecond() / NS_PER_US) as u32;
        // It has no leap seconds.
        Time::new(time.hour() as u8, time.minute() as u8, time.second() as u8, us).unwrap_or_default()
    }
}

impl TryFrom<DateTime> for Timestamp {
    type Error = Error;

    /// Fails outside of the years -9999 to 9999.
    fn try_from(time: DateTime) -> Result<Timestamp, Error> {
        Timestamp::from_microsecond(time.unix_us()).map_err(|_| outside(time, "jiff::Timestamp"))
    }
}

impl TryFrom<DateTime> for CivilDateTime {
    type Error = Error;

    /// The time in UTC. Fails outside of the years -9999 to 9999.
    fn try_from(time: DateTime) -> Result<CivilDateTime, Error> {
        let day = CivilDate::try_from(Date::from(time)).map_err(|_| outside(time, "jiff::civil::DateTime"))?;
        Ok(day.to_datetime(Time::from(time).into()))
    }
}

impl TryFrom<Date> for CivilDate {
    type Error = Error;

    /// Fails outside of the years -9999 to 9999.
    fn try_from(date: Date) -> Result<CivilDate, Error> {
        let (year, month, day) = date.to_civil();
        let made = i16::try_from(year).ok().and_then(|year| CivilDate::new(year, month as i8, day as i8).ok());
        made.ok_or_else(|| outside(date, "jiff::civil::Date"))
    }
}

impl From<Time> for CivilTime {
    fn from(time: Time) -> CivilTime {
        let (s, us) = (time.us_since_midnight() / US_PER_SECOND, time.us_since_midnight() % US_PER_SECOND);
        let hour = (s / SECONDS_PER_HOUR) as i8;
        let minute = (s / SECONDS_PER_MINUTE % SECONDS_PER_MINUTE) as i8;
        let second = (s % SECONDS_PER_MINUTE) as i8;
        // A `Time` is less than a day.
        CivilTime::new(hour, minute, second, us as i32 * NS_PER_US).unwrap_or_default()
    }
}

values_from! {
    Timestamp => DateTime;
    &ZonedDateTime => DateTime;
    CivilDateTime => DateTime;
    CivilDate => Date;
    CivilTime => Time;
}

read_by! {
    Timestamp, DateTime;
    CivilDateTime, DateTime;
    CivilDate, Date;
    CivilTime, Time;
}
