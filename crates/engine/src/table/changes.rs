//! New values for columns of a row, collected before the row is rebuilt.

use super::column_index::ColumnIndex;
use super::new_columns::stored_or_null;
use super::row_layout::{NOT_NULLABLE, RowLayout};
use super::types::Type;
use super::value::ValueRef;
use super::value_form::{Stored, fit, misfit};
use crate::error::{Error, Result};

#[derive(Clone, Copy, Debug)]
pub(super) struct Edit {
    pub(super) column: usize,
    pub(super) new: NewValue,
}

/// A new value as its column keeps it; see [`Stored`].
#[derive(Clone, Copy, Debug)]
pub(super) enum NewValue {
    Null,
    Word(u64),
    Wide(u128),
    /// Range in [`Changes::bytes`].
    Bytes {
        start: usize,
        end: usize,
    },
}

/// New values for some columns of a row; see `modify`. Values are checked and copied as they are put.
#[derive(Debug)]
pub struct Changes<'t> {
    layout: &'t RowLayout,
    pub(super) edits: smallvec::SmallVec<[Edit; 8]>,
    pub(super) bytes: smallvec::SmallVec<[u8; 128]>,
    error: Option<Error>,
}

impl<'t> Changes<'t> {
    pub(crate) fn new(layout: &'t RowLayout) -> Changes<'t> {
        Changes { layout, edits: smallvec::SmallVec::new(), bytes: smallvec::SmallVec::new(), error: None }
    }

    /// Sets a column, by its position or its name. A value that does not fit makes the whole call fail, naming the
    /// column; so does a column that there is not.
    #[inline]
    pub fn put<'v>(&mut self, column: impl ColumnIndex, value: impl Into<ValueRef<'v>>) {
        let value = value.into();
        match column.position(&self.layout.names) {
            Some(position) => self.put_with(position, |ty| fit(ty, value).ok_or_else(|| misfit(ty, value))),
            None => self.refuse(self.layout.no_column(column)),
        }
    }

    /// As [`put`](Self::put), for the bytes that the column shall keep; `None` is NULL.
    pub(crate) fn put_stored(&mut self, column: usize, bytes: Option<&[u8]>) {
        self.put_with(column, |ty| stored_or_null(ty, bytes));
    }

    #[inline]
    fn put_with<'v>(&mut self, column: usize, stored: impl FnOnce(Type) -> std::result::Result<Stored<'v>, String>) {
        if let Err(error) = self.try_put(column, stored) {
            self.refuse(error);
        }
    }

    #[cold]
    fn refuse(&mut self, error: Error) {
        self.error.get_or_insert(error);
    }

    #[inline]
    fn try_put<'v>(
        &mut self,
        column: usize,
        stored: impl FnOnce(Type) -> std::result::Result<Stored<'v>, String>,
    ) -> Result<()> {
        let layout = self.layout;
        let slot = layout.slots.get(column).ok_or_else(|| layout.no_column(column))?;
        let stored = stored(slot.ty).map_err(|reason| layout.bad_value(column, reason))?;
        let new = match stored {
            Stored::Word(word) => NewValue::Word(word),
            Stored::Wide(wide) => NewValue::Wide(wide),
            Stored::Bytes(bytes) => {
                let start = self.bytes.len();
                self.bytes.extend_from_slice(bytes);
                NewValue::Bytes { start, end: self.bytes.len() }
            }
            Stored::Null if slot.null_bit == NOT_NULLABLE => {
                return Err(layout.bad_value(column, "NULL in a column that is never NULL"));
            }
            Stored::Null => NewValue::Null,
        };
        self.edits.push(Edit { column, new });
        Ok(())
    }

    /// Columns that were put, in order, repetitions included.
    pub(crate) fn columns(&self) -> impl Iterator<Item = usize> + '_ {
        self.edits.iter().map(|edit| edit.column)
    }

    /// The first value that did not fit.
    pub(crate) fn take_error(&mut self) -> Option<Error> {
        self.error.take()
    }
}
