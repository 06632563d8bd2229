//! Inferring a column's type from its fields.
//!
//! Rules
//! 1. A type is chosen only if every field reads as it and prints as it was: `007` and `+1` are text, and so are
//!    numbers that no type has to the last digit. (Decimals, f64 and times may print in another form of the same
//!    value.)
//! 2. In this order: bool, i64, u64, decimal, f64, date, datetime, text with room for twice the longest value.
//! 3. Dates stay dates: a column of them is a datetime only if one has a time of day.

use highwater::{DateTime, Type};

/// Bytes of `2026-01-31`.
const DATE_BYTES: usize = 10;

/// The types that the fields of one column still allow.
#[derive(Clone, Debug)]
pub(super) struct Guess {
    values: u64,
    nulls: u64,
    empty: u64,
    longest_bytes: usize,
    integer: Option<(i128, i128)>,
    /// Most digits before and after the point.
    decimal: Option<(usize, usize)>,
    float: bool,
    datetime: bool,
    boolean: bool,
    /// Whether a field had a time of day.
    time_of_day: bool,
}

impl Default for Guess {
    fn default() -> Guess {
        Guess {
            values: 0,
            nulls: 0,
            empty: 0,
            longest_bytes: 0,
            integer: Some((0, 0)),
            decimal: Some((0, 0)),
            float: true,
            datetime: true,
            boolean: true,
            time_of_day: false,
        }
    }
}

impl Guess {
    /// Learns of one more field.
    pub(super) fn see(&mut self, field: &str, null: &str) {
        if field == null {
            self.nulls += 1;
            return;
        }
        if field.is_empty() {
            self.empty += 1;
            return;
        }
        self.values += 1;
        self.longest_bytes = self.longest_bytes.max(field.len());
        self.integer = self.integer.zip(integer(field)).map(|((low, high), n)| (low.min(n), high.max(n)));
        self.decimal =
            self.decimal.zip(decimal_digits(field)).map(|((a, b), (whole, part))| (a.max(whole), b.max(part)));
        self.float = self.float && is_float(field);
        self.boolean = self.boolean && matches!(field, "true" | "false");
        self.see_time(field);
    }

    /// Learns of a field that was written as a text: it is not a number.
    pub(super) fn see_text(&mut self, field: &str) {
        self.values += 1;
        self.longest_bytes = self.longest_bytes.max(field.len());
        (self.integer, self.decimal, self.float, self.boolean) = (None, None, false, false);
        self.see_time(field);
    }

    fn see_time(&mut self, field: &str) {
        self.datetime = self.datetime && field.parse::<DateTime>().is_ok();
        self.time_of_day |= field.len() > DATE_BYTES;
    }

    /// The type, and whether the column needs to be nullable.
    pub(super) fn result(&self) -> (Type, bool) {
        let ty = self.ty();
        let empty_is_null = !matches!(ty, Type::Text(_));
        (ty, self.nulls > 0 || (empty_is_null && self.empty > 0))
    }

    fn ty(&self) -> Type {
        if self.values == 0 {
            return Type::Text(255);
        }
        if self.boolean {
            return Type::Bool;
        }
        if let Some((low, high)) = self.integer {
            if low >= i64::MIN.into() && high <= i64::MAX.into() {
                return Type::I64;
            }
            if low >= 0 && high <= u64::MAX.into() {
                return Type::U64;
            }
        }
        match self.decimal {
            Some((whole, part)) if whole + part <= 18 => return Type::Decimal(18, part as u8),
            Some((whole, part)) if whole + part <= 38 => return Type::Decimal(38, part as u8),
            _ => {}
        }
        if self.float {
            return Type::F64;
        }
        if self.datetime {
            return if self.time_of_day { Type::DateTime } else { Type::Date };
        }
        let room = (self.longest_bytes * 2).next_power_of_two().clamp(16, 16 << 20);
        Type::Text(room as u32)
    }
}

/// An integer as integers are printed.
fn integer(field: &str) -> Option<i128> {
    let digits = field.strip_prefix('-').unwrap_or(field);
    let plain = digits.bytes().all(|b| b.is_ascii_digit()) && !digits.is_empty();
    let padded = digits.len() > 1 && digits.starts_with('0') || field == "-0";
    if plain && !padded { field.parse().ok() } else { None }
}

