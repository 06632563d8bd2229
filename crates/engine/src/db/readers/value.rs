//! Values of keys and bounds in messages.

use crate::table::{Date, DateTime, Decimal, Time, Uuid, ValueRef};
use serde::{Deserialize, Serialize};

/// A value as a message has it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(super) enum Field<'a> {
    Null,
    Int(i64),
    UInt(u64),
    F64(f64),
    Decimal(i128, u8),
    Text(&'a str),
    Bytes(&'a [u8]),
    DateTime(i64),
    Bool(bool),
    Date(i32),
    Time(u64),
    Uuid([u8; 16]),
}

impl<'a> From<ValueRef<'a>> for Field<'a> {
    fn from(value: ValueRef<'a>) -> Field<'a> {
        match value {
            ValueRef::Null => Field::Null,
            ValueRef::Int(value) => Field::Int(value),
            ValueRef::UInt(value) => Field::UInt(value),
            ValueRef::F64(value) => Field::F64(value),
            ValueRef::Decimal(value) => Field::Decimal(value.unscaled(), value.scale()),
            ValueRef::Text(text) => Field::Text(text),
            ValueRef::Bytes(bytes) => Field::Bytes(bytes),
            ValueRef::DateTime(time) => Field::DateTime(time.unix_us()),
            ValueRef::Bool(value) => Field::Bool(value),
            ValueRef::Date(day) => Field::Date(day.unix_days()),
            ValueRef::Time(time) => Field::Time(time.us_since_midnight()),
            ValueRef::Uuid(uuid) => Field::Uuid(*uuid.as_bytes()),
        }
    }
}

impl<'a> Field<'a> {
    /// The value; `None` if its type has no such value.
    fn value(self) -> Option<ValueRef<'a>> {
        Some(match self {
            Field::Null => ValueRef::Null,
            Field::Int(value) => ValueRef::Int(value),
            Field::UInt(value) => ValueRef::UInt(value),
            Field::F64(value) => ValueRef::F64(value),
            Field::Decimal(unscaled, scale) => ValueRef::Decimal(Decimal::new(unscaled, scale)),
            Field::Text(text) => ValueRef::Text(text),
            Field::Bytes(bytes) => ValueRef::Bytes(bytes),
            Field::DateTime(us) => ValueRef::DateTime(DateTime::from_unix_us(us)),
            Field::Bool(value) => ValueRef::Bool(value),
            Field::Date(days) => ValueRef::Date(Date::from_unix_days(days)),
            Field::Time(us) => ValueRef::Time(Time::from_us(us)?),
            Field::Uuid(bytes) => ValueRef::Uuid(Uuid::from_bytes(bytes)),
        })
    }
}

pub(super) fn to_fields<'a>(values: &[ValueRef<'a>]) -> Vec<Field<'a>> {
    values.iter().map(|value| Field::from(*value)).collect()
}

/// The fields as values; `None` if no type has one of the values.
pub(super) fn to_values<'a>(fields: &[Field<'a>]) -> Option<Vec<ValueRef<'a>>> {
    fields.iter().map(|field| field.value()).collect()
}
