//! Rows as structs of the program and back, by serde.
//!
//! Rules
//! 1. A row is a map from column names to values, in both directions. A struct may leave columns out; a field of which
//!    there is no column is an error when a row is made of it.
//! 2. `None` is NULL. A column that a struct leaves out gets its default, or NULL.
//! 3. A column's type decides how a field is written: a `DateTime`, `Date`, `Time`, `Uuid` or `Decimal` column takes
//!    the text as which serde writes the type of that name, or a type of another crate.
//! 4. A JSON column has the JSON that describes the field, also of text.
//! 5. Nothing is rounded: a float is read as a float that holds it, an integer as an integer. A time that is finer than
//!    a microsecond is cut off, as in `conversions`.
//! 6. An error names the column and its type, if it is one of a column.
//!
//! | file | what |
//! |---|---|
//! | `read.rs` | rows as structs |
//! | `write.rs`, `field.rs` | structs as the values of a row, a field as a value |
//! | `types.rs` | the engine's value types as serde writes them |
//! | `text.rs` | times as other crates write them |

mod field;
mod read;
mod text;
mod types;
mod write;

use super::row_layout::RowLayout;
use crate::error::Error;
use serde::{de, ser};
use std::fmt;
pub(crate) use write::StructValues;

/// The reason why a row cannot be converted to or from a struct.
#[derive(Debug)]
pub(super) struct Refusal {
    /// The column's position, once it is known.
    column: Option<usize>,
    /// The name of a field of which there is no column.
    unknown: Option<String>,
    reason: String,
}

impl Refusal {
    fn new(reason: impl Into<String>) -> Refusal {
        Refusal { column: None, unknown: None, reason: reason.into() }
    }

    /// Of a field of which there is no column.
    fn unknown(field: &str) -> Refusal {
        Refusal { unknown: Some(field.to_string()), ..Refusal::new(format!("there is no column {field}")) }
    }

    /// This refusal, of a value of this column.
    fn of_column(self, column: usize) -> Refusal {
        Refusal { column: self.column.or(Some(column)), ..self }
    }

    /// The error of a read as `T`.
    fn into_error<T>(self, layout: &RowLayout) -> Error {
        match self.column {
            Some(column) => layout.unreadable(column, self.reason),
            None => Error::Conversion(format!("a row is read as {}: {}", std::any::type_name::<T>(), self.reason)),
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.reason)
    }
}

impl std::error::Error for Refusal {}

impl de::Error for Refusal {
    fn custom<T: fmt::Display>(reason: T) -> Refusal {
        Refusal::new(reason.to_string())
    }
}

impl ser::Error for Refusal {
    fn custom<T: fmt::Display>(reason: T) -> Refusal {
        Refusal::new(reason.to_string())
    }
}

impl From<serde_json::Error> for Refusal {
    fn from(error: serde_json::Error) -> Refusal {
        Refusal::new(error.to_string())
    }
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Refusal {
        Refusal::new(error.to_string())
    }
}

#[cfg(test)]
#[path = "serde_rows_test.rs"]
mod tests;
