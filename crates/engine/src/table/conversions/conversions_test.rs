//! Values of other crates go into columns and come out as they were; what has no counterpart is an error.

use crate::error::Error;
use crate::table::{Date, DateTime, Decimal, FromValue, Time, Uuid, Value, ValueRef};
use ::chrono::{DateTime as ChronoTime, FixedOffset, NaiveDate, NaiveDateTime, NaiveTime, TimeDelta, Utc};
use ::jiff::civil::{self, DateTime as CivilDateTime};
use ::jiff::{Timestamp, tz::TimeZone};
use ::rust_decimal::Decimal as Foreign;
use proptest::prelude::*;
use std::fmt::Debug;

/// A value goes in and comes out, by each way.
fn round_trip<T>(value: T)
where
    T: Clone + Debug + PartialEq + for<'a> FromValue<'a>,
    Value: From<T>,
    ValueRef<'static>: From<T>,
{
    let (owned, borrowed) = (Value::from(value.clone()), ValueRef::from(value.clone()));
    assert_eq!(owned.as_ref(), borrowed);
    assert_eq!(T::from_value(borrowed).unwrap(), value);
    assert_eq!(Option::<T>::from_value(borrowed).unwrap(), Some(value));
    assert_eq!(Option::<T>::from_value(ValueRef::Null).unwrap(), None);
    assert!(matches!(T::from_value(ValueRef::Null), Err(Error::Conversion(_))));
    assert!(matches!(T::from_value("x".into()), Err(Error::Conversion(_))));
}

fn refusal<T: Debug>(refused: Result<T, Error>) -> String {
    refused.unwrap_err().to_string()
}

#[test]
fn the_ends_of_each_range() {
    round_trip(ChronoTime::<Utc>::MIN_UTC);
    round_trip(NaiveDate::MIN);
    round_trip(NaiveDate::MAX);
    round_trip(Timestamp::from_microsecond(Timestamp::MIN.as_microsecond()).unwrap());
    round_trip(civil::Date::MIN);
    round_trip(civil::Date::MAX);
    round_trip(civil::Time::MIN);
    round_trip(Foreign::MIN);
    round_trip(Foreign::MAX);
    round_trip(::uuid::Uuid::max());
    // The last ones but for what is finer than a microsecond.
    assert_eq!(DateTime::from(ChronoTime::<Utc>::MAX_UTC).to_string(), "262142-12-31T23:59:59.999999");
    assert_eq!(DateTime::from(Timestamp::MAX).to_string(), "9999-12-30T22:00:00.999999");
    assert_eq!(DateTime::from(CivilDateTime::MAX).to_string(), "9999-12-31T23:59:59.999999");
    assert_eq!(DateTime::from(CivilDateTime::MIN).to_string(), "-9999-01-01T00:00:00");
    assert_eq!(Time::from(civil::Time::MAX), Time::MAX);
}

#[test]
fn behind_the_ends_is_an_error() {
    for us in [i64::MIN, i64::MAX] {
        let time = DateTime::from_unix_us(us);
        assert_eq!(
            refusal(ChronoTime::<Utc>::try_from(time)),
            format!("{time} is outside of the range of chrono::DateTime")
        );
        assert!(refusal(NaiveDateTime::try_from(time)).contains("chrono::DateTime"));
        assert!(refusal(Timestamp::try_from(time)).contains("jiff::Timestamp"));
        assert!(refusal(CivilDateTime::try_from(time)).contains("jiff::civil::DateTime"));
    }
    for days in [i32::MIN, i32::MAX, i32::MAX - 719_163, i32::MAX - 719_162] {
        let day = Date::from_unix_days(days);
        assert!(refusal(NaiveDate::try_from(day)).contains("chrono::NaiveDate"));
        assert!(refusal(civil::Date::try_from(day)).contains("jiff::civil::Date"));
    }
    let after = Date::new(10_000, 1, 1).unwrap();
    assert_eq!(refusal(civil::Date::try_from(after)), "10000-01-01 is outside of the range of jiff::civil::Date");
    for number in [Decimal::new(1, 29), Decimal::new(1 << 96, 0), Decimal::new(-(1 << 96), 0), Decimal::new(3 << 96, 2)]
    {
        assert!(refusal(Foreign::try_from(number)).contains("rust_decimal::Decimal"), "{number}");
    }
}

