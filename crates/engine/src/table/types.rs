//! Column types.
//!
//! Rules
//! 1. A type fixes how many bytes a value takes in a row: fixed-size types always the same, `Text` and `Binary` as many
//!    as the value has; so does `Json`.
//! 2. Lengths are bytes, never characters. Text is UTF-8 and compares as bytes.
//! 3. The numbers in `Type::code` are on disk: never change one, only add.

use super::decimal::MAX_PRECISION;
use std::fmt;
use std::str::FromStr;

/// Longest `Text`, `Binary` or `Json` column, in bytes.
pub(crate) const MAX_VALUE_BYTES: u32 = 16 << 20;

/// Digits a decimal may have to be kept in 8 bytes.
const SMALL_PRECISION: u8 = 18;

/// The type of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Type {
    /// Signed, 8 bits.
    I8,
    /// Signed, 16 bits.
    I16,
    /// Signed, 32 bits.
    I32,
    /// Signed, 64 bits.
    I64,
    /// Unsigned, 8 bits.
    U8,
    /// Unsigned, 16 bits.
    U16,
    /// Unsigned, 32 bits.
    U32,
    /// Unsigned, 64 bits.
    U64,
    /// Binary floating point, 32 bits. `-0.0` is kept as `0.0`, every NaN as one NaN that sorts last.
    F32,
    /// Binary floating point, 64 bits. `-0.0` is kept as `0.0`, every NaN as one NaN that sorts last.
    F64,
    /// Exact number: (digits in all, digits after the point).
    Decimal(u8, u8),
    /// UTF-8 text of at most this many bytes.
    Text(u32),
    /// Bytes, at most this many.
    Binary(u32),
    /// Microseconds since 1970-01-01T00:00:00Z.
    DateTime,
    /// Signed, 24 bits.
    I24,
    /// Unsigned, 24 bits.
    U24,
    /// Bytes, always this many, 1 to 255. They compare as they are: a front end keeps dates, times, decimals, UUIDs and
    /// addresses of its own here, in a form that compares so.
    Fixed(u8),
    /// True or false.
    Bool,
    /// A day of the calendar, without a time zone.
    Date,
    /// A time of day, to the microsecond, without a time zone.
    Time,
    /// A UUID.
    Uuid,
    /// JSON text of at most this many bytes: one value of any kind, with lists and objects nested at most 100 deep. It
    /// is checked when it is written and stored unchanged. It reads as text, and is in no key.
    Json(u32),
}

impl Type {
    /// Bytes of a value in a row, `None` for `Text`, `Binary` and `Json`.
    pub const fn fixed_bytes(self) -> Option<usize> {
        match self {
            Type::I8 | Type::U8 | Type::Bool => Some(1),
            Type::I16 | Type::U16 => Some(2),
            Type::I24 | Type::U24 => Some(3),
            Type::Fixed(bytes) => Some(bytes as usize),
            Type::I32 | Type::U32 | Type::F32 | Type::Date => Some(4),
            Type::I64 | Type::U64 | Type::F64 | Type::DateTime | Type::Time => Some(8),
            Type::Uuid => Some(16),
            Type::Decimal(precision, _) if precision <= SMALL_PRECISION => Some(8),
            Type::Decimal(..) => Some(16),
            Type::Text(_) | Type::Binary(_) | Type::Json(_) => None,
        }
    }

    /// Most bytes a value takes in a row.
    pub const fn max_bytes(self) -> usize {
        match self {
            Type::Text(max) | Type::Binary(max) | Type::Json(max) => max as usize,
            _ => match self.fixed_bytes() {
                Some(bytes) => bytes,
                None => 0,
            },
        }
    }