/// Digits before and after the point of a decimal number.
fn decimal_digits(field: &str) -> Option<(usize, usize)> {
    let (whole, part) = field.split_once('.').unwrap_or((field, ""));
    let digits = whole.strip_prefix('-').unwrap_or(whole);
    let whole_is_number = integer(digits).is_some();
    let part_is_digits = part.bytes().all(|b| b.is_ascii_digit()) && (!part.is_empty() || !field.contains('.'));
    (whole_is_number && part_is_digits).then_some((digits.len(), part.len()))
}

/// A number that an f64 has to its last digit: it is shown by the same digits again.
fn is_float(field: &str) -> bool {
    let held = field.parse().ok().filter(|number: &f64| number.is_finite());
    held.is_some_and(|number| scientific(&format!("{number:e}")) == scientific(field))
}

/// The digits of a decimal number, but zeros at both ends, and the power of ten of the first one.
fn scientific(number: &str) -> Option<(String, i64)> {
    let (mantissa, power) = number.split_once(['e', 'E']).unwrap_or((number, "0"));
    let unsigned = mantissa.strip_prefix('-').unwrap_or(mantissa);
    let (whole, part) = unsigned.split_once('.').unwrap_or((unsigned, "0"));
    let is_padded = whole.len() > 1 && whole.starts_with('0');
    let digits = [whole, part].concat();
    if is_padded || whole.is_empty() || part.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let zeros = digits.bytes().take_while(|digit| *digit == b'0').count();
    let power = power.parse::<i64>().ok()?.checked_add(whole.len() as i64 - 1 - zeros as i64)?;
    let digits = digits.trim_matches('0').to_string();
    Some(if digits.is_empty() { (digits, 0) } else { (digits, power) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn guess(fields: &[&str]) -> (Type, bool) {
        let mut guess = Guess::default();
        fields.iter().for_each(|field| guess.see(field, "\\N"));
        guess.result()
    }

    #[test]
    fn types_are_found() {
        let cases: [(&[&str], (Type, bool)); 26] = [
            (&["1", "-2", "0"], (Type::I64, false)),
            (&["1", "18446744073709551615"], (Type::U64, false)),
            (&["1", "", "3"], (Type::I64, true)),
            (&["1", "\\N"], (Type::I64, true)),
            (&["1.5", "2", "-0.25"], (Type::Decimal(18, 2), false)),
            (&["12345678901234567890.5"], (Type::Decimal(38, 1), false)),
            (&["1e5", "2.5"], (Type::F64, false)),
            (&["2026-01-31", "2026-01-31 12:00:00"], (Type::DateTime, false)),
            (&["2026-01-31", "2026-02-01"], (Type::Date, false)),
            (&["true", "", "false"], (Type::Bool, true)),
            (&["true", "1"], (Type::Text(16), false)),
            (&["007"], (Type::Text(16), false)),
            (&["+1"], (Type::Text(16), false)),
            (&["nan"], (Type::Text(16), false)),
            (&["0.0e0", "123456789012345e-20"], (Type::F64, false)),
            (&["9007199254740993", "1e5"], (Type::Text(32), false)),
            (&["12345678901234567.5", "1e5"], (Type::Text(64), false)),
            (&["1234567890123456.5", "1.2345678901234568e-05"], (Type::F64, false)),
            (&["100000000000000000000000000000000000000000"], (Type::F64, false)),
            (&["2.2250738585072014e-308", "5e-324", "-0.1e+3"], (Type::F64, false)),
            (&["1e999"], (Type::Text(16), false)),
            (&["1e-999"], (Type::Text(16), false)),
            (&["123456789012345678901234567890123456789"], (Type::Text(128), false)),
            (&["x", ""], (Type::Text(16), false)),
            (&["x", "\\N"], (Type::Text(16), true)),
            (&[], (Type::Text(255), false)),
        ];
        for (fields, expected) in cases {
            assert_eq!(guess(fields), expected, "{fields:?}");
        }
        assert_eq!(guess(&["nine bytes".repeat(10).as_str()]).0, Type::Text(256));
    }
}
