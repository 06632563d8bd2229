//! The form in which a column stores a value.
//!
//! Rule: `fit` turns a value into the bytes a column keeps, or refuses it. It never changes a number except that floats
//! are rounded to the column's width, `-0.0` becomes `0.0` and every NaN the same NaN; so equal stored bytes mean equal
//! values and the reverse. The bound of a range is not rounded: it is between two values that the column can keep.

use super::date::{Date, Time};
use super::datetime::DateTime;
use super::decimal::{Decimal, power_of_ten};
use super::json;
use super::types::Type;
use super::value::{Value, ValueRef};
use std::cmp::Ordering;

/// A value as its column keeps it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Stored<'a> {
    Null,
    /// A fixed-size value of up to 8 bytes: its little-endian bytes as a number; what is above them counts for nothing.
    Word(u64),
    /// A fixed-size value of 16 bytes.
    Wide(u128),
    /// Text or bytes; of a `Fixed` type exactly its length.
    Bytes(&'a [u8]),
}

/// The stored form of `value` in a column of type `ty`; `None` if it does not fit ([`misfit`] has the reason). NULL
/// always fits here: the caller checks whether the column is nullable.
#[inline]
pub(crate) fn fit<'a>(ty: Type, value: ValueRef<'a>) -> Option<Stored<'a>> {
    match (value, ty) {
        (ValueRef::Null, _) => Some(Stored::Null),
        (ValueRef::Int(n), Type::I8 | Type::I16 | Type::I24 | Type::I32 | Type::I64) => fit_signed(ty, n),
        (ValueRef::Int(n), Type::U8 | Type::U16 | Type::U24 | Type::U32 | Type::U64) => {
            fit_unsigned(ty, u64::try_from(n).ok()?)
        }
        (ValueRef::UInt(n), Type::U8 | Type::U16 | Type::U24 | Type::U32 | Type::U64) => fit_unsigned(ty, n),
        (ValueRef::UInt(n), Type::I8 | Type::I16 | Type::I24 | Type::I32 | Type::I64) => {
            fit_signed(ty, i64::try_from(n).ok()?)
        }
        (ValueRef::Text(text), Type::Text(max) | Type::Binary(max)) => fit_bytes(max, text.as_bytes()),
        (ValueRef::Bytes(bytes), Type::Binary(max)) => fit_bytes(max, bytes),
        (ValueRef::Bytes(bytes), Type::Text(max)) if simdutf8::basic::from_utf8(bytes).is_ok() => fit_bytes(max, bytes),
        (ValueRef::Text(text), Type::Json(max)) => fit_json(max, text),
        (ValueRef::Bytes(bytes), Type::Json(max)) => fit_json(max, simdutf8::basic::from_utf8(bytes).ok()?),
        (ValueRef::Bytes(bytes), Type::Fixed(len)) if bytes.len() == usize::from(len) => Some(Stored::Bytes(bytes)),
        (ValueRef::DateTime(t), Type::DateTime) => Some(Stored::Word(t.unix_us() as u64)),
        (ValueRef::Bool(b), _) => fit_bool(ty, b),
        (ValueRef::Date(d), Type::Date) => Some(Stored::Word(d.unix_days() as u64)),
        (ValueRef::Time(t), Type::Time) => Some(Stored::Word(t.us_since_midnight())),
        (ValueRef::Uuid(u), Type::Uuid) => Some(Stored::Wide(u128::from_be_bytes(*u.as_bytes()))),
        (ValueRef::Bytes(bytes), Type::Uuid) => Some(Stored::Wide(u128::from_be_bytes(bytes.try_into().ok()?))),
        (ValueRef::F64(x), _) => fit_float(ty, x),
        (ValueRef::Decimal(d), Type::Decimal(precision, scale)) => fit_decimal(precision, scale, d),
        (ValueRef::Int(n), _) => fit_other(ty, i128::from(n)),
        (ValueRef::UInt(n), _) => fit_other(ty, i128::from(n)),
        _ => None,
    }
}

/// As `fit`, for a bound of a search: text and bytes may be longer than the column's values.
#[inline]
pub(crate) fn fit_bound<'a>(ty: Type, value: ValueRef<'a>) -> Option<Stored<'a>> {
    let ty = match ty {
        Type::Text(_) | Type::Json(_) => Type::Text(u32::MAX),
        Type::Binary(_) => Type::Binary(u32::MAX),
        other => other,
    };
    fit(ty, value)
}