    /// Smallest and largest value of an integer type.
    pub const fn integer_range(self) -> Option<(i128, i128)> {
        match self {
            Type::I8 => Some((i8::MIN as i128, i8::MAX as i128)),
            Type::I16 => Some((i16::MIN as i128, i16::MAX as i128)),
            Type::I24 => Some((-(1 << 23), (1 << 23) - 1)),
            Type::I32 => Some((i32::MIN as i128, i32::MAX as i128)),
            Type::I64 => Some((i64::MIN as i128, i64::MAX as i128)),
            Type::U8 => Some((0, u8::MAX as i128)),
            Type::U16 => Some((0, u16::MAX as i128)),
            Type::U24 => Some((0, (1 << 24) - 1)),
            Type::U32 => Some((0, u32::MAX as i128)),
            Type::U64 => Some((0, u64::MAX as i128)),
            _ => None,
        }
    }

    /// Whether this is a signed integer type.
    pub const fn is_signed_integer(self) -> bool {
        matches!(self, Type::I8 | Type::I16 | Type::I24 | Type::I32 | Type::I64)
    }

    /// Whether this is an unsigned integer type.
    pub const fn is_unsigned_integer(self) -> bool {
        matches!(self, Type::U8 | Type::U16 | Type::U24 | Type::U32 | Type::U64)
    }

    /// Whether each value of this type is one of the other type too, of the same kind: a longer text, a wider integer
    /// of the same sign, a wider float, a decimal with no fewer digits before the point and after it.
    ///
    /// ```
    /// use highwater::Type;
    /// assert!(Type::U16.widens_to(Type::U32) && Type::Text(20).widens_to(Type::Text(400)));
    /// assert!(!Type::U16.widens_to(Type::I32) && !Type::U32.widens_to(Type::U16));
    /// ```
    pub const fn widens_to(self, to: Type) -> bool {
        match (self, to) {
            (Type::Text(from), Type::Text(to)) | (Type::Binary(from), Type::Binary(to)) => from <= to,
            (Type::Json(from), Type::Json(to)) => from <= to,
            (Type::Decimal(digits, scale), Type::Decimal(to_digits, to_scale)) => {
                scale <= to_scale && digits as u16 + to_scale as u16 <= to_digits as u16 + scale as u16
            }
            (Type::Fixed(from), Type::Fixed(to)) => from == to,
            (Type::F32 | Type::F64, Type::F64) | (Type::F32, Type::F32) | (Type::DateTime, Type::DateTime) => true,
            (Type::Bool, Type::Bool) | (Type::Date, Type::Date) | (Type::Time, Type::Time) => true,
            (Type::Uuid, Type::Uuid) => true,
            _ => {
                let is_same_kind = self.is_signed_integer() && to.is_signed_integer()
                    || self.is_unsigned_integer() && to.is_unsigned_integer();
                is_same_kind && self.max_bytes() <= to.max_bytes()
            }
        }
    }

    /// Whether a value of the other type has the same bytes in this one, in rows and in keys.
    pub(crate) fn keeps_bytes_of(self, other: Type) -> bool {
        match (self, other) {
            (Type::Decimal(_, scale), Type::Decimal(_, other_scale)) if scale != other_scale => false,
            _ => self.fixed_bytes() == other.fixed_bytes(),
        }
    }

    /// The problem with the type's parameters, if any.
    pub fn invalid(self) -> Option<String> {
        match self {
            Type::Decimal(precision, _) if precision == 0 || precision > MAX_PRECISION => {
                Some(format!("{self}: a decimal has 1 to {MAX_PRECISION} digits"))
            }
            Type::Decimal(precision, scale) if scale > precision => {
                Some(format!("{self}: more digits after the point than in all"))
            }
            Type::Text(max) | Type::Binary(max) | Type::Json(max) if max == 0 || max > MAX_VALUE_BYTES => {
                Some(format!("{self}: the length is 1 to {MAX_VALUE_BYTES} bytes"))
            }
            Type::Fixed(0) => Some(format!("{self}: the length is 1 to 255 bytes")),
            _ => None,
        }
    }

