//! Values of columns as plain data.
//!
//! Rule: a passed value is checked: its kind exists, its text is UTF-8. A returned value points into the row or the
//! cursor.

use crate::failure::{Failure, Result, done, highwater_code, highwater_error};
use crate::handle::{Out, slice, text};
use highwater::{Date, DateTime, Decimal, Time, Uuid, Value, ValueRef};
use smallvec::SmallVec;
use std::ffi::c_char;

/// The kind of a value. Any integer fits any integer column that can store the number.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum highwater_kind {
    /// No value.
    HIGHWATER_KIND_NULL = 0,
    /// A signed integer: `of.i64`.
    HIGHWATER_KIND_INT = 1,
    /// An unsigned integer: `of.u64`.
    HIGHWATER_KIND_UINT = 2,
    /// A floating point number: `of.f64`.
    HIGHWATER_KIND_F64 = 3,
    /// A decimal number: `of.decimal`, an integer of 128 bits, and `scale`, how many of its digits follow the point.
    HIGHWATER_KIND_DECIMAL = 4,
    /// Text or JSON in UTF-8: `of.bytes`, without a NUL at the end.
    HIGHWATER_KIND_TEXT = 5,
    /// Bytes: `of.bytes`.
    HIGHWATER_KIND_BYTES = 6,
    /// A point in time: `of.i64`, microseconds since 1970-01-01T00:00:00Z.
    HIGHWATER_KIND_DATETIME = 7,
    /// True or false: `of.u64`, 1 or 0.
    HIGHWATER_KIND_BOOL = 8,
    /// A day: `of.i64`, days since 1970-01-01.
    HIGHWATER_KIND_DATE = 9,
    /// A time of day: `of.u64`, microseconds since midnight.
    HIGHWATER_KIND_TIME = 10,
    /// A UUID: `of.uuid`, 16 bytes.
    HIGHWATER_KIND_UUID = 11,
}

use highwater_kind::*;

/// Bytes and their number.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct highwater_bytes {
    /// The first byte.
    pub data: *const u8,
    /// Number of bytes.
    pub length: usize,
}

/// An integer of 128 bits in two halves: `high * 2^64 + low`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct highwater_int128 {
    /// The upper half, signed.
    pub high: i64,
    /// The lower half.
    pub low: u64,
}

/// The contents of a value, by its kind.
#[repr(C)]
#[derive(Clone, Copy)]
pub union highwater_datum {
    /// `INT`, `DATETIME`, `DATE`.
    pub i64: i64,
    /// `UINT`, `BOOL`, `TIME`.
    pub u64: u64,
    /// `F64`.
    pub f64: f64,
    /// `DECIMAL`.
    pub decimal: highwater_int128,
    /// `TEXT`, `BYTES`.
    pub bytes: highwater_bytes,
    /// `UUID`.
    pub uuid: [u8; 16],
}

/// A value of a column. One of zeros is NULL.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct highwater_value {
    /// A `highwater_kind`.
    pub kind: i32,
    /// Of a decimal number: how many of its digits follow the point.
    pub scale: u32,
    /// The contents.
    pub of: highwater_datum,
}

/// Values that a call is given.
pub(crate) type Values<'a> = SmallVec<[ValueRef<'a>; 16]>;

impl highwater_value {
    fn new(kind: highwater_kind, of: highwater_datum) -> highwater_value {
        highwater_value { kind: kind as i32, scale: 0, of }
    }

    fn of_bytes(kind: highwater_kind, bytes: &[u8]) -> highwater_value {
        let bytes = highwater_bytes { data: bytes.as_ptr(), length: bytes.len() };
        highwater_value::new(kind, highwater_datum { bytes })
    }

    fn of_decimal(number: Decimal) -> highwater_value {
        let unscaled = number.unscaled();
        let decimal = highwater_int128 { high: (unscaled >> 64) as i64, low: unscaled as u64 };
        let scale = number.scale().into();
        highwater_value { scale, ..highwater_value::new(HIGHWATER_KIND_DECIMAL, highwater_datum { decimal }) }
    }

