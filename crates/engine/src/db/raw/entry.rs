//! Columns from the entries of an index.
//!
//! Rules
//! 1. The key of an entry is the same in every version of the row that has the entry. Its covered columns are those of
//!    the row's visible version only if the entry was delivered without its row (`txn/read/scan.rs`, rule 4).
//! 2. An entry that does not decode is damage.

use super::RawRow;
use super::row::EntryRow;
use crate::error::{Error, Result};
use crate::table::key::{KeyPart, append_stored};
use crate::table::version::TableVersion;
use std::sync::Arc;

/// Decodes columns from the entries of an index.
pub(super) struct EntryColumns {
    version: Arc<TableVersion>,
    index: usize,
    /// Parts of the entry's key, the first ones, that have to be looked at.
    parts: usize,
    /// Whether one of the columns is covered, outside of the key.
    has_covered: bool,
}

impl EntryColumns {
    /// `None` if the entries lack one of these columns, both in their keys and covered.
    pub(super) fn new(version: &Arc<TableVersion>, index: usize, columns: &[usize]) -> Option<EntryColumns> {
        let parts =
            |column: usize| parts(version, index).position(|part| part.column == column && part.is_reversible());
        let covered = |column: usize| version.indexes[index].covered.columns().any(|covered| covered == column);
        let mut found = EntryColumns { version: Arc::clone(version), index, parts: 0, has_covered: false };
        for &column in columns {
            match parts(column) {
                Some(part) => found.parts = found.parts.max(part + 1),
                None if covered(column) => found.has_covered = true,
                None => return None,
            }
        }
        debug_assert!(found.parts <= self::parts(version, index).count(), "an entry has not {} columns", found.parts);
        Some(found)
    }

    /// Whether the keys of the entries have all of the columns.
    pub(super) fn are_in_keys(&self) -> bool {
        !self.has_covered
    }

    /// Makes `row` the columns of an entry; `covered` is what it has in addition to its key.
    pub(super) fn read(&self, entry: &[u8], covered: &[u8], row: &mut RawRow) -> Result<()> {
        let columns = self.version.definition.columns.len();
        let EntryRow { bytes, columns: places } = row.entry_row();
        bytes.clear();
        places.clear();
        places.resize(columns, None);
        let mut rest = entry;
        for part in parts(&self.version, self.index).take(self.parts) {
            let start = bytes.len();
            let damaged = || Error::Corrupt(format!("an entry of {} bytes does not decode", entry.len()));
            let is_value = append_stored(part, &mut rest, bytes).ok_or_else(damaged)?;
            if part.is_reversible() {
                places[part.column] = is_value.then_some(start..bytes.len());
            }
        }
        if self.has_covered {
            let of = &self.version.indexes[self.index].covered;
            of.append_stored(covered, bytes, |column, range| places[column] = range)?;
        }
        Ok(())
    }
}

/// The parts of the keys of an index: its own, then those of the primary key.
fn parts(version: &TableVersion, index: usize) -> impl Iterator<Item = &KeyPart> {
    version.indexes[index].key.parts().iter().chain(version.key.parts())
}