    /// The type as on disk: a code and a parameter.
    pub(crate) const fn code(self) -> (u8, u32) {
        match self {
            Type::I8 => (1, 0),
            Type::I16 => (2, 0),
            Type::I32 => (3, 0),
            Type::I64 => (4, 0),
            Type::U8 => (5, 0),
            Type::U16 => (6, 0),
            Type::U32 => (7, 0),
            Type::U64 => (8, 0),
            Type::F32 => (9, 0),
            Type::F64 => (10, 0),
            Type::Decimal(precision, scale) => (11, (precision as u32) << 8 | scale as u32),
            Type::Text(max) => (12, max),
            Type::Binary(max) => (13, max),
            Type::DateTime => (14, 0),
            Type::I24 => (15, 0),
            Type::U24 => (16, 0),
            Type::Fixed(bytes) => (17, bytes as u32),
            Type::Bool => (18, 0),
            Type::Date => (19, 0),
            Type::Time => (20, 0),
            Type::Uuid => (21, 0),
            Type::Json(max) => (22, max),
        }
    }

    /// The type for a code and a parameter from disk.
    pub(crate) fn from_code(code: u8, parameter: u32) -> Option<Type> {
        let plain = [
            Type::I8,
            Type::I16,
            Type::I32,
            Type::I64,
            Type::U8,
            Type::U16,
            Type::U32,
            Type::U64,
            Type::F32,
            Type::F64,
        ];
        let found = match code {
            1..=10 => plain[usize::from(code) - 1],
            11 => Type::Decimal(u8::try_from(parameter >> 8).ok()?, (parameter & 0xff) as u8),
            12 => Type::Text(parameter),
            13 => Type::Binary(parameter),
            14 => Type::DateTime,
            15 => Type::I24,
            16 => Type::U24,
            17 => Type::Fixed(u8::try_from(parameter).ok()?),
            18 => Type::Bool,
            19 => Type::Date,
            20 => Type::Time,
            21 => Type::Uuid,
            22 => Type::Json(parameter),
            _ => return None,
        };
        (found.code() == (code, parameter) && found.invalid().is_none()).then_some(found)
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Type::I8 => f.write_str("i8"),
            Type::I16 => f.write_str("i16"),
            Type::I32 => f.write_str("i32"),
            Type::I64 => f.write_str("i64"),
            Type::U8 => f.write_str("u8"),
            Type::U16 => f.write_str("u16"),
            Type::U32 => f.write_str("u32"),
            Type::U64 => f.write_str("u64"),
            Type::F32 => f.write_str("f32"),
            Type::F64 => f.write_str("f64"),
            Type::Decimal(precision, scale) => write!(f, "decimal({precision},{scale})"),
            Type::Text(max) => write!(f, "text({max})"),
            Type::Binary(max) => write!(f, "binary({max})"),
            Type::DateTime => f.write_str("datetime"),
            Type::I24 => f.write_str("i24"),
            Type::U24 => f.write_str("u24"),
            Type::Fixed(bytes) => write!(f, "fixed({bytes})"),
            Type::Bool => f.write_str("bool"),
            Type::Date => f.write_str("date"),
            Type::Time => f.write_str("time"),
            Type::Uuid => f.write_str("uuid"),
            Type::Json(max) => write!(f, "json({max})"),
        }
    }
}

impl FromStr for Type {
    type Err = String;

