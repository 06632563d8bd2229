//! Values of other crates as values of columns.
//!
//! Each module needs the feature of its name; all of them are off by default:
//!
//! - `chrono`: `DateTime<Tz>`, `NaiveDateTime`, `NaiveDate`, `NaiveTime` for [`DateTime`](crate::DateTime),
//!   [`Date`](crate::Date), [`Time`](crate::Time).
//! - `jiff`: `Timestamp`, `ZonedDateTime`, `civil::DateTime`, `civil::Date`, `civil::Time` for the same.
//! - `rust_decimal`: its `Decimal` for [`Decimal`](crate::Decimal).
//! - `uuid`: its `Uuid` for [`Uuid`](crate::Uuid).
//!
//! A conversion that always succeeds is a `From`, to the engine's type, to [`Value`](crate::Value) and to
//! [`ValueRef`](crate::ValueRef), so that [`values!`](crate::values) and `update` take the value as it is. One that can
//! fail is a `TryFrom` with [`Error::Conversion`](crate::Error::Conversion). Columns are read by
//! [`try_get`](crate::RowRef::try_get).
//!
//! Rules
//! 1. A value outside of the other type's range is an error: nothing wraps, and nothing is clamped.
//! 2. The engine keeps times to the microsecond. Nanoseconds are truncated, towards the past.
//! 3. A [`DateTime`](crate::DateTime) is a point in time: an offset or a time zone is not kept. One without an offset
//!    (`chrono::NaiveDateTime`, `jiff::civil::DateTime`) is taken as UTC, in both directions.

#[cfg(feature = "chrono")]
pub mod chrono;
#[cfg(feature = "jiff")]
pub mod jiff;
#[cfg(feature = "rust_decimal")]
pub mod rust_decimal;
#[cfg(feature = "uuid")]
pub mod uuid;

/// `From` for values, by way of the engine's type; `impl`s may have parameters.
#[allow(unused_macros, reason = "used by the features")]
macro_rules! values_from {
    ($($foreign:ty $(, $parameter:ident: $bound:path)? => $own:ty;)*) => {
        $(
            impl$(<$parameter: $bound>)? From<$foreign> for $crate::ValueRef<'_> {
                fn from(value: $foreign) -> Self {
                    <$own>::from(value).into()
                }
            }

            impl$(<$parameter: $bound>)? From<$foreign> for $crate::Value {
                fn from(value: $foreign) -> Self {
                    <$own>::from(value).into()
                }
            }
        )*
    };
}

/// Columns read by way of the engine's type.
#[allow(unused_macros, reason = "used by the features")]
macro_rules! read_by {
    ($($foreign:ty, $own:ty;)*) => {
        $(
            impl $crate::FromValue<'_> for $foreign {
                fn from_value(value: $crate::ValueRef<'_>) -> $crate::Result<$foreign> {
                    let read: $foreign = <$own>::from_value(value)?.try_into()?;
                    Ok(read)
                }
            }
        )*
    };
}

#[allow(unused_imports, reason = "used by the features")]
pub(crate) use {read_by, values_from};

/// Lets a conversion that always succeeds be used as a fallible one.
impl From<std::convert::Infallible> for crate::Error {
    fn from(never: std::convert::Infallible) -> crate::Error {
        match never {}
    }
}

/// The error of a value that the other type does not have.
#[allow(dead_code, reason = "used by the features")]
#[cold]
pub(crate) fn outside(value: impl std::fmt::Display, of: &str) -> crate::Error {
    crate::Error::Conversion(format!("{value} is outside of the range of {of}"))
}

#[cfg(all(test, feature = "chrono", feature = "jiff", feature = "rust_decimal", feature = "uuid"))]
#[path = "conversions_test.rs"]
mod tests;
