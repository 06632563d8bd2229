//! Values of columns as types of the program.
//!
//! Rule: nothing is rounded, cut off or wrapped. A value that the type cannot hold exactly is an error, and NULL is one
//! for every type but `Option` and the two of values.

use super::column_index::ColumnIndex;
use super::date::{Date, Time};
use super::datetime::DateTime;
use super::decimal::Decimal;
use super::owned_row::Row;
use super::row::RowRef;
use super::row_layout::RowLayout;
use super::uuid::Uuid;
use super::value::{Value, ValueRef};
use crate::error::{Error, Result};
use std::fmt;

/// A type that columns are read as: [`RowRef::try_get`], [`Row::try_get`].
///
/// Integers, floats, `bool`, `&str`, `String`, `&[u8]`, `Vec<u8>`, arrays of bytes and the engine's own types are such,
/// and `Option` of each, which takes NULL; types of other crates behind [features](crate::conversions). Programs add
/// types of their own:
///
/// ```
/// use highwater::{Database, Error, FromValue, Result, Schema, Type, ValueRef, values};
///
/// #[derive(Debug, PartialEq)]
/// enum Color { Red, Blue }
///
/// impl<'a> FromValue<'a> for Color {
///     fn from_value(value: ValueRef<'a>) -> Result<Color> {
///         match <&str>::from_value(value)? {
///             "red" => Ok(Color::Red),
///             "blue" => Ok(Color::Blue),
///             other => Err(Error::Conversion(format!("{other:?} is not a color"))),
///         }
///     }
/// }
///
/// let db = Database::in_memory()?;
/// let schema = Schema::new().column("id", Type::U64).column("color", Type::Text(20)).primary_key(&["id"]);
/// let cars = db.create_table("cars", schema)?;
/// db.transact(|txn| txn.insert(&cars, &values![1u64, "red"]).map(drop))?;
/// let car = db.snapshot()?.get(&cars, &values![1u64])?.unwrap();
/// assert_eq!(car.try_get::<Color>("color")?, Color::Red);
/// # Ok::<(), highwater::Error>(())
/// ```
pub trait FromValue<'a>: Sized {
    /// The value as this type.
    ///
    /// # Errors
    /// [`Error::Conversion`] says why it cannot be.
    fn from_value(value: ValueRef<'a>) -> Result<Self>;
}

/// The error of a value that is not of the kind that a type holds.
#[cold]
fn wrong_kind(value: ValueRef<'_>, wanted: &str) -> Error {
    let hint = if value.is_null() { "; an Option takes it" } else { "" };
    Error::Conversion(format!("{} is read as {wanted}{hint}", value.kind()))
}

#[cold]
fn out_of_range(value: ValueRef<'_>, wanted: &str) -> Error {
    Error::Conversion(format!("{value} does not fit {wanted}"))
}

macro_rules! integers {
    ($($type:ty)*) => {
        $(
            impl FromValue<'_> for $type {
                #[inline]
                fn from_value(value: ValueRef<'_>) -> Result<$type> {
                    let fits = match value {
                        ValueRef::Int(n) => n.try_into().ok(),
                        ValueRef::UInt(n) => n.try_into().ok(),
                        _ => return Err(wrong_kind(value, stringify!($type))),
                    };
                    fits.ok_or_else(|| out_of_range(value, stringify!($type)))
                }
            }
        )*
    };
}

integers! { i8 i16 i32 i64 i128 isize u8 u16 u32 u64 u128 usize }

macro_rules! kinds {
    ($($type:ty, $variant:ident, $v:ident => $read:expr, $name:literal;)*) => {
        $(
            impl<'a> FromValue<'a> for $type {
                #[inline]
                fn from_value(value: ValueRef<'a>) -> Result<$type> {
                    match value {
                        ValueRef::$variant($v) => Ok($read),
                        _ => Err(wrong_kind(value, $name)),
                    }
                }
            }
        )*
    };
}

