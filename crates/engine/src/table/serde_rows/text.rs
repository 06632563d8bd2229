//! Times as other crates write them: RFC 3339 and its relatives, with an offset, with more digits than a column keeps.

use crate::table::{Date, DateTime, Time};

/// Digits of a fraction of a second that a column stores.
const FRACTION_DIGITS: usize = 6;
const US_PER_MINUTE: i64 = 60_000_000;
const MINUTES_PER_HOUR: i64 = 60;

/// A point in time: as [`DateTime`] is read, also with a sign before the year, an offset such as `+02:00`, and more
/// digits of a second, which are cut off. Without an offset it is in UTC.
pub(super) fn point_in_time(text: &str) -> Result<DateTime, String> {
    let wrong = || format!("{text:?} is not a point in time such as 2026-01-31T12:00:00.5Z");
    let (local, offset_us) = split_offset(text.strip_prefix('+').unwrap_or(text));
    let time: DateTime = cut_fraction(local).parse().map_err(|_| wrong())?;
    time.unix_us().checked_sub(offset_us).map(DateTime::from_unix_us).ok_or_else(wrong)
}

/// A day, also with a sign before the year.
pub(super) fn day(text: &str) -> Result<Date, String> {
    text.strip_prefix('+').unwrap_or(text).parse()
}

/// A time of day, also with more digits of a second, which are cut off.
pub(super) fn time_of_day(text: &str) -> Result<Time, String> {
    cut_fraction(text).parse()
}

/// Local time, and its offset from UTC.
fn split_offset(text: &str) -> (&str, i64) {
    if let Some(local) = text.strip_suffix(['Z', 'z']) {
        return (local, 0);
    }
    offset_behind_time(text).unwrap_or((text, 0))
}

fn offset_behind_time(text: &str) -> Option<(&str, i64)> {
    let (local, offset) = text.split_at_checked(text.len().checked_sub("+hh:mm".len())?)?;
    let sign = match offset.as_bytes() {
        [b'+', _, _, b':', _, _] => 1,
        [b'-', _, _, b':', _, _] => -1,
        _ => return None,
    };
    let [hours, minutes] = [offset.get(1..3)?, offset.get(4..6)?].map(|digits| {
        let is_number = digits.bytes().all(|digit| digit.is_ascii_digit());
        is_number.then(|| digits.parse::<i64>().ok()).flatten()
    });
    let minutes = minutes.filter(|minutes| *minutes < MINUTES_PER_HOUR)?;
    // In a text such as -2026-01:31 the date is followed by no time, so `-01:31` is not an offset.
    local.contains(':').then_some((local, sign * (hours? * MINUTES_PER_HOUR + minutes) * US_PER_MINUTE))
}

/// The text without the excess digits of a fraction of a second.
fn cut_fraction(text: &str) -> &str {
    let Some((_, fraction)) = text.rsplit_once('.') else { return text };
    let has_more = fraction.len() > FRACTION_DIGITS && fraction.bytes().all(|digit| digit.is_ascii_digit());
    if has_more { &text[..text.len() - fraction.len() + FRACTION_DIGITS] } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn as_others_write_it() {
        let cases = [
            ("2026-01-31T12:00:00.5Z", "2026-01-31T12:00:00.5"),
            ("2026-01-31t12:00:00.123456789Z", ""),
            ("2026-01-31 12:00:00.123456789", "2026-01-31T12:00:00.123456"),
            ("2026-01-31T01:30:00+02:00", "2026-01-30T23:30:00"),
            ("2026-01-31T01:30:00.9999999-09:30", "2026-01-31T11:00:00.999999"),
            ("1969-12-31T23:59:59.999999999Z", "1969-12-31T23:59:59.999999"),
            ("+12345-01-01T00:00:00Z", "12345-01-01T00:00:00"),
            ("-009999-01-01T00:00:00Z", "-9999-01-01T00:00:00"),
            ("2026-01-31", "2026-01-31T00:00:00"),
            ("2026-01-31T12:00:00+2:00", ""),
            ("2026-01-31T12:00:00+02:60", ""),
            ("2026-01-31T12:00:00+é:00", ""),
            ("2026-01-31T12:00:00.12345678x", ""),
            ("2016-12-31T23:59:60Z", ""),
            ("+02:00", ""),
            ("", ""),
        ];
        for (text, read) in cases {
            let found = point_in_time(text).map_or(String::new(), |time| time.to_string());
            assert_eq!(found, read, "{text}");
        }
        assert_eq!(day("+10000-01-01").unwrap().to_string(), "10000-01-01");
        assert_eq!(time_of_day("12:00:00.123456789").unwrap().to_string(), "12:00:00.123456");
        let last = DateTime::from_unix_us(i64::MAX);
        assert!(point_in_time(&format!("{last}-00:01")).is_err());
    }

    proptest! {
        #[test]
        fn every_point_in_time_reads_back(us: i64, offset in -1439i64..1440) {
            let time = DateTime::from_unix_us(us);
            prop_assert_eq!(point_in_time(&format!("{time}Z")), Ok(time));
            if let Some(local) = us.checked_add(offset * US_PER_MINUTE).map(DateTime::from_unix_us) {
                let sign = if offset < 0 { '-' } else { '+' };
                let (hours, minutes) = (offset.abs() / 60, offset.abs() % 60);
                // The seconds are there, so that an offset follows a time.
                prop_assert_eq!(point_in_time(&format!("{local}{sign}{hours:02}:{minutes:02}")), Ok(time));
            }
        }

        #[test]
        fn no_text_panics(text in ".{0,40}", tail in "[-+.:0-9TZ]{0,30}") {
            let text = format!("{text}{tail}");
            let _ = (point_in_time(&text), day(&text), time_of_day(&text));
        }
    }
}