/// The greatest float of the column's width below a float that its values cannot be, or the least above it: its
/// position among them.
pub(crate) fn adjacent_float(ty: Type, value: ValueRef<'_>, above: bool) -> Option<f64> {
    let (Type::F32, ValueRef::F64(x)) = (ty, value) else { return None };
    let nearest = x as f32;
    match (f64::from(nearest).partial_cmp(&x)?, above) {
        (Ordering::Greater, false) => Some(nearest.next_down().into()),
        (Ordering::Less, true) => Some(nearest.next_up().into()),
        (Ordering::Equal, _) => None,
        _ => Some(nearest.into()),
    }
}

#[inline]
fn fit_bytes(max: u32, bytes: &[u8]) -> Option<Stored<'_>> {
    (bytes.len() <= max as usize).then_some(Stored::Bytes(bytes))
}

fn fit_json(max: u32, text: &str) -> Option<Stored<'_>> {
    fit_bytes(max, text.as_bytes()).filter(|_| json::check(text).is_ok())
}

#[inline]
fn fit_signed(ty: Type, n: i64) -> Option<Stored<'static>> {
    let fits = match ty {
        Type::I8 => i8::try_from(n).is_ok(),
        Type::I16 => i16::try_from(n).is_ok(),
        Type::I24 => n << 40 >> 40 == n,
        Type::I32 => i32::try_from(n).is_ok(),
        _ => true,
    };
    fits.then_some(Stored::Word(n as u64))
}

#[inline]
fn fit_unsigned(ty: Type, n: u64) -> Option<Stored<'static>> {
    let fits = match ty {
        Type::U8 => n <= u8::MAX.into(),
        Type::U16 => n <= u16::MAX.into(),
        Type::U24 => n >> 24 == 0,
        Type::U32 => n <= u32::MAX.into(),
        _ => true,
    };
    fits.then_some(Stored::Word(n))
}

/// True and false are 1 and 0.
fn fit_bool(ty: Type, b: bool) -> Option<Stored<'static>> {
    match ty.integer_range() {
        Some(_) => Some(Stored::Word(b.into())),
        None => (ty == Type::Bool).then(|| Stored::Word(b.into())),
    }
}

/// An integer in a column of another type.
fn fit_other(ty: Type, n: i128) -> Option<Stored<'static>> {
    match ty {
        Type::Bool => (n == 0 || n == 1).then_some(Stored::Word(n as u64)),
        Type::F32 => fit_float(ty, n as f64).filter(|_| n.unsigned_abs() <= 1 << 24),
        Type::F64 => fit_float(ty, n as f64).filter(|_| n.unsigned_abs() <= 1 << 53),
        Type::Decimal(precision, scale) => fit_decimal(precision, scale, Decimal::new(n, 0)),
        _ => None,
    }
}

fn fit_float(ty: Type, x: f64) -> Option<Stored<'static>> {
    // Adding zero turns -0.0 into 0.0.
    match ty {
        Type::F64 => Some(Stored::Word((if x.is_nan() { f64::NAN } else { x + 0.0 }).to_bits())),
        Type::F32 => {
            let narrow = if x.is_nan() { f32::NAN } else { x as f32 + 0.0 };
            (narrow.is_finite() || !x.is_finite()).then(|| Stored::Word(narrow.to_bits().into()))
        }
        _ => None,
    }
}

#[inline]
fn fit_decimal(precision: u8, scale: u8, d: Decimal) -> Option<Stored<'static>> {
    let unscaled = if d.scale() == scale { d.unscaled() } else { d.rescale(scale)?.unscaled() };
    if unscaled.unsigned_abs() >= power_of_ten(precision)?.unsigned_abs() {
        return None;
    }
    match Type::Decimal(precision, scale).fixed_bytes() {
        Some(8) => Some(Stored::Word(unscaled as u64)),
        _ => Some(Stored::Wide(unscaled as u128)),
    }
}

