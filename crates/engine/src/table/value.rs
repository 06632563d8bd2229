//! Values that go into and come out of rows: [`ValueRef`] borrows, [`Value`] owns.
//!
//! Rule: a value has a kind and no column: any integer fits any integer column that can hold the number; true and false
//! are 1 and 0 there, and 1 and 0 are true and false in a column of truth values.

use super::date::{Date, Time};
use super::datetime::DateTime;
use super::decimal::Decimal;
use super::uuid::Uuid;
use std::cmp::Ordering;
use std::fmt;

/// A borrowed value.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum ValueRef<'a> {
    /// No value.
    #[default]
    Null,
    /// A signed integer.
    Int(i64),
    /// An unsigned integer.
    UInt(u64),
    /// A floating point number.
    F64(f64),
    /// An exact decimal number.
    Decimal(Decimal),
    /// Text.
    Text(&'a str),
    /// Bytes.
    Bytes(&'a [u8]),
    /// A point in time.
    DateTime(DateTime),
    /// True or false.
    Bool(bool),
    /// A day.
    Date(Date),
    /// A time of day.
    Time(Time),
    /// A UUID.
    Uuid(Uuid),
}

/// An owned value.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Value {
    /// No value.
    #[default]
    Null,
    /// A signed integer.
    Int(i64),
    /// An unsigned integer.
    UInt(u64),
    /// A floating point number.
    F64(f64),
    /// An exact decimal number.
    Decimal(Decimal),
    /// Text.
    Text(String),
    /// Bytes.
    Bytes(Vec<u8>),
    /// A point in time.
    DateTime(DateTime),
    /// True or false.
    Bool(bool),
    /// A day.
    Date(Date),
    /// A time of day.
    Time(Time),
    /// A UUID.
    Uuid(Uuid),
}

/// Builds an array of [`ValueRef`]: `values![1, "Ada", null, b"bytes".as_slice()]`.
#[macro_export]
macro_rules! values {
    (@ [$($done:expr,)*]) => { [$($done,)*] };
    (@ [$($done:expr,)*] null $(, $($rest:tt)*)?) => {
        $crate::values!(@ [$($done,)* $crate::ValueRef::Null,] $($($rest)*)?)
    };
    (@ [$($done:expr,)*] $value:expr $(, $($rest:tt)*)?) => {
        $crate::values!(@ [$($done,)* $crate::ValueRef::from($value),] $($($rest)*)?)
    };
    ($($rest:tt)*) => { $crate::values!(@ [] $($rest)*) };
}

impl ValueRef<'_> {
    /// Whether there is no value.
    pub fn is_null(self) -> bool {
        matches!(self, ValueRef::Null)
    }

    /// The same value, owned.
    pub fn to_value(self) -> Value {
        match self {
            ValueRef::Null => Value::Null,
            ValueRef::Int(n) => Value::Int(n),
            ValueRef::UInt(n) => Value::UInt(n),
            ValueRef::F64(x) => Value::F64(x),
            ValueRef::Decimal(d) => Value::Decimal(d),
            ValueRef::Text(text) => Value::Text(text.to_string()),
            ValueRef::Bytes(bytes) => Value::Bytes(bytes.to_vec()),
            ValueRef::DateTime(t) => Value::DateTime(t),
            ValueRef::Bool(b) => Value::Bool(b),
            ValueRef::Date(d) => Value::Date(d),
            ValueRef::Time(t) => Value::Time(t),
            ValueRef::Uuid(u) => Value::Uuid(u),
        }
    }

    pub(super) fn kind(self) -> &'static str {
        match self {
            ValueRef::Null => "NULL",
            ValueRef::Int(_) | ValueRef::UInt(_) => "an integer",
            ValueRef::F64(_) => "a floating point number",
            ValueRef::Decimal(_) => "a decimal number",
            ValueRef::Text(_) => "text",
            ValueRef::Bytes(_) => "bytes",
            ValueRef::DateTime(_) => "a date and time",
            ValueRef::Bool(_) => "true or false",
            ValueRef::Date(_) => "a date",
            ValueRef::Time(_) => "a time of day",
            ValueRef::Uuid(_) => "a UUID",
        }
    }
}

impl Value {
    /// The same value, borrowed.
    pub fn as_ref(&self) -> ValueRef<'_> {
        match self {
            Value::Null => ValueRef::Null,
            Value::Int(n) => ValueRef::Int(*n),
            Value::UInt(n) => ValueRef::UInt(*n),
            Value::F64(x) => ValueRef::F64(*x),
            Value::Decimal(d) => ValueRef::Decimal(*d),
            Value::Text(text) => ValueRef::Text(text),
            Value::Bytes(bytes) => ValueRef::Bytes(bytes),
            Value::DateTime(t) => ValueRef::DateTime(*t),
            Value::Bool(b) => ValueRef::Bool(*b),
            Value::Date(d) => ValueRef::Date(*d),
            Value::Time(t) => ValueRef::Time(*t),
            Value::Uuid(u) => ValueRef::Uuid(*u),
        }
    }
}