    /// Reads what [`Display`](fmt::Display) writes; `text` and `binary` without a length take 255 bytes, `json` 65,535.
    fn from_str(text: &str) -> Result<Type, String> {
        let lower = text.trim().to_ascii_lowercase();
        let (name, arguments) = split_arguments(&lower).ok_or_else(|| unknown_type(text))?;
        let found = match (name, arguments.as_slice()) {
            ("i8", []) => Type::I8,
            ("i16", []) => Type::I16,
            ("i24", []) => Type::I24,
            ("i32", []) => Type::I32,
            ("i64", []) => Type::I64,
            ("u8", []) => Type::U8,
            ("u16", []) => Type::U16,
            ("u24", []) => Type::U24,
            ("u32", []) => Type::U32,
            ("u64", []) => Type::U64,
            ("f32", []) => Type::F32,
            ("f64", []) => Type::F64,
            ("datetime", []) => Type::DateTime,
            ("bool", []) => Type::Bool,
            ("date", []) => Type::Date,
            ("time", []) => Type::Time,
            ("uuid", []) => Type::Uuid,
            ("decimal", &[precision, scale]) => match (u8::try_from(precision), u8::try_from(scale)) {
                (Ok(precision), Ok(scale)) => Type::Decimal(precision, scale),
                _ => return Err(unknown_type(text)),
            },
            ("text", &[max]) => Type::Text(max),
            ("text", []) => Type::Text(255),
            ("binary", &[max]) => Type::Binary(max),
            ("binary", []) => Type::Binary(255),
            ("json", &[max]) => Type::Json(max),
            ("json", []) => Type::Json(65_535),
            ("fixed", &[bytes]) => Type::Fixed(u8::try_from(bytes).map_err(|_| unknown_type(text))?),
            _ => return Err(unknown_type(text)),
        };
        match found.invalid() {
            Some(reason) => Err(reason),
            None => Ok(found),
        }
    }
}

fn unknown_type(text: &str) -> String {
    format!(
        "{text:?} is not a type; types are i8 i16 i24 i32 i64 u8 u16 u24 u32 u64 f32 f64 decimal(P,S) \
         text(BYTES) binary(BYTES) fixed(BYTES) bool date time datetime uuid json(BYTES)"
    )
}

/// `name(1,2)` as (`name`, [1, 2]).
fn split_arguments(text: &str) -> Option<(&str, Vec<u32>)> {
    let Some((name, rest)) = text.split_once('(') else { return Some((text, Vec::new())) };
    let inner = rest.strip_suffix(')')?;
    let arguments = inner.split(',').map(|a| a.trim().parse().ok()).collect::<Option<Vec<u32>>>()?;
    Some((name.trim(), arguments))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Type; 24] = [
        Type::I8,
        Type::I16,
        Type::I32,
        Type::I64,
        Type::U8,
        Type::U16,
        Type::U32,
        Type::U64,
        Type::F32,
        Type::F64,
        Type::Decimal(12, 2),
        Type::Decimal(38, 38),
        Type::Text(64),
        Type::Binary(MAX_VALUE_BYTES),
        Type::DateTime,
        Type::I24,
        Type::U24,
        Type::Fixed(1),
        Type::Fixed(255),
        Type::Bool,
        Type::Date,
        Type::Time,
        Type::Uuid,
        Type::Json(MAX_VALUE_BYTES),
    ];

    #[test]
    fn text_and_code_round_trip() {
        for ty in ALL {
            assert_eq!(ty.to_string().parse::<Type>(), Ok(ty));
            let (code, parameter) = ty.code();
            assert_eq!(Type::from_code(code, parameter), Some(ty));
        }
    }

    #[test]
    fn wrong_types_are_refused() {
        for text in [
            "",
            "int",
            "text()",
            "text(0)",
            "text(99999999)",
            "decimal(5)",
            "decimal(2,3)",
            "decimal(39,0)",
            "fixed(0)",
            "fixed(256)",
            "json(0)",
        ] {
            assert!(text.parse::<Type>().is_err(), "{text}");
        }
        for (code, parameter) in [
            (0, 0),
            (15, 1),
            (17, 0),
            (17, 256),
            (18, 1),
            (22, 0),
            (23, 0),
            (1, 7),
            (11, 0),
            (11, 0x0102),
            (12, 0),
            (13, u32::MAX),
        ] {
            assert_eq!(Type::from_code(code, parameter), None);
        }
    }
}