/// The reason of a refusal by `fit`, for a message that names the column.
#[cold]
pub(crate) fn misfit(ty: Type, value: ValueRef<'_>) -> String {
    match (value, ty) {
        (ValueRef::Text(text), Type::Text(max) | Type::Binary(max) | Type::Json(max)) if text.len() > max as usize => {
            format!("{} bytes are longer than the {max} allowed", text.len())
        }
        (ValueRef::Bytes(bytes), Type::Text(max) | Type::Binary(max) | Type::Json(max))
            if bytes.len() > max as usize =>
        {
            format!("{} bytes are longer than the {max} allowed", bytes.len())
        }
        (ValueRef::Bytes(bytes), Type::Fixed(len)) => format!("{} bytes in a column of exactly {len}", bytes.len()),
        (ValueRef::Bytes(bytes), Type::Uuid) => format!("{} bytes for a UUID, which has 16", bytes.len()),
        (ValueRef::Text(text), Type::Json(_)) => not_json(text),
        (ValueRef::Bytes(bytes), Type::Json(_)) if std::str::from_utf8(bytes).is_ok() => {
            not_json(&String::from_utf8_lossy(bytes))
        }
        (ValueRef::Bytes(_), Type::Text(_) | Type::Json(_)) => "the bytes are not UTF-8 text".to_string(),
        (
            ValueRef::Int(_) | ValueRef::UInt(_),
            Type::Text(_) | Type::Binary(_) | Type::Json(_) | Type::DateTime | Type::Date | Type::Time | Type::Uuid,
        )
        | (ValueRef::Text(_) | ValueRef::Bytes(_) | ValueRef::DateTime(_) | ValueRef::Bool(_), _)
        | (ValueRef::Date(_) | ValueRef::Time(_) | ValueRef::Uuid(_), _) => {
            format!("{} does not go into a column of type {ty}", value.kind())
        }
        (ValueRef::F64(_) | ValueRef::Decimal(_), _) if ty.fixed_bytes().is_none() || !same_family(value, ty) => {
            format!("{} does not go into a column of type {ty}", value.kind())
        }
        _ => format!("{value} does not fit type {ty}"),
    }
}

fn not_json(text: &str) -> String {
    json::check(text).err().unwrap_or_default()
}

fn same_family(value: ValueRef<'_>, ty: Type) -> bool {
    match value {
        ValueRef::F64(_) => matches!(ty, Type::F32 | Type::F64),
        ValueRef::Decimal(_) => matches!(ty, Type::Decimal(..)),
        _ => false,
    }
}

/// The value whose stored bytes are `bytes`. Bytes of a wrong length read as zero; text that is not UTF-8 comes back as
/// bytes.
#[inline]
pub(crate) fn unfit(ty: Type, bytes: &[u8]) -> ValueRef<'_> {
    match ty {
        Type::I8 => ValueRef::Int(i8::from_le_bytes(array(bytes)).into()),
        Type::I16 => ValueRef::Int(i16::from_le_bytes(array(bytes)).into()),
        Type::I24 => ValueRef::Int((i64::from(word24(bytes)) << 40) >> 40),
        Type::I32 => ValueRef::Int(i32::from_le_bytes(array(bytes)).into()),
        Type::I64 => ValueRef::Int(i64::from_le_bytes(array(bytes))),
        Type::U8 => ValueRef::UInt(u8::from_le_bytes(array(bytes)).into()),
        Type::U16 => ValueRef::UInt(u16::from_le_bytes(array(bytes)).into()),
        Type::U24 => ValueRef::UInt(word24(bytes).into()),
        Type::U32 => ValueRef::UInt(u32::from_le_bytes(array(bytes)).into()),
        Type::U64 => ValueRef::UInt(u64::from_le_bytes(array(bytes))),
        Type::F32 => ValueRef::F64(f32::from_bits(u32::from_le_bytes(array(bytes))).into()),
        Type::F64 => ValueRef::F64(f64::from_bits(u64::from_le_bytes(array(bytes)))),
        Type::Decimal(_, scale) => ValueRef::Decimal(unfit_decimal(ty, scale, bytes)),
        Type::Text(_) | Type::Json(_) => match simdutf8::basic::from_utf8(bytes) {
            Ok(text) => ValueRef::Text(text),
            Err(_) => ValueRef::Bytes(bytes),
        },
        Type::Binary(_) => ValueRef::Bytes(bytes),
        Type::Fixed(len) => ValueRef::Bytes(exactly(len, bytes)),
        Type::DateTime => ValueRef::DateTime(DateTime::from_unix_us(i64::from_le_bytes(array(bytes)))),
        Type::Bool => ValueRef::Bool(array(bytes) != [0]),
        Type::Date => ValueRef::Date(Date::from_unix_days(i32::from_le_bytes(array(bytes)))),
        Type::Time => ValueRef::Time(Time::from_us(u64::from_le_bytes(array(bytes))).unwrap_or(Time::MAX)),
        Type::Uuid => ValueRef::Uuid(u128::from_le_bytes(array(bytes)).to_be_bytes().into()),
    }
}

