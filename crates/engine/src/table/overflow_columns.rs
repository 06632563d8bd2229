//! The choice of columns that go to overflow pages when a row is too long for its leaf.
//!
//! Rules
//! 1. Variable-length columns that no index has, the longest first, until the row fits. (InnoDB takes the longest first
//!    too.) A column of an index stays: its entries are made of the row in the leaf.
//! 2. Only a long column moves: more than an eighth of the space in the leaf. Each has separate pages: many short ones
//!    would waste space. If the row does not fit without its long columns, the whole rest of it goes to one chain
//!    (`txn::overflow_columns`).
//! 3. A column that is on overflow pages stays there until it is changed, or gets an index.

use super::changes::Changes;
use super::row::RowRef;
use super::row_layout::{RowLayout, VARIABLE};
use super::row_layouts::RowLayouts;
use super::version::TableVersion;
use crate::error::Result;
use crate::row::format::OverflowRef;
use crate::txn::overflow_columns::{COLUMN_REF_BYTES, assemble, refs_bytes};
use crate::txn::{ColumnRewrite, Outside};

/// A column is long if it has more than this part, 1/N, of a leaf's space.
const LONG_PART: usize = 8;

/// A column that may go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Candidate {
    number: u16,
    bytes: usize,
}

/// Rules 1 and 2: what goes of these candidates. `row_bytes` is the length of the row, which has `moved` columns on
/// overflow pages already.
fn choose(mut candidates: Vec<Candidate>, row_bytes: usize, moved: usize, room: usize) -> Vec<u16> {
    candidates.retain(|column| column.bytes > (room / LONG_PART).max(COLUMN_REF_BYTES));
    candidates.sort_by_key(|column| (std::cmp::Reverse(column.bytes), column.number));
    // One reference more may be needed, for the row itself.
    let max_moved = (room.saturating_sub(refs_bytes(1)) / COLUMN_REF_BYTES).min(usize::from(u8::MAX) - 1);
    let (mut left, mut chosen) = (row_bytes, Vec::new());
    for column in candidates {
        let refs = moved + chosen.len();
        let bytes = left + if refs > 0 { refs_bytes(refs) } else { 0 };
        if bytes <= room || refs >= max_moved {
            break;
        }
        left -= column.bytes;
        chosen.push(column.number);
    }
    chosen
}

impl TableVersion {
    /// See [`TableTrees::overflow_columns`](crate::txn::TableTrees::overflow_columns).
    pub(super) fn choose_overflow_columns(&self, row: &[u8], moved: &[u16], room: usize) -> Vec<u16> {
        let layout = self.layouts.of(row);
        let candidate = |number: u16| {
            let column =
                layout.column_of(number).filter(|column| !moved.contains(&number) && !self.is_indexed(*column));
            column.map(|_| Candidate { number, bytes: layout.variable_column(row, number).len() })
        };
        let candidates = (0..layout.variable as u16).filter_map(candidate).collect();
        choose(candidates, row.len(), moved.len(), room)
    }

    /// Whether the primary key or an index has the column.
    fn is_indexed(&self, column: usize) -> bool {
        let is_of_index = || self.definition.indexes.iter().any(|index| index.has(column));
        self.definition.is_key(column) || is_of_index()
    }
}

impl RowLayout {
    /// Position of variable-length column `number`.
    pub(crate) fn column_of(&self, number: u16) -> Option<usize> {
        self.slots.iter().position(|slot| slot.form == VARIABLE && slot.place == u32::from(number))
    }

    /// Number of a variable-length column; `None` for one of fixed size.
    pub(super) fn variable_number(&self, column: usize) -> Option<u16> {
        let slot = self.slots.get(column).filter(|slot| slot.form == VARIABLE);
        slot.and_then(|slot| u16::try_from(slot.place).ok())
    }

    /// Bytes that the row has of variable-length column `number`; none if there is no such column.
    pub(crate) fn variable_column<'r>(&'r self, row: &'r [u8], number: u16) -> &'r [u8] {
        let number = usize::from(number);
        if number < self.variable { RowRef::new(self, row).variable(number) } else { &[] }
    }

    /// See [`TableTrees::rebuild_columns`](crate::txn::TableTrees::rebuild_columns).
    pub(crate) fn rebuild_columns(&self, row: &[u8], column: &mut ColumnRewrite<'_>, out: &mut Vec<u8>) -> Result<()> {
        let fixed_part = row.get(..self.variable_at).ok_or_else(|| self.not_a_row("it is too short"))?;
        out.clear();
        out.extend_from_slice(fixed_part);
        for number in 0..self.variable as u16 {
            column(number, self.variable_column(row, number), out);
            self.set_end(usize::from(number), out);
        }
        Ok(())
    }
}

