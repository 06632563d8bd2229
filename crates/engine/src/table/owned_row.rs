//! Rows that own their bytes.

use super::column_index::ColumnIndex;
use super::date::{Date, Time};
use super::datetime::DateTime;
use super::decimal::Decimal;
use super::row::RowRef;
use super::row_layout::RowLayout;
use super::uuid::Uuid;
use super::value::{Value, ValueRef};
use std::fmt;
use std::sync::Arc;

macro_rules! getters {
    ($($(#[$doc:meta])* $name:ident -> $type:ty;)*) => {
        impl Row {
            $(
                $(#[$doc])*
                #[inline]
                pub fn $name(&self, column: impl ColumnIndex) -> $type {
                    self.as_ref().$name(column)
                }
            )*
        }
    };
}

/// A row, owning its bytes; columns are decoded when asked for.
#[derive(Clone)]
pub struct Row {
    layout: Arc<RowLayout>,
    bytes: Vec<u8>,
}

getters! {
    /// Value of an unsigned integer column; NULL reads as 0. Panics if the column does not exist or is of another type.
    u64 -> u64;
    /// Value of a signed integer column, or of an unsigned one of at most 32 bits; NULL reads as 0. Panics as `u64`
    /// does.
    i64 -> i64;
    /// Value of a floating point column; NULL reads as 0. Panics as `u64` does.
    f64 -> f64;
    /// Value of a decimal column; NULL reads as 0. Panics as `u64` does.
    decimal -> Decimal;
    /// Value of a date-time column; NULL reads as 1970-01-01. Panics as `u64` does.
    datetime -> DateTime;
    /// Value of a column of truth values; NULL reads as false. Panics as `u64` does.
    bool -> bool;
    /// Value of a date column; NULL reads as 1970-01-01. Panics as `u64` does.
    date -> Date;
    /// Value of a column of times of day; NULL reads as midnight. Panics as `u64` does.
    time -> Time;
    /// Value of a UUID column; NULL reads as the one of zeros. Panics as `u64` does.
    uuid -> Uuid;
    /// Value of a text or JSON column; NULL reads as "". Panics as `u64` does.
    str -> &str;
    /// Value of a text, JSON, binary or `Fixed` column as bytes; NULL reads as empty, or as zeros. Panics as `u64`
    /// does.
    bytes -> &[u8];
    /// The column's value; see [`ColumnIndex`]. Panics if there is no such column.
    get -> ValueRef<'_>;
    /// Whether the column is NULL. Panics if there is no such column.
    is_null -> bool;
}

impl RowRef<'_> {
    /// The same row, owned.
    pub(crate) fn to_row(self, layout: &Arc<RowLayout>) -> Row {
        Row::of_bytes(layout, self.as_bytes().to_vec())
    }
}

impl Row {
    /// An empty row, to be [filled](Self::fill).
    pub(crate) fn new(layout: &Arc<RowLayout>) -> Row {
        Row { layout: Arc::clone(layout), bytes: Vec::new() }
    }

    pub(crate) fn of_bytes(layout: &Arc<RowLayout>, bytes: Vec<u8>) -> Row {
        Row { layout: Arc::clone(layout), bytes }
    }

    /// Becomes another row.
    pub(crate) fn fill(&mut self, layout: &Arc<RowLayout>, bytes: &[u8]) {
        if !Arc::ptr_eq(&self.layout, layout) {
            self.layout = Arc::clone(layout);
        }
        self.bytes.clear();
        self.bytes.extend_from_slice(bytes);
    }

    /// The row, borrowed.
    #[inline]
    pub fn as_ref(&self) -> RowRef<'_> {
        RowRef::new(&self.layout, &self.bytes)
    }

    /// Its bytes, in its layout.
    pub(crate) fn encoded(&self) -> &[u8] {
        &self.bytes
    }

    pub(crate) fn layout(&self) -> &RowLayout {
        &self.layout
    }

    /// Number of columns.
    pub fn columns(&self) -> usize {
        self.layout.columns()
    }

    /// The columns' names, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.layout.named_types().map(|(name, _)| name)
    }

    /// Every column's value, in order.
    pub fn values(&self) -> impl Iterator<Item = ValueRef<'_>> {
        self.as_ref().values()
    }

    /// Every column's value, owned.
    pub fn to_values(&self) -> Vec<Value> {
        self.values().map(ValueRef::to_value).collect()
    }
}

impl PartialEq for Row {
    /// Whether all columns have the same values.
    fn eq(&self, other: &Row) -> bool {
        self.values().eq(other.values())
    }
}

impl fmt::Debug for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_ref().fmt(f)
    }
}