/// The decimal whose stored bytes are `bytes`.
#[inline]
pub(crate) fn unfit_decimal(ty: Type, scale: u8, bytes: &[u8]) -> Decimal {
    match ty.fixed_bytes() {
        Some(8) => Decimal::new(i64::from_le_bytes(array(bytes)).into(), scale),
        _ => Decimal::new(i128::from_le_bytes(array(bytes)), scale),
    }
}

/// Exactly `N` bytes; zeros if there are not that many.
#[inline]
pub(crate) fn array<const N: usize>(bytes: &[u8]) -> [u8; N] {
    bytes.try_into().unwrap_or([0; N])
}

/// The number in three little-endian bytes; zero if there are not three.
#[inline]
pub(crate) fn word24(bytes: &[u8]) -> u32 {
    let [low, middle, high] = array(bytes);
    u32::from_le_bytes([low, middle, high, 0])
}

/// The bytes if there are exactly `len`; else as many zeros.
#[inline]
pub(crate) fn exactly(len: u8, bytes: &[u8]) -> &[u8] {
    static ZEROS: [u8; u8::MAX as usize] = [0; u8::MAX as usize];
    if bytes.len() == usize::from(len) { bytes } else { &ZEROS[..usize::from(len)] }
}

/// The stored form of bytes of the raw API in a column of type `ty`; `None` if they are not a value of the type
/// ([`misfit_bytes`] has the reason). A float is normalized as by the typed API: see [`fit`].
#[inline]
pub(crate) fn fit_stored(ty: Type, bytes: &[u8]) -> Option<Stored<'_>> {
    match ty {
        Type::Text(_) | Type::Json(_) => fit(ty, ValueRef::Bytes(bytes)),
        _ if ty.fixed_bytes().is_some_and(|len| len != bytes.len()) => None,
        Type::Bool | Type::Time if !is_in_range(ty, bytes) => None,
        _ => fit(ty, unfit(ty, bytes)),
    }
}

/// Whether bytes of a fixed-size type, as a row keeps them, are a value of it, where not all are.
pub(crate) fn is_in_range(ty: Type, bytes: &[u8]) -> bool {
    match ty {
        Type::Bool => bytes[..] == [0] || bytes[..] == [1],
        Type::Time => Time::from_us(u64::from_le_bytes(array(bytes))).is_some(),
        _ => true,
    }
}

/// The reason of a refusal by [`fit_stored`].
#[cold]
pub(crate) fn misfit_bytes(ty: Type, bytes: &[u8]) -> String {
    match ty.fixed_bytes() {
        Some(len) if len != bytes.len() => format!("{} bytes for type {ty}, which has {len}", bytes.len()),
        Some(_) if !is_in_range(ty, bytes) => format!("the bytes are no value of type {ty}"),
        Some(_) => misfit(ty, unfit(ty, bytes)),
        None => misfit(ty, ValueRef::Bytes(bytes)),
    }
}

/// The stored bytes of a value in a column of this type, if it fits and is not NULL.
pub(crate) fn stored_bytes(ty: Type, value: &Value) -> Option<Vec<u8>> {
    match fit(ty, value.as_ref())? {
        Stored::Null => None,
        Stored::Word(word) => Some(word.to_le_bytes()[..ty.fixed_bytes()?].to_vec()),
        Stored::Wide(wide) => Some(wide.to_le_bytes().to_vec()),
        Stored::Bytes(bytes) => Some(bytes.to_vec()),
    }
}

/// The value for which a column of this type keeps these bytes, if there is one.
pub(crate) fn stored_value(ty: Type, bytes: &[u8]) -> Option<Value> {
    let value = unfit(ty, bytes).to_value();
    (stored_bytes(ty, &value)? == bytes).then_some(value)
}