impl RowLayouts {
    /// Says of the columns that a row closure did not get which of them the new row keeps: those that `changes` leaves
    /// alone, or sets to what they are. One that was dropped from the table is not kept. The old row may have an older
    /// layout, in which the columns have other numbers; their order is the same.
    ///
    /// # Errors
    /// I/O, damage: a column of the same length is read and compared.
    #[cold]
    pub(crate) fn keep_unchanged(
        &self,
        old: &[u8],
        changes: &Changes<'_>,
        outside: &mut Outside<'_>,
        new: &mut Vec<u8>,
    ) -> Result<()> {
        let (before, present) = (self.of(old), self.present());
        for number in outside.numbers().collect::<Vec<u16>>() {
            let Some(column) = before.column_of(number) else { continue };
            let Some(new_number) = present.variable_number(column) else { continue };
            let first = before.variable_column(old, number);
            if changes.columns().any(|changed| changed == column) {
                if !outside.is_same(number, first, present.variable_column(new, new_number))? {
                    continue;
                }
                let row = std::mem::take(new);
                let mut cut = |of: u16, bytes: &[u8], out: &mut Vec<u8>| {
                    out.extend_from_slice(if of == new_number { first } else { bytes });
                };
                present.rebuild_columns(&row, &mut cut, new)?;
            }
            outside.keep(number, new_number);
        }
        Ok(())
    }

    /// The whole row of a stored one whose overflow pages are read by `read`, which replaces its buffer by the bytes of
    /// a chain.
    ///
    /// # Errors
    /// Those of `read`; `Corrupt` if `payload` is not that of an overflow row of this table.
    pub(crate) fn whole_row(
        &self,
        payload: &[u8],
        mut read: impl FnMut(OverflowRef, &mut Vec<u8>) -> Result<()>,
    ) -> Result<Vec<u8>> {
        let mut whole = Vec::new();
        let mut rebuild = |row: &[u8], column: &mut ColumnRewrite<'_>, out: &mut Vec<u8>| {
            self.of(row).rebuild_columns(row, column, out)
        };
        assemble(payload, |_, _| true, &mut read, &mut rebuild, &mut whole)?;
        Ok(whole)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn columns(bytes: &[usize]) -> Vec<Candidate> {
        bytes.iter().enumerate().map(|(number, &bytes)| Candidate { number: number as u16, bytes }).collect()
    }

    #[test]
    fn the_longest_columns_go_until_the_row_fits() {
        let room = 1000;
        assert!(choose(columns(&[400, 500]), 1000, 0, room).is_empty(), "it fits");
        assert_eq!(choose(columns(&[300, 500, 400]), 1210, 0, room), [1]);
        assert_eq!(choose(columns(&[900, 5000, 900]), 6810, 0, room), [1, 0]);
        assert_eq!(choose(columns(&[600, 600]), 1210, 0, room), [0], "the first of two equal ones");
        assert!(choose(columns(&[100; 20]), 2010, 0, room).is_empty(), "short ones stay");
        assert_eq!(choose(columns(&[5000, 100, 100]), 6900, 0, room), [0], "though the rest does not fit then");
        let with_refs = 1000 - refs_bytes(3);
        assert!(choose(columns(&[600]), with_refs, 3, room).is_empty());
        assert_eq!(choose(columns(&[600]), with_refs + 1, 3, room), [0], "the references take room too");
    }

    proptest! {
        #[test]
        fn what_goes_makes_the_row_fit_or_is_all_that_is_long(
            bytes in proptest::collection::vec(0usize..3000, 0..40),
            fixed in 0usize..2000,
            moved in 0usize..20,
            room in 200usize..3000,
        ) {
            let row_bytes = fixed + bytes.iter().sum::<usize>();
            let chosen = choose(columns(&bytes), row_bytes, moved, room);
            let left = row_bytes - chosen.iter().map(|number| bytes[usize::from(*number)]).sum::<usize>();
            let refs = moved + chosen.len();
            let fits = |left: usize, refs: usize| left + if refs > 0 { refs_bytes(refs) } else { 0 } <= room;
            let max_moved = (room - refs_bytes(1)) / COLUMN_REF_BYTES;
            let long = bytes.iter().filter(|bytes| **bytes > room / LONG_PART).count();
            prop_assert!(fits(left, refs) || chosen.len() == long.min(max_moved.saturating_sub(moved)));
            prop_assert!(chosen.is_empty() || refs_bytes(refs + 1) <= room, "their references fit");
            if let Some(last) = chosen.last() {
                prop_assert!(!fits(left + bytes[usize::from(*last)], refs - 1), "none goes needlessly");
            }
        }
    }
}