    /// The value, which lives as long as what `value` borrows.
    pub(crate) fn out(value: ValueRef<'_>) -> highwater_value {
        let plain = highwater_value::new;
        match value {
            ValueRef::Null => plain(HIGHWATER_KIND_NULL, highwater_datum { u64: 0 }),
            ValueRef::Int(n) => plain(HIGHWATER_KIND_INT, highwater_datum { i64: n }),
            ValueRef::UInt(n) => plain(HIGHWATER_KIND_UINT, highwater_datum { u64: n }),
            ValueRef::F64(x) => plain(HIGHWATER_KIND_F64, highwater_datum { f64: x }),
            ValueRef::Decimal(number) => highwater_value::of_decimal(number),
            ValueRef::Text(text) => highwater_value::of_bytes(HIGHWATER_KIND_TEXT, text.as_bytes()),
            ValueRef::Bytes(bytes) => highwater_value::of_bytes(HIGHWATER_KIND_BYTES, bytes),
            ValueRef::DateTime(time) => plain(HIGHWATER_KIND_DATETIME, highwater_datum { i64: time.unix_us() }),
            ValueRef::Bool(truth) => plain(HIGHWATER_KIND_BOOL, highwater_datum { u64: truth.into() }),
            ValueRef::Date(day) => plain(HIGHWATER_KIND_DATE, highwater_datum { i64: day.unix_days().into() }),
            ValueRef::Time(time) => plain(HIGHWATER_KIND_TIME, highwater_datum { u64: time.us_since_midnight() }),
            ValueRef::Uuid(uuid) => plain(HIGHWATER_KIND_UUID, highwater_datum { uuid: *uuid.as_bytes() }),
        }
    }

    /// The value for the engine.
    fn take<'a>(&self) -> std::result::Result<ValueRef<'a>, String> {
        let of = &self.of;
        // SAFETY: any bits are a number, and so are those of the halves and of a UUID.
        let (signed, word, float, decimal, uuid) = unsafe { (of.i64, of.u64, of.f64, of.decimal, of.uuid) };
        Ok(match self.kind {
            kind if kind == HIGHWATER_KIND_NULL as i32 => ValueRef::Null,
            kind if kind == HIGHWATER_KIND_INT as i32 => ValueRef::Int(signed),
            kind if kind == HIGHWATER_KIND_UINT as i32 => ValueRef::UInt(word),
            kind if kind == HIGHWATER_KIND_F64 as i32 => ValueRef::F64(float),
            kind if kind == HIGHWATER_KIND_DECIMAL as i32 => {
                let unscaled = i128::from(decimal.high) << 64 | i128::from(decimal.low);
                let scale = u8::try_from(self.scale).ok().filter(|scale| *scale <= MAX_SCALE);
                let scale = scale.ok_or_else(|| format!("a decimal of {} digits after the point", self.scale))?;
                ValueRef::Decimal(Decimal::new(unscaled, scale))
            }
            kind if kind == HIGHWATER_KIND_TEXT as i32 => {
                let text = std::str::from_utf8(self.bytes()?);
                ValueRef::Text(text.map_err(|error| format!("text that is not UTF-8: {error}"))?)
            }
            kind if kind == HIGHWATER_KIND_BYTES as i32 => ValueRef::Bytes(self.bytes()?),
            kind if kind == HIGHWATER_KIND_DATETIME as i32 => ValueRef::DateTime(DateTime::from_unix_us(signed)),
            kind if kind == HIGHWATER_KIND_BOOL as i32 => match word {
                0 | 1 => ValueRef::Bool(word == 1),
                _ => return Err(format!("{word} as true or false")),
            },
            kind if kind == HIGHWATER_KIND_DATE as i32 => {
                let days = i32::try_from(signed).map_err(|_| format!("{signed} days since 1970-01-01"))?;
                ValueRef::Date(Date::from_unix_days(days))
            }
            kind if kind == HIGHWATER_KIND_TIME as i32 => {
                ValueRef::Time(Time::from_us(word).ok_or_else(|| format!("{word} microseconds since midnight"))?)
            }
            kind if kind == HIGHWATER_KIND_UUID as i32 => ValueRef::Uuid(Uuid::from_bytes(uuid)),
            kind => return Err(format!("the kind {kind}, which does not exist")),
        })
    }

    fn bytes<'a>(&self) -> std::result::Result<&'a [u8], String> {
        // SAFETY: the kind says that the value holds these; any bits are a pointer and a length, which `slice` checks.
        let bytes = unsafe { self.of.bytes };
        slice(bytes.data, bytes.length, "a value").map_err(|_| format!("{} bytes at a null pointer", bytes.length))
    }
}

/// Digits after the point that a decimal has at most.
const MAX_SCALE: u8 = 38;

/// The values of a call's array.
///
/// # Errors
/// What is wrong with one of them.
pub(crate) fn values<'a>(data: *const highwater_value, count: usize, name: &str) -> Result<Values<'a>> {
    let taken = |(at, value): (usize, &highwater_value)| {
        value.take().map_err(|what| Failure::Usage(format!("{name}, number {at} from 0: the value is {what}")))
    };
    slice(data, count, name)?.iter().enumerate().map(taken).collect()
}

/// Values that were returned. The memory that they point to is stored with them.
#[derive(Default)]
pub(crate) struct ValuesOut(pub Vec<highwater_value>);

// SAFETY: they point to memory that is stored with them, and that does not change while it is shared.
unsafe impl Send for ValuesOut {}
// SAFETY: as above.
unsafe impl Sync for ValuesOut {}