impl Type {
    /// The reason why a column of this type refuses a value, if it does. NULL is not refused here, because it depends
    /// on the column.
    ///
    /// ```
    /// use highwater::Type;
    /// assert_eq!(Type::U8.misfit(300.into()).unwrap(), "300 does not fit type u8");
    /// assert_eq!(Type::Json(80).misfit("{\"a\" 1}".into()).unwrap(), "no JSON: expected `:` at byte 5");
    /// assert_eq!(Type::Json(80).misfit("{\"a\": 1}".into()), None);
    /// ```
    pub fn misfit(self, value: ValueRef<'_>) -> Option<String> {
        fit(self, value).is_none().then(|| misfit(self, value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_says_why() {
        let cases: [(Type, ValueRef<'_>, &str); 20] = [
            (Type::Json(9), "{\"a\" 1}".into(), "no JSON: expected `:` at byte 5"),
            (Type::Json(9), b"[1,]".into(), "no JSON: expected value at byte 3"),
            (Type::Json(9), b"\xff".into(), "the bytes are not UTF-8 text"),
            (Type::Json(3), "true".into(), "4 bytes are longer than the 3 allowed"),
            (Type::Json(3), b"true".into(), "4 bytes are longer than the 3 allowed"),
            (Type::Json(9), 1.into(), "an integer does not go into a column of type json(9)"),
            (Type::Bool, 2.into(), "2 does not fit type bool"),
            (Type::Text(9), true.into(), "true or false does not go into a column of type text(9)"),
            (Type::Date, 7.into(), "an integer does not go into a column of type date"),
            (Type::DateTime, Date::default().into(), "a date does not go into a column of type datetime"),
            (Type::Uuid, b"short".into(), "5 bytes for a UUID, which has 16"),
            (Type::U8, 300.into(), "300 does not fit type u8"),
            (Type::U64, (-1).into(), "-1 does not fit type u64"),
            (Type::Text(2), "abc".into(), "3 bytes are longer than the 2 allowed"),
            (Type::Text(9), b"\xff".into(), "the bytes are not UTF-8 text"),
            (Type::I32, "7".into(), "text does not go into a column of type i32"),
            (Type::Decimal(4, 2), Decimal::new(12345, 2).into(), "123.45 does not fit type decimal(4,2)"),
            (Type::Decimal(4, 2), 1.5.into(), "a floating point number does not go into a column of type decimal(4,2)"),
            (Type::F32, 1e300.into(), "does not fit type f32"),
            (Type::DateTime, 5.into(), "an integer does not go into a column of type datetime"),
        ];
        for (ty, value, reason) in cases {
            assert_eq!(fit(ty, value), None);
            let found = misfit(ty, value);
            assert!(found.contains(reason), "{found}");
        }
    }

    #[test]
    fn a_float_lies_above_the_one_below_it() {
        for x in [0.1, 0.2, -0.1, -0.2, 1e300, 1e-300, -1e-300, 16_777_217.0] {
            let below = adjacent_float(Type::F32, x.into(), false).unwrap();
            let above = adjacent_float(Type::F32, x.into(), true).unwrap();
            assert!(below < x && x < above && (below as f32).next_up() == above as f32, "{x}: {below} {above}");
        }
        assert_eq!(adjacent_float(Type::F32, (-1e300).into(), false), Some(f64::NEG_INFINITY));
        for x in [0.0, -0.0, 0.5, f64::INFINITY, f64::NEG_INFINITY, f64::NAN, f64::from(0.1f32)] {
            assert_eq!(adjacent_float(Type::F32, x.into(), false), None, "{x}");
        }
        assert_eq!(adjacent_float(Type::F64, 0.1.into(), true), None);
    }

    #[test]
    fn stored_bytes_are_canonical() {
        assert_eq!(fit(Type::F64, (-0.0).into()), fit(Type::F64, 0.0.into()));
        assert_eq!(fit(Type::F32, (-f64::NAN).into()), fit(Type::F32, f64::NAN.into()));
        assert_eq!(fit(Type::Decimal(9, 2), 3.into()), fit(Type::Decimal(9, 2), Decimal::new(300, 2).into()));
        assert_eq!(fit(Type::I64, 3u8.into()), fit(Type::I64, 3i32.into()));
        assert_eq!(fit(Type::Bool, 1.into()), fit(Type::Bool, true.into()));
        assert_eq!(fit(Type::U8, true.into()), fit(Type::U8, 1.into()));
        // JSON is kept as it is given.
        assert_eq!(fit(Type::Json(9), " [1.0] ".into()), Some(Stored::Bytes(b" [1.0] ")));
        assert_eq!(fit_stored(Type::Json(9), b"{}"), Some(Stored::Bytes(b"{}")));
        assert_eq!(fit_stored(Type::Json(9), b"{"), None);
        assert_eq!(misfit_bytes(Type::Json(9), b"{"), "no JSON: EOF while parsing an object at byte 1");
        // Bytes that are not a value come from nowhere.
        assert_eq!((fit_stored(Type::Bool, &[2]), fit_stored(Type::Bool, &[1])), (None, Some(Stored::Word(1))));
        assert_eq!(fit_stored(Type::Time, &u64::MAX.to_le_bytes()), None);
        assert!(misfit_bytes(Type::Bool, &[2]).contains("no value of type bool"));
    }
}
