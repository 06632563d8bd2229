//! The columns of a new row in the two APIs: values, or the bytes that columns store.

use super::types::Type;
use super::value::ValueRef;
use super::value_form::{Stored, fit, fit_stored, misfit, misfit_bytes, unfit};

/// The columns of a new row, in order.
pub(crate) trait NewColumns {
    fn count(&self) -> usize;

    /// Whether a column is there, and NULL.
    fn is_null(&self, column: usize) -> bool;

    /// The stored form of a value in a column of this type; the error says why it does not fit.
    fn stored(&self, column: usize, ty: Type) -> Result<Stored<'_>, String>;
}

impl NewColumns for [ValueRef<'_>] {
    #[inline]
    fn count(&self) -> usize {
        self.len()
    }

    #[inline]
    fn is_null(&self, column: usize) -> bool {
        self.get(column).is_some_and(|value| value.is_null())
    }

    #[inline]
    fn stored(&self, column: usize, ty: Type) -> Result<Stored<'_>, String> {
        fit(ty, self[column]).ok_or_else(|| misfit(ty, self[column]))
    }
}

impl NewColumns for [Option<&[u8]>] {
    fn count(&self) -> usize {
        self.len()
    }

    fn is_null(&self, column: usize) -> bool {
        self.get(column).is_some_and(|bytes| bytes.is_none())
    }

    fn stored(&self, column: usize, ty: Type) -> Result<Stored<'_>, String> {
        stored_or_null(ty, self[column])
    }
}

/// The stored form of bytes in a column of this type; the error says why they do not fit. `None` is NULL.
pub(crate) fn stored_or_null(ty: Type, bytes: Option<&[u8]>) -> Result<Stored<'_>, String> {
    let Some(bytes) = bytes else { return Ok(Stored::Null) };
    fit_stored(ty, bytes).ok_or_else(|| misfit_bytes(ty, bytes))
}

/// The value of a key's column for the bytes that the column would keep; else why they are not one. Texts and bytes may
/// be longer than its values.
pub(crate) fn key_value(ty: Type, bytes: Option<&[u8]>) -> Result<ValueRef<'_>, String> {
    let Some(bytes) = bytes else { return Ok(ValueRef::Null) };
    match ty.fixed_bytes() {
        Some(len) if len != bytes.len() => Err(misfit_bytes(ty, bytes)),
        _ => Ok(unfit(ty, bytes)),
    }
}