impl ValuesOut {
    /// Sets the values of a row.
    pub(crate) fn set<'v>(&mut self, values: impl Iterator<Item = ValueRef<'v>>) {
        self.0.clear();
        self.0.extend(values.map(highwater_value::out));
    }

    /// Sets the values of a key.
    pub(crate) fn set_owned(&mut self, values: &[Value]) {
        self.set(values.iter().map(Value::as_ref));
    }
}

/// NULL.
#[unsafe(no_mangle)]
pub extern "C" fn highwater_null() -> highwater_value {
    highwater_value::out(ValueRef::Null)
}

/// A signed integer.
#[unsafe(no_mangle)]
pub extern "C" fn highwater_int(number: i64) -> highwater_value {
    highwater_value::out(ValueRef::Int(number))
}

/// An unsigned integer.
#[unsafe(no_mangle)]
pub extern "C" fn highwater_uint(number: u64) -> highwater_value {
    highwater_value::out(ValueRef::UInt(number))
}

/// A floating point number.
#[unsafe(no_mangle)]
pub extern "C" fn highwater_f64(number: f64) -> highwater_value {
    highwater_value::out(ValueRef::F64(number))
}

/// True or false.
#[unsafe(no_mangle)]
pub extern "C" fn highwater_bool(truth: bool) -> highwater_value {
    highwater_value::out(ValueRef::Bool(truth))
}

/// Text or JSON that ends with a NUL, which lives longer than the value; NULL for a null pointer.
#[unsafe(no_mangle)]
#[allow(clippy::not_unsafe_ptr_arg_deref, reason = "C calls it, by the rules of the header")]
pub extern "C" fn highwater_text(text: *const c_char) -> highwater_value {
    if text.is_null() {
        return highwater_null();
    }
    // SAFETY: the header's rule: the caller's pointer is to characters that end with a NUL.
    let bytes = unsafe { std::ffi::CStr::from_ptr(text) };
    highwater_value::of_bytes(HIGHWATER_KIND_TEXT, bytes.to_bytes())
}

/// Text or JSON of a length in bytes, which lives longer than the value.
#[unsafe(no_mangle)]
pub extern "C" fn highwater_text_of_length(data: *const c_char, length: usize) -> highwater_value {
    let bytes = highwater_bytes { data: data.cast(), length };
    highwater_value::new(HIGHWATER_KIND_TEXT, highwater_datum { bytes })
}

/// Bytes, which live longer than the value.
#[unsafe(no_mangle)]
pub extern "C" fn highwater_blob(data: *const u8, length: usize) -> highwater_value {
    highwater_value::new(HIGHWATER_KIND_BYTES, highwater_datum { bytes: highwater_bytes { data, length } })
}

/// A point in time: microseconds since 1970-01-01T00:00:00Z.
#[unsafe(no_mangle)]
pub extern "C" fn highwater_datetime(unix_us: i64) -> highwater_value {
    highwater_value::out(ValueRef::DateTime(DateTime::from_unix_us(unix_us)))
}

/// A day: days since 1970-01-01.
#[unsafe(no_mangle)]
pub extern "C" fn highwater_date(unix_days: i32) -> highwater_value {
    highwater_value::out(ValueRef::Date(Date::from_unix_days(unix_days)))
}

/// A time of day: microseconds since midnight. A call that is given one of a day or more is refused.
#[unsafe(no_mangle)]
pub extern "C" fn highwater_time(us_since_midnight: u64) -> highwater_value {
    highwater_value::new(HIGHWATER_KIND_TIME, highwater_datum { u64: us_since_midnight })
}

/// A UUID: 16 bytes, which are copied. NULL for a null pointer.
#[unsafe(no_mangle)]
pub extern "C" fn highwater_uuid(bytes: *const u8) -> highwater_value {
    let uuid = slice(bytes, 16, "the UUID").ok().and_then(|bytes| bytes.try_into().ok());
    highwater_value::out(uuid.map_or(ValueRef::Null, |bytes| ValueRef::Uuid(Uuid::from_bytes(bytes))))
}

/// A decimal number: `unscaled / 10^scale`.
#[unsafe(no_mangle)]
pub extern "C" fn highwater_decimal(unscaled: i64, scale: u32) -> highwater_value {
    let decimal = highwater_int128 { high: unscaled >> 63, low: unscaled as u64 };
    highwater_value { scale, ..highwater_value::new(HIGHWATER_KIND_DECIMAL, highwater_datum { decimal }) }
}

/// Reads a decimal number such as "-19.95" into `value`.
#[unsafe(no_mangle)]
pub extern "C" fn highwater_decimal_from_text(
    number: *const c_char,
    value: *mut highwater_value,
    error: *mut *mut highwater_error,
) -> highwater_code {
    done(error, || {
        let (number, out) = (text(number, "the number")?, Out::new(value, "the value")?);
        let decimal = number.parse::<Decimal>().map_err(|reason| Failure::Usage(format!("{number:?}: {reason}")))?;
        out.put(highwater_value::of_decimal(decimal));
        Ok(())
    })
}