#[test]
fn a_leap_second_is_no_time_of_day() {
    let leap = NaiveTime::from_hms_micro_opt(23, 59, 59, 1_500_000).unwrap();
    assert_eq!(refusal(Time::try_from(leap)), "23:59:60.500 is outside of the range of a time of day");
    let other = NaiveTime::from_hms_micro_opt(12, 0, 59, 1_500_000).unwrap();
    assert!(Time::try_from(other).is_err());
    let day = NaiveDate::from_ymd_opt(2016, 12, 31).unwrap();
    assert_eq!(DateTime::from(day.and_time(leap)).to_string(), "2017-01-01T00:00:00.5");
}

#[test]
fn less_than_a_microsecond_is_cut_off_towards_the_past() {
    let early = ChronoTime::<Utc>::UNIX_EPOCH - TimeDelta::nanoseconds(1);
    assert_eq!(DateTime::from(early).unix_us(), -1);
    assert_eq!(DateTime::from(early.naive_utc()).unix_us(), -1);
    let early = Timestamp::from_nanosecond(-1).unwrap();
    assert_eq!(DateTime::from(early).unix_us(), -1);
    assert_eq!(DateTime::from(TimeZone::UTC.to_datetime(early)).unix_us(), -1);
    assert_eq!(DateTime::from(Timestamp::from_nanosecond(1999).unwrap()).unix_us(), 1);
}

#[test]
fn offsets_and_zones_are_not_kept() {
    let noon: DateTime = "2026-01-31T12:00:00".parse().unwrap();
    let chrono: ChronoTime<FixedOffset> = "2026-01-31T14:00:00+02:00".parse().unwrap();
    assert_eq!(DateTime::from(chrono), noon);
    assert_eq!(ValueRef::from(chrono), ValueRef::DateTime(noon));
    let offset = ::jiff::tz::Offset::from_seconds(7200).unwrap();
    let zoned = "2026-01-31T14:00:00+02:00".parse::<Timestamp>().unwrap().to_zoned_datetime(offset.to_time_zone());
    assert_eq!((DateTime::from(&zoned), Value::from(&zoned)), (noon, Value::DateTime(noon)));
}

#[test]
fn decimals_lose_only_zeros() {
    let number = Decimal::new(10i128.pow(30) * 5, 30);
    assert_eq!(Foreign::try_from(number).unwrap(), Foreign::from(5));
    let mut negative_zero = Foreign::ZERO;
    negative_zero.set_sign_negative(true);
    assert_eq!(Decimal::from(negative_zero).to_string(), "0");
}

proptest! {
    #[test]
    fn points_in_time(us in -377_000_000_000_000_000i64..=253_000_000_000_000_000) {
        let time = DateTime::from_unix_us(us);
        let chrono = ChronoTime::<Utc>::try_from(time).unwrap();
        let jiff = Timestamp::try_from(time).unwrap();
        prop_assert_eq!(chrono.timestamp_micros(), us);
        round_trip(chrono);
        round_trip(chrono.naive_utc());
        round_trip(jiff);
        round_trip(CivilDateTime::try_from(time).unwrap());
        prop_assert_eq!(CivilDateTime::try_from(time).unwrap(), TimeZone::UTC.to_datetime(jiff));
    }

    #[test]
    fn days_and_times(days in -4_300_000i32..2_900_000, us in 0..=Time::MAX.us_since_midnight()) {
        let (day, time) = (Date::from_unix_days(days), Time::from_us(us).unwrap());
        prop_assert_eq!(NaiveDate::try_from(day).unwrap().format("%Y-%m-%d").to_string(), day.to_string());
        round_trip(NaiveDate::try_from(day).unwrap());
        round_trip(civil::Date::try_from(day).unwrap());
        round_trip(civil::Time::from(time));
        prop_assert_eq!(Time::try_from(NaiveTime::from(time)).unwrap(), time);
        prop_assert_eq!(NaiveTime::from_value(time.into()).unwrap(), NaiveTime::from(time));
    }

    #[test]
    fn decimals(unscaled in -(1i128 << 96) + 1..1 << 96, scale in 0u32..=28) {
        let number = Foreign::try_from_i128_with_scale(unscaled, scale).unwrap();
        round_trip(number);
        prop_assert_eq!(Decimal::from(number).to_string(), number.to_string());
    }

    #[test]
    fn uuids(bytes: [u8; 16]) {
        let uuid = ::uuid::Uuid::from_bytes(bytes);
        round_trip(uuid);
        prop_assert_eq!(Uuid::from(uuid).to_string(), uuid.to_string());
    }
}