/// Numbers, text and times as written elsewhere, NULL as `NULL`, bytes as hexadecimal digits.
impl fmt::Display for ValueRef<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ValueRef::Null => f.write_str("NULL"),
            ValueRef::Int(n) => n.fmt(f),
            ValueRef::UInt(n) => n.fmt(f),
            ValueRef::F64(x) => x.fmt(f),
            ValueRef::Decimal(d) => d.fmt(f),
            ValueRef::Text(text) => f.pad(text),
            ValueRef::Bytes(bytes) => bytes.iter().try_for_each(|b| write!(f, "{b:02x}")),
            ValueRef::DateTime(t) => t.fmt(f),
            ValueRef::Bool(b) => b.fmt(f),
            ValueRef::Date(d) => d.fmt(f),
            ValueRef::Time(t) => t.fmt(f),
            ValueRef::Uuid(u) => u.fmt(f),
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_ref().fmt(f)
    }
}

macro_rules! from {
    ($($from:ty => $variant:ident, $v:ident => $value:expr;)*) => {
        $(
            impl From<$from> for ValueRef<'_> {
                #[inline]
                fn from($v: $from) -> Self { ValueRef::$variant($value) }
            }
            impl From<$from> for Value {
                fn from($v: $from) -> Self { Value::$variant($value) }
            }
        )*
    };
}

from! {
    i8 => Int, n => n.into();
    i16 => Int, n => n.into();
    i32 => Int, n => n.into();
    i64 => Int, n => n;
    u8 => UInt, n => n.into();
    u16 => UInt, n => n.into();
    u32 => UInt, n => n.into();
    u64 => UInt, n => n;
    usize => UInt, n => n as u64;
    bool => Bool, b => b;
    f32 => F64, x => x.into();
    f64 => F64, x => x;
    Decimal => Decimal, d => d;
    DateTime => DateTime, t => t;
    Date => Date, d => d;
    Time => Time, t => t;
    Uuid => Uuid, u => u;
}

impl<'a> From<&'a str> for ValueRef<'a> {
    #[inline]
    fn from(text: &'a str) -> Self {
        ValueRef::Text(text)
    }
}

impl<'a> From<&'a String> for ValueRef<'a> {
    fn from(text: &'a String) -> Self {
        ValueRef::Text(text)
    }
}

impl<'a> From<&'a [u8]> for ValueRef<'a> {
    #[inline]
    fn from(bytes: &'a [u8]) -> Self {
        ValueRef::Bytes(bytes)
    }
}

impl<'a, const N: usize> From<&'a [u8; N]> for ValueRef<'a> {
    fn from(bytes: &'a [u8; N]) -> Self {
        ValueRef::Bytes(bytes)
    }
}

impl<'a> From<&'a Vec<u8>> for ValueRef<'a> {
    fn from(bytes: &'a Vec<u8>) -> Self {
        ValueRef::Bytes(bytes)
    }
}

impl<'a> From<&'a Value> for ValueRef<'a> {
    fn from(value: &'a Value) -> Self {
        value.as_ref()
    }
}

impl<'a, T> From<Option<T>> for ValueRef<'a>
where
    ValueRef<'a>: From<T>,
{
    #[inline]
    fn from(value: Option<T>) -> Self {
        value.map_or(ValueRef::Null, ValueRef::from)
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Value::Text(text)
    }
}

impl From<Vec<u8>> for Value {
    fn from(bytes: Vec<u8>) -> Self {
        Value::Bytes(bytes)
    }
}

impl From<ValueRef<'_>> for Value {
    fn from(value: ValueRef<'_>) -> Self {
        value.to_value()
    }
}

/// The order of two values of one column: NULL first, NaN last.
///
/// # Panics
/// If they are not of one column.
pub fn compare(a: &Value, b: &Value) -> Ordering {
    match (a, b) {
        (Value::Null, Value::Null) => Ordering::Equal,
        (Value::Null, _) => Ordering::Less,
        (_, Value::Null) => Ordering::Greater,
        (Value::Int(a), Value::Int(b)) => a.cmp(b),
        (Value::UInt(a), Value::UInt(b)) => a.cmp(b),
        (Value::F64(a), Value::F64(b)) => a.partial_cmp(b).unwrap_or_else(|| a.is_nan().cmp(&b.is_nan())),
        (Value::Decimal(a), Value::Decimal(b)) => a.cmp(b),
        (Value::Text(a), Value::Text(b)) => a.as_bytes().cmp(b.as_bytes()),
        (Value::Bytes(a), Value::Bytes(b)) => a.cmp(b),
        (Value::DateTime(a), Value::DateTime(b)) => a.cmp(b),
        (Value::Bool(a), Value::Bool(b)) => a.cmp(b),
        (Value::Date(a), Value::Date(b)) => a.cmp(b),
        (Value::Time(a), Value::Time(b)) => a.cmp(b),
        (Value::Uuid(a), Value::Uuid(b)) => a.cmp(b),
        _ => panic!("{a:?} and {b:?} are not of one column"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_macro_takes_nulls_and_expressions() {
        let name = String::from("Ada");
        let row = values![1, null, name.as_str(), Some(2u8), None::<i64>, 2.5, b"xy", 1 + 1];
        assert_eq!(row[0], ValueRef::Int(1));
        assert_eq!(row[1], ValueRef::Null);
        assert_eq!(row[2], ValueRef::Text("Ada"));
        assert_eq!(row[3], ValueRef::UInt(2));
        assert_eq!(row[4], ValueRef::Null);
        assert_eq!(row[7], ValueRef::Int(2));
        let trailing = values!["x", null,];
        assert_eq!(trailing.len(), 2);
        let empty: [ValueRef<'_>; 0] = values![];
        assert!(empty.is_empty());
    }
}
