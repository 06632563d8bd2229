//! The crate `chrono`.
//!
//! ```
//! use chrono::{DateTime, NaiveDate, NaiveTime, Utc};
//! use highwater::{Database, Schema, Time, Type, values};
//!
//! let db = Database::in_memory()?;
//! let schema = Schema::new()
//!     .column("day", Type::Date)
//!     .column("at", Type::Time)
//!     .nullable("sent", Type::DateTime)
//!     .primary_key(&["day", "at"]);
//! let mails = db.create_table("mails", schema)?;
//!
//! let day = NaiveDate::from_ymd_opt(2026, 1, 31).unwrap();
//! let at = NaiveTime::from_hms_opt(9, 30, 0).unwrap();
//! let sent: DateTime<Utc> = "2026-01-31T12:00:00.5+01:00".parse().unwrap();
//! let mut txn = db.begin()?;
//! // A `NaiveTime` can be a leap second, which a column has not.
//! txn.insert(&mails, &values![day, Time::try_from(at)?, sent])?;
//! let row = txn.get(&mails, &values![day, Time::try_from(at)?])?.unwrap();
//! assert_eq!(row.try_get::<NaiveDate>("day")?, day);
//! assert_eq!(row.try_get::<NaiveTime>("at")?, at);
//! assert_eq!(row.try_get::<Option<DateTime<Utc>>>("sent")?, Some(sent));
//! # Ok::<(), highwater::Error>(())
//! ```

use super::{outside, read_by, values_from};
use crate::error::Error;
use crate::table::{Date, DateTime, Time};
use ::chrono::{DateTime as ZonedTime, NaiveDate, NaiveDateTime, NaiveTime, TimeZone, Timelike, Utc};

/// From the first of January of the year 1, which `chrono` counts as day 1, to 1970-01-01.
const EPOCH_DAYS_FROM_CE: i32 = 719_163;

const NS_PER_US: u32 = 1000;
const NS_PER_SECOND: u32 = 1_000_000_000;
const US_PER_SECOND: u64 = 1_000_000;

impl<Tz: TimeZone> From<ZonedTime<Tz>> for DateTime {
    /// The point in time; the microsecond that it is in. (A leap second is the one after it, as in Unix time.)
    fn from(time: ZonedTime<Tz>) -> DateTime {
        DateTime::from_unix_us(time.timestamp_micros())
    }
}

impl From<NaiveDateTime> for DateTime {
    /// Taken as UTC.
    fn from(time: NaiveDateTime) -> DateTime {
        time.and_utc().into()
    }
}

impl From<NaiveDate> for Date {
    fn from(day: NaiveDate) -> Date {
        use ::chrono::Datelike;
        Date::from_unix_days(day.num_days_from_ce() - EPOCH_DAYS_FROM_CE)
    }
}

impl TryFrom<NaiveTime> for Time {
    type Error = Error;

    /// Fails for a leap second (23:59:60).
    fn try_from(time: NaiveTime) -> Result<Time, Error> {
        let us = u64::from(time.num_seconds_from_midnight()) * US_PER_SECOND + u64::from(time.nanosecond() / NS_PER_US);
        let is_leap_second = time.nanosecond() >= NS_PER_SECOND;
        Time::from_us(us).filter(|_| !is_leap_second).ok_or_else(|| outside(time, "a time of day"))
    }
}

impl TryFrom<DateTime> for ZonedTime<Utc> {
    type Error = Error;

    /// Fails more than 262,000 years away.
    fn try_from(time: DateTime) -> Result<ZonedTime<Utc>, Error> {
        ZonedTime::from_timestamp_micros(time.unix_us()).ok_or_else(|| outside(time, "chrono::DateTime"))
    }
}

impl TryFrom<DateTime> for NaiveDateTime {
    type Error = Error;

    /// The time in UTC. Fails more than 262,000 years away.
    fn try_from(time: DateTime) -> Result<NaiveDateTime, Error> {
        ZonedTime::<Utc>::try_from(time).map(|time| time.naive_utc())
    }
}

impl TryFrom<Date> for NaiveDate {
    type Error = Error;

    /// Fails more than 262,000 years away.
    fn try_from(day: Date) -> Result<NaiveDate, Error> {
        let days = day.unix_days().checked_add(EPOCH_DAYS_FROM_CE);
        days.and_then(NaiveDate::from_num_days_from_ce_opt).ok_or_else(|| outside(day, "chrono::NaiveDate"))
    }
}

impl From<Time> for NaiveTime {
    fn from(time: Time) -> NaiveTime {
        let us = time.us_since_midnight();
        let (seconds, ns) = ((us / US_PER_SECOND) as u32, (us % US_PER_SECOND) as u32 * NS_PER_US);
        // A `Time` is less than a day.
        NaiveTime::from_num_seconds_from_midnight_opt(seconds, ns).unwrap_or(NaiveTime::MIN)
    }
}

values_from! {
    ZonedTime<Tz>, Tz: TimeZone => DateTime;
    NaiveDateTime => DateTime;
    NaiveDate => Date;
}

read_by! {
    ZonedTime<Utc>, DateTime;
    NaiveDateTime, DateTime;
    NaiveDate, Date;
    NaiveTime, Time;
}