kinds! {
    f64, F64, x => x, "a floating point number";
    Decimal, Decimal, d => d, "a decimal number";
    &'a str, Text, text => text, "text";
    String, Text, text => text.to_string(), "text";
    &'a [u8], Bytes, bytes => bytes, "bytes";
    Vec<u8>, Bytes, bytes => bytes.to_vec(), "bytes";
    DateTime, DateTime, time => time, "a date and time";
    bool, Bool, b => b, "true or false";
    Date, Date, day => day, "a date";
    Time, Time, time => time, "a time of day";
    Uuid, Uuid, uuid => uuid, "a UUID";
}

impl FromValue<'_> for f32 {
    fn from_value(value: ValueRef<'_>) -> Result<f32> {
        let wide = f64::from_value(value)?;
        let narrow = wide as f32;
        let is_exact = f64::from(narrow) == wide || wide.is_nan();
        is_exact.then_some(narrow).ok_or_else(|| out_of_range(value, "f32"))
    }
}

impl<'a, const N: usize> FromValue<'a> for [u8; N] {
    fn from_value(value: ValueRef<'a>) -> Result<[u8; N]> {
        let bytes = <&[u8]>::from_value(value)?;
        bytes.try_into().map_err(|_| Error::Conversion(format!("{} bytes are read as {N}", bytes.len())))
    }
}

impl<'a> FromValue<'a> for ValueRef<'a> {
    fn from_value(value: ValueRef<'a>) -> Result<ValueRef<'a>> {
        Ok(value)
    }
}

impl FromValue<'_> for Value {
    fn from_value(value: ValueRef<'_>) -> Result<Value> {
        Ok(value.to_value())
    }
}

impl<'a, T: FromValue<'a>> FromValue<'a> for Option<T> {
    #[inline]
    fn from_value(value: ValueRef<'a>) -> Result<Option<T>> {
        if value.is_null() { Ok(None) } else { T::from_value(value).map(Some) }
    }
}

impl<'a> RowRef<'a> {
    /// The column's value as any type that implements [`FromValue`]; with the [features](crate::conversions) `chrono`,
    /// `jiff`, `rust_decimal` and `uuid` also types of those crates.
    ///
    /// ```
    /// # use highwater::{Database, Schema, Type, values};
    /// # let db = Database::in_memory()?;
    /// let schema = Schema::new().column("id", Type::U64).nullable("born", Type::U16).primary_key(&["id"]);
    /// let people = db.create_table("people", schema)?;
    /// db.transact(|txn| txn.insert(&people, &values![1u64, 1815u16]).map(drop))?;
    /// let row = db.snapshot()?.get(&people, &values![1u64])?.unwrap();
    /// assert_eq!((row.try_get::<i32>("born")?, row.try_get::<Option<u64>>("born")?), (1815, Some(1815)));
    /// let refused = row.try_get::<u8>("born").unwrap_err();
    /// assert_eq!(refused.to_string(), "column born: 1815 does not fit u8 (its type is u16)");
    /// # Ok::<(), highwater::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::BadValue`] names the column and its type: there is no such column, or its value is of another kind, out
    /// of the type's range, or NULL and the type no `Option`.
    pub fn try_get<T: FromValue<'a>>(self, column: impl ColumnIndex) -> Result<T> {
        let position = self.find(column).ok_or_else(|| self.layout.no_column(column))?;
        T::from_value(self.get(position)).map_err(|error| self.layout.unreadable(position, error))
    }
}

impl RowLayout {
    /// The error of a value that is no value of another type.
    #[cold]
    pub(super) fn unreadable(&self, column: usize, error: impl fmt::Display) -> Error {
        self.bad_value(column, format!("{error} (its type is {})", self.slots[column].ty))
    }
}

impl Row {
    /// The column's value as any type that implements [`FromValue`]; see [`RowRef::try_get`].
    ///
    /// # Errors
    /// As [`RowRef::try_get`].
    pub fn try_get<'a, T: FromValue<'a>>(&'a self, column: impl ColumnIndex) -> Result<T> {
        self.as_ref().try_get(column)
    }
}

#[cfg(test)]
#[path = "from_value_test.rs"]
mod tests;
